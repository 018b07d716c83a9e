"""What there is to find in a stream: what the readers reported, and what only the whole shows.

A finding is a rule with its place: the frame, and the offset of that frame's first byte. What is
found only because the stream ended is at its end. Nothing here decides what the stream is worth;
`verdicts.py` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from streamlab.analysis.doctor.errors import unread_error
from streamlab.analysis.doctor.rules import RULES
from streamlab.analysis.judge import Outcome
from streamlab.analysis.plain import seconds
from streamlab.analysis.problems import problems_of
from streamlab.consumer.attempt import Input
from streamlab.wire.events import Severity
from streamlab.wire.sse import BOM

__all__ = ["LONG_WAIT_S", "Finding", "find", "stray_at"]

#: Seconds before the first content, or after the last, from which on somebody should ask why.
LONG_WAIT_S = 10.0

#: How the transport stopped -> the rule, where it stopped before the answer was whole.
ENDED = {
    "eof": "clean-end",
    "cut": "cut",
    "reset": "reset",
    "timeout": "silence",
    "cancelled": "cancelled",
}

#: Rules about the end: they stand after the last frame, at the offset where the bytes stop.
AT_END = frozenset({*ENDED.values(), "late-reset", "incomplete", "recording-truncated"})

#: Stop reason -> the rule that it falls under.
STOPPED = {
    "max_tokens": "token-limit",
    "context_window": "token-limit",
    "refusal": "refused",
    "content_filter": "refused",
    "pause_turn": "paused",
    "error": "stop-reason",
    "other": "stop-reason",
}

#: Gate -> the rule of an answer that it does not let pass.
GATED = {
    "stop_reason": "not-accepted",
    "tool": "tool-not-permitted",
    "parse": "tool-input",
    "schema": "schema",
    "business_rule": "business-rule",
    "authorisation": "not-authorised",
}

#: Text in a chunk of a wire that has no start of its own.
_content = re.compile(rb'"(?:content|reasoning|reasoning_content)"\s*:\s*"[^"]').search

_no_space = re.compile(rb"data:[^ \r\n]").finditer
_byte_said = re.compile(r"\(byte (\d{1,15})\)")


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong, or worth knowing."""

    rule: str  #: an id in the table of rules
    severity: Severity
    says: str  #: with what was found
    frame: int | None = None  #: number of the frame; None where it is about the whole stream
    byte: int | None = None  #: offset of that frame's first byte in the stream


def find(outcome: Outcome) -> list[Finding]:
    """Everything, in the order in which it came; what is about the whole stream is last."""
    found = [*_reported(outcome), *(one for detect in DETECTORS for one in detect(outcome))]
    return sorted(found, key=lambda one: (one.frame is None, one.frame or 0, one.byte or 0))


def _reported(outcome: Outcome) -> Iterator[Finding]:
    """The problems of the stream and of its file."""
    places, settled = outcome.signs.places, outcome.signs.settled
    for number, problem in enumerate(problems_of(outcome)):
        at_end = number >= settled and problem.rule in AT_END
        byte = None if at_end else places.get(problem.at)
        if byte is None:
            said = _byte_said.findall(problem.message)
            byte = min(int(said[-1]), outcome.bytes) if said else None
            if byte is None:
                byte = outcome.bytes if at_end else stray_at(outcome)
        frame = problem.at or None
        yield Finding(problem.rule, problem.severity, problem.message, frame, byte if frame else 0)


def _at(outcome: Outcome, rule: str, says: str, frame: int = 0) -> Finding:
    """A finding of our own, at a frame; or about the whole stream."""
    severity = RULES[rule].severity
    if not frame:
        return Finding(rule, severity, says)
    return Finding(rule, severity, says, frame, outcome.signs.places.get(frame))


def _at_end(outcome: Outcome, rule: str, says: str) -> Finding:
    last = outcome.frames or None
    return Finding(rule, RULES[rule].severity, says, last, outcome.bytes)


def _end(outcome: Outcome) -> Iterator[Finding]:
    """How the transport stopped, where that matters."""
    ending, by = outcome.ending, outcome.attempt.by
    if by in (Input.ENDED, Input.CANCEL):
        lacking = (p.message for p in outcome.turn.facts.problems if p.rule == "incomplete")
        yield _at_end(outcome, ENDED[ending], next(lacking, outcome.attempt.why))
    elif outcome.complete and ending in ("cut", "reset"):
        yield _at_end(outcome, "late-reset", "the connection broke after the final marker")


def _stop(outcome: Outcome) -> Iterator[Finding]:
    """A reason to stop that is none of an answer that went well."""
    facts = outcome.turn.facts
    rule = STOPPED.get(facts.stop_reason or "")
    if rule and not facts.error:
        raw = facts.raw_stop_reason
        yield _at(outcome, rule, f"the stop reason is {raw!r}", outcome.signs.stop)


def _gates(outcome: Outcome) -> Iterator[Finding]:
    """The gate that did not let the answer pass, at the call that it is about."""
    for verdict in outcome.verdicts:
        rule = GATED.get(verdict.gate)
        if verdict.passed is not False or rule is None:
            continue
        facts = outcome.turn.facts
        told = {"tool-use-without-call", "tool-input"} & {p.rule for p in facts.problems}
        if verdict.gate == "stop_reason" and (facts.stop_reason in STOPPED or told):
            continue  # said already, and better
        if rule in told:
            continue
        calls = outcome.turn.calls
        frame = calls[0].start.at if calls and rule != "not-accepted" else outcome.signs.stop
        yield _at(outcome, rule, verdict.saw, frame)


def _counts(outcome: Outcome) -> Iterator[Finding]:
    signs, tokens = outcome.signs, outcome.turn.facts.tokens
    if signs.fell:
        says = "the count of output tokens is below an earlier one"
        yield _at(outcome, "usage-fell", says, signs.fell)
    if outcome.complete and tokens.output is None:
        yield _at(outcome, "no-usage", "no count of output tokens came")


def _parts(outcome: Outcome) -> Iterator[Finding]:
    """What only a whole part shows."""
    called = {s.start.call_id for s in outcome.turn.segments if s.kind == "tool_call"}
    for segment in outcome.turn.segments:
        at, name = segment.start.at, f"segment {segment.id}"
        if segment.kind in ("text", "thinking") and _is_half(segment.text):
            yield _at(outcome, "half-character", f"{name} has half a character", at)
        signed, ready = segment.signature, segment.status == "ready"
        if segment.kind == "thinking" and ready and not signed and outcome.wire == "claude":
            yield _at(outcome, "unsigned-thinking", f"{name}: thinking without a signature", at)
        if signed and not segment.text and outcome.wire == "gemini":
            yield _at(outcome, "signature-alone", f"{name} is nothing but a signature", at)
        if segment.kind == "other" and segment.start.type.endswith("_tool_result"):
            of = segment.attached.get("tool_use_id")
            if of not in called:
                says = f"{name} is the result of {str(of)[:80]!r}, which is no call here"
                yield _at(outcome, "result-without-call", says, at)


def _is_half(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


def _again(outcome: Outcome) -> Iterator[Finding]:
    """An answer, or a frame of it, that came again."""
    signs = outcome.signs
    if signs.again and (signs.fell == signs.again or _opens(outcome)):
        says = "the first two frames come again, one after the other"
        yield _at(outcome, "answer-again", says, signs.again)
    elif signs.role:
        says = "a chunk of another answer, with an id of its own, comes in the middle"
        yield _at(outcome, "another-start", says, signs.role)
    if signs.repeats:
        first = signs.repeats[0]
        says = f"frame {first} is frame {first - 1} again, byte for byte"
        yield _at(outcome, "frame-again", says, first)


def _opens(outcome: Outcome) -> bool:
    """Whether the first frame can come once only: it is a start, and no content yet.

    Where it is content, two frames may honestly come again: "no, no, no, no".
    """
    first = outcome.signs.head.split(b"\n", 1)[0].split(b"\r", 1)[0]
    return outcome.wire != "gemini" and not _content(first)


def _error(outcome: Outcome) -> Iterator[Finding]:
    """An error that a client may overlook."""
    signs, at = outcome.signs, outcome.frames
    if not outcome.turn.facts.error:
        return
    at = next((p.at for p in outcome.turn.facts.problems if p.rule == "provider-error"), at)
    if signs.unframed:
        yield _at(outcome, "error-shape", "the error is outside the framing of the stream", at)
    elif outcome.wire in ("claude", "openai-responses") and not signs.error_name:
        yield _at(outcome, "error-shape", "the error has no event name", at)
    elif outcome.wire in ("openai-chat", "gemini") and not _begins_with_error(signs.error):
        yield _at(outcome, "error-shape", "the error is not where this wire puts it", at)


def _unread(outcome: Outcome) -> Iterator[Finding]:
    """An error that no client reads, and after which nothing came."""
    if outcome.turn.facts.error or not outcome.bytes:
        return
    if error := unread_error(outcome):
        says = f"the last that came is no event, and speaks of an error: {error.message[:200]}"
        found = _at(outcome, "unread-error", says, outcome.frames)
        byte = stray_at(outcome)
        yield found if byte is None else msgspec.structs.replace(found, byte=byte)


def stray_at(outcome: Outcome) -> int | None:
    """Where the lines begin that are no field of an event, if nothing came after them."""
    told = next((p.message for p in outcome.turn.facts.problems if p.rule == "unframed"), "")
    said = _byte_said.findall(told)
    return int(said[-1]) if said and int(said[-1]) > outcome.signs.last[1] else None


def _begins_with_error(data: bytes) -> bool:
    return data.lstrip()[1:].lstrip().startswith(b'"error"')


def _dress(outcome: Outcome) -> Iterator[Finding]:
    """How the bytes were dressed."""
    signs, head = outcome.signs, outcome.signs.head
    streamed = head.removeprefix(BOM).lstrip()[:1] not in (b"{", b"[")
    if streamed and head.startswith(BOM):
        yield Finding("bom", "warning", "the stream begins with a byte order mark", None, 0)
    if streamed and outcome.frames and b"\r" in head and b"\n" not in head:
        says = "lines end with CR alone"
        yield Finding("cr-only", "warning", says, None, head.index(b"\r"))
    if (byte := signs.odd.get("separator")) is not None:
        says = f"U+2028, U+2029 or U+0085 stands raw in the data (byte {byte})"
        yield Finding("line-separator", "note", says, None, byte)
    if not streamed or outcome.wire != "gemini":
        return
    if (byte := signs.odd.get("line")) is not None:
        says = f"a comment, or an event's name or id (byte {byte})"
        yield Finding("strange-line", "warning", says, None, byte)
    bare = (found.start() for found in _no_space(head))
    byte = next((at for at in bare if head[:at][-1:] in (b"", b"\r", b"\n")), None)
    if byte is not None:
        yield Finding("no-space", "warning", f"data: without a space (byte {byte})", None, byte)


def _times(outcome: Outcome) -> Iterator[Finding]:
    """When it came, where that is known."""
    metrics = outcome.metrics
    if metrics is None:
        return
    if metrics.buffered:
        says = f"{metrics.together or 0.0:.0%} of the content came together, after a wait"
        yield _at(outcome, "buffered", says)
    first = outcome.signs.first_t if metrics.ttfc_s is None else metrics.ttfc_s
    if first is not None and first >= LONG_WAIT_S:
        what = "first byte" if metrics.ttfc_s is None else "first content"
        yield _at(outcome, "slow-start", f"the {what} came after {seconds(first)}")
    if metrics.stalls.count:
        longest, start = max(zip(metrics.stalls.lasted_s, metrics.stalls.at, strict=True))
        says = f"nothing came for {seconds(longest)}, from {seconds(start)} on"
        yield _at(outcome, "stall", says)
    if metrics.settlement_lag_s is not None and metrics.settlement_lag_s >= LONG_WAIT_S:
        after = seconds(metrics.settlement_lag_s)
        yield _at(outcome, "slow-end", f"the final marker came {after} after the last content")


#: What looks for the doctor's own findings.
DETECTORS: tuple[Callable[[Outcome], Iterator[Finding]], ...] = (
    _end,
    _stop,
    _gates,
    _counts,
    _parts,
    _again,
    _error,
    _unread,
    _dress,
    _times,
)
