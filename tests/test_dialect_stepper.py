"""The Stepper with a choice of wire: another format, the same moment; and the link to a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamlab import synth
from streamlab.analysis.trace import trace
from streamlab.errors import UsageError
from streamlab.widgets import dialects, page
from streamlab.widgets.dialects import DialectStepper, moment, same_moment
from streamlab.widgets.pagelink import PageLink

WIRES = ("claude", "openai-chat", "openai-responses", "gemini")
HERE = Path(dialects.__file__).parent


def say(view: DialectStepper, **traits: Any) -> None:
    """What a page says in a message."""
    view._handle_custom_msg(traits, [])


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_only_grows_from_step_to_step(wire: str) -> None:
    come = [moment(step) for step in trace(synth.story(wire)).steps]
    assert come == sorted(come)
    assert come[0][1] == 0 and come[-1][1] == 3


@pytest.mark.parametrize("there", WIRES)
@pytest.mark.parametrize("here", WIRES)
def test_the_same_moment_is_the_first_step_with_as_much(here: str, there: str) -> None:
    other = trace(synth.story(there))
    for step in trace(synth.story(here)).steps:
        number = same_moment(other, step)
        assert moment(other.steps[number - 1]) >= moment(step)
        assert number == 1 or moment(other.steps[number - 2]) < moment(step)


def test_what_no_step_has_leads_to_the_last_one() -> None:
    short, long = trace(synth.six_events()), trace(synth.story())
    assert same_moment(short, long.steps[-1]) == len(short.steps)


def test_whoever_changes_the_wire_stays_at_the_moment_and_sees_the_same_on_the_screen() -> None:
    view = DialectStepper()
    view.goto(14)
    for wire in (*WIRES, "claude"):
        say(view, wire=wire)
        step = view.folded.steps[view.step - 1]
        assert (view.wire, view.script.recording.wire) == (wire, wire)
        assert step.turn.text == "I'll mark W-7 as ready for review."
        assert not step.turn.calls

    assert view.step == 14


def test_gemini_has_no_middle_of_a_call_so_the_view_goes_on_to_the_whole() -> None:
    view = DialectStepper()
    view.goto(22)
    (call,) = view.folded.steps[21].turn.calls
    assert call.status == "streaming" and call.text
    view.wire = "gemini"
    (call,) = view.folded.steps[view.step - 1].turn.calls
    assert "Ready for review" in call.text


def test_a_message_brings_the_step_before_the_wire() -> None:
    view = DialectStepper()
    say(view, wire="openai-chat", at={"step": 14, "moves": 1, "wire": "claude"})
    assert view.step == 9


def test_a_place_on_the_wire_that_was_left_is_the_same_moment_on_the_new_one() -> None:
    """Whoever picks a wire may go on in the old one until Python answers."""
    view = DialectStepper()
    say(view, wire="openai-chat", at={"step": 1, "moves": 1, "wire": "claude"})
    say(view, at={"step": 14, "moves": 14, "wire": "claude"})
    assert (view.wire, view.at) == ("openai-chat", {"step": 9, "moves": 14})
    say(view, at={"step": 14, "moves": 15, "wire": "openai-chat"})
    assert view.at == {"step": 14, "moves": 15}
    say(view, at={"step": 3, "moves": 16, "wire": "nonsense"})
    assert view.at == {"step": 3, "moves": 16}


@pytest.mark.parametrize("asked", ["nonsense", "", "gemini-interactions"])
def test_a_wire_that_is_not_offered_changes_nothing(asked: str) -> None:
    view = DialectStepper()
    say(view, wire=asked)
    assert (view.wire, view.script.recording.wire) == ("claude", "claude")


@pytest.mark.parametrize("asked", ["nonsense", "", "gemini-interactions"])
def test_a_cell_that_asks_for_a_wire_that_is_not_offered_is_told(asked: str) -> None:
    view = DialectStepper()
    with pytest.raises(UsageError, match="is none of claude, openai-chat"):
        view.wire = asked
    assert (view.wire, view.script.recording.wire) == ("claude", "claude")


def test_each_wire_keeps_what_was_injected_into_it() -> None:
    view = DialectStepper()
    view.disconnect(after=14)
    view.wire = "gemini"
    assert view.folded.attempt.state == "VALIDATED_PROPOSAL"
    assert not view.answer["undo"]
    view.wire = "claude"
    assert view.folded.attempt.state == "INCOMPLETE"
    assert view.answer["undo"]
    view.undo()
    assert view.folded.attempt.state == "VALIDATED_PROPOSAL"


def test_the_menu_of_faults_is_that_of_the_wire() -> None:
    view = DialectStepper()
    menus = {}
    for wire in WIRES:
        view.wire = wire
        menus[wire] = view.menu
    assert menus["claude"] != menus["gemini"]


def test_another_answer_and_fewer_wires_will_do() -> None:
    view = DialectStepper(lambda wire: synth.greeting(wire=wire), WIRES[1:3], "a greeting")
    assert (view.wires, view.wire) == (list(WIRES[1:3]), "openai-chat")
    with pytest.raises(UsageError, match="no wire format"):
        DialectStepper(wires=())


def test_what_stands_still_names_each_wire_and_where_it_ends() -> None:
    view = DialectStepper(title="<b>")
    rows = repr(view).splitlines()
    assert [row.split()[0] for row in rows[1:]] == list(WIRES)
    assert all(row.endswith("VALIDATED_PROPOSAL") for row in rows[1:])
    data, _ = view._repr_mimebundle_()
    assert "<b>&lt;b&gt;</b>" in data["text/html"]
    assert data["text/html"].count("<tr>") == 4


def test_the_module_is_the_steppers_with_one_other_ending() -> None:
    assert page.module().endswith(dialects.ENDS)
    assert dialects._module().count("export default") == 1
    assert dialects._module().endswith("export default { render: renderDialects };\n")
    assert "innerHTML" not in (HERE / "dialects.js").read_text("utf-8")


def test_its_saved_page_is_that_of_a_stepper(tmp_path: Path) -> None:
    view = DialectStepper()
    view.wire = "gemini"
    view.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "gemini-synthetic" in text and "renderDialects" not in text


@pytest.mark.parametrize("url", ["http://127.0.0.1:8765", "http://[::1]:1/", "http://localhost:9"])
def test_a_page_of_this_machine_is_linked_and_its_port_is_in_no_output(url: str) -> None:
    link = PageLink(url)
    data, _ = link._repr_mimebundle_()
    assert link.url == url
    assert url not in data["text/html"] + data["text/plain"] + repr(link)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "http://127.0.0.1.example:80",
        "https://example.org",
        "",
        "http://[::1]",
    ],
)
def test_no_other_address_is_linked(url: str) -> None:
    with pytest.raises(UsageError, match="no address of this machine"):
        PageLink(url)
