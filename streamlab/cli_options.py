"""What every command of `streamlab` may be asked: its options, its help, and who answers.

Nothing is imported here that is not in the standard library: what a command needs, it imports when
it runs. Read next: `cli.py`, which parses and answers a shell.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

__all__ = ["CLIENTS", "COMMANDS", "FORMATS", "STATUS"]

#: The wire formats, for a `--help` that imports nothing (`wire/reader.py` has their readers).
FORMATS = ("claude", "openai-chat", "openai-responses", "gemini", "gemini-interactions")

#: What a recording can be taken through, likewise (`streams/asking.py`).
CLIENTS = ("anthropic", "openai-chat", "openai-responses", "google-genai")

#: Of a command's --wire: what it may be, and that it rarely must be said.
WIRE: dict[str, Any] = {
    "choices": FORMATS,
    "metavar": "FORMAT",
    "help": f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}; without it, the content tells",
}

STATUS = "exit status: 0 fine, 1 a finding, 2 bad usage or an unreadable file"

Parser = argparse.ArgumentParser


def _add_show(parser: Parser) -> None:
    add = parser.add_argument
    add("files", nargs="*", type=_name, metavar="FILE", help="a recording of any form; - is stdin")
    add("--rules", action="store_true", help="list all that the doctor looks for, and stop")
    add("--stream", type=_size, metavar="N", help="show stream N of a file that holds several (1)")
    add("--keep", action="store_true", help="mask no secrets in what another tool captured")
    add("--json", action="store_true", help="print one JSON object a line, for a program")
    add(
        "--html",
        type=_name,
        metavar="OUT.html",
        help="write one page that steps through the recording",
    )
    add(
        "--policy",
        choices=("effect", "chat"),
        default="effect",
        help="what is acceptable: what a tool proposal needs, or a text answer (default: effect)",
    )
    add(
        "--tools", metavar="FILE.json", help="the permitted tools: name -> JSON Schema of the input"
    )
    add("--wire", **WIRE)
    group = parser.add_argument_group("bounds, past which a stream counts as one that never ends")
    add = group.add_argument
    add("--max-bytes", type=_size, metavar="N", help="of a stream (default: 256M)")
    add("--max-frames", type=_size, metavar="N", help="of a stream (default: 1M)")
    add("--max-seconds", type=_positive, metavar="S", help="by its own clock (default: 3600)")
    add("--max-frame-bytes", type=_size, metavar="N", help="of one frame (default: 16M)")
    parser.set_defaults(run=_show)


def _add_serve(parser: Parser) -> None:
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="recordings; without any, the built-in ones")
    add(
        "--scenario",
        action="append",
        default=[],
        metavar="NAME",
        help="a stream that has a name (repeatable); `all` of them, or `list` them and stop",
    )
    add("--port", type=_port, default=8765, help="0 takes a free one (default: 8765)")
    add("--pace", default="1x", help="1x as recorded, 10x, 0.05s from frame to frame, max (1x)")
    add("--after", type=_size, metavar="N", help="stop after frame N, with the --ending (eof)")
    add(
        "--ending",
        choices=("eof", "cut", "reset", "timeout"),
        help="how the connection stops: cleanly, inside the HTTP framing, torn down, or not at all "
        "and silent (default: as recorded)",
    )
    add(
        "--framing",
        choices=("chunked", "close", "length"),
        default="chunked",
        help="what tells a client where the body ends (default: chunked)",
    )
    add("--error", metavar="TYPE", default="", help="end with an error event: overloaded_error")
    add("--status", type=_status, metavar="N", help="answer with an HTTP error: 529")
    add(
        "--forward",
        action="store_true",
        help="put a page in front: run the turn here, and forward what happens to a browser",
    )
    add("--upstream", metavar="URL", default="", help="forward this server's streams, not ours")
    add("--model", metavar="NAME", default="streamlab", help="what to ask --upstream for")
    add(
        "--wire",
        choices=FORMATS[:4],
        default="claude",
        metavar="FORMAT",
        help=f"how --upstream speaks: {', '.join(FORMATS[:3])} or {FORMATS[3]} (default: claude)",
    )
    parser.set_defaults(run=_serve)


def _add_record(parser: Parser) -> None:
    add = parser.add_argument
    add("--model", required=True, help="such as claude-haiku-4-5; of `serve`, such as greeting")
    add("--prompt", required=True, help="the user's message")
    add("--out", required=True, metavar="X.stream.jsonl", help="the file to write")
    add("--max-tokens", type=_size, default=1024, metavar="N", help="of the answer (default: 1024)")
    add(
        "--client",
        choices=CLIENTS,
        default=CLIENTS[0],
        metavar="SDK",
        help=f"{', '.join(CLIENTS[:-1])} or {CLIENTS[-1]} (default: {CLIENTS[0]})",
    )
    add("--base-url", metavar="URL", help="another server than the API, such as `serve`'s")
    add("--tools", metavar="FILE.json", help="tools to offer: name -> JSON Schema of the input")
    add("--force", action="store_true", help="replace OUT where it exists")
    parser.set_defaults(run=_record)


def _add_convert(parser: Parser) -> None:
    add = parser.add_argument
    add("files", nargs="+", type=_name, metavar="IN", help="a file of any form; - is stdin")
    add("--to", required=True, choices=("stream.jsonl", "sse", "jsonl"), help="the form to write")
    add(
        "--out",
        type=_name,
        metavar="PLACE",
        help="a file, a folder, or - (default: beside each file)",
    )
    add("--split", action="store_true", help="every stream of a file, each in a file of its own")
    add("--keep", action="store_true", help="keep secrets and e-mail addresses: mask nothing")
    add("--wire", **WIRE)
    add("--force", action="store_true", help="replace files that exist")
    parser.set_defaults(run=_convert)


def _add_scan(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "places",
        nargs="+",
        type=_name,
        metavar="DIR",
        help="folders, files, globs, .tar and .zip archives",
    )
    add(
        "--out",
        required=True,
        metavar="X.parquet",
        help="the table; if it exists, it is brought up to date",
    )
    add("--workers", type=_size, metavar="N", help="processes (default: one for each core)")
    add("--scheduler", metavar="URL", help="a Dask cluster instead: tcp://127.0.0.1:8786")
    add("--objectives", metavar="X.toml", help="what a good stream must meet (see below)")
    add(
        "--by",
        action="append",
        metavar="COLUMN",
        help="summarise by it; repeatable (default: model)",
    )
    add("--policy", choices=("effect", "chat"), default="effect", help="as in `show`")
    add("--tools", metavar="FILE.json", help="as in `show`")
    add("--wire", **WIRE)
    add("--fresh", action="store_true", help="read every file again")
    parser.set_defaults(run=_scan)


def _add_lab(parser: Parser) -> None:
    add = parser.add_argument
    add("notebook", nargs="?", metavar="NOTEBOOK", help="another one than the first lesson")
    add("--port", type=_port, help="of the Jupyter server")
    add("--no-browser", action="store_true", help="print the address, open nothing")
    parser.set_defaults(run=_lab)


def _add_explore(parser: Parser) -> None:
    add = parser.add_argument
    add("--depth", type=_size, metavar="N", help="actions of the longest ways (default: 18)")
    add("--without", metavar="GUARD", help="switch one guard off; its name is in --list")
    add("--list", action="store_true", help="list the guards, and stop")
    add("--graph", metavar="OUT.svg", help="draw what can be reached, or the way that goes wrong")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_explore)


def _add_report_card(parser: Parser) -> None:
    add = parser.add_argument
    add("--client", action="append", metavar="NAME", help="only this one (repeatable)")
    add("--fault", action="append", metavar="NAME", help="only this one (repeatable)")
    add("--list", action="store_true", help="list the faults and the clients, and stop")
    add("--async", action="store_true", dest="asynchronous", help="through the async clients")
    add("--graph", metavar="OUT.svg", help="draw the card as a heat map")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_report_card)


#: Command -> (what it does, its options, the end of its help).
COMMANDS: dict[str, tuple[str, Callable[[Parser], None], str]] = {
    "lab": (
        "open JupyterLab on the first notebook",
        _add_lab,
        """for example
  streamlab lab
  streamlab lab --no-browser --port 8899 -- --ServerApp.token=classroom
What comes after -- goes to JupyterLab as it is.""",
    ),
    "show": (
        "say what happened in each recording",
        _add_show,
        f"""for example
  streamlab show answer.sse
  streamlab show --json recordings/*.stream.jsonl | jq .state
  curl -sN https://… | streamlab show -

{STATUS}.
A finding is an answer that may not be used as it is: INCOMPLETE, INVALID,
ABORTED, or HELD (whole, but cut short by a limit, refused, or with a tool that
is not permitted). 0 says that every answer is whole and that no gate objected.
It does not say that an answer may be acted on: without --tools no schema is
checked, and the business rule and the authorisation are the application's to
check. One bad file never stops the others; with both, the status is 2.""",
    ),
    "serve": (
        "run the local fault server, on loopback only",
        _add_serve,
        """for example
  streamlab serve
  streamlab serve fixtures/claude/change_label.sse --after 14 --ending eof
  streamlab serve pay.stream.jsonl --ending reset --pace 10x
  streamlab serve --scenario list
  streamlab serve --scenario cut_inside_tool_json --scenario refusal
  streamlab serve --forward
  streamlab serve --forward --scenario cut_inside_tool_json --port 8000
  streamlab serve --upstream http://127.0.0.1:8765 --model greeting --port 8000
--after counts frames from 1, as `streamlab show` does; with --error, the error
event comes next. One recording answers every request; of several, the model's
name picks one. Of a scenario, its stream is served; what else happens in it (a
cancellation, a commit) is yours. Ctrl-C stops it. With --forward, the port is
the page's; open the address that is printed. Without a file or a scenario it
shows a turn of three rounds, whose tools run here and only look something up.""",
    ),
    "record": (
        "keep a live stream, chunk by chunk with times, through the real SDK",
        _add_record,
        f"""for example
  streamlab record --model greeting --prompt Hi --out hi.stream.jsonl --base-url http://127.0.0.1:8765
  streamlab record --model claude-haiku-4-5 --prompt "Why?" --out why.stream.jsonl
  streamlab record --client openai-chat --model gpt-5-mini --prompt "Why?" --out why.stream.jsonl
The key is ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY; neither it nor
any header is kept.

{STATUS}.
A stream that breaks is recorded too, and a finding.""",
    ),
    "convert": (
        "write recordings in another form, with secrets masked",
        _add_convert,
        f"""for example
  streamlab convert capture.har --to stream.jsonl --split --out out/
  streamlab convert flows.mitm --to sse --out answer.sse
  streamlab convert answer.sse.gz --to jsonl --out - | jq .type
Keys, tokens and e-mail addresses become as many asterisks, so every byte stays
in its place; --keep leaves them. A file is written beside its source, unless
--out says where; standard input goes to standard output. --split separates the
streams of a capture, and the answers in one stream.

{STATUS}.
A finding is a file of several streams without --split, a verdict that the new
form changes, or a form that is not written, because an answer that may not be
used would look usable in it.""",
    ),
    "scan": (
        "read a folder of recordings into one Parquet file, a row a stream",
        _add_scan,
        f"""for example
  streamlab scan logs/ --out x.parquet
  streamlab scan logs/ --out x.parquet --by day --objectives slo.toml
  streamlab scan 'logs/2026-11-*' more.zip --out x.parquet
  streamlab scan /shared --out x.parquet --scheduler tcp://127.0.0.1:8786
Run again, or after Ctrl-C, it reads only what is new or has changed. A good
stream is complete and meets every objective; they are a small TOML file:
  [objectives]
  ttft_s = 1.5
  stalls_longest_s = 2.0
A Dask cluster reads the files by the same paths (pip install 'streamlab[dask]').
Every column says in the table what it holds. By path, number and stream, the
tables of two machines can be joined.

{STATUS}.
A finding is as in `show`. A file that cannot be read is a row that says why.""",
    ),
    "explore": (
        "try every order of cancel, commit, crash and the rest",
        _add_explore,
        f"""for example
  streamlab explore
  streamlab explore --list
  streamlab explore --without "a request carries a key" --graph twice.svg
  streamlab explore --depth 12 --json | jq .states

{STATUS}.
It follows a model of one attempt in the ledger: two processes that commit, two
that recover, an application whose answers get lost, a person who cancels, a
screen. A finding is a promise that is broken; with every guard on there is
none. With one off, the shortest way to it is shown.""",
    ),
    "report-card": (
        "put every fault to the SDKs that are installed, and say what a program would see",
        _add_report_card,
        """for example
  streamlab report-card
  streamlab report-card --client "anthropic helper"
  streamlab report-card --fault end-inside --fault bom
  streamlab report-card --json | jq '.cells[] | select(.danger)'
The SDKs are the real ones and the sockets are real, on loopback; nothing is
asked of a provider. What is not installed is left out.

Exit status: 0 whatever the SDKs do, 2 for a name that is none.""",
    ),
}


def _name(text: str) -> str:
    """The name of a file or a folder; what a shell makes of a variable that is not set is none."""
    if not text:
        raise argparse.ArgumentTypeError("'' names no file")
    return text


def _size(text: str) -> int:
    """A whole number above 0, as 300, 64k, 16M or 1G."""
    factor = {"k": 10**3, "m": 10**6, "g": 10**9}.get(text[-1:].lower(), 1)
    digits = text if factor == 1 else text[:-1]
    if not (digits.isascii() and digits.isdigit() and int(digits)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0, such as 300, 64k or 16M")
    return int(digits) * factor


def _status(text: str) -> int:
    if text.isascii() and text.isdigit() and 400 <= int(text) <= 599:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no HTTP error; those are 400 to 599")


def _positive(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port; those are 0 to 65535")


# ---- the commands


def _show(options: argparse.Namespace) -> int:
    from streamlab.cli_show import show

    return show(options)


def _serve(options: argparse.Namespace) -> int:
    from streamlab.cli_live import serve

    return serve(options)


def _record(options: argparse.Namespace) -> int:
    from streamlab.cli_live import record

    return record(options)


def _convert(options: argparse.Namespace) -> int:
    from streamlab.cli_convert import convert

    return convert(options)


def _scan(options: argparse.Namespace) -> int:
    from streamlab.cli_scan import scan

    return scan(options)


def _explore(options: argparse.Namespace) -> int:
    from streamlab.cli_explore import run

    return run(options)


def _report_card(options: argparse.Namespace) -> int:
    from streamlab.cli_card import run

    return run(options)


def _lab(options: argparse.Namespace) -> int:
    from streamlab.lab import open_lab

    return open_lab(options.notebook, options.port, not options.no_browser, options.more)
