"""What an answer is meant to say, before any wire format: its parts, and how to write them down.

Values only. The names are the Claude API's, which has a block for each of them; the other formats
say the same with fewer. Read next: `claude_writer.py`, which writes them down.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "Content",
    "OtherBlock",
    "Part",
    "RedactedThinking",
    "ServerToolCall",
    "ServerToolResult",
    "Style",
    "Text",
    "Thinking",
    "ToolCall",
]

#: Content to be cut into fragments by the seed, or the fragments themselves.
Content = str | tuple[str, ...]


class Text(msgspec.Struct, frozen=True):
    """Visible text, and what it cites."""

    text: Content
    citations: tuple[dict[str, Any], ...] = ()


class Thinking(msgspec.Struct, frozen=True):
    """Thinking and the signature that proves it; the text is empty where the API withholds it."""

    thinking: Content
    signature: str = ""


class RedactedThinking(msgspec.Struct, frozen=True):
    """Thinking that only the API can read."""

    data: str


class ToolCall(msgspec.Struct, frozen=True):
    """A tool for the client to run. Its input is a value, or the JSON text as it is streamed."""

    name: str
    input: dict[str, Any] | Content = ()
    id: str = ""


class ServerToolCall(msgspec.Struct, frozen=True):
    """A tool that the provider runs itself."""

    name: str
    input: dict[str, Any] | Content = ()
    id: str = ""


class ServerToolResult(msgspec.Struct, frozen=True):
    """What the provider's tool gave; it answers the call before it unless it names another."""

    type: str
    content: Any
    tool_use_id: str = ""


class OtherBlock(msgspec.Struct, frozen=True):
    """A block of any other type, known or not: its start, and its deltas."""

    block: dict[str, Any]
    deltas: tuple[dict[str, Any], ...] = ()


Part = (
    Text | Thinking | RedactedThinking | ToolCall | ServerToolCall | ServerToolResult | OtherBlock
)


class Style(msgspec.Struct, frozen=True):
    """How the content is written down; every choice here is legal, and means the same."""

    fragment: tuple[int, int] = (4, 14)  #: fewest and most characters in a delta
    first_empty: bool = True  #: a tool's first fragment is "", as real streams do
    pings: int = 1
    interleave: bool = False  #: blocks open side by side, instead of one after the other
    ascii: bool = False  #: \\u escapes instead of UTF-8
    newline: str = "\n"  #: or "\r\n", or "\r"
    chunking: str = "frame"  #: what one network read brings; see `synth.CHUNKING`
