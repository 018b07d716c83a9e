"""What goes into the next request: two buffers side by side, and a server that looks at them.

`advice()` is the answer of lesson 04, whose first half says the opposite of the whole. `shown` is
what of a turn stands on the screen, as the blocks that a program without a second buffer would keep
as the model's words. `send` asks a local server through the real SDK and keeps the bytes that came.
`side_by_side` shows two histories beside each other; `said` wraps one message.

Read next: `consumer/conversation.py`, which keeps whole turns and nothing else.
"""

from __future__ import annotations

import html as markup
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec

from streamlab.consumer.history import Message
from streamlab.consumer.turn import Segment, Turn
from streamlab.streams import synth
from streamlab.streams.parts import Style, Text
from streamlab.streams.recording import Recording

if TYPE_CHECKING:
    from streamlab.streams.server import FaultServer

__all__ = [
    "Reply",
    "SideBySide",
    "advice",
    "advice_anew",
    "run_loop",
    "said",
    "send",
    "shown",
    "side_by_side",
]

#: Width of the row's name and of a column of `side_by_side`, in characters.
LABEL, COLUMN = 11, 38

CELL = "text-align: left; vertical-align: top; padding: 4px 18px 4px 4px; line-height: 1.5"
NAME, HELD = f"{CELL}; white-space: nowrap", f"{CELL}; min-width: 10em; max-width: 24em"
HANGING = "padding-left: 1.2em; text-indent: -1.2em; white-space: pre-wrap"
SIGN = "display: inline-block; width: 1.2em; text-indent: 0"


# --- The answers of the lesson --------------------------------------------------------------------


def advice() -> Recording:
    """Ten frames. After frame 5 the text is a whole sentence, and the answer is not whole."""
    pieces = ("Yes, W-7", " can be", " deleted.", " But first", " close its audit.")
    return _text(pieces, seed=4, note="advice about W-7")


def advice_anew() -> Recording:
    """What the model wrote when it was asked again: other words, as always."""
    pieces = ("Not yet:", " its audit", " is still open.")
    return _text(pieces, seed=5, note="the advice, written anew")


def _text(pieces: tuple[str, ...], seed: int, note: str) -> Recording:
    return synth.answer([Text(pieces)], seed=seed, note=note, style=Style(pings=0))


# --- The bad design -------------------------------------------------------------------------------


def shown(turn: Turn) -> list[dict[str, Any]]:
    """The blocks as they stand on the screen at this moment, whole or not."""
    return [_SHOWN[segment.kind](segment) for segment in turn.segments]


_SHOWN: dict[str, Callable[[Segment], dict[str, Any]]] = {
    "text": lambda s: {"type": "text", "text": s.text},
    "thinking": lambda s: {"type": "thinking", "thinking": s.text, "signature": s.signature},
    "tool_call": lambda s: {
        "type": "tool_use",
        "id": s.start.call_id,
        "name": s.start.name,
        "input": s.text if s.input is None else s.input,
    },
    "other": lambda s: {"type": s.start.type, **s.attached},
}


def run_loop(history: Sequence[Message], recording: Recording) -> list[Message]:
    """What a simple agent loop does with the SDK's message: keep it, run its calls, add results.

    Nothing is paid here: what would have been done is only said, in the result.
    """
    from streamlab.study.sdk import ask_sdk

    content = [block.to_dict() for block in ask_sdk(recording).message.content]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": f"done: {call['input']}"}
        for call in content
        if call["type"] == "tool_use"
    ]
    said: list[Message] = [{"role": "assistant", "content": content}]
    return [*history, *said, *([{"role": "user", "content": results}] if results else [])]


# --- The next request -----------------------------------------------------------------------------


class Reply(msgspec.Struct, frozen=True):
    """What came of one request. `str()` says it without the bytes."""

    status: int  #: of HTTP; 0 where no answer came at all
    recording: Recording  #: the bytes that came, if a stream began
    error: str = ""  #: the exception that the SDK raised, if it did
    says: str = ""  #: the reason that the server gave, where it refused

    def __str__(self) -> str:
        return " ".join(filter(None, (str(self.status), self.error, self.says)))


def send(messages: Sequence[Message], server: FaultServer, patience: float = 10.0) -> Reply:
    """Ask through the real SDK, once, and keep what came; `patience` is in seconds between reads.

    Nothing is raised: what the SDK raises is part of the reply.
    """
    from anthropic import Anthropic, APIStatusError, DefaultHttpxClient  # it takes two seconds

    from streamlab.streams.live import record  # and a browser has no sockets

    asked: Any = list(messages)
    with DefaultHttpxClient(trust_env=False) as direct, record() as recorder:
        client = Anthropic(
            base_url=server.url, api_key="none", http_client=direct, max_retries=0, timeout=patience
        )
        error = says = ""
        status = 0
        try:
            with recorder.attach(client).messages.create(
                model="any", max_tokens=500, messages=asked, stream=True
            ) as stream:
                status = stream.response.status_code
                for _ in stream:
                    pass
        except APIStatusError as why:
            status, error, says = why.status_code, type(why).__name__, _reason(why.body)
        except Exception as why:  # whatever else it raises is the finding
            error = type(why).__name__
    return Reply(status, (*recorder.recordings, Recording())[0], error, says)


def _reason(body: Any) -> str:
    """The reason in an error's body, which has the API's shape where it is the API's."""
    error = body.get("error") if isinstance(body, dict) else None
    return str(error.get("message", "")) if isinstance(error, dict) else ""


# --- Side by side ---------------------------------------------------------------------------------


class SideBySide(msgspec.Struct, frozen=True):
    """Two buffers in two designs: a row has a name, and for every design some lines."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]

    def __repr__(self) -> str:
        lines = [_line("", [f"  {name}" for name in self.names])]
        for label, cells in self.rows:
            columns = [[part for line in cell for part in _wrapped(line)] for cell in cells]
            for n, parts in enumerate(zip_longest(*columns, fillvalue="")):
                lines.append(_line("" if n else label, parts))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads = "".join(
            f'<th scope="col" style="{HELD}">{_html_line(f"  {name}")}</th>' for name in self.names
        )
        body = "".join(
            f'<tr><th scope="row" style="{NAME}">{_html(label)}</th>'
            + "".join(f'<td style="{HELD}">{"".join(map(_html_line, cell))}</td>' for cell in cells)
            + "</tr>"
            for label, cells in self.rows
        )
        return f'<table><tr><th style="{NAME}"></th>{heads}</tr>{body}</table>'


def side_by_side(
    turn: Turn, before: Sequence[Message], after: Mapping[str, Sequence[Message]]
) -> SideBySide:
    """Show the screen and the history, before and after, for each design by its name.

    The screen has all that came of the turn, also the card of a call that is not whole.
    """
    screen = " ".join(map(_block, shown(turn)))
    known = tuple(f"  {line}" for line in map(_message, before))
    kept = tuple(
        (*known, *(f"+ {line}" for line in map(_message, history[len(before) :])))
        for history in after.values()
    )
    same = len(after)
    return SideBySide(
        tuple(after),
        (
            ("on screen", ((f"  {screen}",),) * same),
            ("before", (known,) * same),
            ("after", kept),
        ),
    )


def said(message: Message) -> str:
    """What a message of text says, wrapped and indented, its paragraphs as they are."""
    paragraphs = [line for block in message["content"] for line in block["text"].split("\n")]
    return "\n".join(
        textwrap.fill(line, 88, initial_indent="  ", subsequent_indent="  ") for line in paragraphs
    )


def _message(message: Message) -> str:
    held = message["content"]
    blocks = [{"type": "text", "text": held}] if isinstance(held, str) else held
    return f"{message['role']}: {' '.join(map(_block, blocks)) or '(nothing)'}"


def _block(block: Mapping[str, Any]) -> str:
    """One block in a few words: its text, or its type and what it holds."""
    if block["type"] == "text":
        return str(block["text"])
    if block["type"] == "tool_use":
        value = block["input"]
        return f"[{block['name']} {value if isinstance(value, str) else json.dumps(value)}]"
    return f"[{block['type']} {block.get('content', block.get('thinking', ''))}]"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, COLUMN - 2, subsequent_indent="    ") or [""]


def _line(label: str, cells: Sequence[str]) -> str:
    return (f"{label:{LABEL}}" + "".join(f"{cell:{COLUMN}}" for cell in cells)).rstrip()


def _html_line(line: str) -> str:
    """A message: what is new has a sign before it."""
    sign, text = line[:2].strip(), _html(line[2:])
    return f'<div style="{HANGING}"><span style="{SIGN}">{sign}</span>{text}</div>'


def _html(text: str) -> str:
    return markup.escape(text.encode("utf-8", "replace").decode())
