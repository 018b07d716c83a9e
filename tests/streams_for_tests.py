"""Small streams for the tests of the core: frames as bytes, whole answers, and what draws them.

Nothing here is shared with `streamlab/`: a test that built its input with the code under test would
prove nothing. The Hypothesis strategies draw three kinds of bytes: answers that keep the grammar,
the same ones broken, and bytes that mean nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import Any

from hypothesis import strategies as st

from streamlab.consumer.consumer import Consumer
from streamlab.consumer.gates import EFFECT, Policy
from streamlab.wire.dialect import Dialect
from streamlab.wire.events import Event
from streamlab.wire.reader import BOUNDS, Bounds, Read
from streamlab.wire.sse import Blocks, Frame, SSEDecoder

JSON = dict[str, Any]

# --- Frames -----------------------------------------------------------------------------------


def frame(payload: Any, event: str | None = None, ascii: bool = True) -> bytes:
    """One block; its event name is the payload's type unless another is given ("": no name)."""
    name = payload.get("type", "") if event is None else event
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(payload, ensure_ascii=ascii)}\n\n".encode()


def start(**message: Any) -> JSON:
    return {"type": "message_start", "message": {"id": "msg_1", "model": "model-1", **message}}


def block(index: int, type: str = "text", **fields: Any) -> JSON:
    first: JSON = {"text": ""} if type == "text" else {}
    if type == "thinking":
        first = {"thinking": "", "signature": ""}
    if type in ("tool_use", "server_tool_use"):
        first = {"id": f"call_{index}", "name": "change_label", "input": {}}
    content = {"type": type, **first, **fields}
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: int, type: str, **fields: Any) -> JSON:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def text(index: int, text: str) -> JSON:
    return delta(index, "text_delta", text=text)


def fragment(index: int, text: str) -> JSON:
    return delta(index, "input_json_delta", partial_json=text)


def stop(index: int) -> JSON:
    return {"type": "content_block_stop", "index": index}


def end(stop_reason: str | None = "end_turn", usage: JSON | None = None, **delta: Any) -> JSON:
    given = {"usage": usage} if usage is not None else {}
    return {"type": "message_delta", "delta": {"stop_reason": stop_reason, **delta}, **given}


STOP: JSON = {"type": "message_stop"}
PING: JSON = {"type": "ping"}

#: A text answer and a tool call, event by event.
TEXT = (start(), block(0), text(0, "Hi"), text(0, " there"), stop(0), end(), STOP)
INPUT = '{"item": "W-7", "label": "Ready"}'
CALL = (
    start(),
    block(0, "tool_use"),
    fragment(0, ""),
    fragment(0, INPUT[:11]),
    fragment(0, INPUT[11:]),
    stop(0),
    end("tool_use"),
    STOP,
)


def stream(payloads: Iterable[Any]) -> bytes:
    return b"".join(p if isinstance(p, bytes) else frame(p) for p in payloads)


def lines(payloads: Iterable[JSON]) -> bytes:
    """The same events, one a line of JSON."""
    return b"".join(json.dumps(payload).encode() + b"\n" for payload in payloads)


# --- Feeding ----------------------------------------------------------------------------------


def pieces(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """The bytes, cut at some offsets."""
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(data)}), len(data)]
    return (data[a:b] for a, b in pairwise(edges))


def decode(data: bytes, max_frame: int | None = None) -> tuple[list[Frame], SSEDecoder]:
    """The frames of some bytes, fed whole; byte by byte and in other ways they must be the same.

    What follows without a line end (the "junk") may neither change a frame nor add one.
    """
    limit = {} if max_frame is None else {"max_frame": max_frame}
    whole = SSEDecoder(**limit)
    frames = whole.feed(data)
    for size in (1, 2, 3, 7):
        split = SSEDecoder(**limit)
        fed = [f for at in range(0, len(data), size) for f in split.feed(data[at : at + size])]
        assert fed == frames, f"in pieces of {size} bytes"
        assert split.overrun == whole.overrun
        assert (split.last_event_id, split.stray) == (whole.last_event_id, whole.stray)
    assert SSEDecoder(**limit).feed(data + b"data: junk without an end") == frames
    return frames, whole


def in_runs(reader: Dialect, frames: list[Frame]) -> list[tuple[Event, ...]]:
    """What frames state to a reader that is given those of one name together, and takes runs."""
    stated: list[tuple[Event, ...]] = []
    for name, row in groupby(frames, lambda frame: frame.event):
        many = [*row]
        starts = [*(frame.start for frame in many), many[-1].end]
        data = tuple(frame.data for frame in many)
        blocks = Blocks(many[0].number, name, data, starts, 0, "")
        at = 0
        while at < len(many):
            for run in reader.runs(blocks, at):
                assert run.texts and run.first == at
                counts = dict(run.counts)
                for place, text in enumerate(run.texts):
                    counted = (counts[place],) if place in counts else ()
                    stated.append((run.kind(run.segment, text), *counted))
                at += len(run.texts)
            if at < len(many):
                stated.append(reader.read(many[at]))
                at += 1
    return stated


def consume(
    data: bytes,
    cuts: Iterable[int] = (),
    ending: str = "eof",
    wire: str | None = None,
    policy: Policy = EFFECT,
    bounds: Bounds = BOUNDS,
) -> tuple[Consumer, list[Read]]:
    """A consumer that has taken all the bytes, and everything that it read."""
    consumer = Consumer(wire, policy, bounds)
    reads = [read for piece in pieces(data, cuts) for read in consumer.feed(piece)]
    consumer.end(ending)
    return consumer, reads + consumer.last_words


def saw(data: bytes, cuts: Iterable[int] = (), **options: Any) -> tuple[Any, ...]:
    """All that may not depend on how the bytes were cut."""
    consumer, reads = consume(data, cuts, **options)
    reader = consumer.reader
    taken = reader.bytes if reader.exceeded is None else None  # the last read's size is its own
    counted = (reader.wire, taken, reader.frames, reader.exceeded)
    judged = (consumer.turn, consumer.attempt, consumer.verdicts, consumer.proposals)
    return (reads, *counted, *judged)


def events(payloads: Iterable[Any]) -> list[Event]:
    """The events of a stream of payloads (or of ready frames)."""
    return [event for _, told in consume(stream(payloads))[1] for event in told]


def rules(payloads: Iterable[Any], **options: Any) -> list[tuple[str, str]]:
    """The problems of a stream, as (rule, severity)."""
    turn = consume(stream(payloads), **options)[0].turn
    return [(problem.rule, problem.severity) for problem in turn.facts.problems]


# --- Drawing ----------------------------------------------------------------------------------

#: Text of every kind, halves of characters and NUL among it.
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])
small = st.integers(0, 3)

#: Bytes that the rules of an event stream are about, in no order that makes sense.
odd_bytes = st.lists(
    st.sampled_from(
        [
            *(b"data", b"data:", b"data: x", b"event: e", b"id: 7", b"id", b"id: a\0", b"retry: 5"),
            *(b"retry: +5", b": c", b":", b"\n", b"\n\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xef"),
            *(
                b" ",
                b"\xe2\x80\xa8",
                b"\xc2\x85",
                b"\0",
                b"\xff",
                b"{",
                b"}",
                b"[",
                b'{"a":1}',
                b"<",
            ),
        ]
    ),
    max_size=30,
).map(b"".join)


@st.composite
def parts(draw: st.DrawFn, index: int) -> list[JSON]:
    """The events of one whole block."""
    kind = draw(st.sampled_from(["text", "thinking", "tool", "server", "redacted", "new"]))
    if kind == "redacted":
        return [block(index, "redacted_thinking", data=draw(any_text)), stop(index)]
    if kind == "new":
        light = [delta(index, "beam", light=draw(any_text)) for _ in range(draw(small))]
        return [block(index, "hologram", size=draw(small)), *light, stop(index)]
    if kind in ("tool", "server"):
        value = {draw(any_text): draw(any_text) for _ in range(draw(small))}
        whole = draw(st.sampled_from(["", json.dumps(value), json.dumps(value)[:-1]]))
        cuts = draw(st.lists(st.integers(0, len(whole)), max_size=3))
        edges = [0, *sorted(cuts), len(whole)]
        bits = [whole[a:b] for a, b in pairwise(edges)]
        type = "tool_use" if kind == "tool" else "server_tool_use"
        return [block(index, type), *(fragment(index, bit) for bit in bits), stop(index)]
    bits = draw(st.lists(any_text, max_size=4))
    if kind == "text":
        return [block(index), *(text(index, bit) for bit in bits), stop(index)]
    thoughts = [delta(index, "thinking_delta", thinking=bit) for bit in bits]
    signed = delta(index, "signature_delta", signature="c2ln")
    return [block(index, "thinking"), *thoughts, signed, stop(index)]


REASONS = ["end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence", "brand_new", None]


@st.composite
def answers(draw: st.DrawFn) -> list[JSON]:
    """The events of a whole answer, in the grammar's order, with pings and unknown events."""
    body = [event for n in range(draw(small)) for event in draw(parts(n))]
    whole = [start(), *body, end(draw(st.sampled_from(REASONS)), {"output_tokens": 3}), STOP]
    for extra in draw(st.lists(st.sampled_from([PING, {"type": "later"}]), max_size=3)):
        whole.insert(draw(st.integers(0, len(whole))), extra)
    return whole


#: Events that fit nowhere, or only somewhere: what a broken or hostile stream is made of.
odd_events = st.one_of(
    st.sampled_from(
        [
            *(start(), STOP, PING, end(), end("tool_use"), end(None), {}, {"type": "later"}),
            *([], "x", 5, {"type": "message_start"}, {"type": 7}, {"error": "flat"}),
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            {"type": "content_block_delta", "delta": {}},
            {"index": 0, "delta": {"type": "text_delta", "text": "typeless"}},
        ]
    ),
    st.builds(block, small, st.sampled_from(["text", "tool_use", "thinking", "hologram"])),
    st.builds(text, st.integers(-1, 3), any_text),
    st.builds(fragment, small, st.sampled_from(["", "{}", '{"a":', "1", "\ud83d"])),
    st.builds(stop, st.one_of(small, st.sampled_from([True, None, 1.0, "0", 10**30]))),
)


@st.composite
def soups(draw: st.DrawFn) -> list[Any]:
    """Events in any order, so that most of them are wrong where they stand."""
    return [start(), *draw(st.lists(odd_events, max_size=14))]


@st.composite
def framed(draw: st.DrawFn, payloads: st.SearchStrategy[list[Any]]) -> bytes:
    """Events as an event stream, in any legal dress: line ends, comments, names, several lines."""
    newline, out = draw(line_ends), []
    for payload in draw(payloads):
        body = json.dumps(payload, ensure_ascii=draw(st.booleans()))
        name = payload.get("type", "") if isinstance(payload, dict) else "odd"
        named = [f"event: {name}"] if draw(st.integers(0, 9)) else []
        comment = [": note"] if not draw(st.integers(0, 9)) else []
        cut = body.find(", ") if not draw(st.integers(0, 5)) else -1
        split = [body[: cut + 1], body[cut + 1 :]] if cut >= 0 else [body]
        block = [*comment, *named, *(f"data: {line}" for line in split), ""]
        out.append("".join(line + newline for line in block))
    return "".join(out).encode("utf-8", "replace")


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A stream with bytes lost, doubled, changed or put in."""
    data = draw(framed(answers()))
    for _ in range(draw(st.integers(1, 3))):
        a, b = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        b = min(b, a + 200)
        middle = draw(st.one_of(st.just(b""), st.just(data[a:b] * 2), odd_bytes))
        data = data[:a] + middle + data[b:]
    return data


#: JSON that has broken somebody's parser.
odd_json = st.sampled_from(
    [
        b'{"type":"ping"}\n{"type":"message_start","message":{}}\n',
        b'{"error":{"message":"no key"}}',
        b'{\n  "error": {\n    "message": "no key"\n  }\n}\n',
        b"[" * 5000,
        b'{"a":' * 990 + b"1" + b"}" * 990,
        b'{"type":' + b'{"a":' * 990 + b"1" + b"}" * 991,
        b'{"type":"message_start","message":{"id":' + b"[" * 900 + b"]" * 900 + b"}}\n",
        b'{"type":"content_block_stop","index":' + b"9" * 4200 + b"}\n",
        b'{"type":"content_block_stop","index":' + b"9" * 5000 + b"}\n",
        b'{"type":"error","error":{"type":' + b"9" * 4299 + b"}}\n",
        b'{"type":"\\ud83d"}\n{"error":"\\udc00"}\n',
        b'{"a":1e400}\n{"a":NaN}\n{"a":-Infinity}\n',
        b'{"streamlab":1}\n{"t":1e308,"data":""}\n',
        b'{"streamlab":1}\n{"t":0,"data":"event: ping\\n\\n"}\n{"t":0,"end":"eof"}\n',
    ]
)

any_bytes = st.one_of(
    st.binary(max_size=60),
    odd_bytes,
    st.builds(bytes.__add__, odd_json, st.one_of(st.just(b""), st.binary(max_size=20))),
    framed(soups()),
)
all_bytes = st.one_of(framed(answers()), broken(), any_bytes)


@st.composite
def cut(draw: st.DrawFn, data: st.SearchStrategy[bytes]) -> tuple[bytes, list[int]]:
    """Bytes, and where the reads end."""
    drawn = draw(data)
    return drawn, draw(st.lists(st.integers(0, len(drawn)), max_size=8))
