"""`python -m streamlab`: what it says with no set-up, and what `test` and `bench` run."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamlab import __main__ as main
from streamlab import checkout, cli
from streamlab.errors import UsageError
from tests.conftest import STARTED
from tests.test_checkout import ENVIRONMENT, STARTING, Checkout, Outcome

PYTEST = [sys.executable, "-m", "pytest"]


@pytest.fixture
def bare(tmp_path: Path) -> Checkout:
    """A checkout that nothing was done in; to set it up would fail."""
    return Checkout(tmp_path / "checkout", lock="nothing-by-this-name==1\n")


# ── without a set-up ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("args", [(), ("-h",), ("--help",), ("help",)], ids=" ".join)
def test_help_names_every_command_with_an_example_and_sets_nothing_up(
    bare: Checkout, args: tuple[str, ...]
) -> None:
    asked = bare.start(*args)
    assert (asked.status, asked.err) == (0, "")
    for command in main.COMMANDS:
        assert f"\n  {command} " in asked.out
        assert f"python3 -m streamlab {command}" in asked.out
    assert not bare.venv.exists()


#: The command line, as far as it has to come along for a command's own help.
CLI = ("cli.py", "cli_options.py", "analysis/__init__.py", "analysis/plain.py")


@pytest.mark.parametrize("command", main.COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself_without_a_set_up(
    bare: Checkout, command: str, flag: str
) -> None:
    (bare.root / "streamlab" / "analysis").mkdir()
    for name in CLI:
        shutil.copy(checkout.ROOT / "streamlab" / name, bare.root / "streamlab" / name)
    code = (
        "import runpy, sys; sys.modules['msgspec'] = None; sys.argv = sys.argv[:1] + sys.argv[2:];"
    )
    code += "runpy.run_module('streamlab', run_name='__main__', alter_sys=True)"
    asked = subprocess.run(
        [sys.executable, "-c", code, "x", command, flag],
        cwd=bare.root,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout.startswith(f"usage: python3 -m streamlab {command} ")
    assert not bare.venv.exists()


def test_the_help_of_test_says_what_it_does_with_its_arguments(bare: Checkout) -> None:
    said = bare.start("test", "--help").out
    assert all(word in said for word in ("--fast", "pytest", "ruff", "mypy", "test -- --help"))


def test_every_option_of_bench_is_described() -> None:
    parser = main.bench_parser()
    assert all(action.help for action in parser._actions)
    assert "about three minutes" in parser.format_help()


def test_the_version_needs_no_set_up(bare: Checkout) -> None:
    assert bare.start("--version").out.startswith("streamlab 0.")
    assert not bare.venv.exists()


def test_the_help_offers_what_the_command_line_has_and_its_examples_parse() -> None:
    theirs = {name: example for name, (_, example) in main.COMMANDS.items() if name in cli.COMMANDS}
    assert set(main.COMMANDS) - set(theirs) == {"test", "bench"}
    assert set(theirs) == set(cli.COMMANDS)
    for example in theirs.values():
        cli.make_parser().parse_args(example.split())


def test_an_unknown_command_is_one_line_and_sets_nothing_up(bare: Checkout) -> None:
    assert bare.start("shwo").is_one_line("'shwo'", "lab, show, serve")
    assert not bare.venv.exists()


def start_in_a_python_where(bare: Checkout, change: str) -> Outcome:
    """Start `show` in an interpreter that a line of code has changed first."""
    code = f"import runpy, sys; {change}; sys.argv = ['streamlab', 'show']; "
    code += "runpy.run_module('streamlab', run_name='__main__', alter_sys=True)"
    return Outcome(
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=bare.root,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv_names_the_package_to_install(bare: Checkout, module: str) -> None:
    refused = start_in_a_python_where(bare, f"sys.modules[{module!r}] = None")
    package = f"apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    assert refused.is_one_line(package)
    assert len(refused.err.splitlines()) == 1
    assert not bare.venv.exists()


def test_an_old_python_says_that_it_is_too_old(bare: Checkout) -> None:
    refused = start_in_a_python_where(bare, "sys.version_info = (3, 8, 18, 'final', 0)")
    assert refused.is_one_line("needs Python 3.11 or newer", "3.8.18")
    assert len(refused.err.splitlines()) == 1
    assert not bare.venv.exists()


@pytest.mark.parametrize("name", [*STARTING, "cli.py", "cli_options.py", "analysis/plain.py"])
def test_what_an_old_python_reads_first_parses_there(name: str) -> None:
    source = (checkout.ROOT / "streamlab" / name).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))


# ── installed as a package ───────────────────────────────────────────────────────────────────


def test_installed_as_a_package_it_is_the_command_line(bare: Checkout) -> None:
    (bare.root / "requirements.lock").unlink()
    (bare.root / "tiny.py").write_text("VERSION = 0")
    handed_over = bare.start("--help")
    assert handed_over.said["args"] == ["--help"]


def test_a_missing_dependency_is_one_line(bare: Checkout) -> None:
    (bare.root / "requirements.lock").unlink()
    assert bare.start("show").is_one_line("tiny is missing", sys.prefix)


# ── test and bench ───────────────────────────────────────────────────────────────────────────


class Children:
    """Stands in for `call`: keeps what would run, and lets the chosen ones fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **status: int) -> None:
        self.ran: list[list[str]] = []
        self.status = status
        monkeypatch.setattr(main, "call", self)

    def __call__(self, *command: str) -> int:
        self.ran.append(list(command))
        return self.status.get(command[2], 0)


def test_test_runs_the_linters_and_then_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children(monkeypatch)
    assert main.run_tests([]) == 0
    assert [" ".join(command[2:]) for command in children.ran] == [
        "ruff check .",
        "ruff format --check .",
        "mypy --strict streamlab",
        "pytest -n auto --maxprocesses 4",
    ]


def test_what_is_for_pytest_goes_to_pytest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children(monkeypatch)
    main.run_tests(["tests/test_main.py", "-k", "help"])
    assert children.ran == [[*PYTEST, "tests/test_main.py", "-k", "help"]]


def test_what_comes_after_two_dashes_is_pytests_own(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children(monkeypatch)
    assert not main.wants_help(["--", "--help"]) and main.wants_help(["x", "--help"])
    main.run_tests(["--", "--help", "--fast"])
    assert children.ran == [[*PYTEST, "--help", "--fast"]]


def test_fast_leaves_out_the_browser_and_the_slow_and_keeps_the_linters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    children = Children(monkeypatch)
    main.run_tests(["--fast"])
    assert children.ran[-1] == [*PYTEST, *main.ALL_CORES, "-m", "not browser and not slow"]
    assert len(children.ran) == 4


@pytest.mark.parametrize(
    ("status", "ended", "named"),
    [
        pytest.param({"mypy": 1}, 1, "mypy", id="a linter"),
        pytest.param({"pytest": 3}, 3, "pytest", id="pytest's own status"),
        pytest.param({"ruff": 2}, 1, "ruff check, ruff format", id="two linters"),
        pytest.param({"mypy": 1, "pytest": 1}, 1, "mypy, pytest", id="both"),
    ],
)
def test_every_part_runs_and_the_failed_ones_are_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: dict[str, int],
    ended: int,
    named: str,
) -> None:
    children = Children(monkeypatch, **status)
    assert main.run_tests([]) == ended
    assert len(children.ran) == 4
    assert capsys.readouterr().err == f"streamlab test: failed: {named}\n"


def test_bench_passes_its_arguments_on(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children(monkeypatch)
    assert main.run_bench(["--quick"]) == 0
    assert children.ran == [[sys.executable, "-m", "tests.bench", "--quick"]]


def test_a_childs_status_is_passed_on() -> None:
    assert main.call(sys.executable, "-c", "raise SystemExit(7)") == 7


# ── is this interpreter good enough? ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("requirement", "good"),
    [
        pytest.param("pytest>=1", True, id="newer than asked"),
        pytest.param("pytest>=999", False, id="too old"),
        pytest.param("nothing-by-this-name>=1", False, id="missing"),
    ],
)
def test_a_dependency_has_to_be_there_and_new_enough(
    monkeypatch: pytest.MonkeyPatch, requirement: str, good: bool
) -> None:
    monkeypatch.setattr(checkout, "requirements", lambda dev: [requirement])
    monkeypatch.setattr(checkout, "PROJECT_NAME", "pytest")
    assert checkout.has_dependencies(dev=False) is good


def test_every_direct_dependency_is_written_as_the_check_reads_it() -> None:
    for requirement in checkout.requirements(dev=True):
        name, least, _ = requirement.partition(">=")
        assert least and name == name.strip() and not set(name) & set("[;<!~= "), requirement


def test_the_lock_names_no_host() -> None:
    assert "://" not in checkout.LOCK.read_text(encoding="utf-8")


def test_an_error_of_ours_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(args: list[str]) -> int:
        raise UsageError("not like that")

    monkeypatch.setattr(main, "is_ready", lambda command: True)
    monkeypatch.setattr(main, "run_bench", refuse)
    assert main.main(["bench"]) == 2
    assert capsys.readouterr().err == "streamlab: not like that\n"


def test_the_command_line_names_a_missing_dependency_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "streamlab.cli_show", None)
    assert cli.main(["show", "a.sse"]) == 2
    assert "a bug in streamlab" in capsys.readouterr().err  # our own module: no fault of .venv

    def absent(options: object) -> int:
        raise ModuleNotFoundError("No module named 'msgspec'", name="msgspec.json")

    monkeypatch.setattr(cli, "run", absent)
    monkeypatch.setattr(checkout, "is_inside", lambda: True)
    assert cli.main(["show", "a.sse"]) == 2
    said = "streamlab: msgspec is missing from .venv: remove .venv and start again\n"
    assert capsys.readouterr().err == said


def test_a_reader_that_has_gone_before_the_help_comes_ends_it_quietly() -> None:
    waiting = "import sys; sys.stdin.read(); from streamlab.__main__ import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", waiting, "--help"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=checkout.ROOT,
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, complaint = process.communicate(b"go")
    assert (process.returncode, complaint) == (141, b"")


def test_where_processes_share_the_suite_a_files_tests_stay_together(
    request: pytest.FixtureRequest,
) -> None:
    """Whatever comes before this test in this file ran in this process, not beside it."""
    here = [item for item in request.session.items if item.path == request.path]
    started = request.config.stash[STARTED]
    assert [item.name for item in here[: here.index(request.node) + 1]] == [
        item.name for item in started if item.path == request.path
    ]
