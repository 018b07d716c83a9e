"""Lesson 10's exercise: tell a collected answer from a slow one by its arrival times alone.

A learner's `is_held` is given the `groups` of an answer: pieces of content that came together are
one group, with the wait before it. The first cases are what a real nginx did (`proxies.py`), the
others what looks like it: a slow model, a lost packet, an answer out of a cache. Each wrong answer
is a rule that is right on most streams.

Read next: `questions.py`, which checks an answer; `analysis/meter.py`, for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from streamlab.analysis.content import Content
from streamlab.analysis.judge import judge
from streamlab.analysis.metrics import HELD_S, TOGETHER_MIN, TOGETHER_S
from streamlab.streams import faults, synth
from streamlab.streams.recording import Chunk, Recording
from streamlab.study import corpora, proxies
from streamlab.study.tasks import Case, Exercise, Wrong
from streamlab.wire.reader import Read

__all__ = ["EXERCISES", "Group", "arrivals", "groups", "is_held"]


class Group(NamedTuple):
    """Pieces of content that came together."""

    wait: float  #: seconds since the piece before them, or since the request
    pieces: int


Groups = tuple[Group, ...]


def is_held(groups: Groups) -> bool:
    """The solution: more than half of the pieces came four or more at once, after a wait."""
    held = sum(n for wait, n in groups if wait >= HELD_S and n >= TOGETHER_MIN)
    return held > sum(n for _, n in groups) / 2


def groups(times: Iterable[float]) -> Groups:
    """Arrival times in groups: within a group no piece came later than 2 ms after the one before.

    >>> groups([0.5, 0.5, 0.7])
    (Group(wait=0.5, pieces=2), Group(wait=0.2, pieces=1))
    """
    found: list[Group] = []
    before = 0.0
    for t in times:
        wait = round(t - before, 6)
        if found and wait <= TOGETHER_S:
            found[-1] = found[-1]._replace(pieces=found[-1].pieces + 1)
        else:
            found.append(Group(wait, 1))
        before = t
    return tuple(found)


def arrivals(recording: Recording) -> list[float]:
    """When each piece of content came, in seconds since the request. The recording has times."""
    content, times = Content(), list[float]()

    def note(chunk: Chunk, reads: list[Read]) -> None:
        for _, events in reads:
            times.extend(chunk.t or 0.0 for phase in content.phases(events) if phase)

    judge(recording, watch=note)
    return times


# --- The cases ------------------------------------------------------------------------------------

COLLECTS, COMPRESSES, NO_PROXY = "a proxy that collects", "a proxy that compresses", "no proxy"
SLOW, STEADY, PAIRS = "a model that thinks first", "a model that is slow all along", "two at a time"
LOST, CACHED, CALL = "a lost packet", "out of a cache", "text first, then a long call"
NOTHING = "no content at all"

#: Forty pieces, one each 30 ms.
FLOW = (Group(0.03, 1),) * 40


def _of(recording: Recording) -> Groups:
    return groups(arrivals(recording))


#: (name, groups, held?, what is said to who gets it wrong)
_CASES: tuple[tuple[str, Callable[[], Groups], bool, str], ...] = (
    (
        COLLECTS,
        lambda: _of(proxies.kept("on")),
        True,
        "Everything came in two clumps, each after a wait: the proxy let go whenever its buffer "
        "was full.",
    ),
    (
        COMPRESSES,
        lambda: _of(proxies.kept("gzip")),
        True,
        "Everything came in one clump, at the end: one is enough, if it is everything.",
    ),
    (
        NO_PROXY,
        lambda: _of(proxies.kept("none")),
        False,
        "Nothing is between client and server, and the pieces came one by one.",
    ),
    (
        SLOW,
        lambda: _of(faults.slow_start(synth.greeting(), 8.0)),
        False,
        "It took eight seconds, and then the pieces came one by one: whoever waited could read "
        "along from there. That is the model's time, and no proxy's.",
    ),
    (
        STEADY,
        lambda: (Group(0.4, 1),) * 20,
        False,
        "There is a wait before each piece, and one piece after each wait: slow, and not held.",
    ),
    (
        PAIRS,
        lambda: (Group(0.3, 2),) * 20,
        False,
        "Two frames in one read are what a healthy network does every day; four or more are not.",
    ),
    (
        LOST,
        lambda: (*FLOW, Group(0.3, 8), *FLOW),
        False,
        "One packet was lost, and what came behind it had to wait: 8 pieces of 88. The others "
        "came as they were written.",
    ),
    (
        CACHED,
        lambda: (Group(0.02, 40),),
        False,
        "All came together, after 20 ms. Nobody waited, so nothing was held back.",
    ),
    (
        CALL,
        lambda: _of(corpora.held_call()),
        True,
        "Four pieces flowed, and eight came at once after two seconds: most of the answer. Count "
        "the pieces, not the groups.",
    ),
    (
        NOTHING,
        lambda: (),
        False,
        "An answer without content was not held back; there was nothing to hold.",
    ),
)


def _cases() -> tuple[Case, ...]:
    return tuple(Case(name, (given(),), held, why) for name, given, held, why in _CASES)


# --- Known mistakes -------------------------------------------------------------------------------


def _clumps(groups: Groups) -> list[Group]:
    return [each for each in groups if each.wait >= HELD_S and each.pieces >= TOGETHER_MIN]


def _pieces(groups: Iterable[Group]) -> int:
    return sum(each.pieces for each in groups)


#: (the mistake, the answer, the case that must catch it)
_MISTAKES: tuple[tuple[str, Callable[[Groups], Any], str], ...] = (
    ("it returns nothing", lambda groups: None, COLLECTS),
    ("never", lambda groups: False, COLLECTS),
    ("all of it in one clump", lambda groups: len(groups) == 1, COLLECTS),
    ("one clump is chance", lambda groups: len(_clumps(groups)) >= 2, COMPRESSES),
    ("always", lambda groups: True, NO_PROXY),
    ("the first piece came late", lambda groups: bool(groups) and groups[0].wait >= HELD_S, SLOW),
    ("there was a wait", lambda groups: any(wait >= HELD_S for wait, _ in groups), SLOW),
    (
        "the waits are long",
        lambda groups: sum(wait >= HELD_S for wait, _ in groups) > len(groups) / 2,
        STEADY,
    ),
    (
        "two or more at once",
        lambda groups: (
            _pieces(g for g in groups if g.wait >= HELD_S and g.pieces >= 2) > _pieces(groups) / 2
        ),
        PAIRS,
    ),
    ("there is a clump", lambda groups: bool(_clumps(groups)), LOST),
    (
        "most came together",
        lambda groups: _pieces(g for g in groups if g.pieces >= TOGETHER_MIN) > _pieces(groups) / 2,
        CACHED,
    ),
    (
        "everything came in clumps",
        lambda groups: bool(groups) and len(_clumps(groups)) == len(groups),
        CALL,
    ),
    ("most groups are clumps", lambda groups: len(_clumps(groups)) > len(groups) / 2, CALL),
    (
        "a share of nothing",
        lambda groups: _pieces(_clumps(groups)) / _pieces(groups) > 0.5,
        NOTHING,
    ),
)

EXERCISES = (
    Exercise(
        "10-ex",
        _cases,
        is_held,
        tuple(Wrong(says, answer, case) for says, answer, case in _MISTAKES),
    ),
)
