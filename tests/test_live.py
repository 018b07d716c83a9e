"""The recorder: everything a client got is on the tape, and the client notices nothing."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import subprocess
import sys
import threading
import zlib

import anthropic
import httpx2
import pytest

from streamlab.errors import UsageError
from streamlab.streams import live
from streamlab.streams.answer import Answer
from streamlab.streams.live import Recorder, record, record_prompt
from streamlab.streams.recording import Recording, read
from streamlab.streams.server import FaultServer
from tests.loopback import HELLO, MODEL, frames, pausing, recording

FRAMES = frames(HELLO)
WHOLE = recording(*FRAMES)
ASK = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


def sync_client(url: str, timeout: float = 30.0) -> anthropic.Anthropic:
    http = anthropic.DefaultHttpxClient(trust_env=False, timeout=timeout)
    return anthropic.Anthropic(base_url=url, api_key="none", http_client=http, max_retries=1)


def async_client(url: str, timeout: float = 30.0) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, timeout=timeout)
    return anthropic.AsyncAnthropic(base_url=url, api_key="none", http_client=http, max_retries=1)


def read_sync(url: str, recorder: Recorder | None, timeout: float = 30.0) -> list[str]:
    """Everything that a program sees of one stream: its events, and its exception."""
    saw = []
    with sync_client(url, timeout) as client:
        if recorder is not None:
            assert recorder.attach(client) is client
        try:
            for event in client.messages.create(**ASK, stream=True):
                saw.append(event.to_json())
        except Exception as error:
            saw.append(f"{type(error)} {error}")
    return saw


async def _read_async(url: str, recorder: Recorder | None, timeout: float) -> list[str]:
    saw = []
    async with async_client(url, timeout) as client:
        if recorder is not None:
            assert recorder.attach(client) is client
        try:
            async for event in await client.messages.create(**ASK, stream=True):
                saw.append(event.to_json())
        except Exception as error:
            saw.append(f"{type(error)} {error}")
    return saw


def read_async(url: str, recorder: Recorder | None, timeout: float = 30.0) -> list[str]:
    return asyncio.run(_read_async(url, recorder, timeout))


@pytest.fixture(params=[read_sync, read_async], ids=["sync", "async"])
def consume(request):
    return request.param


@pytest.mark.parametrize("ending", ["eof", "cut", "reset", "timeout"])
def test_each_ending_is_recorded_and_changes_nothing_for_the_client(consume, ending):
    timeout = 0.5 if ending == "timeout" else 30.0
    with FaultServer(recording(*FRAMES[:4], ending=ending)) as server:
        without = consume(server.url, None, timeout)
        with record() as recorder:
            recorded = consume(server.url, recorder, timeout)
    assert recorded == without
    (got,) = recorder.recordings
    assert (got.ending, got.data) == (ending, b"".join(FRAMES[:4]))
    assert (got.wire, got.source, got.model) == ("claude", "recorded", MODEL)


def test_the_file_holds_what_memory_holds_and_every_time_is_from_the_request_on(consume, tmp_path):
    ticks = iter(range(1, 1000))
    recorder = record(tmp_path / "a.stream.jsonl", clock=lambda: next(ticks))
    with FaultServer(WHOLE) as server, recorder:
        consume(server.url, recorder)
    assert recorder.paths == (tmp_path / "a.stream.jsonl",)
    (got,) = recorder.recordings
    assert got == read(tmp_path / "a.stream.jsonl")
    assert got.data == HELLO
    assert [chunk.t for chunk in got.chunks] == list(range(1, len(got.chunks) + 1))
    assert got.end_t == len(got.chunks) + 1


def test_each_line_is_on_the_disk_before_the_next_chunk_comes(tmp_path):
    path = tmp_path / "a.stream.jsonl"
    with (
        FaultServer(pausing(*FRAMES), speed=1.0) as server,
        sync_client(server.url) as client,
        record(path) as recorder,
    ):
        recorder.attach(client)
        stream = client.messages.create(**ASK, stream=True)
        for _ in FRAMES[:-1]:
            next(stream)
        crashed = read(path)
        assert recorder.recordings == (), "it is not over"
        stream.close()
    assert crashed.data == b"".join(FRAMES[:-1])
    assert crashed.ending == "cut"
    assert "without its end line" in crashed.note
    assert read(path).ending == "cancelled"


def leave_by_close(url, recorder):
    with sync_client(url) as client:
        stream = recorder.attach(client).messages.create(**ASK, stream=True)
        next(stream)
        stream.close()


def leave_by_break(url, recorder):
    with sync_client(url) as client, recorder.attach(client).messages.stream(**ASK) as stream:
        for _ in stream:
            break


def leave_by_forgetting(url, recorder):
    with sync_client(url) as client:
        next(recorder.attach(client).messages.create(**ASK, stream=True))


def leave_by_exception(url, recorder):
    with sync_client(url) as client, recorder.attach(client).messages.stream(**ASK) as stream:
        next(stream)
        with pytest.raises(KeyboardInterrupt), stream:
            raise KeyboardInterrupt


def leave_by_async_close(url, recorder):
    async def leave():
        async with async_client(url) as client:
            stream = await recorder.attach(client).messages.create(**ASK, stream=True)
            async for _ in stream:
                break
            await stream.close()

    asyncio.run(leave())


def leave_by_async_break(url, recorder):
    async def leave():
        async with (
            async_client(url) as client,
            recorder.attach(client).messages.stream(**ASK) as stream,
        ):
            async for _ in stream:
                break

    asyncio.run(leave())


def leave_by_cancelling(url, recorder):
    async def leave():
        async with async_client(url) as client:
            stream = await recorder.attach(client).messages.create(**ASK, stream=True)
            started = asyncio.Event()

            async def consume():
                async for _ in stream:
                    started.set()

            task = asyncio.create_task(consume())
            await started.wait()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(leave())


def leave_by_running_out_of_patience(url, recorder):
    async def leave():
        async with async_client(url) as client:
            stream = await recorder.attach(client).messages.create(**ASK, stream=True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    async for _ in stream:
                        pass

    asyncio.run(leave())


@pytest.mark.parametrize(
    "leave",
    [
        leave_by_close,
        leave_by_break,
        leave_by_forgetting,
        leave_by_exception,
        leave_by_async_close,
        leave_by_async_break,
        leave_by_cancelling,
        leave_by_running_out_of_patience,
    ],
)
def test_a_client_that_leaves_has_cancelled_and_what_it_got_is_kept(leave):
    with FaultServer(pausing(*FRAMES[:2]), speed=1.0) as server, record() as recorder:
        leave(server.url, recorder)
        (served,) = server.wait(1)
    (got,) = recorder.recordings
    assert (got.ending, got.data) == ("cancelled", FRAMES[0])
    assert (served.ended, served.chunks) == ("client gone", 1)


def test_a_stream_closed_from_another_thread_ends_once():
    with (
        FaultServer(pausing(*FRAMES), speed=1.0) as server,
        record() as recorder,
        sync_client(server.url) as client,
    ):
        stream = recorder.attach(client).messages.create(**ASK, stream=True)
        next(stream)
        thread = threading.Thread(target=stream.response.close)
        thread.start()
        thread.join()
        with pytest.raises(Exception):  # noqa: B017 (whatever the SDK makes of it)
            list(stream)
    assert [got.ending for got in recorder.recordings] == ["cancelled"]


def test_a_stream_that_outlives_the_recorder_goes_on_and_counts_as_cancelled():
    with FaultServer(WHOLE) as server, sync_client(server.url) as client:
        with record() as recorder:
            stream = recorder.attach(client).messages.create(**ASK, stream=True)
        assert len(list(stream)) == len(FRAMES)
        assert [got.ending for got in recorder.recordings] == ["cancelled"]
        list(client.messages.create(**ASK, stream=True))
    assert len(recorder.recordings) == 1, "it has let go of the client"


def test_several_requests_are_several_recordings_and_no_file_is_overwritten(consume, tmp_path):
    (tmp_path / "a-2.stream.jsonl").write_text("mine")
    with FaultServer(WHOLE) as server:
        for _ in range(2):
            with record(tmp_path / "a.stream.jsonl") as recorder:
                consume(server.url, recorder)
                consume(server.url, recorder)
            assert [got.data for got in recorder.recordings] == [HELLO, HELLO]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "a-2.stream.jsonl",
        *(f"a-{n}.stream.jsonl" for n in (3, 4, 5)),
        "a.stream.jsonl",
    ]
    assert (tmp_path / "a-2.stream.jsonl").read_text() == "mine"


def test_an_http_error_is_not_a_stream_but_its_retry_is(consume):
    at_once = (("retry-after-ms", "1"),)
    with FaultServer([529, WHOLE], headers=at_once) as server, record() as recorder:
        consume(server.url, recorder)
    assert [got.data for got in recorder.recordings] == [HELLO]


def test_a_page_in_place_of_a_stream_is_recorded_because_the_client_read_it():
    page = b"<html>Bad gateway</html>"
    html = Answer(recording(page), headers=(("content-type", "text/html"),))
    with FaultServer(html) as server, record() as recorder:
        assert read_sync(server.url, recorder) == []
    assert [got.data for got in recorder.recordings] == [page]


def test_a_request_for_no_stream_is_left_alone():
    asked = []

    def answer(request):
        asked.append(request)
        return httpx2.Response(200, json={"input_tokens": 3})

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http, record() as recorder:
        recorder.attach(http).post("https://api.example/v1/messages/count", json={"model": "m"})
    assert recorder.recordings == ()
    assert asked[0].headers["accept-encoding"].startswith("gzip")


@pytest.mark.parametrize(
    ("path", "body", "wire", "model"),
    [
        ("/v1/messages?beta=true", {"model": "c", "stream": True}, "claude", "c"),
        ("/v1/chat/completions", {"model": "o", "stream": True}, "openai-chat", "o"),
        ("/v1/responses", {"model": "o", "stream": True}, "openai-responses", "o"),
        ("/v1beta/models/g-1:streamGenerateContent?alt=sse", {}, "gemini", "g-1"),
        ("/elsewhere", {"model": "x", "stream": True}, None, "x"),
    ],
)
def test_the_path_tells_the_wire_format(path, body, wire, model):
    transport = httpx2.MockTransport(
        lambda request: httpx2.Response(200, content=iter([b"data: 1\n\n"]))
    )
    with httpx2.Client(transport=transport) as http, record() as recorder:
        recorder.attach(http).post("https://api.example" + path, json=body)
    (got,) = recorder.recordings
    assert (got.wire, got.model, got.data) == (wire, model, b"data: 1\n\n")


@pytest.mark.parametrize(
    ("coding", "compressed"),
    [("gzip", gzip.compress(HELLO)), ("deflate", zlib.compress(HELLO)), ("gzip", None)],
    ids=["gzip", "deflate", "announced only"],
)
def test_a_compressed_stream_is_recorded_as_the_text_it_is(consume, coding, compressed):
    data = compressed or HELLO
    pieces = [data[at : at + 50] for at in range(0, len(data), 50)]
    packed = Answer(recording(*pieces), headers=(("content-encoding", coding),))
    with FaultServer(packed) as server:
        without = consume(server.url, None)
        with record() as recorder:
            assert consume(server.url, recorder) == without
    (got,) = recorder.recordings
    assert HELLO.startswith(got.data) if compressed is None else got.data == HELLO


def test_an_upload_that_is_read_as_it_is_sent_is_left_alone():
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=iter([b"x"])))
    with httpx2.Client(transport=transport) as http, record() as recorder:
        answer = recorder.attach(http).post("https://api.example/", content=iter([b"{}"]))
    assert (answer.content, recorder.recordings) == (b"x", ())


def test_only_what_can_be_read_back_is_offered_for_compression():
    offered = []

    def answer(request):
        offered.append(request.headers["accept-encoding"])
        return httpx2.Response(200, content=b"")

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http, record() as recorder:
        for coding in ("gzip, deflate, br, zstd", "br"):
            recorder.attach(http).post(
                "https://api.example/", json={"stream": True}, headers={"accept-encoding": coding}
            )
    assert offered == ["gzip, deflate", "identity"]


def test_bytes_that_are_no_text_survive(tmp_path):
    noise = b"data: \xff\xfe" + bytes(range(256)) + b"\n\n"
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=iter([noise])))
    path = tmp_path / "a.stream.jsonl"
    with httpx2.Client(transport=transport) as http, record(path) as recorder:
        recorder.attach(http).post("https://api.example/", json={"stream": True})
    assert read(tmp_path / "a.stream.jsonl").data == noise


class FullDisk:
    """A file on a disk that is full after some lines."""

    name = "full.stream.jsonl"

    def __init__(self, lines: int) -> None:
        self.lines = lines

    def write(self, line: bytes) -> None:
        self.lines -= 1
        if self.lines < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if self.lines < 0:
            raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("lines", [0, 3])
def test_a_full_disk_is_the_recorders_problem_and_not_the_clients(consume, tmp_path, lines):
    with FaultServer(WHOLE) as server:
        without = consume(server.url, None)
        recorder = record(tmp_path / "a.stream.jsonl")
        recorder._next_file = lambda path: FullDisk(lines)
        assert consume(server.url, recorder) == without
    with pytest.raises(UsageError, match="incomplete: No space left on device"):
        recorder.close()


def test_a_folder_that_vanishes_is_the_recorders_problem_too(consume, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    with FaultServer(WHOLE) as server:
        without = consume(server.url, None)
        recorder = record(folder / "a.stream.jsonl")
        folder.rmdir()
        assert consume(server.url, recorder) == without
    with pytest.raises(UsageError, match="incomplete"):
        recorder.close()


def test_what_the_client_looks_up_on_the_response_is_still_there():
    with FaultServer(WHOLE) as server, sync_client(server.url) as client, record() as recorder:
        recorder.attach(client)
        with client.messages.with_streaming_response.create(**ASK, stream=True) as response:
            response.read()
            assert response.http_response.elapsed.total_seconds() > 0
            assert response.http_response.num_bytes_downloaded == len(HELLO)


def test_attaching_twice_records_once(consume):
    with FaultServer(WHOLE) as server, record() as recorder, sync_client(server.url) as client:
        recorder.attach(client)
        recorder.attach(client)
        list(client.messages.create(**ASK, stream=True))
    assert len(recorder.recordings) == 1


@pytest.mark.parametrize("client", [object(), None, "client"], ids=["object", "None", "text"])
def test_what_is_no_client_is_refused(client):
    with record() as recorder, pytest.raises(UsageError, match=r"anthropic 2\.14 or newer"):
        recorder.attach(client)


@pytest.mark.parametrize("name", ["a.sse", "a.jsonl", "nowhere/a.stream.jsonl"])
def test_a_name_that_cannot_work_is_refused_before_any_request(tmp_path, name):
    with pytest.raises(UsageError):
        record(tmp_path / name)


# ---- record_prompt


@pytest.fixture
def no_key(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def test_a_prompt_is_recorded_through_the_real_sdk(no_key, tmp_path):
    out = tmp_path / "a.stream.jsonl"
    events = []
    with FaultServer(WHOLE) as server:
        done = record_prompt(MODEL, "Hi", out, base_url=server.url, on_event=events.append)
        assert server.wait(1)[0].asked.model == MODEL
    assert done == ((out,), "")
    assert read(out).data == HELLO
    assert events[-1].type == "message_stop"


def test_a_prompt_may_come_with_tools_and_thinking(no_key, tmp_path):
    bodies = []
    keep = live.wanted

    def wanted(body):
        bodies.append(json.loads(body))
        return keep(body)

    tools = [{"name": "change_label", "input_schema": {"type": "object"}}]
    with FaultServer(WHOLE) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "wanted", wanted)
        record_prompt(
            MODEL,
            "Hi",
            tmp_path / "a.stream.jsonl",
            2048,
            base_url=server.url,
            tools=tools,
            thinking={"type": "enabled", "budget_tokens": 1024},
        )
    assert bodies[0]["max_tokens"] == 2048
    assert bodies[0]["tools"] == tools
    assert bodies[0]["thinking"]["budget_tokens"] == 1024


def test_a_stream_that_breaks_is_a_recording_with_a_complaint(no_key, tmp_path):
    out = tmp_path / "a.stream.jsonl"
    with FaultServer(recording(*FRAMES[:3], ending="cut")) as server:
        done = record_prompt(MODEL, "Hi", out, base_url=server.url)
    assert done.error.startswith("RemoteProtocolError: ")
    assert (read(out).ending, read(out).data) == ("cut", b"".join(FRAMES[:3]))


def test_an_error_of_the_one_who_watches_is_not_the_streams(no_key, tmp_path):
    out = tmp_path / "a.stream.jsonl"
    with FaultServer(WHOLE) as server, pytest.raises(ZeroDivisionError):
        record_prompt(MODEL, "Hi", out, base_url=server.url, on_event=lambda event: 1 / 0)
    assert read(out).ending == "cancelled"


@pytest.mark.parametrize("given", [{"base_url": "http://["}, {"shape": "round"}], ids=str)
def test_what_the_sdk_does_not_take_is_one_clear_line(no_key, tmp_path, given):
    given = {"base_url": "http://127.0.0.1:9", **given}
    with pytest.raises(UsageError, match="nothing was recorded: "):
        record_prompt(MODEL, "Hi", tmp_path / "a.stream.jsonl", **given)


def test_no_stream_is_no_recording(no_key, tmp_path):
    out = tmp_path / "a.stream.jsonl"
    why = "nothing was recorded: AuthenticationError"
    with FaultServer(401) as server, pytest.raises(UsageError, match=why):
        record_prompt(MODEL, "Hi", out, base_url=server.url)
    assert not out.exists()


def test_without_a_key_nothing_is_sent(no_key, tmp_path):
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        record_prompt(MODEL, "Hi", tmp_path / "a.stream.jsonl")


def test_the_key_is_in_no_recording_and_no_message(monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    out = tmp_path / "a.stream.jsonl"
    with FaultServer([WHOLE, 401]) as server:
        record_prompt(MODEL, "Hi", out, base_url=server.url)
        with pytest.raises(UsageError) as refused:
            record_prompt(MODEL, "Hi", out, base_url=server.url)
    assert "sk-secret" not in out.read_text() + str(refused.value) + repr(server.log)


@pytest.mark.parametrize(
    ("missing", "what"), [("httpx2", "recording a client needs httpx2"), ("anthropic", "no SDK")]
)
def test_without_the_sdk_there_is_one_clear_line(missing, what):
    code = f"""
import sys
sys.modules[{missing!r}] = None
from streamlab.errors import UsageError
try:
    from streamlab.streams.live import record_prompt
    record_prompt("m", "hi", "a.stream.jsonl", base_url="http://127.0.0.1:9")
except UsageError as why:
    print(why)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert what in run.stdout
    assert "pip install" in run.stdout


def test_the_recorder_does_not_import_the_sdk():
    code = "import sys, streamlab.streams.live; print('anthropic' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_the_server_and_the_recorder_are_a_round_trip(tmp_path):
    first = tmp_path / "a.stream.jsonl"
    with FaultServer(recording(*FRAMES[:5], ending="reset")) as server, record(first) as recorder:
        read_sync(server.url, recorder)
    with FaultServer(read(first)) as server, record() as again:
        read_sync(server.url, again)
    (got,) = again.recordings
    assert isinstance(got, Recording)
    assert (got.data, got.ending) == (read(first).data, "reset")


def test_an_incomplete_recording_does_not_hide_the_exception_of_the_block(tmp_path):
    recorder = record(tmp_path / "a.stream.jsonl")
    recorder._next_file = lambda path: FullDisk(0)
    with FaultServer(WHOLE) as server, pytest.raises(KeyError) as raised, recorder:
        read_sync(server.url, recorder)
        raise KeyError("mine")
    (note,) = raised.value.__notes__
    assert "the recording is incomplete: No space left" in note
