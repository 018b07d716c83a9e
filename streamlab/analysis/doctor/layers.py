"""Whose fault it likely is: from the verdict, the rule that it rests on, and what else was seen.

Likely, never proved: a recording is what arrived, not who sent it. Each function gives a layer and
why it is that one; where nothing more is known, the rule's own layer stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from streamlab.analysis.doctor.errors import cause_of, error_of
from streamlab.analysis.doctor.findings import Finding
from streamlab.analysis.doctor.rules import RULES
from streamlab.analysis.doctor.verdicts import Case
from streamlab.consumer.turn import Segment, items_of
from streamlab.wire.payload import NotJSON, parse_input

__all__ = ["layer_of"]

#: A layer, and why.
Layer = tuple[str, str]

#: What shows, beside a doubt, that frames were lost, doubled or moved on the way.
ON_THE_WAY = ("no-data", "unframed", "frame-again", "after-finish-reason", "after-finish")

#: A tool's input longer than this, in characters times fragments, is not searched for a spoilt one.
MOST_WORK = 500_000

#: What a stop reason that is an error says of whose it is; of any other the rule's layer stands.
REASONS: dict[str, Layer] = {
    **dict.fromkeys(
        (
            *("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"),
            "TOO_MANY_TOOL_CALLS",
        ),
        ("model", "The model wrote what the vendor could not read, or may not write."),
    ),
    "MISSING_THOUGHT_SIGNATURE": (
        "ours",
        "The request lacks a thought signature that an earlier answer came with.",
    ),
}

#: How a body begins -> what it is.
MAGIC = {
    b"\x1f\x8b": "A gzip body that nobody decoded: its Content-Encoding was lost, or overlooked.",
    b"\x28\xb5\x2f\xfd": "A zstd body that nobody decoded: its Content-Encoding was lost, or "
    "overlooked.",
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "UTF-16: an event stream is always UTF-8."),
}


def layer_of(case: Case, word: str, found: Finding | None) -> Layer:
    """The likeliest layer, one of `LAYERS`, and why; "" where nothing is wrong."""
    if word == "whole" or found is None:
        return "", ""
    find = BY_VERDICT.get(word)
    layer = find(case, found) if find else None
    return layer or (RULES[found.rule].layer, RULES[found.rule].says)


def _error(case: Case, found: Finding) -> Layer | None:
    """By the stop reason, or by the error's own words."""
    if found.rule == "stop-reason":
        return REASONS.get(case.outcome.turn.facts.raw_stop_reason or "")
    if found.rule == "refused":
        return None
    error = error_of(case.outcome)
    cause = None if error is None else cause_of(error, case.outcome.wire)
    return None if cause is None else (cause.layer, cause.says)


def _not_a_stream(case: Case, found: Finding) -> Layer | None:
    head = case.outcome.signs.head
    if told := next((says for begins, says in MAGIC.items() if head.startswith(begins)), ""):
        return "gateway", told
    if "a whole answer" in found.says[:40]:
        return "ours", "A whole answer in one piece: the request did not ask for a stream."
    if found.rule == "unknown-wire" and "; it looks like " in found.says:
        return "ours", "A stream of another wire format than we were told."
    if head.lstrip()[:1] == b"<":
        return "gateway", "A web page: no vendor's API answers with one."
    if case.outcome.frames == 1 and head.lstrip()[:1] in (b"{", b"["):
        return "gateway", "JSON in one piece, in nobody's shape: something else answers there."
    return None


def _protocol(case: Case, found: Finding) -> Layer | None:
    """Whether the frame at fault was lost, doubled or moved on the way, or written so."""
    facts, signs = case.outcome.turn.facts, case.outcome.signs
    if found.frame in signs.repeats:
        return "gateway", RULES["frame-again"].says
    if _numbered_wrongly(case, found):
        return "gateway", "The sequence numbers show that frames were lost, doubled or moved."
    if found.rule == "stop-too-early" and (case.outcome.turn.open or facts.stop_reason):
        return "gateway", "What the final marker waits for was lost, or came after it."
    return None


def _numbered_wrongly(case: Case, found: Finding) -> bool:
    numbers = case.first("sequence-gap", "sequence-back")
    return numbers is not None and (numbers.frame or 0) <= (found.frame or 0)


def _held(case: Case, found: Finding) -> Layer | None:
    if found.rule != "ambiguous":
        return None
    if case.first(*ON_THE_WAY) or _numbered_wrongly(case, found):
        return "gateway", "Other signs show that frames were lost, doubled or moved."
    return None


def _bad_input(case: Case, found: Finding) -> Layer | None:
    if found.rule != "tool-input":
        return None
    if _numbered_wrongly(case, found):
        return "gateway", "The sequence numbers show that frames were lost, doubled or moved."
    if case.outcome.wire == "openai-responses" and case.first("restated") is None:
        return None  # the vendor states the input whole again, and as it came
    told = next(filter(None, map(_spoilt, case.outcome.turn.calls)), "")
    return ("gateway", told) if told else None


def _spoilt(call: Segment) -> str:
    """What shows that a call's JSON was whole before its fragments came here; "" for nothing."""
    pieces = items_of(call.content)
    text = "".join(pieces)
    if not call.error or len(text) * len(pieces) > MOST_WORK:
        return ""
    moved = not _has_more(text)
    for n, piece in enumerate(pieces[1:], 1):
        before, after = pieces[: n - 1], pieces[n + 1 :]
        if piece == pieces[n - 1] and _parses("".join([*before, piece, *after])):
            return "Without a fragment that came twice the input is whole."
        if moved and _parses("".join([*before, piece, pieces[n - 1], *after])):
            return "With two neighbouring fragments exchanged the input is whole."
    return _at_a_seam(text, pieces)


def _has_more(text: str) -> bool:
    """Whether it begins with whole JSON: what follows, or stands in it twice, models write too."""
    try:
        json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return False
    return True


def _at_a_seam(text: str, pieces: list[str]) -> str:
    """Whether JSON that has its end breaks just where two fragments meet.

    A model that leaves a string's quotes away, or writes a line end into it, does so at a
    fragment's start too.
    """
    at, seams = 0, set()
    for piece in pieces[:-1]:
        at += len(piece)
        seams.add(at)
    try:
        json.loads(text)
    except json.JSONDecodeError as why:
        written = why.msg == "Expecting value" and text.count('"') % 2 == 0
        written |= why.msg.startswith("Invalid control character")
        if why.pos in seams and text.rstrip().endswith("}") and not written:
            return "The input breaks where two fragments meet: one is lost."
    except (ValueError, RecursionError):
        pass
    return ""


def _parses(text: str) -> bool:
    try:
        return isinstance(parse_input(text), dict)
    except (NotJSON, ValueError, RecursionError):
        return False


def _silent(case: Case, found: Finding) -> Layer | None:
    """Pings that go on prove that the connection is alive, and that nobody makes progress."""
    metrics = case.outcome.metrics
    if metrics is not None and metrics.longest_idle_s * 2 < metrics.longest_wait_s:
        return "vendor", "The connection was alive, and no content came over it."
    return None


def _buffered(case: Case, found: Finding) -> Layer | None:
    """A proxy knows no kinds of content, and lets no first byte through while it collects."""
    metrics, first = case.outcome.metrics, case.outcome.signs.first_t
    if metrics is None or first is None or metrics.ttfc_s is None:
        return None
    if any(phase.flowed for phase in metrics.phases.values()):
        return "vendor", "Another kind of content flowed, so nothing on the way collects."
    if set(metrics.phases) == {"tool"} and first * 2 < metrics.ttfc_s:
        return "vendor", "Only tool input came late: the provider may hold it to check it."
    return None


def _broken_off(case: Case, found: Finding) -> Layer | None:
    """A provider that fails says so, or breaks the connection; issue trackers of relays agree."""
    if found.rule != "clean-end":
        return None
    return "gateway", "A relay whose own upstream broke ends its body cleanly all the same."


#: Verdict -> what may speak against the layer of the rule that it rests on.
BY_VERDICT: dict[str, Callable[[Case, Finding], Layer | None]] = {
    "provider error": _error,
    "refused": _error,
    "not a stream": _not_a_stream,
    "protocol error": _protocol,
    "held": _held,
    "bad input": _bad_input,
    "broken off": _broken_off,
    "silent": _silent,
    "buffered": _buffered,
}
