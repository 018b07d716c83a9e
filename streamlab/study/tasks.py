"""What a learner can be asked: a question to guess at, and an exercise to solve. Values only.

A question has a reason for every option, the wrong ones above all: each says why it tempts, and
what is so instead. An exercise has a table of cases, its solution, and *known-wrong answers*, each
with the case that must catch it; tests run them all, so a check that lets a mistake pass is found.

The content is in `lesson_00.py` and its neighbours, one file a lesson. Read next: `questions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["Case", "Exercise", "Option", "Question", "Wrong"]

#: What an exercise's stub returns: the dots that the learner replaces.
UNANSWERED = ...


class Option(msgspec.Struct, frozen=True):
    """One thing that a learner may guess, and what is said to who guessed it."""

    text: str
    says: str
    right: bool = False


class Question(msgspec.Struct, frozen=True):
    """One prediction. Text between backticks is code."""

    id: str
    text: str
    options: tuple[Option, ...]
    again: str  #: the heading, in its lesson, to read again after a wrong guess

    @property
    def right(self) -> int:
        """The place of the right option, from 0."""
        return next(place for place, option in enumerate(self.options) if option.right)


class Case(msgspec.Struct, frozen=True):
    """One input of an exercise, and what is said to who gets it wrong."""

    name: str
    given: tuple[Any, ...]
    expected: Any
    if_wrong: str


class Wrong(msgspec.Struct, frozen=True):
    """An answer that people give, and the case that must catch it."""

    says: str
    answer: Callable[..., Any]
    caught_by: str


class Exercise(msgspec.Struct, frozen=True):
    """One function for the learner to write."""

    id: str
    cases: Callable[[], tuple[Case, ...]]  #: made when asked for: some need a real client
    solution: Callable[..., Any]
    wrong: tuple[Wrong, ...]
