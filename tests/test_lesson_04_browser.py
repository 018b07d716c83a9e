"""Lesson 04 as a learner meets it: in a real JupyterLab, light and dark, by mouse and by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from streamlab.study.questions import question
from tests.cells import run
from tests.lab import PATIENCE, Lab, Notebook

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

LESSON = "04-two-buffers.ipynb"
PARTIAL = "Yes, W-7 can be deleted."
#: Write an answer in place of the stub's.
ANSWER = """
line => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  const shared = widgets.find(cell => cell.model.id === 'exercise-stub').model.sharedModel;
  shared.setSource(shared.getSource().replace('return ...  # your answer', line));
}
"""


@pytest.fixture(scope="module", params=["Light", "Dark"])
def lesson(lab: Lab, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """The lesson in one theme, opened once: no test sees what another one has guessed."""
    with lab.open(browser, LESSON, request.param) as opened:
        run(opened, "imports", "broken")
        yield opened


@pytest.fixture
def notebook(lesson: Notebook) -> Iterator[Notebook]:
    """The lesson without the outputs of another test."""
    lesson.page.set_viewport_size({"width": 1280, "height": 900})
    lesson.page.evaluate("jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    yield lesson
    assert lesson.errors == []


def test_the_screen_grows_by_key_while_what_is_kept_stays(
    notebook: Notebook, tmp_path: Path
) -> None:
    view = run(notebook, "stepper").locator(".sl-stepper")
    screen, kept = view.locator(".panel.screen"), view.locator(".panel.kept")
    expect(screen).to_contain_text(PARTIAL)
    expect(kept).to_contain_text("Nothing is kept; a retry starts here.")
    notebook.screenshot(tmp_path / "stepper.png")
    view.click(position={"x": 5, "y": 5})
    notebook.page.keyboard.press("Home")
    expect(screen).not_to_contain_text("Yes")
    for key, text in (("ArrowRight", ""), ("ArrowRight", "Yes, W-7"), ("ArrowRight", "can be")):
        notebook.page.keyboard.press(key)
        expect(screen).to_contain_text(text)
        expect(kept.locator(".message")).to_have_count(1)
    view.get_by_role("button", name="undo").click()
    expect(view).to_contain_text("is taken back")  # Python has answered: it sets the step, too
    view.click(position={"x": 5, "y": 5})
    notebook.page.keyboard.press("End")
    expect(view).to_contain_text("step 12 of 12")
    expect(kept.locator(".message")).to_have_count(2)
    expect(kept).to_contain_text(f"{PARTIAL} But first close its audit.")


def test_two_histories_stand_side_by_side(notebook: Notebook, tmp_path: Path) -> None:
    table = run(notebook, "naive-code", "two-buffers").locator("table")
    expect(table.get_by_role("row")).to_have_count(4)
    names = table.get_by_role("columnheader")
    expect(names.nth(1)).to_have_text("what is shown is kept")
    after = table.get_by_role("row").last.locator("td")
    expect(after.nth(0).locator("div").last).to_have_text(f"+assistant: {PARTIAL}")
    expect(after.nth(1)).not_to_contain_text("assistant")
    notebook.screenshot(tmp_path / "side-by-side.png")


#: For each row of the table: how far its name's text is above its first cell's, in pixels.
ROW_OFFSETS = """
table => [...table.rows].slice(1).map(row => {
  const top = cell => {
    const range = document.createRange();
    const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (text.nextNode() && !text.currentNode.data.trim());
    range.selectNodeContents(text.currentNode);
    return range.getClientRects()[0].top;
  };
  return top(row.cells[1]) - top(row.cells[0]);
})
"""


@pytest.mark.parametrize("width", [1280, 760])
def test_the_call_that_is_not_whole_stands_on_the_screen_of_a_table(
    notebook: Notebook, tmp_path: Path, width: int
) -> None:
    notebook.page.set_viewport_size({"width": width, "height": 900})
    output = run(notebook, "run-call")
    table = output.locator("table")
    screen = table.get_by_role("row").nth(1).locator("td")
    expect(screen.nth(1)).to_contain_text('I\'ll pay INV-17. [pay_invoice {"invoice": "INV-17"')
    notebook.screenshot(tmp_path / f"call-{width}.png")
    assert all(abs(offset) < 1 for offset in table.evaluate(ROW_OFFSETS)), table.evaluate(
        ROW_OFFSETS
    )
    assert table.evaluate("table => table.offsetHeight") < 600, "no word is broken into letters"


def test_a_guess_is_answered_by_the_server_itself(notebook: Notebook, tmp_path: Path) -> None:
    asked = question("04-next")
    quiz = run(notebook, "naive-code", "four", "predict-next").locator(".sl-quiz")
    quiz.get_by_text(asked.options[0].text).click()
    output = run(notebook, "run-next")
    expect(output).to_contain_text("BadRequestError")
    expect(output).to_contain_text("You guessed A: None")
    notebook.screenshot(tmp_path / "next.png")


def test_the_answer_to_the_exercise_is_checked(notebook: Notebook) -> None:
    right = "kept = [b for b in blocks if b.get('text', 'x').strip()]; return "
    right += "history + [{'role': 'assistant', 'content': kept}] if kept and complete and reason "
    right += "in ('end_turn', 'stop_sequence', 'tool_use') else history"
    expect(run(notebook, "exercise-stub")).to_contain_text("not answered yet")
    notebook.page.evaluate(ANSWER, right)
    expect(run(notebook, "exercise-stub")).to_contain_text("04-ex: right in all 14 cases.")
