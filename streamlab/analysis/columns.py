"""The columns of the tables: each with its type, its unit, and what it says.

Read next: `tables.py`, which fills them.
"""

from __future__ import annotations

from streamlab.analysis.rows import STREAM_COLUMNS, Column

__all__ = ["COLUMNS"]

#: Table -> column -> what it is.
COLUMNS: dict[str, dict[str, Column]] = {
    "chunks": {
        "chunk": Column("Int64", "", "the number of the read"),
        "t_s": Column("float64", "s", "when it came, since the request"),
        "gap_s": Column("float64", "s", "time since the read before it"),
        "start": Column("Int64", "bytes", "offset of its first byte"),
        "bytes": Column("Int64", "bytes", "how many it brought"),
        "frames": Column("Int64", "", "frames that it completed"),
        "events": Column("Int64", "", "events that these state"),
        "content_events": Column("Int64", "", "those of them that carry content"),
    },
    "frames": {
        "frame": Column("Int64", "", "the number of the frame"),
        "chunk": Column("Int64", "", "the read that completed it"),
        "t_s": Column("float64", "s", "when that came, since the request"),
        "start": Column("Int64", "bytes", "offset of its first byte"),
        "bytes": Column("Int64", "bytes", "its length, with the blank line that closes it"),
        "name": Column("string", "", "its event name; NA where it has none"),
        "data_bytes": Column("Int64", "bytes", "length of its data"),
        "data": Column("string", "", "the beginning of its data, as text"),
        "events": Column("list", "", "the kinds of the events that it states"),
    },
    "events": {
        "event": Column("Int64", "", "the number of the event"),
        "frame": Column("Int64", "", "the frame that states it; NA: about the whole stream"),
        "chunk": Column("Int64", "", "the read that completed it"),
        "t_s": Column("float64", "s", "when that came, since the request"),
        "kind": Column("string", "", "its type in `wire/events.py`"),
        "segment": Column("string", "", "the segment that it belongs to"),
        "phase": Column("string", "", "thinking, text, tool or other; NA: it carries no content"),
        "gap_s": Column("float64", "s", "of content: time since the content before it"),
        "characters": Column("Int64", "characters", "length of its text"),
        "text": Column("string", "", "the beginning of its text, or what it says"),
        "rule": Column("string", "", "of a problem: its rule"),
        "severity": Column("string", "", "of a problem: error, warning or note"),
    },
    "segments": {
        "segment": Column("string", "", "its id, fixed at its start"),
        "kind": Column("string", "", "text, thinking, tool_call or other"),
        "type": Column("string", "", "the vendor's name for it"),
        "name": Column("string", "", "of a tool call: the tool"),
        "call_id": Column("string", "", "of a tool call: its id"),
        "choice": Column("Int64", "", "which of several answers to one request"),
        "server": Column("boolean", "", "whether the provider runs the tool itself"),
        "status": Column("string", "", "streaming (it never stopped), ready, or error"),
        "error": Column("string", "", "why the input does not parse"),
        "characters": Column("Int64", "characters", "length of its text or input"),
        "text": Column("string", "", "the beginning of its text or input"),
        "content_events": Column("Int64", "", "events that carried content of it"),
        "first_frame": Column("Int64", "", "the frame that started it"),
        "last_frame": Column("Int64", "", "the last frame that belongs to it"),
        "start": Column("Int64", "bytes", "offset of its first frame"),
        "end": Column("Int64", "bytes", "offset of the end of its last frame"),
        "start_s": Column("float64", "s", "when it started, since the request"),
        "first_content_s": Column("float64", "s", "when its first content came"),
        "end_s": Column("float64", "s", "when its last event came"),
    },
    "streams": {
        "file": Column("string", "", "the file, or the name that it was given"),
        "entry": Column("string", "", "which of the file's streams; NA where it is one"),
        "at": Column("string", "", "when the request was sent, ISO 8601 in UTC"),
        "status": Column("Int64", "", "HTTP status of the answer"),
        "error": Column("string", "", "why the file could not be read; all else is NA then"),
        **STREAM_COLUMNS,
    },
    "formulas": {
        "metric": Column("string", "", "the metric, as in `metrics.py`"),
        "formula": Column("string", "", "what it is"),
        "unit": Column("string", "", "its unit"),
        "of": Column("string", "", "the whole stream, or one phase alone"),
    },
}
