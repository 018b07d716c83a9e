"""A trace as plain JSON: what the Stepper's page gets, once, and moves through by itself.

Every step says what it *did* to the turn (`ops`), so the view at step k is the first k steps
applied in order; nothing grows with the square of the length.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from streamlab.consumer.attempt import State
from streamlab.consumer.conversation import KEPT
from streamlab.consumer.gates import GATES
from streamlab.consumer.turn import Segment, Turn
from streamlab.streams.recording import Chunk
from streamlab.wire import events as e

if TYPE_CHECKING:
    from streamlab.analysis.trace import Step, Trace

__all__ = ["trace_json"]

#: Longest raw frame and longest shown value, in characters; what is longer says how long it is.
MAX_RAW, MAX_VALUE = 4000, 120


def trace_json(trace: Trace, title: str = "") -> dict[str, Any]:
    """The whole trace, with the steps that its last change cut off as its ghost."""
    prompt, ghost = trace.script.prompt, trace.cut_off
    reads = _reads_known(trace)
    return {
        "title": title or trace.script.recording.note,
        "wire": trace.wire,
        "bytes": trace.steps[-1].end,
        "chunks": [end - len(data) for end, (_, data) in _read_ends(trace)] if reads else [],
        "code": f"trace({trace.script.code})",
        "gate_names": list(GATES),
        "steps": [_step(step, prompt, reads) for step in trace.steps],
        "ghost": [_step(step, prompt, reads) for step in ghost],
        "ghost_from": ghost[0].n if ghost else None,
    }


def _reads_known(trace: Trace) -> bool:
    """Whether the chunks are what the network brought; a raw file's are pieces of our own."""
    return any(chunk.t is not None for chunk in trace.script.recording.chunks)


def _read_ends(trace: Trace) -> Iterator[tuple[int, Chunk]]:
    chunks = trace.script.recording.chunks
    return zip(accumulate(len(chunk.data) for chunk in chunks), chunks, strict=True)


def _step(step: Step, prompt: str, reads: bool) -> dict[str, Any]:
    turn, facts = step.turn, step.turn.facts
    return {
        "n": step.n,
        "kind": step.kind,
        "frame": step.frame.number if step.frame else None,
        "t": step.t,
        "start": step.start,
        "end": step.end,
        "chunk": step.chunk if reads else None,
        "name": step.name,
        "raw": clipped(step.raw.decode("utf-8", "replace"), MAX_RAW),
        "events": [_event(event) for event in step.events],
        "ops": _ops(step),
        "state": step.attempt.state.value,
        "said": step.attempt.said,
        "why": step.why,
        "injected": step.injected,
        "stop_reason": facts.stop_reason,
        "complete": turn.complete,
        "history": _history(step, prompt),
        "verdicts": [
            {"gate": v.gate, "passed": v.passed, "saw": v.saw}
            for v in step.verdicts
            if step.kind == "gates"
        ],
        "problems": [
            {"rule": p.rule, "severity": p.severity, "message": p.message, "at": p.at}
            for p in facts.problems[len(step.turn_before.facts.problems) :]
        ],
    }


def clipped(text: str, most: int) -> str:
    """The text, or its first characters and how long it is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def _event(event: e.Event) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": type(event).__name__}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name != "at" and value not in ("", None, False, 0):
            shown[name] = clipped(value if isinstance(value, str) else repr(value), MAX_VALUE)
    return shown


def _ops(step: Step) -> list[list[Any]]:
    """What the step did to the turn's segments."""
    ops: list[list[Any]] = []
    if step.turn is step.turn_before:
        return ops
    for event in step.events:
        if isinstance(event, e.SegmentStarted):
            name, call_id = event.name or None, event.call_id or None
            label = event.type if event.kind == "other" else name
            ops.append(["start", event.segment, event.kind, label, call_id, event.server])
        elif isinstance(event, (e.TextDelta, e.ThinkingDelta, e.InputDelta)):
            ops.append(["append", event.segment, event.text])
        elif isinstance(event, e.Identified):
            ops.append(["identify", event.segment, event.name, event.call_id])
        elif isinstance(event, e.Restated):
            ops.append(["restate", event.segment, event.text])
        elif isinstance(event, e.SegmentStopped):
            segment = step.turn.find(event.segment)
            if segment is not None:
                ops.append(["stop", event.segment, segment.status, segment.input])
        elif isinstance(event, (e.SignatureDelta, e.Attached)):
            what = event.name if isinstance(event, e.Attached) else "signature"
            ops.append(["note", event.segment, what])
    return ops


def _history(step: Step, prompt: str) -> list[dict[str, str]]:
    """What the conversation keeps after this step: whole turns only, and only once judged."""
    kept = [{"role": "user", "text": prompt}]
    judged = step.verdicts or step.attempt.state is not State.MESSAGE_COMPLETE
    if step.attempt.state in KEPT and judged:
        kept.append({"role": "assistant", "text": clipped(_summary(step.turn), 400)})
    return kept


def _summary(turn: Turn) -> str:
    return " ".join(filter(None, map(_shown, turn.segments)))


def _shown(segment: Segment) -> str:
    if segment.kind == "text":
        return segment.text
    return f"[{segment.start.name or segment.start.type or segment.kind}]"
