"""What the real Anthropic SDK makes of a recording: one request over a real socket on loopback.

`ask_sdk(recording)` is lesson 00's ten lines as a function. Nothing is imitated: the SDK reads the
bytes of a `FaultServer`, and what comes back is its own events, its own message, its own exception.
So when a newer SDK behaves differently, so does this, and the tests of lesson 00 say it.

Read next: `streams/server.py`, the other end of the socket.
"""

from __future__ import annotations

from typing import Any

import msgspec

from streamlab.streams.recording import Recording

__all__ = ["Heard", "ask_sdk"]

PROMPT: Any = {"role": "user", "content": "Pay INV-17."}


class Heard(msgspec.Struct, frozen=True):
    """What a program saw that asked through the SDK."""

    events: tuple[Any, ...]  #: everything that its loop over the stream was given
    message: Any = None  #: what `get_final_message()` returned, if it did
    error: str = ""  #: the name of the exception that the loop raised, if it did

    @property
    def names(self) -> tuple[str, ...]:
        """The events' types, in order."""
        return tuple(event.type for event in self.events)


def ask_sdk(recording: Recording, *, ending: str | None = None, framing: str = "chunked") -> Heard:
    """Serve a recording, ask for it through the SDK, and return what the SDK made of it."""
    from anthropic import Anthropic, DefaultHttpxClient  # here, because it takes two seconds

    from streamlab.streams.server import FaultServer  # and because a browser has no sockets

    events: list[Any] = []
    with (
        FaultServer(recording, ending=ending, framing=framing) as server,
        DefaultHttpxClient(trust_env=False) as direct,  # a proxy knows no way to this machine
    ):
        client = Anthropic(base_url=server.url, api_key="none", http_client=direct)
        try:
            with client.messages.stream(model="any", max_tokens=500, messages=[PROMPT]) as stream:
                for event in stream:
                    events.append(event)
                return Heard(tuple(events), stream.get_final_message())
        except Exception as why:  # whatever the SDK raises is the finding
            return Heard(tuple(events), error=type(why).__name__)
