"""The facts that a stream can state, the same for every wire format.

Frozen values without behaviour: a consumer dispatches on the type. Nothing after `wire/` knows a
vendor. An event names its segment by an id that is fixed before any content arrives; text is
never deduplicated, and an `Unknown` is kept but grants neither completion nor authority.

Truncation, a provider's own error and the end of the stream are events too, not exceptions: the
consumer must still decide what they mean for the answer.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Severity = Literal["error", "warning", "note"]
Kind = Literal["text", "thinking", "tool_call", "other"]

#: How the transport stopped: clean; inside the HTTP framing; torn down; too slow; by our own wish.
ENDINGS = ("eof", "cut", "reset", "timeout", "cancelled")

#: One vocabulary of stop reasons for all wire formats.
STOP_REASONS = (
    "end_turn",
    "tool_use",
    "stop_sequence",
    "max_tokens",
    "context_window",
    "refusal",
    "pause_turn",
    "content_filter",
    "error",
    "other",
)


class MessageStarted(msgspec.Struct, frozen=True):
    """The answer has an id and a model; nothing more is promised."""

    id: str
    model: str


class SegmentStarted(msgspec.Struct, frozen=True):
    """One part of the answer begins; its id never changes from here on."""

    segment: str
    kind: Kind
    at: int  #: frame number
    type: str = ""  #: the vendor's own name for the part
    name: str = ""  #: of the tool, for a tool call
    call_id: str = ""
    server: bool = False  #: True where the provider runs the tool itself
    choice: int = 0  #: which of several answers to one request; only number 0 is judged
    form: Literal["json", "text"] = "json"  #: of a tool call's input
    returned: bool = True  #: False where the vendor does not want it back in the next request


class Identified(msgspec.Struct, frozen=True):
    """A tool call's name or id that came after its start; "" leaves what is known."""

    segment: str
    name: str = ""
    call_id: str = ""


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """Visible text to append."""

    segment: str
    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, gc=False):
    """Thinking to append; shown apart, returned byte for byte."""

    segment: str
    text: str


class InputDelta(msgspec.Struct, frozen=True, gc=False):
    """A fragment of a tool call's input, as JSON text. A fragment means nothing by itself."""

    segment: str
    text: str


class SignatureDelta(msgspec.Struct, frozen=True, gc=False):
    """Opaque proof of a thinking segment; it survives byte for byte or is worthless."""

    segment: str
    text: str


class Attached(msgspec.Struct, frozen=True):
    """Something else that belongs to a segment: a citation, redacted data, a whole result."""

    segment: str
    name: str
    value: Any


class Restated(msgspec.Struct, frozen=True):
    """The whole content of a segment, by an authority over its deltas; it takes their place."""

    segment: str
    text: str


class SegmentStopped(msgspec.Struct, frozen=True):
    """The part is whole, so a tool's input may be *parsed*. The answer is not whole yet."""

    segment: str
    at: int


class StopReported(msgspec.Struct, frozen=True):
    """Why the model stopped, in our vocabulary and in the vendor's."""

    reason: str
    raw: str
    at: int
    sequence: str | None = None
    details: Any = None


class Tokens(msgspec.Struct, frozen=True, gc=False):
    """Token counts, in one meaning for all wire formats; None where the stream gives none."""

    input: int | None = None
    output: int | None = None  #: with the thinking, also where the vendor counts it apart
    thinking: int | None = None


class UsageReported(msgspec.Struct, frozen=True):
    """Token counts so far; later values replace earlier ones, field by field, never add."""

    usage: dict[str, Any]  #: as the vendor words it
    tokens: Tokens = Tokens()


class MessageCompleted(msgspec.Struct, frozen=True):
    """The format's own final marker, after a whole and valid sequence."""

    at: int


class ProviderError(msgspec.Struct, frozen=True):
    """The provider says that it failed, in whatever shape; HTTP may have said 200 before."""

    type: str
    message: str
    at: int


class KeepAlive(msgspec.Struct, frozen=True):
    """Proof of life, not of progress."""


class Unknown(msgspec.Struct, frozen=True):
    """An event, block or delta that is documented to be possible and not known here."""

    type: str
    at: int


class Problem(msgspec.Struct, frozen=True):
    """Something that the wire did which it should not, or which a person should know."""

    rule: str
    severity: Severity
    message: str
    at: int  #: frame number; 0 before the first


class Ambiguous(msgspec.Struct, frozen=True):
    """It cannot be proved whose fragment this is, so nothing is guessed: the attempt is HELD."""

    message: str
    at: int


class BoundExceeded(msgspec.Struct, frozen=True):
    """The stream ran over a bound of ours, in bytes, events or seconds."""

    bound: str
    limit: float
    found: float
    at: int


class StreamEnded(msgspec.Struct, frozen=True):
    """The transport stopped, in one of the `ENDINGS`. By itself it proves nothing."""

    ending: str
    at: int


Delta = TextDelta | ThinkingDelta | InputDelta | SignatureDelta
Event = (
    MessageStarted
    | SegmentStarted
    | Identified
    | Delta
    | Restated
    | Attached
    | SegmentStopped
    | StopReported
    | UsageReported
    | MessageCompleted
    | ProviderError
    | KeepAlive
    | Unknown
    | Problem
    | Ambiguous
    | BoundExceeded
    | StreamEnded
)
