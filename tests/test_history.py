"""The check of a history: what a request may not hold is named, with its turn and its message."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.consumer.conversation import Conversation
from streamlab.consumer.history import Message, objections
from streamlab.errors import UsageError


def user(*blocks: Any) -> Message:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(id: str = "call-1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "change_label", "input": {}, **more}


def result(id: str = "call-1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "done"}


HI, HELLO, AND = user(text("Hi")), assistant(text("Hello")), user(text("And?"))

SIGNED = {"type": "thinking", "thinking": "", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srv-1", "name": "web_search", "input": {"q": "a"}}

#: What is wrong -> (messages, the rule, what is said, with its place)
REFUSED: dict[str, tuple[list[Any], str, str]] = {
    "blank text": (
        [HI, assistant(text(" ")), AND],
        "blank",
        "turn 1, message 2 (assistant): block 1: the text is blank",
    ),
    "blank text of the user": (
        [{"role": "user", "content": ""}],
        "blank",
        "turn 1, message 1 (user): block 1: the text is blank",
    ),
    "a text that is none": (
        [user({"type": "text", "text": None})],
        "blank",
        "turn 1, message 1 (user): block 1: the text is blank",
    ),
    "no content": (
        [HI, assistant(), AND],
        "empty",
        "turn 1, message 2 (assistant): it has no content",
    ),
    "unsigned thinking": (
        [HI, assistant({"type": "thinking", "thinking": "Hm"}, text("Hello")), AND],
        "unsigned",
        "turn 1, message 2 (assistant): block 1: thinking without a signature: it was cut off, "
        "or changed",
    ),
    "it ends in thinking": (
        [HI, assistant(SIGNED), AND],
        "ends in thinking",
        "turn 1, message 2 (assistant): it ends in thinking: the answer itself is missing",
    ),
    "half a call": (
        [HI, assistant(call(input=None)), user(result())],
        "half a call",
        "turn 1, message 2 (assistant): block 1: half a tool call: it has no id, no name, or an "
        "input that is no object",
    ),
    "half a call of the provider's": (
        [HI, assistant({**SEARCH, "input": None}, text("Hello")), AND],
        "half a call",
        "turn 1, message 2 (assistant): block 1: half a tool call: it has no id, no name, or an "
        "input that is no object",
    ),
    "an unanswered call, last": (
        [HI, assistant(text("Yes"), call())],
        "unanswered",
        "turn 1, message 2 (assistant): the tool call call-1 has no result in the next message",
    ),
    "an unanswered call in the second turn": (
        [HI, HELLO, user(text("Label it")), assistant(call()), user(text("Well?"))],
        "unanswered",
        "turn 2, message 4 (assistant): the tool call call-1 has no result in the next message",
    ),
    "a result for nobody": (
        [HI, HELLO, user(result())],
        "unasked",
        "turn 1, message 3 (user): there is a result for call-1, but no such call in the message "
        "before",
    ),
    "two results for one call": (
        [HI, assistant(call()), user(result(), result())],
        "answered twice",
        "turn 1, message 3 (user): there are two results for call-1",
    ),
    "a result behind text": (
        [HI, assistant(call()), user(text("Well"), result())],
        "not first",
        "turn 1, message 3 (user): the results of tools come before anything else in their message",
    ),
    "one id for two calls": (
        [HI, assistant(call(), call()), user(result())],
        "id repeated",
        "turn 1, message 2 (assistant): the id call-1 was used by an earlier call",
    ),
    "a call that the user makes": (
        [user(call()), user(result())],
        "misplaced",
        "turn 1, message 1 (user): block 1: a tool_use belongs to the other role",
    ),
    "the model begins": (
        [HELLO, HI],
        "first",
        "turn 1, message 1 (assistant): a conversation begins with the user",
    ),
    "the model's own words come last": (
        [HI, HELLO],
        "last",
        "turn 1, message 2 (assistant): the model's own words come last, and newer models refuse "
        "to go on from them",
    ),
    "half a character": (
        [user(text("Hi \ud83d"))],
        "half a character",
        "turn 1, message 1 (user): it holds half a character, which cannot be sent",
    ),
    "what is no JSON": (
        [user({"type": "text", "text": "Hi", "more": object()})],
        "no JSON",
        "turn 1, message 1 (user): it cannot be written as JSON",
    ),
    "a block that is none": (
        [{"role": "user", "content": ["Hi"]}],
        "no block",
        "turn 1, message 1 (user): block 1: it is no object with a type",
    ),
    "another role": (
        [{"role": "tool", "content": "Hi"}],
        "role",
        "turn 1, message 1 (tool): its role is none of user, assistant, system",
    ),
    "a message that is none": (
        ["Hi"],
        "role",
        "turn 1, message 1 (none): its role is none of user, assistant, system",
    ),
}


@pytest.mark.parametrize(("messages", "rule", "said"), REFUSED.values(), ids=REFUSED)
def test_a_history_that_would_be_refused(messages: list[Message], rule: str, said: str) -> None:
    first = objections(messages)[0]
    assert (first.rule, str(first)) == (rule, said)
    with pytest.raises(UsageError) as raised:
        Conversation(tuple(messages)).request()
    assert str(raised.value) == said


TAKEN: dict[str, list[Message]] = {
    "a question": [HI],
    "a question that is only a text": [{"role": "user", "content": "Hi"}],
    "two questions in a row": [HI, AND],
    "a picture": [user({"type": "image", "source": {"type": "base64", "data": "aGk="}})],
    "a turn, and a question": [HI, HELLO, AND],
    "signed thinking without text": [HI, assistant(SIGNED, text("Hello")), AND],
    "a round of tools": [HI, assistant(text("Yes"), call()), user(result())],
    "several calls, answered in any order": [
        HI,
        assistant(call("a"), call("b")),
        user(result("b"), result("a"), text("And?")),
    ],
    "a call that the provider ran": [HI, assistant(SEARCH, text("Found")), AND],
}


@pytest.mark.parametrize("messages", TAKEN.values(), ids=TAKEN)
def test_a_history_that_is_taken(messages: list[Message]) -> None:
    assert objections(messages) == ()
    assert Conversation(tuple(messages)).request() == messages


def test_every_objection_is_found_and_named_in_order() -> None:
    messages = [user(text("")), assistant(call("a"), call("b")), user(result("b"), result("c"))]
    assert [(found.message, found.rule) for found in objections(messages)] == [
        (1, "blank"),
        (2, "unanswered"),
        (3, "unasked"),
    ]


def test_a_round_of_tools_belongs_to_one_turn() -> None:
    done = assistant(text("Done"))
    messages = [HI, assistant(call()), user(result()), done, AND, assistant(text("")), AND]
    (found,) = objections(messages)
    assert (found.turn, found.message) == (2, 6)


def test_the_check_of_many_calls_costs_each_once() -> None:
    """A quadratic one would take minutes: these are ten thousand calls, and their results."""
    ids = [f"call-{n}" for n in range(10_000)]
    messages = [HI, assistant(*map(call, ids)), user(*map(result, ids))]
    assert objections(messages) == ()
    assert len(objections(messages[:2])) == 10_001


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(("text", "thinking", "tool_use", "tool_result", "new")) | JSON},
    optional={"text": JSON, "signature": JSON, "id": JSON, "tool_use_id": JSON, "input": JSON},
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(("user", "assistant")) | JSON,
        "content": st.lists(BLOCKS) | JSON,
    },
)


@given(st.lists(MESSAGES, max_size=5))
def test_whatever_it_is_handed_it_objects_and_never_raises(messages: list[Message]) -> None:
    for objection in objections(messages):
        assert 1 <= objection.message <= len(messages)
        assert msgspec.json.encode(str(objection))
