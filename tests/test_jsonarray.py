"""One JSON array as frames: however it is cut, the same elements at the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.wire.events import StreamEnded
from streamlab.wire.jsonarray import JSONArrayDecoder
from streamlab.wire.sse import BOM, Frame, Overrun
from tests.streams_for_tests import consume, cut, pieces, saw

Seen = tuple[list[Frame], Frame | None, Overrun | None]


def decoded(data: bytes, cuts: Iterable[int] = (), most: int = 1000) -> Seen:
    decoder = JSONArrayDecoder(most)
    frames = [frame for piece in pieces(data, cuts) for frame in decoder.feed(piece)]
    assert decoder.end() == []
    return frames, decoder.left, decoder.overrun


def in_every_way(data: bytes, most: int = 1000) -> Seen:
    whole = decoded(data, most=most)
    for size in (1, 2, 3, 7):
        assert decoded(data, range(0, len(data), size), most) == whole, f"in pieces of {size}"
    return whole


ELEMENTS = {
    "objects": (b'[{"a":1},{"b":2}]', [b'{"a":1}', b'{"b":2}']),
    "white space": (b' [ {"a" : 1} ,\r\n{"b":2}\n]\n', [b'{"a" : 1}', b'{"b":2}']),
    "a comma first": (b'[{"a":1}\n,\r\n{"b":2}\n]', [b'{"a":1}', b'{"b":2}']),
    "byte order mark": (BOM + b'[{"a":1}]', [b'{"a":1}']),
    "brackets in a string": (b'[{"a":"]},[{"},{"b":2}]', [b'{"a":"]},[{"}', b'{"b":2}']),
    "a quote in a string": (b'[{"a":"\\"]"},{"b":2}]', [b'{"a":"\\"]"}', b'{"b":2}']),
    "a backslash ends it": (b'[{"a":"\\\\"},{"b":2}]', [b'{"a":"\\\\"}', b'{"b":2}']),
    "nested deeper than one look reaches": (
        b"[" + b'{"a":' * 20 + b"1" + b"}" * 20 + b', {"b":2}]',
        [b'{"a":' * 20 + b"1" + b"}" * 20, b'{"b":2}'],
    ),
    "nested": (b'[{"a":[{"b":[]}]},[1,[2]]]', [b'{"a":[{"b":[]}]}', b"[1,[2]]"]),
    "scalars": (b'[1 , "a,]" ,null]', [b"1", b'"a,]"', b"null"]),
    "empty": (b"[]", []),
    "empty, white": (b"[ \n ]\n", []),
    "nothing between": (b'[{"a":1},,]', [b'{"a":1}']),
    "words between": (b'[{"a":1} oops,{"b":2}]', [b'{"a":1}', b"oops", b'{"b":2}']),
    "no UTF-8": (b'[{"a":"\xff"}]', [b'{"a":"\xff"}']),
}


@pytest.mark.parametrize(("data", "expected"), ELEMENTS.values(), ids=ELEMENTS)
def test_the_elements_of_an_array_are_its_frames(data: bytes, expected: list[bytes]) -> None:
    frames, left, overrun = in_every_way(data)
    assert [frame.data for frame in frames] == expected
    assert [data[frame.start : frame.end] for frame in frames] == expected
    assert [frame.number for frame in frames] == list(range(1, len(expected) + 1))
    assert (left, overrun) == (None, None)


LEFT = {
    "cut in an element": (b'[{"a":1},{"b":', 1, b'{"b":'),
    "cut in a string": (b'[{"a":1},{"b":"]', 1, b'{"b":"]'),
    "cut in an escape": (b'[{"a":"\\', 0, b'{"a":"\\'),
    "cut after a comma": (b'[{"a":1},', 1, b""),
    "cut after an element": (b'[{"a":1}', 1, b""),
    "a scalar that may go on": (b"[12", 0, b"12"),
    "words behind it": (b'[{"a":1}] oops', 1, b"oops"),
    "a second array": (b'[{"a":1}]\n[{"b":2}]', 1, b'[{"b":2}]'),
    "one bracket too many": (b'[{"a":1}]]', 1, b"]"),
    "no array": (b"", 0, b""),
}


@pytest.mark.parametrize(("data", "count", "left"), LEFT.values(), ids=LEFT)
def test_what_is_no_element_is_left_over(data: bytes, count: int, left: bytes) -> None:
    frames, found, _ = in_every_way(data)
    assert len(frames) == count
    assert found is not None
    assert (found.data, found.number) == (left, count + 1)
    assert data[found.start : found.end] == left


@pytest.mark.parametrize(("data", "count", "left"), LEFT.values(), ids=LEFT)
def test_what_is_left_over_keeps_an_answer_from_being_complete(
    data: bytes, count: int, left: bytes
) -> None:
    chunk = b'{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}'
    data = data.replace(b'{"a":1}', chunk) or b"["
    consumer, _ = consume(data, wire="gemini")
    assert saw(data, range(len(data)), wire="gemini") == saw(data, wire="gemini")
    assert not consumer.turn.complete
    assert "unfinished-block" in {problem.rule for problem in consumer.turn.facts.problems}


@pytest.mark.parametrize(("most", "start"), [(0, 1), (1, 1), (7, 1), (8, 10), (9, None)], ids=str)
def test_an_element_over_the_bound_ends_the_reading_at_its_own_place(
    most: int, start: int | None
) -> None:
    data = b'[{"a":12},{"b":123}]'
    frames, left, overrun = in_every_way(data, most)
    assert overrun == (None if start is None else Overrun(start, most))
    assert len(frames) == {None: 2, 10: 1}.get(start, 0)
    assert left is None


def test_white_space_without_end_passes_the_bound_too() -> None:
    for data in (b"[" + b" " * 50, b" " * 50 + b"[", b"[1]" + b" " * 50, b"[1," + b" " * 50):
        assert in_every_way(data, 20)[2] is not None


def test_after_the_bound_nothing_more_is_read() -> None:
    decoder = JSONArrayDecoder(5)
    assert decoder.feed(b'[{"a":1},1]') == []
    assert decoder.feed(b",1,2]") == []


odd = st.lists(
    st.sampled_from([b"[", b"]", b"{", b"}", b",", b'"', b"\\", b" ", b"\n", b"a", b"1", BOM]),
    max_size=30,
).map(b"".join)


@given(cut(odd.map(lambda data: b"[" + data)), st.integers(0, 12))
def test_any_split_gives_the_same_frames_with_the_same_ranges(
    drawn: tuple[bytes, list[int]], most: int
) -> None:
    data, cuts = drawn
    for bound in (most, 1000):
        whole = decoded(data, most=bound)
        assert decoded(data, cuts, bound) == whole
        assert decoded(data, range(len(data)), bound) == whole
    assert all(data[f.start : f.end] == f.data for f in whole[0])
    assert all(a.end <= b.start for a, b in zip(whole[0], whole[0][1:], strict=False))


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.lists(values, max_size=6), st.booleans(), st.sampled_from([None, 1]))
def test_every_array_gives_back_its_elements(
    given: list[Any], ascii: bool, indent: int | None
) -> None:
    data = json.dumps(given, ensure_ascii=ascii, indent=indent).encode("utf-8", "replace")
    frames, left, _ = decoded(data, range(len(data)), 10_000)
    assert [json.loads(frame.data) for frame in frames] == json.loads(data)
    assert left is None


def test_no_byte_is_looked_at_again_and_again() -> None:
    """Counted, not timed: what a search is given to look at, for an element in many reads."""
    looked = 0

    class Counting(JSONArrayDecoder):
        def _next(self) -> int | None:
            nonlocal looked
            looked -= self._seen
            found = super()._next()
            looked += self._seen
            return found

    decoder, size = Counting(), 20_000
    frames = [f for piece in [b'[{"a":"', *[b"x"] * size, b'"}]'] for f in decoder.feed(piece)]
    assert len(frames) == 1
    assert looked <= size + 20


def test_an_array_is_read_as_one_stream_and_ends_like_one() -> None:
    chunk = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    consumer, reads = consume(json.dumps([chunk, {"usageMetadata": {}}]).encode())
    assert (consumer.reader.wire, consumer.turn.text) == ("gemini", "Hi")
    assert consumer.turn.complete
    assert reads[-1] == (None, (StreamEnded("eof", 2),))
