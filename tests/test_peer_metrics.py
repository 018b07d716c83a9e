"""Our timings against the formulas of three benchmarks: equal to the nanosecond, or how not.

`peer_metrics.py` restates vLLM's, AIPerf's and llmperf's definitions and reads the recordings by
itself. What is equal is in `SAME`; what is not is in `OTHERWISE`, each with the exact relation.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import Recording, judge
from streamlab.analysis.judge import Outcome
from streamlab.analysis.meter import Meter
from streamlab.analysis.metrics import Metrics, Spread, goodput
from streamlab.streams import recording as files
from streamlab.streams.random_answers import random_answer
from streamlab.streams.recording import Chunk
from streamlab.wire.events import TextDelta
from tests import peer_metrics as peer
from tests.peer_metrics import SECOND, Stream

FOLDER = Path(__file__).parents[1] / "fixtures"

FIXTURES = [
    *(f"claude/{name}" for name in ("change_label", "greeting_crlf", "thinking_then_tool")),
    *(f"claude/{name}" for name in ("interleaved", "search", "hard_text", "stall", "token_limit")),
    *("claude/pay_invoice_cut", "claude/overloaded", "claude/reset"),
    *("openai-chat/change_label", "openai-responses/change_label", "gemini/change_label"),
    *("proxies/proxy_on", "proxies/proxy_off"),
]

SEEDS = range(40)


class Both(NamedTuple):
    """One recording, as we and as the benchmarks' formulas see it."""

    outcome: Outcome
    ours: Metrics
    stream: Stream

    @property
    def tokens(self) -> int:
        """Output tokens; a formula that divides by them is only asked where there are two."""
        assert self.stream.tokens is not None
        return self.stream.tokens


def both(path: Path) -> Both:
    outcome = judge(files.read(path))
    assert outcome.metrics is not None and outcome.wire is not None
    lines = path.read_text(encoding="utf-8")
    return Both(outcome, outcome.metrics, peer.opened(lines, outcome.wire))


def retimed(recording: Recording, rng: random.Random) -> Recording:
    """The same reads at other times: nanoseconds that no rounding to microseconds keeps."""
    t, chunks, longest = rng.randrange(2 * SECOND), [], 6 * SECOND // len(recording.chunks)
    for chunk in recording.chunks:
        t += rng.choice((0, 1, 999, rng.randrange(longest), rng.randrange(longest)))
        chunks.append(Chunk(t / SECOND, chunk.data))
    return msgspec.structs.replace(recording, chunks=tuple(chunks), end_t=t / SECOND)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> list[Both]:
    """The fixtures, and random answers on the four wires at random nanoseconds.

    Left out: a JSON array, and a call whose input streams by path, which Gemini's reader gives
    whole; neither is in the benchmarks' world.
    """
    found = [both(FOLDER / f"{name}.stream.jsonl") for name in FIXTURES]
    place = tmp_path_factory.mktemp("timed") / "answer.stream.jsonl"
    for wire, seed in itertools.product(peer.SAID, SEEDS):
        _, answer = random_answer(seed, wire)
        if answer.data.startswith(b"[") or b"partialArgs" in answer.data:
            continue
        files.write(retimed(answer, random.Random(seed)), place)
        found.append(both(place))
    return found


def test_there_is_enough_to_compare(every: list[Both]) -> None:
    wires = [each.outcome.wire for each in every]
    assert min(wires.count(wire) for wire in peer.SAID) >= 20
    assert sum(each.ours.tpot_s is not None for each in every) >= 60
    assert sum({"thinking", "text", "tool"} <= each.ours.phases.keys() for each in every) >= 5


# --- The same -------------------------------------------------------------------------------------

Nanoseconds = int | Fraction


def spread(gaps: list[int]) -> list[Nanoseconds]:
    """Median, p90, p99 and maximum by linear interpolation, exactly."""
    ordered = sorted(gaps)

    def at(percent: int) -> Fraction:
        place = Fraction(percent * (len(ordered) - 1), 100)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return [at(50), at(90), at(99), ordered[-1]]


def numbers(icl: Spread | None) -> list[float]:
    assert icl is not None
    return [icl.median, icl.p90, icl.p99, icl.max]


def has_two(each: Both) -> bool:
    return len(each.stream.pieces) > 1


def has_rate(each: Both) -> bool:
    """Whether time for a token means something; one read of everything is no pace."""
    return has_two(each) and (each.stream.tokens or 0) > 1


def has(*kinds: str) -> Callable[[Both], bool]:
    return lambda each: bool(each.stream.of(*kinds))


ANY = has("thinking", "text", "tool", "other")


class Row(NamedTuple):
    """A number of theirs and the number of ours that it is equal to."""

    theirs: Callable[[Both], Nanoseconds | list[Nanoseconds]]
    ours: Callable[[Metrics], float | list[float] | None]
    where: Callable[[Both], bool] = ANY


SAME = {
    "vLLM ttft, over content = ttfc_s": Row(
        lambda each: peer.vllm_ttft(each.stream.times), lambda m: m.ttfc_s
    ),
    "vLLM e2el, over content = e2e_s": Row(
        lambda each: peer.vllm_e2el(each.stream.times), lambda m: m.e2e_s
    ),
    "vLLM tpot, over content = tpot_s": Row(
        lambda each: peer.vllm_tpot(each.stream.times, each.tokens), lambda m: m.tpot_s, has_rate
    ),
    "vLLM itl, pooled over one request = icl_s": Row(
        lambda each: spread(peer.vllm_itl(each.stream.times)), lambda m: numbers(m.icl_s), has_two
    ),
    "AIPerf TTFT = ttfc_s": Row(
        lambda each: peer.aiperf_ttft(each.stream.times), lambda m: m.ttfc_s
    ),
    "AIPerf TTFO = the earlier of ttft_s and time_to_first_tool_s": Row(
        lambda each: peer.aiperf_ttfo(each.stream),
        lambda m: min(t for t in (m.ttft_s, m.time_to_first_tool_s) if t is not None),
        has("text", "tool"),
    ),
    "AIPerf request latency = e2e_s": Row(
        lambda each: peer.aiperf_request_latency(each.stream.times), lambda m: m.e2e_s
    ),
    "AIPerf inter-token latency = tpot_s": Row(
        lambda each: peer.aiperf_itl(each.stream.times, each.tokens), lambda m: m.tpot_s, has_rate
    ),
    "AIPerf inter-chunk latency = icl_s": Row(
        lambda each: spread(peer.aiperf_icl(each.stream.times)),
        lambda m: numbers(m.icl_s),
        has_two,
    ),
    "llmperf ttft = ttft_s": Row(
        lambda each: peer.llmperf_ttft(each.stream), lambda m: m.ttft_s, has("text")
    ),
    "first thinking = time_to_first_thinking_s": Row(
        lambda each: each.stream.of("thinking")[0],
        lambda m: m.time_to_first_thinking_s,
        has("thinking"),
    ),
    "first tool = time_to_first_tool_s": Row(
        lambda each: each.stream.of("tool")[0], lambda m: m.time_to_first_tool_s, has("tool")
    ),
}


def off_by(ours: float, theirs: Nanoseconds) -> Fraction:
    """The difference in nanoseconds, exactly."""
    return abs(Fraction(ours) * SECOND - theirs)


#: Nanoseconds: what is left of seconds as 64-bit floats. A thousandth, where one would do.
NOTHING = Fraction(1, 1000)


@pytest.mark.parametrize("row", SAME.values(), ids=SAME)
def test_where_the_definitions_agree_so_do_the_numbers_to_the_nanosecond(
    row: Row, every: list[Both]
) -> None:
    asked = [each for each in every if row.where(each)]
    assert len(asked) >= 20
    for each in asked:
        theirs, ours = row.theirs(each), row.ours(each.ours)
        assert ours is not None
        pairs = zip(
            ours if isinstance(ours, list) else [ours],
            theirs if isinstance(theirs, list) else [theirs],
            strict=True,
        )
        assert all(off_by(mine, other) < NOTHING for mine, other in pairs), each


@pytest.mark.parametrize("kind", ["thinking", "text", "tool"])
def test_of_one_kind_alone_the_numbers_are_the_same_formulas_over_that_kind(
    kind: str, every: list[Both]
) -> None:
    asked = [each for each in every if each.stream.of(kind)]
    assert len(asked) >= 20
    for each in asked:
        times, phase = each.stream.of(kind), each.ours.phases[kind]
        assert phase.content_events == len(times)
        assert off_by(phase.ttfc_s, times[0]) < NOTHING
        assert off_by(phase.e2e_s, times[-1]) < NOTHING
        pieces = itertools.pairwise(each.stream.pieces)
        gaps = [after.t - before.t for before, after in pieces if before.kind == after.kind == kind]
        if gaps:
            pairs = zip(numbers(phase.icl_s), spread(gaps), strict=True)
            assert all(off_by(mine, other) < NOTHING for mine, other in pairs)
        else:
            assert phase.icl_s is None


# --- Not the same ---------------------------------------------------------------------------------


def per_user(each: Both) -> bool:
    """AIPerf's rate for one user is 1 / tpot: without the first token, and the wait for it."""
    rate = float(peer.aiperf_throughput_per_user(each.stream.times, each.tokens))
    ours = each.ours
    assert ours.tpot_s and ours.output_tokens_per_s and ours.e2e_s and ours.ttfc_s is not None
    ours_to_theirs = (1 - 1 / each.tokens) * ours.e2e_s / (ours.e2e_s - ours.ttfc_s)
    return rate * ours.tpot_s == pytest.approx(1, rel=1e-9) and (
        ours.output_tokens_per_s * ours_to_theirs == pytest.approx(rate, rel=1e-9)
    )


def one_response_a_frame(each: Both) -> bool:
    """AIPerf has one response a frame; a frame with two pieces has a gap of 0 for us."""
    frames = sorted(set(each.stream.times))
    zeros = len(each.stream.pieces) - len(frames)
    exact = spread([*peer.aiperf_icl(frames), *[0] * zeros])
    pairs = zip(numbers(each.ours.icl_s), exact, strict=True)
    return all(off_by(mine, other) < NOTHING for mine, other in pairs)


def second_token(each: Both) -> bool:
    """AIPerf's TTST is one gap, the first; we keep how they are spread, and it is one of them."""
    ttst, icl = peer.aiperf_ttst(each.stream.times), numbers(each.ours.icl_s)
    only = len(each.stream.pieces) == 2
    return off_by(icl[3], ttst) < NOTHING if only else ttst - icl[3] * SECOND < NOTHING


def sum_of_waits(each: Both) -> bool:
    """llmperf's inter-token latency has the first wait in it: times tokens it is the last text."""
    return off_by(
        each.ours.phases["text"].e2e_s, peer.llmperf_itl(each.stream, each.tokens) * each.tokens
    ) < (NOTHING)


def to_the_end_of_the_body(each: Both) -> bool:
    """llmperf's e2e is to the end of the body: ours, the settlement lag, and what comes behind."""
    ours, end = each.ours, peer.llmperf_e2e(each.stream)
    assert ours.e2e_s is not None and ours.settlement_lag_s is not None
    behind = each.stream.end - each.stream.marker
    return behind >= 0 and off_by(ours.e2e_s + ours.settlement_lag_s, end - behind) < NOTHING


def rate_to_the_end(each: Both) -> bool:
    """llmperf's request throughput is over that longer time."""
    ours = each.ours
    assert ours.e2e_s and ours.output_tokens_per_s
    part = ours.e2e_s * SECOND / peer.llmperf_e2e(each.stream)
    theirs = float(peer.llmperf_throughput(each.stream, each.tokens))
    return ours.output_tokens_per_s * part == pytest.approx(theirs, rel=1e-12)


def frames_without_content(each: Both) -> bool:
    """vLLM counts every frame with choices: the role before the text, the finish reason behind."""
    choices, times = each.stream.choices, each.stream.times
    silent = [t for t in choices if t < times[0] or t > times[-1]]
    around = peer.vllm_ttft(choices) <= times[0] and times[-1] <= peer.vllm_e2el(choices)
    longer = peer.vllm_e2el(choices) - peer.vllm_ttft(choices) - (times[-1] - times[0])
    before, behind = times[0] - choices[0], choices[-1] - times[-1]
    return around and longer == before + behind and (longer > 0) == bool(silent)


def done(each: Both) -> bool:
    return each.ours.settlement_lag_s is not None and has_rate(each) and bool(each.ours.e2e_s)


def timed_pace(each: Both) -> bool:
    return has_rate(each) and each.stream.times[-1] - each.stream.times[0] > SECOND // 1000


OTHERWISE: dict[str, tuple[Callable[[Both], bool], Callable[[Both], bool]]] = {
    "AIPerf output token throughput per user": (per_user, timed_pace),
    "AIPerf ICL, by frames": (one_response_a_frame, has_two),
    "AIPerf TTST": (second_token, has_two),
    "llmperf inter_token_latency": (
        sum_of_waits,
        lambda each: bool(each.stream.tokens and each.stream.of("text")),
    ),
    "llmperf end_to_end_latency": (to_the_end_of_the_body, done),
    "llmperf request_output_throughput": (rate_to_the_end, done),
    "vLLM ttft and e2el, by choices": (
        frames_without_content,
        lambda each: bool(each.stream.choices and each.stream.pieces),
    ),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_where_the_definitions_differ_the_relation_is_exact(name: str, every: list[Both]) -> None:
    relation, where = OTHERWISE[name]
    asked = [each for each in every if where(each)]
    assert len(asked) >= 10
    assert all(relation(each) for each in asked), relation.__doc__


# --- Percentiles, and many streams ----------------------------------------------------------------


def measured(gaps: list[int]) -> Metrics:
    """The metrics of content with these gaps, in nanoseconds."""
    meter, t = Meter(), SECOND
    for gap in [0, *gaps]:
        t += gap
        meter.feed(t / SECOND, [(None, (TextDelta("0", "x"),))])
    metrics = meter.metrics(complete=True)
    assert metrics is not None
    return metrics


@given(st.lists(st.integers(0, 10 * SECOND), min_size=1, max_size=300))
def test_percentiles_are_numpys_linear_ones_and_pandas_quantiles_to_the_last_bit(
    gaps: list[int],
) -> None:
    seconds = [gap / SECOND for gap in gaps]
    ours = numbers(measured(gaps).icl_s)
    assert ours == [*np.percentile(seconds, [50, 90, 99]), max(seconds)]
    assert ours[:3] == pytest.approx([*pd.Series(seconds).quantile([0.5, 0.9, 0.99])], rel=1e-15)


@given(st.lists(st.integers(0, 10 * SECOND), min_size=1, max_size=300))
def test_percentiles_are_the_exact_ones_to_the_nanosecond(gaps: list[int]) -> None:
    pairs = zip(numbers(measured(gaps).icl_s), spread(gaps), strict=True)
    assert all(off_by(ours, exact) < NOTHING for ours, exact in pairs)


#: Our name of an objective, AIPerf's of the same number, and whether vLLM has it.
OBJECTIVES = {"ttfc_s": "time_to_first_token", "tpot_s": "inter_token_latency"}


def values(all_of: list[Both]) -> Iterator[dict[str, float]]:
    """What AIPerf knows of each stream, in seconds."""
    for each in all_of:
        known = {"time_to_first_token": each.stream.times[0] / SECOND} if each.stream.pieces else {}
        if has_rate(each):
            known["inter_token_latency"] = float(
                peer.aiperf_itl(each.stream.times, each.tokens) / SECOND
            )
        yield known


@pytest.mark.parametrize("ttfc", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("tpot", [0.01, 0.05, 1.0])
def test_goodput_is_aiperfs_over_the_streams_that_are_complete(
    ttfc: float, tpot: float, every: list[Both]
) -> None:
    whole = [each for each in every if each.outcome.complete]
    ours = goodput([each.outcome for each in every], 7.0, ttfc_s=ttfc, tpot_s=tpot)
    most = {OBJECTIVES["ttfc_s"]: ttfc, OBJECTIVES["tpot_s"]: tpot}
    assert ours == peer.aiperf_goodput([*values(whole)], most, 7.0)
    assert len(whole) < len(every)


def test_without_an_objective_aiperf_counts_none_and_we_count_what_is_complete(
    every: list[Both],
) -> None:
    outcomes = [each.outcome for each in every]
    assert peer.aiperf_goodput([*values(every)], {}, 1.0) == 0
    assert goodput(outcomes, 1.0) == sum(outcome.complete for outcome in outcomes) > 0


def test_an_unknown_pace_meets_our_objective_as_little_as_aiperfs_and_vllms_takes_it_for_zero(
    every: list[Both],
) -> None:
    """vLLM: `tpot = 0.0` where there is but one token, which meets any bound."""
    unknown = [each.outcome for each in every if each.outcome.complete and not has_rate(each)]
    assert unknown
    assert goodput(unknown, 1.0, tpot_s=1e9) == 0
