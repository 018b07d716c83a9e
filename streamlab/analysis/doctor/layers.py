"""Whose fault it likely is: from the verdict, the rule that it rests on, and what else was seen.

Likely, never proved: a recording is what arrived, not who sent it. Each function gives a layer and
why it is that one; where nothing more is known, the rule's own layer stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from streamlab.analysis.doctor.findings import Finding
from streamlab.analysis.doctor.rules import RULES
from streamlab.analysis.doctor.verdicts import Case
from streamlab.consumer.turn import Segment, items_of

__all__ = ["layer_of"]

#: A layer, and why.
Layer = tuple[str, str]

#: How the vendors name an error of their own, over all wires, as their pages list them.
VENDORS = frozenset(
    {
        *("api_error", "overloaded_error", "rate_limit_error", "timeout_error", "conflict_error"),
        *("server_error", "rate_limit_exceeded", "vector_store_timeout", "server_is_overloaded"),
        *("UNAVAILABLE", "INTERNAL", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "ABORTED"),
    }
)

#: How the servers that run open models, and cloud services, name theirs.
NAMED = ("Exception", "Error")

#: How a vendor names one that the request is to blame for.
OURS = frozenset(
    {
        *("invalid_request_error", "authentication_error", "billing_error", "permission_error"),
        *("not_found_error", "request_too_large", "insufficient_quota", "invalid_api_key"),
        *("context_length_exceeded", "invalid_prompt", "model_not_found"),
        *("INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND"),
        *("FAILED_PRECONDITION",),
    }
)

#: Words, and codes of HTTP, that only something between the client and the vendor says.
_gateway = re.compile(
    r"\b(bad gateway|gateway time-?out|upstream|proxy|nginx|cloudflare|envoy|haproxy|openresty|"
    r"litellm|openrouter|load balancer|no healthy|provider returned)\b",
    re.IGNORECASE,
)
GATEWAY_CODES = frozenset({"502", "504", "520", "521", "522", "523", "524", "525", "526", "530"})

#: The wire whose errors have HTTP's codes themselves.
NUMBERED = "gemini"

#: What shows, beside a doubt, that frames were lost, doubled or moved on the way.
ON_THE_WAY = ("no-data", "unframed", "frame-again", "after-finish-reason", "after-finish")

#: A tool's input longer than this, in characters times fragments, is not searched for a spoilt one.
MOST_WORK = 500_000

#: What the model itself did wrong, where the stop reason says so.
MODEL_REASONS = ("MALFORMED", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS")


def layer_of(case: Case, word: str, found: Finding | None) -> Layer:
    """The likeliest layer, one of `LAYERS`, and why; "" where nothing is wrong."""
    if word == "whole" or found is None:
        return "", ""
    find = BY_VERDICT.get(word)
    layer = find(case, found) if find else None
    return layer or (RULES[found.rule].layer, RULES[found.rule].says)


def _error(case: Case, found: Finding) -> Layer | None:
    """By the error's own words, then by whether it is one of the vendor's names."""
    if found.rule == "stop-reason":
        raw = case.outcome.turn.facts.raw_stop_reason or ""
        return (
            ("model", "The model wrote what the vendor could not read.")
            if raw.startswith(MODEL_REASONS)
            else None
        )
    kind, _, message = case.outcome.turn.facts.error.partition(": ")
    if _gateway.search(message) or _gateway.search(kind):
        return "gateway", "The error speaks of what is between us and the vendor."
    numbered = case.outcome.wire in (NUMBERED, f"{NUMBERED}-interactions")
    if kind in OURS or (numbered and kind in ("400", "401", "403", "404")):
        return "ours", "The error says that the request is at fault."
    if kind in GATEWAY_CODES and not numbered:
        return "gateway", "The error is a code with which relays say that they could not get on."
    known = kind in VENDORS or (numbered and kind.isdigit()) or kind.endswith(NAMED)
    if case.outcome.signs.unframed and not known:
        return "gateway", "An error outside the framing, in a shape that is not the vendor's."
    return None


def _not_a_stream(case: Case, found: Finding) -> Layer | None:
    if "a whole answer" in found.says[:40]:
        return "ours", "A whole answer in one piece: the request did not ask for a stream."
    if found.rule == "unknown-wire" and "; it looks like " in found.says:
        return "ours", "A stream of another wire format than we were told."
    if case.outcome.signs.head.lstrip()[:1] == b"<":
        return "gateway", "A web page: no vendor's API answers with one."
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
    told = next(filter(None, map(_spoilt, case.outcome.turn.calls)), "")
    return ("gateway", told) if told else None


def _spoilt(call: Segment) -> str:
    """What shows that a call's JSON was whole before its fragments came here; "" for nothing."""
    pieces = items_of(call.content)
    text = "".join(pieces)
    if not call.error or _parses(text) or len(text) * len(pieces) > MOST_WORK:
        return ""
    for n, piece in enumerate(pieces[1:], 1):
        before, after = pieces[: n - 1], pieces[n + 1 :]
        if piece == pieces[n - 1] and _parses("".join([*before, piece, *after])):
            return "Without a fragment that came twice the input is whole."
        if _parses("".join([*before, piece, pieces[n - 1], *after])):
            return "With two neighbouring fragments exchanged the input is whole."
    return _at_a_seam(text, pieces)


def _at_a_seam(text: str, pieces: list[str]) -> str:
    """Whether JSON that has its end breaks just where two fragments meet."""
    at, seams = 0, set()
    for piece in pieces[:-1]:
        at += len(piece)
        seams.add(at)
    try:
        json.loads(text)
    except json.JSONDecodeError as why:
        broken = why.pos in seams and text.rstrip().endswith("}")
        return "The input breaks where two fragments meet: one is lost." if broken else ""
    except (ValueError, RecursionError):
        pass
    return ""


def _parses(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
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
    "not a stream": _not_a_stream,
    "protocol error": _protocol,
    "held": _held,
    "bad input": _bad_input,
    "broken off": _broken_off,
    "silent": _silent,
    "buffered": _buffered,
}
