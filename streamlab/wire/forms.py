"""Which form some bytes have, and the frames of a whole body: for whoever edits or rewrites one.

Forms: an event stream, one JSON event a line, one JSON array of events. `reader.py` tells them
apart while they arrive, by the same first byte.
"""

from __future__ import annotations

from .jsonarray import JSONArrayDecoder
from .jsonl import JSONLinesDecoder
from .reader import JSON_FORMS
from .sse import BOM, Frame, SSEDecoder

__all__ = ["decoder_of", "frames_of", "is_array"]

AnyDecoder = SSEDecoder | JSONLinesDecoder | JSONArrayDecoder


def decoder_of(head: bytes) -> type[AnyDecoder]:
    """What decodes a body that begins so."""
    return JSON_FORMS.get(head.removeprefix(BOM).lstrip()[:1], SSEDecoder)


def is_array(head: bytes) -> bool:
    """Whether a body that begins so is one JSON array of events."""
    return decoder_of(head) is JSONArrayDecoder


def frames_of(data: bytes) -> list[Frame]:
    """The frames of a whole body, whatever its form; what is unfinished at its end is none."""
    decoder = decoder_of(data)()
    frames = decoder.feed(data)
    return frames if isinstance(decoder, SSEDecoder) else [*frames, *decoder.end()]
