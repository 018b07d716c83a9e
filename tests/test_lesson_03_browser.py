"""Lesson 03 as a learner meets it: in a real JupyterLab, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.cells import run
from tests.lab import PATIENCE, Lab

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

LESSON = "03-assembling.ipynb"
#: Write the learner's answer in place of the stub's, or of another answer.
ANSWER = r"""
line => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  const shared = widgets.find(cell => cell.model.id === 'exercise-stub').model.sharedModel;
  shared.setSource(shared.getSource().replace(/^ {4}.*$/m, '    ' + line));
}
"""


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_bars_of_two_calls_overlap_and_each_keeps_its_input(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON, theme) as notebook:
        output = run(notebook, "imports", "tidy", "naive-code", "calls", "stepper")
        view = output.locator(".sl-stepper")
        view.click(position={"x": 5, "y": 5})
        for _ in range(17):
            notebook.page.keyboard.press("ArrowRight")
        expect(view).to_contain_text("step 18 of 26")
        expect(view).to_contain_text("10 more characters of JSON")
        notebook.screenshot(tmp_path / f"stepper-{theme}.png")
        table = run(notebook, "execute-code", "run-meanings")
        expect(table).to_contain_text("another value")
        expect(table).to_contain_text("C is right")
        notebook.screenshot(tmp_path / f"table-{theme}.png")
        assert notebook.errors == []


def test_a_wrong_and_a_right_assembler_are_told_apart(lab: Lab, browser: Browser) -> None:
    right = "from streamlab.study.assembling import assemble as a; return a(events)"
    with lab.open(browser, LESSON) as notebook:
        run(notebook, "imports")
        notebook.page.evaluate(ANSWER, "return {0: 'Hello!'}")
        expect(run(notebook, "exercise-stub")).to_contain_text("a sentence and a call")
        notebook.page.evaluate(ANSWER, right)
        expect(run(notebook, "exercise-stub")).to_contain_text("03-ex: right in all 11 cases.")
        assert notebook.errors == []
