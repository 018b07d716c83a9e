"""Record what a real client gets, chunk by chunk with times, and change nothing of what it sees.

    with record("demo.stream.jsonl") as recorder:
        client = recorder.attach(Anthropic())

The one idea: the SDK's HTTP library (httpx2) lets a hook replace the byte stream of a response.
Ours puts a `Tap` there, which writes all that passes to a `Tape`; see `tap.py`.

Kept: the body of every answer to a request for a stream, if its status is 2xx, be it a stream or
not. An HTTP error has no stream, and a client reports it by itself. Headers, keys and the request
are never kept. A chunk is what one socket read gave, without the HTTP framing (two HTTP chunks in
one read are two chunks) and without compression. A client that reads late has late times, and one
that hangs up has cancelled, even if it does so because an error event came.

Read next: `analysis/trace.py`, which says what a recording proves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, TypeVar

from streamlab.errors import UsageError
from streamlab.streams.answer import Wants, wanted
from streamlab.streams.asking import ASKING, Asking
from streamlab.streams.recording import Recording
from streamlab.streams.sdks import SDKS, Sdk, opened
from streamlab.streams.tap import DECODED, Clock, Tap, Tape, httpx2

__all__ = ["Recorded", "Recorder", "record", "record_prompt"]

SUFFIX = ".stream.jsonl"

#: The end of a request's path, and the wire format of its answer; others are recognised later.
WIRES = {
    "/messages": "claude",
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    ":streamGenerateContent": "gemini",
}

#: What an SDK lets through besides its own exceptions: its transport's, and the JSON decoder's;
#: and how it objects to an argument.
COMPLAINTS = (httpx2.TransportError, httpx2.InvalidURL, ValueError, TypeError)

ClientT = TypeVar("ClientT")


class Recorder:
    """Records every stream of the clients that are attached to it, until it is closed.

    With a path (`….stream.jsonl`) each stream gets a file: the first that very name, later ones
    `…-2.stream.jsonl` and so on; an existing file is never overwritten. Without one, streams are
    kept in memory. A stream that is still open when the recorder is closed counts as cancelled.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, clock: Clock | None = None
    ) -> None:
        self._path = None if path is None else _checked(Path(path))
        self._clock = clock or time.perf_counter
        self._tapes: list[Tape] = []
        self._paths: list[Path] = []
        self._problem: OSError | None = None
        self._hooks = ExitStack()

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """The streams that are over, in the order in which they began."""
        return tuple(tape.recording() for tape in self._tapes if tape.over)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that were written, one a stream, in the order in which they began."""
        return tuple(self._paths)

    def attach(self, client: ClientT) -> ClientT:
        """Overhear a client from now on, sync or async; return the same client.

        Any SDK whose HTTP client is of httpx2 will do (anthropic 2, openai 3, google-genai 3), or
        that HTTP client itself.
        """
        for http in _http_clients(client):
            if isinstance(http, httpx2.AsyncClient):
                hooks: dict[str, Any] = {"request": self._sent_async, "response": self._came_async}
            elif isinstance(http, httpx2.Client):
                hooks = {"request": self._sent, "response": self._came}
            else:
                found = f"{type(client).__module__}.{type(client).__qualname__}"
                raise UsageError(
                    f"{found} is no client over httpx2; anthropic 2.14 or newer is one"
                )
            if getattr(http, "_per_loop", False):
                self._overhear(http)
            else:
                self._hook(http, hooks)
        return client

    def _hook(self, http: Any, hooks: dict[str, Any]) -> None:
        """See every request and every response of an HTTP client."""
        for name, hook in hooks.items():
            known = http.event_hooks[name]
            if hook not in known:
                # Ours is the last to see the request and the first to see the response.
                known.insert(len(known) if name == "request" else 0, hook)
                self._hooks.callback(known.remove, hook)

    def _overhear(self, http: Any) -> None:
        """The same for a client that sends through others, which its hooks do not reach."""
        if "send" in vars(http):  # it is overheard already
            return
        send = http.send

        async def overheard(request: httpx2.Request, **options: Any) -> httpx2.Response:
            self._sent(request)
            response: httpx2.Response = await send(request, **options)
            if not response.is_closed:
                self._came(response)
            return response

        http.send = overheard
        self._hooks.callback(delattr, http, "send")

    def close(self) -> None:
        """Let go of the clients. Raises `UsageError` where a file could not be written."""
        self._hooks.close()
        for tape in self._tapes:
            tape.end("cancelled")
        problem = next((tape.problem for tape in self._tapes if tape.problem), self._problem)
        if problem is not None:
            raise UsageError(
                f"{self._path}: the recording is incomplete: {problem.strerror or problem}"
            )

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close. What is wrong with the recording must not hide what went wrong in the block."""
        try:
            self.close()
        except Exception as problem:
            if why is None:
                raise
            why.add_note(str(problem))

    def _sent(self, request: httpx2.Request) -> None:
        """Take the time, which is t = 0 of the recording."""
        if _wants(request).stream:
            request.extensions["streamlab.sent"] = self._clock()
            offered = request.headers.get("accept-encoding", "").split(",")
            kept = [coding for coding in map(str.strip, offered) if coding in DECODED]
            request.headers["accept-encoding"] = ", ".join(kept) or "identity"

    def _came(self, response: httpx2.Response) -> None:
        """Tap the answer, if it answers a request for a stream."""
        sent = response.request.extensions.get("streamlab.sent")
        if sent is None or not response.is_success:
            return
        wire = next(
            (w for end, w in WIRES.items() if response.request.url.path.endswith(end)), None
        )
        header = Recording(wire=wire, model=_wants(response.request).model)
        try:
            file = None if self._path is None else self._next_file(self._path)
        except OSError as why:
            self._problem = why
            return
        coding = response.headers.get("content-encoding", "")
        tape = Tape(file, lambda: round(self._clock() - sent, 6), header, coding)
        self._tapes.append(tape)
        response.stream = Tap(response.stream, tape)

    async def _sent_async(self, request: httpx2.Request) -> None:
        self._sent(request)

    async def _came_async(self, response: httpx2.Response) -> None:
        self._came(response)

    def _next_file(self, path: Path) -> IO[bytes]:
        """Open the first free name: `path` itself, or with the next number."""
        stem, number, name = path.name.removesuffix(SUFFIX), 1, path
        while True:
            try:
                file = open(name, "xb")  # noqa: SIM115 (the tape closes it)
            except FileExistsError:
                number += 1
                name = path.with_name(f"{stem}-{number}{SUFFIX}")
                continue
            self._paths.append(name)
            return file


def record(path: str | os.PathLike[str] | None = None, *, clock: Clock | None = None) -> Recorder:
    """Start a recorder; `clock` gives seconds, and never runs backwards."""
    return Recorder(path, clock)


class Recorded(NamedTuple):
    """What `record_prompt` wrote, and the SDK's complaint ("" if it had none)."""

    paths: tuple[Path, ...]
    error: str


def record_prompt(
    model: str,
    prompt: str,
    out: str | os.PathLike[str],
    max_tokens: int = 1024,
    *,
    client: str = "anthropic",
    base_url: str | None = None,
    on_event: Callable[[Any], object] = lambda event: None,
    **options: Any,
) -> Recorded:
    """Ask a model, and record its answer to the file `out`; a stream that breaks is one too.

    `client` is a name of `ASKING`: the SDK, and for one of them the wire. The key comes from the
    environment (such as ANTHROPIC_API_KEY) and goes nowhere but to the SDK. `options` are more
    arguments of the SDK's call: tools, thinking, system. `tools` are in Claude's shape, whatever
    the client. Raises `UsageError` where no stream began.
    """
    if client not in ASKING:
        raise UsageError(f"client {client!r} is none of {', '.join(ASKING)}")
    asking = ASKING[client]
    sdk = SDKS[asking.sdk]
    key = sdk.key or ("none" if base_url else "")
    if not key:
        raise UsageError(
            f"set {sdk.keys[0]}, or name another server, such as `streamlab serve`'s: "
            "--base-url http://127.0.0.1:8765 (in code, base_url)"
        )
    try:
        sdk.load()
    except UsageError as why:
        raise UsageError(f"there is no SDK: {why}") from None
    complaints: tuple[type[Exception], ...] = (*sdk.errors(), *COMPLAINTS)
    ask = _arguments(asking, model, prompt, max_tokens, options)
    error = ""
    with record(out) as recorder:
        events = _events(asking, sdk, recorder, key, base_url, ask)
        while not error:
            try:
                event = next(events)
            except StopIteration:
                break
            except complaints as why:
                error = f"{type(why).__name__}: {why}".replace(key, "(hidden)")
            else:
                on_event(event)
    if not recorder.paths:
        raise UsageError(f"no stream began, so nothing was recorded: {error}")
    return Recorded(recorder.paths, error)


def _arguments(
    asking: Asking, model: str, prompt: str, limit: int, options: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of the SDK's call. Only the tools are worded anew, for those who need that."""
    if asking.sdk == "anthropic":
        return asking.arguments(model, prompt, limit, {}) | options
    more = dict(options)
    tools = {tool["name"]: tool["input_schema"] for tool in more.pop("tools", ())}
    return asking.arguments(model, prompt, limit, tools) | more


def _events(
    asking: Asking,
    sdk: Sdk,
    recorder: Recorder,
    key: str,
    base_url: str | None,
    ask: dict[str, Any],
) -> Iterator[Any]:
    with opened(sdk, base_url, key) as client:
        yield from asking.start(recorder.attach(client), ask)


def _http_clients(client: Any) -> list[Any]:
    """The HTTP clients below an SDK's client: one, or where it is sync and async in one, both."""
    inner = getattr(client, "_api_client", None)
    if inner is None:
        return [getattr(client, "_client", client)]
    both = (getattr(inner, f"_{kind}httpx_client", None) for kind in ("", "async_"))
    return [http for http in both if http is not None]


def _wants(request: httpx2.Request) -> Wants:
    """Say whether a request asks for a stream, and of which model."""
    try:
        wants = wanted(request.content)
    except httpx2.RequestNotRead:  # an upload that is read as it is sent
        wants = Wants()
    if request.url.path.endswith(":streamGenerateContent"):
        return Wants(request.url.path.rpartition("/")[2].partition(":")[0], stream=True)
    return wants


def _checked(path: Path) -> Path:
    if not path.name.endswith(SUFFIX):
        raise UsageError(f"{path}: the name of a live recording must end in {SUFFIX}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    return path
