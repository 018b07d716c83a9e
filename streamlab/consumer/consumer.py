"""The consumer's loop: bytes in as they come, and at every moment a turn and an attempt.

    bytes -> frames -> events -> reduce the turn, observe the attempt;   at the end, the gates

One consumer an attempt: a retry gets a new one, so nothing of a failed try can survive in it. The
gates are asked once, when the transport has stopped, because only then it is known that nothing
broke the sequence after its final marker.
"""

from __future__ import annotations

from streamlab.consumer.attempt import Attempt, Input, State, advance, observe
from streamlab.consumer.gates import (
    EFFECT,
    Policy,
    Proposal,
    Verdict,
    judge_turn,
    proposals,
    settle,
)
from streamlab.consumer.turn import EMPTY, Turn, reduce
from streamlab.wire.reader import BOUNDS, Bounds, Read, Reader

__all__ = ["Consumer"]


class Consumer:
    """Consume one stream.

    >>> consumer = Consumer()
    >>> consumer.feed(b'event: message_start\\n')
    []
    >>> consumer.end("reset").state.value
    'INCOMPLETE'
    """

    def __init__(
        self,
        wire: str | None = None,
        policy: Policy = EFFECT,
        bounds: Bounds = BOUNDS,
        attempt: str = "attempt-1",
    ) -> None:
        self.reader = Reader(wire, bounds)
        self.policy = policy
        self.turn: Turn = EMPTY
        self.attempt = Attempt(id=attempt)
        self.ending: str | None = None
        self.verdicts: tuple[Verdict, ...] = ()
        self.last_words: list[Read] = []  #: what the end itself left to report

    @property
    def finished(self) -> bool:
        """Whether reading on is pointless: the stream ended, or ran over a bound."""
        return self.ending is not None or self.reader.exceeded is not None

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """What may be committed; empty unless every gate has passed."""
        ready = self.attempt.state is State.VALIDATED_PROPOSAL
        return proposals(self.turn) if ready else ()

    def feed(self, data: bytes, t: float | None = None) -> list[Read]:
        """Take the bytes of one read, `t` seconds after the request; return what they stated.

        What comes after the end is late: it states nothing to an attempt that the gates have seen.
        """
        if self.ending is not None:
            return []
        reads = self.reader.over_time(t) if t is not None else []
        return self._take(reads + self.reader.feed(data) if reads else self.reader.feed(data))

    def end(self, ending: str = "eof", t: float | None = None) -> Attempt:
        """Say how the transport stopped, and when; return where the attempt is after the gates."""
        if self.ending is None:
            self.last_words = self._take(self.reader.end(ending, t))
            self.ending = self.reader.ending
            if self.attempt.state is State.MESSAGE_COMPLETE:
                self.verdicts = judge_turn(self.turn, self.policy)
                self.attempt = settle(self.attempt, self.turn, self.verdicts)
        return self.attempt

    def cancel(self) -> Attempt:
        """Stop by our own wish, before anything was committed."""
        self.attempt = advance(self.attempt, Input.CANCEL, "we cancelled it before any commit")
        return self.attempt

    def _take(self, reads: list[Read]) -> list[Read]:
        turn, attempt = self.turn, self.attempt
        for _, events in reads:
            for event in events:
                turn = reduce(turn, event)
                attempt = observe(attempt, event)
        self.turn, self.attempt = turn, attempt
        return reads
