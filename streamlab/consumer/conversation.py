"""The conversation: what the next request will hold. It takes whole turns, and nothing else.

Two buffers, two rules. What is *shown* may be partial, may flicker, may be taken back: that is the
turn. What is *kept* is sent to the model again with every request, and a model believes its own
words: half a sentence is then an answer it gave, and half a tool call is one that it made. So
`keep` takes a turn only when its attempt found it complete and acceptable; else the conversation is
the *same object* as before the call, and a retry starts there.

Read next: `delivery.py`, for what comes twice or too late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any, Protocol

import msgspec

from streamlab.consumer.attempt import Attempt, State
from streamlab.consumer.gates import Verdict
from streamlab.consumer.history import (
    Block,
    Message,
    blocks_of,
    content,
    objections,
    wrong_blocks,
)
from streamlab.consumer.turn import Turn
from streamlab.errors import UsageError

__all__ = ["KEPT", "Conversation", "Judged"]

#: The states in which an answer is kept once it was judged: it is whole, and acceptable here.
KEPT = frozenset(
    {
        State.MESSAGE_COMPLETE,
        State.VALIDATED_PROPOSAL,
        State.COMMITTING,
        State.RECONCILING,
        State.COMMITTED,
    }
)

#: What the model is told where it is to go on from an interrupted text.
GO_ON = (
    "Your answer to this was interrupted. It ended with the text below. Go on exactly where it "
    "ends, and repeat none of it.\n\n"
)


class Judged(Protocol):
    """A stream that was consumed: a `Consumer` at its end, or an `Outcome`."""

    @property
    def attempt(self) -> Attempt: ...

    @property
    def turn(self) -> Turn: ...

    @property
    def verdicts(self) -> tuple[Verdict, ...]: ...


class Conversation(msgspec.Struct, frozen=True):
    """The messages so far. Every method gives a new conversation, or the same one."""

    messages: tuple[Message, ...] = ()

    def ask(self, text: str) -> Conversation:
        """The user says something."""
        return self._with("user", [{"type": "text", "text": text}])

    def keep(self, answer: Judged) -> Conversation:
        """Keep a whole, acceptable answer; of any other nothing, and this object comes back.

        Complete is not enough: before the gates nobody has asked why the model stopped. And what no
        request may hold, like thinking without its signature, is no history either.
        """
        state = answer.attempt.state
        judged = state is not State.MESSAGE_COMPLETE or answer.verdicts
        if not judged or state not in KEPT or self._last("role") != "user":
            return self
        blocks = content(answer.turn)
        wrong = next(wrong_blocks("assistant", blocks), None)
        return self if wrong else self._with("assistant", blocks)

    def answer(self, results: Mapping[str, str], errors: Collection[str] = ()) -> Conversation:
        """Give the results of tool calls, by call id; in one message, as the API wants them.

        `errors` are the ids of those that failed: the model is told so, and may try another way.
        """
        return self._with(
            "user",
            [
                {"type": "tool_result", "tool_use_id": call_id, "content": text}
                | ({"is_error": True} if call_id in errors else {})
                for call_id, text in results.items()
            ],
        )

    def continue_from(self, answer: Judged) -> Conversation:
        """Ask the model to go on from an interrupted *text*: never done unless it is asked for.

        The fragment is quoted to the model by the user, so no half answer stands as the model's
        own. Raises `UsageError` where the answer was not cut short, or where anything but text had
        come: half a tool call or half a thought can't be continued.
        """
        state, turn = answer.attempt.state, answer.turn
        if state is not State.INCOMPLETE and turn.facts.stop_reason not in CUT_SHORT:
            why = f"{state}: only an answer that was cut short can be continued"
            raise UsageError(f"this answer is {why}")
        other = next((s for s in turn.segments if s.kind != "text"), None)
        if other is not None:
            what = "a tool call" if other.kind == "tool_call" else other.kind
            raise UsageError(f"segment {other.id} is {what}: only text can be continued")
        if not turn.text.strip():
            raise UsageError("no text had come: there is nothing to continue, so ask again")
        if self._last("role") != "user":
            raise UsageError("the last message is no question: there is nothing to continue")
        half = turn.text.encode("utf-8", "ignore").decode()  # a cut may leave half a character
        quoted = {"type": "text", "text": GO_ON + half}
        *earlier, last = self.messages
        return Conversation((*earlier, {**last, "content": [*blocks_of(last), quoted]}))

    def request(self) -> list[Message]:
        """The messages to send, as a copy. Raises `UsageError` where they would be refused."""
        found = objections(self.messages)
        if found:
            raise UsageError(str(found[0]))
        return deepcopy(list(self.messages))

    def _last(self, key: str) -> Any:
        return self.messages[-1].get(key) if self.messages else None

    def _with(self, role: str, blocks: list[Block]) -> Conversation:
        return Conversation((*self.messages, {"role": role, "content": blocks}))


#: Stop reasons of an answer that is whole, and was cut short all the same.
CUT_SHORT = ("max_tokens", "context_window")
