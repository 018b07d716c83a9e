"""The picture in the terminal: what it must show, at every width, and what it must never do."""

from __future__ import annotations

import io
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from streamlab import EFFECT, Policy, Recording, faults, judge, policy_for, synth
from streamlab.analysis.lanes import UNICODE, ticks
from streamlab.analysis.picture import picture
from streamlab.analysis.timeline import MAX_MARKS, MAX_SPANS, Density, Timeline
from streamlab.consumer.gates import GATES
from tests.streams_for_tests import (
    PING,
    STOP,
    block,
    end,
    fragment,
    frame,
    start,
    stop,
    stream,
    text,
)


def drawn(
    recording: Recording,
    width: int = 100,
    ascii: bool = False,
    policy: Policy = EFFECT,
    file: str = "x.sse",
    colour: bool = False,
) -> str:
    timeline, out = Timeline(), io.StringIO()
    outcome = judge(recording, policy, watch=timeline)
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, markup=False)
    console.print(picture(outcome, timeline, file, "a note", width=width, ascii=ascii))
    return out.getvalue()


def lane(picture: str, label: str) -> str:
    """The cells of one lane, without its label."""
    return next(line for line in picture.splitlines() if line.startswith(label))[len(label) :]


CUT = faults.disconnect(synth.pay_invoice(), after=11)
STALLED = faults.stall(synth.thinking_then_tool(), after=8, seconds=20)
KINDS = {
    "whole": synth.change_label(),
    "cut": CUT,
    "stalled": STALLED,
    "burst": faults.burst(synth.change_label()),
    "limit": faults.token_limit(synth.change_label(), after=14),
    "error": faults.error(synth.parallel_tools(), after=9),
    "never": faults.never_end(synth.change_label(), after=9),
    "empty": Recording(),
    "html": Recording.from_bytes(b"<html>"),
    "raw": Recording.from_bytes(synth.parallel_tools().data),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [60, 100, 200])
def test_no_line_is_wider_than_the_terminal(kind: str, width: int) -> None:
    for line in drawn(KINDS[kind], width).splitlines():
        assert cell_len(line.rstrip()) <= width


def test_the_verdict_comes_first_with_what_a_person_is_told() -> None:
    lines = drawn(CUT).splitlines()
    assert lines[0] == "x.sse"
    assert lines[4] == "INCOMPLETE  Interrupted: the answer never became complete"


def test_each_segment_has_a_lane_and_one_that_never_stopped_looks_so() -> None:
    shown = drawn(CUT)
    assert "▒" in lane(shown, "0 text") and "┤" not in lane(shown, "0 text")
    assert lane(shown, "1 pay_invoice").rstrip().endswith("█┤")
    assert "┤ never stopped" in shown


def test_a_cut_call_shows_its_text_and_that_it_was_never_whole() -> None:
    shown = drawn(CUT)
    assert '1 tool_call pay_invoice never stopped {"invoice": "INV-17", "amount": 1' in shown
    assert "proposal" not in shown.replace("proposed", "")


def test_a_proposal_is_shown_with_its_input_and_every_gate() -> None:
    shown = drawn(synth.change_label(), policy=policy_for("ada"))
    assert 'change_label({"item": "W-7", "label": "Ready for review"})' in shown
    assert shown.count("✓") == 7


@pytest.mark.parametrize(
    ("ascii", "sign", "passed"),
    [(False, UNICODE.unchecked, "✓"), (True, "-", "ok")],
    ids=["unicode", "ascii"],
)
def test_a_gate_that_had_nothing_to_check_against_does_not_look_passed(
    ascii: bool, sign: str, passed: str
) -> None:
    drawn_gates = drawn(synth.change_label(), ascii=ascii).partition("\ngates ")[2]
    gates = drawn_gates.partition("\ntiming ")[0].splitlines()
    signs = {gate: line.split()[0] for gate in GATES for line in gates if f" {gate} " in line}
    unchecked = {"tool", "schema"}
    assert {signs[gate] for gate in unchecked} == {sign}
    assert {signs[gate] for gate in ("completion", "parse")} == {passed}
    assert re.search(
        rf"{sign} +business rule +not checked: no business rule is given", "\n".join(gates)
    )
    assert "not asked" not in "\n".join(gates)


def test_a_recording_without_times_speaks_of_no_reads() -> None:
    for shown in (drawn(KINDS["raw"]), drawn(KINDS["html"])):
        assert "read" not in shown.partition("\n\n")[0]
    assert " reads in " in drawn(synth.change_label())


def test_the_gate_that_did_not_pass_says_what_it_saw_and_the_rest_was_not_asked() -> None:
    shown = drawn(synth.change_label(), policy=policy_for("bo"))
    assert re.search(r"✗ authorisation\s+W-7 belongs to ada, not to bo", shown)
    held = drawn(faults.token_limit(synth.change_label(), after=14))
    assert "not asked: tool, parse, schema, business rule, authorisation" in held


def test_a_problem_names_its_frame_and_byte() -> None:
    shown = drawn(faults.error(synth.parallel_tools(), after=9), width=140)
    assert "✗ error at frame 10 (byte 1147): the provider reports overloaded_error" in shown


#: What is wrong -> where the problems and the doctor both say that it is.
PLACED = {
    "an error that is no frame": (
        *(faults.json_error(synth.change_label(), after=8), "provider-error"),
        "after frame 8 (byte 962)",
    ),
    "an error event": (
        *(faults.error(synth.change_label(), after=8), "provider-error"),
        "at frame 9 (byte 962)",
    ),
    "a web page": (faults.html_page(synth.change_label()), "not-a-stream", ""),
    "a bound": (faults.never_end(synth.change_label(), after=9), "bound", "at frame 248"),
    "a stop that comes twice": (
        *(faults.duplicate(synth.change_label(), frame=8), "stop-after-stop"),
        "at frame 9 (byte 962)",
    ),
}


@pytest.mark.parametrize(("recording", "rule", "place"), PLACED.values(), ids=PLACED)
def test_the_problems_and_the_doctor_name_the_same_place(
    recording: Recording, rule: str, place: str
) -> None:
    problems, _, doctor = drawn(recording, 200).partition("\nproblems ")[2].partition("\ndoctor ")
    problem = next(line for line in problems.splitlines() if f"[{rule}]" in line)
    assert " ".join(filter(None, ("", place))) in problem.partition(":")[0]
    assert re.findall(r"byte \d+", problem) == re.findall(r"byte \d+", place)
    assert doctor.splitlines()[0].rstrip().endswith(f"{place} [{rule}]".strip())


def test_an_answer_that_is_whole_is_not_whole_at_a_frame() -> None:
    doctor = drawn(PLACED["a stop that comes twice"][0], 200).partition("\ndoctor ")[2]
    first, second = [line.strip() for line in doctor.splitlines()[:2]]
    assert first == "whole, with a warning at frame 9 (byte 962) [stop-after-stop]"
    assert second == "a stop for block 0, which has stopped"


def test_what_is_about_the_file_is_at_no_frame() -> None:
    timeline, out = Timeline(), io.StringIO()
    outcome = judge(synth.greeting(), EFFECT, watch=timeline)
    outcome = msgspec.structs.replace(outcome, streams=2)
    Console(file=out, width=150).print(picture(outcome, timeline, "x.har", width=150))
    problems, _, doctor = out.getvalue().partition("\nproblems ")[2].partition("\ndoctor ")
    assert problems.strip().startswith("! warning: the file holds 2 streams; this is number 1")
    assert doctor.strip().startswith("whole, with a warning [more-streams]")


def test_the_picture_ends_with_the_doctor() -> None:
    shown = drawn(CUT, width=140).partition("\ndoctor ")[2].splitlines()
    assert shown[0].strip() == "broken off after frame 11 (byte 1432) [clean-end]"
    assert shown[2].strip().startswith("likely a gateway or proxy: ")
    assert [line.split()[0] for line in shown[3:6]] == ["may", "may", "advice"]
    whole = drawn(synth.greeting(), width=140).partition("\ndoctor ")[2].splitlines()
    assert [line.split()[0] for line in whole if line.strip()] == ["whole", "may"]


def test_a_timed_recording_has_an_axis_of_seconds_and_another_one_of_bytes() -> None:
    assert drawn(STALLED).splitlines()[7].startswith("seconds")
    assert "\nbytes " in drawn(KINDS["raw"])
    assert "\nbytes " in drawn(KINDS["burst"])  # all in one column says nothing


def test_a_stall_is_drawn_and_told() -> None:
    shown = drawn(STALLED)
    assert lane(shown, "stalled").count("┄") > 70
    assert "1 stall at 0.556 s: 20 s of silence" in shown


def test_what_looks_buffered_comes_with_advice_and_without_a_pace() -> None:
    shown = drawn(KINDS["burst"])
    assert "looks buffered" in shown and shown.count("X-Accel-Buffering: no") == 1
    assert "one every" not in shown


#: Text that flowed, and then a call whose many fragments all came with the last one.
HELD_CALL = faults.burst(synth.story("openai-chat"), after=8)


def test_a_held_call_is_told_by_one_voice_the_doctors() -> None:
    shown = drawn(HELD_CALL, width=200)
    timing, _, doctor = shown.partition("\ntiming ")[2].partition("\ndoctor ")
    assert "looks buffered: the doctor says where" in timing
    assert "collects" not in timing and "proxy" not in timing
    assert "so nothing on the way collects." in doctor
    assert "Nothing on the way has to change" in doctor


def test_where_the_doctor_speaks_of_something_else_the_timings_give_the_advice() -> None:
    cut = faults.burst(faults.disconnect(synth.change_label(), after=16))
    timing = drawn(cut, width=200).partition("\ntiming ")[2].partition("\ndoctor ")
    assert "broken off" in timing[2]
    assert "looks buffered: something on the way collects the events" in timing[0]


def test_the_states_are_told_in_turn_with_their_frames() -> None:
    told = "PREVIEW → MESSAGE_COMPLETE at frame 20 → VALIDATED_PROPOSAL at frame 20"
    assert told in drawn(synth.change_label())
    assert "PREVIEW → INVALID at frame 10" in drawn(KINDS["error"])


def test_without_colour_nothing_is_lost_and_with_it_nothing_is_added_but_colour() -> None:
    plain = drawn(CUT)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", drawn(CUT, colour=True)) == plain


@pytest.mark.parametrize("kind", KINDS)
def test_a_terminal_of_ascii_gets_shapes_of_ascii(kind: str) -> None:
    assert drawn(KINDS[kind], ascii=True).isascii()


def test_many_segments_are_drawn_up_to_a_bound_and_counted() -> None:
    payloads = [each for n in range(300) for each in (block(n), text(n, "x"), stop(n))]
    shown = drawn(Recording.from_bytes(stream([start(), *payloads])))
    assert "and 288 more" in shown
    assert len(shown.splitlines()) < 80


HOSTILE = "\x1b[2J\x1b]8;;http://x\x07\u202e\r[bold]\ud83d"


def test_markup_and_escapes_of_a_recording_are_text_and_nothing_else() -> None:
    payloads = [start(model=HOSTILE), block(0), text(0, HOSTILE), stop(0)]
    payloads += [
        block(1, "tool_use", name=HOSTILE),
        block(2, HOSTILE),
        frame({"type": HOSTILE}, "odd"),
    ]
    shown = drawn(Recording.from_bytes(stream(payloads)), file=HOSTILE, width=200)
    assert shown.count("␛[2J␛]8;;http://x␇⟨U+202E⟩␍[bold]⟨U+D83D⟩") >= 5
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ud83d]", shown)


@pytest.mark.parametrize("levels", [100, 900, 940, 960, 970, 980, 990, 2000])
def test_an_input_as_deep_as_the_parser_takes_can_be_drawn(levels: int) -> None:
    deep = '{"a": ' + "[" * levels + "]" * levels + "}"
    payloads = [start(), block(0, "tool_use"), fragment(0, deep), stop(0), end("tool_use"), STOP]
    assert "[[[[" in drawn(Recording.from_bytes(stream(payloads)))


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.integers(40, 140))
def test_any_answer_can_be_drawn_at_any_width(seed: int, width: int) -> None:
    shown = drawn(synth.random_answer(seed)[1], width)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)


# --- The timeline behind it -----------------------------------------------------------------------


def test_a_timeline_is_bounded_however_long_the_stream() -> None:
    timeline = Timeline()
    blocks = [each for n in range(1000) for each in (block(n), stop(n))]
    faulty = [text(5000, "lost")] * 1000
    judge(Recording.from_bytes(stream([start(), *blocks, *faulty])), watch=timeline)
    assert (len(timeline.spans), timeline.more_spans) == (MAX_SPANS, 1000 - MAX_SPANS)
    assert len(timeline.marks) == MAX_MARKS


def test_a_timeline_knows_where_the_first_and_last_frame_of_a_segment_were() -> None:
    timeline = Timeline()
    data = stream([start(), PING, block(0), text(0, "x"), stop(0)])
    judge(Recording.from_bytes(data), watch=timeline)
    before = len(frame(start()) + frame(PING))
    place = timeline.place_of(3)
    assert place is not None and (place.frame, place.byte) == (3, before)
    last = timeline.place_of(5)
    assert last is not None and last.byte == len(data)
    assert timeline.place_of(4) is None


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=300), st.integers(1, 200))
def test_a_density_loses_nothing_however_far_its_line_grows(xs: list[float], count: int) -> None:
    density = Density(0.001)
    for x in xs:
        density.add(x)
    columns = density.columns(count, max(xs))
    assert (len(columns), sum(columns)) == (count, len(xs))


@given(st.floats(1e-6, 1e10), st.integers(2, 20), st.booleans())
def test_an_axis_has_round_numbers_that_fit_on_it(
    extent: float, most: int, fractions: bool
) -> None:
    found = list(ticks(extent, most, fractions))
    assert found[0][0] == 0
    assert all(0 <= value <= extent * 1.000001 for value, _ in found)
    assert len(found) <= most * 1.01 + 2
    assert len({label for _, label in found}) == len(found)
