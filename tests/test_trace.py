"""The trace keeps every step: it tiles the bytes, ends where `judge` ends, and says why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlab.analysis.judge import judge
from streamlab.analysis.trace import Step, Trace, trace
from streamlab.consumer.attempt import SAID, State
from streamlab.consumer.gates import CHAT, GATES
from streamlab.consumer.turn import EMPTY
from streamlab.consumer.workitem import policy_for
from streamlab.errors import UsageError
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.script import Script
from tests.streams_for_tests import (
    CALL,
    PING,
    STOP,
    TEXT,
    block,
    delta,
    end,
    frame,
    lines,
    start,
    stop,
    stream,
    text,
)


def recorded(payloads: Any = CALL, ending: str = "eof", size: int | None = None) -> Recording:
    """One chunk a frame, or of `size` bytes each, a second apart."""
    data = stream(payloads)
    parts = [frame(p) if not isinstance(p, bytes) else p for p in payloads]
    if size is not None:
        parts = [data[at : at + size] for at in range(0, len(data), size)]
    return Recording(tuple(Chunk(float(n), part) for n, part in enumerate(parts)), ending)


def script(payloads: Any = CALL, **fields: Any) -> Script:
    return Script(recorded(payloads), **fields)


def kinds(found: Trace) -> list[str]:
    return [step.kind for step in found.steps]


# --- Every step -------------------------------------------------------------------------------


def test_a_step_a_frame_then_the_end_then_the_gates() -> None:
    found = trace(script())
    assert kinds(found) == ["frame"] * len(CALL) + ["end", "gates"]
    assert [step.n for step in found.steps] == list(range(1, len(CALL) + 3))
    assert [step.name for step in found.steps] == [p["type"] for p in CALL] + ["eof", "gates"]
    assert found.wire == "claude"
    assert repr(found) == "Trace(10 steps, VALIDATED_PROPOSAL)"


def test_each_step_begins_where_the_one_before_it_ended() -> None:
    found = trace(script())
    assert (found.steps[0].turn_before, found.steps[0].attempt_before.state) == (EMPTY, "PREVIEW")
    for before, after in zip(found.steps, found.steps[1:], strict=False):
        assert after.turn_before is before.turn
        assert after.attempt_before is before.attempt
        assert after.start == before.end


DRESSES: dict[str, bytes] = {
    "LF": stream(TEXT),
    "CRLF": stream(TEXT).replace(b"\n", b"\r\n"),
    "CR": stream(TEXT).replace(b"\n", b"\r"),
    "mark and comments": b"\xef\xbb\xbf: hello\n\n" + stream(TEXT) + b": bye\n\n",
    "lines": lines(TEXT),
    "cut inside a frame": stream(TEXT)[:-7],
    "pings first": frame(PING) * 3 + stream(TEXT),
    "nothing": b"",
    "no stream": b"<html>\n\n</html>",
}


@pytest.mark.parametrize("data", DRESSES.values(), ids=DRESSES)
@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_the_steps_tile_the_bytes_in_any_dress(data: bytes, size: int) -> None:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    recording = Recording(tuple(Chunk(float(n), part) for n, part in enumerate(parts)))
    found = trace(recording)
    assert b"".join(step.raw for step in found.steps) == data
    assert all(step.raw == data[step.start : step.end] for step in found.steps)
    for step in found.steps:
        if step.frame is not None and step.chunk is not None:
            assert step.t == float(step.chunk - 1)
            first = (step.chunk - 1) * size
            assert first < step.frame.end <= first + size
        assert step.why
    assert found.attempt == judge(recording).attempt
    assert found.turn == judge(recording).turn


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=repr)
def test_a_steps_bytes_end_with_its_own_blank_line(newline: str) -> None:
    data = stream(TEXT).replace(b"\n", newline.encode())
    for step in trace(Recording.from_bytes(data)).steps[: len(TEXT)]:
        assert step.raw.startswith(b"event: ")
        assert step.raw.endswith(2 * newline.encode())


def test_a_step_knows_the_read_that_completed_its_frame() -> None:
    found = trace(recorded(TEXT, size=100))
    data = stream(TEXT)
    ends = [data.index(b"\n\n", step.start) + 2 for step in found.steps[: len(TEXT)]]
    assert [step.chunk for step in found.steps[: len(TEXT)]] == [-(-end // 100) for end in ends]


@pytest.mark.parametrize("ending", ["eof", "cut", "reset", "timeout", "cancelled"])
@pytest.mark.parametrize("after", range(len(CALL) + 1), ids="after {} events".format)
def test_the_last_step_is_where_judge_ends(ending: str, after: int) -> None:
    recording = recorded(CALL[:after], ending)
    found, outcome = trace(recording), judge(recording)
    assert (found.turn, found.attempt) == (outcome.turn, outcome.attempt)
    assert found.steps[-1].verdicts == outcome.verdicts
    assert found.wire == outcome.wire


def test_an_old_step_stays_what_it_was() -> None:
    found = trace(script(TEXT))
    assert [step.turn.text for step in found.steps[:5]] == ["", "", "Hi", "Hi there", "Hi there"]


# --- Why --------------------------------------------------------------------------------------


def whys(payloads: Any, **fields: Any) -> list[str]:
    return [step.why for step in trace(script(payloads, **fields)).steps]


def test_every_step_of_a_call_says_why() -> None:
    assert whys(CALL) == [
        "The answer has an id and a model; nothing more is promised",
        "Block 0 begins: tool_use change_label. Its id is fixed before any content",
        "An empty fragment of JSON: legal, and nothing changes",
        "11 more characters of JSON; a fragment means nothing by itself",
        "22 more characters of JSON; a fragment means nothing by itself",
        "Block 0 is whole: its input is parsed now, once. Parseable, not executable",
        "The model stopped: tool_use. The marker is still missing",
        "The whole sequence came, its final marker last",
        "The transport stopped after the final marker; the answer was whole by then",
        "No gate objects (not checked: tool, schema, business rule, authorisation); "
        "nothing has been done yet",
    ]


@pytest.mark.parametrize(
    "payloads, n, said",
    [
        (TEXT, 3, "2 more characters of text"),
        (TEXT, 5, "Block 0 is whole; the answer is not"),
        (TEXT, 9, "A whole text answer: it may be kept"),
        ([start(), PING], 2, "proof of life"),
        ([start(), {"type": "later"}], 2, "'later' is not known here"),
        ([start(), block(0, "server_tool_use")], 2, "which the provider runs itself"),
        ([start(), block(0, "thinking"), delta(0, "thinking_delta", thinking="ab")], 3, "thinking"),
        ([start(), block(0), delta(0, "citations_delta", citation=1)], 3, "belongs to block 0"),
        ([start(), end(None, {"output_tokens": 1})], 2, "they replace the earlier ones"),
        ([start(), text(0, "a")], 2, "A delta for block 0, which never started"),
        ([start(), text(0, "a"), PING], 3, "INVALID is final"),
        ([start(), block(0, "tool_use"), stop(0), end("max_tokens"), STOP], 7, "A gate did not"),
        ([start(), b"event: content_block_start\ndata: {\n\n"], 2, "The data is not JSON"),
        ([start(), b": comment\n\n", PING], 2, "proof of life"),
        ([start()], 2, "The stream ended without a stop reason, message_stop; nothing may be"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_a_step_says_why(payloads: Any, n: int, said: str) -> None:
    assert said in whys(payloads)[n - 1]


# --- Controls ---------------------------------------------------------------------------------


def test_a_cancellation_on_the_way_ends_the_stream_there() -> None:
    found = trace(script().cancel(after=4))
    assert kinds(found) == ["frame"] * 4 + ["end"]
    assert found.attempt.state is State.ABORTED
    assert "cancelled" in found.steps[-1].why
    assert found.script.code == "script.cancel(after=4)"


def test_a_cancellation_after_everything_meets_what_was_settled() -> None:
    ready = trace(script().cancel())
    assert ready.attempt.state is State.ABORTED
    assert ready.steps[-1].why == "Cancelled before anything was committed"
    held = trace(script(policy=CHAT).cancel())
    assert held.attempt.state is State.HELD
    assert "comes too late" in held.steps[-1].why


@pytest.mark.parametrize("frame", range(1, len(CALL) + 1))
def test_a_frame_that_is_delivered_again_makes_no_second_transition(frame: int) -> None:
    found = trace(script().redeliver(frame=frame))
    step = found.steps[frame]
    assert (step.kind, step.name, step.injected) == ("redeliver", f"frame {frame}", True)
    assert step.turn is step.turn_before
    assert step.attempt is step.attempt_before
    assert found.turn == trace(script()).turn
    assert found.attempt == trace(script()).attempt


@pytest.mark.parametrize("payloads", [CALL, CALL[:3], TEXT], ids=["ready", "incomplete", "text"])
def test_a_late_callback_revives_nothing(payloads: Any) -> None:
    found, plain = trace(script(payloads).late()), trace(script(payloads))
    assert (found.turn, found.attempt) == (plain.turn, plain.attempt)
    assert found.steps[-1].kind == "late"


@pytest.mark.parametrize("number", [0, 9, -1])
def test_a_frame_that_is_not_there_is_refused(number: int) -> None:
    for act in (script().redeliver, script().late):
        with pytest.raises(UsageError, match="frames 1 to 8"):
            act(number)


@pytest.mark.parametrize("ending", ["eof", "cut", "reset", "timeout"])
def test_a_disconnect_leaves_what_would_have_been_as_its_ghost(ending: str) -> None:
    found = trace(script().disconnect(after=4, ending=ending))
    assert found.attempt.state is State.INCOMPLETE
    assert kinds(found) == ["frame"] * 4 + ["end"]
    ghost = found.cut_off
    assert [step.n for step in ghost] == [5, 6, 7, 8, 9, 10]
    assert ghost[-1].attempt.state is State.VALIDATED_PROPOSAL


def test_a_script_that_was_not_changed_has_no_ghost_and_a_changed_one_is_another() -> None:
    plain = script()
    assert trace(plain).cut_off == ()
    broken = plain.unknown(after=3).disconnect(after=5, ending="reset")
    assert plain.code == "script"
    assert broken.code == "script.unknown(after=3).disconnect(after=5, ending='reset')"
    assert broken.before is not None
    assert broken.before.before is plain


def test_what_a_fault_put_in_is_marked() -> None:
    found = trace(script().unknown(after=3))
    assert [step.n for step in found.steps if step.injected] == [4]
    twice = trace(script().unknown(after=3).unknown(after=1))
    assert [step.n for step in twice.steps if step.injected] == [2, 5]
    inserted = trace(script().insert(after=2, frame=frame(PING)))
    assert [step.name for step in inserted.steps if step.injected] == ["ping"]


def test_the_gates_of_a_script_are_its_policys() -> None:
    found = trace(script(policy=policy_for("bo")))
    assert found.attempt.state is State.HELD
    assert [verdict.gate for verdict in found.steps[-1].verdicts] == list(GATES)


# --- As JSON ----------------------------------------------------------------------------------


def apply(steps: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What a view holds after some steps, made from their ops alone."""
    parts: dict[str, dict[str, Any]] = {}
    for step in steps:
        for op, id, *rest in step["ops"]:
            if op == "start":
                parts[id] = {"kind": rest[0], "text": "", "status": "streaming", "input": None}
            elif op == "append":
                parts[id]["text"] += rest[0]
            elif op == "stop":
                parts[id]["status"], parts[id]["input"] = rest
    return parts


def parts_of(step: Step) -> dict[str, dict[str, Any]]:
    return {
        s.id: {"kind": s.kind, "text": s.text, "status": s.status, "input": s.input}
        for s in step.turn.segments
    }


MIXED = [
    start(),
    block(0, "thinking"),
    delta(0, "thinking_delta", thinking="so"),
    delta(0, "signature_delta", signature="c2ln"),
    stop(0),
    block(1, text="already "),
    text(1, "é🐋"),
    block(2, "tool_use"),
    delta(2, "input_json_delta", partial_json='{"a"'),
    text(1, "there"),
    stop(1),
    block(3, "hologram", light=1),
    stop(3),
    delta(2, "input_json_delta", partial_json=": 1}"),
    stop(2),
    end("tool_use", {"output_tokens": 9}),
    STOP,
]


@pytest.mark.parametrize("payloads", [TEXT, CALL, MIXED, [*MIXED, text(1, "late")]], ids=str)
def test_the_ops_of_the_first_steps_make_the_turn_of_the_last_of_them(payloads: Any) -> None:
    found = trace(script(payloads))
    shown = found.to_json()["steps"]
    for n, step in enumerate(found.steps, 1):
        assert apply(shown[:n]) == parts_of(step)


def test_a_trace_is_plain_json_with_everything_a_view_needs() -> None:
    shown = trace(script(prompt="Label it").disconnect(after=4)).to_json("a title")
    assert json.loads(json.dumps(shown)) == shown
    assert shown["title"] == "a title"
    assert shown["code"] == "trace(script.disconnect(after=4, ending='eof'))"
    assert shown["gate_names"] == list(GATES)
    assert (shown["ghost_from"], len(shown["ghost"])) == (5, 6)
    assert shown["bytes"] == shown["steps"][-1]["end"]
    assert [step["n"] for step in shown["steps"]] == [1, 2, 3, 4, 5]
    assert all(step["said"] == SAID[State(step["state"])] for step in shown["steps"])
    assert shown["steps"][-1]["problems"][0]["rule"] == "incomplete"
    assert all(not step["problems"] for step in shown["steps"][:-1])


def test_the_conversation_keeps_a_turn_only_when_it_has_been_judged() -> None:
    for payloads, kept in ((TEXT, "Hi there"), (CALL, "[change_label]")):
        steps = trace(script(payloads, prompt="Hello")).to_json()["steps"]
        first = {"role": "user", "text": "Hello"}
        assert all(step["history"] == [first] for step in steps[:-1])
        assert steps[-1]["history"] == [first, {"role": "assistant", "text": kept}]
    for broken in (script().cancel(), script(policy=CHAT), script(CALL[:-1])):
        assert len(trace(broken).to_json()["steps"][-1]["history"]) == 1


def test_a_huge_frame_is_clipped_and_says_how_long_it_is() -> None:
    found = trace(script([start(), block(0), text(0, "x" * 100_000), stop(0), end(), STOP]))
    step = found.to_json()["steps"][2]
    assert len(step["raw"]) < 5000
    assert "characters)" in step["raw"]
    assert len(step["events"][0]["text"]) < 200
    assert step["ops"] == [["append", "0", "x" * 100_000]]
