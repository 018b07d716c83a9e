"""Faults: pure functions from one recording to a broken one, all to be had from here.

A fault never mutates, never reads a clock, and takes what is random from a seed; `after=3` is just
after frame 3, `after=0` before the first. What is inserted comes at the time of its place, and time
never runs backwards. `faults.skip(recording, frame=12)` breaks one; `FAULTS["skip"]` says what may
come of it, and where it can happen.

Read next: `catalogue.py`, which lists them all.
"""

from __future__ import annotations

from streamlab.streams.catalogue import FAULTS, SAME, Fault
from streamlab.streams.edit import disconnect, frames, insert, skip
from streamlab.streams.provider_faults import (
    delta_after_stop,
    error,
    index_gap,
    interleave,
    json_error,
    never_end,
    no_stop_reason,
    pause,
    ping_flood,
    refuse,
    second_start,
    token_limit,
    unknown,
)
from streamlab.streams.transport_faults import (
    burst,
    cancel,
    cut,
    drop_newline,
    duplicate,
    flip,
    html_page,
    late,
    merge,
    reconnect,
    reorder,
    slow_start,
    split,
    stall,
)

__all__ = [
    "FAULTS",
    "SAME",
    "Fault",
    "burst",
    "cancel",
    "cut",
    "delta_after_stop",
    "disconnect",
    "drop_newline",
    "duplicate",
    "error",
    "flip",
    "frames",
    "html_page",
    "index_gap",
    "insert",
    "interleave",
    "json_error",
    "late",
    "merge",
    "never_end",
    "no_stop_reason",
    "pause",
    "ping_flood",
    "reconnect",
    "refuse",
    "reorder",
    "second_start",
    "skip",
    "slow_start",
    "split",
    "stall",
    "token_limit",
    "unknown",
]
