"""What is made of the rows of a scan: rates, percentiles, goodput, objectives, the worst."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamlab import UsageError
from streamlab.analysis import corpus
from streamlab.analysis.corpus.rows import COLUMNS, schema

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


def frame_of(rows: list[dict[str, Any]], tmp_path: Path) -> Any:
    """A table with these rows, what they do not say being as in a whole, timed stream."""
    import pyarrow.parquet as pq

    usual = {
        **{"file": "x.sse", "stream": 1, "number": 0, "wire": "claude", "model": "m"},
        **{"state": "MESSAGE_COMPLETE", "complete": True, "timed": True, "stalls_count": 0},
        **{"buffered": False, "at_from": "file", "verdict": "whole"},
    }
    table = pa.Table.from_pylist([usual | row for row in rows], schema())
    pq.write_table(table, tmp_path / "rows.parquet")
    return corpus.read(tmp_path / "rows.parquet")


UNREAD = dict.fromkeys(("wire", "model", "state", "complete", "timed", "stalls_count", "buffered"))


def test_a_summary_counts_what_it_says(tmp_path: Path) -> None:
    frame = frame_of(
        [
            {"ttft_s": 0.1, "stalls_count": 2},
            {"ttft_s": 0.3, "buffered": True},
            {"ttft_s": 0.5, "complete": False, "state": "INCOMPLETE"},
            {"timed": False, "stalls_count": None, "buffered": None},
            {**UNREAD, "error": "no"},
        ],
        tmp_path,
    )
    found = corpus.summary(frame).iloc[0].to_dict()
    assert list(found) == list(corpus.SUMMARY)
    assert found["streams"] == 4
    assert found["complete"] == 0.75
    assert found["ttft_p50_s"] == pytest.approx(0.3)
    assert found["ttft_p90_s"] == pytest.approx(0.46)
    assert found["ttft_p99_s"] == pytest.approx(0.496)
    assert found["stalled"] == found["buffered"] == pytest.approx(1 / 3)
    assert found["good"] == 0.75
    assert found["errors"] == 1
    assert pd.isna(found["goodput_per_s"])


def test_groups_are_by_any_columns_and_what_is_not_known_is_one(tmp_path: Path) -> None:
    rows = [{"model": "a"}, {"model": "b"}, {"model": "b"}, {**UNREAD, "error": "no"}]
    table = corpus.summary(frame_of(rows, tmp_path), ["model"])
    assert [(None if pd.isna(key) else key) for key in table.index] == ["b", "a", None]
    assert table.index.name == "model"
    assert table["streams"].tolist() == [2, 1, 0]
    assert table["errors"].tolist() == [0, 0, 1]
    two = corpus.summary(frame_of(rows[:3], tmp_path), ["wire", "model"])
    assert [tuple(key) for key in two.index] == [("claude", "b"), ("claude", "a")]
    with pytest.raises(UsageError, match="no column 'x'"):
        corpus.summary(frame_of(rows, tmp_path), ["x"])


def test_one_column_can_be_given_by_its_name_alone(tmp_path: Path) -> None:
    frame = frame_of([{"model": "a"}, {"model": "b"}, {"model": "b"}], tmp_path)
    pd.testing.assert_frame_equal(corpus.summary(frame, "model"), corpus.summary(frame, ["model"]))
    assert corpus.summary(frame, "model").loc["b", "streams"] == 2


def test_groups_can_be_by_the_rules_that_were_found(tmp_path: Path) -> None:
    rows = [{"rules": ["a", "b"]}, {"rules": ["a", "b"]}, {"rules": []}, {**UNREAD, "error": "no"}]
    table = corpus.summary(frame_of(rows, tmp_path), "rules")
    assert [None if pd.isna(key) else key for key in table.index] == ["a b", "none", None]
    assert table["streams"].tolist() == [2, 1, 0]


def test_days_come_in_their_order_however_many_streams_each_has(tmp_path: Path) -> None:
    days = ("2026-11-25", "2026-11-23", "2026-11-24", "2026-11-24")
    rows = [{"day": day, "model": model} for day, model in zip(days, "abab", strict=True)]
    frame = frame_of([*rows, {**UNREAD, "day": None, "error": "no"}], tmp_path)
    by_day = corpus.summary(frame, "day")
    assert [None if pd.isna(day) else day for day in by_day.index] == [*sorted(set(days)), None]
    assert by_day["streams"].tolist() == [1, 2, 1, 0]
    both = corpus.summary(frame_of(rows, tmp_path), ["model", "day"])
    assert [day for _, day in both.index] == sorted(days)


def test_good_is_complete_and_within_every_objective(tmp_path: Path) -> None:
    rows = [
        {"ttft_s": 1.0, "output_tokens_per_s": 20.0},
        {"ttft_s": 1.1, "output_tokens_per_s": 20.0},
        {"ttft_s": 1.0, "output_tokens_per_s": 19.9},
        {"ttft_s": None, "output_tokens_per_s": 90.0},  # not known: meets nothing
        {"ttft_s": 0.1, "output_tokens_per_s": 90.0, "complete": False, "state": "HELD"},
    ]
    frame = frame_of(rows, tmp_path)
    objectives = {"ttft_s": 1.0, "output_tokens_per_s": 20}
    assert corpus.summary(frame, objectives=objectives)["good"].iloc[0] == 0.2
    assert corpus.summary(frame)["good"].iloc[0] == 0.8


def test_goodput_is_good_streams_over_the_time_they_took_together(tmp_path: Path) -> None:
    second = 1_000_000
    rows: list[dict[str, Any]] = [
        {"at": 100 * second, "at_from": "recording", "e2e_s": 1.0},
        {"at": 108 * second, "at_from": "recording", "e2e_s": 2.0},
        {"at": 109 * second, "at_from": "recording", "complete": False, "state": "HELD"},
    ]
    assert corpus.summary(frame_of(rows, tmp_path))["goodput_per_s"].iloc[0] == pytest.approx(0.2)
    rows[1]["at_from"] = "file"  # when it was saved is not when it was sent
    assert pd.isna(corpus.summary(frame_of(rows, tmp_path))["goodput_per_s"].iloc[0])


def test_goodput_is_that_of_the_metrics_on_the_same_streams(tmp_path: Path) -> None:
    """The share times the streams is what `metrics.goodput` counts."""
    from streamlab import judge, synth, write
    from streamlab.analysis.metrics import goodput

    root = tmp_path / "in"
    root.mkdir()
    outcomes = []
    for seed in range(12):
        recording = synth.story(seed=seed)
        write(recording, root / f"{seed:02}.stream.jsonl")
        outcomes.append(judge(recording))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as threads:
        corpus.scan(root, tmp_path / "out.parquet", executor=threads)
    frame = corpus.read(tmp_path / "out.parquet")
    objectives = {"ttft_s": 0.55, "e2e_s": 0.9}
    counted = goodput(outcomes, 1.0, **objectives)
    assert 0 < counted < 12
    assert corpus.summary(frame, (), objectives)["good"].iloc[0] * 12 == pytest.approx(counted)


def test_objectives_come_from_a_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "slo.toml"
    path.write_text("[objectives]\nttft_s = 1\ntext_icl_p99_s = 0.5\n", encoding="utf-8")
    assert corpus.objectives_of(path) == {"ttft_s": 1.0, "text_icl_p99_s": 0.5}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[objectives]\nttfts = 1\n", "no objective 'ttfts'; there are ttfc_s, ttft_s"),
        ("[objectives]\nmodel = 'm'\n", "no objective 'model'"),
        ("[objectives]\nttft_s = 'fast'\n", "'fast' is no number"),
        ("[objectives]\nttft_s = true\n", "True is no number"),
        ("[objectives]\nttft_s = nan\n", "nan is no number"),
        ("[objectives]\nttft_s = -1\n", "-1 is no number"),
        (f"[objectives]\nttft_s = {'9' * 400}\n", "999 is no number"),
        ("ttft_s = 1\n", r"no \[objectives\]"),
        ("[objectives]\n", r"no \[objectives\]"),
        ("[objectives", "not TOML"),
        ("\ufffe\udc80", "not TOML"),
    ],
)
def test_an_objective_that_is_none_is_one_clear_line(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "slo.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=why) as raised:
        corpus.objectives_of(path)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value).replace("not TOML", "")


def test_the_worst_come_first(tmp_path: Path) -> None:
    rows = [
        {"file": "fine", "verdict": "whole"},
        {"file": "held", "state": "HELD", "verdict": "refused"},
        {"file": "cut", "state": "INCOMPLETE", "verdict": "cut off", "stalls_longest_s": 1.0},
        {"file": "stalled", "state": "INCOMPLETE", "verdict": "cut off", "stalls_longest_s": 9.0},
        {"file": "bad", "stream": 2, "state": "INVALID", "verdict": "error", "first_rule": "r1"},
        {**UNREAD, "file": "pack.zip", "member": "a.sse", "error": "encrypted"},
    ]
    assert corpus.worst(frame_of(rows, tmp_path)) == [
        ("encrypted", "pack.zip#a.sse"),
        ("INVALID: error, r1", "bad (2)"),
        ("INCOMPLETE: cut off", "stalled"),
        ("INCOMPLETE: cut off", "cut"),
        ("HELD: refused", "held"),
    ]
    assert corpus.worst(frame_of(rows[:1], tmp_path)) == []


def test_what_is_no_table_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"no")
    for name in ("x.parquet", "none.parquet"):
        with pytest.raises(UsageError, match=name):
            corpus.read(tmp_path / name)


def test_an_empty_table_has_a_summary(tmp_path: Path) -> None:
    found = corpus.summary(frame_of([], tmp_path)).iloc[0]
    assert found["streams"] == 0 and pd.isna(found["complete"])
    assert len(corpus.summary(frame_of([], tmp_path), ["model"])) == 0
    assert set(COLUMNS) >= set(corpus.NEEDED)
