"""Every requirement is shown by a cell and held by a test, and the map says which."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import nbformat
import pytest

from tests.refresh_notebooks import notebooks
from tests.requirements_map import LATER, ROWS, Row

TESTS = Path(__file__).parent
COUNTS = {"R": 8, "B": 17, "S": 34, "P": 6, "T": 5, "C": 19}
ALL = {f"{group}{number}" for group, last in COUNTS.items() for number in range(1, last + 1)}
LESSONS = {path.name[:2]: path.stem for path in notebooks()}

each_row = pytest.mark.parametrize(("id", "row"), ROWS.items(), ids=ROWS)


@cache
def cells(notebook: str) -> dict[str, str]:
    """The code cells of a lesson: id -> source."""
    path = next((path for path in notebooks() if path.stem == notebook), None)
    found = nbformat.read(path, as_version=4).cells if path else []
    return {cell.id: cell.source for cell in found if cell.cell_type == "code"}


@cache
def parsed(file: str) -> ast.AST:
    path = TESTS / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return ast.parse(text)


@cache
def functions(file: str) -> frozenset[str]:
    """The test functions of a file."""
    return frozenset(
        node.name
        for node in ast.walk(parsed(file))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
    )


@cache
def texts(file: str) -> frozenset[str]:
    """The texts in a test file's code; the ids of cases are among them."""
    found = (node.value for node in ast.walk(parsed(file)) if isinstance(node, ast.Constant))
    return frozenset(value for value in found if isinstance(value, str))


def test_no_row_is_missing_and_none_is_invented() -> None:
    assert len(ALL) == 89
    later = [row for rows in LATER.values() for row in rows]
    assert sorted([*ROWS, *later]) == sorted(ALL), "each row once"


def test_no_row_of_a_lesson_that_is_written_waits_for_later() -> None:
    assert not LATER.keys() & LESSONS.keys()


@each_row
def test_a_row_is_held_by_tests_that_exist(id: str, row: Row) -> None:
    assert row.tests, f"{id} has no test"
    for test in row.tests:
        file, _, rest = test.partition("::")
        name, _, case = rest.removesuffix("]").partition("[")
        assert name in functions(file), f"{id}: there is no {test}"
        assert not case or case in texts(file), f"{id}: {name} has no case {case!r}"


@each_row
def test_a_row_is_shown_by_cells_that_exist(id: str, row: Row) -> None:
    for cell in row.cells:
        notebook, _, name = cell.partition("#")
        assert name in cells(notebook), f"{id}: there is no code cell {cell}"


@each_row
def test_a_row_is_shown_in_each_of_its_lessons_that_is_written(id: str, row: Row) -> None:
    shown = {cell[:2] for cell in row.cells}
    written = set(row.lessons.split()) & LESSONS.keys()
    assert shown == written, f"{id} belongs to {row.lessons}, and is shown in {shown or 'none'}"


def test_each_row_says_something_of_its_own() -> None:
    twice = [
        says for says, count in Counter(row.says for row in ROWS.values()).items() if count > 1
    ]
    assert not twice
    assert all(20 <= len(row.says) <= 100 and row.says.endswith(".") for row in ROWS.values())


def test_a_name_that_points_at_nothing_is_noticed() -> None:
    assert "test_no_row_is_missing_and_none_is_invented" in functions("test_requirements.py")
    assert "test_that_nobody_wrote" not in functions("test_requirements.py")
    assert functions("test_no_such_file.py") == frozenset()
    assert cells("99-no-such-lesson") == {}
