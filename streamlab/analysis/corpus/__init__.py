"""A folder of recordings as one table, and what the table answers.

Read next: `scanning.py`, the way from a folder to a Parquet file.
"""

from __future__ import annotations

from streamlab.analysis.corpus.scanning import (
    COLUMNS,
    FINE,
    NEEDED,
    SUMMARY,
    Item,
    Options,
    Scanned,
    found,
    objectives_of,
    read,
    rows_of,
    scan,
    summary,
    worst,
)

__all__ = [
    "COLUMNS",
    "FINE",
    "NEEDED",
    "SUMMARY",
    "Item",
    "Options",
    "Scanned",
    "found",
    "objectives_of",
    "read",
    "rows_of",
    "scan",
    "summary",
    "worst",
]
