"""Run a scan's batches on any executor: in order, with a bound on what waits, losing none.

An executor is a pool of processes here, or a cluster's; the function is the same. A process can die
under a file (the kernel kills the one that takes all memory). What was under way is then tried once
more, alone: batch by batch, and file by file where a batch does it again. A file that has killed
its process twice by itself gets a row that says so.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from streamlab.analysis.corpus.places import Item
from streamlab.analysis.corpus.rows import Options, batch_of, error_rows, schema, unpacked
from streamlab.analysis.corpus.table import Earlier
from streamlab.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Batch", "Borrowed", "Engine", "Pool", "batches", "run"]

#: Files of a batch, and their bytes. The first batches are small, so that no worker waits.
MAX_ITEMS, MAX_BYTES = 32, 4 * 1024 * 1024

#: Batches that a worker has before it, or behind it while an earlier one is not done.
AHEAD = 16

#: Bytes of archive members on their way to the workers.
MAX_SHIPPED = 64 * 1024 * 1024

#: Times that a file may kill the process that reads it, with no other one beside it.
MAX_DEATHS = 2

DIED = "the process that read it was killed, twice: perhaps it takes more memory than there is"


class Batch(msgspec.Struct, frozen=True):
    """Some files; their rows too, where an earlier run has them."""

    items: tuple[Item, ...]
    rows: Any = None  #: a pyarrow.RecordBatch

    @property
    def shipped(self) -> int:
        """The bytes that travel with it."""
        return sum(len(item.data) for item in self.items if item.data)


# ---- where they run


class Engine:
    """An executor, how many run at a time, and what it raises where a process has died."""

    died: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def __init__(self, executor: Executor, workers: int) -> None:
        self.executor, self.workers = executor, workers
        self._proven = False

    def submit(self, items: tuple[Item, ...], options: Options) -> Future[bytes]:
        """Start the rows of some files. Raises `UsageError` where nothing runs at all."""
        if not self._proven:
            self._prove(options)
        return self._call(items, options)

    def _call(self, items: tuple[Item, ...], options: Options) -> Future[bytes]:
        return self.executor.submit(batch_of, items, options)

    def _prove(self, options: Options) -> None:
        """See that anything runs: else each file would be blamed for it."""
        self._proven = True
        try:
            self._call((), options).result()
        except self.died:
            hint = "in a script of your own, call it under `if __name__ == '__main__':`"
            raise UsageError(f"the worker processes do not start; {hint}") from None
        except Exception as why:
            what = f"{type(why).__name__}: {str(why)[:200]}"
            raise UsageError(f"the workers cannot scan: {what}") from why

    def restart(self) -> None:
        """Make it work again after a process died."""

    def close(self) -> None:
        """Stop what was started here."""


class Borrowed(Engine):
    """An executor that the caller made, and ends."""

    def __init__(
        self, executor: Executor, workers: int, died: tuple[type[BaseException], ...] = ()
    ) -> None:
        super().__init__(executor, workers)
        self.died = (BrokenExecutor, *died)


class Pool(Engine):
    """Processes of our own. Spawned, not forked: the caller may have threads."""

    def __init__(self, workers: int) -> None:
        super().__init__(_pool(workers), workers)

    def _call(self, items: tuple[Item, ...], options: Options) -> Future[bytes]:
        with _interrupts_held():  # a call may start a process
            return super()._call(items, options)

    def restart(self) -> None:
        """A pool that has lost a process is of no use; take a new one."""
        self.close()
        self.executor = _pool(self.workers)

    def close(self) -> None:
        """Let the processes go, after what they are at."""
        self.executor.shutdown(cancel_futures=True)


def _pool(workers: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, initializer=_begin)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; a process that is started meanwhile never gets one, from its first moment.

    A terminal sends it to all processes, and it is this one's to answer.
    """
    hold = getattr(signal, "pthread_sigmask", None)  # Windows has none
    if hold is None:
        yield
        return
    before = hold(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        hold(signal.SIG_SETMASK, before)


def _begin() -> None:
    """In a new process: Ctrl-C is the parent's to answer, and without a parent there is no work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# ---- what is run


def batches(items: Iterable[Item], earlier: Earlier, workers: int) -> Iterator[Batch]:
    """The files in batches: those whose rows are known, and those to read, as they come."""
    held: list[Item] = []
    size = made = 0
    for item in items:
        rows = earlier.take(item)
        most = min(MAX_ITEMS, 1 + made // workers)
        if held and (rows is not None or len(held) >= most or size + item.size > MAX_BYTES):
            yield Batch(tuple(held))
            held, size, made = [], 0, made + 1
        if rows is not None:
            yield Batch((item,), rows)
        else:
            held.append(item)
            size += item.size
    if held:
        yield Batch(tuple(held))


Waiting = deque[tuple[Batch, "Future[Any]"]]


def run(
    all_batches: Iterator[Batch], engine: Engine, options: Options
) -> Iterator[tuple[Batch, pa.RecordBatch]]:
    """Each batch with its rows, in order. Raises `UsageError` where no process can be started."""
    waiting: Waiting = deque()
    try:
        while True:
            _fill(waiting, all_batches, engine, options)
            if not waiting:
                return
            lost = [waiting.popleft()]
            try:
                rows = _rows(lost[0][1])
            except engine.died:  # with it, all that was under way
                lost += waiting
                waiting.clear()
                engine.restart()
            except Exception:  # one of its files is to blame
                pass
            else:
                yield lost.pop()[0], rows
            for batch, future in lost:
                yield batch, _recovered(batch, future, engine, options)
    finally:
        for _, future in waiting:
            future.cancel()


def _fill(waiting: Waiting, more: Iterator[Batch], engine: Engine, options: Options) -> None:
    """Start batches as long as there is room."""
    shipped = sum(batch.shipped for batch, _ in waiting)
    while len(waiting) < AHEAD * engine.workers and shipped < MAX_SHIPPED:
        batch = next(more, None)
        if batch is None:
            return
        shipped += batch.shipped
        waiting.append((batch, _submit(batch, engine, options)))


def _submit(batch: Batch, engine: Engine, options: Options) -> Future[Any]:
    future: Future[Any] = Future()
    if batch.rows is not None:
        future.set_result(batch.rows)
        return future
    try:
        return engine.submit(batch.items, options)
    except engine.died as why:  # before its turn has come
        future.set_exception(why)
        return future


def _rows(future: Future[Any]) -> pa.RecordBatch:
    """What came of a batch; where its rows were known, they came as they are."""
    rows = future.result()
    return unpacked(rows) if isinstance(rows, bytes) else rows


# ---- after a process died


def _recovered(
    batch: Batch, future: Future[Any], engine: Engine, options: Options
) -> pa.RecordBatch:
    """The rows of a batch that may be lost: as it is, once more and alone, or file by file."""
    try:
        return _rows(future)
    except Exception:
        pass
    try:
        return _rows(engine.submit(batch.items, options))
    except engine.died:
        engine.restart()
    except Exception:  # one of its files is to blame
        pass
    import pyarrow as pa

    rows = [_alone(item, engine, options) for item in batch.items]
    return pa.Table.from_batches(rows).combine_chunks().to_batches()[0]


def _alone(item: Item, engine: Engine, options: Options) -> pa.RecordBatch:
    """The rows of one file, with no other beside it."""
    import pyarrow as pa

    error = DIED
    for _ in range(MAX_DEATHS):
        try:
            return _rows(engine.submit((item,), options))
        except engine.died:
            engine.restart()
        except Exception as why:
            error = f"a bug in streamlab ({type(why).__name__}: {str(why)[:200]})"
            break
    return pa.RecordBatch.from_pylist(error_rows(item, error), schema())
