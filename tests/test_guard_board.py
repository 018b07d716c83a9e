"""The board of guards: what is sent, what is picked, and what stands still without a kernel."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
import traitlets

from streamlab.consumer.attempt import SAID, State
from streamlab.errors import UsageError
from streamlab.study.guards import GUARDS, LEFT_OUT, facts, without
from streamlab.study.search import PROPERTIES, search
from streamlab.study.world import START
from streamlab.widgets import guards as module
from streamlab.widgets.guards import GuardBoard

FOLDER = Path(module.__file__).parent
NAME = "a terminal state is terminal"
LIVE = "application/vnd.jupyter.widget-view+json"


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


# --- What is picked -------------------------------------------------------------------------------


def test_at_first_every_guard_is_on() -> None:
    assert GuardBoard().picked == ""
    assert GuardBoard(NAME).picked == NAME


def test_what_the_page_picks_can_be_read_in_code() -> None:
    board = GuardBoard()
    board.set_state({"picked": NAME})
    assert without(board.picked).property == "P5"


def test_what_a_message_picks_is_there_before_its_state_comes() -> None:
    board = GuardBoard()
    board._handle_custom_msg({"picked": NAME, "board": {}}, [])
    assert (board.picked, board.board) == (NAME, GuardBoard().board)


def test_what_is_no_guard_is_refused() -> None:
    board = GuardBoard(NAME)
    with pytest.raises(traitlets.TraitError, match="there is no guard 'x'"):
        board.set_state({"picked": "x"})
    assert board.picked == NAME
    with pytest.raises(UsageError, match="no guard 'x'; there are: "):
        GuardBoard("x")


# --- What is sent ---------------------------------------------------------------------------------


def test_all_findings_are_sent_as_they_were_found() -> None:
    sent = json.loads(json.dumps(GuardBoard().board))  # it is JSON
    assert [guard["name"] for guard in sent["guards"]] == list(GUARDS)
    for guard in sent["guards"]:
        found = without(guard["name"])
        assert (guard["says"], guard["wrong"]) == (found.says, found.wrong)
        assert (guard["verdict"], guard["better"]) == (found.verdict(), found.better())
        for sent_steps, steps in ((guard["steps"], found.steps), (guard["instead"], found.instead)):
            for told, step in zip(sent_steps, steps, strict=True):
                shown = (told["says"], told["state"], told["happened"])
                assert shown == (step.says, step.after, step.happened)
                said = [sent["said"][number] for number in told["facts"]]
                assert said == [*step.knows, f"A person reads: {step.told}."]


def test_with_every_guard_on_the_way_to_a_good_end_is_sent() -> None:
    sent = GuardBoard().board
    assert sent["worlds"] == search().worlds
    assert sent["promises"] == [each.says for each in PROPERTIES.values()]
    assert sent["good"][-1]["state"] == "COMMITTED"
    last = [sent["said"][number] for number in sent["good"][-1]["facts"]]
    assert f"A person reads: {SAID[State.COMMITTED]}." in last
    first = [sent["said"][number] for number in sent["start"]]
    assert first == [*facts(START), f"A person reads: {SAID[State.PREVIEW]}."]


def test_how_much_was_tried_is_never_said_without_what_was_left_out() -> None:
    data, _ = GuardBoard()._repr_mimebundle_()
    for page in data["text/plain"], data["text/html"]:
        assert f"{search().worlds:,} moments" in page
        assert LEFT_OUT in " ".join(page.split())
    assert GuardBoard().board["left_out"] == LEFT_OUT


def test_it_is_small_enough_to_be_sent_at_once() -> None:
    assert len(json.dumps(GuardBoard().board)) < 60_000


# --- Standing still -------------------------------------------------------------------------------


def test_a_page_without_a_kernel_shows_where_it_goes_wrong_without_each_guard() -> None:
    data, _ = GuardBoard()._repr_mimebundle_()
    assert data.keys() == {"text/plain", "text/html", LIVE}
    for name in GUARDS:
        found = without(name)
        assert re.search(
            rf"^  {re.escape(name)} +at step {found.wrong}$", data["text/plain"], re.MULTILINE
        )
        cells = (name, f"at step {found.wrong}", found.promise)
        row = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        assert f"<tr>{row}</tr>" in data["text/html"]
    assert max(map(len, data["text/plain"].splitlines())) <= 88


def test_the_guard_that_was_asked_for_is_shown_step_by_step() -> None:
    data, _ = GuardBoard(NAME)._repr_mimebundle_()
    assert data["text/plain"].endswith(repr(without(NAME)))
    assert without(NAME)._repr_html_() in data["text/html"]


def test_what_stands_still_is_the_same_every_time_whatever_was_picked() -> None:
    first, second = GuardBoard(), GuardBoard()
    second.set_state({"picked": NAME})
    assert repr(first) == repr(second)
    assert "0x" not in repr(first)
    assert first._repr_mimebundle_()[0]["text/html"] == second._repr_mimebundle_()[0]["text/html"]


# --- The page -------------------------------------------------------------------------------------


def test_the_view_builds_no_markup_and_asks_no_network() -> None:
    script = read("guards.js").replace("http://www.w3.org/2000/svg", "")  # a name, not a request
    for banned in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "fetch(", "http"):
        assert banned not in script
    assert len(script.splitlines()) <= 200


def test_the_view_asks_its_model_for_the_five_that_a_saved_page_has_and_may_do_without_send() -> (
    None
):
    used = set(re.findall(r"model\.(\w+)", read("guards.js")))
    assert used == {"get", "set", "on", "off", "save_changes", "send"}
    assert not re.search(r"model\.send(?!\?\.)", read("guards.js"))


def test_every_state_has_the_sign_and_the_tone_that_the_stepper_gives_it() -> None:
    def of(name: str, script: str) -> dict[str, str]:
        table = re.search(rf"const {name} = {{(.*?)^}};", script, re.DOTALL | re.MULTILINE)
        assert table
        pairs = re.findall(r'([A-Z_]{4,}): "([^"]+)"', table[1])
        return {key: value for key, value in pairs if key in State.__members__}

    ours, theirs = read("guards.js"), read("stepper.js")
    assert of("ICONS", ours) == of("ICONS", theirs)
    assert of("TONES", ours) == of("TONES", theirs)
    assert of("ICONS", ours).keys() == State.__members__.keys()


def test_every_colour_has_a_way_out_where_there_is_no_jupyter() -> None:
    style = read("guards.css")
    assert not re.findall(r"var\(--jp-[\w-]+\)", style)
    assert "url(" not in style and "@import" not in style
