"""The board of guards as a learner has it: by keyboard, in light and dark, and in JupyterLab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.sync_api import expect

from streamlab.study.guards import GUARDS, LEFT_OUT, without
from streamlab.study.search import PROPERTIES
from streamlab.widgets import guards
from tests.lab import Lab
from tests.test_stepper_browser import PALE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

FOLDER = Path(guards.__file__).parent
NAME = "the end of the stream is not completion"
SHIM = """
const state = { picked: "", board: JSON.parse(document.getElementById("board").textContent) };
const model = { get: (name) => state[name], set: (name, value) => { state[name] = value; },
  on() {}, off() {}, save_changes() { globalThis.saved = state.picked; } };
render({ model, el: document.getElementById("view") });
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The view on a page of its own, with a small model instead of Jupyter's."""
    data = json.dumps(guards.board()).replace("<", "\\u003c")
    script = (FOLDER / "guards.js").read_text("utf-8")
    page = tmp_path_factory.mktemp("board") / "board.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><style>{(FOLDER / 'guards.css').read_text('utf-8')}"
        f"</style><body><main id=view></main><script type=application/json id=board>{data}</script>"
        f"<script type=module>{script}{SHIM}</script>",
        "utf-8",
    )
    return page


@pytest.fixture
def tab(browser: Browser, file: Path) -> Iterator[Page]:
    tab = browser.new_page(viewport={"width": 900, "height": 1000})
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    tab.goto(file.as_uri())
    yield tab
    assert wrong == []
    tab.close()


def text(tab: Page, selector: str) -> str:
    return " ".join(tab.locator(f".sl-guards {selector}").inner_text().split())


def selected(tab: Page) -> str:
    return tab.locator("[role=tab][aria-selected=true]").get_attribute("aria-label") or ""


def test_a_guard_is_switched_off_and_its_steps_are_walked_by_keyboard(tab: Page) -> None:
    assert text(tab, ".title") == "Every guard is on"
    assert tab.locator(".end li").all_inner_texts() == [each.says for each in PROPERTIES.values()]
    tab.keyboard.press("Tab")  # the group: what is picked in it
    for _ in range(list(GUARDS).index(NAME) + 1):
        tab.keyboard.press("ArrowDown")
    found = without(NAME)
    assert tab.evaluate("saved") == NAME
    assert text(tab, ".title") == f"Without: {NAME}"
    assert text(tab, ".end") == f"✕ {found.verdict()} ✓ {found.better()}"
    assert text(tab, ".step.wrong .mark") == "✕ goes wrong"
    assert tab.locator("[role=tab]").count() == len(found.steps)
    assert selected(tab) == (
        "step 7: the effect is submitted and answered; without the guard COMMITTED, "
        "with it does not happen; here it goes wrong"
    )
    tab.keyboard.press("Tab")
    tab.keyboard.press("ArrowLeft")
    assert selected(tab).startswith("step 6: the commit is asked for; without the guard COMMITTING")
    assert tab.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    for key, place in [("Home", 1), ("ArrowLeft", 1), ("End", 7), ("ArrowRight", 7)]:
        tab.keyboard.press(key)
        assert selected(tab).startswith(f"step {place}: ")
    facts = tab.locator(".detail tbody tr").all_inner_texts()
    assert "The effect was submitted once; it is on record.\t≠ The effect was never submitted." in (
        facts
    )
    pairs = zip(found.steps[-1].knows, found.instead[-1].knows, strict=True)
    differs = [f"{wrong}\t≠ {right}" for wrong, right in pairs if wrong != right]
    assert 0 < len(differs) < len(found.steps[-1].knows)
    assert facts[:-1] == differs  # the last one is what a person reads
    assert facts[-1].startswith(f"A person reads: {found.steps[-1].told}.\t≠ ")


def test_a_click_on_a_step_tells_what_is_so_after_it(tab: Page) -> None:
    tab.get_by_label("a delivery is known by its identity").check()
    tab.locator("[role=tab]").first.click()
    told = 'After step 1, a text fragment arrives: "ha"'
    assert text(tab, "caption") == f"{told}: nothing is different yet"
    assert tab.locator("tbody tr").count() == 0
    tab.locator("[role=tab]").nth(1).click()
    assert text(tab, "tbody") == (
        'The text "ha" came once and was counted twice. ≠ '
        'The text "ha" came once and was counted once.'
    )
    tab.get_by_label("every guard is on").check()
    tab.locator("[role=tab]").last.click()
    assert "The effect was submitted once; it is on record." in text(tab, "tbody")
    assert "The transport has stopped." not in text(tab, "tbody")  # that was so before
    assert text(tab, ".out") == LEFT_OUT
    assert tab.evaluate("saved") == ""
    assert tab.locator(".step.wrong").count() == 0


@pytest.mark.parametrize("width", [900, 480])
def test_it_stays_in_its_width_and_the_wrong_step_is_in_sight(tab: Page, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 1000})
    for name in GUARDS:
        tab.get_by_label(name).check()
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        spills = """() => [...document.querySelectorAll('.state')]
          .filter((el) => el.scrollWidth > el.clientWidth).map((el) => el.textContent)"""
        assert tab.evaluate(spills) == []
        row, step = (tab.locator(each).bounding_box() for each in (".steps", ".step.wrong"))
        assert row and step
        assert row["x"] <= step["x"]
        assert step["x"] + step["width"] <= row["x"] + row["width"] + 1


def test_a_row_that_is_too_wide_shows_at_which_side_it_goes_on(tab: Page) -> None:
    row = tab.locator(".sl-guards .row")
    shown = """side => getComputedStyle(document.querySelector('.sl-guards .row'), side).display"""

    def sides() -> tuple[bool, bool]:
        before, after = (tab.evaluate(shown, f"::{side}") for side in ("before", "after"))
        return before == "flex", after == "flex"

    tab.get_by_label("what is given up is closed").check()
    tab.set_viewport_size({"width": 480, "height": 1000})
    for key, place, wanted in (("Home", 0, (False, True)), ("End", 9, (True, False))):
        tab.locator("[role=tab][aria-selected=true]").press(key)
        expect(row.locator("[role=tab]").nth(place)).to_have_attribute("aria-selected", "true")
        tab.wait_for_timeout(100)
        assert sides() == wanted
    tab.get_by_label("a terminal state is terminal").check()
    assert sides() == (False, False)


def test_the_wrong_step_stays_in_sight_when_the_window_changes(tab: Page) -> None:
    in_sight = """() => {
      const [row, step] = [".steps", ".step.wrong"].map((each) =>
        document.querySelector(each).getBoundingClientRect());
      return row.left <= step.left && step.right <= row.right + 1;
    }"""
    tab.get_by_label("what is given up is closed").check()
    for width in (1200, 480, 900, 600):
        tab.set_viewport_size({"width": width, "height": 1000})
        tab.wait_for_function(in_sight)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_can_be_read_in_light_and_dark(tab: Page, dark: bool) -> None:
    tab.evaluate("light => { document.body.dataset.jpThemeLight = light }", str(not dark).lower())
    for name in GUARDS:
        tab.get_by_label(name).check()
        assert tab.evaluate(PALE.replace(".sl-stepper", ".sl-guards")) == []


def test_in_jupyterlab_code_reads_what_was_picked_and_picks_itself(
    lab: Lab, browser: Browser
) -> None:
    cells = [
        "from streamlab.widgets.guards import GuardBoard\nboard = GuardBoard()\nboard",
        "print(board.picked or 'none')",
        "board.picked = 'an error ends the attempt'",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(notebook, lab.folder / "board.ipynb")
    with lab.open(browser, "board.ipynb") as opened:
        opened.run_all()
        page = opened.page
        expect(page.locator(".sl-guards .title")).to_have_text("Without: an error ends the attempt")
        page.get_by_label(NAME).check()
        page.keyboard.press("ArrowDown")  # Lab would go to the next cell
        expect(page.locator(".sl-guards .title")).to_have_text(
            "Without: a stopped block is not a finished message"
        )
        opened.wait_until_idle()
        page.evaluate(
            "async () => { const app = jupyterapp, panel = app.shell.currentWidget;"
            "panel.content.activeCellIndex = 1;"
            "await app.commands.execute('notebook:run-cell'); }"
        )
        opened.wait_until_idle()
        assert "a stopped block is not a finished message" in opened.outputs()[1]
        assert opened.errors == []
