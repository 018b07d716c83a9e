"""Lesson 07 tells the truth: its naive loop, its questions, its tools and its exercise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import nbformat
import pytest

from streamlab import Conversation, Replay, check, judge
from streamlab.consumer.bus import Bus
from streamlab.consumer.conversation import KEPT
from streamlab.consumer.gates import EFFECT, Policy
from streamlab.consumer.screen import by_stream, fold_screen
from streamlab.consumer.toolloop import Ended, run_turn
from streamlab.consumer.turn_events import BusEvent, ToolResolved, ToolRunning, TurnState
from streamlab.errors import UsageError
from streamlab.streams import rounds
from streamlab.streams.parts import ToolCall
from streamlab.study import exercise_07, turns
from streamlab.study.questions import QUESTIONS
from streamlab.study.tasks import UNANSWERED
from tests.refresh_notebooks import NOTEBOOKS
from tests.tools_for_tests import ASKED, SAID, stream

LESSON: Any = nbformat.read(NOTEBOOKS / "07-the-tool-loop.ipynb", 4)  # type: ignore[no-untyped-call]


def cell(id: str) -> str:
    return str(next(cell.source for cell in LESSON.cells if cell.id == id))


def right_text(id: str) -> str:
    asked = QUESTIONS[id]
    return asked.options[asked.right].text


def printed(id: str) -> str:
    """What a cell of the lesson printed, as committed."""
    outputs = next(cell.outputs for cell in LESSON.cells if cell.id == id)
    return "".join(output.get("text", "") for output in outputs)


def naive() -> Callable[..., Coroutine[Any, Any, None]]:
    """The naive loop, as the lesson has it."""
    names: dict[str, Any] = {"Conversation": Conversation}
    exec(cell("naive-loop"), names)
    loop: Callable[..., Coroutine[Any, Any, None]] = names["naive"]
    return loop


def play(
    streams: tuple[Any, ...], items: turns.Items | None = None
) -> tuple[Ended, list[BusEvent], Replay]:
    events: list[BusEvent] = []
    replay, tools = Replay(*streams), (items or turns.Items()).tools

    async def main() -> Ended:
        publish = events.append
        return await run_turn(ASKED, replay, tools, rounds.READING, publish=publish)

    return asyncio.run(main()), events, replay


# --- The naive loop, and what the real one does instead -------------------------------------------


def test_the_naive_loop_draws_a_bubble_a_stream_and_shows_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = turns.Model(*rounds.one_after_another())
    asyncio.run(naive()(model, turns.Items().tools))
    said = capsys.readouterr().out
    assert said.count("bubble: ") == len(model.requests) == 5
    assert '{"item": "W-1"}' in said
    assert right_text("07-bubbles") == "Five bubbles, five requests."


def test_the_same_streams_are_one_bubble_by_the_turn_and_no_json_is_in_its_text() -> None:
    _, events, replay = play(rounds.one_after_another())
    assert len(replay.requests) == len(fold_screen(events, bubble_of=by_stream).bubbles) == 5
    (bubble,) = fold_screen(events).bubbles
    text = "".join(part.text for part in bubble.parts if part.kind == "text")
    assert text == "Item 1.Item 2.Item 3.Item 4.That was all."


def test_the_naive_loop_runs_one_tool_after_the_other() -> None:
    items = turns.Items()
    asyncio.run(naive()(turns.Model(*rounds.two_at_once()), items.tools))
    assert items.log == ["W-7 started", "W-7 done", "W-8 started", "W-8 done"]
    assert ", ".join(items.log) in printed("naive-order")


def test_the_naive_loop_never_ends_where_one_tool_waits_for_the_next() -> None:
    items = turns.Items(waits={"W-7": "W-8"})

    async def main() -> bool:
        loop = naive()(turns.Model(*rounds.two_at_once()), items.tools)
        task = asyncio.ensure_future(loop)
        for _ in range(1000):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(main())
    assert items.log == ["W-7 started"]


def test_an_exception_ends_the_naive_loop_and_nothing_but_the_recordings_ends_its_rounds() -> None:
    tools = turns.Items().tools
    with pytest.raises(LookupError, match="there is no W-9"):
        asyncio.run(naive()(turns.Model(*turns.no_such_item()), tools))
    model = turns.Model(*rounds.for_ever(9))
    with pytest.raises(UsageError, match="no recording for request 10"):
        asyncio.run(naive()(model, tools))
    assert len(model.requests) == 9


# --- The questions --------------------------------------------------------------------------------


def test_cards_change_as_each_is_done_and_the_model_hears_in_its_own_order() -> None:
    items = turns.Items(waits={"W-7": "W-8"})
    ended, events, replay = play(rounds.two_at_once(), items)
    assert [e.text for e in events if isinstance(e, ToolResolved)] == [
        "W-8 is open",
        "W-7 is a draft",
    ]
    results = replay.requests[1][-1]["content"]
    assert [block["content"] for block in results] == ["W-7 is a draft", "W-8 is open"]
    assert right_text("07-order") == "Cards: W-8, W-7. Results: W-7, W-8."
    assert ended.state is TurnState.ANSWERED


def test_running_is_on_the_screen_before_the_tool_is_called() -> None:
    items = turns.Items(waits={"W-7": "W-8"})

    async def main() -> None:
        publish, replay = turns.noted(items.log), Replay(*rounds.two_at_once())
        await run_turn(ASKED, replay, items.tools, rounds.READING, publish=publish)

    asyncio.run(main())
    assert items.log == [
        *("card 1: running", "W-7 started", "card 2: running", "W-8 started"),
        *("W-8 done", "card 2: done", "W-7 done", "card 1: done"),
    ]
    assert "\n".join(items.log) in printed("run-order")


def test_a_history_with_one_of_two_results_is_refused() -> None:
    _, _, replay = play(rounds.two_at_once())
    question, calls, results = replay.requests[1]
    for kept in (results["content"][:1], results["content"][1:]):
        half = Conversation((question, calls, {**results, "content": kept}))
        with pytest.raises(UsageError, match="has no result in the next message"):
            half.request()
    apart = [{**results, "content": [block]} for block in results["content"]]
    with pytest.raises(UsageError, match="has no result in the next message"):
        Conversation((question, calls, *apart)).request()


def test_a_tools_error_is_its_result_and_the_model_answers() -> None:
    ended, _, replay = play(turns.no_such_item())
    assert ended.state is TurnState.ANSWERED
    fine, failed = replay.requests[1][-1]["content"]
    assert "is_error" not in fine and failed["is_error"]
    assert right_text("07-error") == "The tool's error is its result, and the turn goes on."


def test_the_guard_and_the_cap_are_as_the_lesson_says() -> None:
    same, _, replay = play(rounds.for_ever())
    assert sum(run.started for run in same.runs) == 2 and len(replay.requests) == 3
    assert right_text("07-cap") == "2 times, in 3 requests."
    other, _, replay = play(rounds.one_after_another(20))
    assert (same.state, other.state) == (TurnState.REPEATING, TurnState.CAPPED)
    assert sum(run.started for run in other.runs) == 5 and len(replay.requests) == 6
    for ended in (same, other):
        assert f"{ended.state}: {ended.said}\n  {ended.why}" in printed("run-cap")
        ended.conversation.ask("Go on.").request()


def test_a_cancel_keeps_both_calls_and_a_result_for_each() -> None:
    items = turns.Items(waits={"W-7": "the end of time"})

    async def main() -> Ended:
        bus, replay = Bus(), Replay(*rounds.two_at_once())
        turn = run_turn(ASKED, replay, items.tools, rounds.READING, publish=bus.publish)
        task = turns.start(turn, bus)
        async for event in bus:
            if isinstance(event, ToolResolved):
                task.cancel()
        assert len(replay.requests) == 1
        return await task

    ended = asyncio.run(main())
    _, calls, results = ended.conversation.messages
    assert sum(block["type"] == "tool_use" for block in calls["content"]) == 2
    cancelled, done = results["content"]
    assert cancelled["content"] == "cancelled while it ran" and done["content"] == "W-8 is open"
    assert all(run.started for run in ended.runs)
    assert right_text("07-cancel").startswith("Both calls and two results")


@pytest.mark.parametrize("sort", ["ToolRunning", "RoundStarted"])
def test_the_other_rows_of_the_table_of_cancels_hold(sort: str) -> None:
    """A cancel as the first card says `running`, and one as the first stream begins."""
    items = turns.Items()

    async def main() -> Ended:
        def publish(event: BusEvent) -> None:
            if type(event).__name__ == sort:
                task.cancel()

        replay = Replay(*rounds.two_at_once())
        turn = run_turn(ASKED, replay, items.tools, rounds.READING, publish=publish)
        task = asyncio.create_task(turn)
        return await task

    ended = asyncio.run(main())
    assert ended.state is TurnState.CANCELLED and items.log == []
    messages = ended.conversation.messages
    if sort == "RoundStarted":
        assert messages == ASKED.messages
    else:
        told = {block["content"] for block in messages[-1]["content"]}
        assert told == {"cancelled before it ran"}


# --- The tools of the lesson ----------------------------------------------------------------------


def test_all_recordings_of_the_lesson_are_whole_and_stop_for_a_tool_or_at_the_end() -> None:
    for streams in (turns.three_rounds(), turns.no_such_item()):
        outcomes = [judge(recording, policy=rounds.READING) for recording in streams]
        assert all(outcome.state in KEPT for outcome in outcomes)
        reasons = [outcome.turn.facts.stop_reason for outcome in outcomes]
        assert reasons == ["tool_use"] * (len(streams) - 1) + ["end_turn"]


def test_the_pace_changes_when_bytes_come_and_not_which() -> None:
    async def received(ask: Any) -> list[bytes]:
        return [read.data async for read in ask([])]

    recording = turns.three_rounds()[0]
    plain = asyncio.run(received(Replay(recording)))
    assert asyncio.run(received(turns.slowly(Replay(recording), 0.0001))) == plain


def test_the_live_view_leaves_a_person_time_to_press() -> None:
    assert min(turns.SECONDS.values()) >= 2
    assert turns.SECONDS["W-8"] < turns.SECONDS["W-7"], "one is done while the other runs"


def test_the_log_says_nothing_of_other_events() -> None:
    log: list[str] = []
    _, events, _ = play(rounds.two_at_once())
    for event in events:
        turns.noted(log)(event)
    assert len(log) == sum(isinstance(e, (ToolRunning, ToolResolved)) for e in events) == 4


def test_settled_gives_what_a_function_gives_and_raises_what_it_raises() -> None:
    async def double(value: int) -> int:
        await asyncio.sleep(0)
        return 2 * value

    async def fails() -> None:
        raise LookupError("gone")

    async def gives_up() -> None:
        raise asyncio.CancelledError

    async def main() -> int:
        doubled: int = turns.settled(double)(21)  # where a loop is running already
        return doubled

    assert turns.settled(double)(21) == asyncio.run(main()) == 42
    assert turns.settled(lambda: UNANSWERED)() is UNANSWERED
    with pytest.raises(LookupError, match="gone"):
        turns.settled(fails)()
    with pytest.raises(UsageError, match="was cancelled"):
        turns.settled(gives_up)()


def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.05)

    async def for_ever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        turns.settled(for_ever)()


# --- The exercise ---------------------------------------------------------------------------------

CASES = {case.name: case for case in exercise_07._cases()}


@pytest.mark.parametrize("name", CASES)
def test_what_the_exercise_expects_is_a_message_that_a_request_may_hold(name: str) -> None:
    case = CASES[name]
    calls, _ = case.given
    asked = {"role": "assistant", "content": calls}
    Conversation((*ASKED.messages, asked, case.expected)).request()


@pytest.mark.parametrize("name", CASES)
def test_the_exercise_agrees_with_the_tool_loop(name: str) -> None:
    """All but the words of an error, which the loop puts the exception's name before."""
    calls, tools = CASES[name].given
    parts = [ToolCall(call["name"], call["input"], id=call["id"]) for call in calls]
    replay = Replay(stream(1, *parts), SAID)
    policy = Policy(EFFECT.accept, {name: {} for name in tools})
    asyncio.run(run_turn(ASKED, replay, tools, policy))
    given = replay.requests[1][-1]
    assert json.loads(json.dumps(given).replace("LookupError: ", "")) == CASES[name].expected


def test_the_exercises_tools_forget_whom_they_met() -> None:
    calls, tools = CASES[exercise_07.MEET].given
    solved, alone = turns.settled(exercise_07.run_all), exercise_07._each(exercise_07._in_turn)
    for _ in range(2):
        assert solved(calls, tools) == CASES[exercise_07.MEET].expected
        assert alone(calls, tools) != CASES[exercise_07.MEET].expected


def test_the_stub_of_the_lesson_is_not_answered_yet(capsys: pytest.CaptureFixture[str]) -> None:
    exec(cell("exercise-stub"), {"check": check, "turns": turns})
    assert "not answered yet" in capsys.readouterr().out


def test_a_cycle_of_checks_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    said = set()
    for _ in range(3):
        for wrong in exercise_07.EXERCISES[0].wrong:
            check("07-ex", wrong.answer)
        said.add(capsys.readouterr().out)
    assert len(said) == 1
