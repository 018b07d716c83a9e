"""The Chat Completions API's words for what a fault says.

Nothing has a start or a stop of its own here but the choice, which stops with its finish reason;
a number have the calls of a choice. Read next: `gemini_voice.py`, which has still less.
"""

from __future__ import annotations

import json
import re
from typing import Any

from streamlab.streams import writing
from streamlab.streams.voice import DONE, Early, Payload, Said, Voice, first, words_of

__all__ = ["OPENAI_CHAT"]

#: Why an answer ends early -> the finish reason.
EARLY: dict[Early, str] = {"token_limit": "length", "refuse": "content_filter"}

#: The name of an error at Claude -> its name here; any other is taken as it is.
ERRORS = {
    "overloaded_error": "server_error",
    "api_error": "server_error",
    "rate_limit_error": "rate_limit_exceeded",
}

#: What every chunk of an answer repeats.
HEAD = ("id", "object", "created", "model", "system_fingerprint", "service_tier")


def _choices(payload: Payload) -> list[Payload]:
    found = payload.get("choices")
    return [it for it in found if isinstance(it, dict)] if isinstance(found, list) else []


def _number(choice: Payload) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _calls(choice: Payload) -> list[Payload]:
    delta = choice.get("delta")
    found = delta.get("tool_calls") if isinstance(delta, dict) else None
    return [it for it in found if isinstance(it, dict)] if isinstance(found, list) else []


def _numbers(payload: Payload) -> tuple[int, ...]:
    """The calls that a chunk has fragments of, in the choice that is judged."""
    calls = [it for choice in _choices(payload) if not _number(choice) for it in _calls(choice)]
    found = [call.get("index") for call in calls]
    return tuple(n for n in found if isinstance(n, int) and not isinstance(n, bool))


def _starts(payload: Payload) -> tuple[int, ...]:
    """The calls that a chunk names: only the first fragment has to."""
    calls = [it for choice in _choices(payload) if not _number(choice) for it in _calls(choice)]
    named = {"tool_calls": [call for call in calls if call.get("id")]}
    return _numbers({"choices": [{"index": 0, "delta": named}]})


def _stops(payload: Payload) -> tuple[int, ...]:
    return tuple(_number(choice) for choice in _choices(payload) if choice.get("finish_reason"))


def _closes(payload: Payload) -> bool:
    return payload is DONE or bool(_stops(payload) or payload.get("error"))


def _ended(said: Said, marked: bool) -> int | None:
    """`[DONE]`; in a form that cannot hold it, the reason of the last choice."""
    done = first(said, lambda payload: payload is DONE)
    if marked or done is not None:
        return done
    running, seen = set[int](), False
    for at, payload in enumerate(said):
        running |= {_number(choice) for choice in _choices(payload)}
        running -= set(_stops(payload))
        seen = seen or bool(_stops(payload))
        if seen and not running:
            return at
    return None


def _head(said: Said) -> Payload:
    """What the chunks say again and again."""
    last = next((payload for payload in reversed(said) if _choices(payload)), {})
    head = {key: last[key] for key in HEAD if key in last}
    return head or {"id": "chatcmpl-0", "object": "chat.completion.chunk"}


def _chunk(said: Said, delta: Payload, index: int = 0, reason: str | None = None) -> Payload:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
    return {**_head(said), "choices": [choice]}


def _early(why: Early, said: Said) -> list[Payload]:
    """Give every choice that runs its reason; then the usage, where it was asked for."""
    seen = {_number(choice) for payload in said for choice in _choices(payload)} or {0}
    running = sorted(seen - {number for payload in said for number in _stops(payload)})
    tail = [_chunk(said, {}, number, EARLY[why]) for number in running]
    if any("usage" in payload for payload in said):
        chunks = len([payload for payload in said if _choices(payload)])
        tokens = {"prompt_tokens": writing.INPUT_TOKENS, "completion_tokens": chunks}
        total = {"total_tokens": writing.INPUT_TOKENS + chunks}
        tail = [{**chunk, "usage": None} for chunk in tail]
        tail.append({**_head(said), "choices": [], "usage": tokens | total})
    return [*tail, DONE]


def _error(type: str, said: Said) -> Payload:
    kind = ERRORS.get(type, type)
    return {"error": {"message": words_of(type), "type": kind, "param": None, "code": None}}


def _unknown(type: str, said: Said) -> Payload:
    return {**_head(said), "object": type, "choices": [], "note": "new in a later version"}


def _again(said: Said) -> Payload:
    role = {"role": "assistant", "content": ""}
    return {**_chunk(said, role), "id": "chatcmpl-second"}


def _more(index: int, said: Said) -> Payload:
    return _chunk(said, {"content": "too late"}, index)


def _unsaid(raw: bytes) -> bytes:
    return re.sub(rb'"finish_reason":\s*"[^"]*"', b'"finish_reason":null', raw)


def _raised(raw: bytes, payload: Payload, least: int) -> bytes:
    if not any(number >= least for number in _numbers(payload)):
        return raw
    higher: Any = json.loads(json.dumps(payload))
    for choice in _choices(higher):
        for call in _calls(choice) if not _number(choice) else ():
            index = call.get("index")
            call["index"] = index + 1 if isinstance(index, int) and index >= least else index
    start, end = raw.index(b"{"), raw.rindex(b"}") + 1
    return raw[:start] + writing.compact(higher, ascii=True).encode("ascii") + raw[end:]


OPENAI_CHAT = Voice(
    wire="openai-chat",
    start="a chunk with choices",
    reason="the finish reason",
    end="[DONE]",
    numbered="tool call",
    stopping="choice",
    begins=lambda payload: bool(_choices(payload)),
    closes=_closes,
    gives_reason=lambda payload: bool(_stops(payload)),
    ended=_ended,
    numbers=_numbers,
    starts=_starts,
    stops=_stops,
    frame=writing.frame,
    error=_error,
    early=_early,
    unknown=_unknown,
    again=_again,
    more=_more,
    unsaid=_unsaid,
    raised=_raised,
    end_alone="the finish reason",
    cannot={"pause": "Chat Completions has no finish reason that says that a turn is paused"},
)
