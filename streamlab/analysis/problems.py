"""The problems of a recording: those of its stream, then what is wrong with its file."""

from __future__ import annotations

from streamlab.analysis.judge import Outcome
from streamlab.wire.events import Problem

__all__ = ["problems_of"]


def problems_of(outcome: Outcome) -> list[Problem]:
    """The stream's problems, then what is wrong with its file."""
    facts, at = outcome.turn.facts, outcome.frames
    problems = list(facts.problems)
    if facts.more_problems:
        text = f"{facts.more_problems} more problems are not listed"
        problems.append(Problem("more-problems", "note", text, at))
    if outcome.truncated:
        problems.append(Problem("recording-truncated", "warning", outcome.truncated, at))
    if outcome.streams > 1:
        text = f"the file holds {outcome.streams:,} streams; this is number {outcome.stream:,}"
        problems.append(Problem("more-streams", "warning", text, at))
    return problems
