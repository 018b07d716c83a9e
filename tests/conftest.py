"""What all tests share: a browser, Hypothesis' profiles, and how golden files are renewed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.lab import chromium, find_chromium

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the tests, a file stays in one, and the browsers all in one.

    Two browsers at a time would measure each other.
    """
    for item in items:
        group = "browser" if item.get_closest_marker("browser") else item.path.name
        item.add_marker(pytest.mark.xdist_group(group))


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


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file; with --update-golden, write the file instead."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8"), f"differs from {path} (--update-golden)"

    return compare
