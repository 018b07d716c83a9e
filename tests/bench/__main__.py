"""CPU per event, as ratios measured in one run: `python3 -m streamlab bench`.

The whole way (bytes -> frames -> events -> turn -> attempt) stands, for each wire format, against

    floor    finding the data lines and JSON-decoding them, with the faster of two fast decoders
    raw      the vendor's SDK's iteration over the same bytes, nothing accumulated
    helper   the vendor's SDK's accumulating helper, where it has one

A second is CPU time of this process; each figure is the least of several rounds, and the rounds of
the contestants take turns, so that a busy machine slows them alike. The network is not measured:
the SDKs read from memory, through their own clients. No figure here is a test.

The scan of a folder works in several processes, so there a second is one of the clock.

Read next: `work.py`, what is measured; `contestants.py`, who reads; `aims.py`, what is aimed at;
`scanning.py`, the scan.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from streamlab.__main__ import bench_parser
from tests.bench.aims import HEAD, Row, show, verdicts
from tests.bench.contestants import SDKS, Run, floor, streamlab
from tests.bench.exploring import measure_explorer
from tests.bench.scanning import SMALL, measure_scan
from tests.bench.work import Work, works

#: Rounds of the dear contestants: their cost is far above the noise.
RAW_ROUNDS, HELPER_ROUNDS = 2, 1


def cpu(run: Run, job: Work) -> float:
    """CPU seconds of one run."""
    start = time.process_time()
    run(job)
    return time.process_time() - start


def measure(job: Work, rounds: int) -> Row:
    """One row; a dear contestant runs less often."""
    raw, helper = (None, None) if job.array else SDKS[job.wire]
    limits = {floor: rounds, streamlab: rounds, raw: RAW_ROUNDS, helper: HELPER_ROUNDS}
    best: dict[Run | None, float] = {}
    for turn in range(rounds):
        for run, limit in limits.items():
            if run is not None and turn < limit:
                best[run] = min(best.get(run, float("inf")), cpu(run, job) / job.events * 1e6)
    costs = (best[floor], best[streamlab], best.get(raw), best.get(helper))
    return Row(job.title, job.events, *costs)


def main() -> int:
    """Measure, and print a table."""
    options = bench_parser().parse_args()
    found = []
    if not options.json:
        print("CPU, microseconds an event; the least of several rounds")
        print(" " * 38 + "".join(f"{word:>11}" for word in HEAD))
    for job in works(Path(options.recordings)):
        found.append(measure(job, options.rounds))
        print(json.dumps(found[-1]._asdict()) if options.json else show(found[-1]), flush=True)
    explored = measure_explorer(options.rounds)
    print(json.dumps(explored._asdict()) if options.json else explored, flush=True)
    if not options.json:
        print("", *verdicts(found), explored.verdict, sep="\n")
    for figure in measure_scan(getattr(options, "scan", SMALL)):
        print(json.dumps(figure._asdict()) if options.json else figure.verdict, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
