"""Decompress gzip, deflate, zstd and br piece by piece: no piece is ever large, whatever it claims.

The same decoders serve a file that is compressed and a body that was. The `WireError` that they
raise has no `where`: who calls them knows the file and the entry, and says so.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from streamlab.errors import WireError

__all__ = ["MAGIC", "Decoder", "decoder_for", "magic_of"]

#: Bytes that one piece has at most (zstd: 128 kB for 4 bytes that it is fed).
PIECE = 64 * 1024

#: Bytes of zstd that are decoded at once: what can come of them is 32 MB.
ZSTD_STEP = 1024

#: The largest window that a zstd frame may ask for, as its own command-line tool has it.
ZSTD_WINDOW = 128 * 1024 * 1024

#: First bytes -> the encoding that they prove.
MAGIC = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


class Decoder(Protocol):
    """Takes compressed bytes, gives pieces."""

    @property
    def whole(self) -> bool:
        """Whether the compressed data has ended."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode some bytes. Raises `WireError`."""


class Deflate:
    """gzip, one member after another, and deflate as HTTP has it (RFC 9110: in a zlib wrapper)."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._z = zlib.decompressobj(wbits)
        self._begun = False

    @property
    def whole(self) -> bool:
        return self._z.eof or not self._begun

    def feed(self, data: bytes) -> Iterator[bytes]:
        more = bool(data)
        while more:
            if self._z.eof:
                data = data.lstrip(b"\0")  # tapes are filled up with zeros
                if not data:
                    return
                self._z = zlib.decompressobj(self._wbits)
            self._begun = True
            try:
                piece = self._z.decompress(data, PIECE)
            except zlib.error as why:
                raise WireError(str(why).rpartition(": ")[2]) from None
            yield piece
            data = self._z.unused_data if self._z.eof else self._z.unconsumed_tail
            more = bool(data) or (len(piece) == PIECE and not self._z.eof)


class AnyDeflate:
    """deflate as servers send it: in a zlib wrapper, or bare; the first byte tells."""

    def __init__(self) -> None:
        self._inner: Deflate | None = None

    @property
    def whole(self) -> bool:
        return self._inner is None or self._inner.whole

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inner is None and data:
            wrapped = data[0] & 0x0F == 8 and data[0] >> 4 <= 7
            self._inner = Deflate(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        if self._inner is not None:
            yield from self._inner.feed(data)


class Zstd:
    """zstd, one frame after another."""

    def __init__(self) -> None:
        import zstandard  # a third of all starts would load it for nothing

        self._error = zstandard.ZstdError
        self._new = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj
        self._z: Any = None

    @property
    def whole(self) -> bool:
        return self._z is None or self._z.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), ZSTD_STEP):
            step = data[at : at + ZSTD_STEP]
            while step:
                if self.whole:
                    self._z = self._new()
                try:
                    yield self._z.decompress(step)
                except self._error as why:
                    raise WireError(str(why)) from None
                step = self._z.unused_data if self._z.eof else b""


def _brotli() -> Decoder:
    """br, where one of its modules is installed; it is no dependency."""
    raise WireError("it is br, and streamlab has no decoder for that; ask the server for gzip")


#: Content-Encoding -> what decodes it.
DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": lambda: Deflate(zlib.MAX_WBITS | 16),
    "x-gzip": lambda: Deflate(zlib.MAX_WBITS | 16),
    "deflate": AnyDeflate,
    "zstd": Zstd,
    "br": _brotli,
}


def decoder_for(encoding: str) -> Decoder:
    """A new decoder. Raises `WireError` where there is none for this encoding."""
    try:
        return DECODERS[encoding]()
    except KeyError:
        raise WireError(f"Content-Encoding {encoding[:40]!r} is none that can be decoded") from None


def magic_of(head: bytes) -> str:
    """The encoding that the first bytes prove; "" where they prove none."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")
