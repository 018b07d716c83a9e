"""The Gemini API's words for what a fault says.

A chunk says only what is added: nothing in it has a number, a start or a stop, and there is no end
marker but a finish reason. So several faults have no place here, and `cannot` says why.
Read next: `openai_responses_voice.py`, which has a start and a stop for everything.
"""

from __future__ import annotations

import re

from streamlab.streams import writing
from streamlab.streams.voice import Early, Payload, Said, Voice, no_numbers, words_of

__all__ = ["GEMINI"]

#: Why an answer ends early -> the finish reason.
EARLY: dict[Early, str] = {
    "token_limit": "MAX_TOKENS",
    "refuse": "SAFETY",
    "pause": "CONTINUATION",
}

#: The name of an error at Claude -> HTTP status and status word here.
ERRORS = {
    "overloaded_error": (503, "UNAVAILABLE"),
    "rate_limit_error": (429, "RESOURCE_EXHAUSTED"),
    "timeout_error": (504, "DEADLINE_EXCEEDED"),
    "api_error": (500, "INTERNAL"),
}

#: What every chunk of an answer repeats.
HEAD = ("modelVersion", "responseId", "createTime")


def _candidates(payload: Payload) -> list[Payload]:
    found = payload.get("candidates")
    return [it for it in found if isinstance(it, dict)] if isinstance(found, list) else []


def _number(candidate: Payload) -> int:
    index = candidate.get("index")
    return index if isinstance(index, int) else 0


def _reasons(payload: Payload) -> tuple[int, ...]:
    return tuple(_number(it) for it in _candidates(payload) if it.get("finishReason"))


def _blocked(payload: Payload) -> bool:
    feedback = payload.get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def _begins(payload: Payload) -> bool:
    return bool(_candidates(payload)) or _blocked(payload)


def _closes(payload: Payload) -> bool:
    return bool(_reasons(payload) or payload.get("error")) or _blocked(payload)


def _ended(said: Said, marked: bool) -> int | None:
    """The reason of the last candidate that has come, or the one for which the prompt is blocked.

    Not a pause: its answer goes on in another stream.
    """
    running, seen = set[int](), False
    for at, payload in enumerate(said):
        whole = {_number(it) for it in _candidates(payload) if _final(it)}
        running = (running | {_number(it) for it in _candidates(payload)}) - whole
        seen = seen or bool(whole)
        if (seen and not running) or _blocked(payload):
            return at
    return None


def _final(candidate: Payload) -> bool:
    return candidate.get("finishReason") not in (None, "", "CONTINUATION")


def _head(said: Said) -> Payload:
    last = next((payload for payload in reversed(said) if _candidates(payload)), {})
    return {key: last[key] for key in HEAD if key in last}


def _early(why: Early, said: Said) -> list[Payload]:
    """Give every candidate that runs its reason, in one more chunk without content."""
    seen = {_number(it) for payload in said for it in _candidates(payload)} or {0}
    running = sorted(seen - {number for payload in said for number in _reasons(payload)})
    chunks = len([payload for payload in said if _candidates(payload)])
    total = writing.INPUT_TOKENS + chunks
    usage = {"promptTokenCount": writing.INPUT_TOKENS, "candidatesTokenCount": chunks}
    how = {"finishReason": EARLY[why], **({"continuationToken": "more"} if why == "pause" else {})}
    stopped = [{**how, "index": number} for number in running]
    return [
        {"candidates": stopped, "usageMetadata": {**usage, "totalTokenCount": total}, **_head(said)}
    ]


def _error(type: str, said: Said) -> Payload:
    code, status = ERRORS.get(type, (500, type.upper()))
    return {"error": {"code": code, "message": words_of(type), "status": status}}


def _unknown(type: str, said: Said) -> Payload:
    words = type.split("_")
    name = words[0] + "".join(word.capitalize() for word in words[1:])
    return {name: {"note": "new in a later version of the API"}, **_head(said)}


def _again(said: Said) -> Payload:
    content = {"parts": [{"text": ""}], "role": "model"}
    chunk = {"candidates": [{"content": content, "index": 0}], **_head(said)}
    return {**chunk, "responseId": "second"}


def _unsaid(raw: bytes) -> bytes:
    """Nothing is null on this wire: what is not said is not there."""
    return re.sub(
        rb'"finishReason":\s*"[^"]*"\s*,?|,\s*"finishReason":\s*"[^"]*"\s*(?=})', b"", raw
    )


_NONE = "the parts of a Gemini answer have no numbers"

GEMINI = Voice(
    wire="gemini",
    start="a chunk with candidates",
    reason="the finish reason",
    end="the finish reason",
    numbered="part",
    stopping="part",
    begins=_begins,
    closes=_closes,
    gives_reason=lambda payload: bool(_reasons(payload)),
    ended=_ended,
    numbers=no_numbers,
    starts=no_numbers,
    stops=no_numbers,
    frame=writing.frame,
    error=_error,
    early=_early,
    unknown=_unknown,
    again=_again,
    more=lambda index, said: {},
    unsaid=_unsaid,
    raised=lambda raw, payload, least: raw,
    cannot={
        "index_gap": f"{_NONE}, so no number can be missing",
        "interleave": f"{_NONE}, so their order alone says whose a piece is",
        "delta_after_stop": "no part of a Gemini answer says that it has stopped, so none can go "
        "on after that",
    },
)
