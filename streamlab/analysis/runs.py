"""All that many frames stated, with pieces of one part that follow each other put together.

The readers give runs where they can (`wire/runs.py`); what came as single events is put together
here. Who does not look at each event, only at what all come to, takes a run at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from streamlab.wire.events import Event, InputDelta, TextDelta, ThinkingDelta, UsageReported
from streamlab.wire.runs import Item, Run

__all__ = ["Other", "Whole", "runs_of"]

DELTAS = frozenset({TextDelta, ThinkingDelta, InputDelta})


class Whole(NamedTuple):
    """Pieces of one part, one after the other; counts of tokens may stand among them."""

    kind: Any  #: the class of the pieces
    segment: str
    texts: list[str]
    ends: list[int]  #: of each text: the offset just after the frame that stated it
    counts: list[tuple[int, UsageReported]]  #: each with the number of texts before it


class Other(NamedTuple):
    """Any other event, the offset just after its frame, and all that this one stated."""

    event: Event
    end: int
    beside: tuple[Event, ...]


def runs_of(items: Sequence[Item]) -> Iterator[Whole | Other]:
    """All that was read, in order; but a count may come before the texts around it."""
    kind: Any = None
    segment = ""
    texts: list[str] = []
    ends: list[int] = []
    counts: list[tuple[int, UsageReported]] = []
    end = 0
    for item in items:
        if isinstance(item, Run):
            if kind is not None:
                yield Whole(kind, segment, texts, ends, counts)
                kind = None
            behind = [(place + 1, event) for place, event in item.counts]
            yield Whole(item.kind, item.segment, item.texts, item.ends, behind)
            continue
        frame, events = item
        end = end if frame is None else frame.end
        for event in events:
            cls: Any = type(event)
            if cls is kind and event.segment == segment:  # type: ignore[union-attr]
                texts.append(event.text)  # type: ignore[union-attr]
                ends.append(end)
            elif cls is UsageReported and kind is not None:
                counts.append((len(texts), event))  # type: ignore[arg-type]
            else:
                if kind is not None:
                    yield Whole(kind, segment, texts, ends, counts)
                if cls not in DELTAS:
                    kind = None
                    yield Other(event, end, events)
                    continue
                kind, segment = cls, event.segment  # type: ignore[union-attr]
                texts, ends, counts = [event.text], [end], []  # type: ignore[union-attr]
    if kind is not None:
        yield Whole(kind, segment, texts, ends, counts)
