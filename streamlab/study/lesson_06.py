"""Lesson 06, "Who wins, and who says so?": its questions.

Read next: `exercise_06.py`, its exercise; `payment.py` and `orders.py`, what the lesson runs.
"""

from __future__ import annotations

from streamlab.study.exercise_06 import EXERCISES
from streamlab.study.tasks import Option, Question

__all__ = ["EXERCISES", "QUESTIONS"]

QUESTIONS = (
    Question(
        "06-fix",
        "The loop above pays twice. Here are four repairs that people make. Which one prevents "
        "the second payment?",
        (
            Option(
                "Wait a minute for the answer.",
                "A slow answer would be heard then. But this one is lost: it does not come after "
                "a minute either, and the loop tries again.",
            ),
            Option(
                "Try once, and tell the person that it failed.",
                "It looks careful: the program repeats nothing. But it was told nothing, and says "
                "that it failed. So the person tries again, and pays twice.",
            ),
            Option(
                "Ask the desk first whether W-7 is paid.",
                "Asking is right, and the answer was true. But it was old at once: the first "
                "request was still on its way, and arrived after the question.",
            ),
            Option(
                "Send a key with the request, the same for each try.",
                "The desk keeps one record for each key. A second request under it is answered "
                "from the record, and nothing is paid.",
                right=True,
            ),
        ),
        "Paid twice",
    ),
    Question(
        "06-race",
        "Two programs have the same ledger open. At the same moment a person cancels in one, and "
        "the other commits. What can the two be told?",
        (
            Option(
                "Cancel: ABORTED. Commit: COMMITTED.",
                "This is what two memories said above. In one row only one of the two transactions "
                "can find VALIDATED_PROPOSAL.",
            ),
            Option(
                "Nothing good: at the same moment, both are refused.",
                "It sounds fair. But one transaction comes first, always, and finds a proposal "
                "that may be committed. It has no reason to be refused.",
            ),
            Option(
                "One of them wins, and the other reads what the winner wrote.",
                "The second one compares, finds another state than it hoped for, and changes "
                "nothing. It is told at once what the row says: too late. How it ends is read "
                "later, and then both read the same.",
                right=True,
            ),
            Option(
                "The later one wins, since it is the last to write.",
                "So it is where one simply writes. Here the later one compares first. ABORTED is "
                "final, and COMMITTING has no `cancel` in its row of the table.",
            ),
        ),
        "Cancel against commit",
    ),
    Question(
        "06-crash",
        "The row says COMMITTING, the desk has paid, and our process is killed before the answer "
        "comes. A new process opens the ledger. How does it find out what to write there?",
        (
            Option(
                "It submits again under the same key.",
                "With a good desk that is harmless, which is why it tempts. But if the request had "
                "never arrived, this would pay now, long after anybody agreed to it.",
            ),
            Option(
                "It asks the desk for the record of this key.",
                "Only the desk knows. It has a record, so the row becomes COMMITTED; nothing is "
                "submitted.",
                right=True,
            ),
            Option(
                "It writes ABORTED: nothing of an effect is on record here.",
                "Our file has no record, that is true. But the record is written after the answer, "
                "and the answer never came. W-7 is paid.",
            ),
            Option(
                "It can't. COMMITTING stays, until a person looks.",
                "Honest, and for a desk that can't be asked the only way. This one can be asked, "
                "and its answer settles it.",
            ),
        ),
        "A crash in the middle",
    ),
    Question(
        "06-way",
        "The request is still on its way, and the caller has given up. The desk is asked, and has "
        "no record. May a person be told that W-7 was not paid?",
        (
            Option(
                "Yes, if the desk has closed the key as well.",
                "A closed key refuses whatever still comes under it. Only then is `no record` an "
                "answer about the future too.",
                right=True,
            ),
            Option(
                "Yes: there is no record, so it did not happen.",
                "It did not happen so far. The request is still on its way, and it pays when it "
                "arrives.",
            ),
            Option(
                "Yes, if one waits a minute before asking.",
                "After a minute most requests have arrived or are gone. But most is not all, and a "
                "network promises no limit.",
            ),
            Option(
                "No: it can never be known.",
                "It can't be known by looking. But the desk can decide it: what comes later is "
                "refused.",
            ),
        ),
        "Still on its way",
    ),
)
