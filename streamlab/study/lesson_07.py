"""Lesson 07, "How many rounds is one turn?": its questions.

Read next: `exercise_07.py`, its exercise; `turns.py`, what its model and its tools do.
"""

from __future__ import annotations

from streamlab.study.exercise_07 import EXERCISES
from streamlab.study.tasks import Option, Question

__all__ = ["EXERCISES", "QUESTIONS"]

QUESTIONS = (
    Question(
        "07-bubbles",
        "Ada asks once. The model looks at four items, each after it has read the last one, and "
        "then it answers. What does the loop above draw, and how often does it send a request?",
        (
            Option(
                "One bubble, one request.",
                "So it looks to Ada: one question, one answer. But a stream ends where the model "
                "needs a result. It can only go on in the answer to another request.",
            ),
            Option(
                "One bubble, five requests.",
                "This is what Ada should see. But the loop draws where a stream begins, and five "
                "streams begin.",
            ),
            Option(
                "Four bubbles, four requests.",
                "One for each call seems to be all. But the result of the fourth call has to go "
                "to the model too, and the text comes in the answer to that.",
            ),
            Option(
                "Five bubbles, five requests.",
                "Four streams that stop for a tool, and one that stops with the text. The loop "
                "draws a bubble for each.",
                right=True,
            ),
        ),
        "A loop that works on a good day",
    ),
    Question(
        "07-order",
        "Two calls in one answer: W-7, then W-8. To read W-7 takes until W-8 has been read. In "
        "which order do the two cards turn to `done`, and in which order does the model get the "
        "two results?",
        (
            Option(
                "It never ends: W-7 waits for ever.",
                "In the naive loop it would: it starts W-8 only when W-7 is done. Here both have "
                "been started before either is done.",
            ),
            Option(
                "Cards: W-8, W-7. Results: W-7, W-8.",
                "A card changes as soon as its own tool is done. The model gets one message, "
                "when all are done, in the order in which it asked.",
                right=True,
            ),
            Option(
                "Cards: W-8, W-7. Results: W-8, W-7.",
                "A result that is there could be sent, it seems. But the next message has to "
                "answer all calls, so it waits for the last; and an order by chance helps nobody.",
            ),
            Option(
                "Cards: W-7, W-8. Results: W-7, W-8.",
                "Tidy, and it is what you see if all cards are drawn after the last tool. Ada "
                "would then look at W-8 as `running` long after it was done.",
            ),
        ),
        "Side by side",
    ),
    Question(
        "07-error",
        "The model asks for W-8 and for W-9 in one answer. There is no W-9: its tool raises "
        "`LookupError`. What happens to the turn?",
        (
            Option(
                "The tool's error is its result, and the turn goes on.",
                "The model is told, with `is_error`. It can try another way, or say in its answer "
                "that there is no W-9.",
                right=True,
            ),
            Option(
                "It ends, and Ada is told about the error.",
                "An exception ends a function, so why not the turn. But the model asked for W-9, "
                "and it is the one who can do something about it.",
            ),
            Option(
                "The call for W-9 is left out, and the turn goes on with W-8.",
                "Only the good half is kept, which looks harmless. But the model's message holds "
                "both calls, and a call without its result is refused.",
            ),
            Option(
                "The tool for W-9 is run again, up to three times.",
                "Sensible for a network that stumbles, and it belongs inside such a tool. The "
                "loop can't know whether a second run is safe, or of any use.",
            ),
        ),
        "A tool that fails",
    ),
    Question(
        "07-cap",
        "A model asks for W-7, gets the result, and asks for W-7 again, without end, each time "
        "under a new id. A turn may have 6 rounds, and the same call may run 2 times. How often "
        "is the tool run, in how many requests?",
        (
            Option(
                "6 times, in 6 requests.",
                "The cap on rounds alone would allow six requests. The other guard is quicker: it "
                "sees that the calls are the same.",
            ),
            Option(
                "3 times, in 3 requests.",
                "The third call is what ends it, so it is tempting to count it. But the guard "
                "looks before the round runs, so the third call is not run.",
            ),
            Option(
                "2 times, in 3 requests.",
                "The third answer asks for the same thing a third time. It is not run, and no "
                "fourth request is sent.",
                right=True,
            ),
            Option(
                "2 times, in 2 requests.",
                "After the second run nobody knows yet that the model will ask again: it might "
                "have answered. That takes a third request.",
            ),
        ),
        "How many rounds?",
    ),
    Question(
        "07-cancel",
        "W-7 and W-8 run side by side. W-8 is done, W-7 is still running, and Ada presses "
        "Cancel. What is kept of this round for the next request?",
        (
            Option(
                "Nothing: the round never became whole.",
                "So it is with half a stream. But this stream was whole, and its tools have "
                "run. To forget them would be to say that nothing happened.",
            ),
            Option(
                "The call for W-8 with its result, without the call for W-7.",
                "Only what is certain, it seems. But the model's message would be changed, and "
                "nobody would know that W-7 had begun: it may have done something.",
            ),
            Option(
                "Both calls, and the result of W-8 alone.",
                "It is exactly what is there, and it is what breaks: a call without a result is "
                "refused, and so is every later request with this history.",
            ),
            Option(
                "Both calls and two results; that of W-7 says that it was cancelled.",
                "Each call has a result, so the history can be sent at once. And that W-7 had "
                "begun is on record.",
                right=True,
            ),
        ),
        "Cancel, at any moment",
    ),
)
