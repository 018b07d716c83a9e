"""Every order of everything that can happen to an attempt, tried; and the shortest one that fails.

`explore()` follows each action from each moment, the short ways first. Ways that lead to the same
moment go on alike, so they are followed once; how many there are is counted all the same. With a
guard off it stops at the first promise that is broken: no shorter way breaks one.

    explore()                                        counts, and what held
    explore(without="a request carries a key")       the shortest way that goes wrong

Read next: `ledger_rules.py`, for what can happen; `graph.py`, which draws what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise

import msgspec

from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.study.guards import Finding, Step
from streamlab.study.ledger_actions import ACTIONS, step
from streamlab.study.ledger_guards import (
    PROMISES,
    REACHED,
    Promise,
    broken,
    named,
    promised,
    rules_without,
)
from streamlab.study.ledger_rules import RULES, START, Moment, Rules
from streamlab.study.search import times

__all__ = ["DEPTH", "MOST", "Exploration", "Kept", "Reached", "Violation", "explore", "reach"]

#: Actions of the longest ways, where nothing else is said: with every guard on, longer ones lead
#: to no moment that a shorter one does not lead to.
DEPTH = 18

#: Actions that a way may have at most.
MOST = 999

#: Called with the depth that is done, of how many.
Watch = Callable[[int, int], object]

NAMES = list(ACTIONS)
HAPPENS = [action.happens for action in ACTIONS.values()]


# --- The search -----------------------------------------------------------------------------------


class Reached(msgspec.Struct, frozen=True):
    """Every moment that some ways lead to, and what each action makes of it."""

    moments: list[Moment]  #: in the order in which they were reached
    ways: list[list[tuple[int, int]]]  #: of a moment: action, the moment after it; by number
    new: list[int]  #: moments that no shorter way reaches, for each number of actions
    came_by: list[tuple[int, int]]  #: of a moment: the moment before, the action
    broken: tuple[Promise, str] | None = None  #: what the last moment breaks

    def path(self, moment: int) -> tuple[str, ...]:
        """The actions of the first way to a moment."""
        found = []
        while moment:
            moment, action = self.came_by[moment]
            found.append(NAMES[action])
        return tuple(reversed(found))

    def first(self, row: State) -> int | None:
        """The first moment in which the row says this."""
        return next((n for n, moment in enumerate(self.moments) if moment.row is row), None)


def reach(
    depth: int = DEPTH, rules: Rules = RULES, promises: Sequence[Promise] = PROMISES
) -> Reached:
    """Follow every way of at most so many actions, each moment once, up to a broken promise."""
    found = Reached([START], [], [1], [(0, 0)])
    numbers = {START: 0}
    for _ in range(depth):
        known = len(found.moments)
        if wrong := _level(found, numbers, rules, promises):
            return msgspec.structs.replace(found, broken=wrong)
        if len(found.moments) == known:
            break
        found.new.append(len(found.moments) - known)
    return found


def _level(
    found: Reached, numbers: dict[Moment, int], rules: Rules, promises: Sequence[Promise]
) -> tuple[Promise, str] | None:
    """One action more from every moment that has not been followed yet."""
    moments, came_by = found.moments, found.came_by
    for before in range(len(found.ways), len(moments)):
        moment = moments[before]
        ways: list[tuple[int, int]] = []
        found.ways.append(ways)
        for action, happens in enumerate(HAPPENS):
            after = happens(moment, rules)
            if after is None:
                continue
            number = numbers.get(after)
            if number is None:
                number = numbers[after] = len(moments)
                moments.append(after)
                came_by.append((before, action))
                if wrong := broken(after, promises):
                    return wrong
            ways.append((action, number))
    return None


def paths(found: Reached, depth: int, watch: Watch | None = None) -> int:
    """How many different sequences of at most so many actions there are.

    Counted level by level: as many ways lead to a moment as lead to the moments before it.
    """
    here, total = {0: 1}, 0
    for done in range(depth):
        if watch:
            watch(done, depth)
        following = [0] * len(found.moments)
        for moment, many in here.items():
            for _, after in found.ways[moment]:
                following[after] += many
        total += sum(following)
        here = {moment: many for moment, many in enumerate(following) if many}
    return total


# --- What was found -------------------------------------------------------------------------------


class Moved(Step, frozen=True):
    """One action, and what it came to at the other end."""

    effects: int = 0
    record: bool = False

    @property
    def shown(self) -> str:
        """The state after it, and whether the effect has happened by then."""
        if not self.happened or not self.effects:
            return super().shown
        return f"{self.after}, done {times(self.effects)}"


class Violation(Finding, frozen=True):
    """The shortest way that goes wrong without a guard; `study/graph.py` draws it on lanes."""

    @property
    def who(self) -> tuple[str, ...]:
        """Who does each step."""
        return tuple(ACTIONS[step.action].who for step in self.steps)

    def _repr_html_(self) -> str:
        """Sentences begin at the left, whatever a notebook does with the cells of a table."""
        page = super()._repr_html_()
        for tag in ("th", "td"):  # what is in a cell is escaped: only our own tags are found
            page = page.replace(f"<{tag}>", f'<{tag} style="text-align: left">')
        return page


class Kept(msgspec.Struct, frozen=True):
    """One promise, and in how many moments it holds."""

    name: str
    says: str
    holds: int
    tested: int  #: of these, the ones in which there was something to keep


class Exploration(msgspec.Struct, frozen=True):
    """What a search has seen."""

    depth: int  #: the most actions that a way had
    without: str  #: the guard that was off; "": none
    promise: str  #: the only promise that was asked about; "": all
    actions: int  #: different ones that can happen
    states: int
    transitions: int  #: each action from each state, the ones that change nothing too
    paths: int  #: different sequences of at most `depth` actions; 0 where it stopped
    new: tuple[int, ...]  #: states that no shorter way reaches, for each number of actions
    whole: bool  #: longer ways lead to nothing new
    kept: tuple[Kept, ...]  #: each promise
    violation: Violation | None = None

    @property
    def violations(self) -> int:
        """How many promises were seen broken."""
        return 0 if self.violation is None else 1

    def counts(self) -> str:
        """The sizes, in one line."""
        sizes = f"{self.states:,} states, {self.transitions:,} transitions"
        return sizes if self.violation else f"{sizes}, {_many(self.paths)} paths"

    def lines(self) -> Iterable[str]:
        """What was seen, for a person."""
        yield f"Every order of {self.actions} actions, up to {self.depth} of them:"
        yield f"  {self.counts()}"
        if self.whole:
            yield f"  no state is farther than {len(self.new) - 1} actions: these are all there are"
        for each in self.kept:
            yield each.says
            yield f"  holds in {each.holds:,} states; {each.tested:,} of them put it to the test"
        yield f"violations: {self.violations}"

    def __repr__(self) -> str:
        if self.violation is None:
            return "\n".join(self.lines())
        what = "it" if self.promise else "a promise"
        seen = f"{self.counts()} were seen before it."
        return f"{self.violation!r}\nNo shorter way breaks {what}: {seen}"

    def _repr_html_(self) -> str | None:
        return None if self.violation is None else self.violation._repr_html_()


def _many(number: int) -> str:
    """A number for a person, with three digits where it is long."""
    if number < 10**12:
        return f"{number:,}"
    digits = str(number)
    return f"about {digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def explore(
    depth: int = DEPTH, without: str = "", promise: str = "", watch: Watch | None = None
) -> Exploration:
    """Try every order of at most `depth` actions, with one guard off, or with all on.

    It stops where any promise is broken, or only where the named one is.
    """
    if type(depth) is not int or not 1 <= depth <= MOST:  # True is no number of actions
        raise UsageError(f"a depth of {depth!r}: it is a whole number of actions, 1 to {MOST}")
    rules, asked = rules_without(without), promised(promise)
    found = reach(depth, rules, asked)
    whole = found.broken is None and len(found.ways) == len(found.moments)
    return Exploration(
        depth=depth,
        without=without,
        promise=promise,
        actions=len({action for ways in found.ways for action, _ in ways}),
        states=len(found.moments),
        transitions=sum(map(len, found.ways)),
        paths=0 if found.broken else paths(found, depth, watch),
        new=tuple(found.new),
        whole=whole,
        kept=tuple(_kept(each, found) for each in (*asked, *([] if promise else [REACHED]))),
        violation=_violation(without, found, rules, whole and not promise),
    )


def _kept(promise: Promise, found: Reached) -> Kept:
    wrong = found.broken is not None and found.broken[0] is promise
    tested = sum(map(promise.speaks, found.moments))
    return Kept(promise.name, promise.says, len(found.moments) - wrong, tested - wrong)


def _violation(without: str, found: Reached, rules: Rules, whole: bool) -> Violation | None:
    if found.broken:
        path = found.path(len(found.moments) - 1)
        return _shown(without, path, rules, found.broken[0], found.broken[1], len(path))
    if not whole or found.first(State.COMMITTED) is not None:
        return None
    path = _good()  # no way leads to a good end: shown is the one that does with every guard on
    return _shown(without, path, rules, REACHED, "no way ends in COMMITTED", 0)


@cache
def _good() -> tuple[str, ...]:
    found = reach()
    return found.path(found.first(State.COMMITTED) or 0)


def _shown(
    guard: str, path: Sequence[str], rules: Rules, promise: Promise, why: str, wrong: int
) -> Violation:
    bad, good = _replayed(path, rules), _replayed(path, RULES)
    parts = next((n for n, pair in enumerate(zip(bad, good, strict=True)) if pair[0] != pair[1]), 0)
    return Violation(
        guard=guard,
        says=named(guard).says if guard else "",
        property=promise.name,
        promise=promise.says,
        why=why,
        steps=_steps(path, bad, rules),
        instead=_steps(path, good, RULES),
        wrong=wrong or parts,
        parts=parts,
    )


def _replayed(path: Iterable[str], rules: Rules) -> list[Moment]:
    moments = [START]
    for action in path:
        moments.append(step(moments[-1], action, rules))
    return moments


def _steps(path: Sequence[str], moments: Sequence[Moment], rules: Rules) -> tuple[Moved, ...]:
    return tuple(
        Moved(
            action,
            ACTIONS[action].says,
            before.row,
            after.row,
            rules.said[after.row],
            facts(after),
            ACTIONS[action].happens(before, rules) is not None,
            after.effects,
            after.record,
        )
        for action, (before, after) in zip(path, pairwise(moments), strict=True)
    )


def facts(moment: Moment) -> tuple[str, ...]:
    """What is really so, a sentence a fact, always in the same order."""
    won = [name for name in ("cancel", "commit") if getattr(moment, f"{name}_won")]
    came, counted = times(moment.came), times(moment.counted)
    return (
        f"Content was delivered {came}, and counted {counted}.",
        "Every gate has passed the answer." if moment.passed else "No gate has passed anything.",
        "The actor is authorised." if moment.may else "The actor is no longer authorised.",
        _often("The effect was", moment.submissions, "submitted"),
        _often("The effect has", moment.effects, "happened"),
        "It is on record." if moment.record else "It is not on record.",
        f"{' and '.join(won).capitalize() or 'Nobody'} was answered as the winner.",
        f"{'A person' if moment.told else 'Nobody'} was told that the change is made.",
    )


def _often(what: str, number: int, done: str) -> str:
    return f"{what} {done} {times(number)}." if number else f"{what} never {done}."
