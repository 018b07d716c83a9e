"""How much of a stream is read at most: a preview cannot grow for ever."""

from __future__ import annotations

import msgspec

from .sse import MAX_FRAME

__all__ = ["BOUNDS", "Bounds"]


class Bounds(msgspec.Struct, frozen=True):
    """How much of a stream is read before it counts as one that never ends."""

    frame_bytes: int = MAX_FRAME
    bytes: int = 256 * 1024 * 1024
    frames: int = 1_000_000
    seconds: float = 3600.0  #: since the request was sent, by the recording's own clock


BOUNDS = Bounds()
