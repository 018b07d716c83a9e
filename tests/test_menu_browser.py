"""In a browser, what a wire cannot have is in the menu, says why, and asks Python for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamlab.streams import synth
from streamlab.widgets import page
from streamlab.widgets.stepper import Stepper

if TYPE_CHECKING:
    from playwright.sync_api import Browser

#: A model that keeps what the view asks for, in the place of a kernel.
KERNEL = """
window.asked = [];
const model = { get: (name) => state[name], set: (name, value) => { state[name] = value; },
  on() {}, off() {}, save_changes() {}, send: (it) => it.request && window.asked.push(it.request) };
render({ model, el: document.getElementById("view") });
"""


def live(stepper: Stepper) -> str:
    """A page in which the view thinks that Python is there."""
    names = ("trace", "machine", "menu", "at")
    state = json.dumps({name: getattr(stepper, name) for name in names} | {"answer": {}})
    script = f"const state = {state.replace('<', chr(92) + 'u003c')};\n{KERNEL}"
    return (
        f'<!doctype html><meta charset="utf-8"><style>{page.style()}</style><main id="view"></main>'
        f'<script type="module">{page.module()}{script}</script>'
    )


@pytest.mark.browser
def test_what_the_wire_cannot_have_is_shown_with_its_reason_and_cannot_be_chosen(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "stepper.html"
    file.write_text(live(Stepper(synth.change_label(wire="gemini"))), "utf-8")
    tab = browser.new_page(viewport={"width": 1200, "height": 1000})
    try:
        tab.goto(file.as_uri())
        tab.locator(".more").click()
        gap = tab.get_by_role("menuitem", name="index gap", exact=True)
        assert gap.get_attribute("aria-disabled") == "true"
        gap.hover()
        reason = "Not on this wire: the parts of a Gemini answer have no numbers, so no number can"
        assert tab.locator(".menu .says").inner_text().startswith(reason)
        gap.click(force=True)
        gap.press("Enter")
        assert tab.locator(".menu").is_visible()
        assert tab.evaluate("asked") == []
        skip = tab.get_by_role("menuitem", name="skip", exact=True)
        assert skip.get_attribute("aria-disabled") is None
        skip.click()
        assert [it["fault"] for it in tab.evaluate("asked")] == ["skip"]
    finally:
        tab.screenshot(path=tmp_path / "menu.png")
        tab.close()
