"""The lessons as a learner meets them: in a real JupyterLab, light and dark, by mouse or by key."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from streamlab.study.questions import question
from tests.cells import run, shown
from tests.lab import PATIENCE, Lab
from tests.refresh_notebooks import notebooks

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

FIRST = "00-start-here.ipynb"


#: Lessons that another test runs from top to bottom in the same theme: 00 below, the others in the
#: lesson's own file.
ELSEWHERE = ("00", "05", "06", "07", "09", "10")
#: Each other lesson in one theme, in turn: what differs by theme is the views', which have tests.
THEMES = [
    (path, theme)
    for path, theme in zip(notebooks(), cycle(["Light", "Dark"]), strict=False)
    if not path.name.startswith(ELSEWHERE)
]


@pytest.mark.parametrize(("path", "theme"), THEMES, ids=lambda value: getattr(value, "stem", value))
def test_a_lesson_runs_from_top_to_bottom(
    lab: Lab, browser: Browser, path: Path, theme: str, tmp_path: Path
) -> None:
    with lab.open(browser, path.name, theme) as notebook:
        notebook.run_all()
        assert notebook.errors == []
        notebook.screenshot(tmp_path / f"{path.stem}-{theme}.png")


def test_a_guess_by_mouse_is_kept_and_answered(lab: Lab, browser: Browser) -> None:
    asked = question("00-sdk")
    with lab.open(browser, FIRST) as notebook:
        run(notebook, "imports", "arrived", "predict-sdk")
        quiz = shown(notebook, "predict-sdk").locator(".sl-quiz")
        status, says = quiz.get_by_role("status"), quiz.locator(".says:visible")
        expect(status).to_have_text("Pick one, then run the next cell.")
        expect(quiz.get_by_role("button")).to_be_disabled()
        quiz.get_by_text(asked.options[0].text).click()
        expect(status).to_have_text("Your guess is A. Now run the next cell.")
        expect(says).to_have_count(0)
        run(notebook, "sdk")
        expect(run(notebook, "reveal-sdk")).to_contain_text("You guessed A: It raises")
        shown(notebook, "predict-sdk")
        expect(says).to_have_text(f"Not so. {asked.options[0].says}")
        expect(quiz.locator('[data-state="right"] .letter')).to_have_text("D")
        quiz.get_by_text("It returns the call").click()
        expect(says).to_have_text(f"Right. {asked.options[3].says}")
        expect(status).to_contain_text("You guessed A.")
        expect(run(notebook, "summary")).to_contain_text("0 of 1 guesses were right")
        assert notebook.errors == []


def test_a_guess_by_keyboard_stays_out_of_the_notebooks_way(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, FIRST) as notebook:
        run(notebook, "imports", "predict-sdk")
        keyboard = notebook.page.keyboard
        cells = "jupyterapp.shell.currentWidget.content.widgets.length"
        count = notebook.page.evaluate(cells)
        quiz = shown(notebook, "predict-sdk").locator(".sl-quiz")
        third = quiz.get_by_role("radio").nth(2)
        quiz.get_by_role("radio").first.focus()
        for key in ("Space", "ArrowDown", "ArrowDown"):
            keyboard.press(key)
        expect(third).to_be_checked()
        expect(quiz.get_by_role("status")).to_have_text("Your guess is C. Now run the next cell.")
        for key in "bda":  # in command mode: new cells above and below, and half of a deletion
            keyboard.press(key)
        assert notebook.page.evaluate(cells) == count
        keyboard.press("Tab")
        keyboard.press("Enter")  # "Explain my guess"
        expect(quiz.locator(".says:visible")).to_contain_text("Not so. It does try again")
        expect(quiz.locator('[data-state="right"]')).to_have_count(0)  # asking gives nothing away
        expect(third).to_be_focused()
        assert notebook.errors == []


def test_running_everything_first_gives_nothing_away(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, FIRST) as notebook:
        notebook.run_all()
        shown(notebook, "predict-sdk")
        quiz = shown(notebook, "predict-sdk").locator(".sl-quiz")
        expect(quiz.get_by_role("status")).to_have_text("Pick one; the reason appears here.")
        expect(quiz.locator('[data-state="right"], .says:visible')).to_have_count(0)
        quiz.get_by_role("radio").nth(3).check()
        expect(quiz.locator(".says:visible")).to_contain_text("Right. ")
        expect(run(notebook, "summary")).to_contain_text("1 of 1 guesses were right")
        assert notebook.errors == []


def test_the_view_of_lesson_00_stands_where_the_connection_ended(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, FIRST) as notebook:
        run(notebook, "imports", "arrived", "stepper")
        view = shown(notebook, "stepper").locator(".sl-stepper")
        for text in ("step 11 of 11", "Interrupted: the answer", "nothing may be acted on"):
            expect(view).to_contain_text(text)


def test_an_answer_to_the_exercise_is_checked(lab: Lab, browser: Browser) -> None:
    write = """line => {
      const widgets = jupyterapp.shell.currentWidget.content.widgets;
      const shared = widgets.find(c => c.model.id === 'exercise-stub').model.sharedModel;
      shared.setSource(shared.getSource().replace('return ...  # your answer', line));
    }"""
    with lab.open(browser, FIRST) as notebook:
        run(notebook, "imports")
        expect(run(notebook, "exercise-stub")).to_contain_text("not answered yet")
        notebook.page.evaluate(write, "return 'message_stop' in names")
        expect(run(notebook, "exercise-stub")).to_contain_text("token limit inside the number")


def test_lessons_lead_to_each_other(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, FIRST) as notebook:
        notebook.page.get_by_role("link", name="01 What are the six events for?").first.click()
        title = notebook.page.locator(".jp-RenderedMarkdown h1", has_text="What are the six")
        expect(title).to_be_visible()
