"""What the Stepper offers to inject: the catalogue of faults, and what happens beside the stream.

The view gets it once, as plain data; what it asks for comes back by name. Read next: `stepper.py`.
"""

from __future__ import annotations

from streamlab.streams.catalogue import FAULTS, KINDS, Fault
from streamlab.streams.recording import Recording
from streamlab.streams.voices import refused

__all__ = ["offered"]

#: What happens beside a stream: action of the Stepper, what the menu calls it, what it does.
CONTROLS = (
    ("cancel", "cancel", "We cancel and hang up: what was still to come never arrives."),
    (
        "cancel_only",
        "cancel only",
        "We cancel and do not hang up: the rest arrives, and changes nothing any more.",
    ),
    (
        "redeliver",
        "redeliver",
        "The envelope of the last frame is delivered again: the same identity, so it counts once.",
    ),
    (
        "late",
        "late callback",
        "A completion callback comes too late: after the end it is this attempt's own, before it "
        "an older one's. It revives nothing.",
    ),
)

#: What the menu calls a fault whose name alone would say too little beside the others.
LABELS = {"late": "late frame"}


def offered(recording: Recording | None = None) -> list[dict[str, str]]:
    """Every item of the menu, by kind: what it is called, what it says, what it asks for.

    `cannot` says why the recording's wire cannot have a fault; "" where it can.
    """
    recording = recording or Recording()
    kept = (fault for fault in FAULTS.values() if fault.name != "cancel")  # which is a control
    ordered = sorted(kept, key=lambda fault: KINDS.index(fault.kind))
    return [_item(fault, recording) for fault in ordered] + [
        {"kind": "control", "label": label, "says": says, "action": act, "fault": "", "cannot": ""}
        for act, label, says in CONTROLS
    ]


def _item(fault: Fault, recording: Recording) -> dict[str, str]:
    label = LABELS.get(fault.name, fault.name.replace("_", " "))
    where = {"kind": fault.kind, "label": label, "says": fault.says}
    asks = {"action": "inject", "fault": fault.name}
    return {**where, **asks, "cannot": refused(recording, fault.function.__name__)}
