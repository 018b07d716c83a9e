"""A long job: what a person sees of it, who may run it, and how its failures are told."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from streamlab import job
from streamlab.checkout import stage
from streamlab.errors import UsageError
from streamlab.job import Job, explain


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def job_on(out: io.StringIO, tmp_path: Path) -> Job:
    return Job(log=tmp_path / "log", environment=os.environ, out=out)


def nothing_to_tell(lines: list[str]) -> tuple[str, int, int]:
    return "working", 0, 0


def test_a_terminal_shows_one_bar_and_is_clean_afterwards(tmp_path: Path) -> None:
    out = Terminal()
    running = job_on(out, tmp_path)
    running.show("fetching", 32, 128)
    running.show("fetching", 64, 128)
    running.say("done")
    first, second, wiped, *rest = out.getvalue().split("\r")[1:]
    assert first.startswith("[######..................] fetching 32 of 128 packages, 0 s")
    assert second.startswith("[############............] fetching 64 of 128 packages, 0 s")
    assert wiped.strip() == "" and rest == ["streamlab: done\n"]
    assert "\n" not in first + second


def test_elsewhere_each_stage_is_a_plain_line_once(tmp_path: Path) -> None:
    out = io.StringIO()
    running = job_on(out, tmp_path)
    for done in range(100):
        running.show("fetching", done, 100)
    running.show("installing", 1, 100)
    assert out.getvalue().splitlines() == [
        "streamlab: fetching 0 of 100 packages, 0 s",
        "streamlab: installing 1 of 100 packages, 0 s",
    ]


def test_a_long_stage_is_heard_of_again(tmp_path: Path) -> None:
    out = io.StringIO()
    running = job_on(out, tmp_path)
    running.show("fetching", 1, 100)
    running.began -= job.PLAIN_EVERY
    running.show("fetching", 50, 100)
    assert "fetching 50 of 100 packages, 10 s" in out.getvalue()


def test_more_than_all_is_never_shown(tmp_path: Path) -> None:
    out = io.StringIO()
    job_on(out, tmp_path).show("fetching", 130, 128)
    assert "fetching 128 of 128" in out.getvalue()


def test_a_failed_child_is_explained_and_all_it_said_is_kept(tmp_path: Path) -> None:
    running = job_on(io.StringIO(), tmp_path)
    child = [sys.executable, "-c", "print('first'); import sys; sys.exit('ERROR: no such thing')"]
    with pytest.raises(UsageError, match=r"set-up failed: ERROR: no such thing \(all of it: "):
        running.run(child, nothing_to_tell)
    assert running.log.read_text().splitlines() == ["first", "ERROR: no such thing"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups to end at once")
def test_an_interrupted_job_leaves_no_child_behind(tmp_path: Path) -> None:
    running = job_on(io.StringIO(), tmp_path)
    grandchild = "import time; print('up', flush=True); time.sleep(600)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"

    def interrupt(lines: list[str]) -> tuple[str, int, int]:
        if lines:
            raise KeyboardInterrupt
        return "working", 0, 0

    # The thread that reads ends only when everybody who can write to the pipe has ended.
    with pytest.raises(KeyboardInterrupt):
        running.run([sys.executable, "-c", child], interrupt)
    assert [thread.name for thread in threading.enumerate() if "keep" in thread.name] == []


def test_the_lock_is_free_again_after_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.touch()
    for _ in range(2):
        running = job_on(io.StringIO(), tmp_path)
        with pytest.raises(RuntimeError), running.alone(file):
            raise RuntimeError


def test_the_lock_leaves_its_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.write_text("pinned")
    before = file.stat().st_mtime_ns
    with job_on(io.StringIO(), tmp_path).alone(file):
        assert file.read_text() == "pinned"
    assert (file.read_text(), file.stat().st_mtime_ns) == ("pinned", before)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        pytest.param("OSError: [Errno 28] No space left on device", "the disk is full", id="disk"),
        pytest.param(
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM", "not the one that", id="hash"
        ),
        pytest.param(
            "WARNING: Retrying (Retry(total=4)) after connection broken", "network?", id="network"
        ),
        pytest.param("ERROR: No matching distribution", "ERROR: No matching", id="pip's own words"),
        pytest.param("No module named pip", "No module named pip", id="the last line"),
        pytest.param("", "no reason given", id="silence"),
    ],
)
def test_a_failure_is_told_in_one_line(said: str, heard: str) -> None:
    told = explain([f"{said}\n", "\n"])
    assert heard in told
    assert "\n" not in told


def test_pips_output_tells_how_far_it_is() -> None:
    lines = ["Ignoring appnope: markers don't match\n", "Collecting anyio==4.16.0\n"]
    lines += ["  Downloading anyio.whl\n", "Processing /wheels/arrow.whl\n"]
    lines += ["Requirement already satisfied: six==1.17.0 in here\n"]
    what, done, total = stage(lines, set())
    assert (what, done) == ("fetching", 3)
    assert total == stage([], set())[2] - 1  # one is for another platform
    lines += ["Installing collected packages: six, arrow, anyio\n"]
    assert stage(lines, before=set())[0::2] == ("installing", 3)
