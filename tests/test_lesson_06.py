"""Lesson 06 tells the truth: the shop that pays, the process that dies, the races, the exercise."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from streamlab import RecordingAdapter, check, commit, faults, judge, policy_for
from streamlab.consumer.attempt import SAID, Attempt, Input, State, advance
from streamlab.consumer.commit import Proposals, Record, Refusal
from streamlab.consumer.ledger import Ledger
from streamlab.consumer.workitem import WorkItem
from streamlab.errors import UsageError
from streamlab.study import exercise_06, lesson_06, payment
from streamlab.study.exercise_06 import SITUATIONS, Situation, Story, watched
from streamlab.study.explorer import explore
from streamlab.study.payment import ANSWER, FIXES, MOMENTS, PROPOSALS, OnItsWay, Races, Shop
from streamlab.study.tasks import Question
from tests.refresh_notebooks import NOTEBOOKS

QUESTION_OF: dict[str, Question] = {asked.id: asked for asked in lesson_06.QUESTIONS}


@pytest.fixture
def shop() -> Iterator[Shop]:
    with payment.shop() as made:
        yield made


def right_text(id: str) -> str:
    asked = QUESTION_OF[id]
    return asked.options[asked.right].text


def printed(id: str) -> str:
    """What a cell of the lesson prints, in one line."""
    notebook = nbformat.read(NOTEBOOKS / "06-cancel-against-commit.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.id == id]
    return " ".join(" ".join(out.get("text", "") for out in cell.outputs).split())


# --- Paid twice -----------------------------------------------------------------------------------


def test_what_is_committed_is_what_the_gates_pass() -> None:
    outcome = judge(ANSWER, policy_for("ada"))
    assert outcome.state is State.VALIDATED_PROPOSAL
    assert outcome.proposals == PROPOSALS


def test_a_lost_answer_and_one_more_try_pay_twice(shop: Shop) -> None:
    assert shop.paid == "not paid"
    shop.lose_next()
    with pytest.raises(OSError):
        shop.request()
    assert shop.paid == "paid once"
    assert isinstance(shop.request(), Record)
    assert shop.paid == "paid twice"


@pytest.mark.parametrize(
    ("fix", "paid"), [*zip(FIXES, ["twice", "twice", "twice", "once"], strict=True)]
)
def test_of_the_repairs_only_the_key_prevents_the_second_payment(fix: str, paid: str) -> None:
    assert payment.tried(fix) == f"paid {paid}"
    assert f"{fix} paid {paid}" in printed("run-fix")


def test_the_repairs_are_the_options_in_their_order() -> None:
    options = [each.text.lower() for each in QUESTION_OF["06-fix"].options]
    words = ["wait a minute", "try once", "first", "the same"]
    for fix, option, word in zip(FIXES, options, words, strict=True):
        assert word in fix.replace("the same key", "the same")
        assert word in option
    assert QUESTION_OF["06-fix"].right == 3


# --- One row for everybody ------------------------------------------------------------------------


def test_a_proposal_waits_for_a_person_and_outlives_the_program_that_made_it(shop: Shop) -> None:
    shop.enter("attempt-1")
    shop.ledger.close()
    with shop.program() as later:
        row = later.status("attempt-1")
        assert row is not None
        assert (row.state, row.said) == (State.VALIDATED_PROPOSAL, "Proposal ready for review")
        assert (shop.paid, shop.asked) == ("not paid", [])
        assert later.commit("attempt-1", shop.effects).state is State.COMMITTED
    assert shop.paid == "paid once"


def test_a_second_commit_reads_the_record_and_submits_nothing(shop: Shop) -> None:
    shop.enter("attempt-1")
    first = shop.ledger.commit("attempt-1", shop.effects)
    assert shop.ledger.commit("attempt-1", shop.effects) == first
    assert shop.ledger.record("attempt-1") == Record("attempt-1", PROPOSALS)
    assert (shop.asked, shop.paid) == (["submit"], "paid once")


def test_the_trace_says_what_happened_and_holds_no_payload(shop: Shop) -> None:
    shop.enter("attempt-1")
    shop.ledger.commit("attempt-1", shop.effects)
    trace = shop.ledger.trace("attempt-1")
    assert trace == [
        (Input.COMMIT, State.COMMITTING),
        (Input.EFFECT_RECORDED, State.COMMITTED),
    ]
    assert not any(word in str(trace) for word in ("W-7", "Paid", "change_label"))
    assert not any(word in printed("ledger") for word in ("W-7", "Paid", "change_label"))
    with sqlite3.connect(shop.ledger.path) as db:
        rows = db.execute("SELECT * FROM transitions").fetchall()
    db.close()
    assert "W-7" not in str(rows)


# --- Cancel against commit ------------------------------------------------------------------------


def test_two_memories_both_win() -> None:
    effects = RecordingAdapter()
    start = judge(ANSWER, policy_for("ada")).attempt
    cancelled = advance(start, Input.CANCEL)
    committed = commit(start, PROPOSALS, effects)
    assert (cancelled.state, committed.state) == (State.ABORTED, State.COMMITTED)
    assert effects.submissions == ["attempt-1"]
    assert "Cancelled before commit" in printed("two-memories")
    assert "paid once" in printed("two-memories")


@pytest.mark.parametrize("first", ["cancel", "commit"])
def test_on_one_row_whoever_comes_first_wins_and_both_hear_the_same(shop: Shop, first: str) -> None:
    shop.enter("attempt-1")
    with shop.program() as adas, shop.program() as bos:
        acts = {
            "cancel": lambda: adas.cancel("attempt-1"),
            "commit": lambda: bos.commit("attempt-1", shop.effects),
        }
        second = next(name for name in acts if name != first)
        won, lost = acts[first](), acts[second]()
        assert won == lost == adas.status("attempt-1") == bos.status("attempt-1")
    wanted = {"cancel": (State.ABORTED, "not paid"), "commit": (State.COMMITTED, "paid once")}
    assert (won.state, shop.paid) == wanted[first]


def test_who_comes_too_late_is_told_at_once_and_reads_the_outcome_later(shop: Shop) -> None:
    """So in most races the two are told different things: only what they read is the same."""
    shop.enter("attempt-1")
    told: list[State] = []

    class Meanwhile:
        """Effects that take their time: a cancellation comes in the middle."""

        find, close = shop.effects.find, shop.effects.close

        def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
            with shop.program() as adas:
                told.append(adas.cancel(key).state)
            return shop.effects.submit(key, proposals)

    with shop.program() as bos:
        told.append(bos.commit("attempt-1", Meanwhile()).state)
        assert told == [State.COMMITTING, State.COMMITTED]
        assert shop.ledger.status("attempt-1") == bos.status("attempt-1")
    assert "afterwards both read the same in 100" in printed("run-race")


def test_races_of_two_threads_have_one_winner_each_and_a_payment_for_each_commit(
    shop: Shop,
) -> None:
    found = payment.races(shop, 40)
    assert (found.run, found.one_winner, found.read_the_same) == (40, 40, 40)
    assert found.payments == found.committed
    assert repr(found) == (
        "40 races: one winner in 40; afterwards both read the same in 40;\n"
        "  W-7 was paid once for each commit that won"
    )


def test_a_race_that_went_wrong_would_be_told() -> None:
    told = repr(Races(10, 9, 8, committed=5, payments=6))
    assert "one winner in 9; afterwards both read the same in 8" in told
    assert told.endswith("was paid otherwise")


# --- A crash in the middle ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "paid", "state"),
    [(MOMENTS[0], "not paid", State.ABORTED), (MOMENTS[1], "paid once", State.COMMITTED)],
)
def test_a_process_that_dies_in_its_commit_leaves_committing_and_is_settled_by_asking(
    shop: Shop, moment: str, paid: str, state: State
) -> None:
    shop.enter("attempt-1")
    payment.killed(shop, "attempt-1", moment)
    row = shop.ledger.status("attempt-1")
    assert row is not None
    assert (row.state, row.said) == (State.COMMITTING, "The change is being made")
    before = shop.asked
    recovered = shop.ledger.recover(shop.effects)
    assert recovered["attempt-1"].state is state
    assert shop.paid == paid
    assert shop.asked == [*before, "close"]
    assert shop.asked.count("submit") == (state is State.COMMITTED)


def test_a_process_that_does_not_die_where_it_should_is_told(shop: Shop) -> None:
    with pytest.raises(UsageError, match="no moment 'never'"):
        payment.killed(shop, "attempt-1", "never")
    with pytest.raises(UsageError, match=r"did not end where it should: (?s:.)*no attempt"):
        payment.killed(shop, "nobody", MOMENTS[0])


def test_while_the_desk_is_down_a_person_reads_that_it_is_being_reconciled(shop: Shop) -> None:
    shop.enter("attempt-1")
    shop.desk.misbehave("die_after")
    for act in (shop.ledger.commit, shop.ledger.reconcile):
        row = act("attempt-1", shop.effects)
        assert (row.state, row.said) == (State.RECONCILING, "Outcome being reconciled")
    shop.desk.restart()
    shop.ledger.recover(shop.effects)
    with shop.program() as later:  # whoever comes back asks for the status, and repeats nothing
        row = later.status("attempt-1") or Attempt()
    assert row.said == SAID[State.COMMITTED]
    assert (shop.paid, shop.asked) == ("paid once", ["submit", "close"])


# --- Still on its way -----------------------------------------------------------------------------


def test_no_record_says_nothing_about_a_request_that_is_on_its_way(shop: Shop) -> None:
    network = OnItsWay(shop.effects)
    with pytest.raises(OSError):
        network.submit("attempt-1", PROPOSALS)
    assert network.find("attempt-1") is None
    assert network.arrive() == ["done"]
    assert shop.paid == "paid once"
    assert network.arrive() == []


def test_under_a_closed_key_it_is_refused_when_it_arrives(shop: Shop) -> None:
    shop.enter("attempt-1")
    network = OnItsWay(shop.effects)
    assert shop.ledger.commit("attempt-1", network).state is State.RECONCILING
    row = shop.ledger.reconcile("attempt-1", network)
    assert (row.state, row.said) == (State.ABORTED, "Stopped: no change was made")
    assert network.arrive() == ["refused"]
    assert shop.paid == "not paid"
    assert "closed" in right_text("06-way")
    assert "asked with close: None, not paid then the request arrives: ['refused'], not paid" in (
        printed("run-way")
    )


# --- Who may, now? --------------------------------------------------------------------------------


def test_who_may_is_asked_inside_the_commit_and_a_refusal_asks_the_desk_nothing(
    shop: Shop,
) -> None:
    now = policy_for("ada", {"W-7": WorkItem("W-7", "Draft", "bo")})
    shop.enter("attempt-1")
    row = shop.ledger.commit("attempt-1", shop.effects, now.authorise)
    assert row.state is State.ABORTED
    assert row.why == "no longer authorised: W-7 belongs to bo, not to ada"
    assert (shop.asked, shop.paid) == ([], "not paid")
    assert row.why in printed("revoked")
    assert printed("revoked").endswith("the desk was asked to: nothing")


@pytest.mark.parametrize("after", range(1, 14))
def test_no_fragment_can_be_committed_whatever_it_looks_like(after: int) -> None:
    with Ledger(":memory:") as ledger:
        outcome = judge(faults.disconnect(ANSWER, after=after), policy_for("ada"))
        ledger.enter(outcome.attempt, PROPOSALS)  # even if somebody had taken it for whole
        effects = RecordingAdapter()
        assert ledger.commit("attempt-1", effects).state is State.INCOMPLETE
        assert effects.submissions == []


def test_the_fragment_of_the_lesson_does_parse() -> None:
    call = judge(faults.disconnect(ANSWER, after=12)).turn.calls[0]
    assert json.loads(call.text) == PROPOSALS[0].input
    assert printed("fragment").startswith("INCOMPLETE - Interrupted")
    assert printed("fragment").endswith("not paid")


# --- Every order ----------------------------------------------------------------------------------


def test_the_explorer_finds_nothing_and_without_a_closed_key_the_late_request() -> None:
    found = explore()
    assert found.violations == 0
    assert found.counts() in printed("explore")
    broken = explore(without="a key is closed when it is given up")
    assert broken.violations == 1


# --- The exercise ---------------------------------------------------------------------------------


class _Effects:
    """The exercise's desk, as the real ledger's `Effects`."""

    def __init__(self, case: Situation, ledger: Ledger) -> None:
        self.case, self.ledger, self.keys = case, ledger, list[str]()

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        self.keys.append(key)
        if self.case.meanwhile.startswith("submit"):
            self.ledger.reconcile(key, self)
        if not isinstance(self.case.answer, str):
            raise self.case.answer("no answer came")
        return Record(key, proposals) if self.case.answer == "done" else Refusal("no")

    def find(self, key: str) -> Record | None:
        return self.close(key)

    def close(self, key: str) -> Record | None:
        return Record(key, PROPOSALS)


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_real_ledger_ends_each_case_as_the_exercise_expects(name: str) -> None:
    case = SITUATIONS[name]
    with Ledger(":memory:") as ledger:
        committed = case.state is State.COMMITTED
        start = State.RECONCILING if committed else case.state
        ledger.enter(Attempt(start, "so it is", case.id), PROPOSALS)
        effects = _Effects(case, ledger)
        if committed:
            ledger.reconcile(case.id, effects)
        if case.meanwhile.startswith("set"):
            ledger.cancel(case.id)
        state = ledger.commit(case.id, effects).state
    events, _, returned = case.story.partition("; returned ")
    assert state == returned
    submitted = re.findall(r"submit (\S+?)(?:,|$)", events)
    assert effects.keys == submitted


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_story_tells_every_change_and_every_submission(name: str) -> None:
    assert watched(exercise_06.pay_once)(name) == SITUATIONS[name].story


def _submits_again(row: Any, desk: Any) -> Any:
    while True:
        try:
            return desk.submit(row.id)
        except OSError:
            continue


def _swallows(row: Any, desk: Any) -> Any:
    while True:
        try:
            return desk.submit(row.id)
        except:  # noqa: E722 (a learner's)
            pass


def _waits(row: Any, desk: Any) -> Any:
    while row.state != "PAID":
        pass


def _insists(row: Any, desk: Any) -> Any:
    while not row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        pass


def _insists_whatever_is_raised(row: Any, desk: Any) -> Any:
    while True:
        try:
            row.set("COMMITTING", "COMMITTED")
        except Exception:
            continue


def _leaves(row: Any, desk: Any) -> Any:
    sys.exit("bye")


@pytest.mark.parametrize(
    ("answer", "case", "told"),
    [
        (
            _submits_again,
            "ready, and the connection breaks",
            "submit attempt-1, submit attempt-1, submit attempt-1, ...; "
            "stopped: it submitted 9 times, and went on",
        ),
        (
            _swallows,
            "ready, and the connection breaks",
            "submit attempt-1, submit attempt-1, submit attempt-1, ...; "
            "stopped: it submitted 9 times, and went on",
        ),
        (
            _waits,
            "cancelled long ago",
            "nothing; stopped: it looked at the row 50 times, and went on",
        ),
        (
            _insists,
            "paid already; the commit is delivered again",
            "nothing; stopped: it set the row 50 times, and went on",
        ),
        (
            _insists_whatever_is_raised,
            "cancelled long ago",
            "nothing; stopped: it set the row 50 times, and went on",
        ),
        (_leaves, "half an answer", "nothing; stopped: it raised SystemExit"),
    ],
    ids=["submits again", "swallows", "waits", "insists", "insists whatever is raised", "leaves"],
)
def test_a_function_that_does_not_return_is_stopped_and_told(
    answer: Any, case: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watched(answer)(case) == told
    check("06-ex", watched(answer))  # and nothing of it escapes
    assert capsys.readouterr().out.startswith("06-ex: right in ")


@pytest.mark.parametrize(
    "given", [("PREVIEW", "DONE"), ("PREVEIW", "ABORTED")], ids=["after", "before"]
)
def test_a_state_that_there_is_not_is_refused_and_told(given: tuple[str, str]) -> None:
    story = Story()
    row = exercise_06.Row("attempt-1", "PREVIEW", "", story)
    assert row.set(*given) is False
    assert row.state == "PREVIEW"
    (wrong,) = {*given} - {*State.__members__}
    assert story.events == [f"`set` refused '{wrong}': no such state"]


def test_a_wrong_answer_is_told_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    def pay_once(row: Any, desk: Any) -> Any:
        desk.submit(row.id)
        return row.state

    check("06-ex", watched(pay_once))
    told = capsys.readouterr().out
    assert "came      'submit attempt-1; returned VALIDATED_PROPOSAL'" in told
    assert "COMMITTING stands in the row before anything is submitted" in " ".join(told.split())


# --- The lesson -----------------------------------------------------------------------------------


def test_what_the_lesson_shows_is_never_the_words_done_or_failed() -> None:
    for id in ("ledger", "run-crash", "desk-dies"):
        assert not re.search(r"\b(?:Done|failed)\b", printed(id))
    assert printed("desk-dies").count("Outcome being reconciled") == 2


def test_the_words_of_the_lesson_fit_in_its_minutes() -> None:
    notebook = nbformat.read(NOTEBOOKS / "06-cancel-against-commit.ipynb", as_version=4)
    prose = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert len(re.findall(r"\w[\w'-]*", prose)) <= 1_200


def test_nothing_of_a_shop_is_left_behind() -> None:
    with payment.shop() as made:
        folder: Path = made.folder
        assert (folder / "desk.db").is_file()
    assert not folder.exists()
    assert not made.desk.running
