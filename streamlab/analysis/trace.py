"""The trace: a script folded once from start to end, with every step kept.

`trace` takes the same way as the consumer's loop, frame by frame, and keeps for each step the
bytes, the read, the frame, its events, the turn and the attempt before and after, and *why*. Steps
are frozen and turns share what they have in common, so keeping them all costs little, and a view
may move freely.

Read next: `widgets/stepper.py`, which lets a learner move through one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import msgspec

from streamlab.analysis.explain import why
from streamlab.consumer.attempt import Attempt, Input, State, advance, observe
from streamlab.consumer.commit import RecordingAdapter, begin, perform, reconcile
from streamlab.consumer.delivery import Envelope, Receipt, receive
from streamlab.consumer.gates import Verdict, judge_turn, proposals, settle
from streamlab.consumer.turn import EMPTY, Turn, reduce
from streamlab.streams.recording import Recording
from streamlab.streams.script import Control, Script
from streamlab.wire.events import Event, MessageCompleted
from streamlab.wire.reader import Reader
from streamlab.wire.sse import Frame

__all__ = ["Step", "Trace", "trace"]

replace = msgspec.structs.replace


class Step(msgspec.Struct, frozen=True):
    """One thing that happened, and everything before and after it."""

    n: int  #: 1 for the first step
    kind: str  #: "frame", "end", "gates", or a control's action
    name: str
    events: tuple[Event, ...]
    turn_before: Turn
    turn: Turn
    attempt_before: Attempt
    attempt: Attempt
    why: str
    start: int  #: offset of its first byte in the stream
    end: int
    raw: bytes = b""
    frame: Frame | None = None
    chunk: int | None = None  #: 1 for the first read
    t: float | None = None  #: seconds since the request was sent
    injected: bool = False
    verdicts: tuple[Verdict, ...] = ()  #: of the gates, once they were asked
    receipt: Receipt | None = None  #: of an envelope that was handed over beside the stream


class Trace(msgspec.Struct, frozen=True):
    """A script, folded: its steps, in order."""

    script: Script
    wire: str | None
    steps: tuple[Step, ...]

    @property
    def attempt(self) -> Attempt:
        """Where the attempt ended."""
        return self.steps[-1].attempt

    @property
    def turn(self) -> Turn:
        """What was assembled."""
        return self.steps[-1].turn

    @property
    def cut_off(self) -> tuple[Step, ...]:
        """The steps that the last change of the script took away: what would have been.

        Empty where all of it still comes to pass, as after an unknown event.
        """
        before = self.script.before
        if before is None:
            return ()
        old, new = trace(before).steps, self.steps
        start = _alike(old, new)
        left = old[start:]
        return left[: len(left) - _alike(left[::-1], new[start:][::-1])]

    def to_json(self, title: str = "") -> dict[str, Any]:
        """The trace as plain JSON, as the views read it."""
        from streamlab.analysis.trace_json import trace_json

        return trace_json(self, title)

    def __repr__(self) -> str:
        return f"Trace({len(self.steps)} steps, {self.attempt.state})"


def _alike(old: tuple[Step, ...], new: tuple[Step, ...]) -> int:
    """How many steps, from the first on, came the same and led to the same state."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (a, b) in pairs if _looks(a) != _looks(b)), min(len(old), len(new)))


def _looks(step: Step) -> tuple[str, str, bytes, State]:
    return (step.kind, step.name, step.raw, step.attempt.state)


def trace(script: Script | Recording) -> Trace:
    """Fold a script, keeping every step."""
    if isinstance(script, Recording):
        script = Script(script)
    tracer = _Tracer(script)
    steps = tuple(tracer.steps())
    return Trace(script, tracer.reader.wire, steps)


class _Tracer:
    """Takes the consumer's way event by event, and writes each step down."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.reader = Reader(script.recording.wire)
        self.data = script.recording.data
        self.read_ends = list(accumulate(len(chunk.data) for chunk in script.recording.chunks))
        self.turn, self.attempt = EMPTY, Attempt()
        self.n, self.at = 0, 0
        self.verdicts: tuple[Verdict, ...] = ()
        self.delivered: set[str] = set()  #: deliveries that were handled
        self.effects = RecordingAdapter()

    def steps(self) -> Iterator[Step]:
        """Every step, in order."""
        for t, data in self.script.recording.chunks:
            late = self.reader.over_time(t) if t is not None else []
            for frame, events in late + self.reader.feed(data):
                yield self._frame_step(frame, events)
                if frame is not None:
                    yield from self._controls(frame.number)
            if self.reader.exceeded:
                break
        yield from self._ending()
        yield from self._controls(None)

    def _frame_step(self, frame: Frame | None, events: tuple[Event, ...]) -> Step:
        if frame is None:  # a bound of ours was passed: the bytes so far are what it is about
            return self._step("bound", "bound", events, len(self.data))
        end = frame.end + (self.data[frame.end - 1 : frame.end + 1] == b"\r\n")
        injected = frame.number in self.script.injected
        self.delivered.add(f"frame {frame.number}")
        return self._step("frame", frame.event or "data", events, end, frame, injected=injected)

    def _ending(self) -> Iterator[Step]:
        recording, reader = self.script.recording, self.reader
        taken: list[Event] = []
        for frame, events in reader.end(recording.ending, recording.end_t):
            if frame is not None:
                yield self._frame_step(frame, events)
                yield from self._controls(frame.number)
            else:
                taken += events
        end = len(self.data)
        ending = reader.ending or recording.ending
        yield self._step("end", ending, tuple(taken), end, t=recording.end_t)
        if self.attempt.state is State.MESSAGE_COMPLETE:
            yield self._gates()

    def _gates(self) -> Step:
        before, self.verdicts = self.attempt, judge_turn(self.turn, self.script.policy)
        self.attempt = settle(before, self.turn, self.verdicts)
        return self._made("gates", "gates", (), before, self.turn)

    def _controls(self, after: int | None) -> Iterator[Step]:
        for control in self.script.controls:
            if control.after == after:
                yield from CONTROLS[control.action](self, control)

    def _cancel(self, control: Control) -> Iterator[Step]:
        before = self.attempt
        text = "we cancelled it before anything was committed"
        self.attempt = advance(before, Input.CANCEL, text)
        yield self._made("cancel", "cancel", (), before, self.turn, injected=True)

    def _redeliver(self, control: Control) -> Iterator[Step]:
        name = f"frame {control.frame}"
        yield self._deliver("redeliver", name, Envelope(self.attempt.id, name))

    def _late(self, control: Control) -> Iterator[Step]:
        """A completion callback; while the attempt is under way it can only be an older one's."""
        whose = self.attempt.id if control.after is None else OLDER
        envelope = Envelope(whose, "completion callback", (MessageCompleted(self.reader.frames),))
        yield self._deliver("late", "late", envelope)

    def _deliver(self, kind: str, name: str, envelope: Envelope) -> Step:
        turn_before, before = self.turn, self.attempt
        receipt = receive(envelope, before, self.delivered)
        if receipt is Receipt.NEW:
            self.delivered.add(envelope.delivery)
            for event in envelope.events:
                self.turn = reduce(self.turn, event)
                self.attempt = observe(self.attempt, event)
        more: dict[str, Any] = {"injected": True, "receipt": receipt}
        return self._made(kind, name, envelope.events, before, turn_before, **more)

    def _commit(self, control: Control) -> Iterator[Step]:
        before, ready = self.attempt, proposals(self.turn)
        if control.lost:
            self.effects.lose_next()
        self.attempt = begin(before)
        yield self._made("commit", "commit", (), before, self.turn, injected=True)
        if self.attempt is not before:
            before = self.attempt
            authorise = self.script.policy.authorise
            self.attempt = perform(before, ready, self.effects, authorise)
            yield self._made("effect", "effect", (), before, self.turn, injected=True)

    def _reconcile(self, control: Control) -> Iterator[Step]:
        before = self.attempt
        self.attempt = reconcile(before, self.effects)
        yield self._made("reconcile", "reconcile", (), before, self.turn, injected=True)

    def _step(
        self,
        kind: str,
        name: str,
        events: tuple[Event, ...],
        end: int,
        frame: Frame | None = None,
        **more: Any,
    ) -> Step:
        turn_before, before = self.turn, self.attempt
        for event in events:
            self.turn = reduce(self.turn, event)
            self.attempt = observe(self.attempt, event)
        start, self.at = self.at, end
        return self._made(kind, name, events, before, turn_before, start, frame, **more)

    def _made(
        self,
        kind: str,
        name: str,
        events: tuple[Event, ...],
        before: Attempt,
        turn_before: Turn,
        start: int | None = None,
        frame: Frame | None = None,
        t: float | None = None,
        **more: Any,
    ) -> Step:
        self.n += 1
        first = self.at if start is None else start
        chunk = bisect_left(self.read_ends, frame.end) if frame is not None else None
        if chunk is not None and t is None:
            t = self.script.recording.chunks[chunk].t
        step = Step(
            n=self.n,
            kind=kind,
            name=name,
            events=events,
            turn_before=turn_before,
            turn=self.turn,
            attempt_before=before,
            attempt=self.attempt,
            why="",
            start=first,
            end=self.at,
            raw=self.data[first : self.at],
            frame=frame,
            chunk=None if chunk is None else chunk + 1,
            t=t,
            verdicts=self.verdicts,
            **more,
        )
        return replace(step, why=why(step))


#: The id of an attempt before this one: it was given up, and a retry made this one.
OLDER = "attempt-0"

#: A control's action -> the steps that it makes.
CONTROLS = {
    "cancel": _Tracer._cancel,
    "redeliver": _Tracer._redeliver,
    "late": _Tracer._late,
    "commit": _Tracer._commit,
    "reconcile": _Tracer._reconcile,
}
