"""OpenAI Responses: frames in, events out; and the only place that knows this format's grammar.

    response.created
    (output_item.added (part.added delta* done part.done)* output_item.done)*
    response.completed | response.incomplete | response.failed | error

Source: the vendor's streaming guide and the types of its Python SDK 3.57. Items are kept by
`output_index`, never by arrival, and never by item id alone: some servers give each event another.
The same content comes up to four times: in deltas, in a `.done`, in its item, in the final
snapshot. Deltas are shown at once, and each later version is an authority over them. Where it
says something else, a text is restated; a call for the client is HELD, since it can't be proved
which version the model meant.

Read next: `openai_items.py`, the tables; `openai_final.py`, the terminal event.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from .dialect import MAX_SAID, is_index, word
from .events import (
    Ambiguous,
    Attached,
    Event,
    KeepAlive,
    MessageStarted,
    ProviderError,
    StopReported,
    Unknown,
)
from .openai_final import TERMINAL, Final
from .openai_items import (
    DELTAS,
    DONES,
    HOT,
    PARTS,
    PROGRESS,
    Flow,
    Item,
    Part,
    decode_delta,
    escaped,
)
from .runs import Run
from .sse import Blocks, Frame

__all__ = ["ResponsesReader"]

#: Previews of one image that are kept; the vendor sends three at most.
MAX_IMAGES = 8

BEFORE = "the answer goes on before response.created"

#: Sound, which belongs to no item.
AUDIO = (
    "response.audio.delta",
    "response.audio.done",
    "response.audio.transcript.delta",
    "response.audio.transcript.done",
)

#: Events that are no part of the format, and prove life.
KEEP_ALIVE = ("keepalive", "ping")


class ResponsesReader(Final):
    """Read one answer. `read` takes its frames in order, and says what each one states."""

    wire = "openai-responses"
    marker = "response.completed"

    def __init__(self, named: bool = True) -> None:
        super().__init__(named)
        self._created = False
        self._next: int | None = None  # the sequence number that is due
        self._id = ""  # of the response

    @classmethod
    def recognises(cls, event: str, payload: dict[str, Any]) -> bool:
        """Whether an event name and its payload can only be this wire format's."""
        name = payload.get("type", event)
        if name == "error":
            return "sequence_number" in payload
        return isinstance(name, str) and name.startswith("response.")

    @classmethod
    def whole(cls, payload: dict[str, Any]) -> bool:
        """Whether a payload is a response, as it comes without streaming."""
        return payload.get("object") == "response" and isinstance(payload.get("output"), list)

    def read(self, frame: Frame) -> tuple[Event, ...]:
        """The events that one frame states; most often one."""
        if frame.event in HOT or not (frame.event or self.named):
            try:
                delta = decode_delta(frame.data)
            except (msgspec.MsgspecError, RecursionError):
                return self._read(frame)
            part = self._append(delta, frame.event)
            if part is not None:
                return (part.make(part.segment, delta.delta),)
        return self._read(frame)

    def runs(self, blocks: Blocks, first: int) -> list[Run]:
        """What deltas in a row append to open parts."""
        name = blocks.event
        usual = name in HOT or not (name or self.named)
        runs: list[Run] = []
        data = blocks.data
        last, texts = None, [""]
        with suppress(msgspec.MsgspecError, RecursionError):
            for place in range(first, len(data) if usual else 0):
                said = decode_delta(data[place])
                part = self._append(said, name)
                if part is None:
                    break
                if part is not last:
                    last, texts = part, []
                    runs.append(Run(part.make, part.segment, texts, blocks, place, []))
                texts.append(said.delta)
        return runs

    def _append(self, said: Any, name: str) -> Part | None:
        """Append a delta to its open part, where that is all that it can mean."""
        part, number = (
            self._hot.get((type(said), said.output_index, said.number)),
            said.sequence_number,
        )
        if (
            part is None
            or said.item_id != part.item_id
            or said.logprobs
            or (number != self._next and number is not None)
            or (name != part.event and name)
        ):
            return None
        if number is not None:
            self._next = number + 1
        part.fragments.append(said.delta)
        return part

    def _read(self, frame: Frame) -> tuple[Event, ...]:
        """The general way; an error that is no terminal event still is why the model stopped."""
        events = super().read(frame)
        error = events[0] if len(events) == 1 else None
        if not isinstance(error, ProviderError) or self._failed or self.completed:
            return events
        self._failed, self._next = True, None
        return (StopReported("error", "error", frame.number), error)

    def done(self, frame: Frame) -> tuple[Event, ...]:
        """`[DONE]` is no event of this wire: some servers add it, and it completes nothing."""
        if self._ended:
            return ()
        text = "[DONE] before the terminal event; it completes nothing"
        return self._habit("done-marker", "warning", text, frame)

    def unfinished(self) -> str:
        """What is missing for the answer to be complete, in words; "" when its marker came."""
        if self._ended:
            return ""
        open_items = [f"output_item.done of item {i.index}" for i in self._items if not i.done]
        return ", ".join([*open_items[:3], self.marker])

    # ------------------------------------------------------------------ any payload

    def payload(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """The events that a payload states."""
        name = payload.get("type", frame.event)
        name = name if isinstance(name, str) else ""
        habits = (*self._name_habits(frame, payload), *self._sequence(payload, frame))
        if name in KEEP_ALIVE:
            return (*habits, KeepAlive())
        if name in PROGRESS and not self._ended:
            return habits
        read = self.EVENTS.get(name)
        if read is None and name not in PROGRESS:
            return (*habits, Unknown(str(name or "no type")[:200], frame.number))
        if read is None or self._ended:
            return (*habits, *self._after_end(frame, name))
        return (*habits, *read(self, payload, frame))

    def _sequence(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        number = payload.get("sequence_number")
        if not isinstance(number, int) or isinstance(number, bool) or self._ended:
            return ()
        due, self._next = self._next, number + 1
        if due is None or number == due:
            return ()
        if number > due:
            text = f"sequence number {number} where {due} was due: an event may be lost"
            return self._habit("sequence-gap", "note", text, frame)
        text = f"sequence number {number} where {due} was due: repeated, or out of order"
        return self._habit("sequence-back", "warning", text, frame)

    def _after_end(self, frame: Frame, name: str) -> tuple[Event, ...]:
        if name in TERMINAL:
            return self._habit("end-twice", "warning", f"{name} after the terminal event", frame)
        if name == "response.created":
            self._second = True
            text = "a second answer begins after the terminal event; the first is judged"
            return (self._fault("second-answer", text, frame),)
        text = f"{name} after the terminal event belongs to no answer"
        return (self._fault("after-the-end", text, frame),)

    # ------------------------------------------------------------------ the answer as a whole

    def _lifecycle(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        response = payload.get("response")
        if not isinstance(response, dict):
            return (self._fault("malformed", "a lifecycle event without its response", frame),)
        created = payload.get("type", frame.event) == "response.created"
        id = word(response.get("id"))
        if created and self._created:
            if id != self._id:
                text = f"a second answer, {id[:80]!r}, begins inside {self._id[:80]!r}"
                return (self._fault("second-start", text, frame),)
            return self._habit("created-again", "note", "response.created came again", frame)
        self._created |= created
        if self.started:
            return self._same_response(id, frame)
        self.started, self._id = True, id
        return (MessageStarted(id, word(response.get("model"))),)

    def _same_response(self, id: str, frame: Frame) -> tuple[Event, ...]:
        if not id or not self._id or id == self._id:
            return ()
        text = f"the response's id changes from {self._id[:80]!r} to {id[:80]!r}"
        return self._habit("response-id-changed", "note", text, frame)

    def _terminal(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        self._ended = True
        response = payload.get("response")
        habits: tuple[Event, ...] = ()
        if isinstance(response, dict):
            habits = self._same_response(word(response.get("id")), frame)
            if not self.started:
                started = MessageStarted(word(response.get("id")), word(response.get("model")))
                self.started = True
                habits = (*self._habit("before-start", "warning", BEFORE, frame), started)
        else:
            text = f"{payload.get('type')!r:.80} without its response"
            habits, response = self._habit("no-response", "warning", text, frame), {}
        name = payload.get("type", frame.event).removeprefix("response.")
        return (*habits, *self._finish(name, response, frame))

    # ------------------------------------------------------------------ items

    def _item_added(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        given, index = payload.get("item"), payload.get("output_index")
        if not isinstance(given, dict) or not (index is None or is_index(index)):
            text = "output_item.added needs an output_index (0, 1, 2, …) and an item"
            return (self._fault("malformed", text, frame),)
        before: tuple[Event, ...] = ()
        if not self.started:
            before = self._habit("before-start", "warning", BEFORE, frame)
        if index is None:
            text = "output_item.added without its output_index; the next one is taken"
            before = (*before, *self._habit("no-index", "warning", text, frame))
            index = self._next_index()
        old = self._by_index.get(index)
        if old is not None:
            if old.is_of(given):
                text = f"item {index} is announced again"
                return (*before, *self._habit("item-again", "note", text, frame))
            before = (*before, *self._replace(old, given, frame))
        return (*before, *self._begin(index, given, frame))

    def _item_done(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        given, index = payload.get("item"), payload.get("output_index")
        if not isinstance(given, dict) or not (index is None or is_index(index)):
            text = "output_item.done needs an output_index (0, 1, 2, …) and an item"
            return (self._fault("malformed", text, frame),)
        item_id, type = word(given.get("id")), word(given.get("type"))
        item, events = self._find(index, item_id, type, frame, given)
        if item is None:
            return events
        if item.done:
            events = (*events, *self._habit("done-twice", "note", "an item is done again", frame))
        return (*events, *self._settle(item, given, frame))

    # ------------------------------------------------------------------ parts

    def _part_event(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        name, _, step = payload.get("type", frame.event).rpartition(".")
        group, field, implied = PARTS[name]
        given = payload.get("part")
        said: tuple[Event, ...] = ()
        if given is None and group == "summary":  # whose name tells of what type it is
            given = {"type": "summary_text"}
            said = self._habit("no-part", "note", f"{name}.{step} without its part", frame)
        if not isinstance(given, dict):
            return (self._fault("malformed", f"{name}.{step} without its part", frame),)
        flow = Flow(implied, group, "text", field, word(given.get("type")))
        item, part, placed = self._place(payload, flow, frame)
        events: tuple[Event, ...] = (*said, *placed)
        if item is None or part is None:
            return events
        if step == "added":
            text = word(given.get("text") or given.get("refusal"))
            if not text or part.fragments or part.whole is not None or not part.open:
                return events
            part.fragments.append(text)
            return (*events, part.make(part.segment, text))
        return (*events, *self._part_stated(item, part, given, frame))

    def _delta(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        name = payload.get("type", frame.event)
        flow, text = DELTAS[name], payload.get("delta")
        if not isinstance(text, str):
            return (self._fault("malformed", f"{name} without its delta", frame),)
        item, part, events = self._place(payload, flow, frame)
        if item is None or part is None:
            return events
        if not part.open or part.whole is not None:
            return (*events, *self._too_late(item, name, frame))
        if flow.group == "draft":
            text = escaped(text)
            if not item.drafting and item.draft is not None:
                item.drafting, text = True, item.draft[0] + text
        part.fragments.append(text)
        self._heat(part, item, name)
        return (*events, part.make(part.segment, text))

    def _done(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        name = payload.get("type", frame.event)
        flow = DONES[name]
        text = payload.get(flow.field)
        if not isinstance(text, str):
            return (self._fault("malformed", f"{name} without its {flow.field}", frame),)
        item, part, events = self._place(payload, flow, frame)
        if item is None or part is None:
            return events
        if flow.group == "draft":
            if item.draft is None:
                return events
            events = (*events, *self._end_draft(item, part))
            text = f"{item.draft[0]}{escaped(text)}{item.draft[1]}"
        if flow.group == "input" and "name" in payload:
            events = (*events, *self._name(item, word(payload["name"]), "", frame))
        return (*events, *self._confirm(item, part, text, frame))

    def _place(
        self, payload: dict[str, Any], flow: Flow, frame: Frame
    ) -> tuple[Item | None, Part | None, tuple[Event, ...]]:
        """The item and part that an event is about; where they began without a start, so be it."""
        index = payload.get("output_index")
        number = payload.get(flow.index) if flow.index else 0
        if not (index is None or is_index(index)) or not (number is None or is_index(number)):
            text = f"an index that is none: {index!r:.80}, {number!r:.80}"
            return None, None, (self._fault("malformed", text, frame),)
        item_id = word(payload.get("item_id"))
        item, events = self._find(index, item_id, flow.item, frame)
        if item is None:
            return None, None, events
        if not item.takes(flow):
            name = payload.get("type", frame.event)
            text = f"{name!r:.80} for item {item.index}, a {item.type[:80]!r}"
            return None, None, (*events, self._fault("delta-kind", text, frame))
        if not flow.index:
            return item, item.own, events
        if number is None:
            text = f"an event without its {flow.index}; 0 is taken"
            events, number = (*events, *self._habit("no-index", "warning", text, frame)), 0
        part = item.parts.get((flow.group, number))
        if part is not None:
            return item, part, events
        if item.done:
            return None, None, (*events, *self._too_late(item, flow.part, frame))
        begun = self._begin_part(item, (flow.group, number), flow.part, frame)
        return item, item.parts.get((flow.group, number)), (*events, *begun)

    def _too_late(self, item: Item, what: str, frame: Frame) -> tuple[Event, ...]:
        text = f"{what[:80]} for item {item.index} after its content was stated whole"
        if item.client:
            return (Ambiguous(text, frame.number),)
        return self._habit("delta-after-done", "warning", f"{text}; it is left out", frame)

    # ------------------------------------------------------------------ what belongs to an item

    def _annotation(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        flow = DELTAS["response.output_text.delta"]
        _, part, events = self._place(payload, flow, frame)
        if part is None or not part.open:
            return events
        part.citations += 1
        return (*events, Attached(part.segment, "citation", payload.get("annotation")))

    def _image(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        index = payload.get("output_index")
        item = self._by_index.get(index) if is_index(index) else None
        if item is None or not item.own.open:
            return self._habit("image", "warning", "a preview of an image of no open item", frame)
        item.images += 1
        if item.images > MAX_IMAGES:
            text = f"more than {MAX_IMAGES} previews of one image; the rest is left out"
            return self._habit("too-many-images", "warning", text, frame)
        return (Attached(item.own.segment, "partial_image", payload.get("partial_image_b64")),)

    def _command(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """A shell's command, streamed; the item states them all, and must state this one too."""
        index, number = payload.get("output_index"), payload.get("command_index")
        item = self._by_index.get(index) if is_index(index) else None
        if item is not None and is_index(number) and len(item.commands) < MAX_SAID:
            item.commands[number] = word(payload.get("command"))
        return ()

    def _audio(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        return self._habit("audio", "note", "audio is not assembled here", frame)

    #: Event type -> how it is read. `error` is not here: an error counts in any shape.
    EVENTS: ClassVar[dict[str, Callable[..., tuple[Event, ...]]]] = {
        **dict.fromkeys(
            ("response.created", "response.queued", "response.in_progress"), _lifecycle
        ),
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        **dict.fromkeys([f"{name}.added" for name in PARTS], _part_event),
        **dict.fromkeys([f"{name}.done" for name in PARTS], _part_event),
        **dict.fromkeys(DELTAS, _delta),
        **dict.fromkeys(DONES, _done),
        "response.output_text.annotation.added": _annotation,
        "response.image_generation_call.partial_image": _image,
        "response.shell_call_command.done": _command,
        **dict.fromkeys(AUDIO, _audio),
        **dict.fromkeys(TERMINAL, _terminal),
    }
