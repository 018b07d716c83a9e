"""The commit: the separate, trusted transition from a proposal to an effect.

    VALIDATED_PROPOSAL ──commit──▶ COMMITTING ──its outcome──▶ COMMITTED or ABORTED
                                       └──no answer──▶ RECONCILING ──ask──▶ COMMITTED or ABORTED

Where effects are kept is somebody else's business: an `Effects` is given a key, the attempt's id,
and keeps one record a key, however often it is asked. So a doubt is never a reason to submit again:
`reconcile` only asks. `RecordingAdapter` keeps its records in memory, and every submission too, so
a test can count them.

Read next: `conversation.py`, for what is kept of an answer; `attempt.py`, for the table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import msgspec

from streamlab.consumer.attempt import Attempt, Input, State, advance
from streamlab.consumer.gates import Proposal

__all__ = [
    "Effects",
    "Proposals",
    "Record",
    "RecordingAdapter",
    "Refusal",
    "begin",
    "commit",
    "perform",
    "reconcile",
]

Proposals = tuple[Proposal, ...]


class Record(msgspec.Struct, frozen=True):
    """That an effect has happened: what the word COMMITTED stands on."""

    key: str
    proposals: Proposals


class Refusal(msgspec.Struct, frozen=True):
    """That an effect has not happened, and will not: an answer, and no doubt."""

    why: str


class Effects(Protocol):
    """Whoever makes effects happen. Each of these raises `OSError` where no answer comes back."""

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        """Make the effect happen, once for each key; a second time gives the first record.

        Other proposals under a key that was used are refused: they are another effect. The same
        ones are taken for the same effect. SO A KEY MUST BE UNIQUE FOR THE APPLICATION, and not
        only for the ledger that it comes from: see `Ledger.enter`.
        """

    def find(self, key: str) -> Record | None:
        """The record of a key, if its effect has happened so far."""

    def close(self, key: str) -> Record | None:
        """The record of a key, or None and never one: what is still under way is refused."""


class RecordingAdapter:
    """Effects in memory, with a list of every submission."""

    def __init__(self) -> None:
        self.submissions: list[str] = []  #: the key of every one, repeated ones too
        self.records: dict[str, Record] = {}
        self._closed: set[str] = set()
        self._loses = False
        self._lock = threading.Lock()

    def lose_next(self) -> None:
        """Lose the next answer on its way back: the effect happens, and the caller can't know."""
        self._loses = True

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        """See `Effects`."""
        with self._lock:
            self.submissions.append(key)
            lost, self._loses = self._loses, False
            if key in self._closed:
                return Refusal(f"{key} is closed: it was given up before this came")
            record = self.records.setdefault(key, Record(key, proposals))
        if lost:
            raise ConnectionResetError("the connection was lost before the answer came")
        if record.proposals != proposals:
            return Refusal(f"{key} was used for another effect")
        return record

    def find(self, key: str) -> Record | None:
        """See `Effects`."""
        return self.records.get(key)

    def close(self, key: str) -> Record | None:
        """See `Effects`."""
        with self._lock:
            if key not in self.records:
                self._closed.add(key)
            return self.records.get(key)


def commit(
    attempt: Attempt,
    proposals: Proposals,
    effects: Effects,
    authorise: Callable[[Proposal], str] | None = None,
) -> Attempt:
    """Make a proposal's effect happen; in any other state the attempt stays as it is.

    `authorise` is the policy's own and is asked again, because much may have changed since review.
    """
    return perform(begin(attempt), proposals, effects, authorise)


def begin(attempt: Attempt) -> Attempt:
    """Start the transition. From here on a cancellation comes too late."""
    return advance(attempt, Input.COMMIT, "the commit has begun")


def perform(
    attempt: Attempt,
    proposals: Proposals,
    effects: Effects,
    authorise: Callable[[Proposal], str] | None = None,
) -> Attempt:
    """Submit the effect of an attempt that is COMMITTING, and say what came of it."""
    if attempt.state is not State.COMMITTING:
        return attempt
    objection = next(filter(None, map(authorise, proposals)), "") if authorise else ""
    if objection or not proposals:
        why = f"no longer authorised: {objection}" if objection else "there is nothing to do"
        return advance(attempt, Input.EFFECT_REFUSED, why)
    try:
        answer = effects.submit(attempt.id, proposals)
    except Exception as why:  # whatever went wrong, it may have gone wrong after the effect
        return advance(attempt, Input.EFFECT_UNKNOWN, f"no answer: {why}; it may have happened")
    if isinstance(answer, Refusal):
        return advance(attempt, Input.EFFECT_REFUSED, f"it was refused: {answer.why}")
    if answer != Record(attempt.id, proposals):
        return advance(attempt, Input.EFFECT_UNKNOWN, "the answer is about another effect")
    return advance(attempt, Input.EFFECT_RECORDED, f"the effect is on record as {answer.key}")


def reconcile(attempt: Attempt, effects: Effects, proposals: Proposals | None = None) -> Attempt:
    """Ask for the record of an effect whose outcome is unknown. Nothing is submitted.

    Where there is none, its key is closed: a submission that is still on its way somewhere would
    else happen after we said that it had not. Where there is one, but of other `proposals`,
    somebody has used the key before: ours was refused, and will be. Whatever else comes back is no
    answer about our key, so the doubt stays.
    """
    if attempt.state is not State.RECONCILING:
        return attempt
    try:
        record = effects.close(attempt.id)
    except Exception:  # whatever went wrong, it says nothing about the effect
        return attempt  # still unknown: ask again later
    if record is None:
        return advance(attempt, Input.EFFECT_REFUSED, "there is no record: it did not happen")
    if not isinstance(record, Record) or record.key != attempt.id:
        return attempt
    if proposals is not None and record.proposals != proposals:
        return advance(attempt, Input.EFFECT_REFUSED, "its key was used for another effect")
    return advance(attempt, Input.EFFECT_RECORDED, f"found on record as {record.key}")
