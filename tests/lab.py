"""Drive a real JupyterLab in a real browser, for tests of what a learner sees.

`Lab(folder)` runs a server over a copy of the folder, with settings of its own; `lab.open(...)`
gives a `Notebook`: run it, read it, take its picture. Lab's own command object runs the cells (it
answers when they are done), so nothing here waits for a guessed time or clicks through menus.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from playwright.sync_api import Browser, Error, Page, TimeoutError, sync_playwright

CHROMIUM_ARGUMENTS = (
    "--no-sandbox",  # a container's root has no sandbox
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
NAMES = "chromium chromium-browser google-chrome google-chrome-stable chrome msedge microsoft-edge"
PLACES = (
    "/usr/bin/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
START = """
import sys
from streamlab.lab import open_lab
sys.exit(open_lab(sys.argv[1], browser=False, more=sys.argv[2:]))
"""
OPTIONS = ("--LabApp.expose_app_in_browser=True", "--ServerApp.log_level=WARN")
#: Where there are Unix sockets, a kernel listens on those. Of a TCP port Jupyter only knows that it
#: was free: until the kernel is up and binds it, any other test's server may. Such a kernel neither
#: runs nor ends (ipykernel 7 waits in `IPKernelApp.close`), and its notebook "connects" for ever.
UNIX = os.name == "posix"
SOCKETS = ("--KernelManager.transport=ipc",) if UNIX else ()
SHORT = "/tmp" if UNIX else None  # such a socket's path has about a hundred bytes
PATIENCE = 60.0  # seconds, for a machine that does other things too; nothing waits this long here


def find_chromium() -> str | None:
    """Return the path of a browser of the Chromium family: STREAMLAB_CHROMIUM, or a usual one."""
    chosen = os.environ.get("STREAMLAB_CHROMIUM")
    found = (place for place in PLACES if Path(place).exists())
    on_path = (path for path in map(shutil.which, NAMES.split()) if path)
    return chosen or next(found, None) or next(on_path, None)


def free_port() -> int:
    """A port that nobody uses: two servers that start at once both take 8888 for free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=list(CHROMIUM_ARGUMENTS)
        )
        try:
            yield browser
        finally:
            browser.close()


class Lab:
    """A JupyterLab over a copy of `folder`, on loopback; nothing of the person's own is used."""

    def __init__(self, folder: Path) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="streamlab-lab-", dir=SHORT))
        self.folder = self.home / "notebooks"
        ignored = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
        shutil.copytree(folder, self.folder, ignore=ignored)
        self.url = self.token = ""
        self.page: Page | None = None

    def __enter__(self) -> Self:
        places = {
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "IPYTHONDIR": "ipython",
        }
        environment = {name: str(self.home / place) for name, place in places.items()}
        environment["JUPYTER_PORT"] = str(free_port())
        with (self.home / "log").open("w") as log:
            self.server = subprocess.Popen(
                [sys.executable, "-c", START, str(self.folder), *OPTIONS, *SOCKETS],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self.wait_until_it_answers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.server.terminate()  # Lab ends its kernels first
        try:
            self.server.wait(PATIENCE)
        finally:
            self.server.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def wait_until_it_answers(self) -> None:
        """Wait for the server; it knows its port itself, and writes it down."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.server.poll() is None:
            if self.answers():
                return
            time.sleep(0.05)
        raise RuntimeError(f"JupyterLab did not start: {(self.home / 'log').read_text()}")

    def answers(self) -> bool:
        """Read address and token from the server's own file, and try them."""
        try:
            (file,) = (self.home / "runtime").glob("jpserver-*.json")
            said = json.loads(file.read_text(encoding="utf-8"))
            self.url, self.token = said["url"], said["token"]
            with urllib.request.urlopen(f"{self.url}api?token={self.token}") as answer:
                return answer.status == 200
        except (OSError, ValueError):  # no file yet, half a file, not listening yet
            return False

    @contextmanager
    def open(
        self, browser: Browser, notebook: str, theme: str = "Light", width: int = 1280
    ) -> Iterator[Notebook]:
        """Open a notebook of the folder in the Light or the Dark theme, its kernel idle.

        The kernel is a fresh one, and ends with the `with`: Lab itself would keep it. Lab's own
        page stays, for to load its scripts takes longer than anything else; where something went
        wrong, the next notebook gets a new one.
        """
        page = self.loaded(browser)
        opened = Notebook(page)

        def note(error: Error) -> None:
            opened.errors.append(str(error))

        page.on("pageerror", note)
        page.set_viewport_size({"width": width, "height": 900})
        page.mouse.move(0, 0)
        try:
            page.evaluate(THEME, f"JupyterLab {theme}")
            light = "true" if theme == "Light" else "false"
            page.locator(f'body[data-jp-theme-light="{light}"]').wait_for(state="attached")
            page.evaluate(OPEN, notebook)
            page.locator(".jp-Notebook").first.wait_for()
            page.locator("#jupyterlab-splash").wait_for(state="detached")
            opened.wait_until_idle()
            yield opened
            page.evaluate(CLOSE)
            page.remove_listener("pageerror", note)
        except BaseException as error:
            if isinstance(error, TimeoutError):  # a kernel that did not start says why there
                error.add_note((self.home / "log").read_text()[-4000:])
            with suppress(Error):  # of a page that is gone already; whatever broke it is told
                page.evaluate(CLOSE)
            page.close()
            raise

    def loaded(self, browser: Browser) -> Page:
        """Lab in a page, with nothing open; one a browser."""
        page = self.page
        if page is not None and not page.is_closed() and page.context.browser is browser:
            return page
        self.page = page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        for seconds in (20, 40, PATIENCE):  # a page of a busy server has been seen to stay empty
            page.goto(f"{self.url}lab?token={self.token}&reset")
            shown = page.locator(".jp-Launcher")
            with suppress(TimeoutError):
                shown.wait_for(timeout=seconds * 1000)
                break
        shown.wait_for()
        return page


@dataclass(frozen=True)
class Notebook:
    """A notebook that is open in a page; `errors` holds the page's uncaught exceptions."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def wait_until_idle(self) -> None:
        """Wait until the kernel is there, and has nothing to do and nothing more to hear.

        What a view sends goes to a thread of its own in the kernel (a subshell), which has no part
        in the kernel's status: a cell that is run in the same millisecond may come before it.
        """
        try:
            self.page.wait_for_function(IDLE)
        except TimeoutError as error:
            error.add_note(json.dumps(self.page.evaluate(STATE), indent=1))
            raise

    def run_all(self) -> None:
        """Run every cell; raise the first cell's error that there is."""
        for _ in range(3):  # the very first "run all" of a page has been seen to do nothing
            self.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
            self.wait_until_idle()
            cells = self.page.evaluate(CELLS)
            if all(cell["count"] for cell in cells):
                break
        else:
            raise RuntimeError(f"not every cell ran: {cells}")
        failures = [cell["error"] for cell in cells if cell["error"]]
        if failures:
            raise RuntimeError(failures[0])

    def outputs(self) -> Sequence[str]:
        """Return each code cell's output as the text that a person sees."""
        return self.page.locator(".jp-CodeCell .jp-OutputArea").all_inner_texts()

    def screenshot(self, path: Path) -> Path:
        """Save a picture of the page; return its path."""
        self.page.screenshot(path=path)
        return path


THEME = "async theme => { await jupyterapp.commands.execute('apputils:change-theme', { theme }); }"
OPEN = "async path => { await jupyterapp.commands.execute('docmanager:open', { path }); }"
#: End every document's kernel and close it, whatever was changed in it, without a question. The
#: launcher stays: Lab would put another one in an empty place, at a moment of its own.
CLOSE = """
async () => {
  for (const widget of [...jupyterapp.shell.widgets('main')].filter(widget => widget.context)) {
    await widget.sessionContext?.shutdown();
    widget.dispose();
  }
}
"""
CONTEXT = "globalThis.jupyterapp?.shell.currentWidget?.sessionContext"
IDLE = f"""
() => {{
  const kernel = {CONTEXT}?.session?.kernel;
  const waiting = [...(kernel?._futures?.values() ?? [])].map(future => future.msg.header.msg_type);
  return kernel?.status === 'idle' && !waiting.includes('comm_msg');
}}
"""
#: All that `IDLE` looks at, and what could be in its way: for the error of who has waited in vain.
STATE = f"""
() => {{
  const context = {CONTEXT};
  const kernel = context?.session?.kernel;
  const futures = [...(kernel?._futures?.values() ?? [])];
  const widgets = [...(globalThis.jupyterapp?.shell.widgets('main') ?? [])];
  return {{
    current: globalThis.jupyterapp?.shell.currentWidget?.title.label ?? null,
    open: widgets.map(widget => widget.title.label),
    questions: [...document.querySelectorAll('.jp-Dialog')].map(dialog => dialog.innerText),
    context: context?.kernelDisplayStatus ?? null,
    session: context?.session?.id ?? null,
    kernel: kernel?.id ?? null,
    status: kernel?.status ?? null,
    connection: kernel?.connectionStatus ?? null,
    unsent: kernel?._pendingMessages?.map(message => message.header.msg_type) ?? [],
    waiting: futures.map(future => future.msg.header.msg_type),
  }};
}}
"""
CELLS = """
() => jupyterapp.shell.currentWidget.content.widgets
  .filter(cell => cell.model.type === 'code' && cell.model.sharedModel.source.trim())
  .map(cell => {
    const failed = cell.model.outputs.toJSON().find(output => output.output_type === 'error');
    return {
      count: cell.model.executionCount,
      error: failed ? `${failed.ename}: ${failed.evalue}` : null,
    };
  })
"""
