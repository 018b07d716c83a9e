"""`judge` is the consumer's loop over a recording: the same answer from a value and a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamlab.analysis.judge import judge
from streamlab.consumer.attempt import State
from streamlab.consumer.gates import CHAT, EFFECT
from streamlab.errors import UsageError, WireError
from streamlab.streams.recording import Chunk, Recording, open_recording, write
from streamlab.wire.reader import Bounds
from tests.streams_for_tests import CALL, PING, TEXT, consume, frame, lines, stream


def recorded(payloads: Any, **fields: Any) -> Recording:
    """One chunk a frame, a second apart."""
    chunks = tuple(Chunk(float(n), frame(payload)) for n, payload in enumerate(payloads))
    return Recording(chunks, **{"end_t": float(len(chunks)), **fields})


@pytest.mark.parametrize(
    "payloads, ending, state, complete",
    [
        (CALL, "eof", "VALIDATED_PROPOSAL", True),
        (TEXT, "eof", "MESSAGE_COMPLETE", True),
        (TEXT, "reset", "MESSAGE_COMPLETE", True),
        (CALL[:-1], "eof", "INCOMPLETE", False),
        (CALL[:4], "timeout", "INCOMPLETE", False),
        (CALL[:4], "cancelled", "ABORTED", False),
        (CALL, "cancelled", "ABORTED", True),
        ([*CALL, *TEXT], "eof", "INVALID", False),
    ],
    ids=[
        "call",
        "text",
        "reset after",
        "no marker",
        "timeout",
        "cancelled",
        "cancelled after",
        "two answers",
    ],
)
def test_a_recording_is_judged_as_the_consumer_judges_it(
    payloads: Any, ending: str, state: str, complete: bool, tmp_path: Path
) -> None:
    recording = recorded(payloads, ending=ending)
    outcome = judge(recording)
    assert (outcome.state, outcome.complete, outcome.ending) == (state, complete, ending)
    consumer, _ = consume(stream(payloads), ending=ending)
    assert (outcome.turn, outcome.attempt) == (consumer.turn, consumer.attempt)
    assert (outcome.verdicts, outcome.proposals) == (consumer.verdicts, consumer.proposals)
    assert outcome.wire == "claude"
    assert (outcome.frames, outcome.bytes) == (len(payloads), len(recording.data))
    write(recording, tmp_path / "a.stream.jsonl")
    with open_recording(tmp_path / "a.stream.jsonl") as file:
        assert judge(file) == outcome


@pytest.mark.parametrize("name", ["a.sse", "a.txt", "a.jsonl"])
def test_the_forms_without_times_are_judged_alike(name: str, tmp_path: Path) -> None:
    write(recorded(CALL), tmp_path / name)
    with open_recording(tmp_path / name) as file:
        outcome = judge(file)
    assert outcome.state is State.VALIDATED_PROPOSAL
    assert outcome.turn.calls[0].input == judge(recorded(CALL)).turn.calls[0].input
    assert outcome.metrics is None


def test_the_policy_decides_what_a_call_is_worth() -> None:
    assert judge(recorded(CALL), EFFECT).proposals
    assert judge(recorded(CALL), CHAT).state is State.HELD
    assert judge(recorded(CALL), CHAT).proposals == ()


def test_the_wire_is_the_callers_or_the_headers_or_recognised() -> None:
    unheard = Recording.from_bytes(b'data: {"a": 1}\n\n')
    assert judge(unheard).wire is None
    assert judge(unheard, wire="claude").wire == "claude"
    assert judge(Recording.from_bytes(b"", wire="claude")).wire == "claude"
    with pytest.raises(UsageError):
        judge(unheard, wire="smoke")


def test_reading_stops_at_a_bound() -> None:
    seen = []
    flood = recorded([*CALL[:3], *[PING] * 100])
    outcome = judge(flood, bounds=Bounds(frames=10), watch=lambda chunk, _: seen.append(chunk))
    assert (outcome.state, outcome.frames) == (State.INCOMPLETE, 10)
    assert len(seen) == 11 + 1  # the read that went over it, and the end
    late = judge(flood, bounds=Bounds(seconds=20.0))
    assert (late.state, late.frames) == (State.INCOMPLETE, 21)


def test_whoever_watches_is_told_each_read_and_the_end() -> None:
    told: list[tuple[Chunk, int]] = []
    judge(recorded(TEXT), watch=lambda chunk, reads: told.append((chunk, len(reads))))
    assert [chunk for chunk, _ in told[:-1]] == list(recorded(TEXT).chunks)
    assert [reads for _, reads in told] == [1] * len(TEXT) + [1]
    assert told[-1][0] == Chunk(float(len(TEXT)), b"")


def test_a_file_that_stops_short_is_cut_and_says_where(tmp_path: Path) -> None:
    path = tmp_path / "a.stream.jsonl"
    write(recorded(CALL), path)
    path.write_bytes(path.read_bytes().rsplit(b"\n", 2)[0] + b"\n")
    with open_recording(path) as file:
        outcome = judge(file)
    assert (outcome.state, outcome.ending) == (State.VALIDATED_PROPOSAL, "cut")
    assert "stops without its end line" in outcome.truncated


def test_a_file_that_lies_is_a_wire_error(tmp_path: Path) -> None:
    path = tmp_path / "a.stream.jsonl"
    path.write_bytes(b'{"streamlab": 1}\n{"t": 1}\n')
    with open_recording(path) as file, pytest.raises(WireError, match=r"a\.stream\.jsonl:2"):
        judge(file)


def test_one_event_a_line_is_judged_without_the_network_form() -> None:
    assert judge(Recording.from_bytes(lines(TEXT))).state is State.MESSAGE_COMPLETE
