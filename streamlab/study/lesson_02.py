"""Lesson 02, "Is a network read an event?": its questions, and its exercise."""

from __future__ import annotations

from streamlab.study.tasks import Case, Exercise, Option, Question, Wrong

__all__ = ["EXERCISES", "QUESTIONS"]

QUESTIONS = (
    Question(
        "02-read",
        "The same 39 bytes come once more, but in two reads: the first 20 bytes, then the other "
        "19. What does `texts` give?",
        (
            Option(
                "Three texts: it is the same stream.",
                "It is, and that is the result one should get. But `texts` knows nothing about "
                "events. It makes one text of every read, whatever is in it.",
            ),
            Option(
                "One text, and an exception for the event that was cut.",
                "An exception would be a help. But every byte here is fine text, and "
                "`removeprefix` says nothing where there is no such prefix.",
            ),
            Option(
                "Two texts, and neither is an event.",
                "It makes one text of every read. The first read holds an event and five bytes of "
                "the next one, and the second read the rest.",
                right=True,
            ),
            Option(
                "One text, in which everything is joined.",
                "You would get that if everything came in one single read. Nothing here joins two "
                "reads, and that is half of the mistake.",
            ),
        ),
        "One read, one event?",
    ),
    Question(
        "02-half",
        "The reads come event by event again, but the first one is cut after 9 bytes, between the "
        'two bytes of `ü`. Somebody decodes each read with `errors="replace"`, and joins the '
        "texts. What becomes of `Grüße`?",
        (
            Option(
                "`Gr\ufffd\ufffdße`",
                "Each read ends up with half a character that is no character, so each gets a "
                "replacement sign. The two bytes are gone, and no later step can bring them back.",
                right=True,
            ),
            Option(
                "`Grüße`",
                "The bytes are all there, and joined in the right order. But `bytes.decode` "
                "begins anew with each read. It does not know that half a character came before.",
            ),
            Option(
                "`Grße`",
                'That is what `errors="ignore"` does: no sign that anything was lost. With '
                "`replace` there is at least something to see.",
            ),
            Option(
                "A `UnicodeDecodeError`",
                "You get that without `errors`, and it is the better of the two: it is loud. "
                "People write `replace` to be rid of it.",
            ),
        ),
        "Half a character",
    ),
    Question(
        "02-places",
        "The reader `decode_each_read` keeps all the text, and finds its lines and blocks well. It "
        "only decodes each read by itself, with `read.decode()`. At how many of the 95 places "
        "does a cut make it fail?",
        (
            Option(
                "At none: it keeps everything.",
                "It keeps all the text. What it does not keep is the bytes that are no text yet, "
                "because the rest of their character is in the next read.",
            ),
            Option(
                "At all 95.",
                "Then somebody would notice on the first day. Most characters are a single byte, "
                "and a cut beside one does no harm.",
            ),
            Option(
                "At about half of them.",
                "It feels like that when it happens. But in this stream only five characters have "
                "more than one byte, and only the places inside them matter.",
            ),
            Option(
                "At 9.",
                "A character of two bytes has one place inside it, one of four has three. Here "
                "they add up to 9. A stream in English has none, so a test in English finds none.",
                right=True,
            ),
        ),
        "Where may a read end?",
    ),
    Question(
        "02-last",
        "These bytes come, and then the connection ends cleanly: an event with its blank line, and "
        'then `data: {"amount": 1`. What does an event-stream decoder give?',
        (
            Option(
                "Two events.",
                "Many hand-written readers do that: what is left in the buffer must be the last "
                'event. Here it would be `{"amount": 1`, and nobody knows whether more digits '
                "were to come.",
            ),
            Option(
                "One event; the rest is no event.",
                "Only a blank line completes an event. The standard discards the rest. streamlab "
                "does not give it out either, but reports what it would have been.",
                right=True,
            ),
            Option(
                "One event, and then it raises.",
                "The end of a stream is nothing that a decoder must raise on: it comes with every "
                "stream. Whether the answer was whole is for a later step to judge.",
            ),
            Option(
                "Nothing: the stream is broken.",
                "What was complete stays complete. The first event had its blank line, and was "
                "given out at that moment, before anybody could know how it would go on.",
            ),
        ),
        "The last block",
    ),
    Question(
        "02-bounds",
        "The server stops in the middle of its answer, and from then on sends a `ping` every 15 "
        "seconds. Your HTTP client has a timeout of 60 seconds for each read. When does it "
        "give up?",
        (
            Option(
                "After 60 seconds.",
                "The name suggests it. But it is 60 seconds without any bytes, and each ping "
                "starts them anew.",
            ),
            Option(
                "After the fourth ping: that makes 60 seconds.",
                "That would be a timeout for the whole answer. The one between two reads never "
                "gets beyond 15 seconds.",
            ),
            Option(
                "Not as long as the pings come.",
                "Bytes arrive, so no read takes too long. Only a bound on the whole can end this.",
                right=True,
            ),
            Option(
                "At the first ping that follows another.",
                "Two pings in a row are no mistake: a model may think for a minute. A ping shows "
                "that the connection is alive, and nothing more.",
            ),
        ),
        "A preview must not grow for ever",
    ),
)

Answer = tuple[list[str], bytes]

#: (name, what was kept, the read, the lines, what is kept now, why)
_CASES: tuple[tuple[str, bytes, bytes, list[str], bytes, str], ...] = (
    (
        "one whole line",
        b"",
        b"data: a\n",
        ["data: a"],
        b"",
        "The line is complete, so it is given, without its line end, and nothing is kept.",
    ),
    (
        "half a line",
        b"",
        b"data: a",
        [],
        b"data: a",
        "No line end has come, so there is no line yet. Keep the bytes for the next call.",
    ),
    (
        "the other half, and the start of another line",
        b"data: ",
        b"a\ndata",
        ["data: a"],
        b"data",
        "What was kept comes before the new read; what follows the last line end is kept.",
    ),
    (
        "three lines, one of them blank",
        b"",
        b"data: a\n\ndata: b\n",
        ["data: a", "", "data: b"],
        b"",
        "A blank line is a line: it is what ends an event.",
    ),
    (
        "half a character",
        b"",
        b"data: \xc3",
        [],
        b"data: \xc3",
        "Half a character cannot be decoded. There is no line yet anyway: keep the bytes as they "
        "are.",
    ),
    (
        "its other half",
        b"data: \xc3",
        b"\xbc\n",
        ["data: ü"],
        b"",
        "Kept bytes and new bytes together make the character. Decode the whole line.",
    ),
    (
        "CRLF",
        b"",
        b"data: a\r\n\r\n",
        ["data: a", ""],
        b"",
        "CRLF is one line end, and no part of the line.",
    ),
    (
        "a CR is the last byte",
        b"",
        b"data: a\r",
        [],
        b"data: a\r",
        "An LF may follow in the next read, and would belong to this CR. So the line waits.",
    ),
    (
        "and its LF is the next one",
        b"data: a\r",
        b"\ndata: b\n",
        ["data: a", "data: b"],
        b"",
        "CR and LF came in two reads, and are one line end still.",
    ),
    (
        "CR alone",
        b"",
        b"data: a\rdata: b\n",
        ["data: a", "data: b"],
        b"",
        "A CR without LF ends a line too.",
    ),
    (
        "U+2028",
        b"",
        "data: a\u2028b\n".encode(),
        ["data: a\u2028b"],
        b"",
        "Only CR and LF end a line. `str.splitlines` knows eight more; `bytes.splitlines` does "
        "not.",
    ),
    (
        "spaces at the end of a line",
        b"",
        b"data: a  \n",
        ["data: a  "],
        b"",
        "They are data: a model that writes code means its spaces.",
    ),
    (
        "a read without bytes",
        b"data: a",
        b"",
        [],
        b"data: a",
        "Nothing came, so nothing changes: what was kept is kept.",
    ),
    (
        "nothing kept, and a read without bytes",
        b"",
        b"",
        [],
        b"",
        "There is no piece at all here, so there is no last one: no lines, and nothing to keep.",
    ),
)


def _cases() -> tuple[Case, ...]:
    return tuple(
        Case(name, (kept, read), (lines, now), if_wrong)
        for name, kept, read, lines, now, if_wrong in _CASES
    )


def complete_lines(kept: bytes, read: bytes) -> Answer:
    """The solution: split the bytes, keep the last line until its end is sure, decode the rest."""
    lines = (kept + read).splitlines(keepends=True)
    last = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
    return [line.rstrip(b"\r\n").decode() for line in lines], last


# --- Known-wrong answers --------------------------------------------------------------------------


def _at_lf(data: bytes) -> Answer:
    *lines, last = data.split(b"\n")
    return [line.decode() for line in lines], last


def _decoded_first(data: bytes, errors: str) -> Answer:
    *lines, last = data.decode("utf-8", errors).split("\n")
    return lines, last.encode()


def _cr_is_an_end_at_once(kept: bytes, read: bytes) -> Answer:
    return _at_lf((kept + read).replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


def _str_splitlines(kept: bytes, read: bytes) -> Answer:
    lines, last = complete_lines(kept, read)
    return [part for line in lines for part in (line.splitlines() or [""])], last


def _stripped(kept: bytes, read: bytes) -> Answer:
    lines, last = complete_lines(kept, read)
    return [line.strip() for line in lines], last


def _last_of_no_pieces(kept: bytes, read: bytes) -> Answer:
    pieces = (kept + read).splitlines(keepends=True)
    last = b"" if pieces[-1].endswith(b"\n") else pieces.pop()
    return [piece.rstrip(b"\r\n").decode() for piece in pieces], last


def _without_blank(kept: bytes, read: bytes) -> Answer:
    lines, last = complete_lines(kept, read)
    return [line for line in lines if line], last


EXERCISES = (
    Exercise(
        "02-ex",
        _cases,
        complete_lines,
        (
            Wrong("it returns nothing", lambda kept, read: None, "one whole line"),
            Wrong(
                "each read is a line",
                lambda kept, read: ([read.decode().rstrip("\n")], b""),
                "half a line",
            ),
            Wrong(
                "what was kept is forgotten",
                lambda kept, read: _at_lf(read),
                "the other half, and the start of another line",
            ),
            Wrong("blank lines are left out", _without_blank, "three lines, one of them blank"),
            Wrong(
                "everything is decoded first",
                lambda kept, read: _decoded_first(kept + read, "strict"),
                "half a character",
            ),
            Wrong(
                "everything is decoded first, replacing",
                lambda kept, read: _decoded_first(kept + read, "replace"),
                "half a character",
            ),
            Wrong("only LF ends a line", lambda kept, read: _at_lf(kept + read), "CRLF"),
            Wrong("CR ends a line at once", _cr_is_an_end_at_once, "a CR is the last byte"),
            Wrong(
                "CRLF is looked for in each read",
                lambda kept, read: _at_lf(kept + read.replace(b"\r\n", b"\n")),
                "and its LF is the next one",
            ),
            Wrong(
                "CR alone ends no line",
                lambda kept, read: _at_lf((kept + read).replace(b"\r\n", b"\n")),
                "CR alone",
            ),
            Wrong("str.splitlines finds the lines", _str_splitlines, "U+2028"),
            Wrong("the lines are stripped", _stripped, "spaces at the end of a line"),
            Wrong(
                "no bytes are taken for the end",
                lambda kept, read: complete_lines(kept, read) if read else ([], b""),
                "a read without bytes",
            ),
            Wrong(
                "the last of no pieces is looked at",
                _last_of_no_pieces,
                "nothing kept, and a read without bytes",
            ),
        ),
    ),
)
