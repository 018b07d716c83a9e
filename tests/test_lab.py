"""`streamlab lab`, seen with a browser: a notebook runs, its widgets are alive, in both themes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from streamlab import lab as lab_command
from streamlab.errors import UsageError
from tests import conftest
from tests.lab import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.lab import Lab

WIDGET = """\
import anywidget, traitlets

class Counter(anywidget.AnyWidget):
    _esm = '''
    export default { render({ model, el }) {
      const button = document.createElement("button");
      button.className = "counter";
      const draw = () => { button.textContent = `count ${model.get("n")}`; };
      button.onclick = () => { model.set("n", model.get("n") + 1); model.save_changes(); };
      model.on("change:n", draw);
      draw();
      el.append(button);
    } }'''
    n = traitlets.Int(41).tag(sync=True)

counter = Counter()
counter"""
LABEL = """\
import ipywidgets
label = ipywidgets.Label()
counter.observe(lambda change: setattr(label, "value", f"python saw {change.new}"), "n")
label"""


HOSTS = "performance.getEntriesByType('resource').map(entry => new URL(entry.name).hostname)"
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def write_notebook(path: Path, *sources: str) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=KERNEL), path)


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_widget_lives_and_nothing_foreign_is_asked(
    lab: Lab, browser: Browser, theme: str, tmp_path: Path
) -> None:
    write_notebook(lab.folder / "two cells.ipynb", WIDGET, LABEL)
    with lab.open(browser, "two cells.ipynb", theme) as notebook:
        notebook.run_all()
        button = notebook.page.locator("button.counter")
        assert button.inner_text() == "count 41"
        button.click()
        notebook.page.get_by_text("python saw 42").wait_for()  # browser -> kernel -> browser
        assert notebook.errors == []
        assert notebook.screenshot(tmp_path / "page.png").stat().st_size > 10_000
        assert set(notebook.page.evaluate(HOSTS)) == {"127.0.0.1"}
        assert notebook.page.locator(".jp-Dialog, .Toastify__toast").count() == 0


@pytest.mark.browser
def test_a_failing_cell_fails_the_run(lab: Lab, browser: Browser) -> None:
    write_notebook(lab.folder / "failing.ipynb", "1 / 0")
    with (
        lab.open(browser, "failing.ipynb") as notebook,
        pytest.raises(RuntimeError, match="ZeroDivisionError: division by zero"),
    ):
        notebook.run_all()


@pytest.mark.parametrize(
    ("in_ci", "outcome"),
    [(False, pytest.skip.Exception), (True, pytest.fail.Exception)],
    ids=["a person's machine skips", "CI fails"],
)
def test_without_a_browser(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    in_ci: bool,
    outcome: type[BaseException],
) -> None:
    monkeypatch.setattr(conftest, "find_chromium", lambda: None)
    monkeypatch.setattr(conftest, "CI", in_ci)
    conftest.pytest_runtest_setup(request.node)  # this test needs no browser
    request.node.add_marker(pytest.mark.browser)
    with pytest.raises(outcome, match="no Chromium, Chrome or Edge here"):
        conftest.pytest_runtest_setup(request.node)


def test_lab_opens_the_first_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_command, "NOTEBOOKS", tmp_path)
    for name in ("01_anatomy.ipynb", "00_start_here.ipynb", "README.md"):
        (tmp_path / name).touch()
    assert lab_command.first_notebook() == tmp_path / "00_start_here.ipynb"


def test_without_notebooks_lab_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_command, "NOTEBOOKS", tmp_path / "notebooks")
    with pytest.raises(UsageError, match=r"not part of the installed package.*checkout"):
        lab_command.open_lab()


def test_a_notebook_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.ipynb: no such notebook"):
        lab_command.open_lab(str(tmp_path / "missing.ipynb"))


def opened(address: str) -> Any:
    """The page at an address; on a busy machine it may take a moment until anybody listens."""
    for _ in range(50):
        try:
            return urllib.request.urlopen(address)
        except urllib.error.URLError:
            time.sleep(0.1)
    return urllib.request.urlopen(address)


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        (["--IdentityProvider.token="], ""),
        (["--IdentityProvider.token=room-7"], ""),
        ([], r"\?token=[0-9a-f]{48}"),
    ],
    ids=["no token", "a person's own token", "Jupyter's token"],
)
def test_the_last_line_is_the_address_that_opens_the_lesson(
    tmp_path: Path, given: list[str], printed: str
) -> None:
    write_notebook(tmp_path / "a lesson.ipynb", "1 + 1")
    code = "import sys; from streamlab.lab import open_lab\n"
    code += "open_lab(sys.argv[1], browser=False, more=sys.argv[2:])"
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    environment = {**os.environ, **{name: str(tmp_path / name) for name in names}}
    environment.pop("JUPYTER_TOKEN", None)
    environment["JUPYTER_PORT"] = str(free_port())
    command = [sys.executable, "-c", code, str(tmp_path / "a lesson.ipynb"), *given]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    ) as server:
        try:
            assert server.stdout is not None
            lines = [server.stdout.readline().rstrip() for _ in range(3)]
            assert lines[:2] == ["", "Open this in a browser:"]
            address = rf"http://127\.0\.0\.1:\d+/lab/tree/a%20lesson\.ipynb{printed}"
            assert re.fullmatch(address, lines[2])
            if "room-7" not in "".join(given):
                with opened(lines[2]) as answer:
                    assert answer.url == lines[2] and b"JupyterLab" in answer.read()
        finally:
            server.terminate()
            _, said = server.communicate()
    assert "room-7" not in said


def test_lab_listens_on_loopback_only() -> None:
    said = lab_command.arguments(Path("a.ipynb"), port=8899, browser=False)
    assert "--ServerApp.ip=127.0.0.1" in said
    assert {"--ServerApp.port=8899", "--no-browser"} < set(said)


def test_jupyters_own_address_is_the_lessons_too(tmp_path: Path) -> None:
    lesson = tmp_path / "00-start here.ipynb"
    lesson.touch()
    setting = "--LabApp.default_url=/lab/tree/00-start%20here.ipynb"
    assert setting in lab_command.arguments(lesson)
    assert not any("default_url" in word for word in lab_command.arguments(tmp_path))
