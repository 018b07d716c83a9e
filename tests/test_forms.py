"""Recordings of every form are read, written and edited, and stay what they are."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.streams.edit import (
    disconnect,
    edge,
    frame_at,
    frames,
    in_order,
    insert,
    move,
    skip,
    splice,
    splice_all,
)
from streamlab.streams.recording import Chunk, Recording, read, write
from streamlab.wire.forms import decoder_of, frames_of, is_array
from streamlab.wire.jsonarray import JSONArrayDecoder
from streamlab.wire.jsonl import JSONLinesDecoder
from streamlab.wire.sse import BOM, SSEDecoder

CHUNKS = [{"candidates": [], "n": n} for n in range(3)]

FORMS = {
    "stream": (b"data: {}\n\n", SSEDecoder),
    "comment": (b": [\n\n", SSEDecoder),
    "lines": (b'{"a":1}\n', JSONLinesDecoder),
    "array": (b'[{"a":1}]', JSONArrayDecoder),
    "mark": (BOM + b" \r\n[", JSONArrayDecoder),
    "nothing": (b"", SSEDecoder),
}


@pytest.mark.parametrize(("head", "decoder"), FORMS.values(), ids=FORMS)
def test_the_form_is_told_by_the_first_character(head: bytes, decoder: type) -> None:
    assert decoder_of(head) is decoder
    assert is_array(head) == (decoder is JSONArrayDecoder)


def in_form(form: str, chunks: list[dict[str, Any]] = CHUNKS) -> bytes:
    bodies = [json.dumps(chunk).encode() for chunk in chunks]
    if form == "array":
        return b"[" + b"\n,\r\n".join(bodies) + b"\n]"
    line = b"data: %s\n\n" if form == "stream" else b"%s\n"
    return b"".join(line % body for body in bodies)


FORM = pytest.mark.parametrize("form", ["stream", "lines", "array"])


def numbers(recording: Recording) -> list[int]:
    """Which chunks a recording has, in its order; an array must still be JSON."""
    if is_array(recording.data):
        json.loads(recording.data)
    return [json.loads(frame.data)["n"] for frame in frames(recording)]


def element(form: str, n: int) -> bytes:
    body = json.dumps({"n": n}).encode()
    return {"stream": b"data: %s\n\n", "lines": b"%s\n", "array": b" %s\n"}[form] % body


@FORM
def test_frames_are_found_in_every_form(form: str) -> None:
    found = frames_of(in_form(form))
    assert [json.loads(frame.data) for frame in found] == CHUNKS


@FORM
@pytest.mark.parametrize("frame", [1, 2, 3])
def test_a_frame_is_lost_in_every_form(form: str, frame: int) -> None:
    recording = Recording.from_bytes(in_form(form))
    left = [n for n in range(3) if n != frame - 1]
    assert numbers(skip(recording, frame)) == left
    assert numbers(skip(skip(skip(recording, frame), 1), 1)) == []


@FORM
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_frame_is_put_in_in_every_form(form: str, after: int) -> None:
    recording = Recording.from_bytes(in_form(form))
    expected = [0, 1, 2]
    expected.insert(after, 9)
    assert numbers(insert(recording, after, element(form, 9))) == expected


def test_a_frame_is_put_into_an_array_that_has_none() -> None:
    assert insert(Recording.from_bytes(b" [ ]"), 0, b"{}\n").data == b" [{} ]"


@FORM
@pytest.mark.parametrize(("frame", "after"), [(1, 1), (1, 2), (1, 3), (2, 3), (3, 3)])
def test_a_frame_comes_late_in_every_form(form: str, frame: int, after: int) -> None:
    expected = [0, 1, 2]
    expected.insert(after - 1, expected.pop(frame - 1))
    assert numbers(move(Recording.from_bytes(in_form(form)), frame, after)) == expected


@FORM
@pytest.mark.parametrize("order", list(permutations((1, 2, 3))), ids=str)
def test_frames_come_in_any_order_in_every_form(form: str, order: tuple[int, ...]) -> None:
    recording = Recording((Chunk(1.0, in_form(form)),), end_t=2.0)
    moved = in_order(recording, order)
    assert numbers(moved) == [n - 1 for n in order]
    assert len(moved.chunks) >= 3
    assert {chunk.t for chunk in moved.chunks} == {1.0}


@FORM
def test_a_place_is_where_a_frame_ends_in_every_form(form: str) -> None:
    recording = Recording.from_bytes(in_form(form))
    assert edge(recording, 0) == 0
    for n in (1, 2, 3):
        start, end = frame_at(recording, n)
        assert edge(recording, n) == end
        assert json.dumps(CHUNKS[n - 1]).encode() in recording.data[start:end]
        assert numbers_of(disconnect(recording, n)) == list(range(n))
    assert disconnect(recording, 0).data == b""


def numbers_of(recording: Recording) -> list[int]:
    return [json.loads(frame.data)["n"] for frame in frames(recording)]


@FORM
def test_every_form_is_written_as_one_event_a_line(form: str, tmp_path: Path) -> None:
    write(Recording.from_bytes(in_form(form)), tmp_path / "a.jsonl")
    back = read(tmp_path / "a.jsonl")
    assert numbers(back) == [0, 1, 2]
    assert back.data.count(b"\n") == 3
    assert not is_array(back.data)


@FORM
@pytest.mark.parametrize("name", ["a.sse", "a.txt", "a.stream.jsonl"])
def test_every_form_keeps_its_bytes(form: str, name: str, tmp_path: Path) -> None:
    write(Recording.from_bytes(in_form(form)), tmp_path / name)
    assert read(tmp_path / name).data == in_form(form)


def test_an_array_of_several_lines_an_element_becomes_one_line_each(tmp_path: Path) -> None:
    body = json.dumps(CHUNKS, indent=1).replace("\n", "\r\n").encode()
    write(Recording.from_bytes(body), tmp_path / "a.jsonl")
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()] == CHUNKS


@given(
    reads=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    cuts=st.lists(st.integers(0, 30), unique=True, max_size=8).map(sorted),
    news=st.lists(st.binary(max_size=4), min_size=4, max_size=4),
)
def test_many_ranges_in_one_pass_are_replaced_as_one_by_one(
    reads: list[int], cuts: list[int], news: list[bytes]
) -> None:
    chunks = tuple(Chunk(float(n), bytes([65 + n]) * size) for n, size in enumerate(reads))
    recording = Recording(chunks, "eof", end_t=9.0)
    size = len(recording.data)
    ranges = [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False) if b <= size]
    changes = [(*range, new) for range, new in zip(ranges, news, strict=False)]
    one_by_one = recording
    for change in reversed(changes):
        one_by_one = splice(one_by_one, *change)
    assert splice_all(recording, changes) == one_by_one
