"""The doctor: what is wrong with a stream, whose fault it likely is, and what to do about it.

Read next: `diagnosis.py`, the way from an outcome to an advice; `rules.py`, the table of the rules.
"""

from __future__ import annotations

from streamlab.analysis.doctor.diagnosis import (
    LAYERS,
    Diagnosis,
    Finding,
    Severity,
    diagnose,
    examine,
)

__all__ = ["LAYERS", "Diagnosis", "Finding", "Severity", "diagnose", "examine"]
