"""Recordings on disk: three forms that come back, and every way a file can lie is named by line."""

from __future__ import annotations

import io
import json
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.errors import UsageError, WireError
from streamlab.streams import recording as module
from streamlab.streams import timed_lines as line_module
from streamlab.streams.recording import (
    READ_SIZE,
    Chunk,
    Header,
    Recording,
    RecordingFile,
    open_recording,
    read,
    write,
)
from tests.streams_for_tests import CALL, TEXT, all_bytes, lines, stream

WHOLE = Recording(
    (
        Chunk(0.25, b"event: ping\n"),
        Chunk(0.25, b""),
        Chunk(0.5, 'data: {"t": "é🐋\u2028"}\n\n'.encode()),
        Chunk(1.0, "é".encode()[:1]),
        Chunk(1.5, "é".encode()[1:]),
        Chunk(2.0, b"\xff\x00"),
    ),
    ending="reset",
    wire="claude",
    end_t=3.0,
    source="synthetic",
    model="model-1",
    note="a note — ü",
)
UNTIMED = Recording((Chunk(None, b"data: a\n\n"), Chunk(None, b"data: b\n\n")))


# --- Round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("recording", [WHOLE, UNTIMED, Recording()], ids=["all", "untimed", "none"])
def test_a_timed_recording_keeps_everything(recording: Recording, tmp_path: Path) -> None:
    write(recording, tmp_path / "a.stream.jsonl")
    assert read(tmp_path / "a.stream.jsonl") == recording
    assert read(str(tmp_path / "a.stream.jsonl")) == recording


@pytest.mark.parametrize("suffix", [".sse", ".txt"])
def test_a_raw_file_keeps_the_bytes_and_nothing_else(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write(WHOLE, path)
    assert path.read_bytes() == WHOLE.data
    again = read(path)
    assert (again.data, again.ending, again.timed, again.wire) == (WHOLE.data, "eof", False, None)


def test_a_file_of_lines_keeps_the_data_of_each_event_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    data = [b'{"a": 1.50, "a": 2}', b'"\\ud83d"', b"9" * 400, '{"é": "\u2028"}'.encode()]
    write(Recording.from_bytes(b"".join(b"data: " + line + b"\n\n" for line in data)), path)
    assert path.read_bytes() == b"\n".join([*data, b""])


def test_data_over_several_lines_is_one_line_of_json(tmp_path: Path) -> None:
    write(Recording.from_bytes(b'data: {"a":\ndata: 1}\n\n'), tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == b'{"a": 1}\n'


def test_a_file_of_lines_can_be_written_as_one_again(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write(Recording.from_bytes(lines(TEXT)), tmp_path / name)
        assert read(tmp_path / name).data == lines(TEXT)
    write(Recording.from_bytes(lines(TEXT)[:-1]), tmp_path / "c.jsonl")
    assert read(tmp_path / "c.jsonl").data == lines(TEXT)


@pytest.mark.parametrize("data", [b"data: [DONE]\n\n", b"data\n\n", b"data: {\n\n"], ids=repr)
def test_what_is_not_json_has_no_place_in_a_file_of_lines(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"frame 1 is not JSON.*write \.sse"):
        write(Recording.from_bytes(data), tmp_path / "a.jsonl")
    assert list(tmp_path.iterdir()) == []


@given(
    st.lists(st.binary(max_size=20)),
    st.sampled_from(["eof", "cut", "reset", "timeout", "cancelled"]),
    st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=5),
)
def test_any_bytes_and_times_come_back(
    tmp_path_factory: pytest.TempPathFactory, datas: list[bytes], ending: str, times: list[Any]
) -> None:
    known = iter(sorted(t for t in times if t is not None))
    when = [None if t is None else next(known) for t in times]
    chunks = tuple(Chunk(t, data) for t, data in zip(when, datas, strict=False))
    recording = Recording(chunks, ending)
    path = tmp_path_factory.getbasetemp() / "any.stream.jsonl"
    write(recording, path)
    assert read(path) == recording


def test_a_long_note_comes_back(tmp_path: Path) -> None:
    recording = Recording(note="é" * READ_SIZE)
    write(recording, tmp_path / "a.stream.jsonl")
    assert read(tmp_path / "a.stream.jsonl") == recording


# --- Telling the forms apart ------------------------------------------------------------------

HEADER = b'{"streamlab":1,"wire":"claude"}\n'
END = b'{"t":2,"end":"eof"}\n'


@pytest.mark.parametrize(
    "first, timed",
    [
        (HEADER, True),
        (b"\xef\xbb\xbf" + HEADER, True),
        (b'  {"wire": null, "streamlab": 1}\r\n', True),
        (b'{"type": "message_start", "message": {"id": "\\"streamlab\\""}}\n', False),
        (b'{"note": "streamlab"}\n', False),
        (b'data: {"streamlab": 1}\n', False),
        (b"event: streamlab\n", False),
        (b"", False),
    ],
    ids=["header", "mark", "spaces", "in text", "as a value", "in a stream", "event", "empty"],
)
def test_only_our_own_header_makes_a_timed_recording(first: bytes, timed: bool) -> None:
    file = RecordingFile(io.BytesIO(first + END), "x")
    assert file.timed == timed
    assert b"".join(chunk.data for chunk in file) == (b"" if timed else first + END)


def test_a_header_says_what_it_says_and_no_more() -> None:
    given = b'{"streamlab":1,"source":"synthetic","model":null,"note":5,"later":[1]}\n'
    assert RecordingFile(io.BytesIO(given + END), "x").header == Header(None, "synthetic", "", "5")


# --- Files that lie ---------------------------------------------------------------------------

GOOD = b'{"t":1,"data":"a"}\n'

#: Name -> the lines after the header, the line that is wrong, what is said about it.
LIES: dict[str, tuple[bytes, int, str]] = {
    "no JSON": (GOOD + b"{\n" + END, 3, "not a line of JSON"),
    "no UTF-8": (b'{"t":1,"data":"\xff"}\n' + END, 2, "not a line of JSON"),
    "half a character": (b'{"t":1,"data":"\\ud83d"}\n' + END, 2, "not a line of JSON"),
    "no object": (b"[1]\n" + END, 2, "not a JSON object"),
    "too deep": (b'{"t":1,"x":' + b"[" * 5000 + b"\n" + END, 2, "not a line of JSON"),
    "neither data": (b'{"t":1}\n' + END, 2, "one of the three"),
    "both data": (b'{"t":1,"data":"a","b64":"YQ=="}\n' + END, 2, "one of the three"),
    "data and end": (b'{"t":1,"data":"a","end":"eof"}\n', 2, "one of the three"),
    "data is a number": (b'{"t":1,"data":5}\n' + END, 2, "one of the three"),
    "data is null": (b'{"t":1,"data":null}\n' + END, 2, "one of the three"),
    "bad base64": (b'{"t":1,"b64":"a"}\n' + END, 2, "not base64"),
    "base64 and more": (b'{"t":1,"b64":"YQ!=="}\n' + END, 2, "not base64"),
    "base64 that is no ASCII": ('{"t":1,"b64":"é"}\n'.encode() + END, 2, "not base64"),
    "time backwards": (GOOD + b'{"t":0.5,"data":"b"}\n' + END, 3, "time runs backwards: 0.5"),
    "end backwards": (GOOD + b'{"t":0.5,"end":"eof"}\n', 3, "time runs backwards"),
    "time negative": (b'{"t":-1,"data":"a"}\n' + END, 2, "t must be seconds"),
    "time is text": (b'{"t":"1","data":"a"}\n' + END, 2, "t must be seconds"),
    "time is true": (b'{"t":true,"data":"a"}\n' + END, 2, "t must be seconds"),
    "time huge": (b'{"t":1e308,"data":"a"}\n' + END, 2, "t must be seconds"),
    "time beyond floats": (b'{"t":' + b"9" * 400 + b',"data":"a"}\n' + END, 2, "t must be seconds"),
    "unknown end": (b'{"t":1,"end":"over"}\n', 2, "end 'over' is none of eof"),
    "end is a list": (b'{"t":1,"end":["eof"]}\n', 2, "one of the three"),
    "a line after the end": (END + GOOD, 3, "a line after the end line"),
    "half a line after the end": (END + b'{"t":1,', 3, "a line after the end line"),
    "two ends": (END + END, 3, "a line after the end line"),
}


@pytest.mark.parametrize("body, number, said", LIES.values(), ids=LIES)
def test_a_line_that_lies_is_a_wire_error_with_its_place(
    body: bytes, number: int, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.stream.jsonl"
    path.write_bytes(HEADER + body)
    with pytest.raises(WireError) as caught:
        read(path)
    assert caught.value.where == f"{path}:{number}"
    assert str(caught.value).startswith(f"{path}:{number}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "header, said",
    [
        (b'{"streamlab":2}\n', "version 2"),
        (b'{"streamlab":"1"}\n', "version '1'"),
        (b'{"streamlab":null}\n', "version None"),
        (b'{"streamlab":1,"wire":"smoke"}\n', "wire 'smoke' is none of claude"),
        (b'{"streamlab":1,"wire":["claude"]}\n', "is none of claude"),
        (b'{"streamlab":1,\n', "not a line of JSON"),
    ],
    ids=repr,
)
def test_a_header_that_lies_is_a_wire_error_of_line_one(
    header: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.stream.jsonl"
    path.write_bytes(header + END)
    with pytest.raises(WireError, match=said) as caught:
        read(path)
    assert caught.value.where == f"{path}:1"


def test_a_field_that_nobody_asks_for_is_never_built() -> None:
    line = b'{"t":0,"data":"x","z":[' + b"[]," * 300_000 + b"[]]}\n"
    source = io.BytesIO(HEADER + line + END)
    tracemalloc.start()
    try:
        assert list(RecordingFile(source, "x")) == [Chunk(0.0, b"x")]
        assert tracemalloc.get_traced_memory()[1] < 3 * len(line)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", [b'"' + b"a" * 9000 + b'"', b"[" + b"1," * 9000 + b"1]"])
@pytest.mark.parametrize(
    "start", [b'{"streamlab":', b'{"streamlab":1,"wire":', HEADER + b'{"t":', HEADER + b'{"end":']
)
def test_a_value_that_is_wrong_is_quoted_in_a_few_words(start: bytes, value: bytes) -> None:
    with pytest.raises(WireError) as caught:
        list(RecordingFile(io.BytesIO(start + value + b"}\n"), "x"))
    assert len(str(caught.value)) < 200


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_stays_one_and_a_file_beside_is_never_lost(tmp_path: Path) -> None:
    real, link, beside = (tmp_path / name for name in ("a.sse", "b.sse", "b.sse.part"))
    beside.write_bytes(b"mine")
    link.symlink_to(real)
    write(WHOLE, link)
    assert link.is_symlink() and real.read_bytes() == WHOLE.data
    assert beside.read_bytes() == b"mine"


def test_the_chunks_before_a_lie_have_been_given_by_then(tmp_path: Path) -> None:
    path = tmp_path / "a.stream.jsonl"
    path.write_bytes(HEADER + GOOD + b"{\n")
    with open_recording(path) as file:
        chunks = iter(file)
        assert next(chunks) == Chunk(1.0, b"a")
        with pytest.raises(WireError):
            next(chunks)


@pytest.mark.parametrize(
    "body, number",
    [(b"", 1), (GOOD, 2), (GOOD + b'{"t":2,"da', 3), (GOOD + b'{"t":2,"end":"e', 3)],
    ids=["header only", "no end line", "half a chunk", "half an end"],
)
def test_a_recording_that_stops_short_counts_as_cut_and_says_where(
    body: bytes, number: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.stream.jsonl"
    path.write_bytes(HEADER + body)
    with open_recording(path) as file:
        chunks = list(file)
        assert file.truncated.startswith(f"{path}:{number}: ")
        assert (file.ending, file.end_t) == ("cut", None)
    assert chunks == ([Chunk(1.0, b"a")] if b"data" in body else [])
    assert "stops without its end line" in read(path).note


def test_a_last_line_needs_no_line_end_and_blank_lines_mean_nothing() -> None:
    for data in (HEADER + GOOD + END[:-1], HEADER + b"\n" + GOOD + b"  \n" + END + b"\n\n"):
        file = RecordingFile(io.BytesIO(data), "x")
        assert list(file) == [Chunk(1.0, b"a")]
        assert (file.ending, file.end_t, file.truncated) == ("eof", 2.0, "")


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 100)
    file = RecordingFile(io.BytesIO(HEADER + b'{"t":1,"data":"' + b"a" * 200), "x")
    with pytest.raises(WireError, match="x:2: a line of more than 100 bytes"):
        list(file)


# --- Files that cannot be read or written -----------------------------------------------------


@pytest.mark.parametrize("name", ["none.sse", ".", "none/a.sse", "a\0b"], ids=repr)
def test_a_file_that_cannot_be_read_is_a_wire_error_with_its_name(
    name: str, tmp_path: Path
) -> None:
    path = str(tmp_path / name)
    for reading in (read, open_recording):
        with pytest.raises(WireError) as caught:
            reading(path)
        assert caught.value.where == path
        assert "Errno" not in str(caught.value)


class Failing(io.BytesIO):
    """A file on a disk that fails after its first line."""

    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_disk_that_fails_in_the_middle_is_a_wire_error() -> None:
    chunks = iter(RecordingFile(Failing(b"data: a\n\n"), "x.sse"))
    with pytest.raises(WireError, match=r"x\.sse: Input/output error"):
        next(chunks)


@pytest.mark.parametrize("name", ["a.json", "a", "sse", "a.sse.gz"])
def test_a_name_without_a_form_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in one of \.stream\.jsonl, \.jsonl"):
        write(WHOLE, tmp_path / name)


def test_a_place_that_cannot_be_written_is_the_callers_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder.sse").mkdir()
    for name in ("none/a.sse", "file/a.sse", "folder.sse"):
        with pytest.raises(UsageError, match="sse: "):
            write(WHOLE, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.sse"]


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"before")
    good = b"data: {}\n\n" * 50_000
    with pytest.raises(UsageError):
        write(Recording.from_bytes(good + b"data: [DONE]\n\n"), path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    write(Recording.from_bytes(good), path)
    assert path.read_bytes() == b"{}\n" * 50_000
    assert list(tmp_path.iterdir()) == [path]


# --- Standard input, and size -----------------------------------------------------------------


class Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("data", [stream(CALL), lines(TEXT), HEADER + GOOD + END], ids=len)
def test_a_dash_is_standard_input_which_stays_open(
    data: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stdin = Stdin(data)
    monkeypatch.setattr(sys, "stdin", stdin)
    found = read("-")
    assert not stdin.buffer.closed
    (tmp_path / "same").write_bytes(data)
    assert found == read(tmp_path / "same")


def test_no_standard_input_is_a_wire_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(WireError, match="-: there is no standard input"):
        read("-")
    write(UNTIMED, tmp_path / "a.sse")
    assert read(tmp_path / "a.sse").data == UNTIMED.data


class Counting(io.BytesIO):
    """A file that knows how much of it was asked for at most at once."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.most = max(self.most, size if size is not None and size >= 0 else sys.maxsize)
        return super().read(size)


@pytest.mark.parametrize("size", [0, 1, READ_SIZE - 1, READ_SIZE, READ_SIZE + 1])
@pytest.mark.parametrize("first", [b"", b"\n", b"data: {}\n", b"x" * READ_SIZE])
def test_the_first_line_of_a_raw_file_is_no_chunk_of_its_own(first: bytes, size: int) -> None:
    data = first + b"y" * size
    sizes = [len(chunk.data) for chunk in RecordingFile(io.BytesIO(data), "x")]
    assert sum(sizes) == len(data)
    assert all(size == READ_SIZE for size in sizes[:-1])


def test_a_large_file_is_read_in_pieces() -> None:
    data = stream(TEXT) + (b": " + b"x" * 100 + b"\n\n") * 20_000
    source = Counting(data)
    file = RecordingFile(source, "x")
    sizes, whole = [], b""
    for chunk in file:
        sizes.append(len(chunk.data))
        whole += chunk.data
    assert whole == data
    assert max(sizes) <= READ_SIZE
    assert source.most == READ_SIZE


# --- The value --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields", [{"ending": "over"}, {"wire": "smoke"}, {"ending": None}], ids=str
)
def test_a_recording_with_a_word_that_is_not_known_cannot_be_made(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is none of"):
        Recording(**fields)


def test_a_recording_is_a_value() -> None:
    assert Recording.from_bytes(b"a", ending="cut") == Recording((Chunk(None, b"a"),), "cut")
    assert Recording.from_bytes(b"") == Recording()
    assert WHOLE.data == b"".join(chunk.data for chunk in WHOLE.chunks)
    assert (WHOLE.timed, UNTIMED.timed, Recording(end_t=1.0).timed) == (True, False, True)
    with pytest.raises(AttributeError):
        WHOLE.ending = "eof"


any_lines = st.lists(
    st.sampled_from([HEADER, GOOD, END, b"\n", b"{}", b'{"t":2}\n', b'{"t":9,"b64":"YQ=="}\n'])
    | st.binary(max_size=8).map(lambda b: b + b"\n")
    | st.dictionaries(
        st.sampled_from(["t", "data", "b64", "end", "streamlab", "wire"]),
        st.sampled_from([None, 1, 2.5, -1, "eof", "YQ==", "é", [], {}, True]),
    ).map(lambda d: json.dumps(d).encode() + b"\n"),
    max_size=8,
).map(b"".join)


@given(st.one_of(any_lines, any_lines.map(lambda b: HEADER + b), all_bytes))
def test_any_bytes_are_a_recording_or_a_wire_error(data: bytes) -> None:
    def attempt(name: str, source: Callable[[], io.BytesIO]) -> None:
        try:
            file = RecordingFile(source(), name)
            total = b"".join(chunk.data for chunk in file)
        except WireError as why:
            assert why.where.startswith(f"{name}:")
        else:
            assert file.timed or total == data
            assert file.ending in module.ENDINGS

    attempt("x", lambda: io.BytesIO(data))


#: Lines as they are written, and in every way in which they can be odd.
timed_lines = st.lists(
    st.builds(
        lambda t, data, form: form % (json.dumps(t).encode(), json.dumps(data).encode()),
        st.sampled_from([None, 0, 1, 1.5, 2, 2.25, 1e11]),
        st.sampled_from(["", "a", "é🐋", "\ud83d", "YQ==", "a" * 50]),
        st.sampled_from(
            [b'{"t":%s,"data":%s}'] * 4 + [b'{"data":%s,"t":%s}', b'{"t":%s,"b64":%s}']
        ),
    )
    | st.sampled_from(
        [b"", b" ", b'{"t":2,"end":"eof"}', b'{"t":9}{"t":9,"data":"a"}', b'{"t":2,']
    ),
    max_size=12,
)


@given(timed_lines, st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.integers(1, 200))
def test_usual_lines_that_are_read_at_once_are_those_that_are_read_one_by_one(
    lines: list[bytes], newline: bytes, ended: bool, size: int
) -> None:
    def refuse(line: bytes) -> None:
        raise msgspec.ValidationError

    def seen(decode: Callable[[bytes], object] | None) -> tuple[object, ...]:
        file, chunks, why = RecordingFile(io.BytesIO(data), "x"), [], ""
        with pytest.MonkeyPatch.context() as patch:
            if decode is not None:
                patch.setattr(line_module, "_decode_usual", decode)
                patch.setattr(module, "READ_SIZE", size)
            try:
                for chunk in file:
                    chunks.append(chunk)
            except WireError as error:
                why = str(error)
            return chunks, why, file.ending, file.end_t, file.truncated

    data = HEADER + newline.join(lines) + newline * ended
    assert seen(None) == seen(refuse)
