"""`streamlab explore`: every order of what can happen to an attempt, for a person or as JSON.

The counts are the same in every run; the speed, which is not, is told to a person only.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlab.errors import UsageError
from streamlab.streams.recording import replace_file
from streamlab.study.explorer import DEPTH, MOST, Exploration, explore
from streamlab.study.ledger_guards import GUARDS

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["run"]

#: Seconds after which the counting of long ways gets a progress bar.
PATIENCE = 0.5


def run(options: argparse.Namespace) -> int:
    """Explore, and say what was found; 1 where a promise is broken."""
    if options.list:
        if options.without or options.graph or options.json:
            raise UsageError("--list lists the guards and stops; it goes with nothing else")
        print("\n".join(_guards()))
        return 0
    depth = DEPTH if options.depth is None else options.depth
    if depth > MOST:
        raise UsageError(f"--depth {depth}: at most {MOST} actions")
    with _Bar() as bar:
        found = explore(depth, options.without or "", watch=bar)
    if options.graph:
        _draw(found, Path(options.graph))
    print(json.dumps(_object(found), ensure_ascii=False) if options.json else _said(found, bar))
    return 1 if found.violation else 0


def _guards() -> Iterator[str]:
    """Each guard, and what it is for."""
    for guard in GUARDS.values():
        yield guard.name
        yield textwrap.indent(guard.says, "    ")


def _said(found: Exploration, bar: _Bar) -> str:
    speed = found.states / max(bar.searched - bar.started, 1e-9)
    return f"{found!r}\n{speed:,.0f} states a second"


def _draw(found: Exploration, out: Path) -> None:
    """The way that goes wrong, or else all that can be reached."""
    from streamlab.study.graph import draw, graph, timeline

    drawing = timeline(found.violation) if found.violation else draw(graph(found.depth))
    replace_file(out, [drawing.svg.encode()])


def _object(found: Exploration) -> dict[str, Any]:
    """What was found, as JSON has it."""
    return {
        "depth": found.depth,
        "without": found.without or None,
        "states": found.states,
        "transitions": found.transitions,
        "paths": None if found.violation else found.paths,
        "new": list(found.new),
        "whole": found.whole,
        "promises": [
            {"name": each.name, "says": each.says, "holds": each.holds, "tested": each.tested}
            for each in found.kept
        ],
        "violation": _violation(found),
    }


def _violation(found: Exploration) -> dict[str, Any] | None:
    bad = found.violation
    if bad is None:
        return None
    steps = zip(bad.steps, bad.instead, bad.who, strict=True)
    return {
        "promise": bad.property,
        "why": bad.why,
        "at": bad.wrong,
        "steps": [
            {
                "action": step.action,
                "who": who,
                "says": step.says,
                "state": step.after.value,
                "with_guard": right.after.value if right.happened else None,
            }
            for step, right, who in steps
        ],
    }


class _Bar:
    """A progress bar on a terminal, for the depths that take long; and when the search was over."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.searched = 0.0  #: when every state was known; from then on, only ways are counted
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, done: int, depth: int) -> None:
        """So many actions are counted, of the longest way's."""
        now = time.perf_counter()
        self.searched = self.searched or now
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done)
        elif sys.stderr is not None and sys.stderr.isatty() and now > self.started + PATIENCE:
            self._start(depth)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.searched = self.searched or time.perf_counter()
        if self._progress is not None:
            self._progress.stop()

    def _start(self, depth: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress.start()
        self._task = self._progress.add_task("counting the ways", total=depth)
