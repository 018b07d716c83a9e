"""Gemini Interactions' words for what a fault says: steps, and the status that says what they are
worth. Read next: `provider_faults.py`, which speaks with these words.
"""

from __future__ import annotations

import re
from typing import Any

from streamlab.errors import UsageError
from streamlab.streams import writing
from streamlab.streams.voice import DONE, Early, Payload, Said, Voice, first, words_of

__all__ = ["GEMINI_INTERACTIONS"]

#: Why an answer ends early -> the status of the interaction.
EARLY: dict[Early, str] = {"token_limit": "incomplete", "pause": "requires_continuation"}


def _is(*types: str) -> Any:
    """Whether a payload is one of these types."""
    return lambda payload: payload.get("event_type") in types


def _numbers(payload: Payload, type: str = "") -> tuple[int, ...]:
    index = payload.get("index")
    named = not type or payload.get("event_type") == type
    return (index,) if named and isinstance(index, int) and not isinstance(index, bool) else ()


def _starts(payload: Payload) -> tuple[int, ...]:
    return _numbers(payload, "step.start")


def _stops(payload: Payload) -> tuple[int, ...]:
    return _numbers(payload, "step.stop")


def _frame(payload: Payload, newline: str) -> bytes:
    name = str(payload["event_type"])
    if any(c in "\r\n" or "\ud800" <= c <= "\udfff" for c in name):
        raise UsageError(f"type={name[:80]!r}: an event's name is one line of whole characters")
    return writing.frame(payload, newline, event=name)


def _interaction(said: Said) -> Payload:
    """The interaction as it was created."""
    at = first(said, _is("interaction.created"))
    found = {} if at is None else said[at].get("interaction")
    return found if isinstance(found, dict) and found else {"id": "interaction-0"}


def _early(why: Early, said: Said) -> list[Payload]:
    """Stop the open steps, and complete the interaction with the status of what is not whole."""
    started = {number for payload in said for number in _starts(payload)}
    stopped = {number for payload in said for number in _stops(payload)}
    deltas = len([payload for payload in said if payload.get("event_type") == "step.delta"])
    usage = {"total_input_tokens": writing.INPUT_TOKENS, "total_output_tokens": deltas + 1}
    interaction = {**_interaction(said), "status": EARLY[why], "usage": usage}
    return [
        *({"event_type": "step.stop", "index": index} for index in sorted(started - stopped)),
        {"event_type": "interaction.completed", "interaction": interaction},
        DONE,
    ]


def _error(type: str, said: Said) -> Payload:
    return {"event_type": "error", "error": {"code": type, "message": words_of(type)}}


def _unknown(type: str, said: Said) -> Payload:
    return {"event_type": type, "note": "new in a later version of the API"}


def _again(said: Said) -> Payload:
    second = {**_interaction(said), "id": "interaction-second"}
    return {"event_type": "interaction.created", "interaction": second}


def _more(index: int, said: Said) -> Payload:
    delta = {"type": "text", "text": "too late"}
    return {"event_type": "step.delta", "index": index, "delta": delta}


def _raised(raw: bytes, payload: Payload, least: int) -> bytes:
    higher = [number + 1 for number in _numbers(payload) if number >= least]
    return re.sub(rb'"index":\s*\d+', b'"index":%d' % higher[0], raw, count=1) if higher else raw


GEMINI_INTERACTIONS = Voice(
    wire="gemini-interactions",
    start="interaction.created",
    reason="interaction.completed",
    end="interaction.completed",
    numbered="step",
    stopping="step",
    begins=_is("interaction.created"),
    closes=_is("interaction.completed", "error"),
    gives_reason=_is("interaction.completed"),
    ended=lambda said, marked: first(said, _is("interaction.completed")),
    numbers=_numbers,
    starts=_starts,
    stops=_stops,
    frame=_frame,
    error=_error,
    early=_early,
    unknown=_unknown,
    again=_again,
    more=_more,
    unsaid=lambda raw: raw,
    raised=_raised,
    cannot={
        "no_stop_reason": "the status of an interaction is what says that it is over, so it cannot "
        "be over without one",
        "refuse": "an interaction has no status that says that a classifier stopped it",
    },
)
