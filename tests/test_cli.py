"""The `streamlab` command as a shell sees it: what is printed where, and the exit status."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import pytest

from streamlab import __version__, cli, cli_options, faults, lab, synth, write
from streamlab import judge as judge_function
from streamlab.streams.importers import About, Opened
from streamlab.streams.recording import RecordingFile
from streamlab.streams.server import FaultServer
from streamlab.wire.reader import WIRES

ROOT = Path(cli.__file__).parents[1]

#: Not `-m streamlab`, which might first have to set a checkout up.
#: It hears Ctrl-C even where a shell's `&`, which takes that away, has started the tests.
CODE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from streamlab.cli import main
sys.exit(main())
"""
COMMAND = [sys.executable, "-c", CODE]


class Said(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def complaints(self) -> list[str]:
        return [line.removeprefix("streamlab: ") for line in self.err.splitlines()]


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


def start(*args: object, **options: Any) -> subprocess.Popen[bytes]:
    """Start one command in a process of its own."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *map(str, args)], cwd=ROOT, **{**pipes, **options})


def drop(pipe: IO[bytes]) -> None:
    """Close a pipe whose other end has gone, with what is still to be written to it."""
    with contextlib.suppress(BrokenPipeError):
        pipe.close()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A whole call, a whole text, a cut one, a broken one, one over its limit, and no such file."""
    recordings = {
        "call": synth.change_label(),
        "text": synth.greeting(),
        "cut": faults.disconnect(synth.pay_invoice(), after=11),
        "error": faults.error(synth.change_label(), after=9),
        "limit": faults.token_limit(synth.change_label(), after=14),
    }
    for name, recording in recordings.items():
        write(recording, tmp_path / f"{name}.stream.jsonl")
    return {name: tmp_path / f"{name}.stream.jsonl" for name in (*recordings, "none")}


# --- What it says of itself -----------------------------------------------------------------------


def test_the_version_is_the_packages(ask: Ask) -> None:
    assert ask("--version") == Said(0, f"streamlab {__version__}\n", "")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_says_how_the_command_was_called(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(sys, "argv", [str(ROOT / "streamlab" / "__main__.py")])
    said = ask(command, "--help")
    assert said.out.startswith(f"usage: python3 -m streamlab {command} ")
    assert f"for example\n  python3 -m streamlab {command}" in said.out


def test_the_formats_to_choose_from_are_those_with_a_reader() -> None:
    assert cli_options.FORMATS == WIRES


def test_exit_0_promises_no_more_than_was_checked(ask: Ask) -> None:
    said = ask("show", "--help").out
    assert "is safe" not in said
    assert "no gate objected" in said and "without --tools no schema is\nchecked" in said


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_explains_itself_with_an_example(ask: Ask, command: str) -> None:
    said = ask(command, "--help")
    assert said.status == 0
    assert "for example\n  streamlab " + command in said.out
    assert command in ask().out and command in ask("--help").out


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_examples_of_the_help_parse(command: str) -> None:
    _, _, epilog = cli.COMMANDS[command]
    examples = [line for line in epilog.splitlines() if line.startswith("  streamlab ")]
    assert examples
    for example in examples:
        words = shlex.split(example.partition("|")[0].partition(" -- ")[0])[1:]
        assert cli.make_parser().parse_args(words).run


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["shwo"], ("'shwo'", "lab, show, serve, record")),
        (["show"], ("show:", "FILE", "streamlab show --help")),
        (["show", "--jsn", "x"], ("--jsn",)),
        (["show", "--policy", "all", "x"], ("--policy", "effect", "chat")),
        (["show", "--wire", "morse", "x"], ("--wire", "morse", "claude")),
        (["show", "--max-bytes", "0", "x"], ("'0'", "above 0")),
        (["show", "--max-frames", "many", "x"], ("'many'",)),
        (["show", "--max-seconds", "nan", "x"], ("'nan'",)),
        (["show", "-", "-"], ("standard input", "once")),
        (["show", "--html", "o.html", "a", "b"], ("one file",)),
        (["show", "--html", "o.html", "-"], ("one file",)),
        (["show", "--html", "no/such/o.html", "a"], ("no/such/o.html: there is no such folder",)),
        (["show", "--tools", "none.json", "x"], ("none.json", os.strerror(errno.ENOENT))),
        (["serve", "--port", "70000"], ("'70000'", "65535")),
        (["serve", "--pace", "fast"], ("'fast'", "10x")),
        (["serve", "--pace", "nanx"], ("'nanx'",)),
        (["serve", "--status", "200"], ("--status", "200", "400 to 599")),
        (["serve", "--status", "529", "--after", "3"], ("--status", "--after")),
        (["serve", "--after", "0"], ("--after", "'0'", "above 0")),
        (["serve", "--after", "99"], ("parallel_tools", "--after 99", "longest has only 24")),
        (
            ["serve", "fixtures/claude/change_label.sse", "--after", "21"],
            ("fixtures/claude/change_label.sse", "--after 21", "20 frames"),
        ),
        (["serve", "none.sse"], ("none.sse",)),
        (["record", "--model", "m"], ("--prompt", "--out")),
        (["explore", "--without", "luck"], ("'luck'", "a request carries a key")),
        (["explore", "--depth", "0"], ("--depth", "'0'", "above 0")),
        (["explore", "--depth", "1k"], ("--depth 1000", "999")),
        (["explore", "--list", "--json"], ("--list",)),
        (["explore", "--graph", "none/x.svg"], ("none/x.svg", os.strerror(errno.ENOENT))),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_usage_is_one_line_that_says_what_was_allowed(
    ask: Ask, args: list[str], words: tuple[str, ...]
) -> None:
    said = ask(*args)
    assert (said.status, said.out, len(said.complaints)) == (2, "", 1)
    assert all(word in said.err for word in words), said.err


# --- show: exit status ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "options", "status"),
    [
        (["call"], [], 0),
        (["text"], [], 0),
        (["text"], ["--policy", "chat"], 0),
        (["cut"], [], 1),
        (["error"], [], 1),
        (["limit"], [], 1),
        (["call"], ["--policy", "chat"], 1),
        (["none"], [], 2),
        (["call", "cut"], [], 1),
        (["cut", "none", "call"], [], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["picture", "json"])
def test_the_status_is_the_worst_of_all_files_and_each_finding_has_a_line(
    ask: Ask,
    files: dict[str, Path],
    names: list[str],
    options: list[str],
    status: int,
    form: list[str],
) -> None:
    said = ask("show", *form, *options, *(files[name] for name in names))
    assert said.status == status
    fine = {"call", "text"} if "chat" not in options else {"text"}
    for name in names:
        complaint = f"{files[name]}: " in said.err
        assert complaint is (name not in fine)
    assert len(said.complaints) == len([name for name in names if name not in fine])


def test_one_bad_file_never_stops_the_others_and_the_order_stays(
    ask: Ask, files: dict[str, Path], tmp_path: Path
) -> None:
    tampered = tmp_path / "tampered.stream.jsonl"
    tampered.write_bytes(files["call"].read_bytes().replace(b'{"t":0.4', b'{"t":9.9', 1))
    names = [files["call"], files["none"], tmp_path, tampered, files["cut"]]
    said = ask("show", "--json", *names)
    assert [found["file"] for found in said.objects] == [str(files["call"]), str(files["cut"])]
    assert [line.partition(": ")[0].partition(".jsonl:")[0] for line in said.complaints] == [
        str(files["none"]),
        str(tmp_path),
        str(tampered).removesuffix(".jsonl"),
        str(files["cut"]),
    ]
    assert said.status == 2


def test_a_bug_of_ours_with_one_file_is_one_line_and_the_others_go_on(
    ask: Ask, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: RecordingFile, *rest: Any) -> Any:
        if file.name == str(files["text"]):
            raise AssertionError("we did not think of this")
        return judge_function(file, *rest)

    monkeypatch.setattr("streamlab.cli_show.judge", broken)
    said = ask("show", "--json", files["call"], files["text"], files["cut"])
    assert (said.status, len(said.objects)) == (2, 2)
    assert "a bug in streamlab (AssertionError: we did not think of this)" in said.complaints[0]
    assert str(files["text"]) in said.complaints[0] and "report" in said.complaints[0]


def test_with_debug_a_bug_shows_where_it_happened(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(options: Any) -> int:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("streamlab.cli_show.show", broken)
    monkeypatch.setenv("STREAMLAB_DEBUG", "1")
    assert cli.main(["show", "x"]) == 2
    assert "Traceback" in capfd.readouterr().err


# --- show: any file at all ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 1),
        (b"\0\0\0\0", 1),
        (b"\xff\xfe\xfd", 1),
        (b"\xef\xbb", 1),
        (b"\xef\xbb\xbf", 1),
        (b"<html>\x1b]8;;http://x\x07</html>", 1),
        (b'{"error": {"type": "x", "message": "\\ud83d\\u001b[2J\\n"}}', 1),
        (b"data: {}\n\n" * 10, 1),
        (b"y\n" * 5000, 1),
        (bytes(range(256)) * 40, 1),
        (b'{"streamlab": 1}\n', 1),
        (b'{"streamlab": 2}\n', 2),
        (b'{"streamlab": 1}\nnot JSON\n', 2),
        (b'{"streamlab": 1, "wire": "morse"}\n', 2),
        (b'{"streamlab": 1}\n{"t": 1, "end": "eof"}\n{"t": 2, "data": ""}\n', 2),
        (b'{"streamlab": 1}\n{"t": 2, "data": ""}\n{"t": 1, "end": "eof"}\n', 2),
    ],
    ids=[
        *("empty", "NULs", "not UTF-8", "half a BOM", "a BOM", "a page", "an error body"),
        *("no wire format", "yes", "every byte", "truncated", "another version", "not JSON"),
        *("unknown wire", "after the end", "time runs back"),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["picture", "json"])
def test_whatever_a_file_holds_there_is_an_answer_or_one_line(
    ask: Ask, tmp_path: Path, data: bytes, status: int, form: list[str]
) -> None:
    path = tmp_path / "file.sse"
    path.write_bytes(data)
    said = ask("show", *form, path)
    assert said.status == status
    assert len(said.complaints) == 1 and str(path) in said.err
    assert "\x1b" not in said.out + said.err
    if form:
        assert len(said.objects) == (status == 1)


def test_names_that_attack_a_terminal_are_shown_as_signs(ask: Ask) -> None:
    said = ask("show", "\x1b[2J\u202e\n\udcff.sse")
    assert said.complaints[0].startswith("␛[2J⟨U+202E⟩⏎⟨U+DCFF⟩.sse: ")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_file_without_permission_is_one_line(ask: Ask, files: dict[str, Path]) -> None:
    files["call"].chmod(0)
    assert ask("show", files["call"]).status == 2


def test_a_disk_that_fails_while_it_is_read_is_one_line(
    ask: Ask, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(RecordingFile):
        def __iter__(self) -> Iterator[Any]:
            raise OSError(errno.EIO, "Input/output error")

    with files["call"].open("rb") as stream:
        failing = Failing(stream, str(files["call"]))
        opened = Opened(failing, About())
        monkeypatch.setattr(
            "streamlab.cli_show.streams_in", lambda path, keep: (each for each in [opened])
        )
        said = ask("show", files["call"])
    assert (said.status, said.complaints) == (2, [f"{files['call']}: Input/output error"])


@pytest.mark.parametrize(
    ("option", "bound"),
    [
        (["--max-bytes", "1k"], "bytes"),
        (["--max-frames", "5"], "frames"),
        (["--max-seconds", "0.4"], "seconds"),
        (["--max-frame-bytes", "100"], "frame_bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_every_bound_can_be_set(
    ask: Ask, files: dict[str, Path], option: list[str], bound: str
) -> None:
    (found,) = ask("show", "--json", *option, files["call"]).objects
    assert found["state"] == "INCOMPLETE"
    assert bound in found["why"]


def test_standard_input_is_a_file_like_any_other(files: dict[str, Path]) -> None:
    process = start("show", "--json", "-")
    out, err = process.communicate(files["cut"].read_bytes())
    assert json.loads(out)["file"] == "-"
    assert (process.returncode, err.decode().count("\n")) == (1, 1)


def test_an_endless_input_ends_at_a_bound() -> None:
    with start("show", "--json", "--max-bytes", "300k", "-") as process:
        assert process.stdin is not None and process.stdout is not None
        with pytest.raises(BrokenPipeError):  # it stops reading, instead of reading for ever
            while True:
                process.stdin.write(b'event: ping\ndata: {"type": "ping"}\n\n' * 100)
        drop(process.stdin)
        assert json.loads(process.stdout.read())["state"] == "INCOMPLETE"
    assert process.returncode == 1


# --- show: the doctor, and files of other tools ---------------------------------------------------


def test_the_rules_are_listed_for_a_person_and_for_a_program(ask: Ask) -> None:
    said = ask("show", "--rules")
    assert (said.status, said.err) == (0, "")
    rules = ask("show", "--rules", "--json").objects
    assert len(rules) > 100
    for rule in rules:
        assert rule["id"] in said.out
        assert {"id", "severity", "layer", "says", "source", "example"} == set(rule)
    marked = next(rule for rule in rules if rule["id"] == "incomplete")
    assert "message_start" in marked["example"]["chunks"][0]["data"]


def test_in_a_narrow_terminal_a_rule_stands_above_what_it_says(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = [line.rstrip() for line in ask("show", "--rules").out.splitlines()]
    place = lines.index("empty (warning, gateway)")
    assert lines[place + 1] == "  No event came at all, under HTTP 200."
    assert max(map(len, lines[:-1])) <= 40 and "…" not in "".join(lines)


@pytest.mark.parametrize(
    "asked",
    [
        ["show", ""],
        ["show", "--html", "", "x.sse"],
        ["convert", "", "--to", "sse"],
        ["convert", "x.sse", "--to", "sse", "--out", ""],
        ["scan", "", "--out", "x.parquet"],
    ],
    ids=["show", "page", "convert", "convert to", "scan"],
)
def test_a_name_that_is_empty_is_bad_usage(ask: Ask, asked: list[str]) -> None:
    """As a shell gives for a variable that is not set."""
    said = ask(*asked)
    assert (said.status, said.out) == (2, "")
    (complaint,) = said.complaints
    assert "'' names no file" in complaint


@pytest.mark.parametrize("command", [["show"], ["convert", "--to", "sse"]], ids=["show", "convert"])
def test_a_folder_is_told_to_whoever_reads_files(
    ask: Ask, tmp_path: Path, command: list[str]
) -> None:
    said = ask(*command, tmp_path)
    assert said.status == 2
    assert said.complaints == [
        f"{tmp_path}: is a folder; name the files in it, or read all of it with `scan`"
    ]


KEY = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def har(tmp_path: Path) -> Path:
    """A capture of a browser: a whole answer, then one that broke off, each with a key."""
    broken = faults.disconnect(synth.pay_invoice(), after=11)
    entries = [
        {
            "startedDateTime": "2026-11-30T12:00:00.000Z",
            "time": 900,
            "request": {
                "method": "POST",
                "url": f"https://api.example.com/v1/messages?key={KEY}",
                "headers": [],
            },
            "response": {
                "status": 200,
                "headers": [{"name": "content-type", "value": "text/event-stream"}],
                "content": {"mimeType": "text/event-stream", "text": recording.data.decode()},
            },
            "timings": {"send": 0, "wait": 300, "receive": 600},
        }
        for recording in (synth.change_label(), broken)
    ]
    path = tmp_path / "two.har"
    log = {"version": "1.2", "creator": {"name": "a browser", "version": "1"}, "entries": entries}
    path.write_text(json.dumps({"log": log}))
    return path


def test_of_a_file_of_several_streams_one_is_shown_and_the_others_are_counted(
    ask: Ask, har: Path
) -> None:
    (first,) = ask("show", "--json", har).objects
    assert first["state"] == "VALIDATED_PROPOSAL"
    (more,) = [problem for problem in first["problems"] if problem["rule"] == "more-streams"]
    assert "2 streams; this is number 1" in more["message"]
    said = ask("show", "--json", "--stream", "2", har)
    assert (said.status, said.objects[0]["doctor"]["verdict"]) == (1, "broken off")
    assert "number 2" in said.out


def test_a_stream_that_a_file_does_not_hold_is_bad_usage_of_that_file(
    ask: Ask, har: Path, files: dict[str, Path]
) -> None:
    said = ask("show", "--stream", "3", har, files["call"])
    assert (said.status, said.out) == (2, "")
    assert said.complaints == [
        f"{har}: there is no stream 3: the file holds 2 streams",
        f"{files['call']}: there is no stream 3: the file holds 1 stream",
    ]


def test_a_capture_is_masked_unless_it_is_to_be_kept(ask: Ask, har: Path) -> None:
    said = ask("show", "--json", har)
    assert KEY not in said.out
    assert said.objects[0]["about"]["form"] == "har"
    assert said.objects[0]["about"]["status"] == 200
    assert sum(said.objects[0]["about"]["masked"].values())
    assert KEY in ask("show", "--json", "--keep", har).out
    shown = ask("show", har).out
    assert KEY not in shown and "api.example.com" in shown
    assert shown.count("HTTP 200") == 1


# --- show: the other options ----------------------------------------------------------------------

SCHEMA = {"type": "object", "required": ["item"], "properties": {"item": {"type": "string"}}}


@pytest.mark.parametrize(
    ("tools", "state"),
    [
        ({"change_label": SCHEMA}, "VALIDATED_PROPOSAL"),
        ({"other": SCHEMA}, "HELD"),
        ({}, "HELD"),
        ({"change_label": {**SCHEMA, "required": ["amount"]}}, "INVALID"),
    ],
    ids=["permitted", "another tool", "no tool", "does not fit"],
)
def test_tools_decide_what_is_permitted_and_what_fits(
    ask: Ask, files: dict[str, Path], tmp_path: Path, tools: Any, state: str
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    (found,) = ask("show", "--json", "--tools", tmp_path / "tools.json", files["call"]).objects
    assert found["state"] == state


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ('{"pay": 3}', "'pay'"),
        ('{"pay": {"type": "objekt"}}', "'pay'"),
        ("[" * 100_000, "not JSON"),
    ],
    ids=["cut", "a list", "no schema", "a wrong schema", "too deep"],
)
def test_a_file_of_tools_that_is_none_is_one_line(
    ask: Ask, files: dict[str, Path], tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "tools.json"
    path.write_text(text)
    said = ask("show", "--tools", path, files["call"])
    assert (said.status, said.out, len(said.complaints)) == (2, "", 1)
    assert said.complaints[0].startswith(f"{path}: ") and words in said.err


def test_a_page_is_written_about_one_file(ask: Ask, files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    said = ask("show", "--html", out, files["cut"])
    page = out.read_text(encoding="utf-8")
    assert said.status == 1 and f"wrote {out}" in said.err
    assert page.startswith("<!doctype html>") and "cut.stream.jsonl" in page
    assert not list(tmp_path.glob("*.part"))


def test_a_page_never_overwrites_its_recording(ask: Ask, files: dict[str, Path]) -> None:
    before = files["cut"].read_bytes()
    assert ask("show", "--html", files["cut"], files["cut"]).status == 2
    assert files["cut"].read_bytes() == before


def test_a_page_about_too_many_frames_is_refused(
    ask: Ask, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamlab.cli_show.MAX_PAGE_FRAMES", 10)
    said = ask("show", "--html", tmp_path / "out.html", files["call"])
    assert said.status == 2 and "20 frames are too many for a page (10)" in said.err
    assert not (tmp_path / "out.html").exists()


@pytest.mark.skipif(os.name == "nt", reason="there is no /dev/stdin")
def test_a_page_is_made_of_what_was_judged_though_it_can_be_read_only_once(
    files: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.html"
    process = start("show", "--json", "--html", out, "/dev/stdin")
    said, err = process.communicate(files["call"].read_bytes(), timeout=60)
    assert (process.returncode, json.loads(said)["state"]) == (0, "VALIDATED_PROPOSAL"), err
    assert "VALIDATED_PROPOSAL" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "cap", "words"),
    [(["--max-frames", "3"], 1 << 24, "ran over a bound"), ([], 500, "too large for a page (500")],
    ids=["bound", "size"],
)
def test_no_page_is_made_of_a_stream_without_measure(
    ask: Ask,
    files: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    cap: int,
    words: str,
) -> None:
    monkeypatch.setattr("streamlab.cli_show.MAX_PAGE_BYTES", cap)
    out = tmp_path / "out.html"
    said = ask("show", "--json", *options, "--html", out, files["call"])
    assert said.status == 2 and words in said.complaints[-1]
    assert len(said.objects) == 1 and not out.exists()


def test_no_page_contradicts_the_verdict(ask: Ask, tmp_path: Path) -> None:
    slow = synth.greeting()
    chunks = tuple(chunk._replace(t=5000.0) for chunk in slow.chunks)
    write(msgspec.structs.replace(slow, chunks=chunks, end_t=5000.0), tmp_path / "a.stream.jsonl")
    options = ["--max-seconds", "9000", "--policy", "chat", "--json", "--html"]
    said = ask("show", *options, tmp_path / "out.html", tmp_path / "a.stream.jsonl")
    assert said.objects[0]["state"] == "MESSAGE_COMPLETE"
    assert said.status == 2 and "over the bounds that a page has" in said.err
    assert not (tmp_path / "out.html").exists()


def test_a_page_takes_the_place_of_nothing_but_a_file(
    ask: Ask, files: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    for out in (tmp_path / "folder", ".", "/", os.devnull):
        said = ask("show", "--html", out, files["call"])
        assert (said.status, said.out, len(said.complaints)) == (2, "", 1)
        assert f"{Path(out)}: exists and is not a regular file" in said.err
    recording = files["call"].rename(tmp_path / "x.html.part")
    before = recording.read_bytes()
    assert ask("show", "--html", tmp_path / "x.html", recording).status == 0
    assert recording.read_bytes() == before


def test_an_output_in_an_old_code_page_is_shapes_of_ascii(files: dict[str, Path]) -> None:
    process = start("show", files["cut"], env={**os.environ, "PYTHONIOENCODING": "ascii"})
    out, _ = process.communicate()
    assert out.isascii() and b"####[" in out
    assert process.returncode == 1


# --- Whoever reads the output ---------------------------------------------------------------------


@pytest.mark.parametrize("form", [[], ["--json"], ["--rules"]], ids=["picture", "json", "rules"])
def test_a_reader_that_goes_away_ends_it_quietly(files: dict[str, Path], form: list[str]) -> None:
    with start("show", *form, *[files["call"]] * 3000) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["picture", "json"])
def test_a_full_disk_under_the_output_is_one_line(files: dict[str, Path], form: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        process = start("show", *form, files["call"], stdout=full)
        _, err = process.communicate()
    assert process.returncode == 2
    assert err.decode() == f"streamlab: {os.strerror(errno.ENOSPC)}\n"


def test_without_a_stderr_the_status_still_tells(files: dict[str, Path]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with start("show", files["none"], files["cut"], stderr=write_end) as process:
        os.close(write_end)
        assert process.stdout is not None and b"INCOMPLETE" in process.stdout.read()
    assert process.returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C in another way")
def test_ctrl_c_is_quiet() -> None:
    with start("show", "--json", "-") as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(20):  # more than a pipe holds: it is reading by now
            process.stdin.write(b": keep-alive\n\n" * 10_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert process.returncode == 130


def test_json_needs_neither_a_picture_nor_a_schema_nor_an_sdk(files: dict[str, Path]) -> None:
    code = (
        "import sys; from streamlab.cli import main; main(sys.argv[1:]); "
        "print([m for m in ('rich', 'jsonschema', 'anthropic', 'jupyterlab') if m in sys.modules])"
    )
    said = subprocess.check_output(
        [sys.executable, "-c", code, "show", "--json", str(files["call"])], text=True, cwd=ROOT
    )
    assert said.splitlines()[-1] == "[]"


def test_a_bar_is_drawn_only_on_a_terminal(
    ask: Ask, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamlab.cli_show.PATIENCE", -1.0)
    name = files["call"].rename(files["call"].with_name("{0}[bold].stream.jsonl"))
    assert ask("show", "--json", name).err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = ask("show", "--json", name)
    assert said.status == 0 and "{0}[bold].stream.jsonl" in said.err


# --- explore --------------------------------------------------------------------------------------


def test_explore_finds_nothing_with_every_guard_and_says_how_fast(ask: Ask) -> None:
    said = ask("explore")
    assert (said.status, said.err) == (0, "")
    assert "2,424 states, 24,043 transitions" in said.out
    assert "violations: 0\n" in said.out and said.out.endswith(" states a second\n")


def test_explore_shows_the_shortest_way_without_a_guard(ask: Ask) -> None:
    said = ask("explore", "--without", "a request carries a key")
    assert said.status == 1
    assert "Without: a request carries a key" in said.out
    assert "Step 9 breaks the promise that an attempt has one effect at most" in said.out


def test_explore_gives_the_same_json_in_every_run(ask: Ask) -> None:
    (good,) = ask("explore", "--json").objects
    assert good["violation"] is None and good["whole"] and good["states"] == sum(good["new"])
    assert {each["holds"] for each in good["promises"]} == {good["states"]}
    said = [ask("explore", "--json", "--without", "no answer is not success") for _ in range(2)]
    assert said[0] == said[1] and said[0].status == 1
    (bad,) = said[0].objects
    assert (bad["paths"], bad["violation"]["promise"]) == (None, "on record")
    last = bad["violation"]["steps"][-1]
    assert (last["who"], last["state"], last["with_guard"]) == (
        "process A",
        "COMMITTED",
        "RECONCILING",
    )


def test_explore_goes_no_deeper_than_it_is_told(ask: Ask) -> None:
    (found,) = ask("explore", "--depth", "3", "--json").objects
    assert (found["depth"], found["states"], found["whole"]) == (3, 56, False)


def test_explore_lists_its_guards_by_the_names_that_it_takes(ask: Ask) -> None:
    said = ask("explore", "--list")
    names = [line for line in said.out.splitlines() if not line.startswith(" ")]
    assert said.status == 0 and len(names) == 22
    for name in names:
        assert ask("explore", "--without", name, "--json").status == 1


@pytest.mark.parametrize(
    ("args", "title"),
    [
        ([], "All that can be reached"),
        (["--without", "a request carries a key"], "Without: a request carries a key"),
    ],
    ids=["all that can be reached", "a way that goes wrong"],
)
def test_explore_draws_what_it_found(ask: Ask, tmp_path: Path, args: list[str], title: str) -> None:
    out = tmp_path / "graph.svg"
    assert ask("explore", *args, "--graph", out).status == len(args) // 2
    assert f"<title>{title}</title>" in out.read_text("utf-8")


def test_explore_shows_a_bar_only_on_a_terminal(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlab.cli_explore.PATIENCE", -1.0)
    assert ask("explore", "--json").err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = ask("explore", "--json")
    assert said.status == 0 and "counting the ways" in said.err


# --- lab, serve, record ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "opened"),
    [
        ([], (None, None, True, [])),
        (["--port", "88", "--no-browser"], (None, 88, False, [])),
        (["x.ipynb", "--", "--a=1", "--b"], ("x.ipynb", None, True, ["--a=1", "--b"])),
    ],
    ids=["plain", "options", "for Jupyter"],
)
def test_lab_opens_what_it_is_asked_for(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, args: list[str], opened: tuple[Any, ...]
) -> None:
    seen: list[tuple[Any, ...]] = []
    monkeypatch.setattr(lab, "open_lab", lambda *given: seen.append(given) or 7)
    assert ask("lab", *args).status == 7
    assert seen == [opened]


def record(ask: Ask, url: str, out: Path, *more: str, model: str = "call") -> Said:
    return ask(
        *("record", "--model", model, "--prompt", "Hi", "--out", out, "--base-url", url, *more)
    )


@pytest.fixture
def server() -> Iterator[FaultServer]:
    answers = {"call": synth.change_label(), "text": synth.greeting()}
    with FaultServer(answers) as running:
        yield running


def test_record_keeps_what_came_and_says_what_it_is_worth(
    ask: Ask, server: FaultServer, tmp_path: Path
) -> None:
    out = tmp_path / "new.stream.jsonl"
    said = record(ask, server.url, out)
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith(f"{out}: VALIDATED_PROPOSAL, 20 frames in ")
    (found,) = ask("show", "--json", out).objects
    assert (found["model"], found["ending"]) == ("claude-synthetic", "eof")
    assert found["metrics"]["ttft_s"] is not None


def test_record_never_overwrites_without_force(
    ask: Ask, server: FaultServer, tmp_path: Path
) -> None:
    out = tmp_path / "old.stream.jsonl"
    out.write_text("precious")
    said = record(ask, server.url, out)
    assert said.status == 2 and "--force" in said.err
    assert out.read_text() == "precious"
    assert record(ask, server.url, out, "--force", model="nobody").status == 2
    assert out.read_text() == "precious"  # no stream began: nothing to replace it with
    assert record(ask, server.url, out, "--force", model="text").status == 0
    assert "precious" not in out.read_text()
    assert list(tmp_path.iterdir()) == [out]


def test_a_stream_that_breaks_is_recorded_and_a_finding(ask: Ask, tmp_path: Path) -> None:
    out = tmp_path / "broken.stream.jsonl"
    with FaultServer(faults.disconnect(synth.pay_invoice(), after=11, ending="reset")) as server:
        said = record(ask, server.url, out)
    assert said.status == 1 and str(out) in said.err
    (found,) = ask("show", "--json", out).objects
    assert (found["state"], found["ending"]) == ("INCOMPLETE", "reset")


def test_a_recording_that_ctrl_c_stops_says_where_it_is(
    ask: Ask, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(telling: Any, event: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("streamlab.cli_live._Telling.__call__", stop)
    out, new, second = (tmp_path / f"{name}.stream.jsonl" for name in ("x", "new-x", "new2-x"))
    assert record(ask, server.url, out) == Said(
        130, "", f"streamlab: {out}: stopped; it holds what came until then\n"
    )
    before = out.read_bytes()
    assert json.loads(before.splitlines()[-1])["end"] == "cancelled"
    for kept in (new, second):
        said = record(ask, server.url, out, "--force")
        assert said.status == 130 and f"{kept}: stopped" in said.err
        assert f"{out} is as it was" in said.err
    monkeypatch.undo()
    assert record(ask, server.url, out, "--force").status == 0
    assert out.read_bytes() != before
    assert sorted(tmp_path.iterdir()) == sorted([out, new, second])


def test_record_without_a_key_is_one_line(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    out = tmp_path / "x.stream.jsonl"
    said = ask("record", "--model", "m", "--prompt", "Hi", "--out", out)
    assert (said.status, len(said.complaints)) == (2, 1)
    assert "ANTHROPIC_API_KEY" in said.err and "--base-url" in said.err and not out.exists()


def line_of(process: subprocess.Popen[bytes], beginning: str) -> str:
    """The next line of its output that begins so."""
    assert process.stdout is not None
    return next(
        text for line in process.stdout if (text := line.decode().rstrip()).startswith(beginning)
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C in another way")
@pytest.mark.parametrize("given", [[], ["call"], ["call", "text"]], ids=["built in", "one", "two"])
def test_serve_says_where_it_is_and_what_was_asked_until_ctrl_c(
    ask: Ask, files: dict[str, Path], tmp_path: Path, given: list[str]
) -> None:
    options = ["--port", "0", "--pace", "max", "--ending", "cut"]
    with start("serve", *options, *(files[name] for name in given)) as process:
        url = line_of(process, "streamlab: fault server on ").split()[4]
        model = "call" if given else "greeting"
        assert record(ask, url, tmp_path / "got.stream.jsonl", model=model).status == 1
        assert f"model {model}" in line_of(process, "#1 POST /v1/messages: 200, cut")
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert process.stderr is not None and process.stderr.read() == b""


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C in another way")
@pytest.mark.parametrize("ending", [None, "eof", "cut", "reset"], ids=str)
def test_serve_breaks_a_stream_after_the_frame_that_is_named(
    ask: Ask, tmp_path: Path, ending: str | None
) -> None:
    asked = ["fixtures/claude/change_label.sse", "--port", "0", "--after", 14]
    with start("serve", *asked, *(["--ending", ending] if ending else [])) as process:
        url = line_of(process, "streamlab: fault server on ").split()[4]
        out = tmp_path / "got.stream.jsonl"
        assert record(ask, url, out).status == 1
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    (found,) = ask("show", "--json", out).objects
    assert (found["events"], found["ending"]) == (14, ending or "eof")
    assert found["state"] == "INCOMPLETE"


def test_two_files_of_one_name_cannot_both_be_served(
    ask: Ask, files: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    twin = tmp_path / "more" / files["call"].name
    twin.write_bytes(files["call"].read_bytes())
    said = ask("serve", files["call"], twin)
    assert said.status == 2 and "'call'" in said.err
