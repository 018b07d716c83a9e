"""OpenAI Chat Completions: frames in, events out."""

from __future__ import annotations

from typing import Any

from .dialect import Dialect
from .events import Event
from .sse import Frame

__all__ = ["ChatReader"]


class ChatReader(Dialect):
    """Read one answer."""

    wire = "openai-chat"
    marker = "[DONE]"

    @classmethod
    def recognises(cls, event: str, payload: dict[str, Any]) -> bool:
        """Whether an event name and its payload can only be this wire format's."""
        return False

    def payload(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """The events that a payload states."""
        return ()

    def unfinished(self) -> str:
        """What is missing for the answer to be complete, in words; "" when nothing is."""
        return self.marker
