"""A folder of recordings as one table: a row a stream, in bounded memory, on all cores.

    found -> batches -> rows_of, on any executor -> parts -> one Parquet file
    (corpus_places)     (corpus_rows, corpus_running) (corpus_table)

`scan` reads; a second one over the same files takes over what has not changed. `read` and `summary`
answer: how many are whole, how long is the wait, what is good enough, by model, by day. Read next:
`rows.py`, what one file becomes; `summary.py`, what is made of the rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec

from streamlab.analysis.corpus.places import Item, found
from streamlab.analysis.corpus.rows import COLUMNS, Options, rows_of
from streamlab.analysis.corpus.running import Batch, Borrowed, Engine, Pool, batches, run
from streamlab.analysis.corpus.summary import NEEDED, SUMMARY, objectives_of, read, summary, worst
from streamlab.analysis.corpus.table import Earlier, Table
from streamlab.consumer.attempt import State
from streamlab.consumer.gates import EFFECT, Policy
from streamlab.errors import UsageError
from streamlab.wire.reader import WIRES

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "FINE",
    "NEEDED",
    "SUMMARY",
    "Item",
    "Options",
    "Scanned",
    "found",
    "objectives_of",
    "read",
    "rows_of",
    "scan",
    "summary",
    "worst",
]

#: States that are no finding, as in `show`.
FINE = (State.MESSAGE_COMPLETE.value, State.VALIDATED_PROPOSAL.value, State.COMMITTED.value)

#: Processes on this machine: more than any has cores, fewer than it would die of.
MAX_WORKERS = 1024

Places = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Scanned(msgspec.Struct, frozen=True):
    """What a scan did so far, or in the end."""

    files: int = 0  #: files and members of archives
    reused: int = 0  #: of these, those whose rows an earlier run had
    rows: int = 0
    errors: int = 0  #: rows that say why a file cannot be read
    findings: int = 0  #: streams that may not be used as they are
    weight: int = 0  #: bytes on disk that are done with


#: Is told after each batch how far the scan has come.
Watch = Callable[[Scanned], object]


def scan(
    places: Places,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    client: Any = None,
    policy: Policy = EFFECT,
    wire: str | None = None,
    fresh: bool = False,
    watch: Watch = lambda so_far: None,
) -> Scanned:
    """Read everything in the places into the Parquet file `out`, a row a stream.

    It runs in `workers` processes here (default: one a core), on an `executor` of yours, or on the
    cluster of a `dask.distributed` client. What is interrupted, the same call goes on with; with
    `fresh`, nothing is taken over. Raises `UsageError` for a place that does not exist, a file that
    may not be written, and workers that do not start; a bad recording is a row.
    """
    if wire is not None and wire not in WIRES:
        raise UsageError(f"wire {wire!r} is none of {', '.join(WIRES)}")
    options = Options(policy, wire)
    named = [places] if isinstance(places, str | os.PathLike) else list(places)
    so_far = Scanned()
    with Table(out, options) as table, closing(_engine(workers, executor, client)) as engine:
        earlier = Earlier([]) if fresh else table.earlier()
        items = found(named, (table.out, table.parts), earlier.knows)
        with table.start() as writer:
            for batch, rows in run(batches(items, earlier, engine.workers), engine, options):
                writer.add(rows)
                so_far = _counted(so_far, batch, rows)
                watch(so_far)
        table.finish()
    return so_far


def _engine(workers: int | None, executor: Executor | None, client: Any) -> Engine:
    if client is not None:
        if executor is not None:
            raise UsageError("an executor or a client, not both")
        from distributed import KilledWorker

        threads = sum(client.nthreads().values())
        return Borrowed(client.get_executor(pure=False), workers or threads or 1, (KilledWorker,))
    if executor is not None:
        return Borrowed(executor, workers or _cores())
    if workers is not None and workers > MAX_WORKERS:
        raise UsageError(f"{workers:,} worker processes; at most {MAX_WORKERS:,} here")
    return Pool(workers or _cores())


def _cores() -> int:
    """The cores that this process may use, where the system says so."""
    given = getattr(os, "sched_getaffinity", None)
    return len(given(0)) if given else os.cpu_count() or 1


def _counted(so_far: Scanned, batch: Batch, rows: pa.RecordBatch) -> Scanned:
    states = rows.column("state").to_pylist()
    errors = rows.num_rows - rows.column("error").null_count
    return Scanned(
        so_far.files + len(batch.items),
        so_far.reused + (len(batch.items) if batch.rows is not None else 0),
        so_far.rows + rows.num_rows,
        so_far.errors + errors,
        so_far.findings + sum(state is not None and state not in FINE for state in states),
        so_far.weight + sum(item.weight for item in batch.items),
    )
