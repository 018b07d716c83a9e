"""Laws that hold for any stream: however it is cut, whatever is in it, wherever it is looked at."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.analysis.judge import judge
from streamlab.analysis.trace import trace
from streamlab.consumer.attempt import TERMINAL, Attempt, State, observe
from streamlab.consumer.gates import EFFECT, judge_turn, settle
from streamlab.consumer.turn import EMPTY, fold, reduce
from streamlab.errors import WireError
from streamlab.streams.recording import Chunk, Recording, open_recording
from streamlab.wire.claude import ClaudeReader
from streamlab.wire.dialect import Dialect
from streamlab.wire.events import ENDINGS, Event
from streamlab.wire.reader import Bounds
from streamlab.wire.sse import Frame, SSEDecoder
from tests.streams_for_tests import (
    CALL,
    all_bytes,
    answers,
    any_bytes,
    broken,
    consume,
    cut,
    framed,
    in_runs,
    lines,
    odd_json,
    pieces,
    saw,
    soups,
    stop,
    stream,
)

endings = st.sampled_from(ENDINGS)


def decoded(data: bytes, cuts: Any) -> tuple[list[Frame], Frame | None, Any]:
    decoder = SSEDecoder()
    frames = [frame for piece in pieces(data, cuts) for frame in decoder.feed(piece)]
    return frames, decoder.end(), decoder.stray


# --- 1. Any split of the bytes gives the same -------------------------------------------------


@pytest.mark.parametrize(
    "source", [framed(answers()), broken(), any_bytes], ids=["well-formed", "broken", "any"]
)
def test_any_split_gives_the_same_frames_with_the_same_ranges(source: Any) -> None:
    @given(cut(source))
    def law(drawn: tuple[bytes, list[int]]) -> None:
        data, cuts = drawn
        whole = decoded(data, [])
        assert decoded(data, cuts) == whole
        assert decoded(data, range(len(data))) == whole
        assert all(0 <= f.start < f.end <= len(data) for f in whole[0])
        assert all(a.end <= b.start for a, b in zip(whole[0], whole[0][1:], strict=False))

    law()


@pytest.mark.parametrize(
    "source",
    [framed(answers()), answers().map(lines), broken(), any_bytes],
    ids=["well-formed", "lines", "broken", "any"],
)
def test_any_split_gives_the_same_events_turn_and_attempt(source: Any) -> None:
    @given(cut(source), endings)
    def law(drawn: tuple[bytes, list[int]], ending: str) -> None:
        data, cuts = drawn
        whole = saw(data, ending=ending)
        assert saw(data, cuts, ending=ending) == whole
        assert saw(data, range(len(data)), ending=ending) == whole

    law()


@given(cut(all_bytes), st.integers(0, 300), st.integers(0, 6), st.integers(0, 120))
def test_any_split_passes_a_bound_at_the_same_place(
    drawn: tuple[bytes, list[int]], most: int, frames: int, longest: int
) -> None:
    data, cuts = drawn
    bounds = Bounds(longest, most, frames)
    whole = saw(data, bounds=bounds)
    assert saw(data, cuts, bounds=bounds) == whole
    assert saw(data, range(len(data)), bounds=bounds) == whole


# --- 2. Arbitrary bytes give events or a declared error, and nothing else ---------------------

TAILS = [b"", b"\n\n", b"\r\n\r\n", b"\ndata: x\n\n"]


@settings(max_examples=300)
@given(all_bytes, endings, st.sampled_from([None, "claude"]), st.sampled_from(TAILS))
def test_whatever_the_bytes_are_there_is_a_turn_and_a_settled_attempt(
    data: bytes, ending: str, wire: str | None, tail: bytes
) -> None:
    consumer, reads = consume(data + tail, ending=ending, wire=wire)
    note(consumer.attempt.state)
    settled = {State.MESSAGE_COMPLETE, State.VALIDATED_PROPOSAL, *TERMINAL}
    assert consumer.attempt.state in settled - {State.COMMITTED}
    assert consumer.attempt.why
    assert bool(consumer.proposals) == (consumer.attempt.state is State.VALIDATED_PROPOSAL)
    assert [f.number for f, _ in reads if f] == list(range(1, consumer.reader.frames + 1))
    if consumer.attempt.state in (State.VALIDATED_PROPOSAL, State.MESSAGE_COMPLETE):
        assert consumer.turn.complete
    elif consumer.attempt.state in (State.INVALID, State.INCOMPLETE):
        assert consumer.turn.facts.problems
    json.dumps([repr(reads), repr(consumer.turn), consumer.attempt.why])


START, DELTA, END = (
    f'{{"type":"{name}",%s}}'
    for name in ("content_block_start", "content_block_delta", "message_delta")
)

#: Places in an event that a value can be put in, and values that have no business there.
PLACES = [
    "%s",
    '{"type":%s}',
    '{"error":%s}',
    '{"type":"error","error":%s}',
    '{"type":"message_start","message":%s}',
    START % '"index":0,"content_block":%s',
    START % '"index":%s,"content_block":{"type":"text"}',
    START % '"index":0,"content_block":{"type":%s}',
    START % '"index":0,"content_block":{"type":"text","text":%s}',
    START % '"index":1,"content_block":{"type":"tool_use","input":%s}',
    DELTA % '"index":%s,"delta":{"type":"text_delta","text":"a"}',
    DELTA % '"index":0,"delta":%s',
    DELTA % '"index":0,"delta":{"type":"text_delta","text":%s}',
    '{"type":"content_block_stop","index":%s}',
    END % '"delta":%s',
    END % '"delta":{"stop_reason":%s},"usage":{}',
    END % '"delta":{"stop_reason":"a","stop_details":%s}',
    END % '"delta":{},"usage":{"a":%s}',
]
VALUES = [
    *("null", "true", "0", "-1", "1.5", '""', '"a"', "[]", "{}", '{"type":[]}', '{"type":{}}'),
    *("9" * 4299, "9" * 4301, "1e308", "1e309", "NaN", '"\\ud83d"', '{"\\udc00":1}'),
    *('{"a":' * n + "1" + "}" * n for n in (190, 800)),
    *("[" * 990 + "]" * 990, '{"type":"text"}', '{"type":"tool_use","id":5,"name":["n"]}'),
    '{"message":{"a":[1]}}',
]


@pytest.mark.parametrize("place", PLACES)
def test_no_value_in_no_place_breaks_the_reader(place: str) -> None:
    for value in VALUES:
        body = (place % value).encode()
        framed = b"event: x\ndata: " + body + b"\n\n"
        before, after = stream(CALL[:2]), stream(CALL[2:])
        for data in (before + framed * 2, framed + before + after, body, body + b"\n" + body):
            consumer, _ = consume(data)
            found = trace(Recording.from_bytes(data))
            assert found.attempt == consumer.attempt
            assert found.attempt.state is not State.PREVIEW
            json.dumps(found.to_json())


@given(st.one_of(all_bytes, odd_json))
def test_any_file_is_judged_or_a_wire_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "any.stream.jsonl"
    for prefix in (b"", b'{"streamlab":1}\n'):
        path.write_bytes(prefix + data)
        try:
            with open_recording(path) as file:
                judge(file)
        except WireError as why:
            assert why.where.startswith(str(path))


# --- 3. Folding is pure -----------------------------------------------------------------------


def told(data: bytes) -> list[Event]:
    return [event for _, events in consume(data)[1] for event in events]


@given(all_bytes, st.integers(0, 1000))
def test_replaying_the_events_gives_the_turn_and_changes_nothing_that_was_given(
    data: bytes, place: int
) -> None:
    consumer, _ = consume(data)
    events = told(data)
    before = copy.deepcopy(events)
    turns = [EMPTY]
    for event in events:
        turns.append(reduce(turns[-1], event))
    seen = [(turn.segments, turn.facts) for turn in turns]
    assert turns[-1] == fold(events) == consumer.turn
    assert events == before
    middle = min(place, len(events))
    assert fold(events[middle:], turns[middle]) == turns[-1]
    assert [(turn.segments, turn.facts) for turn in turns] == seen


@given(all_bytes, all_bytes, st.integers(0, 1000))
def test_a_fork_in_the_middle_leaves_the_other_way_as_it_was(
    data: bytes, other: bytes, place: int
) -> None:
    events = told(data)
    middle = fold(events[: min(place, len(events))])
    left = fold(events, middle)
    kept = (repr(left), left.facts, repr(middle), middle.facts)
    right = fold(told(other), middle)
    assert (repr(left), left.facts, repr(middle), middle.facts) == kept
    assert right == fold(told(other), middle)


@given(all_bytes)
def test_a_change_is_a_new_object_and_no_change_is_the_same_one(data: bytes) -> None:
    turn, attempt = EMPTY, Attempt()
    for event in told(data):
        after, observed = reduce(turn, event), observe(attempt, event)
        assert (after is turn) == (after == turn)
        assert (observed is attempt) == (observed == attempt)
        turn, attempt = after, observed


@given(all_bytes, endings)
def test_the_attempt_is_the_fold_of_its_events_and_the_gates(data: bytes, ending: str) -> None:
    consumer, reads = consume(data, ending=ending)
    attempt = Attempt()
    for event in [event for _, events in reads for event in events]:
        terminal = attempt.terminal
        after = observe(attempt, event)
        assert not terminal or after is attempt
        attempt = after
    if attempt.state is State.MESSAGE_COMPLETE:
        attempt = settle(attempt, consumer.turn, judge_turn(consumer.turn, EFFECT))
    assert attempt == consumer.attempt


# --- 4. The fast way is the general way -------------------------------------------------------


def both_ways(frames: list[Frame], named: bool) -> int:
    """Read by the reader's own choice, and by the general way alone; return how often it chose."""
    fast, general = ClaudeReader(named), ClaudeReader(named)
    stated: list[tuple[Event, ...]] = []
    taken = 0
    slow, calls = fast.payload, [0]

    def counting(payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        calls[0] += 1
        return slow(payload, frame)

    fast.payload = counting  # type: ignore[method-assign]
    for frame in frames:
        before = calls[0]
        stated.append(Dialect.read(general, frame))
        assert fast.read(frame) == stated[-1]
        taken += calls[0] == before
    runs = ClaudeReader(named)
    assert in_runs(runs, frames) == stated
    assert (runs.unfinished(), runs.completed) == (general.unfinished(), general.completed)
    assert fast.unfinished() == general.unfinished()
    assert (fast.completed, fast.started) == (general.completed, general.started)
    return taken


@settings(max_examples=300)
@given(st.one_of(framed(soups()), framed(answers()), broken()))
def test_the_fast_way_reads_what_the_general_way_reads(data: bytes) -> None:
    frames = SSEDecoder().feed(data)
    note("fast" if both_ways(frames, named=True) else "general")
    both_ways([msgspec.structs.replace(frame, event="") for frame in frames], named=False)


ODD = DELTA % '"index":0,"delta":{"type":"input_json_delta",%s}'


@pytest.mark.parametrize(
    "odd",
    [
        ODD % '"partial_json":"{"',
        ODD % '"partial_json":"{","more":1',
        ODD % '"partial_json":"{","partial_json":"}"',
        ODD % '"partial_json":"\\ud83d"',
        ODD % '"partial_json":null',
        ODD % '"type":"text_delta","partial_json":"{"',
        ODD.replace('"index":0', '"index":-0') % '"partial_json":"{"',
        ODD.replace('"index":0', '"index":0.0') % '"partial_json":"{"',
        ODD.replace('"index":0', '"index":5,"index":0') % '"partial_json":"{"',
        ODD.replace('"index":0', '"error":"x","index":0') % '"partial_json":"{"',
        ODD.replace('"type":"content_block_delta",', "") % '"partial_json":"{"',
        ODD.replace("content_block_delta", "later") % '"partial_json":"{"',
        ODD % '"partial_json":"{"' + " x",
        " " + DELTA % '"partial_json":"{"' + " ",
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_the_fast_way_reads_every_odd_delta_as_the_general_way_does(odd: str, named: bool) -> None:
    names = [payload["type"] if named else "" for payload in CALL]
    made = zip(names, CALL, strict=True)
    frames = [Frame(n, name, json.dumps(p).encode(), n, n + 1) for n, (name, p) in enumerate(made)]
    strange = Frame(9, "content_block_delta" if named else "", odd.encode(), 9, 10)
    unstopped = [frame for n, frame in enumerate(frames) if CALL[n] != stop(0)]
    for whole in (frames, unstopped):
        for place in range(len(whole) + 1):
            both_ways([*whole[:place], strange, strange, *whole[place:]], named)


def test_the_fast_way_is_taken_by_the_deltas_of_an_ordinary_answer() -> None:
    assert both_ways(SSEDecoder().feed(stream(CALL)), named=True) == 3


# --- 5. The trace ends where judge ends -------------------------------------------------------


@given(cut(all_bytes), endings)
def test_the_traces_last_step_is_judges_answer(drawn: tuple[bytes, list[int]], ending: str) -> None:
    data, cuts = drawn
    chunks = tuple(Chunk(float(n), piece) for n, piece in enumerate(pieces(data, cuts)))
    recording = Recording(chunks, ending, end_t=float(len(chunks)))
    found, outcome = trace(recording), judge(recording)
    assert (found.turn, found.attempt) == (outcome.turn, outcome.attempt)
    assert found.steps[-1].verdicts == outcome.verdicts
    assert found.wire == outcome.wire
    assert b"".join(step.raw for step in found.steps) == data
    assert all(step.why for step in found.steps)
    assert sum(step.frame is not None for step in found.steps) == outcome.frames


# --- 6. What is drawn -------------------------------------------------------------------------


def test_the_drawn_streams_reach_every_state_that_a_stream_can_reach() -> None:
    reached = set()

    @settings(max_examples=400, derandomize=True, database=None)
    @given(st.one_of(framed(answers()), all_bytes), endings)
    def look(data: bytes, ending: str) -> None:
        reached.add(consume(data, ending=ending)[0].attempt.state)

    look()
    run: Callable[[State], bool] = lambda state: state in reached  # noqa: E731
    wanted = [State.MESSAGE_COMPLETE, State.VALIDATED_PROPOSAL, State.HELD, State.INCOMPLETE]
    assert all(map(run, [*wanted, State.ABORTED, State.INVALID]))
