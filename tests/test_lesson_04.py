"""Lesson 04 tells the truth: two buffers, poisoned requests, retries, and what an ending proves."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anthropic
import pytest

from streamlab import Conversation, UsageError, faults, judge, synth, trace
from streamlab.consumer.attempt import State
from streamlab.consumer.history import Message, objections
from streamlab.streams.parts import Text
from streamlab.streams.recording import Recording
from streamlab.streams.server import FaultServer
from streamlab.study import exercise_04
from streamlab.study.histories import (
    Reply,
    advice,
    advice_anew,
    run_loop,
    said,
    send,
    shown,
    side_by_side,
)
from streamlab.study.questions import exercise, question

ASKED = Conversation().ask("May W-7 be deleted?")
BROKEN = faults.disconnect(advice(), after=5)
HALF_PAID = faults.disconnect(synth.pay_invoice(), after=11)
GO_ON: Message = {"role": "user", "content": "Go on."}


def recorded_as_shown(recording: Recording) -> list[Message]:
    """The bad design of the lesson."""
    return [*ASKED.messages, {"role": "assistant", "content": shown(judge(recording).turn)}]


def server_url_of_nobody() -> str:
    """An address of this machine where somebody listened until now."""
    with FaultServer(503) as server:
        return server.url


def right_text(id: str) -> str:
    asked = question(id)
    return asked.options[asked.right].text


# --- An interruption, seen ------------------------------------------------------------------------


def test_half_of_the_answer_is_a_sentence_and_says_the_opposite_of_the_whole() -> None:
    half, whole = judge(BROKEN).turn.text, judge(advice()).turn.text
    assert half == "Yes, W-7 can be deleted."
    assert whole == f"{half} But first close its audit."
    assert judge(BROKEN).state is State.INCOMPLETE
    assert len(faults.frames(advice())) == 10


def test_what_is_shown_grows_and_what_is_kept_comes_at_once_and_whole() -> None:
    steps = trace(advice()).steps
    texts = [step.turn.text for step in steps]
    kept = [len(ASKED.keep(step).messages) for step in steps]
    assert len(set(texts)) == 6
    assert kept == [1] * 11 + [2], "only once the gates have judged"
    assert [len(ASKED.keep(step).messages) for step in trace(BROKEN).steps] == [1] * 6


# --- The poisoned next request --------------------------------------------------------------------

#: (interrupted answer, what the server says to a history that holds it as it was shown)
POISON = {
    "after a sentence": (BROKEN, 200, ""),
    "inside a call": (
        faults.disconnect(synth.change_label(), after=14),
        400,
        "turn 1, message 2 (assistant): block 2: half a tool call: it has no id, no name, or an "
        "input that is no object",
    ),
    "inside a thought": (
        faults.disconnect(synth.thinking_then_tool(), after=5),
        400,
        "turn 1, message 2 (assistant): block 1: thinking without a signature: "
        "it was cut off, or changed",
    ),
    "before a word": (
        faults.disconnect(advice(), after=2),
        400,
        "turn 1, message 2 (assistant): block 1: the text is blank",
    ),
}


@pytest.mark.parametrize(("broken", "status", "says"), POISON.values(), ids=POISON)
def test_a_recorded_fragment_poisons_the_next_request_loudly_or_silently(
    broken: Recording, status: int, says: str
) -> None:
    with FaultServer(advice(), check_history=True) as server:
        reply = send([*recorded_as_shown(broken), GO_ON], server)
        again = send([*recorded_as_shown(broken), GO_ON, GO_ON], server)
    assert (reply.status, reply.says) == (again.status, again.says) == (status, says)
    assert reply.error == ("BadRequestError" if status == 400 else "")
    assert ASKED.keep(judge(broken)) is ASKED


def test_cut_back_to_the_last_whole_turn_a_history_is_taken_again() -> None:
    poisoned = [*recorded_as_shown(POISON["inside a call"][0]), GO_ON]
    with FaultServer(advice(), check_history=True) as server:
        assert send(poisoned, server).status == 400
        assert send(poisoned[:1], server).status == 200


def test_the_question_counts_the_loud_ones() -> None:
    loud = sum(status == 400 for _, status, _ in POISON.values())
    assert (loud, len(POISON)) == (3, 4)
    assert right_text("04-next") == "Three: all but the sentence."


def test_what_the_sdk_raises_is_its_own_class() -> None:
    with FaultServer(advice(), check_history=True) as server:
        reply = send([{"role": "user", "content": " "}], server)
    assert getattr(anthropic, reply.error) is anthropic.BadRequestError
    assert str(reply) == "400 BadRequestError turn 1, message 1 (user): block 1: the text is blank"


def test_what_cannot_be_asked_at_all_is_a_reply_too() -> None:
    with FaultServer(503) as server:
        refused = send(ASKED.request(), server)
    assert (refused.status, refused.recording.data) == (503, b"")
    gone: Any = SimpleNamespace(url=server_url_of_nobody())
    unheard = send(ASKED.request(), gone)
    assert (unheard.status, unheard.error) == (0, "APIConnectionError")


# --- Side by side ---------------------------------------------------------------------------------


def test_two_designs_side_by_side_differ_in_what_is_kept_alone() -> None:
    after = {"shown": recorded_as_shown(BROKEN), "whole": ASKED.keep(judge(BROKEN)).messages}
    assert repr(side_by_side(judge(BROKEN).turn, ASKED.messages, after)).splitlines() == [
        "             shown                                 whole",
        "on screen    Yes, W-7 can be deleted.              Yes, W-7 can be deleted.",
        "before       user: May W-7 be deleted?             user: May W-7 be deleted?",
        "after        user: May W-7 be deleted?             user: May W-7 be deleted?",
        "           + assistant: Yes, W-7 can be",
        "               deleted.",
    ]


def test_what_a_stream_said_reaches_a_page_as_text() -> None:
    evil = "<script>alert(1)</script>\ud800"
    message: Message = {"role": "assistant", "content": evil}
    turn = judge(synth.answer([Text("<script>alert(1)</script>")])).turn
    page = side_by_side(turn, [], {"<b>one": [message]})._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("&lt;script&gt;") == 2
    page.encode()


def test_a_call_that_is_not_whole_is_on_the_screen_too() -> None:
    half = " ".join(repr(side_by_side(judge(HALF_PAID).turn, [], {"one": []})).split())
    assert half.startswith("one on screen I'll pay INV-17. [pay_invoice {")
    assert '{"invoice": "INV-17", "amount": 1]' in half


def test_what_a_message_says_is_wrapped_and_its_paragraphs_stay() -> None:
    text = {"type": "text", "text": "word " * 30 + "\n\nend"}
    lines = said({"role": "user", "content": [{"type": "text", "text": "Why?"}, text]}).split("\n")
    assert lines[0] == "  Why?"
    assert lines[-2:] == ["", "  end"]
    assert all(len(line) <= 88 for line in lines)
    assert " ".join(" ".join(lines).split()) == "Why? " + "word " * 30 + "end"


def test_every_kind_of_block_has_words() -> None:
    blocks: list[dict[str, Any]] = [
        *shown(judge(synth.thinking_then_tool()).turn),
        *shown(judge(synth.answer([Text("Hi")])).turn),
        {"type": "hologram"},
    ]
    empty = judge(synth.answer([])).turn
    table = repr(side_by_side(empty, [], {"one": [{"role": "assistant", "content": blocks}]}))
    table = " ".join(table.split())
    for words in ("[thinking W-7 has passed its", '[change_label {"item":', "Hi", "[hologram ]"):
        assert words in table


# --- Discard and retry ----------------------------------------------------------------------------


def test_a_retry_sends_what_the_first_attempt_sent_and_nothing_of_that_one_survives() -> None:
    chat, sent = ASKED, []
    with FaultServer([BROKEN, advice_anew()], check_history=True) as server:
        for attempt in ("attempt-1", "attempt-2"):
            sent.append(chat.request())
            outcome = judge(send(chat.request(), server).recording, attempt=attempt)
            assert outcome.attempt.id == attempt
            chat = chat.keep(outcome)
    assert sent[0] == sent[1]
    assert [message["role"] for message in chat.messages] == ["user", "assistant"]
    assert chat.messages[1]["content"] == [
        {"type": "text", "text": "Not yet: its audit is still open."}
    ]
    assert right_text("04-retry") == "Exactly what was in the first."


def test_to_ask_again_for_a_retry_puts_the_question_there_twice_and_no_rule_objects() -> None:
    twice = ASKED.ask("May W-7 be deleted?").request()
    assert twice == [twice[0]] * 2
    assert objections(twice) == ()


# --- What an ending proves ------------------------------------------------------------------------

RAISES = {"eof": "", "cut": "RemoteProtocolError", "reset": "ReadError", "timeout": "ReadTimeout"}


@pytest.mark.parametrize("whole", [False, True], ids=["partial", "whole"])
@pytest.mark.parametrize("ending", RAISES)
def test_the_marker_and_not_the_ending_decides_what_is_kept(ending: str, whole: bool) -> None:
    with FaultServer(advice() if whole else BROKEN, ending=ending) as server:
        reply = send(ASKED.request(), server, patience=1.0)
    assert (reply.error, reply.recording.ending) == (RAISES[ending], ending)
    kept = ASKED.keep(judge(reply.recording))
    assert (kept is ASKED) is not whole
    assert right_text("04-endings").startswith("Yes: ")


def test_a_whole_message_that_ran_into_its_limit_is_not_kept() -> None:
    with FaultServer(faults.token_limit(advice(), after=5)) as server:
        reply = send(ASKED.request(), server)
    outcome = judge(reply.recording)
    assert (reply.error, outcome.complete) == ("", True)
    assert outcome.turn.text == judge(BROKEN).turn.text, "the same half sentence"
    assert outcome.state is State.HELD
    assert ASKED.keep(outcome) is ASKED


# --- Half a tool call -----------------------------------------------------------------------------


def test_half_a_call_that_was_run_is_refused_by_nobody() -> None:
    asked = Conversation().ask("Pay INV-17.")
    history = run_loop(asked.request(), HALF_PAID)
    assert [message["role"] for message in history] == ["user", "assistant", "user"]
    assert history[1]["content"][1]["input"] == {"invoice": "INV-17", "amount": 1}
    assert objections(history) == ()
    with FaultServer(advice(), check_history=True) as server:
        assert send(history, server).status == 200
    assert asked.keep(judge(HALF_PAID)) is asked
    assert judge(HALF_PAID).proposals == ()
    assert right_text("04-call").startswith("200: ")


def test_half_a_call_that_was_kept_and_not_run_is_refused_for_its_result() -> None:
    history = run_loop(Conversation().ask("Pay INV-17.").request(), HALF_PAID)[:2]
    with FaultServer(advice(), check_history=True) as server:
        reply = send([*history, GO_ON], server)
    assert reply.status == 400
    assert "has no result in the next message" in reply.says


def test_a_loop_with_nothing_to_run_adds_no_results() -> None:
    history = run_loop(ASKED.request(), BROKEN)
    assert [message["role"] for message in history] == ["user", "assistant"]


# --- Going on from partial text -------------------------------------------------------------------


@pytest.mark.parametrize("name", POISON)
def test_only_text_is_gone_on_from_and_it_is_quoted_by_the_user(name: str) -> None:
    partial = judge(POISON[name][0])
    if name == "after a sentence":
        (message,) = ASKED.continue_from(partial).request()
        assert message["role"] == "user"
        assert message["content"][1]["text"].endswith("\n\nYes, W-7 can be deleted.")
    else:
        with pytest.raises(UsageError):
            ASKED.continue_from(partial)


def test_after_going_on_the_history_holds_the_second_half_alone_as_the_models() -> None:
    going_on = ASKED.continue_from(judge(BROKEN))
    rest = judge(synth.answer([Text(" But first close its audit.")]))
    user, model = going_on.keep(rest).messages
    assert user == going_on.messages[0]
    assert model["content"] == [{"type": "text", "text": " But first close its audit."}]
    limited = judge(faults.token_limit(advice(), after=5))
    assert ASKED.continue_from(limited) == going_on, "what `max_tokens` cut short may be continued"


# --- The exercise ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", exercise_04._CASES, ids=[case[0] for case in exercise_04._CASES])
def test_the_cases_of_lesson_04_agree_with_streamlab(case: Any) -> None:
    name, stream, places, _ = case
    outcome = judge(stream())
    given = next(each for each in exercise("04-ex").cases() if each.name == name)
    start = Conversation(tuple(given.given[0]))
    kept = start.keep(outcome)
    assert (kept is start) is not places
    assert [*kept.messages] == given.expected == exercise_04.next_history(*given.given)
    assert given.given[2:] == (outcome.complete, outcome.turn.facts.stop_reason)
    assert len(repr(given.expected)) <= 200, "what is printed is to be read"


WHOLE: dict[str, Callable[[], Recording]] = {
    "advice": advice,
    "a call": synth.change_label,
    "thinking": synth.thinking_then_tool,
    "two calls": synth.parallel_tools,
}
#: What may happen after some frame of a stream.
BREAKS: dict[str, Callable[[Recording, int], Recording]] = {
    "disconnect": faults.disconnect,
    "reset": lambda recording, after: faults.disconnect(recording, after, "reset"),
    "token_limit": faults.token_limit,
    "refuse": faults.refuse,
    "pause": faults.pause,
}


@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_solution_keeps_what_streamlab_keeps_wherever_a_stream_breaks(
    make: Callable[[], Recording], broken: Callable[[Recording, int], Recording]
) -> None:
    outcomes = [judge(make())]
    for after in range(1, len(faults.frames(make())) + 1):
        try:
            outcomes.append(judge(broken(make(), after)))
        except UsageError:  # this fault has no place there
            continue
    for outcome in outcomes:
        reason = outcome.turn.facts.stop_reason
        given = [*ASKED.messages], shown(outcome.turn), outcome.complete, reason
        kept = ASKED.keep(outcome)
        assert [*kept.messages] == exercise_04.next_history(*given)
        results = {call.start.call_id: "done" for call in outcome.turn.calls}
        after = kept.answer(results) if results and kept is not ASKED else kept.ask("And?")
        assert objections(after.messages) == ()
    held = [outcome for outcome in outcomes if outcome.state is State.HELD]
    assert bool(held) is (broken not in (BREAKS["disconnect"], BREAKS["reset"]))


def test_a_list_that_was_changed_is_noticed_though_the_result_looks_right() -> None:
    case = exercise("04-ex").cases()[-1]
    history, blocks, *rest = case.given
    right = exercise_04.next_history(history, blocks, *rest)
    assert right == case.expected
    history.append({"role": "assistant", "content": blocks})
    assert (right == case.expected) is False


def test_a_reply_is_a_value_that_says_itself() -> None:
    assert str(Reply(200, Recording())) == "200"
    assert str(Reply(0, Recording(), "APIConnectionError")) == "0 APIConnectionError"
