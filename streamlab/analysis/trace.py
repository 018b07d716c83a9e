"""The trace: a script folded once from start to end, with every step kept.

A *script* is a recording, and the control inputs that happen along it. Its methods break it on
purpose; each gives a new script, and remembers the line of code that made it. `trace` takes the
same way as the consumer's loop, frame by frame, and keeps for each step the bytes, the read, the
frame, its events, the turn and the attempt before and after, and *why*. Steps are frozen and turns
share what they have in common, so keeping them all costs little, and a view may move freely.

Read next: `widgets/stepper.py`, which lets a learner move through one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import msgspec

from streamlab.analysis.explain import why
from streamlab.consumer.attempt import Attempt, Input, State, advance, observe
from streamlab.consumer.gates import EFFECT, Policy, Verdict, judge_turn, settle
from streamlab.consumer.turn import EMPTY, Turn, reduce
from streamlab.errors import UsageError
from streamlab.streams import faults
from streamlab.streams.recording import Recording
from streamlab.wire.events import Event, TextDelta
from streamlab.wire.reader import Reader
from streamlab.wire.sse import Frame

__all__ = ["Control", "Script", "Step", "Trace", "trace"]

replace = msgspec.structs.replace


class Control(msgspec.Struct, frozen=True):
    """Something that happens to an attempt beside its stream."""

    action: str  #: "cancel", "redeliver", "late"
    after: int | None = None  #: frame number; None: after everything
    frame: int | None = None  #: which frame is delivered again


class Script(msgspec.Struct, frozen=True):
    """A recording and what happens along it; each method gives a new script."""

    recording: Recording
    controls: tuple[Control, ...] = ()
    policy: Policy = EFFECT
    prompt: str = "…"  #: the user's message, for the view of what the conversation keeps
    code: str = "script"
    injected: frozenset[int] = frozenset()  #: numbers of the frames that a fault put in
    before: Script | None = None  #: the script without the last change

    def disconnect(self, after: int, ending: str = "eof") -> Script:
        """Let the transport stop after a frame: "eof", "cut", "reset" or "timeout"."""
        return self._broken(faults.disconnect, after=after, ending=ending)

    def cancel(self, after: int | None = None) -> Script:
        """Cancel after a frame; without one, after everything."""
        call = f"cancel(after={after})" if after is not None else "cancel()"
        if after is None:
            return self._controlled(call, Control("cancel"))
        cut = faults.disconnect(self.recording, after, "cancelled")
        return self._changed(call, cut)

    def error(self, after: int, type: str = "overloaded_error") -> Script:
        """Let the provider report an error, after HTTP has long said 200."""
        return self._broken(faults.error, after=after, type=type)

    def token_limit(self, after: int) -> Script:
        """Let the answer run into its token limit: a whole sequence, cut short by `max_tokens`."""
        return self._broken(faults.token_limit, after=after)

    def unknown(self, after: int) -> Script:
        """Let an event come that is not known here."""
        return self._broken(faults.unknown, after=after)

    def skip(self, frame: int) -> Script:
        """Lose a frame."""
        return self._broken(faults.skip, frame=frame)

    def insert(self, after: int, frame: bytes) -> Script:
        """Put a frame in, given as the bytes of its block."""
        return self._broken(faults.insert, after=after, frame=frame)

    def redeliver(self, frame: int, after: int | None = None) -> Script:
        """Hand the consumer one frame's envelope again, under the same delivery identity."""
        place = frame if after is None else after
        call = f"redeliver(frame={frame}" + (")" if after is None else f", after={after})")
        self._check(frame, place)
        return self._controlled(call, Control("redeliver", place, frame))

    def late(self, after: int | None = None) -> Script:
        """Let a callback come that belongs to content long past; without a place, after the end."""
        call = "late()" if after is None else f"late(after={after})"
        if after is not None:
            self._check(after)
        return self._controlled(call, Control("late", after))

    @property
    def frames(self) -> int:
        """How many frames the recording has."""
        return len(faults.frames(self.recording))

    def _check(self, *numbers: int) -> None:
        for number in numbers:
            if not 0 < number <= self.frames:
                raise UsageError(f"frame {number}: this script has frames 1 to {self.frames}")

    def _broken(self, fault: Callable[..., Recording], **given: Any) -> Script:
        words = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return self._changed(f"{fault.__name__}({words})", fault(self.recording, **given))

    def _changed(self, call: str, recording: Recording) -> Script:
        marks = _injected(self, recording)
        return self._next(call, recording=recording, injected=marks)

    def _controlled(self, call: str, control: Control) -> Script:
        return self._next(call, controls=(*self.controls, control))

    def _next(self, call: str, **changes: Any) -> Script:
        return replace(self, code=f"{self.code}.{call}", before=self, **changes)


def _injected(script: Script, recording: Recording) -> frozenset[int]:
    """Which frames of the new recording a fault put in: those that the old one has not."""
    old = [f.data for f in faults.frames(script.recording)]
    new = [f.data for f in faults.frames(recording)]
    same = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    kept = {n for n in script.injected if n <= same}
    moved = {n + len(new) - len(old) for n in script.injected if n > len(old) - tail}
    return frozenset(kept | moved | set(range(same + 1, len(new) - tail + 1)))


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
    verdicts: tuple[Verdict, ...] = ()


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
        before, verdicts = self.attempt, judge_turn(self.turn, self.script.policy)
        self.attempt = settle(before, self.turn, verdicts)
        return self._made("gates", "gates", (), before, self.turn, verdicts=verdicts)

    def _controls(self, after: int | None) -> Iterator[Step]:
        for control in self.script.controls:
            if control.after == after:
                yield self._control(control)

    def _control(self, control: Control) -> Step:
        before = self.attempt
        events: tuple[Event, ...] = ()
        if control.action == "cancel":
            text = "we cancelled it before anything was committed"
            self.attempt = advance(self.attempt, Input.CANCEL, text)
        elif control.action == "late":
            events = (TextDelta("0", "a callback that comes too late"),)
            if not self.attempt.terminal:
                self.attempt = observe(self.attempt, events[0])
        name = f"frame {control.frame}" if control.frame is not None else control.action
        return self._made(control.action, name, events, before, self.turn, injected=True)

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
            **more,
        )
        return replace(step, why=why(step))
