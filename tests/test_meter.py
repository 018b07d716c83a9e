"""The meter: what it takes for content, and what it says of streams whose story is known."""

from __future__ import annotations

import itertools
import json
import random
import statistics
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamlab import Recording, faults, judge, synth
from streamlab.analysis import meter as module
from streamlab.analysis.meter import Meter
from streamlab.analysis.metrics import BUFFERED_ADVICE, Metrics
from streamlab.streams.recording import Chunk
from streamlab.wire import events as e
from tests.streams_for_tests import (
    CALL,
    PING,
    STOP,
    TEXT,
    block,
    delta,
    end,
    fragment,
    frame,
    start,
    stop,
    text,
)

#: Payloads, and the seconds at which a read brought them.
Script = Sequence[tuple[float, Sequence[object]]]

PLENTY = {"output_tokens": 21}


def recording(script: Script, end_t: float | None = None, ending: str = "eof") -> Recording:
    chunks = tuple(Chunk(t, b"".join(map(frame, payloads))) for t, payloads in script)
    last = script[-1][0] if end_t is None else end_t
    return Recording(chunks, ending, "claude", last)


def measure(script: Script, end_t: float | None = None, ending: str = "eof") -> Metrics:
    metrics = judge(recording(script, end_t, ending)).metrics
    assert metrics is not None
    return metrics


def spoken(times: Sequence[float], per_read: int = 1, usage: object = None) -> Script:
    """A text answer whose content comes at these times, `per_read` events at each."""
    words = [(t, [text(0, f"w{n} ") for n in range(per_read)]) for t in times]
    closed = [stop(0), end(usage=usage), STOP]  # type: ignore[arg-type]
    return [(0.04, [start(), block(0)]), *words, (times[-1] + 0.001, closed)]


def steady(count: int, gap: float, first: float = 0.5) -> list[float]:
    return [round(first + n * gap, 6) for n in range(count)]


# --- What is content ------------------------------------------------------------------------------


def test_a_recording_without_times_has_no_metrics() -> None:
    assert judge(Recording.from_bytes(synth.greeting().data)).metrics is None


@pytest.mark.parametrize(
    "payloads",
    [
        [start(usage={"input_tokens": 3})],
        [PING],
        [start(), block(0)],
        [start(), block(0), text(0, "")],
        [start(), block(0, "thinking"), delta(0, "thinking_delta", thinking="")],
        [start(), block(0, "thinking"), delta(0, "signature_delta", signature="abc")],
        [start(), block(0, "tool_use", name="")],
        [start(), block(0), stop(0), end(), STOP],
    ],
    ids=["a role", "ping", "a start", "no text", "no thinking", "signature", "no name", "an end"],
)
def test_without_content_there_is_no_first_content_not_a_zero(payloads: list[object]) -> None:
    metrics = measure([(0.5, payloads)], end_t=9)
    assert (metrics.ttfc_s, metrics.ttft_s, metrics.e2e_s, metrics.icl_s) == (None,) * 4
    assert (metrics.settlement_lag_s, metrics.together, metrics.content_events) == (None, None, 0)
    assert (metrics.stalls.count, metrics.buffered, metrics.phases) == (0, False, {})


def test_thinking_text_and_tool_have_three_different_first_times() -> None:
    metrics = measure(
        [
            (0.04, [start(), block(0, "thinking")]),
            (0.9, [delta(0, "thinking_delta", thinking="Think")]),
            (5.0, [delta(0, "thinking_delta", thinking=" more"), stop(0)]),
            (8.0, [block(1), text(1, "Yes"), stop(1)]),
            (8.5, [block(2, "tool_use")]),
            (9.0, [fragment(2, "{}"), stop(2)]),
            (9.1, [end("tool_use"), STOP]),
        ]
    )
    assert (metrics.ttfc_s, metrics.time_to_first_thinking_s) == (0.9, 0.9)
    assert (metrics.ttft_s, metrics.time_to_first_tool_s, metrics.e2e_s) == (8.0, 8.5, 9.0)
    assert metrics.settlement_lag_s == pytest.approx(0.1)
    assert [*metrics.phases] == ["thinking", "text", "tool"]
    assert metrics.phases["tool"].content_events == 2  # its name, and its input


def test_a_part_of_another_kind_is_content_with_all_that_it_brings() -> None:
    metrics = measure([(1, [start(), block(0, "hologram")]), (2, [delta(0, "beam", light=1)])], 3)
    assert (metrics.ttfc_s, metrics.e2e_s, metrics.ttft_s, metrics.phases) == (1.0, 2.0, None, {})


def test_a_part_that_stopped_is_forgotten() -> None:
    meter = Meter()
    meter.feed(1, [(None, (e.SegmentStarted("0", "other", 1), e.SegmentStopped("0", 2)))])
    assert not meter._open


def test_gaps_inside_a_phase_are_its_own_and_the_change_between_two_is_neither_ones() -> None:
    metrics = measure(
        [
            (1.0, [start(), block(0), text(0, "a")]),
            (1.1, [text(0, "b"), stop(0)]),
            (3.0, [block(1, "tool_use")]),
            (3.2, [fragment(1, "{}"), stop(1), block(2)]),
            (4.0, [text(2, "c")]),
        ]
    )
    spoken, tool = metrics.phases["text"], metrics.phases["tool"]
    assert spoken.icl_s is not None and tool.icl_s is not None and metrics.icl_s is not None
    assert spoken.icl_s.max == pytest.approx(0.1)
    assert tool.icl_s.max == pytest.approx(0.2)
    assert metrics.icl_s.max == pytest.approx(1.9)
    assert (spoken.ttfc_s, spoken.e2e_s, spoken.content_events) == (1.0, 4.0, 3)


# --- Rates ----------------------------------------------------------------------------------------


def test_time_per_token_follows_its_formula() -> None:
    metrics = measure(spoken(steady(11, 0.1), usage=PLENTY))
    assert metrics.tpot_s == pytest.approx((1.5 - 0.5) / (21 - 1))
    assert metrics.output_tokens_per_s == pytest.approx(21 / 1.5)


@pytest.mark.parametrize(
    ("times", "usage"),
    [
        (steady(11, 0.1), None),
        (steady(11, 0.1), {"output_tokens": 1}),
        (steady(11, 0.1), {"output_tokens": 0}),
        (steady(11, 0.1), {"output_tokens": "many"}),
        ([0.5], PLENTY),
    ],
    ids=["no usage", "one token", "no token", "no number", "one event"],
)
def test_time_per_token_is_unknown_where_it_would_mean_nothing(
    times: list[float], usage: object
) -> None:
    assert measure(spoken(times, usage=usage)).tpot_s is None


def test_the_token_count_of_a_message_start_is_a_guess_and_gives_no_rate() -> None:
    first = start(usage={"input_tokens": 9, "output_tokens": 4})
    metrics = measure([(0.1, [first, block(0)]), (0.5, [text(0, "a")]), (0.6, [text(0, "b")])])
    assert (metrics.tpot_s, metrics.output_tokens_per_s) == (None, None)


def test_thinking_has_its_own_time_per_token_where_the_usage_counts_it_apart() -> None:
    usage = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}}
    metrics = measure(
        [
            (1.0, [start(), block(0, "thinking"), delta(0, "thinking_delta", thinking="a")]),
            (2.0, [delta(0, "thinking_delta", thinking="b"), stop(0), block(1)]),
            (3.0, [text(1, "c"), stop(1), end(usage=usage), STOP]),
        ]
    )
    assert metrics.phases["thinking"].tpot_s == pytest.approx(0.25)
    assert metrics.phases["text"].tpot_s is None


def test_percentiles_are_those_of_the_standard_library() -> None:
    rng = random.Random(4)
    times = [0.5]
    for _ in range(199):
        times.append(round(times[-1] + rng.random() / 10, 6))
    icl = measure(spoken(times)).icl_s
    gaps = [b - a for a, b in itertools.pairwise(times)]
    hundredths = statistics.quantiles(gaps, n=100, method="inclusive")
    assert icl is not None
    assert icl.median == pytest.approx(statistics.median(gaps))
    assert (icl.p90, icl.p99) == (pytest.approx(hundredths[89]), pytest.approx(hundredths[98]))
    assert icl.max == pytest.approx(max(gaps))


def test_a_long_stream_keeps_a_bounded_sample_and_its_exact_extremes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_SAMPLE", 64)
    meter = Meter()
    for n in range(5000):
        meter.feed(n * 0.01 + (3 if n == 2500 else 0), [(None, (e.TextDelta("0", "x"),))])
    metrics = meter.metrics(complete=False)
    assert metrics is not None and metrics.icl_s is not None
    assert len(meter._all._sample) < 64
    assert metrics.icl_s.median == pytest.approx(0.01)
    assert metrics.icl_s.max == pytest.approx(3.01)
    assert metrics.stalls.count == 1


# --- Waiting --------------------------------------------------------------------------------------


def test_a_ping_ends_an_idle_time_and_never_a_wait_for_progress() -> None:
    pings = [(t, [PING]) for t in (15.0, 30.0, 45.0)]
    metrics = measure([(0.0, [start(), block(0)]), *pings], end_t=60, ending="timeout")
    assert (metrics.ttft_s, metrics.ttfc_s) == (None, None)
    assert (metrics.longest_idle_s, metrics.longest_wait_s) == (15.0, 60.0)


@pytest.mark.parametrize(
    ("times", "count"),
    [
        (steady(20, 0.05), 0),
        ([*steady(20, 0.05), *steady(20, 0.05, 21.45)], 1),
        ([*steady(20, 0.05), *steady(20, 0.05, 5), *steady(20, 0.05, 15)], 2),
        (steady(5, 3.0), 0),
        ([0.9, 5.0, 8.0], 0),
        ([0.5, 60.0], 1),
        ([0.5, 0.55, 60.0], 1),
        ([0.5, 3.5, 60.0], 1),
        ([0.5, 1.9], 0),
        ([30.0, 30.05, 30.1], 0),
    ],
    ids=[
        *(
            "steady",
            "one silence",
            "two",
            "slow but steady",
            "slow and few",
            "two events, far apart",
        ),
        *(
            "in a short answer",
            "and in a slow one",
            "under the threshold",
            "a slow start is no stall",
        ),
    ],
)
def test_a_stall_is_a_gap_out_of_all_proportion(times: list[float], count: int) -> None:
    stalls = measure(spoken(times)).stalls
    assert (stalls.count, len(stalls.at), len(stalls.lasted_s)) == (count, count, count)


def test_a_stall_says_when_it_began_and_how_long_it_was() -> None:
    stalls = measure(spoken([*steady(20, 0.05), 21.45, 21.5, 26.5])).stalls
    assert stalls.at == (1.45, 21.5)
    assert stalls.lasted_s == (20.0, 5.0)
    assert (stalls.total_s, stalls.longest_s) == (25.0, 20.0)


@pytest.mark.parametrize("ending", ["eof", "cut", "reset", "timeout", "cancelled"])
def test_the_silence_before_an_end_that_is_not_completion_is_a_stall(ending: str) -> None:
    unfinished = spoken(steady(9, 0.05))[:-1]
    stalls = measure(unfinished, end_t=30.9, ending=ending).stalls
    assert (stalls.count, stalls.at, stalls.lasted_s) == (1, (0.9,), (30.0,))


def test_the_silence_before_completion_is_settlement_lag_and_no_stall() -> None:
    script = [*spoken(steady(9, 0.05))[:-1], (30.9, [stop(0), end(), STOP])]
    metrics = measure(script, end_t=99)
    assert (metrics.stalls.count, metrics.settlement_lag_s) == (0, 30.0)
    assert metrics.longest_wait_s == 30.0


# --- Buffered -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "buffered"),
    [
        (spoken([9.001, 9.002], per_read=3), True),
        (spoken(steady(8, 0.27, 0.5), per_read=27), True),
        (spoken([9.0] * 3 + steady(3, 0.06, 9.06), per_read=40), True),
        ([*spoken([9.0], per_read=60)[:-1], *spoken(steady(40, 0.05, 9.05))[1:]], True),
        (spoken(steady(40, 0.03)), False),
        (spoken(steady(40, 0.03, 9.0)), False),
        (spoken(steady(40, 0.06), per_read=2), False),
        (spoken(steady(40, 0.06), per_read=3), False),
        (spoken(steady(3, 0.06, 9.0), per_read=3), False),
        (spoken(steady(100, 0.02), per_read=6), False),
        (spoken([9.0]), False),
        (spoken([9.0], per_read=3), False),
        ([*spoken([9.0], per_read=20)[:-1], *spoken(steady(40, 0.05, 9.05))[1:]], False),
        (spoken([0.2], per_read=20), False),
    ],
    ids=[
        *("nine silent seconds, then all", "a proxy's buffer, again and again"),
        *("a large burst takes its time", "most of it in one burst"),
        *(
            "one a read",
            "one a read after a slow start",
            "two frames a read",
            "three frames a read",
        ),
        *(
            "three a read after a slow start",
            "a fast model, six a read",
            "one event",
            "three events",
        ),
        *("less than half in one burst", "all at once, and nobody waited"),
    ],
)
def test_buffered_is_what_came_together_after_a_wait(script: Script, buffered: bool) -> None:
    assert measure(script).buffered is buffered


def test_the_share_that_came_together_counts_every_member_of_a_group() -> None:
    assert measure(spoken([1.0, 2.0], per_read=3)).together == 1.0
    assert measure(spoken([1.0, 2.0, 3.0])).together == 0.0
    two_of_three = [(1.0, [start(), block(0), text(0, "a"), text(0, "b")]), (2.0, [text(0, "c")])]
    assert measure(two_of_three).together == pytest.approx(2 / 3)


@pytest.mark.parametrize("whole", [synth.change_label, synth.pay_invoice, synth.parallel_tools])
def test_the_fault_burst_looks_buffered_and_its_original_does_not(whole: object) -> None:
    honest: Recording = whole()  # type: ignore[operator]
    for seen, buffered in ((honest, False), (faults.burst(honest), True)):
        metrics = judge(seen).metrics
        assert metrics is not None and metrics.buffered is buffered


def test_the_fault_stall_is_found_where_it_was_put() -> None:
    metrics = judge(faults.stall(synth.change_label(), after=8, seconds=20)).metrics
    assert metrics is not None
    assert metrics.stalls.count == 1
    assert metrics.stalls.longest_s == pytest.approx(20, abs=0.1)


# --- Times that are missing -----------------------------------------------------------------------


def test_a_read_without_a_time_came_with_the_one_before_it() -> None:
    timed, untimed = frame(start()) + frame(block(0)), frame(text(0, "late"))
    metrics = judge(Recording((Chunk(1.5, timed), Chunk(None, untimed)), "cut", "claude")).metrics
    assert metrics is not None and metrics.ttft_s == 1.5


def test_what_a_stream_ended_with_counts_too() -> None:
    whole = b"\n".join(json.dumps(payload).encode() for payload in TEXT)  # its last line: no end
    metrics = judge(Recording((Chunk(1.0, whole),), "eof", None, 1.2)).metrics
    assert metrics is not None and metrics.settlement_lag_s == pytest.approx(0.2)


@pytest.mark.parametrize("cut", [1, 7, 64], ids="{} bytes a read".format)
def test_how_the_bytes_are_cut_changes_no_number_where_no_time_changes(cut: int) -> None:
    data = b"".join(map(frame, CALL))
    pieces = tuple(Chunk(1.0, data[at : at + cut]) for at in range(0, len(data), cut))
    whole = judge(Recording((Chunk(1.0, data),), "eof", "claude", 1.0)).metrics
    assert judge(Recording(pieces, "eof", "claude", 1.0)).metrics == whole


# --- Buffered: what holds for every stream --------------------------------------------------------

#: Pieces of content, each with the second at which it came, in order.
Pieces = list[tuple[float, str]]


def metered(pieces: Pieces) -> Metrics:
    meter = Meter()
    events = {
        "text": e.TextDelta("0", "x"),
        "thinking": e.ThinkingDelta("1", "x"),
        "tool": e.InputDelta("2", "x"),
    }
    for t, phase in pieces:
        meter.feed(t, [(None, (events[phase],))])
    metrics = meter.metrics(complete=True)
    assert metrics is not None
    return metrics


def said(times: Iterable[float], phase: str = "text") -> Pieces:
    return [(round(t, 9), phase) for t in times]


def regular(count: int, gap: float, first: float, a_read: int) -> list[float]:
    """So many pieces, `a_read` of them at a time, one such read each `gap` seconds."""
    return [first + (n // a_read) * gap for n in range(count)]


starts = st.floats(0.0, 120.0)


@given(st.integers(1, 400), st.floats(0.0021, 10.0), starts, st.integers(1, 3))
def test_a_steady_stream_is_never_called_buffered(
    count: int, gap: float, first: float, a_read: int
) -> None:
    metrics = metered(said(regular(count, gap, first, a_read)))
    assert (metrics.buffered, metrics.held, metrics.advice) == (False, 0.0, "")


@given(st.integers(4, 60), st.floats(0.01, 0.24), starts, st.data())
def test_nor_is_one_that_comes_in_larger_pieces_without_a_wait_before_each(
    a_read: int, gap: float, first: float, data: st.DataObject
) -> None:
    """A radio that sleeps, a reader that looks ten times a second; no model is this fast."""
    assume(a_read / gap < 500)
    count = data.draw(st.integers(2 * a_read, 20 * a_read))
    assert not metered(said(regular(count, gap, first, a_read))).buffered


@given(
    st.integers(40, 200),
    st.floats(0.01, 0.06),
    starts,
    st.lists(st.floats(0.0, 0.1), min_size=200, max_size=200),
)
def test_nor_is_one_that_the_network_delays_by_up_to_a_tenth_of_a_second(
    count: int, gap: float, first: float, late: list[float]
) -> None:
    """Nothing overtakes: what is behind a late packet comes with it."""
    written = regular(count, gap, first, 1)
    came = itertools.accumulate((t + d for t, d in zip(written, late, strict=False)), max)
    assert not metered(said(came)).buffered


@given(st.integers(30, 200), st.floats(0.01, 0.1), st.floats(0.3, 3.0), st.data())
def test_nor_is_one_that_lost_a_packet_and_then_caught_up(
    count: int, gap: float, lost: float, data: st.DataObject
) -> None:
    """What was written meanwhile comes at once; that is less than half of it."""
    backlog = int(lost / gap) + 2
    assume(backlog * 2 < count)
    at = data.draw(st.integers(1, count - backlog))
    written = regular(count, gap, 0.5, 1)
    came = [max(t, written[at] + lost) if n >= at else t for n, t in enumerate(written)]
    assert not metered(said(came)).buffered


@st.composite
def written(draw: st.DrawFn) -> list[float]:
    """When a model wrote its pieces: any pace that one has, any start."""
    gaps = draw(st.lists(st.floats(0.003, 0.4), min_size=4, max_size=150))
    return [*itertools.accumulate([draw(st.floats(0.25, 30.0)), *gaps])]


@given(written(), st.lists(st.integers(4, 60), min_size=1, max_size=40), st.floats(0.0, 1.0))
def test_what_is_collected_whole_is_always_called_buffered(
    times: list[float], reads: list[int], slow: float
) -> None:
    """It comes in reads of any sizes, as fast as 1,000 a second or faster, in a tenth of the wait.

    From the request to its end nothing came: all of that was the wait.
    """
    end, came = times[-1], list[float]()
    for size in itertools.cycle(reads):
        came += [end + min(slow * len(came) / 1000, end * 0.1)] * size
        if len(came) >= len(times):
            break
    metrics = metered(said(came[: len(times)]))
    assert metrics.buffered
    assert metrics.advice == BUFFERED_ADVICE


@given(st.integers(4, 200), st.floats(0.005, 0.3), st.floats(0.0, 20.0), st.integers(3, 30))
def test_a_buffer_that_fills_again_and_again_is_seen(
    fits: int, gap: float, first: float, buffers: int
) -> None:
    """A proxy's 4, 8 or 16 KB: so many pieces come at once each time, and then the rest."""
    assume((fits - 1) * gap >= 0.2501)  # the first wait has one gap less
    times = regular(fits * buffers + fits // 2, gap, first, 1)
    came = [times[min(n // fits * fits + fits, len(times)) - 1] for n in range(len(times))]
    metrics = metered(said(came))
    assert metrics.buffered
    assert metrics.held is not None and metrics.held >= buffers / (buffers + 1)


@given(st.lists(st.tuples(st.integers(4, 80), st.floats(0.26, 6.0)), min_size=2, max_size=30))
def test_a_compressor_whose_windows_hold_more_or_less_is_seen(
    windows: list[tuple[int, float]],
) -> None:
    t, came = 0.0, list[float]()
    for pieces, wait in windows:
        t += wait
        came += [t] * pieces
    assert metered(said(came)).held == 1.0


@given(
    st.integers(4, 60), st.floats(0.0021, 0.2), st.floats(0.26, 20.0), st.integers(4, 200), starts
)
def test_tool_input_that_comes_at_once_behind_text_that_flowed_is_the_providers(
    words: int, gap: float, wait: float, fragments: int, first: float
) -> None:
    text = said(regular(words, gap, first, 1))
    tool = said([text[-1][0] + wait] * fragments, "tool")
    metrics = metered(text + tool)
    assert (metrics.phases["text"].buffered, metrics.phases["tool"].buffered) == (False, True)
    assert "the provider holds" in metrics.advice and "proxy" not in metrics.advice
    assert metrics.buffered == (fragments > words)


@given(st.lists(st.sampled_from(["thinking", "text", "tool"]), min_size=4, max_size=80), starts)
def test_what_is_collected_is_collected_in_every_phase(phases: list[str], first: float) -> None:
    metrics = metered([(first + 0.25, phase) for phase in phases])
    shares = [(phase.together, phase.held) for phase in metrics.phases.values()]
    assert shares == [(1.0, 1.0)] * len(set(phases))
    assert metrics.advice == BUFFERED_ADVICE


steps = st.sampled_from([0.0, 0.0005, 0.002, 0.01, 0.2, 0.25, 1.0, 3.0])
#: What one frame can bring, and of how much the gap before its read is.
frames = st.tuples(
    st.none() | steps,
    st.lists(
        st.sampled_from(
            [
                e.TextDelta("0", "x"),
                e.TextDelta("0", ""),
                e.ThinkingDelta("1", "x"),
                e.InputDelta("2", "x"),
                e.SegmentStarted("2", "tool_call", 1, name="f"),
                e.SegmentStarted("3", "other", 1),
                e.Attached("3", "a", 1),
                e.SegmentStopped("0", 1),
                e.SegmentStopped("3", 1),
                e.UsageReported({}, e.Tokens(1, 2)),
                e.MessageCompleted(1),
            ]
        ),
        max_size=3,
    ).map(tuple),
)


@given(st.lists(frames, max_size=40), st.integers(1, 10))
def test_many_reads_that_are_taken_at_once_measure_as_each_by_itself(
    came: list[tuple[float | None, tuple[e.Event, ...]]], longest: int
) -> None:
    t, times = 0.0, []
    for gap, _ in came:
        t = round(t + (gap or 0.0), 4)
        times.append(None if gap is None else t)
    reads = [(None, events) for _, events in came]
    alone, together = Meter(), Meter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_RUN", longest)
        for time, read in zip(times, reads, strict=True):
            alone.feed(time, [read])
    known = [at for at in together.when(times) if at is not None]
    together.take(known, reads[len(reads) - len(known) :])
    assert alone.metrics(complete=True) == together.metrics(complete=True)


@given(written(), st.integers(1, 8))
def test_asking_for_the_numbers_changes_none(times: list[float], a_read: int) -> None:
    once, twice = Meter(), Meter()
    for n in range(len(times)):
        read = [(None, (e.TextDelta("0", "x"),))]
        once.feed(times[n // a_read], read)
        twice.feed(times[n // a_read], read)
        twice.metrics(complete=False)
    assert once.metrics(complete=True) == twice.metrics(complete=True)


def test_a_short_answer_over_a_radio_that_sleeps_is_not_called_buffered_after_a_long_wait() -> None:
    """Twenty seconds of thought, then 300 pieces a second, which come ten times a second."""
    came = regular(270, 0.1, 20.0, 30)
    metrics = metered(said(came))
    assert metrics.held == pytest.approx(30 / 270)
    assert not metrics.buffered


def test_a_model_that_writes_each_millisecond_is_not_held_because_its_first_piece_was() -> None:
    metrics = metered(said(regular(2000, 0.001, 0.3, 1)))
    assert metrics.held == pytest.approx(31 / 2000, abs=0.002)
    assert not metrics.buffered


# --- Of one kind ----------------------------------------------------------------------------------


def test_the_end_of_a_part_is_a_kinds_settlement_and_content_after_it_asks_for_another() -> None:
    script = [
        (1.0, [start(), block(0, "tool_use"), fragment(0, "{}")]),
        (1.5, [stop(0), block(1), text(1, "a")]),
        (2.0, [text(1, "b")]),
    ]
    metrics = measure(script)
    assert metrics.phases["tool"].settlement_lag_s == pytest.approx(0.5)
    assert metrics.phases["text"].settlement_lag_s is None
    again = measure([*script, (2.2, [stop(1), block(2), text(2, "c")]), (2.5, [stop(2)])])
    assert again.phases["text"].settlement_lag_s == pytest.approx(0.3)


def test_thinking_has_its_own_rate_where_the_usage_counts_it_apart() -> None:
    usage = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 6}}
    thought = delta(0, "thinking_delta", thinking="a")
    metrics = measure(
        [
            (1.0, [start(), block(0, "thinking"), thought]),
            (2.0, [thought, stop(0), block(1), text(1, "c"), stop(1), end(usage=usage), STOP]),
        ]
    )
    assert metrics.phases["thinking"].output_tokens_per_s == pytest.approx(3.0)
    assert metrics.phases["text"].output_tokens_per_s is None


def test_what_a_part_of_another_kind_begins_with_is_one_event_with_its_start() -> None:
    redacted = block(0, "redacted_thinking", data="b3BhcXVl")
    assert measure([(1.0, [start(), redacted, stop(0)])]).content_events == 1
