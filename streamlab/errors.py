"""The two ways a call can fail; any other exception that escapes streamlab is a bug.

A cut stream, a provider's error and the end of the bytes are not here: they are data
(see `wire/events.py`), because a consumer must still decide what to do about them.
"""

from __future__ import annotations

__all__ = ["UsageError", "WireError"]


class UsageError(Exception):
    """The caller broke our contract; the message says what was allowed."""


class WireError(Exception):
    """A file or stream broke its own format; `where` names the file, line or byte."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where
