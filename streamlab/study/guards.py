"""What if this guard were missing? The shortest sequence that then goes wrong, found by search.

A *guard* is one rule of the consumer that can be switched off. Which promise it protects is written
down nowhere: with the guard off, `search.py` tries every order of the actions of a small model, the
short ones first, until a promise is broken. With every guard on, none ever is.

    print(without("an error ends the attempt"))

Read next: `../widgets/guards.py`, which shows a finding; `search.py`, for the promises.
"""

from __future__ import annotations

import html as markup
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

import msgspec

from streamlab.consumer.attempt import SAID, TERMINAL, Attempt, Input, State
from streamlab.consumer.delivery import Envelope, Receipt, receive
from streamlab.errors import UsageError
from streamlab.study.search import PROPERTIES, replay, search, times
from streamlab.study.world import ACTIONS, RULES, Rules, World
from streamlab.wire.events import STOP_REASONS

__all__ = [
    "GUARDS",
    "LEFT_OUT",
    "Finding",
    "Guard",
    "Step",
    "explore",
    "facts",
    "steps_of",
    "without",
]


WIDTH = 88  #: of what is printed, in characters
BROKEN = "\N{MULTIPLICATION X}"
HEADS = ("", "what happens", "without the guard", "with it")

CALL = {
    "": "No tool call has come.",
    "open": "A part of a tool call has come.",
    "good": "A whole, good tool call has come.",
    "bad": "A whole tool call has come; it breaks a rule.",
}

#: What the small model in `world.py` does not hold, so no search has tried it.
LEFT_OUT = (
    "The model is small: one answer, with at most two pieces of text and one tool call. It leaves "
    "out bytes and frames, a second call, most stop reasons, a crash, and a second program."
)

WENT_WRONG = {
    "": "Nothing has gone wrong on the way",
    "error": "The provider said that it failed",
    "violation": "The stream broke its grammar",
    "ambiguous": "Nobody can know whose a fragment was",
    "bound": "The stream ran over a bound",
    "cancel": "A person cancelled before the commit began",
}


# --- What can be switched off ---------------------------------------------------------------------


class Guard(msgspec.Struct, frozen=True):
    """One rule of the consumer; `off` gives the rules without it."""

    name: str
    says: str
    off: Callable[[Rules], Rules]


_but = msgspec.structs.replace

Edges = Mapping[State, Mapping[Input, State]]


def _takes(name: str, given: Input) -> Callable[[Rules], Rules]:
    """Off: what arrives is taken for something else."""
    return lambda rules: _but(rules, means={**rules.means, name: given})


def _also(more: Edges) -> Callable[[Rules], Rules]:
    """Off: the table has these edges too."""
    return lambda rules: _but(
        rules, table={state: {**row, **more.get(state, {})} for state, row in rules.table.items()}
    )


def _never(given: Input) -> Callable[[Rules], Rules]:
    """Off: no state of the table takes this input."""
    return lambda rules: _but(
        rules,
        table={
            state: {key: to for key, to in row.items() if key is not given}
            for state, row in rules.table.items()
        },
    )


def _each_counts(envelope: Envelope, attempt: Attempt, earlier: tuple[Envelope, ...]) -> Receipt:
    return receive(envelope, attempt, ())


def _known_by_text(envelope: Envelope, attempt: Attempt, earlier: tuple[Envelope, ...]) -> Receipt:
    if envelope.events in [each.events for each in earlier]:
        return Receipt.REPEATED
    return receive(envelope, attempt, ())


REVIVED: Edges = {state: {Input.COMPLETED: State.MESSAGE_COMPLETE} for state in TERMINAL}
HASTY: Edges = {State.PREVIEW: {Input.COMMIT: State.COMMITTING}}
UNGATED: Edges = {State.MESSAGE_COMPLETE: {Input.COMMIT: State.COMMITTING}}
HOPEFUL: Edges = {State.COMMITTING: {Input.EFFECT_UNKNOWN: State.COMMITTED}}
EARLY = {**SAID, State.COMMITTING: SAID[State.COMMITTED]}

GUARDS: dict[str, Guard] = {
    each.name: each
    for each in (
        Guard(
            "a preview is never acted on",
            "A fragment that looks like a whole request may still change its meaning.",
            _also(HASTY),
        ),
        Guard(
            "the end of the stream is not completion",
            "A connection that closes cleanly says nothing about the answer.",
            _takes("end", Input.COMPLETED),
        ),
        Guard(
            "a stopped block is not a finished message",
            "A block's end makes a call ready to parse; only the final marker ends the answer.",
            _takes("stop", Input.COMPLETED),
        ),
        Guard(
            "an error ends the attempt",
            "A provider can fail after HTTP 200; what it sent before is then worth nothing.",
            _takes("error", Input.CONTENT),
        ),
        Guard(
            "a broken grammar ends the attempt",
            "Where the order of events is broken, nobody knows what is missing.",
            _takes("violation", Input.CONTENT),
        ),
        Guard(
            "an ambiguous fragment holds the attempt",
            "Where it can't be proved whose a fragment is, nothing is guessed.",
            _takes("ambiguous", Input.CONTENT),
        ),
        Guard(
            "a bound ends the attempt",
            "A preview that could grow for ever is stopped, and nothing is made of it.",
            _takes("bound", Input.CONTENT),
        ),
        Guard(
            "a terminal state is terminal",
            "Nothing that comes late brings an attempt back.",
            _also(REVIVED),
        ),
        Guard(
            "the gates come before the commit",
            "A whole answer is not yet an acceptable one.",
            _also(UNGATED),
        ),
        Guard(
            "the gates wait for the end of the stream",
            "Only then is it known that nothing broke the answer after its final marker.",
            lambda rules: _but(rules, waits=False),
        ),
        Guard(
            "the stop reason has an allow-list",
            "Only the stop reasons that the application named let a call through.",
            lambda rules: _but(rules, accept=frozenset(STOP_REASONS)),
        ),
        Guard(
            "a cancellation wins before the commit",
            "Who cancels before the commit has begun has cancelled.",
            _never(Input.CANCEL),
        ),
        Guard(
            "authorisation is asked again at the commit",
            "Between the review and the commit, much may have changed.",
            lambda rules: _but(rules, asks_again=False),
        ),
        Guard(
            "an unknown outcome is asked for, not submitted again",
            "Where no answer came, the effect may have happened: its record tells.",
            lambda rules: _but(rules, submits_again=True),
        ),
        Guard(
            "what is given up is closed",
            "A submission may still be on its way; its key is closed, so it is refused.",
            lambda rules: _but(rules, closes=False),
        ),
        Guard(
            "no answer is not success",
            "COMMITTED stands on the effect's record, not on hope.",
            _also(HOPEFUL),
        ),
        Guard(
            "nobody is told it is done before it is on record",
            "What a person reads follows the record, not the wish.",
            lambda rules: _but(rules, said=EARLY),
        ),
        Guard(
            "a delivery is known by its identity",
            "A queue may deliver again; the same delivery counts once.",
            lambda rules: _but(rules, receive=_each_counts),
        ),
        Guard(
            "equal content is not a repetition",
            'Two equal fragments are two fragments: "ha", "ha".',
            lambda rules: _but(rules, receive=_known_by_text),
        ),
        Guard(
            "a good answer is let through",
            "A consumer that holds everything is safe, and of no use.",
            lambda rules: _but(rules, holds_all=True),
        ),
    )
}


# --- What is found --------------------------------------------------------------------------------


class Step(msgspec.Struct, frozen=True):
    """One action, and what came of it."""

    action: str
    says: str
    before: State
    after: State
    told: str  #: what a person is told then
    knows: tuple[str, ...]  #: what is really so then, in sentences
    happened: bool = True  #: False where it does not come to this action

    @property
    def shown(self) -> str:
        """The state after it, or that there is none."""
        return self.after if self.happened else "(does not happen)"


class Finding(msgspec.Struct, frozen=True):
    """The shortest sequence that goes wrong without a guard."""

    guard: str
    says: str  #: what the guard is for
    property: str  #: the promise that is broken
    promise: str
    why: str
    steps: tuple[Step, ...]
    instead: tuple[Step, ...]  #: the same actions with the guard on
    wrong: int  #: the step at which the promise is broken, from 1
    parts: int  #: the step at which the two ways part, from 1

    def actions(self) -> tuple[str, ...]:
        """The names of the actions, as `step` takes them."""
        return tuple(step.action for step in self.steps)

    def verdict(self) -> str:
        """Which promise is broken, and how."""
        return f"Step {self.wrong} breaks the promise that {self.promise}: here {self.why}."

    def better(self) -> str:
        """What that step is with the guard on, and what is so then instead."""
        bad, good = self.steps[self.wrong - 1], self.instead[self.wrong - 1]
        is_so = "ends in" if good.happened else "does not happen; the attempt stays"
        more = (fact for fact in good.knows if fact not in bad.knows)
        return " ".join([f"With the guard, step {self.wrong} {is_so} {good.after}.", *more])

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Each step as (number, action, state, state with the guard)."""
        for number, (step, right) in enumerate(zip(self.steps, self.instead, strict=True), 1):
            sign = f"{BROKEN} {number}" if number == self.wrong else f"{number}"
            yield sign, step.says, step.shown, right.shown

    def __repr__(self) -> str:
        rows = [HEADS, *self.rows()]
        wide = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = (
            f"{n:>{wide[0]}}  {does:<{wide[1]}}  {state:<{wide[2]}}  {right}"
            for n, does, state, right in rows
        )
        said = (textwrap.fill(text, WIDTH) for text in (self.verdict(), self.better()))
        return "\n".join([f"Without: {self.guard}", *lines, *said])

    def _repr_html_(self) -> str:
        lines = [_line(HEADS, "th"), *(_line(row, "td") for row in self.rows())]
        said = "<br>".join(map(markup.escape, (self.verdict(), self.better())))
        name = markup.escape(self.guard)
        return (
            f"<div><p><b>Without</b>: {name}</p><table>{''.join(lines)}</table><p>{said}</p></div>"
        )


def _line(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{markup.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


@cache
def without(name: str) -> Finding:
    """The shortest sequence that goes wrong without one guard."""
    if name not in GUARDS:
        raise UsageError(f"no guard {name!r}; there are: {'; '.join(GUARDS)}")
    found = explore(GUARDS[name])
    if found is None:
        raise UsageError(f"without {name!r} nothing goes wrong")
    return found


def explore(guard: Guard | None = None) -> Finding | None:
    """Search with one guard off, or with all on; None where no promise can be broken."""
    rules = guard.off(RULES) if guard else RULES
    found = search(rules)
    if not found.property:
        return None
    path = found.path or search().path  # where no good end is reached: the way that leads to one
    worlds, right = replay(path, rules), replay(path)
    parts = next(n for n in range(len(worlds)) if worlds[n] != right[n])
    return Finding(
        guard=guard.name if guard else "",
        says=guard.says if guard else "",
        property=found.property,
        promise=PROPERTIES[found.property].says,
        why=found.why,
        steps=steps_of(path, rules),
        instead=steps_of(path),
        wrong=len(path) if found.path else parts,
        parts=parts,
    )


def steps_of(path: Sequence[str], rules: Rules = RULES) -> tuple[Step, ...]:
    """What some actions do, one after the other."""
    return tuple(
        Step(
            action,
            ACTIONS[action].says,
            before.state,
            after.state,
            rules.said[after.state],
            facts(after),
            ACTIONS[action].possible(before),
        )
        for action, (before, after) in zip(path, pairwise(replay(path, rules)), strict=True)
    )


def _ledger(world: World) -> str:
    if world.record:
        return "it is on record"
    if world.delayed:
        return f"it is on its way{' and will be refused' if world.closed else ''}"
    return "it is not on record"


def facts(world: World) -> tuple[str, ...]:
    """What is really so, a sentence a fact, always in the same order."""
    came, kept = times(len(world.came)), times(len(world.kept))
    effect = f"submitted {times(world.submissions)}; {_ledger(world)}"
    return (
        f'The text "ha" came {came} and was counted {kept}.' if world.kept else "No text has come.",
        CALL[world.call],
        f"The stop reason is {world.reason}." if world.reason else "No stop reason has come.",
        "The final marker has come." if world.marker else "The final marker has not come.",
        "The transport has stopped." if world.ended else "The transport is open.",
        f"{WENT_WRONG[world.wrong]}.",
        "The actor is authorised." if world.may else "The actor is no longer authorised.",
        f"The effect was {effect if world.submissions else 'never submitted'}.",
        f"{'A person' if world.told else 'Nobody'} was told that the change is made.",
    )
