"""A recording that the doctor has seen: for a notebook, as a text and as a small table.

The same recording gives the same text every time, and every word of a stranger is text in it.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from streamlab.analysis.doctor import Diagnosis, diagnose
from streamlab.analysis.judge import Outcome, judge
from streamlab.analysis.plain import clipped, visible
from streamlab.streams.importers import About, streams_in
from streamlab.streams.recording import Recording, RecordingFile

__all__ = ["Examined", "examined"]

#: Characters of a line.
MAX_LINE = 300

STYLE = (
    "border:1px solid var(--jp-border-color2, GrayText);border-radius:4px;padding:.5em .8em;"
    "max-width:60em;color:var(--jp-ui-font-color1, CanvasText);"
    "background:var(--jp-layout-color1, Canvas);font-family:var(--jp-ui-font-family, sans-serif)"
)
DIM = "color:var(--jp-ui-font-color2, GrayText);padding-right:1em;white-space:nowrap"
CELL = "color:inherit;text-align:left;vertical-align:top"


class Examined(msgspec.Struct, frozen=True):
    """What was judged, and what is to be said of it."""

    outcome: Outcome
    diagnosis: Diagnosis
    file: str = ""
    about: About = About()

    def __repr__(self) -> str:
        return "\n".join(f"{name:<9}{told}".rstrip() for name, told in self._rows())

    def _repr_html_(self) -> str:
        (_, head), *rows = self._rows()
        cells = "".join(
            f'<tr style="background:none"><td style="{CELL};{DIM}">{escape(name)}</td>'
            f'<td style="{CELL}">{escape(told)}</td></tr>'
            for name, told in rows
        )
        table = f'<table style="color:inherit;margin:.3em 0 0">{cells}</table>'
        return f'<div style="{STYLE}"><strong>{escape(head)}</strong>{table}</div>'

    def _rows(self) -> Iterator[tuple[str, str]]:
        """Name and text of each line; the first is the verdict."""
        found = self.diagnosis
        yield "verdict", found.verdict
        yield "state", self.outcome.state.value
        yield "says", clipped(found.says, MAX_LINE)
        if found.layer:
            yield "layer", f"{found.layer}: {found.because}"
        if (first := found.first) is not None:
            frame = f"frame {first.frame}" if first.frame else "the whole stream"
            byte = f", byte {first.byte}" if first.frame and first.byte is not None else ""
            yield "first", f"{first.rule} at {frame}{byte}"
        more = {"may": found.may, "may not": found.may_not, "advice": (found.advice,)}
        yield from ((name, "; ".join(words)) for name, words in more.items() if any(words))
        if self.file:
            where = f" ({visible(self.about.where)})" if self.about.where else ""
            yield "file", f"{visible(self.file)}{where}"


def examined(
    recording: Recording | RecordingFile | str | os.PathLike[str], **options: Any
) -> Examined:
    """Judge a recording, or the first stream of a file, and diagnose it."""
    if isinstance(recording, Recording | RecordingFile):
        outcome = judge(recording, **options)
        return Examined(outcome, diagnose(outcome))
    streams = streams_in(recording)
    try:
        opened = next(streams)
        outcome = judge(opened.recording, **options)
        more = sum(1 for _ in streams)
    finally:
        streams.close()  # type: ignore[attr-defined]
    outcome = msgspec.structs.replace(outcome, streams=1 + more)
    return Examined(outcome, diagnose(outcome), os.fspath(recording), opened.about)


def escape(text: str) -> str:
    """Escape for HTML; half a character cannot be written to a page."""
    return html.escape(visible(text).encode("utf-8", "replace").decode())
