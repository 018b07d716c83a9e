"""An example for each of the doctor's rules: the smallest stream on which it fires.

Written by hand, a frame a line, for a learner to read and to break: `example("tool-input")` is a
recording, `streamlab show --rules --json` prints them all. A test runs each, and asks for its rule.
Gemini's and Chat's frames have no name; of the other wires the payload's type is the event's name.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from streamlab.analysis.judge import Outcome, judge
from streamlab.consumer.gates import CHAT, EFFECT, Policy
from streamlab.streams.recording import Chunk, Recording

__all__ = ["EXAMPLES", "example", "judged"]

JSON = dict[str, Any]


def example(rule: str) -> Recording:
    """The example of a rule; an unknown one raises `KeyError`."""
    made = EXAMPLES[rule]
    return made if isinstance(made, Recording) else Recording.from_bytes(made)


def judged(rule: str) -> Outcome:
    """The example of a rule, judged by the policy, or from the file, that the rule is about."""
    outcome = judge(example(rule), POLICIES.get(rule, EFFECT))
    return msgspec.structs.replace(outcome, **FILES.get(rule, {}))


# --- How frames are written -----------------------------------------------------------------------


def _frames(*payloads: JSON | str | bytes) -> bytes:
    """Payloads as an event stream; a text is a payload as it is, bytes are no frame at all."""
    return b"".join(map(_frame, payloads))


def _frame(payload: JSON | str | bytes) -> bytes:
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return f"data: {payload}\n\n".encode()
    name = payload.get("type") or payload.get("event_type")
    named = f"event: {name}\n" if isinstance(name, str) else ""
    return f"{named}data: {json.dumps(payload)}\n\n".encode()


def _timed(*reads: tuple[float, bytes], end: float, ending: str = "eof") -> Recording:
    return Recording(tuple(Chunk(t, data) for t, data in reads), ending, None, end)


# --- The wire with blocks -------------------------------------------------------------------------

START: JSON = {"type": "message_start", "message": {"id": "msg_1", "model": "m"}}
STOP: JSON = {"type": "message_stop"}
PING: JSON = {"type": "ping"}


def _block(index: int, type: str = "text", **fields: Any) -> JSON:
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": type, **fields},
    }


def _call(index: int, id: str = "call_1", **fields: Any) -> JSON:
    return _block(index, "tool_use", **{"id": id, "name": "pay", "input": {}, **fields})


def _delta(index: int, type: str, **fields: Any) -> JSON:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def _text(index: int, text: str) -> JSON:
    return _delta(index, "text_delta", text=text)


def _input(index: int, text: str) -> JSON:
    return _delta(index, "input_json_delta", partial_json=text)


def _stop(index: int) -> JSON:
    return {"type": "content_block_stop", "index": index}


def _reason(reason: str | None, **usage: int) -> JSON:
    more = {"usage": usage} if usage else {}
    return {"type": "message_delta", "delta": {"stop_reason": reason}, **more}


HELLO = (START, _block(0), _text(0, "Hi"), _stop(0))
END = (_reason("end_turn", output_tokens=1), STOP)
CALLS = (_reason("tool_use", output_tokens=1), STOP)
PAY = (START, _call(0), _input(0, '{"n": 1}'), _stop(0))
ERROR: JSON = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


# --- The wire with choices ------------------------------------------------------------------------


def _chunk(delta: JSON | None = None, finish: str | None = None, **fields: Any) -> JSON:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [choice], **fields}


def _said(text: str) -> JSON:
    return _chunk({"content": text})


def _fragment(**entry: Any) -> JSON:
    return _chunk({"tool_calls": [entry]})


ROLE, DONE = _chunk({"role": "assistant", "content": ""}), "[DONE]"
CALL_1 = {"index": 0, "id": "call_1", "type": "function"}
OVER = (_chunk(finish="stop"), DONE)
ACT = (_chunk(finish="tool_calls"), DONE)


def _function(name: str, arguments: str) -> JSON:
    return {"function": {"name": name, "arguments": arguments}}


# --- The wire with items --------------------------------------------------------------------------


def _numbered(*payloads: JSON) -> bytes:
    return _frames(*({**payload, "sequence_number": n} for n, payload in enumerate(payloads)))


def _life(name: str, **response: Any) -> JSON:
    return {"type": f"response.{name}", "response": {"id": "r1", "model": "m", **response}}


def _added(index: int | None, **item: Any) -> JSON:
    at = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.added", **at, "item": item}


def _done(index: int, **item: Any) -> JSON:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def _say(text: str, **place: Any) -> JSON:
    place = {"output_index": 0, "item_id": "i0", "content_index": 0, **place}
    return {"type": "response.output_text.delta", **place, "delta": text}


MESSAGE = {"type": "message", "id": "i0"}
CREATED, OPEN = _life("created"), _added(0, **MESSAGE)


def _spoken(text: str) -> JSON:
    return {**MESSAGE, "content": [{"type": "output_text", "text": text}]}


HOSTED = {"type": "mcp_call", "id": "i0", "name": "find", "arguments": ""}
SHELL = {"type": "shell_call", "id": "i0", "environment": {"type": "local"}}
OTHER = {"type": "message", "id": "i1"}
IMAGE = {"type": "response.image_generation_call.partial_image", "output_index": 0}


def _complete(*output: JSON) -> JSON:
    return _life("completed", status="completed", output=list(output))


# --- The wire with candidates ---------------------------------------------------------------------


def _parts(*parts: JSON, finish: Any = None, **fields: Any) -> JSON:
    reason = {} if finish is None else {"finishReason": finish}
    return {"candidates": [{"content": {"parts": list(parts)}, **reason}], **fields}


A, B = {"text": "Hi"}, {"text": " there"}
LAST = _parts(B, finish="STOP", usageMetadata={"candidatesTokenCount": 2})
RUN: JSON = {"functionCall": {"id": "call_1", "name": "pay", "args": {"n": 1}}}


# --- The wire with steps --------------------------------------------------------------------------

BEGUN: JSON = {"event_type": "interaction.created", "interaction": {"id": "i1", "model": "m"}}


def _over(status: str) -> JSON:
    return {"event_type": "interaction.completed", "interaction": {"id": "i1", "status": status}}


# --- The table ------------------------------------------------------------------------------------

WORDS = tuple(_text(0, word) for word in ("one", "two", "three", "four", "five", "six"))

BUFFERED = _timed((0.1, _frames(START, _block(0))), (3.0, _frames(*WORDS, _stop(0), *END)), end=3.0)
STALLED = _timed(
    (0.1, _frames(START, _block(0), _text(0, "one"))),
    (0.3, _frames(_text(0, "two"))),
    (30.0, _frames(_text(0, "three"), _stop(0), *END)),
    end=30.0,
)
SLOW_END = _timed((0.1, _frames(*HELLO)), (40.0, _frames(*END)), end=40.0)

#: Rule -> bytes of a stream, or a recording where its times or its end matter.
EXAMPLES: dict[str, bytes | Recording] = {
    # any wire
    "empty": b"",
    "unfinished-block": _frames(*HELLO, *END)[:-2],
    "unframed": _frames(*HELLO, b"<hr>\n", *END),
    "no-data": _frames(*HELLO[:2], b"event: content_block_delta\n\n", *HELLO[2:], *END),
    "not-a-stream": b"<!DOCTYPE html>\n<title>502 Bad Gateway</title>\n",
    "unknown-wire": _frames({"words": "Hi"}),
    "not-json": _frames(START, '{"type": "ping"'),
    "not-an-object": _frames(START, "7"),
    "malformed": _frames(START, {"type": "content_block_start", "index": "0"}),
    "tool-input": _frames(*PAY[:2], _input(0, '{"n": '), _stop(0), *CALLS),
    "invalid-utf8": _frames(*HELLO[:2], _frame(_text(0, "?")).replace(b"?", b"\xff")),
    "incomplete": _frames(*HELLO),
    "provider-error": _frames(START, ERROR),
    "ambiguous": _frames(START, _block(1), _text(1, "Hi"), _stop(1), *END),
    "unknown": _frames(START, {"type": "hologram"}, *HELLO[1:], *END),
    "event-name": _frames(START, b'event: pong\ndata: {"type": "ping"}\n\n', *HELLO[1:], *END),
    "unnamed-event": _frames(START, json.dumps(PING), *HELLO[1:], *END),
    "no-type": _frames(START, b"event: ping\ndata: {}\n\n", *HELLO[1:], *END),
    "done-marker": _frames(*HELLO, *END, "[DONE]"),
    "stop-reason-label": _frames(*PAY, *END),
    "tool-use-without-call": _frames(*HELLO, *CALLS),
    "second-answer": _frames(*HELLO, *END, START),
    "second-start": _frames(*HELLO[:3], {**START, "message": {"id": "msg_2"}}),
    "after-the-end": _frames(*HELLO, *END, _text(0, "late")),
    "end-twice": _frames(*HELLO, *END, STOP),
    "before-start": _frames(*HELLO[1:], *END),
    "index-reused": _frames(*HELLO, _block(0), _stop(0), *END),
    "too-many-open": _frames(START, *(_block(n) for n in range(257))),
    "more-problems": _frames(START, *(_text(7, "lost") for _ in range(101))),
    # the wire with blocks
    "delta-after-stop": _frames(*HELLO, _text(0, "more"), *END),
    "delta-without-start": _frames(START, _text(0, "Hi")),
    "stop-without-start": _frames(START, _stop(0)),
    "stop-after-stop": _frames(*HELLO, _stop(0), *END),
    "delta-kind": _frames(*HELLO[:2], _input(0, "{}")),
    "empty-delta": _frames(*HELLO[:2], _delta(0, "text_delta"), *HELLO[2:], *END),
    "two-inputs": _frames(START, _call(0, input={"n": 2}), *PAY[2:], *CALLS),
    "stop-reason-changed": _frames(*HELLO, _reason("end_turn"), _reason("max_tokens"), STOP),
    "stop-too-early": _frames(*HELLO, STOP),
    "content-in-start": _frames(
        {**START, "message": {"id": "msg_1", "content": [{"type": "text", "text": "Hi"}]}}, *END
    ),
    "reason-in-start": _frames(
        {**START, "message": {"id": "msg_1", "stop_reason": "end_turn"}}, STOP
    ),
    "after-stop-reason": _frames(*HELLO[:3], _reason("end_turn"), _stop(0), STOP),
    "index-order": _frames(START, _block(1), _stop(1), _block(0), _stop(0), *END),
    # the wire with choices
    "done-too-early": _frames(ROLE, _said("Hi"), DONE),
    "done-twice": _frames(ROLE, _said("Hi"), *OVER, DONE),
    "after-done": _frames(ROLE, _said("Hi"), *OVER, {"choices": [], "usage": {"total_tokens": 3}}),
    "after-finish": _frames(ROLE, _chunk(finish="stop"), _said("Hi"), DONE),
    "finish-again": _frames(ROLE, _said("Hi"), _chunk(finish="stop"), *OVER),
    "finish-changed": _frames(ROLE, _said("Hi"), _chunk(finish="tool_calls"), *OVER),
    "id-changed": _frames(ROLE, {**_said("Hi"), "id": "c2"}, *OVER),
    "text-restated": _frames(
        ROLE,
        _said("Hi"),
        {"choices": [{"index": 0, "message": {"content": "Ho"}, "finish_reason": "stop"}]},
        DONE,
    ),
    "two-reasonings": _frames(ROLE, _chunk({"reasoning": "a", "reasoning_content": "b"}), *OVER),
    "too-many-choices": _frames(
        ROLE, {"id": "c1", "choices": [{"index": n, "delta": {}} for n in range(300)]}
    ),
    "call-type": _frames(
        ROLE,
        _fragment(**CALL_1, **_function("pay", "")),
        _fragment(index=0, type="custom", custom={"input": "x"}),
    ),
    "call-without-name": _frames(ROLE, _fragment(index=0, function={"arguments": "{}"}), *ACT),
    "call-without-id": _frames(ROLE, _fragment(index=0, **_function("pay", "{}")), *ACT),
    "call-restated": _frames(
        ROLE,
        _fragment(**CALL_1, **_function("pay", '{"n": 1}')),
        _fragment(**CALL_1, **_function("pay", '{"n": 1}')),
        *ACT,
    ),
    "name-in-pieces": _frames(
        ROLE, _fragment(**CALL_1, **_function("pa", "")), _fragment(index=0, **_function("y", "{}"))
    ),
    "too-many-calls": _frames(
        ROLE, *(_fragment(index=n, id=f"call_{n}", **_function("pay", "")) for n in range(257))
    ),
    "another-start": _frames(
        *(ROLE, _said("Hi"), _said(" there")), {**ROLE, "id": "c2"}, _said("Ho"), *OVER
    ),
    # the wire with items
    "sequence-gap": _numbered(CREATED, OPEN) + _frames({**_say("Hi"), "sequence_number": 5}),
    "sequence-back": _numbered(CREATED, OPEN) + _frames({**_say("Hi"), "sequence_number": 0}),
    "created-again": _frames(CREATED, CREATED, OPEN),
    "response-id-changed": _frames(CREATED, _life("in_progress", id="r2")),
    "no-response": _frames(CREATED, {"type": "response.completed"}),
    "no-index": _frames(CREATED, _added(None, **MESSAGE)),
    "no-output-index": _frames(CREATED, OPEN, _say("Hi", output_index=None)),
    "no-part": _frames(
        CREATED,
        _added(0, type="reasoning", id="i0"),
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0},
    ),
    "item-again": _frames(CREATED, OPEN, OPEN),
    "item-id-changed": _frames(CREATED, OPEN, _say("Hi", item_id="i9")),
    "item-type-changed": _frames(CREATED, OPEN, _done(0, type="reasoning", id="i0")),
    "two-items": _frames(CREATED, OPEN, _added(1, **OTHER), _say("Hi", item_id="i1")),
    "without-start": _frames(CREATED, _say("Hi")),
    "delta-after-done": _frames(CREATED, OPEN, _say("Hi"), _done(0, **_spoken("Hi")), _say("!")),
    "restated": _frames(CREATED, OPEN, _say("Hi"), _done(0, **_spoken("Ho"))),
    "part-missing": _frames(
        *(CREATED, OPEN, _say("Hi"), _say("Ho", content_index=1)), _done(0, **_spoken("Hi"))
    ),
    "left-out": _frames(CREATED, OPEN, _say("Hi"), _added(1, **OTHER), _complete(OTHER)),
    "unstreamed": _frames(CREATED, _complete({"type": "web_search_call", "id": "i0"})),
    "unstreamed-item": _frames(CREATED, _complete(_spoken("Hi"))),
    "unfinished-item": _frames(CREATED, OPEN, _say("Hi"), _complete()),
    "malformed-item": _frames(CREATED, _complete({"id": "i0"})),
    "call-renamed": _frames(CREATED, _added(0, **HOSTED), _done(0, **{**HOSTED, "name": "seek"})),
    "call-id-changed": _frames(
        CREATED,
        _added(0, **SHELL, call_id="call_1"),
        _done(0, **SHELL, call_id="call_2", action={"commands": ["ls"]}),
    ),
    "status": _frames(CREATED, _life("completed", status="incomplete")),
    "image": _frames(CREATED, IMAGE),
    "too-many-images": _frames(
        *(CREATED, _added(0, type="image_generation_call", id="i0")), *(IMAGE for _ in range(400))
    ),
    "audio": _frames(CREATED, {"type": "response.audio.delta", "delta": ""}),
    # the wire with candidates
    "after-finish-reason": _frames(_parts(A, finish="STOP"), _parts(B)),
    "finish-reason-again": _frames(_parts(A, finish="STOP"), LAST),
    "finish-reason-changed": _frames(_parts(A, finish="MAX_TOKENS"), LAST),
    "numbered-finish-reason": _frames(_parts(A, finish=1)),
    "too-many-candidates": _frames({"candidates": [{"index": n} for n in range(300)]}),
    "empty-part": _frames(_parts(A), _parts({}, finish="STOP")),
    "call-again": _frames(_parts(RUN), _parts(RUN, finish="STOP")),
    "strange-line": _frames(_parts(A), b": keep-alive\n\n", LAST),
    "no-space": b"data:" + json.dumps(LAST).encode() + b"\n\n",
    "signature-alone": _frames(
        _parts(A), _parts({"text": "", "thoughtSignature": "c2ln"}, finish="STOP")
    ),
    # the end, the times and the bounds
    "bound": _timed((0.1, _frames(*HELLO[:3])), (9000.0, _frames(PING)), end=9000.0),
    "clean-end": _frames(*HELLO),
    "cut": Recording.from_bytes(_frames(*HELLO), ending="cut"),
    "late-reset": Recording.from_bytes(_frames(*HELLO, *END), ending="reset"),
    "reset": Recording.from_bytes(_frames(*HELLO), ending="reset"),
    "silence": Recording.from_bytes(_frames(*HELLO), ending="timeout"),
    "cancelled": Recording.from_bytes(_frames(*HELLO), ending="cancelled"),
    "buffered": BUFFERED,
    "slow-start": _timed((30.0, _frames(*HELLO, *END)), end=30.0),
    "stall": STALLED,
    "slow-end": SLOW_END,
    # what the answer says
    "token-limit": _frames(*HELLO, _reason("max_tokens"), STOP),
    "refused": _frames(*HELLO, _reason("refusal"), STOP),
    "paused": _frames(*HELLO, _reason("pause_turn"), STOP),
    "stop-reason": _frames(*HELLO, _reason("moonrise"), STOP),
    "not-accepted": _frames(*PAY, *CALLS),
    "tool-not-permitted": _frames(*PAY, *CALLS),
    "schema": _frames(*PAY, *CALLS),
    "business-rule": _frames(*PAY, *CALLS),
    "not-authorised": _frames(*PAY, *CALLS),
    "unread-error": _frames(START, b'error: {"code": 500, "message": "context is full"}\n\n'),
    "error-shape": _frames(START, b'{"error": {"type": "overloaded_error"}}\n'),
    "unsigned-thinking": _frames(START, _block(0, "thinking", thinking="So"), _stop(0), *END),
    "result-without-call": _frames(
        START, _block(0, "web_search_tool_result", tool_use_id="srv_9", content=[]), _stop(0), *END
    ),
    "usage-fell": _frames(*HELLO, _reason(None, output_tokens=9), *END),
    "no-usage": _frames(*HELLO, _reason("end_turn"), STOP),
    "answer-again": _frames(*HELLO[:3], *HELLO, *END),
    "frame-again": _frames(*HELLO[:2], HELLO[1], *HELLO[2:], *END),
    "bom": b"\xef\xbb\xbf" + _frames(*HELLO, *END),
    "cr-only": _frames(*HELLO, *END).replace(b"\n", b"\r"),
    "line-separator": _frames(*HELLO[:2], json.dumps(_text(0, "a\u2028b"), ensure_ascii=False)),
    "half-character": _frames(*HELLO[:2], _text(0, "\ud83d"), _stop(0), *END),
    # the file
    "recording-truncated": _frames(*HELLO, *END),
    "more-streams": _frames(*HELLO, *END),
}


def _tools(**schemas: Any) -> Policy:
    return msgspec.structs.replace(EFFECT, tools=schemas)


#: Rule -> the policy that lets its example not pass.
POLICIES: dict[str, Policy] = {
    "not-accepted": CHAT,
    "tool-not-permitted": _tools(find={}),
    "schema": _tools(pay={"required": ["to"]}),
    "business-rule": msgspec.structs.replace(EFFECT, rule=lambda call: "it is paid already"),
    "not-authorised": msgspec.structs.replace(EFFECT, authorise=lambda call: "ask the owner"),
}

#: Rule -> what is the matter with the file.
FILES: dict[str, JSON] = {
    "recording-truncated": {"truncated": "x.stream.jsonl:9: the file stops without its end line"},
    "more-streams": {"streams": 2},
}
