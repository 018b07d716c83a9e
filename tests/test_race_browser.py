"""The race as a learner has it: by mouse and by keyboard, in light and dark, and in JupyterLab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.sync_api import expect

from streamlab.study.orders import AGAIN, GAPS, TROUBLES, play
from streamlab.widgets import race
from tests.lab import PATIENCE, Lab
from tests.test_stepper_browser import PALE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

FOLDER = Path(race.__file__).parent
SHIM = """
const heard = {};
const state = { cancel: 0, trouble: 0, again: 0,
  race: JSON.parse(document.getElementById("race").textContent) };
const model = { get: (name) => state[name], set: (name, value) => { state[name] = value; },
  on(name, act) { heard[name] = act; }, off() {},
  save_changes() { globalThis.saved = [state.cancel, state.trouble, state.again]; } };
globalThis.python = (name, value) => { state[name] = value; heard[`change:${name}`](); };
render({ model, el: document.getElementById("view") });
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The view on a page of its own, with a small model instead of Jupyter's."""
    data = json.dumps(race.data()).replace("<", "\\u003c")
    page = tmp_path_factory.mktemp("race") / "race.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><style>{(FOLDER / 'race.css').read_text('utf-8')}"
        f"</style><body><main id=view></main><script type=application/json id=race>{data}</script>"
        f"<script type=module>{(FOLDER / 'race.js').read_text('utf-8')}{SHIM}</script>",
        "utf-8",
    )
    return page


@pytest.fixture
def tab(browser: Browser, file: Path) -> Iterator[Page]:
    tab = browser.new_page(viewport={"width": 1000, "height": 900})
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    tab.goto(file.as_uri())
    yield tab
    assert wrong == []
    tab.close()


def grip(tab: Page, name: str) -> Locator:
    return tab.get_by_role("slider", name=name, exact=True)


def text(tab: Page, where: str) -> str:
    return " ".join(tab.locator(where).inner_text().split())


def shows(tab: Page, cancel: int = 0, trouble: int = 0, again: int = 0) -> None:
    """Everything that the view says about an order is what Python says about it."""
    order = play(GAPS[cancel], TROUBLES[trouble], AGAIN[again])
    assert text(tab, ".verdict") == order.verdict()
    first, other = tab.locator(".card").all()
    cells = [text for moment in order.moments for text in (moment.says, moment.row)]
    assert first.locator("tbody td").all_text_contents() == cells
    told = " ".join(first.locator("ul").inner_text().split())
    assert f"later reads {order.recorded.state}: “{order.recorded.said}”" in told
    assert f"the cancellation is told {order.told('cancel')}" in told
    often = ["never", "once"]
    count = f"Submitted {often[order.submissions]}, paid {often[order.effects]}."
    assert first.locator(".count").inner_text() == count
    assert other.locator("caption").inner_text().startswith("The other way round: cancel ")
    rows = ["VALIDATED_PROPOSAL"]
    for moment in order.moments:
        rows += [moment.row] if moment.row != rows[-1] else []
    assert tab.locator(".strip .state").all_text_contents() == rows


def dragged(tab: Page, name: str, by: float) -> None:
    """Take a lane with the mouse, and move it by so many pixels."""
    box = grip(tab, name).bounding_box()
    assert box
    x, y = box["x"] + 12, box["y"] + 14
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + by / 2, y + 3)
    tab.mouse.move(x + by, y)
    tab.mouse.up()


def step(tab: Page) -> float:
    """How many pixels lie between two places."""
    box = tab.locator(".strip").bounding_box()
    assert box
    return box["width"] / 14 * 2


def test_the_cancellation_is_moved_along_by_key_and_each_place_has_its_words(tab: Page) -> None:
    shows(tab)
    cancel = grip(tab, "a person cancels")
    cancel.focus()
    for place in (1, 2, 3, 4):
        tab.keyboard.press("ArrowRight")
        shows(tab, place)
        expect(cancel).to_have_attribute("aria-valuetext", GAPS[place])
        assert tab.evaluate("saved") == [place, 0, 0]
    for key, place in (("ArrowRight", 4), ("Home", 0), ("ArrowLeft", 0), ("End", 4)):
        tab.keyboard.press(key)
        shows(tab, place)
    expect(cancel).to_be_focused()


def test_the_lanes_are_dragged_against_each_other_with_the_mouse(tab: Page) -> None:
    one = step(tab)
    dragged(tab, "a person cancels", 2 * one)
    shows(tab, 2)
    dragged(tab, "the commit", one)  # the other lane moves, so the order changes too
    shows(tab, 1)
    dragged(tab, "the commit", -one)
    shows(tab, 2)
    dragged(tab, "a person cancels", -9 * one)
    shows(tab, 0)


def test_the_commit_is_moved_by_key_and_says_where_the_cancellation_comes(tab: Page) -> None:
    grip(tab, "a person cancels").press("ArrowRight")
    commit = grip(tab, "the commit")
    commit.press("ArrowRight")
    expect(commit).to_have_attribute("aria-valuetext", "the cancellation comes before the commit")
    shows(tab, 0)
    commit.press("ArrowLeft")
    shows(tab, 1)


def test_what_goes_wrong_is_picked_and_marked(tab: Page) -> None:
    mark = tab.locator(".death")
    expect(mark).to_be_hidden()
    grip(tab, "a person cancels").press("ArrowRight")
    for place, sign in ((1, "✕ dies"), (2, "✕ dies"), (3, "✕ lost")):
        tab.get_by_label(TROUBLES[place]).check()
        shows(tab, 1, place)
        expect(mark).to_have_text(sign)
    tab.get_by_label("our process dies before the effect").check()
    crossed = tab.locator(".point.not .text").all_inner_texts()
    assert crossed == ["the desk pays", "the answer"]
    assert "the commit is told nothing: its process is gone" in text(tab, ".card:first-child ul")


def test_a_second_delivery_is_brought_in_by_mouse_and_by_key(tab: Page) -> None:
    again = grip(tab, "the commit is delivered again")
    expect(again).to_have_text("commit again: never")
    for place in (1, 2, 3, 4, 4):
        again.press("ArrowRight")
        shows(tab, 0, 0, place)
    again.press("Home")
    shows(tab)
    dragged(tab, "the commit is delivered again", 2.5 * step(tab))
    expect(again).to_have_text("commit again")
    place = tab.evaluate("saved")[2]
    assert place > 0
    shows(tab, 0, 0, place)
    dragged(tab, "the commit is delivered again", -9 * step(tab))
    shows(tab)


def test_what_python_sets_is_shown(tab: Page) -> None:
    tab.evaluate("python('cancel', 3)")
    shows(tab, 3)
    tab.evaluate("python('trouble', 2)")
    tab.evaluate("python('again', 4)")
    shows(tab, 3, 2, 4)
    grip(tab, "a person cancels").press("ArrowLeft")
    shows(tab, 2, 2, 4)


def test_the_tie_is_spoken_of(tab: Page) -> None:
    assert text(tab, ".tie") == race.TIE


@pytest.mark.parametrize("width", [1000, 900, 480])
def test_it_stays_in_its_width_and_no_word_is_cut_off(tab: Page, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 1000})
    spills = """() => [...document.querySelectorAll('.piece, .state, .point, .grip .pill')]
      .filter((el) => el.scrollWidth > el.clientWidth + 1 && el.clientWidth)
      .map((el) => el.textContent)"""
    for trouble in TROUBLES:
        tab.get_by_label(trouble, exact=True).check()
        for cancel in range(len(GAPS)):
            tab.evaluate("place => python('cancel', place)", cancel)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert tab.evaluate(spills) == []


def test_where_the_lanes_are_cut_a_sign_says_that_there_is_more(tab: Page) -> None:
    sides = """() => ['before', 'after'].filter((side) =>
      getComputedStyle(document.querySelector('.room'), `::${side}`).display !== 'none').join()"""
    tab.set_viewport_size({"width": 1000, "height": 900})
    tab.wait_for_function(f"({sides})() === ''")
    tab.set_viewport_size({"width": 700, "height": 900})
    tab.wait_for_function(f"({sides})() === 'after'")
    tab.evaluate("document.querySelector('.scroll').scrollLeft = 60")
    tab.wait_for_function(f"({sides})() === 'before,after'")
    tab.evaluate("document.querySelector('.scroll').scrollLeft = 999")
    tab.wait_for_function(f"({sides})() === 'before'")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_can_be_read_in_light_and_dark(tab: Page, dark: bool) -> None:
    tab.evaluate("light => { document.body.dataset.jpThemeLight = light }", str(not dark).lower())
    grip(tab, "a person cancels").press("End")
    grip(tab, "the commit is delivered again").press("End")
    for trouble in TROUBLES:
        tab.get_by_label(trouble, exact=True).check()
        assert tab.evaluate(PALE.replace(".sl-stepper", ".sl-race")) == []


def test_in_jupyterlab_keys_stay_in_the_view_and_code_reads_the_order(
    lab: Lab, browser: Browser
) -> None:
    expect.set_options(timeout=PATIENCE * 1000)
    cells = [
        "from streamlab.widgets.race import Race\nview = Race()\nview",
        "print(view.order.cancel)",
        "view.trouble = 3",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(notebook, lab.folder / "race.ipynb")
    with lab.open(browser, "race.ipynb") as opened:
        opened.run_all()
        page = opened.page
        expect(page.get_by_label("the answer gets lost")).to_be_checked()
        page.get_by_role("slider", name="a person cancels").focus()
        page.keyboard.press("ArrowRight")  # Lab would go to the next cell
        page.keyboard.press("ArrowRight")
        expect(page.locator(".sl-race .verdict")).to_contain_text("Commit wins")
        opened.wait_until_idle()
        page.evaluate(
            "async () => { const app = jupyterapp, panel = app.shell.currentWidget;"
            "panel.content.activeCellIndex = 1;"
            "await app.commands.execute('notebook:run-cell'); }"
        )
        opened.wait_until_idle()
        assert "before the answer" in opened.outputs()[1]
        assert opened.errors == []
