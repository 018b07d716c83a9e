"""`streamlab convert`: recordings in another form, with secrets masked on the way."""

from __future__ import annotations

import argparse

__all__ = ["convert"]


def convert(options: argparse.Namespace) -> int:
    """Convert every file; return the worst exit status."""
    raise NotImplementedError
