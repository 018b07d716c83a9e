"""Lesson 05 as a learner meets it: questions in groups, figures, a way through a lost answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from streamlab.study.exercise_05 import SEQUENCES
from streamlab.study.questions import question
from tests.cells import run, shown
from tests.lab import PATIENCE, Lab

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

LESSON = "05-the-attempt.ipynb"
#: Write the learner's answer in place of the stub's, or of another answer.
ANSWER = r"""
line => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  const shared = widgets.find(cell => cell.model.id === 'exercise-stub').model.sharedModel;
  shared.setSource(shared.getSource().replace(/^ {4}return .*$/m, '    ' + line));
}
"""


def test_three_guesses_in_one_cell_are_kept_apart_and_told_together(
    lab: Lab, browser: Browser
) -> None:
    ids = ("05-r1", "05-r2", "05-r3")
    with lab.open(browser, LESSON) as notebook:
        boxes = run(notebook, "imports", "predict-whole").locator(".sl-quiz")
        expect(boxes).to_have_count(3)
        for box, id, guess in zip(boxes.all(), ids, (1, 1, 2), strict=True):
            box.get_by_text(question(id).options[guess].text.split("`")[1], exact=True).click()
        for box, letter in zip(boxes.all(), "BBC", strict=True):
            expect(box.get_by_role("status")).to_contain_text(f"Your guess is {letter}.")
        told = run(notebook, "run-whole")
        for line in ("You guessed it: B is right", "You guessed B", "You guessed C"):
            expect(told).to_contain_text(line)
        expect(told).to_contain_text("whole_proposal: VALIDATED_PROPOSAL")
        boxes = shown(notebook, "predict-whole").locator(".sl-quiz")
        for box, letter in zip(boxes.all(), "BDA", strict=True):
            expect(box.locator('[data-state="right"] .letter')).to_have_text(letter)
        summed = run(notebook, "summary")
        expect(summed).to_contain_text("1 of 3 guesses were right")
        expect(summed).to_contain_text("Read again: Is it whole? (you guessed B)")
        assert notebook.errors == []


def test_the_keyboard_leads_from_question_to_question(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        boxes = run(notebook, "imports", "predict-often").locator(".sl-quiz")
        keyboard = notebook.page.keyboard
        first, second = (box.get_by_role("radio").first for box in boxes.all())
        explain = boxes.nth(0).get_by_role("button")
        first.focus()
        keyboard.press("Space")
        expect(boxes.nth(0).get_by_role("status")).to_contain_text("Your guess is A.")
        for following in (explain, second):
            expect(following).to_be_enabled()
            keyboard.press("Tab")
            expect(following).to_be_focused()
        for key in ("ArrowDown", "ArrowDown"):
            keyboard.press(key)
        expect(boxes.nth(1).get_by_role("status")).to_contain_text("Your guess is C.")
        expect(run(notebook, "run-often")).to_contain_text("You guessed it: C is right")
        assert notebook.errors == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_the_figures_and_the_views_are_there_by_day_and_by_night(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON, theme) as notebook:
        notebook.run_all()
        for id, word in {
            "machine": "VALIDATED_PROPOSAL",
            "timeline": "RECONCILING",
        }.items():
            figure = shown(notebook, id).locator("svg, img").first
            expect(figure).to_be_visible()
            expect(shown(notebook, id)).to_contain_text(word)  # the caption, folded
            notebook.screenshot(tmp_path / f"{id}-{theme}.png")
        expect(shown(notebook, "board")).to_contain_text("a terminal state is terminal")
        notebook.screenshot(tmp_path / f"board-{theme}.png")
        assert notebook.errors == []


def test_the_lost_answer_can_be_walked_through_by_key(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        view = run(notebook, "imports", "stepper").locator(".sl-stepper")
        expect(view).to_contain_text("step 22 of 25")
        expect(view).to_contain_text("Proposal ready for review")
        view.click(position={"x": 5, "y": 5})
        for said in ("The change is being made", "Outcome being reconciled", "made and on record"):
            notebook.page.keyboard.press("ArrowRight")
            expect(view).to_contain_text(said)
        expect(view).to_contain_text("Asked, not submitted again")
        assert notebook.errors == []


def test_an_answer_with_a_mistake_and_the_right_one_are_told_apart(
    lab: Lab, browser: Browser
) -> None:
    states = [each.state.value for each in SEQUENCES.values()]
    right = f"return dict(zip('abcdefghijkl', {states}))[case]"
    believes = right.replace("INVALID", "VALIDATED_PROPOSAL", 1)
    with lab.open(browser, LESSON) as notebook:
        expect(run(notebook, "imports", "exercise-stub")).to_contain_text("not answered yet")
        notebook.page.evaluate(ANSWER, believes)
        told = run(notebook, "exercise-stub")
        expect(told).to_contain_text("a: an early callback")
        expect(told).to_contain_text("expected  'INVALID'")
        assert SEQUENCES["a"].why not in " ".join(told.inner_text().split("right in")[0].split())
        notebook.page.evaluate(ANSWER, right)
        expect(run(notebook, "exercise-stub")).to_contain_text("05-ex: right in all 12 cases.")
        told = " ".join(shown(notebook, "exercise-stub").inner_text().split())
        assert all(each.why in told for each in SEQUENCES.values())
