"""Start streamlab: `python3 -m streamlab COMMAND`, from a bare checkout with Python alone.

Standard library only, because it runs before anything is installed. Where what a command needs is
missing, `checkout.py` makes `.venv` first, and the command goes on inside it. Installed as a
package there is nothing to set up: this is the command line, `cli.py`.
Like `checkout.py` it must parse on Python 3.8, so that an old Python can say that it is too old.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from streamlab import __version__, checkout
from streamlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COMMANDS = {  # name -> (what it does, an example)
    "lab": ("open JupyterLab on the first notebook", "lab --port 8899 --no-browser"),
    "show": ("say what happened in each recording", "show fixtures/claude/*.sse --json"),
    "serve": (
        "run the local fault server, loopback only",
        "serve fixtures/claude/change_label.sse --after 14 --ending eof",
    ),
    "record": (
        "keep a live stream, chunk by chunk with times",
        "record --model greeting --prompt Hi --out hi.stream.jsonl "
        "--base-url http://127.0.0.1:8765",
    ),
    "convert": ("write recordings in another form", "convert capture.har --to sse --split"),
    "scan": ("read a folder into one table", "scan recordings/ --out streams.parquet"),
    "report-card": ("break the stream under each real SDK", "report-card --client anthropic"),
    "explore": ("try every order of cancel, commit, crash", "explore --depth 12"),
    "test": ("check everything: ruff, mypy, pytest", "test --fast"),
    "bench": ("measure the hot paths", "bench"),
}
NEEDS_DEV = ("test", "bench")
LINT = (
    ("ruff check", ("ruff", "check", ".")),
    ("ruff format", ("ruff", "format", "--check", ".")),
    ("mypy", ("mypy", "--strict", "streamlab")),
)
# The whole suite on every core; which tests share a process, tests/conftest.py says.
ALL_CORES = ("-n", "auto", "--maxprocesses", "4")
FAST = ("-m", "not browser and not slow")
TEST_HELP = """usage: python3 -m streamlab test [--fast] [ARGUMENT ...]

Check everything: ruff (rules, then format), mypy, and all tests. Every part runs, and the failed
ones are named at the end.

  --fast     leave out the tests that need a browser or take long
  ARGUMENT   goes to pytest, which then runs alone, without ruff and mypy
  -h, --help show this; pytest's own help: python3 -m streamlab test -- --help

for example
  python3 -m streamlab test
  python3 -m streamlab test --fast
  python3 -m streamlab test tests/test_sse.py -k bom

exit status: 0 all passed, else pytest's own, or 1 where only ruff or mypy failed"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; whatever is wrong is one line on stderr."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        status = run_from_checkout(args) if checkout.is_checkout() else run_cli(args)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a closed pipe can still be told
        return status
    except BrokenPipeError:  # whoever read the output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UsageError as error:
        print(f"streamlab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def run_from_checkout(args: list[str]) -> int:
    """Run one command here, or set the checkout up and run it there."""
    if not args or args[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0
    if args[0] == "--version":
        print(f"streamlab {__version__}")
        return 0
    command, *rest = args
    if command not in COMMANDS:
        raise UsageError(f"no command {command!r}; there are {', '.join(COMMANDS)}")
    if wants_help(rest):  # it needs nothing but the standard library, so nothing is set up for it
        return show_help(command, args)
    if not is_ready(command):
        return go_on(checkout.set_up(), args)
    if command == "test":
        return run_tests(rest)
    return run_bench(rest) if command == "bench" else run_cli(args)


def is_ready(command: str) -> bool:
    """Tell whether this very interpreter can run the command."""
    whole = checkout.is_inside() and checkout.is_current()
    return whole or checkout.has_dependencies(dev=command in NEEDS_DEV)


def wants_help(rest: list[str]) -> bool:
    """Tell whether one command is asked to explain itself; what comes after -- is another's."""
    own = rest[: rest.index("--")] if "--" in rest else rest
    return "-h" in own or "--help" in own


def show_help(command: str, args: list[str]) -> int:
    """Print a command's own help."""
    if command not in NEEDS_DEV:
        return run_cli(args)
    print(TEST_HELP if command == "test" else bench_parser().format_help().rstrip())
    return 0


def bench_parser() -> argparse.ArgumentParser:
    """Build the parser of `bench`; here, because its own module needs all that it measures."""
    parser = argparse.ArgumentParser(
        prog="python3 -m streamlab bench",
        description="Measure CPU per event against a floor and against each vendor's SDK, in one "
        "run, and say which aims are met. It takes about three minutes.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--rounds", type=int, default=7, metavar="N", help="of which the least counts (default: 7)")
    add(
        "--recordings",
        default=os.path.join(checkout.ROOT, "fixtures"),
        metavar="DIR",
        help="measure the whole .sse files in it too (default: fixtures)",
    )
    add("--scan", type=int, default=1000, metavar="N", help="recordings to scan (default: 1000)")
    add("--json", action="store_true", help="one object a row, in place of the table and the aims")
    return parser


def help_text() -> str:
    """Return every command with an example."""
    lines = ["usage: python3 -m streamlab COMMAND ...", ""]
    lines += [f"  {name:<13}{what}" for name, (what, _) in COMMANDS.items()]
    lines += ["", "for example"]
    lines += [f"  python3 -m streamlab {example}" for _, example in COMMANDS.values()]
    lines += ["", "The first one makes .venv here and installs into it (a minute, 600 MB)."]
    lines += ["A command's own options: python3 -m streamlab COMMAND --help"]
    return "\n".join(lines)


# ── the commands ─────────────────────────────────────────────────────────────────────────────


def run_cli(args: list[str]) -> int:
    """Hand over to the command line proper; a dependency that is missing is named."""
    try:
        from streamlab.cli import main as cli

        return cli(args)
    except ModuleNotFoundError as error:
        raise checkout.missing(error) or error from None


def run_tests(args: list[str]) -> int:
    """Run the linters, then pytest; with arguments for pytest, pytest alone."""
    at = args.index("--") if "--" in args else len(args)
    chosen = [arg for arg in args[:at] if arg != "--fast"] + args[at + 1 :]
    marks = FAST if "--fast" in args[:at] else ()
    parts = () if chosen else LINT
    failed = [name for name, command in parts if call(sys.executable, "-m", *command)]
    cores = () if chosen else ALL_CORES
    status = call(sys.executable, "-m", "pytest", *cores, *marks, *chosen)
    failed += ["pytest"] if status else []
    if failed:
        print(f"streamlab test: failed: {', '.join(failed)}", file=sys.stderr)
    return status or min(len(failed), 1)


def run_bench(args: list[str]) -> int:
    """Run the benchmarks in tests/bench."""
    return call(sys.executable, "-m", "tests.bench", *args)


def call(*command: str) -> int:
    """Run a child in the checkout and return its status; Ctrl-C is the child's to answer."""
    sys.stdout.flush()
    with subprocess.Popen(command, cwd=checkout.ROOT) as child:
        while True:
            try:
                status = child.wait()
                return status if status >= 0 else 128 - status
            except KeyboardInterrupt:
                continue


def go_on(python: Path, args: list[str]) -> int:
    """Continue with the same command in another interpreter: in its place, where the OS can."""
    command = [str(python), "-m", "streamlab", *args]
    sys.stderr.flush()
    try:
        if os.name == "nt":
            return call(*command)
        os.execv(command[0], command)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"can't start {python} ({reason}): remove .venv and start again") from None


if __name__ == "__main__":
    sys.exit(main())
