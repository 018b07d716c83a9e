"""The report card as a learner has it: by mouse and by keyboard, in light and dark, in the lesson.

On a page of its own the view has a small card that is made here, so what it shows is known without
any SDK; in JupyterLab it is the lesson's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from streamlab.analysis.figures.card import KINDS
from streamlab.analysis.plain import visible
from streamlab.study.card_cell import Cell, cell
from streamlab.study.card_faults import CARD_FAULTS
from streamlab.study.card_sent import frames_of
from streamlab.study.card_streams import GOOD, INPUT, STOP, TEXT, TOOL
from streamlab.study.clients import WAYS, Call, Got
from streamlab.study.report_card import Card
from streamlab.widgets import card as module
from streamlab.widgets.card import data
from tests.cells import run, shown
from tests.lab import PATIENCE, Lab
from tests.test_stepper_browser import PALE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

LESSON = "09-real-clients.ipynb"
FOLDER = Path(module.__file__).parent
EVIL = "<img src=x onerror=alert(1)>\u202e\x1b[2J"
SHIM = """
const heard = {};
const state = { fault: 1, client: 1,
  card: JSON.parse(document.getElementById("card").textContent) };
const model = { get: (name) => state[name], set: (name, value) => { state[name] = value; },
  on(name, act) { heard[name] = act; }, off() {},
  save_changes() { globalThis.saved = [state.fault, state.client]; } };
globalThis.python = (name, value) => { state[name] = value; heard[`change:${name}`](); };
render({ model, el: document.getElementById("view") });
"""
#: What a client of this card hands over, by its place in a round.
ROUND = (
    Got(TEXT, (Call(TOOL, INPUT),), "tool_use"),
    Got(error="x.Error", message=EVIL),
    Got(TEXT, (Call(TOOL, {**INPUT, "amount": 1}),)),
    Got(),
)
ANSWER = """
def may_act(got, done):
    fine = not got.error and got.stop == done and got.calls
    return bool(fine) and all(
        call.name and isinstance(call.input, dict) and "\\ufffd" not in str(call.input)
        for call in got.calls
    )

check("09-ex", exercise_09.everywhere(may_act))
"""
WRITE = """
([id, code]) => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  widgets.find(cell => cell.model.id === id).model.sharedModel.setSource(code);
}
"""


def made() -> Card:
    """A card of every fault by every client, without any of them being asked."""

    def one(fault: str, client: str, n: int) -> Cell:
        wire = WAYS[client].wire
        if CARD_FAULTS[fault].sent(GOOD[wire]) is None:
            return Cell(fault, client, wire, "n/a", "", False, "")
        got = ROUND[n % len(ROUND)]
        if n % len(ROUND) == 0:
            got = Got(got.text, got.calls, STOP[wire])
        return cell(fault, client, wire, got, "INCOMPLETE")

    pairs = [(fault, client) for fault in CARD_FAULTS for client in WAYS]
    cells = tuple(one(*pair, n) for n, pair in enumerate(pairs))
    return Card(cells, dict.fromkeys(("anthropic", "openai", "google-genai"), "0.0"))


CARD = made()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The view on a page of its own, with a small model instead of Jupyter's, under a policy."""
    sent = json.dumps(data(CARD)).replace("<", "\\u003c")
    page = tmp_path_factory.mktemp("card") / "card.html"
    page.write_text(
        "<!doctype html><meta charset=utf-8><meta http-equiv=Content-Security-Policy content="
        "\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
        f"<style>{(FOLDER / 'card.css').read_text('utf-8')}</style><body><main id=view></main>"
        f"<script type=application/json id=card>{sent}</script>"
        f"<script type=module>{(FOLDER / 'card.js').read_text('utf-8')}{SHIM}</script>",
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


def text(where: Locator) -> str:
    return " ".join(where.inner_text().split())


def square(tab: Page, fault: str, client: str) -> Locator:
    return tab.locator(f'td[aria-label^="{fault}, {client}: "]')


def shows(tab: Page, fault: str, client: str) -> None:
    """Everything that the view says of a cell is what Python says of it."""
    each = CARD.at(fault, client)
    expect(tab.locator("h4")).to_have_text(f"{fault}, {client}")
    expect(tab.locator(".detail .says")).to_have_text(CARD_FAULTS[fault].says.replace("`", ""))
    kind = KINDS[each.kind]
    expect(tab.locator(".verdict")).to_have_text(f"{kind.sign}{kind.says}")
    lines = tab.locator(".handed").inner_text().split("\n")
    assert len(lines) == len(each.handed)
    expect(tab.locator('td[aria-selected="true"]')).to_have_count(1)
    expect(square(tab, fault, client)).to_have_attribute("aria-selected", "true")
    frames = frames_of(fault, each.wire)
    marks = {" ": "same", "~": "changed", "+": "new", "-": "never"}
    rows = [marks[row.mark] for row in frames.rows] if frames else []
    found = [li.get_attribute("class") for li in tab.locator(".frames li").all()]
    assert found == rows
    if frames:
        assert text(tab.locator(".end")) == f"then: {frames.end}"
        assert text(tab.locator(".judged")).startswith(f"{frames.state}: ")


def test_a_square_is_picked_with_the_mouse(tab: Page) -> None:
    shows(tab, "end-inside", "anthropic helper")
    for fault, client in (("ping", "gemini raw"), ("no-names", "chat raw"), ("bom", "chat helper")):
        square(tab, fault, client).click()
        shows(tab, fault, client)
    assert tab.evaluate("saved") == [list(CARD_FAULTS).index("bom"), 3]


def test_every_square_is_reached_with_the_keys_and_the_focus_goes_along(tab: Page) -> None:
    faults, clients = CARD.faults, CARD.clients
    square(tab, "end-inside", "anthropic helper").focus()
    row, column = 1, 1
    for key, down, right in (
        *(("ArrowDown", 1, 0), ("ArrowRight", 0, 1), ("End", 0, 99), ("ArrowRight", 0, 1)),
        *(("PageDown", 8, 0), ("Home", 0, -99), ("ArrowUp", -1, 0), ("ArrowLeft", 0, -1)),
        *(("PageDown", 8, 0), ("PageDown", 8, 0), ("PageDown", 8, 0), ("PageDown", 8, 0)),
    ):
        tab.keyboard.press(key)
        row = min(max(row + down, 0), len(faults) - 1)
        column = min(max(column + right, 0), len(clients) - 1)
        shows(tab, faults[row], clients[column])
        expect(square(tab, faults[row], clients[column])).to_be_focused()
    assert (faults[row], clients[column]) == ("no-blank-line", "anthropic raw")
    seen = "el => { const b = el.getBoundingClientRect(), m = el.closest('.map')"
    seen += ".getBoundingClientRect(); return b.top >= m.top && b.bottom <= m.bottom }"
    assert square(tab, "no-blank-line", "anthropic raw").evaluate(seen)
    assert tab.locator('td[role="gridcell"][tabindex="0"]').count() == 1


def test_a_move_is_spoken(tab: Page) -> None:
    square(tab, "end-inside", "anthropic helper").press("ArrowRight")
    said = tab.get_by_role("status")
    expect(said).to_contain_text("streamlab: INCOMPLETE")
    expect(said).to_contain_text(visible(CARD.at("end-inside", "chat raw").handed[0]))


def test_the_place_of_the_fault_is_in_view_at_once(tab: Page) -> None:
    seen = """() => { const box = document.querySelector('.frames').getBoundingClientRect();
      const first = document.querySelector('.frames li:not(.same)').getBoundingClientRect();
      return first.top >= box.top && first.top < box.bottom - 20 }"""
    tab.wait_for_function(seen)
    for fault in ("token-limit", "after-end", "not-json"):
        square(tab, fault, "responses raw").click()
        assert tab.evaluate(seen)


def test_a_changed_frame_shows_the_old_and_the_new(tab: Page) -> None:
    square(tab, "not-utf8", "gemini raw").click()
    expect(tab.locator(".frames .changed ins")).to_have_text("\\xff")
    square(tab, "token-limit", "anthropic raw").click()
    changed = tab.locator(".frames .changed")
    expect(changed.locator("del")).to_have_text("tool_use")
    expect(changed.locator("ins")).to_have_text("max_tokens")
    square(tab, "no-blank-line", "anthropic raw").click()
    expect(tab.locator(".frames .changed del")).to_have_text("⏎")
    square(tab, "bom", "chat raw").click()
    expect(tab.locator(".frames .changed ins")).to_have_text("⟨U+FEFF⟩")


def test_what_python_sets_is_shown(tab: Page) -> None:
    tab.evaluate("python('fault', 5)")
    shows(tab, CARD.faults[5], "anthropic helper")
    tab.evaluate("python('client', 6)")
    shows(tab, CARD.faults[5], "gemini raw")


def test_a_strangers_markup_stays_text(tab: Page) -> None:
    evil = next(each for each in CARD.cells if each.message == EVIL)
    square(tab, evil.fault, evil.client).click()
    handed = tab.locator(".handed").inner_text()
    assert "<img src=x onerror=alert(1)>⟨U+202E⟩␛[2J" in handed
    assert tab.locator(".sl-card :is(img, script, iframe, a, style)").count() == 0


@pytest.mark.parametrize("width", [1000, 700, 420])
def test_it_stays_in_its_width(tab: Page, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 1000})
    for fault in ("end-inside", "json-body", "not-json"):
        square(tab, fault, "gemini raw").click()
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        spills = """() => [...document.querySelectorAll('.detail pre, .detail p, .legend li')]
          .filter((el) => el.scrollWidth > el.clientWidth + 1).map((el) => el.textContent)"""
        assert tab.evaluate(spills) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_can_be_read_in_light_and_dark(tab: Page, dark: bool) -> None:
    tab.evaluate("light => { document.body.dataset.jpThemeLight = light }", str(not dark).lower())
    tab.emulate_media(color_scheme="dark" if dark else "light")
    for fault in ("end-inside", "token-limit", "ping", "no-names"):
        for client in ("anthropic helper", "chat raw"):
            square(tab, fault, client).click()
            assert tab.evaluate(PALE.replace(".sl-stepper", ".sl-card")) == []


@pytest.mark.parametrize("theme", ["Dark"])  # once: the card has both above
def test_in_the_lesson_keys_stay_in_the_view_and_code_reads_the_cell(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON, theme) as notebook:
        notebook.run_all()
        view = shown(notebook, "view").locator(".sl-card")
        expect(view.locator("h4")).to_have_text("end-inside, anthropic helper")
        expect(view.locator(".handed")).to_contain_text("'amount': 1}")
        view.locator('td[aria-selected="true"]').focus()
        notebook.page.keyboard.press("ArrowDown")  # Lab would go to the next cell
        expect(view.locator("h4")).to_have_text("end-at-call, anthropic helper")
        expect(view.locator(".handed")).to_contain_text("call: pay_invoice {}")
        notebook.screenshot(tmp_path / f"card-{theme}.png")
        notebook.page.evaluate(WRITE, ["run-view", "print(view.cell.fault, '|', view.cell.client)"])
        expect(run(notebook, "run-view")).to_have_text("end-at-call | anthropic helper")
        figure = shown(notebook, "heat-map").locator("img")
        assert figure.evaluate("image => image.complete && image.naturalWidth > 0")
        assert notebook.errors == []


def test_a_learners_guard_is_tried_on_the_whole_card(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, LESSON) as notebook:
        run(notebook, "imports")
        notebook.page.evaluate(WRITE, ["exercise-stub", ANSWER])
        expect(run(notebook, "exercise-stub")).to_have_text("09-ex: right in all 9 cases.")
        weak = ANSWER.replace("got.stop == done", "True")
        notebook.page.evaluate(WRITE, ["exercise-stub", weak])
        told = run(notebook, "exercise-stub")
        expect(told).to_contain_text("case      no stop reason")
        expect(told).to_contain_text("on end-inside by anthropic helper")
        assert notebook.errors == []
