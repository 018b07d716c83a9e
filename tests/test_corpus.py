"""A folder as one table: what is found, what becomes of it, and that no run loses or repeats any.

The pool of processes is in `test_scan.py` and the cluster in `test_corpus_dask.py`; here an
executor runs in this process, so that a test can watch it.
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from streamlab import UsageError, judge, synth, write
from streamlab.analysis import corpus
from streamlab.analysis.corpus import archives as corpus_archives
from streamlab.analysis.corpus import running as corpus_running
from streamlab.analysis.corpus import table as corpus_table
from streamlab.analysis.corpus.places import Item, found, shown
from streamlab.analysis.doctor import diagnose
from streamlab.analysis.rows import STREAM_COLUMNS, stream_row
from streamlab.consumer.gates import CHAT
from streamlab.streams.importers import streams_in
from tests import captures

ROOT = Path(__file__).parents[1]
GREETING = synth.greeting().data


class Here(Executor):
    """Runs in this process, at once, and remembers what it was given."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.ran += [item.member or Path(item.file).name for item in args[0]]
        try:
            future.set_result(fn(*pickle.loads(pickle.dumps(args)), **options))
        except BaseException as why:
            future.set_exception(why)
        return future


def scan(places: Any, out: Path, **options: Any) -> tuple[corpus.Scanned, list[dict[str, Any]]]:
    """Scan, in this process unless told otherwise, and read the rows."""
    if "workers" not in options:
        options.setdefault("executor", Here())
    done = corpus.scan(places, out, **options)
    return done, rows_in(out)


def rows_in(out: Path) -> list[dict[str, Any]]:
    frame = corpus.read(out).astype(object)
    frame["rules"] = [None if rules is None else list(rules) for rules in frame["rules"]]
    return list(frame.where(frame.notna(), None).to_dict("records"))


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["member"] or Path(row["file"]).name for row in rows]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Recordings of every wire format, in folders, some of them broken."""
    root = tmp_path / "recordings"
    for number, wire in enumerate(synth.WRITERS):
        place = root / f"day {number}"
        place.mkdir(parents=True)
        write(synth.story(wire=wire), place / "story.stream.jsonl")
        write(synth.greeting(wire=wire), place / "greeting.sse")
        (place / "cut.sse").write_bytes(synth.greeting(wire=wire).data[:-90])
    return root


# --- What one file becomes ------------------------------------------------------------------------


def test_a_row_is_the_streams_own_after_where_it_was_found(folder: Path, tmp_path: Path) -> None:
    _, rows = scan(folder, tmp_path / "out.parquet")
    assert list(rows[0]) == list(corpus.COLUMNS)
    for row in rows:
        (opened,) = [judge(each.recording) for each in streams_in(row["file"])]
        expected = stream_row(opened, diagnose(opened))
        assert {name: row[name] for name in STREAM_COLUMNS} == expected
        assert (row["place"], row["stream"], row["number"]) == (str(folder), 1, 0)
        assert row["file_bytes"] == os.path.getsize(row["file"])
        assert (row["at_from"], row["error"]) == ("file", None)
        assert row["day"] == row["at"].date().isoformat() == row["modified"].date().isoformat()


def test_the_same_folder_elsewhere_has_the_same_paths(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines: the folder lies elsewhere, is named otherwise, and its rows can be joined."""
    with zipfile.ZipFile(folder / "day 0" / "more.zip", "w") as archive:
        archive.writestr("in/greeting.sse", GREETING)
        archive.writestr("cut.sse", GREETING[:-90])
    elsewhere = tmp_path / "mnt" / "b"
    shutil.copytree(folder, elsewhere)
    _, here = scan(folder, tmp_path / "a.parquet")
    monkeypatch.chdir(elsewhere)
    keys = [(row["path"], row["number"], row["stream"]) for row in here]
    for place in (".", "../b", f"{elsewhere}{os.sep}"):
        _, there = scan(place, tmp_path / "b.parquet")
        assert [(row["path"], row["number"], row["stream"]) for row in there] == keys
    assert len(set(keys)) == len(here) == 14
    assert keys[0] == ("day 0/cut.sse", 0, 1)
    assert [key for key in keys if "zip" in key[0]] == [
        ("day 0/more.zip", 1, 1),
        ("day 0/more.zip", 2, 1),
    ]


def test_of_a_place_that_is_a_file_the_path_is_its_name(folder: Path, tmp_path: Path) -> None:
    places = [folder / "day 1" / "cut.sse", str(folder / "day 0" / "*.sse")]
    _, rows = scan(places, tmp_path / "out.parquet")
    assert [row["path"] for row in rows] == ["cut.sse", "greeting.sse", "cut.sse"]


def test_every_column_has_its_unit_and_what_it_says_in_the_file(
    folder: Path, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    scan(folder, tmp_path / "out.parquet")
    fields = pq.read_schema(tmp_path / "out.parquet")
    for name, column in corpus.COLUMNS.items():
        metadata = fields.field(name).metadata
        assert (metadata[b"unit"].decode(), metadata[b"says"].decode()) == column[1:]
        assert column.says


def test_the_options_are_those_of_a_judge(tmp_path: Path) -> None:
    write(synth.story(), tmp_path / "in.sse")
    states = [
        scan(tmp_path / "in.sse", tmp_path / "out.parquet", **options)[1][0]["state"]
        for options in ({}, {"policy": CHAT}, {"wire": "gemini"})
    ]
    assert states == ["VALIDATED_PROPOSAL", "HELD", "INVALID"]
    with pytest.raises(UsageError, match="wire 'x' is none of"):
        corpus.scan(tmp_path, tmp_path / "out.parquet", wire="x")


BAD: dict[str, tuple[bytes, str]] = {
    "a.stream.jsonl": (b'{"streamlab": 2}\n', "line 1: version 2 of the format"),
    "b.stream.jsonl": (b'{"streamlab": 1}\n{"t": "x", "data": ""}\n', "line 2: t must be seconds"),
}


def test_a_bad_file_is_a_row_that_says_why_and_the_others_are_read(
    folder: Path, tmp_path: Path
) -> None:
    for name, (data, _) in BAD.items():
        (folder / name).write_bytes(data)
    done, rows = scan(folder, tmp_path / "out.parquet")
    bad = {Path(row["file"]).name: row for row in rows if row["error"]}
    assert bad.keys() == BAD.keys()
    for name, row in bad.items():
        assert row["error"].startswith(BAD[name][1])  # the name has a column of its own
        assert (row["state"], row["complete"], row["stream"]) == (None, None, 1)
    assert (done.rows, done.errors, done.findings) == (14, 2, 4)


def test_a_bug_of_ours_is_a_row_that_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamlab.analysis.corpus import rows as corpus_rows

    def diagnose(outcome: Any) -> Any:
        if outcome.wire == "gemini":
            raise ZeroDivisionError("of ours")
        return real(outcome)

    real = corpus_rows.diagnose
    monkeypatch.setattr(corpus_rows, "diagnose", diagnose)
    _, rows = scan(folder, tmp_path / "out.parquet")
    bad = [row["error"] for row in rows if row["error"]]
    assert bad == ["a bug in streamlab (ZeroDivisionError: of ours)"] * 3
    assert len(rows) == 12


def test_a_file_of_several_streams_is_several_rows_and_those_before_an_error_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamlab.analysis.corpus import rows as corpus_rows
    from streamlab.errors import WireError
    from streamlab.streams.importers import About, Opened

    def streams(path: str) -> Iterator[Opened]:
        about = About("har", "entry 3", "2026-11-02T10:00:00Z", "POST https://x.test/v1", 200)
        yield Opened(synth.greeting(), about)
        yield Opened(synth.story(), msgspec_replace(about, masked=(("key", 2), ("e-mail", 1))))
        raise WireError("entry 5 is broken", path)

    from msgspec.structs import replace as msgspec_replace

    monkeypatch.setattr(corpus_rows, "streams_in", streams)
    (tmp_path / "x.har").write_bytes(b"{}")
    _, rows = scan(tmp_path / "x.har", tmp_path / "out.parquet")
    assert [(row["stream"], row["state"], row["error"]) for row in rows] == [
        (1, "MESSAGE_COMPLETE", None),
        (2, "VALIDATED_PROPOSAL", None),
        (3, None, "entry 5 is broken"),
    ]
    assert [rows[1][name] for name in ("form", "entry", "request", "status", "masked")] == [
        *("har", "entry 3", "POST https://x.test/v1", 200, 3)
    ]
    assert (str(rows[0]["at"]), rows[0]["at_from"]) == ("2026-11-02 10:00:00+00:00", "recording")
    monkeypatch.setattr(corpus_rows, "MAX_STREAMS", 1)
    _, rows = scan(tmp_path / "x.har", tmp_path / "again.parquet")
    assert rows[-1]["error"] == "more than 1 streams; the rest is not read"


# --- What is found --------------------------------------------------------------------------------


def test_the_order_is_that_of_the_names_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    for name in ("b/x.sse", "a.sse", "a/z.sse", "a/.hidden.sse", ".git/y.sse", "B.sse"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(GREETING)
    items = [Path(item.file).relative_to(tmp_path).as_posix() for item in found([tmp_path])]
    assert items == ["B.sse", "a/z.sse", "a.sse", "b/x.sse"]
    places = [tmp_path / "b", tmp_path / "a.sse", tmp_path / "a", tmp_path / "a" / "z.sse"]
    assert [item.file for item in found(places)] == [
        str(tmp_path / name) for name in ("a/z.sse", "a.sse", "b/x.sse")
    ]


def test_a_glob_is_what_it_matches_and_a_place_that_is_not_there_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    matched = found([str(folder / "*" / "cut.sse")])
    assert [item.size for item in matched] == [
        os.path.getsize(folder / f"day {n}" / "cut.sse") for n in range(4)
    ]
    for place, why in (("nowhere", "no such file"), ("*.none", "nothing matches")):
        with pytest.raises(UsageError, match=why):
            scan([folder, tmp_path / place], tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_no_link_leads_out_of_the_folder_or_round_in_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.sse").write_bytes(GREETING)
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "again.sse").symlink_to(folder / "day 0" / "cut.sse")
    (folder / "out.sse").symlink_to(tmp_path / "secret.sse")
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "gone.sse").symlink_to(folder / "nothing")
    _, rows = scan(folder, tmp_path / "out.parquet")
    errors = {Path(row["file"]).name: row["error"] for row in rows if row["error"]}
    out = "a link that leads out of the folder is not followed"
    assert errors == {"out.sse": out, "up": out, "gone.sse": "a link that leads nowhere"}
    assert len(rows) == 12 + 3


def test_a_folder_that_cannot_be_listed_is_a_row(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scandir(path: Any) -> Any:
        if str(path).endswith("day 1"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    real = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    _, rows = scan(folder, tmp_path / "out.parquet")
    assert [(Path(r["file"]).name, r["error"]) for r in rows if r["error"]] == [
        ("day 1", "Permission denied")
    ]
    assert len(rows) == 9 + 1


@pytest.mark.skipif(os.name == "nt", reason="pipes have no names in a folder there")
def test_a_pipe_is_not_opened(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe.sse")
    _, rows = scan(folder, tmp_path / "out.parquet")
    assert [row["error"] for row in rows if row["file"].endswith("pipe.sse")] == ["no regular file"]


@pytest.mark.skipif(sys.platform != "linux", reason="a name there is any bytes")
def test_a_name_that_is_no_text_is_shown_with_escapes_and_found_again(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    for name in (b"caf\xe9.sse", b"a\x1b[2J.sse", "ü.sse".encode()):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(GREETING)
    done, rows = scan(root, tmp_path / "out.parquet")
    assert [Path(row["file"]).name for row in rows] == ["a\x1b[2J.sse", "caf\\udce9.sse", "ü.sse"]
    assert {row["state"] for row in rows} == {"MESSAGE_COMPLETE"}
    assert scan(root, tmp_path / "out.parquet")[0].reused == done.files == 3


def test_the_table_itself_is_no_recording(folder: Path) -> None:
    scan(folder, folder / "out.parquet")
    done, rows = scan(folder, folder / "out.parquet", fresh=True)
    assert done.rows == len(rows) == 12


# --- Archives -------------------------------------------------------------------------------------


def packed(kind: str, path: Path, members: dict[str, bytes]) -> Path:
    """Write an archive."""
    path = path.with_name(f"{path.name}{kind}")
    if kind == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return path
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w:gz" if kind.endswith("gz") else "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_700_000_000
            archive.addfile(info, io.BytesIO(data))
    data = memory.getvalue()
    if kind.endswith(".zst"):
        import zstandard

        data = zstandard.ZstdCompressor().compress(data)
    path.write_bytes(data)
    return path


KINDS = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_members_of_an_archive_are_rows_like_files(kind: str, tmp_path: Path) -> None:
    members = {
        "one.sse": GREETING,
        "../../etc/passwd": GREETING[:-90],  # a name is a label
        "one.sse ": synth.story(wire="gemini").data,
        "inner.zip": b"PK",
        "readme.stream.jsonl": b'{"streamlab": 3}\n',
    }
    path = packed(kind, tmp_path / "pack", members)
    before = sorted(tmp_path.rglob("*"))
    _, rows = scan(path, tmp_path / "out.parquet")
    assert [(row["number"], row["member"], row["state"]) for row in rows] == [
        (1, "one.sse", "MESSAGE_COMPLETE"),
        (2, "../../etc/passwd", "INCOMPLETE"),
        (3, "one.sse ", "VALIDATED_PROPOSAL"),
        (4, "inner.zip", None),
        (5, "readme.stream.jsonl", None),
    ]
    assert [row["file_bytes"] for row in rows] == [len(data) for data in members.values()]
    assert rows[3]["error"] == "an archive inside an archive is not opened"
    assert rows[4]["error"].startswith("line 1: version 3 of the format")
    assert {row["at_from"] for row in rows} == {"member"}
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "out.parquet"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_has_not_changed_is_not_read_again(kind: str, tmp_path: Path) -> None:
    path = packed(kind, tmp_path / "pack", {f"{n}.sse": GREETING for n in range(5)})
    scan(path, tmp_path / "out.parquet")
    again = Here()
    done, rows = scan(path, tmp_path / "out.parquet", executor=again)
    assert (done.reused, again.ran, len(rows)) == (5, [], 5)


@pytest.mark.parametrize("kind", [".zip", ".tar.gz", ".tar.zst"])
def test_a_bomb_is_stopped_and_said(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(kind, tmp_path / "bomb", {"a.sse": GREETING, "b.sse": bytes(20_000_000)})
    _, rows = scan(path, tmp_path / "out.parquet")
    assert [bool(row["error"]) for row in rows] == [False, True]
    assert "grows more than 400-fold" in rows[1]["error"]
    monkeypatch.setattr(corpus_archives, "MAX_MEMBER", 1_000_000)
    path = packed(kind, tmp_path / "large", {"b.sse": os.urandom(2_000_000), "c.sse": GREETING})
    _, rows = scan(path, tmp_path / "large.parquet")
    assert rows[0]["error"].startswith("2,000,000 bytes, over the bound of 1,000,000")
    assert (rows[1]["member"], rows[1]["state"]) == ("c.sse", "MESSAGE_COMPLETE")


def test_many_members_over_the_same_bytes_are_a_bomb_too(tmp_path: Path) -> None:
    data = bytes(4_000_000)
    path = packed(".zip", tmp_path / "pack", {f"{n}.sse": data for n in range(3)})
    _, rows = scan(path, tmp_path / "out.parquet")
    assert all("grows" in row["error"] for row in rows[1:])


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_hidden_members_are_left_out_as_hidden_files_are(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("a.sse", ".b/c.sse", "__MACOSX/._a.sse", "d/.e.sse"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(GREETING)
    path = tmp_path / f"x.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as packed:
            for file in sorted(root.rglob("*.sse")):
                packed.write(file, file.relative_to(root))
            packed.writestr("../up.sse", GREETING)
    else:
        with tarfile.open(path, "w") as archive:
            archive.add(root, "./.")
            archive.add(root / "a.sse", "../up.sse")
    _, rows = scan(path, tmp_path / "out.parquet")
    assert [Path(row["member"]).name for row in rows] == ["a.sse", "up.sse"]


def test_a_capture_in_an_archive_is_masked_and_says_what_it_knows(tmp_path: Path) -> None:
    url = "https://api.example.com/v1/messages?api_key=sk-ant-api03-" + "planted" * 9
    data = captures.har(captures.answered(GREETING, url=url))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        packed.writestr("a.har.gz", gzip.compress(data))
    (tmp_path / "b.har").write_bytes(data)
    _, (one, other) = scan(tmp_path, tmp_path / "out.parquet")
    for name in ("form", "request", "status", "masked", "first_byte_s", "end_s", "state"):
        assert one[name] == other[name]
    assert "planted" not in one["request"] and one["masked"] >= 1
    assert (one["form"], one["first_byte_s"], one["end_s"]) == ("har", 0.5, 1.5)


def test_streams_that_a_capture_kept_no_body_of_are_rows_that_say_why(tmp_path: Path) -> None:
    answer = captures.answered(GREETING)
    entries = [captures.har_entry(answer, {"size": 9}), captures.har_entry(answer)]
    (tmp_path / "a.har").write_bytes(captures.har_of(*entries))
    _, rows = scan(tmp_path, tmp_path / "out.parquet")
    assert [(row["stream"], row["complete"]) for row in rows] == [(1, True), (2, None)]
    assert rows[1]["error"].startswith("entry 1: its body is not in the HAR")


@pytest.mark.parametrize("at", [0, 30, 40], ids=["its mark", "its name", "its bytes"])
def test_a_member_that_is_damaged_is_a_row_that_blames_nobody_else(at: int, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.sse", GREETING)
        packed.writestr("b.sse", GREETING)
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
    _, (bad, good) = scan(path, tmp_path / "out.parquet")
    assert good["complete"] and "bug" not in bad["error"]
    assert bad["error"].startswith("the member cannot be read: ")


def test_an_archive_that_is_replaced_meanwhile_is_a_row_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.sse", GREETING)
    (item,) = found([path])
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("other.sse", GREETING)
    (row,) = corpus.rows_of(item, corpus.Options())
    assert row["error"] == "the archive was changed while it was read"


def test_an_encrypted_member_is_a_row(tmp_path: Path) -> None:
    path = packed(".zip", tmp_path / "pack", {"a.sse": GREETING, "b.sse": GREETING})
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 8] |= 1  # the flag of the first member, in the directory
    path.write_bytes(data)
    _, rows = scan(path, tmp_path / "out.parquet")
    assert [(row["member"], row["error"]) for row in rows] == [
        ("a.sse", "encrypted"),
        ("b.sse", None),
    ]


@pytest.mark.parametrize(("kind", "whole"), [(".zip", 0), (".tar", 3), (".tar.gz", 2)])
def test_a_broken_archive_gives_what_it_has_and_a_row_that_says_where_it_breaks(
    kind: str, whole: int, tmp_path: Path
) -> None:
    members = {f"{n}.sse": os.urandom(5000) for n in range(4)}
    path = packed(kind, tmp_path / "pack", members)
    path.write_bytes(path.read_bytes()[:-9000])
    (tmp_path / "z.sse").write_bytes(GREETING)
    _, rows = scan(tmp_path, tmp_path / "out.parquet")
    *some, last, other = rows
    assert last["error"].startswith("the archive cannot be read on: ")
    assert [row["member"] for row in some] == [f"{n}.sse" for n in range(whole)]
    assert other["state"] == "MESSAGE_COMPLETE"


def test_a_tar_whose_header_is_overwritten_is_no_shorter_tar(tmp_path: Path) -> None:
    path = packed(".tar", tmp_path / "pack", {f"{n}.sse": GREETING for n in range(3)})
    data = bytearray(path.read_bytes())
    second = data.index(b"1.sse")
    data[second : second + 512] = b"x" * 512
    path.write_bytes(data)
    _, rows = scan(path, tmp_path / "out.parquet")
    assert names(rows) == ["0.sse", "pack.tar"]
    assert "neither" in rows[1]["error"]


def test_a_header_that_asks_for_a_gigabyte_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("long name")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2**30
    path = tmp_path / "pack.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + b"x" * 3_000_000)
    _, rows = scan(path, tmp_path / "out.parquet")
    assert "a header of more than 1,048,576 bytes" in rows[0]["error"]


# --- What an earlier run has read -----------------------------------------------------------------


def test_a_second_scan_reads_nothing_twice_and_gives_the_same_rows(
    folder: Path, tmp_path: Path
) -> None:
    first, rows = scan(folder, tmp_path / "out.parquet")
    again = Here()
    second, same = scan(folder, tmp_path / "out.parquet", executor=again)
    assert (again.ran, second.reused, second.files) == ([], 12, 12)
    assert same == rows
    assert (second.rows, second.findings) == (first.rows, first.findings)
    fresh = Here()
    scan(folder, tmp_path / "out.parquet", executor=fresh, fresh=True)
    assert len(fresh.ran) == 12


def test_only_what_is_new_or_changed_is_read(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    scan(folder, out)
    (folder / "day 0" / "cut.sse").unlink()
    (folder / "day 0" / "after.sse").write_bytes(GREETING)
    (folder / "day 1" / "cut.sse").write_bytes(GREETING)
    story = folder / "day 2" / "story.stream.jsonl"
    os.utime(story, ns=(0, story.stat().st_mtime_ns + 1))
    again = Here()
    _, rows = scan(folder, out, executor=again)
    assert sorted(again.ran) == ["after.sse", "cut.sse", "story.stream.jsonl"]
    assert rows == scan(folder, tmp_path / "fresh.parquet")[1]
    _, fewer = scan([folder / "day 3"], out, executor=again)
    assert len(fewer) == 3


def test_what_was_found_in_another_place_says_so_no_longer(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    scan(folder, out)
    done, rows = scan(folder / "day 0", out)
    assert {row["place"] for row in rows} == {str(folder / "day 0")}
    assert [row["path"] for row in rows] == ["cut.sse", "greeting.sse", "story.stream.jsonl"]
    assert done.reused == 0


def test_what_could_not_be_read_is_tried_again(folder: Path, tmp_path: Path) -> None:
    (folder / "bad.stream.jsonl").write_bytes(b'{"streamlab": 2}\n')
    scan(folder, tmp_path / "out.parquet")
    again = Here()
    scan(folder, tmp_path / "out.parquet", executor=again)
    assert again.ran == ["bad.stream.jsonl"]


def test_rows_that_were_judged_otherwise_are_not_taken_over(folder: Path, tmp_path: Path) -> None:
    scan(folder, tmp_path / "out.parquet")
    again = Here()
    scan(folder, tmp_path / "out.parquet", policy=CHAT, executor=again)
    assert len(again.ran) == 12


@pytest.mark.parametrize("rows_a_part", [1, 3, 100])
def test_a_run_that_is_interrupted_is_gone_on_with(
    rows_a_part: int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_table, "PART_ROWS", rows_a_part)
    out, ran = tmp_path / "out.parquet", Here()

    def stop(so_far: corpus.Scanned) -> None:
        if so_far.files >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(folder, out, executor=ran, watch=stop)
    assert not out.exists()
    done, rows = scan(folder, out, executor=(again := Here()))
    assert done.reused >= 5
    assert len(again.ran) == 12 - done.reused
    assert rows == scan(folder, tmp_path / "fresh.parquet")[1]
    assert sorted(tmp_path.iterdir()) == [tmp_path / "fresh.parquet", out, folder]


def test_a_run_that_is_killed_twice_is_gone_on_with(folder: Path, tmp_path: Path) -> None:
    """The first by SIGKILL after four files, in a process of its own; the second likewise."""
    script = """
        import os, signal, sys
        from concurrent.futures import ThreadPoolExecutor
        from streamlab.analysis import corpus
        from streamlab.analysis.corpus import running as corpus_running
        from streamlab.analysis.corpus import table as corpus_table

        corpus_table.PART_ROWS = 1

        def watch(so_far):
            if so_far.files >= int(sys.argv[1]):
                os.kill(os.getpid(), signal.SIGKILL)

        places, out = sys.argv[2:]
        corpus_running.MAX_ITEMS = 1
        corpus.scan(places, out, executor=ThreadPoolExecutor(1), workers=1, watch=watch)
    """
    out = tmp_path / "out.parquet"
    for files in (4, 9):
        command = [sys.executable, "-c", textwrap.dedent(script), str(files), folder, out]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    again = Here()
    done, rows = scan(folder, out, executor=again)
    assert (done.reused, len(again.ran)) == (9, 3)
    assert rows == scan(folder, tmp_path / "fresh.parquet")[1]


def test_a_part_that_is_broken_costs_what_it_held(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.parquet"
    scan(folder, out)
    parts = tmp_path / "out.parquet.parts"
    parts.mkdir()
    (parts / "1-000001.parquet").write_bytes(b"PAR1 and no more")
    (parts / "kept by somebody").write_bytes(b"")
    done, _ = scan(folder, out)
    assert done.reused == 12
    assert [path.name for path in parts.iterdir()] == ["kept by somebody"]


def test_the_file_is_the_same_bytes_however_the_run_went(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_table, "GROUP_ROWS", 5)
    files = []
    for rows_a_part in (1, 3, 100):
        monkeypatch.setattr(corpus_table, "PART_ROWS", rows_a_part)
        scan(folder, out := tmp_path / f"{rows_a_part}.parquet")
        files.append(out.read_bytes())
        scan(folder, out)
        files.append(out.read_bytes())
    assert len(set(files)) == 1


def test_two_scans_at_once_never_write_in_one_folder(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"

    def other(so_far: corpus.Scanned) -> None:
        with pytest.raises(UsageError, match="another scan is writing there"):
            scan(folder, out)

    assert len(scan(folder, out, watch=other)[1]) == 12
    assert sorted(tmp_path.iterdir()) == [out, folder]


def test_a_disk_that_is_full_is_one_line_that_names_the_file_and_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    def full(table: Any, new: Path) -> None:
        new.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(UsageError, match=r"out\.parquet: No space left on device"):
        scan(folder, tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == [folder]


def test_a_table_in_a_folder_that_is_not_there_is_refused_by_its_own_name(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "nowhere" / "out.parquet"
    with pytest.raises(UsageError) as refused:
        corpus.scan(folder, out)
    assert str(refused.value) == f"{out}: there is no folder {out.parent}"


def test_what_names_no_file_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="'' is no name of a file"):
        corpus.scan(folder, "")


def test_more_processes_than_a_machine_stands_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at most 1,024"):
        corpus.scan(folder, tmp_path / "out.parquet", workers=10**11)


@pytest.mark.parametrize("what", ["a recording", "another table", "a folder"])
def test_a_file_that_is_no_table_of_a_scan_is_never_replaced(
    what: str, folder: Path, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = tmp_path / "mine"
    if what == "a folder":
        out.mkdir()
    elif what == "a recording":
        out.write_bytes(GREETING)
    else:
        pq.write_table(pa.table({"mine": [1]}), out)
    with pytest.raises(UsageError, match=r"no table of `scan`|not a regular file"):
        scan(folder, out, fresh=True)
    assert out.is_dir() or out.read_bytes()


# --- How it runs ----------------------------------------------------------------------------------


def test_the_rows_are_the_same_whatever_is_done_first(folder: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        _, many = scan(folder, tmp_path / "many.parquet", executor=threads, workers=4)
    assert many == scan(folder, tmp_path / "one.parquet")[1]


class Slow(Executor):
    """Holds every batch back until there are as many as it is ever given."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.most = self.most_bytes = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Asked(self)
        self.waiting.append((future, fn, args))
        data = [item.data for _, _, (items, _) in self.waiting for item in items]
        self.most = max(self.most, len(self.waiting))
        self.most_bytes = max(self.most_bytes, sum(map(len, filter(None, data))))
        return future


class Asked(Future[Any]):
    """Done when its result is asked for, with all before it."""

    def __init__(self, slow: Slow) -> None:
        super().__init__()
        self.slow = slow

    def result(self, timeout: float | None = None) -> Any:
        while not self.done():
            future, fn, args = self.slow.waiting.pop(0)
            future.set_result(fn(*args))
        return super().result(timeout)


def test_so_many_batches_wait_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_running, "MAX_ITEMS", 2)
    root = tmp_path / "in"
    root.mkdir()
    for n in range(200):
        (root / f"{n:03}.sse").write_bytes(b": \n\n")
    slow = Slow()
    done, rows = scan(root, tmp_path / "out.parquet", executor=slow, workers=2)
    assert slow.most == corpus_running.AHEAD * 2
    assert names(rows) == [f"{n:03}.sse" for n in range(200)]
    assert done.files == 200


def test_so_many_bytes_of_members_travel_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_running, "MAX_BYTES", 10_000)
    monkeypatch.setattr(corpus_running, "MAX_SHIPPED", 50_000)
    members = {f"{n}.sse": os.urandom(2000) for n in range(100)}
    path = packed(".tar", tmp_path / "pack", members)
    slow = Slow()
    done, _ = scan(path, tmp_path / "out.parquet", executor=slow, workers=2)
    assert 40_000 < slow.most_bytes <= 60_000
    assert done.files == 100


def test_a_batch_that_cannot_be_written_down_costs_one_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamlab.analysis.corpus import rows as corpus_rows

    def rows_of(item: Item, options: Any) -> Any:
        rows = real(item, options)
        return [row | {"frames": 2**70} for row in rows] if "day 1/cut" in item.file else rows

    real = corpus_rows.rows_of
    monkeypatch.setattr(corpus_rows, "rows_of", rows_of)
    _, rows = scan(folder, tmp_path / "out.parquet", workers=1, executor=Here())
    bad = [(row["file"][-13:], row["error"]) for row in rows if row["error"]]
    assert len(rows) == 12
    assert [name for name, _ in bad] == ["day 1/cut.sse"]
    assert bad[0][1].startswith("a bug in streamlab (")


def test_workers_that_cannot_run_are_no_fault_of_the_files(folder: Path, tmp_path: Path) -> None:
    class Broken(Executor):
        def submit(self, fn: Any, /, *args: Any, **options: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(ModuleNotFoundError("No module named 'streamlab'"))
            return future

    with pytest.raises(UsageError, match="the workers cannot scan: ModuleNotFoundError"):
        scan(folder, tmp_path / "out.parquet", executor=Broken())


def test_an_executor_and_a_client_are_one_too_many(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not both"):
        corpus.scan(folder, tmp_path / "out.parquet", executor=Here(), client=object())


def test_a_name_is_shown_as_text() -> None:
    assert shown("caf\udce9 \ud800 ü") == "caf\\udce9 \\ud800 ü"
