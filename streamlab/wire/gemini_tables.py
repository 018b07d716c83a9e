"""What a chunk of a Gemini answer holds: kinds of parts, reasons to finish, the most common chunk.

Tables first; `gemini.py` is the grammar that uses them. Source: the types of the vendor's Python
SDK 3.6. A part that is not here is kept as "other", with all its fields.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .gemini_args import Arguments

__all__ = [
    "ATTACHED",
    "CHUNK",
    "FINISH",
    "FLAGS",
    "KEPT",
    "NUMBERED",
    "OTHER",
    "PARTS",
    "SERVER",
    "Call",
    "Candidate",
    "decode_chunk",
]

#: finishReason -> our word. Any other is "other".
FINISH = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "pause_turn",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
        "content_filter",
    ),
    **dict.fromkeys(
        ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR"),
        "content_filter",
    ),
    **dict.fromkeys(("ESCALATION", "PUP_LIMITED_DISABLED"), "content_filter"),
    **dict.fromkeys(
        ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"), "error"
    ),
    **dict.fromkeys(("MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"), "error"),
    **dict.fromkeys(("NO_IMAGE", "IMAGE_OTHER", "OTHER", "FINISH_REASON_UNSPECIFIED"), "other"),
}

#: The same as a number, which some clients keep; the vendor's two APIs agree on no others.
NUMBERED = ("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER")

#: The fields that are a call of a tool that the provider runs -> the tool's name, where it is one.
SERVER = {"executableCode": "code_execution", "toolCall": ""}

#: The fields that are kept as they are: results, media, files.
OTHER = frozenset(
    {"codeExecutionResult", "toolResponse", "functionResponse", "inlineData", "fileData"}
)

#: A part is one of these; whatever else is in it belongs to that one.
PARTS = frozenset({"text", "functionCall", *SERVER, *OTHER})

FLAGS = frozenset({"thought", "thoughtSignature", "partMetadata", "mediaResolution"})

#: Fields of a candidate that belong to its last part, and those kept even where none is open.
ATTACHED = ("safetyRatings", "logprobsResult", "avgLogprobs", "tokenCount")
KEPT = ("groundingMetadata", "urlContextMetadata")

#: What a payload has at least one of; a dict where any value will not do.
CHUNK = ("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId")


class Call(msgspec.Struct):
    """A call whose arguments are still coming."""

    segment: str
    name: str
    call_id: str  #: the vendor's own; "" where it gave none
    arguments: Arguments
    unclear: bool = False


class Candidate(msgspec.Struct):
    """One answer to the request, as far as it has come."""

    number: int
    parts: int = 0  #: how many segments have started
    open: str = ""  #: the segment that the last part is in, until another part begins
    run: str = ""  #: "text" or "thinking" where more of it belongs into that segment
    call: Call | None = None
    calls: int = 0  #: that the client would run
    finish: str = ""  #: the vendor's last reason
    late: bool = False  #: content has come since that reason

    @property
    def finished(self) -> bool:
        """Whether nothing more has to come."""
        return self.finish not in ("", "CONTINUATION")


class _Part(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str
    thought: bool = False


class _Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    parts: tuple[_Part]
    role: Literal["model"] = "model"


class _Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: _Content
    index: Literal[0] = 0
    safetyRatings: list[Any] = []  # older models send them with every piece


class _Chunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Nine frames in ten are this shape: one piece of text, and the counts so far.

    Whatever does not fit (another part, a reason to finish, an unknown field) takes the general
    way. Decoding straight into it is more than twice as fast.
    """

    candidates: tuple[_Candidate]
    usageMetadata: dict[str, Any] = {}
    modelVersion: str = ""
    responseId: str = ""
    createTime: str = ""
    turnToken: str = ""


decode_chunk = msgspec.json.Decoder(_Chunk).decode
