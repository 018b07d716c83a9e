"""Recordings as pandas tables: chunks, frames, events and segments of one stream; many streams.

`COLUMNS` says what each column of each table is, with its type and its unit; a table has these
columns and types also when it is empty. Seconds count from the request, offsets from the stream's
first byte, numbers from 1. What is not known is NaN or NA, never 0. A read without a time came with
the one before it. Each table is made in one pass, and a row keeps no more than `MAX_TEXT`
characters of a text (its length is a column of its own).

    chunks, frames, events, segments: of one recording, or of one stream of a file
    streams: a row for each of many; formulas: what each timing means

Read next: `rows.py`, the row of a stream.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from streamlab.analysis.columns import COLUMNS
from streamlab.analysis.content import Content
from streamlab.analysis.doctor import diagnose
from streamlab.analysis.given import Given, Many, Named, each, one
from streamlab.analysis.judge import judge
from streamlab.analysis.meter import DIGITS
from streamlab.analysis.metrics import FORMULAS, PHASE_FORMULAS
from streamlab.analysis.rows import MAX_TEXT, stream_row, text_of
from streamlab.consumer.turn import Segment
from streamlab.errors import WireError
from streamlab.streams.recording import Chunk
from streamlab.wire import events as e
from streamlab.wire.reader import Read
from streamlab.wire.sse import Frame

__all__ = ["COLUMNS", "chunks", "events", "formulas", "frames", "segments", "streams"]

Row = dict[str, Any]

#: Characters kept of the name of a file, and of why it could not be read.
MAX_NAME = 1000


def chunks(given: Given, stream: int = 1) -> Any:
    """The network reads of one stream, as a DataFrame."""
    return _watched(_Chunks("chunks"), given, stream)


def frames(given: Given, stream: int = 1) -> Any:
    """The frames of one stream, as a DataFrame."""
    return _watched(_Frames("frames"), given, stream)


def events(given: Given, stream: int = 1) -> Any:
    """What the frames of one stream state, event by event, as a DataFrame."""
    return _watched(_Events("events"), given, stream)


def segments(given: Given, stream: int = 1) -> Any:
    """The parts of one answer, in the order in which they started, as a DataFrame."""
    watch, table = _Places("segments"), Table("segments")
    outcome = one(given, stream, lambda named: judge(named.recording, watch=watch))
    for segment in outcome.turn.segments:
        table.add(**watch.row(segment))
    return table.frame()


def streams(given: Many) -> Any:
    """A row for each stream of a file, of many, or of a mapping from names, as a DataFrame.

    A file that cannot be read gets a row that says why, and the others still get theirs.
    """
    table, failed = Table("streams"), list[tuple[str, str]]()
    for named in each(given, failed):
        _add_errors(table, failed)
        _add_stream(table, named)
    _add_errors(table, failed)
    return table.frame()


def formulas() -> Any:
    """What each timing means, as a DataFrame."""
    table = Table("formulas")
    for of, given in (("stream", FORMULAS), ("phase", PHASE_FORMULAS)):
        for metric, formula in given.items():
            table.add(metric=metric, formula=formula, unit=_unit(metric), of=of)
    return table.frame()


def _unit(metric: str) -> str | None:
    """The unit of a metric, by the end of its name."""
    if metric.endswith("_per_s"):
        return "tokens/s"
    return "s" if metric.endswith("_s") else None


def _add_stream(table: Table, named: Named) -> None:
    about = named.about
    told: Row = {"file": text_of(named.name, MAX_NAME), "entry": text_of(about.where)}
    told |= {"at": text_of(about.at), "status": about.status}
    try:
        outcome = judge(named.recording)
    except WireError as why:
        table.add(**told, error=text_of(str(why), MAX_NAME))
    else:
        table.add(**told, **stream_row(outcome, diagnose(outcome)))


def _add_errors(table: Table, failed: list[tuple[str, str]]) -> None:
    for name, why in failed:
        table.add(file=text_of(name, MAX_NAME), error=text_of(why, MAX_NAME))
    failed.clear()


# --- Tables ---------------------------------------------------------------------------------------


class Table:
    """The columns of a table, which grow row by row."""

    def __init__(self, name: str) -> None:
        self.documented = COLUMNS[name]
        self.columns: dict[str, list[Any]] = {column: [] for column in self.documented}

    def add(self, **cells: Any) -> None:
        """One more row; what is not given is not known."""
        for name, column in self.columns.items():
            column.append(cells.get(name))

    def frame(self) -> Any:
        """A DataFrame with the columns and the types that are documented."""
        pandas: Any = import_module("pandas")  # it ships no types
        dtypes = {name: column.dtype for name, column in self.documented.items()}
        series = {
            name: pandas.Series(self.columns[name], dtype="object" if dtype == "list" else dtype)
            for name, dtype in dtypes.items()
        }
        return pandas.DataFrame(series)


class _Watch:
    """Is told each read by `judge`, and keeps the rows of one table."""

    def __init__(self, name: str) -> None:
        self.table, self.content = Table(name), Content()
        self.last: float | None = None  # when content came last
        self.chunk = self.at = self.count = 0  # reads so far, bytes, events
        self.t: float | None = None

    def __call__(self, chunk: Chunk, reads: list[Read]) -> None:
        """Take one read; the last one has no bytes, and is the end."""
        before, self.t = self.t, self.t if chunk.t is None else chunk.t
        if chunk.data:
            self.chunk += 1
        self.take(chunk, reads, before)
        self.at += len(chunk.data)

    def take(self, chunk: Chunk, reads: list[Read], before: float | None) -> None:
        """Make the rows of one read; `before` is when the one before it came."""
        raise NotImplementedError


class _Chunks(_Watch):
    def take(self, chunk: Chunk, reads: list[Read], before: float | None) -> None:
        stated = [event for _, found in reads for event in found]
        content = sum(bool(phase) for _, found in reads for phase in self.content.phases(found))
        if chunk.data:
            self.table.add(
                chunk=self.chunk,
                t_s=self.t,
                gap_s=_gap(self.t, before),
                start=self.at,
                bytes=len(chunk.data),
                frames=sum(frame is not None for frame, _ in reads),
                events=len(stated),
                content_events=content,
            )


class _Frames(_Watch):
    def take(self, chunk: Chunk, reads: list[Read], before: float | None) -> None:
        for frame, found in reads:
            if frame is not None:
                self.table.add(
                    frame=frame.number,
                    chunk=self.chunk,
                    t_s=self.t,
                    start=frame.start,
                    bytes=frame.end - frame.start,
                    name=text_of(frame.event),
                    data_bytes=len(frame.data),
                    data=text_of(frame.data[: 8 * MAX_TEXT].decode("utf-8", "replace")),
                    events=[type(event).__name__ for event in found],
                )


class _Events(_Watch):
    def take(self, chunk: Chunk, reads: list[Read], before: float | None) -> None:
        for frame, found in reads:
            for event, phase in zip(found, self.content.phases(found), strict=True):
                self.count += 1
                self.table.add(**self._row(frame, event, phase))

    def _row(self, frame: Frame | None, event: e.Event, phase: str) -> Row:
        gap = None
        if phase:
            gap, self.last = _gap(self.t, self.last), self.t
        text = _TEXT.get(type(event), _nothing)(event)
        return {
            "event": self.count,
            "frame": None if frame is None else frame.number,
            "chunk": self.chunk or None,
            "t_s": self.t,
            "kind": type(event).__name__,
            "segment": text_of(getattr(event, "segment", None)),
            "phase": phase or None,
            "gap_s": gap,
            "characters": len(text) if isinstance(event, _TEXTS) else None,
            "text": text_of(text),
            "rule": text_of(getattr(event, "rule", None)),
            "severity": getattr(event, "severity", None),
        }


class _Places(_Watch):
    """Where each segment was."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.places: dict[str, Row] = {}

    def take(self, chunk: Chunk, reads: list[Read], before: float | None) -> None:
        for frame, found in reads:
            for event, phase in zip(found, self.content.phases(found), strict=True):
                segment = getattr(event, "segment", None)
                if isinstance(event, e.SegmentStarted):
                    self.places.setdefault(event.segment, self._started(frame))
                place = self.places.get(segment) if segment is not None else None
                if place is None:
                    continue
                place["end_s"] = self.t
                if frame is not None:
                    place |= {"last_frame": frame.number, "end": frame.end}
                if phase:
                    place["content_events"] += 1
                    if place["content_events"] == 1:
                        place["first_content_s"] = self.t

    def _started(self, frame: Frame | None) -> Row:
        place: Row = {"content_events": 0, "first_content_s": None, "start_s": self.t}
        if frame is not None:
            place |= {"first_frame": frame.number, "start": frame.start}
        return place

    def row(self, segment: Segment) -> Row:
        """The row of a segment of the turn that came of it."""
        start, text = segment.start, segment.text
        return {
            "segment": text_of(segment.id),
            "kind": segment.kind,
            "type": text_of(start.type),
            "name": text_of(start.name),
            "call_id": text_of(start.call_id),
            "choice": start.choice,
            "server": start.server if segment.kind == "tool_call" else None,
            "status": segment.status,
            "error": text_of(segment.error),
            "characters": len(text),
            "text": text_of(text),
            **self.places.get(segment.id, {}),
        }


#: Event -> what it says, for the kinds that say something.
_TEXTS = (e.TextDelta, e.ThinkingDelta, e.InputDelta, e.SignatureDelta, e.Restated)
_TEXT: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys(_TEXTS, lambda event: event.text),
    e.MessageStarted: lambda event: event.model,
    e.SegmentStarted: lambda event: event.name or event.type or event.kind,
    e.Identified: lambda event: event.name or event.call_id,
    e.Attached: lambda event: event.name,
    e.StopReported: lambda event: event.reason,
    e.ProviderError: lambda event: f"{event.type}: {event.message}",
    e.Unknown: lambda event: event.type,
    e.Problem: lambda event: event.message,
    e.Ambiguous: lambda event: event.message,
    e.BoundExceeded: lambda event: event.bound,
    e.StreamEnded: lambda event: event.ending,
}


def _nothing(event: e.Event) -> str:
    return ""


def _gap(t: float | None, before: float | None) -> float | None:
    return None if t is None or before is None else round(t - before, DIGITS)


def _watched(watch: _Watch, given: Given, stream: int) -> Any:
    one(given, stream, lambda named: judge(named.recording, watch=watch))
    return watch.table.frame()
