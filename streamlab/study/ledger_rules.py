"""One attempt between several processes: its row, its effect, its people, and what all go by.

A `Moment` is a frozen value: what came of the stream, the ledger's row and record, what the
application at the other end has done, and how far each process is between two transactions. There
are two committers, A and B, two recoveries, R and S, somebody who may cancel, and a screen that
somebody reads.

The rules are those of `consumer/ledger.py` and its `TABLE`. `Rules` hold what changes where a guard
is off; `RULES` have all of them on.

Read next: `ledger_actions.py`, for what can happen.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streamlab.consumer.attempt import SAID, TABLE, Input, State

__all__ = ["DONE", "RULES", "START", "UNCERTAIN", "Moment", "Rules"]

Table = Mapping[State, Mapping[Input, State]]


class Moment(msgspec.Struct, frozen=True, gc=False):
    """Everything that counts, between two actions."""

    came: int = 0  #: parts of the content that came: a fragment, then the rest
    marker: bool = False  #: the final marker came, after the whole content
    ended: bool = False  #: the transport has stopped
    passed: bool = False  #: every gate has passed the whole answer
    may: bool = True  #: the actor is authorised, as things stand now

    row: State = State.PREVIEW  #: the ledger's row
    handled: tuple[str, ...] = ()  #: the deliveries that the ledger has written down
    record: bool = False  #: the ledger has the effect's record

    effects: int = 0  #: how often the application has done it
    closed: bool = False  #: the application does nothing more under this key

    a: str = ""  #: how far committer A is; "": it is doing nothing
    b: str = ""
    a_way: int = 0  #: how often A's request may still arrive: a network may deliver it twice
    b_way: int = 0
    r: str = ""  #: how far recovery R is
    s: str = ""
    cancels: str = ""  #: how far a cancellation is, where it takes two steps
    connected: bool = True  #: somebody is at the screen

    counted: int = 0  #: parts of the content that were counted
    submissions: int = 0  #: how often the effect was asked for
    allowed: bool = False  #: the actor was authorised in the transaction that began the commit
    cancel_won: bool = False  #: somebody was answered: cancelled
    commit_won: bool = False  #: somebody was answered: the commit has begun
    told: bool = False  #: a person has read that the change is made
    final: State | None = None  #: the first terminal state that the row was in
    meddled: bool = False  #: the attempt changed because the screen came or went
    left: bool = False  #: a recovery has ended, and the outcome is still uncertain


START = Moment()
UNCERTAIN = (State.COMMITTING, State.RECONCILING)
DONE = SAID[State.COMMITTED]


class Rules(msgspec.Struct, frozen=True):
    """What everybody goes by. Each guard is a part of this; `RULES` has all of them on."""

    table: Table
    said: Mapping[State, str]
    compares: bool = True  #: the row is changed only if it is still what was read
    same_row: bool = True  #: a cancellation changes the row that a commit reads
    begins: bool = True  #: COMMITTING is written before the effect is asked for
    at_once: bool = True  #: the outcome and its record are written in one transaction
    asks_inside: bool = True  #: authorisation is asked in the transaction that begins the commit
    winner_only: bool = True  #: only who began the commit submits
    keyed: bool = True  #: the application does what has a key once
    remembers: bool = True  #: the application's refusal holds for the key
    closes: bool = True  #: a key without a record is closed before it is given up
    closes_early: bool = False  #: a key is closed as soon as the commit begins
    submits_again: bool = False  #: where the outcome is unknown
    unknown: Input = Input.EFFECT_UNKNOWN  #: what a missing answer is taken for
    finds_begun: bool = True  #: a recovery takes an interrupted commit for an unknown outcome
    by_identity: bool = True  #: a delivery is known by its name
    on_file: bool = True  #: handled deliveries outlive a crash
    leaves_quietly: bool = True  #: a screen that goes away cancels nothing
    returns_quietly: bool = True  #: a screen that comes back asks, and starts nothing


RULES = Rules(TABLE, SAID)
