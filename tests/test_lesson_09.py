"""Lesson 09 tells the truth about the SDKs that are installed, and its exercise about a guard.

What an SDK does is measured, as in `test_report_card.py`. Where a newer one does otherwise, the
message says so: then the lesson is to be written anew, and not only its outputs.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import nbformat
import openai
import pytest
import traitlets
from google.genai import errors as google_errors

from streamlab import check
from streamlab.analysis.figures.card import KINDS
from streamlab.errors import UsageError
from streamlab.streams.sdks import SDKS, opened
from streamlab.streams.server import FaultServer
from streamlab.study import connections, exercise_09, report_card
from streamlab.study.card_cell import cell as judged
from streamlab.study.card_faults import CARD_FAULTS
from streamlab.study.card_sent import ENDS, Row, frames_of
from streamlab.study.card_streams import GOOD, INPUT, STOP, TOOL
from streamlab.study.clients import WAYS, Call, Got
from streamlab.study.questions import QUESTIONS
from streamlab.study.report_card import Card, measured
from streamlab.study.tasks import UNANSWERED
from streamlab.widgets import card as module
from streamlab.widgets.card import CardView, data
from tests.refresh_notebooks import NOTEBOOKS

LESSON: Any = nbformat.read(NOTEBOOKS / "09-real-clients.ipynb", 4)  # type: ignore[no-untyped-call]
FOLDER = Path(module.__file__).parent
LIVE = "application/vnd.jupyter.widget-view+json"
ANEW = "the installed SDKs behave otherwise than those of lesson 09: write it anew"
WIRES = tuple(GOOD)


@pytest.fixture(scope="module")
def card() -> Card:
    return measured()


def source(id: str) -> str:
    return str(next(each.source for each in LESSON.cells if each.id == id))


def printed(id: str) -> str:
    """What a cell of the lesson printed, as committed."""
    outputs = next(each.outputs for each in LESSON.cells if each.id == id)
    return "".join(output.get("text", "") for output in outputs)


def right_text(id: str) -> str:
    asked = QUESTIONS[id]
    return asked.options[asked.right].text


def naive() -> Callable[[str, str], Any]:
    """The lesson's naive guard."""
    names: dict[str, Any] = {"report_card": report_card}
    exec(source("naive-code"), names)
    pay: Callable[[str, str], Any] = names["pay"]
    return pay


# --- One drop, seven clients ----------------------------------------------------------------------


def test_of_seven_clients_one_raises_and_one_pays_one(card: Card) -> None:
    row = [each for each in card.cells if each.fault == "end-inside"]
    assert len(row) == 7
    assert [each.client for each in row if each.verdict == "raised"] == ["responses helper"], ANEW
    assert right_text("09-seven") == "One."
    (wrong,) = [each for each in row if each.danger]
    assert wrong.got is not None and wrong.got.calls[0].input == {**INPUT, "amount": 1}
    texts = [each for each in row if each.got and any(c.input is None for c in each.got.calls)]
    assert len(texts) == 4, ANEW
    assert [e.client for e in row if e.got and not (e.got.calls or e.got.error)] == ["gemini raw"]
    assert all(each.got and each.got.stop is None for each in row)


def test_the_smallest_input_has_at_most_ten_events_and_stands_in_the_lesson_whole() -> None:
    sent = CARD_FAULTS["end-inside"].sent(GOOD["claude"])
    assert sent is not None and sent.data.count(b"\n\n") <= 10
    assert printed("smallest") == sent.data.decode()
    assert sent.data.endswith(rb'"partial_json": "\"amount\": 1"}}' + b"\n\n")


# --- The naive guard, and what to catch -----------------------------------------------------------


def test_the_naive_guard_is_right_in_the_two_tests_that_people_write() -> None:
    pay = naive()
    assert pay("anthropic helper", "none") == INPUT
    assert pay("anthropic helper", "reset") is None


def test_of_the_four_failures_the_guard_sees_two_and_pays_one_for_the_others() -> None:
    pay = naive()
    came = {f: pay("anthropic helper", f) for f in ("error", "odd-error", "token-limit", "empty")}
    assert [fault for fault, paid in came.items() if paid is None] == ["error", "empty"], ANEW
    assert all(paid["amount"] == 1 for paid in came.values() if paid), ANEW
    assert right_text("09-except") == "`error` and `empty`."


@pytest.mark.parametrize("client", ["anthropic raw", "chat raw", "responses raw", "gemini raw"])
def test_an_odd_error_is_an_event_of_a_raw_loop_of_openai_and_none_of_the_others(
    client: str,
) -> None:
    way = WAYS[client]
    sent = CARD_FAULTS["odd-error-then-more"].sent(GOOD[way.wire])
    assert sent is not None and b"Busy" in sent.data
    with (
        FaultServer(sent.recording(way.wire)) as server,
        opened(SDKS[way.sdk], server.url, retries=0) as asked,
    ):
        events = list(way.start(asked, "m", 60.0))
    seen = any("Busy" in repr(event) for event in events)
    assert seen is (way.sdk == "openai"), ANEW


@pytest.mark.parametrize("client", ["anthropic helper", "chat helper", "gemini raw"])
def test_one_clause_catches_a_reset_in_all_three_and_the_others_do_not(client: str) -> None:
    with pytest.raises(Exception) as raised:  # which one, is the question
        report_card.answer(client, "reset")
    caught = {
        "sdk": (anthropic.AnthropicError, openai.OpenAIError, google_errors.APIError),
        "http": (httpx2.TransportError,),
        "python": (ConnectionError, TimeoutError),
        "both": (httpx2.TransportError, openai.OpenAIError),
    }
    found = {name for name, kinds in caught.items() if isinstance(raised.value, kinds)}
    expected = {"both", "sdk"} if client == "chat helper" else {"both", "http"}
    assert found == expected, ANEW
    assert "(httpx2.TransportError, OpenAIError)" in right_text("09-catch")


def test_before_an_answer_begins_anthropic_raises_its_own_exception() -> None:
    with socket.socket() as taken:  # bound, and nobody listens: a port where nobody answers
        taken.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with (
            opened(SDKS["anthropic"], gone, retries=0) as client,
            pytest.raises(anthropic.APIConnectionError),
        ):
            client.messages.create(model="m", max_tokens=9, messages=[])


def test_what_is_asked_without_a_net_is_what_is_asked_with_one(card: Card) -> None:
    assert (
        report_card.answer("chat helper", "end-inside") == card.at("end-inside", "chat helper").got
    )
    with pytest.raises(UsageError, match="no client 'claude'"):
        report_card.answer("claude", "none")
    with pytest.raises(UsageError, match="no fault 'luck'"):
        report_card.answer("chat raw", "luck")


def test_what_the_lesson_says_of_the_rows_is_so(card: Card) -> None:
    def words(fault: str) -> list[str]:
        return [card.at(fault, client).verdict for client in card.clients]

    assert len(CARD_FAULTS) == 33
    assert f"puts {len(CARD_FAULTS)} streams" in source("catch")
    assert set(words("error-then-more")) == {"raised"}, ANEW
    assert set(words("odd-error-then-more")) == {"right"}, ANEW
    states = {each.streamlab for each in card.cells if each.fault == "odd-error-then-more"}
    assert states == {"INVALID"}
    assert words("after-end").count("silent partial") == 4, ANEW
    assert words("cut-after-end").count("raised") == 5, ANEW
    assert set(words("end-before-marker")) == {"right", "n/a"}, ANEW
    assert {w for each, w in zip(WAYS, words("no-names"), strict=True) if "responses" in each} == {
        "right"
    }


def test_raw_loops_are_silent_more_often_than_helpers(card: Card) -> None:
    def silent(how: str) -> int:
        mine = [each for each in card.cells if each.client.endswith(how)]
        return sum(each.kind in ("silent", "danger") for each in mine)

    raw = sum(way.id.endswith("raw") for way in WAYS.values())
    assert silent("raw") / raw > silent("helper") / (len(WAYS) - raw), ANEW


def test_only_gemini_trips_over_a_comment_and_openai_over_one_after_an_id(card: Card) -> None:
    def trips(fault: str) -> set[str]:
        mine = [each for each in card.cells if each.fault == fault and each.verdict == "raised"]
        return {WAYS[each.client].sdk for each in mine}

    assert trips("comment") == {"google-genai"}, ANEW
    assert trips("comment-after-id") == {"google-genai", "openai"}, ANEW
    assert right_text("09-alive").startswith("One SDK raises, always; another one does")


def test_a_grid_has_the_signs_and_the_words(card: Card) -> None:
    grid = card.grid("comment", "end-inside")
    assert list(grid.columns) == ["comment", "end-inside"]
    assert list(grid.index) == list(card.clients)
    assert grid.loc["anthropic helper", "end-inside"] == "X\u00a0call with amount 1"
    assert list(card.grid().columns) == list(card.faults)
    with pytest.raises(UsageError, match="no 'luck'"):
        card.grid("luck")


def test_the_figure_of_the_lesson_holds_no_version(card: Card) -> None:
    drawing = card.heat_map(versions=False)
    for version in card.versions.values():
        assert version not in drawing.svg and version not in drawing.caption


# --- The connection -------------------------------------------------------------------------------


@pytest.mark.parametrize("exit", connections.EXITS)
@pytest.mark.parametrize("client", connections.RAW)
def test_who_leaves_is_seen_at_once_but_for_a_bare_break_of_openai(client: str, exit: str) -> None:
    late = exit == "break" and WAYS[client].sdk == "openai"
    assert connections.left(client, exit) == ("when collected" if late else "at once"), ANEW


def test_the_garbage_collector_is_on_again_afterwards() -> None:
    import gc

    assert gc.isenabled()
    connections.left("anthropic raw", "close()")
    assert gc.isenabled()


def test_a_way_out_that_is_none_is_refused() -> None:
    for client, exit in (("chat helper", "break"), ("chat raw", "exit()")):
        with pytest.raises(UsageError, match="one of"):
            connections.left(client, exit)


def test_a_timeout_is_the_longest_silence_and_not_the_longest_answer() -> None:
    longer = int(2 * connections.TIMEOUT / connections.EVERY)
    assert connections.waited("anthropic raw", longer) == "right", ANEW
    assert connections.waited("chat raw", longer) == "right", ANEW
    assert connections.waited("anthropic raw", 0) == "httpx2.ReadTimeout", ANEW
    assert connections.waited("chat raw", 0) == "openai.APITimeoutError", ANEW
    assert right_text("09-timeout") == "The whole answer."


def test_a_bound_on_the_whole_cancels_the_task_and_the_server_sees_it() -> None:
    from streamlab.streams.sdks import opened_async

    async def read(server: FaultServer) -> None:
        async with opened_async(SDKS["openai"], server.url, retries=0) as client:
            stream = await WAYS["chat raw"].start(client, "m", 3600.0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    async for _ in stream:
                        pass
            await asyncio.to_thread(gone, server)

    def gone(server: FaultServer) -> None:
        (served,) = server.wait(1)
        assert served.ended == "client gone"

    with FaultServer(connections._silent("openai-chat"), speed=1.0) as server:
        asyncio.run(read(server))


# --- What was sent --------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", CARD_FAULTS)
def test_the_rows_hold_what_was_sent_and_what_was_not(fault: str, wire: str) -> None:
    sent, frames = CARD_FAULTS[fault].sent(GOOD[wire]), frames_of(fault, wire)
    assert (sent is None) == (frames is None)
    if sent is None or frames is None:
        return
    said = "".join(row.before + row.middle + row.after for row in frames.rows)
    assert said == sent.data.decode("utf-8", "backslashreplace")
    good = "".join(
        row.before + (row.gone if row.mark in "~-" else "") + row.after
        for row in frames.rows
        if row.mark != "+"
    )
    assert good == GOOD[wire].data.decode()
    marked = any(row.mark != " " for row in frames.rows)
    clean = frames.end == ENDS["eof", "chunked"]
    assert marked or not clean or fault == "none"


def test_a_changed_frame_shows_what_stood_there_and_what_does() -> None:
    frames = frames_of("token-limit", "claude")
    assert frames is not None
    changed = [row for row in frames.rows if row.mark == "~"]
    assert [(row.middle, row.gone) for row in changed] == [("max_tokens", "tool_use")]
    frames = frames_of("bom", "claude")
    assert frames is not None
    assert frames.rows[0].middle == "\ufeff" and frames.rows[0].gone == ""
    frames = frames_of("ping", "gemini")
    assert frames is not None
    assert [row for row in frames.rows if row.mark == "+"] == [
        Row("+", "", 'event: ping\ndata: {"type": "ping"}\n\n')
    ]


def test_what_a_program_was_handed_is_said_in_lines() -> None:
    def handed(got: Got | None) -> tuple[str, ...]:
        return judged("f", "c", "claude", got, "").handed

    assert handed(None) == ("it came to no end in time",)
    assert handed(Got(error="x.Error", message="why")) == ("x.Error: why",)
    assert handed(Got(error="AssertionError")) == ("AssertionError",)
    assert handed(Got("Hi", stop="end_turn")) == (
        "text: 'Hi'",
        "no call",
        "stop reason: end_turn",
    )
    half = Got("", (Call(None, None, '{"a'), Call("pay", {"a": 1})))
    assert handed(half)[1:3] == ('call: (no name), no JSON: {"a', "call: pay {'a': 1}")


# --- The exercise ---------------------------------------------------------------------------------

CASES = {case.name: case for case in exercise_09._cases()}


def test_the_guard_acts_on_no_wrong_call_and_on_each_right_one_of_the_whole_card(
    card: Card,
) -> None:
    acted = 0
    for each in card.cells:
        if each.got is None:
            continue
        done = STOP[each.wire]
        right = [(call.name, call.input) for call in each.got.calls] == [(TOOL, INPUT)]
        may = exercise_09.may_act(each.got, done)
        assert may == (right and each.got.stop == done), (each.fault, each.client)
        assert not (may and each.danger)
        acted += may
    assert acted > 50


def test_the_cases_are_the_whole_card_each_outcome_in_one_of_them(card: Card) -> None:
    found = exercise_09.kinds(exercise_09.outcomes())
    members = [each for kind in found.values() for each in kind]
    assert len(members) == sum(each.got is not None for each in card.cells)
    assert len({each.name for each in members}) == len(members)
    assert all(each.meant == (name == exercise_09.WHOLE) for name in found for each in found[name])
    assert set(CASES) == {*found, exercise_09.OTHER, exercise_09.TALK}, ANEW


def test_what_no_guard_can_see_is_the_same_as_on_a_good_day(card: Card) -> None:
    for fault in ("end-before-marker", "odd-error-then-more"):
        for client in ("anthropic raw", "anthropic helper", "chat raw", "chat helper"):
            assert card.at(fault, client).got == card.at("none", client).got, ANEW
        assert f"`{fault}`" in source("exercise-explained")


def test_a_guard_is_told_where_it_acts_and_where_not() -> None:
    (given,) = CASES[exercise_09.NO_STOP].given
    looks = exercise_09.everywhere(lambda got, done: any(call.input for call in got.calls))
    assert re.fullmatch(
        r"acts on \d+ of \d+: on end-inside by anthropic helper, but not on end-inside by \S+ raw",
        looks(given),
    )
    assert exercise_09.everywhere(lambda got, done: UNANSWERED)(given) is UNANSWERED
    (whole,) = CASES[exercise_09.WHOLE].given
    nothing = exercise_09.everywhere(lambda got, done: None)
    assert nothing(whole) is None
    assert nothing(given) == f"acts on none of {len(given)}"  # None is a no, where no is right
    with pytest.raises(ZeroDivisionError):
        exercise_09.everywhere(lambda got, done: 1 / 0)(given)


def test_the_stub_of_the_lesson_is_not_answered_yet(capsys: pytest.CaptureFixture[str]) -> None:
    exec(source("exercise-stub"), {"check": check, "exercise_09": exercise_09})
    assert "not answered yet" in capsys.readouterr().out


# --- The view -------------------------------------------------------------------------------------


def test_what_was_picked_can_be_read_in_code(card: Card) -> None:
    view = CardView(card)
    assert (view.cell.fault, view.cell.client) == ("end-inside", "anthropic helper")
    view.set_state({"fault": 0, "client": 2})
    assert view.cell is card.at("none", "chat raw")
    view._handle_custom_msg({"fault": 1}, [])
    assert view.cell is card.at("end-inside", "chat raw")
    view._handle_custom_msg({"card": {}}, [])
    assert view.card["faults"]


@pytest.mark.parametrize(("name", "place"), [("fault", 33), ("client", 7), ("client", -1)])
def test_a_place_that_there_is_not_is_refused(card: Card, name: str, place: int) -> None:
    view = CardView(card)
    with pytest.raises(traitlets.TraitError, match=f"{name} has no place {place}"):
        view.set_state({name: place})
    assert view.cell is card.at("end-inside", "anthropic helper")
    with pytest.raises(UsageError, match="no 'luck'"):
        CardView(card, "luck")


def test_every_cell_is_sent_as_it_was_measured(card: Card) -> None:
    sent = json.loads(json.dumps(CardView(card).card))  # it is JSON
    texts = sent["texts"]
    for row, (fault, says) in enumerate(sent["faults"]):
        assert says == CARD_FAULTS[fault].says
        for column, (client, how, wire) in enumerate(sent["clients"]):
            each = card.at(fault, client)
            kind, word, handed = sent["cells"][row][column]
            assert (kind, texts[word]) == (each.kind, each.word)
            assert len(handed) == len(each.handed)
            assert how == f"{WAYS[client].sdk}: {WAYS[client].how}"
            assert sent["wires"][wire] == each.wire
            assert (sent["sent"][row][wire] is None) == (each.verdict == "n/a")
    assert sent["kinds"].keys() == KINDS.keys()


def test_it_is_small_enough_to_be_sent_at_once(card: Card) -> None:
    assert len(json.dumps(data(card))) < 100_000


def test_a_page_without_a_kernel_shows_one_cell_the_same_every_time(card: Card) -> None:
    first, second = CardView(card), CardView(card)
    second.set_state({"fault": 3})
    assert repr(first) == repr(second) and "0x" not in repr(first)
    bundle, _ = first._repr_mimebundle_()
    assert bundle.keys() == {"text/plain", "text/html", LIVE}
    for page in bundle["text/plain"], bundle["text/html"]:
        for words in ("never sent", "INCOMPLETE", "amount", "stop reason: None"):
            assert words in page
    assert max(map(len, bundle["text/plain"].splitlines())) <= 92
    assert "no such thing on this wire" in repr(CardView(card, "no-names", "gemini raw"))


def test_the_view_builds_no_markup_and_asks_no_network() -> None:
    script = (FOLDER / "card.js").read_text("utf-8")
    for banned in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "fetch(", "http"):
        assert banned not in script
    used = set(re.findall(r"model\.(\w+)", script))
    assert used == {"get", "set", "on", "off", "save_changes", "send"}
    assert not re.search(r"model\.send(?!\?\.)", script)
    assert len(script.splitlines()) <= 250


def test_every_colour_has_a_way_out_where_there_is_no_jupyter() -> None:
    style = (FOLDER / "card.css").read_text("utf-8")
    assert not re.findall(r"var\(--jp-[\w-]+\)", style)
    assert "url(" not in style and "@import" not in style
    for name in KINDS:
        assert f".kind-{name.replace('/', '')} " in style
