"""What goes wrong without a guard: found by search, the shortest there is, in the real machine."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.consumer.attempt import (
    SAID,
    TABLE,
    TERMINAL,
    Attempt,
    Input,
    State,
    advance,
    observe,
)
from streamlab.consumer.commit import Record, RecordingAdapter, begin, perform, reconcile
from streamlab.consumer.delivery import Inbox
from streamlab.consumer.gates import EFFECT, Policy, Proposal, judge_turn, settle
from streamlab.consumer.turn import fold
from streamlab.errors import UsageError
from streamlab.study import world as model
from streamlab.study.guards import GUARDS, Finding, explore, facts, without
from streamlab.study.search import PROPERTIES, broken, replay, search
from streamlab.study.world import ACTIONS, ENVELOPES, RULES, START, Rules, World, possible, step

#: Guard -> what its absence breaks, in how many steps, and where the two ways part.
FOUND = {
    "a preview is never acted on": ("P1", 3, 2),
    "the end of the stream is not completion": ("P1", 7, 4),
    "a stopped block is not a finished message": ("P1", 7, 2),
    "an error ends the attempt": ("P3", 9, 2),
    "a broken grammar ends the attempt": ("P3", 9, 2),
    "an ambiguous fragment holds the attempt": ("P3", 9, 2),
    "a bound ends the attempt": ("P3", 9, 2),
    "a terminal state is terminal": ("P5", 2, 2),
    "the gates come before the commit": ("P2", 6, 5),
    "the gates wait for the end of the stream": ("P3", 8, 5),
    "the stop reason has an allow-list": ("P2", 8, 6),
    "a cancellation wins before the commit": ("P3", 9, 7),
    "authorisation is asked again at the commit": ("P10", 9, 9),
    "an unknown outcome is asked for, not submitted again": ("P4", 9, 9),
    "what is given up is closed": ("P11", 10, 9),
    "no answer is not success": ("P6", 8, 8),
    "nobody is told it is done before it is on record": ("P8", 7, 7),
    "a delivery is known by its identity": ("P7", 2, 2),
    "equal content is not a repetition": ("P7", 2, 2),
    "a good answer is let through": ("P9", 8, 6),
}
UNSAFE = [name for name in GUARDS if FOUND[name][0] != "P9"]
SHORT = [name for name in UNSAFE if FOUND[name][1] <= 3]


def off(name: str) -> Rules:
    return GUARDS[name].off(RULES)


def with_table(table: Mapping[State, Mapping[Input, State]]) -> Rules:
    return msgspec.structs.replace(RULES, table=table)


@cache
def space() -> dict[World, dict[str, World]]:
    """Every world that can be reached with all guards on, and what each action makes of it."""
    found: dict[World, dict[str, World]] = {}
    waiting = [START]
    for world in waiting:
        if world not in found:
            found[world] = {action: step(world, action) for action in possible(world)}
            waiting += found[world].values()
    return found


# --- With every guard -----------------------------------------------------------------------------


def test_with_every_guard_on_no_promise_is_broken_in_any_world() -> None:
    assert explore() is None
    found = search()
    assert (found.property, found.worlds) == ("", len(space()))
    assert found.worlds > 1500
    for before, ways in space().items():
        assert [broken(before, after) for after in ways.values() if broken(before, after)] == []


def test_the_search_sees_every_state_and_tries_every_edge_of_the_table() -> None:
    asked: set[tuple[State, Input]] = set()

    class Row(dict[Input, State]):
        def __init__(self, state: State) -> None:
            super().__init__(TABLE[state])
            self.state = state

        def get(self, given: Input, default: Any = None) -> Any:
            asked.add((self.state, given))
            return super().get(given, default)

    found = search(with_table({state: Row(state) for state in State}))
    assert found.property == ""
    assert {(state, given) for state, row in TABLE.items() for given in row} <= asked
    assert {(state, given) for state in TERMINAL for given in Input} <= asked
    assert {state for edge in found.edges for state in edge} == set(State)
    edges = {(state, to) for state, row in TABLE.items() for to in row.values()}
    assert {edge for edge in found.edges if edge[0] is not edge[1]} <= edges


def test_a_good_proposal_is_committed_in_eight_steps() -> None:
    path = search().path
    assert len(path) == 8
    assert [world.state for world in replay(path)][-3:] == [
        State.VALIDATED_PROPOSAL,
        State.COMMITTING,
        State.COMMITTED,
    ]


def test_every_action_can_happen() -> None:
    assert {action for ways in space().values() for action in ways} == set(ACTIONS)


def test_what_cannot_happen_changes_nothing() -> None:
    for world in list(space())[::50]:
        for action in ACTIONS.keys() - set(possible(world)):
            assert step(world, action) is world


# --- The model against the consumer's own functions -----------------------------------------------


class NeverArrives(RecordingAdapter):
    """Effects that a request does not reach."""

    def submit(self, key: str, proposals: tuple[Proposal, ...]) -> Record:
        self.submissions.append(key)
        raise TimeoutError("nothing answers")


def effects_of(world: World, action: str) -> RecordingAdapter:
    adapter = NeverArrives() if action == "request slow" else RecordingAdapter()
    adapter.submissions += ["attempt-1"] * world.submissions
    if world.record:
        adapter.records["attempt-1"] = Record("attempt-1", ())
    if world.closed:
        adapter.close("attempt-1")
    if action == "answer lost":
        adapter.lose_next()
    return adapter


def asked_gates(world: World) -> Attempt:
    """The attempt after the gates, as a consumer asks them: at the end of a stream, not before."""
    if not world.ended:
        return Attempt(world.state)
    turn = model._turn(world.came != (), world.call, world.reason, world.noted)
    turn = fold([model.MARKER], turn)
    policy = Policy(
        EFFECT.accept, None, model._rule, lambda _: "" if world.may else "no longer authorised"
    )
    return settle(Attempt(world.state), turn, judge_turn(turn, policy))


def arrives(effects: RecordingAdapter) -> bool:
    """Let a submission that was on its way arrive; whether its effect is on record then."""
    with suppress(OSError):  # whatever is answered, nobody listens any more
        RecordingAdapter.submit(effects, "attempt-1", ())
    return "attempt-1" in effects.records


def really(world: World, action: str) -> tuple[State, int, bool, bool]:
    """What the consumer's own functions make of an action: state, submissions, record, closed."""
    attempt, effects = Attempt(world.state), effects_of(world, action)
    calls = (Proposal("call", "change_label", {}),)
    if action in ("effect", "answer lost", "request slow"):
        after = perform(attempt, calls, effects, lambda _: "" if world.may else "no longer")
    elif action == "reconcile":
        after = reconcile(attempt, effects)
    elif action == "commit":
        after = begin(attempt)
    elif action == "cancel":
        after = advance(attempt, Input.CANCEL)
    elif action == "gates":
        after = asked_gates(world)
    elif action.startswith("late: "):
        after = advance(attempt, Input(action.removeprefix("late: ")))
    elif action == "request arrives":
        after = attempt
        arrives(effects)
        effects.submissions.pop()  # it is the one that was on its way
    else:
        name = {"bad stop": "stop", "truncated": "reason", "redelivery": "text"}.get(action, action)
        after = observe(attempt, model.EVENTS[name]) if name in model.EVENTS else attempt
    submissions, record = len(effects.submissions), bool(effects.records)
    return after.state, submissions, record, not arrives(effects)


def test_every_step_of_the_world_is_what_the_real_functions_do() -> None:
    for before, ways in space().items():
        for action, after in ways.items():
            seen = (after.state, after.submissions, after.record, after.closed)
            assert seen == really(before, action), f"{action} in {before}"


def test_text_is_counted_as_an_inbox_counts_it() -> None:
    for before, ways in space().items():
        for action in ways.keys() & {"text", "redelivery"}:
            inbox = Inbox(Attempt(before.state))
            inbox.turn = fold([model.SegmentStarted("0", "text", 1)])
            for name in before.kept:
                inbox._handled.add(name)
                inbox.turn = fold(ENVELOPES[name].events, inbox.turn)
            name = before.came[-1] if action == "redelivery" else model.NAMES[len(before.came)]
            inbox.handle(ENVELOPES[name])
            assert inbox.turn.text == "ha" * len(ways[action].kept), f"{action} in {before}"


def test_all_the_rules_are_the_real_ones() -> None:
    assert (RULES.table, RULES.said, RULES.accept) == (TABLE, SAID, EFFECT.accept)
    assert RULES.means["error"] is Input.ERROR
    assert RULES.means["end"] is Input.ENDED
    assert RULES.means["stop"] is Input.CONTENT


# --- Without one guard ----------------------------------------------------------------------------


def test_the_table_of_findings_names_every_guard() -> None:
    assert set(FOUND) == set(GUARDS)


@pytest.mark.parametrize("name", GUARDS)
def test_without_a_guard_a_promise_is_broken(name: str) -> None:
    found = without(name)
    assert (found.property, len(found.steps), found.parts) == FOUND[name]
    assert (found.guard, found.says) == (name, GUARDS[name].says)
    assert found.promise == PROPERTIES[found.property].says
    assert found.wrong == (found.parts if found.property == "P9" else len(found.steps))


def test_every_promise_is_protected_by_some_guard() -> None:
    assert {without(name).property for name in GUARDS} == set(PROPERTIES)


def levels(rules: Rules, most: int) -> Iterator[dict[World, int]]:
    """For each length, the worlds to which sequences of that length lead, and how many do.

    Written apart from `search`: worlds are not left out when they were seen before.
    """
    here = {START: 1}
    for _ in range(most):
        yield here
        following: dict[World, int] = {}
        for world, many in here.items():
            for action in possible(world):
                after = step(world, action, rules)
                following[after] = following.get(after, 0) + many
        here = following


def breaks(world: World, rules: Rules) -> list[str]:
    return [
        action
        for action in possible(world)
        if broken(world, step(world, action, rules)) is not None
    ]


@pytest.mark.parametrize("name", UNSAFE)
def test_no_shorter_sequence_goes_wrong(name: str) -> None:
    rules, length = off(name), len(without(name).steps)
    *shorter, last = levels(rules, length)
    assert [world for level in shorter for world in level if breaks(world, rules)] == []
    assert any(breaks(world, rules) for world in last)


def sequences(world: World, rules: Rules, length: int) -> Iterator[tuple[str, ...]]:
    if not length:
        yield ()
        return
    for action in possible(world):
        for rest in sequences(step(world, action, rules), rules, length - 1):
            yield (action, *rest)


def goes_wrong(path: tuple[str, ...], rules: Rules) -> bool:
    worlds = replay(path, rules)
    return any(broken(*pair) for pair in pairwise(worlds))


@pytest.mark.parametrize("name", SHORT)
def test_the_first_of_all_sequences_that_go_wrong_is_found(name: str) -> None:
    """One by one, without merging anything: in the order of `ACTIONS`, none comes before it."""
    rules, found = off(name), without(name).actions()
    for length in range(1, len(found)):
        assert not any(goes_wrong(path, rules) for path in sequences(START, rules, length))
    every = sequences(START, rules, len(found))
    assert next(path for path in every if goes_wrong(path, rules)) == found


@pytest.mark.parametrize("name", GUARDS)
def test_replaying_a_finding_gives_its_states(name: str) -> None:
    found = without(name)
    for steps, rules in ((found.steps, off(name)), (found.instead, RULES)):
        world = START
        for each in steps:
            after = step(world, each.action, rules)
            assert (each.before, each.after) == (world.state, after.state)
            assert each.knows == facts(after)
            assert each.told == rules.said[after.state]
            assert each.happened == (each.action in possible(world))
            world = after


@pytest.mark.parametrize("name", UNSAFE)
def test_the_same_actions_break_nothing_with_the_guard_on(name: str) -> None:
    assert goes_wrong(without(name).actions(), off(name))
    assert not goes_wrong(without(name).actions(), RULES)


def test_without_the_way_to_a_good_end_nothing_unsafe_happens_and_that_is_not_enough() -> None:
    found = search(off("a good answer is let through"))
    assert (found.path, found.property) == ((), "P9")
    assert {state for edge in found.edges for state in edge} == {
        State.PREVIEW,
        State.MESSAGE_COMPLETE,
        *(TERMINAL - {State.COMMITTED}),
    }


# --- Holes that nobody listed ---------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.sampled_from(sorted(TERMINAL)),
    st.sampled_from(Input),
    st.sampled_from(State),
)
def test_any_way_out_of_a_terminal_state_is_found(state: State, given: Input, to: State) -> None:
    found = search(with_table({**TABLE, state: {given: to}}))
    assert found.property == ("" if to is state else "P5")
    if found.property:
        assert replay(found.path)[-1].state is state


@pytest.mark.parametrize(
    "state, given, to, property",
    [
        (State.PREVIEW, Input.CONTENT, State.VALIDATED_PROPOSAL, "P1"),
        (State.PREVIEW, Input.ERROR, State.MESSAGE_COMPLETE, ""),  # the gates notice it too
        (State.PREVIEW, Input.ENDED, State.MESSAGE_COMPLETE, ""),  # and that the marker is missing
        (State.PREVIEW, Input.BOUND, State.MESSAGE_COMPLETE, "P3"),  # the rest may still arrive
        (State.MESSAGE_COMPLETE, Input.ENDED, State.VALIDATED_PROPOSAL, "P2"),
        (State.MESSAGE_COMPLETE, Input.GATES_FAILED, State.VALIDATED_PROPOSAL, "P2"),
        (State.MESSAGE_COMPLETE, Input.AMBIGUITY, State.MESSAGE_COMPLETE, "P3"),
        (State.VALIDATED_PROPOSAL, Input.COMMIT, State.COMMITTED, "P6"),
        (State.COMMITTING, Input.EFFECT_REFUSED, State.COMMITTED, "P6"),
        (State.RECONCILING, Input.EFFECT_REFUSED, State.COMMITTED, "P6"),
    ],
    ids=lambda value: str(value),
)
def test_another_edge_in_the_table_breaks_what_it_must(
    state: State, given: Input, to: State, property: str
) -> None:
    table = {**TABLE, state: {**TABLE[state], given: to}}
    assert search(with_table(table)).property == property


# --- What is printed ------------------------------------------------------------------------------


def test_a_finding_prints_as_a_small_numbered_table() -> None:
    assert repr(without("a terminal state is terminal")).splitlines() == [
        "Without: a terminal state is terminal",
        "     what happens                          without the guard  with it",
        "  1  the provider sends an error event     INVALID            INVALID",
        "✕ 2  a callback says, too late: completed  MESSAGE_COMPLETE   INVALID",
        "Step 2 breaks the promise that an attempt that is over never changes: here INVALID was",
        "final; now it is MESSAGE_COMPLETE.",
        "With the guard, step 2 ends in INVALID.",
    ]


def test_what_does_not_happen_is_said() -> None:
    shown = repr(without("the end of the stream is not completion"))
    assert (
        "✕ 7  the effect is submitted and answered  COMMITTED           (does not happen)" in shown
    )
    assert "step 7 does not happen; the attempt stays INCOMPLETE." in " ".join(shown.split())


@pytest.mark.parametrize("name", GUARDS)
def test_what_is_printed_fits_and_says_the_same_in_html(name: str) -> None:
    found = without(name)
    assert max(map(len, repr(found).splitlines())) <= 88
    page = html.unescape(found._repr_html_())
    for wanted in (name, found.verdict(), found.better(), *(s.says for s in found.steps)):
        assert wanted in page
        assert wanted in " ".join(repr(found).split()) or wanted.count('"')
    assert page.count("<tr>") == len(found.steps) + 1


def test_html_of_a_finding_is_escaped() -> None:
    found: Finding = msgspec.structs.replace(
        without("a terminal state is terminal"), guard="<img src=x>", why="<b>", promise="<i>"
    )
    page = found._repr_html_()
    assert "<img" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;" in page


def test_an_unknown_guard_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no guard 'x'; there are: a preview is never acted on;"):
        without("x")
