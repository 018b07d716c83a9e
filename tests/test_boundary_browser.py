"""The byte-boundary explorer in a real JupyterLab: by mouse and by key, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.sync_api import expect

from streamlab.study.boundaries import EXPECTED, shown
from tests.lab import PATIENCE, Lab, Notebook
from tests.refresh_notebooks import KERNEL
from tests.test_stepper_browser import PALE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE * 1000)

EVIL = "<img src=x onerror=document.title='owned'>"
FILE = "explorer.ipynb"
SOURCES = (
    "from streamlab.widgets.boundary import BoundaryExplorer\nview = BoundaryExplorer()\nview",
    f'evil = b"data: {EVIL}\\n\\n"\nBoundaryExplorer(stream=evil)',
)
CELLS = "jupyterapp.shell.currentWidget.content.widgets.length"
RIGHT = [shown(event) for event in EXPECTED]


@pytest.fixture(scope="module", autouse=True)
def notebook_to_open(lab: Lab) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in SOURCES]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    nbformat.write(notebook, lab.folder / FILE)


@contextmanager
def opened(
    lab: Lab, browser: Browser, theme: str = "Light", width: int = 1280
) -> Iterator[tuple[Notebook, Locator]]:
    """Run the notebook; it and the first explorer."""
    with lab.open(browser, FILE, theme, width) as notebook:
        try:
            notebook.run_all()
            view = notebook.page.locator(".sl-boundary").first
            expect(view).to_be_visible()
            yield notebook, view
            assert notebook.errors == []
        finally:
            notebook.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.shutdown()")


def choose(view: Locator, reader: str = "", delivery: str = "") -> None:
    """Choose from the two lists."""
    for label, option in (("naive reader", reader), ("the stream comes", delivery)):
        if option:
            view.get_by_label(label, exact=True).select_option(label=option)


def panel(view: Locator, whose: str) -> Locator:
    return view.get_by_role("region", name=whose, exact=True)


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_place_that_fails_is_marked_and_the_mouse_goes_there(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    with opened(lab, browser, theme) as (notebook, view):
        expect(view).to_contain_text("Keep all the text, but decode each read by itself.")
        expect(view).to_contain_text("fails at 9 of 95 places: 1, 2, 12, 14, 18 to 20, 88, 89")
        expect(view.locator(".strip .fail")).to_have_count(9)
        expect(view.locator(".flag", has_text="✕")).to_have_count(9)
        expect(panel(view, "naive")).to_contain_text("✓ right")
        view.locator(".byte").nth(12).click()
        expect(view).to_contain_text("place 12 of 95, inside ü, which has 2 bytes")
        expect(panel(view, "naive")).to_contain_text("✕ raisesUnicodeDecodeError: ")
        expect(panel(view, "ours")).to_contain_text("✓ right")
        assert panel(view, "ours").locator(".data").all_inner_texts() == RIGHT
        view.get_by_role("button", name="next place that fails").click()
        expect(view).to_contain_text("place 14 of 95, inside ß")
        choose(view, "tidy_line_ends_in_each_read")
        expect(view).to_contain_text("fails at 2 of 95 places: 48, 62")
        view.get_by_role("slider").fill("48")
        expect(panel(view, "naive")).to_contain_text("✕ missing: first⟨LF⟩second")
        assert notebook.page.evaluate(PALE.replace(".sl-stepper", ".sl-boundary")) == []
        notebook.screenshot(tmp_path / f"{theme}.png")


def test_keys_move_the_cut_and_stay_out_of_the_notebooks_way(lab: Lab, browser: Browser) -> None:
    with opened(lab, browser) as (notebook, view):
        count = notebook.page.evaluate(CELLS)
        choose(view, "decode_each_read")
        keys = ("n n n", "ArrowLeft", "Home", "p", "End ArrowLeft", "End ArrowRight", "n")
        places = (12, 11, 0, 89, 94, 95, 1)  # n and p go round the end
        view.focus()
        for pressed, place in zip(keys, places, strict=True):
            for key in pressed.split():
                notebook.page.keyboard.press(key)
            expect(view).to_contain_text(f"place {place} of 95" if place else "none yet (0 of 95)")
        for key in "bda":  # in command mode: new cells above and below, and half of a deletion
            notebook.page.keyboard.press(key)
        view.get_by_role("slider").focus()
        notebook.page.keyboard.press("ArrowRight")
        expect(view.get_by_role("status")).to_contain_text("place 2 of 95, inside the byte order")
        assert notebook.page.evaluate(CELLS) == count


def test_joined_reads_break_the_reader_that_no_cut_breaks(lab: Lab, browser: Browser) -> None:
    with opened(lab, browser) as (_, view):
        choose(view, "until_a_blank_line")
        expect(view).to_contain_text("fails at none of 95 places")
        expect(view.get_by_role("button", name="next place that fails")).to_be_disabled()
        choose(view, delivery="byte by byte")
        expect(view).to_contain_text("right, cut at every place at once")
        expect(view.get_by_role("slider")).to_be_disabled()
        choose(view, delivery="all at once")
        expect(view).to_contain_text("fails at 95 of 95 places; and without a cut too")
        expect(panel(view, "naive")).to_contain_text("✕ never sent")


def test_the_kernel_moves_the_view_and_a_narrow_one_keeps_the_cut_in_sight(
    lab: Lab, browser: Browser
) -> None:
    with opened(lab, browser, width=700) as (notebook, view):
        notebook.page.evaluate(
            "jupyterapp.shell.currentWidget.content.widgets[1].model.sharedModel"
            ".setSource('view.goto(20)\\nview.reader = 4')"
        )
        notebook.run_all()  # makes the first view anew, and then moves it
        view = notebook.page.locator(".sl-boundary").first
        expect(view).to_contain_text("place 20 of 95, inside 🐋")
        expect(view.get_by_label("naive reader", exact=True)).to_have_value("4")
        expect(view.locator(".byte.cut")).to_be_in_viewport()
        view.press("End")
        expect(view.locator(".byte.cut")).to_be_in_viewport()


def test_hostile_text_stays_text(lab: Lab, browser: Browser) -> None:
    with opened(lab, browser) as (notebook, _):
        view = notebook.page.locator(".sl-boundary").nth(1)
        expect(panel(view, "ours").locator(".data")).to_have_text(EVIL)
        assert view.locator("img").count() == 0
        assert notebook.page.title() != "owned"
