"""`streamlab serve` and `streamlab record`: the two commands that touch a network.

The server is on loopback and nowhere else. The recorder goes through the real SDK, which takes the
key from the environment; nothing here sees it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlab.analysis.plain import counted, seconds, visible
from streamlab.cli import complain
from streamlab.errors import UsageError
from streamlab.streams.recording import Recording, read

__all__ = ["BUILT_IN", "answers_of", "how_of", "record", "serve", "stopped"]

#: What the server answers where it is given no files: names of functions in `streams/synth.py`.
BUILT_IN = (
    *("change_label", "pay_invoice", "parallel_tools", "thinking_then_tool"),
    *("greeting", "six_events"),
)

#: How a list of names is broken into lines: between names only.
WHOLE_NAMES: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}

#: Words of `--pace` that are no number of times or seconds.
AT_ONCE = "max"


# ---- serve


def serve(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C, and say a line about every request."""
    if "list" in options.scenario:
        print("\n".join(_scenarios()))
        return 0
    if options.forward or options.upstream:
        from streamlab.cli_forward import forward

        return forward(options)
    from streamlab.streams.server import FaultServer, Served

    answers = answers_of(options)
    server = FaultServer(answers, port=options.port, **how_of(options)).start()

    def show(served: Served) -> None:
        model = f" model {visible(served.asked.model)}" if served.asked.model else ""
        print(f"{visible(str(served))}{model}", flush=True)

    with contextlib.suppress(KeyboardInterrupt):  # it may come as soon as the line is printed
        print(_greeting(server.url, list(answers) if isinstance(answers, dict) else []), flush=True)
        with contextlib.suppress(ValueError):  # only a main thread may
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # as graceful as Ctrl-C
        server.serve_forever(show)
    server.stop()
    return 0


def how_of(options: argparse.Namespace) -> dict[str, Any]:
    """How the fault server answers, whatever the stream."""
    how = {"ending": options.ending, "framing": options.framing, "error": options.error}
    return how | _pace(options.pace)


def answers_of(options: argparse.Namespace) -> Any:
    """What to answer with: an HTTP error, one recording, or one for each model's name."""
    if options.status is not None:
        if options.after is not None or options.scenario:
            unused = "--scenario" if options.scenario else "--after"
            raise UsageError(f"--status answers before any stream, so there is no {unused}")
        return options.status
    if options.scenario:
        return _one_or_named(_played(options))
    if not options.files:
        from streamlab.streams import synth

        return stopped({name: getattr(synth, name)() for name in BUILT_IN}, options)
    named: dict[str, str] = {}
    for file in options.files:
        name = os.path.basename(file).partition(".")[0]
        if name in named:
            raise UsageError(f"{file}: there is another recording called {name!r}")
        named[name] = file
    found = stopped({file: read(file) for file in options.files}, options)
    return _one_or_named({name: found[file] for name, file in named.items()})


def _one_or_named(named: dict[str, Recording]) -> Any:
    """A single recording answers whatever model is asked for."""
    return named if len(named) > 1 else next(iter(named.values()))


def _played(options: argparse.Namespace) -> dict[str, Recording]:
    """The streams of the scenarios that were asked for, by name."""
    from streamlab.streams.scenarios import SCENARIOS, named

    if options.files:
        raise UsageError("files and --scenario: give one of them")
    names = list(SCENARIOS) if "all" in options.scenario else options.scenario
    try:
        found = {name: named(name).recording for name in names}
    except UsageError as why:
        raise UsageError(f"{why} (see --scenario list)") from None
    return stopped(found, options)


def _scenarios() -> Iterator[str]:
    """A line for each scenario: its name, and its sentence."""
    from streamlab.streams.scenarios import SCENARIOS

    wide = max(map(len, SCENARIOS))
    return (f"{scenario.name:<{wide}}  {scenario.says}" for scenario in SCENARIOS.values())


def stopped(given: dict[str, Recording], options: argparse.Namespace) -> dict[str, Recording]:
    """Each recording as far as `--after` says, with the chosen ending.

    Of several, the shorter ones are served whole; that none is so long is a mistake.
    """
    after = options.after
    if after is None:
        return given
    from streamlab.streams import faults

    sizes = {name: len(faults.frames(recording)) for name, recording in given.items()}
    fits = [name for name, size in sizes.items() if size >= after]
    if not fits:
        name = max(sizes, key=lambda name: sizes[name])
        which = "it" if len(sizes) == 1 else "the longest"
        raise UsageError(
            f"{name}: --after {after}: {which} has only {counted(sizes[name], 'frame')}"
        )
    ending = options.ending or "eof"
    stopped = {name: faults.disconnect(given[name], after, ending) for name in fits}
    short = [f"{name} ({size})" for name, size in sizes.items() if name not in stopped]
    if short:
        complain(f"--after {after}: these are shorter and come whole: {', '.join(short)}")
    return {**given, **stopped}


def _pace(text: str) -> dict[str, float]:
    """`1x` and `10x` are speeds, `0.05s` is the time from frame to frame."""
    if text == AT_ONCE:
        return {}
    try:
        value, name = float(text[:-1]), {"x": "speed", "s": "every"}[text[-1:]]
    except (ValueError, KeyError):
        value, name = -1.0, ""
    if not 0 < value < float("inf"):
        raise UsageError(f"--pace {text!r}: give 1x, 10x, 0.05s or {AT_ONCE}")
    return {name: value}


def _greeting(url: str, models: list[str]) -> str:
    model = models[0] if models else "any"
    ask = f'model="{model}", max_tokens=99, messages=[{{"role": "user", "content": "Hi"}}]'
    lines = [f"streamlab: fault server on {url} (Ctrl-C stops it)"]
    if models:
        listed = f"models: {', '.join(map(visible, models))}"
        lines += textwrap.wrap(listed, 100, subsequent_indent="  ", **WHOLE_NAMES)
    lines += [
        "",
        f'from anthropic import Anthropic; client = Anthropic(base_url="{url}", api_key="none")',
        f"with client.messages.stream({ask}) as s: print(s.get_final_message())",
        "",
    ]
    return "\n".join(lines)


# ---- record


def record(options: argparse.Namespace) -> int:
    """Record one answer, then say what it is worth."""
    from streamlab.analysis.judge import judge
    from streamlab.cli_show import finding, read_tools
    from streamlab.streams.live import record_prompt

    out = Path(options.out)
    if out.exists() and not options.force:
        raise UsageError(f"{out} exists; --force replaces it")
    more: dict[str, Any] = {}
    if options.tools:
        tools = read_tools(options.tools)
        more["tools"] = [{"name": name, "input_schema": tools[name]} for name in tools]
    fresh = _free_name(out) if out.exists() else out
    told = _Telling()
    asked = (options.model, options.prompt, fresh, options.max_tokens)
    more["client"] = options.client
    try:
        recorded = record_prompt(*asked, base_url=options.base_url, on_event=told, **more)
    except UsageError as why:
        raise UsageError(f"{out}: {str(why).removeprefix(f'{fresh}: ')}") from None
    except KeyboardInterrupt:
        told.over()
        if fresh.exists():
            left = "" if fresh == out else f"; {out} is as it was"
            complain(f"{fresh}: stopped; it holds what came until then{left}")
        raise
    finally:
        told.over()
    recording = read(fresh.replace(out))
    outcome = judge(recording)
    took = seconds(recording.end_t or 0.0)
    print(f"{visible(str(out))}: {outcome.state}, {counted(outcome.frames, 'frame')} in {took}")
    found = recorded.error or finding(outcome)
    if found:
        complain(f"{out}: {found}")
    return 1 if found else 0


def _free_name(out: Path) -> Path:
    """A name beside `out` for what may replace it; what an earlier try has left there stays."""
    words = itertools.chain(["new"], (f"new{n}" for n in itertools.count(2)))
    names = (out.with_name(f"{word}-{out.name}") for word in words)
    return next(name for name in names if not name.exists())


class _Telling:
    """One line on a terminal that says how far the recording is."""

    def __init__(self) -> None:
        self.events = 0
        self.began = time.monotonic()
        self._line = sys.stderr is not None and sys.stderr.isatty()
        self._drawn = 0.0

    def __call__(self, event: Any) -> None:
        """Count one event of the SDK."""
        self.events += 1
        now = time.monotonic()
        if self._line and now - self._drawn > 0.1:
            self._drawn = now
            print(f"\rrecording: {self}\x1b[K", end="", file=sys.stderr, flush=True)

    def __str__(self) -> str:
        return f"{self.events:,} events in {time.monotonic() - self.began:.1f} s"

    def over(self) -> None:
        """Take the line away again."""
        if self._line and self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
