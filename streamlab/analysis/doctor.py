"""The doctor: from what happened in a stream to where it went wrong, and what to do about it.

Read next: `doctor_rules.py`, the table of the rules.
"""

from __future__ import annotations

import msgspec

from streamlab.analysis.judge import Outcome
from streamlab.wire.events import Severity

__all__ = ["LAYERS", "Diagnosis", "Finding", "diagnose"]

#: Where a fault may lie; "" where nothing is wrong.
LAYERS = ("model", "vendor", "gateway", "network", "client", "ours")


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong, or worth knowing."""

    rule: str  #: an id in the table of rules
    severity: Severity
    says: str  #: with what was found
    frame: int | None = None  #: number of the frame; None where it is about the whole stream
    byte: int | None = None  #: offset of that frame's first byte in the stream


class Diagnosis(msgspec.Struct, frozen=True):
    """What a stream is worth, in words that a person can act on."""

    verdict: str  #: one of a short list: "whole", "cut off", "provider error", ...
    says: str  #: the verdict in a sentence, about this very stream
    layer: str  #: one of `LAYERS`, the likeliest; "" where nothing is wrong
    may: tuple[str, ...]  #: what a consumer may do with it
    may_not: tuple[str, ...]
    advice: str  #: one line; "" where nothing is wrong
    findings: tuple[Finding, ...] = ()  #: the first bad one first, then by frame

    @property
    def first(self) -> Finding | None:
        """The first bad event, and its byte."""
        return self.findings[0] if self.findings else None


def diagnose(outcome: Outcome) -> Diagnosis:
    """Say what is wrong with a stream that was judged, and whose fault it likely is."""
    verdict = "whole" if outcome.complete else "cut off"
    return Diagnosis(
        verdict, outcome.attempt.why, "" if outcome.complete else "network", (), (), ""
    )
