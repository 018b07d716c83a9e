"""What the writers of OpenAI's and Google's formats write, the vendors' own clients read."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.errors import UsageError
from streamlab.streams import (
    answering,
    gaps,
    gemini_writer,
    openai_chat_writer,
    openai_responses_writer,
    random_answers,
    synth,
    writing,
)
from streamlab.streams.parts import (
    OtherBlock,
    Part,
    RedactedThinking,
    ServerToolCall,
    ServerToolResult,
    Style,
    Text,
    Thinking,
    ToolCall,
)
from streamlab.streams.recording import Recording
from tests import sdk_readers
from tests.sdk_readers import READERS, Said

seeds = st.integers(0, 2**32)
OTHERS = ("openai-chat", "openai-responses", "gemini")
STOPS = {
    "openai-chat": openai_chat_writer.STOPS,
    "openai-responses": openai_responses_writer.STOPS,
    "gemini": gemini_writer.STOPS,
}
every_wire = pytest.mark.parametrize("wire", synth.WRITERS)
other_wires = pytest.mark.parametrize("wire", OTHERS)


def whole(content: str | tuple[str, ...]) -> str:
    return "".join(content)


def check(script: tuple[Part, ...], said: Said) -> None:
    """Compare what a client read with what was meant."""
    texts = [part for part in script if isinstance(part, Text)]
    thoughts = [part for part in script if isinstance(part, Thinking)]
    calls = [part for part in script if isinstance(part, ToolCall)]
    assert said.text == "".join(whole(part.text) for part in texts if not part.refusal)
    assert said.refusal == "".join(whole(part.text) for part in texts if part.refusal)
    assert said.thinking == "".join(whole(part.thinking) for part in thoughts)
    assert [call[:2] for call in said.calls] == [(part.id, part.name) for part in calls]
    for part, (_, _, text) in zip(calls, said.calls, strict=True):
        if isinstance(part.input, dict):
            assert json.loads(text) == part.input
        else:
            assert text in (whole(part.input), json.dumps(part.input))


# --- What was meant comes back --------------------------------------------------------------------


@other_wires
@given(seed=seeds)
def test_the_vendors_client_reads_back_what_was_meant(wire: str, seed: int) -> None:
    script, source = synth.random_answer(seed, wire)
    if source.data.startswith(b"["):
        source = as_event_stream(source)
    said = READERS[wire](source)
    check(script, said)
    assert said.reason in STOPS[wire].values()


def as_event_stream(source: Recording) -> Recording:
    """The elements of a JSON array as an event stream, which is what the client asks for."""
    lines = [f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in json.loads(source.data)]
    return Recording.from_bytes("".join(lines).encode())


@other_wires
def test_the_story_is_read_by_the_vendors_client(wire: str) -> None:
    said = READERS[wire](synth.story(wire))
    assert said.thinking == "W-7 has passed its checks, so it can be reviewed."
    assert said.text == "I'll mark W-7 as ready for review."
    ((_, name, text),) = said.calls
    assert name == "change_label"
    assert json.loads(text) == {"item": "W-7", "label": "Ready for review"}
    assert said.reason == STOPS[wire]["tool_use"]


def test_chats_own_accumulator_reads_the_story() -> None:
    choice = sdk_readers.chat_message(synth.story("openai-chat"))
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I'll mark W-7 as ready for review."
    assert (call.id, call.function.name) == ("call_0007_2", "change_label")
    assert json.loads(call.function.arguments)["item"] == "W-7"


def test_responses_own_accumulator_reads_the_story() -> None:
    found = sdk_readers.response(synth.story("openai-responses"))
    thinking, message, call = found.output
    assert found.status == "completed"
    assert thinking.encrypted_content == "c3ludGhldGljLXNpZ25hdHVyZQ=="
    assert found.output_text == message.content[0].text == "I'll mark W-7 as ready for review."
    assert (call.id, call.call_id) == ("fc_0007_2", "call_0007_2")


NAMED = (
    "six_events",
    "greeting",
    "change_label",
    "pay_invoice",
    "parallel_tools",
    "thinking_then_tool",
    "long_text",
    "tool_json",
)


@other_wires
@pytest.mark.parametrize(
    "make",
    [
        synth.six_events,
        synth.greeting,
        synth.change_label,
        synth.pay_invoice,
        synth.parallel_tools,
        synth.thinking_then_tool,
        lambda **options: synth.long_text(500, **options),
        lambda **options: synth.tool_json(500, **options),
    ],
    ids=NAMED,
)
def test_every_named_recording_says_the_same_on_every_wire(wire: str, make: Any) -> None:
    message = by_claude(make())
    said = READERS[wire](make(wire=wire))
    assert (said.text, said.thinking) == message[:2]
    assert [(name, json.loads(text)) for _, name, text in said.calls] == message[2]


def by_claude(source: Recording) -> tuple[str, str, list[tuple[str, Any]]]:
    """The text, the thinking and the calls in a stream of Claude's, from its deltas."""
    texts: dict[str, str] = {"text": "", "thinking": ""}
    calls: list[list[str]] = []
    for line in source.data.splitlines():
        payload = json.loads(line[6:]) if line.startswith(b"data: ") else {}
        started = payload.get("content_block", {})
        calls += [[started["name"], ""]] if started.get("type") == "tool_use" else []
        delta = payload.get("delta", {})
        for kind in texts:
            texts[kind] += delta.get(kind, "")
        if "partial_json" in delta:
            calls[-1][1] += delta["partial_json"]
    read = [(name, json.loads(text)) for name, text in calls]
    return texts["text"], texts["thinking"], read


# --- Styles ---------------------------------------------------------------------------------------

CONTENT: tuple[Part, ...] = (
    Thinking("Which label?", "c2lnbmVk"),
    Text("W-7 \N{ROCKET} e\N{COMBINING ACUTE ACCENT}\N{LINE SEPARATOR}end"),
    ToolCall("change_label", {"item": "W-7", "label": "caf\u00e9 \N{GRINNING FACE}"}),
    ToolCall("set_all", {"rows": [{"n": 1, "ok": True}, None, "two"], 'a key\'s "name"': 0.5}),
    ToolCall("refresh", {}),
)

STYLES = {
    "as the vendor writes": Style(),
    "one character a fragment": Style(fragment=(1, 1)),
    "large fragments": Style(fragment=(1000, 1000)),
    "no empty first fragment": Style(first_empty=False),
    "one delta a call": Style(fragment=(1000, 1000), first_empty=False),
    "interleaved": Style(interleave=True),
    "escaped": Style(ascii=True),
    "LF": Style(newline="\n"),
    "CRLF": Style(newline="\r\n"),
    "usage in each chunk": Style(usage="each"),
    "usage in the last chunk": Style(usage="last"),
    "no usage": Style(usage="none"),
    "a finish of its own": Style(finish="own"),
    "a finish with the last content": Style(finish="last"),
    "ids in each delta": Style(repeat_ids=True),
    "comments": Style(comments=5),
    "arguments by path": Style(arguments="path"),
    **{f"reads of {name}": Style(chunking=name) for name in synth.CHUNKING},
}


@other_wires
@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_a_style_changes_nothing_that_is_meant(wire: str, style: Style) -> None:
    source = synth.answer(CONTENT, wire=wire, style=style)
    check(synth.identified(CONTENT, wire), READERS[wire](source))


def test_the_array_holds_the_chunks_of_the_event_stream() -> None:
    array = synth.answer(CONTENT, wire="gemini", style=Style(form="array"))
    stream = synth.answer(CONTENT, wire="gemini")
    assert array.data.startswith(b'[{\n  "candidates"')
    found = [json.loads(line[6:]) for line in stream.data.split(b"\r\n") if line]
    assert json.loads(array.data) == found


def test_a_servers_own_name_for_thinking_is_written() -> None:
    source = synth.story("openai-chat", style=Style(reasoning="reasoning"))
    deltas = [c.choices[0].delta for c in sdk_readers.chat_chunks(source) if c.choices]
    assert "".join(getattr(delta, "reasoning", "") for delta in deltas).startswith("W-7 has")


#: Wire, field, values that are none, what is said.
NO_STYLES = [
    ("openai-chat", "usage", "usage='sometimes' is none of each, last, none"),
    ("openai-chat", "finish", "finish='sometimes' is none of own, last"),
    ("gemini", "usage", "usage='sometimes' is none of"),
    ("gemini", "finish", "finish='sometimes' is none of"),
    ("gemini", "form", "form='sometimes' is none of sse, array"),
    ("gemini", "arguments", "arguments='sometimes' is none of whole, path"),
]


@pytest.mark.parametrize(("wire", "field", "said"), NO_STYLES)
def test_a_style_that_is_none_is_refused(wire: str, field: str, said: str) -> None:
    style = Style(**{field: "sometimes"})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=said):
        synth.answer(CONTENT, wire=wire, style=style)


def test_interleaved_calls_of_chat_mix_their_fragments() -> None:
    source = synth.parallel_tools(wire="openai-chat", style=Style(interleave=True))
    deltas = [chunk["choices"][0]["delta"] for chunk in payloads(source)[:-1]]
    numbers = [delta["tool_calls"][0]["index"] for delta in deltas if "tool_calls" in delta]
    assert numbers != sorted(numbers)


def test_interleaved_items_of_responses_mix_their_events() -> None:
    source = synth.parallel_tools(wire="openai-responses", style=Style(interleave=True))
    events = payloads(source)
    numbers = [event["output_index"] for event in events if "output_index" in event]
    started = [e["output_index"] for e in events if e["type"] == "response.output_item.added"]
    assert numbers != sorted(numbers)
    assert started == [0, 1, 2]


def test_ids_can_be_in_each_of_a_calls_deltas() -> None:
    source = synth.change_label(wire="openai-chat", style=Style(repeat_ids=True))
    deltas = [chunk["choices"][0]["delta"] for chunk in payloads(source)[:-1]]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert {(call["id"], call["function"]["name"]) for call in calls} == {
        ("call_0007_1", "change_label")
    }
    assert len(calls) == 8


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_comments_are_lines_of_their_own(wire: str) -> None:
    source = synth.six_events(wire=wire, style=Style(comments=3))
    assert source.data.split(b"\n\n").count(b": keep-alive") == 3


#: Wire, style -> how many chunks of the greeting count tokens, of how many.
COUNTED = [
    ("openai-chat", "", (1, 8)),
    ("openai-chat", "last", (1, 8)),
    ("openai-chat", "each", (7, 7)),
    ("openai-chat", "none", (0, 7)),
    ("gemini", "", (5, 5)),
    ("gemini", "each", (5, 5)),
    ("gemini", "last", (1, 5)),
    ("gemini", "none", (0, 5)),
]


@pytest.mark.parametrize(("wire", "usage", "expected"), COUNTED)
def test_usage_is_where_the_style_has_it(wire: str, usage: str, expected: tuple[int, int]) -> None:
    chunks = payloads(synth.greeting(wire=wire, style=Style(usage=usage)))
    counts = [chunk.get("usage") or chunk.get("usageMetadata") for chunk in chunks]
    assert (sum(map(bool, counts)), len(chunks)) == expected
    totals = [count.get("total_tokens") or count["totalTokenCount"] for count in counts if count]
    assert totals == sorted(totals)


@pytest.mark.parametrize(("wire", "own"), [("openai-chat", 8), ("gemini", 6)])
def test_a_finish_of_its_own_is_one_chunk_more(wire: str, own: int) -> None:
    styles = [Style(finish=finish) for finish in ("own", "last")]
    sizes = [len(payloads(synth.greeting(wire=wire, style=style))) for style in styles]
    assert sizes == [own, own - 1]


# --- Frames, as each vendor sends them ------------------------------------------------------------


def payloads(source: Recording) -> list[dict[str, Any]]:
    lines = source.data.replace(b"\r\n", b"\n").split(b"\n")
    data = [line[6:] for line in lines if line.startswith(b"data: ")]
    return [json.loads(line) for line in data if line != b"[DONE]"]


def test_chat_opens_with_the_role_and_ends_with_a_reason_a_count_and_the_marker() -> None:
    source = synth.change_label(wire="openai-chat")
    chunks = payloads(source)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert (chunks[-2]["choices"][0]["delta"], chunks[-2]["usage"]) == ({}, None)
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == 45
    assert source.data.endswith(b"\n\ndata: [DONE]\n\n")
    assert b"event:" not in source.data


def test_chat_names_a_call_once_and_then_only_its_index() -> None:
    deltas = [
        c["choices"][0]["delta"] for c in payloads(synth.change_label(wire="openai-chat"))[:-1]
    ]
    first, *more = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    function = {"name": "change_label", "arguments": ""}
    assert first == {"index": 0, "id": "call_0007_1", "type": "function", "function": function}
    assert {tuple(call) for call in more} == {("index", "function")}


def test_responses_numbers_its_events_and_names_each_by_its_type() -> None:
    source = synth.change_label(wire="openai-responses")
    events = payloads(source)
    names = [line[7:].decode() for line in source.data.split(b"\n") if line.startswith(b"event: ")]
    assert names == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert names[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert names[-3:] == [
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_responses_says_everything_again_at_the_end() -> None:
    events = payloads(synth.story("openai-responses"))
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done
    assert [item["type"] for item in done] == ["reasoning", "message", "function_call"]


def test_responses_says_what_a_text_cites() -> None:
    cited = Text("By the rules.", (synth.CITATION, synth.CITATION))
    events = payloads(synth.answer([cited], wire="openai-responses"))
    added = [event for event in events if event["type"].endswith("annotation.added")]
    assert [event["annotation_index"] for event in added] == [0, 1]
    assert [event["annotation"] for event in added] == [synth.CITATION] * 2
    (part,) = events[-1]["response"]["output"][0]["content"]
    assert part["annotations"] == [synth.CITATION] * 2


def test_responses_calls_only_the_last_item_of_a_truncated_answer_incomplete() -> None:
    parts: list[Part] = [Text("I'll mark it."), ToolCall("change_label", '{"item": "W-7", "lab')]
    response = payloads(synth.answer(parts, "max_tokens", wire="openai-responses"))[-1]["response"]
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]
    assert response["output"][1]["arguments"] == '{"item": "W-7", "lab'
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}


def test_responses_says_when_the_provider_runs_a_tool() -> None:
    call = ServerToolCall("web_search", {"query": "ledger"})
    events = payloads(synth.answer([call], wire="openai-responses"))
    kinds = [event["type"].removeprefix("response.") for event in events[2:-1]]
    assert list(dict.fromkeys(kinds)) == [
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.completed",
        "output_item.done",
    ]


def test_gemini_ends_with_a_reason_and_nothing_after_it() -> None:
    source = synth.story("gemini")
    chunks = payloads(source)
    assert all(line.startswith(b"data: {") for line in source.data.split(b"\r\n") if line)
    reasons = [chunk["candidates"][0].get("finishReason") for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["STOP"]
    assert all("usageMetadata" in chunk for chunk in chunks)


@pytest.mark.parametrize(("reason", "says"), [("end_turn", True), ("refusal", False)])
def test_gemini_ends_a_block_without_content(reason: str, says: bool) -> None:
    source = synth.answer([Text("so")], reason, wire="gemini", style=Style(finish="own"))
    assert ("content" in payloads(source)[-1]["candidates"][0]) == says


def test_gemini_counts_thinking_only_where_there_is_some() -> None:
    usage = payloads(synth.story("gemini"))[-1]["usageMetadata"]
    assert usage["thoughtsTokenCount"] + usage["candidatesTokenCount"] == 32
    assert "thoughtsTokenCount" not in payloads(synth.greeting(wire="gemini"))[-1]["usageMetadata"]


def test_gemini_signs_the_call_after_the_thinking() -> None:
    (part,) = payloads(synth.story("gemini"))[-1]["candidates"][0]["content"]["parts"]
    assert part["thoughtSignature"] == "c3ludGhldGljLXNpZ25hdHVyZQ=="
    assert part["functionCall"]["args"] == {"item": "W-7", "label": "Ready for review"}


def test_gemini_signs_an_empty_text_where_no_call_follows() -> None:
    source = synth.answer([Thinking("So.", "c2ln"), Text("Yes.")], wire="gemini")
    (part,) = payloads(source)[-1]["candidates"][0]["content"]["parts"]
    assert part == {"text": "", "thoughtSignature": "c2ln"}


def test_gemini_opens_and_closes_a_call_that_comes_by_path() -> None:
    call = ToolCall("pay", {"to": ("EU" * 9), "amount": 5})
    style = Style(arguments="path", fragment=(9, 9))
    source = synth.answer([call], wire="gemini", style=style)
    parts = [chunk["candidates"][0]["content"]["parts"][0] for chunk in payloads(source)]
    assert [part["functionCall"] for part in parts] == [
        {"name": "pay", "willContinue": True},
        by_path({"jsonPath": "$.to", "stringValue": "EUEUEUEUE", "willContinue": True}),
        by_path({"jsonPath": "$.to", "stringValue": "UEUEUEUEU"}),
        by_path({"jsonPath": "$.amount", "numberValue": 5}),
        {},
    ]


def by_path(argument: dict[str, Any]) -> dict[str, Any]:
    return {"partialArgs": [argument], "willContinue": True}


# --- Reasons to stop, and usage -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "ours"), [(wire, ours) for wire in OTHERS for ours in STOPS[wire]]
)
def test_every_reason_to_stop_is_the_vendors_word(wire: str, ours: str) -> None:
    said = READERS[wire](synth.answer([Text("so")], ours, wire=wire))
    assert said.reason == STOPS[wire][ours]


@other_wires
def test_a_vendors_own_word_is_taken_as_it_is(wire: str) -> None:
    word = STOPS[wire]["max_tokens"]
    assert READERS[wire](synth.answer([Text("so")], word, wire=wire)).reason == word


@other_wires
def test_a_reason_that_a_wire_has_no_word_for_is_refused(wire: str) -> None:
    with pytest.raises(UsageError, match=f"'bored' has no word on the wire '{wire}'"):
        synth.answer([Text("so")], "bored", wire=wire)


def test_chat_has_no_word_for_a_pause() -> None:
    with pytest.raises(UsageError, match="'pause_turn' has no word on the wire 'openai-chat'"):
        synth.answer([Text("so")], "pause_turn", wire="openai-chat")


#: Wire format -> input, output and thinking tokens of the story, where each says it.
COUNTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "openai-chat": (
        ("prompt_tokens",),
        ("completion_tokens",),
        ("completion_tokens_details", "reasoning_tokens"),
    ),
    "openai-responses": (
        ("input_tokens",),
        ("output_tokens",),
        ("output_tokens_details", "reasoning_tokens"),
    ),
    "gemini": (
        ("prompt_token_count",),
        ("candidates_token_count",),
        ("thoughts_token_count",),
    ),
}


@other_wires
def test_tokens_are_counted_in_the_vendors_words(wire: str) -> None:
    usage = READERS[wire](synth.story(wire)).usage
    found = []
    for path in COUNTS[wire]:
        value: Any = usage
        for name in path:
            value = value[name]
        found.append(value)
    assert found[0] == 25
    assert found[2] == 12
    assert found[1] == (20 if wire == "gemini" else 32)


GIVEN: dict[str, tuple[dict[str, Any], str]] = {
    "openai-chat": (
        {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        "total_tokens",
    ),
    "openai-responses": (
        {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        "total_tokens",
    ),
    "gemini": ({"promptTokenCount": 1, "totalTokenCount": 3}, "total_token_count"),
}


@other_wires
def test_the_usage_that_is_given_is_written(wire: str) -> None:
    given_usage, total = GIVEN[wire]
    usage = READERS[wire](synth.answer([Text("so")], wire=wire, usage=given_usage)).usage
    assert usage is not None
    assert usage[total] == 3


# --- What a wire can't say ------------------------------------------------------------------------

NO_PLACE: dict[str, tuple[Part, ...]] = {
    "claude": (Text("No.", refusal=True),),
    "openai-chat": (
        RedactedThinking("b3BhcXVl"),
        ServerToolCall("web_search", {"query": "ledger"}),
        ServerToolResult("web_search_tool_result", []),
        OtherBlock({"type": "hologram"}),
    ),
    "openai-responses": (
        ServerToolResult("web_search_tool_result", []),
        OtherBlock({"type": "hologram"}),
    ),
    "gemini": (
        Text("No.", refusal=True),
        RedactedThinking("b3BhcXVl"),
        ServerToolCall("web_search", {"query": "ledger"}),
        ServerToolResult("web_search_tool_result", []),
        OtherBlock({"type": "hologram"}),
        ToolCall("cut", '{"item": "W-7", "lab'),
        ToolCall("a_list", "[1]"),
    ),
}


@pytest.mark.parametrize(
    ("wire", "part"), [(wire, part) for wire, parts in NO_PLACE.items() for part in parts]
)
def test_a_part_that_a_wire_has_no_place_for_is_refused(wire: str, part: Part) -> None:
    said = f"{type(part).__name__} can't be written on the wire '{wire}'"
    with pytest.raises(UsageError, match=said):
        synth.answer([part], wire=wire)


def test_no_path_says_an_empty_object() -> None:
    call = ToolCall("any_tool", {"rows": [{}]})
    with pytest.raises(UsageError, match=r"no path says the empty dict at \$\.rows\[0\]"):
        synth.answer([call], wire="gemini", style=Style(arguments="path"))


def test_an_unknown_wire_is_refused() -> None:
    with pytest.raises(UsageError, match="'smoke' is none of claude, openai-chat"):
        synth.answer([Text("hi")], wire="smoke")


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_a_refusal_has_a_field_of_its_own(wire: str) -> None:
    said = READERS[wire](synth.answer([Text("I can't do that.", refusal=True)], wire=wire))
    assert (said.text, said.refusal) == ("", "I can't do that.")


def test_responses_can_say_thinking_that_only_the_api_reads() -> None:
    source = synth.answer([RedactedThinking("b3BhcXVl"), Text("Yes.")], wire="openai-responses")
    assert READERS["openai-responses"](source).signatures == ["b3BhcXVl"]


@every_wire
def test_every_gap_has_a_topic_that_is_listed_once_and_in_order(wire: str) -> None:
    topics = [gap.topic for gap in synth.NOT_MAPPED[wire]]
    assert topics == [topic for topic in gaps.TOPICS if topic in topics]


@every_wire
def test_every_gap_is_one_plain_sentence(wire: str) -> None:
    texts = [gap.text for gap in synth.NOT_MAPPED[wire]]
    assert [text for text in texts if not text.endswith(".") or ". " in text] == []
    assert all(text[0].isupper() or text[0] == "`" for text in texts)


def test_every_topic_is_a_gap_of_some_wire() -> None:
    found = {gap.topic for found in synth.NOT_MAPPED.values() for gap in found}
    assert found == set(gaps.TOPICS)
    assert set(synth.NOT_MAPPED) == set(synth.WRITERS)


# --- Bytes and times ------------------------------------------------------------------------------


@other_wires
@given(seed=seeds)
def test_a_seed_decides_everything(wire: str, seed: int) -> None:
    assert synth.random_answer(seed, wire) == synth.random_answer(seed, wire)


@other_wires
@given(seed=seeds)
def test_time_never_runs_backwards(wire: str, seed: int) -> None:
    _, source = synth.random_answer(seed, wire)
    times = [chunk.t for chunk in source.chunks if chunk.t is not None]
    assert len(times) == len(source.chunks)
    assert times == sorted(times)
    assert source.end_t is not None
    assert source.end_t >= times[-1] > 0


@pytest.mark.parametrize(
    "module",
    [
        answering,
        gaps,
        gemini_writer,
        openai_chat_writer,
        openai_responses_writer,
        random_answers,
        writing,
    ],
    ids=lambda module: module.__name__,
)
def test_a_writer_shares_no_code_with_the_readers(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported
    assert not {name for name in imported if name and ".wire" in name}
