"""What a page says at once: traits that come as a message, ahead of the state that says the same.

While the kernel is busy, the state of a view waits in the page, and the next cell overtakes it: it
would read what was picked before. A message is sent at once, so Python has it when that cell runs.
"""

from __future__ import annotations

import anywidget

__all__ = ["hear"]


def hear(view: anywidget.AnyWidget, *names: str) -> None:
    """Let messages of the page set these traits, with the checks that state has; no others."""

    def on_message(_: anywidget.AnyWidget, message: object, buffers: object) -> None:
        if isinstance(message, dict):
            view.set_state({name: message[name] for name in names if name in message})

    view.on_msg(on_message)
