"""Lesson 05, "When may I act?": its questions, one for each acceptance sequence.

An option is a bare state: a reason in some of them would give the right one away.

Read next: `exercise_05.py`, its exercise; `acceptance.py`, which plays the sequences.
"""

from __future__ import annotations

from streamlab.study.exercise_05 import EXERCISES
from streamlab.study.tasks import Option, Question

__all__ = ["EXERCISES", "QUESTIONS"]

WHOLE, TERMS, ONCE = "Is it whole?", "Can it come back?", "How often did it happen?"

QUESTIONS = (
    Question(
        "05-r1",
        "`open_block_looks_whole`: frame 17 has come. The fragments make "
        '`{"item": "W-7", "label": "Ready for review"}`, which parses and fits the schema. The '
        "block is still open, and so is the connection. Which state is it?",
        (
            Option(
                "`VALIDATED_PROPOSAL`.",
                "The input would pass every check, and that is what tempts. But a check sees a "
                "value, and not what is still on its way. The gates wait for a whole answer.",
            ),
            Option(
                "`PREVIEW`.",
                "The block has not stopped, so its input is not even parsed. It may be shown. "
                "Nothing may be done with it yet.",
                right=True,
            ),
            Option(
                "`MESSAGE_COMPLETE`.",
                "All of the input is there, but at frame 17 nobody can know that. A further call "
                "may follow, or an error, or `max_tokens`. Only the message's own marker tells.",
            ),
            Option(
                "`HELD`.",
                "It does wait, but `HELD` is final: not acceptable here, or not clear enough. An "
                "attempt that still waits for the rest is in `PREVIEW`.",
            ),
        ),
        WHOLE,
    ),
    Question(
        "05-r2",
        "`whole_proposal`: both blocks stopped, the stop reason is `tool_use`, `message_stop` "
        "came, the connection ended. The tool is permitted, and Ada may relabel W-7. Which state?",
        (
            Option(
                "`COMMITTED`.",
                "Nothing is in the way, so it looks done. But nobody has done anything yet: a "
                "stream has no effect. Somebody has to commit, and that is another step.",
            ),
            Option(
                "`HELD`.",
                "To wait for a person sounds careful. But `HELD` is final, and a program that "
                "holds everything is useless. A proposal is what a person can look at.",
            ),
            Option(
                "`MESSAGE_COMPLETE`.",
                "The attempt was there for a moment, when the marker came. Then the connection "
                "ended, the gates were asked, and each of them passed.",
            ),
            Option(
                "`VALIDATED_PROPOSAL`.",
                "A stream can lead no further than this: a proposal, which somebody may commit. "
                "If nobody does, nothing happens.",
                right=True,
            ),
        ),
        WHOLE,
    ),
    Question(
        "05-r3",
        "`dropped_after_block_stop`: frame 18 stops the tool's block, and its input is parsed. "
        "Then the connection is reset. Which state?",
        (
            Option(
                "`INCOMPLETE`.",
                "The connection stopped before the message did. The block is whole, but the block "
                "is not the answer.",
                right=True,
            ),
            Option(
                "`VALIDATED_PROPOSAL`.",
                "The input is whole, valid and hers to change. But nobody knows why the model "
                "stopped, or whether it did: more calls may have been on their way.",
            ),
            Option(
                "`INVALID`.",
                "A reset feels like an error. But nothing that came was wrong; there is only too "
                "little of it. `INVALID` is for an answer that contradicts something.",
            ),
            Option(
                "`PREVIEW`.",
                "The rest may still come, one hopes, but not over this connection. A retry brings "
                "a new answer, so it is a new attempt. This one can't go on.",
            ),
        ),
        WHOLE,
    ),
    Question(
        "05-r4",
        "`max_tokens_inside_tool_json`: the tokens run out inside the tool's JSON. The block is "
        "closed, the stop reason is `max_tokens`, and `message_stop` comes. Which state?",
        (
            Option(
                "`INCOMPLETE`.",
                "The JSON is cut off, but the message is not: every event came. `INCOMPLETE` "
                "would send somebody to look at the network. Here the limit was too low.",
            ),
            Option(
                "`INVALID`.",
                "The JSON does not parse, and a gate would say so. But an earlier gate looks at "
                "the stop reason, and the first one that does not pass decides.",
            ),
            Option(
                "`HELD`.",
                "The sequence is whole, but this application does not accept `max_tokens` as a "
                "reason to act. The marker alone would have let it pass.",
                right=True,
            ),
            Option(
                "`VALIDATED_PROPOSAL`.",
                "The marker came, but it only lets the answer be judged. The gates judge, and the "
                "second of them asks for the stop reason.",
            ),
        ),
        TERMS,
    ),
    Question(
        "05-r5",
        "`error_then_late_completion`: after frame 14 comes an `error` event. A moment later a "
        "callback of the same attempt says that the answer is complete. Which state?",
        (
            Option(
                "`MESSAGE_COMPLETE`.",
                "The last word seems to count. But callbacks and queues deliver late and in any "
                "order, so what comes last is chance. A final state stays.",
            ),
            Option(
                "`INVALID`.",
                "The error decided, and `INVALID` is final. What comes later is written down and "
                "changes nothing.",
                right=True,
            ),
            Option(
                "`HELD`.",
                "The two contradict each other, so it looks unclear. But the provider itself said "
                "that it failed, and one error is enough.",
            ),
            Option(
                "`INCOMPLETE`.",
                "The answer did break off. But here the provider said why, which a mere end of "
                "the connection does not. You may want to tell a person.",
            ),
        ),
        TERMS,
    ),
    Question(
        "05-r6",
        "`cancelled_then_more_arrives`: after frame 14 we cancel. What was on its way arrives all "
        "the same, `message_stop` included, then a late callback. Then somebody commits. "
        "Which state?",
        (
            Option(
                "`VALIDATED_PROPOSAL`.",
                "Every byte is there, so it looks like a pity to waste them. But somebody pressed "
                "stop, and was told that it is cancelled. That has to stay true.",
            ),
            Option(
                "`COMMITTED`.",
                "The commit came last. But a commit is legal in one state only. In any other it "
                "is refused, and nothing is submitted.",
            ),
            Option(
                "`INCOMPLETE`.",
                "The answer did stay unfinished when we cancelled. But it did not fail: we ended "
                "it by our own wish, and a person should be told just that.",
            ),
            Option(
                "`ABORTED`.",
                "The cancellation was accepted before any commit, so it won. The rest is late, and "
                "nothing was submitted.",
                right=True,
            ),
        ),
        TERMS,
    ),
    Question(
        "05-r7",
        "`delivered_twice`: the text comes as `ha`, `ha`, `!`; two of its frames are equal, byte "
        "for byte. A queue then hands over one of the two again, and `message_stop` again. "
        "What is there in the end?",
        (
            Option(
                "`VALIDATED_PROPOSAL`, with the text `haha!`.",
                "The two equal frames were two deliveries, so both count. What the queue repeated "
                "was handled before, under the same name, so it does not count again.",
                right=True,
            ),
            Option(
                "`VALIDATED_PROPOSAL`, with the text `ha!`.",
                "Equal content looks like a repetition, and dropping it looks tidy. But it loses "
                "what the model wrote: one of two equal zeros of an amount, too.",
            ),
            Option(
                "`VALIDATED_PROPOSAL`, with the text `hahaha!`.",
                "This is what a program gets that counts every delivery. A queue delivers once "
                "more when it is in doubt, and content must not depend on that.",
            ),
            Option(
                "`INVALID`, with the text `haha!`.",
                "`message_stop` was delivered twice, which looks like a broken order. But on the "
                "wire it came once. Its envelope is known, so it is not opened again.",
            ),
        ),
        ONCE,
    ),
    Question(
        "05-r8",
        "`answer_of_the_commit_lost`: the commit is submitted and the label is changed. On its way "
        "back the answer gets lost. Then the program asks whether there is a record. Which state, "
        "after how many submissions?",
        (
            Option(
                "`ABORTED`, after one submission.",
                "An exception looks like a failure. But that no answer came says nothing about "
                "the effect, which did happen.",
            ),
            Option(
                "`RECONCILING`, after one submission.",
                "The attempt was there as long as nobody asked. There is a record, so the doubt is "
                "over once it is found.",
            ),
            Option(
                "`COMMITTED`, after one submission.",
                "The program asked instead of trying again, and found the record. One submission, "
                "one effect, and no guess.",
                right=True,
            ),
            Option(
                "`COMMITTED`, after two submissions.",
                "Many retry loops do this. It ends well only where a key can have no second "
                "record. Elsewhere payments are made twice in this way.",
            ),
        ),
        ONCE,
    ),
)
