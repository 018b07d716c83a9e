"""The conversation: what the next request will hold. It takes whole turns, and nothing else.

Two buffers, two rules. What is *shown* may be partial, may flicker, may be taken back: that is the
turn. What is *kept* is sent to the model again with every request, and a model believes its own
words: half a sentence is then an answer it gave, and half a tool call is one that it made. So
`keep` takes a turn only when its attempt found it complete and acceptable; else the conversation is
the *same object* as before the call, and a retry starts there.

Messages are in the form of the Messages API: a role, and a list of content blocks.
Read next: `delivery.py`, for what comes twice or too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from streamlab.consumer.attempt import Attempt, State
from streamlab.consumer.gates import Verdict
from streamlab.consumer.turn import Segment, Turn
from streamlab.errors import UsageError

__all__ = ["KEPT", "Conversation", "Message", "Objection", "content", "objections"]

Message = dict[str, Any]
Block = dict[str, Any]

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
    "ends, without repeating any of it.\n\n"
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

        Complete is not enough: before the gates nobody has asked why the model stopped.
        """
        state = answer.attempt.state
        judged = state is not State.MESSAGE_COMPLETE or answer.verdicts
        blocks = content(answer.turn) if judged and state in KEPT else []
        return self._with("assistant", blocks) if blocks else self

    def answer(self, results: Mapping[str, str]) -> Conversation:
        """Give the results of tool calls, by call id; in one message, as the API wants them."""
        return self._with(
            "user",
            [
                {"type": "tool_result", "tool_use_id": call_id, "content": text}
                for call_id, text in results.items()
            ],
        )

    def continue_from(self, partial: Turn) -> Conversation:
        """Ask the model to go on from an interrupted *text*: never done unless it is asked for.

        The fragment is quoted to the model by the user, so no half answer stands as the model's
        own. Raises `UsageError` where anything but text had come: half a tool call or half a
        thought is not to be gone on from.
        """
        other = next((s for s in partial.segments if s.kind != "text"), None)
        if other is not None:
            what = "a tool call" if other.kind == "tool_call" else other.kind
            raise UsageError(f"segment {other.id} is {what}: only from text one can go on")
        if not partial.text.strip():
            raise UsageError("no text had come: there is nothing to go on from, so ask again")
        if not self.messages or self.messages[-1]["role"] != "user":
            raise UsageError("the last message is no question: there is nothing to go on with")
        *earlier, last = self.messages
        quoted = {"type": "text", "text": GO_ON + partial.text}
        return Conversation((*earlier, {**last, "content": [*last["content"], quoted]}))

    def request(self) -> list[Message]:
        """The messages to send. Raises `UsageError` where the history would be refused."""
        found = objections(self.messages)
        if found:
            raise UsageError(str(found[0]))
        return list(self.messages)

    def _with(self, role: str, blocks: list[Block]) -> Conversation:
        return Conversation((*self.messages, {"role": role, "content": blocks}))


def content(turn: Turn) -> list[Block]:
    """A whole turn as content blocks, in order; thinking and its signature byte for byte.

    Blank text is left out: an answer may hold some, and a request may not.
    """
    blocks = [SHAPES[segment.kind](segment) for segment in turn.segments]
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


#: Segment kind -> its content block.
SHAPES: dict[str, Callable[[Segment], Block]] = {
    "text": lambda s: {"type": "text", "text": s.text, **s.attached},
    "thinking": lambda s: {
        "type": "thinking",
        "thinking": s.text,
        "signature": s.signature,
        **s.attached,
    },
    "tool_call": lambda s: {
        "type": s.start.type or "tool_use",
        "id": s.start.call_id,
        "name": s.start.name,
        "input": s.input,
        **s.attached,
    },
    "other": lambda s: {"type": s.start.type, **s.attached},
}


# --- The check of a history -----------------------------------------------------------------------


class Objection(msgspec.Struct, frozen=True):
    """One reason for which a history would be refused; `str()` names the place."""

    message: int  #: 1 for the first
    role: str
    turn: int  #: 1 for the first: a turn begins with what the user says
    rule: str
    says: str

    def __str__(self) -> str:
        return f"turn {self.turn}, message {self.message} ({self.role}): {self.says}"


#: (rule, what is wrong)
Wrong = tuple[str, str]


def objections(messages: Sequence[Message]) -> tuple[Objection, ...]:
    """Everything for which these messages would be refused, in order; empty where all is well.

    It takes messages from anywhere, also hand-made ones whose `content` is only a text.
    """
    found: list[Objection] = []
    turn, before = 0, list[Block]()
    for number, message in enumerate(messages, 1):
        role, blocks = str(message.get("role")), _blocks(message)
        after = _blocks(messages[number]) if number < len(messages) else []
        turn += role == "user" and not _ids(blocks, "tool_result")
        wrong = [*_wrong_blocks(role, blocks), *_wrong_calls(role, before, blocks, after)]
        found += [Objection(number, role, max(turn, 1), *each) for each in wrong]
        before = blocks
    if messages and messages[0].get("role") != "user":
        first = str(messages[0].get("role"))
        found.insert(0, Objection(1, first, 1, "first", "a conversation begins with the user"))
    return tuple(found)


def _blocks(message: Message) -> list[Block]:
    """The content of a message as blocks; a text is one block of text."""
    held = message.get("content")
    if isinstance(held, str):
        return [{"type": "text", "text": held}]
    return [block for block in held if isinstance(block, dict)] if isinstance(held, list) else []


def _ids(blocks: list[Block], type: str) -> list[Any]:
    name = "id" if type == "tool_use" else "tool_use_id"
    return [block.get(name) for block in blocks if block.get("type") == type]


def _wrong_blocks(role: str, blocks: list[Block]) -> Iterator[Wrong]:
    if not blocks:
        yield "empty", "it has no content"
    for number, block in enumerate(blocks, 1):
        whole, rule, says = CHECKS.get(str(block.get("type")), ANY)
        if not whole(block):
            yield rule, f"block {number}: {says}"


def _wrong_calls(
    role: str, before: list[Block], blocks: list[Block], after: list[Block]
) -> Iterator[Wrong]:
    """Each call is answered in the very next message, and each answer has its call before it."""
    calls, answers = _ids(blocks, "tool_use"), _ids(after, "tool_result")
    for id in calls:
        if id not in answers:
            yield "unanswered", f"the tool call {id} has no result in the next message"
    for id in _ids(blocks, "tool_result"):
        if id not in _ids(before, "tool_use"):
            yield "unasked", f"there is a result for {id}, but no such call in the message before"


#: Block type -> (what must hold of such a block, the rule's name, what is said where it does not).
CHECKS: dict[str, tuple[Callable[[Block], bool], str, str]] = {
    "text": (lambda b: bool(str(b.get("text", "")).strip()), "blank", "the text is blank"),
    "thinking": (
        lambda b: bool(b.get("signature")),
        "unsigned",
        "thinking without a signature: it was cut off, or changed",
    ),
    "tool_use": (
        lambda b: isinstance(b.get("input"), dict),
        "half a call",
        "a tool call whose input is no object",
    ),
}
ANY: tuple[Callable[[Block], bool], str, str] = (lambda b: True, "", "")
