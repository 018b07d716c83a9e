"""One stream as one row of a table: what it says, what it is worth, and its timings, all scalars.

`STREAM_COLUMNS` names every column with its type and its unit, in order; `stream_row` fills them.
What is not known is None, never 0: a recording without times has no timings, and a stream without
usage no tokens. Names of metrics are those of `metrics.py`, flattened: `icl_s.p90` is `icl_p90_s`,
and the text's alone is `text_icl_p90_s`.

A row holds no more than `MAX_TEXT` characters of anything that a stranger wrote. No pandas here: a
scan of ten thousand files makes a row of each. Read next: `tables.py`, the tables of one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from streamlab.analysis.doctor import LAYERS, Diagnosis
from streamlab.analysis.judge import Outcome
from streamlab.analysis.metrics import FORMULAS, PHASE_FORMULAS, PHASES, Metrics, Phase
from streamlab.analysis.report import DIGITS, problems_of

__all__ = ["MAX_RULES", "MAX_TEXT", "STREAM_COLUMNS", "Column", "stream_row", "text_of"]

#: Characters kept of a text, and rules of a stream.
MAX_TEXT, MAX_RULES = 200, 20

#: What a column may be: pandas' names of its types; "list" holds lists of text.
DType = Literal["string", "Int64", "float64", "boolean", "list"]


class Column(NamedTuple):
    """One column of a table."""

    dtype: DType
    unit: str  #: "s", "bytes", ...; "" where there is none
    says: str


def text_of(value: str | None, most: int = MAX_TEXT) -> str | None:
    """A text for a table: clipped, and half of a character pair as an escape; "" is not known.

    >>> text_of("a\\ud800b"), text_of("long", 3), text_of("")
    ('a\\\\ud800b', 'lo…', None)
    """
    if not value:
        return None
    shown = value[: most + 1].encode("utf-8", "backslashreplace").decode()
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def stream_row(outcome: Outcome, diagnosis: Diagnosis) -> dict[str, Any]:
    """The row of one stream: every column of `STREAM_COLUMNS`, in its order."""
    row = {name: fact(outcome, diagnosis) for name, (_, fact) in FACTS.items()}
    row |= _filled(WHOLE, outcome.metrics)
    phases = outcome.metrics.phases if outcome.metrics else {}
    for name in PHASES:
        filled = _filled(PHASE, phases.get(name))
        if outcome.metrics and name not in phases:
            filled["content_events"] = 0  # that there was none is known
        row |= {f"{name}_{metric}": value for metric, value in filled.items()}
    return row


# --- What the stream says, and what it is worth ---------------------------------------------------


def _first(diagnosis: Diagnosis, field: str) -> Any:
    return None if diagnosis.first is None else getattr(diagnosis.first, field)


def _rules(diagnosis: Diagnosis) -> list[str]:
    found = dict.fromkeys(finding.rule for finding in diagnosis.findings)
    return [text_of(rule) or "" for rule in list(found)[:MAX_RULES]]


def _problems(outcome: Outcome) -> int:
    return len(problems_of(outcome)) + max(0, outcome.turn.facts.more_problems - 1)


def _tokens(outcome: Outcome, field: str) -> int | None:
    """A count, if a column can hold it: the counts of a stranger may be anything."""
    count: int | None = getattr(outcome.turn.facts.tokens, field)
    return None if count is None or count >= 2**63 else count


Fact = Callable[[Outcome, Diagnosis], Any]

FACTS: dict[str, tuple[Column, Fact]] = {
    "wire": (
        Column("string", "", "the wire format; NA where it was not recognised"),
        lambda o, d: o.wire,
    ),
    "model": (
        Column("string", "", "the model, as the stream names it"),
        lambda o, d: text_of(o.turn.facts.model),
    ),
    "frames": (
        Column("Int64", "", "frames of the stream; `show --json` calls them events"),
        lambda o, d: o.frames,
    ),
    "bytes": (Column("Int64", "bytes", "bytes of the stream"), lambda o, d: o.bytes),
    "state": (
        Column("string", "", "the state that the attempt ended in, in capitals"),
        lambda o, d: o.state.value,
    ),
    "complete": (
        Column("boolean", "", "whether the answer is whole, whatever the state"),
        lambda o, d: o.complete,
    ),
    "ending": (Column("string", "", "how the transport stopped"), lambda o, d: o.ending),
    "truncated": (
        Column("boolean", "", "whether the recording's file stops short"),
        lambda o, d: bool(o.truncated),
    ),
    "stop_reason": (
        Column("string", "", "why the model stopped, in one vocabulary for all wire formats"),
        lambda o, d: o.turn.facts.stop_reason,
    ),
    "raw_stop_reason": (
        Column("string", "", "the same in the vendor's word"),
        lambda o, d: text_of(o.turn.facts.raw_stop_reason),
    ),
    "segments": (Column("Int64", "", "segments that started"), lambda o, d: o.turn.started),
    "tool_calls": (
        Column("Int64", "", "tool calls that the client would run"),
        lambda o, d: len(o.turn.calls),
    ),
    "proposals": (
        Column("Int64", "", "calls that may be committed"),
        lambda o, d: len(o.proposals),
    ),
    "input_tokens": (
        Column("Int64", "tokens", "tokens of the request, from the usage"),
        lambda o, d: _tokens(o, "input"),
    ),
    "output_tokens": (
        Column("Int64", "tokens", "tokens of the answer with its thinking, from the usage"),
        lambda o, d: _tokens(o, "output"),
    ),
    "thinking_tokens": (
        Column("Int64", "tokens", "those of the thinking alone, where they are counted apart"),
        lambda o, d: _tokens(o, "thinking"),
    ),
    "verdict": (Column("string", "", "the doctor's verdict"), lambda o, d: text_of(d.verdict)),
    "layer": (
        Column("string", "", f"where the fault likely lies: {', '.join(LAYERS)}; NA for no fault"),
        lambda o, d: text_of(d.layer),
    ),
    "first_rule": (
        Column("string", "", "the rule of the doctor's first finding"),
        lambda o, d: text_of(_first(d, "rule")),
    ),
    "first_frame": (
        Column("Int64", "", "the number of its frame"),
        lambda o, d: _first(d, "frame"),
    ),
    "first_byte": (
        Column("Int64", "bytes", "the offset of that frame's first byte"),
        lambda o, d: _first(d, "byte"),
    ),
    "rules": (
        Column("list", "", f"the rules of all findings, each once, at most {MAX_RULES}"),
        lambda o, d: _rules(d),
    ),
    "problems": (
        Column("Int64", "", "problems of any severity that the reader met"),
        lambda o, d: _problems(o),
    ),
    "timed": (
        Column("boolean", "", "whether the recording has times; without, all below is NA"),
        lambda o, d: o.metrics is not None,
    ),
}


# --- The timings ----------------------------------------------------------------------------------


class Metric(NamedTuple):
    """One column of the timings, and where its value is: "icl_s.p90", in a `Metrics`."""

    name: str
    path: str
    column: Column


SPREAD = ("median", "p90", "p99", "max")


def _timing(name: str, says: str) -> Metric:
    return Metric(name, name, Column("float64", "s", says))


def _spread(says: str) -> Iterator[Metric]:
    for part in SPREAD:
        column = Column("float64", "s", f"{says.split(':')[0]}: {part}")
        yield Metric(f"icl_{part}_s", f"icl_s.{part}", column)


def _stalls(says: str) -> Iterator[Metric]:
    yield Metric("stalls_count", "stalls.count", Column("Int64", "", says))
    yield Metric("stalls_total_s", "stalls.total_s", Column("float64", "s", "all stalls together"))
    yield Metric("stalls_longest_s", "stalls.longest_s", Column("float64", "s", "the longest one"))


def _rate(says: str) -> Metric:
    return Metric("output_tokens_per_s", "output_tokens_per_s", Column("float64", "tokens/s", says))


def _together(formulas: Mapping[str, str]) -> Iterator[Metric]:
    yield Metric("buffered", "buffered", Column("boolean", "", formulas["buffered"]))
    for name in ("together", "held"):
        yield Metric(name, name, Column("float64", "", formulas[name]))


def _counted(says: str) -> Metric:
    return Metric("content_events", "content_events", Column("Int64", "", says))


WHOLE: tuple[Metric, ...] = (
    _timing("ttfc_s", FORMULAS["ttfc_s"]),
    _timing("ttft_s", FORMULAS["ttft_s"]),
    _timing("time_to_first_thinking_s", FORMULAS["time_to_first_thinking_s"]),
    _timing("time_to_first_tool_s", FORMULAS["time_to_first_tool_s"]),
    *_spread(FORMULAS["icl_s"]),
    _timing("tpot_s", FORMULAS["tpot_s"]),
    _timing("e2e_s", FORMULAS["e2e_s"]),
    _timing("settlement_lag_s", FORMULAS["settlement_lag_s"]),
    _rate(FORMULAS["output_tokens_per_s"]),
    *_stalls(FORMULAS["stalls"]),
    *_together(FORMULAS),
    _timing("longest_idle_s", FORMULAS["longest_idle_s"]),
    _timing("longest_wait_s", FORMULAS["longest_wait_s"]),
    _counted(FORMULAS["content_events"]),
)

PHASE: tuple[Metric, ...] = (
    _counted(PHASE_FORMULAS["content_events"]),
    _timing("ttfc_s", PHASE_FORMULAS["ttfc_s"]),
    _timing("e2e_s", PHASE_FORMULAS["e2e_s"]),
    *_spread(PHASE_FORMULAS["icl_s"]),
    _timing("tpot_s", PHASE_FORMULAS["tpot_s"]),
    _timing("settlement_lag_s", PHASE_FORMULAS["settlement_lag_s"]),
    _rate(PHASE_FORMULAS["output_tokens_per_s"]),
    *_stalls(PHASE_FORMULAS["stalls"]),
    *_together(PHASE_FORMULAS),
)


def _filled(metrics: tuple[Metric, ...], given: Metrics | Phase | None) -> dict[str, Any]:
    return {metric.name: _value(given, metric.path) for metric in metrics}


def _value(given: Metrics | Phase | None, path: str) -> Any:
    """A value at a path; None where a part of the way is. Seconds are to the nanosecond."""
    head, _, rest = path.partition(".")
    value = None if given is None else getattr(given, head)
    if rest:
        value = None if value is None else attrgetter(rest)(value)
    return round(value, DIGITS) if isinstance(value, float) else value


def _columns() -> Iterator[tuple[str, Column]]:
    yield from ((name, column) for name, (column, _) in FACTS.items())
    yield from ((metric.name, metric.column) for metric in WHOLE)
    for name, kind in PHASES.items():
        for metric in PHASE:
            yield (
                f"{name}_{metric.name}",
                metric.column._replace(says=f"{kind}: {metric.column.says}"),
            )


#: Name -> what the column is, in the order of the row. Each of `PHASES` has its own of `PHASE`.
STREAM_COLUMNS: dict[str, Column] = dict(_columns())
