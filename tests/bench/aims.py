"""What a row found, and whether it meets the aims: group by group, with the worst figure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.bench.work import FRAMED

__all__ = ["AIMS", "HEAD", "Row", "show", "verdicts"]

AIMS = {"floor": 4.0, "raw": 4.0, "doubling": 2.2, "explorer": 6.0}
AIMS |= {"scan": 0.5, "workers": 1.7, "memory": 1.15}

HEAD = ("events", "floor", "streamlab", "raw", "helper", "of floor", "raw is", "helper is")


class Row(NamedTuple):
    """CPU in microseconds an event; None where nobody reads so."""

    name: str
    events: int
    floor: float
    streamlab: float
    raw: float | None
    helper: float | None

    @property
    def group(self) -> str:
        """What an aim is judged over: short streams are mostly their fixed costs."""
        group = self.name.partition(",")[0]
        return f"{group}, {FRAMED}" if self.framed else group

    @property
    def framed(self) -> bool:
        """Whether each read brings one frame; the floor, which joins its reads, is no measure."""
        return self.name.endswith(FRAMED)


def show(row: Row) -> str:
    """A row for a person."""
    costs = [row.floor, row.streamlab, row.raw, row.helper]
    times = [
        row.streamlab / row.floor,
        *(cost and cost / row.streamlab for cost in (row.raw, row.helper)),
    ]
    cells = [f"{row.events:,}"]
    cells += ["-" if cost is None else f"{cost:.2f}" for cost in costs]
    cells += ["-" if x is None else f"{x:.1f} x" for x in times]
    return f"{row.name:38}" + "".join(f"{cell:>11}" for cell in cells)


def verdicts(found: list[Row]) -> Iterator[str]:
    """Each aim, for each group, with the worst figure of this run and whether it meets the aim."""
    aims = (
        (f"at most {AIMS['floor']} times the floor", times_the_floor),
        (f"at least {AIMS['raw']} times as fast as the SDK's raw iteration", times_as_fast),
        (f"twice the input, at most {AIMS['doubling']} times the time", growth),
    )
    groups = {row.group: [other for other in found if other.group == row.group] for row in found}
    for aim, figure in aims:
        for name, group in groups.items():
            judged = figure(group)
            if judged is not None:
                value, holds = judged
                yield f"{aim}: {value:.2f}, {'met' if holds else 'missed'} ({name})"


Judged = tuple[float, bool] | None  #: the figure, and whether it meets its aim


def times_the_floor(group: list[Row]) -> Judged:
    """The worst ratio to the floor."""
    if group[0].framed:
        return None
    worst = max(row.streamlab / row.floor for row in group)
    return worst, worst <= AIMS["floor"]


def times_as_fast(group: list[Row]) -> Judged:
    """The worst ratio to the SDK's raw iteration."""
    ratios = [row.raw / row.streamlab for row in group if row.raw is not None]
    return (min(ratios), min(ratios) >= AIMS["raw"]) if ratios else None


def growth(group: list[Row]) -> Judged:
    """The worst growth from a row to the next, which is twice as long."""
    total = [row.streamlab * row.events for row in group]
    if len(total) < 2:
        return None
    worst = max(b / a for a, b in pairwise(total))
    return worst, worst <= AIMS["doubling"]
