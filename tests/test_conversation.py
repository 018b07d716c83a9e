"""The conversation: whole turns and nothing else; and the check that a history would be taken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.analysis.judge import judge
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.conversation import KEPT, Conversation
from streamlab.consumer.gates import CHAT
from streamlab.consumer.history import Message, content, objections, wrong_blocks
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
        unfit = list(wrong_blocks("assistant", content(outcome.turn)))
        assert outcome.attempt.state not in KEPT or unfit
    else:
        rules = {objection.rule for objection in objections(kept.messages)}
        assert rules <= {"unanswered", "last"}
        calls = [segment.start.call_id for segment in outcome.turn.calls]
        goes_on = kept.answer(dict.fromkeys(calls, "done")) if calls else kept.ask("And then?")
        assert goes_on.request() == list(goes_on.messages)


def test_a_result_that_is_an_error_says_so_and_the_others_do_not() -> None:
    asked = ASKED.keep(judge(synth.parallel_tools()))
    first, second = (b["id"] for b in asked.messages[-1]["content"] if b["type"] == "tool_use")
    answered = asked.answer({first: "done", second: "LookupError: no W-8"}, errors={second})
    well, badly = answered.messages[-1]["content"]
    assert "is_error" not in well
    assert (badly["is_error"], badly["content"]) == (True, "LookupError: no W-8")
    answered.request()


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


@pytest.mark.parametrize("wire", ["claude", "openai-chat", "openai-responses", "gemini"])
def test_a_whole_answer_is_kept_whatever_its_vendor(wire: str) -> None:
    outcome = judge(synth.story(wire))
    _, kept = ASKED.keep(outcome).messages
    *thought, said, tool = kept["content"]
    assert said["text"] == "I'll mark W-7 as ready for review."
    assert (tool["type"], tool["input"]["item"]) == ("tool_use", "W-7")
    assert tool["id"] == outcome.proposals[0].call_id
    assert ASKED.keep(outcome).answer({tool["id"]: "done"}).request()
    # Chat never takes reasoning back; each of the others does.
    assert [block["thinking"] for block in thought] == (
        [] if wire == "openai-chat" else ["W-7 has passed its checks, so it can be reviewed."]
    )


def test_a_signed_part_without_text_goes_back_in_its_place() -> None:
    parts = [synth.Thinking("Hm.", "c2lnbmVk"), synth.Text("Done.")]
    blocks = content(judge(synth.answer(parts, wire="gemini")).turn)
    assert [b.get("thinking", b.get("text")) for b in blocks] == ["Hm.", "Done.", ""]
    assert blocks[-1] == {"type": "text", "text": "", "signature": "c2lnbmVk"}
    assert not list(wrong_blocks("assistant", blocks))


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


def test_an_answer_is_kept_once_and_only_where_a_question_is_open() -> None:
    kept = ASKED.keep(judge(synth.greeting()))
    assert kept.keep(judge(synth.greeting())) is kept
    empty = Conversation()
    assert empty.keep(judge(synth.greeting())) is empty


def block(index: int, delta: dict[str, Any], **start: Any) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def stream(*events: list[dict[str, Any]], reason: str = "end_turn") -> Recording:
    message = {"id": "msg_1", "model": "a-model", "content": [], "usage": {}}
    payloads = [
        {"type": "message_start", "message": message},
        *(event for each in events for event in each),
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}},
        {"type": "message_stop"},
    ]
    lines = (b"data: " + msgspec.json.encode(payload) + b"\n\n" for payload in payloads)
    return Recording.from_bytes(b"".join(lines))


def test_what_comes_beside_a_delta_replaces_nothing() -> None:
    """Else the history could hold another call than the one that the gates have seen."""
    more = {"name": "delete_all", "id": "t9", "input": {"amount": 99}, "type_": "x"}
    delta = {"type": "input_json_delta", "partial_json": '{"amount": 1}', **more}
    start = {"type": "tool_use", "id": "t1", "name": "pay", "input": {}}
    outcome = judge(stream(block(0, delta, **start), reason="tool_use"))
    (proposal,) = outcome.proposals
    (kept,) = content(outcome.turn)
    assert (kept["id"], kept["name"], kept["input"]) == ("t1", "pay", {"amount": 1})
    assert (proposal.call_id, proposal.tool, proposal.input) == ("t1", "pay", {"amount": 1})


UNFIT = {
    "half a call that the provider runs": block(
        0,
        {"type": "input_json_delta", "partial_json": '{"q": '},
        type="server_tool_use",
        id="srv-1",
        name="web_search",
    ),
    "unsigned thinking": block(0, {"type": "thinking_delta", "thinking": "Hm"}, type="thinking")
    + block(1, {"type": "text_delta", "text": "Yes."}, type="text"),
    "thinking and nothing else": block(
        0, {"type": "signature_delta", "signature": "c2ln"}, type="thinking"
    ),
}


@pytest.mark.parametrize("events", UNFIT.values(), ids=UNFIT)
def test_a_whole_answer_that_no_request_may_hold_is_not_kept(events: Any) -> None:
    outcome = judge(stream(events))
    assert outcome.complete
    assert ASKED.keep(outcome) is ASKED


def test_nothing_that_is_handed_out_is_shared_with_what_is_kept() -> None:
    outcome = judge(synth.change_label())
    (call,) = outcome.turn.calls
    kept = ASKED.keep(outcome).answer({call.start.call_id: "done"})
    before = repr(kept), repr(outcome.turn), repr(outcome.proposals)
    for message in kept.request():
        message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    kept.request()[1]["content"][-1]["input"]["label"] = "changed"
    content(outcome.turn)[-1]["input"]["label"] = "changed"
    outcome.proposals[0].input["label"] = "handed out as it is"
    fresh = judge(synth.change_label())
    assert (repr(kept), repr(outcome.turn)) == before[:2]
    assert fresh.turn == outcome.turn


def test_reading_a_turn_changes_nothing_in_it() -> None:
    first, second = {"cited_text": "a"}, {"cited_text": "b"}
    start = {"type": "text", "text": "", "citations": [first]}
    events = block(0, {"type": "citations_delta", "citation": second}, **start)
    events.insert(
        1, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}
    )
    turn = judge(stream(events)).turn
    assert [content(turn)[0]["citations"] for _ in range(3)] == [[first, second]] * 3


HOSTILE = {
    "a signature that is a list": {"type": "thinking", "thinking": "", "signature": [1]},
    "a text that is a number": {"type": "text", "text": 5},
    "citations that are an object": {"type": "text", "text": "x", "citations": {"a": 1}},
}


@pytest.mark.parametrize("start", HOSTILE.values(), ids=HOSTILE)
def test_fields_of_the_wrong_type_raise_nothing(start: dict[str, Any]) -> None:
    delta = {"type": "citations_delta", "citation": {"a": 2}}
    outcome = judge(stream(block(0, delta, **start)))
    for segment in outcome.turn.segments:
        assert isinstance(segment.signature, str) and isinstance(segment.attached, dict)
    assert isinstance(content(outcome.turn), list)
    assert outcome.attempt.state != "MESSAGE_COMPLETE" or "citations" in start


# --- Going on from partial text -------------------------------------------------------------------


def test_going_on_from_text_is_a_question_of_the_users_and_no_answer_of_the_models() -> None:
    again = ASKED.continue_from(judge(faults.disconnect(synth.greeting(), 6)))
    assert [message["role"] for message in again.messages] == ["user"]
    assert again.messages[0]["content"][-1]["text"].endswith("\n\nHello! What would you")
    assert objections(again.messages) == ()
    assert len(ASKED.messages[0]["content"]) == 1, "the conversation before it stays what it was"


def test_an_answer_that_ran_into_its_token_limit_can_be_continued() -> None:
    limited = judge(faults.token_limit(synth.greeting(), 6))
    assert "What would you" in ASKED.continue_from(limited).request()[0]["content"][-1]["text"]


def test_a_question_that_is_only_a_text_can_be_continued_too() -> None:
    asked = Conversation(({"role": "user", "content": "Hi"},))
    again = asked.continue_from(judge(faults.disconnect(synth.greeting(), 6)))
    assert [each["type"] for each in again.request()[0]["content"]] == ["text", "text"]


def test_half_a_character_at_the_cut_is_left_out() -> None:
    cut = faults.disconnect(stream(block(0, {"type": "text_delta", "text": "Hi"}, type="text")), 2)
    half = (
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi \\ud83d"}}'
    )
    again = ASKED.continue_from(judge(faults.insert(cut, 2, f"data: {half}\n\n".encode())))
    assert again.request()[0]["content"][-1]["text"].endswith("\n\nHi ")


@pytest.mark.parametrize(
    ("recording", "said"),
    [
        (faults.disconnect(synth.change_label(), 14), "segment 1 is a tool call"),
        (faults.disconnect(synth.thinking_then_tool(), 5), "segment 0 is thinking"),
        (faults.disconnect(synth.greeting(), 2), "no text had come"),
        (faults.refuse(synth.greeting(), 6), "HELD: only an answer that was cut short"),
        (faults.error(synth.greeting(), 6), "INVALID: only an answer that was cut short"),
        (faults.cancel(synth.greeting(), 6), "ABORTED: only an answer that was cut short"),
        (synth.greeting(), "MESSAGE_COMPLETE: only an answer that was cut short"),
    ],
    ids=["half a call", "half a thought", "nothing", "refused", "failed", "cancelled", "whole"],
)
def test_from_anything_but_interrupted_text_there_is_no_going_on(
    recording: Recording, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        ASKED.continue_from(judge(recording))


def test_there_is_no_going_on_without_a_question() -> None:
    with pytest.raises(UsageError, match="no question"):
        Conversation().continue_from(judge(faults.disconnect(synth.greeting(), 6)))
