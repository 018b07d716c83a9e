"""A stream's row has the documented columns, and what is not known is None, never 0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlab.analysis.doctor import Diagnosis, Finding, diagnose
from streamlab.analysis.judge import judge
from streamlab.analysis.metrics import PHASES, Metrics, Phase, Spread
from streamlab.analysis.report import report
from streamlab.analysis.rows import (
    MAX_RULES,
    MAX_TEXT,
    PHASE,
    STREAM_COLUMNS,
    WHOLE,
    stream_row,
    text_of,
)
from streamlab.streams import faults, synth
from streamlab.streams.catalogue import FAULTS
from streamlab.streams.recording import Chunk, Recording
from streamlab.wire.reader import WIRES
from tests.streams_for_tests import STOP, block, end, start, stop, stream, text

CALL = synth.change_label()
SICK = {name: fault.apply(CALL, 3) for name, fault in FAULTS.items()}
STREAMS = {
    "call": CALL,
    "thinking": synth.thinking_then_tool(),
    "empty": Recording(),
    "untimed": Recording.from_bytes(CALL.data),
    **{wire: synth.story(wire=wire) for wire in WIRES if wire in synth.WRITERS},
    **SICK,
}


def row_of(recording: Recording) -> dict[str, Any]:
    outcome = judge(recording)
    return stream_row(outcome, diagnose(outcome))


#: The type of a column -> what its values are in a row.
VALUES = {"string": str, "Int64": int, "float64": float, "boolean": bool, "list": list}


@pytest.mark.parametrize("recording", STREAMS.values(), ids=STREAMS)
def test_a_row_has_every_column_with_its_type_or_none(recording: Recording) -> None:
    row = row_of(recording)
    assert list(row) == list(STREAM_COLUMNS)
    for name, value in row.items():
        assert value is None or type(value) is VALUES[STREAM_COLUMNS[name].dtype], name


@pytest.mark.parametrize("recording", STREAMS.values(), ids=STREAMS)
def test_a_row_agrees_with_the_report(recording: Recording) -> None:
    row, told = row_of(recording), report(judge(recording), "a")
    same = ("wire", "bytes", "state", "complete", "ending", "stop_reason", "raw_stop_reason")
    assert {name: row[name] for name in same} == {name: told[name] for name in same}
    assert (row["frames"], row["segments"]) == (told["events"], len(told["segments"]))
    assert row["output_tokens"] == told["usage"]["output_tokens"]
    assert row["problems"] == len(told["problems"])
    metrics = told["metrics"]
    assert row["timed"] is (metrics is not None)
    for metric in WHOLE:
        assert row[metric.name] == at(metrics, metric.path), metric.name
    for phase in PHASES:
        given = metrics["phases"].get(phase) if metrics else None
        for metric in PHASE:
            known = at(given, metric.path)
            none = 0 if metrics and not given and metric.name == "content_events" else None
            assert row[f"{phase}_{metric.name}"] == (none if known is None else known)


def at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else value[name]
    return value


def test_every_metric_has_its_column() -> None:
    whole = {metric.path.split(".")[0] for metric in WHOLE}
    assert whole == set(Metrics.__struct_fields__) - {"phases"}
    assert {metric.path.split(".")[0] for metric in PHASE} == set(Phase.__struct_fields__)
    assert {metric.path.split(".")[1] for metric in WHOLE if metric.path.startswith("icl")} == set(
        Spread.__struct_fields__
    )


def test_without_times_no_timing_is_known() -> None:
    row = row_of(STREAMS["untimed"])
    names = [m.name for m in WHOLE] + [f"{p}_{m.name}" for p in PHASES for m in PHASE]
    assert {row[name] for name in names} == {None}
    assert set(names) <= set(STREAM_COLUMNS) and "icl_p90_s" in names and "text_tpot_s" in names


def test_an_answer_without_text_has_no_first_text_but_is_known_to_have_none() -> None:
    row = row_of(STREAMS["thinking"])
    assert (row["ttft_s"], row["text_ttfc_s"], row["text_stalls_count"]) == (None, None, None)
    assert row["text_content_events"] == 0


def test_seconds_have_a_unit_and_every_column_says_something() -> None:
    for name, column in STREAM_COLUMNS.items():
        assert column.says
        assert (column.unit == "s") == (name.endswith("_s") and not name.endswith("_per_s"))


def test_the_doctors_words_are_in_the_row() -> None:
    findings = tuple(Finding(f"rule-{n % 30}", "error", "x", n, 10 * n) for n in range(1, 99))
    outcome = judge(CALL)
    row = stream_row(outcome, Diagnosis("cut off", "", "network", (), (), "", findings))
    assert (row["verdict"], row["layer"]) == ("cut off", "network")
    assert (row["first_rule"], row["first_frame"], row["first_byte"]) == ("rule-1", 1, 10)
    assert row["rules"] == [f"rule-{n}" for n in range(1, MAX_RULES + 1)]
    sound = stream_row(outcome, Diagnosis("whole", "", "", (), (), ""))
    assert (sound["layer"], sound["first_rule"], sound["rules"]) == (None, None, [])


HOSTILE = [
    "m" * 10_000,
    "\ud800" * 1000,
    "\ud800 half",
    "<script>alert(1)</script>",
    "\x00\x1b[2J\u202e",
]


@pytest.mark.parametrize("model", HOSTILE, ids=lambda text: repr(text[:8]))
def test_a_stranger_s_words_are_clipped_and_can_be_written(model: str) -> None:
    data = stream([start(model=model), block(0), text(0, "Hi"), stop(0), end(), STOP])
    row = row_of(Recording((Chunk(0.1, data),), wire="claude", end_t=0.2))
    assert len(row["model"]) <= MAX_TEXT
    json.dumps(row, allow_nan=False)
    "".join(value for value in row.values() if isinstance(value, str)).encode()


def test_text_is_clipped_to_its_first_characters() -> None:
    assert text_of("abcdef", 4) == "abc…" and text_of("abcd", 4) == "abcd"
    assert text_of("") is None and text_of(None) is None


@pytest.mark.parametrize("count", [2**63, 10**30])
def test_a_count_that_no_column_can_hold_is_not_known(count: int) -> None:
    usage = {"input_tokens": 5, "output_tokens": count}
    data = stream([start(usage=usage), block(0), text(0, "Hi"), stop(0), end(usage=usage), STOP])
    row = row_of(Recording((Chunk(0.1, data),), wire="claude", end_t=0.2))
    assert (row["input_tokens"], row["output_tokens"]) == (5, None)


def test_a_stall_is_in_the_row() -> None:
    row = row_of(faults.stall(CALL, after=5, seconds=30))
    assert row["stalls_count"] == 1 and 30 <= row["stalls_longest_s"] < 31
    assert row["stalls_total_s"] == row["stalls_longest_s"]
