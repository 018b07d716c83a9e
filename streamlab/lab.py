"""Open JupyterLab on the lessons: on loopback only, with nothing fetched from elsewhere.

Jupyter is imported when it is needed, so that the other commands start without it.
Read next: the first notebook.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote, urlsplit

from streamlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["address", "arguments", "first_notebook", "open_lab"]

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parent / "notebooks"


def open_lab(
    notebook: str | None = None,
    port: int | None = None,
    browser: bool = True,
    more: Sequence[str] = (),
) -> NoReturn:
    """Run JupyterLab until it is stopped, and end the process; `more` goes to it as it is."""
    path = Path(notebook) if notebook else first_notebook()
    if not path.exists():
        raise UsageError(f"{path}: no such notebook")
    # labconfig/ beside this file switches one plugin off, for this server alone: the one that
    # fetches news, looks for updates, and asks whether it may. A person's own settings stay.
    others = os.environ.get("JUPYTER_CONFIG_PATH")
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, (str(HERE), others)))
    from jupyterlab.labapp import main
    from tornado.ioloop import IOLoop

    IOLoop.current().add_callback(announce)  # it runs as soon as the server does
    main([*arguments(path.resolve(), port, browser), *more])
    leave()


def announce() -> None:
    """Print the lesson's address, after all that Jupyter says of itself."""
    from jupyter_server.serverapp import ServerApp

    server = ServerApp.instance()
    given = not server.identity_provider.token_generated
    sys.stderr.flush()
    print(f"\nOpen this in a browser:\n{address(server.local_url, given)}", flush=True)


def address(url: str, given: bool) -> str:
    """Return Jupyter's address of the lesson; a token that a person has `given` stays unsaid.

    >>> address("http://127.0.0.1:8888/lab/tree/a.ipynb?token=...", given=True)
    'http://127.0.0.1:8888/lab/tree/a.ipynb'
    """
    return urlsplit(url)._replace(query="").geturl() if given else url


def leave() -> NoReturn:
    """End the process now that the server has stopped and cleaned up.

    The interpreter would first wait for all threads, and now and then one of Jupyter's worker
    threads (anyio's) waits for ever: Ctrl-C would seem to hang.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def first_notebook() -> Path:
    """Return the checkout's first lesson."""
    lessons = sorted(NOTEBOOKS.glob("00*.ipynb"))
    if not lessons:
        raise UsageError(
            "the notebooks are not part of the installed package: "
            "start `lab` in a source checkout, or name a notebook"
        )
    return lessons[0]


def arguments(notebook: Path, port: int | None = None, browser: bool = True) -> list[str]:
    """Return JupyterLab's arguments for one notebook or folder."""
    chosen = [str(notebook), "--ServerApp.ip=127.0.0.1"]
    chosen += ["--LanguageServerManager.autodetect=False"]  # a line about 20 that are not there
    if notebook.is_file():  # for every address that is printed, not for our own browser alone
        chosen += [f"--LabApp.default_url=/lab/tree/{quote(notebook.name)}"]
    if port is not None:
        chosen += [f"--ServerApp.port={port}"]
    if not browser:
        chosen += ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        chosen += ["--allow-root"]  # in a container; Jupyter refuses otherwise
    return chosen
