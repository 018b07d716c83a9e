"""The doctor: its table is whole, each rule fires on its example, and what it says holds."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlab
from streamlab import Recording, faults, judge, policy_for, synth, write
from streamlab.analysis.doctor import Diagnosis, Finding, diagnose, examine
from streamlab.analysis.doctor.examples import EXAMPLES, judged
from streamlab.analysis.doctor.findings import find
from streamlab.analysis.doctor.rules import LAYERS, RULES
from streamlab.analysis.doctor.verdicts import BY, RETRY, RUN, TELL, UNCHANGED, VERDICTS
from streamlab.consumer.attempt import Attempt, Input, State
from streamlab.consumer.gates import EFFECT
from streamlab.streams.edit import frames
from streamlab.wire.sse import BOM
from tests.labelled import Case, cases
from tests.streams_for_tests import (
    CALL,
    TEXT,
    all_bytes,
    block,
    cut,
    end,
    fragment,
    frame,
    pieces,
    start,
    stop,
    stream,
    text,
)

ROOT = Path(streamlab.__file__).parent
SEVERITIES = ("note", "warning", "error")


def seen(data: bytes, **fields: Any) -> Diagnosis:
    return diagnose(judge(Recording.from_bytes(data, **fields)))


def rules_of(diagnosis: Diagnosis) -> set[str]:
    return {finding.rule for finding in diagnosis.findings}


# --- The table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_fires_on_its_own_example(rule: str) -> None:
    assert rule in {finding.rule for finding in find(judged(rule))}


def test_every_example_is_a_rules_own_and_every_rule_has_one() -> None:
    assert set(EXAMPLES) == set(RULES)
    assert RULES["bom"].example.data.startswith(BOM)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_how_bad_it_is_where_to_look_and_where_that_is_written(rule: Any) -> None:
    assert rule.severity in SEVERITIES
    assert rule.layer in ("", *LAYERS)
    assert rule.says[0].isupper() or rule.says[0] in "[`dr", rule.says
    assert rule.says.endswith(".")
    assert "https://" in rule.source or "streamlab/" in rule.source


@pytest.mark.parametrize("rule", RULES)
def test_no_finding_is_worse_than_its_rule(rule: str) -> None:
    for finding in find(judged(rule)):
        worst = RULES[finding.rule].severity
        assert SEVERITIES.index(finding.severity) <= SEVERITIES.index(worst), finding


#: Folders whose code reports problems.
PARTS = ("wire", "consumer", "analysis")

#: Arguments of a problem that are no constant -> the ids that they can be.
NOT_CONSTANT = {
    "f'delta-{rule}'": {"delta-after-stop", "delta-without-start"},
    "f'stop-{rule}'": {"stop-without-start"},
    "rule[0]": {"unstreamed", "unstreamed-item"},
    "rule": set(),  # the function that passes it on
}


def problems_in_code() -> Iterator[tuple[str, str]]:
    """Every id of a problem that the package can report, and its severity; "" where that varies."""
    for path in (path for part in PARTS for path in (ROOT / part).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name not in ("_fault", "_habit", "Problem"):
                continue
            severity = "error" if name == "_fault" else _constant(node.args[1])
            first = node.args[0]
            known = _constant(first)
            yield from (
                (id, severity) for id in ([known] if known else NOT_CONSTANT[ast.unparse(first)])
            )


def _constant(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def test_no_problem_that_the_code_can_report_is_missing_from_the_table_or_worse_there() -> None:
    found = set(problems_in_code())
    assert len(found) > 90
    assert {id for id, _ in found} - set(RULES) == set()
    for id, severity in found:
        worst = SEVERITIES.index(RULES[id].severity)
        assert not severity or SEVERITIES.index(severity) <= worst, (id, severity)


#: The points of a careful reading of a stream, and the rules that look at each.
CHECKLIST = {
    "end marker missing, twice, or not last": "incomplete clean-end end-twice done-twice "
    "after-the-end after-done second-answer",
    "no stop reason, or an unknown one": "stop-too-early done-too-early stop-reason",
    "content before start, after stop, never stopped": "before-start delta-without-start "
    "delta-after-stop delta-after-done after-finish without-start unfinished-item",
    "numbers: gaps, repeats, missing": "ambiguous index-order index-reused malformed no-index "
    "no-output-index",
    "tool input: one whole JSON object": "tool-input half-character",
    "stop reason and calls agree": "tool-use-without-call stop-reason-label",
    "ids of calls: twice, in pieces": "ambiguous call-restated name-in-pieces call-without-id",
    "results match a call": "result-without-call",
    "usage falls, or is missing": "usage-fell no-usage",
    "errors of an unusual shape": "error-shape provider-error unframed",
    "event name and type": "event-name unnamed-event no-type",
    "sequence numbers and snapshots": "sequence-gap sequence-back restated left-out "
    "unstreamed-item response-id-changed item-id-changed",
    "lines that a client cannot read; signatures alone": "strange-line no-space signature-alone",
    "thinking without its signature": "unsigned-thinking",
    "byte order mark, CR alone, U+2028": "bom cr-only line-separator",
    "a body that ends with its connection": "clean-end",
}


@pytest.mark.parametrize("point", CHECKLIST)
def test_every_point_of_the_checklist_has_its_rules(point: str) -> None:
    assert set(CHECKLIST[point].split()) <= set(RULES)


# --- The verdict ----------------------------------------------------------------------------------


def test_every_way_in_which_an_attempt_can_end_has_a_verdict() -> None:
    by_the_effect = {Input.COMMIT, Input.EFFECT_RECORDED, Input.EFFECT_REFUSED}
    by_the_effect |= {Input.EFFECT_UNKNOWN, Input.CONTENT}
    assert set(BY) == set(Input) - by_the_effect


@pytest.mark.parametrize("verdict", VERDICTS.values(), ids=lambda verdict: verdict.word)
def test_a_verdict_allows_nothing_that_it_forbids(verdict: Any) -> None:
    assert not set(verdict.may) & set(verdict.may_not)
    assert verdict.may and verdict.says.endswith(".")
    assert bool(verdict.advice) is (verdict.word != "whole")
    assert "\n" not in verdict.advice and len(verdict.advice) <= 100


KNOWN = list(cases(range(2)))

#: A policy that checks everything, and likes it.
SURE = msgspec.structs.replace(
    EFFECT, tools={"change_label": {}}, rule=lambda call: "", authorise=lambda call: ""
)


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.name)
def test_only_what_passed_every_gate_may_be_run_and_only_what_is_whole_is_kept(case: Case) -> None:
    outcome = judge(case.recording, case.policy)
    found = diagnose(outcome)
    may_run = any("commit" in word for word in found.may)
    assert may_run is (outcome.state is State.VALIDATED_PROPOSAL)
    if not may_run and outcome.turn.calls:
        assert RUN in found.may_not
    kept = "keep it in the history" in found.may
    assert not kept or outcome.complete
    assert found.layer in ("", *LAYERS) and bool(found.layer) is (found.verdict != "whole")
    assert bool(found.because) is bool(found.layer)


def test_what_no_gate_has_checked_is_still_to_be_checked_before_a_commit() -> None:
    call = synth.story()
    gates = "tool, schema, business rule, authorisation"
    said = f"commit its proposal after a check of its {gates}, and then run its tool"
    assert said in diagnose(judge(call)).may
    assert "commit its proposal, and then run its tool" in diagnose(judge(call, SURE)).may


#: Rules of which each is about one frame, wherever the stream ends.
EXACT = {"provider-error", "token-limit", "refused", "second-start", "delta-after-stop", "unknown"}


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.name)
def test_a_finding_names_the_frame_and_its_first_byte(case: Case) -> None:
    found = diagnose(judge(case.recording, case.policy))
    starts = {frame.number: frame.start for frame in frames(case.recording)}
    size = len(case.recording.data)
    for finding in found.findings:
        assert finding.byte is None or 0 <= finding.byte <= size
        exact = finding.frame in starts and finding.rule in (
            "provider-error",
            "token-limit",
            "ambiguous",
        )
        if exact and finding.byte not in (size, None):
            start = starts[finding.frame or 0]
            beside = finding.byte > start and case.recording.data[finding.byte :].startswith(b"{")
            assert finding.byte == start or beside, finding


def test_the_first_bad_event_is_the_one_that_the_verdict_rests_on() -> None:
    whole = synth.change_label()
    broken = faults.disconnect(faults.error(whole, after=9), after=10)
    first = diagnose(judge(broken)).first
    assert first is not None
    assert (first.rule, first.frame) == ("provider-error", 10)
    assert first.byte == frames(broken)[9].start


def test_of_two_faults_the_one_that_came_first_counts() -> None:
    extra = synth.change_label()
    late = faults.error(faults.delta_after_stop(extra, index=0), after=15)
    assert diagnose(judge(late)).verdict == "protocol error"
    early = faults.delta_after_stop(extra, index=0)
    early = faults.error(early, after=4)
    assert diagnose(judge(early)).verdict == "provider error"


def test_a_whole_answer_with_nothing_but_notes_has_no_first_bad_event() -> None:
    found = seen(stream([*TEXT[:1], frame({"type": "hologram"}), *TEXT[1:]]))
    assert (found.verdict, found.layer, found.first, found.advice) == ("whole", "", None, "")
    assert {"unknown", "no-usage"} <= rules_of(found)


def test_nobody_is_warned_of_running_a_tool_where_there_is_none() -> None:
    assert RUN not in seen(stream(TEXT[:-1])).may_not
    assert RUN in seen(stream(CALL[:-1])).may_not


def test_a_gate_that_objects_is_at_its_call() -> None:
    label = synth.answer([synth.Text("So."), synth.ToolCall("change_label", {"item": "W-7"})])
    first = diagnose(judge(label, policy_for("ada"))).first
    assert first is not None and first.rule == "schema"
    call = next(f for f in frames(label) if b"tool_use" in f.data and b"block_start" in f.data)
    assert (first.frame, first.byte) == (call.number, call.start)


# --- Whose fault ----------------------------------------------------------------------------------

ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    ("data", "layer"),
    [
        (stream([start(), ERROR]), "vendor"),
        (b'{"type":"error","error":{"type":"api_error","message":"x"}}', "vendor"),
        (b'{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}', "vendor"),
        (b'{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT"}}', "ours"),
        (b'{"error":{"type":"authentication_error","message":"x"}}', "ours"),
        (b'{"detail":"Not Found"}', "ours"),
        (b'{"message":"Service Unavailable"}', "gateway"),
        (b'{"message":"Bad gateway","code":502}', "gateway"),
        (b'data: {"error":{"code":502,"message":"x"}}\n\n', "gateway"),
        (b'data: {"error":{"message":"upstream closed","type":"server_error"}}\n\n', "gateway"),
        (b"<html>502</html>", "gateway"),
        (b'{"type":"message","content":[],"role":"assistant"}', "ours"),
        (stream([*CALL[:3], fragment(0, '{"n": '), *CALL[5:]]), "model"),
    ],
    ids=[
        *("overloaded", "unframed, the vendor's shape", "numbered", "a bad request", "no key"),
        *("a framework", "a gateway's sentence", "a gateway", "a router", "a relay's words"),
        *("a web page", "not asked"),
        "input cut by the model",
    ],
)
def test_the_layer_is_told_by_the_evidence(data: bytes, layer: str) -> None:
    assert seen(data).layer == layer


@pytest.mark.parametrize(
    ("error", "verdict", "layer"),
    [
        ({"type": "billing_error", "message": "x"}, "provider error", "ours"),
        ({"message": "maximum context length is 8", "code": 400}, "provider error", "ours"),
        ({"message": "litellm.AuthenticationError: x", "code": "500"}, "provider error", "ours"),
        ({"message": "litellm.Timeout: x", "code": "408"}, "provider error", "gateway"),
        ({"message": "Provider returned error", "code": 429}, "provider error", "vendor"),
        ({"message": "flagged", "code": "content_filter"}, "refused", "model"),
        ({"message": "Output blocked by content filtering policy"}, "refused", "model"),
        ({"message": "x", "code": "tool_use_failed"}, "provider error", "model"),
        ({"message": "CUDA out of memory"}, "provider error", "vendor"),
    ],
    ids=[
        *("no money", "too long", "a relay's word for a bad key", "a relay's time is up"),
        *("a relay's word for a limit", "a filter's code", "a filter's sentence"),
        *("a call that nobody could read", "a machine"),
    ],
)
def test_an_error_is_told_by_its_own_words(error: dict[str, Any], verdict: str, layer: str) -> None:
    found = seen(f"data: {json.dumps({'error': error})}\n\n".encode())
    assert (found.verdict, found.layer) == (verdict, layer)


def test_the_same_request_is_not_tried_again_where_it_is_at_fault() -> None:
    found = seen(stream([start(), {"type": "error", "error": {"type": "billing_error"}}]))
    assert UNCHANGED in found.may_not and RETRY not in found.may


def test_nothing_is_shown_where_nothing_came() -> None:
    for found in (seen(stream([ERROR])), diagnose(judge(Recording(ending="reset")))):
        assert found.may == (TELL, RETRY)


def test_a_page_in_the_middle_is_the_first_bad_event() -> None:
    data = stream(TEXT[:4])
    found = seen(data + b"<html>\n<title>502</title>\n</html>\n")
    assert (found.verdict, found.layer) == ("broken off", "gateway")
    assert found.first is not None
    assert (found.first.rule, found.first.byte) == ("unframed", len(data))


def test_an_input_that_does_not_parse_is_at_the_frame_that_ends_it() -> None:
    bits = [fragment(0, "{'item'"), fragment(0, ": 1}")]
    before = stream([start(), block(0, "tool_use"), *bits])
    found = seen(before + stream([stop(0), end("tool_use"), CALL[-1]]))
    assert found.first is not None
    assert (found.first.rule, found.first.byte) == ("tool-input", len(before))


@pytest.mark.parametrize("wire", ["openai-chat", "gemini"])
def test_words_that_come_again_are_no_second_answer_where_no_frame_opens_it(wire: str) -> None:
    def chunk(text: str, reason: str | None = None) -> dict[str, Any]:
        if wire == "gemini":
            part = {"content": {"parts": [{"text": text}]}, "finishReason": reason, "index": 0}
            return {"candidates": [part]}
        delta = {"role": "assistant", "content": text}
        return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    last = chunk("!", "STOP" if wire == "gemini" else "stop")
    said = [*map(chunk, ("No", ", no. ", "No", ", no. ")), last]
    data = b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in said)
    assert seen(data + b"data: [DONE]\n\n" * (wire != "gemini")).verdict == "whole"


def test_an_answer_of_another_id_whose_counts_begin_again_is_a_second_one() -> None:
    def chunk(id: str, count: int) -> dict[str, Any]:
        part = {"content": {"parts": [{"text": "x"}]}, "index": 0}
        usage = {"promptTokenCount": 3, "candidatesTokenCount": count}
        return {"candidates": [part], "responseId": id, "usageMetadata": usage}

    last = chunk("b", 9)
    last["candidates"][0]["finishReason"] = "STOP"
    chunks = [chunk("a", 4), chunk("a", 8), chunk("b", 4), last]
    found = seen(b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in chunks))
    assert (found.verdict, found.layer) == ("two answers", "gateway")
    assert found.first is not None and found.first.frame == 3


INPUT = ['{"item": ', '"W-7"', ', "label": ', '"Ready"', "}"]


@pytest.mark.parametrize(
    ("given", "layer"),
    [
        ([*INPUT[:2], INPUT[1], *INPUT[2:]], "gateway"),
        ([INPUT[0], INPUT[2], INPUT[1], *INPUT[3:]], "gateway"),
        ([*INPUT[:2], *INPUT[3:]], "gateway"),
        (['{"item": ', '"W-7", "lab'], "model"),
        (["{'item': ", "'W-7'}"], "model"),
    ],
    ids=["a fragment twice", "two exchanged", "one lost", "cut", "not JSON at all"],
)
def test_an_input_that_fragments_were_lost_of_is_told_from_one_that_was_never_json(
    given: list[str], layer: str
) -> None:
    bits = [fragment(0, bit) for bit in given]
    found = seen(stream([start(), block(0, "tool_use"), *bits, stop(0), end("tool_use"), CALL[-1]]))
    assert (found.verdict, found.layer) == ("bad input", layer)


def test_silence_with_pings_is_the_vendors_and_without_the_networks() -> None:
    whole = synth.change_label()
    assert diagnose(judge(faults.disconnect(whole, 9, "timeout"))).layer == "network"
    pinged = faults.never_end(whole, after=9)
    short = msgspec.structs.replace(pinged, chunks=pinged.chunks[:60], end_t=pinged.chunks[59].t)
    found = diagnose(judge(short))
    assert (found.verdict, found.layer) == ("silent", "vendor")


# --- What the bytes look like ---------------------------------------------------------------------


def test_lines_that_a_client_cannot_read_are_found_wherever_the_reads_end() -> None:
    whole = synth.greeting(wire="gemini").data
    comment = whole.index(b"\r\n\r\n") + 4
    data = whole[:comment] + b": keep-alive\n\n" + whole[comment:]
    for size in (1, 3, 7, 10_000):
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        outcome = judge(Recording(tuple(streamlab.Chunk(None, each) for each in chunks)))
        (found,) = [f for f in diagnose(outcome).findings if f.rule == "strange-line"]
        assert found.byte == comment


def test_another_wire_may_have_comments_and_names() -> None:
    assert "strange-line" not in rules_of(seen(b": hello\n\n" + stream(TEXT)))


def test_a_repetition_in_the_text_is_no_second_answer() -> None:
    pairs = [text(0, "ha"), text(0, "ho")] * 20
    assert seen(stream([start(), block(0), *pairs, stop(0), end(), CALL[-1]])).verdict == "whole"


@settings(max_examples=150)
@given(cut(all_bytes), st.sampled_from(["eof", "reset", "timeout"]))
def test_how_the_bytes_were_cut_changes_no_diagnosis(
    drawn: tuple[bytes, list[int]], ending: str
) -> None:
    data, cuts = drawn
    chunks = tuple(streamlab.Chunk(None, piece) for piece in pieces(data, cuts))
    assert diagnose(judge(Recording(chunks, ending))) == seen(data, ending=ending)


@settings(max_examples=150)
@given(all_bytes)
def test_any_bytes_get_a_diagnosis_of_the_table(data: bytes) -> None:
    found = seen(data)
    assert found.verdict in VERDICTS
    assert found.layer in ("", *LAYERS)
    assert rules_of(found) <= set(RULES)
    assert all(f.byte is None or 0 <= f.byte <= len(data) for f in found.findings)


@settings(max_examples=100)
@given(
    st.integers(0, 10**6), st.sampled_from(["claude", "openai-chat", "openai-responses", "gemini"])
)
def test_a_legal_answer_is_never_called_broken(seed: int, wire: str) -> None:
    found = diagnose(judge(synth.random_answer(seed, wire)[1]))
    broken = {"broken off", "silent", "protocol error", "provider error", "two answers"}
    assert found.verdict not in {*broken, "endless", "not a stream", "empty", "cancelled"}


# --- In a notebook --------------------------------------------------------------------------------


def test_a_recording_that_was_examined_reads_the_same_every_time(tmp_path: Path) -> None:
    path = tmp_path / "a.stream.jsonl"
    write(faults.disconnect(synth.pay_invoice(), after=11), path)
    found = examine(path)
    assert repr(found) == repr(examine(path))
    lines = repr(found).splitlines()
    assert lines[0] == "verdict  broken off"
    assert "first    clean-end at frame 11, byte 1432" in lines
    assert lines[-1] == f"file     {path}"
    assert found.diagnosis == examine(streamlab.read(path)).diagnosis


HOSTILE = '<script>x</script>\x1b[2J\u202e"\ud83d'


def test_nothing_of_a_stranger_runs_or_turns_the_writing_on_a_page(tmp_path: Path) -> None:
    error = {"type": "error", "error": {"type": HOSTILE, "message": HOSTILE}}
    path = tmp_path / "<b>x.sse"
    path.write_bytes(stream([start(model=HOSTILE), error]))
    found = examine(path)
    page = found._repr_html_()
    assert "<script" not in page and "<b>" not in page
    for shown in (page, repr(found)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\ud800-\udfff]", shown)
    assert "CanvasText" in page and "--jp-layout-color1" in page


def test_the_words_of_a_diagnosis_are_bounded_however_long_a_strangers_are() -> None:
    error = {"type": "error", "error": {"type": "x" * 10**6, "message": "y" * 10**6}}
    assert len(repr(examine(Recording.from_bytes(stream([start(), error]))))) < 3000


def test_an_attempt_that_never_began_is_told_without_a_finding() -> None:
    outcome = msgspec.structs.replace(judge(Recording()), attempt=Attempt(), ending="eof")
    assert diagnose(outcome).verdict in VERDICTS


def test_a_finding_is_plain_json() -> None:
    found = msgspec.to_builtins(Finding("bom", "warning", "x", None, 0))
    assert json.loads(json.dumps(found)) == {
        "rule": "bom",
        "severity": "warning",
        "says": "x",
        "frame": None,
        "byte": 0,
    }
