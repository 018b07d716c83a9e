"""Lesson 06 as a learner meets it: real processes from a notebook, the race, and the exercise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from streamlab.study.questions import question
from tests.cells import run, shown
from tests.lab import PATIENCE, Lab

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

LESSON = "06-cancel-against-commit.ipynb"
#: Write the learner's answer in place of the stub's, or of another answer.
ANSWER = r"""
body => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  const shared = widgets.find(cell => cell.model.id === 'exercise-stub').model.sharedModel;
  const source = shared.getSource();
  const [head, tail] = [source.indexOf('\n') + 1, source.indexOf('\n\n\ncheck(')];
  shared.setSource(source.slice(0, head) + body + source.slice(tail));
}
"""
RIGHT = """\
    if row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        try:
            said = desk.submit(row.id)
        except OSError:
            said = "unknown"
        after = {"done": "COMMITTED", "refused": "ABORTED", "unknown": "RECONCILING"}
        row.set("COMMITTING", after[said])
    return row.state"""


def test_a_guess_about_the_repairs_is_answered_by_what_they_do(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        box = run(notebook, "imports", "naive", "naive-broken", "predict-fix").locator(".sl-quiz")
        expect(shown(notebook, "naive-broken")).to_contain_text("W-7 is paid twice")
        box = shown(notebook, "predict-fix").locator(".sl-quiz")
        box.get_by_text(question("06-fix").options[2].text, exact=True).click()
        expect(box.get_by_role("status")).to_contain_text("Your guess is C.")
        told = run(notebook, "run-fix")
        expect(told).to_contain_text("send the same key each time      paid once")
        expect(told).to_contain_text("You guessed C")
        expect(run(notebook, "summary")).to_contain_text("Read again: Paid twice (you guessed C)")
        assert notebook.errors == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_the_whole_lesson_runs_by_day_and_by_night(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON, theme) as notebook:
        notebook.run_all()
        expect(shown(notebook, "run-race")).to_contain_text("100 races: one winner in 100")
        expect(shown(notebook, "run-crash")).to_contain_text("asked to: close submit close")
        expect(shown(notebook, "explore")).to_contain_text("0 violations")
        expect(shown(notebook, "view-race").locator(".sl-race")).to_be_visible()
        notebook.screenshot(tmp_path / f"race-{theme}.png")
        assert notebook.errors == []


def test_the_three_tries_of_the_race_by_mouse_and_key(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        view = run(notebook, "imports", "view-race").locator(".sl-race")
        verdict = view.locator(".verdict")
        cancel = view.get_by_role("slider", name="a person cancels")
        place = cancel.bounding_box()
        track = view.locator(".strip").bounding_box()
        assert place and track
        notebook.page.mouse.move(place["x"] + 9, place["y"] + 15)
        notebook.page.mouse.down()
        notebook.page.mouse.move(place["x"] + 9 + track["width"] / 7, place["y"] + 15, steps=4)
        notebook.page.mouse.up()
        expect(verdict).to_contain_text("the cancellation found COMMITTING. W-7 is paid once.")
        view.get_by_label("our process dies before the effect").check()
        expect(verdict).to_contain_text("then it failed, and W-7 is not paid.")
        view.get_by_label("the answer gets lost").check()
        view.get_by_role("slider", name="the commit is delivered again").press("ArrowRight")
        expect(verdict).to_contain_text("W-7 is paid once.")
        expect(view.locator(".card").first).to_contain_text("the second delivery is told")
        expect(view.locator(".card .count").first).to_have_text("Submitted once, paid once.")
        assert notebook.errors == []


def test_an_answer_with_a_mistake_and_the_right_one_are_told_apart(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, LESSON) as notebook:
        expect(run(notebook, "imports", "exercise-stub")).to_contain_text("not answered yet")
        notebook.page.evaluate(ANSWER, RIGHT.replace('"RECONCILING"', '"ABORTED"'))
        told = run(notebook, "exercise-stub")
        expect(told).to_contain_text("ready, and the connection breaks")
        expect(told).to_contain_text(
            "expected  'COMMITTING, submit attempt-1, RECONCILING; returned RECONCILING'"
        )
        notebook.page.evaluate(ANSWER, RIGHT)
        expect(run(notebook, "exercise-stub")).to_contain_text("06-ex: right in all 12 cases.")
        assert notebook.errors == []
