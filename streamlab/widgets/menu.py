"""What the Stepper offers to inject: the catalogue of faults, and what happens beside the stream.

The view gets it once, as plain data; what it asks for comes back by name. Read next: `stepper.py`.
"""

from __future__ import annotations

from streamlab.streams.catalogue import FAULTS, KINDS, Fault

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


def offered() -> list[dict[str, str]]:
    """Every item of the menu, by kind: what it is called, what it says, what it asks for."""
    kept = (fault for fault in FAULTS.values() if fault.name != "cancel")  # which is a control
    items = [_item(fault) for fault in sorted(kept, key=lambda fault: KINDS.index(fault.kind))]
    return items + [
        {"kind": "control", "label": label, "says": says, "action": action, "fault": ""}
        for action, label, says in CONTROLS
    ]


def _item(fault: Fault) -> dict[str, str]:
    label = LABELS.get(fault.name, fault.name.replace("_", " "))
    where = {"kind": fault.kind, "label": label, "says": fault.says}
    return {**where, "action": "inject", "fault": fault.name}
