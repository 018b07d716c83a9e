"""`streamlab serve --forward`: a page in front of a stream, for a browser on this machine.

Two servers: the fault server, or another one that is named, and the forwarder, which asks it, runs
the turn and sends a browser what happens. Both say a line about each thing that ends, so that it
can be seen how leaving the page closes the stream behind it.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from streamlab.analysis.plain import visible
from streamlab.cli_live import answers_of, how_of, stopped
from streamlab.consumer.gates import EFFECT, Policy
from streamlab.consumer.history import Message
from streamlab.consumer.toolloop import Ask, Tool
from streamlab.errors import UsageError
from streamlab.streams.forward import Forwarded, Forwarder
from streamlab.streams.recording import Chunk
from streamlab.streams.requests import authorised
from streamlab.streams.server import FaultServer, Served
from streamlab.streams.upstream import Upstream

__all__ = ["forward"]


#: Two threads speak; `print` writes a line and its end apart.
ONE_LINE = threading.Lock()


class _Plan(NamedTuple):
    """What stands behind the page."""

    answers: Any = None  #: of our own fault server
    tools: Mapping[str, Tool] = {}
    policy: Policy = EFFECT
    suggestion: str = "Hello!"


def forward(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    plan = _plan(options)
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as open:
        server = None
        if not options.upstream:
            server = open.enter_context(FaultServer(plan.answers, **how_of(options)))
        url = server.url if server else options.upstream
        ask = _each_round(url) if server else _upstream(options)
        asked = (ask, plan.tools, plan.policy)
        page = Forwarder(*asked, suggestion=plan.suggestion, show=_show, port=options.port)
        open.enter_context(page)
        print(f"streamlab: the page is {page.url}/ (Ctrl-C stops it)", flush=True)
        print(f"behind it: {visible(url)}", flush=True)
        with contextlib.suppress(ValueError):  # only a main thread may
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # as graceful as Ctrl-C
        _until_ctrl_c(server)
    return 0


def _until_ctrl_c(server: FaultServer | None) -> None:
    """Wait, and say what came of each request behind the page."""
    if server is not None:
        server.serve_forever(_show)
        return
    with contextlib.suppress(KeyboardInterrupt):
        while True:  # never wait long: on Windows, Ctrl-C does not interrupt a wait
            threading.Event().wait(0.5)


def _show(what: Served | Forwarded) -> None:
    with ONE_LINE:
        print(visible(str(what)), flush=True)


def _plan(options: argparse.Namespace) -> _Plan:
    """One stream, or a turn of three rounds where none is named."""
    if options.upstream:
        ours = ("files", "scenario", "after", "ending", "error", "status")
        used = next((name for name in ours if getattr(options, name)), "")
        if used:
            raise UsageError(f"--upstream has streams of its own: {used} is for ours")
        _upstream(options)  # it says what is wrong with a URL
        return _Plan()
    if len(options.files) + len(options.scenario) > 1 or "all" in options.scenario:
        raise UsageError("--forward shows one stream: name one file, or one --scenario")
    if options.scenario:
        from streamlab.streams.scenarios import named

        answers = answers_of(options)  # first: it says what is wrong with a name
        script = named(options.scenario[0]).script
        return _Plan(answers, policy=script.policy, suggestion=script.prompt)
    if options.files or options.status is not None:
        return _Plan(answers_of(options))
    from streamlab.streams.rounds import READING
    from streamlab.study.turns import slow_tools, three_rounds

    rounds = {_name(number): round for number, round in enumerate(three_rounds(), 1)}
    question = "What about W-7, W-8 and W-9?"
    return _Plan(stopped(rounds, options), slow_tools(), READING, question)


def _upstream(options: argparse.Namespace) -> Upstream:
    url, wire = options.upstream, options.wire
    return Upstream(url, options.model, wire=wire, headers=authorised(wire, url))


def _name(number: int) -> str:
    return f"round-{number}"


def _each_round(url: str) -> Ask:
    """Ask for the rounds of a turn by name, so that two turns at a time don't mix them up."""

    def ask(messages: list[Message]) -> AsyncIterator[Chunk]:
        number = 1 + sum(message["role"] == "assistant" for message in messages)
        return Upstream(url, _name(number))(messages)

    return ask
