"""What counts as content, event by event; `metrics.py` defines it.

Non-empty text, thinking or tool input, the name of a tool, or a part of another kind. A test holds
this to the meter's own count.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamlab.wire.events import (
    Attached,
    Event,
    InputDelta,
    SegmentStarted,
    SegmentStopped,
    TextDelta,
    ThinkingDelta,
)

__all__ = ["Content"]

#: Event -> the phase whose content it is, where it is not empty.
PHASE_OF: dict[type, str] = {TextDelta: "text", ThinkingDelta: "thinking", InputDelta: "tool"}


class Content:
    """Tell the content of one stream from all else, frame by frame."""

    def __init__(self) -> None:
        self._others: set[str] = set()  # open segments of another kind: all they hold is content
        self._begun = ""  # the one that this frame began; what it begins with is counted once

    def phases(self, events: Iterable[Event]) -> list[str]:
        """For each event of one frame its phase: "thinking", "text", "tool", "other", or ""."""
        self._begun = ""
        return [self._phase(event) for event in events]

    def _phase(self, event: Event) -> str:
        phase = PHASE_OF.get(type(event))
        if phase is not None:
            return phase if event.text else ""  # type: ignore[union-attr]
        if isinstance(event, SegmentStarted):
            if event.kind == "tool_call" and event.name:
                return "tool"
            if event.kind == "other":
                self._others.add(event.segment)
                self._begun = event.segment
                return "other"
        elif isinstance(event, Attached):
            later = event.segment in self._others and event.segment != self._begun
            return "other" if later else ""
        elif isinstance(event, SegmentStopped):
            self._others.discard(event.segment)
        return ""
