"""An outcome as plain JSON: one object a recording, the same for all wire formats.

This is what `streamlab show --json` prints, so its keys are a contract: they may grow in number,
but not change. Strict JSON in ASCII: half of a character pair is an escape, and there is no NaN.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from streamlab.analysis.doctor import Diagnosis, Finding, diagnose
from streamlab.analysis.judge import Outcome
from streamlab.analysis.metrics import Metrics
from streamlab.analysis.problems import problems_of
from streamlab.consumer.turn import Segment
from streamlab.streams.importers import About

__all__ = ["problems_of", "report", "to_line"]

#: Seconds are given to the nanosecond: what is finer than the clock is noise of the arithmetic.
DIGITS = 9


def report(outcome: Outcome, file: str, about: About | None = None) -> dict[str, Any]:
    """What a recording says, and what it is worth; `about` is what a capture says beside it."""
    facts = outcome.turn.facts
    captured = {} if about is None or not about.form else {"about": _about(about)}
    return {
        "file": file,
        **captured,
        "wire": outcome.wire,
        "model": facts.model,
        "events": outcome.frames,
        "bytes": outcome.bytes,
        "state": outcome.state.value,
        "said": outcome.attempt.said,
        "why": outcome.attempt.why,
        "complete": outcome.complete,
        "ending": outcome.ending,
        "stop_reason": facts.stop_reason,
        "raw_stop_reason": facts.raw_stop_reason,
        "segments": [_segment(segment) for segment in outcome.turn.segments],
        "usage": {"input_tokens": facts.tokens.input, "output_tokens": facts.tokens.output},
        "usage_raw": facts.usage,
        "verdicts": [{"gate": v.gate, "passed": v.passed, "saw": v.saw} for v in outcome.verdicts],
        "proposals": [
            {"call_id": p.call_id, "tool": p.tool, "input": p.input} for p in outcome.proposals
        ],
        "problems": [
            {"rule": p.rule, "severity": p.severity, "at": p.at, "message": p.message}
            for p in problems_of(outcome)
        ],
        "metrics": None if outcome.metrics is None else _metrics(outcome.metrics),
        "doctor": _doctor(diagnose(outcome)),
    }


def to_line(value: dict[str, Any]) -> str:
    """One line of strict JSON."""
    return json.dumps(value, allow_nan=False)


def _about(about: About) -> dict[str, Any]:
    return {
        "form": about.form,
        "where": about.where,
        "at": about.at,
        "request": about.request,
        "status": about.status,
        "masked": dict(about.masked),
    }


def _doctor(diagnosis: Diagnosis) -> dict[str, Any]:
    first = diagnosis.first
    return {
        "verdict": diagnosis.verdict,
        "says": diagnosis.says,
        "layer": diagnosis.layer,
        "because": diagnosis.because,
        "first": None if first is None else _finding(first),
        "may": list(diagnosis.may),
        "may_not": list(diagnosis.may_not),
        "advice": diagnosis.advice,
        "findings": [_finding(finding) for finding in diagnosis.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(finding)
    return found


def _segment(segment: Segment) -> dict[str, Any]:
    start = segment.start
    shown: dict[str, Any] = {"kind": segment.kind, "id": segment.id, "status": segment.status}
    if segment.kind == "tool_call":
        shown |= {"name": start.name, "call_id": start.call_id, "input": segment.input}
        shown |= {"raw_input": segment.text, "server": start.server}
        shown |= {"error": segment.error} if segment.error else {}
    elif segment.kind == "other":
        shown |= {"type": start.type}
    else:
        shown |= {"text": segment.text}
    shown |= {"signature": segment.signature} if segment.signature else {}
    shown |= {"choice": start.choice} if start.choice else {}
    attached = segment.attached
    return shown | ({"attached": attached} if attached else {})


def _metrics(metrics: Metrics) -> dict[str, Any]:
    rounded: dict[str, Any] = _rounded(msgspec.to_builtins(metrics))
    return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, (list, tuple)) else value
