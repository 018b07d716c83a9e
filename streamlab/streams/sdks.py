"""The real SDKs that streamlab can drive: how each is found, opened on an address, and closed.

One table, a row for each SDK. Nothing is imported before it is asked for, and an SDK that is not
installed is one clear line. Whoever opens a client gives it an HTTP client of the SDK's own kind,
so that a proxy of the environment stays out of the way to a server on this machine.

Read next: `live.py`, which records through them; `study/clients.py`, which puts faults to them.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import metadata
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from streamlab.errors import UsageError

__all__ = ["SDKS", "Sdk", "is_local", "opened", "opened_async", "versions"]

#: What a client is made of: the module, its HTTP client, the key, the address, and how often it
#: tries again (None: as the SDK does by itself).
Make = Callable[[ModuleType, Any, str, str | None, int | None], Any]


class Sdk(NamedTuple):
    """One SDK."""

    name: str  #: as it is installed
    module: str  #: as it is imported
    keys: tuple[str, ...]  #: environment variables that may hold the key
    install: str
    client: Make
    async_client: Make
    transports: tuple[str, str]  #: names of its HTTP client classes, "" for those of httpx2
    error: str  #: the class of its own exceptions, below its module

    @property
    def installed(self) -> bool:
        """Whether it can be imported."""
        return self.version != ""

    @property
    def version(self) -> str:
        """Its version; "" where it is not installed."""
        return _version(self.name)

    @property
    def missing(self) -> str:
        """What to say where it is not installed."""
        return f"{self.name} is not installed: {self.install}"

    @property
    def key(self) -> str:
        """The key in the environment; "" where there is none."""
        return next(filter(None, map(os.environ.get, self.keys)), "") or ""

    def errors(self) -> tuple[type[Exception], ...]:
        """The class of its own exceptions; what its HTTP stack raises is not among them."""
        found: Any = self.load()
        for name in self.error.split("."):
            found = getattr(found, name)
        return (found,)

    def load(self) -> ModuleType:
        """Import it. Raises `UsageError` where it is not installed."""
        try:
            return importlib.import_module(self.module)
        except ImportError:
            raise UsageError(self.missing) from None


def _vendor(kind: str) -> Make:
    def make(sdk: ModuleType, http: Any, key: str, url: str | None, retries: int | None) -> Any:
        more = {} if retries is None else {"max_retries": retries}
        return getattr(sdk, kind)(api_key=key, base_url=url, http_client=http, **more)

    return make


def _google(field: str) -> Make:
    def make(sdk: ModuleType, http: Any, key: str, url: str | None, retries: int | None) -> Any:
        # It tries nothing again unless it is told to, so there is nothing to switch off.
        options = {"base_url": url, field: http}
        return sdk.Client(api_key=key, vertexai=False, http_options=options)

    return make


_EXTRA = "python3 -m pip install 'streamlab[clients]'"
_DEFAULTS = ("DefaultHttpxClient", "DefaultAsyncHttpxClient")

SDKS = {
    sdk.name: sdk
    for sdk in (
        Sdk(
            "anthropic",
            "anthropic",
            ("ANTHROPIC_API_KEY",),
            "python3 -m pip install 'anthropic>=2.14'",
            _vendor("Anthropic"),
            _vendor("AsyncAnthropic"),
            _DEFAULTS,
            "AnthropicError",
        ),
        Sdk(
            "openai",
            "openai",
            ("OPENAI_API_KEY",),
            _EXTRA,
            _vendor("OpenAI"),
            _vendor("AsyncOpenAI"),
            _DEFAULTS,
            "OpenAIError",
        ),
        Sdk(
            "google-genai",
            "google.genai",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            _EXTRA,
            _google("httpx_client"),
            _google("httpx_async_client"),
            ("", ""),
            "errors.APIError",
        ),
    )
}

#: What carries the bytes below them.
HTTP_STACK = ("httpx2", "httpcore2", "h11")


def versions() -> dict[str, str]:
    """Every SDK and the HTTP stack below them, with versions; "" for what is not installed."""
    return {name: _version(name) for name in (*SDKS, *HTTP_STACK)}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def is_local(url: str | None) -> bool:
    """Whether an address is on this machine, where no proxy finds the way to."""
    return urlsplit(url or "").hostname in ("127.0.0.1", "::1", "localhost")


@contextmanager
def opened(
    sdk: Sdk, url: str | None = None, key: str = "none", retries: int | None = None
) -> Iterator[Any]:
    """A client of that SDK, for as long as the `with` block. `url` is a server's, without a path"""
    module = sdk.load()
    transport = _transport(module, sdk.transports[0] or "Client")
    with transport(trust_env=not is_local(url)) as http:
        yield sdk.client(module, http, key, _base(sdk, url), retries)


@asynccontextmanager
async def opened_async(
    sdk: Sdk, url: str | None = None, key: str = "none", retries: int | None = None
) -> AsyncIterator[Any]:
    """The same, for programs with `await`."""
    module = sdk.load()
    transport = _transport(module, sdk.transports[1] or "AsyncClient")
    async with transport(trust_env=not is_local(url)) as http:
        client = sdk.async_client(module, http, key, _base(sdk, url), retries)
        yield getattr(client, "aio", client)  # one SDK has both kinds in one, and this is its half


def _transport(module: ModuleType, name: str) -> Any:
    found = getattr(module, name, None) if name.startswith("Default") else None
    return found or getattr(importlib.import_module("httpx2"), name)


def _base(sdk: Sdk, url: str | None) -> str | None:
    """The address as that SDK wants it: one of them expects the version in it."""
    bare = url is not None and not urlsplit(url).path.strip("/")
    return f"{url.rstrip('/')}/v1" if sdk.name == "openai" and bare and url else url
