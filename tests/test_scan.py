"""`streamlab scan` as a shell sees it, and the pool of processes under it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from streamlab import UsageError, cli, cli_scan, synth, write
from streamlab.analysis import corpus
from streamlab.analysis.corpus import running as corpus_running
from streamlab.consumer.gates import EFFECT, Proposal


class Said(NamedTuple):
    status: int
    out: str
    err: str


Ask = Callable[..., Said]


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str]) -> Ask:
    """Run one command in this process."""

    def run(*args: object) -> Said:
        status = cli.main([str(arg) for arg in args])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Said(status, out, err)

    return run


@pytest.fixture
def fine(tmp_path: Path) -> Path:
    """Recordings without a finding."""
    root = tmp_path / "fine"
    root.mkdir()
    for number, wire in enumerate(synth.WRITERS):
        write(synth.story(wire=wire), root / f"{number}.stream.jsonl")
        write(synth.greeting(wire=wire, seed=number), root / f"{number}.sse")
    return root


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "streams.parquet"


# --- What it says, and how it ends ----------------------------------------------------------------


def test_the_exit_status_is_that_of_show(ask: Ask, fine: Path, out: Path) -> None:
    said = ask("scan", fine, "--out", out, "--workers", "1")
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("8 streams in 8 files\n")
    (fine / "cut.sse").write_bytes(synth.greeting().data[:-90])
    said = ask("scan", fine, "--out", out, "--workers", "1")
    assert said.status == 1
    assert said.err == f"streamlab: {out}: 1 of 9 streams may not be used as is\n"
    assert said.out.startswith("9 streams in 9 files, 8 as before\n")
    assert "INCOMPLETE" in said.out and "cut.sse" in said.out
    (fine / "new.stream.jsonl").write_bytes(b'{"streamlab": 2}\n')
    said = ask("scan", fine, "--out", out, "--workers", "1")
    assert said.status == 2
    assert "1 of 9 streams may not be used as is, 1 file could not be read" in said.err
    assert "version 2 of the format" in said.out


def test_the_summary_fits_a_terminal_of_80_columns(
    ask: Ask, fine: Path, out: Path, tmp_path: Path
) -> None:
    (fine / "cut.sse").write_bytes(synth.greeting().data[:-90])
    (fine / f"{'long name ' * 20}.sse").write_bytes(b"<html>")
    slo = tmp_path / "slo.toml"
    slo.write_text("[objectives]\nttft_s = 0.5\ne2e_s = 30\n", encoding="utf-8")
    grouped = ("--by", "wire", "--by", "day", "--objectives", slo)
    said = ask("scan", fine, "--out", out, "--workers", "1", *grouped)
    told, _, bad = said.out.partition("look at")
    assert max(map(len, told.splitlines())) <= 80
    assert f"    {fine / ('long name ' * 20)}.sse" in bad  # in one piece, to be copied
    head = said.out.splitlines()[2]
    assert head.split()[:5] == ["wire", "day", "streams", "whole", "p50"]
    assert head.rstrip().endswith("good")
    assert "openai-chat" in said.out and "not known" in said.out
    assert len([line for line in said.out.splitlines() if line.lstrip().startswith("all")]) == 1


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_in_a_narrow_terminal_columns_are_left_out_and_no_number_is_cut(
    ask: Ask, fine: Path, out: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = ask("scan", fine, "--out", out, "--workers", "1")
    frame, whole = corpus.read(out), said.out.partition(" all ")[2]
    assert max(map(len, said.out.splitlines())) <= width
    assert "…" not in said.out
    assert ("in a wider terminal" in " ".join(said.out.split())) == (width < 60)
    numbers = whole.splitlines()[0].split()
    wide = ["8", "100%", *[f"{frame['ttft_s'].quantile(q):.3g}" for q in (0.5, 0.9, 0.99)]]
    assert numbers == [*wide, "0%", "0%"][: {20: 1, 40: 4}.get(width, 7)]


def test_a_folder_that_became_empty_costs_no_table(ask: Ask, fine: Path, out: Path) -> None:
    """A disk that is not mounted, say."""
    ask("scan", fine, "--out", out, "--workers", "1")
    before = out.read_bytes()
    for file in fine.iterdir():
        file.unlink()
    said = ask("scan", fine, "--out", out, "--workers", "1")
    assert (said.status, said.err) == (2, f"streamlab: {fine}: no file in it\n")
    assert out.read_bytes() == before


def test_names_cannot_repaint_the_terminal(ask: Ask, fine: Path, out: Path) -> None:
    (fine / "\x1b[2J\x1b]0;x\x07.sse").write_bytes(b"data: {}\n\n")
    (fine / "model.sse").write_bytes(synth.greeting(model="\x1b[31m<script>").data)
    said = ask("scan", fine, "--out", out, "--workers", "1")
    assert "\x1b" not in said.out + said.err and "\x07" not in said.out + said.err
    assert "␛[31m<script>" in said.out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--by", "nothing"], "--by nothing: no such column; such as model, wire, day, place"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "--workers is for this machine"),
        (["--objectives", "none.toml"], "none.toml: No such file or directory"),
        (["--tools", "none.json"], "none.json: No such file or directory"),
    ],
    ids=["column", "workers", "objectives", "tools"],
)
def test_bad_usage_is_one_line_before_anything_is_read(
    options: list[str], why: str, ask: Ask, fine: Path, out: Path
) -> None:
    said = ask("scan", fine, "--out", out, *options)
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert why in said.err
    assert not out.exists()


def test_a_place_without_a_file_or_that_is_not_there_is_said(
    ask: Ask, tmp_path: Path, out: Path
) -> None:
    (tmp_path / "empty").mkdir()
    said = ask("scan", tmp_path / "empty", "--out", out)
    assert (said.status, said.err) == (2, f"streamlab: {tmp_path / 'empty'}: no file in it\n")
    said = ask("scan", tmp_path / "none", "--out", out)
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert "no such file or folder" in said.err


def test_ctrl_c_leaves_what_is_done_and_says_how_to_go_on(
    ask: Ask, fine: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        real = cli_scan._Bar.__call__

        def stop(bar: cli_scan._Bar, so_far: corpus.Scanned) -> None:
            real(bar, so_far)
            if so_far.files >= 3:
                raise KeyboardInterrupt

        patch.setattr(cli_scan._Bar, "__call__", stop)
        said = ask("scan", fine, "--out", out, "--workers", "1")
    assert said.status == 130
    assert said.err == (
        f"streamlab: {out}: stopped after 3 files; the same command goes on from there\n"
    )
    assert not out.exists()
    said = ask("scan", fine, "--out", out, "--workers", "1")
    assert (said.status, said.out.splitlines()[0]) == (0, "8 streams in 8 files, 3 as before")


def test_a_bar_is_drawn_on_a_terminal_alone(
    ask: Ask, fine: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask("scan", fine, "--out", out, "--workers", "1").err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    said = ask("scan", fine, "--out", out, "--workers", "1", "--fresh")
    assert said.status == 0
    assert "files" in said.err


@pytest.mark.parametrize("address", ["nonsense", "", "foo://127.0.0.1:1", "tcp://"])
def test_an_address_that_is_none_is_one_line(address: str, ask: Ask, fine: Path, out: Path) -> None:
    pytest.importorskip("distributed")
    said = ask("scan", fine, "--out", out, "--scheduler", address)
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert f"{address}: no Dask scheduler answers" in said.err


def test_no_scheduler_that_answers_is_one_line(ask: Ask, fine: Path, out: Path) -> None:
    pytest.importorskip("distributed")
    said = ask("scan", fine, "--out", out, "--scheduler", "carrier-pigeon://127.0.0.1:1")
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert "no Dask scheduler answers" in said.err


# --- The processes --------------------------------------------------------------------------------


def table(places: Path, out: Path, **options: object) -> list[dict[str, object]]:
    """The rows of a scan, plain."""
    import pyarrow.parquet as pq

    corpus.scan(places, out, **options)  # type: ignore[arg-type]
    rows: list[dict[str, object]] = pq.read_table(out).to_pylist()
    return rows


def test_two_processes_give_the_rows_of_one(fine: Path, tmp_path: Path) -> None:
    one = table(fine, tmp_path / "one.parquet", workers=1)
    assert table(fine, tmp_path / "two.parquet", workers=2) == one
    assert len(one) == 8


def held(items: object, options: object) -> set[int]:
    """The signals that are held back in this process, in the place of `batch_of`."""
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_never_reaches_a_process_of_the_pool_not_even_while_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corpus_running, "batch_of", held)
    pool = corpus_running.Pool(2)
    calls = [pool.submit((), corpus.Options()) for _ in range(20)]
    found = [call.result() for call in calls]
    pool.close()
    assert all(signal.SIGINT in signals for signals in found)
    assert signal.SIGINT not in held(None, None)


def test_a_process_that_is_killed_costs_no_row(
    fine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_running, "MAX_ITEMS", 1)
    for seed in range(60):
        write(synth.long_text(2000, seed=seed), fine / f"more {seed:02}.sse")
    killed: list[int] = []

    def kill(so_far: corpus.Scanned) -> None:
        if so_far.files in (5, 40):
            victim = multiprocessing.active_children()[0]
            killed.append(victim.pid or 0)
            os.kill(killed[-1], signal.SIGKILL)
            victim.join()

    rows = table(fine, tmp_path / "killed.parquet", workers=2, watch=kill)
    assert len(set(killed)) == 2
    assert rows == table(fine, tmp_path / "whole.parquet", workers=2)
    assert len(rows) == 68 and not any(row["error"] for row in rows)


def die(proposal: Proposal) -> str:
    """A business rule that ends the process: as the kernel does where memory runs out."""
    if proposal.input.get("item") == "W-8":
        os.kill(os.getpid(), signal.SIGKILL)
    return ""


def test_a_file_that_kills_its_process_twice_gets_a_row_and_the_others_are_read(
    fine: Path, tmp_path: Path
) -> None:
    (fine / "3 kills.sse").write_bytes(synth.parallel_tools().data)
    policy = msgspec.structs.replace(EFFECT, rule=die)
    rows = table(fine, tmp_path / "out.parquet", workers=2, policy=policy)
    errors = {Path(str(row["file"])).name: row["error"] for row in rows if row["error"]}
    assert errors == {"3 kills.sse": corpus_running.DIED}
    assert len(rows) == 9


def test_processes_that_do_not_start_are_no_fault_of_the_files(
    fine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_running, "_begin", os.abort)
    with pytest.raises(UsageError, match="the worker processes do not start; in a script"):
        corpus.scan(fine, tmp_path / "out.parquet", workers=1)
