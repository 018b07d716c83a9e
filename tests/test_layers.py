"""The layout is a promise: imports go one way, the vendor stays in `wire`, files stay readable."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamlab

ROOT = Path(streamlab.__file__).parent
ORDER = ["errors", "wire", "consumer", "streams", "analysis", "study", "widgets", "cli"]
MODULES = sorted(ROOT.rglob("*.py"))
IDS = [path.relative_to(ROOT).as_posix() for path in MODULES]

#: Modules beside the folders: what starts the others. Nothing in a folder imports them.
STARTERS = {path.stem for path in ROOT.glob("*.py")} - {"errors"}

#: What `import streamlab` and its everyday names may not bring in.
HEAVY = {
    *("pandas", "matplotlib", "numpy", "ipywidgets", "anywidget", "IPython", "traitlets", "rich"),
    *("jsonschema", "referencing", "h11", "anthropic", "openai", "google", "httpx", "httpx2"),
    *("hypothesis", "pytest", "jupyterlab", "pyarrow", "dask"),
}

VENDORS = ("claude", "anthropic", "openai", "gemini", "google")

#: Lines that a module and a function stay below. Not a target: what grows past it is two ideas.
MOST_LINES, MOST_FUNCTION_LINES = 450, 60


def layer(path: Path) -> int:
    """The place of a module in the order; what starts the others comes last."""
    name = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return ORDER.index(name) if name in ORDER else len(ORDER)


def imports(tree: ast.AST, path: Path) -> Iterator[tuple[str, bool]]:
    """Every module that is imported, by its full name, and whether that is for the types only."""
    package = ["streamlab", *path.relative_to(ROOT).parts[:-1]]
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in typing_only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base, node in typing_only
            yield from ((f"{base}.{alias.name}", node in typing_only) for alias in node.names)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_imports_go_one_way(path: Path) -> None:
    for name, _ in imports(parsed(path), path):
        head, _, rest = name.partition(".")
        if head != "streamlab" or not rest:
            continue
        of = streamlab._HOME.get(rest, name).split(".")[1]
        if of in ORDER:
            assert ORDER.index(of) <= layer(path), f"{path.name} imports {name}"
        elif of in STARTERS:
            assert layer(path) >= ORDER.index("cli"), f"{path.name} imports {name}"


def test_what_a_relative_import_names_is_seen() -> None:
    path = ROOT / "wire" / "reader.py"
    found = {name for name, _ in imports(ast.parse("from . import a\nfrom ..x import b"), path)}
    assert found == {"streamlab.wire", "streamlab.wire.a", "streamlab.x", "streamlab.x.b"}
    typed = "if TYPE_CHECKING:\n    import a\nimport b"
    assert set(imports(ast.parse(typed), path)) == {("a", True), ("b", False)}


# --- What an import brings in -----------------------------------------------------------------


def loaded(code: str, *flags: str) -> set[str]:
    """The modules that a fresh Python has after some code."""
    script = f"import sys; sys.path.insert(0, {str(ROOT.parent)!r}); {code}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, *flags, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_the_package_needs_the_standard_library_alone() -> None:
    before = loaded("pass", "-I", "-S")
    new = loaded("import streamlab; dir(streamlab)", "-I", "-S") - before
    foreign = {name for name in new if name.split(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"streamlab"}


EVERYDAY = [
    "judge",
    "read",
    "write",
    "trace",
    "Script",
    "Consumer",
    "Reader",
    "fold",
    "reduce",
    "TABLE",
    "EFFECT",
    "Recording",
]


@pytest.mark.parametrize("name", [*EVERYDAY, "synth", "faults", "SSEDecoder", "UsageError"])
def test_the_everyday_names_bring_in_nothing_heavy(name: str) -> None:
    found = loaded(f"import streamlab; streamlab.{name}", "-I")
    assert HEAVY & found == set()


def test_a_recording_is_judged_without_anything_heavy() -> None:
    code = "import streamlab; streamlab.judge(streamlab.Recording.from_bytes(b'data: x'))"
    assert HEAVY & loaded(code, "-I") == set()


def test_every_public_name_is_there() -> None:
    for name in streamlab.__all__:
        assert getattr(streamlab, name) is not None
    assert set(streamlab.__all__) <= set(dir(streamlab))
    with pytest.raises(AttributeError, match="no attribute 'utils'"):
        _ = streamlab.utils


# --- What a module knows ----------------------------------------------------------------------

#: After `wire`, these folders may not know a vendor. (`streams` writes the formats and runs SDKs.)
BLIND = [path for path in MODULES if path.parent.name in ("consumer", "analysis")]
IN_WIRE = ["sse.py", "events.py", "payload.py", "jsonl.py"]


@pytest.mark.parametrize(
    "path", [*BLIND, *(ROOT / "wire" / name for name in IN_WIRE)], ids=lambda path: path.name
)
def test_no_vendor_is_named_where_none_may_be_known(path: Path) -> None:
    tree = parsed(path)
    named: set[str] = {name for name, _ in imports(tree, path)}
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                named.add(value)
    assert [name for name in named for vendor in VENDORS if vendor in name.lower()] == []


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_a_module_and_its_functions_can_be_read_at_one_go(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= MOST_LINES
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            assert size <= MOST_FUNCTION_LINES, f"{node.name} has {size} lines"


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_a_module_says_what_it_is(path: Path) -> None:
    tree = parsed(path)
    assert ast.get_docstring(tree) or not tree.body


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_only_two_classes_of_exception_are_ours(path: Path) -> None:
    """A third one stays inside `wire`, where it is caught."""
    found = {
        node.name
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)
    }
    ours = {"errors.py": {"UsageError", "WireError"}, "payload.py": {"NotJSON"}}
    assert found <= ours.get(path.name, set())
