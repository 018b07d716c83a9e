"""Lesson 08, "What stays the same across vendors?": its questions.

Read next: `dialects.py`, what its cells work with; `exercise_08.py`, its exercise.
"""

from __future__ import annotations

from streamlab.study.exercise_08 import EXERCISES
from streamlab.study.tasks import Option, Question

__all__ = ["EXERCISES", "QUESTIONS"]

QUESTIONS = (
    Question(
        "08-equal",
        "`judge` reads each of the four streams to its end. What is equal in all of them then?",
        (
            Option(
                "The texts alone. Calls and ends are too different.",
                "On the wire they are, and most of all there. But to know a call and an end is the "
                "work of each format's reader; after it a call is a call.",
            ),
            Option(
                "What each part is and says, why it stopped, and the verdict.",
                "Kinds, texts, inputs and the stop reason come out equal, and by these the gates "
                "decide, so they come to the same verdict.",
                right=True,
            ),
            Option(
                "Everything, the id of the call too.",
                "It would be neat. But an id is the vendor's own, and the tool's result must name "
                "exactly that one, so it is kept as it came.",
            ),
            Option(
                "All but Gemini's stop: its `STOP` names no tool.",
                "The word alone says too little, that is true. But a call in a whole answer is a "
                "request to run it, whatever the vendor's word is.",
            ),
        ),
        "One answer, four dialects",
    ),
    Question(
        "08-index",
        "A compatible server sends two calls, each whole in one entry and with an id of its own; "
        "but it gives both of them index 0. What does `by_index` return?",
        (
            Option(
                "Both calls.",
                "Two ids, so two calls: that is how you read it. This code keeps one call for "
                "each index, and there is only one index.",
            ),
            Option(
                "The call for W-8 alone.",
                "The second id begins a call at index 0, in the place of the first. What comes out "
                "is one clean call, and W-7 is lost without a sound.",
                right=True,
            ),
            Option(
                "One call, with two JSON objects in its text.",
                "So it would be if the index alone joined; that doesn't parse, and somebody would "
                "notice. Here an id begins anew, and nobody does.",
            ),
            Option(
                "It raises a `KeyError`.",
                "A fragment at an index that has no call yet would raise one. Here each entry has "
                "its id, so it finds its place.",
            ),
        ),
        "Whose fragment is this, on Chat?",
    ),
    Question(
        "08-twice",
        "The deltas of a Responses call said `Ready for review`. All the events that say the input "
        "again, whole, say `Blocked`. What becomes of the call?",
        (
            Option(
                "A proposal for `Ready for review`, which came first.",
                "It is what a person saw grow on the screen. But the deltas are the draft: where "
                "the whole is said again, the whole is what the vendor stands by.",
            ),
            Option(
                "A proposal for `Blocked`, which is final.",
                "It is the vendor's rule, and a text is settled by it, with a warning. A call may "
                "cost money, and here nobody can tell which version was meant.",
            ),
            Option(
                "None: the attempt is held, and `Blocked` is shown.",
                "The whole is authority over its pieces, so it is what you see. And two versions "
                "of one call are no proof of either, so nothing may be done.",
                right=True,
            ),
            Option(
                "None: the attempt is invalid.",
                "Something is wrong, yes. But the answer is complete and its grammar is kept; what "
                "is missing is proof, and for that there is HELD.",
            ),
        ),
        "Responses says it twice",
    ),
    Question(
        "08-end",
        "The line drops after Gemini's first chunk, and the proxy in between closes politely, so "
        "HTTP ends cleanly. How can a reader tell that this was not all?",
        (
            Option(
                "The text is not finished.",
                "Often it isn't, and a person sees it. But `Ship W-7.` is a sentence with its full "
                "stop: a cut may fall anywhere, and here it fell well.",
            ),
            Option(
                "The last frame is not finished.",
                "It would be, if the line had dropped inside of one. Between two chunks every "
                "frame is whole.",
            ),
            Option(
                "There was no `[DONE]`.",
                "On Chat that would be the sign. Gemini never sends a final marker, so that there "
                "is none says nothing.",
            ),
            Option(
                "There was no finish reason.",
                "It is all that a Gemini stream says about its end. With it, and with a clean end "
                "after it, the answer is whole.",
                right=True,
            ),
        ),
        "Who says the end?",
    ),
)
