"""Breaking the library on purpose: every mistake that the course warns of is caught, and twice.

Each mutant is one mistake, made in a copy of the checkout. A test file must fail on it, and so must
the lesson that teaches it: a course whose outputs stay the same when the code is wrong proves
nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.refresh_notebooks import ROOT, kernel_environment

COPIED = ("streamlab", "tests", "notebooks", "fixtures", "pyproject.toml")


class Mutant(NamedTuple):
    """One mistake: where it is made, and what must notice."""

    file: str
    right: str
    wrong: str
    test: str
    lesson: str


MUTANTS = {
    "a fragment goes to the block that started last": Mutant(
        "consumer/turn.py",
        "old = opened[0] if len(opened) == 1 else _find(turn, event.segment)\n"
        "    if old is None or old.id != event.segment:",
        "old = opened[-1] if opened else None\n    if old is None:",
        "test_claude.py",
        "03-assembling",
    ),
    "a stop closes the block that started last": Mutant(
        "consumer/turn.py",
        "segment = _find(turn, event.segment)\n    if segment is None:",
        "segment = turn.open[-1] if turn.open else None\n    if segment is None:",
        "test_turn.py",
        "03-assembling",
    ),
    "the end of the stream completes the message": Mutant(
        "consumer/attempt.py",
        "Input.ENDED: State.INCOMPLETE",
        "Input.ENDED: State.MESSAGE_COMPLETE",
        "test_attempt.py",
        "05-the-attempt",
    ),
    "an input that does not parse is repaired": Mutant(
        "consumer/turn.py",
        'return msgspec.structs.replace(segment, status="error", error=str(why))',
        'value = __import__("jiter").from_json(text.encode(), partial_mode=True)',
        "test_claude.py",
        "03-assembling",
    ),
    "a partial turn is kept": Mutant(
        "consumer/conversation.py",
        "        State.MESSAGE_COMPLETE,\n",
        "        State.MESSAGE_COMPLETE,\n        State.INCOMPLETE,\n",
        "test_conversation.py",
        "04-two-buffers",
    ),
    "an equal fragment is taken for a repetition": Mutant(
        "consumer/turn.py",
        "grown: Chain = (old.content, text)",
        "grown: Chain = old.content if old.content and old.content[1] == text"
        " else (old.content, text)",
        "test_delivery.py",
        "05-the-attempt",
    ),
}

each_mutant = pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout, without what is made anew."""
    folder = tmp_path_factory.mktemp("mutants") / "checkout"
    folder.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", ".*_cache")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    compiled(folder)
    return folder


def compiled(folder: Path) -> None:
    """Compile the package once, each file with the hash of its source: a change is noticed."""
    mode = ("--invalidation-mode", "checked-hash")
    command = [sys.executable, "-m", "compileall", "-q", *mode, str(folder / "streamlab")]
    subprocess.run(command, check=True)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in the copy; files that it compiled would outlive a change within a second.

    Plugins only where they are named: to import all that are installed takes longer than the tests.
    """
    environment = kernel_environment(str(folder / "settings"))
    environment |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=200
    )


def nbval(folder: Path, lesson: str) -> subprocess.CompletedProcess[str]:
    options = ("-p", "nbval.plugin", "--nbval", "--nbval-cell-timeout=60", "--nbval-current-env")
    return run(folder, *options, os.path.join("notebooks", f"{lesson}.ipynb"))


@each_mutant
def test_a_mistake_makes_a_test_and_a_lesson_fail(mutant: Mutant, copy: Path) -> None:
    path = copy / "streamlab" / mutant.file
    source = path.read_text(encoding="utf-8")
    assert source.count(mutant.right) == 1, "the mutant names code that is there"
    path.write_text(source.replace(mutant.right, mutant.wrong), encoding="utf-8")
    try:
        tested, taught = run(copy, f"tests/{mutant.test}"), nbval(copy, mutant.lesson)
    finally:
        path.write_text(source, encoding="utf-8")
    assert tested.returncode == 1, tested.stdout + tested.stderr
    assert re.search(r"\d+ failed", tested.stdout)
    assert taught.returncode == 1, taught.stdout + taught.stderr
    assert "Cell outputs differ" in taught.stdout or "Cell execution caused" in taught.stdout


def test_without_a_mistake_the_copy_passes(copy: Path) -> None:
    """Else the failures above would prove nothing."""
    files = sorted({f"tests/{mutant.test}" for mutant in MUTANTS.values()})
    tested = run(copy, *files)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    taught = nbval(copy, "04-two-buffers")  # that all lessons pass is test_notebooks.py's
    assert taught.returncode == 0, taught.stdout + taught.stderr
