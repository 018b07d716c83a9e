"""`streamlab scan`: a folder of recordings as one table, and what the table says.

The scan itself is `analysis/corpus`'s. This is how it is asked for in a shell, what is seen
while it runs, and how it ends: 2 if anything could not be read, 1 if any stream is a finding, as
in `show`. Ctrl-C leaves what is done where the same command goes on from.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from streamlab.analysis.plain import clipped, counted, visible
from streamlab.cli import complain
from streamlab.cli_show import open_console, read_tools
from streamlab.consumer.gates import CHAT, EFFECT, Policy
from streamlab.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from streamlab.analysis.corpus import Scanned

__all__ = ["scan"]

#: Groups of the summary that are printed, and the worst streams.
MAX_GROUPS, MAX_WORST = 30, 10

#: Cells that the name of a group has at the least; it goes on in the next line.
GROUP_CELLS = 8

#: Column of a summary -> its heads in a terminal, and how a value is written.
SHOWN: dict[str, tuple[str, str]] = {
    "streams": ("streams", "{:,}"),
    "complete": ("whole", "{:.3%}"),
    "ttft_p50_s": ("p50 s", "{:.3g}"),
    "ttft_p90_s": ("p90 s", "{:.3g}"),
    "ttft_p99_s": ("p99 s", "{:.3g}"),
    "stalled": ("stall", "{:.3%}"),
    "buffered": ("held", "{:.3%}"),
    "good": ("good", "{:.3%}"),
    "goodput_per_s": ("good/s", "{:.3g}"),
    "errors": ("errors", "{:,}"),
}

#: What the heads mean, each said where it is shown.
LEGEND = {
    "ttft_p50_s": "p50, p90, p99: seconds to the first text, of the streams that have times.",
    "stalled": "stall, held: the share of those with a stall, or held back on the way.",
    "good": "good: complete, and within every objective (without times: within none).",
}


def scan(options: argparse.Namespace) -> int:
    """Scan every place; return the exit status."""
    from streamlab.analysis import corpus

    by = options.by or ["model"]
    if unknown := [name for name in by if name not in corpus.COLUMNS]:
        raise UsageError(f"--by {unknown[0]}: no such column; such as model, wire, day, place")
    if options.workers and options.scheduler:
        raise UsageError("--workers is for this machine; the processes of a cluster are its own")
    objectives = corpus.objectives_of(options.objectives) if options.objectives else {}
    _check_places(options.places, options.out)
    bar = _Bar(options.places)
    try:
        with _client(options.scheduler) as client, bar:
            done = corpus.scan(
                options.places,
                options.out,
                workers=options.workers,
                client=client,
                policy=_policy(options),
                wire=options.wire,
                fresh=options.fresh,
                watch=bar,
            )
    except KeyboardInterrupt:
        done_so_far = counted(bar.so_far.files, "file")
        complain(f"{options.out}: stopped after {done_so_far}; the same command goes on from there")
        return 130
    columns = [*dict.fromkeys([*corpus.NEEDED, *by, *objectives])]
    frame = corpus.read(options.out, columns)
    _print(done, frame, by, objectives)
    return _status(options.out, done)


def _check_places(places: list[str], out: str) -> None:
    """Refuse places without a file, before a table that is there is replaced by an empty one."""
    from streamlab.analysis import corpus

    if next(corpus.found(places, (out, f"{out}.parts")), None) is None:
        raise UsageError(f"{', '.join(places)}: no file in it")


def _policy(options: argparse.Namespace) -> Policy:
    tools = read_tools(options.tools) if options.tools else None
    return msgspec.structs.replace(EFFECT if options.policy == "effect" else CHAT, tools=tools)


def _status(out: str, done: Scanned) -> int:
    """The exit status, and the line that says why."""
    found, streams = [], counted(done.rows - done.errors, "stream")
    if done.findings:
        found.append(f"{done.findings:,} of {streams} may not be used as is")
    if done.errors:
        found.append(f"{counted(done.errors, 'file')} could not be read")
    if found:
        complain(f"{out}: {', '.join(found)}")
    return 2 if done.errors else 1 if done.findings else 0


@contextlib.contextmanager
def _client(address: str | None) -> Iterator[Any]:
    """A client of the cluster at an address; None for none."""
    if address is None:
        yield None
        return
    try:
        import logging

        client_of: Any = import_module("distributed").Client
    except ModuleNotFoundError:
        raise UsageError("--scheduler needs Dask: pip install 'streamlab[dask]'") from None
    for name in ("distributed", "distributed.client"):  # what matters is an exception
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        _check_address(address)
        client = client_of(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as why:
        raise UsageError(f"{address}: no Dask scheduler answers ({type(why).__name__})") from None
    with client:
        yield client


def _check_address(address: str) -> None:
    """Raise `ValueError` where it is none: a client of one would print what it thinks of it."""
    registry: Any = import_module("distributed.comm.registry")
    scheme, _, place = address.partition("://")
    registry.get_backend(scheme)
    if not place:
        raise ValueError("no address")


# ---- what it says


def _print(done: Scanned, frame: pd.DataFrame, by: list[str], objectives: dict[str, float]) -> None:
    from streamlab.analysis import corpus

    console = open_console()
    streams = counted(done.rows - done.errors, "stream")
    again = f", {done.reused:,} as before" if done.reused else ""
    console.print(f"{streams} in {counted(done.files, 'file')}{again}")
    table, whole = (corpus.summary(frame, names, objectives) for names in (by, ()))
    names = [name for name in SHOWN if _tells(name, whole, bool(objectives))]
    shown = _that_fit(names, table, whole, console.width)
    console.print(_table(table, whole, shown))
    if left := len(names) - len(shown):
        console.print(f"{counted(left, 'more column')} in a wider terminal", style="dim")
    if len(table) > MAX_GROUPS:
        console.print(f"… and {len(table) - MAX_GROUPS:,} more groups")
    for said in (LEGEND[name] for name in shown if name in LEGEND):
        console.print(said, style="dim")
    if bad := corpus.worst(frame, MAX_WORST):
        _print_worst(console, bad, done.findings + done.errors)
    console.file.flush()


def _print_worst(console: Console, bad: list[tuple[str, str]], of: int) -> None:
    """What is wrong, and below it which streams it is wrong with: each on a line of its own."""
    more = f" (the worst {len(bad)} of {of:,})" if of > len(bad) else ""
    console.print(f"\nlook at{more}:")
    for why, group in groupby(bad, key=lambda one: one[0]):
        console.print(f"  {clipped(why, 200)}", style="bold")
        for _, name in group:
            console.print(f"    {visible(name)}", soft_wrap=True)  # a path that can be copied


def _that_fit(names: list[str], table: pd.DataFrame, whole: pd.DataFrame, width: int) -> list[str]:
    """The columns that there is room for: no number is cut, since 0.3 is not 0.384."""
    levels = table.index.nlevels
    room = width - levels * GROUP_CELLS
    for count, name in enumerate(names):
        head, form = SHOWN[name]
        values = [*table[name].head(MAX_GROUPS), *whole[name]]
        room -= max(len(head), *(len(_cell(value, form)) for value in values))
        room -= 1 if levels > 1 else 2
        if room < 0:
            return names[: max(count, 1)]
    return names


def _table(table: pd.DataFrame, whole: pd.DataFrame, names: list[str]) -> Table:
    """The summary for a terminal of 80 columns: what says nothing here is left out."""
    from rich import box
    from rich.table import Table

    several = table.index.nlevels > 1
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 0 if several else 1, 0, 0), pad_edge=False)
    for head in table.index.names:
        shown.add_column(str(head), overflow="fold")
    for name in names:
        shown.add_column(SHOWN[name][0], justify="right", no_wrap=True)
    groups = table.head(MAX_GROUPS).iterrows()
    rows = [(key if several else (key,), row) for key, row in groups]
    all_of_them = ("all", *[""] * (table.index.nlevels - 1))
    rows += [(all_of_them, row) for _, row in whole.iterrows() if len(table) > 1]
    for keys, row in rows:
        words = (visible(_word(key)) for key in keys)
        shown.add_row(*words, *(_cell(row[name], SHOWN[name][1]) for name in names))
    return shown


def _tells(name: str, whole: pd.DataFrame, objectives: bool) -> bool:
    value = whole[name].iloc[0]
    if name in ("good", "goodput_per_s") and not objectives:
        return False
    return bool(value) if name == "errors" else not _absent(value)


def _word(value: Any) -> str:
    return "not known" if _absent(value) else clipped(str(value), 40)


def _absent(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value))


def _cell(value: Any, form: str) -> str:
    """A number in few characters: 98.3%, 100%, 0.398, 1,204."""
    if _absent(value):
        return "-"
    if form.endswith("%}"):
        return "100%" if value == 1 else "0%" if value == 0 else f"{value * 100:.1f}%"
    return form.format(value)


# ---- what is seen while it runs


class _Bar:
    """A bar on stderr, where that is a terminal; it also keeps how far the scan has come."""

    def __init__(self, places: list[str]) -> None:
        from streamlab.analysis.corpus import Scanned

        self.so_far = Scanned()
        self._places = places
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, so_far: Scanned) -> None:
        """Take what is done."""
        self.so_far = so_far
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=so_far.weight, files=so_far.files)

    def __enter__(self) -> _Bar:
        if sys.stderr is not None and sys.stderr.isatty():
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._progress = Progress(
            TextColumn("{task.fields[files]:,} files", markup=False),
            *(BarColumn(), TaskProgressColumn(), TransferSpeedColumn(), TimeRemainingColumn()),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("scan", total=None, files=0)
        self._progress.start()
        threading.Thread(target=self._measure, daemon=True).start()

    def _measure(self) -> None:
        """Find out how much there is, beside the scan: without it there is no time remaining."""
        from streamlab.analysis.corpus.places import total_bytes

        with contextlib.suppress(UsageError):
            total = total_bytes(self._places)
            if self._progress is not None and self._task is not None:
                self._progress.update(self._task, total=total)
