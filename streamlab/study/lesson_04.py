"""Lesson 04, "Why is what I see not what I keep?": its questions, and its exercise."""

from __future__ import annotations

from streamlab.study.exercise_04 import EXERCISE
from streamlab.study.tasks import Option, Question

__all__ = ["EXERCISES", "QUESTIONS"]

QUESTIONS = (
    Question(
        "04-next",
        "Four answers are interrupted: after a sentence, inside a tool call, inside a thought, and "
        "before the first word. `record_shown` keeps each of them, and the user goes on. How many "
        "of the four next requests does the server refuse?",
        (
            Option(
                "None: to a server a history is only text.",
                "It looks like text in a log. But it is a list of blocks, and each kind has rules: "
                "an input is an object, thinking is signed, text is not blank.",
            ),
            Option(
                "All four: each of these answers is incomplete.",
                "They are, and the server can't know it. It was not there when the stream ended; "
                "it gets blocks, and looks at those.",
            ),
            Option(
                "Three: all but the sentence.",
                "Half a call, half a thought and no word at all break a rule each. A sentence is "
                "a sentence, wherever it was to go on.",
                right=True,
            ),
            Option(
                "One: the tool call.",
                "It is the loudest of them. But thinking that was cut has no signature yet, and "
                "a text block that has only begun is blank: both are refused too.",
            ),
        ),
        "What is in the next request?",
    ),
    Question(
        "04-retry",
        "The first attempt was cut after `Yes, W-7 can be deleted.` The program asks again. What "
        "belongs in the second request?",
        (
            Option(
                "The question, and the partial text as the assistant's: it can go on from there.",
                "Nothing that was paid for is lost, so it looks thrifty. But it makes the fragment "
                "the model's own words; newer models (as of 2026) refuse such a request "
                "altogether.",
            ),
            Option(
                "The question, and the question again.",
                "Many programs do it by accident: their retry runs the code that adds the user's "
                "message. The user asked once.",
            ),
            Option(
                "The question, and a note that the last answer was interrupted.",
                "Honest, and no use: the model has no last answer. In its history there was none, "
                "and there it should stay so.",
            ),
            Option(
                "Exactly what was in the first.",
                "The history never took anything of the failed attempt, so there is nothing to "
                "take out of it. The second request is the first one again.",
                right=True,
            ),
        ),
        "Discard, and ask again",
    ),
    Question(
        "04-endings",
        "This time all ten frames come, `message_stop` too. Only then the connection is reset, and "
        "the SDK raises `ReadError`. Is this answer kept?",
        (
            Option(
                "No: an exception means that it failed.",
                "Something did fail: the connection. The answer had said by itself that it was "
                "whole, before that. To ask again would be to pay again, for other words.",
            ),
            Option(
                "Yes: it was whole before the connection broke.",
                "`message_stop` ends the message. What the connection does afterwards is about the "
                "connection.",
                right=True,
            ),
            Option(
                "Its text, but not its stop reason.",
                "A compromise between two buffers is a third thing that nobody can judge. A turn "
                "is kept whole or not at all.",
            ),
            Option(
                "Only if it comes a second time in the same words.",
                "It never will: a model writes anew each time.",
            ),
        ),
        "What does the ending prove?",
    ),
    Question(
        "04-call",
        'The stream of lesson 00 was cut inside a number, and the SDK gave `"amount": 1`. A '
        "program keeps that message, pays 1, adds the tool's result, and sends the next request. "
        "What does the server say to this history?",
        (
            Option(
                "200: it has nothing to object to.",
                "The input is an object, and the call has its result. Had the program kept the "
                "call and not run it, the request would have been refused: a call without a "
                "result.",
                right=True,
            ),
            Option(
                "400: the call was never finished.",
                "The half call from above was refused, so why not this one. Because it does not "
                "look like half a call any more: the SDK closed its JSON.",
            ),
            Option(
                "400: the amount is wrong.",
                "Only the model knew what the amount was to be, and nobody asked it.",
            ),
            Option(
                "Nothing: the SDK raises before it sends.",
                "It raised nothing when the stream ended, and it looks at no history. It sends "
                "what it is given.",
            ),
        ),
        "Why is half a tool call worse?",
    ),
    Question(
        "04-reconnect",
        "The same behaviour, but for `POST /v1/messages`. The first answer is cut after `Yes, W-7 "
        "can be deleted.`, and the client asks again by itself. What stands on the page at the "
        "end?",
        (
            Option(
                "The first answer, whole: the rest was sent later.",
                "So it was with the log. But these frames have no ids, and behind them is no list "
                "of events: a model writes each answer anew.",
            ),
            Option(
                "The second answer alone.",
                "That would be right, and somebody would have to do it. To the page the events "
                "are one stream: it sees no seam at which to clear anything.",
            ),
            Option(
                "The first part of one answer, then all of another.",
                "Two answers are glued together, and the page shows a sentence that no model ever "
                "wrote.",
                right=True,
            ),
            Option(
                "An error.",
                "There is an `error` event on the page when a connection is lost, but only to "
                "tell it that the browser is trying again.",
            ),
        ),
        "Can't a browser just reconnect?",
    ),
)

EXERCISES = (EXERCISE,)
