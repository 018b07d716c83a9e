"""The object of `show --json`: its keys are a contract, and it is strict JSON whatever comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab import CHAT, EFFECT, Policy, Recording, faults, judge, synth
from streamlab.analysis.report import report, to_line
from streamlab.consumer.attempt import SAID, State
from streamlab.streams.importers import About
from streamlab.streams.recording import open_recording, write
from tests.streams_for_tests import STOP, block, delta, end, fragment, start, stop, stream, text

CONTRACT = {
    *("file", "wire", "events", "bytes", "state", "complete", "ending", "stop_reason"),
    *("raw_stop_reason", "segments", "usage", "usage_raw", "problems", "metrics"),
}


def told(recording: Recording, policy: Policy = EFFECT) -> dict[str, Any]:
    """The report as whoever parses the line gets it."""
    found: dict[str, Any] = json.loads(to_line(report(judge(recording, policy), "x.sse")))
    return found


def raw(*payloads: Any) -> dict[str, Any]:
    return told(Recording.from_bytes(stream(payloads)))


def segments(*payloads: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = raw(start(), *payloads)["segments"]
    return found


def test_the_keys_of_the_contract_are_there_whatever_the_stream_holds() -> None:
    for recording in (synth.change_label(), Recording(), Recording.from_bytes(b"<html>")):
        assert set(told(recording)) >= CONTRACT


def test_a_whole_call_is_told_whole() -> None:
    found = told(synth.change_label())
    assert (found["file"], found["wire"], found["events"]) == ("x.sse", "claude", 20)
    assert found["bytes"] == len(synth.change_label().data)
    assert (found["state"], found["complete"], found["ending"]) == (
        "VALIDATED_PROPOSAL",
        True,
        "eof",
    )
    assert (found["stop_reason"], found["raw_stop_reason"]) == ("tool_use", "tool_use")
    assert found["usage"] == {"input_tokens": 25, "output_tokens": 20}
    words, call = found["segments"]
    assert (words["kind"], words["id"], words["text"]) == (
        "text",
        "0",
        "I'll mark W-7 as ready for review.",
    )
    assert call == {
        "kind": "tool_call",
        "id": "1",
        "status": "ready",
        "name": "change_label",
        "call_id": "toolu_0007_1",
        "input": {"item": "W-7", "label": "Ready for review"},
        "raw_input": '{"item": "W-7", "label": "Ready for review"}',
        "server": False,
    }
    assert found["proposals"] == [
        {"call_id": "toolu_0007_1", "tool": "change_label", "input": call["input"]}
    ]


def test_a_call_cut_inside_its_json_has_no_input_and_proposes_nothing() -> None:
    found = told(faults.disconnect(synth.pay_invoice(), after=11))
    call = found["segments"][1]
    assert (found["state"], found["complete"], found["proposals"]) == ("INCOMPLETE", False, [])
    assert (call["input"], call["status"]) == (None, "streaming")
    assert call["raw_input"].endswith('"amount": 1')


@pytest.mark.parametrize("policy", [EFFECT, CHAT], ids=["effect", "chat"])
def test_the_state_is_told_with_what_a_person_is_told(policy: Policy) -> None:
    found = told(synth.change_label(), policy)
    assert found["said"] == SAID[State(found["state"])]
    assert found["why"]


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        ([block(0), text(0, "Hi"), stop(0)], {"kind": "text", "text": "Hi"}),
        (
            [
                block(0, "thinking"),
                delta(0, "thinking_delta", thinking="So"),
                delta(0, "signature_delta", signature="c2ln"),
            ],
            {"kind": "thinking", "text": "So", "signature": "c2ln"},
        ),
        (
            [block(0, "server_tool_use", name="web_search"), fragment(0, "{}"), stop(0)],
            {"kind": "tool_call", "server": True, "input": {}, "status": "ready"},
        ),
        (
            [block(0, "tool_use"), fragment(0, '{"a": 1'), stop(0)],
            {"kind": "tool_call", "status": "error", "input": None, "raw_input": '{"a": 1'},
        ),
        (
            [block(0, "redacted_thinking", data="b3BhcXVl"), stop(0)],
            {"kind": "other", "type": "redacted_thinking", "attached": {"data": "b3BhcXVl"}},
        ),
        (
            [block(0, "hologram", kind="text", id="9", status="ready"), stop(0)],
            {"kind": "other", "id": "0", "type": "hologram"},
        ),
    ],
    ids=["text", "thinking", "server tool", "broken call", "other", "no field can pose as ours"],
)
def test_each_kind_of_segment_is_told_by_its_own_keys(
    payloads: list[Any], expected: dict[str, Any]
) -> None:
    (segment,) = segments(*payloads)
    assert expected.items() <= segment.items()


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"output_tokens": 3}, 3), ({}, None), ({"output_tokens": "3"}, None), (None, None)],
    ids=["given", "missing", "no number", "no usage"],
)
def test_usage_is_numbers_or_null_and_the_providers_own_is_kept(
    given: dict[str, Any] | None, expected: int | None
) -> None:
    found = raw(start(), end(usage=given), STOP)
    assert found["usage"] == {"input_tokens": None, "output_tokens": expected}
    assert found["usage_raw"] == (given or {})


def test_a_problem_says_its_rule_how_bad_it_is_and_where() -> None:
    (problem,) = raw(start(), text(0, "?"), STOP)["problems"][:1]
    assert set(problem) == {"rule", "severity", "at", "message"}
    assert (problem["severity"], problem["at"]) == ("error", 2)


def test_problems_without_end_are_counted_not_listed() -> None:
    found = raw(start(), *[text(7, "lost")] * 500)
    assert len(found["problems"]) < 110
    assert found["problems"][-1]["rule"] == "more-problems"
    assert "401 more" in found["problems"][-1]["message"]


def test_a_file_that_stops_short_is_a_problem_that_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "short.stream.jsonl"
    write(synth.change_label(), path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:-1]))
    with open_recording(path) as file:
        found = report(judge(file), "short")
    (problem,) = [p for p in found["problems"] if p["rule"] == "recording-truncated"]
    assert (found["ending"], problem["severity"]) == ("cut", "warning")
    assert f"{path}:21" in problem["message"]


def test_metrics_are_numbers_to_the_microsecond_and_null_without_times() -> None:
    metrics = told(synth.change_label())["metrics"]
    assert metrics["ttft_s"] == 0.398
    assert metrics["settlement_lag_s"] == 0.003
    assert set(metrics["stalls"]) >= {"count", "total_s", "longest_s", "at"}
    assert metrics["buffered"] is False
    assert told(Recording.from_bytes(synth.change_label().data))["metrics"] is None


def test_the_doctors_words_are_told_with_the_first_bad_event() -> None:
    doctor = told(faults.disconnect(synth.pay_invoice(), after=11))["doctor"]
    assert (doctor["verdict"], doctor["layer"]) == ("broken off", "gateway")
    assert set(doctor) >= {"says", "because", "first", "may", "may_not", "advice", "findings"}
    first = doctor["first"]
    assert (first["rule"], first["frame"], first["byte"]) == ("clean-end", 11, 1432)
    assert set(first) == {"rule", "severity", "frame", "byte", "says"}
    assert told(synth.change_label())["doctor"]["first"] is None


def test_what_a_capture_says_of_its_stream_is_told_where_there_is_a_capture() -> None:
    outcome = judge(synth.change_label())
    assert "about" not in report(outcome, "x.sse", About())
    about = About("har", "entry 3", "2026-11-30T12:00:00Z", "POST /v1", 200, (("key", 2),))
    found = report(outcome, "x.har", about)["about"]
    assert (found["form"], found["where"], found["status"]) == ("har", "entry 3", 200)
    assert found["masked"] == {"key": 2}


# --- Strict JSON ----------------------------------------------------------------------------------


def test_half_a_character_is_an_escape_and_survives() -> None:
    found = report(judge(Recording.from_bytes(stream([start(), block(0), text(0, "\ud83d")]))), "f")
    line = to_line(found)
    assert line.isascii()
    assert "\\ud83d" in line
    assert json.loads(line)["segments"][0]["text"] == "\ud83d"


@pytest.mark.parametrize("levels", [100, 900, 940, 960, 970, 980, 990, 2000])
def test_an_input_as_deep_as_the_parser_takes_can_be_told(levels: int) -> None:
    deep = '{"a": ' + "[" * levels + "]" * levels + "}"
    found = raw(start(), block(0, "tool_use"), fragment(0, deep), stop(0))
    assert found["segments"][0]["raw_input"] == deep


@settings(max_examples=200)
@given(
    st.binary(max_size=300) | st.integers(0, 10**6).map(lambda n: synth.random_answer(n)[1].data)
)
def test_any_bytes_give_one_line_of_strict_json(data: bytes) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    line = to_line(report(judge(Recording.from_bytes(data)), "\udcff\n"))
    assert "\n" not in line
    assert set(json.loads(line, parse_constant=refuse)) >= CONTRACT
