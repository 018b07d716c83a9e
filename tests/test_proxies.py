"""Buffering for real: nginx in front of our server, its settings told apart by arrival times alone.

Each setting is measured several times at once, on a quiet machine and on one whose cores are all
busy. Without nginx the recordings that it left behind are judged.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamlab import FaultServer, Recording, UsageError, judge
from streamlab.analysis.metrics import BUFFERED_ADVICE, Metrics
from streamlab.streams.recording import Chunk, write
from streamlab.study import nginx, proxies
from streamlab.study.nginx import Nginx
from streamlab.study.proxies import SETTINGS, config, kept, rhythm, sent, through

NGINX = pytest.mark.skipif(
    Nginx.program() is None and os.environ.get("CI") != "true", reason="there is no nginx here"
)

BUFFERED = {"on", "gzip"}

#: How often each setting is measured.
TIMES = 5


def metrics_of(recording: Recording) -> Metrics:
    outcome = judge(recording)
    assert outcome.complete and outcome.metrics is not None
    return outcome.metrics


@contextmanager
def busy() -> Iterator[None]:
    """Keep every core at work, in other processes."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def at_once(setting: str) -> list[Recording]:
    """The setting measured several times, side by side."""
    with ThreadPoolExecutor(TIMES) as pool:
        return [*pool.map(through, [setting] * TIMES)]


# --- A real nginx ---------------------------------------------------------------------------------


@NGINX
@pytest.mark.parametrize("load", ["quiet", "busy"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_times_alone_say_whether_a_proxy_collects(setting: str, load: str) -> None:
    if load == "busy":
        with busy():
            found = at_once(setting)
    else:
        found = at_once(setting)
    for each in found:
        metrics = metrics_of(each)
        assert "kept" not in each.note
        assert each.data == sent().data
        assert metrics.buffered is (setting in BUFFERED), rhythm(each)
        assert metrics.advice == (BUFFERED_ADVICE if setting in BUFFERED else "")


@NGINX
def test_all_settings_side_by_side_are_each_what_it_is_alone() -> None:
    looks = {name: metrics_of(each).buffered for name, each in proxies.measured().items()}
    assert looks == {name: name in BUFFERED for name in SETTINGS}
    assert [*proxies.measured("on")] == ["on"]


@NGINX
@pytest.mark.parametrize("setting", SETTINGS)
def test_what_is_kept_was_made_by_the_function_that_reads_it(
    setting: str, pytestconfig: pytest.Config
) -> None:
    """Their times are one machine's, so only a person renews them; nginx itself is the same."""
    if pytestconfig.getoption("--update-golden"):
        write(through(setting), proxies.FOLDER / f"proxy_{setting}.stream.jsonl")
    assert re.sub("nginx/[0-9.]+", "nginx", kept(setting).note) == (
        f"through nginx: {SETTINGS[setting].says}"
        if SETTINGS[setting].proxied
        else SETTINGS[setting].says
    )


@NGINX
@pytest.mark.parametrize("setting", [name for name in SETTINGS if SETTINGS[name].proxied])
def test_the_configuration_that_is_shown_is_the_one_that_runs(setting: str) -> None:
    url = "http://127.0.0.1:9"
    with Nginx(url, SETTINGS[setting].lines) as proxy:
        running = (proxy.home / "conf").read_text()
        assert running == config(setting, str(proxy.home), url)
        assert nginx.listens(proxy.socket)
    assert all(f"      {line}\n" in running for line in SETTINGS[setting].lines)


@NGINX
def test_nothing_of_a_proxy_is_left() -> None:
    with Nginx("http://127.0.0.1:9") as proxy:
        number = int((proxy.home / "pid").read_text())
    assert not proxy.home.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@NGINX
def test_a_proxy_that_does_not_start_says_why_and_leaves_nothing() -> None:
    proxy = Nginx("http://127.0.0.1:9", ("nonsense on;",))
    with pytest.raises(UsageError, match=r'nginx does not start: .*unknown directive "nonsense"'):
        proxy.__enter__()
    assert not proxy.home.exists()


@NGINX
def test_an_answer_that_breaks_behind_a_proxy_is_a_cut_one() -> None:
    cut = Recording(sent().chunks[:9], "cut", "claude")
    with (
        FaultServer(cut) as server,
        Nginx(server.url, SETTINGS["chunked"].lines) as proxy,
    ):
        got = proxies.fetched(proxies._OverSocket(proxy.socket))
    assert (got.ending, got.data) == ("cut", cut.data)


# --- Where there is none --------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [name for name in SETTINGS if SETTINGS[name].proxied])
@pytest.mark.parametrize("why", ["there is no nginx here", "nginx does not start"])
def test_without_nginx_it_is_what_was_kept_and_the_note_says_so(
    setting: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = sys.executable if "start" in why else None  # it runs, and is no nginx
    monkeypatch.setattr(Nginx, "program", staticmethod(lambda: broken))
    got = through(setting)
    assert got.chunks == kept(setting).chunks
    assert got.note.startswith(f"{kept(setting).note}; kept, since {why}")


def test_without_unix_sockets_there_is_no_nginx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    assert (Nginx.program(), Nginx.version()) == (None, "")
    with pytest.raises(UsageError, match="there is no nginx here"):
        Nginx("http://127.0.0.1:9").__enter__()


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_was_kept_has_the_same_bytes_and_the_same_verdict(setting: str) -> None:
    metrics = metrics_of(kept(setting))
    assert kept(setting).data == sent().data
    assert metrics.buffered is (setting in BUFFERED)
    assert metrics.content_events == len(proxies.TEXT.split())
    assert metrics.held == (1.0 if setting in BUFFERED else 0.0)


@pytest.mark.parametrize("ask", [config, through, kept, proxies.measured])
def test_a_setting_that_is_none_is_refused(ask: object) -> None:
    with pytest.raises(UsageError, match="setting 'of' is none of none, on, off, header, chunked"):
        ask("of")  # type: ignore[operator]


def test_every_kept_recording_has_its_row_and_there_is_no_other() -> None:
    readme = (proxies.FOLDER.parent / "README.md").read_text(encoding="utf-8")
    table = readme.split("## proxies")[1].split("\n## ")[0]
    rows = [row.split(" | ") for row in table.splitlines() if row.startswith("| `")]
    said = {row[0].strip("| `"): row[2] for row in rows}
    assert said == {f"proxy_{name}": f'`proxies.through("{name}")`' for name in SETTINGS}
    assert {path.name for path in Path(proxies.FOLDER).iterdir()} == {
        f"{name}.stream.jsonl" for name in said
    }


# --- The picture ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "marks"),
    [
        *((name, r"\.?[1-9]{14,18}") for name in SETTINGS if name not in BUFFERED),
        ("on", r"\.{8,10}#\.{5,8}#"),
        ("gzip", r"\.{14,18}#"),
    ],
)
def test_the_rhythm_of_each_setting(setting: str, marks: str) -> None:
    assert re.fullmatch(marks, rhythm(kept(setting)))


@pytest.mark.parametrize(
    ("times", "step", "marks"),
    [
        ([], 0.1, ""),
        ([0.0], 0.1, "1"),
        ([0.1, 0.3], 0.1, ".1.1"),
        ([0.25] * 9, 0.1, "..9"),
        ([0.25] * 10, 0.1, "..#"),
        ([0.25, 0.75], 0.5, "11"),
        ([0.7, 0.7], 0.1, ".......2"),
    ],
    ids=[
        *("nothing", "at the start", "at the edge of a step", "nine", "ten", "a longer step"),
        "an edge that floats miss",
    ],
)
def test_a_mark_for_each_step_says_how_many_frames_came(
    times: list[float], step: float, marks: str
) -> None:
    chunks = tuple(Chunk(t, b"data: {}\n\n") for t in times)
    assert rhythm(Recording(chunks, wire="claude"), step) == marks


def test_reads_that_complete_no_frame_leave_no_mark() -> None:
    halves = (Chunk(0.1, b"data: "), Chunk(0.2, b"{}\n\n"), Chunk(0.3, b"\n"))
    assert rhythm(Recording(halves, wire="claude")) == "..1"
