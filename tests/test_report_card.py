"""The report card: faults are what they say, a verdict is a comparison, the table is measured.

`FACTS` is what streamlab has seen the real SDKs do, by fault and client. The card itself knows none
of it: each row is compared with a card that is filled here, and only where the installed SDK is of
the version that was measured. A newer one gets a skipped row, which says so, and its own card.
"""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import re
import socket

import pytest
from rich.console import Console

from streamlab import cli
from streamlab.analysis.figures.card import KINDS, Column, Square, heat_map
from streamlab.analysis.judge import judge
from streamlab.cli_card import WIDE, _matrices
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams import sdks
from streamlab.streams.sdks import SDKS
from streamlab.study import report_card
from streamlab.study.card_cell import VERDICTS, Cell, cell, differences, is_danger
from streamlab.study.card_faults import CARD_FAULTS
from streamlab.study.card_streams import GOOD, INPUT, STOP, TEXT, TOOL
from streamlab.study.clients import WAYS, Call, Got
from streamlab.study.report_card import Card, run_card

MEASURED = {"anthropic": "2.14.0", "openai": "3.57.0", "google-genai": "3.6.1"}

CLIENTS = (
    *("anthropic raw", "anthropic helper", "chat raw", "chat helper"),
    *("responses raw", "responses helper", "gemini raw"),
)

#: A word for a verdict: an exception's class, `right`, `nothing`, `-` (no such thing there), or the
#: beginning of what differs. `X` before it: a wrong call to act on.
HALF, LOST, NO_STOP = "half a call", "no call", "no stop reason"
NAMELESS, BAD = "a call without a name", "input is no JSON"
JSON, UTF8, ASSERT = "json.JSONDecodeError", "UnicodeDecodeError", "AssertionError"
READ, CUT, LATE = "httpx2.ReadError", "httpx2.RemoteProtocolError", "httpx2.ReadTimeout"
CONNECTION, TIMEOUT = "openai.APIConnectionError", "openai.APITimeoutError"
STATUS, API, SERVER = (
    "anthropic.APIStatusError",
    "openai.APIError",
    "google.genai.errors.ServerError",
)
GOOGLE = "google.genai.errors.UnknownApiResponseError"
RUN, GAP, BAD_INPUT = "RuntimeError", "IndexError", "ValueError"
LENGTH = "openai.LengthFinishReasonError"
MORE, ONE = "more text", "X call with amount 1"
BARE, EMPTY = "a call without input", "X tool input {}"
BYTE = "X call with invoice INV-\ufffd17"

R = "right"
FACTS = {
    "none": (R, R, R, R, R, R, R),
    "end-inside": (HALF, ONE, HALF, HALF, HALF, RUN, LOST),
    "end-at-call": (BARE, EMPTY, BARE, BARE, BARE, RUN, "-"),
    "end-before-stop": (NO_STOP, NO_STOP, NO_STOP, NO_STOP, NO_STOP, RUN, NO_STOP),
    "end-before-marker": (R, R, R, R, "-", "-", "-"),
    "empty": ("nothing", ASSERT, "nothing", ASSERT, "nothing", RUN, "nothing"),
    "json-body": ("nothing", ASSERT, "nothing", ASSERT, "nothing", RUN, "nothing"),
    "html-body": ("nothing", ASSERT, "nothing", ASSERT, "nothing", RUN, GOOGLE),
    "close-cut": (HALF, ONE, HALF, HALF, HALF, RUN, GOOGLE),
    "reset": (READ, READ, CONNECTION, CONNECTION, CONNECTION, CONNECTION, READ),
    "cut": (CUT, CUT, CONNECTION, CONNECTION, CONNECTION, CONNECTION, CUT),
    "cut-after-end": (CUT, CUT, R, R, CONNECTION, CONNECTION, CUT),
    "timeout": (LATE, LATE, TIMEOUT, TIMEOUT, TIMEOUT, TIMEOUT, LATE),
    "error": (STATUS, STATUS, API, API, API, API, SERVER),
    "error-then-more": (STATUS, STATUS, API, API, API, API, SERVER),
    "odd-error": (HALF, ONE, HALF, HALF, HALF, RUN, LOST),
    "odd-error-then-more": (R, R, R, R, R, R, R),
    "token-limit": (HALF, ONE, HALF, LENGTH, HALF, RUN, LOST),
    "bad-input": (BAD, BAD_INPUT, BAD, BAD, BAD, BAD, "-"),
    "unknown-event": (R, R, R, R, R, R, R),
    "ping": (R, R, R, R, R, R, GOOGLE),
    "empty-ping": (R, R, JSON, JSON, JSON, JSON, GOOGLE),
    "comment": (R, R, R, R, R, R, GOOGLE),
    "comment-after-id": (R, R, JSON, JSON, JSON, JSON, GOOGLE),
    "no-names": ("nothing", ASSERT, "-", "-", R, R, "-"),
    "two-ends": (R, R, R, R, R, R, R),
    "after-end": (MORE, MORE, R, R, MORE, R, MORE),
    "no-start": (NAMELESS, GAP, NAMELESS, NAMELESS, NAMELESS, RUN, "-"),
    "index-gap": (R, GAP, R, GAP, R, R, "-"),
    "not-json": (JSON, JSON, JSON, JSON, JSON, JSON, GOOGLE),
    "not-utf8": (UTF8, UTF8, UTF8, UTF8, UTF8, UTF8, BYTE),
    "bom": (R, ASSERT, R, R, R, R, GOOGLE),
    "no-blank-line": (R, R, R, R, NO_STOP, RUN, R),
}

PAIRS = [(fault, client) for fault in CARD_FAULTS for client in CLIENTS]


@pytest.fixture(scope="module")
def card() -> Card:
    return run_card()


@pytest.fixture(scope="module")
def async_card() -> Card:
    return run_card(asynchronous=True)


def worded(each: Cell) -> str:
    """A cell in the words of the table above."""
    shown = {"n/a": "-", "silent, nothing": "nothing"}.get(each.verdict, each.saw or each.verdict)
    return f"X {shown}" if each.danger else shown


# --- What was measured ----------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_fault_and_a_column_for_each_client():
    assert list(FACTS) == list(CARD_FAULTS)
    assert tuple(WAYS) == CLIENTS


@pytest.mark.parametrize("how", ["card", "async_card"], ids=["sync", "async"])
@pytest.mark.parametrize(("fault", "client"), PAIRS, ids=[f"{f}-{c}" for f, c in PAIRS])
def test_the_sdk_does_what_was_measured(fault, client, how, request):
    sdk = SDKS[WAYS[client].sdk]
    if sdk.version != MEASURED[sdk.name]:
        pytest.skip(
            f"measured with {sdk.name} {MEASURED[sdk.name]}; here is {sdk.version or 'none'}"
        )
    expected = FACTS[fault][CLIENTS.index(client)]
    assert worded(request.getfixturevalue(how).at(fault, client)).startswith(expected)


def test_every_card_is_stamped_with_what_it_measured(card):
    assert card.versions["anthropic"] == SDKS["anthropic"].version != ""
    assert f"anthropic {SDKS['anthropic'].version}" in repr(card)
    assert {row["version"] for row in card.rows() if row["sdk"] == "anthropic"} == {
        SDKS["anthropic"].version
    }


def test_what_streamlab_would_act_on_is_the_call_that_was_meant():
    """On every fault and every wire: a proposal is the whole call, or there is none."""
    proposed = 0
    for fault in CARD_FAULTS.values():
        for wire, good in GOOD.items():
            sent = fault.sent(good)
            if sent is None:
                continue
            outcome = judge(sent.recording(wire))
            for proposal in outcome.proposals:
                proposed += 1
                assert (proposal.tool, proposal.input) == (TOOL, INPUT), (fault.id, wire)
            assert len(outcome.proposals) <= 1, (fault.id, wire)
    assert proposed


@pytest.mark.parametrize("wire", GOOD)
def test_streamlab_takes_the_intact_answer_of_each_wire(wire):
    assert judge(CARD_FAULTS["none"].sent(GOOD[wire]).recording(wire)).state == (
        State.VALIDATED_PROPOSAL
    )


BROKEN = (
    *("end-inside", "end-at-call", "end-before-stop", "end-before-marker", "empty", "html-body"),
    *("close-cut", "reset", "cut", "timeout", "error", "error-then-more", "odd-error"),
    *("odd-error-then-more", "token-limit", "bad-input", "not-json"),
    *("not-utf8", "after-end"),
)


@pytest.mark.parametrize("fault", BROKEN)
def test_streamlab_proposes_nothing_from_a_broken_answer(fault):
    sent = {wire: CARD_FAULTS[fault].sent(good) for wire, good in GOOD.items()}
    states = {wire: judge(s.recording(wire)).state for wire, s in sent.items() if s is not None}
    assert states and State.VALIDATED_PROPOSAL not in states.values(), states


# --- The faults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", CARD_FAULTS.values(), ids=lambda fault: fault.id)
def test_a_fault_is_on_some_wire_and_differs_from_the_good_stream(fault):
    sent = {wire: fault.sent(good) for wire, good in GOOD.items()}
    there = {wire: s for wire, s in sent.items() if s is not None}
    assert there and fault.says.endswith(".")
    if fault.id != "none":
        for wire, each in there.items():
            whole = (each.data, each.ending) == (GOOD[wire].data, "eof")
            assert not whole, f"{fault.id} changes nothing on {wire}"


def test_a_cut_that_no_http_library_can_see_is_none_for_streamlab_either():
    sent = CARD_FAULTS["close-cut"].sent(GOOD["claude"])
    assert (sent.ending, sent.recording("claude").ending) == ("cut", "eof")


# --- The verdict ----------------------------------------------------------------------------------

MEANT = Call(TOOL, INPUT)
WHOLE = Got(TEXT, (MEANT,), STOP["claude"])
WRONG = Call(TOOL, {**INPUT, "amount": 1})

JUDGED = [
    (WHOLE, "right", "", False),
    (Got(), "silent, nothing", "", False),
    (Got(error="x.Error", message="why"), "raised", "x.Error", False),
    (Got(TEXT, (WRONG,), None), "silent partial", "call with amount 1; no stop reason", True),
    (
        Got(TEXT, (WRONG,), "tool_use"),
        "silent partial",
        "call with amount 1; looks complete: tool_use",
        True,
    ),
    (Got(TEXT, (Call(TOOL, {}),), None), "silent partial", "tool input {}; no stop reason", True),
    (Got(TEXT, (MEANT, MEANT), "tool_use"), "silent partial", "2 calls; looks", True),
    (Got(TEXT, (Call(None, INPUT),), "tool_use"), "silent partial", "a call without a name", False),
    (Got(TEXT, (Call("other", INPUT),), "tool_use"), "silent partial", "a call named", False),
    (Got(TEXT, (Call(TOOL, None, '{"inv'),), None), "silent partial", "half a call", False),
    (Got(TEXT, (Call(TOOL, None, "{]"),), None), "silent partial", "input is no JSON", False),
    (Got(TEXT, (Call(TOOL, [1]),), None), "silent partial", "call with input [1]", False),
    (Got("I will", (MEANT,), "tool_use"), "silent partial", "text 'I will'", False),
    (Got("", (MEANT,), "tool_use"), "silent partial", "no text", False),
    (Got(TEXT, (MEANT,), "max_tokens"), "silent partial", "stop reason max_tokens", False),
    (Got(TEXT, (), "tool_use"), "silent partial", "no call; looks complete", False),
    (None, "no end", "it came to no end in time", False),
]


@pytest.mark.parametrize(("got", "verdict", "saw", "danger"), JUDGED)
def test_a_verdict_is_what_differs_from_what_was_meant(got, verdict, saw, danger):
    found = cell("end-inside", "anthropic raw", "claude", got, "INCOMPLETE")
    assert (found.verdict, found.danger) == (verdict, danger)
    assert found.saw.startswith(saw) and found.verdict in VERDICTS
    assert found.kind in KINDS and found.word


def test_a_right_answer_differs_in_nothing_and_an_exception_is_no_danger():
    assert list(differences(WHOLE, "claude")) == []
    assert is_danger(Got(TEXT, (WRONG,)))
    assert not is_danger(Got(TEXT, (WRONG,), error="x.Error"))


# --- Running --------------------------------------------------------------------------------------


def test_only_what_is_named_is_run_and_the_order_is_the_callers():
    found = run_card(["bom", "none"], ["anthropic helper"])
    assert (found.faults, found.clients) == (("bom", "none"), ("anthropic helper",))
    with pytest.raises(UsageError, match="no 'cut'"):
        found.at("cut", "anthropic helper")


@pytest.mark.parametrize(
    ("faults", "clients", "hint"),
    [(["luck"], None, "end-inside"), (None, ["claude"], "anthropic helper")],
)
def test_a_name_that_is_none_is_refused_with_those_that_are(faults, clients, hint):
    with pytest.raises(UsageError, match=hint):
        run_card(faults, clients)


def test_progress_is_told_once_for_each_request():
    told: list[tuple[int, int]] = []
    run_card(["none", "bom"], ["anthropic raw"], watch=lambda done, of: told.append((done, of)))
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_client_that_never_comes_to_an_end_is_left_behind(monkeypatch, asynchronous):
    monkeypatch.setattr(report_card, "SILENCE", 3600.0)
    monkeypatch.setattr(report_card, "LIMIT", 0.1)
    found = run_card(["timeout"], ["anthropic raw"], asynchronous=asynchronous)
    assert found.at("timeout", "anthropic raw").verdict == "no end"


def test_a_generator_that_an_sdk_left_half_closed_is_not_told_and_anything_else_is(caplog):
    loop = asyncio.new_event_loop()
    report_card._quiet(loop, {"message": "half closed", "asyncgen": object()})
    assert not caplog.records
    report_card._quiet(loop, {"message": "something else"})
    assert "something else" in caplog.text
    loop.close()


def test_an_sdk_that_is_not_installed_is_left_out_with_one_line(monkeypatch):
    known = sdks._version
    monkeypatch.setattr(sdks, "_version", lambda name: "" if name == "openai" else known(name))
    found = run_card(["none"], ["anthropic raw", "chat raw", "chat helper"])
    assert found.clients == ("anthropic raw",)
    (line,) = found.missing
    assert line == "openai is not installed: python3 -m pip install 'streamlab[clients]'"


def test_every_request_stays_on_this_machine(monkeypatch):
    asked: list[str] = []
    connect = socket.socket.connect

    def watched(self, address):
        asked.append(address[0])
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:3128")
    found = run_card(["none"])
    assert {each.verdict for each in found.cells} == {"right"}
    assert set(asked) <= {"127.0.0.1"}


# --- As a DataFrame and as a figure ---------------------------------------------------------------


def test_the_frame_has_a_row_for_each_cell(card):
    frame = card.frame()
    assert len(frame) == len(card.cells) == len(card.faults) * len(card.clients)
    assert int(frame.danger.sum()) == sum(each.danger for each in card.cells)
    assert set(frame.verdict) <= set(VERDICTS)


def test_the_figure_says_in_words_what_its_colours_say(card):
    drawing = card.heat_map()
    words = re.findall(r"<text[^>]*>([^<]*)</text>", drawing.svg)
    for each in card.cells:
        sign = KINDS[each.kind].sign
        assert any(word.startswith(sign) for word in words)
    danger = sum(each.danger for each in card.cells)
    assert sum(word == "X wrong call" for word in words) == danger
    assert sum(word.startswith("! raised") for word in words) == sum(
        each.verdict == "raised" for each in card.cells
    )
    for name, kind in KINDS.items():
        assert f"{name}: {kind.says}" in words


def test_the_caption_counts_the_same_cells(card):
    caption = card.heat_map().caption
    for client in card.clients:
        (line,) = [line for line in caption.splitlines() if line.startswith(f"{client} (")]
        mine = [each for each in card.cells if each.client == client]
        wrong = sum(each.danger for each in mine)
        raised = sum(each.kind == "raised" for each in mine)
        assert f"raised {raised}" in line
        assert (f"danger {wrong}," in line or f"danger {wrong};" in line) == bool(wrong)
    assert card.stamp() in caption


def test_signs_tell_the_kinds_apart_without_colour():
    assert len({kind.sign for kind in KINDS.values()}) == len(KINDS)


def test_a_heat_map_of_nothing_is_refused_and_a_gap_is_shown_as_one():
    with pytest.raises(UsageError, match="at least one row"):
        heat_map("t", [], ["a"], {})
    drawing = heat_map("t", [Column("c")], ["a", "b"], {("a", "c"): Square("right", "right")})
    assert "- n/a" in drawing.svg and drawing.caption == "c: right 1, n/a 1."


def test_a_strangers_words_stay_words_in_the_figure():
    square = Square("raised", "<script>", "a\x1b[31m&b")
    svg = heat_map("t", [Column("c<d")], ["r"], {("r", "c<d"): square}).svg
    assert "<script>" not in svg and "\x1b" not in svg and "c&lt;d" in svg


# --- The command ----------------------------------------------------------------------------------


def said(capsys, *args: str) -> tuple[int, str, str]:
    status = cli.main(["report-card", *args])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_command_prints_a_table_and_the_versions(capsys):
    status, out, err = said(capsys, "--fault", "none", "--fault", "end-inside", "--fault", "bom")
    assert (status, err) == (0, "")
    assert "end-inside" in out and "anthropic" in out and "streamlab" in out
    assert f"anthropic {SDKS['anthropic'].version}" in out
    for kind in KINDS.values():
        assert f"{kind.sign}  {kind.says}" in out


@pytest.mark.parametrize("width", [80, 120, WIDE])
def test_a_narrow_terminal_gets_more_tables_and_no_broken_word(card, width):
    shown = io.StringIO()
    console = Console(file=shown, width=width)
    tables = _matrices(card, width)
    for table in tables:
        console.print(table)
    words = set(shown.getvalue().split())
    for each in card.cells:
        assert set(each.marked.split()) <= words
    assert set(State) & {each.streamlab for each in card.cells} <= {w.strip(";:,") for w in words}
    assert (len(tables) > 1) == (width < WIDE)
    assert all(len(line) <= width for line in shown.getvalue().splitlines())


def test_what_is_named_twice_is_asked_once():
    once = run_card(["bom", "bom"], ["chat raw", "chat raw"])
    assert [(each.fault, each.client) for each in once.cells] == [("bom", "chat raw")]


def test_a_place_for_the_figure_that_cannot_be_is_said_before_the_wait(capsys, tmp_path):
    assert cli.main(["report-card", "--graph", str(tmp_path)]) == 2
    assert "not a regular file" in capsys.readouterr().err


def test_of_few_clients_or_faults_it_says_everything(capsys):
    _, out, _ = said(capsys, "--client", "anthropic helper", "--fault", "end-inside")
    assert "a wrong call" in out or "raised" in out
    assert "INCOMPLETE" in out


def test_its_json_is_the_card(capsys):
    status, out, _ = said(
        capsys, "--json", "--async", "--fault", "cut", "--client", "anthropic raw"
    )
    found = json.loads(out)
    assert status == 0 and found["async"] is True and found["missing"] == []
    (only,) = found["cells"]
    assert (only["fault"], only["client"], only["wire"]) == ("cut", "anthropic raw", "claude")
    assert found["versions"]["anthropic"] == SDKS["anthropic"].version


def test_it_lists_the_names_that_it_takes(capsys):
    status, out, _ = said(capsys, "--list")
    assert status == 0
    for name in (*CARD_FAULTS, *WAYS):
        assert f"  {name}" in out


def test_it_draws_the_card(capsys, tmp_path):
    out = tmp_path / "card.svg"
    assert said(capsys, "--fault", "none", "--client", "anthropic raw", "--graph", str(out))[0] == 0
    assert out.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("args", [("--fault", "luck"), ("--client", "luck")])
def test_a_wrong_name_is_one_line_and_status_2(capsys, args):
    status, out, err = said(capsys, *args)
    assert (status, out) == (2, "") and err.count("\n") == 1 and "'luck'" in err


def test_a_missing_sdk_is_one_line_and_status_0(capsys, monkeypatch):
    known = sdks._version
    monkeypatch.setattr(sdks, "_version", lambda name: "" if name == "openai" else known(name))
    status, out, err = said(capsys, "--fault", "none", "--client", "chat raw")
    assert (status, out) == (0, "")
    assert err == (
        "streamlab: openai is not installed: python3 -m pip install 'streamlab[clients]'\n"
    )


def test_the_card_is_only_about_what_is_there():
    assert [name for name, sdk in SDKS.items() if sdk.installed] == [
        name for name, sdk in SDKS.items() if importlib.util.find_spec(sdk.module.split(".")[0])
    ]
