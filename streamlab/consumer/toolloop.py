"""The tool loop: one turn over several streams, and its tools run between them.

    ask ──▶ stream ──▶ gates ──▶ run the calls, side by side ──▶ ask again, with their results …
                         └──▶ any other end: the turn is over, in one of the `TurnState`s

Each stream gets a `Consumer` and an attempt id of its own, so nothing of one can survive in the
next. A call is published as running *before* it is awaited; each resolves when it is done, and the
results go back in the order of the calls. A tool that fails has failed, not the turn: the model is
told.

The conversation moves only by whole rounds: an answer *and* a result for each of its calls. So it
is fit for a request at any time, also after a cancel, and a retry starts where it stands. What had
begun to run is in it as having run: somewhere outside, it may have done something.

`tools` holds what may run at once. A tool that is permitted and not in it ends the turn as
PROPOSED: its effect goes through `commit.py`.

Read next: `bus.py`, for what a screen makes of it; `ledger.py`, for effects that must not get lost.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

from msgspec import structs

from streamlab.consumer.attempt import Input, State, advance
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.conversation import Conversation
from streamlab.consumer.gates import EFFECT, Policy, Proposal
from streamlab.consumer.history import Message, content, objections, wrong_blocks
from streamlab.consumer.toolrecord import Ended, Round, Run, failure, result
from streamlab.consumer.turn import Turn
from streamlab.consumer.turn_events import (
    TOLD,
    BusEvent,
    RoundEnded,
    RoundStarted,
    SegmentOpened,
    Status,
    ToolProposed,
    ToolResolved,
    ToolRunning,
    TurnEnded,
    TurnState,
    printable,
    told,
)
from streamlab.errors import UsageError
from streamlab.wire.reader import Read

__all__ = [
    "MOST_CALLS",
    "TOLD",
    "Ask",
    "Ended",
    "Round",
    "Run",
    "Status",
    "Tool",
    "TurnState",
    "run_turn",
]

#: Runs under a name, with the input of a call; gives the text of its result.
Tool = Callable[[dict[str, Any]], Awaitable[str]]

#: One request: messages in, the bytes of its answer out as they come, each read with its time or
#: without. How it stops is said as sockets say it: by an `OSError`, or by just ending.
Ask = Callable[[list[Message]], AsyncIterator[bytes | tuple[float | None, bytes]]]

#: Calls that one round may have; a round with more is held. Work on a screen grows with its square.
MOST_CALLS = 128


async def run_turn(
    conversation: Conversation,
    ask: Ask,
    tools: Mapping[str, Tool],
    policy: Policy = EFFECT,
    *,
    most_rounds: int = 6,
    most_same: int = 2,
    publish: Callable[[BusEvent], object] = lambda event: None,
    turn: str = "turn-1",
    after: Ended | None = None,
) -> Ended:
    """Run one turn to its end.

    At most `most_rounds` whole rounds, and at most `most_same` times the same tool with the same
    input. A turn that was interrupted, or whose proposal was committed, goes on with `after`.
    A round of more than `MOST_CALLS` calls is held. `publish` is called in the midst of it all, so
    it must not wait. If it raises, it is called no more, and `Ended.unheard` says so.

    Whatever a tool or `ask` raises is on record and ends no more than its call or its stream, a
    `SystemExit` or `KeyboardInterrupt` too. (Under `asyncio.run`, Ctrl-C comes as a cancel.)

    To cancel it, cancel its task. That is an outcome like the others, so the task still *returns*
    an `Ended`: what had run must not get lost. (Cancelled before its first step, it never began.)
    The cancel ends here: an `asyncio.timeout` around it raises no `TimeoutError`, and in a
    `TaskGroup` that is being torn down your code goes on after it. So the next line should be:

        if ended.state is TurnState.CANCELLED:
            return
    """
    conversation.request()
    if not conversation.messages:
        raise UsageError("the conversation is empty: ask something first")
    if most_rounds < 1 or most_same < 1:
        raise UsageError("most_rounds and most_same are at least 1")
    loop = _Loop(conversation, ask, tools, policy, most_rounds, most_same, publish, turn, after)
    try:
        state, why = await loop.run()
    except asyncio.CancelledError:
        state, why = loop.wind_up()
    ended = loop.ended(state, why)
    await loop.absorb()
    return ended


class _Call:
    """A call whose round has passed the gates."""

    def __init__(self, segment: str, proposal: Proposal) -> None:
        self.segment, self.proposal = segment, proposal
        self.status, self.text = Status.READY, ""

    @property
    def same(self) -> str:
        """What it has in common with an identical call."""
        return json.dumps([self.proposal.tool, self.proposal.input], sort_keys=True)

    def run(self) -> Run:
        proposal = self.proposal
        return Run(proposal.call_id, proposal.tool, proposal.input, self.status, self.text)


class _Round:
    """The round that is under way."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.calls: list[_Call] = []  #: those that are to be run
        self.opened = 0  #: calls that have begun to come
        self.asked: Conversation | None = None  #: with its answer, whose calls have no results yet


#: How a turn ends, and why.
_End = tuple[TurnState, str]

#: Where a stream can end, and what that makes of the turn. The others go on.
_OVER = {
    State.HELD: TurnState.HELD,
    State.INCOMPLETE: TurnState.INCOMPLETE,
    State.INVALID: TurnState.INVALID,
}


class _Loop:
    """One turn while it runs. Whatever it awaits, its record is right."""

    def __init__(
        self,
        conversation: Conversation,
        ask: Ask,
        tools: Mapping[str, Tool],
        policy: Policy,
        most_rounds: int,
        most_same: int,
        publish: Callable[[BusEvent], object],
        turn: str,
        after: Ended | None,
    ) -> None:
        self._conversation, self._ask = conversation, ask
        self._tools, self._policy, self._screen = dict(tools), policy, publish
        self._unheard = ""
        self._most_rounds, self._most_same = most_rounds, most_same
        self._turn = after.turn if after else turn
        self._rounds = list(after.rounds) if after else []
        self._round: _Round | None = None
        self._proposals: tuple[Proposal, ...] = ()
        self._pending: Conversation | None = None
        self._task = _this_task()
        self._cancels = self._task.cancelling()

    async def run(self) -> _End:
        """Round after round."""
        while True:
            round = self._round = await self._stream()
            end = self._decide(round)
            if end is not None:
                return end
            async with asyncio.TaskGroup() as group:
                for call in round.calls:
                    group.create_task(self._call(round, call))
            self._answer(round, "")

    # --- cancelling

    @property
    def cancelled(self) -> bool:
        """Whether somebody has cancelled our task, also where we have not been told yet."""
        return self._task.cancelling() > self._cancels

    def _check(self) -> None:
        if self.cancelled:
            raise asyncio.CancelledError

    def wind_up(self) -> _End:
        """Put the record in order after a cancel."""
        round = self._round
        if round is not None and round.asked is not None:
            self._answer(round, "cancelled before it ran")
        elif round is not None:
            round.consumer.cancel()
            self._close(round, kept=False)
        return TurnState.CANCELLED, "it was cancelled by our own wish"

    async def absorb(self) -> None:
        """Let a cancel end here, also one that came too late: else it would take the record along.

        asyncio delivers it at the next await, so there must be one.
        """
        while self.cancelled:
            self._task.uncancel()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)

    # --- one stream

    async def _stream(self) -> _Round:
        """Send one request, and read its answer to the end."""
        self._check()
        number = len(self._rounds) + 1
        consumer = Consumer(policy=self._policy, attempt=f"{self._turn}/{number}")
        round = self._round = _Round(consumer)
        self._publish(RoundStarted(self._turn, consumer.attempt.id, number))
        self._check()
        consumer.end(await self._read(round))
        self._tell(round, consumer.last_words)
        return round

    async def _read(self, round: _Round) -> str:
        """Read a stream as far as it is worth it; return how it stopped."""
        consumer, request, stream = round.consumer, self._conversation.request(), None
        try:
            stream = self._ask(request)
            async for read in stream:
                t, data = (None, read) if isinstance(read, bytes) else read
                self._tell(round, consumer.feed(data, t))
                if consumer.finished or consumer.attempt.terminal:
                    return "cancelled"  # by us: there is nothing more to learn
                await asyncio.sleep(0)  # a stream that is always ready must not starve the screen
            return "eof"
        except asyncio.CancelledError:
            self._check()
            return "cut"  # something inside the request was cancelled, and not we
        except GeneratorExit:
            raise  # our own: the event loop is gone
        except BaseException as why:
            return _stopped_by(why, consumer)
        finally:
            await self._hang_up(stream)

    async def _hang_up(self, stream: object) -> None:
        """Close a stream. However that goes, the answer is judged by what came."""
        try:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        except GeneratorExit:
            raise
        except BaseException as why:
            if isinstance(why, asyncio.CancelledError):
                self._check()

    # --- what a screen hears

    def _publish(self, event: BusEvent) -> None:
        """Tell the screen, until that fails once: its trouble is not the turn's."""
        if self._unheard:
            return
        try:
            self._screen(event)
        except BaseException as why:
            self._unheard = printable(f"{type(event).__name__}: {failure(why)}")

    def _tell(self, round: _Round, reads: list[Read]) -> None:
        """Publish what a read has changed; not of more calls than a round may have."""
        for event in told(self._turn, round.consumer, reads):
            if isinstance(event, SegmentOpened):
                round.opened += event.kind == "tool_call" and not event.server
            if round.opened <= MOST_CALLS:
                self._publish(event)

    # --- what its answer means

    def _decide(self, round: _Round) -> _End | None:
        """The end that this stream puts to the turn; None where its tools are to run."""
        consumer, proposals = round.consumer, round.consumer.proposals
        state, why = consumer.attempt.state, consumer.attempt.why
        if state in _OVER:
            self._close(round, kept=False)
            return _OVER[state], why
        asked = self._conversation.keep(consumer)
        unfit = self._unfit(asked, consumer.turn, proposals)
        if unfit:
            consumer.attempt = advance(consumer.attempt, Input.GATES_HELD, unfit)
            self._close(round, kept=False)
            return TurnState.HELD, unfit
        if not proposals:
            self._conversation = asked
            self._close(round, kept=True)
            return TurnState.ANSWERED, "the model asks for no tool"
        segments = [call.id for call in consumer.turn.calls]
        round.calls = [_Call(*pair) for pair in zip(segments, proposals, strict=True)]
        if any(call.proposal.tool not in self._tools for call in round.calls):
            return self._propose(round, asked)
        round.asked = asked
        end = self._too_much(round)
        if end is not None:
            self._answer(round, f"not run: {end[1]}")
        return end

    def _unfit(self, asked: Conversation, turn: Turn, proposals: tuple[Proposal, ...]) -> str:
        """Why no request may hold this answer, whole as it is; "" where one may."""
        if len(proposals) > MOST_CALLS:
            return f"{len(proposals)} calls in one round; allowed: {MOST_CALLS}"
        if asked is self._conversation:
            wrong = next(wrong_blocks("assistant", content(turn)), ("", "it can't be kept"))
            return f"no request may hold this answer: {wrong[1]}"
        answered = asked.answer({call.call_id: "" for call in proposals}) if proposals else asked
        found = next((o for o in objections(answered.messages) if o.rule != "last"), None)
        return f"no request may hold this answer: {found.says}" if found else ""

    def _propose(self, round: _Round, asked: Conversation) -> _End:
        """Leave the whole round to a review: none of its calls runs before that."""
        strangers = [c.proposal.tool for c in round.calls if c.proposal.tool not in self._tools]
        for call in round.calls:
            call.status = Status.PROPOSED
            self._publish(ToolProposed(self._turn, round.consumer.attempt.id, call.segment))
        self._proposals, self._pending = round.consumer.proposals, asked
        self._close(round, kept=True)
        return TurnState.PROPOSED, f"{strangers[0]} may not run without a commit"

    def _too_much(self, round: _Round) -> _End | None:
        """The guards: the very same call too often, or too many rounds."""
        earlier = [_Call("", _proposal(r)) for e in self._rounds for r in e.runs if r.started]
        times = Counter(call.same for call in (*earlier, *round.calls))
        for call in round.calls:
            if times[call.same] > self._most_same:
                why = f"{call.proposal.tool} with the same input, {times[call.same]} times"
                return TurnState.REPEATING, f"{why}; allowed: {self._most_same}"
        if 1 + sum(e.kept for e in self._rounds) >= self._most_rounds:
            return TurnState.CAPPED, f"{self._most_rounds} rounds, and the model asks for more"
        return None

    # --- its tools

    async def _call(self, round: _Round, call: _Call) -> None:
        """Run one call, in a task of its own. Whatever the tool does, this says how it went."""
        if self.cancelled:
            return
        attempt = round.consumer.attempt.id
        self._publish(ToolRunning(self._turn, attempt, call.segment))
        if self.cancelled:
            return
        tool, proposal = self._tools[call.proposal.tool], call.proposal
        try:
            text = await tool(deepcopy(proposal.input))
            call.status, call.text = result(text)
        except asyncio.CancelledError as why:
            if not _this_task().cancelling():  # the tool's own affair
                call.status, call.text = Status.FAILED, failure(why)
            else:
                call.status, call.text = Status.CANCELLED, "cancelled while it ran"
                raise
        except BaseException as why:  # let through, it would take the record along
            call.status, call.text = Status.FAILED, failure(why)
        finally:
            if call.status is not Status.READY:
                self._resolved(round, call)

    def _resolved(self, round: _Round, call: _Call) -> None:
        attempt = round.consumer.attempt.id
        self._publish(ToolResolved(self._turn, attempt, call.segment, call.status, call.text))

    def _answer(self, round: _Round, not_run: str) -> None:
        """Put the round into the conversation, a result for each call; some may not have run."""
        assert round.asked is not None
        for call in round.calls:
            if call.status is Status.READY:
                call.status, call.text = Status.NOT_RUN, not_run
                self._resolved(round, call)
        results = {call.proposal.call_id: call.text for call in round.calls}
        errors = {c.proposal.call_id for c in round.calls if c.status is not Status.DONE}
        self._conversation = round.asked.answer(results, errors)
        self._close(round, kept=True)

    # --- its end

    def _close(self, round: _Round, kept: bool) -> None:
        self._round, attempt = None, round.consumer.attempt
        runs = tuple(call.run() for call in round.calls)
        self._rounds.append(Round(attempt, round.consumer.turn, kept, runs))
        why = printable(attempt.why)
        self._publish(RoundEnded(self._turn, attempt.id, attempt.state, why, kept))

    def ended(self, state: TurnState, why: str) -> Ended:
        """The record of the turn, and the last word on the bus."""
        why, rounds = printable(why), tuple(self._rounds)
        ended = Ended(
            self._turn, state, why, self._conversation, rounds, self._proposals, self._pending
        )
        self._publish(TurnEnded(self._turn, ended.attempt.id, state, ended.said, why))
        return structs.replace(ended, unheard=self._unheard)


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _proposal(run: Run) -> Proposal:
    return Proposal(run.call_id, run.tool, run.input)


def _stopped_by(why: BaseException, consumer: Consumer) -> str:
    """How a stream stopped, from what its reader raised."""
    if not isinstance(why, (OSError, EOFError)):  # no transport: nobody knows what that was
        consumer.attempt = advance(
            consumer.attempt, Input.VIOLATION, f"the request failed: {failure(why)}"
        )
    elif not consumer.reader.bytes:
        consumer.attempt = advance(consumer.attempt, Input.ENDED, f"no answer came: {failure(why)}")
    if isinstance(why, TimeoutError):
        return "timeout"
    return "reset" if isinstance(why, ConnectionResetError) else "cut"
