"""The running example keeps three questions apart: the schema, the rule, and who may."""

from __future__ import annotations

import json

import pytest

from streamlab.consumer.gates import Proposal
from streamlab.consumer.workitem import ITEMS, TOOLS, WorkItem, policy_for
from tests.streams_for_tests import STOP, block, consume, end, fragment, start, stop, stream


def change(item: object, label: object, **more: object) -> bytes:
    written = json.dumps({"item": item, "label": label, **more})
    body = [block(0, "tool_use"), fragment(0, written), stop(0)]
    return stream([start(), *body, end("tool_use"), STOP])


@pytest.mark.parametrize(
    "data, actor, state, gate, saw",
    [
        (change("W-7", "Ready"), "ada", "VALIDATED_PROPOSAL", "authorisation", "may do this"),
        (change("W-8", "Ready"), "bo", "VALIDATED_PROPOSAL", "authorisation", "may do this"),
        (change("W-7", "Ready"), "bo", "HELD", "authorisation", "belongs to ada, not to bo"),
        (change("W-7", "Ready"), "", "HELD", "authorisation", "belongs to ada"),
        (change("W-7", "Draft"), "ada", "INVALID", "business_rule", "labelled that already"),
        (change("W-7", "Draft"), "bo", "INVALID", "business_rule", "labelled that already"),
        (change("W-9", "Ready"), "ada", "INVALID", "business_rule", "there is no work item W-9"),
        (change("W-", "Ready"), "ada", "INVALID", "schema", "$.item"),
        (change("W-7", ""), "ada", "INVALID", "schema", "$.label"),
        (change("W-7", "x" * 41), "ada", "INVALID", "schema", "$.label"),
        (change("W-7", None), "ada", "INVALID", "schema", "$.label"),
        (change("W-7", "Ready", owner="bo"), "ada", "INVALID", "schema", "'owner'"),
    ],
    ids=[
        "owner", "other owner", "other actor", "nobody", "same label", "same label, other actor",
        "no such item", "no number", "empty", "too long", "null", "a field too many",
    ],
)  # fmt: skip
def test_a_change_of_label(data: bytes, actor: str, state: str, gate: str, saw: str) -> None:
    consumer, _ = consume(data, policy=policy_for(actor))
    assert consumer.attempt.state == state
    assert consumer.verdicts[-1].gate == gate
    assert saw in consumer.verdicts[-1].saw


def test_the_items_are_the_callers_if_they_are_given() -> None:
    items = {"W-9": WorkItem("W-9", "Open", "cy")}
    assert consume(change("W-9", "Ready"), policy=policy_for("cy", items))[0].proposals
    assert not consume(change("W-7", "Ready"), policy=policy_for("ada", items))[0].proposals
    assert not consume(change("W-7", "Ready"), policy=policy_for("ada", {}))[0].proposals


def test_authorisation_asked_again_of_an_item_that_is_gone_says_no() -> None:
    items = dict(ITEMS)
    policy = policy_for("ada", items)
    proposal = Proposal("call_0", "change_label", {"item": "W-7", "label": "Ready"})
    assert policy.authorise(proposal) == ""
    del items["W-7"]
    assert policy.authorise(proposal) == "there is no work item W-7"


def test_only_one_tool_is_permitted() -> None:
    assert set(TOOLS) == {"change_label"}
    data = change("W-7", "Ready").replace(b"change_label", b"delete_item")
    consumer, _ = consume(data, policy=policy_for("ada"))
    assert consumer.attempt.state == "HELD"
    assert consumer.verdicts[-1].gate == "tool"
