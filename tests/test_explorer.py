"""The explorer: every order of what can happen to an attempt, in the model and in a real ledger."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from greenlet import greenlet

from streamlab.consumer.attempt import INPUT_OF, SAID, TABLE, TERMINAL, Attempt, Input, State
from streamlab.consumer.commit import Proposals, Record, RecordingAdapter, Refusal
from streamlab.consumer.delivery import Envelope, Receipt
from streamlab.consumer.gates import Proposal
from streamlab.consumer.ledger import Ledger
from streamlab.errors import UsageError
from streamlab.study.explorer import DEPTH, MOST, NAMES, Reached, explore, facts, reach
from streamlab.study.ledger_actions import ACTIONS, PARTS, step
from streamlab.study.ledger_guards import (
    GUARDS,
    PROMISES,
    REACHED,
    broken,
    rules_without,
)
from streamlab.study.ledger_rules import RULES, START, UNCERTAIN, Moment, Rules
from streamlab.wire.events import MessageCompleted, ProviderError, StreamEnded

EVENTS = {
    "complete": MessageCompleted(6),
    "late": MessageCompleted(6),
    "error": ProviderError("overloaded_error", "Overloaded", 6),
    "end": StreamEnded("eof", 7),
}
GATES = {"pass": Input.GATES_PASSED, "hold": Input.GATES_HELD, "fail": Input.GATES_FAILED}
PROPOSALS: Proposals = (Proposal("call", "change_label", {"item": "W-7", "label": "Ready"}),)


@cache
def space() -> Reached:
    """Every moment that there is with all guards on."""
    return reach()


# --- The model against real ledgers on a file -----------------------------------------------------


class Crash(BaseException):
    """What ends a process between two transactions; nothing of ours catches it."""


class Process:
    """A process that uses the ledger: a connection of its own, and calls that can be held up.

    A call is a greenlet, which Playwright brings: whoever waits for the application stands still
    in the middle of the ledger's code. A thread could too, but takes thirty times as long to wake.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.ledger = path, Ledger(path, durable=False)
        self.phase = ""
        self._call = greenlet(lambda: None)

    def start(self, phase: str, call: Callable[[], object]) -> None:
        """Call the ledger; come back when it is over, or when it waits for the application."""
        self._call = greenlet(call)
        self._call.switch()
        self.phase = "" if self._call.dead else phase

    def application(self) -> Any:
        """Where the ledger's call stands still, until `go_on`."""
        waits = self._call.parent
        assert waits is not None
        return waits.switch()

    def go_on(self, answer: Any) -> None:
        """What the application answered: the call goes on to its end."""
        if isinstance(answer, BaseException):
            with suppress(Crash):
                self._call.throw(answer)
        else:
            self._call.switch(answer)
        assert self._call.dead
        self.phase = ""

    def die(self) -> None:
        """Lose all that is in memory, and open the file again."""
        if self.phase:
            self.go_on(Crash())
        self.ledger.close()
        self.ledger = Ledger(self.path, durable=False)


class Held:
    """Effects of a process that waits for the test's word before an answer comes."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        assert proposals == PROPOSALS
        answer: Record | Refusal = self.process.application()
        return answer

    def find(self, key: str) -> Record | None:
        raise NotImplementedError("nobody asks without closing")

    def close(self, key: str) -> Record | None:
        answer: Record | None = self.process.application()
        return answer


class Real:
    """One attempt in a real ledger, led along the model's actions."""

    def __init__(self, path: Path) -> None:
        self.processes = {name: Process(path) for name in "abrs"}
        self.desk = RecordingAdapter()
        self.ledger = Ledger(path, durable=False)  # the stream's and the people's
        self.begin("attempt-0")

    def begin(self, id: str) -> None:
        """Enter a new attempt, of which nothing has come, in place of the last one.

        Its rows go: `unsettled` reads every attempt, and thousands of them come here.
        """
        with self.ledger._transaction():
            for table in ("transitions", "deliveries", "effects", "attempts"):
                self.ledger._change(f"DELETE FROM {table}")
        self.id, self.may, self.connected, self.told = id, True, True, False
        self.came = self.counted = self.submissions = 0
        self.marker = self.ended = self.passed = False
        self.cancel_won = self.commit_won = self.allowed = False
        self.way = {"a": 0, "b": 0}
        self.answers: dict[str, Any] = {}
        self.final: State | None = None
        self.ledger.enter(Attempt(id=id), PROPOSALS)

    def do(self, action: str) -> None:
        """One action of the model."""
        what, _, name = action.partition(" ")
        if name:
            getattr(self, f"_{what}")(name.lower())
        else:
            getattr(self, f"_{what}")()
        status = self._status()
        if self.final is None and status.terminal:
            self.final = status.state
        self.told = self.told or (self.connected and status.said == SAID[State.COMMITTED])

    def moment(self) -> Moment:
        """What there is now, in the model's words; the file is asked for all that is in it."""
        return Moment(
            came=self.came,
            marker=self.marker,
            ended=self.ended,
            passed=self.passed,
            may=self.may,
            row=self._status().state,
            handled=tuple(name for name in PARTS if self._was_handled(name)),
            record=self.ledger.record(self.id) is not None,
            effects=int(self.id in self.desk.records),
            closed=self.id in self.desk._closed,
            **{name: process.phase for name, process in self.processes.items()},
            a_way=self.way["a"],
            b_way=self.way["b"],
            connected=self.connected,
            counted=self.counted,
            submissions=self.submissions,
            allowed=self.allowed,
            cancel_won=self.cancel_won,
            commit_won=self.commit_won,
            told=self.told,
            final=self.final,
        )

    def _status(self) -> Attempt:
        status = self.ledger.status(self.id)
        assert status is not None
        assert (status.state in UNCERTAIN) == (self.id in self.ledger.unsettled())
        return status

    def _was_handled(self, name: str) -> bool:
        sql = "SELECT 1 FROM deliveries WHERE attempt = ? AND delivery = ?"
        return self.ledger._one(sql, self.id, name) is not None

    # the stream

    def _handle(self, name: str) -> None:
        receipt = self.ledger.handle(Envelope(self.id, name))
        self.counted += receipt is Receipt.NEW
        if receipt is not Receipt.REPEATED:
            self.came += 1

    def _fragment(self) -> None:
        self._handle("fragment")

    def _rest(self) -> None:
        self._handle("rest")

    def _redeliver(self) -> None:
        self._handle(PARTS[self.came - 1])

    def _event(self, name: str) -> None:
        given, why = INPUT_OF[type(EVENTS[name])](EVENTS[name])
        assert given is not None
        self.ledger.advance(self.id, given, why)

    def _complete(self) -> None:
        self.marker = True
        self._event("complete")

    def _end(self) -> None:
        self.ended = True
        self._event("end")

    def _error(self) -> None:
        self._event("error")

    def _late(self) -> None:
        self._event("late")

    def _pass(self) -> None:
        self.passed = self.ledger.advance(self.id, GATES["pass"]).by is GATES["pass"]

    def _hold(self) -> None:
        self.ledger.advance(self.id, GATES["hold"])

    def _fail(self) -> None:
        self.ledger.advance(self.id, GATES["fail"])

    # the people

    def _cancel(self) -> None:
        self.cancel_won = self.ledger.cancel(self.id).by is Input.CANCEL

    def _revoke(self) -> None:
        self.may = False

    def _disconnect(self) -> None:
        self.connected = False

    def _reconnect(self) -> None:
        self.connected = True

    # the processes

    def _commit(self, name: str) -> None:
        mine = self.processes[name]

        def authorise(_: Proposal) -> str:
            return "" if self.may else "no longer"

        mine.start("begun", lambda: mine.ledger.commit(self.id, Held(mine), authorise))
        if mine.phase:
            self.commit_won, self.allowed = True, self.may

    def _submit(self, name: str) -> None:
        self.processes[name].phase = "waits"
        self.submissions += 1
        self.way[name] += 2

    def _arrive(self, name: str) -> None:
        self.way[name] -= 1
        answer = self.desk.submit(self.id, PROPOSALS)
        if self.processes[name].phase == "waits":
            self.answers[name] = answer
            found = isinstance(answer, Record)
            self.processes[name].phase = "recorded" if found else "refused"

    def _refuse(self, name: str) -> None:
        assert self.desk.close(self.id) is None  # what it refuses once, it refuses again
        self._arrive(name)

    def _lose(self, name: str) -> None:
        self.processes[name].phase = "unknown"
        self.answers[name] = ConnectionResetError("no answer came")

    def _settle(self, name: str) -> None:
        self.processes[name].go_on(self.answers.pop(name))

    def _crash(self, name: str) -> None:
        self.answers.pop(name, None)
        self.processes[name].die()

    def _recover(self, name: str) -> None:
        mine = self.processes[name]
        mine.start("asks", lambda: mine.ledger.reconcile(self.id, Held(mine)))
        assert mine.phase

    def _answer(self, name: str) -> None:
        self.answers[name] = record = self.desk.close(self.id)
        self.processes[name].phase = "none" if record is None else "found"

    def _recovered(self, name: str) -> None:
        self._settle(name)

    def everybody_dies(self) -> None:
        """The power fails: every process, all at once, then the file is opened again."""
        for process in self.processes.values():
            if process.phase:
                process.die()
        self.answers.clear()


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Real]:
    each = Real(tmp_path / "ledger.db")
    yield each
    for process in each.processes.values():
        process.die()
        process.ledger.close()
    each.ledger.close()


#: Second halves of what one transaction does: they happen only where the row is not compared.
SPLIT = {"write A", "write B", "cancel writes"}

Walk = list[tuple[str, Moment]]  #: each action, and the moment after it


def led(real: Real, number: int, walk: Walk, seen: set[tuple[Moment, str]]) -> None:
    """Lead a real attempt along a walk; after every step that is new the two are the same."""
    real.begin(f"attempt-{number}")
    before = START
    for n, (action, after) in enumerate(walk):
        real.do(action)
        if (before, action) not in seen:
            seen.add((before, action))
            assert real.moment() == after, f"after {[name for name, _ in walk[: n + 1]]}"
        before = after
    assert real.moment() == before


def random_walks(seed: int, number: int, length: int) -> Iterator[Walk]:
    """Ways to moments drawn by lot, and on from there, by what has been tried least."""
    draw, tried = random.Random(seed), Counter[tuple[int, int]]()
    for _ in range(number):
        path = space().path(draw.randrange(len(space().moments)))
        here, walk = 0, []
        for n in range(len(path) + length):
            ways = space().ways[here]
            action, after = min(ways, key=lambda way: (tried[here, way[0]], draw.random()))
            if n < len(path):
                action, after = next(way for way in ways if NAMES[way[0]] == path[n])
            tried[here, action] += 1
            walk.append((NAMES[action], space().moments[after]))
            here = after
        yield walk


def kind(moment: Moment) -> Hashable:
    """What decides: the row, how far everybody is, the application, the stream."""
    names = (*"abrs", "row", "effects", "closed", "ended", "marker")
    asked = moment.may and moment.row is State.VALIDATED_PROPOSAL  # nobody asks later
    return (asked, *(getattr(moment, name) for name in names))


def covering_walks(length: int, of: Callable[[Moment], Hashable]) -> Iterator[Walk]:
    """Ways through the model that together try every action in every kind of moment."""
    first: dict[Hashable, int] = {}
    for n, moment in enumerate(space().moments):
        first.setdefault(of(moment), n)
    ways = enumerate(space().ways)
    left = [dict(way) if first[of(space().moments[n])] == n else {} for n, way in ways]
    while any(left):
        here, walk = 0, []
        while len(walk) < length:
            way = nearest(here, left)
            if way is None:
                break
            for action, after in way:
                left[here].pop(action, None)
                walk.append((NAMES[action], space().moments[after]))
                here = after
        yield walk


def nearest(here: int, left: list[dict[int, int]]) -> list[tuple[int, int]] | None:
    """The shortest way from a moment to an action that was not tried there, and that action."""
    came: dict[int, tuple[int, int]] = {here: (here, 0)}  # from where, and by which action
    waiting = [here]
    for moment in waiting:
        if left[moment]:
            same = [action for action, after in left[moment].items() if after == moment]
            action = same[0] if same else next(iter(left[moment]))
            way = [(action, left[moment][action])]
            while moment != here:
                before, action = came[moment]
                way.append((action, moment))
                moment = before
            return way[::-1]
        for action, after in space().ways[moment]:
            if after not in came:
                came[after] = moment, action
                waiting.append(after)
    return None


def power_fails(real: Real) -> None:
    """Everybody dies at once, and a recovery runs: the outcome is known, and stays so."""
    real.everybody_dies()
    settled = real.ledger.recover(real.desk)
    assert set(settled) <= {real.id} and real.ledger.unsettled() == []
    state, done = real._status().state, real.id in real.desk.records
    for _ in range(sum(real.way.values())):  # what was on its way arrives after all
        real.desk.submit(real.id, PROPOSALS)
    assert (real.id in real.desk.records) == done
    assert done == (state is State.COMMITTED) == (real.ledger.record(real.id) is not None)


def test_the_model_and_real_ledgers_agree_along_random_ways(real: Real) -> None:
    seen: set[tuple[Moment, str]] = set()
    for number, walk in enumerate(random_walks(seed=4, number=400, length=20)):
        led(real, number, walk, seen)
        power_fails(real)
    assert len(seen) > 4000


def test_the_model_and_real_ledgers_agree_in_every_kind_of_moment(real: Real) -> None:
    seen: set[tuple[Moment, str]] = set()
    for number, walk in enumerate(covering_walks(60, kind)):
        led(real, number, walk, seen)
        power_fails(real)
    kinds = {kind(moment) for moment in space().moments}
    assert {kind(moment) for moment, _ in seen} == kinds and len(kinds) > 200
    assert {action for _, action in seen} == set(NAMES) - SPLIT


def unasked(self: Ledger, id: str, effects: Any, authorise: Any = None) -> Attempt:
    return COMMIT(self, id, effects)


def unrecorded(self: Ledger, attempt: Attempt) -> Attempt:
    given = {State.COMMITTED: Input.EFFECT_RECORDED, State.ABORTED: Input.EFFECT_REFUSED}
    with self._transaction():
        return self._advance(attempt.id, given.get(attempt.state, Input.EFFECT_UNKNOWN), "")[0]


def forgetful(self: Ledger, envelope: Envelope) -> Receipt:
    self._db.execute("DELETE FROM deliveries WHERE attempt = ?", (envelope.attempt,))
    return HANDLE(self, envelope)


def hopeless(self: Ledger, id: str, effects: Any) -> Attempt:
    effects.process.application()  # whatever it says
    with self._transaction():
        return self._advance(id, Input.EFFECT_REFUSED, "")[0]


def deaf(self: Ledger, id: str) -> Attempt:
    return self._recorded(id)


def blind(self: Ledger, id: str, given: Input, why: str) -> tuple[Attempt, bool]:
    before = self._recorded(id)
    state = {Input.COMPLETED: State.MESSAGE_COMPLETE}.get(given) or TABLE[before.state].get(given)
    self._db.execute("UPDATE attempts SET state = ? WHERE id = ?", (state or before.state, id))
    return Attempt(state or before.state, why, id, given), state is not None


COMMIT, HANDLE = Ledger.commit, Ledger.handle
SABOTAGED = {
    "authorisation is not asked": ("commit", unasked),
    "no record is written": ("_settle", unrecorded),
    "deliveries are forgotten": ("handle", forgetful),
    "an unknown outcome is given up": ("reconcile", hopeless),
    "a cancellation changes nothing": ("cancel", deaf),
    "a terminal row is written over": ("_advance", blind),
}


@pytest.mark.parametrize("name", SABOTAGED)
def test_a_ledger_that_breaks_a_rule_is_told_from_the_model(
    name: str, real: Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison can fail: along the same ways, each of these does."""
    method, bad = SABOTAGED[name]
    monkeypatch.setattr(Ledger, method, bad)
    with pytest.raises(AssertionError, match="after "):
        for number, walk in enumerate(covering_walks(60, kind)):
            led(real, number, walk, set())
            real.everybody_dies()


@pytest.mark.slow
def test_the_model_and_real_ledgers_agree_in_every_transition(real: Real) -> None:
    seen: set[tuple[Moment, str]] = set()
    for number, walk in enumerate(covering_walks(60, lambda moment: moment)):
        led(real, number, walk, seen)
        power_fails(real)
    assert len(seen) == sum(map(len, space().ways)) == COUNTS[DEPTH][1]


@pytest.mark.parametrize("name", GUARDS)
def test_a_real_ledger_goes_none_of_the_ways_that_go_wrong(name: str, real: Real) -> None:
    """What goes wrong without a guard, done to the ledger itself: it does what the guard says."""
    found, moment = explore(without=name).violation, START
    assert found is not None
    for step_ in found.instead:
        if step_.happened:
            real.do(step_.action)
            moment = step(moment, step_.action)
            assert real.moment() == moment
    assert real._status().state is found.instead[-1].after
    power_fails(real)


# --- Counts ---------------------------------------------------------------------------------------

#: States that no shorter way reaches, for 0, 1, 2 ... actions.
NEW = (1, 6, 17, 32, 45, 46, 32, 22, 40, 105, 228, 376, 466, 438, 318, 175, 65, 12)

#: Depth -> states, transitions and paths.
COUNTS = {
    1: (7, 8, 8),
    5: (147, 803, 38_041),
    9: (346, 1_909, 167_417_997),
    12: (1_416, 9_072, 90_428_629_262),
    18: (2_424, 24_043, 23_618_610_076_070_105),
}


@pytest.mark.parametrize(("depth", "counts"), COUNTS.items(), ids=str)
def test_the_counts_are_the_same_in_every_run(depth: int, counts: tuple[int, int, int]) -> None:
    found = explore(depth)
    assert (found.states, found.transitions, found.paths) == counts
    assert found.new == NEW[: depth + 1]
    assert found.violation is None


def test_longer_ways_lead_to_no_state_that_is_new() -> None:
    assert explore(DEPTH).whole and not explore(DEPTH - 1).whole
    assert explore(40).new == explore(DEPTH).new == NEW
    assert sum(NEW) == explore().states


def test_every_way_is_counted_once() -> None:
    """Against ways that are gone one by one, nothing merged."""

    def ways(moment: Moment, depth: int) -> int:
        after = [each.happens(moment, RULES) for each in ACTIONS.values()]
        on = [each for each in after if each is not None]
        return len(on) + (sum(ways(each, depth - 1) for each in on) if depth > 1 else 0)

    for depth in range(1, 6):
        assert explore(depth).paths == ways(START, depth)


def test_every_state_and_every_edge_of_the_table_that_a_ledger_can_see_is_seen() -> None:
    assert {moment.row for moment in space().moments} == set(State)
    edges = {
        (space().moments[n].row, space().moments[after].row)
        for n, ways in enumerate(space().ways)
        for _, after in ways
    }
    moves = {(a, b) for a, b in edges if a is not b}
    table = {(state, to) for state, row in TABLE.items() for to in row.values() if to is not state}
    #: seen apart: an ambiguous fragment and a bound hold an attempt; authorisation ends one at once
    assert table - moves == {(State.PREVIEW, State.HELD)}
    assert moves - table == {(State.VALIDATED_PROPOSAL, State.ABORTED)} - table


def test_every_action_happens_with_all_guards_or_where_one_is_off() -> None:
    happens = {NAMES[action] for ways in space().ways for action, _ in ways}
    assert set(NAMES) - happens == SPLIT
    assert explore().actions == len(happens)
    split = reach(12, rules_without("the row is compared and set"), ())
    assert {NAMES[action] for ways in split.ways for action, _ in ways} == set(NAMES)


# --- Promises -------------------------------------------------------------------------------------


def test_with_every_guard_no_promise_is_broken_and_each_was_put_to_the_test() -> None:
    found = explore()
    assert [broken(moment) for moment in space().moments if broken(moment)] == []
    assert [kept.name for kept in found.kept] == [each.name for each in (*PROMISES, REACHED)]
    assert {kept.holds for kept in found.kept} == {found.states}
    assert min(kept.tested for kept in found.kept) > 200


def test_from_every_uncertain_state_a_recovery_settles_though_everybody_dies() -> None:
    uncertain = [moment for moment in space().moments if moment.row in UNCERTAIN]
    assert len(uncertain) == 1384
    for moment in uncertain:
        after = moment
        for action in ("crash A", "crash B", "crash R", "crash S"):
            after = step(after, action)
        for action in ("recover R", "answer R", "recovered R"):
            after = step(after, action)
        assert after.row is (State.COMMITTED if moment.effects else State.ABORTED)
        while after.a_way + after.b_way:  # what is on its way arrives too late
            after = step(after, "arrive A" if after.a_way else "arrive B")
        assert after.effects == moment.effects and broken(after) is None


def test_who_comes_back_is_told_what_is_recorded() -> None:
    for moment in space().moments:
        if not moment.connected:
            back = step(moment, "reconnect")
            assert back.row is moment.row
            assert back.told == (moment.told or moment.row is State.COMMITTED)


def test_the_rules_are_the_real_ones() -> None:
    assert (RULES.table, RULES.said, RULES.unknown) == (TABLE, SAID, Input.EFFECT_UNKNOWN)


def test_no_moment_that_is_over_moves() -> None:
    for n, ways in enumerate(space().ways):
        before = space().moments[n]
        if before.row in TERMINAL:
            assert {space().moments[after].row for _, after in ways} == {before.row}


# --- Without a guard ------------------------------------------------------------------------------

#: Guard -> the promise that its absence breaks, in how many steps, and where the ways part.
FOUND = {
    "a preview is never committed": ("gated", 3, 1),
    "the gates come before the commit": ("gated", 6, 4),
    "a terminal row stays as it is": ("over is over", 2, 2),
    "the row is compared and set": ("over is over", 3, 1),
    "cancel and commit meet in one row": ("one winner", 7, 7),
    "authorisation is asked inside the commit": ("authorised", 9, 7),
    "COMMITTING is written before the effect is asked for": ("one winner", 7, 6),
    "only who began the commit submits": ("one submission", 9, 8),
    "a request carries a key": ("one effect", 9, 9),
    "a refusal holds for its key": ("ended without", 10, 8),
    "the outcome and its record are one transaction": ("on record", 9, 9),
    "no answer is not success": ("on record", 9, 9),
    "no answer is not a refusal": ("ended without", 10, 10),
    "an interrupted commit is an unknown outcome": ("settled", 8, 8),
    "an unknown outcome is asked for, not submitted again": ("one submission", 9, 9),
    "a key is closed when it is given up": ("ended without", 11, 9),
    "a key is open until it is given up": ("reachable", 9, 6),
    "a delivery is known by its identity": ("counted once", 2, 2),
    "handled deliveries are on file": ("counted once", 3, 2),
    "a person is told what is on record": ("told", 6, 6),
    "a screen that goes away cancels nothing": ("screens", 1, 1),
    "a screen that comes back asks, and starts nothing": ("one submission", 9, 9),
}
UNSAFE = [name for name in GUARDS if FOUND[name][0] != "reachable"]


@pytest.mark.parametrize("name", GUARDS)
def test_without_a_guard_a_promise_is_broken(name: str) -> None:
    found = explore(without=name).violation
    assert found is not None
    assert (found.property, len(found.steps), found.parts) == FOUND[name]
    assert (found.guard, found.says) == (name, GUARDS[name].says)
    assert found.wrong == (found.parts if found.property == "reachable" else len(found.steps))


def test_the_table_of_findings_names_every_guard_and_every_promise_has_one() -> None:
    assert list(FOUND) == list(GUARDS)
    assert {promise for promise, *_ in FOUND.values()} == {p.name for p in (*PROMISES, REACHED)}


def test_every_rule_has_a_guard_that_switches_it_off() -> None:
    switched = {field for guard in GUARDS.values() for field in guard.off}
    assert switched == set(Rules.__struct_fields__)


@pytest.mark.parametrize("name", UNSAFE)
def test_no_shorter_way_goes_wrong(name: str) -> None:
    """Searched apart: by sets of moments, without remembering how they were reached."""
    rules, length = rules_without(name), FOUND[name][1]
    here = {START}
    for n in range(1, length + 1):
        following = {
            after
            for moment in here
            for each in ACTIONS.values()
            if (after := each.happens(moment, rules)) is not None
        }
        assert any(broken(moment) for moment in following) == (n == length)
        here = following


@pytest.mark.parametrize("name", GUARDS)
def test_replaying_a_finding_gives_its_states(name: str) -> None:
    found = explore(without=name).violation
    assert found is not None
    for steps, rules in ((found.steps, rules_without(name)), (found.instead, RULES)):
        moment = START
        for each in steps:
            after = step(moment, each.action, rules)
            assert (each.before, each.after) == (moment.row, after.row)
            assert each.happened == (ACTIONS[each.action].happens(moment, rules) is not None)
            assert each.knows == facts(after)
            moment = after
    assert all(step_.happened for step_ in found.steps)


def test_without_a_guard_but_at_a_smaller_depth_nothing_is_found() -> None:
    found = explore(8, without="a request carries a key")
    assert (found.violation, found.whole) == (None, False)
    assert explore(9, without="a request carries a key").violation is not None


def test_one_promise_alone_can_be_asked_about() -> None:
    found = explore(without="the row is compared and set", promise="one winner")
    assert found.violation is not None
    assert found.violation.actions()[-4:] == ("commit A", "cancel", "write A", "cancel writes")
    assert "No shorter way breaks it" in repr(found)
    assert [kept.name for kept in found.kept] == ["one winner"]
    held = explore(without="a request carries a key", promise="one winner")
    assert held.violation is None


def test_the_payment_that_is_made_twice() -> None:
    found = explore(without="a request carries a key")
    lines = repr(found).splitlines()
    assert lines[0] == "Without: a request carries a key"
    assert lines[-5].split("  ")[0] == "✕ 9" and "COMMITTING, done twice" in lines[-5]
    assert lines[-1].startswith("No shorter way breaks a promise: 242 states, ")
    page = found._repr_html_() or ""
    cells = re.findall(r"<t[hd]\b[^>]*>", page)
    assert len(cells) > 20 and all("text-align: left" in cell for cell in cells)


def test_what_is_found_with_every_guard_is_said_in_words() -> None:
    text = repr(explore())
    assert text.splitlines()[1] == "  2,424 states, 24,043 transitions, about 2.36e16 paths"
    assert text.endswith("violations: 0")
    assert "an attempt has one effect at most\n  holds in 2,424 states; 842 of them" in text
    assert explore()._repr_html_() is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"without": "luck"}, r"no guard 'luck'; there are: a preview is never committed;"),
        ({"promise": "luck"}, r"no promise 'luck'; there are: gated, authorised,"),
        ({"depth": 0}, rf"depth of 0: .* 1 to {MOST}"),
        ({"depth": MOST + 1}, rf"depth of {MOST + 1}"),
        ({"depth": 2.5}, r"depth of 2.5"),
        ({"depth": True}, r"depth of True"),
    ],
    ids=str,
)
def test_bad_usage_says_what_there_is(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        explore(**given)


def test_whoever_watches_hears_of_every_level() -> None:
    heard: list[tuple[int, int]] = []
    explore(7, watch=lambda done, depth: heard.append((done, depth)))
    assert heard == [(n, 7) for n in range(7)]
