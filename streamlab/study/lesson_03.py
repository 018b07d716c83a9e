"""Lesson 03, "Whose fragment is this?": its questions, and what its cells work with.

The helpers are here so that the lesson finds them in one place. They live in this folder, in
`assembling.py` (with the exercise), `lesson_01.py` and `prefixes.py`.
"""

from __future__ import annotations

from streamlab.study.assembling import WRONG, assemble, cases, fragment, fragments
from streamlab.study.lesson_01 import payloads
from streamlab.study.prefixes import lenient, prefixes, strict
from streamlab.study.tasks import Exercise, Option, Question

__all__ = [
    "EXERCISES",
    "QUESTIONS",
    "fragment",
    "fragments",
    "lenient",
    "payloads",
    "prefixes",
    "strict",
]

QUESTIONS = (
    Question(
        "03-order",
        "The same ten events come in another order: block 0 starts, `Ship W-7`, block 1 starts, "
        "`Hold W-8`, and only then comes ` and W-9`, with index 0. What does `append_to_last` "
        "return?",
        (
            Option(
                "`['Ship W-7 and W-9', 'Hold W-8']`",
                "That is what was sent. To get it, the code would have to look at the index, and "
                "it never does: it knows only which block started last.",
            ),
            Option(
                "`['Ship W-7', 'Hold W-8 and W-9']`",
                "Block 1 started last, so it gets the fragment. Two good sentences, no exception, "
                "and W-9 is held instead of shipped.",
                right=True,
            ),
            Option(
                "`['Ship W-7', 'Hold W-8']`",
                "It would be careful to leave out what does not belong. But for this code "
                "everything belongs to the last block, so nothing is ever left out.",
            ),
            Option(
                "It raises an `IndexError`.",
                "One hopes that mixed-up fragments make a noise. There is always a last block to "
                "append to, so there is nothing to raise.",
            ),
        ),
        "Does the order say whose it is?",
    ),
    Question(
        "03-meanings",
        "Now the same JSON character by character: 58 prefixes. A program goes ahead as soon as "
        "`invoice` and `amount` are there. How many different valid inputs can it meet that are "
        "not the one that was meant?",
        (
            Option(
                "None: half a JSON text is no JSON.",
                "To a strict parser, and that is its great merit. The lenient one that the SDK "
                "uses is made to find a value in every half.",
            ),
            Option(
                "Two, as above.",
                "Above there were five fragments, and two values that were not meant. Where a "
                "fragment ends is chance: the same JSON may be cut anywhere the next time.",
            ),
            Option(
                "Six.",
                "The amounts 1, 10, 100, 1000 and 10000, and then the right amount without its "
                "currency. Each one fits a schema that asks for an invoice and an amount.",
                right=True,
            ),
            Option(
                "57: every prefix but the last.",
                "Each prefix is another text, but many have the same meaning: while a name or a "
                "string is still coming, the lenient reading stays what it was.",
            ),
        ),
        "What would this fragment have meant?",
    ),
    Question(
        "03-thinking",
        "A thinking block comes in four fragments, then comes its signature. A program strips the "
        "white space from each fragment, for a tidy log, joins them, and sends the block back with "
        "the next request. What is wrong?",
        (
            Option(
                "The signature is no longer that of this text.",
                "The signature was made for the exact text. With three spaces gone it proves "
                "nothing, and the API may refuse the whole request.",
                right=True,
            ),
            Option(
                "Nothing: the words are the same.",
                "To a reader they are, and for a log that is enough. A signature knows no words: "
                "it was made for every character, spaces too.",
            ),
            Option(
                "Nothing: thinking is never sent back.",
                "It is not shown to the user, so one takes it for waste. But before a tool's "
                "result the API wants the thinking that led to the call.",
            ),
            Option(
                "The signature must be stripped as well.",
                "Treating all fields alike sounds consistent. The signature is opaque: you cannot "
                "know which of its characters matter, so you leave it alone too.",
            ),
        ),
        "Must thinking be exact?",
    ),
    Question(
        "03-held",
        "In each of four streams a whole tool call came, and `message_stop`. But the first has an "
        "event of a new type in it. The second has blocks 0 and 2, and no block 1. In the third a "
        "delta comes after its block has stopped. In the fourth the tool's block has a delta of a "
        "new type. From which may a proposal come?",
        (
            Option(
                "From all four.",
                "The call looks whole in each, and that tempts. But where a number is missing, a "
                "block may be lost, perhaps one that would change your mind.",
            ),
            Option(
                "From none of them.",
                "Strict, and it would break on the day the API gets a new event. That is announced "
                "to happen; a reader must step over what it does not know.",
            ),
            Option(
                "From the first and the fourth.",
                "Both bring something new, so they look alike. But a new delta in a tool's block "
                "may be a part of its input, and then the rest of it is not the whole.",
            ),
            Option(
                "From the first only.",
                "A new type of event is allowed: it is kept, and it grants nothing. In the others "
                "a part may be missing, or came where none may come, and nobody guesses.",
                right=True,
            ),
        ),
        "What if it fits nowhere?",
    ),
)

EXERCISES = (Exercise("03-ex", cases, assemble, WRONG),)
