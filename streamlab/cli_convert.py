"""`streamlab convert`: recordings in another form, with secrets masked on the way.

A file is converted only where the result says the same: original and result are judged, and what
would read as a whole answer though the original is none is not written. Read next:
`streams/converting.py`, the forms; `streams/masking.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streamlab.analysis.judge import Outcome, judge
from streamlab.analysis.plain import visible
from streamlab.cli import complain, report_bug
from streamlab.cli_show import FINE, named
from streamlab.errors import UsageError, WireError
from streamlab.streams.converting import Converted, converted
from streamlab.streams.importers import streams_in
from streamlab.streams.masking import Counts, masked
from streamlab.streams.recording import Chunk, Recording, RecordingFile, replace_file
from streamlab.streams.splitting import answers
from streamlab.wire.reader import BOUNDS

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["convert", "stem"]

#: Ends of names that say how a file was written, and nothing about what is in it.
SUFFIXES = (
    *(".gz", ".zst", ".stream.jsonl", ".jsonl", ".ndjson", ".sse", ".txt", ".json", ".har"),
    *(".mitm", ".flow", ".flows", ".yaml", ".yml", ".log", ".trace", ".out"),
)

#: Bytes of a stream that is converted: it is whole in memory.
MAX_BYTES = BOUNDS.bytes

#: Bytes of all files from which on a bar is shown on a terminal.
LONG = 4 * 1024 * 1024


class Stream(NamedTuple):
    """One stream of a file, without its secrets."""

    recording: Recording
    counts: Counts
    original: Recording  #: with them


def convert(options: argparse.Namespace) -> int:
    """Convert every file; return the worst exit status."""
    if options.files.count("-") > 1:
        raise UsageError("- (standard input) can be read only once")
    place = _Place(options)
    with _Bar(options.files) as bar:
        return max(_one(name, options, place) for name in bar)


def _one(name: str, options: argparse.Namespace, place: _Place) -> int:
    """Convert one file; what goes wrong with it is said in a line."""
    try:
        streams, more = _read(name, options)
        targets = place.of(name, len(streams))
        found = [
            _written(stream, name, target, options)
            for stream, target in zip(streams, targets, strict=True)
        ]
    except BrokenPipeError:  # whoever reads our output has gone: `main` knows what to do
        raise
    except (WireError, UsageError, OSError) as why:
        complain(named(name, why))
        return 2
    except Exception as why:  # a bug of ours must not stop the other files
        report_bug(why, name)
        return 2
    if more:
        said = "the first is written; --split writes each"
        complain(f"{name}: it holds {more + 1} streams, {said}")
    return 1 if more or any(found) else 0


def _read(name: str, options: argparse.Namespace) -> tuple[list[Stream], int]:
    """The streams to be written, and how many more there are."""
    streams, more = list[Stream](), 0
    for opened in streams_in(name, keep=options.keep):
        if streams and not options.split:
            more += 1
            continue
        whole = _whole(opened.recording, name)
        about = opened.about.masked
        for part in answers(whole, options.wire) if options.split else (whole,):
            clean, counts = masked(part, options.wire) if not options.keep else (part, ())
            streams.append(Stream(clean, _sum(about, counts), part))
            about = ()
    return streams, more


def _whole(source: Recording | RecordingFile, name: str) -> Recording:
    """A recording as a value."""
    if isinstance(source, Recording):
        return source
    chunks, size = list[Chunk](), 0
    for chunk in source:
        chunks.append(chunk)
        size += len(chunk.data)
        if size > MAX_BYTES:
            raise WireError(f"more than {MAX_BYTES:,} bytes; a stream is converted whole", name)
    head = source.header
    note = "; ".join(filter(None, (head.note, source.truncated)))
    fields = (source.ending, head.wire, source.end_t, head.source, head.model, note)
    return Recording(tuple(chunks), *fields)


def _sum(a: Counts, b: Counts) -> Counts:
    total = dict(a)
    for kind, count in b:
        total[kind] = total.get(kind, 0) + count
    return tuple(total.items())


def _written(stream: Stream, name: str, target: Path | None, options: argparse.Namespace) -> bool:
    """Write one stream (to standard output without a target); whether there is a finding."""
    recording = stream.recording
    before = judge(stream.original, wire=options.wire)
    wire = options.wire or before.wire
    result = converted(recording, options.to, wire, before.complete)
    kept = recording if options.to == "stream.jsonl" else Recording.from_bytes(result.data)
    after = before if kept is stream.original else judge(kept, wire=wire)
    if options.to != "stream.jsonl" and _is_better(after, before):
        complain(
            f"{name}: not written as {options.to}, where it would read as {after.state}: it is"
            f" {before.state}, {before.attempt.why}; --to stream.jsonl keeps how it ended"
        )
        return True
    if target is None:
        sys.stdout.buffer.write(result.data)
        sys.stdout.buffer.flush()
    else:
        replace_file(target, [result.data])
    said = [*_said(stream.counts, result, before, after)]
    if target is not None or said:
        complain("; ".join([f"wrote {target}" if target is not None else name, *said]))
    return after.state is not before.state


def _is_better(after: Outcome, before: Outcome) -> bool:
    """Whether an answer that may not be used would read as one that may."""
    fine = after.state in FINE and before.state not in FINE
    return fine or (after.complete and not before.complete)


def _said(counts: Counts, result: Converted, before: Outcome, after: Outcome) -> Iterator[str]:
    """What a person should know of a file that was written."""
    if counts:
        each = ", ".join(_count(kind, n) for kind, n in counts)
        yield f"masked {sum(n for _, n in counts)}: {each}"
    if result.added:
        yield f"added {', '.join(result.added)}"
    if result.lost:
        yield f"lost {', '.join(result.lost)}"
    if after.state is not before.state:
        yield f"it now reads as {after.state}, not {before.state}"


def _count(kind: str, n: int) -> str:
    """A number of secrets of a kind, in words."""
    plural = "es" if kind.endswith("s") else "s"
    return f"{n} {kind}{plural if n != 1 else ''}"


def stem(name: str) -> str:
    """What a file's own name says of its content: no folder, no suffix that tells a form.

    >>> stem("logs/answer.sse.gz")
    'answer'
    """
    base = os.path.basename(name)
    while found := next((s for s in SUFFIXES if base.lower().endswith(s)), None):
        base = base[: -len(found)]
    return base if base.strip(".") else "stream"


class _Place:
    """Where the results go, and what they may never take the place of."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._out: str | None = options.out
        several = len(options.files) > 1
        if self._out is None and options.files == ["-"]:
            self._out = "-"
        if self._out == "-" and several:
            raise UsageError("--out - takes one file's stream")
        self._written: dict[str, str] = {}  # path -> the file it is from
        self._folder = self._out not in (None, "-") and self._is_folder(str(self._out), several)

    def _is_folder(self, out: str, several: bool) -> bool:
        """Whether --out names a folder, which is made where there is none."""
        path = Path(out)
        folder = several or self._options.split or out.endswith(("/", os.sep)) or path.is_dir()
        if folder:
            try:
                path.mkdir(parents=True, exist_ok=True)
            except OSError as why:
                raise UsageError(f"{out}: {why.strerror or why}") from None
        return folder

    def of(self, name: str, count: int) -> list[Path | None]:
        """Where the streams of a file go, refused before anything of it is written."""
        if self._out == "-":
            if count > 1:
                raise UsageError(f"{count} streams, and --out - takes one")
            return [None] * count
        if self._out is not None and not self._folder:
            targets = [Path(self._out)]
        else:
            folder = Path(self._out or os.path.dirname(name))
            base = "stdin" if name == "-" else stem(name)
            numbers = [f"-{n + 1}" for n in range(count)] if count > 1 else [""]
            targets = [folder / f"{base}{number}.{self._options.to}" for number in numbers]
        for target in targets:
            self._check(target, name)
        return [*targets]

    def _check(self, target: Path, name: str) -> None:
        real = os.path.realpath(target)
        if real in self._written:
            raise UsageError(f"{target} was just written, from {self._written[real]}")
        for given in self._options.files:
            if given != "-" and _is_same(target, given):
                raise UsageError(f"{target} is a file that is read; choose another --out")
        if os.path.lexists(target) and not self._options.force:
            raise UsageError(f"{target} exists; --force replaces it")
        self._written[real] = name


def _is_same(target: Path, given: str) -> bool:
    """Whether a path leads to a file that is to be read, under whatever name."""
    try:
        return target.samefile(given)
    except OSError:
        return False


class _Bar:
    """The files, with a bar on stderr where that is a terminal and there is much to do."""

    def __init__(self, files: list[str]) -> None:
        self._files = files
        size = sum(os.path.getsize(name) for name in files if os.path.isfile(name))
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._progress = _progress() if terminal and size > LONG else None

    def __enter__(self) -> _Bar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __iter__(self) -> Iterator[str]:
        if self._progress is None:
            yield from self._files
            return
        task = self._progress.add_task("", total=len(self._files))
        for name in self._files:
            shown = visible(os.path.basename(name))
            self._progress.update(task, description=shown)
            yield name
            self._progress.advance(task)


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    label = TextColumn("{task.description}", markup=False)
    columns = (label, BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
