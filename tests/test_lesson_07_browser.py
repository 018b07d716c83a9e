"""Lesson 07 as a learner meets it: a turn that runs while they watch, and that they can cancel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from streamlab.consumer.turn_events import TOLD, TurnState
from tests.cells import run, shown
from tests.lab import PATIENCE, Lab, Notebook

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

LESSON = "07-the-tool-loop.ipynb"
#: Put other code into a cell.
WRITE = """
([id, code]) => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  widgets.find(cell => cell.model.id === id).model.sharedModel.setSource(code);
}
"""
#: Count what changes in the view from now on.
WATCH = """
view => {
  globalThis.moved = 0;
  new MutationObserver(changes => { globalThis.moved += changes.length; })
    .observe(view, { subtree: true, childList: true, characterData: true, attributes: true });
}
"""
#: The lesson's view, with tools that are only done when the test says so.
VIEW = """
items = turns.Items(waits={"W-7": "the test", "W-8": "the test"})
view = TurnView(tools=lambda: items.tools)
view
"""
#: Says so, and prints the record.
LET_GO = """
items._event("the test").set()
print(view.ended.state, *(run.status for run in view.ended.runs), *items.log)
"""
#: A learner's answer to the exercise.
ANSWER = """
import asyncio

async def run_all(calls, tools):
    async def one(call):
        block = {"type": "tool_result", "tool_use_id": call["id"]}
        try:
            return {**block, "content": await tools[call["name"]](call["input"])}
        except Exception as why:
            return {**block, "content": str(why), "is_error": True}
    return {"role": "user", "content": await asyncio.gather(*map(one, calls))}

check("07-ex", turns.settled(run_all))
"""


def write(notebook: Notebook, id: str, code: str) -> None:
    notebook.page.evaluate(WRITE, [id, code])


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_turn_that_is_cancelled_while_tools_run_says_so_and_nothing_moves_afterwards(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON, theme) as notebook:
        write(notebook, "view", VIEW)
        view = run(notebook, "imports", "view").locator(".sl-turn")
        cancel = view.get_by_role("button", name="Cancel")
        expect(view).to_contain_text("Press Run.")
        expect(view.locator(".bubble")).to_be_hidden()
        notebook.screenshot(tmp_path / f"before-{theme}.png")
        view.get_by_role("button", name="Run").click()
        chips = view.locator(".chip")
        expect(chips).to_have_text(["▸running", "▸running"])
        expect(view.get_by_role("status")).to_have_text("under way ")
        notebook.screenshot(tmp_path / f"running-{theme}.png")
        cancel.click()
        expect(view.locator(".state")).to_have_text("CANCELLED")
        expect(view.locator(".said")).to_have_text(TOLD[TurnState.CANCELLED])
        expect(chips).to_have_text(["⊘cancelled", "⊘cancelled"])
        expect(view.get_by_role("button", name="Run again")).to_be_visible()
        expect(cancel).to_have_attribute("aria-disabled", "true")
        notebook.screenshot(tmp_path / f"cancelled-{theme}.png")
        view.evaluate(WATCH)
        cancel.click(force=True)
        assert "{" not in view.inner_text()
        write(notebook, "run-cancel", LET_GO)
        said = run(notebook, "run-cancel")
        expect(said).to_have_text("CANCELLED cancelled cancelled W-7 started W-8 started")
        notebook.page.wait_for_timeout(500)  # time for whatever might still be running
        assert notebook.page.evaluate("moved") == 0
        assert notebook.errors == []


def test_by_keyboard_a_turn_runs_to_its_end_beside_another_cell_and_then_once_more(
    lab: Lab, browser: Browser, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON) as notebook:
        view = run(notebook, "imports", "view").locator(".sl-turn")
        view.get_by_role("button", name="Run").focus()
        notebook.page.keyboard.press("Enter")
        expect(view.locator(".chip").first).to_have_text("▸running")
        write(notebook, "naive-good", "print('meanwhile')")  # the loop is free
        expect(run(notebook, "naive-good")).to_have_text("meanwhile")
        shown(notebook, "view")
        expect(view.locator(".state")).to_have_text("ANSWERED")
        expect(view.locator(".chip")).to_have_text(["✓done", "✓done", "✕error"])
        expect(view.locator(".bubble")).to_have_count(1)
        expect(view.locator(".bubble")).to_be_visible()
        expect(view.locator(".rounds")).to_have_text("round 3")
        notebook.screenshot(tmp_path / "answered.png")
        again = view.get_by_role("button", name="Run again")
        again.focus()
        notebook.page.keyboard.press("Space")
        expect(view.locator(".chip")).to_have_text(["▸running", "▸running"])
        notebook.page.keyboard.press("Tab")
        notebook.page.keyboard.press("Enter")
        expect(view.locator(".state")).to_have_text("CANCELLED")
        assert notebook.errors == []


def test_the_whole_lesson_runs_and_an_async_answer_is_checked(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON, "Dark") as notebook:
        notebook.run_all()
        write(notebook, "exercise-stub", ANSWER)
        expect(run(notebook, "exercise-stub")).to_have_text("07-ex: right in all 7 cases.")
        assert notebook.errors == []
