"""The acceptance sequences, and a small program that is led through them: when may it act?

`play` hands a scenario to the parts that a real program has: a reader, an `Inbox`, the gates, and
an adapter that counts its submissions. It takes another way than `analysis/trace.py`, and a test
holds the two to the same answer. At the end somebody asks for a commit, so "nothing was done" is
never true only because nobody tried.

Read next: `lesson_05.py`, where each sequence is a question; `../consumer/attempt.py`, the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby

import msgspec

from streamlab.analysis.trace import Step, Trace, trace
from streamlab.consumer.attempt import Attempt, Input, State, advance
from streamlab.consumer.commit import RecordingAdapter, commit, reconcile
from streamlab.consumer.delivery import Envelope, Inbox, Receipt
from streamlab.consumer.gates import Proposal, judge_turn, proposals, settle
from streamlab.streams import faults, synth
from streamlab.streams.parts import ToolCall
from streamlab.streams.recording import Recording
from streamlab.streams.scenarios import SCENARIOS, named
from streamlab.streams.script import Control, Script
from streamlab.wire.events import Event, MessageCompleted
from streamlab.wire.reader import Reader

__all__ = [
    "EIGHT",
    "Played",
    "act_when",
    "envelopes",
    "for_each_gate",
    "is_json",
    "play",
    "play_script",
    "traced",
]

#: The names of the eight, in order.
EIGHT = tuple(each.name for each in SCENARIOS.values() if each.requirement)

#: The attempt that a callback belongs to which comes while this one is under way.
OLDER = "attempt-0"


# --- The wrong way --------------------------------------------------------------------------------


def is_json(text: str) -> bool:
    """Whether a text is one JSON object, which says nothing about what is still to come."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def act_when(rule: Callable[[Step], object], script: Script | Recording) -> str:
    """What a program does that acts as soon as a rule holds."""
    acts = next((step.n for step in trace(script).steps if rule(step)), None)
    return "never acts" if acts is None else f"acts at step {acts}"


# --- A program, and what it is led through --------------------------------------------------------


def envelopes(recording: Recording) -> Iterator[Envelope]:
    """The facts of a stream, an envelope for each frame, and one for how it ended."""
    reader, whose = Reader(recording.wire), Attempt().id
    for t, data in recording.chunks:
        late = reader.over_time(t) if t is not None else []
        for frame, events in late + reader.feed(data):
            yield Envelope(whose, f"frame {frame.number}" if frame else "bound", events)
        if reader.exceeded:
            break
    left: list[Event] = []
    for frame, events in reader.end(recording.ending, recording.end_t):
        if frame is None:
            left += events
        else:
            yield Envelope(whose, f"frame {frame.number}", events)
    yield Envelope(whose, "end", tuple(left))


def traced(name: str) -> Trace:
    """A scenario's trace, up to the moment that it is about."""
    scenario = named(name)
    whole = trace(scenario.script)
    if scenario.after is None:
        return whole
    last = next(
        step.n for step in whole.steps if step.frame and step.frame.number == scenario.after
    )
    return msgspec.structs.replace(whole, steps=whole.steps[:last])


class Played(msgspec.Struct, frozen=True):
    """What became of a script."""

    name: str
    states: tuple[State, ...]  #: every state that the attempt was in
    attempt: Attempt
    submissions: tuple[str, ...]  #: what the adapter was given
    repeated: int  #: how many envelopes were handled before
    then: Attempt  #: where the attempt is after a commit more
    submitted_then: int  #: how many submissions there are after it

    def __repr__(self) -> str:
        moved = len(self.states) > 1
        told = {
            "states": " → ".join(self.states),
            "why": self.attempt.why if moved else "the final marker is still to come",
            "told": self.attempt.said,
            "effects": f"{len(self.submissions)}; after one more commit: {self._then}",
        }
        lines = (f"  {what:8} {text}" for what, text in told.items())
        return "\n".join([f"{self.name}: {self.attempt.state}", *lines])

    @property
    def _then(self) -> str:
        still = "still " * (self.submitted_then == len(self.submissions))
        return f"{still}{self.submitted_then} in all"


def play(name: str) -> Played:
    """Lead a program through a scenario, up to the moment that it is about."""
    scenario = named(name)
    return play_script(scenario.script, scenario.after, name)


def play_script(
    script: Script,
    after: int | None = None,
    name: str = "script",
    completed_after: int | None = None,
) -> Played:
    """Lead a program through a script; it stops behind the frame `after`, if that is given.

    `completed_after` is a frame too: behind it somebody who has not read the whole sequence says
    that the answer is complete.
    """
    program = _Program(script, completed_after)
    program.run(after)
    attempt, submissions = program.attempt, tuple(program.effects.submissions)
    states = tuple(state for state, _ in groupby(program.states))
    repeated = sum(receipt is Receipt.REPEATED for _, receipt in program.inbox.log)
    program.commit(Control("commit"))
    then = len(program.effects.submissions)
    return Played(name, states, attempt, submissions, repeated, program.attempt, then)


class _Program:
    """A consumer that gets its facts in envelopes, and may commit."""

    def __init__(self, script: Script, completed_after: int | None = None) -> None:
        self.script, self.early = script, f"frame {completed_after}"
        self.inbox, self.effects = Inbox(), RecordingAdapter()
        self.states = [self.attempt.state]

    @property
    def attempt(self) -> Attempt:
        """Where its attempt is."""
        return self.inbox.attempt

    def run(self, after: int | None = None) -> None:
        """Take everything up to a frame; without one, everything."""
        for envelope in envelopes(self.script.recording):
            self.handle(envelope)
            if envelope.delivery == self.early:
                self.handle(Envelope(self.attempt.id, "early callback", (MessageCompleted(at=0),)))
            self.controls(envelope.delivery)
            if envelope.delivery == f"frame {after}":
                return
        if self.attempt.state is State.MESSAGE_COMPLETE:
            verdicts = judge_turn(self.inbox.turn, self.script.policy)
            self.to(settle(self.attempt, self.inbox.turn, verdicts))
        self.controls("frame None")

    def handle(self, envelope: Envelope) -> None:
        """Take an envelope from the stream, or from anywhere else."""
        self.inbox.handle(envelope)
        self.to(self.attempt)

    def to(self, attempt: Attempt) -> None:
        """Write down where the attempt is now."""
        self.inbox.attempt = attempt
        self.states.append(attempt.state)

    def controls(self, delivery: str) -> None:
        """Let happen what the script lets happen behind a frame."""
        for control in self.script.controls:
            if delivery == f"frame {control.after}":
                ACTIONS[control.action](self, control)

    def cancel(self, control: Control) -> None:
        """Somebody presses stop."""
        self.to(advance(self.attempt, Input.CANCEL, "we cancelled it before any commit"))

    def redeliver(self, control: Control) -> None:
        """The queue delivers a frame's envelope again."""
        name = f"frame {control.frame}"
        self.handle(next(each for each, _ in self.inbox.log if each.delivery == name))

    def late(self, control: Control) -> None:
        """A callback says that the answer is complete."""
        whose = self.attempt.id if control.after is None else OLDER
        self.handle(Envelope(whose, "completion callback", (MessageCompleted(at=0),)))

    def commit(self, control: Control) -> None:
        """Somebody commits."""
        ready: tuple[Proposal, ...] = ()
        if self.attempt.state is State.VALIDATED_PROPOSAL:
            ready = proposals(self.inbox.turn)
            self.states.append(State.COMMITTING)
        if control.lost:
            self.effects.lose_next()
        self.to(commit(self.attempt, ready, self.effects, self.script.policy.authorise))

    def reconcile(self, control: Control) -> None:
        """Somebody asks what became of the effect."""
        self.to(reconcile(self.attempt, self.effects))


ACTIONS: dict[str, Callable[[_Program, Control], None]] = {
    "cancel": _Program.cancel,
    "redeliver": _Program.redeliver,
    "late": _Program.late,
    "commit": _Program.commit,
    "reconcile": _Program.reconcile,
}


# --- The gates ------------------------------------------------------------------------------------


def for_each_gate() -> dict[str, Recording]:
    """An answer for each gate that passes those before it, and not this one; ada asks."""
    whole = synth.change_label()
    return {
        "completion": faults.error(whole, after=20),
        "stop_reason": faults.refuse(whole, after=17),
        "tool": _asks(ToolCall("delete_item", {"item": "W-7"})),
        "parse": _asks(ToolCall("change_label", '{"item": "W-7", "label": "Re')),
        "schema": _asks(ToolCall("change_label", {"item": "W-7", "label": ""})),
        "business_rule": _asks(ToolCall("change_label", {"item": "W-7", "label": "Draft"})),
        "authorisation": _asks(ToolCall("change_label", {"item": "W-8", "label": "Closed"})),
    }


def _asks(call: ToolCall) -> Recording:
    return synth.answer([call], "tool_use")
