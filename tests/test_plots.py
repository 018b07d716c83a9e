"""The figures say what the trace says: in the drawing, in the caption, and the same every time."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import msgspec
import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from streamlab.analysis.figures.drawing import (
    CELL,
    MAX_CAPTION,
    SIZE,
    WIDTH,
    Board,
    Drawing,
    fitted,
    levels,
)
from streamlab.analysis.figures.machine_layout import edges, in_order, layout, least_crossing
from streamlab.analysis.figures.segment import bars
from streamlab.analysis.figures.steps_axis import MAX_MARKS, marks
from streamlab.analysis.plots import machine, runs, segment_timeline, state_timeline
from streamlab.analysis.trace import trace
from streamlab.consumer.attempt import TABLE, TERMINAL, Input, State
from streamlab.errors import UsageError
from streamlab.streams import faults, synth
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.script import Script
from streamlab.wire.events import TextDelta
from tests.lab import Lab
from tests.streams_for_tests import STOP, block, delta, end, start, stop, stream

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SVG = "{http://www.w3.org/2000/svg}"
WHOLE = Script(synth.change_label())
SCRIPTS = {
    "whole": WHOLE,
    "disconnected": WHOLE.disconnect(after=14),
    "error": WHOLE.error(after=14),
    "token limit": WHOLE.token_limit(after=14),
    "cancel": WHOLE.cancel(after=9),
    "unknown": WHOLE.unknown(after=5),
    "committed": WHOLE.commit(),
    "lost": WHOLE.commit(lost=True).reconcile(),
    "late": WHOLE.redeliver(frame=3).late(),
    "invalid early": Script(faults.delta_after_stop(WHOLE.recording)),
}
HOSTILE = [
    "<script>alert(1)</script>",
    "$\\frac{1}{0}$ $ _ ^ \\n",
    "]]></svg>&amp;\"'<!--",
    "\x00\x1b[2J\u202e\ufffe\r\n",
    "\ud800 half a character",
    "語" * 300,
    "a" * 5000,
]


def tool(name: str) -> Recording:
    """An answer whose tool has a name that a stranger chose."""
    data = stream([start(), block(0, "tool_use", name=name), stop(0), end("tool_use"), STOP])
    return recorded(data)


def recorded(data: bytes) -> Recording:
    return Recording((Chunk(None, data),), wire="claude")


def odd_table() -> dict[State, dict[Input, State]]:
    """A machine with a way back, a way past, and a terminal state less."""
    table = {state: dict(row) for state, row in TABLE.items()}
    table[State.HELD] = {Input.GATES_PASSED: State.VALIDATED_PROPOSAL, Input.CANCEL: State.ABORTED}
    table[State.COMMITTING][Input.ERROR] = State.PREVIEW
    table[State.PREVIEW][Input.COMMIT] = State.COMMITTING
    return table


FIGURES = {
    **{f"states of {name}": state_timeline(script) for name, script in SCRIPTS.items()},
    **{f"segments of {name}": segment_timeline(script) for name, script in SCRIPTS.items()},
    "states of all": state_timeline(SCRIPTS),
    "states by time": state_timeline(SCRIPTS["disconnected"], by="time"),
    "interleaved": segment_timeline(faults.interleave(synth.parallel_tools())),
    "segments by time": segment_timeline(synth.thinking_then_tool(), by="time"),
    "machine": machine(),
    "machine with a path": machine(trace(SCRIPTS["lost"])),
    "another machine": machine([State.PREVIEW, State.HELD], table=odd_table()),
}
of_figures = pytest.mark.parametrize("drawn", FIGURES.values(), ids=FIGURES.keys())


# --- Captions -----------------------------------------------------------------------------------

STATES_TOLD = {
    "whole": "PREVIEW for steps 1 to 19, then MESSAGE_COMPLETE for steps 20 to 21, then "
    "VALIDATED_PROPOSAL at step 22. The transport stopped at step 21 (clean end). "
    "The gates judged at step 22.",
    "disconnected": "PREVIEW for steps 1 to 14, then INCOMPLETE at step 15. The transport stopped "
    "at step 15 (clean end). Without the last change 8 more steps would have led to "
    "VALIDATED_PROPOSAL.",
    "error": "PREVIEW for steps 1 to 14, then INVALID for steps 15 to 16. Injected at step 15. "
    "The transport stopped at step 16 (clean end). Without the last change 8 more steps would "
    "have led to VALIDATED_PROPOSAL.",
    "token limit": "PREVIEW for steps 1 to 16, then MESSAGE_COMPLETE for steps 17 to 18, then "
    "HELD at step 19. Injected at steps 15 to 16. The transport stopped at step 18 (clean end). "
    "The gates judged at step 19. Without the last change 8 more steps would have led to "
    "VALIDATED_PROPOSAL.",
    "cancel": "PREVIEW for steps 1 to 9, then ABORTED at step 10. The transport stopped at step 10 "
    "(cancelled by us). Without the last change 13 more steps would have led to "
    "VALIDATED_PROPOSAL.",
}


@pytest.mark.parametrize("name", STATES_TOLD)
def test_the_caption_says_the_states_in_words(name: str) -> None:
    assert state_timeline(SCRIPTS[name]).caption == STATES_TOLD[name]


def test_several_traces_are_told_by_their_names() -> None:
    told = FIGURES["states of all"].caption.split("\n")
    assert [line.split(":")[0] for line in told] == list(SCRIPTS)
    assert told[1] == f"disconnected: {STATES_TOLD['disconnected']}"
    numbered = state_timeline(WHOLE, SCRIPTS["error"]).caption.split("\n")
    assert [line[:3] for line in numbered] == ["1: ", "2: "]


SEGMENTS_TOLD = {
    "whole": "0 text: started at step 2, 4 deltas, stopped at step 8. 1 tool_call change_label: "
    "started at step 9, 8 deltas, stopped at step 18. The final marker came at step 20. "
    "The transport stopped at step 21 (clean end).",
    "disconnected": "0 text: started at step 2, 4 deltas, stopped at step 8. 1 tool_call "
    "change_label: started at step 9, 5 deltas, never stopped. The final marker never came. "
    "The transport stopped at step 15 (clean end).",
}


@pytest.mark.parametrize("name", SEGMENTS_TOLD)
def test_the_caption_says_the_segments_in_words(name: str) -> None:
    assert segment_timeline(SCRIPTS[name]).caption == SEGMENTS_TOLD[name]


def test_segments_that_are_open_at_the_same_time_are_told() -> None:
    assert "Open at the same time: 0 and 1, 0 and 2, 1 and 2." in FIGURES["interleaved"].caption
    assert "Open at the same time" not in segment_timeline(WHOLE).caption


def test_an_input_that_does_not_parse_is_told() -> None:
    broken = delta(0, "input_json_delta", partial_json='{"a": ')
    data = stream([start(), block(0, "tool_use"), broken, stop(0), end("tool_use"), STOP])
    drawn = segment_timeline(recorded(data))
    assert "stopped at step 4, and its input does not parse." in drawn.caption
    assert "does not parse" in texts(drawn)


def test_the_machines_caption_has_every_row() -> None:
    told = machine().caption.split("\n")
    assert len(told) == len(TABLE) - len(TERMINAL) + 1
    assert told[0] == (
        "PREVIEW leads to MESSAGE_COMPLETE by completed; to INVALID by error or violation; "
        "to HELD by ambiguity; to INCOMPLETE by ended or bound; to ABORTED by cancel; "
        "and stays by content."
    )
    assert told[-1] == "Nothing leads out of COMMITTED, HELD, INCOMPLETE, ABORTED, INVALID."
    path = machine(trace(SCRIPTS["disconnected"])).caption.split("\n")[-1]
    assert path == "Drawn heavier: PREVIEW → INCOMPLETE."


# --- Every drawing ------------------------------------------------------------------------------


def parsed(drawn: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawn.svg)


def texts(drawn: Drawing) -> list[str]:
    return ["".join(text.itertext()) for text in parsed(drawn).iter(f"{SVG}text")]


@of_figures
def test_a_drawing_is_plain_xml_without_script_or_address(drawn: Drawing) -> None:
    allowed = {"svg", "title", "style", "defs", "path", "text"}
    names = {element.tag for element in parsed(drawn).iter()}
    assert names <= {f"{SVG}{name}" for name in allowed}
    for element in parsed(drawn).iter():
        assert not any("href" in name or name.startswith("on") for name in element.attrib)
        assert all(url.startswith("#d") for url in re.findall(r"url\(([^)]*)", str(element.attrib)))
    assert re.findall(r"https?://[^\"]*", drawn.svg) == ["http://www.w3.org/2000/svg"]


@of_figures
def test_a_drawing_is_small(drawn: Drawing) -> None:
    assert len(drawn.svg) < 27_000


@of_figures
def test_colours_are_named_and_follow_the_scheme(drawn: Drawing) -> None:
    style, rest = drawn.svg.split("</style>")
    assert "prefers-color-scheme:dark" in style
    assert not re.search(r"#[0-9a-f]{6}", rest)
    used = set(re.findall(r"var\(--(\w+)\)", rest))
    assert used <= set(re.findall(r"--(\w+):#", style))


def boxes(drawn: Drawing) -> Iterator[tuple[str, float, float, float, float]]:
    """Every text with the room that it takes, at most."""
    for text in parsed(drawn).iter(f"{SVG}text"):
        said, size = "".join(text.itertext()), float(text.get("font-size", SIZE))
        wide = cell_len(said) * CELL * size
        back = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor", "start")]
        x, y = float(text.attrib["x"]) - back * wide, float(text.attrib["y"])
        yield said, x, y - size * 0.8, x + wide, y + size * 0.22


def overlapping(found: list[tuple[str, float, float, float, float]]) -> list[tuple[str, str]]:
    return [
        (a[0], b[0])
        for a, b in combinations(found, 2)
        if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]
    ]


@of_figures
def test_no_word_lies_on_another_or_outside(drawn: Drawing) -> None:
    found, height = list(boxes(drawn)), float(parsed(drawn).attrib["height"])
    assert found and overlapping(found) == []
    assert min(box[1] for box in found) >= 0 and max(box[3] for box in found) <= WIDTH
    assert min(box[2] for box in found) >= 0 and max(box[4] for box in found) <= height


def test_words_that_overlap_would_be_found() -> None:
    assert overlapping([("a", 0, 0, 10, 10), ("b", 9, 9, 20, 20), ("c", 10, 0, 12, 9)]) == [
        ("a", "b")
    ]


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 20)), max_size=8))
def test_levels_keep_words_and_strokes_apart(drawn: list[tuple[int, int]]) -> None:
    words = [(float(x), "w" * size) for x, size in sorted(drawn)]
    found = levels(words, 10)
    for (a, (x, word)), (b, (other, _)) in combinations(zip(found, words, strict=True), 2):
        if b >= a:  # a word that is no farther than a later one: it ends before that one's stroke
            assert x + len(word) * CELL * 10 <= other


def test_a_drawing_is_the_same_in_every_process() -> None:
    code = (
        "from streamlab.analysis.plots import *; from streamlab.streams import synth;"
        "from streamlab.streams.script import Script; w = Script(synth.change_label());"
        "s = w.token_limit(after=14);"
        "print(state_timeline(s).html, segment_timeline(s).html, machine().html)"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1 and b"base64" in told.pop()


def test_threads_may_draw_at_the_same_time() -> None:
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: state_timeline(SCRIPTS).svg, range(8)))
    assert set(drawn) == {FIGURES["states of all"].svg}


def test_a_person_s_matplotlib_settings_change_nothing() -> None:
    import matplotlib

    odd = {"svg.fonttype": "path", "hatch.linewidth": 9, "text.usetex": True, "lines.linewidth": 7}
    with matplotlib.rc_context({**odd, "figure.dpi": 300, "savefig.dpi": 30}):
        assert machine().svg == FIGURES["machine"].svg
        assert state_timeline(SCRIPTS).svg == FIGURES["states of all"].svg


def test_drawing_is_what_brings_in_matplotlib_and_never_pyplot() -> None:
    code = (
        "import sys, streamlab.analysis.plots as p; a = 'matplotlib' in sys.modules; p.machine();"
        "print(a, 'matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    assert done.stdout.split() == ["False", "True", "False"]


# --- On a page ----------------------------------------------------------------------------------


def test_a_drawing_is_shown_as_its_caption_and_as_a_figure(tmp_path: Path) -> None:
    drawn = FIGURES["states of disconnected"]
    assert len(drawn.caption) <= MAX_CAPTION
    assert repr(drawn) == drawn.caption
    data = drawn._repr_mimebundle_(include=None, exclude=None)
    assert data["text/plain"] == drawn.caption
    held = re.fullmatch(
        r'<figure style="margin: 0"><img width="900" alt="[^"<>]+" '
        r'src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)">'
        r"<figcaption>([^<>]+)</figcaption></figure>",
        data["text/html"],
    )
    assert held and base64.b64decode(held[1]).decode() == drawn.svg
    assert held[2] == drawn.caption
    long = FIGURES["machine"]
    assert len(long.caption) > MAX_CAPTION and repr(long) == long.caption
    folded = long.caption.replace("\n", "<br>")
    assert long.html.endswith(
        f"<figcaption><details><summary>in words</summary>{folded}</details></figcaption></figure>"
    )
    drawn.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == drawn.svg.encode()


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:8]))
@pytest.mark.parametrize("draw", [segment_timeline, lambda r: state_timeline({r: WHOLE})])
def test_hostile_words_are_only_words(draw: object, text: str) -> None:
    given = tool(text) if draw is segment_timeline else text
    drawn = draw(given)  # type: ignore[operator]
    plain = draw(tool("pay") if draw is segment_timeline else "pay")  # type: ignore[operator]
    tags = [element.tag for element in parsed(drawn).iter()]
    assert tags == [element.tag for element in parsed(plain).iter()]
    assert "<script" not in drawn.html and len(drawn.html) < 12_000
    assert all(each.isprintable() for each in [*texts(drawn), drawn.caption])
    assert overlapping(list(boxes(drawn))) == []


def test_no_sign_that_xml_forbids_gets_into_a_drawing() -> None:
    board = Board(20)
    board.text(0, 10, "".join(HOSTILE[3:5]))
    assert texts(board.drawing("\x00", ""))[0].startswith("␀␛[2J⟨U+202E⟩⟨U+FFFE⟩")


def test_a_dollar_sign_is_a_dollar_sign() -> None:
    assert "0 tool_call $x^2$" in texts(segment_timeline(tool("$x^2$")))


def test_what_does_not_fit_is_clipped_by_its_width() -> None:
    assert fitted("abcdef", 6 * CELL * 10, 10) == "abcdef"
    assert fitted("abcdefg", 6 * CELL * 10, 10) == "abcde…"
    assert cell_len(fitted("語" * 9, 6 * CELL * 10, 10)) <= 6


# --- The states ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_state_is_named_in_its_line(name: str) -> None:
    states = [run.state.value for run in runs(trace(SCRIPTS[name]).steps)]
    said = texts(FIGURES[f"states of {name}"])
    assert len(states) > 1
    assert [said.count(state) for state in states] == [1] * len(states)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("whole", {"clean end", "gates"}),
        ("disconnected", {"clean end", "would have been VALIDATED_PROPOSAL"}),
        ("error", {"injected", "clean end", "would have been VALIDATED_PROPOSAL"}),
        ("cancel", {"cancelled by us", "would have been VALIDATED_PROPOSAL"}),
        ("unknown", {"injected", "clean end", "gates"}),
        ("late", {"redeliver", "late", "clean end", "gates"}),
    ],
)
def test_marks_have_words(name: str, words: set[str]) -> None:
    said = {each for each in texts(FIGURES[f"states of {name}"]) if not each.isdigit()}
    assert said - {state.value for state in State} - {"step"} == words


def test_what_the_program_does_itself_is_no_fault() -> None:
    """Its marks are not those of what was injected: another shape, and no alarm's colour."""
    done = marks(trace(SCRIPTS["lost"]))
    signs = {mark.word: mark.sign for mark in done}
    assert {signs[word] for word in ("commit", "effect", "reconcile")} == {"act"}
    assert "var(--bad)" not in FIGURES["states of lost"].svg
    assert "var(--bad)" in FIGURES["states of error"].svg
    late = {mark.word: mark.sign for mark in marks(trace(SCRIPTS["late"]))}
    assert (late["late"], late["redeliver"]) == ("injected", "injected")


@of_figures
def test_nothing_is_hatched(drawn: Drawing) -> None:
    assert "<pattern" not in drawn.svg


def test_time_needs_times() -> None:
    with pytest.raises(UsageError, match="no times"):
        state_timeline(tool("pay"), by="time")
    with pytest.raises(UsageError, match="by='hours'"):
        state_timeline(WHOLE, by="hours")  # type: ignore[arg-type]
    said = texts(FIGURES["states by time"])
    assert "seconds" in said and "0.2" in said and "step" not in said


@pytest.mark.parametrize("given", [(), ({},), [WHOLE] * 13], ids=["none", "empty", "too many"])
def test_a_figure_of_states_has_some_traces_and_not_too_many(given: tuple[Script, ...]) -> None:
    with pytest.raises(UsageError, match="takes 1 to 12 traces"):
        state_timeline(*given)


def test_of_many_marks_the_rest_is_counted() -> None:
    script = WHOLE
    for frame in range(1, 20):
        script = script.redeliver(frame=frame)
    drawn = state_timeline(script)
    assert texts(drawn).count("redeliver") == MAX_MARKS - 1
    assert (
        f"Beside the stream at steps {2 * MAX_MARKS} to 38: {20 - MAX_MARKS} more" in drawn.caption
    )
    assert overlapping(list(boxes(drawn))) == []


# --- The segments -------------------------------------------------------------------------------


def test_a_bar_reaches_from_start_to_stop_with_its_deltas() -> None:
    text, call = bars(trace(SCRIPTS["disconnected"]))
    assert (text.first, text.last, text.deltas) == (2, 8, [4, 5, 6, 7])
    assert (call.name, call.first, call.last) == ("change_label", 9, None)


def test_what_comes_after_a_stop_is_no_part_of_a_bar() -> None:
    whole = trace(WHOLE)
    late = msgspec.structs.replace(whole.steps[11], events=(TextDelta("0", "late"),))
    steps = (*whole.steps[:11], late, *whole.steps[12:])
    assert bars(msgspec.structs.replace(whole, steps=steps))[0] == bars(whole)[0]


@pytest.mark.parametrize("marker", [0, 1], ids=["of a cut stream", "of a whole one"])
def test_a_late_callback_is_no_final_marker(marker: int) -> None:
    script = [SCRIPTS["disconnected"].late(), WHOLE.late()][marker]
    assert texts(segment_timeline(script)).count("final marker") == marker


def test_one_that_never_stopped_says_so_and_no_other() -> None:
    assert texts(FIGURES["segments of disconnected"]).count("never stopped") == 1
    assert "never stopped" not in texts(FIGURES["segments of whole"])


def test_many_segments_and_long_ones_stay_small() -> None:
    payloads = [p for n in range(30) for p in (block(n), stop(n))]
    data = stream([start(), *payloads, end("end_turn"), STOP])
    many = segment_timeline(recorded(data))
    assert "and 18 more" in texts(many) and "18 more segments started" in many.caption
    long = segment_timeline(synth.long_text(30_000))
    count = re.search(r"([\d,]+) deltas", long.caption)
    assert count and int(count[1].replace(",", "")) > 3000
    assert len(long.svg) < 25_000


# --- The machine --------------------------------------------------------------------------------


def drawn_edges(drawn: Drawing) -> set[tuple[str, str]]:
    found = re.findall(r'id="edge-([A-Z_]+)-([A-Z_]+)"', drawn.svg)
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("table", [TABLE, odd_table()], ids=["ours", "another"])
def test_the_machine_has_exactly_the_tables_edges(table: dict[State, dict[Input, State]]) -> None:
    drawn = machine(table=table)
    ways = {(start.value, end.value) for start, row in table.items() for end in row.values()}
    assert drawn_edges(drawn) == ways
    words = sum(len(each.words) for each in edges(table))
    assert words == sum(map(len, table.values()))
    written = " ".join(said for said in texts(drawn) if said not in set(table))
    for word in {word for row in table.values() for word in row}:
        count = sum(word in row for row in table.values())
        assert len(re.findall(rf"\b{word.value}\b", written)) == count
    assert {said for said in texts(drawn) if said in set(table)} == set(table)


def test_a_new_row_changes_the_picture() -> None:
    table = {state: dict(row) for state, row in TABLE.items()}
    table[State.RECONCILING][Input.ERROR] = State.HELD
    before, after = machine(), machine(table=table)
    assert drawn_edges(after) - drawn_edges(before) == {("RECONCILING", "HELD")}
    assert before.caption != after.caption


def test_terminal_states_and_only_they_have_a_double_border() -> None:
    lines = machine().svg.split("\n")
    doubled = {
        match[1]
        for line, following in pairwise(lines)
        if (match := re.search(r'id="state-(\w+)"', line)) and "fill:none" in following
        if "stroke-width:1.2" in following
    }
    assert doubled == {state.value for state in TERMINAL}


def test_a_path_is_drawn_heavier() -> None:
    drawn = machine(trace(SCRIPTS["disconnected"]))
    heavy = re.findall(r'id="(\S+)"[^>]*stroke-width:3', drawn.svg)
    assert sorted(heavy) == ["edge-PREVIEW-INCOMPLETE", "state-INCOMPLETE", "state-PREVIEW"]
    assert drawn == machine(["PREVIEW", "PREVIEW", "INCOMPLETE"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="'DONE' is none of the states: PREVIEW"):
        machine(["DONE"])  # type: ignore[list-item]


def test_no_state_stands_above_one_that_leads_to_it() -> None:
    assert in_order(TABLE) == [s for s in TABLE if s not in TERMINAL]


def test_the_order_of_the_terminal_states_crosses_least() -> None:
    """A way crosses an upright line to its left that an earlier row leads to."""
    upper, lower = in_order(TABLE), [state for state in TABLE if state in TERMINAL]
    order = least_crossing(lower, upper, edges(TABLE))
    assert sorted(order) == sorted(lower)
    assert crossings(machine()) == 4
    rows = {end: min(upper.index(e.start) for e in edges(TABLE) if e.end is end) for end in order}
    assert rows[order[-1]] == 0  # what every answer may come to is farthest out


def crossings(drawn: Drawing) -> int:
    """Where a drawn level line crosses an upright one, counted from the drawing."""
    level, upright = [], set()
    for name, path in re.findall(r'id="edge-(\S+)" d="([^"]*)"', drawn.svg):
        points = [tuple(map(float, p)) for p in re.findall(r"[ML] (\S+) (\S+)", path)]
        if len(points) == 3:
            (a, y), (x, _), (_, low) = points
            level.append((name, a, x, y))
            upright.add((x, name.split("-")[1], y, low))
    found = set()
    for _, a, b, y in level:
        for x, to, top, low in upright:
            if a < x < b and top < y < low:
                found.add((x, to, y))
    return len(found)


def on_boxes(table: dict[State, dict[Input, State]]) -> list[tuple[str, str]]:
    """Words that lie on a state's box, or under a line, and boxes that lie on one another."""
    plan = layout(table)
    places = [(s.value, p.x, p.y, p.x + p.wide, p.y + p.high) for s, p in plan.places.items()]
    words = [(said, x, y - 9, x + cell_len(said) * CELL * 11, y + 2.5) for x, y, said in plan.words]
    lines = [
        (f"{e.start}-{e.end}", min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))
        for e, way in plan.ways.items()
        for a, b in pairwise(way)
    ]
    both = overlapping([*places, *words])
    return both + [
        (word[0], line[0])
        for word in words
        for line in lines
        if word[1] < line[3] and line[1] < word[3] and word[2] < line[4] and line[2] < word[4]
    ]


@pytest.mark.parametrize("table", [TABLE, odd_table()], ids=["ours", "another"])
def test_no_word_lies_on_a_box_or_a_line(table: dict[State, dict[Input, State]]) -> None:
    assert on_boxes(table) == []


@given(
    st.lists(
        st.tuples(st.sampled_from(State), st.sampled_from(Input), st.sampled_from(State)),
        max_size=4,
    )
)
def test_other_tables_are_readable_too(
    more: list[tuple[State, Input, State]],
) -> None:
    table = {state: dict(row) for state, row in TABLE.items()}
    for one, word, other in more:
        table[one][word] = other
    assert on_boxes(table) == []
    assert set(layout(table).ways) == set(edges(table))


# --- In a real JupyterLab -----------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_lab_shows_a_notebook_that_it_does_not_trust(
    lab: Lab, browser: Browser, theme: str
) -> None:
    """The image and the caption both pass the sanitizer, and the image follows the theme."""
    drawn = FIGURES["machine"]
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "name": "python3"}
    output = nbformat.v4.new_output("execute_result", drawn._repr_mimebundle_(), execution_count=1)
    cell = nbformat.v4.new_code_cell("machine()", outputs=[output], execution_count=1)
    notebook.cells = [cell]
    nbformat.write(notebook, lab.folder / "a.ipynb")
    with lab.open(browser, "a.ipynb", theme) as opened:
        shown = opened.page.locator(".jp-OutputArea figure")
        image = shown.locator("img")
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == WIDTH
        first = drawn.caption.split("\n")[0]
        assert first not in shown.inner_text()
        shown.get_by_text("in words").click()
        assert first in shown.inner_text()
        assert image.evaluate(CORNER) == ([255] * 3 if theme == "Light" else [17] * 3)
        assert opened.errors == []


#: The colour of the paper, as it is painted.
CORNER = """
async (image) => {
  await image.decode();
  const context = new OffscreenCanvas(900, 100).getContext("2d");
  context.drawImage(image, 0, 0);
  return [...context.getImageData(1, 1, 1, 1).data].slice(0, 3);
}
"""
