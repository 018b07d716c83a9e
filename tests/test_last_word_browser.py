"""What the person did last stays, however late Python's answer to what they did before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from streamlab.streams import synth
from streamlab.widgets import page
from streamlab.widgets.dialects import DialectStepper
from streamlab.widgets.stepper import Stepper
from tests.cells import run
from tests.lab import PATIENCE, Lab, Notebook

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

# --- With a test in the place of Python: each order of messages -----------------------------------

#: A model as Jupyter's: what Python `says` arrives in one message, and what it is told is kept.
MODEL = """
const heard = {};
const fire = (names) =>
  names.flatMap((name) => heard[`change:${name}`] ?? []).forEach((act) => act());
window.told = [];
window.says = (news) => { Object.assign(state, news); fire(Object.keys(news)); };
const model = { get: (name) => state[name],
  set: (name, value) => { state[name] = value; fire([name]); },
  on: (name, act) => (heard[name] ??= []).push(act),
  off: (name, act) => { heard[name] = heard[name].filter((each) => each !== act); },
  save_changes() { throw new Error("state waits for a busy kernel"); },
  send: (message) => window.told.push(message) };
"""


class Told:
    """A view in a page, and Python behind it, which hears and answers when a test says so."""

    def __init__(self, tab: Page, view: Stepper) -> None:
        self.tab, self.view = tab, view
        self.place = tab.locator(".place")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tab.keyboard.press(key)

    def hear(self, most: int = 100) -> list[dict[str, Any]]:
        """Let Python take what it was told, or some of it; give what it says to that."""
        answers = []
        for message in self.tab.evaluate("(most) => told.splice(0, most)", most):
            before = state_of(self.view)
            self.view._handle_custom_msg(message, [])
            after = state_of(self.view)
            answers.append({name: after[name] for name in after if after[name] != before[name]})
        return answers

    def say(self, *answers: dict[str, Any]) -> None:
        for answer in answers:
            self.tab.evaluate("(answer) => says(answer)", answer)

    def settle(self, step: int) -> None:
        """Wait until the page has told that it stands at this step."""
        expect(self.place).to_contain_text(f"step {step} of ")
        self.tab.wait_for_function("(step) => told.at(-1)?.at?.step === step", arg=step)


def state_of(view: Stepper) -> dict[str, Any]:
    names = [name for name in ("trace", "at", "answer", "menu", "wire") if view.has_trait(name)]
    return {name: getattr(view, name) for name in names}


def opened(browser: Browser, view: Stepper, file: Path) -> Told:
    state: dict[str, Any] = {name: getattr(view, name) for name in ("machine", "menu", "step")}
    state |= state_of(view) | {"wires": getattr(view, "wires", [])}
    data = json.dumps(state).replace("<", "\\u003c")
    module = str(view._esm).replace("export default { render", "const shown = { render")
    start = 'shown.render({ model, el: document.getElementById("view") });'
    script = f"window.state = {data};\nconst state = window.state;\n{MODEL}{module}{start}"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><style>{page.style()}</style><main id="view"></main>'
        f'<script type="module">{script}</script>',
        "utf-8",
    )
    tab = browser.new_page(viewport={"width": 1200, "height": 1000})
    tab.goto(file.as_uri())
    tab.locator(".sl-stepper").focus()
    return Told(tab, view)


@pytest.fixture
def stepper(browser: Browser, tmp_path: Path) -> Iterator[Told]:
    told = opened(browser, Stepper(synth.change_label()), tmp_path / "stepper.html")
    yield told
    told.tab.close()


@pytest.fixture
def dialects(browser: Browser, tmp_path: Path) -> Iterator[Told]:
    told = opened(browser, DialectStepper(), tmp_path / "dialects.html")
    yield told
    told.tab.close()


def inject(told: Told, action: str) -> None:
    told.tab.locator(f"[data-action={action}]").click()
    told.tab.locator(".sl-stepper").focus()


def test_who_waits_for_the_answer_is_led_to_what_changed(stepper: Told) -> None:
    stepper.press(*["ArrowRight"] * 8)
    inject(stepper, "disconnect")
    expect(stepper.place).to_have_text("step 9 of 22")
    stepper.say(*stepper.hear())
    expect(stepper.place).to_have_text("step 10 of 10")


@pytest.mark.parametrize("settled", [True, False], ids=["told", "not told yet"])
def test_a_key_after_an_injection_is_not_undone_by_the_answer(stepper: Told, settled: bool) -> None:
    stepper.press(*["ArrowRight"] * 8)
    inject(stepper, "disconnect")
    answers = [] if settled else stepper.hear()
    stepper.press("ArrowLeft", "ArrowLeft", "ArrowLeft")
    if settled:
        stepper.settle(6)
        answers = stepper.hear()
    for answer in answers:
        stepper.say(answer)
        expect(stepper.place).to_contain_text("step 6 of ")
    expect(stepper.place).to_have_text("step 6 of 10")
    expect(stepper.tab.locator(".answer")).to_contain_text("The attempt ends in INCOMPLETE")
    if not settled:
        stepper.settle(6)
    stepper.hear()
    assert stepper.view.step == 6


def test_a_key_that_leads_behind_what_was_cut_off_stands_at_the_end(stepper: Told) -> None:
    stepper.press(*["ArrowRight"] * 8)
    inject(stepper, "disconnect")
    stepper.press("End")
    stepper.settle(22)
    stepper.say(*stepper.hear())
    expect(stepper.place).to_have_text("step 10 of 10")
    assert stepper.view.step == 10


def test_python_moves_the_view_unless_the_person_has_moved_since(stepper: Told) -> None:
    stepper.press("ArrowRight")
    stepper.settle(2)
    stepper.hear()
    stepper.view.goto(14)
    stepper.say({"at": stepper.view.at})
    expect(stepper.place).to_have_text("step 14 of 22")
    stepper.view.goto(3)
    late = {"at": stepper.view.at}
    stepper.press("ArrowRight")
    stepper.say(late)
    expect(stepper.place).to_have_text("step 15 of 22")
    stepper.settle(15)
    stepper.hear()
    assert stepper.view.step == 15
    stepper.view.goto(2)
    stepper.say({"at": stepper.view.at})
    expect(stepper.place).to_have_text("step 2 of 22")


def test_two_changes_one_after_the_other_are_both_followed(stepper: Told) -> None:
    stepper.press(*["ArrowRight"] * 8)
    inject(stepper, "error")
    stepper.press("u")
    for answer in stepper.hear():
        stepper.say(answer)
    expect(stepper.place).to_have_text("step 9 of 22")


def test_a_fault_is_injected_where_the_page_stood_when_python_had_led_on(stepper: Told) -> None:
    stepper.press(*["ArrowRight"] * 8)
    inject(stepper, "redeliver")
    inject(stepper, "error")
    stepper.say(*stepper.hear())
    assert "error(after=9" in stepper.view.script.code
    expect(stepper.place).to_contain_text(f"step {stepper.view.step} of ")


DRAG_OVER_A_NAME = """
() => {
  const word = document.querySelector(".states .word");
  const { left, top, width, height } = word.getBoundingClientRect();
  return [left + width / 2, top + height / 2, document.querySelector(".track").clientWidth / 2];
}
"""


def test_a_drag_over_a_timeline_keeps_the_keys_and_selects_no_text(stepper: Told) -> None:
    """A selection that grows into the cell's editor takes the focus there: keys would be text."""
    stepper.tab.evaluate(
        "document.body.prepend(Object.assign("
        "document.createElement('div'), { contentEditable: 'true', textContent: 'code' }))"
    )
    x, y, far = stepper.tab.evaluate(DRAG_OVER_A_NAME)
    stepper.tab.mouse.move(x, y)
    stepper.tab.mouse.down()
    stepper.tab.mouse.move(x + far, y, steps=20)
    stepper.tab.mouse.move(x + far, 0, steps=20)
    stepper.press("End")
    stepper.tab.mouse.up()
    assert stepper.tab.evaluate("getSelection().toString()") == ""
    assert stepper.tab.evaluate("document.activeElement.className") == "sl-stepper"
    expect(stepper.place).to_have_text("step 22 of 22")


@pytest.mark.parametrize("settled", [True, False], ids=["told", "not told yet"])
def test_a_key_after_a_pick_leads_to_its_moment_on_the_new_wire(
    dialects: Told, settled: bool
) -> None:
    dialects.press(*["ArrowRight"] * 3, "2")
    answers = [] if settled else dialects.hear()
    dialects.press(*["ArrowRight"] * 10)
    expect(dialects.place).to_have_text("step 14 of 29")
    if settled:
        dialects.settle(14)
        answers = dialects.hear()
    dialects.say(*answers)
    expect(dialects.tab.locator(".facts")).to_contain_text("openai-chat")
    dialects.say(*dialects.hear())  # the last move, told when its view went
    expect(dialects.place).to_have_text("step 9 of 22")
    assert (dialects.view.step, dialects.tab.evaluate("state.at.step")) == (9, 9)
    dialects.press("ArrowRight")
    dialects.settle(10)
    dialects.say(*dialects.hear())
    expect(dialects.place).to_have_text("step 10 of 22")


def test_of_two_picks_the_last_one_counts(dialects: Told) -> None:
    dialects.press("4", "1")
    dialects.say(*dialects.hear())
    expect(dialects.tab.locator(".facts")).to_contain_text("claude")
    expect(dialects.tab.get_by_role("radio", name="claude")).to_be_checked()
    expect(dialects.tab.locator("fieldset .note")).to_have_text("")
    dialects.press("ArrowRight")
    inject(dialects, "error")
    dialects.say(*dialects.hear())
    expect(dialects.tab.locator(".answer")).to_contain_text("The attempt ends in INVALID")


# --- With a kernel that is slow to answer ---------------------------------------------------------

LESSON = "08-four-dialects.ipynb"
WRITE = """
([id, code]) => {
  const widgets = jupyterapp.shell.currentWidget.content.widgets;
  widgets.find(cell => cell.model.id === id).model.sharedModel.setSource(code);
}
"""
VIEWS = {
    "Stepper": (
        "from streamlab.streams import synth\n"
        "from streamlab.widgets.stepper import Stepper\n"
        "view = Stepper(synth.change_label())"
    ),
    "DialectStepper": "view = DialectStepper()",
}
#: Let Python answer a change, or a pick, no sooner than the test says.
SLOW = """
import pathlib, time
show = view._show
def late(*given):
    while not pathlib.Path({!r}).exists():
        time.sleep(0.05)
    return show(*given)
view._show = late
"""


def in_lab(notebook: Notebook, name: str, enough: Path) -> Locator:
    code = f"{VIEWS[name]}\n{SLOW.format(str(enough))}\nview"
    notebook.page.evaluate(WRITE, ["stepper", code])
    view = run(notebook, "imports", "stepper").locator(".sl-stepper")
    expect(view.locator(".place")).to_contain_text("step 1 of")
    view.focus()
    return view


def python_hears(notebook: Notebook, told: str) -> None:
    """Wait until Python knows where the view stands: it is told once a move has settled."""
    code = "print(getattr(view, 'wire', 'claude'), view.step)"
    notebook.page.evaluate(WRITE, ["stepper-code", code])
    for _ in range(100):
        if run(notebook, "stepper-code").inner_text().strip() == told:
            return
    pytest.fail(f"Python never heard of {told}")


@pytest.mark.parametrize(("name", "steps"), [("Stepper", 22), ("DialectStepper", 29)])
def test_in_lab_a_key_after_an_injection_stays_when_a_slow_kernel_answers(
    lab: Lab, browser: Browser, tmp_path: Path, name: str, steps: int
) -> None:
    with lab.open(browser, LESSON) as notebook:
        view, keys = in_lab(notebook, name, tmp_path / "enough"), notebook.page.keyboard
        for _ in range(8):
            keys.press("ArrowRight")
        expect(view.locator(".place")).to_have_text(f"step 9 of {steps}")
        view.get_by_role("button", name="disconnect", exact=True).click()
        expect(view.locator(".answer")).to_contain_text("asking Python")
        view.focus()
        for _ in range(3):
            keys.press("ArrowLeft")
        expect(view.locator(".place")).to_have_text(f"step 6 of {steps}")
        (tmp_path / "enough").touch()
        expect(view.locator(".answer")).to_contain_text("The attempt ends in INCOMPLETE")
        notebook.wait_until_idle()
        expect(view.locator(".place")).to_have_text("step 6 of 10")
        python_hears(notebook, "claude 6")
        expect(view.locator(".place")).to_have_text("step 6 of 10")
        assert notebook.errors == []


def test_in_lab_a_key_after_a_pick_leads_to_its_moment_when_a_slow_kernel_answers(
    lab: Lab, browser: Browser, tmp_path: Path
) -> None:
    with lab.open(browser, LESSON) as notebook:
        view, keys = in_lab(notebook, "DialectStepper", tmp_path / "enough"), notebook.page.keyboard
        keys.press("2")
        for _ in range(13):
            keys.press("ArrowRight")
        expect(view.locator(".place")).to_have_text("step 14 of 29")
        (tmp_path / "enough").touch()
        view = notebook.page.locator(".sl-stepper")
        expect(view.locator(".facts")).to_contain_text("openai-chat")
        expect(view.locator(".place")).to_have_text("step 9 of 22")
        notebook.wait_until_idle()
        python_hears(notebook, "openai-chat 9")
        expect(view.locator(".place")).to_have_text("step 9 of 22")
        assert notebook.errors == []
