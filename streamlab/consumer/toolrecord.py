"""What is on record of a turn with tools: its streams, what came of each call, and how it ended.

Values, without a loop. `Ended.conversation` is fit for a request whatever happened, and `runs` says
of each call whether its tool was ever awaited.

Read next: `toolloop.py`, which makes these.
"""

from __future__ import annotations

from typing import Any

import msgspec

from streamlab.consumer.attempt import Attempt
from streamlab.consumer.conversation import Conversation
from streamlab.consumer.gates import Proposal
from streamlab.consumer.turn import Turn
from streamlab.consumer.turn_events import TOLD, Status, TurnState, printable

__all__ = ["Ended", "Round", "Run", "failure", "result"]

#: Characters of an error that the model, and a person, are told.
MOST_SAID = 500


class Run(msgspec.Struct, frozen=True):
    """What came of one call."""

    call_id: str
    tool: str
    input: dict[str, Any]
    status: Status
    text: str = ""  #: the result, or why there is none

    @property
    def said(self) -> str:
        """The text in one line that can be printed, wherever it came from."""
        return printable(self.text)

    @property
    def started(self) -> bool:
        """Whether the tool was awaited: then it may have done something, however it ended."""
        return self.status in (Status.DONE, Status.FAILED, Status.CANCELLED)


class Round(msgspec.Struct, frozen=True):
    """One stream of a turn, and what came of its calls."""

    attempt: Attempt
    turn: Turn
    kept: bool  #: whether it belongs to the turn
    runs: tuple[Run, ...] = ()


class Ended(msgspec.Struct, frozen=True):
    """A turn that is over: how, and all that is known of it."""

    turn: str
    state: TurnState
    why: str
    conversation: Conversation  #: fit for a request, or for the next question
    rounds: tuple[Round, ...] = ()  #: every stream, failed ones too
    proposals: tuple[Proposal, ...] = ()  #: where the state is PROPOSED, all calls of that round
    pending: Conversation | None = None  #: where PROPOSED: the one that waits for their results
    unheard: str = ""  #: the event at which publishing failed, and why; nothing was published after

    @property
    def said(self) -> str:
        """What a person is told."""
        return TOLD[self.state]

    @property
    def runs(self) -> tuple[Run, ...]:
        """What came of every call, in order."""
        return tuple(run for round in self.rounds for run in round.runs)

    @property
    def attempt(self) -> Attempt:
        """The last stream's: what a commit begins from."""
        return self.rounds[-1].attempt if self.rounds else Attempt()


def failure(why: BaseException) -> str:
    """An exception in words that can be sent, and printed."""
    try:
        text = str(why)
    except BaseException:
        text = ""
    name = type(why).__name__
    sentence = f"{name}: {text}" if text else name
    sendable = sentence[:MOST_SAID].encode("utf-8", "replace").decode()
    return printable(sendable, but="\n\t")[:MOST_SAID]


def result(text: Any) -> tuple[Status, str]:
    """What a tool gave, if it can be sent."""
    if not isinstance(text, str):
        return Status.FAILED, f"the tool gave a {type(text).__name__}, and no text"
    try:
        text.encode()
    except UnicodeEncodeError:
        return Status.FAILED, "the tool's text holds half a character, which cannot be sent"
    return Status.DONE, text
