"""The Claude API's words for what a fault says. Read next: `openai_responses_voice.py`."""

from __future__ import annotations

import re
from typing import Any

from streamlab.streams import claude_writer
from streamlab.streams.voice import Early, Payload, Said, Voice, first, words_of

__all__ = ["CLAUDE"]

#: Why an answer ends early, as `message_delta` says it.
EARLY: dict[Early, Payload] = {
    "token_limit": {"stop_reason": "max_tokens"},
    "refuse": {
        "stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": "general_harms", "explanation": None},
    },
    "pause": {"stop_reason": "pause_turn"},
}


def _is(*types: str) -> Any:
    """Whether a payload is one of these types."""
    return lambda payload: payload.get("type") in types


def _numbers(payload: Payload, type: str = "") -> tuple[int, ...]:
    index = payload.get("index")
    named = not type or payload.get("type") == type
    return (index,) if named and isinstance(index, int) and not isinstance(index, bool) else ()


def _starts(payload: Payload) -> tuple[int, ...]:
    return _numbers(payload, "content_block_start")


def _stops(payload: Payload) -> tuple[int, ...]:
    return _numbers(payload, "content_block_stop")


def _error(type: str, said: Said) -> Payload:
    return {"type": "error", "error": {"type": type, "message": words_of(type)}}


def _early(why: Early, said: Said) -> list[Payload]:
    """Close the open blocks and the message, as the API does when generation stops."""
    started = {number for payload in said for number in _starts(payload)}
    stopped = {number for payload in said for number in _stops(payload)}
    tokens = sum(payload.get("type") == "content_block_delta" for payload in said)
    return [
        *({"type": "content_block_stop", "index": index} for index in sorted(started - stopped)),
        {
            "type": "message_delta",
            "delta": {"stop_sequence": None, **EARLY[why]},
            "usage": {"output_tokens": tokens + 1},
        },
        {"type": "message_stop"},
    ]


def _unknown(type: str, said: Said) -> Payload:
    return {"type": type, "note": "new in a later version of the API"}


def _again(said: Said) -> Payload:
    return {"type": "message_start", "message": claude_writer.MESSAGE | {"id": "msg_second"}}


def _more(index: int, said: Said) -> Payload:
    delta = {"type": "text_delta", "text": "too late"}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _unsaid(raw: bytes) -> bytes:
    return re.sub(rb'"stop_reason":\s*"[^"]*"', b'"stop_reason":null', raw)


def _raised(raw: bytes, payload: Payload, least: int) -> bytes:
    higher = [number + 1 for number in _numbers(payload) if number >= least]
    return re.sub(rb'"index":\s*\d+', b'"index":%d' % higher[0], raw, count=1) if higher else raw


CLAUDE = Voice(
    wire="claude",
    start="message_start",
    reason="message_delta",
    end="message_stop",
    numbered="block",
    stopping="block",
    begins=_is("message_start"),
    closes=_is("message_delta", "message_stop", "error"),
    gives_reason=_is("message_delta"),
    ended=lambda said, marked: first(said, _is("message_stop")),
    numbers=_numbers,
    starts=_starts,
    stops=_stops,
    frame=claude_writer.frame,
    error=_error,
    early=_early,
    unknown=_unknown,
    again=_again,
    more=_more,
    unsaid=_unsaid,
    raised=_raised,
    keep_alive={"type": "ping"},
)
