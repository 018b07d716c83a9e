"""Each table has the documented columns and types, and agrees with the reader and the metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pandas
import pytest

from streamlab.analysis import tables
from streamlab.analysis.columns import COLUMNS
from streamlab.analysis.doctor import diagnose
from streamlab.analysis.given import one
from streamlab.analysis.judge import judge
from streamlab.analysis.metrics import FORMULAS, PHASE_FORMULAS
from streamlab.analysis.rows import MAX_TEXT, stream_row
from streamlab.errors import UsageError, WireError
from streamlab.streams import faults, synth
from streamlab.streams.catalogue import FAULTS
from streamlab.streams.recording import Chunk, Recording, open_recording, write
from streamlab.streams.script import Script
from tests.streams_for_tests import STOP, block, end, start, stop, stream, text

CALL = synth.change_label()
STREAMS = {
    "call": CALL,
    "thinking": synth.thinking_then_tool(),
    "story": synth.story(wire="openai-responses"),
    "empty": Recording(),
    "one event": Recording((Chunk(0.1, stream([start()])),), "cut", "claude", 0.2),
    "untimed": Recording.from_bytes(CALL.data),
    "bytewise": faults.split(CALL),
    **{name: FAULTS[name].apply(CALL, 5) for name in ("stall", "cut", "unknown", "html_page")},
}
of_streams = pytest.mark.parametrize("recording", STREAMS.values(), ids=STREAMS)
ONE = {name: getattr(tables, name) for name in ("chunks", "frames", "events", "segments")}


def documented(frame: pandas.DataFrame, table: str) -> None:
    """Assert that a table is as its documentation says."""
    dtypes = {name: str(dtype) for name, dtype in frame.dtypes.items()}
    said = {name: column.dtype for name, column in COLUMNS[table].items()}
    assert dtypes == {name: "object" if d == "list" else d for name, d in said.items()}
    assert list(frame.columns) == list(COLUMNS[table])


@of_streams
@pytest.mark.parametrize("table", ONE)
def test_a_table_has_the_documented_columns_and_types(table: str, recording: Recording) -> None:
    documented(ONE[table](recording), table)


def test_the_others_have_them_too_also_where_they_are_empty() -> None:
    documented(tables.streams([]), "streams")
    documented(tables.streams(STREAMS), "streams")
    documented(tables.formulas(), "formulas")


def test_every_column_says_what_it_is() -> None:
    for table, columns in COLUMNS.items():
        for name, column in columns.items():
            assert column.says, (table, name)
            if name.endswith("_s") and not name.endswith("_per_s"):
                assert column.unit == "s", (table, name)
            if "bytes" in name.split("_"):
                assert column.unit == "bytes", (table, name)


# --- One stream -----------------------------------------------------------------------------------


@of_streams
def test_the_chunks_are_the_reads(recording: Recording) -> None:
    found = tables.chunks(recording)
    reads = [chunk for chunk in recording.chunks if chunk.data]
    assert found.chunk.tolist() == list(range(1, len(reads) + 1))
    assert found.bytes.sum() == len(recording.data)
    for row, read in zip(found.itertuples(), reads, strict=True):
        assert recording.data[row.start : row.start + row.bytes] == read.data
        assert row.t_s == read.t or (read.t is None and pandas.isna(row.t_s))


@of_streams
def test_the_frames_hold_all_that_the_reader_found(recording: Recording) -> None:
    outcome, found = judge(recording), tables.frames(recording)
    assert found.frame.tolist() == list(range(1, outcome.frames + 1))
    for row in found.itertuples():
        block = recording.data[row.start : row.start + row.bytes]
        assert row.data[:20].encode() in block and row.data_bytes <= row.bytes


@of_streams
def test_content_in_the_events_is_what_the_meter_counts(recording: Recording) -> None:
    metrics, found = judge(recording).metrics, tables.events(recording)
    content = found[found.phase.notna()]
    if metrics is None:
        assert found.t_s.isna().all() and found.gap_s.isna().all()
        return
    assert len(content) == metrics.content_events == tables.chunks(recording).content_events.sum()
    for phase, part in metrics.phases.items():
        assert (content.phase == phase).sum() == part.content_events
    if metrics.icl_s is not None:
        gaps = content.gap_s.dropna()
        spread = [gaps.quantile(q) for q in (0.5, 0.9, 0.99, 1)]
        assert spread == pytest.approx(msgspec.structs.astuple(metrics.icl_s), abs=1e-12)
    if metrics.ttfc_s is not None:
        assert content.t_s.iloc[0] == metrics.ttfc_s


@pytest.mark.parametrize("wire", synth.WRITERS)
def test_content_is_the_meter_s_content_whatever_is_answered(wire: str) -> None:
    for seed in range(60):
        _, recording = synth.random_answer(seed, wire)
        metrics, content = judge(recording).metrics, tables.events(recording).phase.dropna()
        assert metrics is not None and len(content) == metrics.content_events
        counts = {name: part.content_events for name, part in metrics.phases.items()}
        assert content[content != "other"].value_counts().to_dict() == counts


@of_streams
def test_the_events_are_those_of_their_frames(recording: Recording) -> None:
    frames, found = tables.frames(recording), tables.events(recording)
    assert found.event.tolist() == list(range(1, len(found) + 1))
    of_frames = found[found.frame.notna()]
    kinds = [kind for kinds in frames.events for kind in kinds]
    assert of_frames.kind.tolist() == kinds
    assert found.kind.iloc[-1] == "StreamEnded"


@of_streams
def test_the_segments_are_those_of_the_turn(recording: Recording) -> None:
    segments, found = judge(recording).turn.segments, tables.segments(recording)
    assert found.segment.tolist() == [segment.id for segment in segments]
    assert found.kind.tolist() == [segment.kind for segment in segments]
    assert found.status.tolist() == [segment.status for segment in segments]
    assert found.characters.tolist() == [len(segment.text) for segment in segments]
    assert (found.start <= found.end).all() and (found.first_frame <= found.last_frame).all()


def test_what_is_not_known_is_no_zero() -> None:
    found = tables.chunks(STREAMS["untimed"])
    assert found.t_s.isna().all() and found.gap_s.isna().all()
    assert tables.segments(STREAMS["untimed"]).start_s.isna().all()
    silent = tables.segments(STREAMS["cut"])
    assert silent.server.isna().tolist() == [kind != "tool_call" for kind in silent.kind]


def test_a_read_without_a_time_came_with_the_one_before_it() -> None:
    first, *rest = [chunk.data for chunk in CALL.chunks]
    found = tables.events(Recording((Chunk(0.5, first), Chunk(None, b"".join(rest)))))
    assert set(found.t_s) == {0.5}


def test_a_row_keeps_the_beginning_of_a_long_text() -> None:
    long = "x" * 50_000
    data = stream([start(), block(0), text(0, long), stop(0), end(), STOP])
    recording = Recording((Chunk(0.1, data),), wire="claude")
    for found in (tables.events(recording), tables.segments(recording)):
        assert found.characters.max() == 50_000
        assert found.text.dropna().str.len().max() == MAX_TEXT
    assert tables.frames(recording).data.str.len().max() == MAX_TEXT


@pytest.mark.parametrize("said", ["<script>x</script>", "\ud800", "\x00\x1b[2J", "語" * 900])
def test_hostile_words_are_cells_like_others(said: str) -> None:
    data = stream([start(), block(0, "tool_use", name=said), text(0, said), stop(0), end(), STOP])
    recording = Recording((Chunk(0.1, data),), wire="claude")
    for make in ONE.values():
        found = make(recording)
        assert "<script>" not in found.to_html()
        found.to_json()
    assert tables.segments(recording).name.iloc[0] is not pandas.NA


# --- Many -----------------------------------------------------------------------------------------


def test_a_row_of_streams_is_the_stream_s_row() -> None:
    found = tables.streams(STREAMS)
    assert found.file.tolist() == list(STREAMS)
    for (_, row), recording in zip(found.iterrows(), STREAMS.values(), strict=True):
        outcome = judge(recording)
        for name, value in stream_row(outcome, diagnose(outcome)).items():
            assert row[name] == value if value is not None else pandas.isna(row[name])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(CALL, tmp_path / "a.stream.jsonl")
    (tmp_path / "b.stream.jsonl").write_text('{"streamlab": 1}\n{"t": "soon"}\n')
    write(CALL, tmp_path / "c.sse")
    return tmp_path


def test_a_file_that_cannot_be_read_has_a_row_that_says_why(folder: Path) -> None:
    files = [folder / name for name in ("a.stream.jsonl", "missing", "b.stream.jsonl", "c.sse")]
    found = tables.streams(files)
    assert found.file.tolist() == [str(file) for file in files]
    assert found.error.notna().tolist() == [False, True, True, False]
    assert found.complete.isna().tolist() == [False, True, True, False]
    assert "missing" in found.error[1] and "b.stream.jsonl:2" in found.error[2]
    assert found.timed.tolist() == [True, pandas.NA, pandas.NA, False]


GIVEN: dict[str, Any] = {
    "a recording": lambda folder: CALL,
    "a script": lambda folder: Script(CALL),
    "a path": lambda folder: folder / "a.stream.jsonl",
    "a path as text": lambda folder: str(folder / "a.stream.jsonl"),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_a_table_takes_a_recording_a_script_a_file_or_a_path(given: Any, folder: Path) -> None:
    for make in ONE.values():
        pandas.testing.assert_frame_equal(make(given(folder)), make(CALL))
    assert len(tables.streams(given(folder))) == len(tables.streams([given(folder)])) == 1


def test_a_table_takes_an_open_file_once(folder: Path) -> None:
    for make in ONE.values():
        with open_recording(folder / "a.stream.jsonl") as file:
            pandas.testing.assert_frame_equal(make(file), make(CALL))


def test_a_generator_of_many_is_taken_one_by_one(folder: Path) -> None:
    paths = (folder / "a.stream.jsonl" for _ in range(3))
    assert tables.streams(paths).complete.tolist() == [True] * 3


@pytest.mark.parametrize("stream", [0, 2, -1])
def test_a_stream_that_is_not_there_is_said(stream: int, folder: Path) -> None:
    with pytest.raises(UsageError, match=f"stream={stream}: it has 1 stream"):
        tables.frames(folder / "a.stream.jsonl", stream)


def test_what_is_no_stream_is_said(folder: Path) -> None:
    with pytest.raises(UsageError, match="not a int"):
        tables.frames(7)  # type: ignore[arg-type]
    with pytest.raises(WireError, match="missing"):
        tables.frames(folder / "missing")
    with pytest.raises(WireError, match=r"b\.stream\.jsonl:2"):
        tables.frames(folder / "b.stream.jsonl")


def test_what_is_asked_of_one_stream_is_given_back() -> None:
    assert one(CALL, 1, lambda named: named.recording) is CALL


def test_every_formula_has_its_row() -> None:
    found = tables.formulas()
    assert found[found.of == "stream"].metric.tolist() == list(FORMULAS)
    assert found[found.of == "phase"].formula.tolist() == list(PHASE_FORMULAS.values())
    units = dict(zip(found.metric, found.unit, strict=True))
    assert (units["ttft_s"], units["output_tokens_per_s"]) == ("s", "tokens/s")


def test_pandas_answers_what_a_table_is_for() -> None:
    found = tables.streams([CALL, faults.stall(CALL, after=5, seconds=30), STREAMS["cut"]])
    assert found.complete.mean() == pytest.approx(2 / 3)
    assert found[found.stalls_count > 0].index.tolist() == [1]
    assert found.groupby("state").ttfc_s.median().index.tolist() == [
        "INCOMPLETE",
        "VALIDATED_PROPOSAL",
    ]
