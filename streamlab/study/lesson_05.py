"""Lesson 05, "When may I act?": its questions, one for each acceptance sequence.

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
                "`VALIDATED_PROPOSAL`: the input can be validated.",
                "It can, and it passes; that is what tempts. But a validator sees a value, and not "
                "what is still on its way. The gates are asked about a whole answer only.",
            ),
            Option(
                "`PREVIEW`, and nothing may be done yet.",
                "The block has not stopped, so this is not even parsed. It may be shown, "
                "and no more than that.",
                right=True,
            ),
            Option(
                "`MESSAGE_COMPLETE`: all of the input is there.",
                "With hindsight it is. At frame 17 nobody knows: a further call may follow, or an "
                "error, or `max_tokens`. Complete is what the message says of itself.",
            ),
            Option(
                "`HELD`: it has to wait.",
                "It does wait, but `HELD` is a last word: the answer is whole and not acceptable. "
                "Who is still waiting is in `PREVIEW`.",
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
                "`COMMITTED`: nothing is in the way.",
                "Nothing is, and still nobody has done anything. A stream never has an effect. "
                "Somebody has to commit, and that is another step.",
            ),
            Option(
                "`HELD`, until a person has looked at it.",
                "It sounds careful. But a consumer that holds everything is safe and useless, and "
                "fails here. A person may look now, because there is something to look at.",
            ),
            Option(
                "`MESSAGE_COMPLETE`: the marker came.",
                "It was that, for a moment. Then the connection ended, the gates were asked, and "
                "each of them passed.",
            ),
            Option(
                "`VALIDATED_PROPOSAL`, and no effect yet.",
                "This is as far as a stream can lead: a proposal, which somebody may commit. If "
                "nobody does, nothing happens.",
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
                "The transport stopped before the message did. That the block is whole changes "
                "nothing: parseable is not eligible.",
                right=True,
            ),
            Option(
                "`VALIDATED_PROPOSAL`.",
                "The input is whole, valid and hers to change. But nobody knows why the model "
                "stopped, or whether it did: more calls may have been on their way.",
            ),
            Option(
                "`INVALID`.",
                "A reset feels like an error. But nothing that came was wrong, there is only too "
                "little of it. `INVALID` is for an answer that contradicts something.",
            ),
            Option(
                "`PREVIEW`: the rest may still come.",
                "Not over this connection. A retry brings a new answer, so it is a new attempt; "
                "this one can't go on.",
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
                "`INCOMPLETE`: the JSON is cut off.",
                "The JSON is, the message is not: every event came. `INCOMPLETE` would send "
                "somebody to look at the network, and it is the limit that was too low.",
            ),
            Option(
                "`INVALID`: the JSON doesn't parse.",
                "It does not, and one of the gates would say so. An earlier one looks at the stop "
                "reason, and stops it there: not broken, but cut short.",
            ),
            Option(
                "`HELD`.",
                "The answer is whole, and its stop reason is not one that this application "
                "accepts. The marker alone would have let it pass.",
                right=True,
            ),
            Option(
                "`VALIDATED_PROPOSAL`: the marker came.",
                "The marker makes it eligible: it may be judged. The gates then judge, and the "
                "second of them asks for the reason.",
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
                "`MESSAGE_COMPLETE`: the last word counts.",
                "Callbacks and queues deliver late and in any order, so the last word is a matter "
                "of chance. What was settled stays settled.",
            ),
            Option(
                "`INVALID`, as it was before.",
                "The error settled it. `INVALID` is final: what comes later is written down "
                "and changes nothing.",
                right=True,
            ),
            Option(
                "`HELD`: the two contradict each other.",
                "They do, and somebody may look into it. But no second opinion is needed: the "
                "provider said that it failed, and one error is enough.",
            ),
            Option(
                "`INCOMPLETE`: the answer broke off.",
                "It did. But silence and an error are not the same: here the provider said what "
                "happened, and you may want to tell a person so.",
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
                "`VALIDATED_PROPOSAL`: all of it came.",
                "Every byte is there, so it looks like a pity to waste them. But somebody said "
                "stop, and was told that it is cancelled. That has to stay true.",
            ),
            Option(
                "`COMMITTED`: the commit came last.",
                "A commit is legal in one state only. In any other it is refused, whoever asks "
                "and whenever: nothing is submitted.",
            ),
            Option(
                "`INCOMPLETE`: we stopped too early.",
                "Both end it, and the reason is what differs. It did not fail: we ended it, by our "
                "own wish, and a person should be told just that.",
            ),
            Option(
                "`ABORTED`, and nothing was submitted.",
                "The cancellation was accepted before any commit, so it won. The rest is late.",
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
                "`VALIDATED_PROPOSAL`, and the text `haha!`.",
                "The two equal frames were two deliveries, so both count. What the queue repeated "
                "has an identity that was handled before, so it does not.",
                right=True,
            ),
            Option(
                "`VALIDATED_PROPOSAL`, and the text `ha!`.",
                "Equal content looks like a repetition, and dropping it looks tidy. It eats what "
                "the model wrote: every second zero of an amount, too.",
            ),
            Option(
                "`VALIDATED_PROPOSAL`, and the text `hahaha!`.",
                "So it is where every delivery counts. Queues deliver at least once, and after a "
                "doubt once more: content must not depend on their doubts.",
            ),
            Option(
                "`INVALID`: `message_stop` came twice.",
                "It was delivered twice; on the wire it came once. Its envelope is known, so "
                "nobody looks at what is in it.",
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
                "`ABORTED`, after one.",
                "An exception looks like a failure. It is none: no answer came, and that says "
                "nothing about the effect, which did happen.",
            ),
            Option(
                "`RECONCILING`, after one.",
                "That is where it was as long as nobody asked. There is a record, so the doubt is "
                "over once it is found.",
            ),
            Option(
                "`COMMITTED`, after one.",
                "It asked instead of trying again, and found the record. One submission, one "
                "effect, and no guess.",
                right=True,
            ),
            Option(
                "`COMMITTED`, after two.",
                "Most retry loops do this. It ends well only where whoever keeps the records keeps "
                "one a key; elsewhere it is how payments are made twice.",
            ),
        ),
        ONCE,
    ),
)
