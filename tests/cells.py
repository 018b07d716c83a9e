"""Run the cells of a lesson that is open in JupyterLab, by their ids, and see what they put out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab import Notebook

if TYPE_CHECKING:
    from playwright.sync_api import Locator

#: The place of a cell, by its id.
PLACE = """
id => jupyterapp.shell.currentWidget.content.widgets.findIndex(cell => cell.model.id === id)
"""
SCROLL = "place => jupyterapp.shell.currentWidget.content.scrollToItem(place)"
#: Run the cell at a place, and show it.
RUN = """
async place => {
  const notebook = jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = place;
  notebook.deselectAll();
  await notebook.scrollToItem(place);
  await jupyterapp.commands.execute('notebook:run-cell');
}
"""


def shown(notebook: Notebook, id: str) -> Locator:
    """What a cell has put out, in view."""
    place = notebook.page.evaluate(PLACE, id)
    notebook.page.evaluate(SCROLL, place)
    cell = notebook.page.locator(f'.jp-Cell[data-windowed-list-index="{place}"]')
    return cell.locator(".jp-OutputArea")


def run(notebook: Notebook, *ids: str) -> Locator:
    """Run some cells, one after the other; what the last one put out."""
    for id in ids:
        notebook.wait_until_idle()  # what a view has sent is heard
        notebook.page.evaluate(RUN, notebook.page.evaluate(PLACE, id))
        notebook.wait_until_idle()
    return shown(notebook, ids[-1])
