"""Lesson 10, "What happened in this stream, and in these ten thousand?": its questions.

Read next: `corpora.py`, the recordings of its cells; `exercise_10.py`, its exercise.
"""

from __future__ import annotations

from streamlab.study.exercise_10 import EXERCISES
from streamlab.study.tasks import Option, Question

__all__ = ["EXERCISES", "QUESTIONS"]

QUESTIONS = (
    Question(
        "10-layer",
        "The same three events once more, with three endings: `eof`, the body ends cleanly; `cut`, "
        "it stops in the middle, and HTTP says so; `cancelled`, the reader stopped reading. Which "
        "layers does the doctor name, in this order?",
        (
            Option(
                "The same one three times: the bytes are the same.",
                "They are, and so is what a program may do with them. But how a stream stopped is "
                "a fact too, and the best one there is about who stopped it.",
            ),
            Option(
                "Vendor, network, client.",
                "The vendor's server is the first that comes to mind. But it knows that its answer "
                "is not over: where it fails, it sends an error, or the connection breaks.",
            ),
            Option(
                "Gateway, network, client.",
                "A relay that loses its own connection often ends the body as if all were well: "
                "HTTP then says clean, and the answer says unfinished. The other two say it "
                "themselves.",
                right=True,
            ),
            Option(
                "Network, network, client.",
                "The line dropped, so it is the network: that is how it feels. But a line that "
                "drops never ends a body cleanly; somebody on the way did.",
            ),
        ),
        "One stream",
    ),
    Question(
        "10-log",
        "Three bad answers beside a good one, all with status 200. One stops inside its call, and "
        "the body ends cleanly; in one the provider reports an error halfway; one comes whole, but "
        "a proxy holds it back to the end. Which of them does such a log show to be bad?",
        (
            Option(
                "The first two: they have fewer bytes.",
                "Fewer than this good one. But nobody knows how long an answer was meant to be, so "
                "in a log they are two short answers.",
            ),
            Option(
                "The error alone: it has a status of its own.",
                "It would have, had it come before the first event. Status 200 has been sent by "
                "then, and cannot be taken back.",
            ),
            Option(
                "The last one: it takes longer.",
                "Its reader waits longer, for the first word. The last byte comes when it would "
                "have come anyway, and that is the time in the log.",
            ),
            Option(
                "None of them.",
                "Status, bytes and seconds are those of good answers. What is wrong is in the "
                "events, or in the times between them, and a log has neither.",
                right=True,
            ),
        ),
        "98 % are fine",
    ),
    Question(
        "10-held",
        "Four pieces of text come one by one, some 30 ms apart. Then nothing for two seconds. Then "
        "a tool call, in eight pieces, all of them at once. Who most likely held it back?",
        (
            Option(
                "A proxy: it collects.",
                "For the call alone, that is what it looks like. But the text went through the "
                "same proxy, and came piece by piece.",
            ),
            Option(
                "The network: a packet was lost.",
                "What comes behind a lost packet does wait, and then comes at once. But rarely for "
                "two seconds, and hardly ever just where a call begins.",
            ),
            Option(
                "The provider.",
                "Nothing on the way knows text from a call. Whoever writes the answer does, and "
                "some providers keep a call until they have checked its input.",
                right=True,
            ),
            Option(
                "Nobody: the model was thinking.",
                "It may have been. But then the call would have come as it was written, piece by "
                "piece, and not eight at once.",
            ),
        ),
        "Look inside",
    ),
    Question(
        "10-pace",
        "Through `off`, `on` and `gzip` the same text came. Through which of them does the model "
        "look fastest, by its time per output token?",
        (
            Option(
                "`off`: nothing slows it down.",
                "Here the number is honest: some 23 ms a token, the model's own pace. The other "
                "two divide a shorter time by as many tokens.",
            ),
            Option(
                "`on`.",
                "It does look twice as fast as it was. There is one that looks faster yet.",
            ),
            Option(
                "All the same: the model is the same.",
                "So is the time of the last word. But time per token begins at the first piece of "
                "the answer, and that one came late.",
            ),
            Option(
                "`gzip`.",
                "All of it came in one read, so between the first piece and the last no time "
                "passed: 0 ms a token, for an answer that kept its reader waiting to the end.",
                right=True,
            ),
        ),
        "The model, or the proxy?",
    ),
    Question(
        "10-many",
        "On Thursday, 6 of the 15 answers of `birch-2` went through a proxy that compresses. Which "
        "of its numbers does that move?",
        (
            Option(
                "`ttft_p99_s`, `buffered` and `good`.",
                "The slowest few, and what is said of each stream by itself. Six late ones are in "
                "the tail; the middle is held by the other nine.",
                right=True,
            ),
            Option(
                "`ttft_p50_s`, and with it all the others.",
                "Six late ones of fifteen are many. But the median is the eighth in order, and the "
                "first nine are not late.",
            ),
            Option(
                "`complete` and `good`.",
                "`good` it does move. But no word was lost on the way: a collected answer is whole "
                "in the end.",
            ),
            Option(
                "None: no single request failed.",
                "No request did, and so no log shows it. But the first word of six answers came "
                "with the last one, and a time to first text is there to see that.",
            ),
        ),
        "In these ten thousand",
    ),
)
