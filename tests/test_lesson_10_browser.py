"""Lesson 10 as a learner meets it: the Inspector by mouse and by keyboard, tables, the check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from streamlab.study import corpora
from tests.cells import run, shown
from tests.lab import PATIENCE, Lab, Notebook
from tests.test_stepper_browser import PALE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

LESSON = "10-reading-recordings.ipynb"
HELD_DAY = "2026-11-26"
#: Put other code into a cell.
WRITE = """
([id, code]) => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  widgets.find(cell => cell.model.id === id).model.sharedModel.setSource(code);
}
"""
#: What is in every cell: no key of the view may change it.
CELLS = """
() => jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.sharedModel.source)
"""
ANSWER = """
def is_held(groups):
    held = sum(g.pieces for g in groups if g.pieces >= 4 and g.wait >= 0.25)
    return held > sum(g.pieces for g in groups) / 2

check("10-ex", is_held)
"""


def write(notebook: Notebook, id: str, code: str) -> None:
    notebook.page.evaluate(WRITE, [id, code])


def opened(notebook: Notebook) -> Locator:
    view = run(notebook, "imports", "view").locator(".sl-inspector")
    expect(view.locator("header .name")).to_have_text("text, then a call")
    return view


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_what_the_lesson_tells_to_look_for_is_found_with_mouse_and_keys(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON, theme) as notebook:
        view, keys = opened(notebook), notebook.page.keyboard
        before = notebook.page.evaluate(CELLS)
        expect(view.locator(".verdict")).to_have_text("buffered")
        expect(view.locator(".layer")).to_contain_text("vendor")
        # 1. the silence
        view.locator("select[aria-label='gap before the frame']").select_option(label="> 1 s")
        expect(view.locator(".found")).to_have_text("1 of 21 rows")
        view.locator(".row").click()
        expect(view.locator(".place")).to_have_text("frame 9 of 20")
        # 2. what follows it
        view.get_by_role("button", name="clear").click()
        notebook.wait_until_idle()
        for number in (10, 11, 12):
            view.press("ArrowRight")  # focuses first: Lab may have taken the focus after the click
            expect(view.locator(".place")).to_have_text(f"frame {number} of 20")
            selected = view.locator(".row[aria-selected='true']")
            expect(selected.locator(".gap")).to_have_text("0 ms")
        # 3. the byte at which the call begins
        for _ in range(3):
            view.press("ArrowLeft")
        expect(view.locator(".detail")).to_contain_text("962")
        keys.press("x")
        hexed = view.get_by_role("button", name="hex", exact=True)
        expect(hexed).to_have_attribute("aria-pressed", "true")
        keys.press("?")
        expect(view.get_by_role("dialog", name="keys")).to_be_visible()
        keys.press("Escape")
        for key in ("d", "d", "z", "m", "y", "Enter"):  # in Lab they would delete, undo, split
            keys.press(key)
        assert notebook.page.evaluate(CELLS) == before
        assert notebook.page.evaluate(PALE.replace(".sl-stepper", ".sl-inspector")) == []
        notebook.screenshot(tmp_path / f"inspector-{theme}.png")
        write(notebook, "run-view", "print('frame', view.frame, 'of', view.inspection.rows - 1)")
        expect(run(notebook, "run-view")).to_have_text("frame 9 of 20")
        assert notebook.errors == []


def test_the_whole_lesson_runs_with_its_tables_its_figure_and_no_bar(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, LESSON, "Dark") as notebook:
        notebook.run_all()
        for id, rows in (("naive-code", 5), ("run-view", 5), ("by-day", 5), ("by-model", 5)):
            expect(shown(notebook, id).locator("tbody tr")).to_have_count(rows)
        expect(shown(notebook, "by-day")).to_contain_text("87% are good")
        thursday = shown(notebook, "by-model").locator("tbody tr").nth(corpora.DAYS.index(HELD_DAY))
        expect(thursday).to_contain_text("0.60")
        figure = shown(notebook, "aligned").locator("img, svg").first
        expect(figure).to_be_visible()
        box = figure.bounding_box()
        assert box and box["width"] > 400 and box["height"] > 200
        scan = shown(notebook, "scan")
        expect(scan).to_contain_text("301 files")
        assert scan.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
        expect(shown(notebook, "run-capture")).not_to_contain_text("my-own-key")
        assert notebook.errors == []


def test_a_guess_is_answered_with_why_it_tempts(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        box = run(notebook, "imports", "predict-held")
        box.get_by_text("A proxy: it collects.").click()
        expect(box).to_contain_text("Your guess is A.")
        told = run(notebook, "run-view")
        expect(told).to_contain_text("the text went through the same proxy")
        expect(run(notebook, "summary")).to_contain_text("Look inside")
        assert notebook.errors == []


def test_a_solution_is_accepted_and_a_wait_alone_is_told_why(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        run(notebook, "imports")
        write(notebook, "exercise-stub", ANSWER)
        expect(run(notebook, "exercise-stub")).to_have_text("10-ex: right in all 10 cases.")
        weak = ANSWER.replace("g.pieces >= 4 and ", "")
        write(notebook, "exercise-stub", weak)
        told = run(notebook, "exercise-stub")
        expect(told).to_contain_text("case      a model that is slow all along")
        expect(told).to_contain_text("slow, and not held")
        assert notebook.errors == []
