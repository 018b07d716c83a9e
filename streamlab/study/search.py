"""Promises about a consumer, and a search for the shortest sequence that breaks one.

A `Property` is a promise that must hold whatever happens; it is told from the truth that `world.py`
keeps beside the consumer, never from the consumer. `search` tries every sequence of actions, the
short ones first, and stops at the first broken promise.

    search().worlds      how many different moments there are, with every guard on
    search().property    "": none of them breaks a promise

Read next: `guards.py`, which searches with one guard off; `world.py`, for what can happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from streamlab.consumer.attempt import State
from streamlab.study.world import RULES, START, Rules, World, possible, step

__all__ = ["PROPERTIES", "Property", "Search", "broken", "replay", "search"]


# --- What must hold -------------------------------------------------------------------------------


class Property(msgspec.Struct, frozen=True):
    """A promise: `broken` says of a step, from the world before to the one after, why it is not
    kept; "" where it is."""

    name: str
    says: str
    broken: Callable[[World, World], str]


def _submitted(why: Callable[[World], str]) -> Callable[[World, World], str]:
    """A promise about the moment at which an effect is submitted."""
    return lambda before, after: why(before) if after.submissions > before.submissions else ""


def _unworthy(world: World) -> str:
    """Why the gates would not pass this answer, told from what really came."""
    if world.reason != "tool_use":
        return f"the answer's stop reason is {world.reason or 'missing'}"
    return "the call breaks a business rule" if world.call != "good" else ""


WRONG = {
    "error": "the provider had said that it failed",
    "violation": "the stream had broken its grammar",
    "ambiguous": "nobody can know whose fragment that was",
    "bound": "the stream had run over its bound",
    "cancel": "a person had cancelled before the commit began",
}


def _changed(before: World, after: World) -> str:
    if before.final in (None, after.state):
        return ""
    return f"{before.final} was final; now it is {after.state}"


def _miscounted(before: World, after: World) -> str:
    came, kept = len(after.came), len(after.kept)
    if after.came == after.kept:
        return ""
    return f'"ha" came {times(came)} and was counted {times(kept)}'


def _revenant(before: World, after: World) -> str:
    if not after.record or after.final in (None, State.COMMITTED):
        return ""
    return f"the attempt is {after.final}, and the effect is on record"


def times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


#: "P9" is not told from one step: it is that the good end can be reached at all.
PROPERTIES: dict[str, Property] = {
    each.name: each
    for each in (
        Property(
            "P1",
            "no effect is submitted before the final marker of a whole sequence",
            _submitted(lambda w: "" if w.marker else "the final marker has not come"),
        ),
        Property(
            "P2",
            "no effect is submitted for an answer that the gates hold or fail",
            _submitted(_unworthy),
        ),
        Property(
            "P3",
            "no effect is submitted after a cancellation, an error or another end of the attempt",
            _submitted(lambda w: WRONG.get(w.wrong, "")),
        ),
        Property(
            "P4",
            "an effect is submitted once at most",
            _submitted(lambda w: "it had been submitted before" if w.submissions else ""),
        ),
        Property("P5", "an attempt that is over never changes", _changed),
        Property(
            "P6",
            "COMMITTED is said only with a record",
            lambda _, w: "there is no record" * (w.state is State.COMMITTED and not w.record),
        ),
        Property("P7", "nothing that came is lost or counted twice", _miscounted),
        Property(
            "P8",
            "a person is told that the change is made only when it is on record",
            lambda _, w: "a person was told so, and there is no record" * (w.told and not w.record),
        ),
        Property("P9", "a good proposal can be committed", lambda _, w: ""),
        Property(
            "P10",
            "no effect is submitted for an actor who is not authorised at that moment",
            _submitted(lambda w: "" if w.may else "the actor had lost the authorisation"),
        ),
        Property("P11", "what has ended without an effect never gets one", _revenant),
    )
}


def broken(before: World, after: World) -> tuple[Property, str] | None:
    """The first promise that a step breaks, and why."""
    for each in PROPERTIES.values():
        if why := each.broken(before, after):
            return each, why
    return None


# --- The search -----------------------------------------------------------------------------------


class Search(msgspec.Struct, frozen=True):
    """What a search has seen."""

    path: tuple[str, ...]  #: the shortest sequence that breaks a promise, or that commits
    property: str  #: the promise that it breaks; "" where none is broken
    why: str
    worlds: int  #: how many different moments were seen
    edges: frozenset[tuple[State, State]]  #: every pair of states that a step joined


def search(rules: Rules = RULES) -> Search:
    """Try every sequence of actions, the short ones first, each moment once.

    Sequences that lead to the same world go on alike, so they are followed once. Where no promise
    is broken, the path is the shortest one to a good commit; without one, it is P9 that is broken.
    """
    came_by: dict[World, tuple[World, str] | None] = {START: None}
    edges: set[tuple[State, State]] = set()
    good: World | None = None
    waiting = [START]
    for world in waiting:  # it grows while it is read: breadth first
        for action in possible(world):
            after = step(world, action, rules)
            edges.add((world.state, after.state))
            if after is world:
                continue
            if found := broken(world, after):
                path = (*_path(came_by, world), action)
                return Search(path, found[0].name, found[1], len(came_by), frozenset(edges))
            if after in came_by:
                continue
            came_by[after] = (world, action)
            if good is None and after.state is State.COMMITTED:
                good = after
            waiting.append(after)
    if good is None:
        why = "no sequence of actions ends in COMMITTED"
        return Search((), "P9", why, len(came_by), frozenset(edges))
    return Search(_path(came_by, good), "", "", len(came_by), frozenset(edges))


def _path(came_by: Mapping[World, tuple[World, str] | None], world: World) -> tuple[str, ...]:
    path: list[str] = []
    while before := came_by[world]:
        world, action = before
        path.append(action)
    return tuple(reversed(path))


def replay(path: Sequence[str], rules: Rules = RULES) -> list[World]:
    """The worlds along some actions, the first one included."""
    worlds = [START]
    for action in path:
        worlds.append(step(worlds[-1], action, rules))
    return worlds
