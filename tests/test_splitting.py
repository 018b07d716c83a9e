"""Several answers in one recording: each format's own sign of a new one, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.analysis.judge import judge
from streamlab.streams import faults, synth
from streamlab.streams.parts import Style
from streamlab.streams.random_answers import random_answer
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.splitting import SIGNS, answers
from streamlab.wire.reader import WIRES as READABLE
from tests.streams_for_tests import CALL, PING, TEXT, frame, stream

WIRES = ("claude", "openai-chat", "openai-responses", "gemini")
JSON = dict[str, Any]


def after(first: Recording, second: Recording, wait: float = 1.0) -> Recording:
    """One recording after another, on one clock."""
    late = (first.end_t or 0.0) + wait
    moved = [Chunk(None if t is None else t + late, data) for t, data in second.chunks]
    end = None if second.end_t is None else second.end_t + late
    return msgspec.structs.replace(second, chunks=(*first.chunks, *moved), end_t=end)


def contents(recording: Recording) -> list[tuple[str, str, Any]]:
    return [(s.kind, s.text, s.input) for s in judge(recording).turn.segments]


def lines(*payloads: JSON) -> Recording:
    data = b"".join(json.dumps(payload).encode() + b"\n" for payload in payloads)
    return Recording.from_bytes(data)


def events(*payloads: JSON | str) -> Recording:
    shown = (p if isinstance(p, str) else json.dumps(p) for p in payloads)
    return Recording.from_bytes(b"".join(f"data: {text}\n\n".encode() for text in shown))


def chunk(id: str, text: str = "", finish: str | None = None, role: bool = False) -> JSON:
    delta = {**({"role": "assistant"} if role else {}), "content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": id, "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def candidate(id: str, text: str, finish: str | None = None) -> JSON:
    given = {"content": {"parts": [{"text": text}]}, **({"finishReason": finish} if finish else {})}
    return {"candidates": [given], "responseId": id}


def created(id: str, number: int) -> JSON:
    response = {"id": id, "object": "response", "status": "in_progress", "output": []}
    return {"type": "response.created", "response": response, "sequence_number": number}


def response(name: str, id: str, number: int) -> JSON:
    value = {"id": id, "object": "response", "status": name, "output": []}
    return {"type": f"response.{name}", "response": value, "sequence_number": number}


def step(name: str, **fields: Any) -> JSON:
    return {"event_type": name, **fields}


def test_every_wire_format_has_its_sign() -> None:
    assert tuple(sorted(SIGNS)) == tuple(sorted(READABLE))


# --- One ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
@given(seed=st.integers(0, 10**6))
def test_one_answer_gives_itself(wire: str, seed: int) -> None:
    recording = random_answer(seed, wire)[1]
    assert answers(recording) == (recording,)


USAGE: JSON = {
    "id": "a",
    "object": "chat.completion.chunk",
    "model": "m",
    "choices": [],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
}

#: What looks like two and is one.
ONE: dict[str, Recording] = {
    "nothing": Recording(),
    "a-web-page": Recording.from_bytes(b"<html>\n\n<body>\n\n"),
    "no-format": events({"a": 1}, {"b": 2}),
    "claude-pings-first": Recording.from_bytes(stream([PING, PING, *TEXT])),
    "chat-usage-after-the-finish": events(
        chunk("a", "x", role=True), chunk("a", "", "stop"), USAGE, "[DONE]"
    ),
    "chat-usage-after-done": events(chunk("a", "x", "stop", role=True), "[DONE]", USAGE),
    "chat-an-id-for-each-chunk": events(
        chunk("a", "x", role=True),
        chunk("b", "y", role=True),
        chunk("c", "", "stop", role=True),
        chunk("d", "", "stop", role=True),
    ),
    "chat-other-id-without-a-role": events(
        chunk("a", "x", role=True), chunk("a", "", "stop"), chunk("b", "more")
    ),
    "responses-created-twice-at-once": events(created("r", 0), created("r", 1)),
    "gemini-other-id-before-the-finish": events(candidate("a", "x"), candidate("b", "y", "STOP")),
    "interactions": events(
        step("interaction.created", interaction={"id": "i"}),
        step("interaction.completed", interaction={"id": "i", "status": "completed"}),
        "[DONE]",
    ),
}


@pytest.mark.parametrize("recording", ONE.values(), ids=ONE.keys())
def test_what_only_looks_like_two_is_one(recording: Recording) -> None:
    assert answers(recording) == (recording,)


# --- Several --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunking", ["frame", "whole", "byte", "several"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("wire", WIRES)
def test_two_answers_in_a_row_are_two(wire: str, newline: str, chunking: str) -> None:
    style = Style(newline=newline, chunking=chunking)
    first = synth.story(wire=wire, style=style, seed=1)
    second = synth.change_label(wire=wire, style=style, seed=2)
    parts = answers(after(first, second))
    assert [contents(part) for part in parts] == [contents(first), contents(second)]
    assert b"".join(part.data for part in parts) == first.data + second.data
    assert [judge(part).state for part in parts] == [judge(first).state, judge(second).state]


def test_the_clock_is_the_recordings_and_only_the_last_answer_ends_as_it_does() -> None:
    first, second = synth.greeting(), faults.disconnect(synth.pay_invoice(), 8, "reset")
    whole = after(first, second)
    one, two = answers(whole)
    assert (*one.chunks, *two.chunks) == whole.chunks
    assert (one.ending, one.end_t) == ("eof", first.chunks[-1].t)
    assert (two.ending, two.end_t) == ("reset", whole.end_t)
    assert one.note == f"{whole.note}; answer 1 of 2"
    assert two.note == f"{whole.note}; answer 2 of 2"
    assert (one.wire, one.source) == (whole.wire, whole.source)


def test_a_read_that_holds_an_end_and_a_beginning_is_cut_in_two() -> None:
    data = synth.greeting().data
    parts = answers(Recording((Chunk(0.5, data + data[:40]), Chunk(0.7, data[40:])), "cut"))
    assert [part.chunks for part in parts] == [
        (Chunk(0.5, data),),
        (Chunk(0.5, data[:40]), Chunk(0.7, data[40:])),
    ]


ARRAY = Style(form="array")


def test_of_one_json_array_each_answer_is_an_array_again() -> None:
    first = [candidate("a", "x"), candidate("a", "y", "STOP")]
    second = [candidate("b", "z", "STOP")]
    parts = answers(Recording.from_bytes(json.dumps([*first, *second], indent=1).encode()))
    assert [json.loads(part.data) for part in parts] == [first, second]
    assert [judge(part).complete for part in parts] == [True, True]


Several = tuple[Recording, list[int]]

#: A recording, and how many payloads each of its answers has.
SEVERAL: dict[str, Several] = {
    "claude-three": (Recording.from_bytes(stream([*TEXT, *CALL, *TEXT])), [7, 8, 7]),
    "claude-reconnects": (Recording.from_bytes(stream([*TEXT[:3], *TEXT])), [3, 7]),
    "claude-after-an-error": (
        Recording.from_bytes(
            stream([{"type": "error", "error": {"type": "overloaded", "message": ""}}, *TEXT])
        ),
        [1, 7],
    ),
    "claude-lines": (lines(*TEXT, *TEXT), [7, 7]),
    "chat-after-done": (
        events(chunk("a", "x", "stop"), "[DONE]", chunk("a", "y", "stop"), "[DONE]"), [2, 2]
    ),
    "chat-lines-without-done": (
        lines(chunk("a", "x", role=True), chunk("a", "", "stop"), chunk("b", "y", "stop", True)),
        [2, 1],
    ),
    "chat-reconnects": (
        events(chunk("a", "x", role=True), chunk("a", "y"), chunk("b", "x", role=True)), [2, 1]
    ),
    "responses-after-the-end": (
        events(created("r", 0), response("completed", "r", 1), created("r", 0)), [2, 1]
    ),
    "responses-another-id": (events(created("r", 0), created("s", 0)), [1, 1]),
    "responses-reconnects": (
        events(created("r", 0), response("in_progress", "r", 1), created("r", 0)), [2, 1]
    ),
    "gemini": (
        events(candidate("a", "x"), candidate("a", "", "STOP"), candidate("b", "y")), [2, 1]
    ),
    "interactions": (
        events(
            step("interaction.created", interaction={"id": "i"}),
            step("interaction.completed", interaction={"id": "i", "status": "completed"}),
            "[DONE]",
            step("interaction.created", interaction={"id": "j"}),
        ),
        [3, 1],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("recording", "sizes"), SEVERAL.values(), ids=SEVERAL.keys())
def test_a_new_answer_begins_where_its_format_says_so(
    recording: Recording, sizes: list[int]
) -> None:
    parts = answers(recording)
    separator = b"\n\n" if b"\n\n" in recording.data else b"\n"
    assert [part.data.count(separator) for part in parts] == sizes
    assert b"".join(part.data for part in parts) == recording.data


@pytest.mark.parametrize("wire", WIRES)
@given(seeds=st.lists(st.integers(0, 10**6), min_size=2, max_size=4, unique=True))
def test_joined_and_split_again_answers_are_what_they_were(wire: str, seeds: list[int]) -> None:
    style = Style(chunking="frame")
    made = [synth.story(wire=wire, seed=seed, style=style) for seed in seeds]
    whole = made[0]
    for each in made[1:]:
        whole = after(whole, each)
    parts = answers(whole)
    assert [part.data for part in parts] == [each.data for each in made]
    assert [contents(part) for part in parts] == [contents(each) for each in made]


def test_what_is_said_of_the_format_is_believed() -> None:
    data = stream([*TEXT, *TEXT])
    assert len(answers(Recording.from_bytes(data), "claude")) == 2
    assert len(answers(Recording.from_bytes(data), "gemini")) == 1
    assert frame(TEXT[0]) in data
