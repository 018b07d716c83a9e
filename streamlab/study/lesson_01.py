"""Lesson 01, "What are the six events for?": its questions, and its exercise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from streamlab.streams import faults, synth
from streamlab.streams.recording import Recording
from streamlab.study.tasks import Case, Exercise, Option, Question, Wrong

__all__ = ["EXERCISES", "QUESTIONS", "payloads"]

Payload = dict[str, Any]


def payloads(recording: Recording) -> list[Payload]:
    """The JSON of every frame, in order, just as the API documents it."""
    return [json.loads(frame.data) for frame in faults.frames(recording)]


QUESTIONS = (
    Question(
        "01-text",
        "`answer_text` was right about the greeting. The next stream holds a sentence, and then a "
        "request to run a tool. What will it print?",
        (
            Option(
                "The sentence, and nothing about the tool.",
                "A tool's input comes in deltas of another type, which have no `text`. So the "
                "part of the answer that wants to change something is lost without a sound.",
                right=True,
            ),
            Option(
                "The sentence, followed by the tool's JSON.",
                "It is a string in a delta too, so why not. But its field has another name, "
                "`partial_json`, exactly so that nobody shows it to a person by accident.",
            ),
            Option(
                "A `KeyError`.",
                'With `delta["text"]` you would get one, and be lucky. `.get("text", "")` is '
                "polite code that hides what it does not understand.",
            ),
            Option(
                "Nothing: a tool request has no text.",
                "An answer is a list of blocks, and one of them may be text beside a tool request. "
                "Models often say what they are about to do.",
            ),
        ),
        "Is a stream text, in pieces?",
    ),
    Question(
        "01-start",
        "HTTP said 200, and `message_start` is here, with an id, a model and token counts. What "
        "do you know about the answer?",
        (
            Option(
                "There will be one: HTTP said 200.",
                "HTTP said that before the first word was written. An overloaded server still has "
                "an `error` event, and it may be the very next one.",
            ),
            Option(
                "How long it will be: the token counts are there.",
                "The input is counted already. `output_tokens: 1` is only a placeholder, because "
                "nobody knows yet.",
            ),
            Option(
                "Its id and its model.",
                "That is all. Its content is an empty list, and its stop reason is null.",
                right=True,
            ),
            Option(
                "That it is a text.",
                "It is a message, and a message is a list of blocks. What each block is, its own "
                "`content_block_start` will say.",
            ),
        ),
        "What does message_start promise?",
    ),
    Question(
        "01-block-stop",
        "Frame 18 is the `content_block_stop` of the tool's block. Its input is whole and valid. "
        "Then the connection ends. May the label be changed?",
        (
            Option(
                "Yes: the input is whole.",
                "The input is, and that is what makes this so tempting. A stopped block is one "
                "part of a message; the message may go on, and it may still fail.",
            ),
            Option(
                "No: the block is over, the message is not.",
                "A stopped block may be parsed. Only a complete message may be judged at all, and "
                "only what passes the gates may be done.",
                right=True,
            ),
            Option(
                "Yes, if it fits the tool's schema.",
                "A schema judges the value. What is missing is not in the value: why did the "
                "model stop? Were more calls coming, or a refusal?",
            ),
            Option(
                "Yes, once nothing has come for a while.",
                "Silence is not an event. A slow stream, a dead one and a finished one are "
                "equally quiet; only one of the three has sent `message_stop`.",
            ),
        ),
        "Is a stopped block enough?",
    ),
    Question(
        "01-usage",
        "`message_start` said `output_tokens: 1`, and `message_delta` says `output_tokens: 20`. "
        "How many tokens did this answer take?",
        (
            Option(
                "21: the sum.",
                '"Delta" sounds like something to add. The counts are totals so far: a later '
                "one replaces an earlier one.",
            ),
            Option(
                "12: there were twelve deltas.",
                "A delta is as much text as was ready to be sent: half a word, three words, or "
                "nothing at all, like frame 10. It is not a token.",
            ),
            Option(
                "Nobody can know before the bill comes.",
                "It is true of an interrupted stream, where the last count never arrives. This one "
                "got to its `message_delta`.",
            ),
            Option(
                "20.",
                "The last count is the total. The 1 before it was a placeholder.",
                right=True,
            ),
        ),
        "Why did it stop, and what did it take?",
    ),
)

#: (name, the stream, whether it is complete, why)
_CASES: tuple[tuple[str, Callable[[], Recording], bool, str], ...] = (
    (
        "the six events",
        synth.six_events,
        True,
        "One block, started and stopped, a stop reason, the marker: this is all it takes.",
    ),
    (
        "a sentence and a tool call",
        synth.change_label,
        True,
        "Two blocks, both stopped, then a stop reason, then the marker.",
    ),
    (
        "pings, the last one after message_stop",
        lambda: faults.ping_flood(synth.greeting(), after=11, count=2),
        True,
        "A ping may come anywhere, even last. It says nothing about the message.",
    ),
    (
        "ended after the last block stopped",
        lambda: faults.disconnect(synth.change_label(), after=18),
        False,
        "Every block has stopped, and still nobody knows why the model did, or whether it did.",
    ),
    (
        "ended after the stop reason",
        lambda: faults.disconnect(synth.change_label(), after=19),
        False,
        "The stop reason comes before the end, not at it. The marker is `message_stop`.",
    ),
    (
        "one block never stopped",
        lambda: faults.skip(synth.change_label(), 18),
        False,
        "The marker came, but a block that started has not stopped: a frame was lost on the way, "
        "so who knows what else was.",
    ),
    (
        "no stop reason",
        lambda: faults.no_stop_reason(synth.change_label()),
        False,
        "The marker came, but the stop reason is null: the message does not say why it ended.",
    ),
    (
        "message_stop before the stop reason",
        lambda: faults.reorder(synth.six_events(), frame=5),
        False,
        "All six events came, but in another order. `message_stop` ends the message: when a reason "
        "comes behind it, something moved on the way, and you cannot know what else did.",
    ),
    ("nothing came at all", Recording, False, "An empty list is no message."),
)


def _cases() -> tuple[Case, ...]:
    return tuple(
        Case(name, _types_and_reasons(payloads(stream())), expected, if_wrong)
        for name, stream, expected, if_wrong in _CASES
    )


def _types_and_reasons(events: list[Payload]) -> tuple[list[str], list[str | None]]:
    ends = [event for event in events if event["type"] == "message_delta"]
    return [event["type"] for event in events], [end["delta"]["stop_reason"] for end in ends]


def _all_stopped(types: list[str]) -> bool:
    return types.count("content_block_start") == types.count("content_block_stop")


def is_complete(types: list[str], reasons: list[str | None]) -> bool:
    """The solution: every block stopped, a reason was given, and the marker came last."""
    types = [name for name in types if name != "ping"]
    return _all_stopped(types) and any(reasons) and types[-1:] == ["message_stop"]


EXERCISES = (
    Exercise(
        "01-ex",
        _cases,
        is_complete,
        (
            Wrong("never", lambda types, reasons: False, "the six events"),
            Wrong(
                "something came",
                lambda types, reasons: bool(types),
                "ended after the last block stopped",
            ),
            Wrong(
                "the last event is message_stop",
                lambda types, reasons: types[-1] == "message_stop",
                "pings, the last one after message_stop",
            ),
            Wrong(
                "every block stopped",
                lambda types, reasons: _all_stopped(types),
                "ended after the last block stopped",
            ),
            Wrong(
                "a reason was given",
                lambda types, reasons: any(reasons),
                "ended after the stop reason",
            ),
            Wrong(
                "the marker came",
                lambda types, reasons: "message_stop" in types,
                "one block never stopped",
            ),
            Wrong(
                "message_delta and message_stop came",
                lambda types, reasons: {"message_delta", "message_stop"} <= set(types),
                "one block never stopped",
            ),
            Wrong(
                "the marker came, and a reason",
                lambda types, reasons: "message_stop" in types and any(reasons),
                "one block never stopped",
            ),
            Wrong(
                "the marker came, and every block stopped",
                lambda types, reasons: "message_stop" in types and _all_stopped(types),
                "no stop reason",
            ),
            Wrong(
                "all three, in any order",
                lambda types, reasons: (
                    _all_stopped(types) and any(reasons) and "message_stop" in types
                ),
                "message_stop before the stop reason",
            ),
            Wrong("it returns nothing", lambda types, reasons: None, "the six events"),
        ),
    ),
)
