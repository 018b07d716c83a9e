"""Recordings that two ways of reading are held to: the fixtures, and answers that a fault broke."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from streamlab import Recording, UsageError, synth
from streamlab.streams.catalogue import Fault

__all__ = ["FILES", "FIXTURES", "broken_by"]

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = sorted(FIXTURES.rglob("*.sse")) + sorted(FIXTURES.rglob("*.jsonl"))


def broken_by(fault: Fault, wire: str) -> Iterator[tuple[int, Recording]]:
    """What a fault makes of a few answers, each with its seed."""
    for seed in range(3):
        for answer in (synth.story(wire=wire, seed=seed), synth.random_answer(seed, wire)[1]):
            try:
                broken = fault.apply(answer, seed)
            except UsageError:  # it cannot happen there
                continue
            yield seed, broken
