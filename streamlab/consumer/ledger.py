"""The ledger: one SQLite file that says what became of every attempt, to everyone who asks.

Memory forgets when a process dies, and two processes have two memories. So what must be true once
for everybody stands in one row: the attempt's state. It changes by *compare and set*, inside one
transaction, along the same `TABLE` as everywhere: who cancels and who commits at the same moment
meet there, one of them wins, and both read the same answer.

    cancel ──┐                        ┌──▶ "ABORTED"    (to both)
             ├──▶ UPDATE … WHERE state = what was read
    commit ──┘                        └──▶ "COMMITTING" (to both)

The effect happens elsewhere, between two transactions: COMMITTING is written *before* it is asked
for, its record after. A crash in between leaves COMMITTING in the row, which `recover` takes for
what it is, an unknown outcome, and settles by asking under the attempt's key. Nothing is submitted
a second time.

No payload is kept but the proposal, which the commit needs. Read next: `ledger_file.py`, for the
schema and the file; `commit.py`, whose rules these are; `streams/desk.py`, an application whose
effects are real.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from streamlab.consumer.attempt import INPUT_OF, Attempt, Input, State, advance
from streamlab.consumer.commit import Effects, Proposals, Record, perform, reconcile
from streamlab.consumer.delivery import Envelope, Receipt, receive
from streamlab.consumer.gates import Proposal
from streamlab.consumer.ledger_file import LedgerFile
from streamlab.errors import UsageError

__all__ = ["Ledger"]

#: Outcomes of an effect that only the effect's own system may tell, by `commit` and `reconcile`.
TOLD = (Input.EFFECT_RECORDED, Input.EFFECT_REFUSED)


class Ledger(LedgerFile):
    """The ledger of one file, made where it does not exist.

    Safe to use from several threads and several processes at once. `timeout` is how many seconds
    to wait for another one's transaction. Where it is not `durable`, what is written outlives our
    process, but perhaps not the machine's power. Raises `UsageError` where the file is unusable,
    where it was replaced since it was opened, and in a forked child, which opens its own.
    """

    # --- Asking -----------------------------------------------------------------------------------

    def status(self, id: str) -> Attempt | None:
        """What is recorded of an attempt: what a client asks that comes back."""
        row = self._one("SELECT state, why, input FROM attempts WHERE id = ?", id)
        if row is None:
            return None
        with self._explained():
            return Attempt(State(row[0]), row[1], id, Input(row[2]) if row[2] else None)

    def record(self, id: str) -> Record | None:
        """The record of an attempt's effect, if it has happened."""
        row = self._one("SELECT proposals FROM effects WHERE key = ?", id)
        return None if row is None else Record(id, self._read(row[0]))

    def trace(self, id: str) -> list[tuple[Input, State]]:
        """What happened to an attempt, in order: each input, and where it led. No payload."""
        sql = "SELECT input, state FROM transitions WHERE attempt = ? ORDER BY n"
        with self._explained():
            return [(Input(given), State(state)) for given, state in self._all(sql, id)]

    def unsettled(self) -> list[str]:
        """The attempts whose effect's outcome is not recorded."""
        sql = "SELECT id FROM attempts WHERE state IN (?, ?) ORDER BY id"
        return [id for (id,) in self._all(sql, State.COMMITTING, State.RECONCILING)]

    # --- Changing ---------------------------------------------------------------------------------

    def enter(self, attempt: Attempt, proposals: Proposals = ()) -> Attempt:
        """Write an attempt down; of one that is there already, what is recorded comes back.

        The id is the key of its effect. SO IT MUST BE UNIQUE FOR THE APPLICATION THAT MAKES THE
        EFFECT, NOT ONLY FOR THIS FILE: of two files with an "attempt-1" each, the second one would
        be given the first one's record and say COMMITTED, where nothing was done for it. Where an
        application has more than one ledger, put a name of the ledger's own into each id.

        An attempt that is entered without proposals gets none later: enter it when they are known.

        Raises `UsageError` where that one has other proposals: an id is one attempt's. Where
        the attempt is COMMITTED: no record of ours would stand behind that. And for an id that is
        no text of 1 to 200 printable characters, and proposals that JSON does not bring back.
        """
        if not (
            isinstance(attempt.id, str) and 0 < len(attempt.id) <= 200 and attempt.id.isprintable()
        ):
            what = "an attempt's id is a text of 1 to 200 printable characters"
            raise UsageError(f"{self.path}: {what}")
        if attempt.state is State.COMMITTED:
            raise UsageError(f"{attempt.id!r} is COMMITTED elsewhere: enter it before its commit")
        written = self._written(attempt.id, proposals)
        with self._transaction():
            self._change(
                "INSERT INTO attempts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                *(attempt.id, attempt.state, attempt.by, _whole(attempt.why), written),
            )
            # The texts are compared: in Python, True is 1 and 1 is 1.0.
            if self._all("SELECT proposals FROM attempts WHERE id = ?", attempt.id) != [(written,)]:
                raise UsageError(f"{self.path}: {attempt.id!r} is there, with other proposals")
            return self._recorded(attempt.id)

    def handle(self, envelope: Envelope) -> Receipt:
        """Take an envelope: by its identity it counts once, and what it states moves the attempt.

        Both in one transaction: a crash leaves neither, so a second delivery loses nothing.
        """
        with self._transaction():
            attempt = self._recorded(envelope.attempt)
            names = (envelope.attempt, envelope.delivery)
            sql = "SELECT delivery FROM deliveries WHERE attempt = ? AND delivery = ?"
            receipt = receive(envelope, attempt, [name for (name,) in self._all(sql, *names)])
            if receipt is not Receipt.REPEATED:
                self._change("INSERT INTO deliveries VALUES (?, ?)", *names)
            for event in envelope.events if receipt is Receipt.NEW else ():
                tell = INPUT_OF.get(type(event))
                given, why = tell(event) if tell else (None, "")
                if given is not None:
                    self._advance(envelope.attempt, given, why)
            return receipt

    def advance(self, id: str, given: Input, why: str = "") -> Attempt:
        """One input, on the authoritative row; the table decides, and the record comes back.

        Raises `UsageError` for an effect's outcome: nobody may say that but `commit`, `reconcile`.
        """
        if not isinstance(given, Input):
            raise UsageError(f"{self.path}: {given!r} is no Input")
        if given in TOLD:
            raise UsageError(f"{given.value!r} is said by the effect's own system: use `reconcile`")
        with self._transaction():
            return self._advance(id, given, why)[0]

    def cancel(self, id: str) -> Attempt:
        """Cancel; where something else was faster, its outcome comes back."""
        return self.advance(id, Input.CANCEL, "we cancelled it before any commit")

    def commit(
        self, id: str, effects: Effects, authorise: Callable[[Proposal], str] | None = None
    ) -> Attempt:
        """Make the proposal's effect happen, once; everyone else gets the recorded outcome.

        `authorise` is asked inside the transaction that begins the commit, so that nothing changes
        between its answer and the beginning. IT MUST BE QUICK: while it thinks, nobody else writes
        anything to the whole file, about any attempt, and whoever waits too long gets a
        `UsageError`. What takes long is found out before, and looked up here.
        """
        with self._transaction():
            begun, mine = self._advance(id, Input.COMMIT, "the commit has begun")
            if not mine:
                return begun
            proposals = self._proposals(id)
            objection = next(filter(None, map(authorise, proposals)), "") if authorise else ""
            if objection:
                why = f"no longer authorised: {objection}"
                return self._advance(id, Input.EFFECT_REFUSED, why)[0]
        return self._settle(perform(begun, proposals, effects))

    def reconcile(self, id: str, effects: Effects) -> Attempt:
        """Settle an unknown outcome by asking for it; nothing is submitted."""
        attempt = self.advance(id, Input.EFFECT_UNKNOWN, "the commit was interrupted")
        return self._settle(reconcile(attempt, effects, self._proposals(id)))

    def recover(self, effects: Effects) -> dict[str, Attempt]:
        """After a crash: settle every attempt whose outcome is unknown.

        One that cannot be settled stops no other: `UsageError` names it when the rest is done.
        """
        settled: dict[str, Attempt] = {}
        failed: dict[str, UsageError] = {}
        for id in self.unsettled():
            try:
                settled[id] = self.reconcile(id, effects)
            except UsageError as why:
                failed[id] = why
        if failed:
            first = next(iter(failed.values()))
            reason = str(first).removeprefix(f"{self.path}: ")
            names = ", ".join(map(repr, failed))
            raise UsageError(f"{self.path}: not settled: {names}; {reason}") from first
        return settled

    # --- The row ----------------------------------------------------------------------------------

    def _settle(self, attempt: Attempt) -> Attempt:
        """Write the outcome down, with its record, in one transaction."""
        given = OUTCOMES.get(attempt.state)
        if given is None:
            return attempt
        try:
            with self._transaction():
                settled, mine = self._advance(attempt.id, given, attempt.why)
                if mine and settled.state is State.COMMITTED:
                    sql = "INSERT INTO effects SELECT id, proposals FROM attempts WHERE id = ?"
                    self._change(sql, attempt.id)
                return settled
        except UsageError as why:  # "nothing was written" is no longer all there is to say
            what = f"the outcome of {attempt.id!r} is not on record yet: `recover` will ask for it"
            raise UsageError(f"{why}; {what}") from why

    def _advance(self, id: str, given: Input, why: str) -> tuple[Attempt, bool]:
        """The attempt after an input, and whether this call is what changed it."""
        before = self._recorded(id)
        after = advance(before, given, _whole(why))
        if after is before:
            return before, False
        changed = self._change(
            "UPDATE attempts SET state = ?, input = ?, why = ? WHERE id = ? AND state = ?",
            *(after.state, given, after.why, id, before.state),
        )
        if not changed:  # another process was faster; within a transaction that cannot be
            return self._recorded(id), False
        sql = "INSERT INTO transitions (attempt, input, state) VALUES (?, ?, ?)"
        self._change(sql, id, given, after.state)
        return after, True

    def _recorded(self, id: str) -> Attempt:
        found = self.status(id)
        if found is None:
            raise UsageError(f"{self.path}: there is no attempt {id!r}")
        return found

    def _proposals(self, id: str) -> Proposals:
        row = self._one("SELECT proposals FROM attempts WHERE id = ?", id)
        return self._read(row[0]) if row else ()

    def _written(self, id: str, proposals: Proposals) -> str:
        """Proposals as JSON that gives the same ones back; NaN, a tuple, bytes would not."""
        if not (isinstance(proposals, tuple) and all(isinstance(p, Proposal) for p in proposals)):
            raise UsageError(f"{self.path}: proposals are a tuple of Proposal")
        fit = all(isinstance(proposal.input, dict | str) for proposal in proposals)
        try:
            text = msgspec.json.encode(proposals, order="deterministic").decode()
            if fit and msgspec.json.decode(text, type=Proposals) == proposals:
                return text
        except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError):
            pass  # its words may hold a payload
        raise UsageError(f"{self.path}: the proposals of {id!r} can't be written down as JSON")

    def _read(self, text: str) -> Proposals:
        with self._explained():
            return msgspec.json.decode(text, type=Proposals)


#: The state that an effect's outcome leads to -> the input that it is.
OUTCOMES = {
    State.COMMITTED: Input.EFFECT_RECORDED,
    State.ABORTED: Input.EFFECT_REFUSED,
    State.RECONCILING: Input.EFFECT_UNKNOWN,
}


def _whole(why: str) -> str:
    """A reason without half characters: some of its words may be a stranger's, and hold some."""
    return why.encode("utf-8", "replace").decode()
