"""One recording laid out for a view: columns of plain values, a row a frame and one for the end.

A view that must be fluid gets everything once, so what it gets must be small: a list a column
instead of an object a frame, a number instead of a name that comes ten thousand times, and a bound
on everything. The whole stream is judged and measured in any case; only what is *laid out* stops
at a bound, and then the last row says what is left out.

    frames      one row each: when it came, which bytes it is, what it means
    the end     the last row: how the transport stopped, bytes that no frame took, the last words

Read next: `laying_out.py`, which fills the columns; `comparison.py`, where two recordings differ.
"""

from __future__ import annotations

from typing import Any

import msgspec

from streamlab.analysis.doctor import Diagnosis, diagnose
from streamlab.analysis.judge import Outcome, judge
from streamlab.analysis.laying_out import (
    KINDS,
    LIMITS,
    Limits,
    Meaning,
    Sheet,
    problem_columns,
    shown,
)
from streamlab.analysis.metrics import Metrics
from streamlab.streams.importers import About
from streamlab.streams.recording import Recording, RecordingFile

__all__ = ["Inspection", "inspection"]

#: What a view lists of the timings: what it is called, its unit, where it is.
TIMINGS: tuple[tuple[str, str, str], ...] = (
    ("first content", "s", "ttfc_s"),
    ("first text", "s", "ttft_s"),
    ("first thinking", "s", "time_to_first_thinking_s"),
    ("first tool", "s", "time_to_first_tool_s"),
    ("gap between contents, median", "s", "icl_s.median"),
    ("gap, 90th percentile", "s", "icl_s.p90"),
    ("gap, 99th percentile", "s", "icl_s.p99"),
    ("gap, longest", "s", "icl_s.max"),
    ("time per output token", "s", "tpot_s"),
    ("last content", "s", "e2e_s"),
    ("from there to the final marker", "s", "settlement_lag_s"),
    ("output tokens a second", "1/s", "output_tokens_per_s"),
    ("stalls", "", "stalls.count"),
    ("silence in stalls", "s", "stalls.total_s"),
    ("content that came together", "share", "together"),
)


class Inspection(msgspec.Struct, frozen=True):
    """What a view is given of one recording. Lists in a dict are columns of one length."""

    name: str
    facts: dict[str, Any]  #: of the whole stream: wire, model, bytes, frames, ending, state, ...
    diagnosis: dict[str, Any]  #: a `Diagnosis` without its findings, which are problems here
    measures: list[list[Any]]  #: (name, unit, number or None)
    #: A row each: `t` (s since the request, or None), `start` and `end` (byte offsets; of the end's
    #: row what no frame took), `name` and `kind` (places in `names` and in `kinds`).
    frames: dict[str, list[Any]]
    #: What the frames state, in order: `row`, `type` (place in `types`), `segment` (place in the
    #: segments, or -1), `text`.
    events: dict[str, list[Any]]
    #: `id`, `kind`, `name`, `first` and `last` row, `stopped`, `size` (characters), `choice`.
    segments: dict[str, list[Any]]
    #: `row`, `severity`, `rule`, `says`; in the order of the rows.
    problems: dict[str, list[Any]]
    first: int  #: the row of the first problem that matters, or -1
    stalls: list[list[float]]  #: (when it began, how long it lasted), in seconds
    reads: dict[str, list[Any]]  #: `byte` at which each network read began; empty without times
    names: list[str]  #: the events' names, as the wire has them
    types: list[str]  #: the types of what frames state
    raw: str  #: the bytes that are laid out, a character each (Latin-1)
    left_out: str = ""  #: what is not laid out, in a sentence
    kinds: tuple[str, ...] = KINDS
    meaning: tuple[Meaning, ...] = ()  #: for a comparison; no view gets it

    @property
    def rows(self) -> int:
        """How many rows there are; the last one is the end."""
        return len(self.frames["start"])

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        value: dict[str, Any] = msgspec.to_builtins(self)
        del value["meaning"]
        return value


def inspection(
    recording: Recording | RecordingFile,
    name: str = "a recording",
    about: About = About(),  # noqa: B008 (frozen)
    limits: Limits = LIMITS,
) -> Inspection:
    """Read a recording once, and lay it out.

    Raises `WireError` where a file turns out not to be readable.
    """
    sheet = Sheet(limits)
    outcome = judge(recording, watch=sheet)
    sheet.finish(outcome)
    diagnosis = diagnose(outcome)
    problems, first = problem_columns(sheet, diagnosis, outcome)
    head = recording.header if isinstance(recording, RecordingFile) else recording
    return Inspection(
        name=shown(name, 120),
        facts=_facts(outcome, sheet, head, about),
        diagnosis=_diagnosis(diagnosis),
        measures=_measures(outcome),
        frames=sheet.frames,
        events=sheet.events,
        segments=sheet.segments,
        problems=problems,
        first=first,
        stalls=_stalls(outcome.metrics, limits),
        reads={"byte": sheet.reads if sheet.timed else []},
        names=list(sheet.names),
        types=list(sheet.types),
        raw=sheet.raw.decode("latin-1"),
        left_out=sheet.left_out(outcome.frames),
        meaning=tuple(sheet.meaning),
    )


def _facts(outcome: Outcome, sheet: Sheet, head: Any, about: About) -> dict[str, Any]:
    facts = outcome.turn.facts
    masked = ", ".join(f"{count} × {kind}" for kind, count in about.masked[:12])  # noqa: RUF001
    said = {
        "model": facts.model or head.model,
        "source": head.source if sheet.timed else "",
        "note": head.note,
        "truncated": outcome.truncated,
        "form": about.form,
        "where": about.where,
        "request": about.request,
        "at": about.at,
        "masked": masked,
        "why": outcome.attempt.why,
    }
    return {
        "wire": outcome.wire,
        "bytes": outcome.bytes,
        "frames": outcome.frames,
        "reads": sheet.reads_seen if sheet.timed else None,
        "timed": sheet.timed,
        "end_t": sheet.end_t,
        "ending": outcome.ending,
        "state": outcome.state.value,
        "said": outcome.attempt.said,
        "complete": outcome.complete,
        "stop_reason": facts.stop_reason,
        "status": about.status,
        **{key: shown(value, 400) for key, value in said.items()},
    }


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    texts = {
        key: getattr(diagnosis, key) for key in ("verdict", "says", "layer", "because", "advice")
    }
    lists = {key: getattr(diagnosis, key) for key in ("may", "may_not")}
    return {
        **{key: shown(text, 600) for key, text in texts.items()},
        **{key: [shown(each, 300) for each in texts] for key, texts in lists.items()},
    }


def _measures(outcome: Outcome) -> list[list[Any]]:
    tokens = outcome.turn.facts.tokens
    counts: list[list[Any]] = [
        ["frames", "", outcome.frames],
        ["bytes", "B", outcome.bytes],
        ["input tokens", "", tokens.input],
        ["output tokens", "", tokens.output],
    ]
    metrics = outcome.metrics
    timings = [] if metrics is None else [[*row[:2], _at(metrics, row[2])] for row in TIMINGS]
    return counts + timings


def _at(metrics: Metrics, path: str) -> float | None:
    value: Any = metrics
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return round(value, 9) if isinstance(value, float) else value


def _stalls(metrics: Metrics | None, limits: Limits) -> list[list[float]]:
    if metrics is None:
        return []
    found = zip(metrics.stalls.at, metrics.stalls.lasted_s, strict=True)
    return [[round(at, 6), round(lasted, 6)] for at, lasted in list(found)[: limits.problems]]
