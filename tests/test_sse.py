"""The event stream's rules, one row a sentence of the standard; every row is fed in pieces too."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamlab.wire.sse import MAX_STRAY, MAX_STRAY_LINE, Frame, SSEDecoder
from tests.streams_for_tests import decode

BOM = "\ufeff"

#: Name -> the stream, and what is dispatched: (event, data).
RULES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    # where a line ends
    "LF ends a line": ("data: a\ndata: b\n\n", [("", "a\nb")]),
    "CR ends a line": ("data: a\rdata: b\r\r", [("", "a\nb")]),
    "CRLF is one line end": ("data: a\r\ndata: b\r\n\r\n", [("", "a\nb")]),
    "line ends may be mixed": ("data: a\r\ndata: b\rdata: c\n\r\n", [("", "a\nb\nc")]),
    "LF CR is two line ends": ("data: a\n\rdata: b\n\n", [("", "a"), ("", "b")]),
    "CR CR LF is two line ends": ("data: a\r\r\ndata: b\n\n", [("", "a"), ("", "b")]),
    "a CR at the very end closes the block": ("data: a\n\r", [("", "a")]),
    "U+2028 is data": ("data: a\u2028b\n\n", [("", "a\u2028b")]),
    "U+2029 is data": ("data: a\u2029b\n\n", [("", "a\u2029b")]),
    "U+0085 is data": ("data: a\x85b\n\n", [("", "a\x85b")]),
    "VT and FF are data": ("data: a\vb\fc\n\n", [("", "a\vb\fc")]),
    "FS, GS and RS are data": ("data: a\x1cb\x1dc\x1ed\n\n", [("", "a\x1cb\x1dc\x1ed")]),
    "NUL in data is data": ("data: a\0b\n\n", [("", "a\0b")]),
    # the byte order mark
    "one leading mark is dropped": (BOM + "data: a\n\n", [("", "a")]),
    "a second mark belongs to the name": (BOM * 2 + "data: a\n\ndata: b\n\n", [("", "b")]),
    "a mark further on is no mark": ("data: a\n\n" + BOM + "data: b\n\n", [("", "a")]),
    "a mark in a value stays": (f"data: {BOM}a\n\n", [("", BOM + "a")]),
    "a mark alone is nothing": (BOM, []),
    "a mark before a line end": (BOM + "\ndata: a\n\n", [("", "a")]),
    # comments, fields and values
    "a comment is no field": (": data: a\n\ndata: b\n\n", [("", "b")]),
    "a colon alone is a comment": ("data: a\n:\ndata: b\n\n", [("", "a\nb")]),
    "a comment does not end a block": ("event: e\n: c\ndata: a\n\n", [("e", "a")]),
    "one space after the colon goes": ("data:  a\n\n", [("", " a")]),
    "no space after the colon is needed": ("data:a\n\n", [("", "a")]),
    "a tab after the colon stays": ("data:\ta\n\n", [("", "\ta")]),
    "the first colon divides": ("data: a: b\n\n", [("", "a: b")]),
    "trailing spaces stay": ("data: a  \n\n", [("", "a  ")]),
    "a name alone has an empty value": ("data\n\n", [("", "")]),
    "a name with a colon has an empty value": ("data:\n\n", [("", "")]),
    "a name with a space is another name": ("data : a\n\n data: b\n\n", []),
    "names are case-sensitive": ("Data: a\nDATA: b\n\n", []),
    "unknown fields are ignored": ("color: red\ndata: a\nfoo\n\n", [("", "a")]),
    # data
    "data lines join with LF": ("data: a\ndata: b\ndata: c\n\n", [("", "a\nb\nc")]),
    "two empty data lines are one LF": ("data\ndata\n\n", [("", "\n")]),
    "a last empty data line counts": ("data: a\ndata\n\n", [("", "a\n")]),
    "a first empty data line counts": ("data\ndata: a\n\n", [("", "\na")]),
    # event
    "the last event name counts": ("event: a\nevent: b\ndata: x\n\n", [("b", "x")]),
    "an event name without data is dropped": ("event: a\n\ndata: b\n\n", [("", "b")]),
    "an empty name is no name": ("event: a\nevent\ndata: b\n\n", [("", "b")]),
    "the name may come after the data": ("data: b\nevent: a\n\n", [("a", "b")]),
    "a name lasts one block": ("event: a\ndata: 1\n\ndata: 2\n\n", [("a", "1"), ("", "2")]),
    # blocks
    "blank lines dispatch nothing by themselves": ("\n\n\ndata: a\n\n\n\n", [("", "a")]),
    "blocks follow each other": ("data: a\n\ndata: b\n\n", [("", "a"), ("", "b")]),
    "the last block needs its blank line": ("data: a\n\ndata: b\n", [("", "a")]),
    "a last line without an end is not read": ("data: a\n\ndata: b", [("", "a")]),
    "nothing is nothing": ("", []),
    "a page dispatches nothing": ("<html>\n<p>data: a</p>\n\n</html>\n\n", []),
}


@pytest.mark.parametrize("text, dispatched", RULES.values(), ids=RULES)
def test_rule_of_the_standard(text: str, dispatched: list[tuple[str, str]]) -> None:
    frames, _ = decode(text.encode())
    assert [(frame.event, frame.text) for frame in frames] == dispatched
    assert [frame.number for frame in frames] == list(range(1, len(frames) + 1))


#: Name -> the stream, and the id of each frame.
IDS: dict[str, tuple[str, list[str]]] = {
    "an id stays until another comes": ("id: 1\ndata: a\n\ndata: b\n\n", ["1", "1"]),
    "the last id of a block counts": ("id: 1\nid: 2\ndata: a\n\n", ["2"]),
    "an empty id takes it back": ("id: 1\ndata: a\n\nid\ndata: b\n\n", ["1", ""]),
    "an id with NUL is ignored": ("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", ["1", "1"]),
    "an id alone dispatches nothing, and counts": ("id: 7\n\ndata: a\n\n", ["7"]),
    "an id in the block dropped for want of data": ("id: 7\nevent: e\n\ndata: a\n\n", ["7"]),
    "an id is text, not a number": ("id: 1_0 é\ndata: a\n\n", ["1_0 é"]),
}


@pytest.mark.parametrize("text, ids", IDS.values(), ids=IDS)
def test_the_last_id_outlives_its_block(text: str, ids: list[str]) -> None:
    assert [frame.id for frame in decode(text.encode())[0]] == ids


@pytest.mark.parametrize(
    "value, retry",
    [
        ("2500", 2500),
        ("0", 0),
        ("007", 7),
        ("+5", None),
        ("-5", None),
        ("1_0", None),
        ("\u0663", None),  # a digit, but not an ASCII one
        (" 5", None),  # one space goes, this is the second
        ("5 ", None),
        ("5.0", None),
        ("5s", None),
        ("", None),
        ("9" * 5000, None),  # nobody waits so long; and int() refuses to read it
    ],
    ids=lambda value: repr(value)[:12],
)
def test_retry_is_ascii_digits_and_nothing_else(value: str, retry: int | None) -> None:
    frames, decoder = decode(f"retry: {value}\ndata: a\n\ndata: b\n\n".encode())
    assert [frame.retry for frame in frames] == [retry, None]
    assert decoder.retry == retry


# --- The four traps ---------------------------------------------------------------------------


def test_only_cr_and_lf_end_a_line() -> None:
    odd = "".join(map(chr, [0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029]))
    assert len(odd.splitlines()) == 8  # what the trap does
    assert [frame.text for frame in decode(f"data: {odd}\n\n".encode())[0]] == [odd]


@pytest.mark.parametrize("cut", [1, 2, 3], ids="a mark cut after byte {}".format)
def test_a_mark_that_comes_in_pieces_is_dropped_once(cut: int) -> None:
    decoder, data = SSEDecoder(), b"\xef\xbb\xbfdata: a\n\n"
    assert decoder.feed(data[:cut]) == []
    (frame,) = decoder.feed(data[cut:])
    assert (frame.data, frame.start, frame.end) == (b"a", 3, len(data))


def test_bytes_that_begin_like_a_mark_are_kept() -> None:
    frames, decoder = decode(b"\xef\xbbdata: a\n\ndata: b\n\n")
    assert [frame.data for frame in frames] == [b"b"]
    assert decoder.stray == [(0, b"\xef\xbbdata: a")]


def test_once_an_id_was_seen_a_blank_line_still_dispatches_nothing() -> None:
    assert [frame.data for frame in decode(b"id: 1\ndata: a\n\n\n: c\n\n\n")[0]] == [b"a"]


# --- Byte ranges ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, ranges",
    [
        (b"data: a\n\ndata: b\n\n", [(0, 9), (9, 18)]),
        (b"\ndata: a\n\n", [(1, 10)]),
        (b"\xef\xbb\xbfdata: a\n\n", [(3, 12)]),
        (b": c\n\ndata: a\n\n", [(5, 14)]),
        (b": c\ndata: a\n\n", [(0, 13)]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [(0, 10), (11, 21)]),
        (b"data: a\r\rdata: b\r\r", [(0, 9), (9, 18)]),
        (b"id: 1\n\ndata: a\n\n", [(7, 16)]),
    ],
    ids=["LF", "blank first", "mark", "comment block", "comment", "CRLF", "CR", "id alone"],
)
def test_a_frame_knows_the_bytes_that_it_came_from(
    data: bytes, ranges: list[tuple[int, int]]
) -> None:
    assert [(frame.start, frame.end) for frame in decode(data)[0]] == ranges


def test_a_frame_is_the_same_whether_or_not_the_lf_of_its_crlf_has_come() -> None:
    decoder = SSEDecoder()
    (early,) = decoder.feed(b"data: a\r\n\r")
    assert early == SSEDecoder().feed(b"data: a\r\n\r\n")[0]
    (later,) = decoder.feed(b"\ndata: b\n\n")
    assert (later.start, later.end) == (11, 20)


def test_a_character_may_be_cut_anywhere() -> None:
    data = 'event: naïve\ndata: {"text": "naïve 🐋 text"}\n\n'.encode()
    (frame,) = decode(data)[0]
    assert (frame.event, frame.text) == ("naïve", '{"text": "naïve 🐋 text"}')


def test_invalid_utf8_is_replaced_where_it_is_read_and_kept_as_bytes() -> None:
    (frame,) = decode(b"event: \xff\nid: \xfe\ndata: a\xffb\n\n")[0]
    assert (frame.event, frame.id, frame.text) == ("\ufffd", "\ufffd", "a\ufffdb")
    assert frame.data == b"a\xffb"


# --- The end ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, left",
    [
        (b"data: a\n\n", None),
        (b"", None),
        (b": note", None),
        (b"\xef\xbb", None),
        (b"id: 1", None),
        (b"data: a\n", ("", b"a", 0)),
        (b"data: a", ("", b"a", 0)),
        (b"data: x\n\nevent: e\ndata: a", ("e", b"a", 9)),
        (b"event: e\n", ("e", b"", 0)),
        (b"data: a\ndat", ("", b"a", 0)),
        (b"data: a\r\ndata: b\r\n", ("", b"a\nb", 0)),
    ],
    ids=repr,
)
def test_an_unfinished_block_is_told_and_not_dispatched(
    data: bytes, left: tuple[str, bytes, int] | None
) -> None:
    for size in (1, 5, 1000):
        decoder = SSEDecoder()
        for at in range(0, len(data), size):
            decoder.feed(data[at : at + size])
        found = decoder.end()
        assert (found and (found.event, found.data, found.start)) == left


def test_lines_that_are_no_field_are_kept_with_their_place_within_bounds() -> None:
    _, decoder = decode(b"data: a\n<p>\nData: b\n\n")
    assert decoder.stray == [(8, b"<p>"), (12, b"Data: b")]
    assert decoder.fields == 1
    many = SSEDecoder()
    many.feed(b"x" * (MAX_STRAY_LINE + 5) + b"\n" + b"y\n" * (MAX_STRAY + 5))
    assert len(many.stray) == MAX_STRAY
    assert len(many.stray[0][1]) == MAX_STRAY_LINE


# --- Bounds -----------------------------------------------------------------------------------


OVER, FITS = True, False


@pytest.mark.parametrize(
    "data, dispatched, over",
    [
        (b"data: " + b"a" * 12 + b"\n\n", 1, FITS),
        (b"data: " + b"a" * 13 + b"\n\n", 0, OVER),
        (b"data: a\n\ndata: " + b"a" * 13 + b"\n\ndata: b\n\n", 1, OVER),
        (b"data: " + b"a" * 50, 0, OVER),
        (b"data: a\n" * 3, 0, OVER),
        (b": comment\n" * 3, 0, OVER),
        (b"data: aaa\r\ndata: b\r\n\r\n", 0, OVER),
        (b"data: aaa\r\ndata:\r\n\r\n", 1, FITS),
        (b"data: a\n\n" * 9, 9, FITS),
    ],
    ids=[
        "at it",
        "over it",
        "the second",
        "no end",
        "lines",
        "comments",
        "CRLF",
        "CRLF at",
        "many",
    ],
)
def test_a_block_over_the_bound_ends_the_decoding_wherever_the_reads_end(
    data: bytes, dispatched: int, over: bool
) -> None:
    frames, decoder = decode(data, max_frame=20)
    assert len(frames) == dispatched
    assert (decoder.overrun is not None) == over
    if decoder.overrun:
        assert decoder.overrun.start == (frames[-1].end if frames else 0)
        assert decoder.feed(b"\n\ndata: c\n\n") == []
        assert decoder.end() is None


def test_memory_of_an_endless_line_in_single_bytes_grows_with_the_line_only() -> None:
    assert _peak(40_000) < 2.5 * _peak(20_000)


def _peak(size: int) -> int:
    decoder = SSEDecoder()
    tracemalloc.start()
    try:
        for byte in b"data: " + b"a" * size:
            decoder.feed(bytes([byte]))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_hostile_event_names_are_not_remembered() -> None:
    decoder = SSEDecoder()
    names = [b"%d" % n + b"n" * 1000 for n in range(1000)] + [b"m%d" % n for n in range(1000)]
    blocks = b"".join(b"event: %s\ndata: x\n\n" % name for name in names)
    assert [frame.event.encode() for frame in decoder.feed(blocks)] == names
    assert sum(map(len, decoder._names)) < 10_000


def test_a_usual_block_reads_the_same_as_one_in_any_other_dress() -> None:
    usual = b"event: e\ndata: {}\n\n" * 3
    dressed = usual.replace(b"data: ", b":\ndata: ")
    frames = SSEDecoder().feed(usual)
    assert [(f.event, f.data) for f in SSEDecoder().feed(dressed)] == [
        (f.event, f.data) for f in frames
    ]
    assert frames[1] == Frame(2, "e", b"{}", 19, 38)


#: Lines that make blocks of the usual shape, and those that break it.
any_line = st.sampled_from(
    [
        *(b"event: a", b"event: b", b"event: ", b"data: {}", b"data: ", b"data: \xff", b"data:x"),
        *(b"", b"", b": c", b"id: 7", b"retry: 5", b"data", b"stray", b"data: " + b"x" * 40),
    ]
)


@given(
    st.lists(st.tuples(any_line, st.sampled_from([b"\n", b"\n", b"\r\n", b"\r\n", b"\r"]))),
    st.sampled_from([None, b"\n", b"\r\n"]),
    st.binary(max_size=3),
    st.lists(st.integers(1, 30), min_size=1),
    st.sampled_from([30, 1000]),
)
@example(
    [(b"event: a", b"\n"), (b"data: ", b"\n"), (b"data: ", b"\r\n"), (b"id: 7", b"\r\n")],
    None,
    b"",
    [1],
    30,
)
def test_blocks_that_are_found_at_once_are_those_that_are_read_line_by_line(
    lines: list[tuple[bytes, bytes]],
    only: bytes | None,
    rest: bytes,
    sizes: list[int],
    bound: int,
) -> None:
    text = b"".join(line + (only or end) for line, end in lines) + rest
    seen = []
    for pieces in ([len(text)], sizes, [1]):
        decoder, frames, at = SSEDecoder(bound), [], 0
        for size in itertools.cycle(pieces):
            if at >= len(text):
                break
            frames += decoder.feed(text[at : at + size])
            at += size
        frames.append(decoder.end())
        kept = decoder.stray, decoder.without_data, decoder.beside_data, bool(decoder.fields)
        seen.append((frames, kept, decoder.overrun, decoder.last_event_id, decoder.retry))
    assert seen[0] == seen[1] == seen[2]


usual = st.builds(
    lambda name, size: (b"event: " + name + b"\n" if name else b"") + b"data: " + b"x" * size,
    st.sampled_from([b"", b"", b"", b"a", b"b"]),
    st.sampled_from([0, 5, 5, 5, 6, 7]),
)


@given(
    st.lists(st.one_of(usual, usual, usual, usual, any_line), max_size=30),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([12, 13, 14, 15, 20, 22, 23, 24, 25, 100]),
    st.integers(0, 40),
)
def test_blocks_in_a_row_are_the_frames_that_they_would_be(
    blocks: list[bytes], newline: bytes, bound: int, cut: int
) -> None:
    text = b"\n\n".join(blocks).replace(b"\n", newline) + newline * 2
    one, many = SSEDecoder(bound), SSEDecoder(bound)
    for piece in (text[:cut], text[cut:]):
        frames: list[Frame] = []
        for found in many.feed_blocks(piece):
            if isinstance(found, Frame):
                frames.append(found)
                continue
            row = range(len(found.data))
            frames += [found.frame(place) for place in row]
            assert [found.frame(place).end for place in row] == found.ends(0, len(row))
        assert frames == one.feed(piece)
    assert many.end() == one.end()
    assert vars(many) == vars(one)
