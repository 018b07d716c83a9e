"""`streamlab convert`: what is written where, what it says, and that it is judged as before."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import cli, cli_convert, faults, synth
from streamlab.analysis.judge import judge
from streamlab.streams.converting import FORMS, converted
from streamlab.streams.parts import Style
from streamlab.streams.random_answers import random_answer
from streamlab.streams.recording import Recording, RecordingFile, read, write
from streamlab.wire.sse import SSEDecoder
from tests.streams_for_tests import (
    CALL,
    STOP,
    TEXT,
    block,
    end,
    fragment,
    lines,
    start,
    stop,
    stream,
)
from tests.streams_for_tests import text as words

WIRES = ("claude", "openai-chat", "openai-responses", "gemini")
MAIL = "alice@example.com"


class Said(NamedTuple):
    status: int
    out: str
    err: str


Ask = Callable[..., Said]


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run `streamlab convert` in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object) -> Said:
        status = cli.main(["convert", *map(str, args)])
        out, err = capfd.readouterr()
        assert "Traceback" not in err and "a bug in" not in err
        return Said(status, out, err.replace("streamlab: ", ""))

    return run


def put(name: str, data: bytes | Recording) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, Recording):
        write(data, path)
    else:
        path.write_bytes(data)
    return path


def here() -> list[str]:
    """All files of the folder."""
    return sorted(path.as_posix() for path in Path().rglob("*") if path.is_file())


def state(path: str | Path) -> Any:
    return judge(read(path)).state


def contents(recording: Recording) -> list[Any]:
    turn = judge(recording).turn
    return [
        turn.facts.stop_reason,
        *((s.kind, s.text, s.input, s.signature) for s in turn.segments),
    ]


# --- Where it is written --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("answer.sse", "answer"),
        ("a/b/answer.stream.jsonl", "answer"),
        ("answer.sse.gz", "answer"),
        ("flows.mitm", "flows"),
        ("capture.HAR", "capture"),
        ("v1.2 final.jsonl", "v1.2 final"),
        ("../../etc/passwd", "passwd"),
        (".sse", "stream"),
        ("..", "stream"),
        ("answer", "answer"),
    ],
)
def test_a_results_name_is_the_inputs_own_without_its_form(name: str, expected: str) -> None:
    assert cli_convert.stem(name) == expected


def test_the_result_is_put_beside_the_file(ask: Ask) -> None:
    put("logs/answer.sse", stream(TEXT))
    assert ask("logs/answer.sse", "--to", "jsonl") == Said(0, "", "wrote logs/answer.jsonl\n")
    assert Path("logs/answer.jsonl").read_bytes() == lines(TEXT)


@pytest.mark.parametrize("form", FORMS)
def test_out_names_a_file_or_a_folder_or_standard_output(ask: Ask, form: str) -> None:
    put("a.sse", stream(TEXT))
    Path("there").mkdir()
    assert ask("a.sse", "--to", form, "--out", "x.file").status == 0
    assert ask("a.sse", "--to", form, "--out", "there").status == 0
    assert ask("a.sse", "--to", form, "--out", "new/deep/").status == 0
    shown = ask("a.sse", "--to", form, "--out", "-")
    assert here() == ["a.sse", f"new/deep/a.{form}", f"there/a.{form}", "x.file"]
    assert shown.out.encode() == Path("x.file").read_bytes() and shown.err == ""


def test_of_several_files_out_is_a_folder(ask: Ask) -> None:
    put("a.sse", stream(TEXT))
    put("b.sse", stream(CALL))
    assert ask("a.sse", "b.sse", "--to", "jsonl", "--out", "both").status == 0
    assert here() == ["a.sse", "b.sse", "both/a.jsonl", "both/b.jsonl"]
    assert ask("a.sse", "b.sse", "--to", "jsonl", "--out", "-").status == 2
    assert ask("a.sse", "b.sse", "--to", "jsonl", "--out", "a.sse").status == 2


def test_standard_input_goes_to_standard_output(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream(TEXT))))
    said = ask("-", "--to", "jsonl")
    assert (said.status, said.out.encode()) == (0, lines(TEXT))
    assert ask("-", "-", "--to", "jsonl").status == 2


# --- What is never lost ---------------------------------------------------------------------------


def test_a_file_that_exists_is_replaced_only_by_force(ask: Ask) -> None:
    put("a.sse", stream(TEXT))
    put("a.jsonl", b"mine")
    assert ask("a.sse", "--to", "jsonl") == Said(
        2, "", "a.sse: a.jsonl exists; --force replaces it\n"
    )
    assert Path("a.jsonl").read_bytes() == b"mine"
    assert ask("a.sse", "--to", "jsonl", "--force").status == 0
    assert Path("a.jsonl").read_bytes() == lines(TEXT)


@pytest.mark.parametrize("way", ["the-same-name", "a-link", "another-spelling", "another-input"])
def test_no_input_is_ever_overwritten_not_by_force_either(ask: Ask, way: str) -> None:
    put("a.sse", stream(TEXT))
    files, out = ["a.sse"], ["--out", "a.sse"]
    if way == "a-link":
        os.symlink("a.sse", "link.sse")
        out = ["--out", "link.sse"]
    elif way == "another-spelling":
        out = ["--out", "./x/../a.sse"]
        Path("x").mkdir()
    elif way == "another-input":
        put("a.stream.jsonl", synth.greeting())
        files, out = ["a.stream.jsonl", "a.sse"], []
    said = ask(*files, "--to", "sse", *out, "--force")
    assert said.status == 2 and "is a file that is read" in said.err
    assert Path("a.sse").read_bytes() == stream(TEXT)


def test_two_inputs_of_one_name_never_take_each_others_place(ask: Ask) -> None:
    put("one/a.sse", stream(TEXT))
    put("two/a.sse", stream(CALL))
    said = ask("one/a.sse", "two/a.sse", "--to", "jsonl", "--out", "both", "--force")
    assert said.status == 2
    assert "two/a.sse: both/a.jsonl was just written, from one/a.sse" in said.err
    assert Path("both/a.jsonl").read_bytes() == lines(TEXT)


def test_a_dangling_link_is_a_file_that_exists(ask: Ask) -> None:
    put("a.sse", stream(TEXT))
    os.symlink("elsewhere", "a.jsonl")
    assert ask("a.sse", "--to", "jsonl").status == 2
    assert not Path("elsewhere").exists()


def test_one_bad_file_stops_no_other(ask: Ask) -> None:
    put("good.sse", stream(TEXT))
    put("bad.stream.jsonl", b'{"streamlab": 7}\n')
    said = ask("none.sse", "bad.stream.jsonl", "good.sse", "--to", "jsonl")
    assert said.status == 2
    assert [line.partition(":")[0] for line in said.err.splitlines()] == [
        "none.sse", "bad.stream.jsonl", "wrote good.jsonl",
    ]  # fmt: skip


def test_on_a_terminal_a_bar_goes_through_many_files(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_convert, "LONG", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    put("a.sse", stream(TEXT))
    put("[b]\x1b[2J.sse", stream(CALL))
    said = ask("a.sse", "[b]\x1b[2J.sse", "--to", "jsonl", "--out", "both")
    assert said.status == 0 and len(here()) == 4
    assert "\x1b[2J" not in said.err


# --- Secrets --------------------------------------------------------------------------------------

SECRET = stream([start(), block(0), words(0, "to alice@exam"), words(0, "ple.com"), stop(0),
                 end("end_turn"), STOP])  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_masked_and_the_line_says_what(ask: Ask, form: str) -> None:
    put("a.sse", SECRET)
    said = ask("a.sse", "--to", form, "--out", "masked.file")
    assert said == Said(0, "", "wrote masked.file; masked 1: 1 e-mail address\n")
    kept = Path("masked.file").read_bytes()
    assert b"alice" not in kept and b"ple.com" not in kept
    assert judge(Recording.from_bytes(kept) if form != "stream.jsonl" else read("masked.file"))


def test_kinds_are_counted_in_words(ask: Ask) -> None:
    put("a.sse", stream([*TEXT[:2], words(0, f"{MAIL} bob@example.com Bearer abcdefgh12"),
                         *TEXT[4:]]))  # fmt: skip
    said = ask("a.sse", "--to", "sse", "--out", "b.sse").err
    assert said == "wrote b.sse; masked 3: 1 bearer token, 2 e-mail addresses\n"


@pytest.mark.parametrize("form", FORMS)
def test_keep_masks_nothing(ask: Ask, form: str) -> None:
    put("a.sse", SECRET)
    assert "masked" not in ask("a.sse", "--to", form, "--out", "x.file", "--keep").err
    assert b"alice@exam" in Path("x.file").read_bytes()


def test_where_masking_changes_the_verdict_that_is_a_finding(ask: Ask) -> None:
    given = '{"alice@example.com": 1, "carol@example.com": 2}'
    put("a.sse", stream([start(), block(0, "tool_use"), fragment(0, given), stop(0),
                         end("tool_use"), STOP]))  # fmt: skip
    said = ask("a.sse", "--to", "stream.jsonl")
    assert said.status == 1 and "2 e-mail addresses; it now reads as " in said.err
    assert ask("a.sse", "--to", "stream.jsonl", "--keep", "--force").status == 0


# --- Several streams ------------------------------------------------------------------------------


def har(*bodies: bytes) -> bytes:
    entries = [
        {
            "startedDateTime": "2026-11-30T12:00:00.000Z",
            "time": 100,
            "request": {"method": "POST", "url": f"https://api.example.com/v1?key=s3cret{n}abc",
                        "headers": [], "queryString": [], "cookies": []},
            "response": {
                "status": 200,
                "headers": [{"name": "Content-Type", "value": "text/event-stream"}],
                "content": {"mimeType": "text/event-stream", "text": body.decode(), "size": 1},
            },
            "timings": {"send": 0, "wait": 50, "receive": 50},
        }
        for n, body in enumerate(bodies)
    ]  # fmt: skip
    log = {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": entries}
    return json.dumps({"log": log}).encode()


def test_of_several_streams_the_first_is_written_and_that_is_a_finding(ask: Ask) -> None:
    put("capture.har", har(stream(TEXT), stream(CALL), stream(TEXT)))
    said = ask("capture.har", "--to", "jsonl")
    assert said.status == 1
    assert said.err.splitlines()[-1] == (
        "capture.har: it holds 3 streams, the first is written; --split writes each"
    )
    assert Path("capture.jsonl").read_bytes() == lines(TEXT)


def test_split_writes_each_stream_under_a_number(ask: Ask) -> None:
    put("capture.har", har(stream(TEXT), stream(CALL)))
    assert ask("capture.har", "--to", "jsonl", "--split", "--out", "streams/").status == 0
    assert here() == ["capture.har", "streams/capture-1.jsonl", "streams/capture-2.jsonl"]
    assert Path("streams/capture-2.jsonl").read_bytes() == lines(CALL)


def test_split_also_parts_the_answers_of_one_stream(ask: Ask) -> None:
    put("two.sse", stream([*TEXT, *CALL]))
    assert ask("two.sse", "--to", "sse", "--out", "whole.sse").status == 0
    assert Path("whole.sse").read_bytes() == stream([*TEXT, *CALL])
    assert ask("two.sse", "--to", "sse", "--split").status == 0
    assert Path("two-1.sse").read_bytes() == stream(TEXT)
    assert Path("two-2.sse").read_bytes() == stream(CALL)


def test_one_stream_needs_no_number_and_several_no_standard_output(ask: Ask) -> None:
    put("one.sse", stream(TEXT))
    put("two.sse", stream([*TEXT, *CALL]))
    assert ask("one.sse", "--to", "jsonl", "--split").err == "wrote one.jsonl\n"
    assert ask("two.sse", "--to", "jsonl", "--split", "--out", "-") == Said(
        2, "", "two.sse: 2 streams, and --out - takes one\n"
    )


def test_nothing_of_a_file_is_written_where_one_of_its_places_is_taken(ask: Ask) -> None:
    put("two.sse", stream([*TEXT, *CALL]))
    put("two-2.jsonl", b"mine")
    assert ask("two.sse", "--to", "jsonl", "--split").status == 2
    assert here() == ["two-2.jsonl", "two.sse"]


def test_what_is_compressed_is_read(ask: Ask) -> None:
    put("a.sse.gz", gzip.compress(stream(TEXT)))
    assert ask("a.sse.gz", "--to", "sse").status == 0
    assert Path("a.sse").read_bytes() == stream(TEXT)


# --- The forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude/change_label", "openai-responses/change_label",
                                  "openai-chat/story", "gemini/story"])  # fmt: skip
def test_to_json_lines_and_back_every_byte_is_there(ask: Ask, name: str) -> None:
    original = Path(cli.__file__).parents[1] / "fixtures" / f"{name}.sse"
    assert ask(original, "--to", "jsonl", "--out", "a.jsonl").status == 0
    assert ask("a.jsonl", "--to", "sse", "--out", "b.sse").status == 0
    assert Path("b.sse").read_bytes() == original.read_bytes().replace(b"\r\n", b"\n")


def test_a_json_array_becomes_events_with_names(ask: Ask) -> None:
    put("a.txt", json.dumps(list(CALL), indent=2).encode())
    assert ask("a.txt", "--to", "sse").status == 0
    frames = SSEDecoder().feed(Path("a.sse").read_bytes())
    assert [json.loads(frame.data) for frame in frames] == list(CALL)
    assert [frame.event for frame in frames] == [event["type"] for event in CALL]
    assert state("a.sse") == state("a.txt")


def test_done_is_put_in_only_where_the_answer_is_whole(ask: Ask) -> None:
    whole = synth.story(wire="openai-chat")
    put("whole.jsonl", converted(whole, "jsonl", "openai-chat", True).data)
    cut = Path("whole.jsonl").read_bytes().splitlines(keepends=True)[:-2]
    put("cut.jsonl", b"".join(cut))
    assert ask("whole.jsonl", "--to", "sse").err == (
        "wrote whole.sse; added [DONE], since the answer is whole\n"
    )
    assert ask("cut.jsonl", "--to", "sse").status == 0
    assert Path("whole.sse").read_bytes() == whole.data
    assert b"[DONE]" not in Path("cut.sse").read_bytes()
    assert state("cut.sse") == state("cut.jsonl")


def test_what_would_read_as_whole_and_is_not_is_not_written(ask: Ask) -> None:
    """Every reason came, and no [DONE]: JSON lines would make a whole answer of it."""
    data = synth.story(wire="openai-chat").data.replace(b"data: [DONE]\n\n", b"")
    put("a.sse", data)
    said = ask("a.sse", "--to", "jsonl")
    assert said.status == 1 and here() == ["a.sse"]
    assert said.err.startswith("a.sse: not written as jsonl, where it would read as ")
    assert ask("a.sse", "--to", "stream.jsonl").status == 0
    assert state("a.stream.jsonl") == state("a.sse")


def test_an_ending_that_the_form_cannot_keep_does_not_make_an_answer_whole(ask: Ask) -> None:
    """A clean end is what completes JSON lines of Chat; a connection that was reset is none."""
    data = converted(synth.story(wire="openai-chat"), "jsonl", "openai-chat", True).data
    reset = Recording.from_bytes(data, ending="reset", wire="openai-chat")
    assert not judge(reset).complete
    put("a.stream.jsonl", reset)
    assert ask("a.stream.jsonl", "--to", "jsonl").status == 1
    assert here() == ["a.stream.jsonl"]
    assert ask("a.stream.jsonl", "--to", "sse").status == 0  # where only [DONE] completes it
    assert state("a.sse") == judge(reset).state


def test_what_a_form_has_no_place_for_is_said(ask: Ask) -> None:
    put("a.stream.jsonl", faults.disconnect(synth.pay_invoice(), 8, "reset"))
    assert ask("a.stream.jsonl", "--to", "sse") == Said(
        0, "", "wrote a.sse; lost times and reads, the ending (reset)\n"
    )
    assert ask("a.stream.jsonl", "--to", "stream.jsonl", "--out", "b.stream.jsonl").err == (
        "wrote b.stream.jsonl\n"
    )
    assert read("b.stream.jsonl") == read("a.stream.jsonl")


def test_an_unfinished_last_event_stays_unfinished(ask: Ask) -> None:
    data = stream(CALL)
    for name, size in {"inside": -30, "before-the-blank-line": -1}.items():
        put(f"{name}.sse", data[:size])
        assert ask(f"{name}.sse", "--to", "jsonl").status == 0
        assert state(f"{name}.jsonl") == state(f"{name}.sse") != state_of(data)
        assert ask(f"{name}.jsonl", "--to", "sse", "--out", "back.sse", "--force").status == 0
        assert state("back.sse") == state(f"{name}.sse")


def state_of(data: bytes) -> Any:
    return judge(Recording.from_bytes(data)).state


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"<html>\n<body>502</body>\n", "no event in it"),
        (b"", "no event in it"),
        (stream(TEXT[:2]) + b"data: not JSON\n\n", "frame 3 is not JSON: 'not JSON'"),
    ],
    ids=["a-web-page", "nothing", "no-json"],
)
def test_what_json_lines_cannot_say_is_refused_by_name(ask: Ask, data: bytes, why: str) -> None:
    put("a.sse", data)
    said = ask("a.sse", "--to", "jsonl")
    assert said.status == 2 and said.err.startswith(f"a.sse: {why}")
    assert here() == ["a.sse"]
    assert ask("a.sse", "--to", "sse", "--out", "same.sse").status == 0
    assert Path("same.sse").read_bytes() == data


# --- Laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 10**6))
def test_a_whole_answer_is_the_same_in_every_form(wire: str, form: str, seed: int) -> None:
    original = random_answer(seed, wire)[1]
    before = judge(original)
    for through in ([form], ["jsonl", form], [form, "jsonl", "sse"]):
        recording = original
        for each in through:
            data = converted(recording, each, wire, before.complete).data
            recording = back(data, each, wire)
        after = judge(recording)
        assert contents(recording) == contents(original)
        assert (after.state, after.complete) == (before.state, before.complete)


def back(data: bytes, form: str, wire: str) -> Recording:
    """What a file of a form holds."""
    if form != "stream.jsonl":
        return Recording.from_bytes(data, wire=wire)
    file = RecordingFile(io.BytesIO(data), "-")
    return Recording(tuple(file), file.ending, file.header.wire, file.end_t)


@pytest.mark.parametrize("wire", WIRES)
@given(seed=st.integers(0, 10**6), place=st.floats(0, 1))
def test_an_answer_that_is_cut_anywhere_says_the_same_in_every_form(
    wire: str, seed: int, place: float
) -> None:
    whole = synth.story(wire=wire, seed=seed, style=Style(newline="\n"))
    cut = Recording.from_bytes(whole.data[: int(len(whole.data) * place)], wire=wire)
    before = judge(cut)
    if not before.frames:
        return
    for form in ("jsonl", "sse"):
        after = judge(
            Recording.from_bytes(converted(cut, form, wire, before.complete).data, wire=wire)
        )
        assert [s.text for s in after.turn.segments] == [s.text for s in before.turn.segments]
