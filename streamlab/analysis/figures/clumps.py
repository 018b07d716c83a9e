"""Buffering clumps: content events stacked where they arrived together, after a wait or not.

Something on the way that collects events shows as silence, then a tall stack, and again; a stream
that is passed on as it is made is a low hedge. The verdict is that of `metrics.py`, from arrival
times alone, so a recording without times is left out, and said to be.

Read next: `aligned.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil
from typing import NamedTuple

from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, fitted
from streamlab.analysis.figures.flow import Flow, flows_of, timed
from streamlab.analysis.figures.phase_look import BIG, hatch, outline
from streamlab.analysis.figures.scale import HEIGHT, Scale, joined
from streamlab.analysis.given import Many
from streamlab.analysis.lanes import ticks
from streamlab.analysis.meter import DIGITS
from streamlab.analysis.metrics import (
    FASTEST,
    HELD_PART,
    HELD_S,
    TOGETHER_MIN,
    TOGETHER_S,
)
from streamlab.analysis.plain import clipped, counted, seconds

__all__ = ["Clump", "clumps", "clumps_of"]

WHAT = "clumps"

#: Streams above one another: the one in question, and what it is compared with.
MAX_STREAMS = 3

LEFT, RIGHT, TITLE, HIGH, GAP, KEY = 92, WIDTH - 44, 60, 150, 22, 34

#: Pixels of a stack, and of one that was held back.
THIN, THICK = 4, 12


class Clump(NamedTuple):
    """Content events that came together; a single one is a clump of one."""

    at: float  #: seconds since the request
    events: int
    waited: float  #: seconds without content before it
    held: int  #: how many of its events the wait held back, by the definition of "buffered"


def clumps(*given: Many) -> Drawing:
    """Draw how the content of one stream came, or of two or three above one another."""
    flows, left_out = timed(flows_of(given, MAX_STREAMS, WHAT), WHAT)
    found = [(flow, clumps_of(flow)) for flow in flows]
    scale = Scale(max(flow.end for flow in flows), LEFT, RIGHT)
    most = max((clump.events for _, every in found for clump in every), default=1)
    panel = TITLE + HIGH + GAP
    board = Board(panel * len(found) + HEIGHT + KEY)
    for n, (flow, every) in enumerate(found):
        _panel(board, flow, every, n * panel, scale, most)
    scale.draw(board, panel * len(found) - GAP + 8)
    _key(board, panel * len(found) - GAP + 8 + HEIGHT)
    return board.drawing("Content events by their arrival", _told(found, left_out))


def clumps_of(flow: Flow) -> list[Clump]:
    """The clumps of a stream, in order, as the meter's verdict sees them."""
    found: list[Clump] = []
    last, since, until, came = 0.0, -1.0, -1.0, 0  # the wait's own: from, to, and how many so far
    for t in flow.t:
        gap = round(t - last, DIGITS)
        if gap >= HELD_S:
            since, until, came = t, t + gap * HELD_PART, 0
        apart = not found or gap > TOGETHER_S
        clump = Clump(t, 0, gap, 0) if apart else found.pop()
        clump = clump._replace(events=clump.events + 1)
        if t <= until:
            came += 1
            if came >= FASTEST * (t - since):
                clump = clump._replace(held=clump.events)
        found.append(clump)
        last = t
    return [clump if clump.held >= TOGETHER_MIN else clump._replace(held=0) for clump in found]


def _panel(
    board: Board, flow: Flow, every: Sequence[Clump], y: float, scale: Scale, most: int
) -> None:
    board.text(
        14, y + 22, fitted(f"{flow.name}: {_verdict(flow)}", WIDTH - 28, BIG), BIG, bold=True
    )
    words = f"{_share(flow)} came together"
    board.text(14, y + 46, fitted(words, WIDTH - 28, BIG), BIG)
    top, bottom = y + TITLE, y + TITLE + HIGH
    for value, label in ticks(most, 3, False):
        at = bottom - value / most * HIGH
        board.lines([[(LEFT, at), (RIGHT, at)]], edge="dim", width=0.5)
        board.text(LEFT - 8, at + 6, label, BIG, "end")
    waits = (clump for clump in every if clump.held and clump.waited >= HELD_S)
    edges = [(scale.x(clump.at - clump.waited), scale.x(clump.at)) for clump in waits]
    board.lines([outline((a, top, b - a, HIGH)) for a, b in joined(edges)], fill="soft")
    for held in (False, True):
        _stacks(board, [c for c in every if bool(c.held) is held], bottom, scale, most)
    board.lines([[(LEFT, bottom), (RIGHT, bottom)]], edge="dim", width=1.5)


def _stacks(board: Board, every: Sequence[Clump], bottom: float, scale: Scale, most: int) -> None:
    """The stacks of one kind; of those that fall on the same pixels, the tallest."""
    columns = groupby(every, lambda clump: round(scale.x(clump.at) / 3))
    tallest = [max(group, key=lambda clump: clump.events) for _, group in columns]
    for clump in tallest:
        high = max(clump.events / most * HIGH, 3)
        wide = THICK if clump.held else THIN
        box = (scale.x(clump.at) - wide / 2, bottom - high, wide, high)
        if clump.held:
            board.lines([outline(box)], fill="paper")
            board.lines(list(hatch(box, 6)), edge="bad", width=2)
            board.lines([outline(box)], edge="bad", width=2)
        else:
            board.lines([outline(box)], fill="accent")


def _key(board: Board, y: float) -> None:
    board.text(14, y + 18, "height: content events at once", BIG)
    box = (370.0, y + 2, 12.0, 20.0)
    board.lines(list(hatch(box, 6)), edge="bad", width=2)
    board.lines([outline(box)], edge="bad", width=2)
    board.text(390, y + 18, "held back by a wait", BIG)
    board.box(624, y + 2, 28, 20, fill="soft", edge="dim")
    board.text(660, y + 18, f"wait, {HELD_S:g} s or more", BIG)


def _verdict(flow: Flow) -> str:
    if not flow.metrics.content_events:
        return "no content"
    return "looks buffered" if flow.metrics.buffered else "does not look buffered"


def _share(flow: Flow) -> str:
    metrics = flow.metrics
    share = ceil((metrics.together or 0) * 1000 - 0.5) / 10
    return f"{share:g} % of {counted(metrics.content_events, 'content event')}"


def _told(found: Sequence[tuple[Flow, list[Clump]]], left_out: str) -> str:
    lines = []
    for flow, every in found:
        said = f"{clipped(flow.name, 60)}: {_verdict(flow)}. {_share(flow)} came together"
        tall = [clump for clump in every if clump.held]
        if tall:
            waits = max(clump.waited for clump in tall)
            biggest = max(clump.events for clump in tall)
            said += (
                f"; {counted(len(tall), 'clump')} held back by a wait, of up to "
                f"{counted(biggest, 'event')}, after up to {seconds(waits)} without content"
            )
        lines.append(said + ".")
    for advice in dict.fromkeys(flow.metrics.advice for flow, _ in found):
        if advice:
            lines.append(f"Advice: {advice}.")
    return "\n".join([*lines, left_out] if left_out else lines)
