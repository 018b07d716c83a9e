"""The explorer, which reads no stream: a state's cost against the plainest breadth-first search.

That search goes over as many tuples of integers, and its ways are known beforehand.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import msgspec

from streamlab.study.explorer import reach
from tests.bench.aims import AIMS

__all__ = ["Explored", "known_ways", "measure_explorer", "plain_search"]


class Explored(NamedTuple):
    """CPU of a search in microseconds a state."""

    name: str
    states: int
    floor: float
    streamlab: float

    @property
    def verdict(self) -> str:
        """The aim, with the figure of this run and whether it meets the aim."""
        times = self.streamlab / self.floor
        met = "met" if times <= AIMS["explorer"] else "missed"
        return f"at most {AIMS['explorer']} times a plain search: {times:.2f}, {met} ({self.name})"

    def __str__(self) -> str:
        times, speed = self.streamlab / self.floor, 1e6 / self.streamlab
        costs = f"{self.floor:>11.2f}{self.streamlab:>11.2f}"
        return (
            f"{self.name:38}{self.states:>11,}{costs}  {times:.1f} x, {speed:,.0f} states a second"
        )


Known = dict[tuple[int, ...], list[tuple[int, ...]]]


def known_ways() -> Known:
    """What the explorer reaches, as tuples of integers: each state's, and those after it."""
    found = reach()
    values: dict[object, int] = {}
    states = [
        tuple(values.setdefault(value, len(values)) for value in msgspec.structs.astuple(moment))
        for moment in found.moments
    ]
    return {
        state: [states[after] for _, after in ways]
        for state, ways in zip(states, found.ways, strict=True)
    }


def plain_search(known: Known) -> int:
    """A breadth-first search that has only to copy, to look up and to remember."""
    waiting = [next(iter(known))]
    seen = set(waiting)
    for state in waiting:
        for after in known[state]:
            copy = tuple([*after])
            if copy not in seen:
                seen.add(copy)
                waiting.append(copy)
    return len(seen)


def measure_explorer(rounds: int) -> Explored:
    """The explorer's row, all of it in this run."""
    known = known_ways()
    best = {"plain": float("inf"), "explorer": float("inf")}
    for _ in range(rounds):
        for name, run in (("plain", lambda: plain_search(known)), ("explorer", reach)):
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    each = [cost / len(known) * 1e6 for cost in best.values()]
    return Explored("explorer, a state", len(known), *each)
