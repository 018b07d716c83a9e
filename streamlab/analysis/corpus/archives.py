"""What an archive holds: its members one by one, in bounded memory, and never on disk.

A zip's members are found by its directory and read by a worker; a tar can only be read from front
to back, so its members' bytes are read here and travel. A member's name is a label. Archives come
from strangers: what a member or a whole archive may grow to is bounded, in bytes and in how many
times it grows; what is past a bound, encrypted, or an archive again is an item that says so.
"""

from __future__ import annotations

import datetime
import gzip
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from typing import IO, Any

import msgspec

from streamlab.analysis.corpus.places import Item, Known
from streamlab.errors import WireError

__all__ = ["is_archive", "member_bytes", "members_of"]

#: Bytes of one member: it is held in memory, where a file would be read piece by piece.
MAX_MEMBER = 64 * 1024 * 1024

#: Times that bytes may grow, once there are so many of them; recorded text grows up to a hundred.
MAX_GROWTH, FREE = 400, 4 * 1024 * 1024

#: Bytes of a zip's directory, and of what stands before a tar's member (long names, and such).
MAX_DIRECTORY, MAX_HEADER = 64 * 1024 * 1024, 1024 * 1024

#: Bytes that a zstd frame may ask to keep in memory, as a power of two.
MAX_WINDOW = 2**27

Members = Iterator[Item]


def is_archive(name: str) -> bool:
    """Whether a name is an archive's."""
    return name.lower().endswith(tuple(ARCHIVES))


def members_of(file: Item, known: Known) -> Members | None:
    """The members of an archive, as items; None for a file that is none.

    Where the archive breaks off, the last item says so.
    """
    name = file.path.lower()
    kind = next((give for suffix, give in ARCHIVES.items() if name.endswith(suffix)), None)
    return None if kind is None else _careful(file, kind(file, known))


def _careful(file: Item, members: Members) -> Members:
    number = 0
    try:
        for item in members:
            number = item.number
            yield item
    except Exception as why:  # a library's own, of many kinds: all of them are about the archive
        said = (why.strerror if isinstance(why, OSError) else None) or str(why)
        text = f"the archive cannot be read on: {said or type(why).__name__}"
        yield msgspec.structs.replace(file, number=number + 1, error=text[:500], weight=0)


def _member(file: Item, number: int, name: str, size: int, **more: Any) -> Item:
    """A member as an item, with what keeps it from being read."""
    error = more.pop("error", "")
    if not error and is_archive(name):
        error = "an archive inside an archive is not opened"
    if not error and size > MAX_MEMBER:
        error = f"{size:,} bytes, over the bound of {MAX_MEMBER:,} in an archive: unpack it first"
    return msgspec.structs.replace(file, member=name, number=number, size=size, error=error, **more)


def _hidden(name: str) -> bool:
    """Whether a member is hidden, as files in a folder are, or what a Mac adds for each file."""
    parts = name.replace("\\", "/").split("/")
    return any(part[:1] == "." and part.strip(".") for part in parts) or parts[0] == "__MACOSX"


# ---- zip


def _in_zip(file: Item, known: Known) -> Members:
    _check_directory(file)
    whole = 0
    with zipfile.ZipFile(file.path) as archive:
        for number, info in enumerate(archive.infolist(), 1):
            if info.is_dir() or _hidden(info.filename):
                continue
            whole += info.file_size
            more = {"weight": info.compress_size, "made": _made(info), "error": _objection(info)}
            if whole > max(FREE, MAX_GROWTH * file.size):
                more["error"] = f"the archive grows more than {MAX_GROWTH}-fold"
            yield _member(file, number, info.filename, info.file_size, **more)


def _objection(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & 1:
        return "encrypted"
    if info.file_size > max(FREE, MAX_GROWTH * info.compress_size):
        return f"it grows more than {MAX_GROWTH}-fold, to {info.file_size:,} bytes"
    return ""


def _made(info: zipfile.ZipInfo) -> float | None:
    """When a member was last changed; a zip names no time zone, so UTC is taken."""
    try:
        return datetime.datetime(*info.date_time, tzinfo=datetime.UTC).timestamp()
    except ValueError:
        return None


def _check_directory(file: Item) -> None:
    """Refuse a zip whose directory, which is held in memory, is too large.

    Its last record says how large; a directory cannot be larger than what stands before that.
    """
    if file.size <= MAX_DIRECTORY:
        return
    with open(file.path, "rb") as stream:
        stream.seek(max(0, file.size - 2**16 - 22))
        end = stream.read()
    at = end.rfind(b"PK\x05\x06")
    size = int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0
    if size == 2**32 - 1:  # the real one is in the record before
        at = end.rfind(b"PK\x06\x06")
        size = int.from_bytes(end[at + 40 : at + 48], "little") if at >= 0 else size
    if size > MAX_DIRECTORY:
        raise WireError(f"its directory has {size:,} bytes, over the bound of {MAX_DIRECTORY:,}")


@lru_cache(maxsize=1)
def _opened_zip(path: str, mtime_ns: int) -> zipfile.ZipFile:
    """A zip whose directory has been read: a worker has many members of one to read."""
    return zipfile.ZipFile(path)


def member_bytes(item: Item) -> bytes:
    """What a member holds. Raises `WireError` where it cannot be read."""
    if item.data is not None:
        return item.data
    try:
        archive = _opened_zip(item.path, item.mtime_ns)
        info = archive.infolist()[item.number - 1]
        if (info.filename, info.file_size) != (item.member, item.size):
            raise WireError("the archive was changed while it was read")
        with archive.open(info) as stream:
            data = stream.read(MAX_MEMBER + 1)
    except (WireError, MemoryError):
        raise
    except Exception as why:  # a library's own, of many kinds
        said = (why.strerror if isinstance(why, OSError) else None) or str(why)
        raise WireError(f"the member cannot be read: {said or type(why).__name__}") from None
    if len(data) > MAX_MEMBER:
        raise WireError(f"more than {MAX_MEMBER:,} bytes", item.path)
    return data


# ---- tar


def _plain(file: IO[bytes]) -> IO[bytes]:
    return file


def _gzip(file: IO[bytes]) -> IO[bytes]:
    return gzip.open(file, "rb")  # type: ignore[return-value]


def _zstd(file: IO[bytes]) -> IO[bytes]:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    return reader.stream_reader(file, read_across_frames=True)


def _tar(unpack: Callable[[IO[bytes]], IO[bytes]]) -> Callable[[Item, Known], Members]:
    """How to read a tar that is packed so."""

    def members(file: Item, known: Known) -> Members:
        with ExitStack() as stack:
            raw = stack.enter_context(open(file.path, "rb"))
            forward = _Forward(stack.enter_context(unpack(raw)), raw)
            yield from _in_tar(file, forward, known)

    return members


def _in_tar(file: Item, forward: _Forward, known: Known) -> Members:
    archive = tarfile.TarFile(fileobj=forward, mode="r")  # type: ignore[arg-type]
    number = before = 0
    while (info := forward.header_of(archive)) is not None:
        number += 1
        if info.isdir() or _hidden(info.name):
            continue
        error = "" if info.isreg() and not info.issparse() else "no regular file"
        error = "a link in an archive is not followed" if info.islnk() or info.issym() else error
        weight, before = forward.packed - before, forward.packed
        more = {"weight": weight, "made": float(info.mtime), "error": error}
        item = _member(file, number, info.name, info.size, **more)
        if not item.error and not known(item):
            item = msgspec.structs.replace(item, data=_content(archive, info))
        yield item


def _content(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(info)
    pieces = iter(lambda: stream.read(MAX_HEADER // 2) if stream else b"", b"")
    data = b"".join(pieces)
    if len(data) < info.size:
        raise WireError(f"it ends inside {info.name[:200]!r}")
    return data


class _Forward:
    """Unpacked bytes that can only be read on, with bounds: what `tarfile` reads from."""

    def __init__(self, unpacked: IO[bytes], raw: IO[bytes]) -> None:
        self._unpacked, self._raw = unpacked, raw
        self._at = 0
        self._header = MAX_HEADER  # bytes that a header may still take
        self._last = b""

    @property
    def packed(self) -> int:
        """How many bytes of the file on disk have been taken."""
        return self._raw.tell()

    def header_of(self, archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        """The next member; None at the archive's end. Raises `WireError` where there is neither."""
        self._header = MAX_HEADER
        info = archive.next()
        vars(archive)["members"].clear()  # it would keep them all
        self._header = MAX_MEMBER
        if info is None and (not self._last or self._last.strip(b"\0")):
            raise WireError("where a member or the end should come is neither")
        return info

    def tell(self) -> int:
        """How many bytes have been unpacked."""
        return self._at

    def seek(self, to: int) -> None:
        """Go on to a place."""
        while self._at < to and self._take(min(to - self._at, 64 * 1024)):
            pass
        if to < self._at:
            raise WireError("it points backwards")

    def read(self, size: int) -> bytes:
        """The next bytes: fewer than asked for only at the end."""
        self._header -= size
        if self._header < 0:
            raise WireError(f"a header of more than {MAX_HEADER:,} bytes")
        pieces = []
        while size > 0 and (piece := self._take(size)):
            pieces.append(piece)
            size -= len(piece)
        self._last = b"".join(pieces)
        return self._last

    def _take(self, size: int) -> bytes:
        piece = self._unpacked.read(size)
        self._at += len(piece)
        if self._at > max(FREE, MAX_GROWTH * self.packed):
            raise WireError(f"it grows more than {MAX_GROWTH}-fold")
        return piece


#: End of a name -> how that archive is read.
ARCHIVES: dict[str, Callable[[Item, Known], Members]] = {
    ".zip": _in_zip,
    ".tar": _tar(_plain),
    ".tar.gz": _tar(_gzip),
    ".tgz": _tar(_gzip),
    ".tar.zst": _tar(_zstd),
}
