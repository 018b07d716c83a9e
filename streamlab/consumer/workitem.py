"""The running example: an invented work item, and the tool that may propose a new label for it.

Small on purpose. What matters is that the three questions stay apart: does the input fit the
tool's schema, does the business rule hold, and may *this* actor do it to *this* item?
"""

from __future__ import annotations

import msgspec

from streamlab.consumer.gates import EFFECT, Policy, Proposal

__all__ = ["CHANGE_LABEL", "TOOLS", "WorkItem", "policy_for"]


class WorkItem(msgspec.Struct, frozen=True):
    """A thing somebody works on."""

    id: str
    label: str
    owner: str


#: The JSON Schema of the tool's input.
CHANGE_LABEL = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "pattern": "^W-[0-9]+$"},
        "label": {"type": "string", "minLength": 1, "maxLength": 40},
    },
    "required": ["item", "label"],
    "additionalProperties": False,
}

TOOLS = {"change_label": CHANGE_LABEL}

ITEMS = {item.id: item for item in (WorkItem("W-7", "Draft", "ada"), WorkItem("W-8", "Open", "bo"))}


def policy_for(actor: str, items: dict[str, WorkItem] | None = None) -> Policy:
    """What the application accepts from an answer that acts for `actor`."""
    known = ITEMS if items is None else items

    def rule(call: Proposal) -> str:
        item = known.get(call.input["item"])
        if item is None:
            return f"there is no work item {call.input['item']}"
        return f"{item.id} is labelled that already" if item.label == call.input["label"] else ""

    def authorise(call: Proposal) -> str:
        item = known.get(call.input["item"])
        if item is None:  # asked again before the commit, when much may have changed
            return f"there is no work item {call.input['item']}"
        return "" if item.owner == actor else f"{item.id} belongs to {item.owner}, not to {actor}"

    return Policy(EFFECT.accept, TOOLS, rule, authorise)
