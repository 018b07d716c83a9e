"""The scan of a folder: its throughput, its memory, a second worker, and a cluster's lost one.

The floor reads each file, finds its data lines and JSON-decodes them, with the faster of two fast
decoders; of a timed recording that means its own lines too, which hold the bytes. Floor and scan
run in the same processes, which are started and warm, and take turns. What is compared is the CPU
time of all of them together, since a busy machine slows them unequally; a second worker can only be
judged by the clock, so beside it stands what the floor gains by one. Memory is that of processes
which do nothing else. All figures are ratios of one run.

`python3 -m tests.bench.scanning --scan 10000` is the full measurement, over a gigabyte.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from streamlab import synth, write
from streamlab.analysis import corpus
from tests.bench.aims import AIMS

__all__ = ["SMALL", "Figure", "floor_of", "make", "measure_scan"]

#: Recordings of the plain `bench`; the full measurement has 10,000.
SMALL = 1000

#: Different recordings; the others are copies of them, under names of their own.
DISTINCT = 80

#: Characters of text, and bytes of a tool's input, that make about 100 kB on a wire.
TEXT = {"claude": 6800, "openai-chat": 3600, "openai-responses": 3700, "gemini": 3600}
TOOL = {"claude": 6400, "openai-chat": 3400, "openai-responses": 3900, "gemini": 45_000}

#: Form -> its name in a row.
FORMS = {"sse": "event streams", "stream.jsonl": "timed recordings"}

#: Recordings at the lower end of the growth of memory, and those of the cluster's run.
FEW, CLUSTER = 100, 200

#: Files that the floor is given at a time.
BATCH = 32


class Figure(NamedTuple):
    """One figure, and its aim."""

    name: str
    aims_at: str
    value: float
    met: bool
    more: str = ""

    @property
    def verdict(self) -> str:
        """The aim, with the figure of this run and whether it meets the aim."""
        met, more = "met" if self.met else "missed", f"; {self.more}" if self.more else ""
        return f"{self.aims_at}: {self.value:.2f}, {met} ({self.name}{more})"


# ---- what is read


def make(folder: Path, form: str, count: int) -> Path:
    """Write so many recordings of one form, of every wire format; a tenth is cut short."""
    place = folder / form
    place.mkdir(parents=True, exist_ok=True)
    wires = list(synth.WRITERS)
    for n in range(count):
        path = place / f"{n // 1000:02}" / f"{n:05}.{form}"
        path.parent.mkdir(exist_ok=True)
        if n >= DISTINCT:
            shutil.copyfile(place / "00" / f"{n % DISTINCT:05}.{form}", path)
            continue
        wire, seed = wires[n % 4], n
        text = synth.long_text(TEXT[wire] + n, wire=wire, seed=seed)
        answer = text if n % 8 < 4 else synth.tool_json(TOOL[wire], wire=wire, seed=seed)
        if n % 10 == 9:
            whole = answer.chunks
            answer = type(answer)(whole[: len(whole) // 2], "cut", wire, whole[-1].t)
        write(answer, path)
    return place


def floor_of(paths: tuple[str, ...]) -> int:
    """Only JSON: how many payloads some files hold."""
    return decoded(paths, _fastest())


def standard_of(paths: tuple[str, ...]) -> int:
    """The same with the standard library's decoder."""
    return decoded(paths, json.loads)


def decoded(paths: tuple[str, ...], decode: Callable[[bytes], Any]) -> int:
    """Find the data lines of some files and decode them; how many there are."""
    count = 0
    for path in paths:
        data = Path(path).read_bytes()
        if path.endswith(".stream.jsonl"):
            lines = map(decode, data.splitlines())
            data = b"".join([line["data"].encode() for line in lines if "data" in line])
        for line in data.splitlines():
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                decode(line[6:])
                count += 1
    return count


@cache
def _fastest() -> Callable[[bytes], Any]:
    """Found in each process, once: its module brings all SDKs, which a scan must not pay for."""
    from tests.bench.contestants import FASTEST

    return FASTEST


# ---- how it is measured


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock time: what happens in other processes counts."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def pool(workers: int) -> ProcessPoolExecutor:
    """Processes that have imported everything."""
    made = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    spent(made, workers)
    return made


def spent(executor: Executor, workers: int) -> float:
    """CPU seconds so far: of this process, and of all workers."""
    each: dict[int, float] = {}
    while len(each) < workers:
        each |= dict(executor.map(_spent, range(workers)))
    return time.process_time() + sum(each.values())


def _spent(_: int) -> tuple[int, float]:
    """Import what both need, and stay long enough for every process to get one."""
    from streamlab.analysis.corpus.rows import Options, batch_of

    batch_of((), Options())
    _fastest()
    time.sleep(0.05)
    return os.getpid(), time.process_time()


def scan(place: Path, executor: Executor, workers: int) -> None:
    """The scan under test."""
    out = place.with_suffix(".parquet")
    corpus.scan(place, out, executor=executor, workers=workers, fresh=True)


def floor(place: Path, executor: Executor, workers: int, of: Callable[..., int] = floor_of) -> None:
    """The floor, in the same processes."""
    paths = (str(path) for path in sorted(place.rglob("*.*")) if path.is_file())
    batches = iter(lambda: tuple(islice(paths, BATCH)), ())
    for _ in executor.map(of, batches):
        pass


def standard(place: Path, executor: Executor, workers: int) -> None:
    """The floor as it is with the standard library."""
    floor(place, executor, workers, standard_of)


def throughput(place: Path, form: str, rounds: int) -> Figure:
    """The scan's throughput as a part of the floor's, on all cores."""
    workers = os.cpu_count() or 1
    best, clock = dict.fromkeys([floor, standard, scan], float("inf")), float("inf")
    with pool(workers) as executor:
        for _ in range(rounds):
            for run in best:
                before = spent(executor, workers)
                took = seconds(lambda run=run: run(place, executor, workers))  # type: ignore[misc]
                best[run] = min(best[run], spent(executor, workers) - before)
                clock = took  # of the last one, the scan
    size = sum(path.stat().st_size for path in place.rglob("*.*") if path.is_file())
    part, aim = best[floor] / best[scan], AIMS["scan"]
    more = f"{best[standard] / best[scan]:.2f} of that of json.loads; "
    more += f"{size / clock / 1e6:,.0f} MB/s by the clock with {workers} workers"
    name = f"scan, {FORMS[form]}"
    return Figure(name, f"at least {aim} of the floor's throughput", part, part >= aim, more)


def second_worker(place: Path, rounds: int) -> Figure:
    """How many times as fast two workers are as one, and what the floor gains by a second."""
    best = dict.fromkeys([(run, n) for run in (scan, floor) for n in (1, 2)], float("inf"))
    with pool(1) as one, pool(2) as two:
        for _ in range(rounds):
            for run, workers in best:
                executor = (one, two)[workers - 1]
                took = seconds(lambda r=run, e=executor, n=workers: r(place, e, n))  # type: ignore[misc]
                best[run, workers] = min(best[run, workers], took)
    times, control = (best[run, 1] / best[run, 2] for run in (scan, floor))
    said, aim = f"two workers, at least {AIMS['workers']} times as fast as one", AIMS["workers"]
    return Figure("scan", said, times, times >= aim, f"the floor {control:.2f}")


def memory(few: Path, many: Path) -> Iterator[Figure]:
    """The growth of the peak memory, of the main process and of the largest worker."""
    peaks = [_peak(place) for place in (few, many)]
    aim = AIMS["memory"]
    for name in ("main process", "largest worker"):
        less, more = (peak[name] for peak in peaks)
        megabytes = f"{less / 1e6:,.0f} MB, then {more / 1e6:,.0f} MB"
        files = [sum(path.is_file() for path in place.rglob("*.*")) for place in (few, many)]
        said = f"{files[0]:,} and {files[1]:,} recordings, peak memory at most {aim} times"
        yield Figure(f"scan, {name}", said, more / less, more / less <= aim, megabytes)


#: What a process of its own runs: nothing else is imported there.
ALONE = """
import json, resource, sys
from streamlab.analysis import corpus

corpus.scan(sys.argv[1], sys.argv[2], workers=2, fresh=True)
of = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
print(json.dumps([resource.getrusage(who).ru_maxrss for who in of]))
"""


def _peak(place: Path) -> dict[str, int]:
    """What a scan takes at most, in bytes."""
    command = [sys.executable, "-c", ALONE, str(place), str(place.with_suffix(".parquet"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    found = (peak * unit for peak in json.loads(done.stdout))
    return dict(zip(("main process", "largest worker"), found, strict=True))


def lost_worker(place: Path) -> Figure:
    """Rows that a Dask cluster gives, one of whose workers is killed in the middle."""
    import distributed

    options = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": logging.CRITICAL}
    files = sum(path.is_file() for path in place.rglob("*.*"))
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        victim = min(client.run(os.getpid).values())

        def kill(so_far: corpus.Scanned) -> None:
            if so_far.files >= files // 4 and not killed:
                killed.append(victim)
                os.kill(victim, signal.SIGKILL)

        out = place.with_suffix(".parquet")
        done = corpus.scan(place, out, client=client, fresh=True, watch=kill)
    part = (done.rows - done.errors) / files
    said = "a Dask worker killed in the middle, rows of all recordings"
    return Figure("scan", said, part, part == 1 and bool(killed), f"{done.rows:,} rows")


def measure_scan(count: int = SMALL, rounds: int = 3) -> Iterator[Figure]:
    """Every figure of the scan, over so many recordings."""
    with tempfile.TemporaryDirectory(prefix="streamlab-bench-") as folder:
        places = {form: make(Path(folder), form, count // 2) for form in FORMS}
        few = Path(folder) / "few"
        for form in FORMS:
            make(few, form, FEW // 2)
        for form, place in places.items():
            yield throughput(place, form, rounds)
        yield second_worker(places["sse"], rounds)
        many = Path(folder) / "many"
        many.mkdir()
        for place in places.values():
            place.rename(many / place.name)
        yield from memory(few, many)
        yield lost_worker(make(Path(folder) / "cluster", "sse", CLUSTER))


def main() -> None:
    """Measure the scan alone."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.bench.scanning", allow_abbrev=False)
    add = parser.add_argument
    add("--scan", type=int, default=SMALL, metavar="N", help=f"recordings (default: {SMALL})")
    add("--rounds", type=int, default=3, metavar="N", help="the best counts (default: 3)")
    options = parser.parse_args()
    for figure in measure_scan(options.scan, options.rounds):
        print(figure.verdict, flush=True)


if __name__ == "__main__":
    main()
