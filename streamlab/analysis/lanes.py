"""The lanes: one stream along its bytes or its seconds, one line a segment, for a terminal.

    seconds       0.0       0.2       0.4
    frames                       ▂▄ ▂▂ █▂
    0 text                        ▒▒▒
    1 pay                            ████┤
    marks                        ▸      ✗┃
    state         PREVIEW ──────────────▌

Every column is the same stretch of the axis in every line. A colour never stands alone: shapes
tell the kinds apart in black and white, and where a terminal has no more than ASCII, letters do.
Read next: `picture.py`, which puts words under the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, log10
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from streamlab.analysis.judge import Outcome
from streamlab.analysis.plain import visible
from streamlab.analysis.timeline import Place, Span, Timeline
from streamlab.consumer.attempt import State

__all__ = ["ASCII", "COLOUR", "MAX_LANES", "UNICODE", "Lanes", "Signs", "row"]

#: Segments that are drawn before the rest is only counted.
MAX_LANES = 12

#: Frames in one column that fill it, at least: a single one must not look like many.
FULL = 4

#: Columns with a frame in them, at least, for a time axis to be worth drawing.
MIN_COLUMNS = 5


class Signs(NamedTuple):
    """The shapes of one picture."""

    fill: dict[str, str]  #: a segment's kind -> what its bar is made of
    mark: dict[str, str]
    density: str  #: from nothing to most
    lost: str  #: the end of a segment that never stopped
    end: str
    silence: str
    state: str
    unnamed: str  #: a state whose stretch is too short for its name
    passed: str
    failed: str
    unchecked: str
    arrow: str
    dot: str


UNICODE = Signs(
    fill={"text": "▒", "thinking": "░", "tool_call": "█", "other": "▚"},
    mark={"start": "▸", "reason": "◆", "marker": "■", "error": "✗", "warning": "!", "note": "·"},
    density=" ▁▂▃▄▅▆▇█",
    lost="┤",
    end="┃",
    silence="┄",
    state="─",
    unnamed="▌",
    passed="✓",
    failed="✗",
    unchecked="–",  # noqa: RUF001 (an en dash is meant)
    arrow="→",
    dot=" · ",
)

ASCII = Signs(
    fill={"text": "=", "thinking": "~", "tool_call": "#", "other": "%"},
    mark={"start": ">", "reason": "r", "marker": "M", "error": "X", "warning": "!", "note": "."},
    density=" .:-=+*#@",
    lost="[",
    end="|",
    silence=".",
    state="-",
    unnamed="#",
    passed="ok",
    failed="NO",
    unchecked="-",
    arrow="->",
    dot=", ",
)

MEANING = {
    "start": "message start",
    "reason": "stop reason",
    "marker": "final marker",
    "error": "error",
    "warning": "warning",
    "note": "note",
}

#: The mark that stays where two fall on the same column.
RANK = ("note", "start", "reason", "marker", "warning", "error")

COLOUR: dict[str, str] = {
    "text": "cyan",
    "thinking": "magenta",
    "tool_call": "yellow",
    "other": "blue",
    "start": "",
    "reason": "bold",
    "marker": "bold green",
    "error": "bold red",
    "warning": "yellow",
    "note": "dim",
    State.PREVIEW: "dim",
    State.MESSAGE_COMPLETE: "bold green",
    State.VALIDATED_PROPOSAL: "bold green",
    State.HELD: "bold yellow",
    State.INCOMPLETE: "bold yellow",
    State.ABORTED: "bold yellow",
    State.INVALID: "bold red",
}

HOW_ENDED = {
    "eof": "clean end",
    "cut": "cut off",
    "reset": "reset",
    "timeout": "timeout",
    "cancelled": "cancelled by us",
}


def row(label: str, cells: Text, width: int, style: str = "") -> Text:
    """A line that begins with its label, in `width` cells."""
    if cell_len(label) > width:
        label = set_cell_size(label, width - 1) + "…"
    return Text.assemble((set_cell_size(label, width), style), "  ", cells)


class Lanes:
    """Draw the lanes of one stream, `width` cells wide, of which `labels` for the labels."""

    def __init__(
        self, outcome: Outcome, timeline: Timeline, width: int, labels: int, signs: Signs
    ) -> None:
        self.outcome, self.timeline, self.signs = outcome, timeline, signs
        self.labels = labels
        self.columns = max(20, width - labels - 3)  # the end has a column of its own
        self.by_time = timeline.timed and self._spread_in_time()
        self.extent = timeline.end.t if self.by_time else timeline.end.byte

    def _spread_in_time(self) -> bool:
        """Whether a time axis shows anything: it does not where all came in one burst."""
        metrics, end = self.outcome.metrics, self.timeline.end.t
        if metrics is not None and metrics.stalls.count:
            return True
        columns = self.timeline.over_time.columns(self.columns, end) if end else []
        return sum(map(bool, columns)) >= min(MIN_COLUMNS, self.outcome.frames)

    def lines(self) -> list[Text]:
        """All of them, the axis first; none where there is nothing to draw."""
        if not (self.extent and self.outcome.frames):
            return []
        spans = list(self.timeline.spans.values())
        hidden = max(0, len(spans) - MAX_LANES) + self.timeline.more_spans
        lines = [self._axis(), self._density(), *map(self._lane, spans[:MAX_LANES])]
        if hidden:
            lines.append(self._row(f"and {hidden} more", Text()))
        return [*lines, *self._silences(), self._marks(), self._states()]

    def _row(self, label: str, cells: Text, style: str = "") -> Text:
        return row(label, cells, self.labels, style)

    def _column(self, x: float) -> int:
        return min(int(x / self.extent * self.columns), self.columns - 1)

    def _at(self, place: Place) -> int:
        return self._column(place.t if self.by_time else place.byte)

    def _axis(self) -> Text:
        """Round numbers over their columns."""
        cells = [" "] * self.columns
        free = 0
        for value, label in ticks(self.extent, max(2, self.columns // 12), self.by_time):
            at = self._column(value)
            if at >= free and at + len(label) <= self.columns:
                cells[at : at + len(label)] = label
                free = at + len(label) + 1
        name = "seconds" if self.by_time else "bytes"
        return self._row(name, Text("".join(cells), "dim"), "dim")

    def _density(self) -> Text:
        density = self.timeline.over_time if self.by_time else self.timeline.over_bytes
        counts = density.columns(self.columns, self.extent)
        scale, most = self.signs.density, max(*counts, FULL)
        cells = "".join(scale[ceil(count / most * (len(scale) - 1))] for count in counts)
        return self._row("frames", Text(cells), "dim")

    def _lane(self, span: Span) -> Text:
        colour, first, last = COLOUR[span.kind], self._at(span.first), self._at(span.last)
        cells = Text(" " * first).append(self.signs.fill[span.kind] * (last - first + 1), colour)
        if not span.stopped:
            cells.append(self.signs.lost, "bold red")
        return self._row(visible(f"{span.id} {span.name}"), cells, colour)

    def _silences(self) -> Iterator[Text]:
        """The stalls, where there are any: only a timed recording can have them."""
        stalls = self.outcome.metrics.stalls if self.outcome.metrics else None
        if stalls is None or not stalls.count or not self.by_time:
            return
        cells = [" "] * self.columns
        for start, lasted in zip(stalls.at, stalls.lasted_s, strict=True):
            for at in range(self._column(start), self._column(start + lasted) + 1):
                cells[at] = self.signs.silence
        yield self._row("stalled", Text("".join(cells), "red"), "red")

    def _marks(self) -> Text:
        places: dict[int, str] = {}
        for mark in self.timeline.marks:
            at = self._at(mark.at)
            places[at] = max(places.get(at, "note"), mark.kind, key=RANK.index)
        cells = Text()
        for at in range(self.columns):
            kind = places.get(at)
            cells.append(self.signs.mark[kind] if kind else " ", COLOUR[kind] if kind else "")
        return self._row("marks", cells.append(self.signs.end), "dim")

    def _states(self) -> Text:
        """The states in turn, each named where its stretch has room for the name."""
        changes = self.timeline.states(self.outcome.attempt)
        starts = [self._at(change.at) for change in changes]
        cells = Text()
        for change, start, stop in zip(changes, starts, [*starts[1:], self.columns], strict=True):
            name = change.attempt.state.value
            room = stop - start
            named = f"{name} ".ljust(room, self.signs.state)
            cells.append(
                named if room > len(name) else self.signs.unnamed * room, COLOUR.get(name, "")
            )
        return self._row("state", cells, "dim")

    def legend(self) -> Text:
        """What the marks mean that occur."""
        seen = {mark.kind for mark in self.timeline.marks}
        meaning = {**MEANING, "reason": f"stop reason {self.outcome.turn.facts.stop_reason}"}
        words = [f"{self.signs.mark[kind]} {meaning[kind]}" for kind in meaning if kind in seen]
        if any(not span.stopped for span in self.timeline.spans.values()):
            words.append(f"{self.signs.lost} never stopped")
        words.append(f"{self.signs.end} {HOW_ENDED[self.outcome.ending]}")
        return Text("  ".join(words), "dim")


def ticks(extent: float, most: int, fractions: bool) -> Iterator[tuple[float, str]]:
    """Round numbers from 0 on, about `most` of them, with how they are written."""
    rough = extent / most
    power = 10.0 ** floor(log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough * 0.999)
    step = step if fractions else max(1.0, step)
    digits = max(0, -floor(log10(step)))
    for n in range(int(extent / step) + 1):
        yield n * step, f"{n * step:,.{digits}f}"
