"""`streamlab show`: what happened in each recording, for a person or as JSON.

One file at a time, in bounded memory, each answer printed before the next file is opened. What goes
wrong with one file is said in a line and never stops the others.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from streamlab.analysis.judge import Outcome, Watch, judge
from streamlab.analysis.plain import counted, visible
from streamlab.analysis.report import report, to_line
from streamlab.analysis.timeline import Timeline
from streamlab.cli import called, complain, report_bug
from streamlab.consumer.attempt import State
from streamlab.consumer.gates import CHAT, EFFECT, Policy
from streamlab.errors import UsageError, WireError
from streamlab.streams.importers import About, Opened, streams_in
from streamlab.streams.recording import (
    Chunk,
    Recording,
    RecordingFile,
    refuse_special,
    replace_file,
)
from streamlab.wire.events import BoundExceeded
from streamlab.wire.reader import BOUNDS, Bounds, Read

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID

__all__ = ["FINE", "finding", "named", "open_console", "read_tools", "show"]

#: States that are no finding: whole, and acceptable under the policy.
FINE = (State.MESSAGE_COMPLETE, State.VALIDATED_PROPOSAL, State.COMMITTED)

#: Frames that a page may hold: each one is a step, and a browser has to keep them all.
MAX_PAGE_FRAMES = 20_000

#: Bytes that a page may hold, and what each read counts on top, for the memory that it takes.
MAX_PAGE_BYTES, READ_COST = 16 * 1024 * 1024, 64

#: Seconds after which a file gets a progress bar.
PATIENCE = 0.5


def show(options: argparse.Namespace) -> int:
    """Show every file, or list the rules; return the worst exit status."""
    if options.rules:
        from streamlab.cli_rules import list_rules

        return list_rules(options.json)
    if not options.files:
        raise UsageError(f"show: no FILE is named (see {called()} show --help)")
    files = list(_expanded(options.files))
    if files.count("-") > 1:
        raise UsageError("- (standard input) can be read only once")
    if options.html and (len(files) > 1 or files == ["-"]):
        raise UsageError("--html writes a page about one file")
    if options.html and not Path(options.html).parent.is_dir():
        raise UsageError(f"{options.html}: there is no such folder")
    tools = read_tools(options.tools) if options.tools else None
    policy = msgspec.structs.replace(EFFECT if options.policy == "effect" else CHAT, tools=tools)
    showing = _Showing(options, policy, _bounds(options))
    return max(showing.one(name) for name in files)


def _expanded(names: Sequence[str]) -> Iterator[str]:
    """The names; where no shell has expanded their wildcards, that is done here."""
    for name in names:
        found = sorted(glob.glob(name)) if os.name == "nt" and "*" in name else []
        yield from found or [name]


def _bounds(options: argparse.Namespace) -> Bounds:
    given = {name: getattr(options, f"max_{name}") for name in ("bytes", "frames", "seconds")}
    given["frame_bytes"] = options.max_frame_bytes
    known = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(BOUNDS, **known)


def read_tools(path: str) -> dict[str, dict[str, Any]]:
    """The permitted tools of a file: name -> JSON Schema of the input."""
    try:
        tools = json.loads(Path(path).read_bytes())
    except OSError as why:
        raise UsageError(f"{path}: {why.strerror or why}") from None
    except (ValueError, RecursionError) as why:
        raise UsageError(f"{path}: not JSON: {why}") from None
    if not isinstance(tools, dict):
        raise UsageError(f"{path}: not an object of tool names and their JSON Schemas")
    for name, schema in tools.items():
        if not isinstance(schema, dict):
            raise UsageError(f"{path}: the schema of tool {name!r} is not an object")
    try:
        Policy(frozenset(), tools)
    except UsageError as why:
        raise UsageError(f"{path}: {why}") from None
    return tools


def finding(outcome: Outcome) -> str:
    """Why an answer may not be used as it is; "" where it may."""
    state = outcome.state
    return "" if state in FINE else f"{state}: {outcome.attempt.why}"


class _Showing:
    """One run of the command: what is the same for every file."""

    def __init__(self, options: argparse.Namespace, policy: Policy, bounds: Bounds) -> None:
        self.options, self.policy, self.bounds = options, policy, bounds
        self._console: Console | None = None

    def one(self, name: str) -> int:
        """Show one file; return its exit status."""
        try:
            if self.options.html:
                _check_target(Path(self.options.html), name)
            outcome, kept, answer = self._judged(name)
        except (WireError, UsageError, OSError) as why:
            complain(named(name, why))
            return 2
        except Exception as why:  # a bug of ours must not hide what the other files say
            report_bug(why, name)
            return 2
        self._print(answer)
        found = finding(outcome)
        if found:
            complain(f"{name}: {found}")
        if kept is not None and not self._paged(name, outcome, kept):
            return 2
        return 1 if found else 0

    def _judged(self, name: str) -> tuple[Outcome, _Kept | None, str | RenderableType]:
        """What a file is worth, what a page needs of it, and the answer: JSON or a picture."""
        options = self.options
        timeline = None if options.json else Timeline()
        streams = streams_in(name, keep=options.keep)
        with closing(streams), _Bar(name) as bar:  # type: ignore[type-var]
            wanted = options.stream or 1
            (file, about), passed = _chosen(streams, wanted)
            kept = _Kept(file) if options.html else None
            watch = _all(*(watch for watch in (bar, timeline, kept) if watch is not None))
            outcome = judge(file, self.policy, options.wire, self.bounds, watch)
            count = passed + sum(1 for _ in streams)
        outcome = msgspec.structs.replace(outcome, stream=wanted, streams=count)
        if timeline is None:
            return outcome, kept, to_line(report(outcome, name, about))
        from streamlab.analysis.picture import picture

        console = self._console = self._console or open_console()
        size: dict[str, Any] = {"width": console.width, "ascii": not _draws(console.encoding)}
        return outcome, kept, picture(outcome, timeline, name, _told(file, about), **size)

    def _print(self, answer: str | RenderableType) -> None:
        if isinstance(answer, str):
            print(answer, flush=True)
        elif self._console is not None:
            self._console.print(answer)
            self._console.print()
            sys.stdout.flush()

    def _paged(self, name: str, outcome: Outcome, kept: _Kept) -> bool:
        """Write the page; say in a line why there is none, and return whether there is one."""
        try:
            self._write_page(name, outcome, kept)
        except (UsageError, OSError) as why:
            complain(named(name, why))
            return False
        except Exception as why:
            report_bug(why, name)
            return False
        return True

    def _write_page(self, name: str, outcome: Outcome, kept: _Kept) -> None:
        """Write a page that steps through what was judged; the file is not read again."""
        from streamlab.analysis.trace import trace
        from streamlab.streams.script import Script
        from streamlab.widgets.page import page

        if kept.exceeded:
            raise UsageError("no page is made of a stream that ran over a bound")
        if outcome.frames > MAX_PAGE_FRAMES:
            text = f"{outcome.frames:,} frames are too many for a page ({MAX_PAGE_FRAMES:,})"
            raise UsageError(text)
        recording = kept.recording(outcome)
        title = visible(os.path.basename(name))
        steps = trace(Script(recording, policy=self.policy))
        if steps.attempt.state is not outcome.state:  # a trace knows no bounds but our own
            raise UsageError("no page is made of a stream over the bounds that a page has")
        text = page(steps.to_json(title), title)
        replace_file(Path(self.options.html), [text.encode("utf-8")])
        complain(f"wrote {self.options.html}")


def _chosen(streams: Iterator[Opened], wanted: int) -> tuple[Opened, int]:
    """The stream of this number, and how many have been taken by then."""
    passed = 0
    for opened in streams:
        passed += 1
        if passed == wanted:
            return opened, passed
    held = counted(passed, "stream")
    raise UsageError(f"there is no stream {wanted:,}: the file holds {held}")


def _told(file: Recording | RecordingFile, about: About) -> str:
    """What a file says of its stream: its own header, or what a capture has beside it."""
    head = file.header if isinstance(file, RecordingFile) else file
    status = "" if about.status is None else f"HTTP {about.status}"
    status = "" if head.note.startswith(status) else status  # the note of a capture begins with it
    hidden = ", ".join(f"{count:,} x {kind}" for kind, count in about.masked)
    masked = f"masked: {hidden}" if hidden else ""
    source = head.source if file.timed and not about.form else ""
    where = " ".join(filter(None, (about.form, about.where)))
    told = (source, where, about.request, status, about.at, masked, head.note)
    return ", ".join(filter(None, told))


class _Kept:
    """What a page needs of a stream, kept while that is judged, up to a size."""

    def __init__(self, file: Recording | RecordingFile) -> None:
        self.exceeded = False  #: whether the stream ran over a bound
        self._file = file
        self._chunks: list[Chunk] = []
        self._size = 0

    def __call__(self, chunk: Chunk, reads: list[Read]) -> None:
        """Take one read."""
        self.exceeded |= any(isinstance(e, BoundExceeded) for _, events in reads for e in events)
        self._size += len(chunk.data) + READ_COST
        if self._size > MAX_PAGE_BYTES:
            self._chunks.clear()
        else:
            self._chunks.append(chunk)

    def recording(self, outcome: Outcome) -> Recording:
        """The recording that was judged; raises `UsageError` where it is too large."""
        if self._size > MAX_PAGE_BYTES:
            raise UsageError(f"the stream is too large for a page ({MAX_PAGE_BYTES:,} bytes)")
        file = self._file
        head = file.header if isinstance(file, RecordingFile) else file
        note = "; ".join(filter(None, (head.note, outcome.truncated)))
        chunks = tuple(self._chunks[:-1])  # the last call of a watch is the end, without bytes
        end, wire = outcome.ending, outcome.wire
        return Recording(chunks, end, wire, file.end_t, head.source, head.model, note)


def _check_target(out: Path, name: str) -> None:
    """Refuse, before anything is read, a page that would take the place of something else."""
    refuse_special(out)
    if out.exists() and out.samefile(name):
        raise UsageError("--html would overwrite the recording itself")


def named(name: str, why: Exception) -> str:
    """The error, beginning with the name of the file."""
    if os.path.isdir(name):
        return f"{name}: is a folder; name the files in it, or read all of it with `scan`"
    text = (why.strerror if isinstance(why, OSError) else None) or str(why)
    return text if text.startswith(name) else f"{name}: {text}"


def open_console() -> Console:
    """Where a command prints what a person reads."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise  # `main` knows what to do

    return Piped(highlight=False, markup=False, emoji=False)


def _draws(encoding: str) -> bool:
    """Whether a terminal takes more than ASCII."""
    try:
        "▁█┤→✓".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _all(*watches: Watch) -> Watch:
    def watch(chunk: Chunk, reads: list[Read]) -> None:
        for each in watches:
            each(chunk, reads)

    return watch


class _Bar:
    """A bar on stderr, where that is a terminal and a file takes longer than a moment."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._due = time.monotonic() + PATIENCE
        self._bytes = 0
        self._wanted = sys.stderr is not None and sys.stderr.isatty()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, chunk: Chunk, reads: list[Read]) -> None:
        """Take one read."""
        self._bytes += len(chunk.data)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._bytes)
        elif self._wanted and time.monotonic() > self._due:
            self._start()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        label = TextColumn("{task.description}", markup=False)
        console = Console(stderr=True)
        self._progress = Progress(
            label, BarColumn(), DownloadColumn(), console=console, transient=True
        )
        self._progress.start()
        name = visible(os.path.basename(self._name))
        self._task = self._progress.add_task(name, total=_length(self._name))


def _length(name: str) -> int | None:
    """The bytes of a file; None where nobody knows."""
    try:
        return (os.path.getsize(name) or None) if name != "-" else None
    except OSError:
        return None
