"""Lesson 08 as a learner meets it: one answer in four dialects, and the page that hears of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.cells import run
from tests.lab import PATIENCE, Lab, Notebook

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

LESSON = "08-four-dialects.ipynb"
#: Put other code into a cell.
WRITE = """
([id, code]) => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  widgets.find(cell => cell.model.id === id).model.sharedModel.setSource(code);
}
"""
#: How many cells there are, and what is in that of the view: no key may change them.
CELLS = """
() => jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.sharedModel.source)
"""
#: Start a cell, and do not wait for it.
START = """
id => {
  const notebook = jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = notebook.widgets.findIndex(cell => cell.model.id === id);
  jupyterapp.commands.execute('notebook:run-cell');
}
"""
#: Keep the kernel busy until the test says that it is enough.
BUSY = """
import pathlib, time
while not pathlib.Path({!r}).exists():
    time.sleep(0.05)
"""
ANSWER = """
from streamlab.study.exercise_08 import join
check("08-ex", join)
"""


def write(notebook: Notebook, id: str, code: str) -> None:
    notebook.page.evaluate(WRITE, [id, code])


def opened(notebook: Notebook) -> Locator:
    write(notebook, "stepper", "view = DialectStepper()\nview")
    view = run(notebook, "imports", "stepper").locator(".sl-dialects")
    expect(view.locator(".place")).to_have_text("step 1 of 29")
    return view


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_by_keyboard_the_wire_changes_and_the_moment_stays(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON, theme) as notebook:
        view = opened(notebook)
        before = notebook.page.evaluate(CELLS)
        place, keys = view.locator(".place"), notebook.page.keyboard
        view.locator(".sl-stepper").focus()
        for _ in range(13):
            keys.press("ArrowRight")
        expect(place).to_have_text("step 14 of 29")
        for key, where, wire in (
            ("2", "step 9 of 22", "openai-chat"),
            ("3", "step 17 of 33", "openai-responses"),
            ("4", "step 8 of 11", "gemini"),
        ):
            keys.press(key)
            expect(place).to_have_text(where)
            expect(view.locator(".facts")).to_contain_text(wire)
            expect(view.get_by_role("radio", name=wire)).to_be_checked()
            expect(view.locator(".panel.screen")).to_contain_text("I'll mark W-7 as ready for rev")
            expect(view.locator(".sl-stepper")).to_be_focused()
        notebook.screenshot(tmp_path / f"gemini-{theme}.png")
        keys.press("9")  # there is no ninth
        keys.press("ArrowRight")
        expect(place).to_have_text("step 9 of 11")
        assert notebook.page.evaluate(CELLS) == before
        assert notebook.errors == []


def test_the_radio_buttons_are_one_group_and_the_arrows_choose(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        view = opened(notebook)
        before = notebook.page.evaluate(CELLS)
        claude = view.get_by_role("radio", name="claude")
        claude.focus()
        for wire in ("openai-chat", "openai-responses", "gemini", "claude"):
            notebook.page.keyboard.press("ArrowRight")
            expect(view.locator(".facts")).to_contain_text(wire)
            expect(view.get_by_role("radio", name=wire)).to_be_focused()
        notebook.page.keyboard.press("b")  # in Lab, a new cell below
        assert notebook.page.evaluate(CELLS) == before
        expect(view.locator("input:checked")).to_have_count(1)


def test_after_a_pick_by_mouse_the_arrows_step_through_the_answer(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, LESSON) as notebook:
        view = opened(notebook)
        view.get_by_text("gemini").click()
        expect(view.locator(".facts")).to_contain_text("gemini")
        expect(view.locator(".sl-stepper")).to_be_focused()
        notebook.page.keyboard.press("ArrowRight")
        expect(view.locator(".place")).to_contain_text("step 2 of")
        expect(view.get_by_role("radio", name="gemini")).to_be_checked()


def test_the_next_cell_knows_the_wire_that_was_picked_and_python_can_pick_one(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, LESSON) as notebook:
        view = opened(notebook)
        view.get_by_text("openai-responses").click()
        write(notebook, "stepper-code", "print(view.wire, view.step)")
        expect(run(notebook, "stepper-code")).to_have_text("openai-responses 1")
        write(notebook, "stepper-code", "view.wire = 'gemini'; view.goto(9)")
        run(notebook, "stepper-code")
        expect(view.get_by_role("radio", name="gemini")).to_be_checked()
        expect(view.locator(".place")).to_have_text("step 9 of 11")


def test_while_the_kernel_is_busy_the_view_says_so_and_answers_afterwards(
    lab: Lab, browser: Browser, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON) as notebook:
        view = opened(notebook)
        write(notebook, "stepper-code", BUSY.format(str(tmp_path / "enough")))
        notebook.page.evaluate(START, "stepper-code")
        view.get_by_role("radio", name="gemini").click()
        expect(view.locator("fieldset .note")).to_contain_text("no answer from Python yet")
        expect(view.locator(".facts")).to_contain_text("claude")
        (tmp_path / "enough").touch()
        expect(view.locator(".facts")).to_contain_text("gemini")
        expect(view.locator("fieldset .note")).to_have_text("")
        assert notebook.errors == []


def test_what_is_broken_on_one_wire_is_whole_on_the_others_and_still_there_on_return(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, LESSON) as notebook:
        view = opened(notebook)
        view.locator(".sl-stepper").focus()
        for _ in range(4):
            notebook.page.keyboard.press("ArrowRight")
        view.get_by_role("button", name="disconnect", exact=True).click()
        expect(view.locator(".state").first).to_have_text("INCOMPLETE")
        view.get_by_role("radio", name="gemini").click()
        expect(view.locator(".facts")).to_contain_text("gemini")
        notebook.wait_until_idle()  # the kernel has said all that it will
        view.locator(".sl-stepper").press("End")
        expect(view.locator(".state").first).to_have_text("VALIDATED_PROPOSAL")
        view.get_by_role("radio", name="claude").click()
        expect(view.locator(".facts")).to_contain_text("claude")
        notebook.wait_until_idle()  # the kernel has said all that it will
        view.locator(".sl-stepper").press("End")
        expect(view.locator(".state").first).to_have_text("INCOMPLETE")
        view.get_by_role("button", name="undo the last injection").click()
        notebook.wait_until_idle()
        view.locator(".sl-stepper").press("End")
        expect(view.locator(".state").first).to_have_text("VALIDATED_PROPOSAL")
        assert notebook.errors == []


@pytest.mark.parametrize("width", [700, 1600])
def test_the_choice_fits_a_narrow_and_a_wide_page(lab: Lab, browser: Browser, width: int) -> None:
    with lab.open(browser, LESSON, width=width) as notebook:
        view = opened(notebook)
        bar = view.locator("fieldset")
        assert bar.evaluate("bar => bar.scrollWidth <= bar.clientWidth + 1")
        assert view.evaluate("view => view.scrollWidth <= view.clientWidth + 1")


def test_the_link_leads_to_the_page_and_a_turn_runs_there(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        link = run(notebook, "imports", "page-link").get_by_role("link")
        with notebook.page.context.expect_page() as tab:
            link.click()
        page = tab.value
        page.get_by_role("button", name="Send").click()
        expect(page.locator("body")).to_contain_text("I'll mark W-7 as ready for review.")
        expect(page.locator("body")).to_contain_text("PROPOSED")
        page.close()


def test_a_solution_is_accepted_and_the_naive_reader_is_told_why(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, LESSON) as notebook:
        run(notebook, "imports", "naive-code")
        write(notebook, "exercise-stub", 'check("08-ex", by_index)')
        expect(run(notebook, "exercise-stub")).to_contain_text("right in 0 of 11 cases")
        write(notebook, "exercise-stub", ANSWER)
        expect(run(notebook, "exercise-stub")).to_contain_text("08-ex: right in all 11 cases.")
        assert notebook.errors == []
