"""The Parquet file of a scan: written in parts beside it, put together at the end, read again.

    streams.parquet.parts/2-000001.parquet    the second run's first part: a whole file of its own
    streams.parquet                           appears when a run is through, or stays as it was

A part is written under another name first, so a run that is killed leaves only whole ones, and one
run at a time has the folder (`alone.py`). A part's rows are in the order of `found`, and so are
those of the file: a later run walks beside them, without an index, and takes over what has not
changed. Memory is that of one part, however many there are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlab.analysis.corpus.alone import alone_in
from streamlab.analysis.corpus.places import Item, Order, shown
from streamlab.analysis.corpus.rows import Options, schema
from streamlab.errors import UsageError
from streamlab.streams.recording import refuse_special

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Earlier", "Table", "Writer"]

#: Rows of a part, and the seconds after which one is written anyway: what a kill costs at most.
PART_ROWS, PART_SECONDS = 2000, 5.0

#: Rows of a group in the file: what a reader takes at a time.
GROUP_ROWS = 2000


class Table:
    """The file that a scan writes, and the parts beside it: enter it to have them to oneself.

    Raises `UsageError` where that, or the writing, cannot be.
    """

    def __init__(self, out: str | os.PathLike[str], options: Options) -> None:
        self.out = Path(out)
        if not self.out.name:
            raise UsageError(f"{os.fspath(out)!r} is no name of a file")
        self.parts = self.out.with_name(f"{self.out.name}.parts")
        self.schema = schema().with_metadata({"streamlab": options.digest()})
        self.run = 0
        refuse_special(self.out)
        if not self.out.parent.is_dir():
            raise UsageError(f"{self.out}: there is no folder {self.out.parent}")
        if self.out.exists() and _schema_of(self.out) is None:
            raise UsageError(f"{self.out}: exists and is no table of `scan`; name another file")
        if self.parts.exists() and not self.parts.is_dir():
            raise UsageError(f"{self.parts}: exists and is no folder")
        self._alone = alone_in(self.parts)

    def __enter__(self) -> Table:
        self._alone.__enter__()
        self.run = max(self._runs(), default=0) + 1
        return self

    def __exit__(self, *_: object) -> None:
        self._alone.__exit__(None, None, None)

    def earlier(self) -> Earlier:
        """What earlier runs found, the latest first; only what was judged in the same way."""
        runs = self._runs()
        sources = [runs[run] for run in sorted(runs, reverse=True)]
        sources += [[self.out]] if self.out.exists() else []
        return Earlier([[p for p in paths if self._fits(p)] for paths in sources])

    def start(self) -> Writer:
        """Begin this run's parts."""
        return Writer(self)

    def finish(self) -> None:
        """Put this run's parts together; the file appears whole, and the parts go.

        Its row groups are all of one size, so that it is the same bytes however the run went.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        new, held = self.parts / "whole", self.schema.empty_table()
        with written(self.out, new):
            with pq.ParquetWriter(new, self.schema) as writer:
                for part in self._runs().get(self.run, []):
                    held = pa.concat_tables([held, pq.read_table(part, schema=self.schema)])
                    while held.num_rows >= GROUP_ROWS:
                        writer.write_table(held.slice(0, GROUP_ROWS).combine_chunks())
                        held = held.slice(GROUP_ROWS)
                writer.write_table(held.combine_chunks())
            os.replace(new, os.path.realpath(self.out))  # a link stays one
        for path in (path for paths in self._runs().values() for path in paths):
            path.unlink()

    def _runs(self) -> dict[int, list[Path]]:
        """The parts of each run, in order."""
        runs: dict[int, list[Path]] = {}
        for path in sorted(self.parts.glob("*-*.parquet")):
            run, _, number = path.stem.partition("-")
            if run.isdigit() and number.isdigit():
                runs.setdefault(int(run), []).append(path)
        return runs

    def _fits(self, path: Path) -> bool:
        found = _schema_of(path)
        return found is not None and found.metadata == self.schema.metadata


@contextmanager
def written(path: Path, new: Path) -> Iterator[None]:
    """Write a new file for a path; where that fails, it goes, and `UsageError` names the path."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as why:
        raise UsageError(f"{path}: {getattr(why, 'strerror', None) or why}") from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _schema_of(path: Path) -> pa.Schema | None:
    """A table's schema; None where it is none of a scan."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return found if b"streamlab" in (found.metadata or {}) else None


class Writer:
    """Writes the parts of one run: `add` it batches in order; `flush` writes what is left."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._number = 0
        self._due = time.monotonic() + PART_SECONDS

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows; write a part when there are enough."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= PART_ROWS or time.monotonic() >= self._due:
            self.flush()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()  # also where it was interrupted: the next run goes on from here

    def flush(self) -> None:
        """Write what there is as a part."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._due = time.monotonic() + PART_SECONDS
        if not self._rows:
            return
        self._number += 1
        name = f"{self._table.run}-{self._number:06d}.parquet"
        new = self._table.parts / "new"
        rows = pa.Table.from_batches(self._batches).cast(self._table.schema)
        with written(self._table.out, new):
            pq.write_table(rows.replace_schema_metadata(self._table.schema.metadata), new)
            os.replace(new, self._table.parts / name)
        self._batches, self._rows = [], 0


#: The columns that say which file a row is about.
KEYS = ["file", "member", "number", "place", "file_bytes", "modified", "error"]


class _Place(NamedTuple):
    """The rows of one item in a source."""

    order: Order
    place: str
    size: int
    mtime_ns: int
    broken: bool
    batch: pa.RecordBatch


class Earlier:
    """The rows of earlier runs, walked beside `found`."""

    def __init__(self, sources: Iterable[list[Path]]) -> None:
        self._walks = [_Walk(paths) for paths in sources if paths]

    def take(self, item: Item) -> pa.RecordBatch | None:
        """An item's rows, if it has not changed since and all went well; None: read it (again).

        Items must come in their order. What could not be read is read again: its cause may be gone.
        So is what was found in another place, since its rows say in which.
        """
        taken, asked = None, (shown(item.place), item.size, item.mtime_ns)
        for walk in self._walks:
            place = walk.at(item.order)
            same = place is not None and (place.place, place.size, place.mtime_ns) == asked
            if taken is None and place is not None and same and not place.broken:
                taken = place.batch
        return taken

    def knows(self, item: Item) -> bool:
        """Whether `take` would give its rows."""
        return self.take(item) is not None


class _Walk:
    """One source: the parts of a run, or a whole file."""

    def __init__(self, paths: list[Path]) -> None:
        self._places = _places(paths)
        self._next = next(self._places, None)

    def at(self, order: Order) -> _Place | None:
        """What is there about an item."""
        while self._next is not None and self._next.order < order:
            self._next = next(self._places, None)
        return self._next if self._next is not None and self._next.order == order else None


def _places(paths: Iterable[Path]) -> Iterator[_Place]:
    """The items of a source, in order; what is left of a file that breaks off is not known."""
    import pyarrow as pa

    waiting: _Place | None = None
    with suppress(pa.ArrowException, OSError):
        for batch in _batches(paths):
            for place in _groups(batch):
                if waiting is not None and waiting.order == place.order:
                    waiting = _joined(waiting, place)
                    continue
                if waiting is not None:
                    yield waiting
                waiting = place
    if waiting is not None:
        yield waiting


def _batches(paths: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    for path in paths:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(PART_ROWS)


def _groups(batch: pa.RecordBatch) -> Iterator[_Place]:
    """The items of a batch: runs of rows about the same file and member."""
    import pyarrow as pa

    columns: list[list[Any]] = []
    for name in KEYS:
        column = batch.column(name)
        column = column.cast(pa.int64()) if name == "modified" else column
        columns.append(column.to_pylist())
    first, keys = 0, list(zip(*columns, strict=True))
    for n in range(1, len(keys) + 1):
        if n == len(keys) or keys[n][:3] != keys[first][:3]:
            file, _, number, named, size, mtime_ns, _ = keys[first]
            broken = any(key[-1] is not None for key in keys[first:n])
            order = (tuple(shown(file).split(os.sep)), number)
            yield _Place(order, named, size, mtime_ns, broken, batch.slice(first, n - first))
            first = n


def _joined(one: _Place, two: _Place) -> _Place:
    """An item whose rows are in two batches."""
    import pyarrow as pa

    whole = pa.Table.from_batches([one.batch, two.batch]).combine_chunks().to_batches()
    return one._replace(batch=whole[0], broken=one.broken or two.broken)
