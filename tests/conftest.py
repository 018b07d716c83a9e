"""What all tests share: a browser, Hypothesis' profiles, and how golden files are renewed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.lab import Lab, chromium, find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CI = os.environ.get("CI") == "true"

# No deadline: a test's time on a busy machine says nothing. In CI every run tries the same cases.
settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if CI else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew; review the diff"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep the order of `pytest_collection_modifyitems`: many tests are not yet a long file."""
    if hasattr(config.option, "loadscopereorder"):  # else one process runs all
        config.option.loadscopereorder = False


#: Files that take longest, after the browser's: what begins last must be short.
LONG = (
    "test_mutants.py",
    "test_notebooks.py",
    "test_explorer.py",
    "test_checkout.py",
    "test_faults.py",
    "test_crash.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the tests, a file stays in one, and the long ones come first.

    A file's tests with a browser are a group of their own: what follows in the same process may
    need a thread in which no event loop runs.
    """
    shared = getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput")
    if not shared or not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        browses = item.get_closest_marker("browser") is not None
        item.add_marker(pytest.mark.xdist_group(f"{item.path.name}{' in a browser' * browses}"))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """When an item's group has its turn; equals keep their order."""
    if item.get_closest_marker("browser"):
        return 0
    return 1 + LONG.index(item.path.name) if item.path.name in LONG else 1 + len(LONG)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a browser test where there is no browser, but in CI let it fail."""
    if item.get_closest_marker("browser") and not find_chromium():
        reason = "no Chromium, Chrome or Edge here (STREAMLAB_CHROMIUM names one)"
        if CI:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window, one a module.

    Not one a session: while it runs, this thread has a running asyncio loop, and no test beside
    it could call `asyncio.run`.
    """
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab over a copy of the lessons, one a process; its kernels use this checkout.

    A test may write a notebook of its own into `lab.folder`.
    """
    from tests.refresh_notebooks import NOTEBOOKS, kernel_environment  # half a second

    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # the server hands it on to its kernels
            environment = kernel_environment(str(tmp_path_factory.mktemp("ipython")))
            patch.setenv("PYTHONPATH", environment["PYTHONPATH"])
            running = stack.enter_context(Lab(NOTEBOOKS))
        yield running


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file; with --update-golden, write the file instead."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8"), f"differs from {path} (--update-golden)"

    return compare
