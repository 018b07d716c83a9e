"""Cancel against commit in every order, and the view of it: what is played, sent, and printed."""

from __future__ import annotations

import json
import re
from itertools import pairwise, product
from pathlib import Path

import pytest
import traitlets

from streamlab.consumer.attempt import SAID, TABLE, TERMINAL, Input, State
from streamlab.errors import UsageError
from streamlab.study.orders import AGAIN, GAPS, READY, TROUBLES, Order, every, play
from streamlab.widgets import race as module
from streamlab.widgets.race import TIE, Race, both, data

FOLDER = Path(module.__file__).parent
LIVE = "application/vnd.jupyter.widget-view+json"

each_order = pytest.mark.parametrize(
    "order", every(), ids=[f"{o.cancel}, {o.trouble}, {o.again}" for o in every()]
)


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


# --- The orders -----------------------------------------------------------------------------------


def test_every_order_is_there_once() -> None:
    given = [(order.cancel, order.trouble, order.again) for order in every()]
    assert given == list(product(GAPS, TROUBLES, AGAIN))


@each_order
def test_the_row_moves_along_the_table_and_comes_to_rest(order: Order) -> None:
    rows = [READY.state, *(moment.row for moment in order.moments)]
    for before, after in pairwise(rows):
        assert before is after or after in TABLE[before].values()
    assert rows[-1] is order.recorded.state
    assert order.recorded.state in TERMINAL


@each_order
def test_whoever_comes_first_wins_and_nobody_else(order: Order) -> None:
    first = order.cancel == GAPS[0]
    assert (order.winner == "cancel") == first
    assert (order.recorded.by is Input.CANCEL) == first
    assert (order.told("cancel") is State.ABORTED) >= first


@each_order
def test_an_effect_is_submitted_once_at_most_and_is_on_record_where_it_happened(
    order: Order,
) -> None:
    assert order.effects == order.submissions <= 1
    assert (order.recorded.state is State.COMMITTED) == (order.effects == 1)


@each_order
def test_each_is_told_what_the_row_said_at_that_moment(order: Order) -> None:
    told = [moment for moment in order.moments if moment.told]
    assert told
    assert all(moment.told is moment.row for moment in told)
    assert [m.who for m in order.moments].count("cancel") == 1
    assert [m.who for m in order.moments].count("again") == (order.again != "never")


@pytest.mark.parametrize(
    ("trouble", "states"),
    [
        (TROUBLES[0], "COMMITTING COMMITTED"),
        (TROUBLES[1], "COMMITTING ABORTED"),
        (TROUBLES[2], "COMMITTING COMMITTED"),
        (TROUBLES[3], "COMMITTING RECONCILING COMMITTED"),
    ],
)
def test_what_goes_wrong_is_what_goes_wrong(trouble: str, states: str) -> None:
    order = play(GAPS[4], trouble)
    rows = [READY.state, *(moment.row for moment in order.moments)]
    moved = [after for before, after in pairwise(rows) if after is not before]
    assert moved == states.split()
    assert any(m.who == "crash" for m in order.moments) == trouble.startswith("our process")
    assert any(m.who == "recover" for m in order.moments) == (trouble != TROUBLES[0])
    assert order.told("commit") == {
        TROUBLES[0]: State.COMMITTED,
        TROUBLES[3]: State.RECONCILING,
    }.get(trouble)


@each_order
def test_what_comes_in_a_gap_stands_between_its_neighbours(order: Order) -> None:
    """Where the cancellation comes first, the commit is one event, and there is one gap behind."""
    says = [moment.says for moment in order.moments]
    begun = [each for each in says if each.startswith("a commit")]
    assert len(begun) == 1
    place = says.index("a person cancels")
    assert (place > says.index(begun[0])) == (order.cancel != GAPS[0])
    if "the desk pays" in says:
        assert (place > says.index("the desk pays")) == (GAPS.index(order.cancel) > 1)
    recovered = [n for n, m in enumerate(order.moments) if m.who == "recover"]
    if recovered:
        assert (place > recovered[0]) == (order.cancel == GAPS[4])


def test_what_is_no_order_is_refused() -> None:
    with pytest.raises(UsageError, match="no 'later'; there are: before the commit; "):
        play("later")
    with pytest.raises(UsageError, match="no 'a flood'; there are: nothing; "):
        play(trouble="a flood")
    with pytest.raises(UsageError, match="no 'before the commit'; there are: never; "):
        play(again=GAPS[0])


def test_an_order_is_printed_with_who_won_and_what_came_of_it() -> None:
    lines = repr(play("before the effect", "our process dies before the effect")).splitlines()
    assert lines[0].split() == ["a", "commit", "begins", "COMMITTING"]
    assert lines[1].endswith("COMMITTING          told: COMMITTING")
    assert " ".join(lines[4:]) == (
        "The commit began first, so the cancellation came too late; then it failed, and W-7 is not "
        "paid. Everybody who asks later reads ABORTED."
    )
    assert max(map(len, lines)) <= 88


# --- The view -------------------------------------------------------------------------------------


def test_what_was_dragged_can_be_read_in_code() -> None:
    race = Race()
    assert (race.cancel, race.trouble, race.again) == (0, 0, 0)
    race.set_state({"cancel": 2, "trouble": 3, "again": 1})
    order = race.order
    assert (order.cancel, order.trouble, order.again) == (GAPS[2], TROUBLES[3], AGAIN[1])


def test_what_a_message_says_is_there_before_its_state_comes() -> None:
    race = Race()
    for name, place in {"cancel": 2, "trouble": 3, "again": 1}.items():
        race._handle_custom_msg({name: place}, [])
    assert (race.cancel, race.trouble, race.again) == (2, 3, 1)
    race._handle_custom_msg({"race": {}}, [])
    assert race.race == Race().race


def test_it_can_begin_with_any_order() -> None:
    race = Race("before the answer", "the answer gets lost", "after the answer")
    assert (race.cancel, race.trouble, race.again) == (2, 3, 3)
    assert repr(race.order) in repr(race)


@pytest.mark.parametrize(("name", "place"), [("cancel", 5), ("trouble", 4), ("again", -1)])
def test_a_place_that_there_is_not_is_refused(name: str, place: int) -> None:
    race = Race()
    with pytest.raises(traitlets.TraitError, match=f"{name} has no place {place}"):
        race.set_state({name: place})
    assert race.order.cancel == GAPS[0]


def test_all_orders_are_sent_as_they_were_played() -> None:
    sent = json.loads(json.dumps(Race().race))  # it is JSON
    said = sent["said"]
    assert len(sent["orders"]) == len(every())
    for told, order in zip(sent["orders"], every(), strict=True):
        moments = [
            (said[who], said[says], said[row], effects, None if told < 0 else said[told])
            for who, says, row, effects, told in told["moments"]
        ]
        assert moments == [(m.who, m.says, m.row, m.effects, m.told) for m in order.moments]
        words = [said[told[name]] for name in ("verdict", "winner", "recorded", "words")]
        recorded = order.recorded
        assert words == [order.verdict(), order.winner, recorded.state, recorded.said]
        assert (told["effects"], told["submissions"]) == (order.effects, order.submissions)


def test_it_is_small_enough_to_be_sent_at_once() -> None:
    assert len(json.dumps(data())) < 40_000


def test_both_orders_are_shown_whichever_is_chosen() -> None:
    for cancel in GAPS:
        first, other = both(play(cancel))
        assert {first.winner, other.winner} == {"cancel", "commit"}


def test_a_page_without_a_kernel_shows_both_orders_and_says_that_there_is_no_tie() -> None:
    bundle, _ = Race()._repr_mimebundle_()
    assert bundle.keys() == {"text/plain", "text/html", LIVE}
    for page in bundle["text/plain"], bundle["text/html"]:
        text = " ".join(page.split())
        assert TIE in text
        for order in both(play()):
            assert order.ending() in text
            assert all(moment.says in text for moment in order.moments)
    assert max(map(len, bundle["text/plain"].splitlines())) <= 88


def test_what_stands_still_is_the_same_every_time_whatever_was_dragged() -> None:
    first, second = Race(), Race()
    second.set_state({"cancel": 3})
    assert repr(first) == repr(second)
    assert "0x" not in repr(first)
    assert first._repr_mimebundle_()[0]["text/html"] == second._repr_mimebundle_()[0]["text/html"]


# --- The page -------------------------------------------------------------------------------------


def test_the_view_builds_no_markup_and_asks_no_network() -> None:
    script = read("race.js").replace("http://www.w3.org/2000/svg", "")  # a name, not a request
    for banned in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "fetch(", "http"):
        assert banned not in script
    assert len(script.splitlines()) <= 250


def test_the_view_asks_its_model_for_the_five_that_a_saved_page_has_and_may_do_without_send() -> (
    None
):
    used = set(re.findall(r"model\.(\w+)", read("race.js")))
    assert used == {"get", "set", "on", "off", "save_changes", "send"}
    assert not re.search(r"model\.send(?!\?\.)", read("race.js"))


def test_every_state_has_the_sign_and_the_tone_that_the_stepper_gives_it() -> None:
    def of(name: str, script: str) -> dict[str, str]:
        table = re.search(rf"const {name} = {{(.*?)^}};", script, re.DOTALL | re.MULTILINE)
        assert table
        pairs = re.findall(r'([A-Z_]{4,}): "([^"]+)"', table[1])
        return {key: value for key, value in pairs if key in State.__members__}

    shown = {moment.row.name for order in every() for moment in order.moments} | {READY.state.name}
    for name in ("ICONS", "TONES"):
        ours, theirs = of(name, read("race.js")), of(name, read("stepper.js"))
        assert ours.keys() == shown
        assert ours == {state: theirs[state] for state in ours}


def test_the_view_knows_the_words_of_the_events_that_it_places() -> None:
    says = {moment.says for order in every() for moment in order.moments}
    for text in ("the answer comes", "no answer comes"):
        assert text in says
        assert f'"{text}"' in read("race.js")


def test_every_colour_has_a_way_out_where_there_is_no_jupyter() -> None:
    style = read("race.css")
    assert not re.findall(r"var\(--jp-[\w-]+\)", style)
    assert "url(" not in style and "@import" not in style


def test_no_word_for_a_person_is_invented() -> None:
    said = {each.recorded.said for each in every()}
    assert said <= {*SAID.values(), "Stopped: no change was made"}
