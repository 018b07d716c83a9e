"""The doctor: from what happened in a stream to where it went wrong, and what to do about it.

    outcome -> findings -> verdict, and the finding that it rests on -> layer -> advice

`diagnose` takes a stream that was judged; `examine` judges one first, for a notebook.
Read next: `rules.py`, the table of the rules.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from streamlab.analysis.doctor.findings import Finding, find
from streamlab.analysis.doctor.layers import layer_of
from streamlab.analysis.doctor.rules import LAYERS
from streamlab.analysis.doctor.verdicts import (
    CORRECT,
    RETRY,
    RUN,
    SHOW_PART,
    TELL,
    UNCHANGED,
    VERDICTS,
    Case,
    Verdict,
    decide,
)
from streamlab.analysis.judge import Outcome
from streamlab.consumer.attempt import State
from streamlab.wire.events import Severity

if TYPE_CHECKING:
    from streamlab.analysis.doctor.examined import Examined
    from streamlab.streams.recording import Recording, RecordingFile

__all__ = ["LAYERS", "Diagnosis", "Finding", "Severity", "diagnose", "examine"]

#: (verdict, layer) -> what is advised, where that is more than the verdict says.
ADVICE = {
    (
        "provider error",
        "ours",
    ): "Mend the request, the key or the account: the same request fails again.",
    ("provider error", "model"): "Ask again; if it recurs, make the tool's schema simpler.",
    ("bad input", "gateway"): "Discard it and try again: the model is not to blame for its input.",
    ("silent", "vendor"): "Discard it and try again; set the timeout on progress: a ping is none.",
    ("provider error", "gateway"): "Ask whoever runs what is in between, then try again.",
    ("not a stream", "ours"): "Ask for a stream, or read this with what reads whole answers.",
    ("two answers", "gateway"): "Whatever tries again on the way has to end the stream "
    "first, or to say so.",
    ("buffered", "vendor"): "Nothing on the way has to change; some providers let a request ask "
    "for tool input as it is written.",
    ("held", "ours"): "Let a person decide; what is permitted here is for the policy to say.",
}

#: (verdict, layer) -> what may then not be done, though the verdict allows it.
LESS = {
    ("provider error", "ours"): RETRY,
    ("not a stream", "ours"): RETRY,
    ("bad input", "gateway"): CORRECT,
}


class Diagnosis(msgspec.Struct, frozen=True):
    """What a stream is worth, in words that a person can act on."""

    verdict: str  #: a word of `VERDICTS`: "whole", "broken off", "provider error", ...
    says: str  #: the verdict in a sentence, about this very stream
    layer: str  #: one of `LAYERS`, the likeliest; "" where nothing is wrong
    may: tuple[str, ...]  #: what a consumer may do with it
    may_not: tuple[str, ...]
    advice: str  #: one line; "" where nothing is wrong
    findings: tuple[Finding, ...] = ()  #: the one that the verdict rests on, then by frame
    because: str = ""  #: why it is that layer; "" where nothing is wrong

    @property
    def first(self) -> Finding | None:
        """The first bad event, and its byte; None where there is nothing but notes."""
        first = self.findings[0] if self.findings else None
        bad = first is not None and (self.verdict != "whole" or first.severity != "note")
        return first if bad else None


def diagnose(outcome: Outcome) -> Diagnosis:
    """Say what is wrong with a stream that was judged, and whose fault it likely is."""
    case = Case(outcome, find(outcome))
    word, found = decide(case)
    layer, because = layer_of(case, word, found)
    verdict = VERDICTS[word]
    return Diagnosis(
        verdict=word,
        says=_says(verdict, found),
        layer=layer,
        may=_may(verdict, layer, outcome),
        may_not=_may_not(verdict, layer, outcome),
        advice=_advice(verdict, layer, outcome),
        findings=_in_order(case.findings, found),
        because=because,
    )


def examine(
    recording: Recording | RecordingFile | str | os.PathLike[str], **options: Any
) -> Examined:
    """Judge a recording, or the first stream of a file, and say what a doctor would.

    The options are those of `judge`. Raises `WireError` where a file cannot be read.

    >>> from streamlab.streams.recording import Recording
    >>> examine(Recording()).diagnosis.verdict
    'empty'
    """
    from streamlab.analysis.doctor.examined import examined

    return examined(recording, **options)


def _says(verdict: Verdict, found: Finding | None) -> str:
    """The verdict, and what was found; what both would say is said once."""
    if found is None:
        return verdict.says
    told = found.says
    if verdict.word == "provider error" and found.rule == "unknown-wire":
        told = f"the whole body is {told.partition('the first frame is ')[2]}"
    for words in ("not an event stream: ", "not a stream: ", "the provider reports "):
        told = told.removeprefix(words)
    return f"{verdict.says.removesuffix('.')}: {told}"


def _advice(verdict: Verdict, layer: str, outcome: Outcome) -> str:
    if verdict.word == "cut short" and outcome.turn.facts.stop_reason == "context_window":
        return "Shorten the conversation: a higher limit does not help where the window is full."
    return ADVICE.get((verdict.word, layer), verdict.advice)


def _may(verdict: Verdict, layer: str, outcome: Outcome) -> tuple[str, ...]:
    """What the verdict allows, less what makes no sense here.

    Nothing came that could be shown; the same request fails again; a model is not to be told of
    what was spoilt on the way. A call that has passed every gate may also be run, after a commit;
    what a gate had nothing to check against is still to be checked.
    """
    may = verdict.may
    if not outcome.turn.segments:
        may = tuple(dict.fromkeys(TELL if word == SHOW_PART else word for word in may))
    less = LESS.get((verdict.word, layer))
    ready = outcome.state is State.VALIDATED_PROPOSAL
    unseen = [verdict.gate for verdict in outcome.verdicts if verdict.passed is None]
    checks = f" after a check of its {', '.join(unseen).replace('_', ' ')}," if unseen else ","
    more = (f"commit its proposal{checks} and then run its tool",) if ready else ()
    return (*(word for word in may if word != less), *more)


def _may_not(verdict: Verdict, layer: str, outcome: Outcome) -> tuple[str, ...]:
    """Nobody need be told not to run a tool where there is none."""
    called = bool(outcome.turn.calls)
    more = (UNCHANGED,) if LESS.get((verdict.word, layer)) == RETRY else ()
    return (*(word for word in verdict.may_not if called or word != RUN), *more)


def _in_order(findings: list[Finding], found: Finding | None) -> tuple[Finding, ...]:
    """The deciding one first; of an answer that is whole, what is worse than a note."""
    if found is None:
        found = next((one for one in findings if one.severity != "note"), None)
    rest = [one for one in findings if one is not found]
    return tuple(rest) if found is None else (found, *rest)
