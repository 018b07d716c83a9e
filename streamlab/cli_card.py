"""`streamlab report-card`: what each installed SDK makes of each fault, for a person or as JSON.

The exit status is 0 whatever the SDKs do: the card is about them, not about a recording.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlab.analysis.figures.card import KINDS
from streamlab.cli import complain
from streamlab.consumer.attempt import State
from streamlab.streams.recording import refuse_special, replace_file
from streamlab.study.card_cell import Cell
from streamlab.study.card_faults import CARD_FAULTS
from streamlab.study.clients import WAYS
from streamlab.study.report_card import Card, run_card

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

__all__ = ["run"]

#: Columns of a terminal that is none, so that a file gets whole words.
WIDE = 220

#: Columns between two of a table.
GAP = 2

#: A matrix of more clients than this has no room for sentences.
FEW = 2


def run(options: argparse.Namespace) -> int:
    """Fill a card, and show it."""
    if options.list:
        print("\n".join(_listed()))
        return 0
    if options.graph:  # what can't be written is said before the wait
        refuse_special(Path(options.graph))
    with _Bar() as bar:
        card = run_card(
            options.fault or None,
            options.client or None,
            asynchronous=options.asynchronous,
            watch=bar,
        )
    for line in card.missing:
        complain(line)
    if options.graph and card.cells:
        replace_file(Path(options.graph), [card.heat_map().svg.encode()])
    if options.json:
        print(json.dumps(_object(card)))
    elif card.cells:
        _show(card)
    return 0


def _listed() -> list[str]:
    """Every name that the options take, with what it means."""
    named = {
        "faults": [(fault.id, fault.says) for fault in CARD_FAULTS.values()],
        "clients": [(way.id, f"{way.sdk}: {way.how}") for way in WAYS.values()],
    }
    lines = []
    for title, rows in named.items():
        wide = max(len(name) for name, _ in rows)
        lines += [title, *(f"  {name:<{wide}}  {says}" for name, says in rows)]
    return lines


def _object(card: Card) -> dict[str, Any]:
    """The card, as JSON has it."""
    return {
        "versions": {name: version or None for name, version in card.versions.items()},
        "async": card.asynchronous,
        "missing": list(card.missing),
        "cells": card.rows(),
    }


def _show(card: Card) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)
    few = len(card.clients) <= FEW or len(card.faults) <= FEW
    for table in [_sentences(card)] if few else _matrices(card, console.width):
        console.print(table)
    for kind in KINDS.values():
        console.print(f"{kind.sign}  {kind.says}", markup=False)
    console.print(f"{'async' if card.asynchronous else 'sync'} clients: {card.stamp()}")


def _matrices(card: Card, width: int) -> list[Table]:
    """A row for each fault, a column for each client, in as few tables as break no word."""
    texts = {
        name: [name, *(card.at(fault, name).marked for fault in card.faults)]
        for name in card.clients
    }
    words = {name: max(map(_longest, column)) for name, column in texts.items()}
    lines = {name: max(map(len, column)) for name, column in texts.items()}
    room = width - max(map(len, card.faults)) - GAP - max(map(len, State))
    bands: list[list[str]] = [[]]
    for name in card.clients:
        if bands[-1] and sum(words[each] + GAP for each in (*bands[-1], name)) > room:
            bands.append([])
        bands[-1].append(name)
    fits = [sum(lines[name] + GAP for name in band) <= room for band in bands]
    chosen = [lines if roomy else words for roomy in fits]
    return [
        _matrix(card, {name: wide[name] for name in band})
        for wide, band in zip(chosen, bands, strict=True)
    ]


def _longest(text: str) -> int:
    """The length of the longest word in a text."""
    return max(map(len, text.split(" ")))


def _matrix(card: Card, wide: dict[str, int]) -> Table:
    """Some of the clients, each so wide, and streamlab's own verdict on what they read."""
    from rich.table import Table

    table = Table(show_lines=False, pad_edge=False, box=None)
    table.add_column("fault", no_wrap=True, style="bold")
    for client, width in wide.items():
        table.add_column(client, overflow="fold", width=width)
    table.add_column("streamlab", overflow="fold")
    for fault in card.faults:
        row = [card.at(fault, client) for client in wide]
        table.add_row(fault, *map(_marked, row), _states(row))
    return table


def _sentences(card: Card) -> Table:
    """A row for each cell, with everything that is known of it."""
    from rich.table import Table

    table = Table(pad_edge=False, box=None)
    for name in ("fault", "client", "verdict", "what the program has", "streamlab"):
        table.add_column(name)
    for each in card.cells:
        said = textwrap.shorten(each.message, 100)
        saw = f"{each.saw}: {said}" if said else each.saw
        kind = KINDS[each.kind].sign
        verdict = f"{each.verdict}, a wrong call" if each.danger else each.verdict
        table.add_row(
            each.fault, each.client, _text(f"{kind} {verdict}"), _text(saw), each.streamlab
        )
    return table


def _marked(each: Cell) -> Any:
    """A cell in a few words: the sign, and what was seen."""
    return _text(each.marked, "bold red" if each.danger else "")


def _text(text: str, style: str = "") -> Any:
    """Words that are shown as they are: an exception's may look like markup."""
    from rich.text import Text

    from streamlab.analysis.plain import visible

    return Text(visible(text), style=style)


def _states(row: list[Cell]) -> str:
    """Streamlab's states on the wires of one row, each state once."""
    by_state: dict[str, dict[str, None]] = {}
    for each in row:
        if each.streamlab:
            by_state.setdefault(each.streamlab, {})[each.wire] = None
    if len(by_state) == 1:
        return next(iter(by_state))
    return "; ".join(f"{', '.join(wires)}: {state}" for state, wires in by_state.items())


class _Bar:
    """A progress bar on a terminal."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, done: int, of: int) -> None:
        """So many requests are over."""
        if self._progress is None and sys.stderr is not None and sys.stderr.isatty():
            self._start(of)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _start(self, of: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress.start()
        self._task = self._progress.add_task("asking the SDKs", total=of)
