"""The menu offers every fault; what the recording's wire cannot have is there too, and says why."""

from __future__ import annotations

import pytest

from streamlab.errors import UsageError
from streamlab.streams import synth
from streamlab.streams.recording import Recording
from streamlab.streams.voices import VOICES
from streamlab.widgets import page
from streamlab.widgets.menu import offered
from streamlab.widgets.stepper import Stepper

each_wire = pytest.mark.parametrize("wire", synth.WRITERS)


@each_wire
def test_the_menu_is_the_same_on_every_wire_but_for_what_it_cannot_have(wire: str) -> None:
    items = offered(synth.greeting(wire=wire))
    assert {item["fault"]: item["cannot"] for item in items if item["cannot"]} == dict(
        VOICES[wire].cannot
    )
    assert [{**item, "cannot": ""} for item in items] == offered()


def test_a_recording_that_nobody_knows_is_offered_everything() -> None:
    assert offered(Recording()) == offered()
    assert not any(item["cannot"] for item in offered())


@each_wire
def test_the_stepper_shows_the_menu_of_its_recording(wire: str) -> None:
    source = synth.change_label(wire=wire)
    assert Stepper(source).menu == offered(source)


@each_wire
def test_what_the_menu_offers_works_at_some_step_or_says_why_not(wire: str) -> None:
    source = synth.parallel_tools(wire=wire)
    for item in offered(source):
        if item["action"] != "inject":
            continue
        said = set[str]()
        for step in (2, 4, 8):
            try:
                Stepper(source).inject(item["fault"], after=step)
                said.add("")
            except UsageError as why:
                said.add(str(why))
        if item["cannot"]:
            assert said == {item["cannot"]}
        elif "" not in said:
            assert item["fault"] == "delta_after_stop", said  # on Chat, nothing stops before 8


def test_the_view_disables_what_cannot_be_and_shows_its_reason() -> None:
    code = page.module()
    assert '"aria-disabled": item.cannot ? "true" : undefined' in code
    assert "if (pointing || item.cannot) look(i);" in code
    assert '.kind button[aria-disabled="true"]' in page.style()
