"""The Stepper as a learner has it: the saved page from a file, and the live view in JupyterLab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.sync_api import expect

from streamlab.analysis.trace import trace
from streamlab.consumer.workitem import policy_for
from streamlab.streams import scenarios, synth
from streamlab.streams.script import Script
from streamlab.widgets.page import page
from streamlab.widgets.stepper import Stepper
from tests.lab import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
ROOT = Path(__file__).parent.parent
SCHEMES = ("light", "dark")

#: Every visible text whose contrast with what is behind it is under 4.5 to 1.
PALE = """
() => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const behind = (el) => {
    if (!el) return rgba(getComputedStyle(document.documentElement).colorScheme.includes("dark")
      && matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "white").slice(0, 3);
    const style = getComputedStyle(el);
    const box = el.localName === "g" ? getComputedStyle(el.querySelector("rect")).fill : null;
    return over(rgba(box ?? style.backgroundColor), behind(el.parentElement));
  };
  const light = (color) => {
    const [r, g, b] = color.map((c) => c / 255).map((c) =>
      c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const pale = [];
  for (const el of document.querySelectorAll(".sl-stepper *")) {
    const own = [...el.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !el.getClientRects().length || el.localName === "option") continue;
    const style = getComputedStyle(el), under = behind(el);
    if (style.visibility === "hidden") continue;
    const ink = over(rgba(el.localName === "text" ? style.fill : style.color), under);
    const [high, low] = [light(ink), light(under)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const what = `${el.localName}.${el.className}: ${el.textContent}`;
    if (ratio < 4.5) pale.push(`${ratio.toFixed(2)} ${what}`);
  }
  return pale;
}
"""

#: Milliseconds from a key to the redrawn frame, in the page's own clock.
TIMES = """
async (keys) => {
  const root = document.querySelector(".sl-stepper");
  const redrawn = () => new Promise((done) => requestAnimationFrame(() => {
    const after = new MessageChannel(); // its message comes when the frame has been drawn
    after.port1.onmessage = done;
    after.port2.postMessage(0);
  }));
  const times = [];
  for (const key of keys) {
    await redrawn();
    const start = performance.now();
    root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await redrawn();
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  return { median: times[times.length >> 1], p90: times[Math.floor(times.length * 0.9)] };
}
"""


#: Move the slider 200 times within one frame; give how many pictures were asked for.
DRAG = """
() => {
  const slider = document.querySelector(".sl-stepper input[type=range]");
  drawn = 0;
  for (let i = 1; i <= 200; i++) {
    slider.value = i;
    slider.dispatchEvent(new Event("input"));
  }
  return drawn;
}
"""
NAMED = """
() => {
  const el = document.activeElement;
  return el === document.body ? null : el.ariaLabel || el.textContent;
}
"""


def long_script(fragments: int) -> Script:
    pieces = tuple(f"word {number} " for number in range(fragments))
    call = synth.ToolCall("change_label", {"item": "W-7", "label": "Ready"})
    return Script(synth.answer([synth.Text(pieces), call]), policy=policy_for("ada"))


def opened(browser: Browser, file: Path, scheme: str = "light", width: int = 1200) -> Page:
    """Open a saved page; whatever it asks for beside itself, or throws, fails the test."""
    tab = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    tab.add_init_script(
        "globalThis.drawn = 0; const raf = requestAnimationFrame;"
        "globalThis.requestAnimationFrame = (act) => (drawn++, raf(act));"
    )
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    tab.on("request", lambda asked: asked.url != file.as_uri() and wrong.append(asked.url))
    tab.goto(file.as_uri())
    tab.wait_for_selector(".sl-stepper .state")
    tab.evaluate("wrong => { globalThis.wrong = wrong }", wrong)
    assert wrong == []
    tab.wrong = wrong  # type: ignore[attr-defined]
    return tab


def closed(tab: Page) -> None:
    assert tab.wrong == []  # type: ignore[attr-defined]
    tab.close()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "cut.html"
    stepper = Stepper(Script(synth.change_label(), prompt="Label W-7, please."), "a call, cut")
    stepper.disconnect(after=14)
    stepper.goto(1)
    stepper.save(file)
    return file


def text(tab: Page, selector: str) -> str:
    return tab.locator(f".sl-stepper {selector}").inner_text()


def frame(tab: Page) -> None:
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


# --- The saved page -------------------------------------------------------------------------------


def test_a_saved_page_steps_with_keys(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved)
    for key, place in [
        ("ArrowRight", "step 2 of 15"),
        ("End", "step 15 of 15"),
        ("ArrowRight", "step 15 of 15"),
        ("ArrowLeft", "step 14 of 15"),
        ("Home", "step 1 of 15"),
        ("ArrowLeft", "step 1 of 15"),
    ]:
        tab.keyboard.press(key)
        frame(tab)
        assert text(tab, ".place") == place
    tab.keyboard.press("End")
    frame(tab)
    assert text(tab, ".state") == "INCOMPLETE"
    assert text(tab, ".code code") == "trace(script.disconnect(after=14, ending='eof'))"
    assert text(tab, ".kept .foot") == "Nothing is kept; a retry starts here."
    assert text(tab, ".ghostname") == "what would have been"
    assert tab.locator(".lane .ghost").count() == 2  # of the states, and of the call
    assert tab.locator(".box.now text").text_content() == "INCOMPLETE"
    closed(tab)


def test_every_control_is_reached_by_tab_and_named(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved)
    seen: list[str] = []
    while True:
        tab.keyboard.press("Tab")
        name = tab.evaluate(NAMED)
        if name is None:  # round, and out of the page
            break
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        seen.append(name)
    assert all(seen)
    places = ["first step", "speed", "show or hide this help", "step", "on the wire", "on screen"]
    for wanted in [*places, "kept in the conversation", "the same in Python"]:
        assert wanted in seen
    closed(tab)


def test_help_opens_closes_and_gives_the_focus_back(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved)
    tab.keyboard.press("?")
    assert tab.locator(".help").is_visible()
    assert tab.evaluate("document.activeElement.closest('.help') !== null")
    tab.keyboard.press("Escape")
    assert not tab.locator(".help").is_visible()
    assert tab.evaluate("document.activeElement.ariaLabel") == "show or hide this help"
    closed(tab)


def test_playing_ends_at_the_last_step(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved)
    for _ in range(3):
        tab.keyboard.press("+")
    assert tab.locator("select[aria-label=speed]").input_value() == "8\N{MULTIPLICATION SIGN}"
    tab.keyboard.press("Space")
    expect(tab.locator(".place")).to_have_text("step 15 of 15")
    assert tab.locator("[aria-label='play or pause']").get_attribute("aria-pressed") == "false"
    closed(tab)


def test_a_click_on_a_timeline_or_a_frame_goes_there(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved)
    tab.locator(".row[data-k='4']").click()
    frame(tab)
    assert text(tab, ".place") == "step 4 of 15"
    lane = tab.locator(".lane.states").bounding_box()
    assert lane
    tab.mouse.click(lane["x"] + lane["width"] / 2, lane["y"] + 8)
    frame(tab)
    assert text(tab, ".place") == "step 12 of 15"  # the ghost's eight steps take their place too
    closed(tab)


def test_a_page_cannot_inject_and_says_so(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved)
    assert tab.locator(".inject :is(button, select)").count() == 0
    assert tab.locator(".sl-stepper button:disabled").count() == 0
    for key in ("u", "r"):
        tab.keyboard.press(key)
        assert text(tab, ".inject") == "Injecting needs a notebook; this page holds the trace"
    closed(tab)


def test_a_page_of_an_untouched_recording_opens_at_its_verdict_and_has_no_code(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "whole.html"
    file.write_text(page(trace(Script(synth.change_label())).to_json("whole")), "utf-8")
    tab = opened(browser, file)
    assert text(tab, ".place") == "step 22 of 22"
    assert text(tab, ".state") == "VALIDATED_PROPOSAL"
    assert not tab.locator(".code").is_visible()
    gates = tab.locator(".gates li").evaluate_all("all => all.map((li) => li.className)")
    assert gates == ["passed", "passed", "unchecked", "passed", *["unchecked"] * 3]
    assert text(tab, ".gates li:nth-child(5)").split("\n")[-1] == "not checked: no schema is given"
    tab.keyboard.press("ArrowLeft")
    frame(tab)
    assert text(tab, ".gates li:nth-child(5)").split("\n")[-1] == "not reached"
    closed(tab)


def test_where_a_redraw_takes_the_focus_away_the_keys_go_on_working(
    browser: Browser, saved: Path
) -> None:
    tab = opened(browser, saved)
    for _ in range(13):
        tab.keyboard.press("ArrowRight")
        frame(tab)
    tab.locator("summary").last.focus()
    assert tab.evaluate("document.activeElement.localName") == "summary"
    tab.keyboard.press("Home")  # there is no card at step 1
    frame(tab)
    assert tab.evaluate("document.activeElement.matches('.sl-stepper')")
    tab.keyboard.press("ArrowRight")
    frame(tab)
    assert text(tab, ".place") == "step 2 of 15"
    closed(tab)


@pytest.mark.parametrize("width", [1200, 800, 520])
def test_nothing_moves_while_one_steps(browser: Browser, saved: Path, width: int) -> None:
    tab = opened(browser, saved, width=width)
    where = """
      () => [".timeline", ".headline", ".row.now", ".screen .foot", ".machine", ".gates", ".code"]
        .map((each) => Math.round(document.querySelector(each).getBoundingClientRect().top))"""
    places = set()
    for _ in range(15):
        places.add(str(tab.evaluate(where)))
        tab.keyboard.press("ArrowRight")
        frame(tab)
    assert len(places) == 1
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    closed(tab)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_can_be_read_in_light_and_dark(
    browser: Browser, saved: Path, scheme: str, tmp_path: Path
) -> None:
    tab = opened(browser, saved, scheme)
    dark = tab.evaluate("getComputedStyle(document.querySelector('.sl-stepper')).color")
    assert dark == {"light": "rgb(0, 0, 0)", "dark": "rgb(255, 255, 255)"}[scheme]
    for key in ("Home", "End", "ArrowLeft", "?"):
        tab.keyboard.press(key)
        frame(tab)
        assert tab.evaluate(PALE) == []
    tab.screenshot(path=tmp_path / "page.png")
    closed(tab)


def test_a_strangers_markup_stays_text(browser: Browser, tmp_path: Path) -> None:
    parts = [synth.Text((EVIL, "\u202e" + EVIL)), synth.ToolCall(EVIL[:40], {"a": EVIL})]
    file = tmp_path / "evil.html"
    file.write_text(page(trace(Script(synth.answer(parts), prompt=EVIL)).to_json(EVIL)), "utf-8")
    tab = opened(browser, file)
    for _ in range(30):
        tab.keyboard.press("ArrowRight")
        frame(tab)
    tab.locator("summary").first.click()
    assert EVIL in text(tab, ".screen .body")
    assert "⟨U+202E⟩" in text(tab, ".screen .body")
    assert tab.title() == EVIL
    assert tab.locator(".sl-stepper :is(img, script, iframe, a, style)").count() == 0
    closed(tab)


def test_a_line_that_python_runs_is_never_a_strangers(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved)
    allowed = (
        "document.querySelector('meta[http-equiv]').content.startsWith(\"default-src 'none'\")"
    )
    assert tab.evaluate(allowed)
    blocked = """() => new Promise((done) => {
      document.addEventListener("securitypolicyviolation", (e) => done(e.effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "document.title = 'owned'";
      document.body.append(script);
    })"""
    assert tab.evaluate(blocked) == "script-src-elem"
    assert tab.title() == "a call, cut"
    tab.close()


def test_ten_thousand_steps_cost_what_few_cost(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = {}
    for fragments in (480, 9_980):
        file = tmp_path / f"{fragments}.html"
        file.write_text(page(trace(long_script(fragments)).to_json("long")), "utf-8")
        tab = opened(browser, file)
        tab.keyboard.press("Home")
        step = tab.evaluate(TIMES, ["ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight"] * 5)
        jump = tab.evaluate(TIMES, ["End", "Home"] * 5)
        last = tab.locator("input[type=range]").get_attribute("max")
        nodes[fragments] = tab.locator(".sl-stepper *").count()
        with capsys.disabled():
            for name, ms in (("a step", step), ("a jump", jump)):
                print(
                    f"\n  {last} steps, {name}: {ms['median']:.1f} ms, p90 {ms['p90']:.1f}", end=""
                )
        tab.keyboard.press("End")
        frame(tab)
        assert text(tab, ".state") == "VALIDATED_PROPOSAL"
        assert tab.evaluate(DRAG) == 1  # however many moves, one picture a frame
        closed(tab)
    assert nodes[9_980] < 1.2 * nodes[480] < 1_000  # only what is in sight exists


def test_a_page_draws_the_commit_and_what_came_of_it(browser: Browser, tmp_path: Path) -> None:
    stepper = Stepper(scenarios.answer_of_the_commit_lost(), "a lost answer")
    stepper.goto(22)
    stepper.save(tmp_path / "commit.html")
    tab = opened(browser, tmp_path / "commit.html")
    for state, said, foot in [
        ("COMMITTING", "the commit has begun", "The change is being made"),
        ("RECONCILING", "the effect was submitted", "Outcome being reconciled"),
        ("COMMITTED", "asked for the record", "The change is made and on record"),
    ]:
        tab.keyboard.press("ArrowRight")
        frame(tab)
        assert text(tab, ".state") == state
        assert said in text(tab, ".row.now .raw")
        assert text(tab, ".screen .foot") == foot
        assert tab.locator(".box.now text").text_content() == state
    closed(tab)


# --- Narrow, and two of a kind --------------------------------------------------------------------


def stepped(tab: Page, step: int) -> None:
    tab.evaluate(GOTO, step)
    frame(tab)
    assert text(tab, ".place").startswith(f"step {step} of ")


GOTO = """
(step) => {
  const slider = document.querySelector(".sl-stepper input[type=range]");
  slider.value = step;
  slider.dispatchEvent(new Event("input"));
}
"""
#: Whether the card of this number is to be seen in its panel, all of it.
IN_SIGHT = """
(number) => {
  const body = document.querySelector(".screen .body").getBoundingClientRect();
  const titles = [...document.querySelectorAll(".screen .title")];
  const title = titles.find((each) => each.textContent.startsWith(`${number} `));
  const card = title.closest(".card").getBoundingClientRect();
  return card.top >= body.top - 1 && card.bottom <= body.bottom + 1;
}
"""
#: Elements whose text does not fit into them.
CLIPPED = """
(selector) => [...document.querySelectorAll(selector)]
  .filter((el) => el.scrollHeight > el.clientHeight + 1 || el.scrollWidth > el.clientWidth + 1)
  .map((el) => el.textContent)
"""


@pytest.fixture(scope="module")
def two_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "two.html"
    mixed = synth.parallel_tools(style=synth.Style(interleave=True), seed=3)
    Stepper(Script(mixed, prompt="Both."), "two calls").save(file)
    return file


def inside(width: int) -> int:
    """How wide a window is in which the view has this width."""
    return width + 40


def test_two_calls_of_one_tool_are_told_apart(browser: Browser, two_calls: Path) -> None:
    tab = opened(browser, two_calls)
    tab.keyboard.press("End")
    frame(tab)
    assert tab.locator(".screen .title").all_inner_texts() == [
        "1 · change_label",
        "2 · change_label",
    ]
    words = tab.locator(".lane.parts .part .word").all_text_contents()
    assert words == ["0 · text", "1 · change_label", "2 · change_label"]
    closed(tab)


@pytest.mark.parametrize("width", [1100, 848, 584])
def test_the_card_in_change_is_in_sight(browser: Browser, tmp_path: Path, width: int) -> None:
    calls = [synth.ToolCall("change_label", {"item": f"W-{n}", "label": "Ready"}) for n in range(6)]
    mixed = synth.answer(calls, style=synth.Style(interleave=True), seed=3)
    Stepper(Script(mixed), "six calls").save(tmp_path / "six.html")
    tab = opened(browser, tmp_path / "six.html", width=inside(width))
    seen = set()
    for step in trace(mixed).steps:
        first = next(iter(step.events), None)
        number = getattr(first, "segment", None)
        if number is not None and getattr(first, "text", "more"):  # no text changes nothing
            stepped(tab, step.n)
            assert tab.evaluate(IN_SIGHT, number), step.n
            seen.add(number)
    assert seen == set("012345")
    closed(tab)


@pytest.mark.parametrize("width", [848, 708, 584])
def test_in_a_narrow_cell_nothing_that_is_said_is_cut(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    stepper = Stepper(Script(synth.parallel_tools(), prompt="Both."), "two calls")
    stepper.disconnect(after=16)
    stepper.save(tmp_path / "cut.html")
    tab = opened(browser, tmp_path / "cut.html", width=inside(width))
    assert "nothing may be acted on" in text(tab, ".why")
    assert tab.evaluate(CLIPPED, ".why, .reason, .panel .foot, .raw, .exits, .frame") == []
    break_ = "getComputedStyle(document.querySelector('.row.now .raw')).wordBreak"
    assert tab.evaluate(break_) == "normal"
    line = tab.evaluate("document.querySelector('.screen .foot').clientHeight")
    assert line >= 32 + 6  # two lines stand free of both rules
    closed(tab)


def test_where_the_machine_is_scrolled_a_key_reaches_it(browser: Browser, two_calls: Path) -> None:
    for width, index in ((584, -1), (480, 0)):
        tab = opened(browser, two_calls, width=inside(width))
        assert tab.locator(".frame").evaluate("el => el.tabIndex") == index
        assert tab.locator(".frame").get_attribute("aria-label") == "the machine"
        closed(tab)


# --- In JupyterLab --------------------------------------------------------------------------------

SETUP = """\
from streamlab.streams.script import Script
from streamlab.consumer.workitem import policy_for
from streamlab.streams import synth
from streamlab.widgets.stepper import Stepper
script = Script(synth.change_label(), policy=policy_for("ada"), prompt="Label W-7, please.")
stepper = Stepper(script, "a call")
stepper"""
LATER = "# another cell, so that a key that leaks has something to act on"


@pytest.fixture(scope="module", autouse=True)
def notebook_to_open(lab: Lab) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, LATER)]
    book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(book, lab.folder / "stepper.ipynb")


def python(tab: Page, line: str) -> str:
    """Run a line in the notebook's kernel, as another cell would; return what it prints."""
    return str(tab.evaluate(RUN, line)).strip()


RUN = """
async (code) => {
  const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
  const running = kernel.requestExecute({ code });
  let printed = "";
  running.onIOPub = ({ content }) => { printed += content.text ?? content.evalue ?? ""; };
  await running.done;
  return printed;
}
"""


def python_hears(tab: Page, step: int) -> None:
    """Wait until Python knows where the view stands: it is told once a move has settled."""
    for _ in range(300):
        if python(tab, "print(stepper.step)") == str(step):
            return
    pytest.fail(f"Python never heard of step {step}")


def says(tab: Page, selector: str, wanted: str) -> None:
    expect(tab.locator(f".sl-stepper {selector}")).to_contain_text(wanted, timeout=30_000)


FAULTS: list[tuple[str, str, str]] = [
    ("disconnect", "eof", "INCOMPLETE"),
    ("disconnect", "cut", "INCOMPLETE"),
    ("disconnect", "reset", "INCOMPLETE"),
    ("disconnect", "timeout", "INCOMPLETE"),
    ("cancel", "eof", "ABORTED"),
    ("error", "eof", "INVALID"),
    ("token_limit", "eof", "HELD"),
    ("redeliver", "eof", "VALIDATED_PROPOSAL"),
    ("late", "eof", "VALIDATED_PROPOSAL"),
    ("unknown", "eof", "VALIDATED_PROPOSAL"),
]


@pytest.mark.parametrize(
    ("theme", "injected"),
    [("Light", FAULTS), ("Dark", FAULTS[:1])],  # what differs by theme is seen before and after
    ids=["Light", "Dark"],
)
def test_in_lab_each_fault_is_injected_seen_and_undone(
    lab: Lab, browser: Browser, theme: str, injected: list[tuple[str, str, str]]
) -> None:
    with lab.open(browser, "stepper.ipynb", theme) as notebook:
        notebook.run_all()
        tab = notebook.page
        tab.wait_for_selector(".sl-stepper .state")
        tab.locator(".sl-stepper").focus()
        for _ in range(8):
            tab.keyboard.press("ArrowRight")
        says(tab, ".place", "step 9 of 22")
        assert tab.evaluate(PALE) == []
        for action, ending, state in injected:
            tab.locator(".inject select").select_option(ending)
            tab.locator(f"[data-action={action}]").click()
            says(tab, ".answer", f"The attempt ends in {state}")
            says(tab, ".code code", f"trace(script.{action}(")
            tab.locator(".sl-stepper").focus()
            tab.keyboard.press("End")
            says(tab, ".state", state)
            assert tab.locator(".box.now").text_content()
            tab.keyboard.press("u")
            says(tab, ".answer", "is taken back; the attempt")
            says(tab, ".answer", "ends in VALIDATED_PROPOSAL")
            says(tab, ".place", "step 9 of 22")
        tab.locator("[data-action=cancel]").click()
        says(tab, ".answer", "The attempt ends in ABORTED")
        tab.locator("[data-action=disconnect]").click()  # the view stands behind the last frame
        says(tab, ".answer", "The attempt ends in INCOMPLETE; it was ABORTED before.")
        says(tab, ".code code", "cancel(after=9).disconnect(after=9, ending=")
        tab.locator("[aria-label='undo the last injection']").click()
        says(tab, ".place", "step 10 of 10")  # where the disconnect was pressed
        tab.locator("[aria-label='undo the last injection']").click()
        says(tab, ".place", "step 9 of 22")
        assert tab.evaluate("document.activeElement.matches('.sl-stepper')")  # undo is disabled now
        tab.keyboard.press("ArrowRight")
        says(tab, ".place", "step 10 of 22")
        tab.keyboard.press("y")
        says(tab, ".state", "ABORTED")
        tab.keyboard.press("r")
        says(tab, ".answer", "The attempt ends in VALIDATED_PROPOSAL; it was ABORTED before.")
        assert tab.evaluate(PALE) == []
        assert notebook.errors == []


CHOSEN = [  # what is chosen at frame 13, what comes of it, and its line of code
    ("skip", "The attempt ends in INVALID", "inject(faults.skip, frame=14)"),
    ("refuse", "The attempt ends in HELD", "inject(faults.refuse, after=13)"),
    ("index gap", "no block starts after frame 13", ""),
    ("late frame", "The attempt ends in INVALID", "inject(faults.late, frame=14)"),
    ("cancel only", "ends in ABORTED", "cancel(after=13, hang_up=False)"),
]


KEYS_OF_THE_MENU = "arrows move · Enter injects · F or Esc closes"


def told(tab: Page) -> str:
    return tab.locator(".menu .says").inner_text()


@pytest.mark.parametrize(
    ("theme", "chosen"),
    [("Light", CHOSEN), ("Dark", CHOSEN[1:3])],  # by night: one that can be injected, one that not
    ids=["Light", "Dark"],
)
def test_in_lab_a_fault_of_the_menu_is_chosen_by_mouse(
    lab: Lab, browser: Browser, theme: str, chosen: list[tuple[str, str, str]]
) -> None:
    with lab.open(browser, "stepper.ipynb", theme) as notebook:
        notebook.run_all()
        tab = notebook.page
        python(tab, "stepper.goto(13)")
        says(tab, ".place", "step 13 of 22")
        menu, button = tab.locator(".sl-stepper .menu"), tab.locator(".sl-stepper .more")
        for name, ends, code in chosen:
            button.click()
            item = menu.get_by_role("menuitem", name=name, exact=True)
            item.hover()
            assert told(tab) == item.get_attribute("aria-description")
            assert tab.evaluate(PALE) == []
            item.click()
            expect(menu).not_to_be_visible()
            says(tab, ".answer", ends)
            if code:
                says(tab, ".code code", f"trace(script.{code})")
                tab.keyboard.press("u")
                says(tab, ".answer", "is taken back; the attempt")
            says(tab, ".place", "step 13 of 22")
        button.click()
        tab.locator(".sl-stepper .headline").click()  # elsewhere: it closes, and nothing happens
        expect(menu).not_to_be_visible()
        says(tab, ".place", "step 13 of 22")
        assert notebook.errors == []


def test_in_lab_a_fault_of_the_menu_is_chosen_by_keyboard(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, "stepper.ipynb") as notebook:
        notebook.run_all()
        tab = notebook.page
        python(tab, "stepper.goto(13)")
        says(tab, ".place", "step 13 of 22")
        menu, button = tab.locator(".sl-stepper .menu"), tab.locator(".sl-stepper .more")
        tab.locator(".sl-stepper").focus()
        tab.keyboard.press("f")
        expect(menu).to_be_visible()
        assert button.get_attribute("aria-expanded") == "true"
        walk = [
            *[("ArrowDown", "merge"), ("ArrowRight", "duplicate"), ("ArrowLeft", "merge")],
            *[("ArrowUp", "split"), ("ArrowUp", "late callback"), ("ArrowDown", "split")],
            *[("ArrowLeft", "cancel"), ("End", "late callback"), ("ArrowLeft", "timeout")],
            *[("Home", "split"), ("s", "skip"), ("s", "second start"), ("x", "second start")],
        ]
        for key, name in walk:
            tab.keyboard.press(key)
            assert tab.evaluate("document.activeElement.textContent") == name
            assert told(tab) == tab.evaluate("document.activeElement.ariaDescription")
        assert tab.locator(".menu .keys").inner_text() == KEYS_OF_THE_MENU
        for key in ("F", "f"):  # closed by what opened it
            tab.keyboard.press(key)
            expect(menu).not_to_be_visible()
            assert tab.evaluate("document.activeElement.matches('.sl-stepper .more')")
            tab.keyboard.press("f")
            expect(menu).to_be_visible()
        tab.keyboard.press("Escape")
        expect(menu).not_to_be_visible()
        assert tab.evaluate("document.activeElement.matches('.sl-stepper .more')")
        assert button.get_attribute("aria-expanded") == "false"
        tab.keyboard.press("ArrowDown")  # it opens where it was left
        assert tab.evaluate("document.activeElement.textContent") == "second start"
        tab.keyboard.press("Enter")
        says(tab, ".answer", "The attempt ends in INVALID; it was VALIDATED_PROPOSAL before.")
        says(tab, ".code code", "trace(script.inject(faults.second_start, after=13))")
        says(tab, ".place", "step 14 of 22")
        tab.keyboard.press("u")
        says(tab, ".place", "step 13 of 22")
        tab.keyboard.press("y")
        says(tab, ".place", "step 14 of 22")
        tab.keyboard.press("r")
        says(tab, ".answer", "The attempt ends in VALIDATED_PROPOSAL; it was INVALID before.")
        tab.keyboard.press("f")
        tab.keyboard.press("Tab")  # leaves it
        expect(menu).not_to_be_visible()
        assert tab.evaluate("jupyterapp.shell.currentWidget.model.toJSON().cells.length") == 2
        assert notebook.errors == []


def test_in_lab_beside_the_file_browser_all_of_it_fits_900_pixels(
    lab: Lab, browser: Browser
) -> None:
    with lab.open(browser, "stepper.ipynb") as notebook:
        notebook.run_all()
        tab = notebook.page
        tab.evaluate("jupyterapp.shell.expandLeft()")
        for line in ("stepper.goto(13)", "stepper.disconnect()", "stepper.inject('reconnect')"):
            python(tab, line)
            frame(tab)
            box = tab.locator(".sl-stepper").bounding_box()
            assert box and 800 < box["width"] < 900 and box["height"] <= 900
        assert notebook.errors == []


def test_in_lab_a_menu_that_is_longer_than_its_window_says_so(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, "stepper.ipynb") as notebook:
        notebook.run_all()
        tab = notebook.page
        tab.set_viewport_size({"width": 700, "height": 600})
        tab.evaluate("jupyterapp.shell.collapseLeft()")
        tab.locator(".sl-stepper .more").click()
        below, last = tab.locator(".menu .below"), tab.get_by_role("menuitem", name="reconnect")
        expect(below).to_be_visible()
        expect(below).to_be_in_viewport()
        expect(tab.locator(".menu .says")).to_be_in_viewport(ratio=1)
        expect(tab.locator(".menu .kind .name").first).to_be_in_viewport()
        last.focus()
        expect(last).to_be_in_viewport(ratio=1)
        expect(below).not_to_be_visible()
        assert notebook.errors == []


def test_in_lab_no_key_leaks_and_python_moves_the_view(lab: Lab, browser: Browser) -> None:
    with lab.open(browser, "stepper.ipynb") as notebook:
        notebook.run_all()
        tab = notebook.page
        tab.wait_for_selector(".sl-stepper .state")
        slider = tab.locator(".sl-stepper input[type=range]")
        slider.focus()
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowLeft")  # Lab would take this one in command mode
        says(tab, ".place", "step 2 of 22")
        for key in ("a", "b", "d", "d", "x", "z", "m", "Enter", "Escape", "ArrowDown", "ArrowUp"):
            tab.keyboard.press(key)
        assert tab.evaluate("jupyterapp.shell.currentWidget.model.toJSON().cells.length") == 2
        assert tab.evaluate("document.activeElement.matches('.sl-stepper input')")
        python_hears(tab, 2)
        python(tab, "stepper.goto(14)")
        says(tab, ".place", "step 14 of 22")
        python(tab, "stepper.disconnect()")
        says(tab, ".state", "INCOMPLETE")
        says(tab, ".code code", "trace(script.disconnect(after=14, ending='eof'))")
        says(tab, ".answer", "The attempt ends in INCOMPLETE")
        tab.keyboard.press("ArrowLeft")
        expect(tab.locator(".sl-stepper .answer")).to_have_text("")  # it was about another step
        python_hears(tab, 14)
        python(tab, "stepper.goto(1)")
        says(tab, ".place", "step 1 of 15")
        assert notebook.errors == []
