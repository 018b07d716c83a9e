"""The conversation: whole turns and nothing else; and the check that a history would be taken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.analysis.judge import judge
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.conversation import (
    KEPT,
    Conversation,
    Message,
    content,
    objections,
)
from streamlab.consumer.gates import CHAT
from streamlab.errors import UsageError
from streamlab.streams import faults, synth
from streamlab.streams.recording import Recording

ASKED = Conversation().ask("Is W-7 ready?")
SENTENCE = synth.Text(("Yes, W-7", " is ready."))


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


# --- What is kept ---------------------------------------------------------------------------------


def test_a_whole_text_answer_is_kept_as_it_was() -> None:
    kept = ASKED.keep(judge(synth.answer([SENTENCE])))
    assert kept.messages == (user(text("Is W-7 ready?")), assistant(text("Yes, W-7 is ready.")))
    assert len(ASKED.messages) == 1, "the old conversation stays what it was"


NOT_KEPT = {
    "cut": faults.disconnect(synth.change_label(), 14),
    "clean end before the marker": faults.disconnect(synth.change_label(), 19),
    "provider's error": faults.error(synth.change_label(), 8),
    "cancelled": faults.cancel(synth.change_label(), 8),
    "token limit": faults.token_limit(synth.change_label(), 14),
    "refusal": faults.refuse(synth.greeting(), 6),
    "a lost frame": faults.skip(synth.change_label(), 18),
    "an index is missing": faults.index_gap(synth.change_label(), 1),
    "a web page": faults.html_page(synth.greeting()),
    "nothing": Recording(),
}


@pytest.mark.parametrize("recording", NOT_KEPT.values(), ids=NOT_KEPT)
def test_of_any_other_answer_nothing_is_kept_and_the_same_object_comes_back(
    recording: Recording,
) -> None:
    assert ASKED.keep(judge(recording)) is ASKED


@given(st.integers(0, 500), st.data())
def test_an_answer_that_was_cut_anywhere_leaves_no_trace(seed: int, data: st.DataObject) -> None:
    _, whole = synth.random_answer(seed)
    last = len(faults.frames(whole)) - 1
    cut = faults.disconnect(whole, data.draw(st.integers(0, last)))
    assert ASKED.keep(judge(cut)) is ASKED


@given(st.integers(0, 500))
def test_what_is_kept_of_a_whole_answer_would_be_taken_by_the_api(seed: int) -> None:
    _, whole = synth.random_answer(seed)
    outcome = judge(whole)
    kept = ASKED.keep(outcome)
    if kept is ASKED:
        assert outcome.attempt.state not in KEPT or not content(outcome.turn)
    else:
        rules = {objection.rule for objection in objections(kept.messages)}
        assert rules <= {"unanswered"}
        calls = [segment.start.call_id for segment in outcome.turn.calls]
        answered = kept.answer(dict.fromkeys(calls, "done")) if calls else kept
        assert answered.request() == list(answered.messages)


@pytest.mark.parametrize(
    ("recording", "is_kept"),
    [(synth.greeting(), True), (faults.token_limit(synth.greeting(), 6), False)],
    ids=["a whole answer", "a token limit"],
)
def test_before_the_gates_nothing_is_kept_not_even_a_complete_answer(
    recording: Recording, is_kept: bool
) -> None:
    consumer, data = Consumer(), recording.data
    for place in range(0, len(data), 40):
        consumer.feed(data[place : place + 40])
        assert ASKED.keep(consumer) is ASKED
    assert consumer.turn.complete
    consumer.end("eof")
    assert (ASKED.keep(consumer) is not ASKED) == is_kept


def test_a_policy_that_wants_text_keeps_no_call() -> None:
    assert ASKED.keep(judge(synth.change_label(), CHAT)) is ASKED


def test_nothing_of_a_failed_attempt_survives_in_the_retry() -> None:
    broken = faults.disconnect(synth.change_label(), 14)
    first = judge(broken)
    after = ASKED.keep(first)
    second = judge(synth.answer([SENTENCE], seed=8), attempt="attempt-2")
    kept = after.keep(second)
    assert second.attempt.id == "attempt-2"
    assert kept == ASKED.keep(second)
    assert "ready for review" not in str(kept.messages)


def test_thinking_goes_back_byte_for_byte() -> None:
    outcome = judge(synth.thinking_then_tool())
    thinking, tool = content(outcome.turn)
    assert thinking == {
        "type": "thinking",
        "thinking": "W-7 has passed its checks, so it can be reviewed.",
        "signature": "c3ludGhldGljLXNpZ25hdHVyZQ==",
    }
    assert tool["input"] == {"item": "W-7", "label": "Ready for review"}


def test_thinking_without_text_keeps_its_signature() -> None:
    parts = [synth.Thinking("", "c2lnbmVk"), SENTENCE]
    blocks = content(judge(synth.answer(parts)).turn)
    assert blocks[0] == {"type": "thinking", "thinking": "", "signature": "c2lnbmVk"}


def test_what_the_provider_ran_itself_goes_back_too() -> None:
    found = [{"type": "web_search_result", "title": "a", "url": "https://example.com/a"}]
    parts = [
        synth.RedactedThinking("b3BhcXVl"),
        synth.ServerToolCall("web_search", {"query": "W-7"}),
        synth.ServerToolResult("web_search_tool_result", found),
        synth.Text("Found.", (synth.CITATION,)),
    ]
    redacted, search, results, said = content(judge(synth.answer(parts)).turn)
    assert redacted == {"type": "redacted_thinking", "data": "b3BhcXVl"}
    assert (search["type"], search["input"]) == ("server_tool_use", {"query": "W-7"})
    assert (results["type"], results["content"]) == ("web_search_tool_result", found)
    assert said["citations"] == [synth.CITATION]


def test_a_blank_text_of_an_answer_is_left_out() -> None:
    outcome = judge(synth.answer([synth.Text("  \n"), SENTENCE]))
    assert content(outcome.turn) == [text("Yes, W-7 is ready.")]


# --- Going on from partial text -------------------------------------------------------------------


def test_going_on_from_text_is_a_question_of_the_users_and_no_answer_of_the_models() -> None:
    partial = judge(faults.disconnect(synth.greeting(), 6)).turn
    again = ASKED.continue_from(partial)
    assert [message["role"] for message in again.messages] == ["user"]
    assert again.messages[0]["content"][-1]["text"].endswith("\n\nHello! What would you")
    assert objections(again.messages) == ()
    assert len(ASKED.messages[0]["content"]) == 1, "the conversation before it stays what it was"


@pytest.mark.parametrize(
    ("recording", "said"),
    [
        (faults.disconnect(synth.change_label(), 14), "segment 1 is a tool call"),
        (faults.disconnect(synth.thinking_then_tool(), 5), "segment 0 is thinking"),
        (faults.disconnect(synth.greeting(), 2), "no text had come"),
    ],
    ids=["half a tool call", "half a thought", "nothing"],
)
def test_from_anything_but_text_there_is_no_going_on(recording: Recording, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ASKED.continue_from(judge(recording).turn)


def test_there_is_no_going_on_without_a_question() -> None:
    partial = judge(faults.disconnect(synth.greeting(), 6)).turn
    with pytest.raises(UsageError, match="no question"):
        Conversation().continue_from(partial)


# --- The check of a history -----------------------------------------------------------------------

#: What is wrong -> (messages, the rule, what is said, the place)
REFUSED: dict[str, tuple[list[Message], str, str]] = {
    "blank text": (
        [user(text("Hi")), assistant(text(" "))],
        "blank",
        "turn 1, message 2 (assistant): block 1: the text is blank",
    ),
    "blank text of the user": (
        [{"role": "user", "content": ""}],
        "blank",
        "turn 1, message 1 (user): block 1: the text is blank",
    ),
    "no content": (
        [user(text("Hi")), assistant()],
        "empty",
        "turn 1, message 2 (assistant): it has no content",
    ),
    "unsigned thinking": (
        [
            user(text("Hi")),
            assistant({"type": "thinking", "thinking": "Hm"}, text("Hello")),
            user(text("And?")),
        ],
        "unsigned",
        "turn 1, message 2 (assistant): block 1: thinking without a signature: it was cut off, "
        "or changed",
    ),
    "half a call": (
        [user(text("Hi")), assistant(call(input=None)), user(result())],
        "half a call",
        "turn 1, message 2 (assistant): block 1: a tool call whose input is no object",
    ),
    "an unanswered call, last": (
        [user(text("Hi")), assistant(text("Yes"), call())],
        "unanswered",
        "turn 1, message 2 (assistant): the tool call call-1 has no result in the next message",
    ),
    "an unanswered call in the second turn": (
        [
            user(text("Hi")),
            assistant(text("Hello")),
            user(text("Label it")),
            assistant(call()),
            user(text("Well?")),
        ],
        "unanswered",
        "turn 2, message 4 (assistant): the tool call call-1 has no result in the next message",
    ),
    "a result for nobody": (
        [user(text("Hi")), assistant(text("Hello")), user(result())],
        "unasked",
        "turn 1, message 3 (user): there is a result for call-1, but no such call in the message "
        "before",
    ),
    "the model begins": (
        [assistant(text("Hello"))],
        "first",
        "turn 1, message 1 (assistant): a conversation begins with the user",
    ),
}


@pytest.mark.parametrize(("messages", "rule", "said"), REFUSED.values(), ids=REFUSED)
def test_a_history_that_would_be_refused(messages: list[Message], rule: str, said: str) -> None:
    first = objections(messages)[0]
    assert (first.rule, str(first)) == (rule, said)
    with pytest.raises(UsageError) as raised:
        Conversation(tuple(messages)).request()
    assert str(raised.value) == said


def test_every_objection_is_found_and_named_in_order() -> None:
    messages = [user(text("")), assistant(call("a"), call("b")), user(result("b"), result("c"))]
    assert [(found.message, found.rule) for found in objections(messages)] == [
        (1, "blank"),
        (2, "unanswered"),
        (3, "unasked"),
    ]


def test_a_round_of_tools_belongs_to_one_turn() -> None:
    messages = [
        user(text("Hi")),
        assistant(call()),
        user(result()),
        assistant(text("Done")),
        {"role": "user", "content": "Thanks"},
        assistant(text("")),
    ]
    (found,) = objections(messages)
    assert found.turn == 2


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
