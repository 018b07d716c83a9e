"""The Inspector as an engineer has it: live in JupyterLab, and as a page from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from playwright.sync_api import expect

from streamlab.streams import synth
from streamlab.streams.recording import Chunk, Recording
from streamlab.widgets.inspector import Inspector
from tests import captures
from tests.lab import Lab
from tests.test_stepper_browser import PALE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parent.parent
EVIL = "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>"
BEFORE = "<img src=x onerror=window.owned=1>.sse"

#: Watch for what must never happen: script that runs, a policy that had to stop one, a request.
WATCH = """
() => {
  globalThis.violations = [];
  document.addEventListener("securitypolicyviolation", (e) => violations.push(e.blockedURI));
}
"""

#: Milliseconds from a key to the redrawn frame, and from a move of the pointer.
TIMES = """
async ({ keys, moves }) => {
  const root = document.querySelector(".sl-inspector"), track = root.querySelector(".track");
  const redrawn = () => new Promise((done) => requestAnimationFrame(() => {
    const after = new MessageChannel(); // its message comes when the frame has been drawn
    after.port1.onmessage = done;
    after.port2.postMessage(0);
  }));
  const timed = async (act) => {
    await redrawn();
    const start = performance.now();
    act();
    await redrawn();
    return performance.now() - start;
  };
  const summed = (times) => {
    times.sort((a, b) => a - b);
    return { median: times[times.length >> 1], p90: times[Math.floor(times.length * 0.9)] };
  };
  const pressed = [], dragged = [], box = track.getBoundingClientRect();
  for (const key of keys) {
    pressed.push(await timed(() => root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))));
  }
  track.setPointerCapture = () => {};
  track.hasPointerCapture = () => true;
  for (let i = 0; i < moves; i++) {
    const clientX = box.left + 10 + ((box.width - 20) * ((i * 37) % moves)) / moves;
    dragged.push(await timed(() => track.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY: box.top + 9, bubbles: true }))));
  }
  delete track.setPointerCapture;
  delete track.hasPointerCapture;
  return { key: summed(pressed), drag: summed(dragged) };
}
"""  # noqa: E501

#: Drag files over the view, as a file manager does, and let them go there; `x` is a share of it.
DROP = """
({ files, x }) => {
  const root = document.querySelector(".sl-inspector"), box = root.getBoundingClientRect();
  const dataTransfer = new DataTransfer();
  for (const [name, text] of files) dataTransfer.items.add(new File([text], name));
  const where = { dataTransfer, bubbles: true, cancelable: true, clientX: box.left + box.width * x, clientY: box.top + 40 };
  for (const kind of ["dragenter", "dragover"]) root.dispatchEvent(new DragEvent(kind, where));
  const zones = [...root.querySelectorAll(".zone:not([hidden])")].map((zone) => zone.classList.contains("here"));
  const taken = !root.dispatchEvent(new DragEvent("drop", where));
  return { zones, taken };
}
"""  # noqa: E501

SETUP = """\
from pathlib import Path
from streamlab.widgets.inspector import Inspector
inspector = Inspector()
inspector"""
LATER = "# another cell, so that a key that leaks has something to act on"


def many(frames: int) -> Recording:
    """A timed answer: thinking, a stall, text, a tool call; a read for each frame."""
    words = tuple(f"word {number} " for number in range(frames - 38))
    parts = [synth.Thinking(words[: len(words) // 4]), synth.Text(words[len(words) // 4 :])]
    call = synth.ToolCall("change_label", {"item": "W-7", "label": "Ready " * 30})
    blocks = synth.answer([*parts, call]).data.split(b"\n\n")[:-1]
    chunks, t = [], 0.4
    for number, block in enumerate(blocks):
        t += 4.0 if number == len(blocks) // 4 else 0.011 + number % 7 / 500
        chunks.append(Chunk(round(t, 6), block + b"\n\n"))
    return Recording(tuple(chunks), "eof", "claude", t + 0.1)


def evil() -> Recording:
    parts = [synth.Text((EVIL,)), synth.ToolCall(EVIL[:60], {"a": EVIL})]
    data = synth.answer(parts).data.replace(b"claude-synthetic", json.dumps(EVIL).encode()[1:-1])
    deep = b"event: deep\ndata: " + b"[" * 50_000 + b"\n\n"
    return Recording.from_bytes(data + f"event: {EVIL}\ndata: {EVIL}\n\n".encode() + deep)


def at(tab: Page, selector: str) -> Locator:
    return tab.locator(f".sl-inspector {selector}")


def says(tab: Page, selector: str, wanted: str) -> None:
    expect(at(tab, selector)).to_contain_text(wanted, timeout=30_000)


def frame(tab: Page) -> None:
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def pressed(tab: Page, *keys: str) -> str:
    """Press keys; give where the view stands then."""
    for key in keys:
        tab.keyboard.press(key)
    frame(tab)
    return at(tab, ".place").inner_text()


def nothing_ran(tab: Page) -> None:
    assert tab.evaluate("globalThis.owned") is None
    assert tab.evaluate("globalThis.violations") == []
    made = at(tab, ":is(img, script, iframe, a, style, object, embed, link)")
    assert made.count() == 0


# --- The saved page -------------------------------------------------------------------------------


def opened(browser: Browser, file: Path, scheme: str = "light", width: int = 1000) -> Page:
    """Open a saved page; whatever it asks for beside itself, or throws, fails the test."""
    tab = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    tab.add_init_script(f"({WATCH})()")
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    tab.on("request", lambda asked: asked.url != file.as_uri() and wrong.append(asked.url))
    tab.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    tab.goto(file.as_uri())
    tab.wait_for_selector(".sl-inspector .row")
    tab.wrong = wrong  # type: ignore[attr-defined]
    return tab


def closed(tab: Page) -> None:
    nothing_ran(tab)
    assert tab.wrong == []  # type: ignore[attr-defined]
    tab.close()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    Inspector(ROOT / "fixtures/claude/overloaded.stream.jsonl").save(folder / "one.html")
    stall = ROOT / "fixtures/claude/stall.stream.jsonl"
    Inspector(stall, many(200), title="A").save(folder / "two.html")
    Inspector(evil(), evil(), title=EVIL).save(folder / "evil.html")
    return folder


def test_a_saved_page_moves_filters_and_jumps_by_keys(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved / "one.html")
    assert at(tab, ".place").inner_text() == "frame 13 of 13"  # the provider's error
    assert at(tab, ".detail .problem.error").inner_text().startswith("error ")
    walk = [
        *[("Home", "frame 1 of 13"), ("ArrowRight", "frame 2 of 13"), ("ArrowUp", "frame 1 of 13")],
        *[("PageDown", "the end of 13"), ("End", "the end of 13"), ("Home", "frame 1 of 13")],
        *[("]", "frame 13 of 13"), ("n", "the end of 13"), ("[", "frame 13 of 13")],
        *[("Home", "frame 1 of 13"), ("j", "frame 13 of 13")],
    ]
    for key, place in walk:
        assert pressed(tab, key) == place, key
    pressed(tab, "f")
    tab.keyboard.type("content_block_start")
    frame(tab)
    assert at(tab, ".found").inner_text() == "2 of 14 rows"
    assert pressed(tab, "Enter", "Home") == "frame 2 of 13"  # the first of the two
    assert pressed(tab, "ArrowDown") == "frame 9 of 13"
    at(tab, ".filter button").click()
    at(tab, ".filter label").filter(has_text="problems").click()
    frame(tab)
    assert at(tab, ".found").inner_text() == "2 of 14 rows"
    for action in ("open", "compare", "undo", "save"):
        assert at(tab, f"[data-command='{action}']").count() == 0
    closed(tab)


def test_bytes_are_shown_as_text_and_as_hex_with_their_offsets(
    browser: Browser, saved: Path
) -> None:
    tab = opened(browser, saved / "one.html")
    pressed(tab, "Home")
    first = at(tab, ".raw .line").first
    assert first.locator(".at").inner_text() == "0"
    assert "event: message_startLF" in first.locator(".bytes").inner_text()
    pressed(tab, "x")
    line = at(tab, ".raw .hexline").first
    assert line.locator(".at").inner_text() == "00000000"
    assert "".join(line.locator("i").all_inner_texts()) == b"event: m".hex()
    assert line.locator(".seen").inner_text().startswith("event: m")
    closed(tab)


def test_two_recordings_share_an_axis_and_the_jump_to_where_they_part(
    browser: Browser, saved: Path
) -> None:
    tab = opened(browser, saved / "two.html")
    assert at(tab, ".timeline").count() == 2
    assert at(tab, ".axis:visible").count() == 1
    pressed(tab, "d")
    here = at(tab, ".place").inner_text()
    shown = at(tab, ".side").first.inner_text()
    assert here.split(" of ")[0] in shown
    pressed(tab, "b")
    assert at(tab, ".place").inner_text().split(" of ")[0] in at(tab, ".side").last.inner_text()
    cursors = at(tab, ".cursor").evaluate_all("all => all.map((one) => parseFloat(one.style.left))")
    pressed(tab, "Home")
    moved = at(tab, ".cursor").evaluate_all("all => all.map((one) => parseFloat(one.style.left))")
    assert moved != cursors
    at(tab, ".numbers summary").click()
    rows = at(tab, ".numbers tbody tr").all_inner_texts()
    assert any(row.startswith("frames") and "+" in row for row in rows)
    closed(tab)


def test_the_verdict_is_that_of_the_recording_that_is_looked_at(
    browser: Browser, saved: Path
) -> None:
    tab = opened(browser, saved / "two.html")
    said = {}
    for name in ("B", "A"):
        at(tab, ".tab").filter(has_text=f"{name} · ").click()
        frame(tab)
        where = at(tab, ".doctor > button").inner_text()
        said[name] = (at(tab, ".doctor .says").inner_text(), where)
        assert where == f"show where: {pressed(tab, 'j').split(' of ')[0]}"
    assert said["A"] != said["B"]
    closed(tab)


#: The places of a frame's tick and of the cursor, in pixels of the screen.
TICK = """
() => {
  const ticks = document.querySelector(".ticks"), to = ticks.getScreenCTM();
  const drawn = [...ticks.querySelectorAll("path")].map((path) => path.getAttribute("d")).join("");
  const found = [...drawn.matchAll(/M([\\d.]+) /g)].map(([, x]) => to.a * Number(x) + to.e);
  const { left, width } = document.querySelector(".cursor").getBoundingClientRect();
  const here = left + width / 2;
  return Math.min(...found.map((x) => Math.abs(x - here)));
}
"""


@pytest.mark.parametrize("width", [600, 1000])
def test_a_tick_stands_where_the_cursor_of_its_frame_stands(
    browser: Browser, saved: Path, width: int
) -> None:
    tab = opened(browser, saved / "one.html", width=width)
    pressed(tab, "Home")
    for _ in range(12):
        assert tab.evaluate(TICK) < 1.5
        pressed(tab, "ArrowRight")
    closed(tab)


def test_events_whose_names_begin_alike_can_be_told_apart(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved / "one.html")
    pressed(tab, "Home")
    names = at(tab, ".row .event").all_inner_texts()
    assert {"message_start", "…block_start", "…block_delta", "…block_stop"} <= set(names)
    delta = at(tab, ".row .event").filter(has_text="…block_delta").first
    assert delta.get_attribute("title") == "content_block_delta"
    closed(tab)


CUT_OFF = """
() => [...document.querySelectorAll(".row .event")]
  .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)
"""


def test_beside_labs_file_list_no_events_name_is_cut_off(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved / "one.html", width=890)  # the width of a cell where Lab has 1,280
    frame(tab)
    assert tab.evaluate(CUT_OFF) == []
    closed(tab)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [940, 640])
def test_a_page_fits_its_width_can_be_read_and_keeps_its_places(
    browser: Browser, saved: Path, scheme: str, width: int
) -> None:
    tab = opened(browser, saved / "one.html", scheme, width)
    where = """
      () => [".tools", ".lines", ".filter", ".list", ".detail"]
        .map((each) => Math.round(document.querySelector(each).getBoundingClientRect().top))"""
    places = set()
    for key in ("Home", "ArrowRight", "ArrowRight", "End", "ArrowLeft", "x"):
        pressed(tab, key)
        places.add(str(tab.evaluate(where)))
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert tab.evaluate(PALE.replace(".sl-stepper", ".sl-inspector")) == []
    assert len(places) == 1
    closed(tab)


def test_a_captures_status_is_told_once(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "x.har").write_bytes(captures.har(captures.answered(synth.greeting())))
    Inspector(tmp_path / "x.har").save(tmp_path / "x.html")
    tab = opened(browser, tmp_path / "x.html")
    facts = at(tab, "header .facts").inner_text()
    assert facts.count("HTTP 200") == 1 and "har · entry 1 · POST" in facts
    closed(tab)


def test_a_strangers_markup_stays_text_in_a_page(browser: Browser, saved: Path) -> None:
    tab = opened(browser, saved / "evil.html")
    for _ in range(16):
        pressed(tab, "ArrowRight")
        pressed(tab, "x")
    assert at(tab, "header .name").inner_text() == EVIL
    pressed(tab, "Home", "f")
    tab.keyboard.type("onerror")
    frame(tab)
    assert at(tab, ".row").count() > 3
    assert EVIL[:30] in at(tab, ".row .says").nth(1).inner_text()
    pressed(tab, "Escape", "?")
    assert at(tab, ".help").is_visible()
    closed(tab)


# --- In JupyterLab --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(lab: Lab) -> Path:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, LATER)]
    book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(book, lab.folder / "inspector.ipynb")
    return lab.folder


@pytest.fixture
def live(lab: Lab, browser: Browser, folder: Path) -> Iterator[Page]:
    """The notebook's view, empty, with everything watched that must not happen."""
    with lab.open(browser, "inspector.ipynb") as notebook:
        wrong: list[str] = []

        def note(asked: Any) -> None:
            if not asked.url.startswith((lab.url, "data:", "blob:")):
                wrong.append(asked.url)

        notebook.page.on("request", note)
        notebook.page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        notebook.run_all()
        notebook.page.wait_for_selector(".sl-inspector .empty")
        notebook.page.evaluate(WATCH)
        yield notebook.page
        nothing_ran(notebook.page)
        notebook.page.remove_listener("request", note)
        assert (notebook.errors, wrong) == ([], [])


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


def cells(tab: Page) -> int:
    return int(tab.evaluate("jupyterapp.shell.currentWidget.model.toJSON().cells.length"))


def test_in_lab_files_are_dropped_opened_compared_and_undone(live: Page, folder: Path) -> None:
    good = (ROOT / "fixtures/claude/overloaded.sse").read_text("utf-8")
    other = (ROOT / "fixtures/claude/change_label.stream.jsonl").read_text("utf-8")
    dropped = live.evaluate(DROP, {"files": [[BEFORE, good]], "x": 0.9})
    assert dropped == {"zones": [True], "taken": True}  # nothing is open: there is only one place
    says(live, ".answer", f"opened {BEFORE}")
    assert at(live, "header .name").inner_text() == BEFORE
    says(live, ".verdict", "provider error")
    says(live, ".place", "frame 13 of 13")

    dropped = live.evaluate(DROP, {"files": [["other.stream.jsonl", other]], "x": 0.9})
    assert dropped == {"zones": [False, True], "taken": True}
    says(live, ".answer", "beside it: other.stream.jsonl")
    assert at(live, ".timeline:visible").count() == 2
    says(live, ".parting", "First difference in meaning")

    live.evaluate(DROP, {"files": [["bad.stream.jsonl", '{"streamlab": 9}\n']], "x": 0.1})
    says(live, ".answer[data-kind=problem]", "bad.stream.jsonl:1: version 9")
    assert at(live, "header .name").inner_text() == BEFORE  # the old one stays

    with live.expect_file_chooser() as choosing:
        at(live, "[data-command=open]").click()
    choosing.value.set_files(ROOT / "fixtures/claude/pay_invoice_cut.sse")
    says(live, ".answer", "opened pay_invoice_cut.sse")
    at(live, ".sl-inspector[role=group], [data-command=undo]").last.click()
    says(live, ".answer", "back to <img")
    live.locator(".sl-inspector").focus()
    pressed(live, "u")
    says(live, ".answer", "back to <img")
    expect(at(live, ".pair")).not_to_be_visible()
    at(live, "[data-command=save]").click()
    says(live, ".answer", "saved as img-src-x-onerror-window-owned-1-sse.html")
    assert (folder / "img-src-x-onerror-window-owned-1-sse.html").stat().st_size > 50_000


def test_in_lab_mouse_and_keys_scrub_and_none_leaks(live: Page) -> None:
    python(live, "from tests_recording import stalled; inspector.load(stalled, 'stalled')")
    says(live, ".place", "of 200")
    before = cells(live)
    track = at(live, ".track").first
    box = track.bounding_box()
    assert box
    live.mouse.move(box["x"] + 8, box["y"] + 30)
    live.mouse.down()
    live.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30, steps=12)
    live.mouse.up()
    frame(live)
    middle = int(at(live, ".place").inner_text().split()[1])
    assert 20 < middle < 180
    assert live.evaluate("document.activeElement.closest('.sl-inspector') !== null")
    assert pressed(live, "ArrowRight") == f"frame {middle + 1} of 200"
    assert pressed(live, "ArrowLeft", "ArrowLeft") == f"frame {middle - 1} of 200"
    for key in ("b", "d", "d", "z", "m", "Enter", "y", "ArrowDown", "ArrowUp"):
        live.keyboard.press(key)
    assert cells(live) == before
    for key in ("+", "+", "+"):
        live.keyboard.press(key)
    frame(live)
    assert at(live, ".beyond").first.is_visible()
    live.mouse.wheel(0, -200)
    live.keyboard.press("0")
    expect(at(live, ".beyond").first).not_to_be_visible()
    pressed(live, "/")
    live.keyboard.type("change_label")
    expect(at(live, ".found")).to_contain_text(" of 201 rows")
    pressed(live, "Enter")
    assert pressed(live, "Escape", "Home", "End") != ""
    at(live, "select[aria-label='kind of frame']").select_option("tool")
    at(live, ".filter input[type=search]").fill("")
    row = at(live, ".row").nth(3)
    number = row.locator(".n").inner_text()
    row.click()
    says(live, ".detail h4", f"frame {number} ")
    for _ in range(100):
        if python(live, "print(inspector.frame)") == number:
            break
    else:
        pytest.fail("Python never heard where the view stands")
    python(live, "inspector.goto(2)")
    says(live, ".place", "frame 2 of 200")


MOVE_AND_SAVE = """
() => {
  const view = document.querySelector(".sl-inspector");
  const press = (key) => view.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  press("ArrowRight");
  view.querySelector("[data-command=save]").click();
  press("ArrowRight");
}
"""


def test_in_lab_an_answer_leaves_the_view_where_the_last_key_led(live: Page) -> None:
    python(live, "from tests_recording import stalled; inspector.load(stalled, 'stalled')")
    says(live, ".place", "of 200")
    live.locator(".sl-inspector").focus()
    pressed(live, "Home")
    for _ in range(100):
        if python(live, "print(inspector.frame)") == "1":
            break
    else:
        pytest.fail("Python never heard where the view stands")
    live.evaluate(MOVE_AND_SAVE)
    says(live, ".answer", "saved as stalled")
    expect(at(live, ".place")).to_have_text("frame 3 of 200")
    for _ in range(100):
        if python(live, "print(inspector.frame)") == "3":
            break
    else:
        pytest.fail("Python never heard of the last move")
    expect(at(live, ".place")).to_have_text("frame 3 of 200")


def test_in_lab_a_hostile_file_is_text_bounded_and_harmless(live: Page) -> None:
    evils = evil().data.decode()
    live.evaluate(DROP, {"files": [[f"{EVIL}.sse", evils]], "x": 0.1})
    says(live, ".answer", "opened ")
    for _ in range(14):
        pressed(live, "ArrowRight")
    pressed(live, "Home", "x", "End")
    python(live, "from streamlab import Recording")
    tiny = "inspector.load(Recording.from_bytes(b'data: {}\\n\\n' * 120_000), 'tiny')"
    python(live, tiny)
    says(live, ".leftout", "frames 50,001 to 120,000 are not drawn")
    assert pressed(live, "End") == "the end of 50,000"
    assert at(live, "*").count() < 2_500


def test_in_lab_what_moves_stays_fluid(
    live: Page, folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nodes = {}
    for frames in (500, 10_000, 50_000):
        python(live, f"from tests_recording import many; inspector.load(many({frames}), 'long')")
        says(live, ".facts >> nth=0", f"{frames:,} frames")
        keys = ["ArrowRight", "ArrowRight", "PageDown", "ArrowLeft"] * 5 + ["End", "Home"] * 4
        found = live.evaluate(TIMES, {"keys": keys, "moves": 25})
        nodes[frames] = at(live, "*").count()
        with capsys.disabled():
            for name, ms in found.items():
                print(
                    f"\n  {frames:,} frames, {name}: {ms['median']:.1f} ms, p90 {ms['p90']:.1f}",
                    end="",
                )
    assert nodes[50_000] < 1.5 * nodes[500] < 3_000  # only what is in sight exists
    live.screenshot(path=tmp_path / "long.png")


@pytest.fixture(scope="module", autouse=True)
def recordings(folder: Path) -> None:
    """What the notebook's kernel makes recordings with: this file's own functions."""
    import inspect

    head = "from streamlab import Chunk, Recording\nfrom streamlab.streams import synth\n\n"
    text = f"{head}{inspect.getsource(many)}\n\nstalled = many(200)\n"
    (folder / "tests_recording.py").write_text(text, "utf-8")
