"""A history in each vendor's request: what is opaque goes back byte for byte, and in its place."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from streamlab.analysis.judge import judge
from streamlab.consumer.conversation import Conversation
from streamlab.consumer.gates import Policy
from streamlab.consumer.toolloop import run_turn
from streamlab.errors import UsageError
from streamlab.streams import synth
from streamlab.streams.requests import KEYS, REQUESTS, authorised, request_of
from streamlab.streams.server import FaultServer
from streamlab.streams.upstream import Upstream

SIGNED = "c3ludGhldGljLXNpZ25hdHVyZQ=="
INPUT = {"item": "W-7", "label": "Ready for review"}


def told(wire: str) -> tuple[dict[str, Any], str]:
    """The request after a story and the result of its call; and the id of that call."""
    outcome = judge(synth.story(wire))
    call = outcome.proposals[0].call_id
    history = Conversation().ask("Mark W-7.").keep(outcome).answer({call: "done"})
    return json.loads(json.dumps(request_of(wire, "m", history.request()).body)), call


def test_claude_gets_its_signed_thinking_back() -> None:
    body, call = told("claude")
    thought, _, tool = body["messages"][1]["content"]
    assert thought["signature"] == SIGNED
    assert (tool["id"], tool["input"]) == (call, INPUT)
    assert body["messages"][2]["content"][0]["tool_use_id"] == call


def test_chat_gets_no_reasoning_back_and_results_as_messages_of_their_own() -> None:
    body, call = told("openai-chat")
    _, said, result = body["messages"]
    assert (said["role"], said["content"]) == ("assistant", "I'll mark W-7 as ready for review.")
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == INPUT
    assert result == {"role": "tool", "tool_call_id": call, "content": "done"}
    assert "reasoning" not in json.dumps(body)


def test_responses_gets_its_reasoning_back_encrypted_and_the_result_under_the_call_id() -> None:
    body, call = told("openai-responses")
    asked, thought, said, tool, result = body["input"]
    assert (thought["type"], thought["encrypted_content"]) == ("reasoning", SIGNED)
    assert thought["id"].startswith("rs_") and said["id"].startswith("msg_")
    assert (tool["call_id"], json.loads(tool["arguments"])) == (call, INPUT)
    assert result == {"type": "function_call_output", "call_id": call, "output": "done"}
    assert asked["content"][0]["type"] == "input_text"


def test_gemini_gets_its_signature_in_the_part_that_carried_it_and_no_id_of_ours() -> None:
    body, _ = told("gemini")
    _, said, result = body["contents"]
    signed = [part for part in said["parts"] if "thoughtSignature" in part]
    assert [(*part,) for part in signed] == [("functionCall", "thoughtSignature")]
    assert signed[0]["functionCall"] == {"name": "change_label", "args": INPUT}
    answer = {"name": "change_label", "response": {"output": "done"}}
    assert (said["role"], result["parts"]) == ("model", [{"functionResponse": answer}])
    assert "made-up" not in json.dumps(body)


def test_an_empty_signed_part_goes_back_to_gemini_in_its_place() -> None:
    parts = [synth.Thinking("Hm.", SIGNED), synth.Text("Done.")]
    history = Conversation().ask("Go.").keep(judge(synth.answer(parts, wire="gemini"))).ask("Well?")
    body = request_of("gemini", "m", history.request()).body
    assert body["contents"][1]["parts"][-1] == {"text": "", "thoughtSignature": SIGNED}


def test_a_failed_tool_is_an_error_to_gemini_and_free_text_is_a_custom_call() -> None:
    call = {"type": "tool_use", "id": "c", "name": "patch", "input": "*** begin"}
    failed = {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True}
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [failed]},
    ]
    chat = request_of("openai-chat", "m", messages).body["messages"][1]["tool_calls"]
    assert chat == [
        {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** begin"}}
    ]
    item = request_of("openai-responses", "m", messages).body["input"][1]
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** begin")
    parts = request_of("gemini", "m", messages).body["contents"][2]["parts"]
    assert parts[0]["functionResponse"]["response"] == {"error": "no"}


def history(*said: Any, result: Any = "done") -> list[Any]:
    """A question, an answer of these blocks, and the results of the calls among them."""
    calls = [block["id"] for block in said if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": id, "content": result} for id in calls]
    user, assistant = {"role": "user"}, {"role": "assistant"}
    asked = [{**user, "content": "Go."}, {**assistant, "content": [*said]}]
    return [*asked, {**user, "content": results or "More."}]


FREE = {"type": "tool_use", "id": "c1", "name": "patch", "input": "*** begin"}
CALL = {"type": "tool_use", "id": "c2", "name": "f", "input": {"x": 1}}


def test_responses_gets_the_result_of_a_custom_tool_as_such() -> None:
    items = request_of("openai-responses", "m", history(FREE, CALL)).body["input"]
    kinds = [item["type"] for item in items[-2:]]
    assert kinds == ["custom_tool_call_output", "function_call_output"]


def test_responses_gets_its_own_message_as_an_item_and_any_other_as_plain_text() -> None:
    own = {"type": "text", "text": "Hi.", "id": "msg_1", "phase": "commentary"}
    items = request_of("openai-responses", "m", history(own, {"type": "text", "text": "Ho."})).body
    assert items["input"][1]["content"] == [
        {"type": "output_text", "text": "Hi.", "annotations": []}
    ]
    assert (items["input"][1]["id"], items["input"][1]["phase"]) == ("msg_1", "commentary")
    assert items["input"][2] == {"type": "message", "role": "assistant", "content": "Ho."}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([], ""),
        ([{"type": "image", "source": 1}], '[{"type": "image", "source": 1}]'),
    ],
    ids=["texts", "nothing", "more than text"],
)
def test_a_result_in_blocks_goes_as_its_text(result: Any, text: str) -> None:
    said = history(CALL, result=result)
    assert request_of("openai-chat", "m", said).body["messages"][2]["content"] == text
    assert request_of("openai-responses", "m", said).body["input"][2]["output"] == text
    answer = request_of("gemini", "m", said).body["contents"][2]["parts"][0]["functionResponse"]
    assert answer["response"] == {"output": text}
    assert request_of("claude", "m", said).body["messages"][2]["content"][0]["content"] == result


def test_gemini_gets_its_own_parts_whole_and_nothing_that_came_beside_them() -> None:
    said = (
        {"type": "text", "text": "a", "partMetadata": {"k": 1}, "groundingMetadata": {}},
        {"type": "hologram", "hologram": {"size": 3}, "safetyRatings": [], "signature": SIGNED},
    )
    parts = request_of("gemini", "m", history(*said)).body["contents"][1]["parts"]
    assert parts == [
        {"text": "a", "partMetadata": {"k": 1}},
        {"hologram": {"size": 3}, "thoughtSignature": SIGNED},
    ]


@pytest.mark.parametrize("wire", [wire for wire in REQUESTS if wire != "claude"])
def test_no_other_vendor_is_sent_a_block_of_claude_alone(wire: str) -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}}
    hidden = {"type": "redacted_thinking", "data": "opaque"}
    text = {"type": "text", "text": "Found."}
    body = json.dumps(request_of(wire, "m", history(search, hidden, text)).body)
    assert "Found." in body
    assert "web_search" not in body and "opaque" not in body
    nothing = request_of(wire, "m", history(hidden)).body
    said = nothing.get("messages") or nothing.get("input") or nothing.get("contents")
    assert len(said) == 2


TYPES = {
    "openai-chat": (
        "openai.types.chat.completion_create_params",
        "CompletionCreateParamsStreaming",
    ),
    "openai-responses": (
        "openai.types.responses.response_create_params",
        "ResponseCreateParamsStreaming",
    ),
    "claude": ("anthropic.types.message_create_params", "MessageCreateParamsStreaming"),
}
SAID = [
    {"type": "text", "text": "a"},
    {"type": "text", "text": "b", "id": "msg_1"},
    CALL,
    FREE,
    {**CALL, "id": "c3", "input": {}},
]


@pytest.mark.parametrize("wire", TYPES)
def test_a_body_is_what_the_vendors_own_types_allow(wire: str) -> None:
    """Of Claude without the two things that only the other vendors' answers hold."""
    pydantic, (module, name) = pytest.importorskip("pydantic"), TYPES[wire]
    of = getattr(pytest.importorskip(module), name)
    said = [block for block in SAID if wire != "claude" or block is not FREE]
    offered = {"f": {"type": "object"}}
    body = request_of(wire, "m", history(*said), tools=offered).body
    pydantic.TypeAdapter(of).validate_python(json.loads(json.dumps(body)))


def test_the_contents_for_gemini_are_what_its_own_type_allows() -> None:
    types = pytest.importorskip("google.genai.types")
    for said in request_of("gemini", "m", history(*SAID)).body["contents"]:
        types.Content.model_validate(said)


@pytest.mark.parametrize("wire", REQUESTS)
def test_tools_are_offered_in_the_vendors_words(wire: str) -> None:
    schema = {"type": "object", "properties": {"item": {"type": "string"}}}
    offered = json.dumps(request_of(wire, "m", [], tools={"read_item": schema}).body["tools"])
    assert "read_item" in offered and json.dumps(schema) in offered
    assert "tools" not in request_of(wire, "m", []).body


def test_a_format_without_a_request_is_refused() -> None:
    with pytest.raises(UsageError, match="wire 'gemini-interactions' is none of claude, "):
        Upstream("http://127.0.0.1:9", wire="gemini-interactions")


@pytest.mark.parametrize("wire", REQUESTS)
def test_a_key_goes_over_https_or_stays_on_this_machine(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "secret")
    assert [*authorised(wire, "https://example.com")] == [KEYS[wire][1]]
    assert authorised(wire, "http://127.0.0.1:9") == authorised(wire, "https://example.com")
    assert authorised(wire, "http://example.com") == {}


@pytest.mark.parametrize("wire", REQUESTS)
def test_a_turn_of_two_rounds_over_a_socket_in_every_dialect(wire: str) -> None:
    """The second request holds the first answer, so the server can tell which one is wanted."""
    sent: list[list[Any]] = []

    async def change_label(given: Any) -> str:
        return f"{given['item']} is {given['label']}"

    async def play(first: str, second: str) -> Any:
        rounds = {1: Upstream(first, wire=wire), 3: Upstream(second, wire=wire)}

        def ask(messages: list[Any]) -> Any:
            sent.append(messages)
            return rounds[len(messages)](messages)

        policy = Policy(accept=frozenset({"tool_use", "end_turn"}))
        asked = Conversation().ask("Mark W-7.")
        return await run_turn(asked, ask, {"change_label": change_label}, policy)

    with (
        FaultServer(synth.story(wire)) as one,
        FaultServer(synth.answer([synth.Text("Done.")], wire=wire)) as two,
    ):
        ended = asyncio.run(play(one.url, two.url))
    assert ended.state == "ANSWERED"
    assert [len(messages) for messages in sent] == [1, 3]
    assert sent[1][-1]["content"][0]["content"] == "W-7 is Ready for review"
