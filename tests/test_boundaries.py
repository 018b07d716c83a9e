"""Where a read may end: ours gives the same at every split; the naive ones fail as is taught."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import faults, judge, synth
from streamlab.errors import UsageError
from streamlab.streams.recording import Recording
from streamlab.streams.server import FaultServer
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
    sdk_reader,
    shown,
    sse_decoder,
    units,
    where,
)
from streamlab.study.naive_readers import NAIVE, Reader
from streamlab.study.sdk import ask_sdk
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
    assert outcome(lambda reads: [1, "a"], [b"abc"]).events == ("1", "a")  # type: ignore[list-item]


class Silent(Exception):
    """An exception that cannot even say what it is about."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class NoText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


@pytest.mark.parametrize("kind", [Silent, NoText])
def test_an_exception_that_cannot_be_said_is_an_outcome_too(kind: type[Exception]) -> None:
    def reader(reads: Sequence[bytes]) -> list[str]:
        raise kind

    assert outcome(reader, [b"a"]) == Outcome(error=f"{kind.__name__}: (it has no text)")


def test_an_outcome_is_bounded_whatever_a_reader_gives() -> None:
    def long_words(reads: Sequence[bytes]) -> list[str]:
        raise ValueError("a" * 100_000)

    assert len(outcome(long_words, [b"data: a\n\n"]).error) == 200
    for reader in (lambda _: itertools.repeat("a"), lambda _: ["a" * 10**6], lambda _: ["a"] * 99):
        came = outcome(reader, [b"data: a\n\n"])  # type: ignore[arg-type]
        assert came != Outcome(("a",))
        assert sum(map(len, came.events)) <= 10 and len(came.events) <= 10


@given(streams)
def test_no_right_answer_is_cut_by_the_bound(stream: bytes) -> None:
    assert outcome(sse_decoder, [stream]) == Outcome(tuple(sse_decoder([stream])))


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
    with pytest.raises(UsageError, match=f"cut={cut}: a stream of 96 bytes allows 0 .* to 95"):
        deliver(STREAM, cut)


@pytest.mark.parametrize("cut", [-1, 9, 10_000])
def test_a_place_outside_has_no_words(cut: int) -> None:
    with pytest.raises(UsageError, match=rf"cut={cut}: a stream of 9 bytes allows 0 .* to 8"):
        where(b"data: a\n\n", cut)


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


def test_the_solution_waits_for_what_follows_a_cr_and_the_decoder_does_not() -> None:
    """The lesson says so: whoever keeps that CR must flush it when the stream ends."""
    ends_in_cr = b"data: a\r\r"
    assert lesson_02.complete_lines(b"", ends_in_cr) == (["data: a"], b"\r")
    assert lesson_02.complete_lines(b"\r", b"\n") == ([""], b"")
    decoder = SSEDecoder()
    assert [frame.text for frame in decoder.feed(ends_in_cr)] == ["a"]
    assert [frame.text for frame in decoder.feed(b"\ndata: b\n\n")] == ["b"]


# --- What other software does ---------------------------------------------------------------------


def lesson_is_out_of_date(what: str) -> str:
    return f"{what}: if that is an improvement, be glad, and write lesson 02's `my-sdk` anew."


@each_delivery
def test_the_sdks_decoder_gives_the_same_at_every_cut(delivery: str) -> None:
    whole = STREAM.removeprefix(b"\xef\xbb\xbf")
    found = failing(sdk_reader, whole, delivery)
    assert found == (), lesson_is_out_of_date(f"anthropic {anthropic.__version__} fails at {found}")


def test_the_sdks_decoder_loses_the_first_event_after_a_byte_order_mark() -> None:
    came = set(outcomes(sdk_reader))
    assert came == {Outcome(EXPECTED[1:])}, lesson_is_out_of_date(
        f"anthropic {anthropic.__version__} gives {came}"
    )


def test_through_a_client_the_sdk_loses_it_too() -> None:
    marked = Recording.from_bytes(b"\xef\xbb\xbf" + synth.six_events().data)
    heard = ask_sdk(marked).names
    assert heard[0] == "content_block_start", lesson_is_out_of_date(f"the SDK gave {heard}")


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_an_http_library_cuts_lines_at_u2028(library: str) -> None:
    http = pytest.importorskip(library)
    lines = list(http.Response(200, content=b"data: up\xe2\x80\xa8down\n\n").iter_lines())
    assert lines == ["data: up", "down", ""], lesson_is_out_of_date(
        f"{library} {http.__version__} gives {lines}"
    )


def test_the_sdk_keeps_pings_to_itself_so_a_check_inside_the_loop_does_not_run() -> None:
    flooded = ask_sdk(faults.ping_flood(synth.six_events(), after=3, count=4)).names
    assert "ping" not in flooded, lesson_is_out_of_date(f"the SDK's loop gives {flooded}")


async def _deadline(url: str) -> int:
    """Events that came before the deadline of three seconds around the whole loop."""
    events = 0
    async with anthropic.DefaultAsyncHttpxClient(trust_env=False) as direct:
        client = anthropic.AsyncAnthropic(base_url=url, api_key="none", http_client=direct)
        messages: Any = [{"role": "user", "content": "Label W-7."}]
        with pytest.raises(TimeoutError):
            async with (
                asyncio.timeout(3),
                client.messages.stream(model="any", max_tokens=9, messages=messages) as stream,
            ):
                async for _ in stream:
                    events += 1
    return events


def test_a_deadline_around_the_whole_loop_ends_what_pings_keep_alive() -> None:
    endless = faults.never_end(synth.change_label(), after=12, every=0.1)
    with FaultServer(endless, speed=1.0) as server:
        assert asyncio.run(_deadline(server.url)) > 0


# --- The bounds -----------------------------------------------------------------------------------


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
