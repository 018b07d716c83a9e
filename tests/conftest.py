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
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

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
    config.stash[STARTED] = []
    config.stash[SHARED] = shared = SharedBrowser()
    config.add_cleanup(shared.end)


@pytest.hookimpl(optionalhook=True)  # xdist's
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Where several processes share the tests, give each whole files, whatever `--dist` says.

    What a module's tests share is then set up once. `--dist loadgroup` with a mark on each test
    says the same, but not to pytest 9.2: xdist 3.8 hands the group on as the item's `_nodeid`,
    which pytest no longer reads, and each test goes where there is room (pytest-xdist issue 1386).
    """
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


#: Files that take longest, after the browser's: what begins last must be short.
LONG = (
    "test_mutants.py",
    "test_notebooks.py",
    "test_masking.py",
    "test_checkout.py",
    "test_explorer.py",
    "test_proxies.py",
    "test_crash.py",
    "test_report_card.py",
    "test_peer_metrics.py",
    "test_lesson_09.py",
    "test_layers.py",
    "test_openai_chat.py",
    "test_faults.py",
    "test_laws.py",
    "test_ledger.py",
)


class SharedBrowser:
    """This process's browser: it starts for the first test that needs it.

    It ends with the files of such tests: while it runs, this thread has a running asyncio loop, and
    no test could call `asyncio.run`. That those files come one after the other (below) saves a
    start, and the loading of Lab's scripts, for each of them.
    """

    def __init__(self) -> None:
        self.open = ExitStack()
        self.browser: Browser | None = None

    def started(self) -> Browser:
        if self.browser is None:
            self.browser = self.open.enter_context(chromium())
        return self.browser

    def end(self) -> None:
        self.browser = None
        self.open.close()


SHARED = pytest.StashKey[SharedBrowser]()
#: The tests that this process has begun, in their order.
STARTED = pytest.StashKey[list[pytest.Item]]()
#: The files that hold a test with a browser.
BROWSING = pytest.StashKey[set[Path]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the tests, let the browser's and the long files come first."""
    browsing = {item.path for item in items if item.get_closest_marker("browser")}
    config.stash[BROWSING] = browsing
    if not hasattr(config, "workerinput"):
        return

    def turn(item: pytest.Item) -> int:
        """When a test's file has its turn; equals keep their order."""
        if item.path in browsing:
            return 0
        return 1 + LONG.index(item.path.name) if item.path.name in LONG else 1 + len(LONG)

    items.sort(key=turn)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a browser test where there is no browser, but in CI let it fail."""
    item.config.stash[STARTED].append(item)
    if item.path not in item.config.stash[BROWSING]:
        item.config.stash[SHARED].end()
    if item.get_closest_marker("browser") and not find_chromium():
        reason = "no Chromium, Chrome or Edge here (STREAMLAB_CHROMIUM names one)"
        if CI:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def browser(pytestconfig: pytest.Config) -> Browser:
    """A browser without a window; it may have been open for another file."""
    return pytestconfig.stash[SHARED].started()


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
