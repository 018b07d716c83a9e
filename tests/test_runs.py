"""Runs hold what frames and events hold: the same answer, however it is read and cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import synth
from streamlab.streams.catalogue import FAULTS
from streamlab.streams.recording import read
from streamlab.wire.reader import Bounds, Read, Reader
from streamlab.wire.runs import Item, Run, frames_in, last_frame
from tests.recordings_for_tests import FILES, FIXTURES, broken_by
from tests.streams_for_tests import all_bytes, cut, pieces


def spread(items: list[Item]) -> Iterator[Read]:
    """Frame by frame, what runs say of all."""
    for item in items:
        if not isinstance(item, Run):
            yield item
            continue
        counts = dict(item.counts)
        for place, (frame, text) in enumerate(zip(item.frames(), item.texts, strict=True)):
            assert frame == item.frame(place) and frame.data == item.data[place]
            assert frame.end == item.ends[place]
            counted = (counts[place],) if place in counts else ()
            yield frame, (item.kind(item.segment, text), *counted)


def both(parts: list[bytes], ending: str = "eof", bounds: Bounds | None = None) -> list[Item]:
    """Read one by one and in runs, to the same result; what the latter gave."""
    one, many = (Reader(None, bounds or Bounds()) for _ in range(2))
    given: list[Item] = []
    for part in parts:
        items = many.feed_runs(part)
        assert [*spread(items)] == one.feed(part)
        assert [*frames_in(items)] == [frame for frame, _ in spread(items) if frame is not None]
        given += items
    assert last_frame(given) == next((f for f in reversed([*frames_in(given)])), None)
    assert many.end(ending) == one.end(ending)
    for name in ("wire", "bytes", "frames", "completed", "exceeded", "beside_data"):
        assert getattr(many, name) == getattr(one, name), name
    return given


def cut_up(data: bytes, seed: int) -> list[bytes]:
    """The bytes in reads of many sizes."""
    rng, at, parts = Random(seed), 0, []
    while at < len(data):
        size = rng.choice((1, 30, 400, 3000, 20_000))
        parts.append(data[at : at + size])
        at += size
    return parts


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_a_recording_is_the_same_in_runs(path: Path) -> None:
    recording = read(path)
    for parts in ([recording.data], [chunk.data for chunk in recording.chunks]):
        both(parts, recording.ending)


@pytest.mark.parametrize("wire", synth.WRITERS)
@pytest.mark.parametrize("name", FAULTS)
def test_what_a_fault_breaks_is_the_same_in_runs(name: str, wire: str) -> None:
    for seed, broken in broken_by(FAULTS[name], wire):
        both(cut_up(broken.data, seed), broken.ending)


@given(
    seed=st.integers(0, 10_000),
    wire=st.sampled_from(list(synth.WRITERS)),
    newline=st.sampled_from((b"\n", b"\r\n", b"\r")),
)
def test_an_answer_is_the_same_in_runs_however_it_is_cut(
    seed: int, wire: str, newline: bytes
) -> None:
    data = synth.random_answer(seed, wire)[1].data
    data = data.replace(b"\r\n", b"\n").replace(b"\n", newline)
    both(cut_up(data, seed))


@given(cut(all_bytes))
def test_any_bytes_are_the_same_in_runs(drawn: tuple[bytes, list[int]]) -> None:
    data, cuts = drawn
    both([*pieces(data, cuts)])


@pytest.mark.parametrize(
    "bounds",
    [Bounds(bytes=20_000), Bounds(frames=50), Bounds(frame_bytes=120)],
    ids=["bytes", "frames", "frame_bytes"],
)
@pytest.mark.parametrize("wire", synth.WRITERS)
def test_a_bound_is_the_same_in_runs(bounds: Bounds, wire: str) -> None:
    answer = synth.long_text(3000, wire=wire)
    for seed in range(5):
        both(cut_up(answer.data, seed), bounds=bounds)


@pytest.mark.parametrize("wire", synth.WRITERS)
def test_nearly_all_of_a_long_answer_is_in_few_runs(wire: str) -> None:
    data = synth.long_text(4000, wire=wire).data
    given = both([data[:2000], data[2000:]])
    whole = sum(1 for _ in frames_in(given))
    in_runs = sum(len(item.texts) for item in given if isinstance(item, Run))
    assert len(given) < 40 and in_runs > whole * 0.9
