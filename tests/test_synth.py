"""The generator writes what was meant: two readers that share no code with it read it back."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from hypothesis import given
from hypothesis import strategies as st

from streamlab.analysis.judge import Outcome, judge
from streamlab.errors import UsageError
from streamlab.streams import claude_writer, faults, parts, recording, synth
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
from streamlab.streams.voice import payload_of

FOLDER = Path(__file__).parents[1] / "fixtures"
seeds = st.integers(0, 2**32)


# --- Two readers ----------------------------------------------------------------------------------


class Body(httpx2.SyncByteStream):
    """A response body that arrives as the recording's chunks did."""

    def __init__(self, source: Recording) -> None:
        self.source = source

    def __iter__(self) -> Any:
        yield from (chunk.data for chunk in self.source.chunks)


def by_sdk(source: Recording) -> Any:
    """The message that the vendor's own client makes of a recording."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        head = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=head, stream=Body(source))

    http = httpx2.Client(transport=httpx2.MockTransport(respond))
    client = Anthropic(api_key="none", base_url="http://sdk.invalid", http_client=http)
    asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    with client, client.messages.stream(**asked) as stream:
        return stream.get_final_message()


def whole(content: str | tuple[str, ...]) -> str:
    return "".join(content)


def meant(part: Part) -> dict[str, Any]:
    """What a part says, in the words of the API's message."""
    match part:
        case Text():
            cited = list(part.citations) or None
            return {"type": "text", "text": whole(part.text), "citations": cited}
        case Thinking():
            said = whole(part.thinking)
            return {"type": "thinking", "thinking": said, "signature": part.signature}
        case RedactedThinking():
            return {"type": "redacted_thinking", "data": part.data}
        case ToolCall() | ServerToolCall():
            kind = "tool_use" if isinstance(part, ToolCall) else "server_tool_use"
            return {"type": kind, "id": part.id, "name": part.name, "input": value_of(part)}
        case ServerToolResult():
            return {"type": part.type, "tool_use_id": part.tool_use_id}
        case OtherBlock():
            return {"type": part.block["type"]}


def value_of(part: ToolCall | ServerToolCall) -> Any:
    """The input of a call; a text that is no JSON stands for "nothing that could be used"."""
    if isinstance(part.input, dict):
        return part.input
    try:
        return json.loads(whole(part.input) or "{}")
    except ValueError:
        return None


def read_by_sdk(block: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(getattr(block, key)) for key in wanted}


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.model_dump() if hasattr(value, "model_dump") else value


def read_by_streamlab(outcome: Outcome) -> list[dict[str, Any]]:
    """What the reader under test found, in the same words."""
    found: list[dict[str, Any]] = []
    for segment in outcome.turn.segments:
        start, attached = segment.start, segment.attached
        match segment.kind:
            case "text":
                cited = attached.get("citations")
                found.append({"type": "text", "text": segment.text, "citations": cited})
            case "thinking":
                signature = segment.signature
                said = {"thinking": segment.text, "signature": signature}
                found.append({"type": "thinking", **said})
            case "tool_call":
                call = {"id": start.call_id, "name": start.name, "input": segment.input}
                found.append({"type": start.type, **call})
            case _:
                keys = ("data",) if start.type == "redacted_thinking" else ("tool_use_id",)
                kept = {key: attached[key] for key in keys if key in attached}
                found.append({"type": start.type, **kept})
    return found


# --- What was meant comes back --------------------------------------------------------------------


@given(seeds)
def test_the_vendors_client_reads_back_what_was_meant(seed: int) -> None:
    script, source = synth.random_answer(seed)
    message = by_sdk(source)
    assert len(message.content) == len(script)
    for part, block in zip(script, message.content, strict=True):
        wanted = meant(part)
        if wanted.get("input", {}) is None:
            del wanted["input"]  # cut short by the token limit: the client guesses
        assert read_by_sdk(block, wanted) == wanted
    assert message.stop_reason == judge(source).turn.facts.raw_stop_reason


@given(seeds)
def test_streamlab_reads_back_what_was_meant(seed: int) -> None:
    script, source = synth.random_answer(seed)
    outcome = judge(source)
    assert read_by_streamlab(outcome) == [meant(part) for part in script]
    assert outcome.turn.complete
    severities = {p.severity for p in outcome.turn.facts.problems if p.rule != "tool-input"}
    assert severities <= {"note"}


CONTENT: tuple[Part, ...] = (
    Thinking("Which label?", "c2lnbmVk"),
    Text("W-7 \N{ROCKET} e\N{COMBINING ACUTE ACCENT}\N{LINE SEPARATOR}end"),
    ToolCall("change_label", {"item": "W-7", "label": "caf\u00e9 \N{GRINNING FACE}"}),
    ToolCall("refresh", {}),
)

STYLES = {
    "as the API writes": Style(),
    "one character a fragment": Style(fragment=(1, 1)),
    "large fragments": Style(fragment=(1000, 1000)),
    "no empty first fragment": Style(first_empty=False),
    "no ping": Style(pings=0),
    "many pings": Style(pings=20),
    "interleaved": Style(interleave=True),
    "escaped": Style(ascii=True),
    "CRLF": Style(newline="\r\n"),
    "CR": Style(newline="\r"),
    **{f"reads of {name}": Style(chunking=name) for name in synth.CHUNKING},
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_a_style_changes_nothing_that_is_meant(style: Style) -> None:
    source = synth.answer(CONTENT, style=style)
    wanted = [meant(part) for part in claude_writer.identified(CONTENT, 7)]
    assert read_by_streamlab(judge(source)) == wanted
    blocks = by_sdk(source).content
    assert [read_by_sdk(*pair) for pair in zip(blocks, wanted, strict=True)] == wanted


STOPS = {
    "end_turn": ("end_turn", {}),
    "stop_sequence": ("stop_sequence", {"stop_sequence": "END"}),
    "tool_use": ("tool_use", {}),
    "max_tokens": ("max_tokens", {}),
    "model_context_window_exceeded": ("context_window", {}),
    "pause_turn": ("pause_turn", {}),
    "refusal": (
        "refusal",
        {"stop_details": {"type": "refusal", "category": "bio", "explanation": "no"}},
    ),
}


@pytest.mark.parametrize("raw", STOPS)
def test_every_stop_reason_can_be_written(raw: str) -> None:
    reason, said = STOPS[raw]
    content: list[Part] = [ToolCall("refresh")] if raw == "tool_use" else [Text("so")]
    source = synth.answer(content, raw, **said)
    facts, message = judge(source).turn.facts, by_sdk(source)
    assert (facts.stop_reason, facts.raw_stop_reason) == (reason, raw)
    assert message.stop_reason == raw
    assert facts.stop_sequence == message.stop_sequence == said.get("stop_sequence")
    assert facts.stop_details == plain(message.stop_details) == said.get("stop_details")


def test_a_character_can_be_cut_in_two() -> None:
    source = synth.answer([Text(("\ud83d", "\ude80"))])
    assert rb"\ud83d" in source.data
    assert judge(source).turn.text == "\N{ROCKET}"


def test_a_result_answers_the_call_before_it() -> None:
    source = synth.answer(
        [ServerToolCall("web_search"), ServerToolResult("web_search_tool_result", [])]
    )
    call, result = by_sdk(source).content
    assert result.tool_use_id == call.id
    assert call.id.startswith("srvtoolu_")


# --- Bytes and times ------------------------------------------------------------------------------


@given(seeds)
def test_a_seed_decides_everything(seed: int) -> None:
    assert synth.random_answer(seed) == synth.random_answer(seed)


def test_another_seed_gives_another_stream() -> None:
    assert len({synth.random_answer(seed)[1].data for seed in range(50)}) == 50


@given(seeds)
def test_time_never_runs_backwards(seed: int) -> None:
    _, source = synth.random_answer(seed)
    times = [chunk.t for chunk in source.chunks] + [source.end_t]
    assert None not in times
    assert times == sorted(times, key=lambda t: t or 0.0)
    assert times[0]


def test_a_read_may_end_inside_a_character() -> None:
    source = synth.answer([Text("\N{ROCKET}")], style=Style(chunking="byte"))
    assert all(len(chunk.data) == 1 for chunk in source.chunks)
    assert judge(source).turn.text == "\N{ROCKET}"


def test_an_unknown_way_to_chunk_is_refused() -> None:
    with pytest.raises(UsageError, match="'lines' is none of frame, several, anywhere"):
        synth.answer([Text("hi")], style=Style(chunking="lines"))


@pytest.mark.parametrize("module", [synth, claude_writer, parts], ids=lambda m: m.__name__)
def test_the_writer_shares_no_code_with_the_readers(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported
    assert not {name for name in imported if name and ".wire" in name}


# --- The recordings of the lessons ----------------------------------------------------------------


def names(source: Recording) -> list[str]:
    return [frame.event for frame in faults.frames(source)]


def test_six_events_has_each_kind_once() -> None:
    assert names(synth.six_events()) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_change_label_proposes_a_label_in_twenty_frames() -> None:
    source = synth.change_label()
    assert len(names(source)) == 20
    (proposal,) = judge(source).proposals
    assert (proposal.tool, proposal.input) == (
        "change_label",
        {"item": "W-7", "label": "Ready for review"},
    )


def test_pay_invoice_can_be_cut_at_amount_1() -> None:
    source = synth.pay_invoice()
    assert judge(source).proposals[0].input["amount"] == 100_000
    assert rb'\"amount\": 1"' in faults.frames(source)[11 - 1].data
    cut = faults.cut(source, after=11)
    assert judge(cut).attempt.state == "INCOMPLETE"
    assert by_sdk(cut).content[-1].input == {"invoice": "INV-17", "amount": 1}  # and no error


def test_parallel_tools_has_two_calls() -> None:
    calls = judge(synth.parallel_tools()).proposals
    assert [call.input["item"] for call in calls] == ["W-7", "W-8"]
    assert len({call.call_id for call in calls}) == 2


def test_thinking_then_tool_is_signed() -> None:
    thinking, call = judge(synth.thinking_then_tool()).turn.segments
    assert (thinking.kind, call.kind) == ("thinking", "tool_call")
    assert thinking.signature == "c3ludGhldGljLXNpZ25hdHVyZQ=="


@pytest.mark.parametrize("size", [0, 1, 20, 5000])
def test_long_text_has_the_length_that_was_asked_for(size: int) -> None:
    assert len(judge(synth.long_text(size)).turn.text) == size


@pytest.mark.parametrize("size", [60, 61, 100, 4096, 20_000])
def test_tool_json_has_the_size_that_was_asked_for(size: int) -> None:
    source = synth.tool_json(size, fragment=8)
    (call,) = judge(source).turn.calls
    assert len(call.text) == size
    assert call.input["rows"]
    pieces = [payload_of(frame).get("delta", {}) for frame in faults.frames(source)]
    sizes = {len(piece["partial_json"]) for piece in pieces if "partial_json" in piece}
    assert max(sizes) == 8


# --- The fixtures are what the generator writes ---------------------------------------------------

SEARCH: tuple[Part, ...] = (
    ServerToolCall("web_search", {"query": "what is a ledger"}),
    ServerToolResult(
        "web_search_tool_result",
        [{"type": "web_search_result", "title": "Ledgers", "url": "https://example.com/a"}],
    ),
    Text("A ledger is a book of records.", (synth.CITATION,)),
)

#: Name -> the recording; each is kept in the forms that are named after it.
FIXTURES: dict[str, tuple[Recording, tuple[str, ...]]] = {
    "six_events": (synth.six_events(), (".sse", ".jsonl", ".stream.jsonl")),
    "greeting_crlf": (
        synth.greeting(style=Style(newline="\r\n", chunking="anywhere")),
        (".sse", ".stream.jsonl"),
    ),
    "change_label": (synth.change_label(), (".sse", ".jsonl", ".stream.jsonl")),
    "pay_invoice_cut": (faults.cut(synth.pay_invoice(), after=11), (".sse", ".stream.jsonl")),
    "overloaded": (faults.error(synth.change_label(), after=12), (".sse", ".stream.jsonl")),
    "token_limit": (faults.token_limit(synth.change_label(), after=14), (".sse", ".stream.jsonl")),
    "refusal": (faults.refuse(synth.greeting(), after=6), (".sse", ".stream.jsonl")),
    "reset": (
        faults.disconnect(synth.change_label(), after=18, ending="reset"),
        (".stream.jsonl",),
    ),
    "stall": (faults.stall(synth.change_label(), after=12), (".stream.jsonl",)),
    "thinking_then_tool": (synth.thinking_then_tool(), (".sse", ".stream.jsonl")),
    "interleaved": (
        synth.parallel_tools(style=Style(interleave=True)),
        (".sse", ".stream.jsonl"),
    ),
    "search": (synth.answer(SEARCH, note="a search by the provider"), (".sse", ".stream.jsonl")),
    "hard_text": (
        synth.answer([Text(synth.HARD_TEXT)], seed=2, style=Style(chunking="anywhere")),
        (".sse", ".stream.jsonl"),
    ),
    "web_page": (faults.html_page(synth.greeting()), (".sse", ".stream.jsonl")),
}

FILES = {name + form: source for name, (source, forms) in FIXTURES.items() for form in forms}


@pytest.mark.parametrize("name", FILES)
def test_fixtures_are_what_the_generator_writes(
    name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    recording.write(FILES[name], tmp_path / name)
    new, kept = (tmp_path / name).read_bytes(), FOLDER / "claude" / name
    if pytestconfig.getoption("--update-golden"):
        kept.write_bytes(new)
    assert kept.read_bytes() == new, f"{kept} is not what the generator writes (--update-golden)"


def test_hard_text_has_reads_that_end_inside_a_character() -> None:
    assert b'"b64"' in (FOLDER / "claude" / "hard_text.stream.jsonl").read_bytes()


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".stream.jsonl")])
def test_a_timed_fixture_reads_back_as_it_was(name: str) -> None:
    assert recording.read(FOLDER / "claude" / name) == FILES[name]


def test_every_fixture_has_its_row_and_there_is_no_other() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    table = readme.split("## claude")[1].split("\n## ")[0]
    rows = [row.split(" | ") for row in table.splitlines() if row.startswith("| `")]
    states = {row[0].strip("| `"): row[-1].strip("| ") for row in rows}
    assert states == {name: judge(source).state.value for name, (source, _) in FIXTURES.items()}
    assert {path.name for path in (FOLDER / "claude").iterdir()} == set(FILES)
