"""Real SDKs over real sockets: what they are asked, what they give, and how they are recorded."""

from __future__ import annotations

import asyncio
import importlib
import json

import msgspec
import pytest

from streamlab.analysis.judge import judge
from streamlab.errors import UsageError
from streamlab.streams import error_shapes, sdks, tap
from streamlab.streams.asking import ASKING
from streamlab.streams.live import record, record_prompt
from streamlab.streams.recording import Chunk, Recording, read
from streamlab.streams.sdks import SDKS, opened, opened_async, versions
from streamlab.streams.server import FaultServer
from streamlab.study.card_streams import GOOD, HALF, INPUT, PART, STOP, TEXT, TOOL
from streamlab.study.clients import WAYS, Call, ask, ask_async, full_name

#: Name of a client that records -> the wire of its answers.
WIRE_OF = {
    "anthropic": "claude",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "google-genai": "gemini",
}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for sdk in SDKS.values():
        for name in sdk.keys:
            monkeypatch.delenv(name, raising=False)


def chunked(wire: str, ending: str = "eof") -> Recording:
    pieces = GOOD[wire].pieces
    return Recording(tuple(Chunk(None, piece.data) for piece in pieces), ending, wire)


# --- The good streams -----------------------------------------------------------------------------


@pytest.mark.parametrize("wire", GOOD)
def test_every_good_stream_means_the_same(wire):
    data = GOOD[wire].data.decode()
    assert TEXT in data and TOOL in data and STOP[wire] in data
    roles = [piece.role for piece in GOOD[wire].pieces]
    assert roles[-1] == ("stop" if wire == "gemini" else "end")


def test_half_of_the_input_is_the_beginning_of_a_wrong_payment():
    assert json.loads(PART + HALF + "}") == {**INPUT, "amount": 1}


@pytest.mark.parametrize("way", WAYS.values(), ids=lambda way: way.id)
def test_each_way_gives_an_intact_answer_as_it_was_meant(way):
    pytest.importorskip(SDKS[way.sdk].module)
    with (
        FaultServer(chunked(way.wire)) as server,
        opened(SDKS[way.sdk], server.url, retries=0) as client,
    ):
        got = ask(way, client, "m-1", 30.0)
        (served,) = server.wait(1)
    assert (got.text, got.stop, got.error) == (TEXT, STOP[way.wire], "")
    assert [(call.name, call.input) for call in got.calls] == [(TOOL, INPUT)]
    assert (served.asked.model, served.asked.stream) == ("m-1", True)
    assert error_shapes.wire_of(served.asked.path) == way.wire


@pytest.mark.parametrize("way", WAYS.values(), ids=lambda way: way.id)
def test_the_async_client_gives_the_same_as_the_sync_one(way):
    pytest.importorskip(SDKS[way.sdk].module)

    async def both(url: str):
        async with opened_async(SDKS[way.sdk], url, retries=0) as client:
            return await ask_async(way, client, "m", 30.0)

    with FaultServer(chunked(way.wire)) as server:
        found = asyncio.run(both(server.url))
        with opened(SDKS[way.sdk], server.url, retries=0) as client:
            assert ask(way, client, "m", 30.0) == found


def test_an_exception_is_named_as_a_program_would_import_it():
    from json import JSONDecodeError

    assert full_name(JSONDecodeError) == "json.JSONDecodeError"
    assert full_name(ValueError) == "ValueError"


def test_text_that_is_no_json_is_a_call_without_a_value():
    assert Call(TOOL, None, "{") != Call(TOOL, {}, "{}")


# --- HTTP errors ----------------------------------------------------------------------------------

REFUSED = [
    ("anthropic raw", 529, "anthropic.OverloadedError"),
    ("anthropic raw", 404, "anthropic.NotFoundError"),
    ("chat raw", 401, "openai.AuthenticationError"),
    ("chat raw", 429, "openai.RateLimitError"),
    ("responses raw", 404, "openai.NotFoundError"),
    ("gemini raw", 404, "google.genai.errors.ClientError"),
    ("gemini raw", 503, "google.genai.errors.ServerError"),
]


@pytest.mark.parametrize(("name", "status", "expected"), REFUSED)
def test_an_http_error_has_the_shape_that_the_sdk_knows(name, status, expected):
    way = WAYS[name]
    pytest.importorskip(SDKS[way.sdk].module)
    with (
        FaultServer(status) as server,
        opened(SDKS[way.sdk], server.url, retries=0) as client,
    ):
        got = ask(way, client, "m", 30.0)
    assert got.error == expected
    assert "told to" in got.message, "the SDK found the message in the body"


@pytest.mark.parametrize(
    ("path", "wire", "model"),
    [
        ("/v1/messages", "claude", ""),
        ("/v1/chat/completions", "openai-chat", ""),
        ("/v1/responses", "openai-responses", ""),
        ("/v1/models/g-1:streamGenerateContent", "gemini", "g-1"),
        ("/v1beta/models/tuned/g:streamGenerateContent", "gemini", "tuned/g"),
        ("/v1/models/g-1:generateContent", "", ""),
        ("/v1/models/:streamGenerateContent", "", ""),
        ("/v1/other", "", ""),
    ],
)
def test_a_path_tells_the_wire_and_one_tells_the_model(path, wire, model):
    assert (error_shapes.wire_of(path), error_shapes.model_in(path)) == (wire, model)


@pytest.mark.parametrize("way", [w for w in WAYS.values() if not w.final], ids=lambda way: way.id)
def test_an_error_event_has_the_shape_that_the_sdk_knows(way):
    pytest.importorskip(SDKS[way.sdk].module)
    with (
        FaultServer(chunked(way.wire), error="overloaded_error") as server,
        opened(SDKS[way.sdk], server.url, retries=0) as client,
    ):
        got = ask(way, client, "m", 30.0)
    if way.wire == "openai-chat":
        assert got.error == "", "this SDK stops reading at the end marker"
    else:
        assert "verloaded" in got.message, got


# --- Which SDKs there are -------------------------------------------------------------------------


def test_every_sdk_and_its_http_stack_have_a_version():
    found = versions()
    assert set(found) == {*SDKS, "httpx2", "httpcore2", "h11"}
    assert found["anthropic"] and found["httpx2"]


@pytest.mark.parametrize("name", ["openai", "google-genai"])
def test_an_sdk_that_is_not_installed_is_one_clear_line(monkeypatch, name, tmp_path):
    def absent(module: str):
        raise ImportError(module)

    monkeypatch.setattr(importlib, "import_module", absent)
    hint = f"{name} is not installed: python3 -m pip install 'streamlab[clients]'"
    with pytest.raises(UsageError, match="not installed") as why:
        SDKS[name].load()
    assert str(why.value) == hint
    client = next(key for key, each in ASKING.items() if each.sdk == name)
    with pytest.raises(UsageError, match="not installed"):
        record_prompt(
            "m", "Hi", tmp_path / "a.stream.jsonl", client=client, base_url="http://[::1]:9"
        )


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:9/v1", True),
        ("http://[::1]:9", True),
        ("https://api.example", False),
        (None, False),
    ],
)
def test_a_server_on_this_machine_is_asked_without_a_proxy(url, local):
    assert sdks.is_local(url) == local


# --- Recording through them -----------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["eof", "cut", "reset"])
@pytest.mark.parametrize("client", ASKING)
def test_an_answer_is_recorded_through_each_real_client(client, ending, tmp_path):
    pytest.importorskip(SDKS[ASKING[client].sdk].module)
    wire, out = WIRE_OF[client], tmp_path / "a.stream.jsonl"
    pieces = GOOD[wire].pieces[:-1]  # the rest never comes, or is not read by every SDK
    sent = Recording(tuple(Chunk(None, piece.data) for piece in pieces), ending, wire)
    with FaultServer(sent) as server:
        done = record_prompt("m-1", "Hi", out, client=client, base_url=server.url)
    got = read(out)
    assert (got.data, got.ending) == (sent.data, ending)
    assert (got.wire, got.model, got.source) == (wire, "m-1", "recorded")
    assert bool(done.error) == (ending != "eof")
    times = [chunk.t for chunk in got.chunks]
    assert times == sorted(times) and None not in times and got.end_t >= times[-1]


@pytest.mark.parametrize("ending", ["eof", "cut"])
def test_a_client_that_hangs_up_at_done_leaves_the_true_end_on_the_tape(ending, tmp_path):
    """The end of the body comes after a moment, when this SDK has closed the response."""
    pytest.importorskip("openai")
    out = tmp_path / "a.stream.jsonl"
    sent = chunked("openai-chat")
    late = msgspec.structs.replace(sent, ending=ending, end_t=0.2)
    with FaultServer(late) as server:
        done = record_prompt("m", "Hi", out, client="openai-chat", base_url=server.url)
    got = read(out)
    assert (got.data, got.ending, done.error) == (sent.data, ending, "")
    assert judge(got).state == "VALIDATED_PROPOSAL"


def test_a_body_that_never_ends_after_done_is_waited_for_only_so_long(tmp_path, monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.setattr(tap, "REST_SECONDS", 0.05)
    out = tmp_path / "a.stream.jsonl"
    silent = msgspec.structs.replace(chunked("openai-chat"), ending="timeout")
    with FaultServer(silent) as server:
        record_prompt("m", "Hi", out, client="openai-chat", base_url=server.url)
    assert read(out).ending == "cancelled"


@pytest.mark.parametrize("client", ASKING)
def test_every_chunk_has_a_line_of_its_own(client, tmp_path):
    """Chunks that come apart stay apart, through every SDK's own transport."""
    pytest.importorskip(SDKS[ASKING[client].sdk].module)
    wire, out = WIRE_OF[client], tmp_path / "a.stream.jsonl"
    seen: list[int] = []
    with FaultServer(chunked(wire), every=0.02) as server:
        record_prompt(
            "m", "Hi", out, client=client, base_url=server.url, on_event=lambda e: seen.append(1)
        )
    assert 1 < len(read(out).chunks) <= len(GOOD[wire].pieces)
    assert seen


@pytest.mark.parametrize("client", ASKING)
def test_no_key_is_in_a_recording_or_in_a_complaint(client, monkeypatch, tmp_path):
    sdk = SDKS[ASKING[client].sdk]
    pytest.importorskip(sdk.module)
    monkeypatch.setenv(sdk.keys[0], "sk-secret")
    out = tmp_path / "a.stream.jsonl"
    told = Recording.from_bytes(b'{"error": {"message": "no key sk-secret here", "code": 401}}')
    refusal = FaultServer(told, headers=(("content-type", "application/json"),))
    with FaultServer(chunked(WIRE_OF[client])) as server:
        record_prompt("m", "Hi", out, client=client, base_url=server.url)
    assert "sk-secret" not in out.read_text() + repr(server.log)
    with refusal as server:
        done = record_prompt(
            "m", "Hi", tmp_path / "b.stream.jsonl", client=client, base_url=server.url
        )
    assert "sk-secret" not in done.error


@pytest.mark.parametrize("client", ASKING)
def test_without_a_key_nothing_is_sent(client, tmp_path):
    variable = SDKS[ASKING[client].sdk].keys[0]
    with pytest.raises(UsageError, match=variable):
        record_prompt("m", "Hi", tmp_path / "a.stream.jsonl", client=client)


def test_a_client_that_is_none_is_refused(tmp_path):
    with pytest.raises(UsageError, match="openai-responses"):
        record_prompt("m", "Hi", tmp_path / "a.stream.jsonl", client="openai")


TOOLS = [{"name": "pay", "input_schema": {"type": "object", "title": "of pay"}}]


@pytest.mark.parametrize("client", ASKING)
def test_tools_are_worded_as_each_vendor_wants_them(client, tmp_path, monkeypatch):
    pytest.importorskip(SDKS[ASKING[client].sdk].module)
    from streamlab.streams import live

    bodies: list[str] = []
    keep = live.wanted

    def wanted(body: bytes):
        bodies.append(body.decode())
        return keep(body)

    monkeypatch.setattr(live, "wanted", wanted)
    with FaultServer(chunked(WIRE_OF[client])) as server:
        out = tmp_path / "a.stream.jsonl"
        record_prompt("m", "Hi", out, 77, client=client, base_url=server.url, tools=TOOLS)
    assert '"pay"' in bodies[0] and "of pay" in bodies[0] and "77" in bodies[0]
    assert ("input_schema" in bodies[0]) == (client == "anthropic")


def test_googles_own_client_is_overheard_sync_and_async_and_changes_nothing():
    genai = pytest.importorskip("google.genai")
    ask_it = {"model": "m", "contents": "Hi"}

    def texts(chunks):
        return [part.text for chunk in chunks for part in chunk.candidates[0].content.parts]

    async def read_async(client):
        return [chunk async for chunk in await client.aio.models.generate_content_stream(**ask_it)]

    with FaultServer(chunked("gemini")) as server, record() as recorder:
        options = {"base_url": server.url, "client_args": {"trust_env": False}}
        options |= {"async_client_args": {"trust_env": False}}
        client = genai.Client(api_key="none", http_options=options)
        without = texts(client.models.generate_content_stream(**ask_it))
        recorder.attach(recorder.attach(client))
        assert texts(client.models.generate_content_stream(**ask_it)) == without
        assert texts(asyncio.run(read_async(client))) == without
        client.close()
    assert [got.data for got in recorder.recordings] == [GOOD["gemini"].data] * 2
    assert {got.wire for got in recorder.recordings} == {"gemini"}
