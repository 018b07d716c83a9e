"""The predict widget without a browser: what it keeps, what it says, and what it never shows."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
import traitlets
from hypothesis import given
from hypothesis import strategies as st

from streamlab.errors import UsageError
from streamlab.study.questions import GUESSES, QUESTIONS, question
from streamlab.widgets import quiz
from streamlab.widgets.quiz import Predict, predict, reveal, summary
from tests.lab import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

ROOT = Path(__file__).parent.parent
ID = "00-sdk"
RIGHT = question(ID).right
WRONG = (RIGHT + 1) % len(question(ID).options)
FOLDER = Path(quiz.__file__).parent
LIVE = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def nothing_guessed_yet() -> Iterator[None]:
    GUESSES.clear()
    quiz.SHOWN.clear()
    yield
    GUESSES.clear()


def pick(widget: Predict, place: int) -> None:
    """What the page sends when an option is picked for the first time."""
    widget.set_state({"picked": place, "guess": place})


# --- The guess ------------------------------------------------------------------------------------


def test_a_guess_is_kept_in_the_kernel() -> None:
    pick(predict(ID), 2)
    assert GUESSES == {ID: 2}


def test_a_guess_may_change_until_something_is_told() -> None:
    widget = predict(ID)
    pick(widget, 0)
    pick(widget, 1)
    assert GUESSES == {ID: 1}


def test_looking_at_another_option_is_no_guess() -> None:
    widget = predict(ID)
    pick(widget, 0)
    widget.set_state({"told": True, "picked": 1})
    assert (GUESSES, widget.picked) == ({ID: 0}, 1)


@pytest.mark.parametrize("place", [-2, 4, 99])
def test_a_guess_that_is_no_option_is_refused(place: int) -> None:
    widget = predict(ID)
    with pytest.raises(traitlets.TraitError, match=f"{ID} has no option number {place}"):
        widget.set_state({"guess": place})
    assert GUESSES == {}


def said(widget: Predict, message: Any) -> None:
    """What the page sends as a message: it comes before the next cell, even to a busy kernel."""
    widget._handle_msg(
        {"content": {"data": {"method": "custom", "content": message}}, "buffers": []}
    )


def test_a_guess_is_kept_as_soon_as_its_message_comes() -> None:
    widget = predict(ID)
    said(widget, {"guess": 2})
    assert GUESSES == {ID: 2}
    assert repr(reveal(ID)).startswith("You guessed C: ")
    assert predict(ID).guess == 2


def test_a_message_sets_no_trait_since_the_page_may_have_moved_on() -> None:
    widget = predict(ID)
    said(widget, {"guess": 2})
    assert (widget.guess, widget.picked) == (-1, -1)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 9)), min_size=1, max_size=12
    )
)
def test_an_older_state_never_takes_a_newer_guess_back(
    picks: list[tuple[int, bool, int]],
) -> None:
    """State may be left out, or come as late as it likes; the last message is the guess."""
    GUESSES.clear()
    widget, waiting = predict(ID), list[tuple[int, int]]()
    for now, (place, is_sent, delay) in enumerate(picks):
        said(widget, {"guess": place})
        assert {ID: place} == GUESSES
        waiting += [(now + delay, place)] if is_sent else []
        for due, old in [each for each in waiting if each[0] <= now]:
            waiting.remove((due, old))
            widget.set_state({"picked": old, "guess": old})
            assert {ID: place} == GUESSES
    for _, old in waiting:
        widget.set_state({"picked": old, "guess": old})
    assert {ID: picks[-1][0]} == GUESSES


@pytest.mark.parametrize(
    "message",
    [
        {"guess": -1},
        {"guess": 4},
        {"guess": True},
        {"guess": "2"},
        {"guess": 2.0},
        {"guess": None},
        {},
        [2],
        2,
        None,
        {"picked": 2},
    ],
    ids=repr,
)
def test_a_message_that_is_no_guess_changes_nothing(
    message: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    widget = predict(ID)
    said(widget, {"guess": 1})
    said(widget, message)
    assert GUESSES == {ID: 1}
    assert capsys.readouterr() == ("", "")


def test_a_cell_that_runs_again_remembers_the_guess() -> None:
    pick(predict(ID), 1)
    again = predict(ID)
    assert (again.guess, again.picked, again.revealed) == (1, 1, False)


def test_an_unknown_question_names_the_known_ones() -> None:
    for ask in (predict, reveal):
        with pytest.raises(UsageError, match="no question '00-x'; there are 00-sdk"):
            ask("00-x")


# --- What is revealed -----------------------------------------------------------------------------


def test_revealing_tells_the_newest_view() -> None:
    old, new = predict(ID), predict(ID)
    reveal(ID)
    assert (old.revealed, new.revealed) == (False, True)


def test_revealing_works_before_and_without_any_view() -> None:
    assert repr(reveal(ID)).startswith("D is right: ")


@pytest.mark.parametrize("id", QUESTIONS)
def test_a_reveal_has_the_reason_for_every_option(id: str) -> None:
    told = reveal(id)
    for option in question(id).options:
        assert option.says in " ".join(repr(told).split())
        assert option.says in html.unescape(re.sub("</?code>", "`", told._repr_html_()))


def test_a_reveal_speaks_of_the_guess_first() -> None:
    pick(predict(ID), WRONG)
    told = reveal(ID)
    says = question(ID).options[WRONG].says
    assert repr(told).startswith("You guessed A: It raises an exception.\n")
    assert told._repr_html_().index(says) < told._repr_html_().index("Why the others tempt")
    assert told._repr_html_().count(says) == 1
    pick(predict(ID), RIGHT)
    assert repr(reveal(ID)).startswith("You guessed it: D is right: ")


def test_a_reveal_stays_shut_until_something_was_guessed() -> None:
    html = reveal(ID)._repr_html_()
    assert html.index("<details><summary>The answer") < html.index(question(ID).options[0].text)
    assert html.index("<details><summary>The answer") < html.index("is right")
    pick(predict(ID), WRONG)
    assert "<details open><summary>The answer" in reveal(ID)._repr_html_()


# --- Standing still -------------------------------------------------------------------------------


@pytest.mark.parametrize("id", QUESTIONS)
def test_a_page_without_a_kernel_shows_the_question_and_gives_nothing_away(id: str) -> None:
    asked, widget = question(id), predict(id)
    data, _ = widget._repr_mimebundle_()
    assert data.keys() == {"text/plain", "text/html", LIVE}
    for shown in (data["text/plain"], html.unescape(re.sub("</?code>", "`", data["text/html"]))):
        flat = " ".join(shown.split())
        assert asked.text in flat
        assert all(option.text in flat for option in asked.options)
        assert not any(option.says in flat for option in asked.options)


def test_what_stands_still_is_the_same_every_time_whatever_was_guessed() -> None:
    first, second = predict(ID), predict(ID)
    pick(second, 1)
    assert repr(first) == repr(second)
    assert "0x" not in repr(first)
    assert first._repr_mimebundle_()[0]["text/html"] == second._repr_mimebundle_()[0]["text/html"]


def test_text_cannot_become_markup() -> None:
    assert quiz._html('<img src=x onerror="1"> `<b>`') == (
        "&lt;img src=x onerror=&quot;1&quot;&gt; <code>&lt;b&gt;</code>"
    )


# --- Several at a time ----------------------------------------------------------------------------


def test_several_questions_stand_under_each_other_and_each_keeps_its_own_guess() -> None:
    group = predict(ID, "00-loop")
    first, second = group.children
    pick(second, 0)
    assert GUESSES == {"00-loop": 0}
    data, _ = group._repr_mimebundle_()
    assert data.keys() == {"text/plain", "text/html", LIVE}
    assert data["text/plain"] == f"{first!r}\n\n{second!r}"
    assert data["text/html"].count("<b>Predict</b>") == 2


def test_several_are_revealed_at_once_each_about_its_own_guess() -> None:
    first, second = predict(ID, "00-loop").children
    pick(first, WRONG)
    told = reveal(ID, "00-loop")
    assert first.revealed and second.revealed
    assert repr(told) == f"{reveal(ID)!r}\n\n{reveal('00-loop')!r}"
    assert told._repr_html_().count("<details open>") == 1


@pytest.mark.parametrize("ask", [predict, reveal], ids=["predict", "reveal"])
def test_one_wrong_name_among_several_is_refused(ask: Any) -> None:
    with pytest.raises(UsageError, match="no question '00-none'"):
        ask(ID, "00-none")


# --- The summary ----------------------------------------------------------------------------------


def test_a_summary_without_guesses_is_one_fixed_line(capsys: pytest.CaptureFixture[str]) -> None:
    summary("00")
    line = "Lesson 00: no guesses yet. Pick one in each box, then run this cell again.\n"
    assert capsys.readouterr().out == line


def test_a_summary_counts_and_says_where_to_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    pick(predict("00-loop"), question("00-loop").right)
    pick(predict(ID), WRONG)
    pick(predict("01-usage"), 0)
    summary("00")
    assert capsys.readouterr().out.splitlines() == [
        "Lesson 00: 1 of 2 guesses were right.",
        "  Read again: The story (you guessed A)",
    ]


def test_a_lesson_without_questions_is_refused() -> None:
    with pytest.raises(UsageError, match="'99' has no questions"):
        summary("99")


# --- The page -------------------------------------------------------------------------------------


def test_the_view_builds_no_markup_and_asks_no_network() -> None:
    script = (FOLDER / "quiz.js").read_text(encoding="utf-8")
    for banned in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "fetch(", "http"):
        assert banned not in script
    assert len(script.splitlines()) <= 150


def test_the_view_asks_its_model_for_the_five_that_a_saved_page_has_and_may_do_without_send() -> (
    None
):
    script = (FOLDER / "quiz.js").read_text(encoding="utf-8")
    used = set(re.findall(r"model\.(\w+)", script))
    assert used == {"get", "set", "on", "off", "save_changes", "send"}
    assert not re.search(r"model\.send(?!\?\.)", script)


def test_every_colour_has_a_way_out_where_there_is_no_jupyter() -> None:
    style = (FOLDER / "quiz.css").read_text(encoding="utf-8")
    assert not re.findall(r"var\(--jp-[\w-]+\)", style)
    assert "url(" not in style and "@import" not in style


# --- In JupyterLab --------------------------------------------------------------------------------

CELLS = (
    "from streamlab import *",
    f"predict({ID!r})",
    "predict('00-loop', '01-usage')",
    f"reveal({ID!r})",
    "import pathlib, time\nwhile not pathlib.Path('go on').exists():\n    time.sleep(0.01)",
)
BUSY = 4  #: the place of the cell that keeps the kernel busy until there is a file


@pytest.fixture(scope="module")
def book(lab: Lab) -> None:
    """The notebook of these cells, where Lab finds it."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(book, lab.folder / "quiz.ipynb")


RUN = """
async (places) => {
  const { content, context } = jupyterapp.shell.currentWidget;
  for (const place of places) {
    content.deselectAll();
    content.activeCellIndex = place;
    await jupyterapp.commands.execute("notebook:run-cell");
  }
}
"""


STATUS = "jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === '{}'"


def checked(box: Locator) -> list[int]:
    """Which options of a question are picked."""
    picked: list[bool] = box.locator("input").evaluate_all("all => all.map((i) => i.checked)")
    return [place for place, is_picked in enumerate(picked) if is_picked]


@pytest.mark.browser
@pytest.mark.usefixtures("book")
def test_in_lab_questions_of_one_page_keep_their_guesses_apart(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, "quiz.ipynb") as notebook:
        tab = notebook.page
        tab.evaluate(RUN, [0, 1, 2])
        boxes = tab.locator(".sl-quiz")
        boxes.nth(2).wait_for()
        for n, place in enumerate((0, 2, 3)):  # one in a cell of its own, two in one cell
            boxes.nth(n).locator("label").nth(place).click()
        assert [checked(boxes.nth(n)) for n in range(3)] == [[0], [2], [3]]
        boxes.nth(1).locator("label").nth(1).click()  # a new mind changes one question only
        assert [checked(boxes.nth(n)) for n in range(3)] == [[0], [1], [3]]
        names = boxes.locator("input").evaluate_all("all => all.map((i) => i.name)")
        assert len(set(names)) == 3
        assert notebook.errors == []


@pytest.mark.browser
@pytest.mark.usefixtures("book")
def test_in_lab_a_guess_gives_nothing_away_until_it_is_asked_or_revealed(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, "quiz.ipynb") as notebook:
        tab = notebook.page
        tab.evaluate(RUN, [0, 1])
        box = tab.locator(".sl-quiz")
        box.wait_for()
        for place in range(len(question(ID).options)):
            box.locator("label").nth(place).click()
            assert checked(box) == [place]
            told = box.locator(".option").evaluate_all("all => all.map((o) => o.dataset.state)")
            assert told == [""] * 4
            assert box.locator(".sign").all_inner_texts() == [""] * 4
            assert box.locator(".says").all_inner_texts() == [""] * 4
        box.locator("label").nth(WRONG).click()
        tab.evaluate(RUN, [3])
        told = box.locator(".option >> nth=" + str(WRONG))
        told.locator(".sign", has_text="not so").wait_for()
        assert box.locator(".option").nth(RIGHT).get_attribute("data-state") == "right"
        assert notebook.errors == []


@pytest.mark.browser
@pytest.mark.usefixtures("book")
def test_in_lab_the_next_cell_knows_a_guess_that_was_changed_while_the_kernel_was_busy(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, "quiz.ipynb") as notebook:
        tab = notebook.page
        tab.evaluate(RUN, [0, 1])
        box = tab.locator(".sl-quiz")
        box.wait_for()
        tab.evaluate(f"void (globalThis.queued = [({RUN})([{BUSY}])])")
        tab.wait_for_function(STATUS.format("busy"))
        box.get_by_role("radio").first.focus()
        for key in ("Space", "ArrowDown", "ArrowDown"):
            tab.keyboard.press(key)
        assert checked(box) == [2]
        tab.evaluate(f"void queued.push(({RUN})([3]))")  # it waits behind the busy one
        (lab.folder / "go on").touch()
        try:
            tab.evaluate("Promise.all(queued)")
            told = tab.locator(".jp-OutputArea", has_text="The answer").last
            assert told.locator("p").first.text_content().startswith("You guessed C")
        finally:
            (lab.folder / "go on").unlink()
        assert notebook.errors == []


@pytest.mark.browser
@pytest.mark.usefixtures("book")
def test_in_lab_button_and_letter_stand_beside_the_first_line(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, "quiz.ipynb", width=700) as notebook:
        tab = notebook.page
        tab.evaluate(RUN, [0, 2])
        boxes = tab.locator(".sl-quiz")
        boxes.nth(1).wait_for()
        middles = boxes.locator("label").evaluate_all(
            """all => all.map((label) => {
              const middle = (el) => (el.top + el.bottom) / 2;
              const line = document.createRange();
              line.selectNodeContents(label.querySelector(".text"));
              const first = line.getClientRects()[0], lines = line.getClientRects().length;
              const button = label.querySelector("input").getBoundingClientRect();
              return [middle(button) - middle(first), lines];
            })"""
        )
        assert max(lines for _, lines in middles) > 1  # else this shows nothing
        assert max(abs(off) for off, _ in middles) < 3
