"""Faults are pure and exact, and an attempt ends only where the catalogue says it may."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from streamlab.analysis.judge import Outcome, judge
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams import edit, faults, recording, synth
from streamlab.streams.faults import FAULTS, SAME, Fault
from streamlab.streams.parts import Style
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.voice import payload_of
from streamlab.wire.jsonl import JSONLinesDecoder

seeds = st.integers(0, 2**32)
each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)

LESSONS = {
    "six_events": synth.six_events(),
    "greeting": synth.greeting(),
    "change_label": synth.change_label(),
    "change_label in CRLF": synth.change_label(style=Style(newline="\r\n", chunking="anywhere")),
    "change_label in CR": synth.change_label(style=Style(newline="\r", chunking="several")),
    "pay_invoice": synth.pay_invoice(),
    "parallel_tools": synth.parallel_tools(),
    "thinking_then_tool": synth.thinking_then_tool(),
}
each_lesson = pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)


def bases() -> st.SearchStrategy[Recording]:
    """Whole answers: the lessons', and any others."""
    return st.one_of(
        st.sampled_from(list(LESSONS.values())),
        seeds.map(lambda seed: synth.random_answer(seed)[1]),
    )


def outcome_of(fault: Fault, source: Recording, seed: int) -> str:
    """Where the attempt ends, in the catalogue's words."""
    with_fault, without = judge(fault.apply(source, seed)).state, judge(source).state
    return SAME if with_fault is without and SAME in fault.outcomes else with_fault.value


def names(source: Recording) -> list[str]:
    return [frame.event for frame in faults.frames(source)]


def content(outcome: Outcome) -> Any:
    """What a person and an effect would get of an answer."""
    parts = [(s.kind, s.start.name, s.text, s.input) for s in outcome.turn.segments]
    return outcome.state, outcome.turn.facts.stop_reason, parts, outcome.proposals


# --- Laws -----------------------------------------------------------------------------------------


@each_fault
@settings(max_examples=25)
@given(source=bases(), seed=seeds)
def test_an_attempt_ends_only_where_the_catalogue_says(
    fault: Fault, source: Recording, seed: int
) -> None:
    try:
        outcome = outcome_of(fault, source, seed)
    except UsageError as why:
        assume("no block" not in str(why))
        raise
    assert outcome in fault.outcomes


@each_fault
def test_every_declared_outcome_happens(fault: Fault) -> None:
    missing = set(fault.outcomes) - {"MESSAGE_COMPLETE", "VALIDATED_PROPOSAL"}
    with_a_last_ping = faults.ping_flood(LESSONS["six_events"], after=6, count=1)
    for seed in range(300):
        for source in (*LESSONS.values(), with_a_last_ping):
            missing.discard(outcome_of(fault, source, seed))
        if not missing:
            return
    pytest.fail(f"{fault.name} never ended as {missing}")


@each_fault
@settings(max_examples=15)
@given(source=bases(), seed=seeds)
def test_a_fault_is_pure_and_time_goes_on(fault: Fault, source: Recording, seed: int) -> None:
    before = msgspec.structs.replace(source, chunks=tuple(Chunk(*c) for c in source.chunks))
    try:
        broken = fault.apply(source, seed)
    except UsageError:
        assume(False)
    assert source == before
    assert broken == fault.apply(source, seed)
    times = [t for t in (*(chunk.t for chunk in broken.chunks), broken.end_t) if t is not None]
    assert len(times) == len(broken.chunks) + 1
    assert all(a <= b for a, b in pairwise(times))
    assert all(chunk.data for chunk in broken.chunks)


@pytest.mark.parametrize(
    "fault", [f for f in FAULTS.values() if f.outcomes == (SAME,)], ids=lambda f: f.name
)
@settings(max_examples=20)
@given(source=bases(), seed=seeds)
def test_what_must_end_the_same_says_the_same(fault: Fault, source: Recording, seed: int) -> None:
    assert content(judge(fault.apply(source, seed))) == content(judge(source))


@each_fault
def test_a_fault_says_what_it_is(fault: Fault) -> None:
    assert fault.says.endswith(".")
    assert set(fault.outcomes) <= {SAME, *State}
    assert not set(fault.outcomes) & {"COMMITTING", "COMMITTED", "RECONCILING"}


# --- Places ---------------------------------------------------------------------------------------

PING = b'event: ping\ndata: {"type":"ping"}\n\n'


@given(bases(), st.data())
def test_what_was_inserted_can_be_skipped_again(source: Recording, data: st.DataObject) -> None:
    after = data.draw(st.integers(0, len(faults.frames(source))))
    longer = faults.insert(source, after, PING)
    assert names(longer) == [*names(source)[:after], "ping", *names(source)[after:]]
    assert faults.skip(longer, after + 1) == source


@given(bases(), st.data())
def test_disconnect_keeps_the_frames_before_it(source: Recording, data: st.DataObject) -> None:
    found = faults.frames(source)
    after = data.draw(st.integers(0, len(found)))
    kept = faults.disconnect(source, after, "reset")
    assert faults.frames(kept) == found[:after]
    assert source.data.startswith(kept.data)
    assert kept.ending == "reset"


@each_lesson
def test_a_cut_at_any_byte_before_the_last_is_incomplete(source: Recording) -> None:
    end = faults.frames(source)[-1].end
    for place in range(end):
        assert judge(edit.stop_at(source, place)).state is State.INCOMPLETE
    assert judge(edit.stop_at(source, end)).state is judge(source).state


def test_a_place_keeps_its_read_and_its_time() -> None:
    source = Recording((Chunk(1.0, PING), Chunk(2.0, PING + PING), Chunk(3.0, PING)), end_t=4.0)
    new = b"event: new\ndata: {}\n\n"

    def chunks(after: int) -> tuple[Chunk, ...]:
        return faults.insert(source, after, new).chunks

    assert chunks(0) == (Chunk(1.0, new), *source.chunks)
    assert chunks(1)[:3] == (source.chunks[0], Chunk(1.0, new), source.chunks[1])
    assert chunks(2)[1] == Chunk(2.0, PING + new + PING)
    assert chunks(4)[3:] == (Chunk(3.0, new),)


def test_a_byte_order_mark_stays_first() -> None:
    source = Recording.from_bytes(b"\xef\xbb\xbf" + PING)
    assert faults.insert(source, 0, PING).data == b"\xef\xbb\xbf" + PING + PING


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_a_fault_speaks_in_the_recordings_line_ends(newline: str) -> None:
    source = synth.change_label(style=Style(newline=newline))
    data = faults.token_limit(faults.unknown(source, 12), 14).data
    others = data.replace(newline.encode(), b"")
    assert b"\n" not in others
    assert b"\r" not in others


@pytest.mark.parametrize(
    ("ending", "end_t"), [("eof", 0.0), ("cut", 0.0), ("reset", 0.0), ("timeout", 60.0)]
)
def test_an_ending_comes_when_its_place_did(ending: str, end_t: float) -> None:
    source = synth.change_label()
    stopped = faults.disconnect(source, 14, ending)
    assert (stopped.ending, stopped.end_t) == (ending, source.chunks[13].t + end_t)


OUT_OF_RANGE: dict[str, tuple[Callable[[Recording], Recording], str]] = {
    "insert before the start": (lambda r: faults.insert(r, -1, PING), "allows 0 .* to 20"),
    "insert after the end": (lambda r: faults.insert(r, 21, PING), "allows 0 .* to 20"),
    "disconnect": (lambda r: faults.disconnect(r, 99), "after=99: .* allows 0 .* to 20"),
    "an unknown ending": (lambda r: faults.disconnect(r, 9, "bang"), "'bang' is none of eof"),
    "cut inside no frame": (lambda r: faults.cut(r, 20, inside=True), "has frames 1 to 20"),
    "skip frame 0": (lambda r: faults.skip(r, 0), "frame=0: .* frames 1 to 20"),
    "duplicate": (lambda r: faults.duplicate(r, 21), "frames 1 to 20"),
    "reorder the last": (lambda r: faults.reorder(r, 20), "allows 0 .* to 20"),
    "late to an earlier place": (lambda r: edit.move(r, 5, 4), "from after=5 on"),
    "token_limit before any": (lambda r: faults.token_limit(r, 0), "allows 1 to 18"),
    "token_limit after the reason": (lambda r: faults.token_limit(r, 19), "allows 1 to 18"),
    "token_limit of nothing": (
        lambda r: faults.token_limit(Recording.from_bytes(PING), 1),
        "no message_start",
    ),
    "flip": (lambda r: faults.flip(r, 8 * len(r.data)), "has bits 0 to"),
    "drop_newline": (lambda r: faults.drop_newline(r, 61), "has lines 1 to 60"),
    "delta_after_stop": (lambda r: faults.delta_after_stop(r, 2), "no block of this number"),
    "delta_after_stop too early": (
        lambda r: faults.delta_after_stop(r, 1, after=17),
        "after=17: block 1 stops only with frame 18",
    ),
    "cut that keeps all": (lambda r: faults.cut(r, 19, True, kept=99), "frame 20 it can be 1 to"),
    "cut that keeps nothing": (lambda r: faults.cut(r, 19, True, kept=0), "kept=0: of frame 20"),
    "index_gap": (lambda r: faults.index_gap(r, 2), "no block of this number"),
    "a fault that its wire cannot have": (
        lambda r: faults.index_gap(msgspec.structs.replace(r, wire="gemini")),
        "the parts of a Gemini answer have no numbers, so no number can be missing",
    ),
    "never_end at once": (lambda r: faults.never_end(r, 3, every=0), "every=0: .* every 0.1 to"),
    "never_end at no time": (lambda r: faults.never_end(r, 3, every=float("nan")), "every=nan"),
    "half a character as a name": (lambda r: faults.unknown(r, 0, type="\ud800"), "one line"),
    "a name over two lines": (lambda r: faults.unknown(r, 0, type="a\nb"), "one line"),
    "a word for a place": (lambda r: faults.disconnect(r, "x"), "after='x': .* whole number"),  # type: ignore[arg-type]
    "half a place": (lambda r: faults.insert(r, 1.5, PING), "after=1.5: .* such as after=3"),  # type: ignore[arg-type]
    "yes for a place": (lambda r: faults.disconnect(r, True), "after=True: "),
    "no place": (lambda r: faults.disconnect(r, None), "after=None: "),  # type: ignore[arg-type]
    "a huge word": (lambda r: faults.disconnect(r, "x" * 9999), "after='x{39}: "),  # type: ignore[arg-type]
    "half a frame": (lambda r: faults.late(r, 1.5), "frame=1.5: this is a whole number"),  # type: ignore[arg-type]
    "a word for a frame": (lambda r: faults.reorder(r, "x"), "frame='x': "),  # type: ignore[arg-type]
    "yes for a frame": (lambda r: faults.skip(r, True), "frame=True: "),
    "a word for a frame to cut": (lambda r: faults.cut(r, "x", True), "after='x': "),  # type: ignore[arg-type]
    "a word for what is kept": (lambda r: faults.cut(r, 3, True, kept="x"), "kept='x': "),  # type: ignore[arg-type]
    "half a bit": (lambda r: faults.flip(r, 1.5), "bit=1.5: "),  # type: ignore[arg-type]
    "a word for a line": (lambda r: faults.drop_newline(r, "x"), "line='x': "),  # type: ignore[arg-type]
    "a frame that is text": (lambda r: faults.insert(r, 3, "x"), "as its bytes, not as str"),  # type: ignore[arg-type]
    "a stall back in time": (lambda r: faults.stall(r, 5, -100), "seconds=-100: .* lasts 0 to"),
    "a stall of no number": (lambda r: faults.stall(r, 5, float("nan")), "seconds=nan"),
    "a stall for ever": (lambda r: faults.stall(r, 5, float("inf")), "seconds=inf"),
    "a stall of a word": (lambda r: faults.stall(r, 5, "x"), "seconds='x': this is a number"),  # type: ignore[arg-type]
    "a start before the start": (lambda r: faults.slow_start(r, -1), "seconds=-1: "),
    "half a place to hold back": (lambda r: faults.burst(r, 0.5), "after=0.5: "),  # type: ignore[arg-type]
    "no times": (lambda r: faults.stall(Recording.from_bytes(PING), 0), "has no times"),
}


@pytest.mark.parametrize("case", OUT_OF_RANGE)
def test_a_place_that_is_none_is_refused_with_what_is_allowed(case: str) -> None:
    act, message = OUT_OF_RANGE[case]
    with pytest.raises(UsageError, match=message):
        act(LESSONS["change_label"])


def hostile(*payloads: str) -> Recording:
    return Recording.from_bytes("".join(f"data: {payload}\n\n" for payload in payloads).encode())


START, STOP = '{"type":"message_start","message":{}}', '{"type":"message_stop"}'
DELTA = '{"type":"message_delta","delta":{}}'

#: Recordings that no provider would send.
HOSTILE = {
    "nothing": Recording(),
    "no frame": Recording.from_bytes(b": hi"),
    "one line": Recording.from_bytes(b"data: 1"),
    "one JSON line": Recording.from_bytes(b"{}"),
    "short JSON lines": Recording.from_bytes(b"{}\n1\n2\n" + STOP.encode()),
    "half a JSON line": Recording.from_bytes(b'{"type": "mess'),
    "a web page": Recording.from_bytes(b"<html>\n"),
    "one frame": hostile(START),
    "the end first": hostile(DELTA, STOP, START),
    "numbers that are none": hostile(
        START,
        *(
            f'{{"type":"content_block_{what}","index":{index}}}'
            for index in ("{}", "[]", "null", "0.5", "true", '"0"', "-1")
            for what in ("start", "delta", "stop")
        ),
        DELTA,
        STOP,
    ),
}


@each_fault
@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_on_a_hostile_recording_a_fault_works_or_says_why_not(
    fault: Fault, source: Recording
) -> None:
    for seed in range(20):
        try:
            judge(fault.apply(source, seed))
        except UsageError as why:
            assert str(why)


# --- The place in view ----------------------------------------------------------------------------


def ends_of(fault: Fault, source: Recording, after: int) -> str | None:
    """Where the attempt ends with the fault just after a frame; None: it has no place there."""
    try:
        broken = fault.function(source, **fault.here(source, after))
    except UsageError as why:
        assert re.fullmatch(r"[a-z][^\n]{20,200}[^.]", str(why))
        return None
    with_fault, without = judge(broken).state, judge(source).state
    return SAME if with_fault is without and SAME in fault.outcomes else with_fault.value


@each_fault
@each_lesson
def test_beside_any_frame_a_fault_ends_as_declared_or_says_why_it_cannot_be(
    source: Recording, fault: Fault
) -> None:
    places = range(len(faults.frames(source)) + 1)
    ends = [ends_of(fault, source, after) for after in places]
    assert set(ends) <= {None, *fault.outcomes}
    assert set(ends) != {None} or fault.name == "interleave"


@each_fault
@given(source=bases(), data=st.data())
@settings(max_examples=15)
def test_beside_any_frame_of_any_answer_too(
    fault: Fault, source: Recording, data: st.DataObject
) -> None:
    after = data.draw(st.integers(0, len(faults.frames(source))))
    assert ends_of(fault, source, after) in {None, *fault.outcomes}


MANY = [synth.random_answer(seed)[1] for seed in range(12)]
PINGED = faults.ping_flood(synth.six_events(), after=6, count=2)  # frames behind message_stop


@each_fault
def test_all_over_many_answers_a_fault_ends_as_declared_or_is_refused(fault: Fault) -> None:
    for source in (*MANY, PINGED):
        count = len(faults.frames(source))
        for after in range(0, count + 1, 30 if fault.name == "never_end" else 1 + count // 20):
            assert ends_of(fault, source, after) in {None, *fault.outcomes}


@pytest.mark.parametrize("name", ["eof", "reset", "timeout", "cut", "cut_inside", "never_end"])
def test_what_stops_an_answer_is_refused_once_message_stop_has_come(name: str) -> None:
    for after in (6, 7):
        with pytest.raises(UsageError, match=r"message_stop has come by frame ., so the answer"):
            FAULTS[name].here(PINGED, after)


@each_fault
@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_beside_any_frame_of_a_hostile_recording_a_fault_works_or_says_why_not(
    fault: Fault, source: Recording
) -> None:
    for after in range(len(faults.frames(source)) + 1):
        ends_of(fault, source, after)


HERE: dict[str, tuple[int, dict[str, Any]]] = {
    "cut_inside": (13, {"after": 13, "inside": True}),
    "duplicate": (13, {"frame": 13}),
    "skip": (13, {"frame": 14}),
    "reorder": (13, {"frame": 14}),
    "late": (13, {"frame": 14}),
    "drop_newline": (13, {"line": 3 * 13 + 1}),
    "delta_after_stop": (13, {"index": 0, "after": 13}),
    "index_gap": (8, {"index": 1}),
    "interleave": (13, {"seed": 1}),
    "html_page": (13, {}),
    "never_end": (13, {"after": 13}),
    "timeout": (13, {"after": 13, "ending": "timeout"}),
    "reset_at_end": (13, {"after": 20, "ending": "reset"}),
}


@pytest.mark.parametrize("name", HERE)
def test_a_fault_is_about_what_has_just_come_or_comes_next(name: str) -> None:
    after, given = HERE[name]
    assert FAULTS[name].here(LESSONS["change_label"], after) == given


def test_the_bit_in_view_makes_the_next_amount_another_one() -> None:
    source = synth.pay_invoice()
    broken = faults.flip(source, **FAULTS["flip"].here(source, 10))
    (proposal,) = judge(broken).proposals
    assert proposal.input["amount"] == 300_000


NOT_HERE = {
    "skip": (20, "about a next frame, and none comes after frame 20"),
    "cut": (20, "none comes after frame 20"),
    "reorder": (19, "the next 2 frames, and one more comes after frame 19"),
    "duplicate": (0, "the frame that came last, and none has come yet"),
    "delta_after_stop": (7, "no block has stopped by frame 7"),
    "index_gap": (9, "no block starts after frame 9"),
    "no_stop_reason": (19, "no stop reason comes after frame 19"),
    "never_end": (20, "message_stop has come by frame 20"),
    "eof": (20, "message_stop has come by frame 20"),
    "reset": (20, "message_stop has come by frame 20"),
    "timeout": (20, "message_stop has come by frame 20"),
    "reconnect": (0, "no message has begun by frame 0"),
}


@pytest.mark.parametrize("name", NOT_HERE)
def test_a_fault_that_has_no_place_in_view_says_what_is_missing(name: str) -> None:
    after, says = NOT_HERE[name]
    with pytest.raises(UsageError, match=says):
        FAULTS[name].here(LESSONS["change_label"], after)


@pytest.mark.parametrize("after", ["x", 1.5, True, None])
def test_a_place_in_view_is_a_whole_number(after: Any) -> None:
    for fault in FAULTS.values():
        with pytest.raises(UsageError, match=r"after=.*: this is a whole number"):
            fault.here(LESSONS["greeting"], after)


def test_two_blocks_beside_each_other_come_in_another_order() -> None:
    source = LESSONS["change_label"]
    mixed = faults.interleave(source, **FAULTS["interleave"].here(source, 5))
    assert names(mixed) != names(source)


def test_one_block_alone_cannot_be_interleaved() -> None:
    with pytest.raises(UsageError, match="no two blocks"):
        FAULTS["interleave"].here(LESSONS["greeting"], 5)


@each_fault
def test_the_function_of_a_fault_is_to_be_had_by_its_name(fault: Fault) -> None:
    assert getattr(faults, fault.function.__name__) is fault.function
    assert fault.function.__name__ in faults.__all__


@pytest.mark.parametrize("name", ["skip", "duplicate", "late", "reorder", "flip", "drop_newline"])
def test_an_empty_recording_has_no_place_for_a_fault(name: str) -> None:
    with pytest.raises(UsageError, match="this recording has no "):
        FAULTS[name].apply(Recording())


@pytest.mark.parametrize("name", ["token_limit", "refuse", "pause"])
def test_nothing_is_generated_after_the_reason_to_stop(name: str) -> None:
    with pytest.raises(UsageError, match="no place at which content can still come"):
        FAULTS[name].apply(HOSTILE["the end first"])


def test_a_token_limit_closes_only_blocks_that_have_a_number() -> None:
    broken = faults.token_limit(hostile(START, *OPENED), 4)
    assert [payload_of(frame).get("index") for frame in faults.frames(broken)[4:]] == [
        2,
        None,
        None,
    ]


OPENED = [f'{{"type":"content_block_start","index":{index}}}' for index in ("{}", "[]", "2")]


# --- What a fault teaches -------------------------------------------------------------------------


def test_a_lost_fragment_can_leave_another_valid_proposal() -> None:
    (proposal,) = judge(faults.skip(synth.pay_invoice(), 12)).proposals
    assert proposal.input == {"invoice": "INV-17", "amount": 1, "currency": "EUR"}


def test_a_flipped_bit_can_leave_another_valid_proposal() -> None:
    source = synth.pay_invoice()
    digit = source.data.index(b": 1") + 2
    (proposal,) = judge(faults.flip(source, 8 * digit + 3)).proposals
    assert proposal.input["amount"] == 900_000


def test_a_doubled_fragment_counts_twice() -> None:
    (proposal,) = judge(faults.duplicate(synth.pay_invoice(), 12)).proposals
    assert proposal.input["amount"] == 10_000_000_000
    text = judge(faults.duplicate(synth.greeting(), 4)).turn.text
    assert text.startswith("HelloHello!")


def test_a_token_limit_closes_what_is_open_and_says_so_last() -> None:
    limited = faults.token_limit(synth.change_label(), after=13)
    assert names(limited)[13:] == ["content_block_stop", "message_delta", "message_stop"]
    outcome = judge(limited)
    assert (outcome.state, outcome.turn.facts.stop_reason) == (State.HELD, "max_tokens")
    assert outcome.turn.complete
    assert not outcome.proposals


def test_a_token_limit_between_blocks_has_nothing_to_close() -> None:
    limited = faults.token_limit(synth.change_label(), after=8)
    assert names(limited)[8:] == ["message_delta", "message_stop"]


def test_all_open_blocks_are_closed_in_the_order_of_the_message() -> None:
    source = synth.parallel_tools(style=Style(interleave=True), seed=3)
    last = max(n for n, name in enumerate(names(source), 1) if name == "content_block_start")
    tail = faults.frames(faults.token_limit(source, after=last))[last:]
    indexes = [payload_of(frame).get("index") for frame in tail[:-2]]
    assert len(indexes) > 1
    assert indexes == sorted(indexes)


def test_an_error_event_ends_the_stream() -> None:
    outcome = judge(faults.error(synth.change_label(), after=12, type="rate_limit_error"))
    assert outcome.state is State.INVALID
    assert outcome.turn.facts.error == "rate_limit_error: Rate limit"


def test_a_reconnection_begins_the_answer_again_and_time_goes_on() -> None:
    source = synth.greeting()
    again = faults.reconnect(source, after=6)
    assert names(again) == names(source)[:6] + names(source)
    assert again.data == faults.disconnect(source, 6).data + source.data
    lost_at = source.chunks[5].t
    assert lost_at is not None and source.end_t is not None
    assert again.chunks[6].t == pytest.approx(lost_at + (source.chunks[0].t or 0))
    assert again.end_t == pytest.approx(lost_at + source.end_t)
    assert "second message_start" in judge(again).attempt.why


@pytest.mark.parametrize("data", [b"{}\n{}", b"\xef\xbb\xbf{}\n{}"], ids=["lines", "with a mark"])
def test_a_reconnection_joins_whole_lines_and_keeps_one_byte_order_mark(data: bytes) -> None:
    again = faults.reconnect(Recording.from_bytes(data), after=2)
    assert again.data == data + b"\n{}\n{}"
    assert len(faults.frames(again)) == 4


def test_interleaving_keeps_each_block_in_order() -> None:
    source = synth.parallel_tools()
    mixed = faults.interleave(source, seed=1)

    def block(of: Recording, index: int) -> list[bytes]:
        found = faults.frames(of)
        return [f.data for f in found if payload_of(f).get("index") == index]

    assert names(mixed) != names(source)
    assert sorted(mixed.data) == sorted(source.data)
    assert [block(mixed, n) for n in range(3)] == [block(source, n) for n in range(3)]


def test_pings_for_ever_run_into_the_bound_on_seconds() -> None:
    outcome = judge(faults.never_end(synth.change_label(), after=12))
    assert outcome.state is State.INCOMPLETE
    assert "seconds" in outcome.attempt.why


@pytest.mark.parametrize("after", [0, 1, 12, 20])
@pytest.mark.parametrize("every", [0.5, 15.0, 40.0])
def test_pings_for_ever_leave_no_longer_silence_than_said(after: int, every: float) -> None:
    """Not before the first one either: a timeout between reads that is longer never fires."""
    source = synth.change_label()
    endless = faults.never_end(source, after, every)
    assert endless.chunks[:after] == source.chunks[:after]
    last = source.chunks[max(after - 1, 0)]
    times = [chunk.t or 0.0 for chunk in (last, *endless.chunks[after:])]
    assert {round(b - a, 3) for a, b in pairwise(times)} == {every}
    assert endless.ending == "timeout"


def test_a_stall_moves_all_that_follows_and_a_burst_moves_it_together() -> None:
    source = synth.change_label()
    before, after = source.chunks[:12], source.chunks[12:]
    stalled = faults.stall(source, 12, seconds=8.0)
    assert stalled.chunks[:12] == before
    late = [chunk.t for chunk in stalled.chunks[12:]]
    assert late == pytest.approx([chunk.t + 8.0 for chunk in after])
    together = faults.burst(source, 12)
    assert together.chunks[:12] == before
    assert {chunk.t for chunk in together.chunks[12:]} == {source.chunks[-1].t}
    assert stalled.data == together.data == source.data


# --- One event a line -----------------------------------------------------------------------------


@pytest.fixture
def lines(tmp_path: Path) -> Recording:
    """The running example as a file of one JSON event a line."""
    recording.write(synth.change_label(), tmp_path / "x.jsonl")
    return recording.read(tmp_path / "x.jsonl")


LINE_FAULTS: dict[str, tuple[Callable[[Recording], Recording], State]] = {
    "skip": (lambda r: faults.skip(r, 20), State.INCOMPLETE),
    "disconnect": (lambda r: faults.disconnect(r, 14), State.INCOMPLETE),
    "error": (lambda r: faults.error(r, 14), State.INVALID),
    "token_limit": (lambda r: faults.token_limit(r, 14), State.HELD),
    "unknown": (lambda r: faults.unknown(r, 20), State.VALIDATED_PROPOSAL),
    "interleave": (lambda r: faults.interleave(r), State.VALIDATED_PROPOSAL),
    "index_gap": (lambda r: faults.index_gap(r, 1), State.HELD),
}


@pytest.mark.parametrize("ended", [True, False], ids=["last line ended", "last line open"])
@pytest.mark.parametrize("name", LINE_FAULTS)
def test_faults_fit_a_file_of_one_event_a_line(lines: Recording, name: str, ended: bool) -> None:
    act, state = LINE_FAULTS[name]
    source = lines if ended else Recording.from_bytes(lines.data.rstrip(b"\n"))
    broken = act(source)
    assert len(faults.frames(lines)) == 20
    assert judge(broken).state is state
    assert b"event:" not in broken.data


@each_fault
def test_beside_any_frame_of_a_file_of_one_event_a_line_too(fault: Fault, lines: Recording) -> None:
    ends = {ends_of(fault, lines, after) for after in range(21)}
    assert ends <= {None, *fault.outcomes}
    assert ends != {None} or fault.kind == "time"  # such a file has no times


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", ["cut_inside", "cut"])
def test_a_line_cut_short_is_incomplete_as_the_catalogue_says(
    lines: Recording, name: str, newline: str
) -> None:
    source = Recording.from_bytes(lines.data.replace(b"\n", newline.encode()))
    assert {judge(FAULTS[name].apply(source, seed)).state for seed in range(200)} == {
        State.INCOMPLETE
    }


def test_at_every_byte_a_file_of_one_event_a_line_is_incomplete_until_its_last_brace(
    lines: Recording,
) -> None:
    whole = lines.data.rstrip()
    states = [judge(edit.stop_at(lines, at)).state for at in range(len(whole) + 1)]
    assert set(states[:-1]) == {State.INCOMPLETE}
    assert states[-1] is State.VALIDATED_PROPOSAL


LEFT = {
    "half a line": (b'{"a":1}\n{"b":', 1, b'{"b":'),
    "half the first line": (b'{"a":', 0, b'{"a":'),
    "words behind the last line": (b'{"a":1}\nfailed', 1, b"failed"),
    "half a line in CRLF": (b'{"a":1}\r\n{"b"\r', 1, b'{"b"'),
    "white space": (b'{"a":1}\n  ', 1, None),
    "a whole line": (b'{"a":1}\n{"b":2}', 2, None),
    "a body of its own": (b'{\n "a": 1\n}', 1, None),
    "no JSON at all": (b"{a}", 1, None),
    "a broken line in the middle": (b'{"a":1}\n{"b":\n{"c":3}', 3, None),
}


@pytest.mark.parametrize("data, frames, left", LEFT.values(), ids=LEFT)
def test_a_last_line_that_is_cut_short_is_left_over(
    data: bytes, frames: int, left: bytes | None
) -> None:
    for size in (1, 3, len(data)):
        decoder = JSONLinesDecoder()
        found = [f for at in range(0, len(data), size) for f in decoder.feed(data[at : at + size])]
        assert len([*found, *decoder.end()]) == frames
        assert (decoder.left and decoder.left.data) == left
        assert decoder.left is None or decoder.left.start == data.index(decoder.left.data)


@pytest.mark.parametrize(
    "fault",
    [
        lambda r: faults.token_limit(r, "x"),
        lambda r: faults.refuse(r, 1.5),
        lambda r: faults.pause(r, None),
        lambda r: faults.delta_after_stop(r, after="x"),
        lambda r: faults.ping_flood(r, 2, count="x"),
        lambda r: faults.ping_flood(r, 2, count=0),
        lambda r: faults.ping_flood(r, 2, count=10**9),
    ],
    ids=[
        "token_limit",
        "refuse",
        "pause",
        "delta_after_stop",
        "ping_flood",
        "no pings",
        "too many",
    ],
)
def test_what_is_no_number_of_a_place_or_of_pings_is_refused(fault: Any) -> None:
    with pytest.raises(UsageError, match=r"whole number|1 to 100,000"):
        fault(synth.greeting())
