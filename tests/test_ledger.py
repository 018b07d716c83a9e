"""The ledger: what is recorded is one answer for everybody, and file trouble loses none of it."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.consumer.attempt import TABLE, TERMINAL, Attempt, Input, State, advance
from streamlab.consumer.commit import Proposals, Record, RecordingAdapter, Refusal
from streamlab.consumer.delivery import Envelope, Receipt
from streamlab.consumer.gates import Proposal
from streamlab.consumer.ledger import TOLD, Ledger
from streamlab.consumer.ledger_file import APPLICATION, VERSION
from streamlab.errors import UsageError
from streamlab.wire.events import MessageCompleted

SECRET = "a-label-nobody-else-may-read"
PROPOSALS = (Proposal("call-1", "change_label", {"item": "W-7", "label": SECRET}),)
READY = Attempt(State.VALIDATED_PROPOSAL, "every gate passed", "attempt-7")

if os.name == "posix":
    import resource


class Says:
    """Effects that always say the same."""

    def __init__(self, answer: Record | Refusal | Exception) -> None:
        self.answer, self.calls = answer, 0

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self, key: str) -> Record | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, Record) else None

    find = close


RECORD = Record(READY.id, PROPOSALS)
LOST = ConnectionResetError("the connection was lost")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def again(ledger: Ledger) -> Ledger:
    """What a process sees that opens the same file now."""
    return Ledger(ledger.path)


# --- The table ------------------------------------------------------------------------------------

#: State -> the inputs that lead there from the start, along the table.
WAYS: dict[State, tuple[Input, ...]] = {State.PREVIEW: ()}
for _ in State:
    for _state, _way in list(WAYS.items()):
        for _given, _next in TABLE[_state].items():
            WAYS.setdefault(_next, (*_way, _given))

OUTCOME = {
    Input.EFFECT_RECORDED: RECORD,
    Input.EFFECT_REFUSED: Refusal("it is not possible"),
    Input.EFFECT_UNKNOWN: LOST,
}


def give(ledger: Ledger, id: str, given: Input) -> Attempt:
    """One input, by the call that brings it; an effect's outcome comes from its own system."""
    if given in TOLD:
        effects = Says(OUTCOME[given])
        return ledger.reconcile(id, effects)
    return ledger.cancel(id) if given is Input.CANCEL else ledger.advance(id, given)


def test_every_state_is_reached() -> None:
    assert set(WAYS) == set(State)


@pytest.mark.parametrize("given", [g for g in Input if g not in TOLD], ids=str)
@pytest.mark.parametrize("state", [s for s in State if s is not State.COMMITTED], ids=str)
def test_every_row_of_the_table_holds_in_the_file(
    ledger: Ledger, state: State, given: Input
) -> None:
    before = Attempt(state, "it came here", "a")
    ledger.enter(before, PROPOSALS)
    after = give(ledger, "a", given)
    expected = advance(before, given)
    assert (after.state, after.by) == (expected.state, expected.by)
    with again(ledger) as other:
        assert other.status("a") == after
    moved = [(given, expected.state)] if expected.state is not state else []
    assert ledger.trace("a") == moved


@pytest.mark.parametrize("given", list(Input), ids=str)
def test_nothing_moves_what_is_committed(ledger: Ledger, given: Input) -> None:
    ledger.enter(READY, PROPOSALS)
    done = ledger.commit(READY.id, RecordingAdapter())
    trace = ledger.trace(READY.id)
    assert give(ledger, READY.id, given) == done
    assert done.state is State.COMMITTED
    assert ledger.trace(READY.id) == trace


@pytest.mark.parametrize("state", list(State), ids=str)
def test_every_state_is_reached_by_its_inputs_and_the_trace_says_which(
    ledger: Ledger, state: State
) -> None:
    ledger.enter(Attempt(id=READY.id), PROPOSALS)
    for step in WAYS[state]:
        give(ledger, READY.id, step)
    status = ledger.status(READY.id)
    assert status is not None and status.state is state
    # `reconcile` first writes down that the outcome is unknown: that is one more line.
    found = [step for step, _ in ledger.trace(READY.id) if step is not Input.EFFECT_UNKNOWN]
    assert found == [g for g in WAYS[state] if g is not Input.EFFECT_UNKNOWN]
    assert (ledger.record(READY.id) is not None) == (state is State.COMMITTED)


@pytest.mark.parametrize("outcome", OUTCOME, ids=str)
def test_a_commit_writes_the_outcome_of_its_effect(ledger: Ledger, outcome: Input) -> None:
    ledger.enter(READY, PROPOSALS)
    done = ledger.commit(READY.id, Says(OUTCOME[outcome]))
    expected = TABLE[State.COMMITTING][outcome]
    assert done.state is expected and done.by is outcome
    assert ledger.trace(READY.id) == [
        (Input.COMMIT, State.COMMITTING),
        (outcome, expected),
    ]
    assert ledger.record(READY.id) == (RECORD if expected is State.COMMITTED else None)
    assert ledger.unsettled() == ([READY.id] if expected is State.RECONCILING else [])
    with again(ledger) as other:
        assert other.status(READY.id) == done


@settings(max_examples=60)
@given(st.lists(st.sampled_from([g for g in Input if g not in TOLD]), max_size=12))
def test_any_inputs_lead_to_the_same_state_in_the_file_as_in_memory(inputs: list[Input]) -> None:
    attempt = Attempt()
    with Ledger(":memory:") as ledger:
        ledger.enter(attempt)
        for step in inputs:
            attempt = advance(attempt, step)
            assert ledger.advance(attempt.id, step) == attempt


@pytest.mark.parametrize("told", TOLD, ids=str)
def test_nobody_but_the_effects_own_system_says_what_became_of_it(
    ledger: Ledger, told: Input
) -> None:
    ledger.enter(READY, PROPOSALS)
    ledger.advance(READY.id, Input.COMMIT)
    with pytest.raises(UsageError, match="said by the effect's own system"):
        ledger.advance(READY.id, told)
    assert ledger.unsettled() == [READY.id]


def test_what_was_committed_elsewhere_cannot_be_entered(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="enter it before its commit"):
        ledger.enter(Attempt(State.COMMITTED, "it says", "a"), PROPOSALS)
    assert ledger.status("a") is None


# --- One answer for everybody ---------------------------------------------------------------------


def test_a_second_commit_gives_the_first_record_and_submits_nothing(ledger: Ledger) -> None:
    effects = RecordingAdapter()
    ledger.enter(READY, PROPOSALS)
    first = ledger.commit(READY.id, effects)
    with again(ledger) as other:
        assert other.commit(READY.id, effects) == ledger.commit(READY.id, effects) == first
        assert other.record(READY.id) == RECORD
    assert effects.submissions == [READY.id]


def test_an_unknown_outcome_is_asked_for_and_never_submitted_again(ledger: Ledger) -> None:
    effects = RecordingAdapter()
    effects.lose_next()
    ledger.enter(READY, PROPOSALS)
    assert ledger.commit(READY.id, effects).state is State.RECONCILING
    assert ledger.commit(READY.id, effects).state is State.RECONCILING
    assert ledger.reconcile(READY.id, effects).state is State.COMMITTED
    assert ledger.record(READY.id) == RECORD
    assert effects.submissions == [READY.id]


def test_what_did_not_happen_is_closed_so_that_it_never_will(ledger: Ledger) -> None:
    effects = RecordingAdapter()
    ledger.enter(READY, PROPOSALS)
    ledger.advance(READY.id, Input.COMMIT)  # and here its process died
    assert ledger.recover(effects) == {READY.id: ledger.status(READY.id)}
    settled = ledger.status(READY.id)
    assert settled is not None and settled.state is State.ABORTED
    assert isinstance(effects.submit(READY.id, PROPOSALS), Refusal)


def test_where_nobody_answers_it_stays_unsettled_and_is_asked_again(ledger: Ledger) -> None:
    ledger.enter(READY, PROPOSALS)
    ledger.commit(READY.id, Says(LOST))
    for _ in range(2):
        assert ledger.recover(Says(LOST))[READY.id].state is State.RECONCILING
    assert ledger.recover(Says(RECORD))[READY.id].state is State.COMMITTED
    assert ledger.recover(Says(LOST)) == {}


class Broken(RecordingAdapter):
    """Effects whose own trouble it is to be asked about one of the keys."""

    def close(self, key: str) -> Record | None:
        if key == "b":
            raise ValueError("trouble of its own")
        return super().close(key)


def begun(ledger: Ledger, *ids: str) -> None:
    """Attempts whose process died just after their commits had begun."""
    for id in ids:
        ledger.enter(Attempt(State.VALIDATED_PROPOSAL, "every gate passed", id), PROPOSALS)
        ledger.advance(id, Input.COMMIT)


def states(ledger: Ledger, ids: str) -> list[State]:
    return [attempt.state for attempt in map(ledger.status, ids) if attempt is not None]


def test_a_question_that_fails_leaves_its_attempt_in_doubt_and_settles_the_others(
    ledger: Ledger,
) -> None:
    begun(ledger, *"abc")
    assert ledger.recover(Broken())["b"].state is State.RECONCILING
    assert states(ledger, "abc") == [State.ABORTED, State.RECONCILING, State.ABORTED]


def test_an_attempt_that_cannot_be_settled_is_named_when_the_others_are(ledger: Ledger) -> None:
    begun(ledger, *"abcd")
    ledger._change("UPDATE attempts SET proposals = '[1]' WHERE id IN ('a', 'c')")
    with trouble(ledger.path, "not settled: 'a', 'c'; the file is damaged"):
        ledger.recover(RecordingAdapter())
    assert states(ledger, "bd") == [State.ABORTED, State.ABORTED]
    assert ledger.unsettled() == ["a", "c"]


def test_a_commit_that_recover_overtook_takes_its_answer(ledger: Ledger) -> None:
    """Somebody takes a slow commit for dead: the key is closed, and both say the same."""
    effects = RecordingAdapter()

    class Overtaken(RecordingAdapter):
        def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
            with again(ledger) as other:
                other.recover(effects)
            return effects.submit(key, proposals)

    ledger.enter(READY, PROPOSALS)
    slow = ledger.commit(READY.id, Overtaken())
    assert slow == ledger.status(READY.id)
    assert slow.state is State.ABORTED
    assert effects.records == {}


def test_cancel_after_the_commit_has_begun_comes_too_late(ledger: Ledger) -> None:
    answers = []

    class Cancelling(RecordingAdapter):
        def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
            with again(ledger) as other:
                answers.append(other.cancel(key).state)
            return super().submit(key, proposals)

    ledger.enter(READY, PROPOSALS)
    assert ledger.commit(READY.id, Cancelling()).state is State.COMMITTED
    assert answers == [State.COMMITTING]
    assert ledger.cancel(READY.id).state is State.COMMITTED


def test_commit_after_cancel_is_told_that_it_was_cancelled(ledger: Ledger) -> None:
    effects = RecordingAdapter()
    ledger.enter(READY, PROPOSALS)
    cancelled = ledger.cancel(READY.id)
    assert ledger.commit(READY.id, effects) == cancelled
    assert (cancelled.state, cancelled.by) == (State.ABORTED, Input.CANCEL)
    assert effects.submissions == []


def test_a_client_that_comes_back_is_told_what_is_recorded(ledger: Ledger) -> None:
    ledger.enter(READY, PROPOSALS)
    done = ledger.commit(READY.id, RecordingAdapter())
    with again(ledger) as other:
        assert other.status(READY.id) == other.enter(READY, PROPOSALS) == done
        assert other.status("somebody-else") is None
        assert other.record("somebody-else") is None
        assert other.trace("somebody-else") == []


CALLS: dict[str, Callable[[Ledger], object]] = {
    "advance": lambda ledger: ledger.advance("nobody", Input.COMPLETED),
    "cancel": lambda ledger: ledger.cancel("nobody"),
    "commit": lambda ledger: ledger.commit("nobody", RecordingAdapter()),
    "reconcile": lambda ledger: ledger.reconcile("nobody", RecordingAdapter()),
    "handle": lambda ledger: ledger.handle(Envelope("nobody", "d")),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_attempt_that_was_never_entered_is_a_usage_error(ledger: Ledger, call: str) -> None:
    with pytest.raises(UsageError, match=r"ledger\.db: there is no attempt 'nobody'"):
        CALLS[call](ledger)


OTHER = {
    "another label": (Proposal("call-1", "change_label", {"item": "W-7", "label": "x"}),),
    "nothing": (),
    "one more": PROPOSALS * 2,
}


@pytest.mark.parametrize("name", OTHER)
def test_an_id_is_one_attempts_and_cannot_be_used_for_other_proposals(
    ledger: Ledger, name: str
) -> None:
    ledger.enter(READY, PROPOSALS)
    with pytest.raises(UsageError, match="is there, with other proposals"):
        ledger.enter(READY, OTHER[name])
    ledger.commit(READY.id, RecordingAdapter())
    assert ledger.record(READY.id) == RECORD


@pytest.mark.parametrize(("one", "other"), [(True, 1), (1, 1.0), (0, False)], ids=str)
def test_what_python_takes_for_equal_is_still_another_proposal(
    ledger: Ledger, one: object, other: object
) -> None:
    ledger.enter(READY, (Proposal("c", "t", {"n": one}),))
    with pytest.raises(UsageError, match="is there, with other proposals"):
        ledger.enter(READY, (Proposal("c", "t", {"n": other}),))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=4))
def test_any_input_that_a_model_can_write_comes_back_as_it_was(input: dict[str, object]) -> None:
    proposals = (Proposal("c", "t", input),)
    turned = (Proposal("c", "t", dict(reversed(input.items()))),)  # the same JSON
    with Ledger(":memory:") as ledger:
        ledger.enter(READY, proposals)
        ledger.enter(READY, turned)
        ledger.commit(READY.id, RecordingAdapter())
        assert ledger.record(READY.id) == Record(READY.id, proposals)


def test_half_a_character_in_a_strangers_words_does_not_stop_the_ledger(ledger: Ledger) -> None:
    said = ledger.enter(Attempt(State.INVALID, "the provider reports \ud83d", "a"))
    assert said.why == "the provider reports ?"
    ledger.enter(Attempt(id="b"))
    assert ledger.advance("b", Input.ERROR, "it says \ud83d").why == "it says ?"
    with pytest.raises(UsageError, match="half a character"):
        ledger.status("\ud83d")


BAD_IDS = {
    "nothing": "",
    "too long": "x" * 201,
    "a NUL": "a\0b",
    "a line break": "a\nb",
    "an escape": "a\x1b[31m",
    "half a character": "\ud83d",
    "a number": 5,
    "None": None,
    "bytes": b"a",
}


@pytest.mark.parametrize("name", BAD_IDS)
def test_an_id_is_a_short_text_that_can_be_printed(ledger: Ledger, name: str) -> None:
    id: Any = BAD_IDS[name]
    with trouble(ledger.path, "an attempt's id is a text of 1 to 200 printable characters"):
        ledger.enter(Attempt(id=id), PROPOSALS)
    assert ledger._all("SELECT id FROM attempts") == []


@pytest.mark.parametrize("id", ["a", "x" * 200, "café 7", "../a/b", "取引"])
def test_any_other_text_is_an_id(ledger: Ledger, id: str) -> None:
    assert ledger.enter(Attempt(id=id), PROPOSALS) == ledger.status(id)


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def with_input(value: Any) -> tuple[Proposal, ...]:
    return (Proposal("c", "t", value),)


NO_TUPLE: dict[str, Any] = {
    "a list": list(PROPOSALS),
    "a generator": (proposal for proposal in PROPOSALS),
    "None": None,
    "a text": "abc",
    "a tuple of texts": ("abc",),
    "one proposal": PROPOSALS[0],
}

UNWRITABLE: dict[str, Any] = {
    "nested too deep": with_input(nested(100_000)),
    "half a character": with_input({"a": "\ud83d"}),
    "an object": with_input({"a": object()}),
    "a key that is a number": with_input({1: 2}),
    "a number that is none": with_input({"a": float("nan")}),
    "infinity": with_input({"a": float("inf")}),
    "bytes": with_input({"a": b"x"}),
    "a set": with_input({"a": {1}}),
    "no dict": with_input(5),
    "a call that is a number": (Proposal(5, "t", {}),),  # type: ignore[arg-type]
    "a number of too many digits": with_input({"a": 10**5000}),
}


@pytest.mark.parametrize("name", NO_TUPLE)
def test_what_is_no_tuple_of_proposals_is_not_entered(ledger: Ledger, name: str) -> None:
    with trouble(ledger.path, "proposals are a tuple of Proposal"):
        ledger.enter(READY, NO_TUPLE[name])
    assert ledger.status(READY.id) is None


@pytest.mark.parametrize("name", UNWRITABLE)
def test_what_would_not_come_back_as_it_was_is_not_entered(ledger: Ledger, name: str) -> None:
    with trouble(ledger.path, "the proposals of 'attempt-7' can't be written down as JSON"):
        ledger.enter(READY, UNWRITABLE[name])
    assert ledger.status(READY.id) is None


@pytest.mark.parametrize("given", ["commit", "effect recorded", "cancel", "", None, 5])
def test_a_plain_text_is_no_input(ledger: Ledger, given: Any) -> None:
    ledger.enter(READY, PROPOSALS)
    with trouble(ledger.path, f"{given!r} is no Input"):
        ledger.advance(READY.id, given)
    assert ledger.status(READY.id) == READY


# --- Authorisation --------------------------------------------------------------------------------


def test_authorisation_is_asked_inside_the_commit_and_a_no_is_final(ledger: Ledger) -> None:
    effects, asked = RecordingAdapter(), []

    def authorise(proposal: Proposal) -> str:
        other = sqlite3.connect(ledger.path, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):  # nobody else writes now
            other.execute("UPDATE attempts SET state = 'ABORTED'")
        other.close()
        asked.append(proposal)
        return "ada has lost the right"

    ledger.enter(READY, PROPOSALS)
    refused = ledger.commit(READY.id, effects, authorise)
    assert (refused.state, refused.by) == (State.ABORTED, Input.EFFECT_REFUSED)
    assert refused.why == "no longer authorised: ada has lost the right"
    assert ledger.commit(READY.id, effects, lambda _: "") == refused
    assert asked == list(PROPOSALS)
    assert effects.submissions == []


def test_every_proposal_is_authorised_and_one_no_stops_all(ledger: Ledger) -> None:
    both = (*PROPOSALS, Proposal("call-2", "change_label", {"item": "W-8", "label": "x"}))
    effects = RecordingAdapter()
    ledger.enter(READY, both)
    no = lambda call: "not yours" if call.input["item"] == "W-8" else ""  # noqa: E731
    assert ledger.commit(READY.id, effects, no).state is State.ABORTED
    assert effects.submissions == []


def test_who_may_is_not_asked_where_nothing_is_to_be_committed(ledger: Ledger) -> None:
    ledger.enter(READY, PROPOSALS)
    ledger.commit(READY.id, RecordingAdapter())
    ledger.commit(READY.id, RecordingAdapter(), lambda _: pytest.fail("it was asked"))


@pytest.mark.parametrize("error", [RuntimeError, ValueError, sqlite3.OperationalError])
def test_an_authorisation_that_fails_leaves_the_attempt_as_it_was(
    ledger: Ledger, error: type[Exception]
) -> None:
    effects = RecordingAdapter()

    def broken(_: Proposal) -> str:
        raise error("its own trouble")

    ledger.enter(READY, PROPOSALS)
    with pytest.raises(error, match="its own trouble"):
        ledger.commit(READY.id, effects, broken)
    assert ledger.status(READY.id) == READY
    assert ledger.commit(READY.id, effects).state is State.COMMITTED


def test_an_authorisation_cannot_change_the_ledger_under_the_commit(ledger: Ledger) -> None:
    def meddling(_: Proposal) -> str:
        with pytest.raises(UsageError, match="while a commit is authorised"):
            ledger.cancel(READY.id)
        return ""

    ledger.enter(READY, PROPOSALS)
    assert ledger.commit(READY.id, RecordingAdapter(), meddling).state is State.COMMITTED


# --- Deliveries -----------------------------------------------------------------------------------


def test_a_delivery_counts_once_in_every_process(ledger: Ledger) -> None:
    ledger.enter(Attempt(id="a"))
    ledger.enter(Attempt(id="b"))
    first = Envelope("a", "d-1", (MessageCompleted(9),))
    assert ledger.handle(first) is Receipt.NEW
    assert ledger.handle(first) is Receipt.REPEATED
    with again(ledger) as other:
        assert other.handle(Envelope("a", "d-1")) is Receipt.REPEATED
        assert other.handle(Envelope("a", "d-2")) is Receipt.NEW
        assert other.handle(Envelope("b", "d-1")) is Receipt.NEW  # another one's name


@pytest.mark.parametrize("state", sorted(TERMINAL - {State.COMMITTED}), ids=str)
def test_a_delivery_to_an_attempt_that_is_over_is_late_and_moves_nothing(
    ledger: Ledger, state: State
) -> None:
    entered = ledger.enter(Attempt(state, "it is over", "a"))
    assert ledger.handle(Envelope("a", "d", (MessageCompleted(9),))) is Receipt.LATE
    assert ledger.status("a") == entered


# --- No payload -----------------------------------------------------------------------------------


def test_the_trace_holds_no_payload(ledger: Ledger) -> None:
    ledger.enter(READY, PROPOSALS)
    ledger.commit(READY.id, RecordingAdapter())
    assert SECRET not in repr(ledger.trace(READY.id)) + repr(ledger.status(READY.id))
    with sqlite3.connect(ledger.path) as db:
        for table in ("transitions", "deliveries"):
            assert SECRET not in repr(db.execute(f"SELECT * FROM {table}").fetchall())
    db.close()


# --- File trouble ---------------------------------------------------------------------------------


def trouble(path: Path, says: str) -> pytest.RaisesExc[UsageError]:
    """A clear error: it names the file, and says what is wrong with it."""
    return pytest.raises(UsageError, match=f"^{re.escape(str(path))}: .*{says}")


#: One row of it needs pages of its own.
BIG = (Proposal("call-1", "change_label", {"item": "W-7", "label": "x" * 10_000}),)


def full(ledger: Ledger) -> None:
    """From now on there is no page more: SQLite gives SQLITE_FULL, as on a full disk."""
    [(pages,)] = ledger._all("PRAGMA page_count")
    ledger._change(f"PRAGMA max_page_count = {pages}")
    with suppress(UsageError):
        for n in range(100):  # pages that were given back are used up too
            ledger.enter(Attempt(id=f"filler-{n}"), BIG)


def roomy(ledger: Ledger) -> None:
    ledger._change("PRAGMA max_page_count = 1000000")


def limited(ledger: Ledger) -> None:
    """From now on every write that makes a file longer fails in the operating system."""
    size = os.path.getsize(f"{ledger.path}-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def unlimited(_: Ledger) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def lock(ledger: Ledger) -> None:
    """Another process begins to write, and does not end."""
    code = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "db.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(ledger.path)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    LOCKING.append(process)


def unlock(_: Ledger) -> None:
    LOCKING.pop().communicate()


LOCKING: list[subprocess.Popen[str]] = []

#: What the error says -> how the trouble comes, and how it goes.
TROUBLE: dict[str, tuple[Callable[[Ledger], None], Callable[[Ledger], None]]] = {
    "the disk is full; nothing was written": (full, roomy),
    "the disk failed; nothing was written": (limited, unlimited),
    "another process has kept it locked for too long; nothing was written": (lock, unlock),
}


@pytest.fixture(params=TROUBLE)
def troubled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Troubled]:
    """A ledger that waits for nobody, what it says in trouble, and how that comes and goes."""
    says = request.param
    comes, goes = TROUBLE[says]
    if comes is limited and os.name != "posix":
        pytest.skip("this system has no limit on a file's length")
    with Ledger(tmp_path / "ledger.db", timeout=0.05) as ledger:
        yield ledger, says, lambda: comes(ledger), lambda: goes(ledger)


Troubled = tuple[Ledger, str, Callable[[], None], Callable[[], None]]


def test_trouble_before_the_effect_leaves_everything_as_it_was(troubled: Troubled) -> None:
    ledger, says, comes, goes = troubled
    effects = RecordingAdapter()
    ledger.enter(READY, BIG)
    comes()
    try:
        with trouble(ledger.path, says):
            ledger.enter(Attempt(State.VALIDATED_PROPOSAL, "ready", "another"), BIG)
        if "full" not in says:  # a full disk still holds what needs no page more
            for call in (ledger.cancel, lambda id: ledger.commit(id, effects)):
                with trouble(ledger.path, says):
                    call(READY.id)
            with trouble(ledger.path, says):
                ledger.handle(Envelope(READY.id, "d"))
    finally:
        goes()
    assert ledger.status("another") is None
    assert ledger.status(READY.id) == READY
    assert ledger.trace(READY.id) == []
    assert effects.submissions == []
    assert ledger.handle(Envelope(READY.id, "d")) is Receipt.NEW
    assert ledger.commit(READY.id, effects).state is State.COMMITTED


class Meanwhile(RecordingAdapter):
    """Effects that happen, and before their answer is back, something else."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__()
        self.happens = happens

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        answer = super().submit(key, proposals)
        self.happens()
        return answer


def test_trouble_after_the_effect_is_no_half_truth_and_is_settled_later(troubled: Troubled) -> None:
    """Its record can't be written. The row still says COMMITTING, and `recover` asks."""
    ledger, says, comes, goes = troubled
    effects = Meanwhile(comes)
    ledger.enter(READY, BIG)
    try:
        with trouble(ledger.path, f"{says}; the outcome of 'attempt-7' is not on record yet"):
            ledger.commit(READY.id, effects)
        assert ledger.unsettled() == [READY.id]
        assert ledger.record(READY.id) is None
        assert ledger.trace(READY.id) == [(Input.COMMIT, State.COMMITTING)]
    finally:
        goes()
    assert ledger.recover(effects)[READY.id].state is State.COMMITTED
    assert ledger.record(READY.id) == Record(READY.id, BIG)
    assert effects.submissions == [READY.id]


def test_a_file_that_is_locked_cannot_be_made_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    try:
        with trouble(path, "another process has kept it locked for too long"):
            Ledger(path, timeout=0.05)
    finally:
        db.close()
    Ledger(path).close()


def test_a_ledger_that_is_made_is_opened_and_asked_while_another_one_writes(
    ledger: Ledger,
) -> None:
    ledger.enter(READY, PROPOSALS)
    lock(ledger)
    try:
        with Ledger(ledger.path, timeout=0.05) as other:
            assert other.status(READY.id) == READY
    finally:
        unlock(ledger)


def test_a_lock_that_is_given_back_in_time_is_waited_for(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db", timeout=30) as ledger:
        ledger.enter(READY, PROPOSALS)
        lock(ledger)
        timer = threading.Timer(0.2, unlock, [ledger])
        timer.start()
        assert ledger.cancel(READY.id).state is State.ABORTED
        timer.join()


def child(code: str, *given: object) -> subprocess.Popen[str]:
    """Another process that runs this, and can import what we can."""
    pipe, home = subprocess.PIPE, Path(__file__).parents[1]
    command = [sys.executable, "-c", code, *map(str, given)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=home)


WAITS = """
import signal, sys
from streamlab.consumer.ledger import Ledger
signal.signal(signal.SIGINT, signal.default_int_handler)
ledger = Ledger(sys.argv[1], timeout=60)
print("open", flush=True)
sys.stdin.readline()
print("waits", flush=True)
try:
    ledger.cancel("attempt-7")
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
print(ledger.cancel("attempt-8").state, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="this system has other signals")
def test_who_is_interrupted_while_waiting_for_a_lock_keeps_none(tmp_path: Path) -> None:
    """The lock comes after the Ctrl-C: SQLite waits, and Python hears of it when that is over."""
    with Ledger(tmp_path / "ledger.db", timeout=5) as ledger:
        begun(ledger, "attempt-8")
        ledger.enter(READY, PROPOSALS)
        waiting = child(WAITS, ledger.path)
        assert waiting.stdin is not None and waiting.stdout is not None
        assert waiting.stdout.readline() == "open\n"
        lock(ledger)
        try:
            waiting.stdin.write("\n")
            waiting.stdin.flush()
            assert waiting.stdout.readline() == "waits\n"
            time.sleep(0.3)
            waiting.send_signal(signal.SIGINT)
            time.sleep(0.1)
        finally:
            unlock(ledger)
        assert waiting.stdout.readline() == "interrupted\n"
        assert ledger.status(READY.id) == READY
        assert ledger.cancel(READY.id).state is State.ABORTED  # while that process lives on
        said, _ = waiting.communicate("\n")
        assert (said, waiting.returncode) == ("COMMITTING\n", 0)


FORKS = """
import os, signal, sys, threading, time
from streamlab.consumer.commit import RecordingAdapter
from streamlab.consumer.ledger import Ledger
from streamlab.errors import UsageError
ledger, inside = Ledger(sys.argv[1]), threading.Event()

def slow(_):
    inside.set()
    time.sleep(0.5)
    return ""

thread = threading.Thread(target=ledger.commit, args=("attempt-7", RecordingAdapter(), slow))
thread.start()
inside.wait()
pid = os.fork()
if not pid:
    signal.alarm(10)  # whoever waits for that lock waits for ever
    said = []
    calls = (lambda: ledger.status("a"), lambda: ledger.cancel("a"), ledger.unsettled, ledger.close)
    for call in calls:
        try:
            call()
            said.append("nothing")
        except UsageError as why:
            said.append(str(why))
    print("\\n".join(said), flush=True)
    os._exit(0)
thread.join()
os.waitpid(pid, 0)
print(ledger.status("attempt-7").state)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_told_to_open_its_own(ledger: Ledger) -> None:
    """Even while a thread of its parent, which the child has not, holds the lock."""
    ledger.enter(READY, PROPOSALS)
    forks = child(FORKS, ledger.path)
    try:
        said, _ = forks.communicate(timeout=30)
    finally:
        forks.kill()
    *told, state = said.splitlines()
    assert state == State.COMMITTED
    what = "was opened by another process, and this is its fork: open it here"
    assert told == [f"{ledger.path}: the ledger {what}"] * 4


def replace(ledger: Ledger) -> None:
    shutil.copy(ledger.path, ledger.path.with_suffix(".copy"))
    os.replace(ledger.path.with_suffix(".copy"), ledger.path)


@pytest.mark.skipif(os.name != "posix", reason="this system keeps what is open")
@pytest.mark.parametrize("happens", [replace, lambda ledger: ledger.path.unlink()])
def test_a_file_that_was_replaced_is_not_written_any_more(
    ledger: Ledger, happens: Callable[[Ledger], None]
) -> None:
    effects = RecordingAdapter()
    ledger.enter(READY, PROPOSALS)
    happens(ledger)
    for call in (ledger.cancel, lambda id: ledger.commit(id, effects)):
        with trouble(ledger.path, "the file was replaced while it was open"):
            call(READY.id)
    assert effects.submissions == []


def test_a_path_that_is_relative_stays_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger("ledger.db") as ledger:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert ledger.enter(READY, PROPOSALS) == READY


def test_closing_waits_for_a_commit_that_another_thread_begins(tmp_path: Path) -> None:
    path, inside, done = tmp_path / "ledger.db", threading.Event(), []
    ledger = Ledger(path)
    ledger.enter(READY, PROPOSALS)

    def slow(_: Proposal) -> str:
        inside.set()
        time.sleep(0.3)
        return "not any more"

    commit = threading.Thread(target=lambda: done.append(ledger.commit(READY.id, None, slow)))  # type: ignore[arg-type]
    commit.start()
    inside.wait()
    ledger.close()
    commit.join()
    assert [attempt.state for attempt in done] == [State.ABORTED]
    with Ledger(path) as after:
        assert after.status(READY.id) == done[0]


def test_an_authorisation_cannot_close_the_ledger_under_the_commit(ledger: Ledger) -> None:
    def closing(_: Proposal) -> str:
        with trouble(ledger.path, "while a commit is authorised"):
            ledger.close()
        return ""

    ledger.enter(READY, PROPOSALS)
    assert ledger.commit(READY.id, RecordingAdapter(), closing).state is State.COMMITTED
    ledger.close()
    ledger.close()  # a second time is no mistake


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to write everywhere."""
    root = os.name == "posix" and os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("file", "folder", "says"),
    [
        (0o444, 0o777, "the file cannot be written; nothing was written"),
        (0o444, 0o555, "the file cannot be (opened|written)"),
        (0o000, 0o777, "the file cannot be opened"),
    ],
    ids=["a read-only file", "a read-only folder", "a file for others"],
)
@pytest.mark.skipif(os.name != "posix", reason="this system has other rights")
def test_a_file_that_may_not_be_written_is_left_as_it_is(file: int, folder: int, says: str) -> None:
    home = Path(tempfile.mkdtemp())  # where nobody may come, other than into pytest's folder
    path, effects = home / "ledger.db", RecordingAdapter()
    try:
        with Ledger(path) as ledger:
            ledger.enter(READY, PROPOSALS)
        before = path.read_bytes()
        path.chmod(file)
        home.chmod(folder)
        with as_nobody(), trouble(path, says), Ledger(path) as ledger:
            ledger.commit(READY.id, effects)
        home.chmod(0o700)
        path.chmod(0o600)
        assert path.read_bytes() == before
        assert effects.submissions == []
        with Ledger(path) as ledger:
            assert ledger.commit(READY.id, effects).state is State.COMMITTED
    finally:
        home.chmod(0o700)
        shutil.rmtree(home)


def test_a_read_only_connection_writes_nothing(ledger: Ledger) -> None:
    effects = RecordingAdapter()
    ledger.enter(READY, PROPOSALS)
    ledger._change("PRAGMA query_only = ON")
    with trouble(ledger.path, "the file cannot be written; nothing was written"):
        ledger.commit(READY.id, effects)
    assert ledger.status(READY.id) == READY
    assert effects.submissions == []


# --- A file that is none, or no longer ------------------------------------------------------------


def _newer(path: Path) -> None:
    Ledger(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE somebody_elses (x)")
    db.close()


def _same_version(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE attempts (x)")
        db.execute(f"PRAGMA user_version = {VERSION}")
    db.close()


def _marked(path: Path) -> None:
    """An application of its own that says so."""
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA application_id = 7")
    db.close()


def _tableless(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("CREATE TABLE attempts (x)")
    db.close()


def _headless(path: Path) -> None:
    Ledger(path).close()
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])


NO_LEDGER: dict[str, tuple[Callable[[Path], object], str]] = {
    "a newer schema": (_newer, f"its schema has version {VERSION + 1}; this streamlab knows"),
    "another application's database": (_foreign, "it is no ledger"),
    "another application's, of our version": (_same_version, "it is no ledger"),
    "another application's, still empty": (_marked, "it is no ledger"),
    "one without our tables": (_tableless, "the file is damaged"),
    "a text file": (lambda path: path.write_text("Dear diary, " * 99), "no SQLite database"),
    "an overwritten header": (_headless, "no SQLite database"),
}


@pytest.mark.parametrize("name", NO_LEDGER)
def test_a_file_that_is_no_ledger_of_ours_is_refused_and_not_touched(
    tmp_path: Path, name: str
) -> None:
    make, says = NO_LEDGER[name]
    path = tmp_path / "ledger.db"
    make(path)
    before = path.read_bytes()
    with trouble(path, says):
        Ledger(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]


@pytest.mark.parametrize("where", [".", "no/such/folder/ledger.db"])
def test_a_place_where_no_file_can_be_is_a_usage_error(tmp_path: Path, where: str) -> None:
    with trouble(tmp_path / where, "the file cannot be opened"):
        Ledger(tmp_path / where)


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.enter(READY, PROPOSALS) == READY


def test_a_closed_ledger_says_so(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.close()
    for call in (ledger.status, ledger.cancel):
        with trouble(ledger.path, "closed"):
            call("a")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a ledger that some attempts have gone through."""
    path = tmp_path_factory.mktemp("used") / "ledger.db"
    with Ledger(path) as ledger:
        for n in range(60):
            attempt = Attempt(State.VALIDATED_PROPOSAL, "every gate passed", f"a{n:02}")
            ledger.enter(attempt, PROPOSALS)
            ledger.handle(Envelope(attempt.id, "d-1"))
            if n % 3:
                ledger.commit(attempt.id, RecordingAdapter())
    return path.read_bytes()


def use(path: Path, effects: RecordingAdapter) -> None:
    """Everything that one does with a ledger."""
    with Ledger(path) as ledger:
        for n in (0, 1, 2, 30, 59):
            ledger.status(f"a{n:02}")
            ledger.record(f"a{n:02}")
            ledger.trace(f"a{n:02}")
        ledger.unsettled()
        ledger.enter(Attempt(id="new"), PROPOSALS)
        ledger.handle(Envelope("a03", "d-2"))
        ledger.cancel("a00")
        ledger.commit("a03", effects)
        ledger.recover(effects)


def damaged(path: Path, data: bytes) -> str:
    """What is said of a file of these bytes; "" where nobody notices anything."""
    path.write_bytes(data)
    effects = RecordingAdapter()
    try:
        use(path, effects)
    except UsageError as why:
        assert str(why).startswith(str(path))
        assert SECRET not in f"{why!r} {why.__cause__!r}"
        return str(why)
    finally:
        assert effects.submissions in ([], ["a03"])
        for more in ("-wal", "-shm"):
            Path(f"{path}{more}").unlink(missing_ok=True)
    return ""


def test_the_whole_file_is_not_damaged(tmp_path: Path, used: bytes) -> None:
    assert damaged(tmp_path / "ledger.db", used) == ""


FLIPS = {
    "a state": (b"VALIDATED_PROPOSALe", b"VALIDATED_PROPOSAKe"),
    "an input": (b"effect recorded", b"effect recordee"),
    "a proposal": (b'[{"call_id"', b'[{"call_ix"'),
    "no JSON": (b'[{"call_id"', b'[["call_id"'),
    "no text": (SECRET.encode(), b"\xff" + SECRET.encode()[1:]),
    "a table's name": (b"CREATE TABLE attempts", b"CREATE TABLE attemptz"),
    "a column's name": (b"proposals TEXT NOT", b"proposalz TEXT NOT"),
    "a column's name that is no text": (b"proposals TEXT NOT", b"proposal\xff TEXT NOT"),
    "the schema": (b"CREATE TABLE attempts", b"CREATE TABKE attempts"),
}


@pytest.mark.parametrize("name", FLIPS)
def test_a_changed_byte_in_what_is_read_is_damage_and_shows_no_payload(
    tmp_path: Path, used: bytes, name: str
) -> None:
    right, wrong = FLIPS[name]
    assert right in used
    path = tmp_path / "ledger.db"
    assert f"{path}: the file is damaged" in damaged(path, used.replace(right, wrong))


PAGE = 4096
FILLERS = [bytes(PAGE), b"\xff" * PAGE, random.Random(4).randbytes(PAGE)]


@pytest.mark.parametrize("filler", FILLERS, ids=["zeros", "ones", "noise"])
def test_an_overwritten_page_anywhere_is_a_usage_error_that_names_the_file(
    tmp_path: Path, used: bytes, filler: bytes
) -> None:
    path = tmp_path / "ledger.db"
    for at in range(0, len(used), PAGE):
        said = damaged(path, used[:at] + filler + used[at + PAGE :])
        assert "damaged" in said or (at == 0 and "no SQLite database" in said), at // PAGE


def test_a_flipped_bit_anywhere_is_nothing_or_a_usage_error(tmp_path: Path, used: bytes) -> None:
    chance, path = random.Random(7), tmp_path / "ledger.db"
    said = set()
    for _ in range(300):
        data = bytearray(used)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        said.add(damaged(path, bytes(data)))
    assert len(said) > 1  # some of them are noticed


def test_a_key_that_somebody_else_has_used_does_not_commit_our_attempt(ledger: Ledger) -> None:
    effects = RecordingAdapter()
    effects.submit(READY.id, OTHER["another label"])
    effects.lose_next()
    ledger.enter(READY, PROPOSALS)
    assert ledger.commit(READY.id, effects).state is State.RECONCILING
    assert ledger.reconcile(READY.id, effects).by is Input.EFFECT_REFUSED
    assert ledger.record(READY.id) is None


def test_what_an_envelope_states_moves_the_attempt_once_and_with_its_delivery(
    ledger: Ledger,
) -> None:
    ledger.enter(Attempt(id="a"))
    done = Envelope("a", "d-1", (MessageCompleted(9),))
    assert [ledger.handle(done) for _ in range(2)] == [Receipt.NEW, Receipt.REPEATED]
    assert ledger.trace("a") == [(Input.COMPLETED, State.MESSAGE_COMPLETE)]
    ledger.cancel("a")
    assert ledger.handle(Envelope("a", "d-2", (MessageCompleted(9),))) is Receipt.LATE
    assert [state for _, state in ledger.trace("a")] == [State.MESSAGE_COMPLETE, State.ABORTED]
