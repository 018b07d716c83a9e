"""The tool loop: one turn, several streams; what runs, when, and what is on record of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.consumer.attempt import State
from streamlab.consumer.commit import RecordingAdapter, commit
from streamlab.consumer.conversation import Conversation
from streamlab.consumer.history import Message
from streamlab.consumer.screen import by_stream, fold_screen
from streamlab.consumer.toolloop import MOST_CALLS, Ended, run_turn
from streamlab.consumer.turn_events import (
    TOLD,
    BusEvent,
    RoundEnded,
    RoundStarted,
    SegmentGrew,
    SegmentNamed,
    SegmentOpened,
    SegmentRestated,
    SegmentStopped,
    Status,
    ToolProposed,
    ToolResolved,
    ToolRunning,
    TurnEnded,
    TurnState,
)
from streamlab.errors import UsageError
from streamlab.streams import faults, rounds, synth
from streamlab.streams.parts import ServerToolCall, ServerToolResult, Text, Thinking, ToolCall
from streamlab.streams.recording import Recording
from streamlab.streams.server import FaultServer
from streamlab.streams.upstream import Upstream
from tests.tools_for_tests import (
    ASKED,
    PLAIN,
    SAID,
    Asker,
    Desk,
    blocks,
    check_laws,
    check_screen,
    play,
    read,
    stream,
    wrong_history,
)

TWO = rounds.two_at_once()
ONE = rounds.lookup_then_answer()


def statuses(ended: Ended) -> list[str]:
    return [run.status.value for run in ended.runs]


# --- A turn that goes well ------------------------------------------------------------------------


def test_the_result_of_a_call_goes_back_and_the_answer_ends_the_turn() -> None:
    ask, desk = Asker(*ONE), Desk()
    ended, events = play(ask, desk)
    assert (ended.state, ended.said) == (TurnState.ANSWERED, "The answer is complete")
    assert desk.finished == ["W-7"]
    first, second = ask.requests
    assert first == list(ASKED.messages)
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    (result,) = second[2]["content"]
    assert result["content"] == "W-7 is a draft" and "is_error" not in result
    assert result["tool_use_id"] == second[1]["content"][1]["id"]
    assert ended.conversation.messages[-1]["content"][0]["text"] == "W-7 is a draft."
    check_laws(ended, events, desk)


def test_each_stream_has_an_attempt_of_its_own_and_all_have_one_turn() -> None:
    ended, events = play(Asker(*rounds.one_after_another()))
    assert [round.attempt.id for round in ended.rounds] == [f"turn-1/{n}" for n in range(1, 6)]
    assert {event.turn for event in events} == {"turn-1"}
    assert ended.attempt is ended.rounds[-1].attempt


def test_five_streams_are_one_bubble_and_found_by_the_stream_they_would_be_five() -> None:
    _, events = play(Asker(*rounds.one_after_another()))
    (bubble,) = fold_screen(events).bubbles
    assert bubble.rounds == 5 and len(bubble.parts) == 9
    five = fold_screen(events, bubble_of=by_stream).bubbles
    assert [bubble.state for bubble in five] == [None] * 4 + [TurnState.ANSWERED]


def test_over_a_real_socket_every_request_holds_a_history_that_is_taken() -> None:
    with FaultServer(list(rounds.one_after_another()), check_history=True) as server:
        desk = Desk()
        ended, events = play(Upstream(server.url), desk)
        log = server.wait(5)
    assert ended.state is TurnState.ANSWERED
    assert [served.status for served in log] == [200] * 5
    check_laws(ended, events, desk)


# --- Running before it is awaited, and side by side -----------------------------------------------


def test_a_call_is_published_as_running_before_its_tool_is_awaited() -> None:
    desk = Desk()

    def publish(event: BusEvent) -> None:
        if isinstance(event, (ToolRunning, ToolResolved)):
            desk.log.append(f"screen: {type(event).__name__}")

    play(Asker(*ONE), desk, publish=publish)
    assert desk.log == [
        "screen: ToolRunning",
        "W-7 started",
        "W-7 finished",
        "screen: ToolResolved",
    ]


def test_two_calls_run_at_the_same_time_and_resolve_as_each_is_done() -> None:
    """The first ends only after the second has ended: one after the other, they never would."""
    second_is_done = asyncio.Event()

    async def does(number: int, item: str) -> str:
        await second_is_done.wait() if number == 0 else second_is_done.set()
        return f"{item} read"

    ask, desk = Asker(*TWO), Desk(does)
    ended, events = play(ask, desk, seconds=5)
    assert desk.finished == ["W-8", "W-7"]
    resolved = [event.text for event in events if isinstance(event, ToolResolved)]
    assert resolved == ["W-8 read", "W-7 read"], "the screen hears of each when it is done"
    results = [block["content"] for block in ask.requests[1][2]["content"]]
    assert results == ["W-7 read", "W-8 read"], "the model gets them in the order of the calls"
    check_laws(ended, events, desk)


def test_no_tool_runs_before_its_stream_has_ended_and_passed_the_gates() -> None:
    desk = Desk()
    ask = Asker(faults.disconnect(TWO[0], len(TWO[0].chunks) - 1))  # only the end marker is missing
    ended, events = play(ask, desk)
    assert ended.state is TurnState.INCOMPLETE and desk.started == []
    check_laws(ended, events, desk)


# --- Tools that fail ------------------------------------------------------------------------------


class Unsayable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


class Unheard(BaseException):
    pass


class Exits(Exception):
    def __str__(self) -> str:
        raise SystemExit


ESCAPED = "ValueError: a\\x1b[2J\n\\u202eb"  # its lines stay lines: the model reads it


async def raises(why: BaseException) -> str:
    raise why


async def gives(value: Any) -> str:
    return value  # type: ignore[no-any-return]


ODD: dict[str, tuple[Callable[[], Awaitable[str]], str]] = {
    "an exception": (lambda: raises(LookupError("no W-7")), "LookupError: no W-7"),
    "one without words": (lambda: raises(ValueError()), "ValueError"),
    "one that cannot be shown": (lambda: raises(Unsayable()), "Unsayable"),
    "half a character in it": (lambda: raises(ValueError("\ud83d")), "ValueError: ?"),
    "its own cancellation": (lambda: raises(asyncio.CancelledError()), "CancelledError"),
    "its own time limit": (lambda: asyncio.wait_for(asyncio.Event().wait(), 0), "TimeoutError"),  # type: ignore[arg-type, return-value]
    "a wish to exit": (lambda: raises(SystemExit(3)), "SystemExit: 3"),
    "an interrupt": (lambda: raises(KeyboardInterrupt()), "KeyboardInterrupt"),
    "a kind of its own": (lambda: raises(Unheard("of")), "Unheard: of"),
    "an end of a generator": (lambda: raises(GeneratorExit()), "GeneratorExit"),
    "words that exit": (lambda: raises(Exits()), "Exits"),
    "codes for a terminal": (lambda: raises(ValueError("a\x1b[2J\n\u202eb")), ESCAPED),
    "no text": (lambda: gives(7), "the tool gave a int, and no text"),
    "nothing": (lambda: gives(None), "the tool gave a NoneType, and no text"),
    "half a character": (
        lambda: gives("\ud83d"),
        "the tool's text holds half a character, which cannot be sent",
    ),
}


@pytest.mark.parametrize(("odd", "says"), ODD.values(), ids=ODD)
def test_what_goes_wrong_in_a_tool_is_its_result_and_the_turn_goes_on(
    odd: Callable[[], Awaitable[str]], says: str
) -> None:
    async def does(number: int, item: str) -> str:
        return await odd() if number == 0 else "fine"

    ask, desk = Asker(*TWO), Desk(does)
    ended, events = play(ask, desk)
    assert ended.state is TurnState.ANSWERED
    failed, fine = ask.requests[1][2]["content"]
    assert (failed["content"], failed["is_error"]) == (says, True)
    assert fine["content"] == "fine" and "is_error" not in fine
    assert statuses(ended) == ["error", "done"]
    check_laws(ended, events, desk)


def test_a_long_error_is_cut() -> None:
    ended, _ = play(Asker(*ONE), Desk(lambda number, item: raises(ValueError("x" * 10_000))))
    assert len(ended.runs[0].text) == 500


def test_what_a_tool_does_to_its_input_changes_neither_history_nor_record() -> None:
    async def read_item(input: dict[str, Any]) -> str:
        input["item"] = "changed"
        return "done"

    ended = asyncio.run(run_turn(ASKED, Asker(*ONE), {"read_item": read_item}, rounds.READING))
    assert ended.runs[0].input == {"item": "W-7"}
    assert blocks(ended.conversation, "tool_use")[0]["input"] == {"item": "W-7"}


# --- The cap and the guard ------------------------------------------------------------------------


def test_after_six_rounds_the_turn_ends_in_a_state_of_its_own() -> None:
    ask, desk = Asker(*rounds.one_after_another(20)), Desk()
    ended, events = play(ask, desk)
    assert (ended.state, ended.said) == (TurnState.CAPPED, TOLD[TurnState.CAPPED])
    assert ended.why == "6 rounds, and the model asks for more"
    assert len(ask.requests) == 6
    assert statuses(ended) == ["done"] * 5 + ["not run"], "nobody would read the last result"
    check_laws(ended, events, desk)
    ended.conversation.ask("Go on.").request()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_cap_is_as_it_is_given(most: int) -> None:
    ask = Asker(*rounds.one_after_another(20))
    ended, _ = play(ask, most_rounds=most)
    assert ended.state is TurnState.CAPPED and len(ask.requests) == most


def test_an_answer_in_the_last_round_is_no_cap() -> None:
    ended, _ = play(Asker(*rounds.one_after_another(5)))
    assert ended.state is TurnState.ANSWERED and len(ended.rounds) == 6


def test_the_very_same_call_too_often_ends_the_turn_in_a_state_of_its_own() -> None:
    ask, desk = Asker(*rounds.for_ever()), Desk()
    ended, events = play(ask, desk)
    assert (ended.state, ended.said) == (TurnState.REPEATING, TOLD[TurnState.REPEATING])
    assert ended.why == "read_item with the same input, 3 times; allowed: 2"
    assert desk.started == ["W-7", "W-7"] and len(ask.requests) == 3
    check_laws(ended, events, desk)


def test_the_guard_counts_within_a_round_too_and_then_none_of_it_runs() -> None:
    desk = Desk()
    ended, events = play(Asker(stream(1, read("W-1"), *[read("W-7")] * 3)), desk)
    assert ended.state is TurnState.REPEATING and desk.started == []
    check_laws(ended, events, desk)


def test_the_order_of_keys_makes_no_other_call_and_a_number_is_no_text() -> None:
    async def any_tool(input: dict[str, Any]) -> str:
        return "done"

    def turn(*inputs: str) -> TurnState:
        calls = [stream(n, ToolCall("any", (text,))) for n, text in enumerate(inputs)]
        asked = run_turn(ASKED, Asker(*calls, SAID), {"any": any_tool}, most_same=1)
        return asyncio.run(asked).state

    assert turn('{"a": 1, "b": 2}', '{"b": 2, "a": 1}') is TurnState.REPEATING
    assert turn('{"a": 1}', '{"a": "1"}', '{"a": true}', '{"a": 1.0}') is TurnState.ANSWERED


# --- Other ends -----------------------------------------------------------------------------------

SECOND = TWO[1]
ENDS: dict[str, tuple[Recording, TurnState, str]] = {
    "refusal": (faults.refuse(SECOND, 4), TurnState.HELD, "refusal"),
    "token limit": (faults.token_limit(SECOND, 4), TurnState.HELD, "max_tokens"),
    "provider's error": (faults.error(SECOND, 4), TurnState.INVALID, "overloaded"),
    "web page": (faults.html_page(SECOND), TurnState.INVALID, ""),
    "cut": (faults.disconnect(SECOND, 4, "cut"), TurnState.INCOMPLETE, "cut"),
    "clean end too early": (faults.disconnect(SECOND, 4), TurnState.INCOMPLETE, "ended cleanly"),
    "silence": (faults.disconnect(SECOND, 4, "timeout"), TurnState.INCOMPLETE, "too long"),
    "nothing": (Recording(ending="reset"), TurnState.INCOMPLETE, "no answer came"),
    "no content": (stream(9), TurnState.HELD, "no content"),
    "unsigned": (stream(9, Thinking("hm"), Text("So.")), TurnState.HELD, "signature"),
    "an id again": (TWO[0], TurnState.HELD, "was used by an earlier call"),
    "input against schema": (
        stream(9, ToolCall("read_item", {"item": 7})),
        TurnState.INVALID,
        "schema",
    ),
    "not permitted": (stream(9, ToolCall("pay", {})), TurnState.HELD, "'pay' is not permitted"),
}


@pytest.mark.parametrize(("second", "state", "why"), ENDS.values(), ids=ENDS)
def test_a_round_that_does_not_count_leaves_the_conversation_at_the_last_whole_one(
    second: Recording, state: TurnState, why: str
) -> None:
    desk = Desk()
    ended, events = play(Asker(TWO[0], second), desk)
    assert ended.state is state and why in ended.why
    assert [round.kept for round in ended.rounds] == [True, False]
    assert [m["role"] for m in ended.conversation.messages] == ["user", "assistant", "user"]
    assert statuses(ended) == ["done", "done"]
    ended.conversation.request()
    check_laws(ended, events, desk)


def test_each_end_has_words_of_its_own() -> None:
    assert set(TOLD) == set(TurnState) and len(set(TOLD.values())) == len(TOLD)
    assert all(10 < len(said) < 80 for said in TOLD.values())


FRAMES = len(SECOND.chunks)


@pytest.mark.parametrize("ending", ["eof", "cut", "reset", "timeout"])
def test_an_interruption_at_any_frame_of_the_second_round_leaves_nothing_of_it(ending: str) -> None:
    for after in range(FRAMES):
        desk = Desk()
        ended, events = play(Asker(TWO[0], faults.disconnect(SECOND, after, ending)), desk)
        assert ended.state is TurnState.INCOMPLETE, after
        assert len(ended.conversation.messages) == 3
        check_laws(ended, events, desk)
        again = Asker(SECOND)
        whole, more = play(again, desk, conversation=ended.conversation, after=ended)
        assert again.requests[0] == list(ended.conversation.messages)
        assert whole.state is TurnState.ANSWERED and desk.started == ["W-7", "W-8"]
        assert len({round.attempt.id for round in whole.rounds}) == 3
        (bubble,) = fold_screen([*events, *more]).bubbles
        assert [part.text for part in bubble.parts if part.kind == "text"] == [
            "I'll look at both.",
            "W-7 is a draft, and W-8 is open.",
        ]
        assert bubble.state is TurnState.ANSWERED


@pytest.mark.parametrize("after", range(FRAMES))
def test_the_same_over_a_socket_that_is_torn_down(after: int) -> None:
    with FaultServer([TWO[0], faults.disconnect(SECOND, after, "reset")], every=0) as server:
        desk = Desk()
        ended, events = play(Upstream(server.url), desk)
    assert ended.state is TurnState.INCOMPLETE and len(ended.conversation.messages) == 3
    check_laws(ended, events, desk)


def test_a_turn_that_goes_on_is_the_same_turn_and_its_failed_tries_do_not_count() -> None:
    first, second = rounds.one_after_another(2)[:2]
    desk = Desk()
    ended, events = play(Asker(first, faults.disconnect(second, 4)), desk, turn="turn-7")
    assert ended.turn == "turn-7" and ended.state is TurnState.INCOMPLETE
    options: dict[str, Any] = {"conversation": ended.conversation, "after": ended}
    whole, more = play(Asker(second, SAID), desk, most_rounds=3, **options)
    assert (whole.state, whole.turn) == (TurnState.ANSWERED, "turn-7")
    check_laws(whole, [*events[:-1], *more], desk)
    capped, _ = play(Asker(second), Desk(), most_rounds=2, **options)
    assert capped.state is TurnState.CAPPED


def test_the_guard_counts_what_ran_earlier_in_the_turn_and_not_what_was_never_run() -> None:
    first, second, third = rounds.for_ever(3)

    def running(n: int, event: BusEvent) -> bool:
        return isinstance(event, ToolRunning)

    ended, *_ = cancelled_when(running, first)
    assert statuses(ended) == ["not run"]
    goes_on, _ = play(
        Asker(second, third),
        conversation=ended.conversation.ask("Go on."),
        after=ended,
        most_same=1,
    )
    assert goes_on.state is TurnState.REPEATING
    assert statuses(goes_on) == ["not run", "done", "not run"]


async def broken(messages: list[Message]) -> AsyncIterator[bytes]:
    raise ValueError("a bug in the request")
    yield b""


async def cancelled_inside(messages: list[Message]) -> AsyncIterator[bytes]:
    raise asyncio.CancelledError
    yield b""


def test_what_goes_wrong_in_the_request_ends_the_turn_and_loses_no_record() -> None:
    ended, _ = play(broken)
    assert ended.state is TurnState.INVALID
    assert ended.why == "the request failed: ValueError: a bug in the request"
    ended, _ = play(cancelled_inside)
    assert ended.state is TurnState.INCOMPLETE, "it was not our task that was cancelled"


class Ends:
    """A stream whose first read, or whose closing, raises what it is given."""

    def __init__(self, read: BaseException | None = None, close: BaseException | None = None):
        self.read, self.close = read or StopAsyncIteration(), close

    def __call__(self, messages: list[Message]) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        raise self.read

    async def aclose(self) -> None:
        if self.close is not None:
            raise self.close


def nobody_there(messages: list[Message]) -> AsyncIterator[bytes]:
    raise ConnectionRefusedError("nobody there")


def no_stream(messages: list[Message]) -> AsyncIterator[bytes]:
    return None  # type: ignore[return-value]


BROKEN_ASKS: dict[str, tuple[Any, TurnState, str]] = {
    "a plain function that finds nobody": (
        nobody_there,
        TurnState.INCOMPLETE,
        "no answer came: ConnectionRefusedError: nobody there",
    ),
    "no stream at all": (no_stream, TurnState.INVALID, "the request failed: TypeError"),
    "a read that exits": (Ends(SystemExit(3)), TurnState.INVALID, "failed: SystemExit: 3"),
    "a read that is interrupted": (
        Ends(KeyboardInterrupt()),
        TurnState.INVALID,
        "failed: KeyboardInterrupt",
    ),
    "a read of its own kind": (Ends(Unheard("of")), TurnState.INVALID, "failed: Unheard: of"),
    "a read that was cancelled": (Ends(asyncio.CancelledError()), TurnState.INCOMPLETE, ""),
    "a closing that was cancelled": (
        Ends(close=asyncio.CancelledError()),
        TurnState.INCOMPLETE,
        "",
    ),
    "a closing that exits": (Ends(close=SystemExit()), TurnState.INCOMPLETE, ""),
    "both": (
        Ends(asyncio.CancelledError(), asyncio.CancelledError()),
        TurnState.INCOMPLETE,
        "",
    ),
}


@pytest.mark.parametrize(("ask", "state", "says"), BROKEN_ASKS.values(), ids=BROKEN_ASKS)
def test_a_request_that_breaks_after_a_round_has_run_loses_nothing_of_that_round(
    ask: Any, state: TurnState, says: str
) -> None:
    first, desk = Asker(ONE[0]), Desk()

    def asks(messages: list[Message]) -> AsyncIterator[Any]:
        return ask(messages) if first.requests else first(messages)

    ended, events = play(asks, desk, seconds=5)
    assert ended.state is state and says in ended.why
    assert statuses(ended) == ["done"] and desk.finished == ["W-7"]
    check_laws(ended, events, desk)


def test_a_cancel_while_a_stream_is_being_closed_is_a_cancel_and_its_calls_never_run() -> None:
    class Closes(Reads):
        async def aclose(self) -> None:
            closing.set()
            await asyncio.Event().wait()

    async def main() -> Ended:
        turn = run_turn(ASKED, ask, desk.tools, rounds.READING, publish=events.append)
        task = asyncio.create_task(turn)
        await closing.wait()
        task.cancel()
        return await task

    desk, closing, events = Desk(), asyncio.Event(), list[BusEvent]()
    ask = Closes(*(chunk.data for chunk in ONE[0].chunks))
    ended = asyncio.run(asyncio.wait_for(main(), 5))
    assert ended.state is TurnState.CANCELLED and desk.started == []
    assert statuses(ended) == [] and ended.conversation.messages == ASKED.messages
    check_laws(ended, events, desk)


def told_late() -> tuple[Recording, Recording]:
    """Two rounds in which a call's name comes after its start, and a text is said anew."""
    pieces: list[dict[str, Any]] = [
        {"id": "call_1", "type": "function", "function": {"arguments": ""}},
        {"function": {"name": "read_item"}},
        {"function": {"arguments": '{"item": "W-7"}'}},
    ]
    chunks = [{"tool_calls": [{"index": 0, **piece}]} for piece in pieces]
    called = [{"index": 0, "delta": delta, "finish_reason": None} for delta in chunks]
    stopped = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    frames = [json.dumps({"id": "c", "choices": [choice]}) for choice in [*called, stopped]]
    first = "".join(f"data: {frame}\n\n" for frame in [*frames, "[DONE]"])
    answer = synth.answer([Text(("Don", "e."))], wire="openai-responses").data
    anew = re.sub(rb'"delta": ?"Don"', b'"delta":"Dan"', answer)
    assert anew != answer
    return Recording.from_bytes(first.encode()), Recording.from_bytes(anew)


SCREEN_TROUBLE = [ValueError("no screen"), SystemExit(3), asyncio.CancelledError("not we")]


@pytest.mark.parametrize("trouble", SCREEN_TROUBLE, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("kind", BusEvent.__args__, ids=lambda kind: kind.__name__)
def test_a_screen_that_breaks_is_told_no_more_and_the_turn_is_what_it_would_have_been(
    kind: type, trouble: BaseException
) -> None:
    def publish(event: BusEvent) -> None:
        assert not broke, "after its first failure nothing is published"
        if isinstance(event, kind):
            broke.append(event)
            raise trouble

    broke: list[BusEvent] = []
    tools = {} if kind is ToolProposed else {"read_item": lambda input: gives("fine")}
    streams = told_late() if kind in (SegmentNamed, SegmentRestated) else ONE
    meant = asyncio.run(run_turn(ASKED, Asker(*streams), tools, rounds.READING))
    ended = asyncio.run(run_turn(ASKED, Asker(*streams), tools, rounds.READING, publish=publish))
    assert len(broke) == 1 and meant.unheard == ""
    said = f": {trouble}" if str(trouble) else ""
    assert ended.unheard == f"{kind.__name__}: {type(trouble).__name__}{said}"
    assert (ended.state, ended.why, ended.runs) == (meant.state, meant.why, meant.runs)
    assert ended.conversation.messages == meant.conversation.messages
    assert [r.attempt for r in ended.rounds] == [r.attempt for r in meant.rounds]


def test_a_reason_from_a_stranger_moves_no_cursor() -> None:
    events: list[BusEvent] = []
    ask = Ends(OSError("\x1b]0;mine\x07\nline \u202e"))
    ended = asyncio.run(run_turn(ASKED, ask, {}, publish=events.append))
    assert ended.why == r"no answer came: OSError: \x1b]0;mine\x07\nline \u202e"
    last = [event.why for event in events if isinstance(event, (RoundEnded, TurnEnded))]
    assert last == [ended.why, ended.why]


def test_what_a_tool_gave_is_on_record_as_it_was_and_can_be_said_in_one_line() -> None:
    ended, _ = play(Asker(*ONE), Desk(lambda number, item: gives("red \x1b[31m\n\u202e")))
    assert ended.runs[0].text == "red \x1b[31m\n\u202e"
    assert ended.runs[0].said == r"red \x1b[31m\n\u202e"


def many(calls: int) -> Recording:
    parts = [read(f"W-{n}") for n in range(calls)]
    return synth.answer(parts, None, seed=1, style=PLAIN)


def test_a_round_may_have_so_many_calls_and_one_more_is_held() -> None:
    desk = Desk()
    ended, events = play(Asker(many(MOST_CALLS), SAID), desk)
    assert ended.state is TurnState.ANSWERED and len(desk.started) == MOST_CALLS
    check_laws(ended, events, desk)
    desk = Desk()
    ended, events = play(Asker(many(MOST_CALLS + 1), SAID), desk)
    assert (ended.state, desk.started) == (TurnState.HELD, [])
    assert ended.why == "129 calls in one round; allowed: 128"
    check_laws(ended, events, desk)


def test_a_screen_is_shown_no_more_calls_than_a_round_may_have() -> None:
    ended, events = play(Asker(many(3 * MOST_CALLS), SAID))
    assert ended.state is TurnState.HELD
    assert len([event for event in events if isinstance(event, SegmentOpened)]) == MOST_CALLS
    check_screen(ended, events)


def test_what_the_provider_runs_itself_does_not_count() -> None:
    search = ServerToolCall("web_search", {"query": "W-7"})
    found = ServerToolResult("web_search_tool_result", [])
    parts = [search, found] * (MOST_CALLS + 1)
    answered = synth.answer([*parts, Text("Found.")], None, seed=1, style=PLAIN)
    ended, events = play(Asker(answered))
    assert ended.state is TurnState.ANSWERED
    check_screen(ended, events)


def test_tools_that_are_taken_away_during_a_turn_are_there_until_its_end() -> None:
    async def read_item(input: dict[str, Any]) -> str:
        tools.clear()
        return "read"

    tools = {"read_item": read_item}
    ended = asyncio.run(run_turn(ASKED, Asker(*TWO), tools, rounds.READING))
    assert ended.state is TurnState.ANSWERED and statuses(ended) == ["done", "done"]


class Reads:
    """A stream that is no generator: it counts its reads, and whether it was closed."""

    def __init__(self, *reads: bytes) -> None:
        self.left = list(reads)
        self.closed = 0

    def __call__(self, messages: list[Message]) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)

    async def aclose(self) -> None:
        self.closed += 1
        raise OSError("and even that failed")


def test_a_stream_that_is_broken_is_not_read_on_and_is_closed() -> None:
    reads = Reads(faults.error(SECOND, 4).data, b"more", b"and more")
    ended, _ = play(reads)
    assert ended.state is TurnState.INVALID and ended.rounds[0].attempt.state is State.INVALID
    assert (reads.left, reads.closed) == ([b"more", b"and more"], 1)


def test_a_stream_that_is_always_ready_leaves_the_others_their_turn() -> None:
    async def main() -> int:
        events: list[BusEvent] = []
        reads = Reads(*(chunk.data for chunk in SECOND.chunks))
        turn = run_turn(ASKED, reads, {}, rounds.READING, publish=events.append)
        task = asyncio.create_task(turn)
        seen = set()
        while not task.done():
            await asyncio.sleep(0)
            seen.add(len(events))
        assert (await task).state is TurnState.ANSWERED
        return len(seen)

    assert asyncio.run(main()) > len(SECOND.chunks) / 2


def test_what_comes_with_the_end_itself_is_shown_too() -> None:
    """One event a line, and the last line is not ended: it counts when the stream ends."""
    frames = [chunk.data.partition(b"data: ")[2].strip() for chunk in SECOND.chunks[:4]]
    ended, events = play(Reads(b"\n".join(frames)))
    (part,) = fold_screen(events).bubbles[0].parts
    assert part.text == ended.rounds[0].turn.text != ""


def test_an_input_that_does_not_parse_says_so_on_its_card() -> None:
    ended, events = play(Asker(stream(1, ToolCall("read_item", ('{"item": ',)))))
    assert ended.state is TurnState.INVALID
    (error,) = [event.error for event in events if isinstance(event, SegmentStopped)]
    assert error and error in ended.why
    check_laws(ended, events, Desk())


def test_a_turn_needs_a_question_and_limits_that_let_it_begin() -> None:
    ask = Asker(*ONE)
    for conversation, options, says in [
        (Conversation(), {}, "ask something first"),
        (play(Asker(SAID))[0].conversation, {}, "own words come last"),
        (ASKED, {"most_rounds": 0}, "at least 1"),
        (ASKED, {"most_same": 0}, "at least 1"),
    ]:
        with pytest.raises(UsageError, match=says):
            play(ask, conversation=conversation, **options)
    assert ask.requests == []


# --- What may not run by itself -------------------------------------------------------------------


def test_a_call_with_consequences_ends_the_turn_as_proposed_and_goes_on_after_its_commit() -> None:
    desk, (look, change, said) = Desk(), rounds.lookup_then_proposal()
    ended, events = play(Asker(look, change), desk)
    assert (ended.state, ended.said) == (TurnState.PROPOSED, "Proposal ready for review")
    assert [call.tool for call in ended.proposals] == ["change_label"]
    assert statuses(ended) == ["done", "proposed"]
    assert len(ended.conversation.messages) == 3, "no unanswered call is in it"
    check_laws(ended, events, desk)

    effects = RecordingAdapter()
    done = commit(ended.attempt, ended.proposals, effects)
    assert done.state is State.COMMITTED and effects.submissions == ["turn-1/2"]
    assert ended.pending is not None
    answered = ended.pending.answer({ended.proposals[0].call_id: done.why})
    whole, _ = play(Asker(said), desk, conversation=answered, after=ended)
    assert whole.state is TurnState.ANSWERED and len(whole.rounds) == 3
    assert wrong_history(whole.conversation) == []


def test_where_one_call_of_a_round_needs_a_commit_none_of_it_runs() -> None:
    change = ToolCall("change_label", {"item": "W-7", "label": "Ready"})
    desk = Desk()
    ended, events = play(Asker(stream(1, read("W-7"), change)), desk)
    assert ended.state is TurnState.PROPOSED and desk.started == []
    assert [call.tool for call in ended.proposals] == ["read_item", "change_label"]
    check_laws(ended, events, desk)


# --- Cancelling -----------------------------------------------------------------------------------


def cancelled_when(
    when: Callable[[int, BusEvent], bool], *recordings: Recording, does: Any = None
) -> tuple[Ended, list[BusEvent], Desk, Asker]:
    """Cancel from the screen's side, in the very moment in which an event is published."""
    ask, desk, events = Asker(*recordings), Desk(does), list[BusEvent]()
    before: list[tuple[int, int, int]] = []

    async def main() -> Ended:
        def publish(event: BusEvent) -> None:
            events.append(event)
            if when(len(events), event):
                before.append((len(ask.requests), len(desk.started), len(events)))
                task.cancel()

        turn = run_turn(ASKED, ask, desk.tools, rounds.READING, publish=publish)
        task = asyncio.create_task(turn)
        return await task

    ended = asyncio.run(main())
    if before:
        assert (len(ask.requests), len(desk.started)) == before[0][:2], "nothing starts any more"
        later = events[before[0][2] :]
        assert not any(isinstance(event, (RoundStarted, ToolRunning)) for event in later)
    assert ask.open == 0, "no stream is left open"
    return ended, events, desk, ask


TURNS = {"one": ONE, "two at once": TWO, "three rounds": rounds.one_after_another(3)}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_a_cancel_at_any_event_starts_nothing_more_and_forgets_nothing(
    turn: tuple[Recording, ...],
) -> None:
    _, all_events = play(Asker(*turn))
    for last in range(1, len(all_events) + 1):
        ended, events, desk, _ = cancelled_when(lambda n, event, last=last: n == last, *turn)
        check_laws(ended, events, desk)
        late = last >= len(all_events) - 1  # the answer was complete, and kept
        assert ended.state is (TurnState.ANSWERED if late else TurnState.CANCELLED), last
        assert [run.started for run in ended.runs].count(True) == len(desk.started)


def test_a_cancel_at_every_event_is_one_cancel() -> None:
    ended, events, desk, _ = cancelled_when(lambda n, event: True, *TWO)
    assert ended.state is TurnState.CANCELLED and desk.started == []
    check_laws(ended, events, desk)


def test_a_cancel_after_any_number_of_steps_of_the_event_loop() -> None:
    async def does(number: int, item: str) -> str:
        for _ in range(1 + 3 * number):  # the second takes longer
            await asyncio.sleep(0)
        return f"{item} is a draft"

    async def after(steps: int) -> tuple[Ended | None, list[BusEvent], Desk, Asker]:
        events: list[BusEvent] = []
        ask, desk = Asker(*TWO), Desk(does)
        turn = run_turn(ASKED, ask, desk.tools, rounds.READING, publish=events.append)
        task = asyncio.create_task(turn)
        for _ in range(steps):
            await asyncio.sleep(0)
        began = (len(ask.requests), len(desk.started))
        task.cancel()
        try:
            ended = await task
        except asyncio.CancelledError:
            return None, events, desk, ask
        assert ended.state is TurnState.ANSWERED or began == (
            len(ask.requests),
            len(desk.started),
        )
        return ended, events, desk, ask

    ended, events, _, ask = asyncio.run(after(0))
    assert (ended, events, ask.requests) == (None, [], []), "before its first step it never began"
    seen = set()
    for steps in range(1, 500):
        ended, events, desk, ask = asyncio.run(after(steps))
        assert ended is not None and ask.open == 0
        check_laws(ended, events, desk)
        seen.update((ended.state.value, *statuses(ended)))
        if ended.state is TurnState.ANSWERED:
            break
    assert seen == {"CANCELLED", "ANSWERED", "cancelled", "done", "not run"}


def test_what_ran_what_was_running_and_what_had_not_begun_are_told_apart() -> None:
    async def does(number: int, item: str) -> str:
        if number == 1:
            await asyncio.Event().wait()  # for ever
        return f"{item} read"

    def second_is_running(n: int, event: BusEvent) -> bool:
        return isinstance(event, ToolResolved) and event.text == "W-1 read"

    calls = stream(1, read("W-1"), read("W-2"))
    ended, events, desk, _ = cancelled_when(second_is_running, calls, SAID, does=does)
    assert [(run.status, run.text) for run in ended.runs] == [
        (Status.DONE, "W-1 read"),
        (Status.CANCELLED, "cancelled while it ran"),
    ]
    check_laws(ended, events, desk)

    def first_is_running(n: int, event: BusEvent) -> bool:
        return isinstance(event, ToolRunning)

    ended, events, desk, _ = cancelled_when(first_is_running, calls, SAID)
    assert [(run.status, run.text) for run in ended.runs] == [
        (Status.NOT_RUN, "cancelled before it ran")
    ] * 2
    check_laws(ended, events, desk)


def test_a_tool_that_ends_well_although_it_was_cancelled_has_ended_well() -> None:
    async def does(number: int, item: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "saved after all"
        return ""

    async def main() -> Ended:
        desk, running = Desk(does), asyncio.Event()
        publish = lambda event: isinstance(event, ToolRunning) and running.set()  # noqa: E731
        turn = run_turn(ASKED, Asker(*ONE), desk.tools, rounds.READING, publish=publish)
        task = asyncio.create_task(turn)
        await running.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        return await task

    ended = asyncio.run(main())
    assert ended.state is TurnState.CANCELLED
    assert [(run.status, run.text) for run in ended.runs] == [(Status.DONE, "saved after all")]


@pytest.mark.parametrize(
    "why", [ValueError("x"), SystemExit("x"), KeyboardInterrupt("x"), Unheard("x")], ids=repr
)
def test_a_tool_that_fails_while_it_tidies_up_after_a_cancel_has_failed(
    why: BaseException,
) -> None:
    async def main() -> Ended:
        async def read_item(input: dict[str, Any]) -> str:
            began.set()
            try:
                return await asyncio.Event().wait() and ""
            except asyncio.CancelledError:
                raise why from None

        began = asyncio.Event()
        turn = run_turn(ASKED, Asker(*ONE), {"read_item": read_item}, rounds.READING)
        task = asyncio.create_task(turn)
        await began.wait()
        task.cancel()
        return await task

    ended = asyncio.run(main())
    assert ended.state is TurnState.CANCELLED
    assert statuses(ended) == ["error"] and ended.runs[0].text == f"{type(why).__name__}: x"
    assert wrong_history(ended.conversation) == []


def test_a_second_cancel_does_not_cut_short_a_tool_that_tidies_up() -> None:
    async def main() -> tuple[Ended, bool]:
        running, tidy, tidied = asyncio.Event(), asyncio.Event(), False

        async def read_item(input: dict[str, Any]) -> str:
            nonlocal tidied
            try:
                running.set()
                await asyncio.Event().wait()
            finally:
                await tidy.wait()
                tidied = True
            return ""

        turn = run_turn(ASKED, Asker(*ONE), {"read_item": read_item}, rounds.READING)
        task = asyncio.create_task(turn)
        await running.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not task.done()
        tidy.set()
        return await task, tidied

    ended, tidied = asyncio.run(main())
    assert ended.state is TurnState.CANCELLED and tidied
    assert statuses(ended) == ["cancelled"]


def test_a_cancel_that_was_an_outcome_leaves_the_task_as_it_was() -> None:
    async def main() -> tuple[Ended, int]:
        task = asyncio.current_task()
        assert task is not None

        def publish(event: BusEvent) -> None:
            if isinstance(event, (RoundStarted, TurnEnded)):
                task.cancel()

        ended = await run_turn(ASKED, Asker(*ONE), {}, rounds.READING, publish=publish)
        await asyncio.sleep(0)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        return ended, task.cancelling()

    ended, cancelling = asyncio.run(main())
    assert (ended.state, cancelling) == (TurnState.CANCELLED, 0)


def test_a_time_limit_around_a_turn_ends_it_as_cancelled() -> None:
    silent = faults.disconnect(ONE[1], 3, "timeout")

    async def main() -> Ended:
        with FaultServer([ONE[0], silent]) as server:
            ask, tools = Upstream(server.url), Desk().tools
            async with asyncio.timeout(None) as limit:

                def publish(event: BusEvent) -> None:
                    if isinstance(event, SegmentGrew) and event.attempt == "turn-1/2":
                        limit.reschedule(0)

                ended = await run_turn(ASKED, ask, tools, rounds.READING, publish=publish)
            served = await asyncio.to_thread(server.wait, 2)
            assert [one.ended for one in served] == ["sent all", "client gone"]
            return ended

    ended = asyncio.run(main())
    assert ended.state is TurnState.CANCELLED and statuses(ended) == ["done"]
    assert len(ended.conversation.messages) == 3


def test_a_cancel_while_the_socket_is_silent_hangs_up_and_the_server_knows() -> None:
    silent = faults.disconnect(ONE[1], 4, "timeout")

    async def main() -> tuple[Ended, list[BusEvent], Desk]:
        events: list[BusEvent] = []
        grown = asyncio.Event()

        def publish(event: BusEvent) -> None:
            events.append(event)
            if getattr(event, "attempt", "") == "turn-1/2" and not isinstance(event, RoundStarted):
                grown.set()

        desk = Desk()
        with FaultServer([ONE[0], silent]) as server:
            ask = Upstream(server.url)
            turn = run_turn(ASKED, ask, desk.tools, rounds.READING, publish=publish)
            task = asyncio.create_task(turn)
            await grown.wait()
            task.cancel()
            ended = await task
            log = await asyncio.to_thread(server.wait, 2)
        assert [served.ended for served in log] == ["sent all", "client gone"]
        return ended, events, desk

    ended, events, desk = asyncio.run(main())
    assert ended.state is TurnState.CANCELLED
    assert [round.kept for round in ended.rounds] == [True, False]
    assert ended.rounds[1].attempt.state is State.ABORTED
    check_laws(ended, events, desk)


# --- Any turn at all ------------------------------------------------------------------------------

HOW = ("whole", "whole", "whole", "whole", "cut", "error", "max_tokens")
DOES = ("result", "result", "error", "slow", "cancels itself")


@st.composite
def turns(draw: st.DrawFn) -> tuple[tuple[Recording, ...], list[str]]:
    """The streams of a turn, and what each call of a tool does."""
    streams = []
    for seed in range(1, draw(st.integers(1, 7)) + 1):
        items = draw(st.lists(st.sampled_from(["W-1", "W-2", "W-3", "W-4"]), max_size=3))
        recording = stream(seed, Text("So."), *map(read, items))
        how = draw(st.sampled_from(HOW))
        frame = draw(st.integers(1, len(recording.chunks) - 1))
        if how == "cut":
            ending = draw(st.sampled_from(["eof", "cut", "reset", "timeout"]))
            recording = faults.disconnect(recording, frame, ending)
        elif how == "error":
            recording = faults.error(recording, frame)
        elif how == "max_tokens":
            recording = stream(seed, Text("So."), reason="max_tokens")
        streams.append(recording)
    return (*streams, SAID), draw(st.lists(st.sampled_from(DOES), min_size=25, max_size=25))


def doing(what: list[str]) -> Callable[[int, str], Awaitable[str]]:
    async def does(number: int, item: str) -> str:
        match what[number % len(what)]:
            case "error":
                raise LookupError(item)
            case "slow":
                for _ in range(5):
                    await asyncio.sleep(0)
            case "cancels itself":
                raise asyncio.CancelledError
        return f"{item} is a draft"

    return does


@settings(max_examples=200)
@given(turns(), st.one_of(st.none(), st.integers(1, 80)))
def test_whatever_the_model_the_tools_and_the_person_do_the_laws_hold(
    turn: tuple[tuple[Recording, ...], list[str]], cancel: int | None
) -> None:
    streams, what = turn
    ended, events, desk, ask = cancelled_when(
        lambda n, event: n == cancel, *streams, does=doing(what)
    )
    check_laws(ended, events, desk)
    assert len(ask.requests) <= 6
    assert (ended.state is not TurnState.CANCELLED) or cancel is not None
    assert sum(isinstance(event, RoundEnded) for event in events) == len(ended.rounds)


@given(st.integers(0, 2000), st.integers(0, 2000), st.one_of(st.none(), st.integers(1, 40)))
def test_any_answer_of_a_model_leaves_a_history_that_is_taken_and_one_bubble(
    first: int, second: int, cancel: int | None
) -> None:
    answers = [synth.random_answer(seed)[1] for seed in (first, second)]
    events: list[BusEvent] = []

    async def tool(input: dict[str, Any]) -> str:
        input.clear()
        return "done"

    async def main() -> Ended:
        def publish(event: BusEvent) -> None:
            events.append(event)
            if len(events) == cancel:
                task.cancel()

        tools = {"change_label": tool, "any_tool": tool}
        task = asyncio.create_task(run_turn(ASKED, Asker(*answers, SAID), tools, publish=publish))
        return await task

    ended = asyncio.run(main())
    assert wrong_history(ended.conversation) == []
    check_screen(ended, events)
