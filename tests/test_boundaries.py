"""Where a read may end: ours gives the same at every split; the naive ones fail as is taught."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import faults, judge, synth
from streamlab.errors import UsageError
from streamlab.study import lesson_02, naive_readers
from streamlab.study.boundaries import (
    DELIVERIES,
    EXPECTED,
    STREAM,
    Outcome,
    deliver,
    expected,
    failing,
    outcome,
    outcomes,
    shown,
    sse_decoder,
    units,
    where,
)
from streamlab.study.naive_readers import NAIVE, Reader
from streamlab.wire.reader import Bounds
from streamlab.wire.sse import SSEDecoder

NAMES = [reader.__name__ for reader in NAIVE]
PLACES = range(1, len(STREAM))
each_reader = pytest.mark.parametrize("reader", NAIVE, ids=NAMES)
each_delivery = pytest.mark.parametrize("delivery", DELIVERIES)

#: What a stream can be made of: every rule, whole and in halves.
PIECES = (
    *(
        "data: a",
        "data: b",
        "data:",
        "event: ping",
        ": note",
        "id: 7",
        "x",
        " ",
        "ü",
        "🐋",
        "\u2028",
    ),
    *("\n", "\n\n", "\r", "\r\n", "\r\r", "\r\n\r\n", "\ufeff"),
)
streams = st.lists(st.sampled_from(PIECES), max_size=24).map(lambda found: "".join(found).encode())


def in_reads(stream: bytes, cuts: list[int]) -> list[bytes]:
    """A stream cut at any number of places."""
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[a:b] for a, b in pairwise(places)]


# --- Ours -----------------------------------------------------------------------------------------


def test_the_stream_says_what_was_written_by_hand() -> None:
    assert tuple(sse_decoder([STREAM])) == EXPECTED
    assert len(STREAM) < 200


@each_delivery
def test_ours_fails_at_no_place(delivery: str) -> None:
    assert failing(sse_decoder, delivery=delivery) == ()
    assert set(outcomes(sse_decoder, delivery=delivery)) == {Outcome(EXPECTED)}


def test_ours_gives_the_same_frames_at_every_pair_of_cuts() -> None:
    whole = SSEDecoder().feed(STREAM)
    for first in PLACES:
        for second in range(first + 1, len(STREAM)):
            decoder = SSEDecoder()
            pieces = (STREAM[:first], STREAM[first:second], STREAM[second:])
            assert [frame for piece in pieces for frame in decoder.feed(piece)] == whole


@given(streams, st.lists(st.integers(0, 500), max_size=12))
def test_ours_gives_the_same_frames_for_any_number_of_cuts(stream: bytes, cuts: list[int]) -> None:
    one, many = SSEDecoder(), SSEDecoder()
    whole = one.feed(stream)
    assert [frame for read in in_reads(stream, cuts) for frame in many.feed(read)] == whole
    assert many.end() == one.end()


# --- The naive ones -------------------------------------------------------------------------------


@each_reader
def test_a_naive_reader_is_right_about_a_simple_stream_whose_reads_are_whole(
    reader: Reader,
) -> None:
    reads = [b"data: one\n\n", b"event: ping\n\n", b"data: two\ndata: lines\n\n"]
    assert reader(reads) == ["one", "two\nlines"]


#: Reader -> at how many places it fails, event by event and all at once; None: uncut as well.
TAUGHT = {
    "each_read_is_an_event": (71, None, False),
    "each_read_holds_whole_events": (74, 74, False),
    "until_a_blank_line": (0, None, True),
    "decode_each_read": (9, 9, False),
    "decode_each_read_replacing": (9, 9, False),
    "tidy_line_ends_in_each_read": (2, 2, False),
    "split_at_two_newlines": (None, None, False),
    "splitlines_of_text": (None, None, False),
}


@each_reader
def test_a_naive_reader_fails_where_the_lesson_says(reader: Reader) -> None:
    found: list[int | None] = []
    for delivery in ("event by event", "all at once"):
        places, uncut = failing(reader, delivery=delivery), outcomes(reader, delivery=delivery)[0]
        assert uncut == expected(STREAM) or len(places) == len(PLACES)
        found.append(len(places) if uncut == expected(STREAM) else None)
    byte_by_byte = not failing(reader, delivery="byte by byte")
    assert (*found, byte_by_byte) == TAUGHT[reader.__name__]


def test_decoding_each_read_fails_inside_characters_and_nowhere_else() -> None:
    inside = tuple(cut for cut in PLACES if re.match("inside (?!a line)", where(STREAM, cut)))
    for reader in (naive_readers.decode_each_read, naive_readers.decode_each_read_replacing):
        assert failing(reader) == inside
    assert len(inside) == sum(len(unit.data) - 1 for unit in units(STREAM)) == 9


def test_tidying_each_read_makes_a_blank_line_of_a_crlf_that_is_cut() -> None:
    assert {where(STREAM, cut) for cut in failing(naive_readers.tidy_line_ends_in_each_read)} == {
        "between CR and LF"
    }
    first, _ = failing(naive_readers.tidy_line_ends_in_each_read)
    came = outcome(naive_readers.tidy_line_ends_in_each_read, deliver(STREAM, first))
    assert came.events == (EXPECTED[0], "first", "second", EXPECTED[2])


def test_what_a_reader_raises_is_its_outcome() -> None:
    came = outcome(naive_readers.decode_each_read, deliver(STREAM, 12))
    assert came.events == ()
    assert came.error.startswith("UnicodeDecodeError: ")


def test_a_reader_of_ones_own_may_give_anything() -> None:
    assert outcome(lambda reads: None, [b"a"]).error.startswith("TypeError: ")  # type: ignore[arg-type,return-value]
    assert outcome(lambda reads: [1, "a"], [b"a"]).events == ("1", "a")  # type: ignore[list-item]


# --- Reads ----------------------------------------------------------------------------------------


@given(streams.filter(bool), st.integers(0, 500), st.sampled_from(list(DELIVERIES)))
def test_reads_hold_the_stream_and_nothing_else(stream: bytes, cut: int, delivery: str) -> None:
    cut %= len(stream)
    reads, uncut = deliver(stream, cut, delivery), deliver(stream, 0, delivery)
    assert b"".join(reads) == b"".join(uncut) == stream
    assert all(reads)
    ends = {sum(map(len, uncut[: n + 1])) for n in range(len(uncut))}
    assert len(reads) == len(uncut) + (cut > 0 and cut not in ends)
    assert cut == 0 or cut in {sum(map(len, reads[: n + 1])) for n in range(len(reads))}


def test_event_by_event_each_block_is_a_read() -> None:
    blocks = [b"\xef\xbb\xbfdata: Gr", b"event: ping\n\n", b"data: first\r\n: ", b"data: up"]
    reads = deliver(STREAM)
    assert len(reads) == len(blocks)
    assert all(read.startswith(block) for read, block in zip(reads, blocks, strict=True))


@pytest.mark.parametrize("cut", [-1, len(STREAM), 10_000])
def test_a_place_outside_is_refused(cut: int) -> None:
    with pytest.raises(UsageError, match=f"cut={cut}: a stream of 96 bytes"):
        deliver(STREAM, cut)


def test_an_unknown_delivery_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="'by post' is none of event by event, all at once, byte"):
        deliver(STREAM, 1, "by post")


def test_nothing_at_all_can_be_delivered() -> None:
    assert [len(deliver(b"", 0, delivery)) for delivery in DELIVERIES] == [0, 1, 0]
    assert all(failing(reader, b"") == () for reader in NAIVE)


# --- What can be seen -----------------------------------------------------------------------------


@given(st.binary(max_size=40))
def test_the_units_of_any_bytes_are_those_bytes(data: bytes) -> None:
    found = list(units(data))
    assert b"".join(unit.data for unit in found) == data
    assert [unit.at for unit in found] == [
        sum(len(u.data) for u in found[:n]) for n in range(len(found))
    ]
    assert all(unit.sign and unit.sign.isprintable() for unit in found)


@given(st.text(max_size=40))
def test_what_is_shown_is_one_line_of_characters_that_can_be_seen(text: str) -> None:
    assert shown(text).isprintable()


@pytest.mark.parametrize(
    ("stream", "cut", "said"),
    [
        (b"data: a\n\n", 0, "not cut"),
        (b"data: a\n\n", 4, "inside a line"),
        (b"data: a\n\n", 7, "inside a line"),
        (b"data: a\n\n", 8, "between two lines"),
        (b"data: a\n\ndata: b", 9, "between two blocks"),
        (b"\ndata: b", 1, "between two blocks"),
        (b"a\r\nb", 2, "between CR and LF"),
        (b"a\r\nb", 3, "between two lines"),
        (b"a\r\rb", 2, "between two lines"),
        (b"a\r\rb", 3, "between two blocks"),
        (b"a\r\n\r\nb", 5, "between two blocks"),
        ("ü".encode(), 1, "inside ü, which has 2 bytes"),
        ("\u2028".encode(), 2, "inside U+2028, which has 3 bytes"),
        (b"\xef\xbb\xbfa", 1, "inside the byte order mark, which has 3 bytes"),
        (b"\xff\xffa", 1, "inside a line"),
    ],
)
def test_a_place_is_said_in_words(stream: bytes, cut: int, said: str) -> None:
    assert where(stream, cut) == said


# --- What the lesson says besides -----------------------------------------------------------------


@given(streams, st.lists(st.integers(0, 500), max_size=12))
def test_the_solution_gives_the_same_lines_for_any_number_of_cuts(
    stream: bytes, cuts: list[int]
) -> None:
    found: list[str] = []
    kept = b""
    for read in in_reads(stream, cuts):
        lines, kept = lesson_02.complete_lines(kept, read)
        found += lines
    ends = re.compile(rb"\r\n|\r(?!\n)(?=.)|\n", re.DOTALL)  # a CR at the very end still waits
    *whole, last = ends.split(stream)
    assert ([line.encode() for line in found], kept) == (whole, last)


@pytest.mark.parametrize(
    ("bounds", "named"),
    [
        (Bounds(seconds=300), "seconds"),
        (Bounds(frames=100), "frames"),
        (Bounds(bytes=2000), "bytes"),
    ],
    ids=["seconds", "frames", "bytes"],
)
def test_a_stream_that_never_ends_is_ended_by_each_bound_alone(bounds: Bounds, named: str) -> None:
    ended = judge(faults.never_end(synth.change_label(), after=12), bounds=bounds)
    assert ended.state == "INCOMPLETE"
    assert ended.attempt.why == f"the stream ran over the bound on {named}"
    assert ended.frames <= 100 and ended.bytes <= 5000
