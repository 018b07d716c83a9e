"""What the server sent for one square of the report card, frame by frame, beside the good stream.

A `Row` is a frame with a mark: sent as it should be (" "), changed ("~"), put in ("+"), or never
sent ("-"). So the place of a fault is where the marks are. A fault that changes no frame is in how
the connection stops, and that has a sentence of its own.

Read next: `card_faults.py`, which makes them; `widgets/card.py`, which shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from streamlab.analysis.judge import judge
from streamlab.study.card_faults import CARD_FAULTS
from streamlab.study.card_streams import GOOD

__all__ = ["ENDS", "Frames", "Row", "frames_of"]

#: How the connection stops, by ending and framing.
ENDS = {
    ("eof", "chunked"): "HTTP's own end of the body: a clean end",
    ("eof", "length"): "all of the announced length came: a clean end",
    ("cut", "chunked"): "the connection closes, before HTTP's own end of the body",
    ("cut", "close"): "the connection closes, and nothing else marks the body's end here",
    ("reset", "chunked"): "the connection is torn down (TCP RST)",
    ("timeout", "chunked"): "nothing more comes, and nobody hangs up",
}


class Row(NamedTuple):
    """A frame as text. Of a changed one, `middle` is what is new, and `gone` what stood there."""

    mark: str
    before: str
    middle: str = ""
    after: str = ""
    gone: str = ""


class Frames(NamedTuple):
    """What was sent, what should have been, and what streamlab makes of it."""

    rows: tuple[Row, ...]
    end: str  #: how the connection stopped
    state: str
    why: str


def frames_of(fault: str, wire: str) -> Frames | None:
    """One fault on one wire; None where that wire has no such thing."""
    sent = CARD_FAULTS[fault].sent(GOOD[wire])
    if sent is None:
        return None
    outcome = judge(sent.recording(wire))
    rows = tuple(_rows(_split(GOOD[wire].data), _split(sent.data)))
    end = ENDS[sent.ending, sent.framing]
    return Frames(rows, end, outcome.state.value, outcome.attempt.why)


def _split(data: bytes) -> list[str]:
    """The frames as text; a byte that is no UTF-8 stands as its escape."""
    found = re.findall(rb".*?\n\n|.+\Z", data, re.DOTALL)
    return [part.decode("utf-8", "backslashreplace") for part in found]


def _rows(good: list[str], sent: list[str]) -> Iterator[Row]:
    for kind, a, b, c, d in SequenceMatcher(None, good, sent, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (Row(" ", frame) for frame in sent[c:d])
        else:
            yield from _replaced(good[a:b], sent[c:d])


def _replaced(good: list[str], sent: list[str]) -> Iterator[Row]:
    """What stands where other frames should stand: the same but for some characters, or new."""
    left = list(good)
    for frame in sent:
        changed = _changed(left[0], frame) if left else None
        if changed:
            del left[0]
        yield changed or Row("+", "", frame)
    yield from (Row("-", "", gone=frame) for frame in left)


def _changed(old: str, new: str) -> Row | None:
    """A frame that is another one but for some characters; None where they share too little."""
    least = min(len(old), len(new))
    head = next((n for n in range(least) if old[n] != new[n]), least)
    most = least - head
    tail = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    if 2 * (head + tail) < least:
        return None
    cut = len(new) - tail
    return Row("~", new[:head], new[head:cut], new[cut:], old[head : len(old) - tail])
