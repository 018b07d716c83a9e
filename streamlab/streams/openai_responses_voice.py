"""The Responses API's words for what a fault says.

Whoever ends an answer early here must say again all that came: each open part and item is closed
with its content so far, and the last event has the whole response, as far as it got. So this folds
the events that came into the items that they say (`_items`), in its own way, not the reader's.

Read next: `provider_faults.py`, which speaks with these words.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import msgspec

from streamlab.streams import claude_writer, writing
from streamlab.streams.voice import Early, Payload, Said, Voice, first, words_of

__all__ = ["OPENAI_RESPONSES"]

#: Why an answer ends early -> `incomplete_details.reason`.
EARLY: dict[Early, str] = {
    "token_limit": "max_output_tokens",
    "refuse": "content_filter",
    "pause": "steered",
}

#: The name of an error at Claude -> its name here; any other is taken as it is.
ERRORS = {
    "overloaded_error": "server_error",
    "api_error": "server_error",
    "rate_limit_error": "rate_limit_exceeded",
}

#: Last events: the response is whole, or as whole as it gets.
WHOLE = ("response.completed", "response.incomplete")

#: What `.added` and `.done` of a part are called -> the item's list that it is in, and its number.
PARTS = {
    "response.content_part": ("content", "content_index"),
    "response.reasoning_summary_part": ("summary", "summary_index"),
}

#: Type of a part or an item -> what its deltas are called, and the field that they add to.
TEXTS = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "reasoning_text": ("response.reasoning_text", "text"),
    "summary_text": ("response.reasoning_summary_text", "text"),
    "function_call": ("response.function_call_arguments", "arguments"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
}
_FIELDS = dict(TEXTS.values())


class Item(msgspec.Struct):
    """An item as far as it came; `parts` by their list and number."""

    value: Payload
    open: bool = True
    parts: dict[tuple[str, int], Payload] = {}
    closed: set[tuple[str, int]] = set()  #: parts that are done
    said: set[tuple[str, int]] = set()  #: texts that are done, of the item itself ("", 0)

    def whole(self) -> Payload:
        """The item with its parts in it, cut short where it is still open."""
        if not self.open:
            return self.value
        lists: dict[str, list[Payload]] = {}
        for (name, _), part in sorted(self.parts.items()):
            lists.setdefault(name, []).append(part)
        return {**self.value, **lists, "status": "incomplete"}


def _is(*types: str) -> Any:
    """Whether a payload is one of these types."""
    return lambda payload: payload.get("type") in types


def _number(payload: Payload, name: str = "output_index") -> int:
    number = payload.get(name)
    return number if isinstance(number, int) and not isinstance(number, bool) else -1


def _numbers(payload: Payload) -> tuple[int, ...]:
    return (_number(payload),) if _number(payload) >= 0 else ()


def _starts(payload: Payload) -> tuple[int, ...]:
    return _numbers(payload) if payload.get("type") == "response.output_item.added" else ()


def _stops(payload: Payload) -> tuple[int, ...]:
    return _numbers(payload) if payload.get("type") == "response.output_item.done" else ()


def _numbered(said: Said, *events: Payload) -> list[Payload]:
    """The events with the sequence numbers that follow."""
    last = max((_number(payload, "sequence_number") for payload in said), default=-1)
    return [
        {"type": event["type"], "sequence_number": number, **event}
        for number, event in enumerate(events, last + 1)
    ]


# --- The response so far --------------------------------------------------------------------------


def _items(said: Said) -> dict[int, Item]:
    """The items that the events say, by number."""
    items: dict[int, Item] = {}
    for payload in said:
        number, type = _number(payload), payload.get("type")
        given = payload.get("item")
        if isinstance(given, dict) and _stops(payload):
            items[number] = Item(given, open=False)
        elif isinstance(given, dict) and _starts(payload):
            items[number] = Item(copy.deepcopy(given), parts={}, closed=set(), said=set())
        elif number in items and items[number].open and isinstance(type, str):
            _add(items[number], type, payload)
    return items


def _add(item: Item, type: str, payload: Payload) -> None:
    """Add to an item what an event says of it."""
    stem, _, what = type.rpartition(".")
    if stem in PARTS:
        name, number = PARTS[stem]
        key = (name, _number(payload, number))
        if isinstance(payload.get("part"), dict):
            item.parts[key] = copy.deepcopy(payload["part"])
        if what == "done":
            item.closed.add(key)
    elif stem == "response.output_text.annotation" and _key(payload) in item.parts:
        item.parts[_key(payload)].setdefault("annotations", []).append(payload.get("annotation"))
    elif stem in _FIELDS:
        key = _key(payload)
        target, field = item.parts.get(key, item.value), _FIELDS[stem]
        if what == "done":
            item.said.add(key)
        elif isinstance(payload.get("delta"), str):
            target[field] = str(target.get(field) or "") + payload["delta"]


def _key(payload: Payload) -> tuple[str, int]:
    """Which part of its item an event is about; the item itself is ("", 0)."""
    named = (pair for pair in PARTS.values() if pair[1] in payload)
    return next(((name, _number(payload, number)) for name, number in named), ("", 0))


def _response(said: Said) -> Payload:
    """The response as the last event that had it said it."""
    found = (payload["response"] for payload in reversed(said) if "response" in payload)
    return next((it for it in found if isinstance(it, dict)), {"id": "resp_0"})


# --- An early end ---------------------------------------------------------------------------------


def _early(why: Early, said: Said) -> list[Payload]:
    """Close what is open with its content so far, then say all of it again."""
    items = sorted(_items(said).items())
    closing = [event for number, item in items if item.open for event in _close(number, item)]
    tokens = sum(str(payload.get("type")).endswith(".delta") for payload in said)
    response = {
        **_response(said),
        "status": "incomplete",
        "incomplete_details": {"reason": EARLY[why]},
        "output": [item.whole() for _, item in items],
        "usage": {
            "input_tokens": writing.INPUT_TOKENS,
            "output_tokens": tokens + 1,
            "total_tokens": writing.INPUT_TOKENS + tokens + 1,
        },
    }
    return _numbered(said, *closing, {"type": "response.incomplete", "response": response})


def _close(number: int, item: Item) -> list[Payload]:
    """Close an item: its texts, its parts, itself."""
    place = {"item_id": item.value.get("id"), "output_index": number}
    index_of, stem_of = dict(PARTS.values()), {name: stem for stem, (name, _) in PARTS.items()}
    events: list[Payload] = []
    for key, part in sorted(item.parts.items()):
        if key not in item.closed:
            here = {**place, index_of[key[0]]: key[1]}
            events += _close_text(part, here, key in item.said)
            events.append({"type": f"{stem_of[key[0]]}.done", **here, "part": part})
    events += _close_text(item.value, place, ("", 0) in item.said)
    done = {"output_index": number, "item": item.whole()}
    return [*events, {"type": "response.output_item.done", **done}]


def _close_text(of: Payload, place: Payload, said: bool) -> list[Payload]:
    """The whole text of a part or an item, where it has one and has not said it yet."""
    stem, field = TEXTS.get(str(of.get("type")), ("", ""))
    return (
        [{"type": f"{stem}.done", **place, field: of.get(field, "")}] if stem and not said else []
    )


# --- Other words ----------------------------------------------------------------------------------


def _error(type: str, said: Said) -> Payload:
    kind = ERRORS.get(type, type)
    error = {"type": kind, "code": None, "message": words_of(type), "param": None}
    return _numbered(said, {"type": "error", "error": error})[0]


def _unknown(type: str, said: Said) -> Payload:
    return _numbered(said, {"type": type, "note": "new in a later version of the API"})[0]


def _again(said: Said) -> Payload:
    response = {**_response(said), "id": "resp_second", "status": "in_progress", "output": []}
    return {"type": "response.created", "sequence_number": 0, "response": response}


def _more(index: int, said: Said) -> Payload:
    """One more delta for an item, of the kind that it had."""
    item = _items(said).get(index, Item({})).value
    content = item.get("content") or item.get("summary") or [item]
    last = content[-1] if isinstance(content, list) and isinstance(content[-1], dict) else item
    stem, _ = TEXTS.get(str(last.get("type")), TEXTS["output_text"])
    place = {"item_id": item.get("id"), "output_index": index}
    if stem not in (TEXTS["function_call"][0], TEXTS["mcp_call"][0]):
        place |= {"summary_index" if "summary" in stem else "content_index": 0}
    return _numbered(said, {"type": f"{stem}.delta", **place, "delta": "too late"})[0]


def _raised(raw: bytes, payload: Payload, least: int) -> bytes:
    number = _number(payload)
    if number < least:
        return raw
    return re.sub(rb'"output_index":\s*\d+', b'"output_index":%d' % (number + 1), raw, count=1)


OPENAI_RESPONSES = Voice(
    wire="openai-responses",
    start="response.created",
    reason="the last event",
    end="response.completed",
    numbered="item",
    stopping="item",
    begins=_is("response.created"),
    closes=_is(*WHOLE, "response.failed", "error"),
    gives_reason=_is(*WHOLE),
    ended=lambda said, marked: first(said, _is(*WHOLE)),
    numbers=_numbers,
    starts=_starts,
    stops=_stops,
    frame=claude_writer.frame,
    error=_error,
    early=_early,
    unknown=_unknown,
    again=_again,
    more=_more,
    unsaid=lambda raw: raw,
    raised=_raised,
    cannot={
        "no_stop_reason": "the last event of a Responses answer is itself the reason why it "
        "stopped, so it cannot come without one",
    },
)
