"""The forwarder's page in a real browser: one bubble a turn, cards, leaving, strangers' texts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from streamlab.consumer.toolloop import Ask
from streamlab.consumer.turn_events import TOLD, TurnState
from streamlab.streams import faults, rounds, synth
from streamlab.streams.forward import Forwarder
from streamlab.streams.parts import Text, Thinking, ToolCall
from streamlab.streams.server import FaultServer
from streamlab.streams.upstream import Replay, Upstream
from streamlab.study.turns import Items, three_rounds
from tests.lab import PATIENCE
from tests.loopback import HELLO, frames, pausing
from tests.test_forward import Steps
from tests.test_stepper_browser import PALE
from tests.tools_for_tests import Asker, Desk, stream

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

QUESTION = "What about W-7, W-8 and W-9?"


@contextmanager
def opened(browser: Browser, server: Forwarder, **options: Any) -> Iterator[Page]:
    """The page, in a context of its own; nothing may go wrong in it, unnoticed or noticed."""
    context = browser.new_context(viewport={"width": 900, "height": 760}, **options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("request", lambda asked: asked.url.startswith(server.url) or wrong.append(asked.url))
    page.goto(server.url)
    yield page
    context.close()
    assert wrong == []


def send(page: Page, question: str = "") -> None:
    """Ask, by keyboard."""
    if question:
        page.get_by_label("Question").fill(question)
    page.get_by_label("Question").press("Enter")


def state(page: Page) -> Locator:
    return page.get_by_role("status").last


def shown(page: Page, wanted: TurnState) -> None:
    """Wait until the turn has ended so."""
    expect(state(page)).to_contain_text(f"{wanted} {TOLD[wanted]}", timeout=PATIENCE * 1000)


def three(ask: Ask | None = None, **options: Any) -> Forwarder:
    """A server with the turn of three rounds, four calls, and one tool that fails."""
    asked = (ask or Replay(*three_rounds()), Items().tools, rounds.READING)
    return Forwarder(*asked, suggestion=QUESTION, **options)


def test_a_turn_of_three_rounds_with_tools_is_one_bubble_and_its_cards_are_folded(
    browser: Browser,
) -> None:
    with three() as server, opened(browser, server) as page:
        send(page)
        shown(page, TurnState.ANSWERED)
        expect(page.locator(".bubble")).to_have_count(1)
        expect(page.locator(".asks")).to_have_text(QUESTION)
        expect(page.locator(".bubble p.text")).to_have_text(
            [
                "I'll look at the first two.",
                "Now the third.",
                "W-7 is a draft, W-8 is open, and there is no W-9.",
            ]
        )
        cards = page.locator("details.card")
        assert cards.evaluate_all("found => found.map(el => el.open)") == [False] * 3
        expect(cards.locator(".chip .word")).to_have_text(["done", "done", "error"])
        expect(cards.locator(".brief")).to_have_text(["W-7", "W-8", "W-9"])
        expect(page.locator(".rounds")).to_have_text("round 3")
        assert "{" not in page.inner_text("main")


def test_a_card_opens_by_keyboard_and_has_what_the_tool_was_given_and_gave(
    browser: Browser,
) -> None:
    with three() as server, opened(browser, server) as page:
        send(page)
        shown(page, TurnState.ANSWERED)
        card = page.locator("details.card").last
        page.locator("body").press("Home")
        summary = card.locator("summary")
        for _ in range(20):
            page.keyboard.press("Shift+Tab")
            if summary.evaluate("el => el === document.activeElement"):
                break
        expect(summary).to_be_focused()
        expect(card.locator("dd")).to_be_hidden()
        page.keyboard.press("Enter")
        expect(card.locator("dt")).to_have_text("item")
        expect(card.locator("dd")).to_be_visible()
        expect(card.locator("dd")).to_have_text("W-9")
        expect(card.locator(".result")).to_have_text("LookupError: there is no W-9")
        page.keyboard.press("Space")
        expect(card.locator("dd")).to_be_hidden()


def test_a_card_that_was_opened_stays_open_while_its_chip_changes(browser: Browser) -> None:
    gate = threading.Event()

    async def waits(number: int, item: str) -> str:
        await asyncio.to_thread(gate.wait, 30)
        return "a draft"

    answers = Asker(*rounds.lookup_then_answer())
    with (
        Forwarder(answers, Desk(waits).tools, rounds.READING) as server,
        opened(browser, server) as page,
    ):
        send(page)
        card = page.locator("details.card")
        expect(card.locator(".word")).to_have_text("running")
        card.locator("summary").click()
        gate.set()
        shown(page, TurnState.ANSWERED)
        expect(card.locator(".word")).to_have_text("done")
        expect(card.locator(".result")).to_be_visible()


def test_while_an_input_grows_only_its_size_is_on_the_page(browser: Browser) -> None:
    steps = Steps()
    blocks = frames(synth.pay_invoice().data)
    with Forwarder(steps) as server, opened(browser, server) as page:
        send(page)
        steps.give(b"".join(blocks[:11]))  # it ends with `"amount": 1`
        brief = page.locator("details.card .brief")
        expect(brief).to_contain_text("characters of input")
        expect(page.locator(".card .word")).to_have_text("streaming")
        assert "amount" not in page.content()
        steps.give(b"".join(blocks[11:]))
        steps.give()
        shown(page, TurnState.PROPOSED)
        expect(page.locator(".card .word")).to_have_text("proposed")
        assert "100000" in brief.inner_text()
        assert "{" not in page.inner_text("main")


def test_text_is_on_the_page_before_the_stream_is_over(browser: Browser) -> None:
    steps = Steps()
    blocks = frames(HELLO)
    with Forwarder(steps) as server, opened(browser, server) as page:
        send(page)
        for block in blocks[:3]:
            steps.give(block)
        expect(page.locator("p.text")).to_have_text("Hel")
        expect(state(page)).to_contain_text("under way")
        steps.give(b"".join(blocks[3:]))
        steps.give()
        shown(page, TurnState.ANSWERED)
        expect(page.locator("p.text")).to_have_text("Hello")


def test_what_a_failed_round_has_shown_is_struck_through_and_the_end_says_why(
    browser: Browser,
) -> None:
    cut = faults.disconnect(synth.change_label(), 14, "reset")
    with (
        FaultServer(cut) as behind,
        Forwarder(Upstream(behind.url)) as server,
        opened(browser, server) as page,
    ):
        send(page)
        shown(page, TurnState.INCOMPLETE)
        expect(page.locator(".card .word")).to_have_text("discarded")
        line = page.locator("p.text").evaluate("el => getComputedStyle(el).textDecorationLine")
        assert line == "line-through"
        expect(page.locator(".why")).to_be_visible()
        expect(page.locator(".problems li").first).to_be_visible()


def test_an_error_behind_is_said_and_the_form_is_ready_again(browser: Browser) -> None:
    with (
        FaultServer(529) as behind,
        Forwarder(Upstream(behind.url)) as server,
        opened(browser, server) as page,
    ):
        send(page)
        shown(page, TurnState.INVALID)
        expect(page.locator(".why")).to_contain_text("HTTP 529, overloaded_error")
        expect(page.locator("#send")).to_have_attribute("aria-disabled", "false")


# --- Leaving --------------------------------------------------------------------------------------


def close(page: Page) -> None:
    page.close()


def go_away(page: Page) -> None:
    page.goto("about:blank")


def press_stop(page: Page) -> None:
    page.get_by_role("button", name="Stop").click()


def press_escape(page: Page) -> None:
    page.keyboard.press("Escape")


def reload(page: Page) -> None:
    page.reload()


LEAVING = [close, go_away, press_stop, press_escape, reload]


@pytest.mark.parametrize("leave", LEAVING, ids=lambda leave: leave.__name__)
def test_who_leaves_the_page_closes_the_stream_behind(
    browser: Browser, leave: Callable[[Page], None]
) -> None:
    blocks = frames(HELLO)
    with (
        FaultServer(pausing(*blocks), speed=1.0) as behind,
        Forwarder(Upstream(behind.url)) as server,
        opened(browser, server) as page,
    ):
        send(page)
        expect(page.locator("p.text")).to_have_text("Hello")
        assert behind.log == () and server.log == ()
        leave(page)
        (served,) = behind.wait(1)
        (log,) = server.wait(1)
    assert served.ended == "client gone" and served.chunks < len(blocks)
    assert (log.ended, log.state) == ("client gone", TurnState.CANCELLED)


def test_what_was_stopped_says_that_it_is_not_complete_and_another_turn_can_begin(
    browser: Browser,
) -> None:
    steps = Steps()
    with Forwarder(steps) as server, opened(browser, server) as page:
        send(page, "first")
        steps.give(HELLO)
        expect(page.locator("p.text")).to_have_text("Hello")
        press_stop(page)
        expect(state(page)).to_contain_text("STOPPED")
        assert steps.closed.wait(10)
        steps.asked.clear()
        send(page, "second")
        steps.give(HELLO)
        steps.give()
        shown(page, TurnState.ANSWERED)
        expect(page.locator(".asks")).to_have_text(["first", "second"])
        expect(page.locator(".bubble")).to_have_count(2)


def test_a_reload_begins_nothing_and_the_next_turn_is_there_once(browser: Browser) -> None:
    asker = Asker(*three_rounds(), *three_rounds())
    with three(asker) as server, opened(browser, server) as page:
        send(page)
        shown(page, TurnState.ANSWERED)
        assert len(asker.requests) == 3
        page.reload()
        expect(page.locator(".bubble")).to_have_count(0)
        assert len(asker.requests) == 3
        send(page)
        shown(page, TurnState.ANSWERED)
        expect(page.locator(".bubble")).to_have_count(1)
        expect(page.locator("details.card")).to_have_count(3)
        assert len(asker.requests) == 6


def test_a_line_that_breaks_is_not_taken_up_again_and_is_said(browser: Browser) -> None:
    steps = Steps()
    with Forwarder(steps) as server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.url)
        send(page)
        steps.give(HELLO)
        expect(page.locator("p.text")).to_have_text("Hello")
        steps.asked.clear()
        server.stop()
        expect(state(page)).to_contain_text("LOST")
        expect(state(page)).to_contain_text("nothing here is complete")
        assert not steps.asked.is_set()
        context.close()


# --- Strangers' texts -----------------------------------------------------------------------------

MARKUP = "<img src=x onerror='globalThis.hit = 1'><script>globalThis.hit = 1</script>&lt;b&gt;"


def test_a_strangers_markup_stays_text_wherever_it_stands(browser: Browser) -> None:
    parts = (
        Thinking(MARKUP, "sig"),
        Text(MARKUP),
        ToolCall("read_item", {"item": MARKUP, MARKUP: MARKUP}),
    )
    with (
        Forwarder(Replay(stream(1, *parts)), suggestion=MARKUP) as server,
        opened(browser, server) as page,
    ):
        send(page)
        shown(page, TurnState.PROPOSED)
        for summary in page.locator("summary").all():
            summary.click()
        expect(page.locator("p.text")).to_have_text(MARKUP)
        expect(page.locator(".asks")).to_have_text(MARKUP)
        expect(page.locator(".thinking p")).to_have_text(MARKUP)
        expect(page.locator("dd")).to_have_text([MARKUP, MARKUP])
        assert page.locator("main img, main script, main b").count() == 0
        assert page.evaluate("globalThis.hit") is None


def test_no_script_could_turn_a_text_into_markup(browser: Browser) -> None:
    with three() as server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.url)
        told = page.evaluate(
            "() => { try { document.body.innerHTML = '<b>x</b>'; return 'done'; }"
            " catch (why) { return why.name; } }"
        )
        context.close()
    assert told == "TypeError"


def test_another_page_cannot_start_a_turn(browser: Browser) -> None:
    asker = Asker(*three_rounds())
    with three(asker) as server, three() as other:
        context = browser.new_context()
        page = context.new_page()
        page.route("**/page.js", lambda route: route.fulfill(body=""))
        page.goto(other.url)
        page.evaluate(
            """async (url) => {
              const plain = { method: "POST", mode: "no-cors", body: '{"question": "x"}' };
              const headers = { "Content-Type": "application/json" };
              const json = { ...plain, mode: "cors", headers };
              for (const how of [plain, json]) await fetch(url, how).catch(() => {});
            }""",
            f"{server.url}/turn",
        )
        context.close()
    assert asker.requests == [] and server.log == ()


# --- How it looks ---------------------------------------------------------------------------------


#: What sticks out of the window, or out of its bubble.
OUTSIDE = """
() => [...document.querySelectorAll("body *")].filter((el) => {
  const box = el.getBoundingClientRect(), bubble = el.closest(".bubble") ?? document.body;
  return box.width && box.right > bubble.getBoundingClientRect().right + 1;
}).map((el) => el.className)
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_can_be_read_in_both_schemes_and_fits_a_narrow_screen(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    wide = ToolCall("a_tool_with_a_long_name", {"text": "many words " * 30, "x": "y" * 300})
    answer = stream(1, Thinking("Hm.", "sig"), Text("Let me look."), wide)
    with (
        FaultServer([answer, faults.disconnect(answer, 12, "reset")]) as behind,
        Forwarder(Upstream(behind.url)) as server,
        opened(browser, server, color_scheme=scheme) as page,
    ):
        send(page)
        shown(page, TurnState.PROPOSED)
        send(page)
        shown(page, TurnState.INCOMPLETE)
        page.locator("summary").first.click()
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(int(n) for n in paper[4:-1].split(",")) > 3 * 128
        assert light == (scheme == "light")
        assert page.evaluate(PALE.replace(".sl-stepper *", "body *")) == []
        page.screenshot(path=tmp_path / f"{scheme}.png")
        page.set_viewport_size({"width": 360, "height": 700})
        page.screenshot(path=tmp_path / f"{scheme}-narrow.png")
        assert page.evaluate(OUTSIDE) == []


def test_however_many_events_come_the_page_is_laid_out_once_a_frame(browser: Browser) -> None:
    """To measure a long text anew for each event takes longer than they come: the page hangs."""
    many = synth.answer([Text(tuple(f"{n} " for n in range(2000)))])
    count = """() => {
        window.measured = window.frames_seen = 0;
        const seen = () => { window.frames_seen += 1; requestAnimationFrame(seen); };
        requestAnimationFrame(seen);
        const real = Object.getOwnPropertyDescriptor(Element.prototype, "scrollHeight").get;
        Object.defineProperty(document.documentElement, "scrollHeight", {
            get() { window.measured += 1; return real.call(this); },
        });
    }"""
    with Forwarder(Replay(many)) as server, opened(browser, server) as page:
        page.evaluate(count)
        send(page, "Count.")
        shown(page, TurnState.ANSWERED)
        expect(page.locator("p.text")).to_contain_text("1999")
        # Before the first event it is measured once more; then twice a frame: to look, and to go.
        assert page.evaluate("window.measured <= 2 * window.frames_seen + 3")
