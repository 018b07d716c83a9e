"""The judge of a scan comes to the same outcome as the judge, whatever is read, and however cut."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import Recording, judge, synth
from streamlab.analysis.corpus import judging as corpus_judging
from streamlab.analysis.corpus.judging import judged
from streamlab.consumer.gates import CHAT
from streamlab.streams.catalogue import FAULTS
from streamlab.streams.recording import Chunk, open_recording, write
from streamlab.wire.reader import Bounds, Reader
from tests.recordings_for_tests import FILES, FIXTURES, broken_by


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_a_file_comes_to_the_same(path: Path) -> None:
    with open_recording(path) as one, open_recording(path) as two:
        assert judged(two) == judge(one)


@pytest.mark.parametrize("wire", synth.WRITERS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_comes_to_the_same(name: str, wire: str) -> None:
    for _, broken in broken_by(FAULTS[name], wire):
        assert judged(broken) == judge(broken)
        assert judged(broken, CHAT, "gemini") == judge(broken, CHAT, "gemini")


def cut(data: bytes, rng: Random, form: int) -> Recording:
    """The bytes in reads of many sizes, with times; some reads have none, some are empty."""
    chunks, at, t = [], 0, 0.0
    while at < len(data):
        size = rng.choice(((1, 2, 3), (0, 10, 100, 400), (5000, 40_000))[form])
        t += rng.choice((0.0, 0.0005, 0.02, 0.3, 3.0))
        chunks.append(Chunk(None if rng.random() < 0.05 else round(t, 4), data[at : at + size]))
        at += size
    return Recording(tuple(chunks), rng.choice(("eof", "cut")), end_t=t + 1)


@given(
    seed=st.integers(0, 10_000), wire=st.sampled_from(list(synth.WRITERS)), form=st.integers(0, 2)
)
def test_any_reads_come_to_the_same(seed: int, wire: str, form: int) -> None:
    rng = Random(seed)
    data = synth.random_answer(seed, wire)[1].data
    newline = rng.choice((b"\n", b"\r\n", b"\r"))
    data = rng.choice((b"", b"\xef\xbb\xbf")) + data.replace(b"\r\n", b"\n").replace(b"\n", newline)
    recording = cut(data, rng, form)
    assert judged(recording) == judge(recording)


@pytest.mark.parametrize("form", ["array", "sse"])
def test_a_form_comes_to_the_same(form: str) -> None:
    style = synth.Style(form=form)
    for seed in range(5):
        data = synth.story(wire="gemini", seed=seed, style=style).data
        recording = cut(data, Random(seed), seed % 2)
        assert judged(recording) == judge(recording)


def test_a_reason_to_stop_in_every_chunk_comes_to_the_same() -> None:
    piece = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}\n\n'
    for form in range(3):
        recording = cut(piece * 40, Random(form), form)
        assert judged(recording) == judge(recording) != judge(cut(piece * 41, Random(form), form))


def test_event_lines_come_to_the_same(tmp_path: Path) -> None:
    write(synth.story(), tmp_path / "x.jsonl")
    for seed in range(5):
        recording = cut((tmp_path / "x.jsonl").read_bytes(), Random(seed), seed % 2)
        assert judged(recording) == judge(recording)


LONG = cut(synth.long_text(4000, wire="openai-chat").data, Random(1), 1)


@pytest.mark.parametrize(
    "bounds",
    [
        *(Bounds(bytes=n) for n in (1, 5000, 50_000)),
        *(Bounds(frames=n) for n in (1, 2, 100)),
        *(Bounds(frame_bytes=n) for n in (10, 200, 250, 300)),
        *(Bounds(seconds=n) for n in (0.1, 3.0, 100.0)),
    ],
    ids=str,
)
def test_a_bound_is_passed_at_the_same_read(bounds: Bounds) -> None:
    assert judged(LONG, bounds=bounds) == judge(LONG, bounds=bounds)


@pytest.mark.parametrize("reads", [1, 2, 7])
def test_it_does_not_matter_how_many_reads_are_decoded_as_one(
    reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_judging, "MAX_READS", reads)
    assert judged(LONG) == judge(LONG)


def test_most_reads_are_decoded_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = []
    for cls, name in ((corpus_judging._Hasty, "feed"), (Reader, "feed_runs")):
        real = getattr(cls, name)

        def feed(reader: object, data: bytes, *more: object, real: Any = real) -> object:
            fed.append(len(data))
            return real(reader, data, *more)

        monkeypatch.setattr(cls, name, feed)
    judged(synth.long_text(4000))
    assert len(fed) < 10 and sum(fed) == len(synth.long_text(4000).data)
