"""The bank: every question and exercise by its id, the guesses that were made, and the check.

`check("00-ex", may_pay)` hands the learner's own function every case of a table. It prints the
first case that goes wrong: what was expected, what came, and why. A stub that still returns the
dots gets one fixed line, so a notebook that nobody has answered yet prints the same every time.

Read next: `lesson_00.py`, or `widgets/quiz.py`, which shows the questions.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from streamlab.errors import UsageError
from streamlab.study import (
    lesson_00,
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_06,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_10,
)
from streamlab.study.tasks import UNANSWERED, Case, Exercise, Question

__all__ = ["EXERCISES", "GUESSES", "QUESTIONS", "check", "exercise", "question"]

LESSONS = (
    lesson_00,
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_06,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_10,
)

QUESTIONS: dict[str, Question] = {each.id: each for lesson in LESSONS for each in lesson.QUESTIONS}
EXERCISES: dict[str, Exercise] = {each.id: each for lesson in LESSONS for each in lesson.EXERCISES}

#: Question id -> the option that was guessed before anything was revealed, from 0.
GUESSES: dict[str, int] = {}

#: How much is printed of what a learner's function gave, in characters.
MOST = 200


def question(id: str) -> Question:
    """Find a question."""
    if id not in QUESTIONS:
        raise UsageError(f"there is no question {id!r}; there are {', '.join(QUESTIONS)}")
    return QUESTIONS[id]


def exercise(id: str) -> Exercise:
    """Find an exercise."""
    if id not in EXERCISES:
        raise UsageError(f"there is no exercise {id!r}; there are {', '.join(EXERCISES)}")
    return EXERCISES[id]


def check(id: str, answer: Callable[..., Any]) -> None:
    """Run a learner's function on every case, and print how it does."""
    cases = exercise(id).cases()
    if not callable(answer):
        raise UsageError(f"check({id!r}, …) takes the function itself, without calling it first")
    came = [_run(answer, case) for case in cases]
    if all(value is UNANSWERED for value in came):
        print(f"{id}: not answered yet. Replace the dots, then run this cell again.")
        return
    pairs = zip(cases, came, strict=True)
    wrong = [(case, value) for case, value in pairs if _fits(case, value) is not True]
    if not wrong:
        print(f"{id}: right in all {len(cases)} cases.")
        return
    case, value = wrong[0]
    print(f"{id}: right in {len(cases) - len(wrong)} of {len(cases)} cases. The first wrong one:")
    print(f"  case      {case.name}")
    print(f"  expected  {case.expected!r}")
    print(f"  came      {_shown(case, value)}")
    print(textwrap.fill(f"  why       {_why(case, value)}", 88, subsequent_indent=" " * 12))


class _Raised(str):
    """What the learner's code raised, as one line."""


def _shown(case: Case, came: Any) -> str:
    """A result as it is printed; for yes or no, what it counts as."""
    if type(came) is _Raised:
        return came
    shown = _line(repr, came)
    if came is None or came is UNANSWERED or not isinstance(case.expected, bool):
        return shown
    counts = _guarded(bool, came)
    plain = came is counts or type(counts) is _Raised
    return shown if plain else f"{shown}, which counts as {counts}"


def _why(case: Case, came: Any) -> str:
    """The case's own reason, but only for an answer that was given and is wrong."""
    if type(came) is _Raised:
        return f"Your function raised {came.partition(':')[0]} on this case: it gave no answer."
    if came is None:
        return "It returned None: is there a return on every way?"
    if came is UNANSWERED:
        return "It returned the dots: are they still there on some way?"
    fits = _fits(case, came)
    if type(fits) is _Raised:
        return f"What it returned cannot be compared with what is expected. {fits}"
    return case.if_wrong


def _run(answer: Callable[..., Any], case: Case) -> Any:
    return _guarded(lambda: answer(*case.given))


def _fits(case: Case, came: Any) -> Any:
    """Whether a result will do. For yes or no its truth is enough, but None is no answer."""
    if type(came) is _Raised or came is None or came is UNANSWERED:
        return False
    if isinstance(case.expected, bool):
        return _guarded(lambda: bool(came) is case.expected)
    return _guarded(lambda: bool(came == case.expected))


def _guarded(act: Callable[..., Any], *given: Any) -> Any:
    """Do what runs the learner's code: whatever it raises is its result."""
    try:
        return act(*given)
    except Exception as why:
        return _Raised(f"{type(why).__name__[:60]}: {_line(str, why)}")


def _line(say: Callable[[Any], str], value: Any) -> str:
    """A value's own text as one line of bounded length; a value that has none is named."""
    try:
        text = say(value)[: MOST + 1]
    except Exception:
        return f"a {type(value).__name__}, which cannot be printed"
    line = " ".join(text.splitlines()).encode("utf-8", "backslashreplace").decode()
    return line if len(line) <= MOST else f"{line[:MOST]}…"
