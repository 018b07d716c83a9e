"""The exercise of lesson 03: blocks from events; its cases, its solution, and answers people give.

`assemble` is all that it takes, in a dozen lines. Each wrong answer is the same loop with one thing
changed, and each has the case that catches it.

Read next: `consumer/turn.py`, which does it for every kind of block, and for every wire format.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any

from streamlab.streams import faults, synth
from streamlab.streams.recording import Recording
from streamlab.study.lesson_01 import Payload, payloads
from streamlab.study.prefixes import lenient, strict
from streamlab.study.tasks import Case, Wrong

__all__ = ["CASES", "WRONG", "assemble", "cases", "fragment", "fragments", "side_by_side"]

Blocks = dict[int, Any]

#: The field of a delta that holds its fragment; each type of delta has its own.
FRAGMENTS = ("text", "partial_json", "thinking", "signature")


def fragment(event: Payload) -> str:
    """The fragment that a delta brings, whatever its field is called; "" of any other event."""
    delta = event.get("delta", {})
    return next((delta[name] for name in FRAGMENTS if name in delta), "")


def fragments(recording: Recording, index: int) -> list[str]:
    """The fragments of one block in order, but for the empty ones."""
    found = (fragment(event) for event in payloads(recording) if event.get("index") == index)
    return [each for each in found if each]


def side_by_side() -> Recording:
    """Two texts whose fragments come mixed: what the lesson begins with."""
    texts = [synth.Text(("Ship W-7", " and W-9")), synth.Text(("Hold W-8",))]
    return faults.interleave(synth.answer(texts, style=synth.Style(pings=0)), seed=3)


def _second_first() -> Recording:
    texts = [synth.Text(("One",)), synth.Text(("Two",))]
    both = faults.interleave(synth.answer(texts, style=synth.Style(pings=0)), seed=0)
    return faults.reorder(both, frame=2)


def _call(*fragments: str) -> Callable[[], Recording]:
    return lambda: synth.answer([synth.ToolCall("pay", fragments)])


PAY = "I'll pay INV-17."

#: (name, the stream, what is assembled, why)
CASES: tuple[tuple[str, Callable[[], Recording], Blocks, str], ...] = (
    ("a text", synth.six_events, {0: "Hello!"}, "One block, number 0, and it has stopped."),
    (
        "a sentence and a call",
        synth.change_label,
        {
            0: "I'll mark W-7 as ready for review.",
            1: {"item": "W-7", "label": "Ready for review"},
        },
        "A text is its fragments, joined as they came. A tool's are JSON: parse what they make.",
    ),
    (
        "a text that looks like JSON",
        lambda: synth.answer([synth.Text('{"item": "W-7"}')]),
        {0: '{"item": "W-7"}'},
        "The start of a block says what it is. A text stays a text, whatever it looks like.",
    ),
    (
        "two blocks side by side",
        side_by_side,
        {0: "Ship W-7 and W-9", 1: "Hold W-8"},
        "Each delta has an index, and it says whose fragment this is. The order says nothing.",
    ),
    (
        "the second block starts first",
        _second_first,
        {0: "One", 1: "Two"},
        "A block's number is its index, wherever in the stream it starts.",
    ),
    (
        "two equal fragments",
        _call('{"amount": 1', "00", "00", "0}"),
        {0: {"amount": 100000}},
        "Two fragments may be equal and both be meant. Equal text is no repetition.",
    ),
    (
        "a call without any input",
        _call(),
        {0: {}},
        "A tool may need no input. Then nothing comes before the stop, and the input is {}.",
    ),
    (
        "the connection ends inside the input",
        lambda: faults.disconnect(synth.pay_invoice(), after=11),
        {0: PAY},
        "Block 1 never stopped, so it is not in the result: what came of it means nothing yet.",
    ),
    (
        "the connection ends before the stop",
        lambda: faults.disconnect(synth.pay_invoice(), after=13),
        {0: PAY},
        "All the JSON is there, and it parses. But its block has not stopped, and only the stop "
        "says that no more will come.",
    ),
    (
        "the tokens run out inside the input",
        lambda: faults.token_limit(synth.pay_invoice(), after=11),
        {0: PAY, 1: None},
        "The block has stopped, but its JSON is cut. It is None then: nobody completes it.",
    ),
    (
        "an event of a new type",
        lambda: faults.unknown(synth.six_events(), after=2),
        {0: "Hello!"},
        "An event that you do not know is stepped over, and what comes after it still counts.",
    ),
)


def cases() -> tuple[Case, ...]:
    return tuple(
        Case(name, (payloads(stream()),), expected, if_wrong)
        for name, stream, expected, if_wrong in CASES
    )


def assemble(events: list[Payload]) -> Blocks:
    """The solution: collect by index, and read a block when it has stopped."""
    kinds: dict[int, str] = {}
    texts: dict[int, str] = {}
    done: Blocks = {}
    for event in events:
        index = event.get("index", -1)
        if event["type"] == "content_block_start":
            kinds[index], texts[index] = event["content_block"]["type"], ""
        elif event["type"] == "content_block_delta":
            texts[index] += fragment(event)
        elif event["type"] == "content_block_stop":
            text = texts[index]
            done[index] = strict(text) if kinds[index] == "tool_use" else text
    return done


# --- Answers that people give ---------------------------------------------------------------------

Place = Callable[[int, list[int]], int]
Read = Callable[[str, str], Any]


def _read(kind: str, text: str) -> Any:
    return strict(text) if kind == "tool_use" else text


def _reads_inputs(read: Callable[[str], Any]) -> Read:
    return lambda kind, text: read(text) if kind == "tool_use" else text


def _assembler(
    place: Place = lambda index, started: index,
    append: Callable[[str, str], str] = add,
    read: Read = _read,
    early: Read | None = None,
    stops: bool = True,
    ends_at: str = "",
) -> Callable[[list[Payload]], Blocks]:
    """The solution with one thing changed: which block, how to append, how and when to read."""

    def answer(events: list[Payload]) -> Blocks:
        started: list[int] = []
        kinds: dict[int, str] = {}
        texts: dict[int, str] = {}
        done: Blocks = {}
        for event in events:
            if event["type"] == ends_at:
                break
            index, kind = event.get("index", -1), event["type"]
            if kind == "content_block_start":
                started.append(index)
                index = place(index, started)
                kinds[index], texts[index] = event["content_block"]["type"], ""
            elif kind == "content_block_delta":
                index = place(index, started)
                texts[index] = append(texts[index], fragment(event))
                value = early(kinds[index], texts[index]) if early else None
                if value is not None:
                    done[index] = value
            elif kind == "content_block_stop" and stops:
                index = place(index, started)
                done[index] = read(kinds[index], texts[index])
        return done if stops or early else {n: read(kinds[n], texts[n]) for n in texts}

    return answer


def _once(text: str, piece: str) -> str:
    return text if text.endswith(piece) else text + piece


WRONG = (
    Wrong("it returns nothing", lambda events: None, "a text"),
    Wrong("the JSON stays text", _assembler(read=lambda kind, text: text), "a sentence and a call"),
    Wrong(
        "each fragment is stripped",
        _assembler(append=lambda text, piece: text + piece.strip()),
        "a sentence and a call",
    ),
    Wrong(
        "what parses is parsed",
        _assembler(read=lambda kind, text: strict(text) or _read(kind, text)),
        "a text that looks like JSON",
    ),
    Wrong(
        "append to the block that started last",
        _assembler(place=lambda index, started: started[-1]),
        "two blocks side by side",
    ),
    Wrong(
        "number the blocks as they arrive",
        _assembler(place=lambda index, started: started.index(index)),
        "the second block starts first",
    ),
    Wrong("an equal fragment is a repetition", _assembler(append=_once), "two equal fragments"),
    Wrong(
        "no input is no value",
        _assembler(read=_reads_inputs(lambda text: strict(text) if text else None)),
        "a call without any input",
    ),
    Wrong(
        "parse leniently at every delta",
        _assembler(early=_reads_inputs(lenient), stops=False),
        "the connection ends inside the input",
    ),
    Wrong(
        "the stops do not matter", _assembler(stops=False), "the connection ends inside the input"
    ),
    Wrong(
        "an input counts as soon as it parses",
        _assembler(early=lambda kind, text: strict(text) if text and kind != "text" else None),
        "the connection ends before the stop",
    ),
    Wrong(
        "read leniently at the stop",
        _assembler(read=_reads_inputs(lenient)),
        "the tokens run out inside the input",
    ),
    Wrong(
        "close the brace that is missing",
        _assembler(read=_reads_inputs(lambda text: strict(text) or strict(text + "}") or {})),
        "the tokens run out inside the input",
    ),
    Wrong(
        "stop at what is not known", _assembler(ends_at="future_event"), "an event of a new type"
    ),
)
