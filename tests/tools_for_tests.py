"""Turns with tools for the tests: tools that are watched, and the laws that every turn keeps."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from streamlab.consumer.bus import Bus
from streamlab.consumer.conversation import Conversation
from streamlab.consumer.history import Message, content, objections
from streamlab.consumer.screen import Screen, by_turn, fold_screen
from streamlab.consumer.toolloop import Ask, Ended, run_turn
from streamlab.consumer.turn_events import BusEvent, Status, TurnEnded, TurnState
from streamlab.streams.parts import Part, Style, Text, ToolCall
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.rounds import READING
from streamlab.streams.synth import answer

JSON = dict[str, Any]

ASKED = Conversation().ask("What about W-7?")

PLAIN = Style(fragment=(12, 12), first_empty=False, pings=0)


def read(item: str) -> ToolCall:
    return ToolCall("read_item", {"item": item})


def stream(seed: int, *parts: Part, reason: str | None = None) -> Recording:
    return answer(parts, reason, seed=seed, style=PLAIN)


SAID = stream(99, Text("That is all."))


ERRORS = {"cut": EOFError, "reset": ConnectionResetError, "timeout": TimeoutError}


class Asker:
    """Answers from recordings in memory; keeps every request, and whether its stream was closed."""

    def __init__(self, *recordings: Recording) -> None:
        self.requests: list[list[Message]] = []
        self.open = 0
        self._left = list(recordings)

    def __call__(self, messages: list[Message]) -> AsyncIterator[Chunk]:
        self.requests.append(messages)
        return self._answer(self._left.pop(0))

    async def _answer(self, recording: Recording) -> AsyncIterator[Chunk]:
        self.open += 1
        try:
            for chunk in recording.chunks:
                await asyncio.sleep(0)
                yield chunk
            if recording.ending in ERRORS:
                raise ERRORS[recording.ending]("as recorded")
        finally:
            self.open -= 1


class Desk:
    """The tool `read_item`, watched; `does` says what it does with the n-th call (from 0)."""

    def __init__(self, does: Callable[[int, str], Awaitable[str]] | None = None) -> None:
        self.log: list[str] = []
        self.started: list[str] = []
        self.finished: list[str] = []
        self._does = does

    async def read_item(self, input: JSON) -> str:
        item, number = str(input["item"]), len(self.started)
        self.started.append(item)
        self.log.append(f"{item} started")
        await asyncio.sleep(0)
        text = await self._does(number, item) if self._does else f"{item} is a draft"
        self.finished.append(item)
        self.log.append(f"{item} finished")
        return text

    @property
    def tools(self) -> dict[str, Callable[[JSON], Awaitable[str]]]:
        return {"read_item": self.read_item}


def play(
    ask: Ask,
    desk: Desk | None = None,
    *,
    conversation: Conversation = ASKED,
    seconds: float = 10,
    **options: Any,
) -> tuple[Ended, list[BusEvent]]:
    """Run one turn; what went over the bus comes with it."""
    events: list[BusEvent] = []

    async def main() -> Ended:
        async with asyncio.timeout(seconds):
            tools = (desk or Desk()).tools
            options.setdefault("policy", READING)
            options.setdefault("publish", events.append)
            return await run_turn(conversation, ask, tools, **options)

    return asyncio.run(main()), events


async def watched(bus: Bus, task: asyncio.Task[Ended]) -> Screen:
    """The screen of a reader that reads everything."""
    task.add_done_callback(bus.close)
    return fold_screen([event async for event in bus])


# --- The laws -------------------------------------------------------------------------------------


def wrong_history(conversation: Conversation) -> list[str]:
    """What a request with this history would be refused for."""
    return [str(o) for o in objections(conversation.messages) if o.rule != "last"]


def blocks(conversation: Conversation, type: str) -> list[JSON]:
    return [b for m in conversation.messages for b in m["content"] if b["type"] == type]


def check_laws(ended: Ended, events: list[BusEvent], desk: Desk) -> None:
    """What holds of every turn, however it went."""
    assert wrong_history(ended.conversation) == []
    # each call of the history has one result, and it says what came of the call
    results = {b["tool_use_id"]: b for b in blocks(ended.conversation, "tool_result")}
    calls = [b["id"] for b in blocks(ended.conversation, "tool_use")]
    runs = {run.call_id: run for run in ended.runs}
    assert [*results] == calls and len(runs) == len(ended.runs)
    for id, result in results.items():
        assert result["content"] == runs[id].text
        assert result.get("is_error", False) == (runs[id].status is not Status.DONE)
    # what is on record as having run did run, once, and nothing else did
    assert Counter(run.input["item"] for run in ended.runs if run.started) == Counter(desk.started)
    undecided = {Status.STREAMING, Status.READY, Status.RUNNING}
    assert undecided.isdisjoint(run.status for run in ended.runs)
    # the history is what it was, and the kept rounds, in order
    kept = [block for round in ended.rounds if round.kept for block in content(round.turn)]
    said = [
        b for m in ended.conversation.messages if m["role"] == "assistant" for b in m["content"]
    ]
    assert said == (kept if ended.state is not TurnState.PROPOSED else kept[: len(said)])
    check_screen(ended, events)


def check_screen(ended: Ended, events: list[BusEvent]) -> None:
    """One bubble, which shows the kept rounds and no other, and how it ended."""
    (bubble,) = fold_screen(events, bubble_of=by_turn).bubbles
    assert (bubble.id, bubble.state, bubble.said) == (ended.turn, ended.state, ended.said)
    shown = [(p.kind, p.tool, p.text) for p in bubble.parts if p.status is not Status.DISCARDED]
    meant = [
        (s.kind, s.start.name, s.text) for r in ended.rounds if r.kept for s in r.turn.segments
    ]
    assert shown == meant
    cards = [p for p in bubble.parts if p.kind == "tool_call" and not p.server]
    chips = [(p.status, p.result) for p in cards if p.status is not Status.DISCARDED]
    assert chips == [(run.status, run.text) for run in ended.runs]
    assert [e for e in events if isinstance(e, TurnEnded)] == [events[-1]]
