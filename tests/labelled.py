"""Recordings whose fault is known, because it was made here: the doctor is held to them.

Each has a label, the verdict and the layer, from the *cause* and the place where it was put, never
from what the doctor says. Three rules of labelling:

1. A fault that leaves no sign on a stream (a lost delta of text, a bit of a letter) is "whole": no
   reader could know. Which frame was hit decides that, and is looked up in the recording before
   it is broken.
2. What breaks off is labelled by how it ended, whatever came before; of two faults the one that
   decides what may be done with the answer counts.
3. The layer is where the fault was put in, also where the stream cannot show that: those are
   misses, and count as such. (A gateway that loses a fragment of a tool's input leaves broken JSON,
   and so does a model.)
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import msgspec

from streamlab import CHAT, EFFECT, Policy, Recording, faults, synth
from streamlab.consumer.workitem import policy_for
from streamlab.errors import UsageError
from streamlab.streams.edit import frames
from streamlab.streams.voices import payloads, voice_of

CLAUDE, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI = (
    "claude",
    "openai-chat",
    "openai-responses",
    "gemini",
)
WIRES = (CLAUDE, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI)

Label = tuple[str, str]

WHOLE: Label = ("whole", "")
BY_GATEWAY: Label = ("broken off", "gateway")
BY_NETWORK: Label = ("broken off", "network")
LOST: Label = ("protocol error", "gateway")  #: a frame was lost, doubled or moved, and it shows
GRAMMAR: Label = ("protocol error", "vendor")
SPOILT: Label = ("bad input", "gateway")  #: a fragment of JSON was
DOUBTFUL: Label = ("held", "gateway")


class Case(NamedTuple):
    """One recording, and what is known of it."""

    name: str
    recording: Recording
    verdict: str
    layer: str
    policy: Policy = EFFECT


# --- What is broken -------------------------------------------------------------------------------

#: Whole answers; each seed takes the next one.
ANSWERS = (
    synth.story,
    synth.change_label,
    synth.greeting,
    synth.parallel_tools,
    synth.pay_invoice,
    synth.thinking_then_tool,
)


def answer(wire: str, seed: int) -> Recording:
    """A whole answer that comes one frame a read."""
    return ANSWERS[seed % len(ANSWERS)](wire=wire, seed=seed)


def text_answer(wire: str, seed: int) -> Recording:
    """Enough text for its arrival to say something."""
    return synth.long_text(400 + seed % 7 * 90, wire=wire, seed=seed)


# --- Which frame is hit ---------------------------------------------------------------------------


def kinds(recording: Recording) -> list[str]:
    """What each frame is: text, input, begin, stop, start, reason, marker or other."""
    voice, said = voice_of(recording), payloads(recording)
    end = voice.ended(said, True)
    found = []
    for number, payload in enumerate(said):
        if number == end:
            kind = "marker"
        elif voice.gives_reason(payload):
            kind = "reason"
        else:
            kind = _kind(recording.wire or "", payload)
        found.append(kind)
    return found


def _kind(wire: str, payload: dict[str, Any]) -> str:
    name = str(payload.get("type", ""))
    if wire == CLAUDE:
        delta = payload.get("delta", {})
        kind = {"text_delta": "text", "thinking_delta": "text", "input_json_delta": "input"}
        if name == "content_block_delta" and delta.get("partial_json") == "":
            return "other"  # an empty one: nothing is lost with it
        known = {"message_start": "start", "content_block_start": "begin"}
        known |= {"content_block_stop": "stop"}
        return kind.get(delta.get("type"), "other") if "delta" in name else known.get(name, "other")
    if wire == OPENAI_RESPONSES:
        if name.endswith("arguments.delta"):
            return "input"
        return "text" if name.endswith("text.delta") else "other"
    if wire == OPENAI_CHAT:
        choices = payload.get("choices") or [{}]
        delta = choices[0].get("delta", {})
        if delta.get("tool_calls"):
            return "begin" if delta["tool_calls"][0].get("id") else "input"
        return "text" if delta.get("content") or delta.get("reasoning_content") else "other"
    parts = [
        part
        for candidate in payload.get("candidates", [])
        for part in candidate.get("content", {}).get("parts", [])
    ]
    plain = parts and all(set(part) <= {"text", "thought"} for part in parts)
    return "text" if plain else "other"


def pick(recording: Recording, rng: Random, *wanted: str) -> int:
    """The number of a frame of one of these kinds, or of two neighbours ("text text")."""
    found = kinds(recording)
    places = [
        number
        for number in range(1, len(found) + 1)
        if any(found[number - 1 :][: len(kind.split())] == kind.split() for kind in wanted)
    ]
    if not places:
        raise UsageError(f"this recording has no frame that is {' or '.join(wanted)}")
    return rng.choice(places)


def inputs_parse(recording: Recording) -> bool:
    """Whether each tool's fragments, joined, are JSON: of the two wires that send no whole one."""
    joined: dict[Any, str] = {}
    for payload in payloads(recording):
        if payload.get("type") == "content_block_delta" and "partial_json" in payload["delta"]:
            index, text = payload["index"], payload["delta"]["partial_json"]
            joined[index] = joined.get(index, "") + text
        for choice in payload.get("choices") or []:
            for call in choice.get("delta", {}).get("tool_calls") or []:
                text = call["function"].get("arguments") or ""
                joined[call["index"]] = joined.get(call["index"], "") + text
    try:
        return all(isinstance(json.loads(text), dict) for text in joined.values())
    except ValueError:
        return False


# --- The causes -----------------------------------------------------------------------------------

#: Makes a broken recording from a wire format and a seed, and says what it is.
Make = Callable[[str, int], tuple[Recording, Label]]


def catalogued(name: str, label: Label, on: dict[str, Label] | None = None) -> Make:
    """A fault of the catalogue, at a place that the seed chooses."""

    def make(wire: str, seed: int) -> tuple[Recording, Label]:
        broken = faults.FAULTS[name].apply(answer(wire, seed), seed)
        return broken, (on or {}).get(wire, label)

    return make


def ended(name: str, label: Label) -> Make:
    """A stream that stops somewhere before its marker; nothing at all is an empty one."""

    def make(wire: str, seed: int) -> tuple[Recording, Label]:
        broken = faults.FAULTS[name].apply(answer(wire, seed), seed)
        nothing = not broken.data and broken.ending == "eof"
        return broken, ("empty", "gateway") if nothing else label

    return make


#: A frame of this kind is lost -> what that is, wire by wire.
SKIPPED: dict[tuple[str, str], Label] = {
    **{("text", wire): WHOLE for wire in WIRES},
    ("start", CLAUDE): LOST,
    ("begin", CLAUDE): LOST,
    ("stop", CLAUDE): LOST,
    ("reason", CLAUDE): LOST,
    ("begin", OPENAI_CHAT): LOST,
    ("reason", OPENAI_CHAT): LOST,
    ("reason", GEMINI): BY_GATEWAY,
    ("input", OPENAI_RESPONSES): DOUBTFUL,
    ("input", CLAUDE): SPOILT,
    ("input", OPENAI_CHAT): SPOILT,
    ("marker", CLAUDE): BY_GATEWAY,
    ("marker", OPENAI_CHAT): BY_GATEWAY,
    ("marker", OPENAI_RESPONSES): BY_GATEWAY,
}

DOUBLED: dict[tuple[str, str], Label] = {
    **{("text", wire): WHOLE for wire in WIRES},
    ("start", CLAUDE): LOST,
    ("begin", CLAUDE): LOST,
    ("stop", CLAUDE): WHOLE,  # said twice: nothing is lost
    ("marker", CLAUDE): WHOLE,
    ("marker", OPENAI_CHAT): WHOLE,
    ("input", OPENAI_RESPONSES): DOUBTFUL,
    ("input", CLAUDE): SPOILT,
    ("input", OPENAI_CHAT): SPOILT,
}

REORDERED: dict[tuple[str, str], Label] = {
    ("text text", CLAUDE): WHOLE,
    ("text text", OPENAI_CHAT): WHOLE,
    ("text text", OPENAI_RESPONSES): WHOLE,
    ("text text", GEMINI): WHOLE,
    ("start begin", CLAUDE): LOST,
    ("begin text", CLAUDE): LOST,
    ("text stop", CLAUDE): LOST,
    ("reason marker", CLAUDE): LOST,
    ("input input", CLAUDE): SPOILT,
    ("input input", OPENAI_CHAT): SPOILT,
    ("input input", OPENAI_RESPONSES): DOUBTFUL,
}

LATE: dict[tuple[str, str], Label] = {
    ("text", CLAUDE): LOST,
    ("text", OPENAI_CHAT): LOST,
    ("text", OPENAI_RESPONSES): LOST,
    ("text", GEMINI): DOUBTFUL,
}


def hit(fault: str, table: dict[tuple[str, str], Label]) -> Make:
    """A fault of one frame, of a kind for which the table says what comes of it."""
    function: Callable[..., Recording] = getattr(faults, fault)

    def make(wire: str, seed: int) -> tuple[Recording, Label]:
        rng = Random(f"{fault} {wire} {seed}")
        known = [kind for kind, on in table if on == wire]
        kind = known[seed % len(known)] if known else ""
        last = UsageError(f"nothing is known of {fault} on {wire}")
        for turn in range(len(ANSWERS)):
            whole = answer(wire, seed + turn)
            try:
                broken = function(whole, frame=pick(whole, rng, kind))
            except UsageError as why:
                last = why
                continue
            label = table[kind, wire]
            return broken, WHOLE if label == SPOILT and inputs_parse(broken) else label
        raise last

    return make


def flip_letter(wire: str, seed: int) -> tuple[Recording, Label]:
    """A letter of an answer's text becomes another one."""
    whole = synth.greeting(wire=wire, seed=seed)
    at = Random(seed).choice([whole.data.index(b"would"), whole.data.index(b"know")])
    return faults.flip(whole, bit=8 * at), WHOLE


def flip_brace(wire: str, seed: int) -> tuple[Recording, Label]:
    """The brace that opens a frame's JSON becomes another character; in a ping nothing is lost."""
    whole = answer(wire, seed)
    said = [frame for frame in frames(whole) if frame.event != "ping" and b"{" in frame.data]
    frame = Random(seed).choice(said)
    at = whole.data.index(b"{", frame.start)
    return faults.flip(whole, bit=8 * at + 1), LOST


def drop_newline(wire: str, seed: int) -> tuple[Recording, Label]:
    """The end of a data line is lost, so that two frames become one."""
    whole = answer(wire, seed)
    found = frames(whole)
    frame = found[Random(seed).randrange(len(found) - 1)]
    line = whole.data[: frame.end].count(b"\n")
    return faults.drop_newline(whole, line=line), LOST


def stalled(wire: str, seed: int) -> tuple[Recording, Label]:
    """Half a minute of silence somewhere before the last frame."""
    whole = answer(wire, seed)
    after = Random(seed).randrange(len(frames(whole)))
    return faults.stall(whole, after=after), ("slow", "vendor")


def burst(wire: str, seed: int) -> tuple[Recording, Label]:
    """A proxy holds all of a longer text back."""
    return faults.burst(text_answer(wire, seed)), ("buffered", "gateway")


def second_start(wire: str, seed: int) -> tuple[Recording, Label]:
    """Another answer's start, inside this one or after it."""
    whole = answer(wire, seed)
    rng = Random(seed)
    reason = kinds(whole).index("reason") + 1 if "reason" in kinds(whole) else len(frames(whole))
    after = rng.randrange(2, len(frames(whole)) + 1)
    label = ("two answers", "gateway")
    if wire == GEMINI and after < reason:
        label = WHOLE  # an id that changes: there, many an honest stream does that
    return faults.second_start(whole, after=after), label


def reconnected(wire: str, seed: int) -> tuple[Recording, Label]:
    """The connection breaks in the middle, and the answer comes again from its start."""
    whole = answer(wire, seed)
    after = Random(seed).randrange(2, len(frames(whole)))
    return faults.reconnect(whole, after=after), ("two answers", "client")


def delta_after_stop(wire: str, seed: int) -> tuple[Recording, Label]:
    """More content for what has stopped: where the wire says who is right, the rest is whole."""
    whole = answer(wire, seed)
    said = payloads(whole)
    stopped = sorted({number for payload in said for number in voice_of(whole).stops(payload)})
    index = Random(seed).choice(stopped or [0])
    broken = faults.delta_after_stop(whole, index=index)
    if wire == CLAUDE:
        return broken, GRAMMAR
    items = [p["item"]["type"] for p in said if p.get("output_index") == index and "item" in p]
    return broken, ("held", "vendor") if "function_call" in items else WHOLE


def index_gap(wire: str, seed: int) -> tuple[Recording, Label]:
    """A number is missing among the parts."""
    broken = faults.FAULTS["index_gap"].apply(answer(wire, seed), seed)
    return broken, WHOLE if wire == OPENAI_RESPONSES else ("held", "vendor")


def bare(data: bytes, label: Label, ending: str = "eof") -> Make:
    """A body that is no stream of any wire."""

    def make(wire: str, seed: int) -> tuple[Recording, Label]:
        whole = answer(wire, seed)
        cut = faults.disconnect(whole, 0, ending)
        return faults.insert(cut, 0, data), label

    return make


def said(data: bytes, label: Label) -> Make:
    """Some bytes come in the middle of an answer, and then nothing more."""

    def make(wire: str, seed: int) -> tuple[Recording, Label]:
        whole = answer(wire, seed)
        after = Random(seed).randrange(1, max(2, len(frames(whole)) - 1))
        return faults.insert(faults.disconnect(whole, after), after, data), label

    return make


def not_streamed(wire: str, seed: int) -> tuple[Recording, Label]:
    """A whole answer, because nobody asked for a stream."""
    bodies = {
        CLAUDE: {"type": "message", "id": "msg_1", "role": "assistant", "content": []},
        OPENAI_CHAT: {
            "id": "c",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}}],
        },
        OPENAI_RESPONSES: {"id": "r", "object": "response", "status": "completed", "output": []},
    }
    if wire not in bodies:
        raise UsageError("a whole answer looks like one chunk there")
    body = json.dumps(bodies[wire], indent=1).encode()
    return bare(body, ("not a stream", "ours"))(wire, seed)


def bad_json(wire: str, seed: int) -> tuple[Recording, Label]:
    """The model writes a tool's input that is no JSON, and stops for the tool all the same."""
    if wire == GEMINI:
        raise UsageError("an input comes there as an object, or not at all")
    text = ('{"item": "W-7", "lab', '{"item": W-7}', "{'item': 'W-7'}")[seed % 3]
    call = synth.ToolCall("change_label", text)
    return synth.answer([synth.Text("So."), call], "tool_use", wire=wire, seed=seed), (
        "bad input",
        "model",
    )


def of_gemini(reason: str, label: Label) -> Make:
    """A stop reason that only one wire has."""

    def make(wire: str, seed: int) -> tuple[Recording, Label]:
        if wire != GEMINI:
            raise UsageError("another wire has no such reason")
        whole = synth.greeting(wire=wire, seed=seed)
        data = whole.data.replace(b'"finishReason":"STOP"', f'"finishReason":"{reason}"'.encode())
        assert data != whole.data
        return Recording.from_bytes(data, wire=wire), label

    return make


def of_policy(input: dict[str, Any], policy: Policy, label: Label) -> Make:
    """A whole call that the application does not take."""

    def make(wire: str, seed: int) -> tuple[Recording, Label]:
        call = synth.ToolCall("change_label", input)
        return synth.answer([call], wire=wire, seed=seed), label

    make.policy = policy  # type: ignore[attr-defined]
    return make


def both(first: str, then: str, label: Label, on: dict[str, Label] | None = None) -> Make:
    """Two faults of the catalogue, one after the other."""

    def make(wire: str, seed: int) -> tuple[Recording, Label]:
        once = faults.FAULTS[first].apply(answer(wire, seed), seed)
        twice = faults.FAULTS[then].apply(once, seed + 1)
        empty = not twice.data and twice.ending == "eof"
        return twice, ("empty", "gateway") if empty else (on or {}).get(wire, label)

    return make


CUT_SHORT: Label = ("cut short", "ours")
REFUSED: Label = ("refused", "model")
PAUSED: Label = ("paused", "vendor")
SILENT: Label = ("silent", "network")
FAILED: Label = ("provider error", "vendor")
AT_GATEWAY: Label = ("provider error", "gateway")
AT_US: Label = ("provider error", "ours")
CANCELLED: Label = ("cancelled", "client")
NO_STREAM: Label = ("not a stream", "gateway")

NGINX = b"<html>\r\n<head><title>504 Gateway Time-out</title></head>\r\n</html>\r\n"
READY = {"item": "W-7", "label": "Ready for review"}

#: Cause -> how it is made, and what it is.
CAUSES: dict[str, Make] = {
    # nothing is wrong, or nothing that a stream could show
    "nothing": lambda wire, seed: (answer(wire, seed), WHOLE),
    "split": catalogued("split", WHOLE),
    "merge": catalogued("merge", WHOLE),
    "interleave": catalogued("interleave", WHOLE),
    "unknown": catalogued("unknown", WHOLE),
    "ping_flood": catalogued("ping_flood", WHOLE),
    "flip a letter": flip_letter,
    "reset_at_end": catalogued("reset_at_end", WHOLE, {GEMINI: BY_NETWORK}),
    # it ends too early
    "cut_inside": ended("cut_inside", BY_GATEWAY),
    "eof": ended("eof", BY_GATEWAY),
    "cut": ended("cut", BY_NETWORK),
    "reset": ended("reset", BY_NETWORK),
    "timeout": ended("timeout", SILENT),
    "never_end": catalogued("never_end", ("endless", "vendor")),
    "cancel": catalogued("cancel", CANCELLED),
    # the provider says so
    "error": catalogued("error", FAILED),
    "json_error": catalogued("json_error", FAILED),
    "token_limit": catalogued("token_limit", CUT_SHORT),
    "refuse": catalogued("refuse", REFUSED),
    "pause": catalogued("pause", PAUSED),
    "no_stop_reason": catalogued("no_stop_reason", GRAMMAR, {GEMINI: ("broken off", "vendor")}),
    # something else than the stream
    "html_page": catalogued("html_page", NO_STREAM),
    "gateway's page": bare(NGINX, NO_STREAM),
    "gateway's page in the middle": said(NGINX, BY_GATEWAY),
    "not streamed": not_streamed,
    "gateway's JSON": bare(b'{"message": "Bad Gateway", "code": 502}\n', AT_GATEWAY),
    "gateway's sentence": bare(b'{"message": "Internal server error"}', AT_GATEWAY),
    "gateway's problem": bare(
        b'{"type": "about:blank", "title": "Gateway time-out", "status": 504}', AT_GATEWAY
    ),
    "framework's JSON": bare(b'{"detail": "Not authenticated"}', AT_US),
    "a cloud's key": bare(
        b'{"error": {"code": "401", "message": "Access denied: invalid subscription key"}}', AT_US
    ),
    "a relay's key": said(
        b'data: {"error": {"message": "litellm.AuthenticationError: bad key", "code": "401"}}\n\n',
        AT_US,
    ),
    "a relay's vendor": said(
        b'data: {"error": {"message": "litellm.RateLimitError: slow down", "code": "429"}}\n\n',
        FAILED,
    ),
    "a filter": said(
        b'event: error\ndata: {"type": "error", "error": {"type": "invalid_request_error", '
        b'"message": "Output blocked by content filtering policy"}}\n\n',
        REFUSED,
    ),
    "a field of its own": said(
        b'error: {"code": 500, "message": "the context is full", "type": "server_error"}\n\n',
        FAILED,
    ),
    "no decoding": bare(gzip.compress(b'data: {"id": 1}\n\n' * 9, mtime=0), NO_STREAM),
    "no thought signature": of_gemini("MISSING_THOUGHT_SIGNATURE", AT_US),
    "no such function": of_gemini("UNEXPECTED_TOOL_CALL", ("provider error", "model")),
    "router's error": said(
        b'data: {"error": {"code": 502, "message": "Provider returned error"}}\n\n', AT_GATEWAY
    ),
    "nothing at all": bare(b"", ("empty", "gateway")),
    "nothing but silence": bare(b"", SILENT, "timeout"),
    # frames and bytes
    "skip": hit("skip", SKIPPED),
    "duplicate": hit("duplicate", DOUBLED),
    "reorder": hit("reorder", REORDERED),
    "late": hit("late", LATE),
    "flip a brace": flip_brace,
    "drop_newline": drop_newline,
    "second_start": second_start,
    "reconnect": reconnected,
    "delta_after_stop": delta_after_stop,
    "index_gap": index_gap,
    # times
    "stall": stalled,
    "slow_start": catalogued("slow_start", ("slow", "vendor")),
    "burst": burst,
    # what the application takes
    "bad JSON": bad_json,
    "no such tool": of_policy(READY, msgspec.structs.replace(EFFECT, tools={}), ("held", "ours")),
    "chat only": of_policy(READY, CHAT, ("held", "ours")),
    "no right": of_policy(READY, policy_for("bo"), ("held", "ours")),
    "no label": of_policy({"item": "W-7"}, policy_for("ada"), ("bad input", "model")),
    # two at once: the one that decides what may be done counts
    "stall and reset": both("stall", "reset", BY_NETWORK),
    "burst and limit": both("burst", "token_limit", CUT_SHORT),
    "pings and error": both("ping_flood", "error", FAILED),
    "split and refusal": both("split", "refuse", REFUSED),
    "slow and eof": both("slow_start", "eof", BY_GATEWAY),
    "unknown and timeout": both("unknown", "timeout", SILENT),
    "merge and cancel": both("merge", "cancel", CANCELLED),
    "stall and pause": both("stall", "pause", PAUSED),
}


def cases(seeds: range | tuple[int, ...]) -> Iterator[Case]:
    """Every cause on every wire that can have it, once for each seed."""
    for name, make in CAUSES.items():
        for wire in WIRES:
            for seed in seeds:
                try:
                    recording, (verdict, layer) = make(wire, seed)
                except UsageError:
                    continue  # this wire or this answer cannot have it
                policy = getattr(make, "policy", EFFECT)
                yield Case(f"{name} on {wire}, seed {seed}", recording, verdict, layer, policy)
