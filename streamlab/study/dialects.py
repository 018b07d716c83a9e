"""What lesson 08 lays side by side: one answer in four wire formats, and streams that differ.

`meaning` is what has to stay the same. `first`, `payloads`, `entries` and `candidates` look into a
stream; `chat`, `contradicting` and `stop_in_each` write what some servers send; and `heard` is a
browser's side of a forwarder, as text.

Read next: `exercise_08.py`; `../streams/synth.py`, where the answers come from.
"""

from __future__ import annotations

import http.client
import json
import textwrap
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from streamlab.consumer.history import Message
from streamlab.consumer.turn import Turn
from streamlab.errors import UsageError
from streamlab.streams import faults, synth
from streamlab.streams.edit import with_chunks
from streamlab.streams.forward import Forwarder
from streamlab.streams.forward_frames import FRAMING, HEADERS
from streamlab.streams.parts import Style, Text
from streamlab.streams.recording import Chunk, Recording, read
from streamlab.streams.upstream import Replay
from streamlab.study.turns import slowly

__all__ = [
    "NO_IDS",
    "ONE_INDEX",
    "WIRES",
    "candidates",
    "chat",
    "contradicting",
    "entries",
    "explained",
    "first",
    "fixture",
    "forwarding",
    "heard",
    "meaning",
    "payloads",
    "side_by_side",
    "stop_in_each",
    "two_sentences",
]

JSON = dict[str, Any]

#: The four wire formats, Claude's first.
WIRES = ("claude", "openai-chat", "openai-responses", "gemini")

#: The recordings that the project wrote itself, in its checkout.
FIXTURES = Path(__file__).parents[2] / "fixtures"


def meaning(turn: Turn) -> list[tuple[str, Any]]:
    """What each segment is, and what it says: a call its tool and its parsed input."""
    return [
        (part.kind, (part.start.name, part.input) if part.kind == "tool_call" else part.text)
        for part in turn.segments
    ]


# --- Looking into a stream ------------------------------------------------------------------------


def first(recording: Recording, words: str) -> str:
    """The first frame that holds these words: its lines, just as they came."""
    sought = words.encode()
    for frame in faults.frames(recording):
        if sought in frame.data:
            raw = recording.data[frame.start : frame.end].decode()
            return "\n".join(line for line in raw.splitlines() if line)
    raise UsageError(f"no frame of this recording holds {words!r}")


def payloads(recording: Recording) -> list[JSON]:
    """The JSON of every frame, in order; Chat's `[DONE]` is none."""
    return [json.loads(f.data) for f in faults.frames(recording) if f.data != b"[DONE]"]


def entries(recording: Recording) -> list[JSON]:
    """Chat: what all chunks of the first choice have in `tool_calls`, in order."""
    choices = (choice for chunk in payloads(recording) for choice in chunk["choices"][:1])
    return [entry for choice in choices for entry in choice["delta"].get("tool_calls", ())]


def candidates(recording: Recording) -> list[JSON]:
    """Gemini: the first candidate of every chunk."""
    return [chunk["candidates"][0] for chunk in payloads(recording)]


def fixture(name: str) -> Recording:
    """A recording of the checkout's `fixtures` folder, such as "gemini/story.sse"."""
    found = read(FIXTURES / name)
    return found if isinstance(found, Recording) else found.load()


# --- Streams that differ --------------------------------------------------------------------------


def side_by_side() -> Recording:
    """Chat: the two calls of `parallel_tools`, their fragments mixed."""
    return synth.parallel_tools(wire="openai-chat", style=Style(interleave=True))


def _entry(id: str | None, item: str, label: str) -> JSON:
    text = json.dumps({"item": item, "label": label})
    said: JSON = {"index": 0, "function": {"name": "change_label", "arguments": text}}
    return said if id is None else {"index": 0, "id": id, **said}


#: Two calls, each whole in one entry, as some compatible servers send them: all at index 0.
ONE_INDEX = (_entry("a", "W-7", "Ready for review"), _entry("b", "W-8", "Blocked"))
NO_IDS = (_entry(None, "W-7", "Ready for review"), _entry(None, "W-8", "Blocked"))


def chat(entries: Iterable[JSON]) -> Recording:
    """Chat: a whole stream that brings these entries of `tool_calls`, each in its own chunk."""

    def chunk(delta: JSON, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        body = {"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}
        return f"data: {json.dumps(body)}\n\n".encode()

    body = [chunk({"tool_calls": [entry]}) for entry in entries]
    frames = [chunk({"role": "assistant"}), *body, chunk({}, "tool_calls"), b"data: [DONE]\n\n"]
    return Recording(tuple(Chunk(None, frame) for frame in frames), wire="openai-chat")


def contradicting(recording: Recording, old: str, new: str) -> Recording:
    """Responses: whatever is said a second time says `new` where the deltas said `old`."""
    chunks, data = [], recording.data
    for frame in faults.frames(recording):
        raw = data[frame.start : frame.end]
        again = frame.event.endswith((".done", ".completed"))
        chunks.append(Chunk(None, raw.replace(old.encode(), new.encode()) if again else raw))
    return with_chunks(recording, chunks)


def two_sentences(wire: str = "gemini") -> Recording:
    """An answer whose first fragment looks like all of it."""
    text = Text(("Ship W-7.", " But not before Friday."))
    return synth.answer([text], wire=wire, style=Style(pings=0), note="two sentences")


def stop_in_each(recording: Recording) -> Recording:
    """Gemini: the same chunks, each with the finish reason that only the last should have."""
    chunks = []
    for body in payloads(recording):
        body["candidates"][0]["finishReason"] = "STOP"
        chunks.append(Chunk(None, f"data: {json.dumps(body)}\n\n".encode()))
    return with_chunks(recording, chunks)


# --- Forwarding -----------------------------------------------------------------------------------


def forwarding(recording: Recording, pace: float = 0.0) -> Forwarder:
    """A forwarder behind which each turn is answered with this recording."""

    async def ask(messages: list[Message]) -> AsyncIterator[Chunk]:
        async for chunk in Replay(recording)(messages):
            yield chunk

    return Forwarder(slowly(ask, pace) if pace else ask)


def heard(server: Forwarder) -> tuple[list[tuple[str, str]], list[str]]:
    """Ask for one turn, as a browser does: the answer's headers, and its events as lines.

    How often a part grew is chance: it depends on how fast the reader is. So fragments of a text
    are joined here, and sizes are left out; so are ids and the names of turn and attempt.
    """
    at = urlsplit(server.url)
    line = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
    try:
        body, headers = (
            json.dumps({"question": "Is W-7 ready?"}),
            {"Content-Type": "application/json"},
        )
        line.request("POST", "/turn", body, headers)
        answer = line.getresponse()
        return answer.getheaders(), _lines(answer.read().decode())
    finally:
        line.close()


def explained(headers: Iterable[tuple[str, str]]) -> str:
    """Headers as they came, each with the reason why it is sent."""
    why = {header.name: header.why for header in (*HEADERS, *FRAMING)}
    wide = textwrap.TextWrapper(70, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(f"{name}: {value}\n{wide.fill(why[name])}" for name, value in headers)


#: Fields that say which turn this is, or nothing new.
DULL = ("turn", "attempt", "why", "said", "number", "kept", "server")


def _lines(body: str) -> list[str]:
    lines: list[str] = []
    grown: list[str] = []
    for block in body.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if not fields or fields["event"] == "InputGrew":
            continue
        name, said = fields["event"], json.loads(fields["data"])
        if name == "SegmentGrew":
            grown.append(said["text"])
            continue
        if grown:
            lines.append(f"SegmentGrew {json.dumps(''.join(grown))}")
            grown = []
        told = [
            value for key, value in said.items() if key not in DULL and value not in ("", False)
        ]
        lines.append(" ".join([name, *(v if isinstance(v, str) else json.dumps(v) for v in told)]))
    return lines
