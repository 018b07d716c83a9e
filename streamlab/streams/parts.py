"""What an answer is meant to say, before any wire format: its parts, and how to write them down.

Values only. The names are the Claude API's, which has a block for each of them; the other formats
say the same with fewer (`gaps.py` lists what they can't say). Read next: `writing.py`, for what the
four writers share, and `claude_writer.py`, the first of them.
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
    refusal: bool = False  #: said in place of an answer, where a format has a field for that


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
    """How the content is written down; every choice here is legal, and means the same.

    A field that a wire format has no use for is not looked at, so one style serves all four. ""
    is what the vendor itself does.
    """

    fragment: tuple[int, int] = (4, 14)  #: fewest and most characters in a delta
    first_empty: bool = True  #: a tool's first fragment is "", as real streams do
    pings: int = 1  #: Claude
    comments: int = 0  #: Chat, Responses: keep-alives of a proxy, as lines that begin with ":"
    interleave: bool = False  #: parts side by side, instead of one after the other (not Gemini)
    ascii: bool = False  #: \\u escapes instead of UTF-8
    newline: str = ""  #: "\n", "\r\n" or "\r"; Gemini ends its lines with CRLF, the others with LF
    chunking: str = "frame"  #: what one network read brings; see `synth.CHUNKING`

    # What servers of one format do differently.
    usage: str = ""  #: Chat, Gemini: in each chunk, in the last one, or none: see `writing.USAGE`
    finish: str = ""  #: Chat, Gemini: the reason to stop in a chunk of its "own", or in the "last"
    repeat_ids: bool = False  #: Chat: a call's id and name in each of its deltas
    reasoning: str = "reasoning_content"  #: Chat: the field of the thinking, which is no standard
    form: str = "sse"  #: Gemini: "sse", or one JSON "array", as without `alt=sse`
    arguments: str = "whole"  #: Gemini: a call's input "whole", or by "path", as Vertex can
