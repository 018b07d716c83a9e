"""Lesson 00, "Why did the SDK hand me `amount: 1`?": its questions, and its exercise.

What the options say about the SDK is measured: `tests/test_questions.py` asks the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlab.streams import faults, synth
from streamlab.streams.recording import Recording
from streamlab.study.sdk import ask_sdk
from streamlab.study.tasks import Case, Exercise, Option, Question, Wrong

__all__ = ["EXERCISES", "QUESTIONS"]

QUESTIONS = (
    Question(
        "00-sdk",
        'The last fragment that arrives ends in `"amount": 1`. Then the server ends its HTTP '
        "answer cleanly. What does the SDK's `get_final_message()` do?",
        (
            Option(
                "It raises an exception.",
                "Most people expect that, because an HTTP library raises when a body is cut "
                "short. This body was not: it ended with its proper end mark. Only the answer "
                "inside has no end, and the SDK does not look for that.",
            ),
            Option(
                "It returns the message without the unfinished call.",
                "Careful, and a good idea. But the SDK puts a block into the message when it "
                "starts, and takes none out again.",
            ),
            Option(
                "It asks the server again.",
                "It does try again, twice, but only while no answer has begun. Once bytes have "
                "come, a second request could be a second payment, and it leaves that to you.",
            ),
            Option(
                'It returns the call, with `"amount": 1`.',
                "After every fragment the SDK reads the unfinished JSON as far as it goes. What "
                "it had read last is what you are given.",
                right=True,
            ),
        ),
        "The story",
    ),
    Question(
        "00-endings",
        "The same frames, but the connection stops less politely: `cut` closes it inside the "
        "HTTP body, `reset` tears it down. With `eof`, the clean end, that makes three. Where "
        "does a loop over the SDK's stream raise?",
        (
            Option(
                "Nowhere.",
                "After the first surprise a fair guess. But HTTP notices when its own body is not "
                "whole, and the SDK lets that exception through.",
            ),
            Option(
                "For `cut` and `reset`.",
                "Both are faults of HTTP, so the HTTP library raises. A clean end is no fault, "
                "and so the one ending that looks best is the one that says nothing.",
                right=True,
            ),
            Option(
                "Only for `reset`.",
                "A reset is louder. But a cut is noticed too: HTTP announces the length of each "
                "chunk and ends with an empty one, and that one never came.",
            ),
            Option(
                "For all three, because the loop sees every event.",
                "Reading the events is the right direction. But a loop that runs out of events "
                "just ends; it is you who must look at which one came last.",
            ),
        ),
        "Which endings are silent?",
    ),
    Question(
        "00-schema",
        "While the input grows, the SDK offers it after every fragment, as `event.snapshot`. Say "
        "your schema wants an `invoice` and an `amount`. How many of the six snapshots pass?",
        (
            Option(
                "One: the last.",
                "So it would be with a strict JSON parser, which refuses everything before the "
                "last brace. This parser is made for unfinished JSON: it gives you a valid value "
                "all the time.",
            ),
            Option(
                "Two: those with `100000`.",
                "You would not take the 1 for an amount, because you know what comes. A schema "
                "does not: 1 is as good a number as 100000.",
            ),
            Option(
                "Three.",
                "With `1`, with `100000`, and with the currency. A schema looks at the value that "
                "is there; it cannot see that five zeros are still on their way.",
                right=True,
            ),
            Option(
                "None: nothing may be validated before the end.",
                "That is the right rule, and nothing enforces it. The value is there, and a "
                "validator takes what it is given.",
            ),
        ),
        "Can a schema help?",
    ),
    Question(
        "00-loop",
        "`for event in stream:` ends without an exception. What does that prove?",
        (
            Option(
                "That no more bytes will come; nothing about the message.",
                "The loop is about the connection. The message says for itself when it is "
                "complete, by an event of its own, and you must have seen that one.",
                right=True,
            ),
            Option(
                "That the message is complete.",
                "It is true on every good day, and so it passes every test that only knows good "
                "days. The broken stream ended its loop in just the same way.",
            ),
            Option(
                "That the model has finished writing.",
                "The model may have gone on for a while: the zeros were written. They never got "
                "here.",
            ),
            Option(
                "That the server has sent all it wanted to send.",
                "Between you and that server there are others, and each may end the connection "
                "cleanly after half an answer: it is only closing its own door.",
            ),
        ),
        "The loop ended. So what?",
    ),
)

#: What each case of the exercise is called: (name, how to break the stream, ours, why).
_CASES: tuple[tuple[str, Callable[[Recording], Recording], bool, str], ...] = (
    (
        "the whole stream",
        lambda whole: whole,
        True,
        "All of it came, and the model stopped in order to use the tool. A guard that refuses "
        "this one refuses every payment.",
    ),
    (
        "ended inside the number",
        lambda whole: faults.disconnect(whole, after=11),
        False,
        "The loop ended and the input is a valid value, but the message never said that it was "
        "complete. Look at how the whole stream's list of names ends.",
    ),
    (
        "ended after the call's block had stopped",
        lambda whole: faults.disconnect(whole, after=14),
        False,
        "The call is whole, and even right. The message is not: more blocks could have come, and "
        "nobody has said yet why the model stopped.",
    ),
    (
        "only the last frame lost",
        lambda whole: faults.disconnect(whole, after=15),
        False,
        "The stop reason came, so the message looks complete. The event that completes it did "
        "not, so something went wrong, and you cannot know how much.",
    ),
    (
        "token limit inside the number",
        lambda whole: faults.token_limit(whole, after=11),
        False,
        "Every event came, the last one too, and the amount is 1 all the same: the model was out "
        "of tokens. The events cannot tell you that; `message.stop_reason` can.",
    ),
    (
        "a greeting, without a call",
        lambda whole: synth.greeting(),
        False,
        "A whole answer, but there is no call in it: the model stopped because it was done.",
    ),
)


def _cases() -> tuple[Case, ...]:
    """What the real SDK gives for each stream."""
    whole = synth.pay_invoice()
    heard = [ask_sdk(broken(whole)) for _, broken, _, _ in _CASES]
    return tuple(
        Case(name, (list(answer.names), answer.message), expected, if_wrong)
        for (name, _, expected, if_wrong), answer in zip(_CASES, heard, strict=True)
    )


def is_whole_call(names: list[str], message: Any) -> bool:
    """The solution: the message said that it is complete, and that it wants the tool to run."""
    return "message_stop" in names and message.stop_reason == "tool_use"


EXERCISES = (
    Exercise(
        "00-ex",
        _cases,
        is_whole_call,
        (
            Wrong("the loop ended", lambda names, message: True, "ended inside the number"),
            Wrong("never", lambda names, message: False, "the whole stream"),
            Wrong(
                "the input has an amount",
                lambda names, message: "amount" in message.content[-1].input,
                "ended inside the number",
            ),
            Wrong(
                "a block stopped",
                lambda names, message: "content_block_stop" in names,
                "ended inside the number",
            ),
            Wrong(
                "all blocks stopped",
                lambda names, message: names.count("content_block_stop") == len(message.content),
                "ended after the call's block had stopped",
            ),
            Wrong(
                "it has a stop reason",
                lambda names, message: message.stop_reason is not None,
                "only the last frame lost",
            ),
            Wrong(
                "the stop reason is tool_use",
                lambda names, message: message.stop_reason == "tool_use",
                "only the last frame lost",
            ),
            Wrong(
                "message_stop came",
                lambda names, message: "message_stop" in names,
                "token limit inside the number",
            ),
            Wrong(
                "message_stop came, and no token limit",
                lambda names, message: (
                    "message_stop" in names and message.stop_reason != "max_tokens"
                ),
                "a greeting, without a call",
            ),
            Wrong("it returns nothing", lambda names, message: None, "the whole stream"),
        ),
    ),
)
