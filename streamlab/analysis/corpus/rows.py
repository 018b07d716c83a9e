"""One file as rows: each of its streams opened, judged, diagnosed and written down.

`rows_of` is what a scan does, wherever it runs: in this process, in a pool of processes, on a
cluster. It depends on nothing but its arguments and the file, and never raises: a file that cannot
be read is a row that says why. `COLUMNS` are those of `rows.py` after a few that say where a stream
was found.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import secrets
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from streamlab import __version__
from streamlab.analysis.corpus.archives import member_bytes
from streamlab.analysis.corpus.judging import judged
from streamlab.analysis.corpus.places import Item, shown
from streamlab.analysis.doctor import diagnose
from streamlab.analysis.rows import STREAM_COLUMNS, stream_row, text_of
from streamlab.consumer.gates import EFFECT, Policy
from streamlab.errors import UsageError, WireError
from streamlab.streams.importers import Opened, streams_from, streams_in

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COLUMNS", "Options", "batch_of", "error_rows", "rows_of", "schema", "unpacked"]

#: Rows of one file; beyond this it is one more row that says so.
MAX_STREAMS = 10_000

#: Characters of an error, and of a member's name.
MAX_ERROR, MAX_NAME = 500, 1000


class Known(NamedTuple):
    """A column of a scan: its type in Arrow's words, its unit, and what it says."""

    type: str
    unit: str
    says: str


#: Where a stream was found.
FOUND: dict[str, Known] = {
    "place": Known("string", "", "what the scan was told to read"),
    "file": Known("string", "", "the file, as a path that begins with the place"),
    "path": Known(
        *("string", ""),
        "the file's path inside the place, with /; of a place that is one file, its name; with "
        "number and stream it is the same on every machine",
    ),
    "member": Known("string", "", "of an archive: the member's name"),
    "number": Known("int64", "", "of an archive: the member's place in it, from 1; else 0"),
    "stream": Known("int64", "", "which of the file's streams, from 1"),
    "form": Known("string", "", "the form of a capture, such as har; NA for a plain stream"),
    "entry": Known("string", "", "where in a capture the stream is"),
    "file_bytes": Known("int64", "bytes", "bytes of the file or the member"),
    "modified": Known("timestamp[ns, tz=UTC]", "", "when the file on disk was last changed"),
    "at": Known("timestamp[us, tz=UTC]", "", "when the request was sent, else when it was saved"),
    "at_from": Known("string", "", "who says so: recording, member or file"),
    "day": Known("string", "", "the day of `at`, in UTC"),
    "request": Known("string", "", "method and URL, secrets masked, where a capture has them"),
    "status": Known("int64", "", "the HTTP status, where a capture has it"),
    "first_byte_s": Known("double", "s", "request sent → first byte, as a capture says"),
    "end_s": Known("double", "s", "request sent → last byte, as a capture says"),
    "masked": Known("int64", "", "secrets and addresses that were masked on the way in"),
    "error": Known("string", "", "why the file, or the rest of it, cannot be read"),
}

#: pandas' type -> Arrow's.
ARROW = {
    "string": "string",
    "Int64": "int64",
    "float64": "double",
    "boolean": "bool",
    "list": "list<string>",
}

#: Name -> what the column is, in the order of a row.
COLUMNS: dict[str, Known] = FOUND | {
    name: Known(ARROW[column.dtype], column.unit, column.says)
    for name, column in STREAM_COLUMNS.items()
}


class Options(msgspec.Struct, frozen=True):
    """How every stream is judged."""

    policy: Policy = EFFECT
    wire: str | None = None

    def digest(self) -> str:
        """The same for two scans whose rows are the same; a policy with code in it has no other."""
        policy = self.policy
        code = secrets.token_hex(8) if policy.rule or policy.authorise else ""
        facts = [__version__, sorted(policy.accept), policy.tools, self.wire, code, list(COLUMNS)]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=1)
def schema() -> pa.Schema:
    """The schema of all rows: each column with its unit and what it says."""
    import pyarrow as pa

    types = {
        "list<string>": pa.list_(pa.string()),
        "timestamp[ns, tz=UTC]": pa.timestamp("ns", "UTC"),
        "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
    }
    fields = [
        pa.field(
            name,
            types.get(column.type) or pa.type_for_alias(column.type),
            metadata={"unit": column.unit, "says": column.says},
        )
        for name, column in COLUMNS.items()
    ]
    return pa.schema(fields)


def batch_of(items: Sequence[Item], options: Options) -> bytes:
    """The rows of some items as one Arrow batch, without the schema, which every process has."""
    import pyarrow as pa

    rows = [row for item in items for row in rows_of(item, options)]
    values = pa.array(rows, pa.struct(list(schema())))
    packed: bytes = pa.RecordBatch.from_struct_array(values).serialize().to_pybytes()
    return packed


def unpacked(batch: bytes) -> pa.RecordBatch:
    """Such a batch as it was."""
    import pyarrow as pa

    return pa.ipc.read_record_batch(pa.py_buffer(batch), schema())


def rows_of(item: Item, options: Options) -> list[dict[str, Any]]:
    """A row for each stream of a file or a member; one that says why for what cannot be read."""
    if item.error:
        return error_rows(item, item.error)
    rows: list[dict[str, Any]] = []
    missing: tuple[str, ...] = ()
    try:
        for opened in _opened(item):
            if len(rows) == MAX_STREAMS:
                raise WireError(f"more than {MAX_STREAMS:,} streams; the rest is not read")
            rows.append(_row(item, len(rows) + 1, opened, options))
            missing = opened.about.missing
        for why in missing[: MAX_STREAMS - len(rows)]:
            rows += error_rows(item, why, len(rows) + 1)
    except MemoryError:
        rows += error_rows(item, "it does not fit into memory", len(rows) + 1)
    except (WireError, UsageError, OSError) as error:
        rows += error_rows(item, _reason(item, error), len(rows) + 1)
    except Exception as bug:  # no recording may stop the others, whatever we did not think of
        said = f"a bug in streamlab ({type(bug).__name__}: {str(bug)[:200]})"
        rows += error_rows(item, said, len(rows) + 1)
    return rows


def error_rows(item: Item, error: str, stream: int = 1) -> list[dict[str, Any]]:
    """The one row of what could not be read."""
    return [_found(item, stream) | {"error": text_of(error, MAX_ERROR)}]


def _opened(item: Item) -> Iterator[Opened]:
    if item.number:
        return streams_from(io.BytesIO(member_bytes(item)), item.member)
    return streams_in(item.path)


def _row(item: Item, stream: int, opened: Opened, options: Options) -> dict[str, Any]:
    outcome = judged(opened.recording, options.policy, options.wire)
    row = stream_row(outcome, diagnose(outcome))
    about = opened.about
    row |= _found(item, stream, about.at)
    row["form"], row["entry"] = about.form or None, about.where or None
    row["request"], row["status"] = text_of(about.request), about.status
    row["first_byte_s"], row["end_s"] = about.first_byte_s, about.end_s
    row["masked"] = sum(count for _, count in about.masked)
    return row


def _found(item: Item, stream: int, at: str = "") -> dict[str, Any]:
    row = {
        "place": shown(item.place),
        "file": shown(item.file),
        "path": item.inside,
        "member": text_of(item.member, MAX_NAME),
        "number": item.number,
        "stream": stream,
        "file_bytes": item.size,
        "modified": item.mtime_ns,
    }
    seconds, row["at_from"] = _sent(item, at)
    if seconds is not None:
        row["at"] = round(seconds * 1e6)
        row["day"] = _day(seconds)
    return row


def _sent(item: Item, at: str) -> tuple[float | None, str | None]:
    """When the request was sent, as far as anybody knows, and who says so."""
    if at:
        try:
            sent = datetime.datetime.fromisoformat(at)
            return sent.replace(tzinfo=sent.tzinfo or datetime.UTC).timestamp(), "recording"
        except (ValueError, OverflowError):
            pass
    if item.made is not None and _day(item.made):
        return item.made, "member"
    return (item.mtime_ns / 1e9, "file") if item.mtime_ns else (None, None)


def _day(seconds: float) -> str | None:
    """The day of a time in UTC; None for a time that no calendar has."""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _reason(item: Item, why: Exception) -> str:
    """The error without the name of the file, which has a column of its own."""
    text = (why.strerror if isinstance(why, OSError) else None) or str(why)
    name = item.member if item.number else item.path
    if name and text.startswith(f"{name}:"):
        text = text[len(name) + 1 :]
        text = text.strip() if text.startswith(" ") else f"line {text}"
    return text or type(why).__name__
