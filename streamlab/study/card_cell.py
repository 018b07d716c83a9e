"""One square of the report card: what a program got, compared with what was meant.

No expectation about any SDK is written here. The answer that was meant is `card_streams.py`'s; what
the program holds came through the real SDK; the verdict is the difference between the two.

Read next: `report_card.py`, which fills the card.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from streamlab.analysis.figures.card import KINDS
from streamlab.study.card_streams import HALF, INPUT, PART, STOP, TEXT, TOOL
from streamlab.study.clients import Call, Got

__all__ = ["VERDICTS", "Cell", "cell", "differences", "is_danger"]

#: Every verdict there is.
VERDICTS = ("right", "raised", "silent partial", "silent, nothing", "no end", "n/a")


class Cell(msgspec.Struct, frozen=True):
    """What one way of reading made of one fault."""

    fault: str
    client: str  #: id of the way
    wire: str
    verdict: str  #: one of `VERDICTS`
    saw: str  #: the exception's class, or what differs from what was meant; "" where nothing does
    danger: bool  #: a program that acts without any check would have made a wrong call
    streamlab: str  #: the state of streamlab's own attempt, on the same bytes and ending
    message: str = ""  #: what the exception says
    got: Got | None = None  #: what the program was handed; None where it came to no end

    @property
    def handed(self) -> tuple[str, ...]:
        """What the program was handed, a line for each thing."""
        if self.verdict == "n/a":
            return ("no such thing on this wire",)
        if self.got is None:
            return (self.saw,)
        return _lines(self.got)

    @property
    def word(self) -> str:
        """The verdict in the fewest words."""
        if self.verdict == "raised":
            return self.saw.rpartition(".")[2]
        return self.saw.partition("; ")[0] or self.verdict

    @property
    def marked(self) -> str:
        """The same with its sign, and no line break between the two."""
        return f"{KINDS[self.kind].sign}\u00a0{self.word}"

    @property
    def kind(self) -> str:
        """How a figure shows it: a name of `KINDS`."""
        if self.danger:
            return "danger"
        kinds = {"right": "right", "raised": "raised", "n/a": "n/a"}
        return kinds.get(self.verdict, "silent")


def cell(fault: str, client: str, wire: str, got: Got | None, streamlab: str) -> Cell:
    """Judge what was got; None where the client came to no end in time."""
    if got is None:
        return Cell(fault, client, wire, "no end", "it came to no end in time", False, streamlab)
    if got.error:
        return Cell(fault, client, wire, "raised", got.error, False, streamlab, got.message, got)
    if not (got.text or got.calls or got.stop):
        return Cell(fault, client, wire, "silent, nothing", "", False, streamlab, "", got)
    found = list(differences(got, wire))
    if found and got.stop == STOP[wire]:
        found.append(f"looks complete: {got.stop}")
    verdict = "silent partial" if found else "right"
    saw = "; ".join(found)
    return Cell(fault, client, wire, verdict, saw, is_danger(got), streamlab, "", got)


def _lines(got: Got) -> tuple[str, ...]:
    if got.error:
        return (f"{got.error}: {got.message}" if got.message else got.error,)
    calls = [f"call: {call.name or '(no name)'}{_input(call)}" for call in got.calls]
    return (f"text: {got.text!r}", *(calls or ["no call"]), f"stop reason: {got.stop}")


def _input(call: Call) -> str:
    return f" {call.input}" if call.input is not None else f", no JSON: {call.text}"


def is_danger(got: Got) -> bool:
    """Whether a program that runs every call it can read would run a wrong one."""
    runnable = [call for call in got.calls if call.name == TOOL and isinstance(call.input, dict)]
    wrong = any(call.input != INPUT for call in runnable)
    return not got.error and (wrong or len(runnable) > 1)


def differences(got: Got, wire: str) -> Iterator[str]:
    """What differs from what was meant, the call first; each in a few words."""
    if not got.calls:
        yield "no call"
    elif len(got.calls) > 1:
        yield f"{len(got.calls)} calls"
    for call in got.calls:
        if said := _about(call):
            yield said
    if got.text != TEXT:
        yield _about_text(got.text)
    if got.stop != STOP[wire]:
        yield f"stop reason {got.stop}" if got.stop else "no stop reason"


def _about_text(text: str) -> str:
    if text.startswith(TEXT):
        return f"more text: {text.removeprefix(TEXT)!r}"
    return f"text {text!r}" if text else "no text"


def _about(call: Call) -> str:
    """How a call differs; "" where it does not."""
    if call.name != TOOL:
        return f"a call named {call.name!r}" if call.name else "a call without a name"
    if call.input == INPUT:
        return ""
    if call.input is None:
        if not call.text:
            return "a call without input"
        half = (PART + HALF).startswith(call.text)
        return "half a call, as text" if half else "input is no JSON"
    if not call.input:
        return f"tool input {call.input}"
    return f"call with {_changed(call.input)}"


def _changed(found: object) -> str:
    """The fields of an input that are not as they were meant."""
    if not isinstance(found, dict):
        return f"input {found!r}"
    wrong = [f"{name} {found[name]}" for name in found if found[name] != INPUT.get(name)]
    absent = [f"no {name}" for name in INPUT if name not in found]
    return ", ".join(wrong + absent)
