"""The Inspector's Python: what a view is given, how two recordings part, and what is opened."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.analysis import laying_out
from streamlab.analysis.comparison import compare, first_difference
from streamlab.analysis.inspection import Inspection, inspection
from streamlab.analysis.laying_out import KIND_OF, KINDS, Limits
from streamlab.analysis.trace import trace
from streamlab.errors import UsageError, WireError
from streamlab.streams import faults, synth
from streamlab.streams.random_answers import HARD_TEXT
from streamlab.streams.recording import Chunk, Recording, read, write
from streamlab.study import corpora
from streamlab.widgets import inspector_page
from streamlab.widgets.inspector import MAX_PAST, Inspector
from streamlab.widgets.inspector_files import MAX_FILE, Incoming, streams_of
from streamlab.widgets.onefile import HERE, to_text
from streamlab.wire import events
from streamlab.wire.events import Event
from streamlab.wire.forms import frames_of

ROOT = Path(__file__).parent.parent
FIXTURES = sorted(path for path in (ROOT / "fixtures").rglob("*.*") if path.suffix != ".md")
WIRES = ("claude", "openai-chat", "openai-responses", "gemini")
EVIL = "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>"


def many(frames: int) -> Recording:
    return synth.answer([synth.Text(tuple(f"word {number} " for number in range(frames)))])


def columns(given: dict[str, list[Any]]) -> set[int]:
    return {len(column) for column in given.values()}


# --- What a view is given -------------------------------------------------------------------------


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_frame_of_a_recording_is_a_row_with_its_own_bytes(path: Path) -> None:
    recording = read(path)
    found = inspection(recording, path.name)
    raw, frames = found.raw.encode("latin-1"), found.frames
    assert raw == recording.data
    expected = frames_of(recording.data)
    assert found.rows == len(expected) + 1
    assert frames["start"][:-1] == [frame.start for frame in expected]
    assert frames["end"][:-1] == [frame.end for frame in expected]
    assert [found.names[n] for n in frames["name"][:-1]] == [frame.event for frame in expected]
    assert frames["end"][-1] == len(raw)
    for each in (frames, found.events, found.segments, found.problems):
        assert len(columns(each)) == 1


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("wire", WIRES)
def test_what_a_view_lists_is_what_the_trace_found(wire: str, seed: int) -> None:
    _, recording = synth.random_answer(seed, wire)
    found, traced = inspection(recording), trace(recording)
    kinds = [found.kinds[kind] for kind in found.frames["kind"]]
    said: dict[str, str] = {}
    for row, type_, segment, text in zip(*found.events.values(), strict=True):
        if found.types[type_] in ("TextDelta", "ThinkingDelta", "InputDelta") and text:
            assert kinds[row] in ("text", "thinking", "tool")
            name = found.segments["id"][segment]
            said[name] = said.get(name, "") + text
    for segment in traced.steps[-1].turn.segments:
        at = found.segments["id"].index(segment.id)
        assert found.segments["kind"][at] == segment.kind
        assert found.segments["stopped"][at] == (segment.status != "streaming")
        if len(segment.text) < 400 and found.segments["size"][at] == len(segment.text):
            assert said.get(segment.id, "") == segment.text
    assert found.facts["state"] == traced.attempt.state.value


def test_every_event_that_can_be_stated_has_a_kind_or_is_the_end() -> None:
    named = set(get_args(Event))
    assert len(named) > 15
    assert named - set(KIND_OF) == {events.StreamEnded}
    without_words = {events.SegmentStopped, events.KeepAlive, events.MessageCompleted}
    assert named - set(laying_out.SAYS) == without_words
    assert set(laying_out.MEANS) <= named


def test_the_bytes_that_no_frame_took_are_the_ends() -> None:
    whole = synth.change_label()
    last = whole.data.rindex(b"event: ")
    found = inspection(Recording.from_bytes(whole.data[: last + 40], ending="reset"))
    assert found.raw[found.frames["start"][-1] :].encode() == whole.data[last : last + 40]
    assert (found.kinds[found.frames["kind"][-1]], found.facts["ending"]) == ("end", "reset")
    assert found.first == found.rows - 1
    assert {"unfinished-block", "incomplete"} <= set(found.problems["rule"])


def test_a_providers_error_is_the_first_problem_and_stands_at_its_frame() -> None:
    found = inspection(read(ROOT / "fixtures/claude/overloaded.sse"))
    assert found.first == 12
    at = found.problems["row"].index(12)
    assert found.problems["severity"][at] == "error"
    assert "Overloaded" in found.problems["says"][at]


def test_times_are_of_the_read_that_completed_a_frame() -> None:
    data = synth.six_events().data
    first, second = data[: len(data) // 2], data[len(data) // 2 :]
    found = inspection(Recording((Chunk(0.5, first), Chunk(2.25, second)), end_t=3.0))
    whole = len(frames_of(first))
    assert found.frames["t"] == [0.5] * whole + [2.25] * (6 - whole) + [3.0]
    assert found.reads["byte"] == [0, len(first)]


def test_a_stall_that_the_doctor_found_stands_at_the_frame_that_ended_it() -> None:
    found = inspection(read(ROOT / "fixtures/claude/stall.stream.jsonl"))
    times, row = found.frames["t"], found.problems["row"][found.problems["rule"].index("stall")]
    assert [round(times[row] - times[row - 1], 6)] == [lasted for _, lasted in found.stalls]
    assert found.first == row


def test_without_times_there_are_no_reads_and_no_timings() -> None:
    found = inspection(synth.six_events())
    timed = found.facts["timed"]
    assert timed or (found.reads == {"byte": []} and set(found.frames["t"]) == {None})
    untimed = inspection(Recording.from_bytes(synth.six_events().data))
    assert set(untimed.frames["t"]) == {None}
    assert (untimed.reads, untimed.stalls) == ({"byte": []}, [])
    assert [row[0] for row in untimed.measures] == [
        *("frames", "bytes", "input tokens", "output tokens"),
    ]


def test_a_stall_is_where_the_silence_was() -> None:
    found = inspection(read(ROOT / "fixtures/claude/stall.stream.jsonl"))
    ((at, lasted),) = found.stalls
    times = found.frames["t"]
    assert at in times and round(at + lasted, 6) in times


BOUNDS = [
    ("frames", Limits(frames=10), lambda found: found.rows == 11),
    ("bytes", Limits(bytes=500), lambda found: len(found.raw) <= 500),
    ("events", Limits(events=7), lambda found: len(found.events["row"]) == 7),
    ("text", Limits(text=3), lambda found: max(map(len, found.events["text"])) <= 3),
    ("segments", Limits(segments=1), lambda found: len(found.segments["id"]) == 1),
    ("names", Limits(names=2), lambda found: len(found.names) == 3),
]


@pytest.mark.parametrize(("name", "limits", "kept"), BOUNDS, ids=[row[0] for row in BOUNDS])
def test_each_bound_holds_and_the_verdict_is_still_of_the_whole(
    name: str, limits: Limits, kept: Any
) -> None:
    whole, found = inspection(synth.story()), inspection(synth.story(), limits=limits)
    assert kept(found)
    assert (found.facts, found.diagnosis) == (whole.facts, whole.diagnosis)
    assert found.measures == whole.measures
    assert bool(found.left_out) == (name in ("frames", "bytes", "events", "segments"))
    if found.left_out:
        assert "the whole stream" in found.left_out


def test_a_million_tiny_frames_are_bounded_and_said_so() -> None:
    found = inspection(Recording.from_bytes(b"data: {}\n\n" * 1_000_001))
    assert found.rows == laying_out.LIMITS.frames + 1
    assert len(to_text(found.to_json())) < 8_000_000
    assert found.left_out.startswith("frames 50,001 to 1,000,000 are not drawn")
    assert "bound" in found.problems["rule"]


def test_json_that_is_too_deep_is_only_a_problem() -> None:
    deep = b'data: {"type":"content_block_delta","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n"
    found = inspection(Recording.from_bytes(synth.six_events().data + deep))
    assert found.rows == 8
    json.loads(to_text(found.to_json()))


def test_ten_thousand_frames_are_little_more_than_their_bytes() -> None:
    recording = many(10_000)
    text = to_text(inspection(recording).to_json())
    assert len(text) < 2.2 * len(recording.data)
    assert "meaning" not in json.loads(text)


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
@settings(max_examples=60)
def test_any_bytes_at_all_are_laid_out_and_none_is_lost(data: bytes) -> None:
    found = inspection(Recording.from_bytes(data))
    assert found.raw.encode("latin-1") == data
    assert json.loads(to_text(found.to_json()))["raw"].encode("latin-1") == data
    ends = found.frames["end"]
    assert ends == sorted(ends) and ends[-1] == len(data)


# --- Two recordings -------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES[1:])
def test_one_answer_in_two_dialects_means_the_same(wire: str) -> None:
    assert first_difference(inspection(synth.story()), inspection(synth.story(wire))) is None


@pytest.mark.parametrize("seed", range(20))
def test_pieces_pings_and_times_are_no_difference(seed: int) -> None:
    recording = synth.change_label()
    data = recording.data
    again = Recording(tuple(Chunk(n * 0.1, data[n : n + 1]) for n in range(len(data))))
    assert first_difference(inspection(recording), inspection(again)) is None
    pinged = data.replace(b"event: content_block_stop", b": a comment\n\nevent: content_block_stop")
    assert pinged != data
    other = inspection(Recording.from_bytes(pinged))
    assert first_difference(inspection(recording), other) is None


def test_two_recordings_part_at_the_frame_that_says_something_else() -> None:
    one, two = synth.story(), Recording.from_bytes(synth.story().data.replace(b"W-7", b"W-8", 1))
    a, b = inspection(one), inspection(two)
    found = first_difference(a, b)
    assert found is not None
    row, beside = found.rows
    assert row == beside
    start, end = (column[row] for column in (a.frames["start"], a.frames["end"]))
    assert a.raw[start:end] != b.raw[start:end]
    assert a.raw[:start] == b.raw[:start]
    assert "'7" in found.says[0] and "'8" in found.says[1]


def test_a_cut_recording_parts_where_it_has_no_more_to_say() -> None:
    whole = synth.change_label()
    found = first_difference(inspection(whole), inspection(faults.disconnect(whole, 14, "reset")))
    assert found is not None
    assert found.rows[0] == 14
    assert " ends after " in found.says[1]


def test_of_two_empty_recordings_only_the_end_can_differ() -> None:
    clean, reset = Recording(), Recording(ending="reset")
    assert first_difference(inspection(clean), inspection(clean)) is None
    found = first_difference(inspection(clean), inspection(reset))
    assert found is not None and found.says == ("the stream ends: eof", "the stream ends: reset")


def test_the_numbers_of_two_are_subtracted_and_what_one_lacks_is_none() -> None:
    a = inspection(read(ROOT / "fixtures/claude/stall.stream.jsonl"))
    b = inspection(read(ROOT / "fixtures/claude/change_label.sse"))
    rows = {row[0]: row for row in compare(a, b)["measures"]}
    assert rows["frames"][2:] == [20, 20, 0]
    assert rows["stalls"][2:] == [1, None, None]
    back = {row[0]: row for row in compare(b, a)["measures"]}
    assert back["stalls"][2:] == [None, 1, None]


# --- Opening --------------------------------------------------------------------------------------


def sent(
    inspector: Inspector, data: bytes, name: str = "a.sse", beside: bool = False, piece: int = 4096
) -> dict[str, Any]:
    """Send a file as the page does; give what Python answers."""
    told = {"id": f"id of {name}", "name": name, "size": len(data), "beside": beside}
    for at in range(0, max(len(data), 1), piece):
        message = {"file": {**told, "at": at}}
        part = memoryview(data[at : at + piece])
        inspector._handle_custom_msg(message, [part])
    return dict(inspector.answer)


def pressed(inspector: Inspector, action: str, **more: Any) -> dict[str, Any]:
    number = int(inspector.request.get("id", 0)) + 1
    inspector.set_state({"request": {"id": number, "action": action, **more}})
    return dict(inspector.answer)


def shown(inspector: Inspector) -> str:
    return str(json.loads(inspector.shown)["name"]) if inspector.shown else ""


def test_a_file_that_comes_in_pieces_is_opened_and_undo_goes_back() -> None:
    inspector = Inspector()
    assert (inspector.shown, inspector.answer["undo"]) == ("", False)
    answer = sent(inspector, synth.story().data, "first.sse", piece=100)
    assert (answer["ok"], answer["text"]) == (True, "opened first.sse")
    assert answer["id"] == "id of first.sse"
    assert shown(inspector) == "first.sse"
    sent(inspector, synth.six_events().data, "second.sse")
    assert shown(inspector) == "second.sse"
    assert pressed(inspector, "undo")["text"] == "back to first.sse"
    assert shown(inspector) == "first.sse"
    assert pressed(inspector, "undo")["text"] == "nothing is open"
    assert inspector.shown == ""
    assert "nothing to undo" in pressed(inspector, "undo")["text"]


FORMS = [(".sse", ".sse"), (".jsonl", ".jsonl"), (".stream.jsonl", ".stream.jsonl"), (".sse", "")]


@pytest.mark.parametrize(("form", "suffix"), FORMS, ids=[f"{a} as {b!r}" for a, b in FORMS])
def test_a_dropped_file_of_any_form_is_read_as_that_file(
    tmp_path: Path, form: str, suffix: str
) -> None:
    write(synth.story(), tmp_path / f"x{form}")
    inspector = Inspector()
    sent(inspector, (tmp_path / f"x{form}").read_bytes(), f"x{suffix}")
    here = Inspector(tmp_path / f"x{form}", title=f"x{suffix}")
    assert inspector.shown == here.shown


BAD = [
    ("a header of another version", b'{"streamlab": 9}\n', "bad.stream.jsonl:1: version 9"),
    ("no JSON after the header", b'{"streamlab": 1}\nnot json\n', "bad.stream.jsonl:2: not a line"),
]


@pytest.mark.parametrize(("why", "data", "said"), BAD, ids=[row[0] for row in BAD])
def test_a_bad_file_is_one_line_and_takes_no_place(why: str, data: bytes, said: str) -> None:
    inspector = Inspector(synth.story(), title="good")
    before = inspector.shown
    answer = sent(inspector, data, "bad.stream.jsonl")
    assert not answer["ok"] and answer["text"].startswith(said)
    assert "\n" not in answer["text"] and "streamlab-" not in answer["text"]
    assert inspector.shown == before
    assert not answer["undo"]


def test_any_bytes_that_are_dropped_give_an_answer_and_never_an_exception() -> None:
    inspector = Inspector(synth.story())
    hostile = [
        b"",
        b"\0" * 5000,
        b"\x1f\x8b\x08garbage",
        b"PK\x03\x04",
        b"\x28\xb5\x2f\xfdxx",
        b"[",
    ]
    for number, data in enumerate(hostile):
        answer = sent(inspector, data, f"{number}.bin")
        assert answer["id"] == f"id of {number}.bin"
        assert answer["text"]


def test_a_mistake_of_our_own_is_said_and_leaves_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    inspector = Inspector(synth.story(), title="good")

    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError("ours")

    monkeypatch.setattr("streamlab.widgets.inspector.streams_of", broken)
    answer = sent(inspector, b"x")
    assert answer["text"] == "this failed inside streamlab: KeyError: 'ours'"
    assert shown(inspector) == "good"


def test_the_name_of_a_file_is_a_label_and_never_a_path(tmp_path: Path) -> None:
    inspector = Inspector()
    sent(inspector, synth.story().data, "../../../etc/pass\u202ewd<b>.sse")
    assert shown(inspector) == "pass⟨U+202E⟩wd<b>.sse"


REFUSED = [
    ("too large", {"id": 1, "name": "x", "size": MAX_FILE + 1, "at": 0}, "too many"),
    ("no size", {"id": 1, "name": "x", "at": 0}, "without a size"),
    ("less than none", {"id": 1, "name": "x", "size": -1, "at": 0}, "without a size"),
    ("more than announced", {"id": 1, "name": "x", "size": 1, "at": 0}, "more bytes came"),
]


@pytest.mark.parametrize(("why", "told", "said"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_file_that_breaks_the_bounds_is_refused_once(
    why: str, told: dict[str, Any], said: str
) -> None:
    incoming = Incoming()
    with pytest.raises(UsageError, match=said):
        incoming.take(told, [b"four"])
    assert incoming.take({**told, "at": 4}, [b"more"]) is None
    assert incoming._folder is None


def test_a_newer_file_takes_the_place_of_one_that_is_still_coming() -> None:
    incoming = Incoming()
    assert incoming.take({"id": "a", "name": "a", "size": 8, "at": 0}, [b"1234"]) is None
    assert incoming.take({"id": "b", "name": "b.har", "size": 4, "at": 0}, [b"12"]) is None
    assert incoming.take({"id": "a", "name": "a", "size": 8, "at": 4}, [b"5678"]) is None
    arrived = incoming.take({"id": "b", "name": "b.har", "size": 4, "at": 2}, [b"34"])
    assert arrived is not None
    path, label = arrived
    assert (path.read_bytes(), label, path.suffix) == (b"1234", "b.har", ".har")
    assert path.parent.stat().st_mode & 0o077 == 0
    incoming.clear()
    assert not path.parent.exists()


MESSAGES: list[Any] = [
    None, [], "file", 7, {"file": None}, {"file": []}, {"file": {}},
    {"file": {"at": 0, "size": "x"}}, {"file": {"at": 0, "size": 3, "name": None, "id": None}},
    {"request": {"action": "__init__"}},
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_no_message_of_a_page_breaks_the_view(message: Any) -> None:
    inspector = Inspector(synth.story(), title="good")
    inspector._handle_custom_msg(message, [])
    inspector._handle_custom_msg(message, None)
    assert shown(inspector) == "good"
    inspector.set_state({"frame": 10**9})
    assert inspector.frame == inspector.inspection.rows  # type: ignore[union-attr]


def test_what_is_none_of_the_buttons_is_refused() -> None:
    inspector = Inspector(synth.story())
    for action in ("load", "__init__", "eval", ""):
        answer = pressed(inspector, action)
        assert not answer["ok"] and "is none of undo, alone" in answer["text"]


def test_of_several_streams_one_is_chosen_and_undo_goes_back() -> None:
    inspector = Inspector([synth.story(), ROOT / "fixtures/claude/overloaded.sse"])
    assert inspector.choices["first"]["chosen"] == 0
    assert len(inspector.choices["first"]["streams"]) == 2
    assert pressed(inspector, "choose", stream=2)["text"] == "stream 2 of 2"
    assert (shown(inspector), inspector.choices["first"]["chosen"]) == ("overloaded.sse", 1)
    assert "there are streams 1 to 2" in pressed(inspector, "choose", stream=3)["text"]
    assert not pressed(inspector, "choose", stream="x")["ok"]
    inspector.undo()
    assert inspector.choices["first"]["chosen"] == 0


def test_a_second_recording_is_compared_and_taken_away() -> None:
    inspector = Inspector(synth.story(), title="one")
    assert inspector.comparison == {}
    sent(inspector, synth.change_label().data, "two.sse", beside=True)
    assert json.loads(inspector.compared)["name"] == "two.sse"
    assert inspector.comparison["first"] is not None
    assert pressed(inspector, "alone")["ok"]
    assert (inspector.compared, inspector.comparison) == ("", {})
    inspector.undo()
    assert inspector.compared


def test_to_compare_there_must_be_something_open() -> None:
    with pytest.raises(UsageError, match="give the other recording first"):
        Inspector(None, synth.story())
    inspector = Inspector()
    assert not sent(inspector, synth.story().data, beside=True)["ok"]
    with pytest.raises(UsageError, match="nothing to save"):
        inspector.save("never.html")
    assert not Path("never.html").exists()


WRONG: list[tuple[Any, type[Exception], str]] = [
    (7, UsageError, "a file, a recording or a list of them, not int"),
    ([], UsageError, "a file, a recording or a list of them"),
    ("no/such/file.sse", WireError, "file.sse"),
]


@pytest.mark.parametrize(("source", "kind", "said"), WRONG, ids=[repr(row[0]) for row in WRONG])
def test_what_cannot_be_opened_is_an_error_in_python(
    source: Any, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        Inspector(source)


def test_undo_has_a_bound() -> None:
    inspector = Inspector(synth.story())
    for n in range(MAX_PAST + 5):
        inspector.load(synth.six_events(), f"{n}")
    for _ in range(MAX_PAST):
        inspector.undo()
    with pytest.raises(UsageError):
        inspector.undo()
    assert shown(inspector) == "4"


def test_it_opens_at_the_first_problem_and_goes_where_it_is_asked() -> None:
    inspector = Inspector(ROOT / "fixtures/claude/overloaded.sse")
    assert inspector.frame == 13
    inspector.goto(2)
    assert inspector.frame == 2
    inspector.goto(14)  # the end
    for wrong in (0, 15):
        with pytest.raises(UsageError, match="there are frames 1 to 13, and the end"):
            inspector.goto(wrong)


@pytest.mark.parametrize(
    ("recording", "row", "rules"),
    [
        (corpora.held_call(), 8, ["buffered", "stall"]),  # text flows, and then a whole call
        (faults.burst(synth.greeting()), 0, ["buffered"]),  # all of it at the end
    ],
    ids=["call", "all"],
)
def test_buffered_stands_where_the_wait_was_over(
    recording: Recording, row: int, rules: list[str]
) -> None:
    found = inspection(recording)
    assert found.diagnosis["verdict"] == "buffered"
    assert (found.first, found.problems["row"]) == (row, [row] * len(rules))
    assert found.problems["rule"] == rules
    assert all(len(column) == len(rules) for column in found.problems.values())


def test_an_inspector_shows_a_stream_as_it_is_laid_out() -> None:
    for recording in (synth.story(), faults.stall(synth.story(), 9, 3), corpora.held_call()):
        assert Inspector(recording).inspection == inspection(recording)


def test_a_plain_file_is_read_once_and_piece_by_piece(tmp_path: Path) -> None:
    write(many(2_000), tmp_path / "long.sse")
    (stream,) = streams_of(tmp_path / "long.sse")
    (tmp_path / "long.sse").unlink()
    assert stream.inspection.facts["frames"] > 2_000
    assert not stream._recording.chunks  # nothing but the columns is kept


def test_a_move_has_no_echo_that_could_undo_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    inspector = Inspector(synth.story())
    sent: list[Any] = []
    monkeypatch.setattr(inspector, "_send", lambda message, **_: sent.append(message))
    for frame in (5, 6):
        inspector._handle_custom_msg({"frame": frame}, [])
    assert (inspector.frame, sent) == (6, [])


def test_save_here_takes_no_files_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inspector = Inspector(synth.story(), title="A <b> name")
    for _ in range(2):
        assert pressed(inspector, "save")["ok"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-b-name-2.html", "a-b-name.html"]


# --- Standing still, and the page -----------------------------------------------------------------


def evil() -> Recording:
    parts = [synth.Text((EVIL,)), synth.ToolCall(EVIL[:60], {"a": EVIL})]
    data = synth.answer(parts).data.replace(b"claude-synthetic", json.dumps(EVIL).encode()[1:-1])
    return Recording.from_bytes(data + f"event: {EVIL}\ndata: {EVIL}\n\n".encode(), model=EVIL)


def test_the_text_is_the_same_every_time_and_says_what_matters() -> None:
    path = ROOT / "fixtures/claude/overloaded.sse"
    first = repr(Inspector(path))
    assert first == repr(Inspector(path))
    lines = first.splitlines()
    assert lines[0] == "Inspector: overloaded.sse: claude, 13 frames, 1,623 bytes; INVALID"
    assert "  frame 13: error provider-error: overloaded_error: Overloaded" in lines
    assert "0x" not in first
    assert repr(Inspector()) == "Inspector: nothing is open"


def test_the_text_holds_nothing_that_a_terminal_acts_on() -> None:
    text = repr(Inspector(evil(), synth.story(), title="\x1b[31mred\u202e\n\x07"))
    assert text.replace("\n", "").isprintable()
    assert len(text.splitlines()[0]) < 160


def test_a_notebook_gets_the_view_the_text_and_the_tables() -> None:
    inspector = Inspector(synth.story(), synth.change_label())
    data, _ = inspector._repr_mimebundle_()
    kinds = ["application/vnd.jupyter.widget-view+json", "text/html", "text/plain"]
    assert sorted(data) == kinds
    assert data["text/plain"] == repr(inspector)
    assert "they first differ" in data["text/html"]
    again, _ = Inspector(synth.story(), synth.change_label())._repr_mimebundle_()
    assert again["text/html"] == data["text/html"]


def test_nothing_of_a_recording_can_become_markup() -> None:
    for hard in (EVIL, *HARD_TEXT):
        found = inspection(evil(), hard)
        written = inspector_page.page(found, found, compare(found, found))
        written.encode("utf-8")
        assert "<img" not in written and "<script>window" not in written
        assert written.count("</script>") == 5
        assert "<img" not in inspector_page.html(found)


def test_a_page_lets_only_its_own_module_and_style_run(tmp_path: Path) -> None:
    Inspector(evil()).save(tmp_path / "x.html")
    written = (tmp_path / "x.html").read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', written)
    assert policy and policy[1].startswith("default-src 'none'; ") and "unsafe" not in policy[1]

    def hashed(tag: str) -> str:
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", written, re.S)
        return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    assert f"style-src 'sha256-{hashed('style')}'; " in policy[1]
    assert "script-src 'sha256-" + hashed('script type="module"') + "'; " in policy[1]
    without_data = re.sub(r'(<script type="application/json").*?</script>', "", written, flags=re.S)
    assert set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[\w/.]*", without_data)) == {
        "http://www.w3.org/2000/svg"  # the name of a vocabulary, never fetched
    }
    assert not re.search(r"\b(src=|href|@import|import\(|fetch\(|url\()", without_data)


def test_each_file_of_the_view_needs_only_those_before_it() -> None:
    seen: list[str] = []
    for name in inspector_page.FILES:
        needed = re.findall(r'^import .* from "\./(.*)";', (HERE / name).read_text("utf-8"), re.M)
        assert set(needed) <= set(seen), name
        seen.append(name)


# --- The view's own lookup, asked without a browser -----------------------------------------------

NODE = """
import { readFileSync } from "node:fs";
import * as rows from "./inspector_rows.mjs";
const { data, filters } = JSON.parse(readFileSync(0, "utf8"));
const index = rows.indexRows(data);
const every = Array.from({ length: index.n }, (_, row) => row);
const spans = every.map((row) => rows.rangeOf(index, row));
const bytes = spans.map(({ start, end }) => rows.bytesOf(index, start, end));
console.log(JSON.stringify({
  found: filters.map((filter) => [...rows.filterRows(index, { ...rows.NO_FILTER, ...filter })]),
  bytes: spans.map(({ from, end }) => [...rows.bytesOf(index, from, end)]),
  lines: bytes.map((each) => rows.linesOf(each).map((line) => rows.textOf(line.bytes)).join("")),
  fields: bytes.map(rows.fieldsOf),
  events: every.map((row) => rows.eventsOf(index, row).map(({ type }) => type)),
  near: data.near.map((value) => rows.nearest(index.axes.bytes, value)),
}));
"""


def looked_up(folder: Path, found: Inspection, filters: list[dict[str, Any]]) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here; the browser tests run the same module")
    for name in ("steps", "inspector_rows"):
        text = (HERE / f"{name}.js").read_text("utf-8").replace('./steps.js"', './steps.mjs"')
        (folder / f"{name}.mjs").write_text(text, "utf-8")
    (folder / "ask.mjs").write_text(NODE, "utf-8")
    given = {**found.to_json(), "near": [0, 1, 100, 500, 10**9]}
    done = subprocess.run(
        [node, "ask.mjs"],
        cwd=folder,
        input=to_text({"data": given, "filters": filters}).encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return dict(json.loads(done.stdout))


LOOKED_UP = [
    *("claude/stall.stream.jsonl", "claude/greeting_crlf.sse", "gemini/story.sse"),
    *("gemini/change_label_array.txt", "openai-responses/change_label.jsonl"),
]


def test_the_views_lookup_agrees_with_python_on_every_row(tmp_path: Path) -> None:
    for recording in (*(read(ROOT / "fixtures" / path) for path in LOOKED_UP), evil()):
        found = inspection(recording)
        asked = looked_up(tmp_path, found, [])
        ends = found.frames["end"]
        raw = found.raw.encode("latin-1")
        frames = frames_of(recording.data)
        spans = list(zip([0, *ends], ends, strict=False))
        assert [bytes(each) for each in asked["bytes"]] == [raw[a:b] for a, b in spans]
        for frame, fields, line in zip(frames, asked["fields"], asked["lines"], strict=False):
            assert dict(fields)["data"] == frame.text
            assert dict(fields).get("event", "") == frame.event
            assert line == raw[frame.start : frame.end].decode("utf-8", "replace")
        stated: list[list[str]] = [[] for _ in ends]
        for row, type_ in zip(found.events["row"], found.events["type"], strict=True):
            stated[row].append(found.types[type_])
        assert asked["events"] == stated
        near = [
            min(range(len(ends)), key=lambda n: (abs(ends[n] - v), n)) for v in (0, 1, 100, 500)
        ]
        assert [ends[n] for n in asked["near"][:4]] == [ends[n] for n in near]
        assert asked["near"][4] == len(ends) - 1


def test_a_filter_leaves_what_python_would_leave(tmp_path: Path) -> None:
    found = inspection(read(ROOT / "fixtures/claude/stall.stream.jsonl"))
    kinds = [KINDS[kind] for kind in found.frames["kind"]]
    times = found.frames["t"]
    gaps = [b - a for a, b in zip([0.0, *times], times, strict=False)]
    filters: list[dict[str, Any]] = [
        {}, {"kind": "tool"}, {"content": True}, {"problems": True}, {"gap": 1},
        {"text": "CONTENT_BLOCK_START"}, {"text": "nowhere at all"},
        {"kind": "tool", "text": "item"},
    ]  # fmt: skip
    asked = looked_up(tmp_path, found, filters)["found"]
    rows = range(found.rows)
    assert asked[0] == list(rows)
    assert asked[1] == [row for row in rows if kinds[row] == "tool"]
    assert asked[2] == [row for row in rows if kinds[row] in laying_out.CONTENT]
    assert asked[3] == sorted(set(found.problems["row"]))
    assert asked[4] == [row for row in rows if gaps[row] > 1] and asked[4]
    names = [found.names[name] for name in found.frames["name"]]
    assert asked[5] == [row for row in rows if names[row] == "content_block_start"]
    assert asked[6] == []
    assert asked[7] and set(asked[7]) < set(asked[1])


def test_a_text_is_found_whether_the_wire_escapes_it_or_not(tmp_path: Path) -> None:
    for ascii in (True, False):
        recording = synth.answer(
            [synth.Text(("one ", "Größe ", "two"))], style=synth.Style(ascii=ascii)
        )
        (rows,) = looked_up(tmp_path, inspection(recording), [{"text": "größe"}])["found"]
        (row,) = rows
        assert "two" not in inspection(recording).raw.split("\n\n")[row]
