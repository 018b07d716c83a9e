"""What the tools themselves write: curl, mitmproxy, vcrpy, Chromium, the SDKs, of our own server.

Each capture is read, and compared with what was served; the secrets that were in the request's
headers, in the URL and in the answer are nowhere in what comes out.

mitmproxy pins other versions of h11 and tornado than JupyterLab can live with, so it has an
environment of its own: made once, from `mitmproxy.lock`, under `.venv`, which git ignores.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamlab.analysis.judge import judge
from streamlab.errors import WireError
from streamlab.streams.importers import Opened, streams_in
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.server import FaultServer
from streamlab.streams.synth import story
from tests.conftest import CI
from tests.loopback import MODEL, START, STOP, frames, recording, stopped, text

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent

KEY = "sk-ant-api03-" + "Zq7" * 30
EMAIL = "alice@example.com"
SECRETS = {
    "authorization": "Bearer planted-token",
    "x-api-key": "sk-ant-api03-" + "Hdr" * 30,
    "cookie": "session=planted-cookie",
}
IN_URL = "AIza" + "Sy9" * 11 + "Qk"
PATH = f"/v1/messages?key={IN_URL}"

#: An answer that repeats secrets, one of them over two events.
ANSWER = (
    START
    + text(0, "Mail ali", f"ce@example.com, the key is {KEY}", " — done ✓")
    + stopped("end_turn")
    + STOP
)
SERVED = recording(*frames(ANSWER))
BODY = f'{{"model": "{MODEL}", "max_tokens": 9, "stream": true, "messages": []}}'
HEADERS = {"content-type": "application/json", "anthropic-version": "2023-06-01", **SECRETS}


def the_one(path: Path) -> Opened:
    """The one stream of a capture, unmasked, after a look that nothing leaks where it is masked."""
    (found,) = streams_in(path)
    assert isinstance(found.recording, Recording)
    shown = repr(found.recording) + repr(found.about) + judge(found.recording).turn.text
    for secret in (EMAIL, "alice@", KEY, IN_URL, *SECRETS.values(), "planted"):
        assert secret not in shown
        assert secret.encode() not in found.recording.data
    assert "e-mail address" in dict(found.about.masked)
    (kept,) = streams_in(path, keep=True)
    assert isinstance(kept.recording, Recording)
    assert len(kept.recording.data) == len(found.recording.data)
    return kept


def assert_read(path: Path, ending: str = "eof", served: Recording = SERVED) -> Opened:
    """A capture gives the bytes that were served, and its ending."""
    found = the_one(path)
    assert isinstance(found.recording, Recording)
    assert found.recording.data == served.data
    assert found.recording.ending == ending
    outcome, expected = judge(found.recording), judge(served)
    assert (outcome.turn, outcome.state) == (expected.turn, expected.state)
    return found


# --- curl


CURL = shutil.which("curl")
curl = pytest.mark.skipif(CURL is None and not CI, reason="there is no curl here")


def run_curl(url: str, path: Path, *options: str, trace: str = "") -> Path:
    """Ask with curl; keep what it prints, errors too, or the trace that it writes."""
    assert CURL, "there is no curl here, and CI must have one"
    wanted = [*options, *([trace, str(path)] if trace else [])]
    headers = [part for name, value in HEADERS.items() for part in ("-H", f"{name}: {value}")]
    command = [CURL, "-q", "-N", *wanted, *headers, "-d", BODY, url + PATH]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if not trace:
        path.write_bytes(done.stdout)
    return path


#: How the server ends, and frames its answer.
ENDS = [
    pytest.param("eof", "chunked", id="whole, chunked"),
    pytest.param("eof", "length", id="whole, with a length"),
    pytest.param("eof", "close", id="whole, up to the close"),
    pytest.param("cut", "chunked", id="cut"),
    pytest.param("reset", "chunked", id="reset"),
]

#: curl's options, and the option that writes a trace.
OUTPUTS = [
    pytest.param(("-sS", "-i"), "", id="-i"),
    pytest.param(("-i",), "", id="-i with the meter"),
    pytest.param(("-sSv",), "", id="-v"),
    pytest.param(("-sSv", "--trace-time"), "", id="-v with times"),
    pytest.param(("-v",), "", id="-v with the meter"),
    pytest.param(("-sSv", "-i", "--trace-time"), "", id="-v -i with times"),
    pytest.param((), "", id="the meter alone"),
    pytest.param(("-s",), "--trace", id="--trace"),
    pytest.param(("-s", "--trace-time"), "--trace", id="--trace with times"),
]


@curl
@pytest.mark.parametrize(("options", "trace"), OUTPUTS)
@pytest.mark.parametrize(("ending", "framing"), ENDS)
def test_an_output_of_curl_gives_what_was_served(
    ending: str, framing: str, options: tuple[str, ...], trace: str, tmp_path: Path
) -> None:
    with FaultServer(SERVED, ending=ending, framing=framing) as server:
        path = run_curl(server.url, tmp_path / "x", *options, trace=trace)
    found = assert_read(path, ending)
    assert found.about.form == "curl"
    assert found.about.status == (200 if options or trace else None)
    assert isinstance(found.recording, Recording)
    times = [chunk.t for chunk in found.recording.chunks]
    assert (None not in times) == (bool(trace) and "--trace-time" in options)


@curl
@pytest.mark.parametrize("stopping", ["cut", "reset"])
@pytest.mark.parametrize(("options", "trace"), OUTPUTS)
def test_an_answer_that_breaks_off_inside_a_line_loses_none_of_it(
    options: tuple[str, ...], trace: str, stopping: str, tmp_path: Path
) -> None:
    served = recording(ANSWER[:500], ending=stopping)
    with FaultServer(served) as server:
        path = run_curl(server.url, tmp_path / "x", *options, trace=trace)
    (found,) = streams_in(path, keep=True)
    assert isinstance(found.recording, Recording)
    assert (found.recording.data, found.recording.ending) == (ANSWER[:500], stopping)


@curl
def test_a_dump_in_ascii_gives_its_line_ends_back_and_says_what_is_lost(tmp_path: Path) -> None:
    served = story()
    with FaultServer(served, speed=None) as server:
        path = run_curl(server.url, tmp_path / "x", "-s", trace="--trace-ascii")
    (found,) = streams_in(path)
    assert isinstance(found.recording, Recording)
    assert found.recording.data == served.data
    assert "letters beyond ASCII are dots" in found.recording.note


@curl
@pytest.mark.parametrize("stopping", ["eof", "cut"])
def test_the_bare_output_of_curl_is_a_plain_stream_with_its_ending(
    stopping: str, tmp_path: Path
) -> None:
    with FaultServer(SERVED, ending=stopping) as server:
        path = run_curl(server.url, tmp_path / "x", "-sS")
    for found in streams_in(path):
        assert found.about.form == ""
        outcome = judge(found.recording)
    assert (outcome.turn, outcome.ending) == (judge(SERVED).turn, stopping)


@curl
def test_a_stream_that_curl_gave_up_on_has_timed_out(tmp_path: Path) -> None:
    held = Recording((Chunk(0.0, frames(ANSWER)[0]), Chunk(3600.0, STOP)))
    with FaultServer(held, speed=1.0) as server:
        path = run_curl(server.url, tmp_path / "x", "-sS", "-i", "--max-time", "0.5")
    (found,) = streams_in(path)
    assert judge(found.recording).ending == "timeout"


@curl
@pytest.mark.parametrize("options", [("-i",), ("-i", "--compressed")], ids=["raw", "decoded"])
def test_a_compressed_answer_is_read_whether_curl_decoded_it_or_not(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    packed = recording(gzip.compress(ANSWER))
    with FaultServer(packed, headers=(("content-encoding", "gzip"),)) as server:
        path = run_curl(server.url, tmp_path / "x", "-sS", *options)
    assert_read(path)


@curl
def test_an_error_in_place_of_a_stream_is_an_answer_too(tmp_path: Path) -> None:
    with FaultServer(529) as server:
        path = run_curl(server.url, tmp_path / "x", "-sS", "-i")
    (found,) = streams_in(path)
    assert found.about.status == 529
    assert "overloaded_error" in judge(found.recording).turn.facts.error


# --- mitmproxy


def make_environment() -> Path:
    """The folder with mitmproxy's programs; made anew where the lock file is another one."""
    import fcntl

    lock_file = Path(__file__).parent / "mitmproxy.lock"
    home = ROOT / ".venv" / "mitmproxy"
    home.parent.mkdir(exist_ok=True)
    done, wanted = home / "made-from", hashlib.sha256(lock_file.read_bytes()).hexdigest()
    with open(home.with_suffix(".guard"), "w") as guard:  # two workers may want it at once
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not done.exists() or done.read_text() != wanted:
            subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
            install = [home / "bin" / "python", "-m", "pip", "install", "--quiet"]
            subprocess.run([*install, "--require-hashes", "-r", lock_file], check=True)
            done.write_text(wanted)
    return home / "bin"


@pytest.fixture(scope="module")
def mitmdump() -> Path:
    """The program; skipped where it cannot be installed, but never in CI."""
    if sys.platform == "win32":
        pytest.skip("the guard of its environment is POSIX")
    try:
        return make_environment() / "mitmdump"
    except (subprocess.CalledProcessError, OSError) as why:
        if CI:
            raise
        pytest.skip(f"mitmproxy cannot be installed here: {why}")


@contextmanager
def proxied(program: Path, url: str, home: Path, *options: str) -> Iterator[int]:
    """mitmdump in front of a server; its port. The flows are in `home / "flows"` afterwards."""
    command = [program, "--mode", f"reverse:{url}", "--listen-host", "127.0.0.1"]
    command += ["--listen-port", "0", "--set", f"confdir={home}", "-w", home / "flows", *options]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, **output, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().decode()
            place = re.search(r"listening at .*?:(\d+)\.\s*$", said)
            assert place, said + process.stdout.read().decode()
            yield int(place[1])
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


def post(port: int, read: int | None = None) -> None:
    """Ask; read all of the answer or its first bytes; how it ends is no matter."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with suppress(http.client.HTTPException, OSError):
        connection.request("POST", PATH, BODY, HEADERS)
        connection.getresponse().read(read)
    connection.close()


STREAMED = ("--set", "stream_large_bodies=1")


@pytest.mark.slow
def test_a_flow_of_mitmproxy_gives_what_was_served_and_two_moments(
    mitmdump: Path, tmp_path: Path
) -> None:
    with FaultServer(SERVED) as server, proxied(mitmdump, server.url, tmp_path) as port:
        post(port)
    about = assert_read(tmp_path / "flows").about
    assert about.form == "mitmproxy"
    assert about.status == 200
    assert about.at > "2020"
    assert about.first_byte_s is not None and about.end_s is not None
    assert 0 <= about.first_byte_s <= about.end_s < 60


@pytest.mark.slow
def test_a_compressed_answer_in_a_flow_is_decoded(mitmdump: Path, tmp_path: Path) -> None:
    packed = recording(gzip.compress(ANSWER))
    named = (("content-encoding", "gzip"),)
    with (
        FaultServer(packed, headers=named) as server,
        proxied(mitmdump, server.url, tmp_path) as port,
    ):
        post(port)
    assert_read(tmp_path / "flows")


@pytest.mark.slow
def test_what_mitmproxy_passed_on_piece_by_piece_is_missed_clearly(
    mitmdump: Path, tmp_path: Path
) -> None:
    with FaultServer(SERVED) as server, proxied(mitmdump, server.url, tmp_path, *STREAMED) as port:
        post(port)
    with pytest.raises(WireError, match=r"flow 1: mitmproxy passed the body on and did"):
        list(streams_in(tmp_path / "flows"))


@pytest.mark.slow
def test_what_mitmproxy_was_told_to_store_is_read(mitmdump: Path, tmp_path: Path) -> None:
    said = subprocess.run([mitmdump, "--options"], capture_output=True, check=True).stdout
    if b"store_streamed_bodies" not in said:
        pytest.skip("mitmproxy 11, the last for this Python, does not have the option")
    options = (*STREAMED, "--set", "store_streamed_bodies=true")
    with FaultServer(SERVED) as server, proxied(mitmdump, server.url, tmp_path, *options) as port:
        post(port)
    assert_read(tmp_path / "flows")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["cut", "reset"])
@pytest.mark.parametrize("options", [(), STREAMED], ids=["collected", "passed on"])
def test_of_an_answer_that_broke_off_mitmproxy_keeps_its_word_alone(
    mitmdump: Path, tmp_path: Path, options: tuple[str, ...], ending: str
) -> None:
    with (
        FaultServer(SERVED, ending=ending) as server,
        proxied(mitmdump, server.url, tmp_path, *options) as port,
    ):
        post(port)
    with pytest.raises(WireError, match=r"flow 1: .*incomplete chunked read.*broke off"):
        list(streams_in(tmp_path / "flows"))


@pytest.mark.slow
def test_two_requests_are_two_flows_and_the_one_with_a_body_is_given(
    mitmdump: Path, tmp_path: Path
) -> None:
    broken = recording(*frames(ANSWER)[:3], ending="cut")
    with FaultServer([broken, SERVED]) as server, proxied(mitmdump, server.url, tmp_path) as port:
        post(port)
        post(port)
    found = assert_read(tmp_path / "flows")
    assert found.about.where == "flow 2"
    assert found.about.missing[0].startswith("flow 1: ")


# --- vcrpy


def ask_httpx(url: str) -> None:
    import httpx

    httpx.post(url, content=BODY, headers=HEADERS)


def ask_requests(url: str) -> None:
    import requests

    requests.post(url, data=BODY, headers=HEADERS)


@pytest.mark.parametrize("ask", [ask_httpx, ask_requests], ids=["httpx", "requests"])
@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize("packed", [False, True], ids=["as it is", "compressed"])
def test_a_cassette_of_vcrpy_gives_what_was_served(
    packed: bool, form: str, ask: Any, tmp_path: Path
) -> None:
    import vcr

    if packed and form == "json":
        pytest.skip("vcrpy cannot write bytes as JSON")
    served = recording(gzip.compress(ANSWER)) if packed else SERVED
    named = (("content-encoding", "gzip"),) if packed else ()
    path = tmp_path / f"cassette.{form}"
    with (
        FaultServer(served, headers=named) as server,
        vcr.VCR(serializer=form).use_cassette(str(path)),
    ):
        ask(server.url + PATH)
    found = assert_read(path)
    assert (found.about.form, found.about.status) == ("cassette", 200)


# --- A browser


FETCH = """async ([path, headers, body]) => {
  try {
    const answer = await fetch(path, { method: "POST", headers, body });
    return (await answer.text()).length;
  } catch (why) { return String(why); }
}"""


def record_har(browser: Browser, url: str, path: Path, **options: Any) -> Any:
    """Fetch the stream in a page, while Playwright records a HAR of it."""
    context = browser.new_context(record_har_path=path, **options)
    try:
        context.add_cookies([{"name": "s", "value": "planted-cookie", "url": url}])
        page = context.new_page()
        page.route("**/page", lambda route: route.fulfill(body="Hi", content_type="text/html"))
        page.goto(f"{url}/page")
        headers = {name: value for name, value in HEADERS.items() if name != "cookie"}
        return page.evaluate(FETCH, [PATH, headers, BODY])
    finally:
        context.close()


@pytest.mark.browser
@pytest.mark.parametrize("packed", [False, True], ids=["as it is", "compressed"])
def test_a_har_of_chromium_gives_what_was_served(
    browser: Browser, packed: bool, tmp_path: Path
) -> None:
    served = recording(gzip.compress(ANSWER)) if packed else SERVED
    named = (("content-encoding", "gzip"),) if packed else ()
    with FaultServer(served, headers=named) as server:
        length = record_har(browser, server.url, tmp_path / "x.har")
    assert length == len(ANSWER.decode())
    about = assert_read(tmp_path / "x.har").about
    assert (about.form, about.where, about.status) == ("har", "entry 2", 200)
    assert about.first_byte_s is not None and about.end_s is not None
    assert about.at > "2020"


@pytest.mark.browser
@pytest.mark.parametrize(
    "ending, said",
    [("cut", "ERR_INCOMPLETE_CHUNKED_ENCODING"), ("reset", "ERR_CONNECTION_RESET")],
)
def test_of_an_answer_that_broke_off_chromium_keeps_its_word_alone(
    browser: Browser, ending: str, said: str, tmp_path: Path
) -> None:
    with FaultServer(SERVED, ending=ending) as server:
        record_har(browser, server.url, tmp_path / "x.har")
    with pytest.raises(WireError, match=f"entry 2: net::{said}, and a browser keeps no body"):
        list(streams_in(tmp_path / "x.har"))


@pytest.mark.browser
def test_a_har_without_content_is_missed_clearly(browser: Browser, tmp_path: Path) -> None:
    with FaultServer(SERVED) as server:
        record_har(browser, server.url, tmp_path / "x.har", record_har_content="omit")
    with pytest.raises(WireError, match="entry 2: its body is not in the HAR; export it with"):
        list(streams_in(tmp_path / "x.har"))


# --- Logs


ASK = {
    "anthropic": """
import anthropic
client = anthropic.Anthropic(api_key="planted", base_url=URL, max_retries=0)
with client.messages.stream(model="m", max_tokens=9, messages=[]) as stream:
    for _ in stream: pass
""",
    "openai": """
import openai
client = openai.OpenAI(api_key="planted", base_url=URL + "/v1", max_retries=0)
for _ in client.chat.completions.create(model="m", messages=[], stream=True): pass
""",
}


@pytest.mark.parametrize("sdk", ASK)
def test_the_debug_log_of_an_sdk_holds_no_stream_and_the_error_says_so(
    sdk: str, tmp_path: Path
) -> None:
    pytest.importorskip(sdk)
    wire = {"anthropic": "claude", "openai": "openai-chat"}[sdk]
    with FaultServer(story(wire=wire)) as server:
        code = f"URL = {server.url!r}\n{ASK[sdk]}"
        told = os.environ | {f"{sdk.upper()}_LOG": "debug"}
        done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    path = tmp_path / "log"
    path.write_bytes(done.stderr)
    with pytest.raises(WireError, match="SDKs log no body at DEBUG; record the answer itself"):
        list(streams_in(path))


def test_an_application_that_logs_each_line_of_a_stream_has_a_recording_with_times(
    tmp_path: Path,
) -> None:
    import httpx

    path = tmp_path / "app.log"
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    log = logging.Logger("app", logging.DEBUG)
    log.addHandler(handler)
    with (
        FaultServer(SERVED) as server,
        httpx.stream("POST", server.url + PATH, content=BODY, headers=HEADERS) as answer,
    ):
        for line in answer.iter_lines():
            log.debug(line)
    handler.close()
    found = the_one(path)
    assert isinstance(found.recording, Recording)
    assert judge(found.recording).turn == judge(SERVED).turn
    assert all(chunk.t is not None for chunk in found.recording.chunks)
