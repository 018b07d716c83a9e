"""The script: each method gives a new one, keeps the old, and says the code that made it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamlab.analysis.trace import trace
from streamlab.consumer.attempt import State
from streamlab.consumer.delivery import Receipt
from streamlab.consumer.workitem import policy_for
from streamlab.errors import UsageError
from streamlab.streams import faults, synth
from streamlab.streams.script import Script

SCRIPT = Script(synth.change_label())

#: The code that it says -> where the attempt ends, and the kinds of the steps after the last frame.
MADE = {
    "script.disconnect(after=5, ending='reset')": ("INCOMPLETE", ["end"]),
    "script.cancel(after=5)": ("ABORTED", ["end"]),
    "script.cancel(after=5, hang_up=False)": ("ABORTED", ["end"]),
    "script.cancel()": ("ABORTED", ["end", "gates", "cancel"]),
    "script.error(after=5, type='overloaded_error')": ("INVALID", ["end"]),
    "script.inject(faults.duplicate, frame=5)": ("VALIDATED_PROPOSAL", ["end", "gates"]),
    "script.inject(faults.html_page)": ("INVALID", ["end"]),
    "script.redeliver(frame=5)": ("VALIDATED_PROPOSAL", ["end", "gates"]),
    "script.redeliver(frame=5, after=9)": ("VALIDATED_PROPOSAL", ["end", "gates"]),
    "script.late()": ("VALIDATED_PROPOSAL", ["end", "gates", "late"]),
    "script.late(after=5)": ("VALIDATED_PROPOSAL", ["end", "gates"]),
    "script.commit()": ("COMMITTED", ["end", "gates", "commit", "effect"]),
    "script.commit(lost=True)": ("RECONCILING", ["end", "gates", "commit", "effect"]),
    "script.commit(lost=True).reconcile()": (
        "COMMITTED",
        ["end", "gates", "commit", "effect", "reconcile"],
    ),
    "script.commit().commit()": ("COMMITTED", ["end", "gates", "commit", "effect", "commit"]),
    "script.cancel().commit()": ("ABORTED", ["end", "gates", "cancel", "commit"]),
    "script.commit().cancel()": ("COMMITTED", ["end", "gates", "commit", "effect", "cancel"]),
    "script.commit().cancel(after='gates')": ("ABORTED", ["end", "gates", "cancel", "commit"]),
    "script.reconcile()": ("VALIDATED_PROPOSAL", ["end", "gates", "reconcile"]),
}


@pytest.mark.parametrize("code", MADE)
def test_the_code_that_a_script_says_makes_it(code: str) -> None:
    made = eval(code, {"script": SCRIPT, "faults": faults})
    assert made.code == code
    state, kinds = MADE[code]
    folded = trace(made)
    assert folded.attempt.state == state
    last_frame = max((step.n for step in folded.steps if step.kind == "frame"), default=0)
    assert [step.kind for step in folded.steps[last_frame:]] == kinds


def test_a_change_leaves_the_script_before_it_as_it_was() -> None:
    made = SCRIPT.cancel(after=5)
    assert made.before is SCRIPT
    assert SCRIPT.controls == ()
    assert SCRIPT.recording == synth.change_label()


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.redeliver(frame=0),
        lambda s: s.redeliver(frame=21),
        lambda s: s.redeliver(frame=5, after=4),
        lambda s: s.late(after=0),
        lambda s: s.cancel(after=99, hang_up=False),
        lambda s: s.inject(faults.duplicate, frame=99),
        lambda s: s.late(after=1.5),
    ],
    ids=[
        "frame 0",
        "no such frame",
        "before it came",
        "late at 0",
        "cancel at 99",
        "inject at 99",
        "no number",
    ],
)
def test_a_place_that_is_none_is_named(change: Callable[[Script], Script]) -> None:
    with pytest.raises(UsageError, match=r"frames? \d|after=4"):
        change(SCRIPT)


def test_what_arrives_after_a_cancellation_is_on_record_and_changes_nothing() -> None:
    steps = trace(SCRIPT.cancel(after=12, hang_up=False).late().commit()).steps
    cancelled = next(step.n for step in steps if step.kind == "cancel")
    assert len(steps[cancelled:]) == 8 + 3, "the other frames, the end, and two more"
    assert {step.attempt.state for step in steps[cancelled:]} == {State.ABORTED}
    assert not any(step.kind == "effect" for step in steps)


def test_a_second_delivery_is_told_by_its_identity() -> None:
    steps = trace(SCRIPT.redeliver(frame=5)).steps
    (again,) = [step for step in steps if step.kind == "redeliver"]
    assert again.receipt is Receipt.REPEATED
    assert again.turn is again.turn_before
    assert steps[-1].turn == trace(SCRIPT).turn


def test_equal_text_counts_twice() -> None:
    laughing = Script(synth.answer([synth.Text(("ha", "ha"))]))
    assert trace(laughing).turn.text == "haha"
    assert trace(laughing.inject(faults.duplicate, frame=4)).turn.text == "hahaha"


@pytest.mark.parametrize(
    ("script", "receipt"),
    [
        (SCRIPT.late(after=5), Receipt.FOREIGN),
        (SCRIPT.disconnect(after=5).late(), Receipt.LATE),
        (SCRIPT.error(after=5).late(), Receipt.LATE),
        (SCRIPT.commit().late(), Receipt.LATE),
        (SCRIPT.late(), Receipt.NEW),
    ],
    ids=["of an earlier attempt", "incomplete", "invalid", "committed", "known already"],
)
def test_a_late_completion_revives_nothing(script: Script, receipt: Receipt) -> None:
    late = next(step for step in trace(script).steps if step.kind == "late")
    assert late.receipt is receipt
    assert late.attempt is late.attempt_before


def test_who_may_no_longer_do_it_is_stopped_at_the_commit() -> None:
    item = {"may": True}
    policy = policy_for("ada")
    assert policy.authorise is not None
    ask = policy.authorise

    def until_revoked(proposal):  # type: ignore[no-untyped-def]
        objection = ask(proposal) if item["may"] else "revoked"
        item["may"] = False
        return objection

    script = Script(
        synth.change_label(),
        policy=type(policy)(policy.accept, policy.tools, policy.rule, until_revoked),
    )
    folded = trace(script.commit())
    assert [step.attempt.state for step in folded.steps[-3:]] == [
        State.VALIDATED_PROPOSAL,
        State.COMMITTING,
        State.ABORTED,
    ]
    assert folded.attempt.why == "no longer authorised: revoked"


def test_what_was_kept_at_the_gates_stays_kept_whatever_comes_later() -> None:
    script = Script(synth.greeting(), prompt="Hello!").late().cancel()
    steps = trace(script).to_json()["steps"]
    kept = {step["kind"]: len(step["history"]) for step in steps}
    assert kept == {"frame": 1, "end": 1, "gates": 2, "late": 2, "cancel": 1}


def test_a_fault_that_no_code_could_name_is_refused() -> None:
    with pytest.raises(UsageError, match="<lambda> is none of `faults`"):
        SCRIPT.inject(lambda recording: recording)


def test_a_control_stays_at_the_frame_that_it_was_put_at() -> None:
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    script = SCRIPT.cancel(after=14, hang_up=False).redeliver(frame=4)
    plain, moved = trace(script), trace(script.insert(after=2, frame=ping))
    cancelled = [next(s.n for s in t.steps if s.kind == "cancel") for t in (plain, moved)]
    assert cancelled == [16, 17]
    assert [step.name for step in moved.steps if step.kind == "redeliver"] == ["frame 5"]


def test_a_control_whose_frame_comes_no_more_does_not_happen() -> None:
    script = SCRIPT.cancel(after=14, hang_up=False).late().disconnect(after=5)
    assert [step.kind for step in trace(script).steps[5:]] == ["end", "late"]


def test_a_callback_of_this_attempt_is_late_and_not_a_repetition_of_an_earlier_ones() -> None:
    steps = trace(SCRIPT.late(after=5).error(after=8).late()).steps
    receipts = [step.receipt for step in steps if step.kind == "late"]
    assert receipts == [Receipt.FOREIGN, Receipt.LATE]
