"""The verdicts: what a stream is worth in two words, and what may be done with it.

What moved the attempt (`consumer/attempt.py`) decides, since the table of its states has weighed
everything that came, in order: the first thing that breaks an answer is the one that counts. Here
that is only told apart further. Read next: `layers.py`, whose fault it likely is.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from streamlab.analysis.doctor.errors import bare_error, cause_of, error_of
from streamlab.analysis.doctor.findings import Finding, stray_at
from streamlab.analysis.judge import Outcome
from streamlab.consumer.attempt import Input

__all__ = ["VERDICTS", "Case", "Verdict", "decide"]

SHOW, SHOW_PART = "show it", "show it, marked as interrupted"
SHOW_SHORT = "show it, marked as cut short"
KEEP, RUN = "keep it in the history", "run its tool"
RETRY = "try again from the start of the turn"
BACK = "send it back as it is, to be gone on with"
ASK = "tell the person, and keep it on record"
TELL = "tell the person"
UNCHANGED = "try again unchanged"
CORRECT = "tell the model what is wrong with its input"


class Verdict(msgspec.Struct, frozen=True):
    """What a stream is worth."""

    word: str
    says: str
    may: tuple[str, ...]
    may_not: tuple[str, ...]
    advice: str = ""


_VERDICTS = (
    Verdict("whole", "The answer is whole.", (SHOW, KEEP), ()),
    Verdict(
        "buffered",
        "The answer is whole, but it came all at once, so nobody could read along.",
        (SHOW, KEEP),
        (),
        "A proxy before you must not collect: X-Accel-Buffering: no, compression off, chunked.",
    ),
    Verdict(
        "slow",
        "The answer is whole, but it kept its reader waiting.",
        (SHOW, KEEP),
        (),
        "Show that it still runs; set the timeout on progress, not on bytes: a ping is none.",
    ),
    Verdict(
        "cut short",
        "The answer stops where its tokens ran out, though every marker came.",
        (SHOW_SHORT, "ask again with a higher limit, or for less"),
        (RUN, "keep it as a finished answer"),
        "Raise the token limit, or ask for less; never run a call that was cut.",
    ),
    Verdict(
        "refused",
        "The model or a classifier refused to answer.",
        (TELL,),
        (SHOW, KEEP, RUN, UNCHANGED),
        "Take back what was shown; change the request, or say that there is no answer to it.",
    ),
    Verdict(
        "paused",
        "The provider paused the turn, to be gone on with.",
        (SHOW_PART, BACK),
        (RUN, "keep it as a finished answer"),
        "Send it back as it is, or its continuation token, in the same turn, and go on reading.",
    ),
    Verdict(
        "held",
        "It may not be acted on: it cannot be proved what it says, or it is not permitted.",
        (SHOW, ASK),
        (RUN,),
        "Let a person decide, or try again from the start of the turn.",
    ),
    Verdict(
        "bad input",
        "The answer is whole, and the input of its tool is not one that may be run.",
        (SHOW, RETRY, CORRECT),
        (RUN, "repair the input and run it"),
        "Never repair an input; give the model the error as the tool's result, or ask again.",
    ),
    Verdict(
        "broken off",
        "The answer stops before its end.",
        (SHOW_PART, RETRY),
        (KEEP, RUN),
        "Discard it and try again from the start of the turn; nothing of it was decided.",
    ),
    Verdict(
        "silent",
        "No content came any more, until the reader gave up.",
        (SHOW_PART, RETRY),
        (KEEP, RUN),
        "Discard it and try again; if it recurs, look for idle timeouts on the way.",
    ),
    Verdict(
        "endless",
        "The stream ran over a bound: it would have gone on.",
        (SHOW_PART, RETRY),
        (KEEP, RUN),
        "Keep a bound on the whole: a timeout between reads never fires while pings come.",
    ),
    Verdict(
        "cancelled",
        "We stopped reading, by our own wish.",
        (SHOW_PART, RETRY),
        (KEEP, RUN),
        "Nothing was committed; what was shown was a preview.",
    ),
    Verdict(
        "provider error",
        "The provider says that it failed.",
        (SHOW_PART, RETRY),
        (KEEP, RUN),
        "Wait a little longer each time, then try again from the start of the turn.",
    ),
    Verdict(
        "protocol error",
        "The stream breaks its own rules, so nothing in it can be relied on.",
        (SHOW_PART, RETRY),
        (KEEP, RUN),
        "Discard it, try again, and keep the recording: whoever wrote that frame should see it.",
    ),
    Verdict(
        "two answers",
        "Two answers came in one stream, and neither can be told from the other.",
        (SHOW_PART, RETRY),
        (KEEP, RUN),
        "Never let a client connect again by itself: a new connection is a new attempt.",
    ),
    Verdict(
        "not a stream",
        "What came is no stream of an answer.",
        (TELL, RETRY),
        (SHOW, KEEP, RUN),
        "Look at the address and the content type before the first byte is read.",
    ),
    Verdict(
        "empty",
        "Nothing of an answer came, and the body ended cleanly.",
        (TELL, RETRY),
        (KEEP, RUN),
        "An empty body is no empty answer: try again, and look at what is on the way.",
    ),
)

#: Every verdict by its word.
VERDICTS = {verdict.word: verdict for verdict in _VERDICTS}


class Case(msgspec.Struct, frozen=True):
    """What a verdict is decided on."""

    outcome: Outcome
    findings: list[Finding]

    def first(self, *rules: str) -> Finding | None:
        """The first finding under one of the rules."""
        return next((one for one in self.findings if one.rule in rules), None)


#: A verdict's word, and the finding that it rests on.
Decided = tuple[str, Finding | None]

#: Where a second answer begins.
SECOND = ("second-start", "second-answer")

#: Rule -> verdict, of answers that are whole; the first that was found counts.
WHOLE = {
    "buffered": "buffered",
    "stall": "slow",
    "slow-start": "slow",
    "slow-end": "slow",
}

#: Rule -> verdict, of answers that a gate did not let pass.
STOPPED = {
    "token-limit": "cut short",
    "refused": "refused",
    "paused": "paused",
    "stop-reason": "held",
    "tool-use-without-call": "held",
    "not-accepted": "held",
    "tool-not-permitted": "held",
    "not-authorised": "held",
    "tool-input": "bad input",
    "schema": "bad input",
    "business-rule": "bad input",
}


def decide(case: Case) -> Decided:
    """The verdict, and what it rests on."""
    by = case.outcome.attempt.by
    word, found = BY.get(by, _whole)(case)
    again = case.first("answer-again", "another-start")
    if again is None or by in (Input.CANCEL, Input.ERROR):
        return word, found
    first = found is None or found.frame is None or (again.frame or 0) <= found.frame
    return ("two answers", again) if first else (word, found)


def _by_rule(case: Case, table: dict[str, str], otherwise: str) -> Decided:
    for rule, word in table.items():
        if found := case.first(rule):
            return word, found
    return otherwise, None


def _whole(case: Case) -> Decided:
    return _by_rule(case, WHOLE, "whole")


def _gated(case: Case) -> Decided:
    """Whole, and some gate objected."""
    failed = next((v for v in case.outcome.verdicts if v.passed is False), None)
    if failed is not None and failed.gate == "completion":
        return _violated(case)
    word, found = _by_rule(case, STOPPED, "held")
    failed_itself = found is not None and case.outcome.turn.facts.stop_reason == "error"
    return ("provider error", found) if word == "held" and failed_itself else (word, found)


def _violated(case: Case) -> Decided:
    """The first error of the grammar decides."""
    found = next((one for one in case.findings if one.severity == "error"), None)
    if found is None:
        return "protocol error", None
    if found.rule in ("not-a-stream", "unknown-wire"):
        failed = found.rule == "unknown-wire" and bare_error(case.outcome)
        return "provider error" if failed else "not a stream", found
    again = found.frame in case.outcome.signs.repeats
    return "two answers" if found.rule in SECOND and not again else "protocol error", found


def _failed(case: Case) -> Decided:
    """The provider says so; where it says that a filter stopped it, that is a refusal."""
    error = error_of(case.outcome)
    cause = None if error is None else cause_of(error, case.outcome.wire)
    blocked = cause is not None and cause.word == "blocked"
    return "refused" if blocked else "provider error", case.first("provider-error")


def _ended(case: Case) -> Decided:
    """The transport stopped before the answer was whole."""
    outcome = case.outcome
    if found := case.first("unread-error"):
        return "provider error", found
    if outcome.ending == "eof":
        if found := case.first("paused"):
            return "paused", found
        if found := case.first("done-too-early"):
            return "protocol error", found
        begun = outcome.frames or case.first("unfinished-block", "unframed")
        if (found := case.first("empty")) and not begun:
            return "empty", found
        if (found := case.first("unframed")) and stray_at(outcome) is not None:
            return "broken off", found  # what was written into the body, and ended it
    word = "silent" if outcome.ending == "timeout" else "broken off"
    return word, case.first("clean-end", "cut", "reset", "silence")


#: What moved the attempt -> how the verdict is found.
BY: dict[Input | None, Callable[[Case], Decided]] = {
    Input.COMPLETED: _whole,
    Input.NOTHING_PROPOSED: _whole,
    Input.GATES_PASSED: _whole,
    Input.GATES_HELD: _gated,
    Input.GATES_FAILED: _gated,
    Input.VIOLATION: _violated,
    Input.ERROR: _failed,
    Input.AMBIGUITY: lambda case: ("held", case.first("ambiguous")),
    Input.ENDED: _ended,
    Input.BOUND: lambda case: ("endless", case.first("bound")),
    Input.CANCEL: lambda case: ("cancelled", case.first("cancelled")),
}
