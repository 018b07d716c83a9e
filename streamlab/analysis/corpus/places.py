"""What there is to read: the files in folders, named files, globs, and the members of archives.

`found` walks lazily and in a fixed order, that of the parts of the paths, so that two runs over the
same files meet them in the same order. It opens nothing but archives, and follows no link out of a
folder. What cannot be read is an item too, with the reason: nothing is passed over in silence but
hidden files, links to what is met anyway, and what the caller leaves out.

Read next: `archives.py`, for what an archive holds.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator

import msgspec

from streamlab.errors import UsageError

__all__ = ["Item", "Known", "Order", "found", "shown", "total_bytes"]

#: Where an item stands among all others: the parts of its file's path, then the member's number.
Order = tuple[tuple[str, ...], int]


class Item(msgspec.Struct, frozen=True):
    """One file to read, or one member of an archive."""

    place: str  #: what the caller named
    file: str  #: the file, as a path that begins with the place
    path: str  #: the same, absolute: how a worker opens it
    size: int = 0  #: bytes: of the file, or of the member
    mtime_ns: int = 0  #: when the file on disk was last changed
    member: str = ""  #: a member's name; a label, never a path
    number: int = 0  #: a member's place in its archive, from 1; 0 for a file
    made: float | None = None  #: when the member was last changed, seconds since 1970
    data: bytes | None = None  #: what the member holds, where a worker could not get at it
    error: str = ""  #: why it cannot be read
    weight: int = 0  #: the bytes on disk that it stands for; for a progress bar

    @property
    def order(self) -> Order:
        """Where it stands among all others."""
        return tuple(shown(self.file).split(os.sep)), self.number

    @property
    def inside(self) -> str:
        """The file's path inside the place, with "/" everywhere; where it is the place, its name.

        So the same folder has the same ones on every machine, wherever it lies there.
        """
        inside = self.file.removeprefix(self.place).lstrip(os.sep)
        return shown(inside or os.path.basename(self.place)).replace(os.sep, "/")


#: Whether an item's rows are known already, so that its bytes need not be taken from an archive.
Known = Callable[[Item], bool]


def shown(name: str) -> str:
    """A name as text that any table takes: bytes that are no UTF-8 become escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def found(
    places: Iterable[str | os.PathLike[str]],
    leave: Iterable[str | os.PathLike[str]] = (),
    known: Known = lambda item: False,
) -> Iterator[Item]:
    """Everything in the places, in order; `leave` are files and folders to leave out.

    Raises `UsageError` before the first item where a place does not exist.
    """
    named = _named(places)
    left = {os.path.realpath(path) for path in leave}
    return (item for place in named for item in _in_place(place, left, known))


def total_bytes(places: Iterable[str | os.PathLike[str]]) -> int:
    """The bytes on disk of all files in the places; for a progress bar, so errors are no matter."""
    whole = 0
    for place in _named(places):
        for folder, folders, names in os.walk(place):
            folders[:] = [name for name in folders if not name.startswith(".")]
            paths = (os.path.join(folder, name) for name in names if not name.startswith("."))
            whole += sum(_size(path) for path in paths)
        whole += _size(place) if os.path.isfile(place) else 0
    return whole


def _size(path: str) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _named(places: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The places that exist, globs expanded, in order, none inside another."""
    names: dict[str, str] = {}  # where it really is -> the place
    for place in places:
        for name in _expanded(os.fspath(place)):
            names.setdefault(os.path.realpath(name), _plain(name))
    inside = {real for real in names if any(_within(real, other) for other in names)}
    return sorted((name for real, name in names.items() if real not in inside), key=_parts)


def _expanded(place: str) -> list[str]:
    if os.path.lexists(place):
        return [place]
    matches = glob.glob(place, recursive=True) if glob.has_magic(place) else []
    if not matches:
        what = "nothing matches" if glob.has_magic(place) else "no such file or folder"
        raise UsageError(f"{place}: {what}")
    return matches


def _plain(name: str) -> str:
    """A path without what changes nothing in it; `..` stays, since a link may stand before it."""
    return name if ".." in name.split(os.sep) else os.path.normpath(name)


def _within(real: str, other: str) -> bool:
    """Whether a real path lies inside another one."""
    return real != other and os.path.commonpath((real, other)) == other


def _parts(name: str) -> tuple[str, ...]:
    return tuple(shown(name).split(os.sep))


def _in_place(place: str, left: set[str], known: Known) -> Iterator[Item]:
    real = os.path.realpath(place)
    if real in left:
        return
    item = Item(place, place, os.path.abspath(place))
    if os.path.isdir(place):
        yield from _in_folder(item, real, left, known)
    else:
        yield from _in_file(item, known)


def _in_folder(folder: Item, root: str, left: set[str], known: Known) -> Iterator[Item]:
    """What a folder and those in it hold; `root` is the place's real path.

    The names of one folder are held at a time, with those of the folders above it.
    """
    waiting = [iter([folder])]
    while waiting:
        item = next(waiting[-1], None)
        if item is None:
            waiting.pop()
        elif item.error:
            yield item
        elif not os.path.isdir(item.path):
            yield from _in_file(item, known)
        else:
            waiting.append(iter(_entries(item, root, left)))


def _entries(folder: Item, root: str, left: set[str]) -> list[Item]:
    """A folder's entries by name; a folder that cannot be listed gives one item that says so."""
    try:
        with os.scandir(folder.path) as entries:
            names = [(entry.name, entry.is_symlink()) for entry in entries]
    except OSError as why:
        return [msgspec.structs.replace(folder, error=why.strerror or str(why))]
    items, ends = [], {os.path.basename(path) for path in left}
    for name, link in sorted(names, key=lambda each: (shown(each[0]), each[0])):
        path = os.path.join(folder.path, name)
        if name.startswith(".") or ((link or name in ends) and os.path.realpath(path) in left):
            continue
        error = _leads(path, root) if link else ""
        if error is not None:
            file = os.path.join(folder.file, name)
            items.append(Item(folder.place, file, path, error=error))
    return items


def _leads(path: str, root: str) -> str | None:
    """What is wrong with a link; None where it leads to what is met anyway."""
    real = os.path.realpath(path)
    if not _within(real, root) and real != root:
        return "a link that leads out of the folder is not followed"
    return None if os.path.exists(real) else "a link that leads nowhere"


def _in_file(item: Item, known: Known) -> Iterator[Item]:
    """A file as one item; of an archive, its members."""
    from streamlab.analysis.corpus.archives import members_of

    try:
        status = os.stat(item.path)
    except OSError as why:
        yield msgspec.structs.replace(item, error=why.strerror or str(why))
        return
    if not stat.S_ISREG(status.st_mode):  # to open a pipe would wait for its writer
        yield msgspec.structs.replace(item, error="no regular file")
        return
    size = status.st_size
    file = msgspec.structs.replace(item, size=size, weight=size, mtime_ns=status.st_mtime_ns)
    members = members_of(file, known)
    if members is None:
        yield file
    else:
        yield from members
