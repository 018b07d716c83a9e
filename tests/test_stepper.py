"""The Stepper without a browser: what its buttons ask of Python, its still pictures, its lookup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from streamlab.analysis.trace import CONTROLS, trace
from streamlab.consumer.attempt import TABLE, TERMINAL
from streamlab.consumer.workitem import policy_for
from streamlab.errors import UsageError
from streamlab.streams import faults, scenarios, synth
from streamlab.streams.catalogue import FAULTS, KINDS
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.script import Script
from streamlab.widgets import page, still
from streamlab.widgets.menu import offered
from streamlab.widgets.stepper import ACTIONS, Stepper

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)> \u2028 & \ud83d"
SCRIPT = Script(synth.change_label(), policy=policy_for("ada"), prompt="Label W-7, please.")
WHOLE, CUT = "VALIDATED_PROPOSAL", "INCOMPLETE"
IDS = count()


def asked(stepper: Stepper, action: Any, **more: Any) -> dict[str, Any]:
    """Press a button, as a page does it; return what Python answers."""
    stepper.set_state({"request": {"id": f"id-{next(IDS)}", "action": action, **more}})
    assert stepper.answer["id"] == stepper.request["id"]
    return dict(stepper.answer)


def evil_trace() -> dict[str, Any]:
    text = synth.answer([synth.Text((EVIL[:-1], "x" * 300)), synth.ToolCall(EVIL[:30], {})])
    return trace(Script(text, prompt=EVIL)).to_json(EVIL)


# --- Buttons --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "more", "state", "code"),
    [
        ("disconnect", {"ending": "eof"}, CUT, "disconnect(after=9, ending='eof')"),
        ("disconnect", {"ending": "cut"}, CUT, "disconnect(after=9, ending='cut')"),
        ("disconnect", {"ending": "reset"}, CUT, "disconnect(after=9, ending='reset')"),
        ("disconnect", {"ending": "timeout"}, CUT, "disconnect(after=9, ending='timeout')"),
        ("cancel", {}, "ABORTED", "cancel(after=9)"),
        ("error", {}, "INVALID", "error(after=9, type='overloaded_error')"),
        ("token_limit", {}, "HELD", "token_limit(after=9)"),
        ("redeliver", {}, WHOLE, "redeliver(frame=9)"),
        ("late", {}, WHOLE, "late(after=9)"),
        ("unknown", {}, WHOLE, "unknown(after=9)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "".join(value.values()),
)
def test_each_button_is_one_line_of_python(
    action: str, more: dict[str, str], state: str, code: str
) -> None:
    stepper = Stepper(SCRIPT)
    answer = asked(stepper, action, after=9, **more)
    assert (answer["ok"], answer["code"]) == (True, f"trace(script.{code})")
    by_hand = eval(answer["code"], {"trace": trace, "script": SCRIPT})
    assert by_hand.attempt.state == stepper.folded.attempt.state == state
    assert [s.raw for s in by_hand.steps] == [s.raw for s in stepper.folded.steps]
    assert stepper.step == 10  # where the new trace differs first
    assert state in answer["text"]


@pytest.mark.parametrize(
    ("step", "asking", "says"),
    [
        (22, {"action": "token_limit"}, "no answer is being written here"),
        (9, {"action": "disconnect", "ending": "nicely"}, "nicely"),
        (9, {"action": "undo"}, "nothing to undo"),
        (9, {"action": "redo"}, "nothing to redo"),
        (9, {"action": "reset"}, "nothing was injected"),
        (9, {"action": "cancel", "after": 23}, "this trace has steps 1 to 22"),
        (9, {"action": "cancel", "after": 0}, "this trace has steps 1 to 22"),
        (9, {"action": "__init__"}, "'__init__' is none of disconnect, cancel"),
        (9, {"action": ["save"]}, "['save'] is none of disconnect, cancel"),
        (9, {}, "None is none of disconnect, cancel"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else None,
)
def test_what_makes_no_sense_is_answered_and_changes_nothing(
    step: int, asking: dict[str, Any], says: str
) -> None:
    stepper = Stepper(SCRIPT)
    stepper.goto(step)
    before = stepper.trace
    answer = asked(stepper, asking.pop("action", None), **asking)
    assert not answer["ok"]
    assert says in answer["text"]
    assert (stepper.trace, stepper.step, stepper.script) == (before, step, SCRIPT)


def test_a_mistake_of_our_own_is_answered_in_one_line_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stepper = Stepper(SCRIPT)
    stepper.goto(9)
    before = stepper.trace, stepper.script
    monkeypatch.setattr(page, "slim", lambda trace: {}["no\nsuch key" * 200])
    answer = asked(stepper, "error")
    assert not answer["ok"] and not answer["undo"]
    assert answer["text"].startswith("this failed inside streamlab: KeyError: 'no")
    assert "\n" not in answer["text"] and len(answer["text"]) <= 301
    assert (stepper.trace, stepper.script) == before
    monkeypatch.undo()
    assert asked(stepper, "error")["ok"]


@pytest.mark.parametrize("key", ["action", "ending", "fault"])
def test_an_answer_does_not_repeat_all_of_a_huge_question(key: str) -> None:
    stepper = Stepper(SCRIPT)
    action = "inject" if key == "fault" else "disconnect"
    answer = asked(stepper, **{"action": action, key: "x" * 400_000})
    assert not answer["ok"] and len(answer["text"]) <= 301


def test_a_block_number_that_is_none_is_no_reason_to_fail() -> None:
    start = b'data: {"type":"message_start","message":{}}\n\n'
    block = b'data: {"type":"content_block_start","index":{},"content_block":{}}\n\n'
    stepper = Stepper(Recording.from_bytes(start + block))
    stepper.goto(2)
    assert asked(stepper, "token_limit")["ok"]


AT_THE_END = [
    (21, "disconnect", "disconnect(after=20, ending='eof')", WHOLE),
    (22, "disconnect", "disconnect(after=20, ending='eof')", WHOLE),
    (21, "cancel", "cancel(after=20)", "ABORTED"),
    (22, "cancel", "cancel()", "ABORTED"),
    (21, "error", "error(after=20, type='overloaded_error')", "INVALID"),
    (22, "error", "error(after=20, type='overloaded_error')", "INVALID"),
    (22, "unknown", "unknown(after=20)", WHOLE),
    (22, "redeliver", "redeliver(frame=20)", WHOLE),
    (21, "late", "late()", WHOLE),
    (22, "late", "late()", WHOLE),
]


@pytest.mark.parametrize(("step", "action", "code", "state"), AT_THE_END)
def test_behind_the_last_frame_a_fault_comes_after_it(
    step: int, action: str, code: str, state: str
) -> None:
    pressed, called = Stepper(SCRIPT), Stepper(SCRIPT)
    answer = asked(pressed, action, after=step)
    assert (answer["ok"], answer["code"]) == (True, f"trace(script.{code})")
    assert pressed.folded.attempt.state == state
    called.goto(step)
    getattr(called, action)()
    assert called.script == pressed.script


def test_at_a_control_in_the_middle_a_fault_comes_after_the_last_frame_that_came() -> None:
    stepper = Stepper(SCRIPT.redeliver(9))
    stepper.goto(10)
    assert stepper.folded.steps[9].kind == "redeliver"
    assert stepper.disconnect().script.code.endswith(".disconnect(after=9, ending='eof')")
    stepper.undo()
    assert stepper.cancel().script.code.endswith(".cancel(after=9)")
    stepper.undo()
    stepper.goto(10)
    assert stepper.late().script.code.endswith(".late(after=9)")


def test_where_no_frame_has_come_nothing_is_injected() -> None:
    answer = asked(Stepper(Recording()), "disconnect", after=1)
    assert (answer["ok"], answer["text"]) == (
        False,
        "no frame has come by step 1: nothing can be injected here",
    )


def test_after_the_end_a_cancellation_and_a_late_callback_still_come() -> None:
    stepper = Stepper(SCRIPT)
    stepper.goto(22)
    assert stepper.cancel().attempt.state == "ABORTED"
    assert stepper.late().attempt.state == "ABORTED"
    assert stepper.folded.steps[-1].kind == "late"


def test_undo_redo_and_reset_move_between_whole_scripts() -> None:
    stepper = Stepper(SCRIPT)
    stepper.goto(9)
    stepper.unknown()
    stepper.goto(14)
    stepper.disconnect("reset")
    changed = stepper.script
    assert changed.code == "script.unknown(after=9).disconnect(after=14, ending='reset')"
    assert asked(stepper, "undo")["code"] == "stepper.undo()"
    assert (stepper.script.code, stepper.step) == ("script.unknown(after=9)", 14)
    stepper.undo()
    assert (stepper.script, stepper.step) == (SCRIPT, 9)
    assert [stepper.answer[name] for name in ("undo", "redo", "reset")] == [False, True, False]
    stepper.redo()
    stepper.redo()
    assert stepper.script == changed
    stepper.reset()
    assert stepper.script is SCRIPT
    stepper.undo()
    assert stepper.script == changed


def test_undo_leads_to_where_the_change_happened_and_says_what_is_taken_back() -> None:
    stepper = Stepper(SCRIPT)
    stepper.disconnect(after=10)  # from step 1, as a cell does it
    answer = asked(stepper, "undo", after=11)
    assert answer["text"] == (
        "undone: the disconnect after frame 10 is taken back;"
        " the attempt ends in VALIDATED_PROPOSAL again"
    )
    assert stepper.step == 10
    answer = asked(stepper, "redo", after=3)
    assert answer["text"] == (
        "done again: the disconnect after frame 10; the attempt ends in INCOMPLETE again"
    )
    assert stepper.step == 11
    stepper.reset()
    stepper.goto(5)
    assert asked(stepper, "undo")["text"].startswith("undone: the reset is taken back; ")


def test_undo_leads_to_where_the_learner_stood_wherever_the_change_was() -> None:
    for fault, first in (("html_page", 1), ("reset_at_end", 21)):
        stepper = Stepper(SCRIPT)
        asked(stepper, "inject", fault=fault, after=13)
        assert stepper.step == first
        asked(stepper, "undo", after=first)
        assert stepper.step == 13


def test_undo_leaves_the_view_where_nothing_was_changed() -> None:
    stepper = Stepper(SCRIPT)
    stepper.disconnect(after=10)
    asked(stepper, "undo", after=8)
    assert stepper.step == 8


def test_what_changes_nothing_costs_no_undo_and_says_so() -> None:
    stepper = Stepper(SCRIPT)
    stepper.unknown(after=9)
    stepper.goto(20)
    before = stepper.script
    answer = asked(stepper, "inject", fault="late", after=20)  # the last frame is the last
    assert answer["text"] == "nothing changed: the fault late leaves every step as it was"
    assert answer["code"].endswith(".inject(faults.late, frame=21))")
    assert (stepper.script, stepper.step, answer["ok"]) == (before, 20, True)
    asked(stepper, "undo")
    assert stepper.script is SCRIPT


def test_a_fault_of_the_reads_or_the_times_changes_something() -> None:
    for fault in ("split", "merge", "stall"):
        stepper = Stepper(SCRIPT)
        assert asked(stepper, "inject", fault=fault, after=9)["undo"], fault


def test_redo_leads_to_what_was_injected_each_time() -> None:
    stepper = Stepper(SCRIPT)
    stepper.unknown(after=9)
    stepper.disconnect(after=14)
    stepper.undo()
    stepper.undo()
    stepper.redo()
    assert stepper.step == 10
    stepper.redo()
    assert stepper.step == 15


@pytest.mark.parametrize(
    ("action", "change"),
    [
        ("redeliver", "the second delivery of frame 9"),
        ("late", "the late callback after frame 9"),
        ("unknown", "the unknown event after frame 9"),
    ],
)
def test_undo_says_where_nothing_depended_on_the_change(action: str, change: str) -> None:
    stepper = Stepper(SCRIPT)
    asked(stepper, action, after=9)
    said = f"undone: {change} is taken back; the attempt still ends in {WHOLE}"
    assert asked(stepper, "undo")["text"] == said


def test_a_new_change_forgets_what_was_undone() -> None:
    stepper = Stepper(SCRIPT)
    stepper.unknown()
    stepper.undo()
    stepper.error()
    with pytest.raises(UsageError, match="nothing to redo"):
        stepper.redo()


def test_an_answer_comes_in_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = Stepper(SCRIPT)
    sent: list[set[str]] = []
    monkeypatch.setattr(stepper, "send_state", lambda key=None: sent.append(set(key)))
    stepper.disconnect(after=9)
    assert sent == [{"trace", "at", "answer"}]


def test_two_requests_that_come_together_are_both_done() -> None:
    """As messages: the state of a busy kernel's page would hold the second alone."""
    stepper = Stepper(SCRIPT)
    for number, action in enumerate(("cancel", "undo", "redo")):
        stepper._handle_custom_msg({"request": {"id": f"m-{number}", "action": action}}, [])
    assert (stepper.answer["id"], stepper.answer["text"][:10]) == ("m-2", "done again")
    assert stepper.folded.attempt.state == "ABORTED"


def test_a_message_moves_the_view_and_sets_nothing_else() -> None:
    stepper = Stepper(SCRIPT)
    stepper._handle_custom_msg({"at": {"step": 9, "moves": 1}, "menu": [], "trace": ""}, [])
    assert stepper.step == 9
    assert stepper.menu and stepper.trace


@pytest.mark.parametrize(("wanted", "shown"), [(-3, 1), (0, 1), (14, 14), (23, 22), (10**9, 22)])
def test_the_step_stays_within_the_trace(wanted: int, shown: int) -> None:
    stepper = Stepper(SCRIPT)
    stepper.set_state({"at": {"step": wanted, "moves": 1}})
    assert stepper.step == shown
    if wanted != shown:
        with pytest.raises(UsageError, match="steps 1 to 22"):
            stepper.goto(wanted)


def test_an_answer_says_how_many_moves_of_the_page_python_had_heard_of() -> None:
    """A page that has made more passes over the step, and Python hears of them next."""
    stepper = Stepper(SCRIPT)
    place = {"at": {"step": 9, "moves": 4}}
    stepper._handle_custom_msg({**place, "request": {"id": "1", "action": "error", "after": 9}}, [])
    assert stepper.at == {"step": 10, "moves": 4}
    stepper._handle_custom_msg({"at": {"step": 7, "moves": 6}}, [])
    assert (stepper.step, stepper.at) == (7, {"step": 7, "moves": 6})
    stepper.goto(3)
    assert stepper.at == {"step": 3, "moves": 6}


def test_a_move_has_no_echo_that_could_undo_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = Stepper(SCRIPT)
    sent: list[Any] = []
    monkeypatch.setattr(stepper, "_send", lambda message, **_: sent.append(message))
    for moves in (1, 2):
        stepper._handle_custom_msg({"at": {"step": 5 + moves, "moves": moves}}, [])
    assert (stepper.step, sent) == (7, [])


@pytest.mark.parametrize(
    ("first", "keys"),
    [("redo", "undo redo"), ("undo", "redo redo redo"), ("redo", "undo redo undo redo")],
    ids=["undo, redo", "redo, and nothing more to redo", "back and forth"],
)
def test_keys_that_come_before_any_answer_leave_page_and_python_at_one_step(
    monkeypatch: pytest.MonkeyPatch, first: str, keys: str
) -> None:
    """The page stands all the while where it was, and takes what is sent to it in the end."""
    stepper = Stepper(SCRIPT)
    stepper.goto(9)
    stepper.disconnect()
    if first == "undo":
        stepper.undo()
    place = {"step": stepper.step, "moves": 0, "by": "page"}
    page_at = dict(place)
    monkeypatch.setattr(
        stepper, "_send", lambda message, **_: page_at.update(message["state"].get("at", {}))
    )
    for number, action in enumerate(keys.split()):
        request = {"id": str(number), "action": action}
        stepper._handle_custom_msg({"at": place, "request": request}, [])
    assert stepper.step == page_at["step"] == 10  # where the disconnect is


@pytest.mark.parametrize(
    "at", [{}, {"step": "x", "moves": 1}, {"step": True, "moves": 1}, {"step": 2}]
)
def test_what_is_no_place_leaves_the_view_where_it_is(at: dict[str, Any]) -> None:
    stepper = Stepper(SCRIPT)
    stepper.goto(9)
    stepper._handle_custom_msg({"at": at}, [])
    assert (stepper.step, stepper.at) == (9, {"step": 9, "moves": 0})


@pytest.mark.parametrize("step", ["x", 1.5, True, None])
def test_a_step_is_a_whole_number(step: Any) -> None:
    with pytest.raises(UsageError, match=r"step=.*: this is a whole number"):
        Stepper(SCRIPT).goto(step)


def test_a_recording_alone_is_enough_and_an_empty_one_has_one_step() -> None:
    assert Stepper(SCRIPT.recording).folded.attempt.state == WHOLE
    stepper = Stepper(Recording())
    assert len(stepper.folded.steps) == 1
    assert "step 1 of 1, INCOMPLETE" in repr(stepper)


# --- The menu -------------------------------------------------------------------------------------

MENU = {f"{item['action']} {item['fault']}".strip(): item for item in offered()}
BY_HAND = {"trace": trace, "script": SCRIPT, "faults": faults}
ALLOWED = {f"inject {name}": {*fault.outcomes, WHOLE} for name, fault in FAULTS.items()}
ALLOWED |= {"cancel": {"ABORTED"}, "cancel_only": {"ABORTED"}}
ALLOWED |= {"redeliver": {WHOLE}, "late": {WHOLE}}


def test_every_fault_is_in_the_menu_once_with_its_sentence() -> None:
    items = offered()
    assert {item["fault"] for item in items if item["fault"]} == set(FAULTS) - {"cancel"}
    assert len(MENU) == len(items)
    assert len({(item["kind"], item["label"]) for item in items}) == len(items)
    assert list(dict.fromkeys(item["kind"] for item in items)) == list(KINDS)
    assert all(item["says"].endswith(".") and item["action"] in ACTIONS for item in items)


@pytest.mark.parametrize("step", [1, 14, 22], ids=["first", "middle", "last"])
@pytest.mark.parametrize("name", MENU)
def test_each_item_of_the_menu_is_one_line_of_python_or_says_why_not(name: str, step: int) -> None:
    stepper, item = Stepper(SCRIPT), MENU[name]
    answer = asked(stepper, item["action"], fault=item["fault"], after=step)
    if not answer["ok"]:
        assert re.fullmatch(r"[a-z][^\n]{20,200}", answer["text"])
        assert (stepper.script, stepper.step) == (SCRIPT, step)
        return
    by_hand = eval(answer["code"], BY_HAND)
    if answer["text"].startswith("nothing changed"):
        assert (stepper.script, stepper.step, answer["undo"]) == (SCRIPT, step, False)
        assert [s.raw for s in by_hand.steps] == [s.raw for s in stepper.folded.steps]
        return
    assert by_hand == stepper.folded
    state = by_hand.attempt.state
    assert state in ALLOWED[name]
    assert str(state) in answer["text"]
    if item["fault"]:
        function = FAULTS[item["fault"]].function.__name__
        assert answer["code"].startswith(f"trace(script.inject(faults.{function}")
    undone = asked(stepper, "undo")
    assert undone["ok"] and "is taken back" in undone["text"]
    assert stepper.script is SCRIPT
    assert asked(stepper, "redo")["ok"] and stepper.folded == by_hand


def test_of_each_item_of_the_menu_there_is_a_step_at_which_it_works() -> None:
    for item in offered():
        answers = (
            asked(Stepper(SCRIPT), item["action"], fault=item["fault"], after=step)["ok"]
            for step in (14, 8, 9)
        )
        assert any(answers), item["label"]


NOT_THERE = {
    "skip": "this is about a next frame, and none comes after frame 20",
    "token_limit": "after=20: generation stops between message_start and message_delta",
    "index_gap": "no block starts after frame 20",
    "no_stop_reason": "no stop reason comes after frame 20",
    "never_end": "message_stop has come by frame 20",
}


@pytest.mark.parametrize("name", NOT_THERE)
def test_where_a_fault_cannot_be_the_view_says_what_is_missing(name: str) -> None:
    answer = asked(Stepper(SCRIPT), "inject", fault=name, after=22)
    assert not answer["ok"] and answer["text"].startswith(NOT_THERE[name])


@pytest.mark.parametrize("fault", ["nothing", "__init__", "", None, ["skip"], {}])
def test_a_fault_that_is_none_is_answered_with_those_that_are(fault: Any) -> None:
    answer = asked(Stepper(SCRIPT), "inject", fault=fault, after=9)
    assert not answer["ok"]
    assert "is none of split, merge, cut_inside" in answer["text"]


def test_faults_add_up_and_their_line_of_code_says_all_of_them() -> None:
    stepper = Stepper(scenarios.whole_proposal())
    stepper.inject("duplicate", after=13)
    stepper.cancel(after=16, hang_up=False)
    stepper.inject("reset", after=18)
    code = stepper.answer["code"]
    assert code == (
        "trace(scenarios.whole_proposal().inject(faults.duplicate, frame=13)"
        ".cancel(after=16, hang_up=False).inject(faults.disconnect, after=18, ending='reset'))"
    )
    by_hand = eval(code, {**BY_HAND, "scenarios": scenarios})
    assert [step.raw for step in by_hand.steps] == [step.raw for step in stepper.folded.steps]
    assert by_hand.attempt.state == stepper.folded.attempt.state == "ABORTED"


def test_the_menu_is_sent_once() -> None:
    stepper = Stepper(SCRIPT)
    assert stepper.get_state("menu") == {"menu": offered()}


def test_a_step_without_bytes_says_what_happened_instead() -> None:
    said = re.search(r"const NO_BYTES = \{(.*?)\n\};", page.module(), re.S)
    assert said
    kinds = {line.split(":")[0].strip() for line in said[1].splitlines() if ":" in line}
    assert kinds >= {*CONTROLS, "effect", "end", "gates", "bound"}


def test_no_two_names_of_the_menu_are_alike() -> None:
    labels = [item["label"] for item in offered()]
    assert len(set(labels)) == len(labels)
    assert {"late frame", "late callback", "cut inside", "cut"} <= set(labels)
    says = {item["label"]: item["says"] for item in offered()}
    assert "end is clean" in says["cut inside"] and "As cut inside, but" in says["cut"]


# --- The machine and the trace that the view gets -------------------------------------------------


def test_the_machine_is_the_table() -> None:
    machine = page.machine()
    assert {s["name"] for s in machine["states"] if s["terminal"]} == {s.value for s in TERMINAL}
    edges = [(a.value, i.value, b.value) for a, row in TABLE.items() for i, b in row.items()]
    assert [tuple(edge) for edge in machine["edges"]] == edges


def test_only_what_was_cut_off_is_a_ghost() -> None:
    stepper = Stepper(SCRIPT)

    def ghost(**_: Any) -> int:
        size = len(json.loads(stepper.trace)["ghost"])
        stepper.undo()
        return size

    assert ghost(made=stepper.disconnect(after=9)) == 13
    assert ghost(made=stepper.unknown(after=9)) == 0
    assert ghost(made=stepper.redeliver(9)) == 0
    assert ghost(made=stepper.token_limit(after=9)) == 13  # the last step is the gates' again, HELD


def test_two_halves_of_a_character_reach_the_browser_as_halves_that_it_can_join() -> None:
    text = page.to_text({"a": "\ud83d", "b": "\udc0b"})
    assert text.isascii()
    assert json.loads(text) == {"a": "\ud83d", "b": "\udc0b"}


# --- Standing still -------------------------------------------------------------------------------


def test_the_text_is_the_same_every_time_and_says_what_matters() -> None:
    first, second = Stepper(SCRIPT, "a call"), Stepper(SCRIPT, "a call")
    assert repr(first) == repr(second)
    first.disconnect(after=14)
    assert repr(first).splitlines()[0] == "Stepper: a call: step 15 of 15, INCOMPLETE"
    assert repr(first).splitlines()[-1].strip() == "8 steps were cut off"
    assert "0x" not in repr(first)
    assert max(map(len, repr(first).splitlines())) < 125


def test_the_text_holds_nothing_that_a_terminal_acts_on() -> None:
    stepper = Stepper(SCRIPT, "\x1b[31mred\u202e\ud83d\n\x07")
    assert repr(stepper).startswith("Stepper: \ufffd[31mred\ufffd\ufffd \ufffd: step 1")


def test_a_notebook_gets_the_view_the_text_and_the_tables() -> None:
    stepper = Stepper(SCRIPT)
    data, _ = stepper._repr_mimebundle_()
    kinds = ["application/vnd.jupyter.widget-view+json", "text/html", "text/plain"]
    assert sorted(data) == kinds
    assert data["text/plain"] == repr(stepper)
    again, _ = Stepper(SCRIPT)._repr_mimebundle_()
    assert again["text/html"] == data["text/html"]


@pytest.mark.parametrize("kind", ["html", "page"])
def test_nothing_of_a_recording_can_become_markup(kind: str) -> None:
    written = {"html": still.html, "page": page.page}[kind](evil_trace())
    written.encode("utf-8")  # no half pair is left
    assert "<img" not in written
    assert "<script>alert" not in written
    assert written.count("</script>") == {"html": 0, "page": 4}[kind]
    blocks = re.findall(r'<script type="application/json" id="trace">(.*?)</script>', written, re.S)
    assert all("onerror=alert(1)" in block and "<" not in block for block in blocks)


def test_a_page_lets_only_its_own_module_and_style_run() -> None:
    written = page.page(evil_trace())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', written)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")

    def hashed(tag: str) -> str:
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", written, re.S)
        return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    assert f"style-src 'sha256-{hashed('style')}'; " in policy[1]
    assert "script-src 'sha256-" + hashed('script type="module"') + "'; " in policy[1]
    assert "unsafe" not in policy[1]


def test_a_page_names_no_address_and_is_small() -> None:
    written = page.page(trace(Recording()).to_json("empty"))
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[\w/.]*", written))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a vocabulary, never fetched
    assert not re.search(r"\b(src=|href|@import|import\(|fetch\(|url\()", written)
    assert len(written.encode()) < 100_000


def test_a_page_opens_where_the_verdict_is() -> None:
    whole = trace(SCRIPT).to_json("whole")
    assert 'id="step">22<' in page.page(whole)
    assert "whole: step 22 of 22, VALIDATED_PROPOSAL" in page.page(whole)
    assert 'id="step">1<' in page.page(whole, step=1)


def test_saving_writes_the_step_in_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = Stepper(SCRIPT, "A call, cut!")
    stepper.disconnect(after=9)
    stepper.save(tmp_path / "x.html")
    written = (tmp_path / "x.html").read_text("utf-8")
    assert 'id="step">10<' in written
    monkeypatch.chdir(tmp_path)
    assert asked(stepper, "save")["code"] == "stepper.save('a-call-cut.html')"
    assert asked(stepper, "save")["text"] == (
        "saved as a-call-cut-2.html; open it in a browser (in JupyterLab it needs Trust HTML)"
    )
    assert (tmp_path / "a-call-cut-2.html").read_text("utf-8") == written


def test_where_every_name_is_taken_nothing_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in ("", *(f"-{i}" for i in range(2, 1000))):
        (tmp_path / f"full{n}.html").touch()
    monkeypatch.chdir(tmp_path)
    answer = asked(Stepper(SCRIPT, "full"), "save")
    assert not answer["ok"] and "full.html and 998 more" in answer["text"]
    assert not (tmp_path / "full.html").read_bytes()


# --- The lookup, run by node ----------------------------------------------------------------------

NODE = """
import { indexTrace, viewAt, visible, cutsIn, clip } from "./steps.mjs";
let input = "";
for await (const piece of process.stdin) input += piece;
const { traces, texts } = JSON.parse(input);
const views = traces.map((trace) => {
  const index = indexTrace(trace);
  return index.steps.map((step, i) => {
    const { parts, history, said, verdicts } = viewAt(index, i + 1);
    const shown = parts.map(({ id, kind, text, status }) => [id, kind, text, status]);
    return { parts: shown, history, said, verdicts, cuts: cutsIn(step, index.chunks) };
  });
});
const indexes = traces.map(indexTrace);
const lanes = indexes.map(({ parts }) => parts.map(({ id, lane }) => [id, lane]));
const ghosts = indexes.map(({ ghostParts }) => ghostParts.map(({ from, to }) => [from, to]));
const marks = indexes.map(({ marks }) => marks.map(({ at, sign, what }) => [at, sign, what]));
const signs = texts.map((text) => visible(text).map(({ text, sign }) => sign ?? text));
const clipped = clip("abcdef\\u202e", 3, true);
console.log(JSON.stringify({ views, lanes, ghosts, marks, signs, clipped }));
"""


def looked_up(folder: Path, traces: list[dict[str, Any]], texts: list[str]) -> dict[str, Any]:
    """Let the view's own lookup answer, at every step of every trace."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here; the browser tests run the same module")
    shutil.copy(page.HERE / "steps.js", folder / "steps.mjs")
    (folder / "ask.mjs").write_text(NODE, "utf-8")
    done = subprocess.run(
        [node, "ask.mjs"],
        cwd=folder,
        input=page.to_text({"traces": traces, "texts": texts}).encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return dict(json.loads(done.stdout))


def test_the_views_lookup_agrees_with_python_at_every_step(tmp_path: Path) -> None:
    recordings = [synth.random_answer(seed)[1] for seed in range(40)]
    recordings += [faults.disconnect(synth.parallel_tools(), 12, "cut"), synth.thinking_then_tool()]
    traces = [trace(recording) for recording in recordings]
    whole = [each.to_json() for each in traces]
    found = looked_up(tmp_path, [page.slim(each) for each in whole], [])["views"]
    for folded, given, views in zip(traces, whole, found, strict=True):
        judged = 0
        for step, sent, view in zip(folded.steps, given["steps"], views, strict=True):
            shown = [(s.id, s.kind, s.text, s.status) for s in step.turn.segments]
            shown = [(i, k, t.encode("utf-8", "replace").decode(), s) for i, k, t, s in shown]
            assert [tuple(part) for part in view["parts"]] == shown
            assert (view["history"], view["said"]) == (sent["history"], sent["said"])
            judged = len(step.verdicts) or judged
            assert len(view["verdicts"]) == judged


def test_the_view_marks_where_a_read_began_inside_a_frame(tmp_path: Path) -> None:
    data = synth.greeting(style=synth.Style(ascii=False)).data.replace(b"Hello", "Héllo €".encode())
    recording = Recording(tuple(Chunk(i / 1e3, data[i : i + 37]) for i in range(0, len(data), 37)))
    stepper = Stepper(recording)
    given = json.loads(stepper.trace)
    (views,) = looked_up(tmp_path, [given], [])["views"]
    marked = 0
    for step, view in zip(given["steps"], views, strict=True):
        for position, chunk in view["cuts"]:
            marked += 1
            before = len(step["raw"][:position].encode())
            assert step["start"] + before == given["chunks"][chunk - 1]
    assert marked > 10


def test_chunks_without_times_are_no_reads_and_get_no_mark() -> None:
    data = synth.greeting().data
    pieces = tuple(Chunk(None, data[i : i + 37]) for i in range(0, len(data), 37))
    given = trace(Recording(pieces)).to_json()
    assert given["chunks"] == []
    assert {step["chunk"] for step in given["steps"]} == {None}


def test_characters_that_nobody_sees_get_a_sign(tmp_path: Path) -> None:
    texts = ["a\r\n\0b", "\ufeffdata", "x\u202ey", "né 你"]
    found = looked_up(tmp_path, [], texts)
    signs = [["a", "CR", "LF", "NUL", "b"], ["BOM", "data"], ["x", "U+202E", "y"], ["né 你"]]
    assert found["signs"] == signs
    assert found["clipped"] == {"text": "ef⟨U+202E⟩", "note": "7 characters; the last 3 are drawn"}


def test_interleaved_segments_get_lanes_and_hostile_names_are_only_names(tmp_path: Path) -> None:
    def step(*ops: list[Any]) -> dict[str, Any]:
        return {"ops": list(ops), "state": "PREVIEW"}

    hostile = {
        "steps": [
            step(["start", "__proto__", "text", None, None, False], ["constructor", "x"]),
            step(["start", "toString", "tool_call", "t", "c", False]),
            step(["append", "__proto__", "a"], ["append", "nobody", "b"]),
            step(["stop", "__proto__", "ready", None]),
            step(["start", "third", "text", None, None, False]),
        ],
        "ghost": [],
    }
    found = looked_up(tmp_path, [hostile], [])
    assert found["lanes"] == [[["__proto__", 0], ["toString", 1], ["third", 0]]]
    assert found["views"][0][2]["parts"][0] == ["__proto__", "text", "a", "streaming"]


def test_the_ghost_is_drawn_behind_the_last_real_step(tmp_path: Path) -> None:
    stepper = Stepper(SCRIPT)
    stepper.disconnect(after=14)  # 15 steps; the call would have gone on for 4 more
    (ghosts,) = looked_up(tmp_path, [json.loads(stepper.trace)], [])["ghosts"]
    assert ghosts == [[16, 19]]


def test_one_fault_has_one_sign_however_much_it_put_in(tmp_path: Path) -> None:
    flood, again = Stepper(SCRIPT), Stepper(SCRIPT)
    flood.inject("ping_flood", after=9)
    again.unknown(after=9)
    again.unknown(after=14)
    found = looked_up(tmp_path, [json.loads(each.trace) for each in (flood, again)], [])["marks"]
    assert found[0] == [[10, "bolt", "injected: ping and the 199 after it"]]
    bolts = [(at, what) for at, sign, what in found[1] if sign == "bolt"]
    assert bolts == [(10, "injected: future_event"), (15, "injected: future_event")]


def test_the_still_picture_says_of_which_step_its_segments_are() -> None:
    stepper = Stepper(SCRIPT)
    written = still.html(json.loads(stepper.trace), 3)
    assert "step 3 of 22, PREVIEW" in written
    end = written.index("At the end, after step 22:")
    assert written.index(">why<") < end < written.index(">segment<") < written.index("Ready for")
    cells = re.findall(r"<t[dh][^>]*>", written)
    assert set(cells) == {'<th style="text-align: left">', '<td style="text-align: left">'}
