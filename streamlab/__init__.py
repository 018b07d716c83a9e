"""A streamed LLM answer is events that must be assembled, judged, and only then acted on.

The way of the data is the way through the folders: `wire` (bytes -> events), `consumer` (events ->
effects), `streams` (where recordings come from), `analysis` (what one says), `study` and `widgets`
(what a learner does and sees). Imports go that way only.

This module itself needs nothing but the standard library: each name loads on first use.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

#: Public name -> the module that holds it.
_HOME = {
    "SSEDecoder": "streamlab.wire.sse",
    "Reader": "streamlab.wire.reader",
    "Bounds": "streamlab.wire.reader",
    "reduce": "streamlab.consumer.turn",
    "fold": "streamlab.consumer.turn",
    "Consumer": "streamlab.consumer.consumer",
    "Attempt": "streamlab.consumer.attempt",
    "State": "streamlab.consumer.attempt",
    "TABLE": "streamlab.consumer.attempt",
    "observe": "streamlab.consumer.attempt",
    "CHAT": "streamlab.consumer.gates",
    "EFFECT": "streamlab.consumer.gates",
    "Policy": "streamlab.consumer.gates",
    "policy_for": "streamlab.consumer.workitem",
    "Envelope": "streamlab.consumer.delivery",
    "Inbox": "streamlab.consumer.delivery",
    "RecordingAdapter": "streamlab.consumer.commit",
    "commit": "streamlab.consumer.commit",
    "reconcile": "streamlab.consumer.commit",
    "Ledger": "streamlab.consumer.ledger",
    "run_turn": "streamlab.consumer.toolloop",
    "TurnState": "streamlab.consumer.turn_events",
    "Bus": "streamlab.consumer.bus",
    "Screen": "streamlab.consumer.screen",
    "show": "streamlab.consumer.screen",
    "fold_screen": "streamlab.consumer.screen",
    "by_stream": "streamlab.consumer.screen",
    "Conversation": "streamlab.consumer.conversation",
    "objections": "streamlab.consumer.history",
    "Chunk": "streamlab.streams.recording",
    "Recording": "streamlab.streams.recording",
    "read": "streamlab.streams.recording",
    "write": "streamlab.streams.recording",
    "FaultServer": "streamlab.streams.server",
    "record": "streamlab.streams.live",
    "Upstream": "streamlab.streams.upstream",
    "Replay": "streamlab.streams.upstream",
    "Forwarder": "streamlab.streams.forward",
    "request_of": "streamlab.streams.requests",
    "streams_in": "streamlab.streams.importers",
    "judge": "streamlab.analysis.judge",
    "diagnose": "streamlab.analysis.doctor",
    "examine": "streamlab.analysis.doctor",
    "goodput": "streamlab.analysis.metrics",
    "Script": "streamlab.streams.script",
    "trace": "streamlab.analysis.trace",
    "preview": "streamlab.consumer.preview",
    "ask_sdk": "streamlab.study.sdk",
    "run_card": "streamlab.study.report_card",
    "explore": "streamlab.study.explorer",
    "GUARDS": "streamlab.study.guards",
    "without": "streamlab.study.guards",
    "check": "streamlab.study.questions",
    "predict": "streamlab.widgets.quiz",
    "reveal": "streamlab.widgets.quiz",
    "summary": "streamlab.widgets.quiz",
    "BoundaryExplorer": "streamlab.widgets.boundary",
    "CardView": "streamlab.widgets.card",
    "DialectStepper": "streamlab.widgets.dialects",
    "GuardBoard": "streamlab.widgets.guards",
    "Inspector": "streamlab.widgets.inspector",
    "Race": "streamlab.widgets.race",
    "Stepper": "streamlab.widgets.stepper",
    "TurnView": "streamlab.widgets.turnview",
    "UsageError": "streamlab.errors",
    "WireError": "streamlab.errors",
}

#: Public names that are modules themselves.
_MODULES = {
    "corpus": "streamlab.analysis.corpus",
    "faults": "streamlab.streams.faults",
    "plots": "streamlab.analysis.plots",
    "rounds": "streamlab.streams.rounds",
    "scenarios": "streamlab.streams.scenarios",
    "synth": "streamlab.streams.synth",
    "tables": "streamlab.analysis.tables",
}

__all__ = sorted({**_HOME, **_MODULES})


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'streamlab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
