"""streamlab: a streamed LLM answer is events that must be assembled, judged, and only then acted on.

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
    "State": "streamlab.consumer.attempt",
    "TABLE": "streamlab.consumer.attempt",
    "CHAT": "streamlab.consumer.gates",
    "EFFECT": "streamlab.consumer.gates",
    "Policy": "streamlab.consumer.gates",
    "policy_for": "streamlab.consumer.workitem",
    "Chunk": "streamlab.streams.recording",
    "Recording": "streamlab.streams.recording",
    "read": "streamlab.streams.recording",
    "write": "streamlab.streams.recording",
    "synth": "streamlab.streams",
    "faults": "streamlab.streams",
    "FaultServer": "streamlab.streams.server",
    "judge": "streamlab.analysis.judge",
    "Script": "streamlab.analysis.trace",
    "trace": "streamlab.analysis.trace",
    "Stepper": "streamlab.widgets.stepper",
    "UsageError": "streamlab.errors",
    "WireError": "streamlab.errors",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'streamlab' has no attribute {name!r}")
    module = import_module(home if name not in ("synth", "faults") else f"{home}.{name}")
    value = module if name in ("synth", "faults") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
