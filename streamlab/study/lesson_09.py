"""Lesson 09, "What does your SDK do when the line drops?": its questions, and its exercise.

What the options say about an SDK is measured: `tests/test_lesson_09.py` asks the real ones.
"""

from __future__ import annotations

from streamlab.study import exercise_09
from streamlab.study.tasks import Option, Question

__all__ = ["EXERCISES", "QUESTIONS"]

QUESTIONS = (
    Question(
        "09-seven",
        'Seven ways to read the same kind of cut: the input stands at `"amount": 1` where 100000 '
        "was meant, and the body ends cleanly. A helper hands over a final message; a raw loop "
        "hands over pieces. How many of the seven raise an exception?",
        (
            Option(
                "None: the end is clean.",
                "That is what lesson 00 found, for one SDK. HTTP has nothing to complain about. "
                "But a helper may ask for its own final event, and one of the three does.",
            ),
            Option(
                "One.",
                "The helper for Responses: it looks for `response.completed` and raises where that "
                "never came. The other six hand over what there is.",
                right=True,
            ),
            Option(
                "Three: the helpers. They have to make a whole message.",
                "It looks like their job. Two of them make a message of whatever came: one with "
                "half a call as text, one with its JSON closed, and that one pays 1.",
            ),
            Option(
                "Four: the raw loops. They see every event.",
                "They see every event, so they could see that one is missing. But a loop only "
                "ends; to look at what came last is your part.",
            ),
        ),
        "One drop, seven clients",
    ),
    Question(
        "09-except",
        "The same loop, through the same helper. Which of these four does its `except` see? "
        "`error`: an error event of the provider. `odd-error`: an error event without its name. "
        "`token-limit`: the tokens run out inside the call. `empty`: HTTP 200 and no byte of body.",
        (
            Option(
                "All four.",
                "Each is a failure, and somebody knows of it. But an exception is raised by code "
                "that looks for one kind of failure, and nobody looks for all.",
            ),
            Option(
                "`error` and `odd-error`: they are errors.",
                "To a person both are. This SDK goes by the event's name, and without it the event "
                "is one of a kind that it does not know: passed over.",
            ),
            Option(
                "`error` and `empty`.",
                "The first is what the SDK looks for. The second trips over an `assert` of its "
                "own: an exception, if by accident. The other two pay 1.",
                right=True,
            ),
            Option(
                "Only `error`.",
                "It is the only one that the SDK reports on purpose. `empty` raises too: there is "
                "no message to hand over, and an `assert` says so.",
            ),
        ),
        "No exception, so it is right",
    ),
    Question(
        "09-catch",
        "The connection is reset in the middle of the answer. You want one `except` that sees it "
        "whichever of the three SDKs is used. Which does?",
        (
            Option(
                "The base class of each SDK: `(AnthropicError, OpenAIError, genai's APIError)`.",
                "It is what the base class seems to be for. But it holds only what the SDK itself "
                "raises, and two of the three let the HTTP library's exception through.",
            ),
            Option(
                "The HTTP library's: `httpx2.TransportError`.",
                "All three use it here, and two show it. The third, openai, wraps it into an "
                "exception of its own.",
            ),
            Option(
                "Python's: `(ConnectionError, TimeoutError)`.",
                "The socket does raise a `ConnectionResetError`, at the very bottom. It has been "
                "replaced, by the HTTP library, before anybody above can see it.",
            ),
            Option(
                "The HTTP library's and openai's: `(httpx2.TransportError, OpenAIError)`.",
                "One for the two that let it through, one for the one that wraps it. In the "
                "versions measured here, that is: it is nobody's promise.",
                right=True,
            ),
        ),
        "Which exception?",
    ),
    Question(
        "09-alive",
        "Between two events comes a keep-alive: a comment, which is a line that begins with a "
        "colon. The standard says to ignore it. All three SDKs are tried. What happens?",
        (
            Option(
                "Nothing: every client ignores it.",
                "It is in the standard, and it is the oldest keep-alive there is. But one of the "
                "three does not read event streams by the standard: it looks for JSON.",
            ),
            Option(
                "One SDK raises, always; the other two never do.",
                "The one is Gemini's: it takes a line that is no `data:` for an answer, and a "
                "comment is no JSON. But one of the others depends on what came before.",
            ),
            Option(
                "One SDK raises, always; another one does if an event before it had an `id`.",
                "Gemini's raises. And in openai's, a comment with its blank line counts as an "
                "event of no data once an `id` was seen: `''` is no JSON.",
                right=True,
            ),
            Option(
                "The answer ends early if an event before it had an `id`, and nothing raises.",
                "An answer that ends early without a word would be the worst of all. It was not "
                "seen: whoever does not ignore the comment raises.",
            ),
        ),
        "The keep-alive that kills",
    ),
    Question(
        "09-timeout",
        "A client has `timeout=1.0`, in seconds. The server sends a keep-alive each 0.1 seconds, "
        "and nothing else, for 1.5 seconds. Then the rest of the answer comes. What does the "
        "program get?",
        (
            Option(
                "A timeout, after 1 second.",
                "The name suggests it. But this number is compared with the time since the last "
                "byte, and there was one a tenth of a second ago.",
            ),
            Option(
                "The whole answer.",
                "The timeout is per read. While anything comes, however useless, the clock starts "
                "again: keep-alives could go on all night.",
                right=True,
            ),
            Option(
                "A timeout, after 2.5 seconds: 1 second after the last keep-alive.",
                "So it would be if nothing had followed it. But then the rest came, at 1.5 "
                "seconds, and the clock started again once more.",
            ),
            Option(
                "Half an answer.",
                "Nobody ends anything here: the server goes on, and the client waits.",
            ),
        ),
        "How long it waits, and how it leaves",
    ),
    Question(
        "09-leave",
        "A loop over a raw stream is left with `break`: no `with` around it, nothing closed. Does "
        "the server see at once that the client is gone?",
        (
            Option(
                "Yes: nobody holds the stream any more, so Python closes it.",
                "With two of the SDKs it is so: the last reference goes, and the connection with "
                "it. openai's stream holds a reference to itself, in a circle.",
            ),
            Option(
                "No: the connection stays open until the program ends.",
                "It may be long, but not so long: the garbage collector comes by before.",
            ),
            Option(
                "It depends on the SDK: with openai's, when the garbage collector comes by.",
                "Until then the server writes on, and the tokens are paid for. A `with`, or a "
                "`close()`, ends it at once in all of them.",
                right=True,
            ),
            Option(
                "Yes: `break` closes an iterator.",
                "It does not. It only stops asking; the iterator stays as it is, and waits.",
            ),
        ),
        "How long it waits, and how it leaves",
    ),
)

EXERCISES = exercise_09.EXERCISES
