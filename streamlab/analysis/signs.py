"""What a stream showed beside its turn: where its frames were, and how its bytes were dressed.

A turn keeps what an answer says. A diagnosis also asks where in the bytes a frame stood, whether a
frame was the one before it once more, whether the answer began anew, and what a strict client would
stumble over. `Noting` keeps that, in bounded memory, while a stream is judged. What it finds does
not depend on how the bytes were cut. Read next: `doctor/diagnosis.py`, which asks.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from streamlab.consumer.turn import EMPTY, Turn
from streamlab.streams.recording import Chunk
from streamlab.wire.events import (
    Ambiguous,
    BoundExceeded,
    MessageCompleted,
    MessageStarted,
    Problem,
    ProviderError,
    SegmentStarted,
    StopReported,
    Unknown,
    UsageReported,
)
from streamlab.wire.runs import Item, Run, frames_in, last_frame
from streamlab.wire.sse import Frame

__all__ = ["Noting", "Signs"]

#: First bytes of a stream that are kept, and places and repeated frames; a stream has few.
MAX_HEAD, MAX_PLACES, MAX_REPEATS = 4096, 200, 20

#: Largest first frame that is compared with the later ones, in bytes.
MAX_FIRST = 64 * 1024

#: Bytes of a frame that are kept, or looked at, for what they say of an error or a role.
MAX_SAID = 2000

#: Bytes of the last read that are looked at again with the next one.
TAIL = 2

#: Characters that end a line for some readers, and are data in an event stream (WHATWG, 9.2.6).
SEPARATORS = (b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85")

#: Events whose frame is remembered.
PLACED = frozenset(
    {
        *(Problem, Ambiguous, ProviderError, StopReported, Unknown),
        *(BoundExceeded, MessageStarted, MessageCompleted),
    }
)


class Signs(msgspec.Struct, frozen=True):
    """What a stream showed beside its turn; frames are numbers, 0 where there is none."""

    head: bytes = b""  #: the first bytes
    first_t: float | None = None  #: when they came; None without times
    places: dict[int, int] = {}  #: frame -> offset of its first byte, of those that matter
    last: tuple[int, int] = (0, 0)  #: the last frame, and the offset of its first byte
    stop: int = 0  #: the frame of the stop reason
    again: int = 0  #: from which frame on the answer's first two frames came again, in turn
    role: int = 0  #: the frame that began another message in the middle: a new id, and a role
    repeats: tuple[int, ...] = ()  #: frames with a problem that are, in bytes, the one before
    fell: int = 0  #: the frame whose count of output tokens is below an earlier one
    settled: int = 0  #: how many problems were known before the stream ended
    error: bytes = b""  #: the payload of the first error that came in a frame
    error_name: str = ""  #: that frame's event name
    unframed: bool = False  #: whether the first error was no frame of an event stream
    odd: dict[str, int] = {}  #: a kind of line or character -> the offset of the first one
    unknown: bytes = b""  #: the payload of the last frame, where that is no known event


class Noting:
    """Note the signs of one stream: `feed` it each read, say when it is `over`, ask for `signs`."""

    def __init__(self) -> None:
        self._head = b""
        self._first_t: float | None = None
        self._turn: Turn = EMPTY
        self._places: dict[int, int] = {}
        self._last: Frame | None = None
        self._opening: list[bytes] = []  # the first two frames
        self._matched: Frame | None = None
        self._again = self._role = self._stop = self._fell = self._settled = 0
        self._output = 0
        self._repeats: list[int] = []
        self._error: tuple[bytes, str, bool] | None = None
        self._unknown: Frame | None = None
        self._renamed = 0  # the frame whose id of the response is a new one
        self._odd: dict[str, int] = {}
        self._at = 0
        self._tail = b""

    def feed(self, chunk: Chunk, reads: Sequence[Item], turn: Turn) -> None:
        """Take one read, or many as one, what it stated, and the turn after it."""
        t, data = chunk
        size = len(data)
        if self._at < MAX_HEAD:
            self._first_t = self._first_t if self._at else t
            self._head += data[: MAX_HEAD - self._at]
        if "separator" not in self._odd and not (data.isascii() and self._tail.isascii()):
            seen, at = self._tail + data, self._at - len(self._tail)
            found = [place for place in map(seen.find, SEPARATORS) if place >= 0]
            if found:
                self._odd["separator"] = at + min(found)
        self._tail = data[-TAIL:] if size >= TAIL else (self._tail + data)[-TAIL:]
        self._at += size
        if reads:
            self._take(reads, turn)

    def over(self, reads: Sequence[Item], turn: Turn, beside_data: int | None) -> None:
        """Take what the end itself stated, and where the first line is that is no data.

        What the end found wrong is about the end.
        """
        if beside_data is not None:
            self._odd["line"] = beside_data
        self._settled = len(self._turn.facts.problems)
        self._take(reads, turn)

    def signs(self) -> Signs:
        """What was noted."""
        last = self._last
        error, name, unframed = self._error or (b"", "", False)
        return Signs(
            head=self._head,
            first_t=self._first_t,
            places=self._places,
            last=(0, 0) if last is None else (last.number, last.start),
            stop=self._stop,
            again=self._again,
            role=self._role or (self._fell if self._fell == self._renamed else 0),
            repeats=tuple(self._repeats),
            fell=self._fell,
            settled=self._settled,
            error=error,
            error_name=name,
            unframed=unframed,
            odd=self._odd,
            unknown=b"" if last is None or self._unknown is not last else last.data[:MAX_SAID],
        )

    # ------------------------------------------------------------------ frames

    def _take(self, reads: Sequence[Item], turn: Turn) -> None:
        before, self._turn = self._turn, turn
        self._look(reads)
        known = len(before.facts.problems)
        if len(turn.facts.problems) > known:
            self._find(reads, turn.facts.problems[known:])
        if len(self._opening) < 2:
            self._open([*frames_in(reads)])
        elif not self._again:
            self._hear(reads)
        self._last = last_frame(reads) or self._last

    def _hear(self, reads: Sequence[Item]) -> None:
        """Whether the first two frames come again, one right after the other."""
        first, second = self._opening
        for item in reads:
            again = self._matched is not None
            if isinstance(item, Run) and first not in item.data and not again:
                continue
            for frame in frames_in((item,)):
                if self._matched is not None and frame.data == second:
                    self._again = self._matched.number
                    self._put(self._matched)
                    return
                self._matched = frame if frame.data == first else None

    def _open(self, frames: list[Frame]) -> None:
        """Keep the first two frames that differ, and hear whether they come again."""
        for number, frame in enumerate(frames, 1):
            if frame.data in self._opening or len(frame.data) > MAX_FIRST:
                continue
            if not self._opening:
                self._put(frame)
            self._opening.append(frame.data)
            if len(self._opening) == 2:
                self._hear([(frame, ()) for frame in frames[number:]])
                return

    def _look(self, reads: Sequence[Item]) -> None:
        """Look at each event that says more than what it appends."""
        for number, item in enumerate(reads):
            if isinstance(item, Run):
                self._count_all(item)
                continue
            frame, events = item
            for event in events:
                kind = type(event)
                if isinstance(event, UsageReported):
                    self._count(frame, event.tokens.output)
                elif kind in PLACED:
                    self._place(frame, event, last_frame(reads, number) or self._last)
                elif isinstance(event, SegmentStarted) and event.kind == "tool_call":
                    self._put(frame)

    def _count_all(self, run: Run) -> None:
        """Take the counts of a run, which rise: then the last one tells."""
        found = [event.tokens.output for _, event in run.counts]
        rising = [self._output, *(count for count in found if count is not None)]
        if sorted(rising) == rising:
            self._output = rising[-1]
            return
        for place, event in run.counts:
            self._count(run.frame(place), event.tokens.output)

    def _count(self, frame: Frame | None, output: int | None) -> None:
        """A count of output tokens, which are totals so far: where is one below an earlier one?"""
        if output is None:
            return
        if output < self._output:
            self._fall(frame)
        else:
            self._output = output

    def _find(self, reads: Sequence[Item], problems: tuple[Problem, ...]) -> None:
        """The frames of problems that no event states, since only the turn sees them."""
        numbers = {problem.at for problem in problems}
        for frame in frames_in(reads):
            if frame.number in numbers:
                self._put(frame)

    def _put(self, frame: Frame | None) -> None:
        if frame is not None and len(self._places) < MAX_PLACES:
            self._places[frame.number] = frame.start

    def _place(self, frame: Frame | None, event: object, last: Frame | None) -> None:
        self._put(frame)
        if isinstance(event, StopReported):
            self._stop = self._stop or event.at
        elif isinstance(event, ProviderError):
            self._state(frame)
        elif isinstance(event, Unknown):
            self._unknown = frame or self._unknown
        elif frame is not None and isinstance(event, Problem | Ambiguous):
            again = last is not None and last.data == frame.data and last.number != frame.number
            if again and len(self._repeats) < MAX_REPEATS:
                self._repeats.append(frame.number)
            rule = getattr(event, "rule", "")
            if rule == "response-id-changed":
                self._renamed = self._renamed or frame.number
            if rule == "id-changed" and frame.number > 2 and b'"role"' in frame.data[:MAX_SAID]:
                self._role = self._role or frame.number

    def _state(self, frame: Frame | None) -> None:
        """An error: in a frame, or beside the framing."""
        if self._error is None:
            bare = frame is None or (frame.number == 1 and self._head.lstrip()[:1] in (b"{", b"["))
            data, name = (b"", "") if frame is None else (frame.data[:MAX_SAID], frame.event)
            self._error = (data, name, bare)

    def _fall(self, frame: Frame | None) -> None:
        """Note where a count is first below an earlier one: counts are totals so far."""
        if frame is not None and not self._fell:
            self._fell = frame.number
            self._put(frame)
