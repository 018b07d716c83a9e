"""Lesson 10's recordings: a week of a gateway's requests, made by a seed, and a browser's capture.

`week()` is 300 requests to four models on five days; what went wrong with each is known, since it
was put in here (`Request.truth`). `folder()` has them as files, `access_log()` as a gateway's log
would have them: status, bytes and seconds, and not a word of what was in the answer.

Read next: `exercise_10.py`; `analysis/corpus/`, which reads such a folder.
"""

from __future__ import annotations

import datetime
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from streamlab.streams import faults, synth
from streamlab.streams.recording import Chunk, Recording, write

__all__ = [
    "DAYS",
    "MODELS",
    "PLAN",
    "Request",
    "access_log",
    "folder",
    "har",
    "held_call",
    "logged",
    "make",
    "week",
]

#: Model -> its wire format, and its pace.
MODELS = {
    "atlas-1": ("claude", synth.Pace(0.6, 0.05)),
    "birch-2": ("openai-chat", synth.Pace(0.4, 0.04)),
    "cedar-1": ("openai-responses", synth.Pace(0.8, 0.06)),
    "dune-3": ("gemini", synth.Pace(0.5, 0.07)),
}

#: Monday to Friday.
DAYS = tuple(f"2026-11-{day}" for day in range(23, 28))

#: Requests of one model on one day.
EACH = 15

#: On this day one of the proxies before this model compresses, and so many requests go through it.
HELD_DAY, HELD_MODEL, HELD = DAYS[3], "birch-2", 6


class Request(NamedTuple):
    """One request, what came for it, and what was done to that."""

    day: str
    model: str
    number: int  #: of that model, on that day, from 1
    status: int
    recording: Recording
    truth: str  #: a key of `PLAN`, "held", or "fine"

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.model}-{self.number:02}.stream.jsonl"


def _cut(answer: Recording, rng: Random) -> Recording:
    return faults.disconnect(answer, _inside(answer, rng))


def _reset(answer: Recording, rng: Random) -> Recording:
    return faults.disconnect(answer, _inside(answer, rng), "reset")


def _error(answer: Recording, rng: Random) -> Recording:
    return faults.error(answer, _inside(answer, rng))


def _limit(answer: Recording, rng: Random) -> Recording:
    return faults.token_limit(answer, _inside(answer, rng))


def _stall(answer: Recording, rng: Random) -> Recording:
    return faults.stall(answer, _inside(answer, rng), rng.randrange(4, 9))


def _slow(answer: Recording, rng: Random) -> Recording:
    return faults.slow_start(answer, rng.randrange(3, 6))


def _refused(answer: Recording, rng: Random) -> Recording:
    body = b'{"error": {"type": "overloaded_error", "message": "Overloaded"}}\n'
    return msgspec.structs.replace(answer, chunks=(Chunk(0.2, body),), end_t=0.2)


def _inside(answer: Recording, rng: Random) -> int:
    """A frame in the middle of an answer."""
    count = len(faults.frames(answer))
    return rng.randrange(count // 4, count - count // 4)


#: What went wrong -> how often in the week, the HTTP status, and how it is done.
PLAN: dict[str, tuple[int, int, Callable[[Recording, Random], Recording]]] = {
    "cut": (9, 200, _cut),  # and the body ends cleanly
    "reset": (4, 200, _reset),
    "error": (5, 200, _error),
    "limit": (4, 200, _limit),
    "stall": (5, 200, _stall),
    "slow": (4, 200, _slow),
    "refused": (6, 503, _refused),
}

#: What the answers of the week are made of.
WORDS = ("a", "stream", "is", "no", "answer", "until", "its", "end", "has", "come", "and", "seen")


# --- The week -------------------------------------------------------------------------------------


@cache
def week(seed: int = 10) -> tuple[Request, ...]:
    """Every request, in order. The same seed gives the same bytes and times everywhere."""
    rng = Random(seed)
    places = [(day, model, n + 1) for day in DAYS for model in MODELS for n in range(EACH)]
    truths = _dealt(places, rng)
    return tuple(_request(*place, truths[place], rng) for place in places)


Place = tuple[str, str, int]


def _dealt(places: list[Place], rng: Random) -> dict[Place, str]:
    """What goes wrong at which place; each kind exactly as often as planned."""
    mixed = sorted(places, key=lambda _: rng.random())
    collected = [place for place in mixed if place[:2] == (HELD_DAY, HELD_MODEL)][:HELD]
    truths = dict.fromkeys(places, "fine") | dict.fromkeys(collected, "held")
    free = iter(place for place in mixed if truths[place] == "fine")
    for kind, (count, _, _) in PLAN.items():
        truths |= {next(free): kind for _ in range(count)}
    return truths


def _request(day: str, model: str, number: int, truth: str, rng: Random) -> Request:
    wire, pace = MODELS[model]
    words = tuple(f"{rng.choice(WORDS)} " for _ in range(rng.randrange(40, 80)))
    style, seed = synth.Style(pings=0), rng.randrange(1_000_000)
    parts = [synth.Text(words)]
    answer = synth.answer(parts, wire=wire, model=model, seed=seed, style=style, pace=pace)
    if truth in PLAN:
        _, status, broken = PLAN[truth]
        return Request(day, model, number, status, broken(answer, rng), truth)
    answer = faults.burst(answer) if truth == "held" else answer
    return Request(day, model, number, 200, answer, truth)


# --- As files, and as a log -----------------------------------------------------------------------


def make(home: Path, requests: Iterable[Request] = ()) -> Path:
    """Write the week's files into a folder, a folder a day, each with the time of its request.

    One file more is half a HAR, of Friday: its disk was full.
    """
    for request in requests or week():
        place = home / request.day
        place.mkdir(parents=True, exist_ok=True)
        write(request.recording, place / request.name)
        _sent(place / request.name, request.day, request.number)
    half = home / DAYS[-1] / "disk-full.har"
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_text('{"log": {"version": "1.2", "entries": [', "utf-8")
    _sent(half, DAYS[-1], EACH + 1)
    return home


def _sent(path: Path, day: str, minute: int) -> None:
    """Let a file be of a minute after nine, UTC: a plain recording has no date but its file's."""
    when = datetime.datetime.fromisoformat(f"{day}T09:{minute:02}:00+00:00").timestamp()
    os.utime(path, (when, when))


def access_log() -> Any:
    """The week as a gateway logs it, as a DataFrame: a row a request."""
    import pandas as pd

    rows = [
        {
            "day": request.day,
            "model": request.model,
            "status": request.status,
            "bytes": len(request.recording.data),
            "seconds": request.recording.end_t,
        }
        for request in week()
    ]
    return pd.DataFrame(rows)


def logged(recording: Recording) -> str:
    """What such a log says of one answer that began with status 200."""
    return f"200 {len(recording.data):5} bytes {recording.end_t or 0:4.1f} s"


@cache
def _home() -> tempfile.TemporaryDirectory[str]:
    """A place for files that is gone with this process."""
    return tempfile.TemporaryDirectory(prefix="streamlab-")


@cache
def folder() -> Path:
    """The week's files, in a temporary folder."""
    return make(Path(_home().name) / "week")


# --- Single recordings ----------------------------------------------------------------------------


def held_call() -> Recording:
    """Text that flows, a silence of two seconds, then a whole call at once."""
    answer = synth.change_label()
    text_ends = 8  # frames: the text's block is over
    return faults.burst(faults.stall(answer, text_ends, 2), text_ends)


def har() -> Path:
    """A browser's capture of one answer, with a key in its URL and an address in its text."""
    said = synth.Text(("Done. ", "I wrote to ", "ada@example.com", "."))
    body = synth.answer([said], wire="gemini").data.decode()
    url = "https://api.example.com/v1beta/models/m:streamGenerateContent?alt=sse&key=my-own-key"
    entry = {
        "startedDateTime": "2026-11-26T09:00:00.000Z",
        "time": 1600.0,
        "request": {"method": "POST", "url": url, "headers": []},
        "response": {
            "status": 200,
            "headers": [{"name": "content-type", "value": "text/event-stream"}],
            "content": {"mimeType": "text/event-stream", "size": len(body), "text": body},
        },
        "timings": {"send": 0.0, "wait": 600.0, "receive": 1000.0},
    }
    path = Path(_home().name) / "network-panel.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}), "utf-8")
    return path
