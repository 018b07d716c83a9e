"""Why: one sentence for each step, for a person who looks at it for the first time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamlab.consumer.attempt import State
from streamlab.consumer.delivery import Receipt
from streamlab.wire import events as e

if TYPE_CHECKING:
    from streamlab.analysis.trace import Step

__all__ = ["why"]


def why(step: Step) -> str:
    """What this step did to the attempt, or why it did nothing."""
    return SAYS.get(step.kind, _from_events)(step)


def _from_events(step: Step) -> str:
    if step.attempt is not step.attempt_before:
        return _sentence(step.attempt.why)
    if step.attempt_before.terminal and step.events:
        return f"{step.attempt.state} is final: what comes now is on record and changes nothing"
    told = next(filter(None, (_told(step, event) for event in step.events)), "")
    return told or "The bytes say nothing that matters here"


def _told(step: Step, event: e.Event) -> str:
    tell = TELLS.get(type(event))
    return tell(step, event) if tell else ""


def _end(step: Step) -> str:
    if step.attempt is step.attempt_before:
        if step.attempt.state is State.MESSAGE_COMPLETE:
            return "The transport stopped after the final marker; the answer was whole by then"
        return f"The transport stopped; {step.attempt.state} was settled before"
    if step.attempt.state is State.ABORTED:
        return _sentence(step.attempt.why)
    missing = next(
        (p.message for p in reversed(step.turn.facts.problems) if p.rule == "incomplete"), ""
    )
    return _sentence(missing or step.attempt.why) + "; nothing may be acted on"


def _gates(step: Step) -> str:
    if step.attempt is step.attempt_before:
        return "A whole text answer: it may be kept, and there is nothing to act on"
    if step.attempt.state is State.VALIDATED_PROPOSAL:
        return _sentence(step.attempt.why)
    return f"A gate did not pass. {_sentence(step.attempt.why)}"


def _cancel(step: Step) -> str:
    if step.attempt is step.attempt_before:
        state = step.attempt.state
        over = f"{state} is final" if step.attempt.terminal else "The commit has begun"
        return f"{over}: a cancellation comes too late and changes nothing"
    return "Cancelled before anything was committed"


def _redeliver(step: Step) -> str:
    return f"{_sentence(step.name)}'s envelope was handled before: the same identity, no transition"


def _late(step: Step) -> str:
    state = step.attempt.state
    if step.receipt is Receipt.FOREIGN:
        return f"A late callback of an earlier attempt: it is on record, and {state} stays"
    if step.receipt is Receipt.LATE:
        return f"{state} is final: a late callback is on record and revives nothing"
    return f"A late callback: what it says is known already, so {state} stays"


def _commit(step: Step) -> str:
    if step.attempt is step.attempt_before:
        return f"{step.attempt.state} allows no commit: nothing is submitted"
    return "The commit has begun: who may do this is asked again, then the effect is submitted"


def _effect(step: Step) -> str:
    return _sentence(step.attempt.why)


def _reconcile(step: Step) -> str:
    if step.attempt is step.attempt_before:
        return f"{step.attempt.state} has no open outcome: there is nothing to ask"
    return f"Asked, not submitted again. {_sentence(step.attempt.why)}"


SAYS: dict[str, Callable[[Step], str]] = {
    "end": _end,
    "gates": _gates,
    "cancel": _cancel,
    "redeliver": _redeliver,
    "late": _late,
    "commit": _commit,
    "effect": _effect,
    "reconcile": _reconcile,
}


def _started(step: Step, event: e.SegmentStarted) -> str:
    what = f"{event.type or event.kind}" + (f" {event.name}" if event.name else "")
    runs = ", which the provider runs itself" if event.server else ""
    return f"Block {event.segment} begins: {what}{runs}. Its id is fixed before any content"


def _stopped(step: Step, event: e.SegmentStopped) -> str:
    segment = step.turn.find(event.segment)
    if segment is None or segment.kind != "tool_call":
        return f"Block {event.segment} is whole; the answer is not"
    if segment.error:
        return f"Block {event.segment} stopped, but its input does not parse: {segment.error}"
    return (
        f"Block {event.segment} is whole: its input is parsed now, once. Parseable, not executable"
    )


def _delta(what: str) -> Callable[[Step, Any], str]:
    def told(step: Step, event: Any) -> str:
        if not event.text:
            return f"An empty fragment of {what}: legal, and nothing changes"
        return f"{len(event.text)} more characters of {what}"

    return told


def _input(step: Step, event: e.InputDelta) -> str:
    if not event.text:
        return "An empty fragment of JSON: legal, and nothing changes"
    return f"{len(event.text)} more characters of JSON; a fragment means nothing by itself"


TELLS: dict[type, Callable[[Step, Any], str]] = {
    e.MessageStarted: lambda s, v: "The answer has an id and a model; nothing more is promised",
    e.SegmentStarted: _started,
    e.Identified: lambda s, v: f"Block {v.segment} is now known as {v.name or v.call_id}",
    e.Restated: lambda s, v: f"The whole of block {v.segment}, by authority over its fragments",
    e.SegmentStopped: _stopped,
    e.TextDelta: _delta("text"),
    e.ThinkingDelta: _delta("thinking"),
    e.SignatureDelta: _delta("signature; it survives byte for byte or is worthless"),
    e.InputDelta: _input,
    e.StopReported: lambda s, v: f"The model stopped: {v.reason}. The marker is still missing",
    e.UsageReported: lambda s, v: "Token counts so far; they replace the earlier ones",
    e.KeepAlive: lambda s, v: "A keep-alive: proof of life, not of progress",
    e.Unknown: lambda s, v: f"{v.type!r} is not known here: kept, and granted nothing",
    e.Problem: lambda s, v: _sentence(v.message),
    e.ProviderError: lambda s, v: f"The provider reports {v.type}: {v.message}",
    e.Attached: lambda s, v: f"Something belongs to block {v.segment}: {v.name}",
}


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
