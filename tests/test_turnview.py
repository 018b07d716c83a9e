"""The live view of a turn: what it sends, what its buttons do, and what stands still."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.consumer.screen import Bubble, Part, Screen, fold_screen
from streamlab.consumer.toolloop import Tool, run_turn
from streamlab.consumer.turn_events import TOLD, BusEvent, Status, TurnState
from streamlab.streams import rounds, synth
from streamlab.streams.parts import Text
from streamlab.streams.recording import Recording
from streamlab.study import turns
from streamlab.widgets import turnview
from streamlab.widgets.turnview import TurnView, data
from tests.tools_for_tests import ASKED, Asker, read, stream

TWO = rounds.two_at_once
HOSTILE = "<script>alert(1)</script>&amp;"


def quick(
    streams: Callable[[], tuple[Recording, ...]] = TWO, items: turns.Items | None = None
) -> TurnView:
    """A view without pauses."""
    return TurnView(streams, lambda: (items or turns.Items()).tools, pace=0)


def chips(view: TurnView) -> list[str]:
    return [part["status"] for part in view.screen["parts"] if part["kind"] == "tool_call"]


async def until(view: TurnView, *wanted: str) -> None:
    """Wait until the view shows these chips."""
    async with asyncio.timeout(10):
        while chips(view) != [*wanted]:
            await asyncio.sleep(0)


def said(view: TurnView, message: Any) -> None:
    """What the page sends as a message."""
    view._handle_custom_msg(message, [])


async def press(view: TurnView, button: str) -> None:
    """Press a button, and let the view hear of it."""
    said(view, {"press": button})
    for _ in range(3):
        await asyncio.sleep(0)


async def over(view: TurnView) -> None:
    assert view._watch is not None
    async with asyncio.timeout(10):
        await view._watch


def played(scene: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene()

    asyncio.run(main())


# --- The buttons ----------------------------------------------------------------------------------


def test_run_runs_the_turn_to_its_end_and_keeps_the_record() -> None:
    async def scene() -> None:
        view = quick(turns.three_rounds)
        assert (view.running, view.ended, view.screen["parts"]) == (False, None, [])
        await press(view, "run")
        assert view.running
        await over(view)
        assert not view.running
        assert view.ended is not None and view.ended.state is TurnState.ANSWERED
        assert chips(view) == ["done", "done", "error"]
        assert view.screen["said"] == TOLD[TurnState.ANSWERED]
        assert view.screen["rounds"] == 3

    played(scene)


def test_a_card_says_running_while_its_tool_runs_and_changes_when_its_own_tool_is_done() -> None:
    async def scene() -> None:
        items = turns.Items(waits={"W-7": "the test", "W-8": "the other test"})
        view = quick(items=items)
        await press(view, "run")
        await until(view, "running", "running")
        items._event("the other test").set()
        await until(view, "running", "done")
        items._event("the test").set()
        await until(view, "done", "done")
        await over(view)

    played(scene)


def test_cancel_ends_the_turn_and_nothing_of_it_moves_afterwards() -> None:
    async def scene() -> None:
        items = turns.Items(waits={"W-7": "the end of time"})
        view = quick(items=items)
        await press(view, "run")
        await until(view, "running", "done")
        await press(view, "cancel")
        await over(view)
        assert chips(view) == ["cancelled", "done"]
        assert view.screen["said"] == TOLD[TurnState.CANCELLED]
        assert view.ended is not None and view.ended.state is TurnState.CANCELLED
        shown, log = view.screen, [*items.log]
        items._event("the end of time").set()
        for _ in range(100):
            await asyncio.sleep(0)
        assert (view.screen, items.log) == (shown, log)
        view.ended.conversation.ask("Go on.").request()

    played(scene)


def test_cancel_before_a_run_and_after_it_does_nothing() -> None:
    async def scene() -> None:
        view = quick()
        await press(view, "cancel")
        assert not view.running
        await press(view, "run")
        await over(view)
        await press(view, "cancel")
        assert view.screen["state"] == "ANSWERED"

    played(scene)


def test_run_while_it_runs_does_nothing_and_run_afterwards_begins_anew() -> None:
    async def scene() -> None:
        items = turns.Items(waits={"W-7": "the test"})
        view = quick(items=items)
        await press(view, "run")
        first = view._watch
        await until(view, "running", "done")
        await press(view, "run")
        assert view._watch is first
        await press(view, "cancel")
        await over(view)
        items._event("the test").set()
        await press(view, "run")
        await over(view)
        assert chips(view) == ["done", "done"]
        assert view.ended is not None and view.ended.state is TurnState.ANSWERED

    played(scene)


def test_a_turn_that_never_began_leaves_the_buttons_as_they_were() -> None:
    async def scene() -> None:
        view = quick()
        start = turns.start

        def cancelled(*given: Any) -> Any:
            task = start(*given)
            task.cancel()
            return task

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(turns, "start", cancelled)
            await press(view, "run")
            await over(view)
        assert (view.running, view.ended) == (False, None)

    played(scene)


def test_whoever_stops_watching_stops_the_turn() -> None:
    async def scene() -> None:
        items = turns.Items(waits={"W-7": "the end of time"})
        view = quick(items=items)
        await press(view, "run")
        await until(view, "running", "done")
        turn = view._turn
        assert turn is not None and view._watch is not None
        view._watch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await view._watch
        assert not view.running
        assert (await turn).state is TurnState.CANCELLED

    played(scene)


@pytest.mark.parametrize("message", [{"press": "x"}, {"press": 1}, {"running": True}, [], None, {}])
def test_a_message_that_no_button_sends_does_nothing(message: Any) -> None:
    async def scene() -> None:
        view = quick()
        said(view, message)
        await asyncio.sleep(0)
        assert not view.running and view._watch is None

    played(scene)


def test_a_run_and_a_cancel_that_come_together_are_both_heard() -> None:
    async def scene() -> None:
        view = quick(items=turns.Items(waits={"W-7": "never", "W-8": "never"}))
        said(view, {"press": "run"})
        said(view, {"press": "run"})
        await until(view, "running", "running")
        said(view, {"press": "cancel"})
        said(view, {"press": "run"})
        await over(view)
        assert view.screen["state"] == "CANCELLED"

    played(scene)


def test_without_a_running_loop_there_is_nothing_to_run_in() -> None:
    view = quick()
    with pytest.raises(RuntimeError, match="no running event loop"):
        view._press(view, {"press": "run"}, [])
    assert not view.running


def test_a_press_in_another_thread_wakes_the_notebooks_own_loop() -> None:
    """As JupyterLab does it: in a subshell, which is a thread with an event loop of its own."""

    def elsewhere(view: TurnView, button: str) -> None:
        async def pressed() -> None:
            said(view, {"press": button})

        asyncio.run(pressed())

    async def scene() -> None:
        items, own = turns.Items(waits={"W-7": "never", "W-8": "never"}), threading.get_ident()
        view, threads = quick(items=items), set[int]()
        view.observe(lambda change: threads.add(threading.get_ident()), ("screen", "running"))
        for button, chip in (("run", "running"), ("cancel", "cancelled")):
            thread = threading.Thread(target=elsewhere, args=(view, button))
            thread.start()
            await until(view, chip, chip)
            thread.join()
        await over(view)
        assert threads == {own}

    played(scene)


def test_a_cancel_from_another_thread_is_heard_by_a_loop_that_sleeps() -> None:
    async def scene() -> None:
        view = quick(items=turns.Items(waits={"W-7": "never", "W-8": "never"}))
        await press(view, "run")
        await until(view, "running", "running")
        begun = asyncio.get_running_loop().time()
        timer = threading.Timer(0.05, lambda: said(view, {"press": "cancel"}))
        timer.start()
        assert view._watch is not None
        await asyncio.wait({view._watch}, timeout=20)  # nothing else is there to wake it
        timer.join()
        assert view._watch.done() and asyncio.get_running_loop().time() - begun < 15

    played(scene)


def test_what_streams_or_tools_cannot_be_made_of_is_not_kept_quiet() -> None:
    async def scene() -> None:
        def no_tools() -> dict[str, Tool]:
            raise LookupError("no tools today")

        view = TurnView(TWO, no_tools, pace=0)
        await press(view, "run")
        with pytest.raises(LookupError, match="no tools today"):
            await over(view)
        assert not view.running

    played(scene)


# --- What is sent ---------------------------------------------------------------------------------


def test_json_on_its_way_to_a_tool_is_at_no_moment_in_what_is_sent() -> None:
    async def scene() -> None:
        view, sent = quick(turns.three_rounds), list[str]()
        view.observe(lambda change: sent.append(json.dumps(change["new"]["parts"])), "screen")
        await press(view, "run")
        await over(view)
        assert len(sent) > 10
        assert not any('{\\"' in each or "W-7\\" in each for each in sent)
        assert '["item", "W-7"]' in sent[-1]

    played(scene)


def test_a_card_has_names_and_values_from_the_moment_on_at_which_its_input_is_whole() -> None:
    def card(status: Status, text: str) -> dict[str, Any]:
        part = Part("a", "1", "tool_call", "t", status=status, content=(None, text))
        shown: dict[str, Any] = data(Screen((Bubble("b", (part,)),)))["parts"][0]
        return shown

    assert card(Status.STREAMING, '{"item": "W-7"}')["input"] == []
    ready = card(Status.READY, '{"item": "W-7", "n": 2}')
    assert ready["input"] == [["item", "W-7"], ["n", "2"]] and ready["text"] == ""
    for broken in ("", "[1]", '{"item', "7"):
        assert card(Status.READY, broken)["input"] == []


@given(st.integers(0, 3000))
def test_whatever_a_model_answers_can_be_sent(seed: int) -> None:
    events: list[BusEvent] = []

    async def main() -> None:
        answer = synth.random_answer(seed)[1]
        await run_turn(ASKED, Asker(answer), {}, publish=events.append)

    asyncio.run(main())
    shown = data(fold_screen(events))
    json.dumps(shown, ensure_ascii=False).encode()
    assert shown["state"]


def test_half_a_character_is_replaced() -> None:
    part = Part("a", "0", "text", content=(None, "x\ud83d"))
    assert data(Screen((Bubble("b", (part,)),)))["parts"][0]["text"] == "x?"


# --- What stands still ----------------------------------------------------------------------------

STILL = """\
TurnView, if nobody cancels: What about W-7, W-8 and W-9?
  I'll look at the first two.
  read_item (item W-7) [done] → W-7 is a draft
  read_item (item W-8) [done] → W-8 is open
  Now the third.
  read_item (item W-9) [error] → LookupError: there is no W-9
  W-7 is a draft, W-8 is open, and there is no W-9.
  ANSWERED: The answer is complete (3 rounds)"""


def test_before_it_runs_it_prints_the_finished_screen_also_inside_a_running_loop() -> None:
    async def scene() -> None:
        view = TurnView()
        assert repr(view) == STILL
        bundle = view._repr_mimebundle_()[0]
        assert bundle["text/plain"] == STILL
        assert "application/vnd.jupyter.widget-view+json" in bundle
        for line in ("W-8 is open", "LookupError: there is no W-9", "The answer is complete"):
            assert line in bundle["text/html"]
        assert not view.running

    played(scene)


def test_what_stands_still_is_what_a_run_comes_to() -> None:
    async def scene() -> None:
        view = quick(turns.three_rounds)
        await press(view, "run")
        await over(view)
        assert view.screen == view._still

    played(scene)


def test_a_strangers_text_is_text_in_the_html_and_in_the_page() -> None:
    view = quick(lambda: (stream(1, Text(HOSTILE), read(HOSTILE)), stream(2, Text("So."))))
    html = view._repr_mimebundle_()[0]["text/html"]
    assert "<script" not in html and "&lt;script&gt;" in html
    script = (Path(turnview.__file__).parent / "turnview.js").read_text("utf-8")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"):
        assert way not in script


def test_the_view_knows_each_chip_and_each_end_by_its_name() -> None:
    script = (Path(turnview.__file__).parent / "turnview.js").read_text("utf-8")
    signs = script[script.index("SIGNS") : script.index("TONES")]
    for status in Status:
        assert f'{status}":' in signs or f"{status}:" in signs
    ends = script[script.index("ENDS =") :].splitlines()[0]
    for name in ("ANSWERED", "PROPOSED", "CANCELLED", "HELD"):
        assert name in ends and name in TurnState.__members__
