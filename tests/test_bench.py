"""The verdicts of `bench`, and that every contestant reads what it is measured by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlab import judge, read, synth
from tests.bench import contestants, scanning
from tests.bench.aims import Row, show, verdicts
from tests.bench.contestants import SDKS, streamlab
from tests.bench.exploring import Explored, known_ways, plain_search
from tests.bench.work import FRAMED, recordings, work

ROWS = [
    Row("claude text", 900, 1.0, 2.0, 20.0, 99.0),
    Row("claude tool JSON, 20 KB", 1000, 1.0, 2.5, 20.0, 99.0),
    Row("claude tool JSON, 40 KB", 2000, 1.0, 4.0, 20.0, 99.0),
    Row(f"claude tool JSON, 40 KB, {FRAMED}", 2000, 1.0, 9.0, 20.0, 99.0),
    Row("claude recordings, 82 x 10", 900, 1.0, 5.0, 20.0, 99.0),
    Row("gemini text as an array", 900, 2.0, 7.0, None, None),
]


def test_each_aim_is_judged_group_by_group() -> None:
    floor, raw, linear = "times the floor", "raw iteration", "twice the input"
    said = {
        (aim, line.rpartition(" (")[2][:-1]): line.partition(": ")[2].partition(" (")[0]
        for aim in (floor, raw, linear)
        for line in verdicts(ROWS)
        if aim in line
    }
    assert said == {
        (floor, "claude text"): "2.00, met",
        (floor, "claude tool JSON"): "4.00, met",
        (floor, "claude recordings"): "5.00, missed",
        (floor, "gemini text as an array"): "3.50, met",
        (raw, "claude text"): "10.00, met",
        (raw, "claude tool JSON"): "5.00, met",
        (raw, f"claude tool JSON, {FRAMED}"): "2.22, missed",
        (raw, "claude recordings"): "4.00, met",
        (linear, "claude tool JSON"): "3.20, missed",
    }


def test_a_row_shows_a_dash_where_nobody_reads_so() -> None:
    assert show(ROWS[0]).endswith("2.0 x     10.0 x     49.5 x")
    assert show(ROWS[-1]).endswith("3.5 x          -          -")


class Watched(list[bytes]):
    """The reads of one stream, and how many were taken."""

    taken = 0

    def __iter__(self) -> Iterator[bytes]:
        for at in range(len(self)):
            self.taken += 1
            yield self[at]


@pytest.mark.parametrize("wire", synth.WRITERS)
def test_every_contestant_reads_each_stream_to_its_last_event(wire: str) -> None:
    answers = [synth.greeting(wire=wire), synth.story(wire=wire)]
    for run in filter(None, (streamlab, *SDKS[wire])):
        job = work("short", answers, wire, framed=True)
        watched = [Watched(reads) for reads in job.streams]
        run(job._replace(streams=watched))
        assert all(reads.taken >= len(reads) - 1 > 3 for reads in watched), run.__name__


@pytest.mark.parametrize("form", ["sse", "array"])
def test_the_floor_decodes_every_event(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    monkeypatch.setattr(contestants, "FASTEST", decoded.append)
    job = work("short", [synth.greeting(wire="gemini", style=synth.Style(form=form))], "gemini")
    contestants.floor(job)
    assert job.array == (form == "array")
    assert len(decoded) == job.events > 3


def test_the_recordings_of_a_folder_are_grouped_by_wire_format(tmp_path: Path) -> None:
    for wire in synth.WRITERS:
        (tmp_path / f"{wire}.sse").write_bytes(synth.greeting(wire=wire).data)
    (tmp_path / "cut.sse").write_bytes(synth.greeting().data[:200])
    counts = {wire: len(found) for wire, found in recordings(tmp_path).items()}
    assert counts == dict.fromkeys(synth.WRITERS, 1)


def test_the_explorer_is_judged_against_a_plain_search() -> None:
    assert ": 4.00, met (" in Explored("explorer", 9, 2.0, 8.0).verdict
    assert ": 7.00, missed (" in Explored("explorer", 9, 1.0, 7.0).verdict
    assert str(Explored("explorer", 2000, 2.0, 8.0)).endswith("4.0 x, 125,000 states a second")


def test_the_plain_search_has_as_much_to_do_as_the_explorer() -> None:
    known = known_ways()
    assert plain_search(known) == len(known) == 2424
    assert sum(map(len, known.values())) == 24_043


def test_a_figure_of_the_scan_says_its_aim_and_what_it_is() -> None:
    figure = scanning.Figure("scan, main process", "at most 1.15 times", 1.2, False, "9 MB")
    assert figure.verdict == "at most 1.15 times: 1.20, missed (scan, main process; 9 MB)"


@pytest.mark.parametrize("form", scanning.FORMS)
def test_the_floor_of_the_scan_decodes_what_the_scan_reads(form: str, tmp_path: Path) -> None:
    place = scanning.make(tmp_path, form, 12)
    paths = sorted(path for path in place.rglob("*.*") if path.is_file())
    assert len(paths) == 12
    for path in paths:
        outcome = judge(read(path))
        done = b"[DONE]" in read(path).data
        assert scanning.floor_of((str(path),)) == outcome.frames - done > 0
        assert outcome.wire in synth.WRITERS
        assert outcome.complete == (not path.name.startswith(("00009",)))
