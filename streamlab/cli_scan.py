"""`streamlab scan`: a folder of recordings as one table."""

from __future__ import annotations

import argparse

__all__ = ["scan"]


def scan(options: argparse.Namespace) -> int:
    """Scan every place; return the worst exit status."""
    raise NotImplementedError
