"""Each wire format's words are its vendor's: an end that was cut short contradicts nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest

from streamlab.analysis.judge import Outcome, judge
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams import faults, synth
from streamlab.streams.edit import frames
from streamlab.streams.parts import Style
from streamlab.streams.recording import Recording
from streamlab.streams.voice import DONE, Payload, payload_of
from streamlab.streams.voices import VOICES, payloads, refused, voice_of
from streamlab.wire import reader

WIRES = tuple(synth.WRITERS)  #: the wires that whole answers can be written on
each_wire = pytest.mark.parametrize("wire", WIRES)
NEW = [wire for wire in WIRES if wire != "claude"]


@cache
def named(wire: str) -> dict[str, Recording]:
    """The lessons' answers, on this wire."""
    return {
        "greeting": synth.greeting(wire=wire),
        "change_label": synth.change_label(wire=wire),
        "parallel_tools": synth.parallel_tools(wire=wire),
        "thinking_then_tool": synth.thinking_then_tool(wire=wire),
        "by path": synth.pay_invoice(wire=wire, style=Style(arguments="path")),
    }


def nameless(recording: Recording) -> Recording:
    """The same bytes, and nobody says which wire they are from."""
    return msgspec.structs.replace(recording, wire=None)


def said(outcome: Outcome, *severities: str) -> set[str]:
    """The rules of the problems that were said, but for those that say what was cut."""
    found = {p.rule for p in outcome.turn.facts.problems if p.severity in severities}
    return found - {"tool-input"}


def content(outcome: Outcome) -> list[tuple[str, str, Any]]:
    """What an answer says, part by part."""
    return [(part.kind, part.text, part.input) for part in outcome.turn.segments]


# --- Which voice ----------------------------------------------------------------------------------


def test_every_wire_has_a_voice_of_its_name() -> None:
    assert {name: voice.wire for name, voice in VOICES.items()} == {
        name: name for name in reader.WIRES
    }


@each_wire
def test_the_voice_is_the_wires_and_else_the_contents(wire: str) -> None:
    for recording in named(wire).values():
        assert voice_of(recording) is voice_of(nameless(recording)) is VOICES[wire]


@pytest.mark.parametrize("data", [b"", b"<html>", b"data: 1\n\n", b"{}", b"[]"])
def test_where_nobody_can_tell_the_wire_claude_speaks(data: bytes) -> None:
    assert voice_of(Recording.from_bytes(data)).wire == "claude"


def test_the_wire_is_found_behind_many_bytes_of_comments() -> None:
    late = b": still here\n\n" * 2000 + synth.greeting(wire="gemini").data
    assert voice_of(Recording.from_bytes(late)).wire == "gemini"


@each_wire
def test_what_a_wire_cannot_have_is_one_plain_sentence(wire: str) -> None:
    for fault, why in VOICES[wire].cannot.items():
        assert fault in faults.FAULTS
        assert 30 < len(why) < 150 and why[0].isalpha() and not why.endswith(".")
        assert refused(named(wire)["greeting"], fault) == why
        with pytest.raises(UsageError, match=why):
            faults.FAULTS[fault].apply(named(wire)["greeting"])
        with pytest.raises(UsageError, match=why):
            faults.FAULTS[fault].here(named(wire)["greeting"], 2)


def test_no_other_wire_is_refused_what_claude_can_have() -> None:
    assert {wire: set(voice.cannot) for wire, voice in VOICES.items()} == {
        "claude": set(),
        "openai-chat": {"pause"},
        "openai-responses": {"no_stop_reason"},
        "gemini": {"index_gap", "interleave", "delta_after_stop"},
        "gemini-interactions": {"no_stop_reason", "refuse"},
    }


def test_done_is_no_payload_but_a_mark_of_its_own() -> None:
    chat = payloads(synth.greeting(wire="openai-chat"))
    assert chat[-1] is DONE
    pretender = frames(Recording.from_bytes(b"data: " + json.dumps(DONE).encode() + b"\n\n"))[0]
    assert payload_of(pretender) == DONE and payload_of(pretender) is not DONE


# --- An early end ---------------------------------------------------------------------------------

#: Wire, and what comes early -> the reason that is read back, in one vocabulary.
EARLY = {
    ("claude", "token_limit"): "max_tokens",
    ("claude", "refuse"): "refusal",
    ("claude", "pause"): "pause_turn",
    ("openai-chat", "token_limit"): "max_tokens",
    ("openai-chat", "refuse"): "content_filter",
    ("openai-responses", "token_limit"): "max_tokens",
    ("openai-responses", "refuse"): "content_filter",
    ("openai-responses", "pause"): "pause_turn",
    ("gemini", "token_limit"): "max_tokens",
    ("gemini", "refuse"): "content_filter",
}
each_early = pytest.mark.parametrize(("wire", "why"), EARLY, ids=map("-".join, EARLY))
BREAK: dict[str, Callable[[Recording, int], Recording]] = {
    "token_limit": faults.token_limit,
    "refuse": faults.refuse,
    "pause": faults.pause,
}


@each_early
def test_wherever_an_answer_ends_early_it_is_whole_and_its_reason_is_read(
    wire: str, why: str
) -> None:
    for source in named(wire).values():
        for after in range(len(frames(source)) + 1):
            try:
                broken = BREAK[why](source, after)
            except UsageError:
                continue
            outcome = judge(broken)
            assert (outcome.state, outcome.complete) == (State.HELD, True)
            assert outcome.turn.facts.stop_reason == EARLY[wire, why]
            open_call = {"ambiguous"} if wire == "gemini" else set()  # nothing can close it there
            assert said(outcome, "error", "warning") <= open_call
            assert not outcome.proposals


@each_wire
def test_what_came_before_an_early_end_stays_as_it_was(wire: str) -> None:
    """The Responses API says it all again; whatever differs would be a problem, and is none."""
    source = named(wire)["change_label"]
    end = next(n for n in range(len(frames(source)), 0, -1) if limits(source, n))
    whole, cut = judge(source).turn, judge(faults.token_limit(source, end)).turn
    assert cut.text == whole.text
    for after in filter(lambda n: limits(source, n), range(end)):
        shorter = judge(faults.token_limit(source, after)).turn
        assert whole.text.startswith(shorter.text)
        for call, full in zip(shorter.calls, whole.calls, strict=False):
            assert full.text.startswith(call.text) or call.text == "{}"


def limits(source: Recording, after: int) -> bool:
    """Whether the tokens can run out after a frame."""
    try:
        faults.token_limit(source, after)
    except UsageError:
        return False
    return True


def last_of(recording: Recording, count: int) -> list[Payload]:
    return payloads(recording)[-count:]


def test_on_chat_a_limit_is_a_finish_reason_then_the_usage_that_was_asked_for_then_done() -> None:
    tail = last_of(faults.token_limit(synth.change_label(wire="openai-chat"), 8), 3)
    (choice,) = tail[0]["choices"]
    assert (choice["delta"], choice["finish_reason"], tail[0]["usage"]) == ({}, "length", None)
    assert (tail[1]["choices"], tail[1]["usage"]["total_tokens"]) == ([], 33)
    assert tail[2] is DONE
    unasked = synth.change_label(wire="openai-chat", style=Style(usage="none"))
    reason, done = last_of(faults.token_limit(unasked, 8), 2)
    assert "usage" not in reason and reason["choices"][0]["finish_reason"] == "length"
    assert done is DONE


def test_on_responses_a_limit_closes_what_is_open_and_says_all_of_it_again() -> None:
    source = synth.change_label(wire="openai-responses")
    added = next(n for n, p in enumerate(payloads(source), 1) if "function_call" in str(p))
    broken = faults.token_limit(source, added + 2)
    tail = last_of(broken, 3)
    assert [event["type"].removeprefix("response.") for event in tail] == [
        "function_call_arguments.done",
        "output_item.done",
        "incomplete",
    ]
    arguments, item = tail[0]["arguments"], tail[1]["item"]
    assert arguments == '{"item": "W'
    assert (item["arguments"], item["status"]) == (arguments, "incomplete")
    response = tail[2]["response"]
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [it["status"] for it in response["output"]] == ["completed", "incomplete"]
    assert response["output"][1] == item
    numbers = [event["sequence_number"] for event in payloads(broken)]
    assert numbers == list(range(len(numbers)))


def test_on_responses_an_open_text_is_closed_part_by_part() -> None:
    broken = faults.refuse(synth.greeting(wire="openai-responses"), 6)
    tail = last_of(broken, 4)
    assert [event["type"].removeprefix("response.") for event in tail] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "incomplete",
    ]
    assert tail[0]["text"] == tail[1]["part"]["text"] == "Hello! What"
    assert tail[3]["response"]["incomplete_details"] == {"reason": "content_filter"}


@pytest.mark.parametrize(
    ("why", "reason"),
    [("token_limit", "MAX_TOKENS"), ("refuse", "SAFETY"), ("pause", "CONTINUATION")],
)
def test_on_gemini_an_early_end_is_one_chunk_with_a_finish_reason(why: str, reason: str) -> None:
    source = synth.greeting(wire="gemini")
    broken = BREAK[why](source, 3)
    (chunk,) = last_of(broken, 1)
    (candidate,) = chunk["candidates"]
    assert (candidate["finishReason"], len(frames(broken))) == (reason, 4)
    assert chunk["responseId"] == payloads(source)[0]["responseId"]


def test_a_pause_on_gemini_completes_nothing_here() -> None:
    outcome = judge(faults.pause(synth.greeting(wire="gemini"), 3))
    assert (outcome.state, outcome.complete) == (State.INCOMPLETE, False)


# --- Other words ----------------------------------------------------------------------------------

ERRORS = {
    "claude": "overloaded_error",
    "openai-chat": "server_error",
    "openai-responses": "server_error",
    "gemini": "503",
}


@each_wire
def test_an_error_has_the_vendors_name_and_shape(wire: str) -> None:
    outcome = judge(faults.error(synth.greeting(wire=wire), 4))
    assert outcome.state is State.INVALID
    assert outcome.turn.facts.error == f"{ERRORS[wire]}: Overloaded"
    limited = judge(faults.error(synth.greeting(wire=wire), 4, type="rate_limit_error"))
    assert limited.turn.facts.error.endswith(": Rate limit")
    own = judge(faults.error(synth.greeting(wire=wire), 4, type="of_our_own"))
    assert own.turn.facts.error.endswith(": Of our own")


@pytest.mark.parametrize("wire", NEW)
def test_where_a_wire_has_no_ping_a_proxy_sends_comments(wire: str) -> None:
    source = synth.greeting(wire=wire)
    flooded = faults.ping_flood(source, 3, count=5)
    assert [f.data for f in frames(flooded)] == [f.data for f in frames(source)]
    assert flooded.data.count(b": keep-alive") == 5


@each_wire
def test_an_unknown_event_is_one_more_frame_and_changes_nothing(wire: str) -> None:
    source = synth.change_label(wire=wire)
    for after in (1, 3, len(frames(source))):
        stranger = faults.unknown(source, after)
        assert len(frames(stranger)) == len(frames(source)) + 1
        assert content(judge(stranger)) == content(judge(source))


@pytest.mark.parametrize("wire", ["claude", "openai-chat", "gemini"])
def test_the_reason_is_left_out_and_nothing_else(wire: str) -> None:
    for style in (Style(), Style(finish="last")):
        source = synth.change_label(wire=wire, style=style)
        unsaid = faults.no_stop_reason(source)
        assert judge(unsaid).turn.facts.stop_reason in (None, "")
        assert len(frames(unsaid)) == len(frames(source))
        differ = [a for a, b in zip(payloads(source), payloads(unsaid), strict=True) if a != b]
        assert len(differ) == 1


def test_a_finish_reason_is_left_out_wherever_it_stands() -> None:
    unsaid = VOICES["gemini"].unsaid
    for before, after in {
        b'{"index":0,"finishReason":"STOP"}': b'{"index":0}',
        b'{"finishReason": "STOP", "index": 0}': b'{ "index": 0}',
        b'{"a":1,"finishReason":"STOP","index":0}': b'{"a":1,"index":0}',
        b'{"finishReason":"STOP"}': b"{}",
        b'{"text":"\\"finishReason\\":\\"STOP\\""}': b'{"text":"\\"finishReason\\":\\"STOP\\""}',
    }.items():
        assert unsaid(before) == after


@pytest.mark.parametrize("wire", ["claude", "openai-chat", "openai-responses"])
def test_a_gap_raises_the_numbers_from_one_on_and_nothing_else(wire: str) -> None:
    source = synth.parallel_tools(wire=wire)
    voice = VOICES[wire]

    def numbers(recording: Recording) -> list[int]:
        return [number for payload in payloads(recording) for number in voice.numbers(payload)]

    before = numbers(source)
    assert numbers(faults.index_gap(source, 1)) == [n + (n >= 1) for n in before]
    assert numbers(faults.index_gap(source, 0)) == [n + 1 for n in before]


def test_the_number_of_a_call_is_raised_wherever_its_key_stands() -> None:
    raw = (
        b'data: {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": '
        b'"\\"index\\": 0"}, "index": 0}]}, "index": 0}]}\n\n'
    )
    (frame,) = frames(Recording.from_bytes(raw))
    higher = VOICES["openai-chat"].raised(raw, payload_of(frame), 0)
    (choice,) = payload_of(frames(Recording.from_bytes(higher))[0])["choices"]
    (call,) = choice["delta"]["tool_calls"]
    assert (choice["index"], call["index"]) == (0, 1)
    assert call["function"]["arguments"] == '"index": 0'


def test_of_several_choices_each_that_runs_gets_its_reason() -> None:
    chunks = [{"choices": [{"index": n, "delta": {"content": "a"}}]} for n in (0, 1, 2)]
    ended = {"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}
    tail = VOICES["openai-chat"].early("token_limit", [*chunks, ended])
    assert [chunk["choices"][0]["index"] for chunk in tail if chunk is not DONE] == [0, 2]
    candidates = [{"candidates": [{"index": n}]} for n in (0, 1)]
    (last,) = VOICES["gemini"].early("token_limit", candidates)
    assert [it["index"] for it in last["candidates"]] == [0, 1]


#: Payloads of a wire, whether its form can hold [DONE] -> at which payload it is whole.
ENDS: dict[str, tuple[str, list[Payload], bool, int | None]] = {
    "chat: [DONE]": ("openai-chat", [{}, DONE], True, 1),
    "chat: no [DONE]": (
        "openai-chat",
        [{"choices": [{"index": 0, "finish_reason": "stop"}]}],
        True,
        None,
    ),
    "chat in lines: the last choice's reason": (
        "openai-chat",
        [
            {"choices": [{"index": 0}, {"index": 1}]},
            {"choices": [{"index": 1, "finish_reason": "stop"}]},
            {"choices": [{"index": 0, "finish_reason": "stop"}]},
        ],
        False,
        2,
    ),
    "gemini: the last candidate's reason": (
        "gemini",
        [
            {"candidates": [{"index": 0}, {"index": 1}]},
            {"candidates": [{"index": 0, "finishReason": "STOP"}]},
            {"candidates": [{"index": 1, "finishReason": "STOP"}]},
        ],
        True,
        2,
    ),
    "gemini: a pause": ("gemini", [{"candidates": [{"finishReason": "CONTINUATION"}]}], True, None),
    "gemini: a blocked prompt": (
        "gemini",
        [{"promptFeedback": {"blockReason": "SAFETY"}}],
        True,
        0,
    ),
    "responses: incomplete": ("openai-responses", [{}, {"type": "response.incomplete"}], True, 1),
    "responses: failed": ("openai-responses", [{"type": "response.failed"}], True, None),
}


@pytest.mark.parametrize(("wire", "said", "marked", "at"), ENDS.values(), ids=ENDS)
def test_the_end_of_an_answer_is_known(
    wire: str, said: list[Payload], marked: bool, at: int | None
) -> None:
    assert VOICES[wire].ended(said, marked) == at


# --- A wire that nobody writes whole answers on -------------------------------------------------


def interaction() -> Recording:
    """A text and a call, by hand."""

    def step(index: int, type: str, delta: Payload, **about: str) -> list[Payload]:
        return [
            {"event_type": "step.start", "index": index, "step": {"type": type, **about}},
            {"event_type": "step.delta", "index": index, "delta": delta},
            {"event_type": "step.stop", "index": index},
        ]

    about = {"id": "int_1", "model": "model-1"}
    events = [
        {"event_type": "interaction.created", "interaction": {**about, "status": "in_progress"}},
        *step(0, "model_output", {"type": "text", "text": "On it."}),
        *step(1, "function_call", {"type": "arguments_delta", "arguments": "{}"}, id="c", name="f"),
        {
            "event_type": "interaction.completed",
            "interaction": {**about, "status": "requires_action"},
        },
    ]
    voice = VOICES["gemini-interactions"]
    data = b"".join(voice.frame(event, "\n") for event in events)
    return Recording.from_bytes(data + b"event: done\ndata: [DONE]\n\n")


INTERACTIONS: dict[str, tuple[Callable[[Recording], Recording], str]] = {
    "whole": (lambda r: r, "VALIDATED_PROPOSAL"),
    "error": (lambda r: faults.error(r, 3), "INVALID"),
    "json_error": (lambda r: faults.json_error(r, 3), "INVALID"),
    "token_limit": (lambda r: faults.token_limit(r, 6), "HELD"),
    "pause": (lambda r: faults.pause(r, 3), "HELD"),
    "unknown": (lambda r: faults.unknown(r, 3), "VALIDATED_PROPOSAL"),
    "ping_flood": (lambda r: faults.ping_flood(r, 3), "VALIDATED_PROPOSAL"),
    "interleave": (lambda r: faults.interleave(r, 1), "VALIDATED_PROPOSAL"),
    "second_start": (lambda r: faults.second_start(r, 3), "INVALID"),
    "delta_after_stop": (lambda r: faults.delta_after_stop(r), "INVALID"),
    "index_gap": (lambda r: faults.index_gap(r, 1), "HELD"),
    "eof": (lambda r: faults.disconnect(r, 7), "INCOMPLETE"),
}


@pytest.mark.parametrize(("break_it", "state"), INTERACTIONS.values(), ids=INTERACTIONS)
def test_the_fifth_wire_breaks_in_its_own_words(
    break_it: Callable[[Recording], Recording], state: str
) -> None:
    assert judge(break_it(interaction())).state == state


#: What nobody sends, and a stranger's file may hold.
STRANGE: list[Payload] = [
    {},
    {"choices": 1, "candidates": "x", "type": [], "output_index": "0", "index": None},
    {"choices": [1, {"index": "0", "delta": 5, "finish_reason": []}], "candidates": [None, {}]},
    {"choices": [{"delta": {"tool_calls": [7, {"index": True}]}}], "promptFeedback": []},
    {"type": "response.output_item.added", "output_index": 0, "item": 5},
    {"type": "response.output_item.added", "output_index": 0, "item": {"content": 3}},
    {"type": "response.content_part.added", "output_index": 0, "content_index": {}, "part": {}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": -1, "delta": 9},
    {"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0},
    {"type": "response.created", "response": "no"},
]


@each_wire
def test_no_voice_fails_on_what_nobody_sends(wire: str) -> None:
    voice = VOICES[wire]
    for payload in STRANGE:
        assert isinstance(voice.begins(payload), bool)
        assert isinstance(voice.closes(payload), bool)
        assert {*voice.numbers(payload), *voice.starts(payload), *voice.stops(payload)} <= {0}
    for count in range(len(STRANGE) + 1):
        said = STRANGE[:count]
        written = [voice.error("x", said), voice.unknown("x", said), voice.again(said)]
        written += [voice.more(0, said), *voice.early("token_limit", said)]
        assert all(json.dumps(payload) for payload in written)
