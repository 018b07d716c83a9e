"""The output of a Responses answer: its items begin, take content, and are held to authorities.

An authority is whatever states content whole: a `.done`, an item, the final snapshot. The first
one confirms what streamed or brings it; each later one must say the same.
"""

from __future__ import annotations

from typing import Any

from .dialect import Dialect, id_twice, word
from .events import (
    Ambiguous,
    Attached,
    Event,
    Identified,
    InputDelta,
    Restated,
    SegmentStarted,
    SegmentStopped,
    SignatureDelta,
    TextDelta,
    Unknown,
)
from .openai_items import (
    HOT,
    MAKE,
    OTHER,
    PART_KIND,
    RUNS,
    USUAL,
    Item,
    Part,
    Shape,
    details,
    draft_of,
    form_of,
    given_input,
    runs_at_provider,
    same_content,
    streamed,
)
from .payload import key_twice
from .sse import Frame

__all__ = ["Output"]

#: Segments that may be open at once, and parts of one item: each costs every event a look.
MAX_OPEN = 256


class Output(Dialect):
    """The items of one answer."""

    def __init__(self, named: bool = True) -> None:
        super().__init__(named)
        self.started = False
        self._items: list[Item] = []
        self._by_index: dict[int, Item] = {}
        self._by_id: dict[str, Item | None] = {}  # None: two items have that id
        self._hot: dict[tuple[Shape, int, int], Part] = {}
        self._calls: dict[str, Item] = {}  # by the ids of tool calls
        self._top = -1  # the highest index so far
        self._opened = 0  # how many segments are open

    # ------------------------------------------------------------------ an item begins

    def _begin(self, index: int, given: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        if self._opened >= MAX_OPEN:
            text = f"item {index} begins while {MAX_OPEN} segments are open; it is not read"
            return (self._fault("too-many-open", text, frame),)
        type = word(given.get("type")) or "unknown"
        form, again = form_of(type), f"r{len(self._items)}" if index in self._by_index else ""
        segment, server = f"{index}{again}", bool(runs_at_provider(type, given))
        own = Part(segment, form.kind, type, ("", 0), MAKE.get(form.kind, TextDelta))
        item = Item(index, segment, type, form, server, own)
        item.given, item.draft = given, draft_of(given)
        self._items.append(item)
        self._top = max(self._top, index)
        self._by_index[index] = item
        self._know_id(item, word(given.get("id")))
        self._opened += 1
        events: tuple[Event, ...] = ()
        if form.kind == "other" and type not in OTHER:
            events = (Unknown(f"item type {type[:100]}", frame.number),)
        if form.kind == "tool_call":
            item.name = form.name or word(given.get("name"))
            events = self._register(item, word(given.get("call_id")), frame)
        started = SegmentStarted(
            item.segment,
            form.kind,
            frame.number,
            type,
            item.name,
            item.call_id,
            item.server,
            form="text" if form.free else "json",
        )
        return (*events, started, *self._ids(item, own))

    def _know_id(self, item: Item, id: str) -> None:
        item.id = id
        if id:
            self._by_id[id] = None if self._by_id.get(id, item) is not item else item

    def _register(self, item: Item, call_id: str, frame: Frame) -> tuple[Event, ...]:
        item.call_id = call_id
        if not call_id or item.server:
            return ()
        if call_id in self._calls:
            return (Ambiguous(id_twice(call_id), frame.number),)
        self._calls[call_id] = item
        return ()

    def _ids(self, item: Item, part: Part) -> tuple[Event, ...]:
        """What the next request needs, and is known at once."""
        known = {"id": item.id, "phase": word(item.given.get("phase"))}
        return tuple(Attached(part.segment, name, value) for name, value in known.items() if value)

    def _begin_part(
        self, item: Item, key: tuple[str, int], type: str, frame: Frame
    ) -> tuple[Event, ...]:
        kind = PART_KIND.get(type, "thinking" if item.form.kind == "thinking" else "text")
        unknown = () if type in PART_KIND else (Unknown(f"part type {type[:100]}", frame.number),)
        if kind == item.own.kind and not item.parts:
            item.own.key, item.own.type = key, type
            item.parts[key] = item.own
            told = () if type in USUAL else (Attached(item.segment, "part", type),)
            return (*unknown, *told)
        if self._opened >= MAX_OPEN or len(item.parts) >= MAX_OPEN:
            text = f"item {item.index} has another part beyond {MAX_OPEN}; it is not read"
            return (self._fault("too-many-open", text, frame),)
        group, number = key
        segment = f"{item.segment}.{'s' if group == 'summary' else ''}{number}"
        part = item.parts[key] = Part(segment, kind, type, key, MAKE[kind])
        self._opened += 1
        started = SegmentStarted(segment, kind, frame.number, type)
        return (*unknown, started, *self._ids(item, part))

    # ------------------------------------------------------------------ whose event it is

    def _find(
        self,
        index: int | None,
        item_id: str,
        type: str,
        frame: Frame,
        given: dict[str, Any] | None = None,
    ) -> tuple[Item | None, tuple[Event, ...]]:
        """The item of an event; one that was never announced begins here, as a `type`."""
        if index is None:
            return self._find_by_id(item_id, type, frame, given or {})
        item, named = self._by_index.get(index), self._by_id.get(item_id)
        call = form_of(type).kind == "tool_call"
        if named is not None and named is not item:
            text = f"an event for item {index} names the id of item {named.index}"
            if call or named.client:
                said: tuple[Event, ...] = (Ambiguous(text, frame.number),)
            else:
                said = self._habit("two-items", "warning", text, frame)
        elif item is not None and item_id and item.id and item.id != item_id:
            text = f"item {index} is {item.id[:80]!r}, then {item_id[:80]!r}; its index counts"
            said = self._habit("item-id-changed", "note", text, frame)
        else:
            said = ()
        if item is None:
            text = f"item {index} goes on, but was never announced"
            said = (*said, *self._habit("without-start", "warning", text, frame))
            said = (*said, *self._begin(index, given or {"type": type}, frame))
            item = self._by_index.get(index)
        return item, said

    def _find_by_id(
        self, item_id: str, type: str, frame: Frame, given: dict[str, Any]
    ) -> tuple[Item | None, tuple[Event, ...]]:
        call_id = word(given.get("call_id"))
        called = self._calls.get(call_id)
        item = self._by_id.get(item_id) or (called if called and called.type == type else None)
        if item is not None:
            text = "events without an output_index; their ids tell whose they are"
            return item, self._habit("no-output-index", "warning", text, frame)
        if form_of(type).kind == "tool_call":
            if not given or not (item_id or call_id):
                text = f"a piece of a {type[:80]} without an output_index, of no known item"
                return None, (Ambiguous(text, frame.number),)
            text = "whole items without an output_index; they count in their order"
            said = self._habit("no-output-index", "warning", text, frame)
            index = self._next_index()
            begun = self._begin(index, given, frame)
            return self._by_index.get(index), (*said, *begun)
        text = "events without an output_index; they count for the last item of their kind"
        said = self._habit("no-output-index", "warning", text, frame)
        last = self._items[-1] if self._items else None
        if last is not None and last.type == type and not last.done:
            return last, said
        index = self._next_index()
        begun = self._begin(index, {"type": type, "id": item_id}, frame)
        return self._by_index.get(index), (*said, *begun)

    def _next_index(self) -> int:
        return self._top + 1

    def _replace(self, old: Item, given: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """Another item takes a number that is used."""
        text = f"item {old.index} begins, but that number has been used"
        said: tuple[Event, ...] = self._habit("index-reused", "warning", text, frame)
        if old.client or form_of(word(given.get("type"))).kind == "tool_call":
            said = (*said, Ambiguous(text, frame.number))
        return (*said, *self._close(old, frame))

    # ------------------------------------------------------------------ authorities

    def _settle(self, item: Item, given: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """Hold an item to a version of it that is whole, and close it."""
        events = [*self._identity(item, given, frame), *self._content(item, given, frame)]
        own, item.settled = item.own, True
        if not item.done:
            item.status = word(given.get("status"))
            shown = {n: v for n, v in details(item.form, given).items() if item.is_new(n, v)}
            for part in self._open_of(item) if own.kind == "text" else (own,):
                events += (Attached(part.segment, name, value) for name, value in shown.items())
            signature = given.get("encrypted_content")
            if own.kind == "thinking" and isinstance(signature, str):
                events.append(SignatureDelta(own.segment, signature))
        return (*events, *self._close(item, frame))

    def _identity(self, item: Item, given: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        type, id = word(given.get("type")), word(given.get("id"))
        if type != item.type:
            text = f"item {item.index} is a {item.type[:80]!r}, then a {type[:80]!r}"
            if "tool_call" in (item.form.kind, form_of(type).kind):
                return (Ambiguous(text, frame.number),)
            return self._habit("item-type-changed", "warning", text, frame)
        events: tuple[Event, ...] = ()
        if id and not item.id:
            self._know_id(item, id)
            if item.own.open:
                events = (Attached(item.own.segment, "id", id),)
        if item.form.kind != "tool_call":
            return events
        name, call_id = word(given.get("name")), word(given.get("call_id"))
        events = (*events, *self._name(item, name, call_id, frame))
        server = runs_at_provider(type, given)
        if server is not None and server != item.server:
            text = f"who runs the call of item {item.index} changed ({RUNS[type][0]})"
            events = (*events, Ambiguous(text, frame.number))
        return events

    def _name(self, item: Item, name: str, call_id: str, frame: Frame) -> tuple[Event, ...]:
        """A call's name and id, stated again or for the first time."""
        if item.form.name:  # its input comes whole with its end, and so may its id
            name = ""
            if call_id != item.call_id and call_id and item.call_id and _only_announced(item):
                return self._id_at_end(item, call_id, frame)
        for known, new in ((item.name, name), (item.call_id, call_id)):
            if known and new and known != new:
                text = f"the call of item {item.index} is {known[:80]!r}, then {new[:80]!r}"
                if item.client:
                    return (Ambiguous(text, frame.number),)
                return self._habit("call-renamed", "warning", text, frame)
        fresh = Identified(item.segment, "" if item.name else name, "" if item.call_id else call_id)
        if not (fresh.name or fresh.call_id):
            return ()
        item.name = item.name or name
        twice = self._register(item, call_id, frame) if fresh.call_id else ()
        if not item.own.open:
            text = f"the call of item {item.index} was named only after its end"
            return (Ambiguous(text, frame.number),)
        return (fresh, *twice)

    def _id_at_end(self, item: Item, call_id: str, frame: Frame) -> tuple[Event, ...]:
        """A call of a tool of the vendor's own, announced with an id that its end replaces."""
        text = f"the call of item {item.index} is announced as {item.call_id[:80]!r} and ends as "
        said = self._habit("call-id-changed", "warning", f"{text}{call_id[:80]!r}", frame)
        self._calls.pop(item.call_id, None)
        twice = self._register(item, call_id, frame)
        return (*said, Identified(item.segment, call_id=call_id), *twice)

    def _content(self, item: Item, given: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        if item.form.kind == "tool_call":
            whole = given_input(item.form, given)
            if whole is None:
                return ()
            ended = self._end_draft(item, item.own)
            confirmed = self._confirm(item, item.own, whole, frame)
            return (*ended, *confirmed, *self._commands(item, given, frame))
        events: list[Event] = []
        for group in ("summary", "content"):
            listed = given.get(group)
            if item.form.kind != "other" and isinstance(listed, list):
                events += self._parts(item, group, listed, frame)
        return tuple(events)

    def _parts(self, item: Item, group: str, listed: list[Any], frame: Frame) -> list[Event]:
        """Hold the parts of an item to a list of them: they are joined by their order."""
        mine = [item.parts[key] for key in sorted(item.parts) if key[0] == group]
        events: list[Event] = []
        for place, given in enumerate(part for part in listed if isinstance(part, dict)):
            if place >= len(mine):
                events += self._unstreamed_part(item, group, given, frame)
            else:
                events += self._part_stated(item, mine[place], given, frame)
        if listed and any(part.fragments for part in mine[len(listed) :]):
            text = f"item {item.index} streamed a part that its whole version does not have"
            events += self._habit("part-missing", "warning", text, frame)
        return events

    def _unstreamed_part(
        self, item: Item, group: str, given: dict[str, Any], frame: Frame
    ) -> tuple[Event, ...]:
        text = _text_of(given)
        if not text:
            return ()
        number = 1 + max((key[1] for key in item.parts if key[0] == group), default=-1)
        type = word(given.get("type"))
        begun = self._begin_part(item, (group, number), type, frame)
        part = item.parts.get((group, number))
        if part is None:
            return begun
        stated = self._part_stated(item, part, given, frame)
        stopped = self._stop(part, frame) if item.done else ()
        return (*begun, *stated, *stopped)

    def _part_stated(
        self, item: Item, part: Part, given: dict[str, Any], frame: Frame
    ) -> tuple[Event, ...]:
        """Hold a part to a whole version of it."""
        text = _text_of(given)
        if given.get("type") == "refusal" and text:
            part.type = "refusal"
        events = () if text is None else self._confirm(item, part, text, frame)
        if not part.open:
            return events
        cited = given.get("annotations")
        if isinstance(cited, list) and not part.citations:
            part.citations = len(cited)
            events = (*events, *(Attached(part.segment, "citation", one) for one in cited))
        if given.get("logprobs"):
            events = (*events, Attached(part.segment, "logprobs", given["logprobs"]))
        return events

    def _confirm(self, item: Item, part: Part, text: str, frame: Frame) -> tuple[Event, ...]:
        """Hold a part's content to an authority."""
        self._cool(part)
        first, before = part.whole is None, streamed(part)
        part.whole = text
        if first and not before and part.open:
            return self._brought(item, part, text, frame)
        if same_content(part, before, text, item.form.free):
            part.whole = before
            return ()
        restated = (Restated(part.segment, text),) if part.open else ()
        said = f"item {item.index} is stated in two versions that differ"
        if item.client:
            return (*restated, Ambiguous(said, frame.number))
        return (*restated, *self._habit("restated", "warning", f"{said}; the last counts", frame))

    def _brought(self, item: Item, part: Part, text: str, frame: Frame) -> tuple[Event, ...]:
        """Content that only its authority brings."""
        events: tuple[Event, ...] = (part.make(part.segment, text),) if text else ()
        if item.client and (twice := key_twice(frame.data)):
            events = (*events, Ambiguous(f"in a tool call {twice}", frame.number))
        return events

    def _end_draft(self, item: Item, part: Part) -> tuple[Event, ...]:
        if not item.drafting or item.draft is None or part.whole is not None:
            return ()
        item.drafting = False
        part.fragments.append(item.draft[1])
        return (InputDelta(part.segment, item.draft[1]),)

    def _commands(self, item: Item, given: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        action = given.get("action")
        stated = action.get("commands") if isinstance(action, dict) else None
        stated = stated if isinstance(stated, list) else []
        if all(n < len(stated) and stated[n] == text for n, text in item.commands.items()):
            return ()
        text = f"item {item.index} streamed one command and states another"
        if item.client:
            return (Ambiguous(text, frame.number),)
        return self._habit("restated", "warning", text, frame)

    # ------------------------------------------------------------------ fast and closed parts

    def _heat(self, part: Part, item: Item, name: str) -> None:
        """Let the reader find a part that streams without asking again whose it is."""
        if part.hot is None and name in HOT:
            part.hot = (HOT[name], item.index, part.key[1])
            part.event, part.item_id = name, item.id
            self._hot[part.hot] = part

    def _cool(self, part: Part) -> None:
        if part.hot is not None:
            self._hot.pop(part.hot, None)
            part.hot = None

    def _close(self, item: Item, frame: Frame) -> tuple[Event, ...]:
        item.done = True
        item.given = {}
        return tuple(event for part in self._open_of(item) for event in self._stop(part, frame))

    def _open_of(self, item: Item) -> list[Part]:
        parts = (item.own, *(part for part in item.parts.values() if part is not item.own))
        return [part for part in parts if part.open]

    def _stop(self, part: Part, frame: Frame) -> tuple[Event, ...]:
        self._cool(part)
        if not part.open:
            return ()
        part.open = False
        self._opened -= 1
        return (SegmentStopped(part.segment, frame.number),)


def _text_of(part: dict[str, Any]) -> str | None:
    """A part's text, or the words of its refusal; None where it has neither."""
    text = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    return text if isinstance(text, str) else None


def _only_announced(item: Item) -> bool:
    """Whether nothing of a call has come but the announcement of its item."""
    return item.own.open and not item.done and not item.own.fragments
