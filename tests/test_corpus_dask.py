"""The same scan on a Dask cluster: a real one, on loopback, one process of which is killed."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamlab import cli, synth, write
from streamlab.analysis import corpus
from streamlab.analysis.corpus import running as corpus_running

distributed = pytest.importorskip("distributed")

FILES = 240


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two processes, which are started again when they die; nothing else listens."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as connected,
    ):
        yield connected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "recordings"
    root.mkdir()
    wires = list(synth.WRITERS)
    for n in range(FILES):
        write(synth.story(wire=wires[n % 4], seed=n), root / f"{n:03}.stream.jsonl")
    return root


def rows_in(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def test_a_worker_that_is_killed_in_the_middle_loses_no_row(
    client: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_running, "MAX_ITEMS", 2)
    pids = set(client.run(os.getpid).values())
    assert len(pids) == 2
    killed: list[int] = []

    def kill(so_far: corpus.Scanned) -> None:
        if so_far.files >= FILES // 4 and not killed:
            killed.append(min(pids))
            os.kill(killed[0], signal.SIGKILL)

    done = corpus.scan(folder, tmp_path / "killed.parquet", client=client, watch=kill)
    assert killed and killed[0] not in client.run(os.getpid).values()
    assert (done.files, done.rows, done.errors) == (FILES, FILES, 0)
    corpus.scan(folder, tmp_path / "here.parquet", workers=1)
    assert rows_in(tmp_path / "killed.parquet") == rows_in(tmp_path / "here.parquet")


def test_the_command_runs_on_the_cluster_whose_address_it_is_given(
    client: Any, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    address = client.scheduler.address
    assert address.startswith("tcp://127.0.0.1:")
    command = ["scan", str(folder), "--out", str(out), "--scheduler", address]
    assert cli.main(command) == 0
    said, err = capfd.readouterr()
    assert (said.splitlines()[0], err) == (f"{FILES} streams in {FILES} files", "")
    assert len(rows_in(out)) == FILES
