"""OpenAI Responses: every item and event; what each breach is, and which versions must agree."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.consumer.turn import Segment, Turn
from streamlab.wire.events import (
    STOP_REASONS,
    Ambiguous,
    Attached,
    Event,
    InputDelta,
    KeepAlive,
    MessageCompleted,
    MessageStarted,
    Restated,
    SegmentStarted,
    SegmentStopped,
    StopReported,
    TextDelta,
    Tokens,
    Unknown,
    UsageReported,
)
from streamlab.wire.openai_final import REASON
from streamlab.wire.openai_items import FORMS, PROGRESS
from streamlab.wire.openai_output import MAX_OPEN
from streamlab.wire.openai_responses import AUDIO, MAX_IMAGES, ResponsesReader
from streamlab.wire.sse import Frame, SSEDecoder
from tests.streams_for_tests import (
    JSON,
    any_text,
    consume,
    cut,
    events,
    frame,
    in_runs,
    lines,
    rules,
    saw,
    stream,
)

# --- Writing a stream -------------------------------------------------------------------------


def event(name: str, index: int | None = None, /, **fields: Any) -> JSON:
    place = {} if index is None else {"output_index": index}
    return {"type": f"response.{name}", **place, **fields}


def life(name: str = "created", **response: Any) -> JSON:
    return event(name, response={"id": "resp_1", "model": "model-1", **response})


CREATED = life(status="in_progress", output=[])


def completed(*output: JSON, **response: Any) -> JSON:
    return life("completed", status="completed", output=[*output], **response)


def incomplete(reason: str | None, *output: JSON) -> JSON:
    details = {"reason": reason} if reason else None
    return life("incomplete", status="incomplete", output=[*output], incomplete_details=details)


def added(index: int, item: JSON) -> JSON:
    return event("output_item.added", index, item=item)


def item_done(index: int, item: JSON) -> JSON:
    return event("output_item.done", index, item=item)


def message(*texts: str, id: str = "msg_1", **fields: Any) -> JSON:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": id, "role": "assistant", "content": content, **fields}


def reasoning(*summary: str, **fields: Any) -> JSON:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": "rs_1", "summary": parts, **fields}


def call(arguments: str = "", n: int = 1, **fields: Any) -> JSON:
    names = {"id": f"fc_{n}", "call_id": f"call_{n}", "name": "change_label"}
    return {"type": "function_call", **names, "arguments": arguments, **fields}


def text(index: int, delta: str, part: int = 0, **fields: Any) -> JSON:
    return event("output_text.delta", index, content_index=part, delta=delta, **fields)


def text_done(index: int, whole: str, part: int = 0) -> JSON:
    return event("output_text.done", index, content_index=part, text=whole)


def arguments(index: int, delta: str, **fields: Any) -> JSON:
    return event("function_call_arguments.delta", index, delta=delta, **fields)


def arguments_done(index: int, whole: str, **fields: Any) -> JSON:
    return event("function_call_arguments.done", index, arguments=whole, **fields)


def part(step: str, index: int, number: int = 0, **fields: Any) -> JSON:
    given = {"type": "output_text", "text": "", "annotations": [], **fields}
    return event(f"content_part.{step}", index, content_index=number, part=given)


def numbered(payloads: Iterable[JSON]) -> list[JSON]:
    return [{**payload, "sequence_number": n} for n, payload in enumerate(payloads)]


INPUT = '{"item": "W-7", "label": "Ready"}'
TEXT = (
    CREATED,
    life("in_progress", status="in_progress"),
    added(0, message()),
    part("added", 0),
    text(0, "Hi", item_id="msg_1", logprobs=[], obfuscation="xx"),
    text(0, " there", item_id="msg_1", logprobs=[], obfuscation="x"),
    text_done(0, "Hi there"),
    part("done", 0, text="Hi there"),
    item_done(0, message("Hi there")),
    completed(message("Hi there"), usage={"input_tokens": 3, "output_tokens": 2}),
)
CALL = (
    CREATED,
    added(0, call()),
    arguments(0, INPUT[:11], item_id="fc_1"),
    arguments(0, INPUT[11:], item_id="fc_1"),
    arguments_done(0, INPUT, item_id="fc_1"),
    item_done(0, call(INPUT)),
    completed(call(INPUT)),
)


def turn_of(payloads: Iterable[Any], **options: Any) -> Turn:
    return consume(stream(payloads), wire="openai-responses", **options)[0].turn


def state_of(payloads: Iterable[Any]) -> str:
    return str(consume(stream(payloads), wire="openai-responses")[0].attempt.state)


def found(payloads: Iterable[Any]) -> list[tuple[str, str]]:
    return rules(payloads, wire="openai-responses")


def whole(item: JSON, *between: JSON, index: int = 0, start: JSON | None = None) -> list[JSON]:
    """An answer of one item."""
    first = {**item, "status": "in_progress"} if start is None else start
    return [CREATED, added(index, first), *between, item_done(index, item), completed(item)]


def segment_of(payloads: Iterable[Any]) -> Segment:
    turn = turn_of(payloads)
    assert turn.complete, turn.facts.problems
    (segment,) = turn.segments
    return segment


# --- What a whole answer states ---------------------------------------------------------------


def test_each_event_of_a_text_answer_states_one_fact() -> None:
    usage = {"input_tokens": 3, "output_tokens": 2}
    assert events(TEXT)[:-1] == [
        MessageStarted("resp_1", "model-1"),
        SegmentStarted("0", "text", 3, "message"),
        Attached("0", "id", "msg_1"),
        TextDelta("0", "Hi"),
        TextDelta("0", " there"),
        SegmentStopped("0", 9),
        UsageReported(usage, Tokens(3, 2)),
        StopReported("end_turn", "completed", 10),
        MessageCompleted(10),
    ]


def test_a_call_is_parsed_at_its_end_and_replied_to_by_its_call_id_not_by_its_item_id() -> None:
    (open_call,) = turn_of(CALL[:4]).open
    assert (open_call.text, open_call.input, open_call.status) == (INPUT, None, "streaming")
    (made,) = turn_of(CALL).calls
    assert (made.input, made.status) == (json.loads(INPUT), "ready")
    assert (made.start.name, made.start.call_id) == ("change_label", "call_1")
    assert made.attached == {"id": "fc_1"}
    facts = turn_of(CALL).facts
    assert (facts.stop_reason, facts.raw_stop_reason) == ("tool_use", "completed")
    assert state_of(CALL) == "VALIDATED_PROPOSAL"
    assert found(CALL) == []


@pytest.mark.parametrize("payloads", [TEXT, CALL], ids=["text", "call"])
def test_one_event_a_line_reads_the_same(payloads: tuple[JSON, ...]) -> None:
    named = consume(stream(payloads))[0]
    read = consume(lines(payloads))[0]
    assert read.reader.wire == "openai-responses"
    assert read.turn == named.turn
    assert read.attempt.state == named.attempt.state


# --- Items ------------------------------------------------------------------------------------

SHELL = {"commands": ["ls"], "timeout_ms": None}
PATCH = {"type": "update_file", "path": "a.txt", "diff": '+"x"\n'}


def summary_delta(number: int, delta: str) -> JSON:
    return event("reasoning_summary_text.delta", 0, summary_index=number, delta=delta)


def summary_part(step: str, number: int, text: str = "") -> JSON:
    given = {"type": "summary_text", "text": text}
    return event(f"reasoning_summary_part.{step}", 0, summary_index=number, part=given)


def of(type: str, **fields: Any) -> JSON:
    return {"type": type, "id": "it_1", "call_id": "call_1", **fields}


def code(step: str, **fields: Any) -> JSON:
    return event(f"code_interpreter_call_code.{step}", 0, **fields)


def diff(step: str, **fields: Any) -> JSON:
    return event(f"apply_patch_call_operation_diff.{step}", 0, **fields)


def command(text: str) -> JSON:
    return event("shell_call_command.done", 0, command_index=0, command=text)


#: Name -> an answer of one item, what its only segment is.
ITEMS: dict[str, tuple[list[JSON], JSON]] = {
    "message, only in its item": (
        whole(message("Hi"), start=message()),
        {"kind": "text", "text": "Hi"},
    ),
    "message, with its phase": (
        whole(message("Hi", phase="commentary"), text(0, "Hi")),
        {"text": "Hi", "attached": {"id": "msg_1", "phase": "commentary"}},
    ),
    "message, whose phase comes late": (
        whole(message("Hi", phase="final_answer"), text(0, "Hi"), start=message()),
        {"attached": {"id": "msg_1", "phase": "final_answer"}},
    ),
    "message, cited": (
        whole(
            message("Hi"),
            text(0, "Hi"),
            event("output_text.annotation.added", 0, content_index=0, annotation={"url": "u"}),
        ),
        {"attached": {"id": "msg_1", "citations": [{"url": "u"}]}},
    ),
    "message, cited only in its part": (
        whole(message("Hi"), text(0, "Hi"), part("done", 0, text="Hi", annotations=[{"url": "u"}])),
        {"attached": {"id": "msg_1", "citations": [{"url": "u"}]}},
    ),
    "message, with probabilities": (
        whole(message("Hi"), text(0, "Hi"), part("done", 0, text="Hi", logprobs=[{"p": 1}])),
        {"attached": {"id": "msg_1", "logprobs": [{"p": 1}]}},
    ),
    "message, text already in its part": (
        whole(message("Hi"), part("added", 0, text="H"), text(0, "i")),
        {"text": "Hi"},
    ),
    "reasoning, encrypted": (
        whole(reasoning(encrypted_content="c2ln+/=="), start=reasoning(encrypted_content="early")),
        {"kind": "thinking", "text": "", "signature": "c2ln+/==", "attached": {"id": "rs_1"}},
    ),
    "reasoning, a summary": (
        whole(
            reasoning("so"),
            summary_part("added", 0),
            summary_delta(0, "s"),
            summary_delta(0, "o"),
            event("reasoning_summary_text.done", 0, summary_index=0, text="so"),
            summary_part("done", 0, "so"),
        ),
        {"kind": "thinking", "text": "so"},
    ),
    "reasoning, its own words": (
        whole(
            reasoning(content=[{"type": "reasoning_text", "text": "so"}]),
            event(
                "reasoning_part.added",
                0,
                content_index=0,
                part={"type": "reasoning_text", "text": ""},
            ),
            event("reasoning_text.delta", 0, content_index=0, delta="so"),
            event("reasoning_text.done", 0, content_index=0, text="so"),
        ),
        {"kind": "thinking", "text": "so"},
    ),
    "function_call, without deltas": (
        whole(call(INPUT, namespace="labels"), arguments_done(0, INPUT), start=call()),
        {"input": json.loads(INPUT), "attached": {"id": "fc_1", "namespace": "labels"}},
    ),
    "function_call, without any argument": (
        whole(call(""), arguments_done(0, "{}"), start=call()),
        {"input": {}, "status": "ready"},
    ),
    "function_call, an object where its text is due": (
        whole({**call(), "arguments": {"a": 1}}, start=call()),
        {"input": {"a": 1}, "text": '{"a":1}'},
    ),
    "custom_tool_call": (
        whole(
            of("custom_tool_call", name="run_sql", input="SELECT 1"),
            event("custom_tool_call_input.delta", 0, delta="SELECT "),
            event("custom_tool_call_input.delta", 0, delta="1"),
            event("custom_tool_call_input.done", 0, input="SELECT 1"),
            start=of("custom_tool_call", name="run_sql", input=""),
        ),
        {"input": "SELECT 1", "name": "run_sql", "server": False},
    ),
    "computer_call": (
        whole(of("computer_call", action={"type": "click"}, pending_safety_checks=[{"id": "s"}])),
        {
            "input": {"action": {"type": "click"}},
            "name": "computer",
            "attached": {"id": "it_1", "pending_safety_checks": [{"id": "s"}]},
        },
    ),
    "computer_call, several actions": (
        whole(of("computer_call", actions=[{"type": "wait"}])),
        {"input": {"actions": [{"type": "wait"}]}},
    ),
    "local_shell_call": (
        whole(
            of("local_shell_call", action={"command": ["ls"]}),
            start=of("local_shell_call", action={"command": []}),
        ),
        {"input": {"action": {"command": ["ls"]}}, "name": "local_shell", "server": False},
    ),
    "shell_call": (
        whole(of("shell_call", action=SHELL), command("ls"), start=of("shell_call")),
        {"input": {"action": SHELL}, "name": "shell", "server": False},
    ),
    "shell_call, in the provider's container": (
        whole(of("shell_call", action=SHELL, environment={"type": "container_auto"})),
        {"server": True, "attached": {"id": "it_1", "environment": {"type": "container_auto"}}},
    ),
    "shell_call, here": (
        whole(of("shell_call", action=SHELL, environment={"type": "local"})),
        {"server": False},
    ),
    "apply_patch_call, streamed": (
        whole(
            of("apply_patch_call", operation=PATCH),
            diff("delta", delta='+"'),
            diff("delta", delta='x"\n'),
            diff("done", diff=PATCH["diff"]),
            start=of("apply_patch_call", operation={**PATCH, "diff": ""}),
        ),
        {"input": {"operation": PATCH}, "name": "apply_patch", "server": False},
    ),
    "apply_patch_call, whole": (
        whole(of("apply_patch_call", operation={"type": "delete_file", "path": "a"})),
        {"input": {"operation": {"type": "delete_file", "path": "a"}}},
    ),
    "tool_search_call, by the client": (
        whole(of("tool_search_call", arguments={"q": "x"}, execution="client")),
        {"input": {"arguments": {"q": "x"}}, "server": False},
    ),
    "tool_search_call, by the provider": (
        whole(of("tool_search_call", arguments={"q": "x"}, execution="server")),
        {"server": True},
    ),
    "web_search_call": (
        whole(of("web_search_call", action={"query": "x"}), start=of("web_search_call")),
        {"input": {"action": {"query": "x"}}, "name": "web_search", "server": True},
    ),
    "file_search_call": (
        whole(of("file_search_call", queries=["x"], results=[{"file_id": "f"}])),
        {"input": {"queries": ["x"]}, "attached": {"id": "it_1", "results": [{"file_id": "f"}]}},
    ),
    "code_interpreter_call, streamed": (
        whole(
            of("code_interpreter_call", code='print("1")\n', container_id="c", outputs=[]),
            code("delta", delta='print("'),
            code("delta", delta='1")\n'),
            code("done", code='print("1")\n'),
            start=of("code_interpreter_call", code=""),
        ),
        {"input": {"code": 'print("1")\n'}, "server": True, "name": "code_interpreter"},
    ),
    "code_interpreter_call, only done": (
        whole(
            of("code_interpreter_call", code="1"),
            code("done", code="1"),
            start=of("code_interpreter_call"),
        ),
        {"input": {"code": "1"}},
    ),
    "code_interpreter_call, not done": (
        whole(
            of("code_interpreter_call", code="1"),
            code("delta", delta="1"),
            start=of("code_interpreter_call"),
        ),
        {"input": {"code": "1"}},
    ),
    "image_generation_call": (
        whole(
            of("image_generation_call", size="auto", result="aW1n"),
            event("image_generation_call.partial_image", 0, partial_image_b64="aQ=="),
            start=of("image_generation_call"),
        ),
        {
            "input": {"size": "auto"},
            "attached": {"id": "it_1", "partial_image": "aQ==", "result": "aW1n"},
        },
    ),
    "mcp_call": (
        whole(
            of("mcp_call", name="ask", arguments=INPUT, server_label="s", output="ok"),
            event("mcp_call_arguments.delta", 0, delta=INPUT),
            event("mcp_call_arguments.done", 0, arguments=INPUT),
            start=of("mcp_call", name="ask", arguments=""),
        ),
        {
            "input": json.loads(INPUT),
            "server": True,
            "attached": {"id": "it_1", "server_label": "s", "output": "ok"},
        },
    ),
    "program": (
        whole(of("program", code="x()", fingerprint="Zg==")),
        {"input": {"code": "x()"}, "attached": {"id": "it_1", "fingerprint": "Zg=="}},
    ),
    "mcp_list_tools": (
        whole({"type": "mcp_list_tools", "tools": [{"name": "a"}]}),
        {"kind": "other", "attached": {"tools": [{"name": "a"}]}},
    ),
    "compaction": (
        whole({"type": "compaction", "encrypted_content": "Yw=="}),
        {"kind": "other", "attached": {"encrypted_content": "Yw=="}},
    ),
}


@pytest.mark.parametrize("name", ITEMS)
def test_each_item_becomes_one_segment(name: str) -> None:
    payloads, expected = ITEMS[name]
    segment = segment_of(payloads)
    for field, value in expected.items():
        owner = segment.start if field in ("name", "server") else segment
        assert getattr(owner, field) == value, field
    assert segment.status == "ready"
    assert found(payloads) == []
    assert state_of(payloads) in ("MESSAGE_COMPLETE", "VALIDATED_PROPOSAL")


def test_every_item_type_of_the_table_has_its_row() -> None:
    assert {name.split(",")[0] for name in ITEMS} >= set(FORMS)


def test_the_parts_of_an_item_are_segments_of_their_own() -> None:
    thought = reasoning("one", "two", encrypted_content="c2ln")
    streamed = [summary_delta(1, "two"), summary_delta(0, "one")]
    turn = turn_of(whole(thought, *streamed))
    assert [(s.id, s.text, s.signature) for s in turn.segments] == [
        ("0", "two", "c2ln"),
        ("0.s0", "one", ""),
    ]
    assert {s.attached["id"] for s in turn.segments} == {"rs_1"}
    assert found(whole(thought, *streamed)) == []
    said = turn_of(whole(message("a", "b"), text(0, "a"), text(0, "b", 1)))
    assert [(s.id, s.text) for s in said.segments] == [("0", "a"), ("0.1", "b")]


def test_items_may_interleave_and_start_at_any_index() -> None:
    payloads = [
        CREATED,
        added(1, call()),
        added(4, message()),
        text(4, "Hi"),
        arguments(1, INPUT),
        item_done(4, message("Hi")),
        item_done(1, call(INPUT)),
        completed(call(INPUT), message("Hi")),
    ]
    turn = turn_of(payloads)
    assert (turn.text, turn.calls[0].text) == ("Hi", INPUT)
    assert found(payloads) == []
    assert state_of(payloads) == "VALIDATED_PROPOSAL"


def test_a_draft_is_shown_while_it_grows_and_parses_only_when_it_is_whole() -> None:
    half = [CREATED, added(0, of("code_interpreter_call")), code("delta", delta='a"')]
    (segment,) = turn_of(half).segments
    assert segment.text == '{"code":"a\\"'
    (cut_off,) = turn_of([*half, incomplete("max_output_tokens")]).segments
    assert (cut_off.input, cut_off.status) == (None, "error")


def test_an_unknown_item_is_kept_and_grants_nothing() -> None:
    payloads = whole({"type": "hologram", "light": 3})
    assert Unknown("item type hologram", 2) in events(payloads)
    segment = segment_of(payloads)
    assert (segment.kind, segment.attached) == ("other", {"light": 3})
    assert turn_of(payloads).facts.stop_reason == "end_turn"


def test_an_unknown_part_of_a_message_is_shown_as_text() -> None:
    payloads = whole(message(), part("added", 0, type="song", text="la"))
    assert Unknown("part type song", 3) in events(payloads)
    assert turn_of(payloads).text == "la"


@pytest.mark.parametrize("name", sorted(PROGRESS))
def test_how_far_a_hosted_tool_is_states_nothing(name: str) -> None:
    strange = {"type": name, "output_index": 0, "item_id": "x"}
    assert turn_of([*TEXT[:5], strange, *TEXT[5:]]) == turn_of(TEXT)


@pytest.mark.parametrize("name", AUDIO)
def test_audio_is_noted(name: str) -> None:
    assert found([CREATED, {"type": name, "delta": "YQ=="}, completed()]) == [("audio", "note")]


def test_previews_of_an_image_are_bounded() -> None:
    preview = event("image_generation_call.partial_image", 0, partial_image_b64="aQ==")
    item = of("image_generation_call", result="aW1n")
    payloads = whole(item, *[preview] * (MAX_IMAGES + 5), start=of("image_generation_call"))
    kept = [e for e in events(payloads) if isinstance(e, Attached) and e.name == "partial_image"]
    assert len(kept) == MAX_IMAGES
    assert found(payloads) == [("too-many-images", "warning")]
    assert found([CREATED, preview, completed()]) == [("image", "warning")]


# --- Why it stopped ---------------------------------------------------------------------------

REFUSAL = {"type": "refusal", "refusal": "No."}
REFUSED = [
    event("content_part.added", 0, content_index=0, part={**REFUSAL, "refusal": ""}),
    event("refusal.delta", 0, content_index=0, delta="No."),
    event("refusal.done", 0, content_index=0, refusal="No."),
]
APPROVAL = {"type": "mcp_approval_request", "id": "a", "name": "pay", "arguments": "{}"}

#: Name -> the answer, its stop reason in our words and in the vendor's.
STOPS: dict[str, tuple[Iterable[JSON], str, str]] = {
    "text": (TEXT, "end_turn", "completed"),
    "a call for the client": (CALL, "tool_use", "completed"),
    "a hosted call": (ITEMS["mcp_call"][0], "end_turn", "completed"),
    "a refusal": (
        whole({**message(), "content": [REFUSAL]}, *REFUSED, start=message()),
        "refusal",
        "completed",
    ),
    "a refusal that never streamed": (
        whole({**message(), "content": [REFUSAL]}, start=message()),
        "refusal",
        "completed",
    ),
    "an approval": (whole(APPROVAL), "pause_turn", "completed"),
    **{reason: ([CREATED, incomplete(reason)], ours, reason) for reason, ours in REASON.items()},
    "another reason": ([CREATED, incomplete("tired")], "other", "tired"),
    "no reason": ([CREATED, incomplete(None)], "other", "incomplete"),
}


@pytest.mark.parametrize("name", STOPS)
def test_why_it_stopped(name: str) -> None:
    payloads, ours, raw = STOPS[name]
    facts = turn_of(payloads).facts
    assert (facts.stop_reason, facts.raw_stop_reason) == (ours, raw)
    assert ours in STOP_REASONS
    assert turn_of(payloads).complete
    assert found(payloads) == []


def test_the_first_segments_come_in_the_order_of_their_items() -> None:
    late = summary_delta(0, "so")
    payloads = [CREATED, added(1, message()), added(0, reasoning()), late, text(1, "Hi")]
    assert [(s.id, s.kind) for s in turn_of(payloads).segments] == [
        ("1", "text"),
        ("0", "thinking"),
    ]


def test_a_refusal_is_text_and_is_held() -> None:
    payloads = STOPS["a refusal"][0]
    assert turn_of(payloads).text == "No."
    assert turn_of(payloads).segments[0].attached["part"] == "refusal"
    assert state_of(payloads) == "HELD"


def test_a_limit_inside_a_call_is_complete_but_held() -> None:
    payloads = [
        *CALL[:3],
        incomplete("max_output_tokens", call(INPUT[:11], status="incomplete")),
    ]
    turn = turn_of(payloads)
    assert turn.complete
    assert (turn.calls[0].input, turn.calls[0].status) == (None, "error")
    assert found(payloads) == [("tool-input", "warning")]
    assert state_of(payloads) == "HELD"


def test_usage_comes_with_the_end_and_its_output_holds_the_reasoning() -> None:
    usage = {
        "input_tokens": 9,
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 16,
    }
    for end in (completed(usage=usage), {**incomplete("steered")}):
        end["response"]["usage"] = usage
        facts = turn_of([CREATED, end]).facts
        assert (facts.usage, facts.tokens) == (usage, Tokens(9, 7, 5))
    assert turn_of([CREATED, completed(usage=None)]).facts.tokens == Tokens()


# --- Errors -----------------------------------------------------------------------------------

WHY = {"code": "server_error", "message": "sorry"}

#: Name -> how an answer fails, its raw stop reason, what the provider says.
ERRORS: dict[str, tuple[list[JSON], str, str]] = {
    "failed": ([life("failed", status="failed", error=WHY)], "failed", "server_error: sorry"),
    "failed, without a reason": (
        [life("failed", status="failed", error=None)],
        "failed",
        "failed: the response's status is 'failed'",
    ),
    "flat": ([{"type": "error", **WHY}], "error", "sorry"),
    "nested": ([{"type": "error", "error": WHY}], "error", "server_error: sorry"),
    "nested, then failed": (
        [{"type": "error", "error": WHY}, life("failed", status="failed", error=WHY)],
        "failed",
        "server_error: sorry",
    ),
    "cancelled": (
        [life("cancelled", status="cancelled")],
        "cancelled",
        "cancelled: the response's status is 'cancelled'",
    ),
    "completed, with the status failed": (
        [life("completed", status="failed", error=WHY)],
        "failed",
        "server_error: sorry",
    ),
    "completed, with an error": (
        [life("completed", status="completed", error="sorry")],
        "completed",
        "completed: sorry",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_any_shape_is_the_providers(name: str) -> None:
    end, raw, said = ERRORS[name]
    payloads = [*TEXT[:5], *end]
    turn = turn_of(payloads)
    assert (turn.facts.stop_reason, turn.facts.raw_stop_reason) == ("error", raw)
    assert turn.facts.error.endswith(said)
    assert turn.text == "Hi"
    assert not turn.complete
    assert state_of(payloads) == "INVALID"
    assert [p.rule for p in turn.facts.problems].count("provider-error") == 1


# --- Versions that must agree -----------------------------------------------------------------

OTHER = '{"item": "W-7", "label": "Done"}'
CUSTOM = of("custom_tool_call", name="q", input="")


def with_text(*after: JSON) -> list[JSON]:
    return [CREATED, added(0, message()), text(0, "Hi"), *after]


#: Name -> the answer, its text, the rules of its problems.
DISAGREEING_TEXT: dict[str, tuple[list[JSON], str, list[str]]] = {
    "its done": (with_text(text_done(0, "Ho"), completed()), "Ho", ["restated", "unfinished-item"]),
    "its part": (
        with_text(part("done", 0, text="Ho"), completed()),
        "Ho",
        ["restated", "unfinished-item"],
    ),
    "its item": (with_text(item_done(0, message("Ho")), completed()), "Ho", ["restated"]),
    "the snapshot, where it was open": (with_text(completed(message("Ho"))), "Ho", ["restated"]),
    "the snapshot, where it was closed": (
        with_text(item_done(0, message("Hi")), completed(message("Ho"))),
        "Hi",
        ["restated"],
    ),
    "a part too few": (
        with_text(text(0, "!", 1), item_done(0, message("Hi")), completed()),
        "Hi!",
        ["part-missing"],
    ),
    "a part too many": (
        with_text(item_done(0, message("Hi", "!")), completed()),
        "Hi!",
        [],
    ),
    "a part that only the snapshot has": (
        with_text(item_done(0, message("Hi")), completed(message("Hi", "!"))),
        "Hi!",
        [],
    ),
    "an item that the snapshot leaves out": (
        with_text(item_done(0, message("Hi")), completed(reasoning())),
        "Hi",
        ["left-out", "unstreamed"],
    ),
    "an item that only the snapshot has": (
        [CREATED, completed(message("Hi"))],
        "Hi",
        ["unstreamed-item"],
    ),
    "an empty snapshot": (with_text(item_done(0, message("Hi")), completed()), "Hi", []),
    "an item without content": (with_text(item_done(0, message()), completed()), "Hi", []),
    "nothing after its start": (
        [CREATED, added(0, message("Hi")), completed()],
        "Hi",
        ["unfinished-item"],
    ),
}


@pytest.mark.parametrize("name", DISAGREEING_TEXT)
def test_of_a_text_the_authority_counts_and_a_difference_is_a_warning(name: str) -> None:
    payloads, shown, problems = DISAGREEING_TEXT[name]
    turn = turn_of(payloads)
    assert turn.text == shown
    assert turn.complete
    assert sorted(rule for rule, _ in found(payloads)) == sorted(problems)
    assert {severity for _, severity in found(payloads)} <= {"warning", "note"}
    assert state_of(payloads) == "MESSAGE_COMPLETE"


def with_call(*after: JSON) -> list[JSON]:
    return [CREATED, added(0, call()), arguments(0, INPUT), *after]


SQL = of("custom_tool_call", name="q", input="SELECT 1")

#: Name -> an answer whose call can't be proved to be what the model meant.
HELD: dict[str, list[JSON]] = {
    "its done differs": with_call(arguments_done(0, OTHER), completed()),
    "its item differs": with_call(item_done(0, call(OTHER)), completed()),
    "the snapshot differs": with_call(item_done(0, call(INPUT)), completed(call(OTHER))),
    "its item is empty": with_call(item_done(0, call("")), completed()),
    "nothing states it whole": with_call(completed()),
    "only its arguments are stated whole": with_call(arguments_done(0, INPUT), completed()),
    "nothing states it at all": [CREATED, added(0, call(INPUT)), completed()],
    "its action never came": [CREATED, added(0, of("shell_call", action=SHELL)), completed()],
    "the snapshot leaves it out": with_call(item_done(0, call(INPUT)), completed(message("x"))),
    "its name changes": with_call(item_done(0, call(INPUT, name="delete")), completed()),
    "its call id changes": with_call(item_done(0, call(INPUT, call_id="call_2")), completed()),
    "its type changes": with_call(item_done(0, {**call(INPUT), "type": "mcp_call"}), completed()),
    "a text becomes a call": with_text(item_done(0, call(INPUT)), completed()),
    "its item is incomplete": with_call(
        item_done(0, call(INPUT, status="incomplete")), completed()
    ),
    "it has no id": whole(call(INPUT, call_id="")),
    "two calls have one id": [
        CREATED,
        added(0, call()),
        added(1, call()),
        item_done(0, call(INPUT)),
        item_done(1, call(INPUT)),
        completed(),
    ],
    "its index is used for another call": [
        *with_call(added(0, call(n=2)), item_done(0, call(INPUT, 2)), completed())
    ],
    "a fragment comes after its done": with_call(
        arguments_done(0, INPUT), arguments(0, " "), item_done(0, call(INPUT)), completed()
    ),
    "a fragment comes after its item": with_call(
        item_done(0, call(INPUT)), arguments(0, " "), completed()
    ),
    "a fragment names another item": [
        CREATED,
        added(0, call()),
        added(1, call(n=2)),
        arguments(0, INPUT, item_id="fc_2"),
        item_done(0, call(INPUT)),
        item_done(1, call("{}", 2)),
        completed(),
    ],
    "a fragment names no item": with_call(
        event("function_call_arguments.delta", delta="x"), item_done(0, call(INPUT)), completed()
    ),
    "a fragment of an announced item has another index": with_call(
        arguments(3, "", item_id="fc_1"), item_done(0, call(INPUT)), completed()
    ),
    "a free text differs": [
        CREATED,
        added(0, CUSTOM),
        event("custom_tool_call_input.delta", 0, delta="SELECT  1"),
        item_done(0, SQL),
        completed(),
    ],
    "a command differs": whole(of("shell_call", action=SHELL), command("rm")),
    "who runs it changes": whole(
        of("shell_call", action=SHELL, environment={"type": "container_auto"}),
        start=of("shell_call", environment={"type": "local"}),
    ),
    "its item holds a key twice": [
        CREATED,
        added(0, of("shell_call")),
        frame(item_done(0, of("shell_call", action={"b": 1, "c": 2}))).replace(b'"c"', b'"b"'),  # type: ignore[list-item]
        completed(),
    ],
    "it is named after its end": [
        CREATED,
        added(0, call(call_id="")),
        item_done(0, call(INPUT, call_id="")),
        completed(call(INPUT)),
    ],
}


@pytest.mark.parametrize("name", HELD)
def test_a_call_that_cannot_be_proved_is_held(name: str) -> None:
    payloads = HELD[name]
    assert state_of(payloads) == "HELD"
    assert any(isinstance(event, Ambiguous) for event in events(payloads))
    assert turn_of(payloads).complete


def test_a_restated_call_shows_the_authoritys_version() -> None:
    payloads = HELD["its done differs"]
    assert Restated("0", OTHER) in events(payloads)
    assert turn_of(payloads).calls[0].text == OTHER


#: Name -> an answer whose call is proved although something is missing or odd; its problems.
PROVED: dict[str, tuple[list[JSON], list[str]]] = {
    "only its item": (with_call(item_done(0, call(INPUT)), completed()), []),
    "only the snapshot": (with_call(completed(call(INPUT))), []),
    "only the snapshot, with other ids": (with_call(completed(call(INPUT, id="fc_9"))), []),
    "only in the snapshot": ([CREATED, completed(call(INPUT))], ["unstreamed-item"]),
    "another way to write it": (
        with_call(item_done(0, call(json.dumps(json.loads(INPUT), indent=1))), completed()),
        [],
    ),
    "never announced": (
        [CREATED, arguments(0, INPUT), item_done(0, call(INPUT)), completed()],
        ["without-start"],
    ),
    "never created": (list(CALL[1:]), ["before-start"]),
    "announced again": ([*CALL[:2], CALL[1], *CALL[2:]], ["item-again"]),
    "done again": ([*CALL[:6], CALL[5], CALL[6]], ["done-twice"]),
    "by its item id alone": (
        [
            CREATED,
            added(0, call()),
            event("function_call_arguments.delta", item_id="fc_1", delta=INPUT),
            item_done(0, call(INPUT)),
            completed(),
        ],
        ["no-output-index"],
    ),
    "each event another item id": (
        [
            CREATED,
            added(0, call()),
            arguments(0, INPUT[:4], item_id="x"),
            arguments(0, INPUT[4:], item_id="y"),
            item_done(0, call(INPUT, id="z")),
            completed(call(INPUT, id="w")),
        ],
        ["item-id-changed"],
    ),
    "its name and id come late": (
        [
            CREATED,
            added(0, call(name="", call_id="", id="")),
            arguments(0, INPUT),
            item_done(0, call(INPUT)),
            completed(),
        ],
        [],
    ),
    "its name comes with its arguments": (
        [
            CREATED,
            added(0, call(name="")),
            arguments_done(0, INPUT, name="change_label"),
            item_done(0, call(INPUT)),
            completed(),
        ],
        [],
    ),
    "its place without a number": (
        [CREATED, {**added(0, call()), "output_index": None}, *CALL[2:]],
        ["no-index"],
    ),
    "the snapshot has reasoning first, unstreamed": (
        [
            CREATED,
            added(1, call()),
            arguments(1, INPUT),
            item_done(1, call(INPUT)),
            completed(reasoning(), call(INPUT)),
        ],
        ["unstreamed"],
    ),
    "the snapshot has another order and other ids": (
        [
            CREATED,
            added(0, message()),
            added(1, call(call_id="call_1")),
            item_done(0, message("Hi")),
            item_done(1, call(INPUT)),
            completed(call(INPUT, id="w"), message("Hi", id="v")),
        ],
        [],
    ),
}


@pytest.mark.parametrize("name", PROVED)
def test_a_call_that_is_proved_is_a_proposal_once(name: str) -> None:
    payloads, problems = PROVED[name]
    consumer = consume(stream(payloads), wire="openai-responses")[0]
    (made,) = consumer.proposals
    assert (made.tool, made.call_id, made.input) == ("change_label", "call_1", json.loads(INPUT))
    assert sorted(rule for rule, _ in found(payloads)) == problems
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"


def test_a_hosted_call_that_is_stated_twice_is_only_a_warning() -> None:
    start = of("mcp_call", name="ask", arguments="")
    asked = of("mcp_call", name="ask", arguments='{"a":2}')
    delta = event("mcp_call_arguments.delta", 0, delta='{"a":1}')
    payloads = whole(asked, delta, start=start)
    assert found(payloads) == [("restated", "warning")]
    assert segment_of(payloads).input == {"a": 2}
    renamed = whole({**asked, "name": "tell"}, start=start)
    assert found(renamed) == [("call-renamed", "warning")]
    contained = {"environment": {"type": "container_auto"}, "action": SHELL}
    assert found(whole(of("shell_call", **contained), command("rm"))) == [("restated", "warning")]


def test_a_part_of_a_summary_may_come_without_its_part_but_no_part_of_a_message() -> None:
    bare = {"summary_index": 0, "item_id": "rs_1"}
    payloads = whole(
        {"type": "reasoning", "id": "rs_1"},
        event("reasoning_summary_part.added", 0, **bare),
        event("reasoning_summary_text.delta", 0, delta="so", **bare),
        event("reasoning_summary_part.done", 0, **bare),
    )
    assert found(payloads) == [("no-part", "note")]
    assert (segment_of(payloads).kind, segment_of(payloads).text) == ("thinking", "so")
    done = event("content_part.done", 0, content_index=0)
    assert state_of([*TEXT[:5], done, *TEXT[5:]]) == "INVALID"


def test_whole_items_without_an_index_are_told_apart_by_their_ids() -> None:
    def bare(item: JSON, step: str = "done") -> JSON:
        return {"type": f"response.output_item.{step}", "item": item}

    one, two = call('{"a": 1}', id=""), call('{"b": 2}', 2, id="")
    for between in ([], [bare(call(id=""), "added"), bare(call("", 2, id=""), "added")]):
        payloads = [CREATED, *between, bare(one), bare(two), completed()]
        assert [made.input for made in turn_of(payloads).calls] == [{"a": 1}, {"b": 2}]
        assert ("no-output-index", "warning") in found(payloads)
        assert state_of(payloads) == "VALIDATED_PROPOSAL"
    indexed = [CREATED, added(0, call(id="")), arguments(0, '{"a": 1}'), bare(one), completed()]
    assert found(indexed) == [("no-output-index", "warning")]
    assert state_of(indexed) == "VALIDATED_PROPOSAL"
    nameless = [CREATED, bare(call(INPUT, id="", call_id="")), completed()]
    assert state_of(nameless) == "HELD"
    twice = [CREATED, bare(one), bare({**one, "arguments": INPUT}), completed()]
    assert state_of(twice) == "HELD"
    open_one = [CREATED, added(0, call(call_id="")), bare(one), completed()]
    assert state_of(open_one) == "HELD"


def test_a_vendors_own_call_may_be_announced_with_another_id_but_no_streamed_call_may() -> None:
    asked = of("tool_search_call", arguments={"q": "x"}, execution="client", call_id="call_b")
    start = {**asked, "call_id": "call_a", "status": "in_progress"}
    payloads = whole(asked, start=start)
    assert found(payloads) == [("call-id-changed", "warning")]
    assert segment_of(payloads).start.call_id == "call_b"
    assert state_of(payloads) == "VALIDATED_PROPOSAL"
    streamed = whole({**call(INPUT), "call_id": "call_b"}, arguments(0, INPUT), start=call())
    assert state_of(streamed) == "HELD"
    first = of("tool_search_call", arguments={"q": "y"}, execution="client", call_id="call_b")
    both = [CREATED, added(0, first), item_done(0, first), added(1, start), item_done(1, asked)]
    assert state_of([*both, completed(first, asked)]) == "HELD"


# --- Breaches and habits ----------------------------------------------------------------------

MALFORMED = {
    "no response": {"type": "response.created"},
    "no item": event("output_item.added", 0),
    "an index that is none": added(-1, message()),
    "no item, done": event("output_item.done", 0),
    "an index that is none, done": item_done(True, message()),
    "no part": event("content_part.added", 0, content_index=0),
    "no delta": event("output_text.delta", 0, content_index=0),
    "no text": event("output_text.done", 0, content_index=0),
    "an index that is text": event("output_text.delta", "0", content_index=0, delta="x"),  # type: ignore[arg-type]
    "a part's index that is none": text(0, "x", -1),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_an_event_without_what_it_needs_is_an_error(name: str) -> None:
    payloads = [*TEXT[:5], MALFORMED[name], *TEXT[5:]]
    assert ("malformed", "error") in found(payloads)
    assert state_of(payloads) == "INVALID"


#: Name -> the answer, the rule, its severity, the state.
BREACHES: dict[str, tuple[list[Any], str, str, str]] = {
    "text for a call": (
        [*CALL[:2], text(0, "x"), *CALL[2:]],
        "delta-kind",
        "error",
        "INVALID",
    ),
    "arguments for a message": (
        [*TEXT[:4], arguments(0, "x"), *TEXT[4:]],
        "delta-kind",
        "error",
        "INVALID",
    ),
    "an answer inside the answer": (
        [*TEXT[:4], life(id="resp_2"), *TEXT[4:]],
        "second-start",
        "error",
        "INVALID",
    ),
    "created again": ([CREATED, *TEXT], "created-again", "note", "MESSAGE_COMPLETE"),
    "another response id": (
        [CREATED, life("in_progress", id="resp_2"), completed()],
        "response-id-changed",
        "note",
        "MESSAGE_COMPLETE",
    ),
    "a second answer": ([*TEXT, *TEXT], "second-answer", "error", "INVALID"),
    "text after the end": ([*TEXT, TEXT[4]], "after-the-end", "error", "INVALID"),
    "progress after the end": (
        [*TEXT, event("mcp_call.completed", 0)],
        "after-the-end",
        "error",
        "INVALID",
    ),
    "the end twice": ([*TEXT, TEXT[-1]], "end-twice", "warning", "MESSAGE_COMPLETE"),
    "text after its done": (
        [*TEXT[:7], text(0, "!"), *TEXT[7:]],
        "delta-after-done",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "a new part after its item": (
        [*TEXT[:9], text(0, "!", 1), TEXT[9]],
        "delta-after-done",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "a text's index used again": (
        [*TEXT[:9], added(0, message(id="msg_2")), completed()],
        "index-reused",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "a text that changes its type": (
        [*TEXT[:8], item_done(0, reasoning()), completed()],
        "item-type-changed",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "text for two items": (
        [*TEXT[:5], added(1, message(id="msg_2")), text(0, "!", item_id="msg_2"), completed()],
        "two-items",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "text without a start": (
        [CREATED, text(0, "Hi"), completed()],
        "without-start",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "text without any index": (
        [CREATED, event("output_text.delta", delta="Hi"), completed()],
        "no-output-index",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "text without its part's index": (
        [CREATED, added(0, message()), event("output_text.delta", 0, delta="Hi"), completed()],
        "no-index",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "an item that is not done": (
        [*TEXT[:8], completed()],
        "unfinished-item",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "another status": (
        [CREATED, life("completed", status="in_progress")],
        "status",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "completed, but incomplete": (
        [CREATED, life("completed", status="incomplete")],
        "status",
        "warning",
        "HELD",
    ),
    "an end without its response": (
        [CREATED, {"type": "response.completed"}],
        "no-response",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "a snapshot's item without a type": (
        [CREATED, completed({"id": "x"})],
        "malformed-item",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "a number missing": (
        [p for p in numbered(TEXT) if p["sequence_number"] != 1],
        "sequence-gap",
        "note",
        "MESSAGE_COMPLETE",
    ),
    "a number twice": (
        [*numbered(TEXT)[:2], *numbered(TEXT)[1:]],
        "sequence-back",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "no event names": (
        [frame(p, "") for p in TEXT],
        "unnamed-event",
        "note",
        "MESSAGE_COMPLETE",
    ),
    "another event name": (
        [*TEXT[:4], frame(TEXT[4], "response.text"), *TEXT[5:]],
        "event-name",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "no type": (
        [
            *TEXT[:4],
            frame({k: v for k, v in TEXT[4].items() if k != "type"}, TEXT[4]["type"]),
            *TEXT[5:],
        ],
        "no-type",
        "warning",
        "MESSAGE_COMPLETE",
    ),
    "[DONE] too early": (
        [*TEXT[:4], b"data: [DONE]\n\n", *TEXT[4:]],
        "done-marker",
        "warning",
        "MESSAGE_COMPLETE",
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_each_breach_has_its_rule(name: str) -> None:
    payloads, rule, severity, state = BREACHES[name]
    assert (rule, severity) in found(payloads)
    assert state_of(payloads) == state
    shown = turn_of(payloads).text
    assert shown in ("", "Hi", "Hi!", "Hi there"), shown


def test_done_after_the_end_and_keep_alives_are_nothing() -> None:
    assert found([*TEXT, b"data: [DONE]\n\n"]) == []
    assert events([*TEXT, {"type": "keepalive"}])[-2] == KeepAlive()
    assert found([CREATED, {"type": "keepalive"}, completed()]) == []


def test_done_completes_nothing() -> None:
    payloads = [*TEXT[:-1], b"data: [DONE]\n\n"]
    assert not turn_of(payloads).complete
    assert state_of(payloads) == "INCOMPLETE"


@pytest.mark.parametrize("name", ["response.later", "later", 7])
def test_an_unknown_event_is_kept_and_grants_nothing(name: Any) -> None:
    strange = {"type": name, "output_index": 0, "text": "x"}
    payloads = [*TEXT[:5], frame(strange, str(name)), *TEXT[5:]]
    assert any(isinstance(event, Unknown) for event in events(payloads))
    turn = turn_of(payloads)
    assert (turn.text, turn.complete) == ("Hi there", True)


@pytest.mark.parametrize("kept", range(len(CALL)))
def test_what_ends_early_is_incomplete_and_says_what_is_missing(kept: int) -> None:
    payloads = CALL[:kept]
    assert state_of(payloads) == "INCOMPLETE"
    problems = turn_of(payloads).facts.problems
    assert any("response.completed" in p.message or p.rule == "empty" for p in problems)
    if 2 <= kept < 6:
        assert any("output_item.done of item 0" in p.message for p in problems)


def test_open_segments_and_parts_are_bounded() -> None:
    many = [CREATED, *(added(n, call(n=n)) for n in range(MAX_OPEN + 3)), completed()]
    assert found(many).count(("too-many-open", "error")) == 3
    parts = [CREATED, added(0, message()), *(text(0, "x", n) for n in range(MAX_OPEN + 3))]
    assert found(parts).count(("too-many-open", "error")) == 3
    unstreamed = whole(message(*"x" * (MAX_OPEN + 3)), start=message())
    assert ("too-many-open", "error") in found(unstreamed)


def test_beyond_the_bound_nothing_is_read_and_nothing_escapes() -> None:
    full = [CREATED, *(added(n, call(n=n)) for n in range(MAX_OPEN))]
    late = MAX_OPEN + 1
    for more in (text(late, "x"), event("output_text.delta", delta="x"), item_done(late, call())):
        assert ("too-many-open", "error") in found([*full, more, completed()])
    assert ("too-many-open", "error") in found([*full, completed(message("x"))])


def test_a_draft_without_its_operation_waits_for_the_item() -> None:
    start = of("apply_patch_call")
    payloads = whole(of("apply_patch_call", operation=PATCH), diff("done", diff="x"), start=start)
    assert segment_of(payloads).input == {"operation": PATCH}


def test_a_citation_for_a_part_that_is_closed_is_left_out() -> None:
    late = event("output_text.annotation.added", 0, content_index=0, annotation={"url": "u"})
    assert "citations" not in turn_of([*TEXT[:9], late, TEXT[9]]).segments[0].attached


def test_bytes_that_are_no_text_forge_no_call() -> None:
    payloads = [*CALL[:2], frame(CALL[2]).replace(b"item", b"it\xffm", 1), *CALL[3:]]
    assert state_of(payloads) in ("INVALID", "HELD")


# --- Recognising ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "payload", "known"),
    [
        ("response.created", {}, True),
        ("", {"type": "response.output_text.delta"}, True),
        ("", {"type": "error", "sequence_number": 1}, True),
        ("error", {"type": "error"}, False),
        ("", {"type": "message_start"}, False),
        ("", {"object": "chat.completion.chunk"}, False),
        ("", {"type": 7}, False),
    ],
)
def test_what_can_only_be_this_wire(name: str, payload: JSON, known: bool) -> None:
    assert ResponsesReader.recognises(name, payload) is known


# --- Laws -------------------------------------------------------------------------------------

numbers = st.sampled_from([0, 0, 1, 2, None, -1])
ids = st.sampled_from(["", "msg_1", "fc_1", "fc_2", "x"])
words = st.one_of(any_text, st.sampled_from([INPUT, INPUT[:11], INPUT[11:], "Hi"]))


@st.composite
def odd_event(draw: st.DrawFn) -> JSON:
    """Any event of the grammar, in any place, about any item."""
    index, item_id, said = draw(numbers), draw(ids), draw(words)
    item = draw(
        st.sampled_from(
            [message(said), call(said), call(said, 2), reasoning(said), SQL, of("shell_call")]
        )
    )
    place = {"item_id": item_id, "content_index": draw(numbers), "summary_index": draw(numbers)}
    return draw(
        st.sampled_from(
            [
                CREATED,
                added(index, item),  # type: ignore[arg-type]
                item_done(index, item),  # type: ignore[arg-type]
                {**text(index, said), **place},  # type: ignore[arg-type]
                {**text_done(index, said), **place},  # type: ignore[arg-type]
                {**arguments(index, said), **place},  # type: ignore[arg-type]
                arguments(index, said, item_id=item_id),  # type: ignore[arg-type]
                arguments_done(index, said, item_id=item_id),  # type: ignore[arg-type]
                event("reasoning_summary_text.delta", index, delta=said, **place),
                event("custom_tool_call_input.delta", index, delta=said, item_id=item_id),
                part("done", index, text=said),  # type: ignore[arg-type]
            ]
        )
    )


@st.composite
def soups(draw: st.DrawFn) -> bytes:
    """A whole answer with odd events among its own, some left out; then numbered, or not."""
    base = list(draw(st.sampled_from([TEXT, CALL, (CREATED, completed(message("Hi")))])))
    for extra in draw(st.lists(odd_event(), max_size=6)):
        base.insert(draw(st.integers(0, len(base))), extra)
    for _ in range(draw(st.integers(0, 2))):
        base.pop(draw(st.integers(0, len(base) - 1)))
    if draw(st.booleans()):
        base = numbered(base)
    return stream(base)


@given(cut(soups()))
def test_any_split_of_the_bytes_reads_the_same(drawn: tuple[bytes, list[int]]) -> None:
    data, cuts = drawn
    seen = saw(data)
    assert saw(data, cuts) == seen
    assert saw(data, range(len(data))) == seen


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_item_reads_the_same_in_small_pieces(size: int) -> None:
    for payloads, _ in ITEMS.values():
        data = stream(numbered(payloads))
        assert saw(data, range(0, len(data), size)) == saw(data)


def both_ways(frames: list[Frame], named: bool) -> int:
    """Read by the reader's own choice, and by the general way alone; return how often it chose."""
    fast, general = ResponsesReader(named), ResponsesReader(named)
    taken, slow, calls = 0, fast.payload, [0]
    stated: list[tuple[Event, ...]] = []

    def counting(payload: JSON, frame: Frame) -> tuple[Event, ...]:
        calls[0] += 1
        return slow(payload, frame)

    fast.payload = counting  # type: ignore[method-assign]
    for one in frames:
        before = calls[0]
        stated.append(general._read(one))
        assert fast.read(one) == stated[-1]
        taken += calls[0] == before
    runs = ResponsesReader(named)
    assert in_runs(runs, frames) == stated
    assert (runs.unfinished(), runs.completed) == (general.unfinished(), general.completed)
    assert fast.unfinished() == general.unfinished()
    assert (fast.completed, fast.started) == (general.completed, general.started)
    return taken


def unnamed(frames: list[Frame]) -> list[Frame]:
    return [Frame(f.number, "", f.data, f.start, f.end) for f in frames]


@given(soups())
def test_the_fast_way_reads_what_the_general_way_reads(data: bytes) -> None:
    frames = SSEDecoder().feed(data)
    both_ways(frames, named=True)
    both_ways(unnamed(frames), named=False)


def test_the_fast_way_is_taken_by_the_later_deltas_of_an_ordinary_answer() -> None:
    for payloads in (TEXT, CALL, numbered(TEXT), numbered(CALL)):
        frames = SSEDecoder().feed(stream(payloads))
        assert both_ways(frames, named=True) == 1
        assert both_ways(unnamed(frames), named=False) == 1


ODD = '{"type":"response.output_text.delta","output_index":0,"content_index":0,%s}'


@pytest.mark.parametrize(
    "odd",
    [
        ODD % '"item_id":"msg_1","delta":"x"',
        ODD % '"delta":"x"',
        ODD % '"item_id":"y","delta":"x"',
        ODD % '"item_id":"msg_1","delta":"x","more":1',
        ODD % '"item_id":"msg_1","delta":"x","delta":"y"',
        ODD % '"item_id":"msg_1","delta":"\\ud83d"',
        ODD % '"item_id":"msg_1","delta":null',
        ODD % '"item_id":"msg_1","delta":"x","error":{"message":"no"}',
        ODD % '"item_id":"msg_1","delta":"x","sequence_number":5',
        ODD % '"item_id":"msg_1","delta":"x","sequence_number":5.0',
        ODD % '"item_id":"msg_1","delta":"x","sequence_number":true',
        ODD % ('"item_id":"msg_1","delta":"x","sequence_number":' + "9" * 30),
        ODD % ('"item_id":"msg_1","delta":"x","logprobs":[' + "[" * 300 + "]" * 301),
        ODD % '"item_id":"msg_1","delta":"x","logprobs":[1e999]',
        ODD.replace('"output_index":0', '"output_index":0.0') % '"item_id":"msg_1","delta":"x"',
        ODD.replace('"output_index":0', '"output_index":-0') % '"item_id":"msg_1","delta":"x"',
        ODD.replace('_index":0', '_index":1') % '"item_id":"msg_1","delta":"x"',
        ODD.replace("output_text", "reasoning_text") % '"item_id":"msg_1","delta":"x"',
        ODD.replace('"type":"response.output_text.delta",', "") % '"item_id":"msg_1","delta":"x"',
        ODD % '"item_id":"msg_1","delta":"x"' + " x",
    ],
)
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_the_fast_way_reads_every_odd_delta_as_the_general_way_does(odd: str, named: bool) -> None:
    for payloads in (TEXT, numbered(TEXT)):
        frames = SSEDecoder().feed(stream(payloads))
        frames = frames if named else unnamed(frames)
        strange = Frame(99, "response.output_text.delta" if named else "", odd.encode(), 9, 10)
        for place in range(len(frames) + 1):
            both_ways([*frames[:place], strange, strange, *frames[place:]], named)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """The frames of a call: some lost, repeated, moved, or with one bit of one byte turned."""
    frames = [frame(payload) for payload in numbered(CALL)]
    for _ in range(draw(st.integers(1, 2))):
        place, other = (draw(st.integers(0, len(frames) - 1)) for _ in "ab")
        match draw(st.sampled_from(["lose", "repeat", "move", "turn"])):
            case "lose" if len(frames) > 1:
                frames.pop(place)
            case "repeat":
                frames.insert(place, frames[place])
            case "move":
                frames.insert(other, frames.pop(place))
            case _:
                data = bytearray(frames[place])
                data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
                frames[place] = bytes(data)
    return b"".join(frames)


@settings(max_examples=500)
@given(damaged())
def test_what_a_damaged_stream_proposes_is_what_the_intact_one_proposes(data: bytes) -> None:
    intact = consume(stream(CALL))[0].proposals
    assert consume(data, wire="openai-responses")[0].proposals in ((), intact)


def test_a_fragment_of_a_call_states_one_input_delta() -> None:
    assert events(CALL)[3:5] == [InputDelta("0", INPUT[:11]), InputDelta("0", INPUT[11:])]
