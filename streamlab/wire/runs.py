"""Runs: what a whole read brought, where nine frames in ten append to the same part.

    Blocks:  usual blocks of one event name, one after the other, before they are frames
    Run:     those of them whose pieces all belong to one open part

Who watches a stream wants a frame and its events, one by one; who only wants what all of them come
to (a scan of ten thousand recordings) saves the objects. `tests/test_runs.py` holds the two ways to
the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .events import Event, UsageReported
from .sse import Blocks, Frame

if TYPE_CHECKING:
    from .dialect import Dialect
    from .unrecognised import Unrecognised

__all__ = ["Item", "Run", "frames_in", "last_frame", "runs_in"]


class Run(NamedTuple):
    """Pieces of one part, one a frame, one after the other; each frame may count tokens too."""

    kind: Any  #: what each piece is: TextDelta, ThinkingDelta or InputDelta
    segment: str
    texts: list[str]  #: never empty; a text may be
    blocks: Blocks
    first: int  #: which of the blocks has the first text
    counts: list[tuple[int, UsageReported]]  #: which of the texts it came with, and the counts

    @property
    def ends(self) -> list[int]:
        """Of each text: the offset just after its frame."""
        return self.blocks.ends(self.first, self.first + len(self.texts))

    @property
    def data(self) -> tuple[bytes, ...]:
        """Of each text: what its frame held."""
        return self.blocks.data[self.first : self.first + len(self.texts)]

    def frame(self, number: int) -> Frame:
        """The frame of one of the texts; -1 is the last one."""
        return self.blocks.frame(self.first + number % len(self.texts))

    def frames(self) -> Iterator[Frame]:
        """The frame of each text."""
        return map(self.frame, range(len(self.texts)))


#: What was read: a run, or a frame and its events; events of the stream as a whole have no frame.
Item = Run | tuple[Frame | None, tuple[Event, ...]]


def runs_in(blocks: Blocks, reader: Dialect | Unrecognised) -> Iterator[Item]:
    """Runs as long as there are some, then a frame, then runs again."""
    at = 0
    while at < len(blocks.data):
        runs = reader.runs(blocks, at)
        yield from runs
        at += sum(len(run.texts) for run in runs)
        if at < len(blocks.data):
            frame = blocks.frame(at)
            yield frame, reader.read(frame)
            at += 1


def frames_in(items: Sequence[Item]) -> Iterator[Frame]:
    """The frames of what was read, one by one."""
    for item in items:
        if isinstance(item, Run):
            yield from item.frames()
        elif item[0] is not None:
            yield item[0]


def last_frame(items: Sequence[Item], stop: int | None = None) -> Frame | None:
    """The last of them, or the last before one of the items; None where there is none."""
    for number in range((len(items) if stop is None else stop) - 1, -1, -1):
        item = items[number]
        frame = item.frame(-1) if isinstance(item, Run) else item[0]
        if frame is not None:
            return frame
    return None
