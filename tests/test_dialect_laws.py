"""One law for all wire formats: what was written reads back, however the bytes are split.

The writers and the readers share no code, so each law is about both.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamlab.analysis.judge import Outcome, judge
from streamlab.consumer.attempt import State
from streamlab.streams import synth
from streamlab.streams.parts import (
    Part,
    RedactedThinking,
    ServerToolCall,
    Style,
    Text,
    Thinking,
    ToolCall,
)
from streamlab.streams.recording import Chunk, Recording

OTHERS = ("openai-chat", "openai-responses", "gemini")
other_wires = pytest.mark.parametrize("wire", OTHERS)
seeds = st.integers(0, 2**32)

#: What a reader found or should have: kind, text (of a call: none), name, input.
Read = tuple[str, str | None, str, Any]


def meant(part: Part) -> Read:
    """What a part says, in the words of a segment."""
    match part:
        case Text():
            return "text", "".join(part.text), "", None
        case Thinking():
            return "thinking", "".join(part.thinking), "", None
        case RedactedThinking():
            return "thinking", "", "", None
        case ToolCall() | ServerToolCall():
            return "tool_call", None, part.name, input_of(part)
    raise AssertionError(f"{part} is on no wire but Claude's")


def input_of(part: ToolCall | ServerToolCall) -> Any:
    """The input of a call; None for JSON that was cut short."""
    if isinstance(part.input, dict):
        return part.input
    try:
        return json.loads("".join(part.input))
    except ValueError:
        return None


def segments(outcome: Outcome) -> list[Read]:
    """What the reader found, in the same words."""
    return [
        (s.kind, None if s.kind == "tool_call" else s.text, s.start.name, s.input)
        for s in outcome.turn.segments
    ]


def cut(source: Recording, size: int) -> Recording:
    """The recording in reads of `size` bytes."""
    data = source.data
    chunks = [Chunk(None, data[at : at + size]) for at in range(0, len(data), size)]
    return Recording(tuple(chunks), wire=source.wire)


def words(reads: list[Read]) -> list[str]:
    """What was read, in an order of its own: by what it says."""
    return sorted(map(repr, reads))


# --- Laws -----------------------------------------------------------------------------------------


@other_wires
@given(seed=seeds)
def test_a_random_answer_reads_back_as_it_was_meant(wire: str, seed: int) -> None:
    script, source = synth.random_answer(seed, wire)
    outcome = judge(source)
    assert words(segments(outcome)) == words([meant(part) for part in script])
    assert outcome.turn.complete
    rules = {p.rule for p in outcome.turn.facts.problems if p.severity != "note"}
    assert rules <= {"tool-input"}


@other_wires
@given(seed=seeds)
@example(seed=30)  # a thinking that starts before the text of the item before it
def test_segments_are_in_the_order_in_which_they_were_meant(wire: str, seed: int) -> None:
    script, source = synth.random_answer(seed, wire)
    assert segments(judge(source)) == [meant(part) for part in script]


@other_wires
@given(seed=seeds, size=st.integers(1, 5))
def test_a_random_answer_reads_the_same_in_any_split(wire: str, seed: int, size: int) -> None:
    _, source = synth.random_answer(seed, wire)
    whole, split = judge(cut(source, 1_000_000)), judge(cut(source, size))
    assert split.turn == whole.turn
    assert split.state == whole.state


@other_wires
@given(seed=seeds, kept=st.floats(0, 1, exclude_max=True))
def test_what_is_cut_is_never_complete(wire: str, seed: int, kept: float) -> None:
    _, source = synth.random_answer(seed, wire)
    data = said(source)
    outcome = judge(Recording.from_bytes(data[: int(kept * len(data))], wire=wire))
    assert not outcome.complete
    assert outcome.state in (State.INCOMPLETE, State.INVALID)
    assert outcome.proposals == ()


def said(source: Recording) -> bytes:
    """The bytes up to the last one that says something: no line end, and no keep-alive."""
    data = source.data.rstrip()
    while data.endswith(b": keep-alive"):
        data = data.removesuffix(b": keep-alive").rstrip()
    return data


# --- The story ------------------------------------------------------------------------------------


@other_wires
def test_the_story_is_the_same_on_every_wire(wire: str) -> None:
    here, claude = judge(synth.story(wire)), judge(synth.story())
    assert segments(here) == segments(claude)
    assert here.state == claude.state == State.VALIDATED_PROPOSAL
    assert proposed(here) == proposed(claude)
    assert here.turn.facts.stop_reason == claude.turn.facts.stop_reason == "tool_use"
    assert here.turn.facts.problems == ()


def proposed(outcome: Outcome) -> list[tuple[str, Any]]:
    return [(proposal.tool, proposal.input) for proposal in outcome.proposals]


@other_wires
def test_the_signature_of_the_story_is_kept_where_the_wire_has_one(wire: str) -> None:
    kept = [s.signature for s in judge(synth.story(wire)).turn.segments if s.signature]
    assert kept == ([] if wire == "openai-chat" else ["c3ludGhldGljLXNpZ25hdHVyZQ=="])


@other_wires
def test_a_token_limit_is_held_and_a_whole_call_is_proposed(wire: str) -> None:
    whole, limited = synth.story(wire), synth.story(wire, stop_reason="max_tokens")
    assert (judge(whole).state, judge(limited).state) == (State.VALIDATED_PROPOSAL, State.HELD)


STYLES = {
    "interleaved": Style(interleave=True),
    "ids in each delta": Style(repeat_ids=True),
    "usage in each chunk": Style(usage="each"),
    "no usage": Style(usage="none"),
    "a finish of its own": Style(finish="own"),
    "a finish with the last content": Style(finish="last"),
    "a JSON array": Style(form="array"),
    "arguments by path": Style(arguments="path"),
    "comments": Style(comments=5),
    "another name for thinking": Style(reasoning="reasoning"),
}


@other_wires
@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_a_style_changes_nothing_in_the_story(wire: str, style: Style) -> None:
    styled = judge(synth.story(wire, style=style))
    assert words(segments(styled)) == words(segments(judge(synth.story())))
    assert styled.state == State.VALIDATED_PROPOSAL


@other_wires
def test_tokens_are_in_one_meaning(wire: str) -> None:
    tokens = judge(synth.story(wire)).turn.facts.tokens
    assert (tokens.input, tokens.output, tokens.thinking) == (25, 32, 12)
    assert judge(synth.story()).turn.facts.tokens.output == 32


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_a_refusal_is_read_as_text_and_held(wire: str) -> None:
    outcome = judge(synth.answer([Text("I can't do that.", refusal=True)], wire=wire))
    assert outcome.turn.text == "I can't do that."
    assert outcome.turn.facts.stop_reason == "refusal"
    assert outcome.state == State.HELD
