"""The `streamlab` command: what it may be asked, and how it answers a shell.

Exit status, of every command: 0 fine, 1 a finding, 2 bad usage or a file that cannot be read, each
but the first with one line on stderr that names the file; 130 after Ctrl-C, 141 where whoever read
the output has gone. Nobody ever sees a traceback, unless STREAMLAB_DEBUG is set.

Everything that is not in the standard library (msgspec, rich, the SDK, Jupyter) is imported by the
command that needs it, so every `--help` works in a checkout where nothing is installed yet.
Read next: `analysis/judge.py`, which is what `show` asks.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from streamlab import __version__, checkout
from streamlab.analysis.plain import visible
from streamlab.cli_options import COMMANDS, STATUS
from streamlab.errors import UsageError, WireError

__all__ = ["COMMANDS", "complain", "main", "make_parser", "report_bug"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # an old code page must not stop an answer
            stream.reconfigure(errors="backslashreplace")
    try:
        status = run(sys.argv[1:] if argv is None else list(argv))
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still be told
        return status
    except (UsageError, WireError) as why:
        complain(str(why))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except OSError as why:  # such as a full disk under our output
        complain(why.strerror or str(why))
    except Exception as why:
        absent = checkout.missing(why) if isinstance(why, ModuleNotFoundError) else None
        if absent is None:
            report_bug(why)
        else:
            complain(str(absent))
    return 2


def run(argv: list[str]) -> int:
    """Parse the arguments and run their command."""
    parser = make_parser()
    if not argv:
        parser.print_help()
        return 0
    if not argv[0].startswith("-") and argv[0] not in COMMANDS:
        known = ", ".join(COMMANDS)
        raise UsageError(f"no command {argv[0]!r}; there are {known} (see {called()} --help)")
    end = argv.index("--") if argv[0] == "lab" and "--" in argv else len(argv)
    try:
        options = parser.parse_args(argv[:end])
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    options.more = argv[end + 1 :]
    if sys.stdout is None:
        raise UsageError("standard output is closed")
    command: Callable[[argparse.Namespace], int] = options.run
    return command(options)


# ---- how it speaks


def complain(text: str) -> None:
    """Say one line on stderr; names and texts of a recording cannot break out of it."""
    with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it
        if sys.stdout is not None:
            sys.stdout.flush()
        if sys.stderr is not None:
            print(f"streamlab: {visible(text)}", file=sys.stderr, flush=True)


def report_bug(why: Exception, about: str = "") -> None:
    """Say that it is our fault, in one line; with STREAMLAB_DEBUG, where it happened too."""
    if os.environ.get("STREAMLAB_DEBUG"):
        import traceback

        traceback.print_exception(why)
    what = f"{type(why).__name__}: {str(why)[:200]}"
    hint = "please report it, with what STREAMLAB_DEBUG=1 shows"
    complain(f"{about}{': ' if about else ''}a bug in streamlab ({what}); {hint}")


# ---- what it can be asked


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that takes no abbreviations, and whose errors are one line."""

    def __init__(self, **options: object) -> None:
        raw = argparse.RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, formatter_class=raw, **options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Leave the one line to `main`."""
        command = self.prog.rpartition("streamlab")[2].strip()
        raise UsageError(f"{command}{': ' if command else ''}{message} (see {self.prog} --help)")


def called() -> str:
    """How the command was started, to be typed again."""
    as_module = Path(*sys.argv[:1]).parts[-2:] == ("streamlab", "__main__.py")
    return "python3 -m streamlab" if as_module else "streamlab"


def make_parser() -> Parser:
    """Build the parser of all commands."""
    prog = called()
    parser = Parser(
        prog=prog,
        description="A streamed LLM answer must be assembled, judged, and only then acted on.",
        epilog=f"{STATUS}\nEvery command explains itself: {prog} show --help",
    )
    parser.add_argument("--version", action="version", version=f"streamlab {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name, (does, add, epilog) in COMMANDS.items():
        about = f"{does[0].upper()}{does[1:]}."
        examples = epilog.replace("\n  streamlab ", f"\n  {prog} ")
        command = commands.add_parser(
            name, prog=f"{prog} {name}", help=does, description=about, epilog=examples
        )
        add(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
