"""The notebooks keep their word: outputs are what the code gives, and every lesson has its shape.

nbval runs each notebook in a fresh kernel and compares. What it lets pass (a cell that never ran,
an error that is tagged away, a widget's address) is caught by the tests of the files themselves.
After a change that is meant: `python -m tests.refresh_notebooks`, and review the diff.
"""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat import NotebookNode

from streamlab.study.questions import EXERCISES, QUESTIONS
from tests.refresh_notebooks import (
    CELL_METADATA,
    KERNEL,
    LIVE,
    ROOT,
    clean,
    executed,
    kernel_environment,
    notebooks,
)

PATHS = notebooks()
NBVAL = ("-p", "nbval.plugin", "--nbval", "--nbval-cell-timeout=60", "--nbval-current-env")
COLOUR = re.compile(r"(?:\x1b|#x1B)\[[0-9;]*m")  # as a terminal gets it, or an XML file

#: What differs from run to run, or from machine to machine.
UNSTABLE = {
    "an address in memory": r"0x[0-9a-f]{6,}",
    "a port": r"(?:127\.0\.0\.1|localhost|\[::1\]):\d",
    "a place on this machine": rf"/(?:home|Users|tmp|root)/|[A-Z]:\\|{re.escape(str(ROOT))}",
    "a set, in an order of the day": r"(?m)(?:^|[\s(\[])(?:\{'[^':{}]*'(?:, '[^':{}]*')+\}|set\()",
}

each_notebook = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list[NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def markdown(path: Path) -> str:
    return "\n\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")


def printed(cell: NotebookNode) -> list[str]:
    """Everything that a cell put out, as text."""
    found: list[Any] = [output.get("text", "") for output in cell.outputs]
    found += [value for output in cell.outputs for value in output.get("data", {}).values()]
    return ["".join(text) for text in found]


def calls(cell: NotebookNode) -> list[tuple[str, str]]:
    """(function, argument) for every argument of a call that is a text."""
    return [
        (node.func.id, argument.value)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def test_there_are_lessons_and_they_are_numbered_without_a_gap() -> None:
    numbers = [path.name[:3] for path in PATHS]
    assert numbers == [f"{number:02}-" for number in range(len(PATHS))]


# --- Outputs --------------------------------------------------------------------------------------


class Compared(NamedTuple):
    """What nbval found in one notebook: its verdict on each cell, None where the outputs agree."""

    cells: list[str | None]
    told: str


def nbval(paths: list[Path], folder: Path) -> dict[str, Compared]:
    """Run notebooks, each in a kernel of its own, in one pytest without plugins but nbval.

    To start a pytest, and what its plugins import, takes longer than most lessons.
    """
    report = folder / "report.xml"
    options = ("-q", "-p", "no:cacheprovider", *NBVAL, f"--junitxml={report}")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, paths)],
        cwd=ROOT,
        env=kernel_environment(str(folder)) | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=280,
    )
    told = COLOUR.sub("", run.stdout + run.stderr)
    found = {path.stem: Compared([], told) for path in paths}
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = [COLOUR.sub("", each.text or each.tag) for each in case]  # failure, error, skipped
        found[Path(case.attrib["classname"]).stem.rpartition(".")[2]].cells.append(
            wrong[0] if wrong else None
        )
    return found


@pytest.fixture(scope="module")
def compared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Compared]:
    """What nbval found, by notebook: only in those whose test was chosen."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    wanted = [test for test in tests if test.originalname == "test_outputs_are_what_the_code_gives"]
    paths = [test.callspec.params["path"] for test in wanted]
    return nbval(paths, tmp_path_factory.mktemp("nbval"))


@each_notebook
def test_outputs_are_what_the_code_gives(path: Path, compared: dict[str, Compared]) -> None:
    cells, told = compared[path.stem]
    again = "python -m tests.refresh_notebooks, if the new outputs are right"
    wrong = "\n".join(filter(None, cells))
    assert not wrong, f"{path.name} gives other outputs ({again}):\n{wrong}"
    assert len(cells) == len(code_cells(path)), f"not every cell was compared:\n{told}"


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    output = nbformat.v4.new_output("stream", text="1\n")
    cells = [nbformat.v4.new_code_cell("print(1 + 1)", execution_count=1, outputs=[output])]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    nbformat.write(notebook, tmp_path / "wrong.ipynb")
    ((wrong,), _) = nbval([tmp_path / "wrong.ipynb"], tmp_path)["wrong"]
    assert wrong and "Cell outputs differ" in wrong


def test_refreshing_changes_nothing() -> None:
    path = PATHS[1]  # a lesson that starts no server and imports no SDK
    text = nbformat.writes(clean(executed(read(path)))) + "\n"
    assert text == path.read_text(encoding="utf-8")


# --- The files ------------------------------------------------------------------------------------


@each_notebook
def test_every_code_cell_ran_once_and_in_order(path: Path) -> None:
    counts = [cell.execution_count for cell in code_cells(path)]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_the_file_is_small_and_holds_nothing_but_the_lesson(path: Path) -> None:
    notebook = read(path)
    assert path.stat().st_size <= 200_000
    assert notebook.metadata == {"kernelspec": KERNEL}
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    for cell in notebook.cells:
        assert re.fullmatch(r"[a-z][a-z0-9-]+", cell.id), f"{cell.id}: an id that says what it is"
        assert set(cell.metadata) <= set(CELL_METADATA)
        assert not any(LIVE in output.get("data", {}) for output in cell.get("outputs", []))


@each_notebook
def test_outputs_hold_no_warning_and_nothing_that_changes_from_run_to_run(path: Path) -> None:
    for cell in code_cells(path):
        assert all(output.get("name") != "stderr" for output in cell.outputs), cell.id
        failed = any(output.output_type == "error" for output in cell.outputs)
        assert failed == ("raises-exception" in cell.metadata.get("tags", [])), cell.id
        for text in printed(cell):
            for what, pattern in UNSTABLE.items():
                assert not re.search(pattern, text), f"{cell.id} prints {what}: {text}"


def test_what_is_unstable_is_found() -> None:
    seen = {
        "an address in memory": "<Stepper object at 0x7f3a2b1c9d10>",
        "a port": "served at http://127.0.0.1:41237",
        "a place on this machine": "wrote /tmp/abc/out.html",
        "a set, in an order of the day": "kinds: {'text', 'tool_call'}",
    }
    assert seen.keys() == UNSTABLE.keys()
    for what, text in seen.items():
        assert re.search(UNSTABLE[what], text)
    assert not any(re.search(pattern, "{'amount': 1}") for pattern in UNSTABLE.values())


# --- The shape ------------------------------------------------------------------------------------


@each_notebook
def test_code_cells_are_short(path: Path) -> None:
    sizes = {cell.id: len(cell.source.splitlines()) for cell in code_cells(path)}
    assert max(sizes.values()) <= 12, sizes
    assert statistics.median(sizes.values()) <= 4, sizes
    assert len(sizes) <= 22, "about a quarter of an hour"


@each_notebook
def test_one_cell_imports_and_only_from_streamlab(path: Path) -> None:
    """The real SDK, in lesson 00, is imported in the cell that tells its story."""
    first, *others = code_cells(path)
    imports = ast.parse(first.source).body
    assert len(first.source.splitlines()) <= 4
    assert all(
        isinstance(line, ast.ImportFrom) and (line.module or "").split(".")[0] == "streamlab"
        for line in imports
    )
    found = [
        line.module
        for cell in others
        for line in ast.walk(ast.parse(cell.source))
        if isinstance(line, ast.ImportFrom)
    ]
    assert found == (["anthropic"] if path.name.startswith("00") else [])
    assert not re.search(r"(?m)^\s*(?:import |[%!])", "\n".join(c.source for c in others))


@each_notebook
def test_a_lesson_has_its_parts(path: Path) -> None:
    first, text, cells = read(path).cells[0].source, markdown(path), code_cells(path)
    number = path.name[:2]
    assert re.match(r"# .+\?\n", first), "the title is a question"
    assert "you will be able to" in first
    assert 2 <= len(re.findall(r"(?m)^- ", first)) <= 3
    used = [call for cell in cells for call in calls(cell)]
    predicted = [id for name, id in used if name == "predict"]
    stops = [cell for cell in cells if any(name == "predict" for name, _ in calls(cell))]
    assert 3 <= len(stops) <= 5, "where the learner stops to guess"
    assert predicted == [id for name, id in used if name == "reveal"], "each guess is answered"
    assert ("check", f"{number}-ex") in used
    assert ("summary", number) in used
    assert "<details><summary>A hint</summary>" in text
    ending = text[text.index("## Three sentences to keep") :]
    assert len(re.findall(r"(?m)^\d\. .*\.$", ending)) == 3
    read_next = re.search(r"Now read `([^`]+)`", ending)
    assert read_next and (ROOT / read_next[1]).is_file()


#: A view -> how the cell after it does the same in code.
VIEWS = {
    r"\bStepper\(": r"\btrace\(",
    r"\bBoundaryExplorer\(": r"\b(?:failing|splits|table|verdicts)\(",
    r"\bGuardBoard\(": r"\bwithout\(",
    r"\bRace\(": r"\bplay\(",
    r"\bTurnView\(": r"\brun_turn\(",
    r"\bCardView\(": r"\bcard\.at\(",
    r"\bDialectStepper\(": r"\btrace\(",
    r"\bInspector\(": r"\btables\.\w+\(",
}


@each_notebook
def test_a_view_is_followed_by_the_same_in_code(path: Path) -> None:
    sources = [cell.source for cell in code_cells(path)]
    views = [
        (place, code)
        for place, source in enumerate(sources)
        for view, code in VIEWS.items()
        if re.search(view, source)
    ]
    assert views
    assert all(re.search(code, sources[place + 1]) for place, code in views)


@each_notebook
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", markdown(path)):
        file, _, anchor = target.partition("#")
        assert not file.startswith(("http:", "https:")), "lessons must read without a network"
        assert (path.parent / file).is_file(), target
        assert not anchor, "an anchor that nothing checks"


@pytest.mark.parametrize(("path", "following"), [*pairwise(PATHS)], ids=lambda path: path.stem)
def test_a_lesson_links_to_its_neighbours_by_their_titles(path: Path, following: Path) -> None:
    for here, there in ((path, following), (following, path)):
        title = read(there).cells[0].source.splitlines()[0].removeprefix("# ")
        assert f"[{there.name[:2]} {title}]({there.name})" in markdown(here)


@each_notebook
def test_headings_to_read_again_exist(path: Path) -> None:
    headings = re.findall(r"(?m)^## (.+)$", markdown(path))
    again = [each.again for each in QUESTIONS.values() if each.id[:2] == path.name[:2]]
    assert set(again) <= set(headings)


def test_every_question_and_exercise_is_used_where_it_belongs() -> None:
    used = {
        (name, id): path.name[:2]
        for path in PATHS
        for cell in code_cells(path)
        for name, id in calls(cell)
        if name in ("predict", "check")
    }
    known = {("predict", id): id[:2] for id in QUESTIONS} | {("check", i): i[:2] for i in EXERCISES}
    assert used == known


def test_the_environment_of_a_kernel_is_nobodys_own(tmp_path: Path) -> None:
    environment = kernel_environment(str(tmp_path))
    assert environment["IPYTHONDIR"] == str(tmp_path)
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)
