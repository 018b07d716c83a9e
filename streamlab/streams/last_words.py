"""What tools say about how a connection stopped, in the words that are this project's `ENDINGS`.

curl writes it as the last line of its errors, a browser as `net::ERR_...` or `NS_ERROR_...`, a
proxy as a sentence.
"""

from __future__ import annotations

import re

__all__ = ["MAX_LAST_WORDS", "curl_ending", "ending_said", "without_last_words"]

#: In a message -> the ending; the first row that fits has it, and what fits none is a cut.
PHRASES = (
    (re.compile(r"reset|RST_STREAM|broken pipe", re.I), "reset"),
    (re.compile(r"time[d_ ]{0,2}out", re.I), "timeout"),
    (re.compile(r"abort|cancel|killed|client disconnect", re.I), "cancelled"),
)

#: curl's exit status -> the ending, whatever its message; 92 and 95: the stream was reset inside
#: HTTP/2 and HTTP/3. All others go by the message.
CURL_STATUS = {18: "cut", 28: "timeout", 42: "cancelled", 92: "reset", 95: "reset"}

#: The last words of curl, where its errors go into the same file (`2>&1`). What came before may
#: have no line end.
_CURL = re.compile(rb"curl: \((\d{1,3})\) ([^\n]{0,400})\n?\Z")

#: Bytes of them.
MAX_LAST_WORDS = 420


def ending_said(text: str) -> str:
    """The ending that a tool's message means.

    >>> ending_said("net::ERR_CONNECTION_RESET"), ending_said("transfer closed")
    ('reset', 'cut')
    """
    return next((ending for phrase, ending in PHRASES if phrase.search(text)), "cut")


def curl_ending(status: int, text: str) -> str:
    """The ending that an exit status of curl means, with its message."""
    return CURL_STATUS.get(status) or ending_said(text)


def without_last_words(data: bytes) -> tuple[bytes, str]:
    """The end of a file without curl's error message, and the ending that this one means."""
    said = _CURL.search(data, max(0, len(data) - MAX_LAST_WORDS))
    if said is None:
        return data, "eof"
    return data[: said.start()], curl_ending(int(said[1]), said[2].decode("utf-8", "replace"))
