"""The figures of a report say what the metrics say: in the drawing, in the caption, every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.analysis.figures.clumps import clumps_of
from streamlab.analysis.figures.drawing import COLOURS, WIDTH, Drawing
from streamlab.analysis.figures.flow import flow_of, flows_of
from streamlab.analysis.figures.gaps import gaps_of
from streamlab.analysis.figures.ladder import rungs
from streamlab.analysis.figures.phase_look import BIG, SYMBOLS, Item, Key, hatch, stripes
from streamlab.analysis.figures.scale import LogScale, Scale, joined
from streamlab.analysis.figures.stream import MAX_TOOLS, lanes_of
from streamlab.analysis.judge import judge
from streamlab.analysis.plain import seconds
from streamlab.analysis.plots import (
    aligned,
    clumps,
    compare,
    first_ladder,
    gap_distribution,
    stream_timeline,
)
from streamlab.errors import UsageError
from streamlab.streams import faults, synth
from streamlab.streams.answering import Pace, answer
from streamlab.streams.catalogue import FAULTS
from streamlab.streams.parts import Style, Text, Thinking, ToolCall
from streamlab.streams.recording import Chunk, Recording, write
from streamlab.streams.script import Script
from tests.drawings import SVG, boxes, contrast, overlapping, parsed, texts
from tests.streams_for_tests import STOP, block, end, start, stop, stream

LONG = answer(
    [
        Thinking(("We look at it. ",) * 30),
        Text(("It has passed. ",) * 40),
        ToolCall("change_label", {"item": "W-7", "label": "Ready for review"}),
    ],
    style=Style(pings=3),
    pace=Pace(first=0.6, gap=0.05),
)
STALLED = faults.stall(LONG, after=50, seconds=4.5)
CUT = faults.disconnect(LONG, after=50)
ERROR = faults.error(LONG, after=50)
HELD = faults.burst(LONG)
UNTIMED = Recording.from_bytes(LONG.data)
EMPTY = Recording()
SILENT = Recording((), "timeout", None, 30.0)
ONE_EVENT = synth.six_events()
MANY_TOOLS = answer([ToolCall(f"tool_{n}", {"n": n}) for n in range(MAX_TOOLS + 3)])


def proxied(recording: Recording, size: int = 2048) -> Recording:
    """The same bytes as a proxy passes them on that waits until it has so many."""
    held, chunks = b"", []
    for chunk in recording.chunks:
        held += chunk.data
        if len(held) >= size:
            chunks.append(Chunk(chunk.t, held))
            held = b""
    return msgspec.structs.replace(recording, chunks=(*chunks, Chunk(recording.end_t, held)))


def run(n: int) -> Recording:
    parts = [Thinking(("Hm. ",) * (3 + n % 5)), Text(("word ",) * (5 + 7 * n % 11))]
    whole = answer(parts, seed=n, pace=Pace(first=0.2 + 0.1 * (n * 7 % 11)))
    return faults.disconnect(whole, after=8) if n % 5 == 4 else whole


RUNS = {f"run {n}": run(n) for n in range(12)}

DRAW: dict[str, Callable[[], Drawing]] = {
    "stream": lambda: stream_timeline(LONG),
    "stream stalled": lambda: stream_timeline(STALLED),
    "stream cut": lambda: stream_timeline(CUT),
    "stream with an error": lambda: stream_timeline(ERROR),
    "stream without times": lambda: stream_timeline(UNTIMED),
    "stream of nothing": lambda: stream_timeline(EMPTY),
    "stream of silence": lambda: stream_timeline(SILENT),
    "stream of one event": lambda: stream_timeline(ONE_EVENT),
    "stream of many tools": lambda: stream_timeline(MANY_TOOLS),
    "stream interleaved": lambda: stream_timeline(faults.interleave(synth.parallel_tools())),
    "gaps of one": lambda: gap_distribution(LONG),
    "gaps of six": lambda: gap_distribution(dict(list(RUNS.items())[:6])),
    "gaps of three": lambda: gap_distribution(LONG, STALLED, proxied(LONG)),
    "ladder": lambda: first_ladder(RUNS),
    "ladder of one": lambda: first_ladder(LONG),
    "ladder of silence": lambda: first_ladder([LONG, SILENT]),
    "clumps of one": lambda: clumps(HELD),
    "clumps of two": lambda: clumps({"through a proxy": proxied(LONG), "straight": LONG}),
    "clumps of silence": lambda: clumps(SILENT),
    "aligned": lambda: aligned(RUNS),
    "aligned at content": lambda: aligned(RUNS, at="first content"),
    "aligned silence": lambda: aligned([SILENT, LONG]),
    "aligned many": lambda: aligned(RUNS[f"run {n % 12}"] for n in range(300)),
    "compare": lambda: compare(LONG, STALLED),
    "compare without times": lambda: compare(CUT, UNTIMED),
    "compare nothing": lambda: compare(EMPTY, SILENT),
}
FIGURES = {name: draw() for name, draw in DRAW.items()}
of_figures = pytest.mark.parametrize("drawn", FIGURES.values(), ids=FIGURES)


# --- Every figure ---------------------------------------------------------------------------------


@of_figures
def test_a_figure_is_plain_xml_without_script_or_address(drawn: Drawing) -> None:
    names = {element.tag.removeprefix(SVG) for element in parsed(drawn).iter()}
    assert names <= {"svg", "title", "style", "defs", "path", "text"}
    assert re.findall(r"https?://[^\"]*", drawn.svg) == ["http://www.w3.org/2000/svg"]
    assert "href" not in drawn.svg and "<pattern" not in drawn.svg


@of_figures
def test_no_word_lies_on_another_or_outside(drawn: Drawing) -> None:
    found, height = list(boxes(drawn)), float(parsed(drawn).attrib["height"])
    assert found and overlapping(found) == []
    assert min(box[1] for box in found) >= 0 and max(box[3] for box in found) <= WIDTH
    assert min(box[2] for box in found) >= 0 and max(box[4] for box in found) <= height


@of_figures
def test_every_word_is_legible_at_half_width(drawn: Drawing) -> None:
    assert {text.get("font-size") for text in parsed(drawn).iter(f"{SVG}text")} == {f"{BIG}"}
    assert BIG / 2 >= 9


@of_figures
def test_every_figure_has_a_title_a_caption_and_an_axis_with_a_unit(drawn: Drawing) -> None:
    assert drawn.title and drawn.caption.endswith(".")
    words = " ".join(texts(drawn))
    assert re.search(r"seconds since the|bytes of the stream|gap between", words)


@of_figures
def test_a_figure_is_of_a_size_that_a_report_can_hold(drawn: Drawing) -> None:
    assert len(drawn.svg) < 100_000


@of_figures
def test_colours_follow_the_scheme(drawn: Drawing) -> None:
    style, rest = drawn.svg.split("</style>")
    assert not re.search(r"#[0-9a-f]{6}", rest)
    used = set(re.findall(r"var\(--(\w+)\)", rest))
    for scheme in style.split("@media"):
        assert used <= set(re.findall(r"--(\w+):#", scheme))


@pytest.mark.parametrize("name", COLOURS)
def test_lines_and_words_contrast_with_paper_and_with_bands(name: str) -> None:
    if name in ("paper", "soft"):
        return
    for scheme in (0, 1):
        for ground in ("paper", "soft"):
            assert contrast(COLOURS[name][scheme], COLOURS[ground][scheme]) >= 4.5


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_is_the_same_again(name: str) -> None:
    again = DRAW[name]()
    assert (again.svg, again.caption) == (FIGURES[name].svg, FIGURES[name].caption)


def test_a_figure_is_the_same_in_another_process() -> None:
    code = (
        "from tests.test_figures import FIGURES; from hashlib import sha256;"
        "print(sha256(''.join(d.svg + d.caption for d in FIGURES.values()).encode()).hexdigest())"
    )
    root = Path(__file__).parent.parent
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


HOSTILE = [
    "<script>alert(1)</script>",
    "]]></svg>&amp;\"'<!--",
    "\x00\x1b[2J\u202e\ufffe\r\n",
    "\ud800 half a character",
    "語" * 300,
    "a" * 5000,
]


def tool(name: str) -> Recording:
    data = stream([start(), block(0, "tool_use", name=name), stop(0), end("tool_use"), STOP])
    return Recording((Chunk(0.1, b""), Chunk(0.2, data)), wire="claude", end_t=0.3)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda text: repr(text[:8]))
def test_hostile_words_are_only_words(name: str) -> None:
    figures = [
        stream_timeline(tool(name)),
        compare(tool(name), LONG),
        gap_distribution({name: LONG}),
        first_ladder({name: LONG}),
        clumps({name: LONG}),
        aligned({name: LONG}),
    ]
    for drawn in figures:
        names = {element.tag.removeprefix(SVG) for element in parsed(drawn).iter()}
        assert names <= {"svg", "title", "style", "defs", "path", "text"}
        assert overlapping(list(boxes(drawn))) == []
        assert max(box[3] for box in boxes(drawn)) <= WIDTH
        assert len(drawn.caption) < 2000 and "<script" not in drawn.html
        drawn.caption.encode()


# --- What each says -------------------------------------------------------------------------------


def test_a_stream_is_told_by_its_lanes_stalls_and_marks() -> None:
    flow, told = flow_of(STALLED), FIGURES["stream stalled"].caption
    metrics = flow.metrics
    assert told.startswith(f"the stream: VALIDATED_PROPOSAL, {flow.outcome.frames} frames. ")
    for lane, phase in (("thinking", "thinking"), ("text", "text"), ("change_label", "tool")):
        part = metrics.phases[phase]
        times = f"from {seconds(part.ttfc_s)} to {seconds(part.e2e_s)}"
        assert f"{lane}: {part.content_events} content events {times}" in told
    (at,), (lasted,) = metrics.stalls.at, metrics.stalls.lasted_s
    assert f"1 stall: {seconds(lasted)} from {seconds(at)} on." in told
    assert f"First content at {seconds(metrics.ttfc_s or 0)}." in told
    assert "Stop reason tool_use at" in told and "Complete at" in told and "3 pings" in told
    assert seconds(lasted) in texts(FIGURES["stream stalled"])


SAID = {
    "stream": ["No stall.", "Complete at"],
    "stream cut": ["never stopped", "Not complete (clean end) at", "INCOMPLETE"],
    "stream with an error": ["Error at", "INVALID"],
    "stream without times": ["no times, so this is over its bytes"],
    "stream of nothing": ["No content came", "Not complete"],
    "stream of silence": ["No content came", "Not complete (timeout) at 30 s"],
    "stream of many tools": [f"{3} more tools"],
    "ladder of silence": ["stream 2: not complete 30 s."],
    "clumps of silence": ["the stream: no content. 0 % of 0 content events came together."],
    "aligned silence": ["2 streams, aligned at the request. 1 not complete."],
    "compare": ["stalls: 0 and 1 (+1).", "The visible text is the same."],
    "compare without times": ["One of them has no times", "first content: "],
    "compare nothing": ["Neither has visible text.", "state: INCOMPLETE and INCOMPLETE (same)."],
}


@pytest.mark.parametrize("name", SAID)
def test_the_caption_says_what_is_special(name: str) -> None:
    for words in SAID[name]:
        assert words in FIGURES[name].caption


def test_a_stream_without_times_is_told_by_its_bytes() -> None:
    flow, told = flow_of(UNTIMED), FIGURES["stream without times"].caption
    assert f"First content at {flow.byte[0]:,} bytes." in told and "stall" not in told
    assert "bytes of the stream (no times)" in texts(FIGURES["stream without times"])


def test_a_lane_holds_all_content_of_its_kind() -> None:
    for recording in (LONG, STALLED, CUT, MANY_TOOLS, HELD, UNTIMED):
        flow = flow_of(recording)
        events = sum(run.events for lane in lanes_of(flow) for run in lane.runs)
        assert events == len(flow.t) == len(flow.byte)
    assert [lane.label for lane in lanes_of(flow_of(LONG))] == ["thinking", "text", "change_label"]
    assert len(lanes_of(flow_of(MANY_TOOLS))) == MAX_TOOLS + 1


def test_a_run_never_holds_a_stall() -> None:
    flow = flow_of(STALLED)
    (at,) = flow.metrics.stalls.at
    assert any(run.last == at for run in flow.runs())
    assert not any(run.first <= at < run.last for run in flow.runs())


def test_the_gaps_are_those_of_the_metrics() -> None:
    for recording in (LONG, STALLED, HELD, *RUNS.values()):
        flow = flow_of(recording)
        spread, gaps = flow.metrics.icl_s, gaps_of(flow)
        assert spread and len(gaps) == flow.metrics.content_events - 1
        assert max(gaps) == spread.max
    told = FIGURES["gaps of three"].caption.split("\n")
    assert [line[:11] for line in told] == ["A stream 1:", "B stream 2:", "C stream 3:"]
    spread = flow_of(STALLED).metrics.icl_s
    assert spread is not None
    for part in ("median", "p90", "p99"):
        assert f"{part} {seconds(getattr(spread, part))}" in told[1]
        assert seconds(getattr(spread, part)) in texts(FIGURES["gaps of three"])


def test_the_ladder_is_sorted_by_the_first_content() -> None:
    flows = flows_of([RUNS], 12, "x")
    order = sorted(flows, key=lambda flow: flow.metrics.ttfc_s or 0)
    named = [text for text in texts(FIGURES["ladder"]) if text in RUNS]
    assert named == [flow.name for flow in order]
    told = FIGURES["ladder"].caption.split("\n")
    firsts = [flow.metrics.ttfc_s or 0 for flow in order]
    low, high = seconds(firsts[0]), seconds(firsts[-1])
    assert told[0] == f"12 streams. First content after {low} to {high}."
    for flow, line in zip(order, told[1:], strict=True):
        assert line.startswith(f"{flow.name}: first byte {seconds(flow.first_byte or 0)}, ")
        last = "complete" if flow.outcome.complete else "not complete"
        assert line.endswith(f", {last} {seconds(flow.end)}.")


def test_the_rungs_are_the_metrics() -> None:
    flow = flow_of(LONG)
    found, metrics = {rung.mark: rung.at for rung in rungs(flow)}, flow.metrics
    assert found["first thinking"] == metrics.time_to_first_thinking_s
    assert (found["first text"], found["first tool"]) == (
        metrics.ttft_s,
        metrics.time_to_first_tool_s,
    )
    assert found["whole"] == pytest.approx((metrics.e2e_s or 0) + (metrics.settlement_lag_s or 0))
    assert list(found.values()) == sorted(found.values())


@pytest.mark.parametrize("name", ["none", *FAULTS])
def test_the_clumps_lead_to_the_verdict_of_the_metrics(name: str) -> None:
    for recording in (LONG, HELD, proxied(LONG), CUT):
        if name != "none" and not recording.timed:
            continue
        try:
            broken = recording if name == "none" else FAULTS[name].apply(recording, 2)
        except UsageError:
            continue
        flow = flow_of(broken)
        if not flow.timed:
            continue
        found = clumps_of(flow)
        assert sum(clump.events for clump in found) == flow.metrics.content_events
        held = sum(clump.held for clump in found)
        assert held == pytest.approx((flow.metrics.held or 0) * flow.metrics.content_events)


def test_a_buffered_stream_is_told_from_one_that_is_not() -> None:
    first, second, advice = FIGURES["clumps of two"].caption.split("\n")
    assert first.startswith("through a proxy: looks buffered. ")
    assert second.startswith("straight: does not look buffered. ")
    assert advice == f"Advice: {flow_of(proxied(LONG)).metrics.advice}."
    held = [clump for clump in clumps_of(flow_of(proxied(LONG))) if clump.held]
    assert f"{len(held)} clumps held back by a wait" in first
    assert f"of up to {max(clump.events for clump in held)} events" in first


def test_the_aligned_streams_are_counted() -> None:
    outcomes = [judge(recording) for recording in RUNS.values()]
    bad = sum(not outcome.complete for outcome in outcomes)
    for name, at in (("aligned", "request"), ("aligned at content", "first content")):
        told = FIGURES[name].caption
        assert told.startswith(f"12 streams, aligned at the {at}. {bad} not complete. ")
        assert f"seconds since the {at}" in texts(FIGURES[name])
        assert f"{bad} not complete" in texts(FIGURES[name])


def test_a_comparison_has_every_difference() -> None:
    one, other = judge(LONG).metrics, judge(STALLED).metrics
    assert one and other and one.e2e_s and other.e2e_s
    told = FIGURES["compare"].caption
    change = seconds(other.e2e_s - one.e2e_s)
    words = f"last content: {seconds(one.e2e_s)} and {seconds(other.e2e_s)} (+{change})."
    assert words in told and f"+{change}" in texts(FIGURES["compare"])
    assert (
        f"first content: {seconds(one.ttfc_s or 0)} and {seconds(other.ttfc_s or 0)} (same)" in told
    )


def test_texts_that_differ_are_told_from_where_on() -> None:
    a, b = (synth.answer([Text((words,))]) for words in ("Hello there", "Hello world"))
    assert "The visible text differs from character 7 on." in compare(a, b).caption
    longer = synth.answer([Text(("Hello there!",))])
    assert "differs from character 12 on." in compare(a, longer).caption


# --- What is given --------------------------------------------------------------------------------


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "gaps without times": (lambda: gap_distribution(UNTIMED), "needs times"),
    "gaps of one event": (lambda: gap_distribution(ONE_EVENT), "needs gaps"),
    "gaps of none": (lambda: gap_distribution(), "at least one stream"),
    "gaps of seven": (lambda: gap_distribution(*[LONG] * 7), "at most 6 streams"),
    "ladder without times": (lambda: first_ladder([UNTIMED]), "needs times"),
    "ladder of many": (lambda: first_ladder([LONG] * 31), r"see also aligned\) takes at most 30"),
    "clumps without times": (lambda: clumps(UNTIMED), "needs times"),
    "clumps of four": (lambda: clumps(*[LONG] * 4), "at most 3 streams"),
    "aligned without times": (lambda: aligned([UNTIMED]), "needs times"),
    "aligned at what": (lambda: aligned([LONG], at="end"), "aligned at 'request' or"),  # type: ignore[arg-type]
    "aligned without content": (lambda: aligned(SILENT, at="first content"), "no stream here has"),
    "no stream": (lambda: stream_timeline(7), "not a int"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_drawn_is_said(name: str) -> None:
    draw, words = REFUSED[name]
    with pytest.raises(UsageError, match=words):
        draw()


@pytest.mark.parametrize("draw", [gap_distribution, first_ladder, clumps, aligned])
def test_a_recording_without_times_is_left_out_and_said_to_be(draw: Any) -> None:
    assert draw(LONG, UNTIMED).caption.endswith("1 recording without times left out.")


def test_content_that_came_before_any_time_is_known_is_drawn_over_its_bytes() -> None:
    late = Recording((Chunk(None, LONG.data),), end_t=3.0)
    assert "over its bytes" in stream_timeline(late).caption


def test_a_figure_takes_a_path_and_names_it_by_its_file(tmp_path: Path) -> None:
    write(LONG, tmp_path / "a.stream.jsonl")
    drawn = stream_timeline(tmp_path / "a.stream.jsonl")
    assert drawn.caption == FIGURES["stream"].caption.replace("the stream:", "a.stream.jsonl:")
    assert stream_timeline(Script(LONG)).svg == FIGURES["stream"].svg
    both = compare(tmp_path / "a.stream.jsonl", LONG)
    assert {"A a.stream.jsonl", "B"} <= set(texts(both))


def test_what_is_kept_of_a_stream_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlab.analysis.figures.flow.MAX_ARRIVALS", 20)
    monkeypatch.setattr("streamlab.analysis.figures.flow.MAX_PINGS", 2)
    flow = flow_of(LONG)
    assert (len(flow.t), len(flow.pings), flow.more_pings) == (20, 2, 1)
    assert flow.more == flow.metrics.content_events - 20
    said = f"{flow.more} later content events not drawn."
    for draw in (stream_timeline, gap_distribution, clumps, aligned):
        assert said in draw(LONG).caption


# --- The parts ------------------------------------------------------------------------------------


places = st.floats(0, 900, allow_nan=False)


@given(st.lists(st.tuples(places, places), max_size=30))
def test_joined_stretches_cover_the_same_and_never_touch(drawn: list[tuple[float, float]]) -> None:
    edges = sorted((min(pair), max(pair)) for pair in drawn)
    found = list(joined(edges))
    assert all(b + 1 < a for (_, b), (a, _) in pairwise(found))
    for a, b in edges:
        assert any(x <= a and b <= y for x, y in found)
    ends = {edge for pair in edges for edge in pair}
    assert all(x in ends and y in ends for x, y in found)


@given(st.tuples(places, places, st.floats(1, 900), st.floats(1, 90)))
def test_a_texture_stays_in_its_box(box: tuple[float, float, float, float]) -> None:
    x, y, wide, high = box
    for line in (*hatch(box), *stripes(box)):
        for a, b in line:
            assert x - 1e-6 <= a <= x + wide + 1e-6 and y - 1e-6 <= b <= y + high + 1e-6


@given(st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=5))
def test_an_axis_keeps_the_order_and_its_edges(values: list[float]) -> None:
    for scale in (Scale(max(values), 90, 850), LogScale(0.001, max(values), 90, 850)):
        xs = [scale.x(value) for value in sorted(values)]
        assert xs == sorted(xs) and min(xs) >= 90 and max(xs) <= 850


def test_a_key_breaks_its_lines_before_the_edge() -> None:
    key = Key(Item(name, name) for name in SYMBOLS)
    assert len(key.rows) > 1
    assert [item.look for row in key.rows for _, item in row] == list(SYMBOLS)


def test_every_mark_has_a_shape_of_its_own() -> None:
    """Told apart without colour: no two marks have the same outline."""

    class Pen:
        def __init__(self) -> None:
            self.drawn: list[Any] = []

        def lines(self, lines: Any, **style: Any) -> None:
            looks = {key: bool(value) for key, value in style.items() if key in ("fill", "edge")}
            points = [[(round(x), round(y)) for x, y in line] for line in lines]
            self.drawn.append((points, looks if style.get("fill") != "paper" else "open"))

        def box(self, x: float, y: float, wide: float, high: float, **style: Any) -> None:
            self.lines([[(x, y), (x + wide, y + high)]], **style)

    seen = {}
    for name, draw in SYMBOLS.items():
        pen = Pen()
        draw(pen, 0, 0)  # type: ignore[arg-type]
        seen[name] = repr(pen.drawn)
    assert len(set(seen.values())) == len(SYMBOLS)
