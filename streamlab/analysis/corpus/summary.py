"""What the rows of a scan answer: how many are whole, how long is the wait, what is good enough.

`read` gives them as a pandas DataFrame, `summary` puts them together by model, by day, by any of
their columns. Percentiles are over the streams whose recording has times; a share is of those that
can be in it. *Good* is a stream that is complete and meets every objective: a bound on one of its
metrics, which is the most that it may be (of `output_tokens_per_s`, the least).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlab.analysis.rows import STREAM_COLUMNS
from streamlab.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NEEDED", "SUMMARY", "objectives_of", "read", "summary", "worst"]

#: Objectives that are the least that a metric may be, not the most.
AT_LEAST = ("output_tokens_per_s",)

#: The largest bound: thirty years, or as many tokens a second.
MAX_BOUND = 1e9

#: What may be an objective: the timings, in seconds or tokens a second.
OBJECTIVES = tuple(
    name for name, column in STREAM_COLUMNS.items() if column.unit in ("s", "tokens/s")
)

#: Column of a summary -> what it says.
SUMMARY = {
    "streams": "streams that were read",
    "complete": "share of them whose answer is whole",
    "ttft_p50_s": "request sent → first visible text: the median",
    "ttft_p90_s": "the same: nine in ten are not slower",
    "ttft_p99_s": "the same: ninety-nine in a hundred",
    "stalled": "share of those with times that have a stall",
    "buffered": "share of those with times that look buffered",
    "good": "share of the streams that are complete and meet every objective",
    "goodput_per_s": "good streams a second, from the first request sent to the last content; NA "
    "where recordings do not say when their requests were sent",
    "errors": "files that cannot be read, or not to their end",
}

#: Columns that a summary and the list of the worst need, whatever they are grouped by.
NEEDED = (
    *("file", "member", "stream", "at", "at_from", "error", "state", "complete", "verdict"),
    *("first_rule", "timed", "ttft_s", "e2e_s", "stalls_count", "stalls_longest_s", "buffered"),
)

#: States from the worst on.
WORST = ("INVALID", "ABORTED", "INCOMPLETE", "HELD")


def read(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The rows of a scan, all columns or some; types that know NA, times in UTC."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        pa.string(): pd.StringDtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    try:
        table = pq.read_table(path, columns=columns)
    except (OSError, pa.ArrowException) as why:
        said = (why.strerror if isinstance(why, OSError) else None) or str(why)
        raise UsageError(f"{os.fspath(path)}: {said}") from None
    frame: pd.DataFrame = table.to_pandas(types_mapper=types.get)
    return frame


def objectives_of(path: str | os.PathLike[str]) -> dict[str, float]:
    """The objectives of a TOML file, its table `[objectives]`: a metric = its bound."""
    name = os.fspath(path)
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as why:
        raise UsageError(f"{name}: {why.strerror or why}") from None
    except (ValueError, RecursionError) as why:
        raise UsageError(f"{name}: not TOML: {why}") from None
    found = given.get("objectives")
    if not isinstance(found, dict) or not found:
        raise UsageError(f"{name}: no [objectives] with a metric and its bound, like ttft_s = 1.0")
    try:
        return _checked(found)
    except UsageError as why:
        raise UsageError(f"{name}: {why}") from None


def _checked(objectives: Mapping[str, Any]) -> dict[str, float]:
    for name, bound in objectives.items():
        if name not in OBJECTIVES:
            near = [each for each in OBJECTIVES if "_" not in each.removesuffix("_s")]
            known = ", ".join([*near, "output_tokens_per_s", "icl_p99_s", "stalls_longest_s"])
            raise UsageError(f"no objective {name!r}; there are {known}, … (seconds or tokens/s)")
        number = isinstance(bound, int | float) and not isinstance(bound, bool)
        if not number or not 0 <= bound <= MAX_BOUND:
            raise UsageError(f"objective {name}: {bound!r:.80} is no number of 0 or more")
    return {name: float(bound) for name, bound in objectives.items()}


def summary(
    frame: pd.DataFrame,
    by: str | Sequence[str] = (),
    objectives: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """One row for each group of a column, or of several; without `by`, one for all.

    Its columns are those of `SUMMARY`, its index is what the groups are by. With `day` among them,
    the rows are in that order, earliest first; otherwise the group with most streams comes first.
    Without objectives, to be complete is the only one. Raises `UsageError` for a column or an
    objective that there is not.
    """
    import pandas as pd

    by = [by] if isinstance(by, str) else list(by)
    checked = _checked(objectives or {})
    for name in by:
        if name not in frame.columns:
            raise UsageError(f"no column {name!r} to summarise by; such as model, wire, day, place")
    marked = frame.assign(good=_good(frame, checked))
    lists = [name for name in by if _is_list(name)]
    marked = marked.assign(**{name: marked[name].map(_listed).astype("string") for name in lists})
    if not by:
        return pd.DataFrame([_about(marked)], index=["all"])
    groups = marked.groupby(by, dropna=False, sort=True)
    rows = [(key, _about(group)) for key, group in groups]
    table = pd.DataFrame([about for _, about in rows], columns=list(SUMMARY))
    table.index = _index([key for key, _ in rows], by)
    if "day" in by:
        return table.sort_index(level="day", sort_remaining=False, kind="stable")
    return table.sort_values("streams", ascending=False, kind="stable")


def _is_list(name: str) -> bool:
    return name in STREAM_COLUMNS and STREAM_COLUMNS[name].dtype == "list"


def _listed(words: Sequence[str] | None) -> str | None:
    """A list as one text, which groups can be made by; None where it is not known."""
    return None if words is None else " ".join(words) or "none"


def _index(keys: list[tuple[Any, ...]], by: list[str]) -> pd.Index[Any]:
    """What the groups are by: the values of one column, or a tuple for each group."""
    import pandas as pd

    if len(by) > 1:
        return pd.MultiIndex.from_tuples(keys, names=by)
    return pd.Index([key[0] for key in keys], name=by[0])


def _good(frame: pd.DataFrame, objectives: Mapping[str, float]) -> pd.Series[bool]:
    """Which streams are good; a metric that is not known meets no objective."""
    good = frame["complete"].fillna(False).astype(bool)
    for name, bound in objectives.items():
        values = frame[name]
        good &= (values >= bound) if name in AT_LEAST else (values <= bound)
    return good


def _about(group: pd.DataFrame) -> dict[str, Any]:
    streams = group[group["state"].notna()]
    timed = streams[streams["timed"].fillna(False).astype(bool)]
    wait = timed["ttft_s"].dropna()
    p50, p90, p99 = (wait.quantile(q) if len(wait) else None for q in (0.5, 0.9, 0.99))
    good = int(streams["good"].sum())
    values = [
        len(streams),
        _share(streams["complete"].sum(), len(streams)),
        *(p50, p90, p99),
        _share((timed["stalls_count"] > 0).sum(), len(timed)),
        _share(timed["buffered"].sum(), len(timed)),
        _share(good, len(streams)),
        _rate(streams, good),
        int(group["error"].notna().sum()),
    ]
    return dict(zip(SUMMARY, values, strict=True))


def _share(part: Any, whole: int) -> float | None:
    return float(part) / whole if whole else None


def _rate(streams: pd.DataFrame, good: int) -> float | None:
    """Good streams a second; None where it is not known how long they took together."""
    if not len(streams) or not (streams["at_from"] == "recording").all():
        return None
    sent = streams["at"].astype("int64") / 1e6
    span = float((sent + streams["e2e_s"].fillna(0.0)).max() - sent.min())
    return good / span if span > 0 else None


def worst(frame: pd.DataFrame, most: int = 10) -> list[tuple[str, str]]:
    """The worst streams: (what is wrong, which): unreadable files, then by state, then by stall."""
    bad = frame[frame["error"].notna() | frame["state"].isin(WORST)]
    rank = {state: n for n, state in enumerate(WORST)}
    order = bad["state"].map(rank).fillna(-1).astype(int)
    keyed = bad.assign(order=order).sort_values(
        ["order", "stalls_longest_s"], ascending=[True, False], kind="stable"
    )
    return list(_named(keyed.head(most)))


def _named(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    import pandas as pd

    for row in rows.to_dict("records"):
        known = {name: value for name, value in row.items() if not _is_na(pd, value)}
        name = known["file"] + (f"#{known['member']}" if "member" in known else "")
        name += f" ({known['stream']})" if known["stream"] > 1 else ""
        why = known.get("error") or f"{known['state']}: {known.get('verdict', '')}"
        rule = known.get("first_rule", "")
        told = "error" in known or rule == known.get("verdict", "").replace(" ", "-")
        yield (why if told or not rule else f"{why}, {rule}"), name


def _is_na(pd: Any, value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
