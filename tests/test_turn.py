"""The turn is a value: reduce is pure, and gives the same object back where nothing changes."""

from __future__ import annotations

import operator
import tracemalloc
from typing import Any, get_args

import msgspec
import pytest

from streamlab.consumer import turn as turn_module
from streamlab.consumer.turn import EMPTY, MAX_PROBLEMS, MAX_USAGE, Turn, fold, reduce
from streamlab.wire import events as e
from streamlab.wire.events import (
    Ambiguous,
    Attached,
    BoundExceeded,
    Identified,
    InputDelta,
    KeepAlive,
    MessageCompleted,
    MessageStarted,
    Problem,
    ProviderError,
    Restated,
    SegmentStarted,
    SegmentStopped,
    SignatureDelta,
    StopReported,
    StreamEnded,
    TextDelta,
    ThinkingDelta,
    Tokens,
    Unknown,
    UsageReported,
)

TEXT = SegmentStarted("0", "text", 2, "text")
THINKING = SegmentStarted("1", "thinking", 3, "thinking")
CALL = SegmentStarted("2", "tool_call", 4, "tool_use", "pay", "call_2")
SERVER_CALL = SegmentStarted("3", "tool_call", 5, "server_tool_use", "search", "call_3", True)
STOPPED_FOR_TOOL = StopReported("tool_use", "tool_use", 9)


def event_types() -> list[type]:
    return [t for part in get_args(e.Event) for t in (get_args(part) or (part,))]


# --- What each event changes ------------------------------------------------------------------


def test_content_goes_to_its_segment_by_id_and_in_order() -> None:
    turn = fold([TEXT, THINKING, CALL])
    turn = fold(
        [
            TextDelta("0", "a"),
            InputDelta("2", '{"x"'),
            ThinkingDelta("1", "t"),
            TextDelta("0", "b"),
            InputDelta("2", ": 1}"),
            SignatureDelta("1", "s1"),
            SignatureDelta("1", "s2"),
        ],
        turn,
    )
    assert [segment.text for segment in turn.segments] == ["ab", "t", '{"x": 1}']
    assert turn.segments[1].signature == "s1s2"
    assert turn.text == "ab"


def test_segments_keep_the_order_in_which_they_started_however_they_stop() -> None:
    stops = [SegmentStopped(n, 9) for n in ("2", "0", "1")]
    turn = fold([TEXT, THINKING, CALL, *stops])
    assert [segment.id for segment in turn.segments] == ["0", "1", "2"]
    assert turn.open == ()


def test_equal_text_is_never_taken_for_a_repetition() -> None:
    assert fold([TEXT, *[TextDelta("0", "ha")] * 3]).text == "hahaha"


def test_an_input_is_parsed_at_its_stop_and_only_there() -> None:
    open_call = fold([CALL, InputDelta("2", '{"a": 1}')])
    assert open_call.segments[0].input is None
    closed = reduce(open_call, SegmentStopped("2", 9))
    assert closed.segments[0].input == {"a": 1}
    assert closed.segments[0].status == "ready"


@pytest.mark.parametrize("text", ["", " ", "\n\t"], ids=repr)
def test_an_empty_input_is_an_empty_object(text: str) -> None:
    turn = fold([CALL, InputDelta("2", text), SegmentStopped("2", 9)])
    assert turn.segments[0].input == {}


def test_what_was_attached_is_kept() -> None:
    turn = fold(
        [
            TEXT,
            Attached("0", "citation", 1),
            Attached("0", "tokens", 3),
            Attached("0", "citation", 2),
            Attached("0", "tokens", 4),
        ]
    )
    assert turn.segments[0].attached == {"citations": [1, 2], "tokens": 4}


def test_only_the_clients_calls_are_calls() -> None:
    turn = fold([TEXT, CALL, SERVER_CALL])
    assert [call.id for call in turn.calls] == ["2"]


@pytest.mark.parametrize("label", ["end_turn", "stop_sequence", "tool_use"])
def test_a_client_side_call_makes_the_stop_reason_tool_use(label: str) -> None:
    stopped = StopReported(label, label, 9)
    turn = fold([CALL, SegmentStopped("2", 5), stopped, MessageCompleted(10)])
    assert (turn.facts.stop_reason, turn.facts.raw_stop_reason) == ("tool_use", label)
    warned = [p.rule for p in turn.facts.problems]
    assert warned == ([] if label == "tool_use" else ["stop-reason-label"])
    assert turn.complete


@pytest.mark.parametrize(
    "label", ["max_tokens", "context_window", "refusal", "pause_turn", "other"]
)
def test_a_call_overrules_no_other_label(label: str) -> None:
    turn = fold([CALL, StopReported(label, label, 9), MessageCompleted(10)])
    assert turn.facts.stop_reason == label


def test_the_label_tool_use_without_a_clients_call_is_a_problem() -> None:
    for begun in ([TEXT], [SERVER_CALL]):
        turn = fold([*begun, STOPPED_FOR_TOOL, MessageCompleted(10)])
        assert [p.rule for p in turn.facts.problems] == ["tool-use-without-call"]
        assert turn.facts.stop_reason == "tool_use"


def test_usage_is_replaced_field_by_field() -> None:
    given = ({"input": 9, "output": 1}, {"output": 5, "input": None}, {"cache": 0})
    turn = fold(map(UsageReported, given))
    assert turn.facts.usage == {"input": 9, "output": 5, "cache": 0}


def test_usage_without_end_is_not_all_kept_and_what_is_known_is_still_replaced() -> None:
    turn = fold([UsageReported({"output": 1}), UsageReported({str(n): n for n in range(1000)})])
    assert len(turn.facts.usage) == MAX_USAGE
    assert reduce(turn, UsageReported({"new": 1})) is turn
    assert reduce(turn, UsageReported({"output": 2})).facts.usage["output"] == 2


BREAKS = Problem("rule", "error", "broken", 3)
ERROR = ProviderError("overloaded_error", "busy", 4)


@pytest.mark.parametrize("broken", [BREAKS, ERROR], ids=["problem", "error"])
@pytest.mark.parametrize("late", [False, True], ids=["before the marker", "after it"])
def test_a_turn_is_complete_only_if_nothing_broke_it(broken: Any, late: bool) -> None:
    whole = [StopReported("end_turn", "end_turn", 8), MessageCompleted(9)]
    assert fold(whole).complete
    assert not fold([*whole, broken] if late else [broken, *whole]).complete


def test_the_first_error_counts_and_all_are_kept() -> None:
    turn = fold([ERROR, ProviderError("api_error", "again", 5)])
    assert turn.facts.error == "overloaded_error: busy"
    assert [p.at for p in turn.facts.problems] == [4, 5]


def test_a_stream_of_faults_keeps_the_first_hundred_and_counts_the_rest() -> None:
    turn = fold([*[Problem("r", "note", "m", n) for n in range(MAX_PROBLEMS + 7)], BREAKS])
    assert len(turn.facts.problems) == MAX_PROBLEMS
    assert turn.facts.more_problems == 8
    assert turn.facts.broken


def test_find_prefers_the_open_segment_and_then_the_one_closed_last() -> None:
    first = fold([TEXT, TextDelta("0", "a"), SegmentStopped("0", 3), CALL])
    assert first.find("2") is first.open[0]
    again = fold([SegmentStopped("2", 5), TEXT, TextDelta("0", "b"), SegmentStopped("0", 6)], first)
    found = again.find("0")
    assert found is not None
    assert found.text == "b"
    assert again.find("9") is None


# --- Purity -----------------------------------------------------------------------------------

HERE = fold([MessageStarted("m", "x"), TEXT, TextDelta("0", "a"), StopReported("end_turn", "e", 5)])

#: Event type -> one that changes nothing in HERE. A problem always changes a turn: it is kept.
NOTHING_NEW: dict[type, e.Event] = {
    MessageStarted: MessageStarted("m", "x"),
    TextDelta: TextDelta("0", ""),
    ThinkingDelta: ThinkingDelta("7", "nowhere"),
    InputDelta: InputDelta("7", "nowhere"),
    SignatureDelta: SignatureDelta("7", "nowhere"),
    Attached: Attached("7", "nowhere", 1),
    Identified: Identified("7", "nowhere"),
    Restated: Restated("0", "a"),
    SegmentStopped: SegmentStopped("7", 9),
    StopReported: StopReported("end_turn", "e", 5),
    UsageReported: UsageReported({"input_tokens": None}),
    KeepAlive: KeepAlive(),
    StreamEnded: StreamEnded("eof", 9),
}

#: Event type -> one that does change HERE.
SOMETHING_NEW: dict[type, e.Event] = {
    MessageStarted: MessageStarted("m2", "x"),
    SegmentStarted: CALL,
    TextDelta: TextDelta("0", "b"),
    ThinkingDelta: ThinkingDelta("0", "b"),
    InputDelta: InputDelta("0", "b"),
    SignatureDelta: SignatureDelta("0", "b"),
    Attached: Attached("0", "citation", 1),
    Identified: Identified("0", "late"),
    Restated: Restated("0", "b"),
    SegmentStopped: SegmentStopped("0", 9),
    StopReported: StopReported("max_tokens", "m", 5),
    UsageReported: UsageReported({"input_tokens": 0}),
    MessageCompleted: MessageCompleted(9),
    ProviderError: ERROR,
    Unknown: Unknown("later", 9),
    Problem: Problem("r", "note", "m", 9),
    Ambiguous: Ambiguous("whose?", 9),
    BoundExceeded: BoundExceeded("bytes", 1, 2, 9),
}


def test_a_name_that_comes_late_takes_nothing_away() -> None:
    opened = [SegmentStarted("0", "tool_call", 1, call_id="c"), Identified("0", name="pay")]
    turn = fold([*opened, Identified("0"), Identified("0", call_id="d")])
    assert (turn.calls[0].start.name, turn.calls[0].start.call_id) == ("pay", "d")


def test_what_is_restated_takes_the_place_of_the_fragments() -> None:
    events = [CALL, InputDelta("2", '{"a": 1'), Restated("2", '{"a": 2}'), SegmentStopped("2", 3)]
    segment = fold(events).segments[0]
    assert (segment.text, segment.input) == ('{"a": 2}', {"a": 2})


def test_free_text_is_an_input_as_it_came() -> None:
    start = SegmentStarted("0", "tool_call", 1, name="patch", form="text")
    segment = fold([start, InputDelta("0", "{*** not"), SegmentStopped("0", 2)]).segments[0]
    assert (segment.status, segment.input) == ("ready", "{*** not")


def test_another_choice_is_kept_and_is_neither_text_nor_call_of_this_answer() -> None:
    other = [SegmentStarted("1.0", "text", 1, choice=1), TextDelta("1.0", "other")]
    call = [SegmentStarted("1.1", "tool_call", 1, name="pay", choice=1)]
    turn = fold([SegmentStarted("0", "text", 1), TextDelta("0", "first"), *other, *call])
    assert (turn.text, turn.calls, len(turn.segments)) == ("first", (), 3)


def test_token_counts_replace_each_other_field_by_field() -> None:
    counts = [Tokens(10, 1), Tokens(output=7), Tokens(thinking=3)]
    turn = fold([UsageReported({}, tokens) for tokens in counts])
    assert turn.facts.tokens == Tokens(10, 7, 3)


def test_every_event_type_is_probed() -> None:
    assert {*NOTHING_NEW, *SOMETHING_NEW} == set(event_types())
    assert set(turn_module.CHANGES) == set(SOMETHING_NEW)


@pytest.mark.parametrize("event", NOTHING_NEW.values(), ids=lambda event: type(event).__name__)
def test_the_same_object_comes_back_where_nothing_changes(event: e.Event) -> None:
    assert reduce(HERE, event) is HERE


def test_a_second_marker_changes_nothing() -> None:
    whole = reduce(HERE, MessageCompleted(9))
    assert reduce(whole, MessageCompleted(10)) is whole


@pytest.mark.parametrize("event", SOMETHING_NEW.values(), ids=lambda event: type(event).__name__)
def test_a_change_is_a_new_turn_and_the_old_one_stays_what_it_was(event: e.Event) -> None:
    before = (HERE.segments, HERE.facts, repr(HERE))
    changed = reduce(HERE, event)
    assert changed is not HERE
    assert changed != HERE
    assert (HERE.segments, HERE.facts, repr(HERE)) == before


def test_a_turn_can_be_forked_in_the_middle() -> None:
    left = fold([TextDelta("0", "L1"), TextDelta("0", "L2"), SegmentStopped("0", 9)], HERE)
    right = fold([TextDelta("0", "R"), Attached("0", "citation", 1)], HERE)
    assert (HERE.text, left.text, right.text) == ("a", "aL1L2", "aR")
    assert (left.segments[0].attached, right.segments[0].status) == ({}, "streaming")


def test_turns_are_equal_by_what_they_hold_not_by_how_it_came() -> None:
    a = fold([TEXT, TextDelta("0", "ab")])
    b = fold([TEXT, TextDelta("0", "a"), TextDelta("0", "b")])
    assert a == b
    assert hash(a) == hash(b)
    assert a != fold([TEXT, TextDelta("0", "a")])
    assert a != "ab"


def test_values_cannot_be_assigned_to() -> None:
    for value in (HERE, HERE.facts, HERE.segments[0]):
        with pytest.raises(AttributeError):
            value.status = "ready"
        assert value.__struct_config__.frozen


def test_a_turn_prints_its_state_and_no_more_than_the_beginning_of_its_text() -> None:
    turn = fold([TEXT, TextDelta("0", "x" * 100)])
    shown = f"{'x' * 60}…".join(("'", " (100 characters)'"))
    assert repr(turn) == f"Turn([Segment(0, text, streaming, {shown})], stop_reason=None)"


# --- Cost -------------------------------------------------------------------------------------


def _bytes_kept(deltas: int) -> int:
    """Memory that it takes to keep every turn of a text that grows."""
    events = [TextDelta("0", "abc")] * deltas
    tracemalloc.start()
    try:
        kept = [fold([TEXT])]
        for event in events:
            kept.append(reduce(kept[-1], event))
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_keeping_every_turn_of_a_growing_text_costs_memory_in_proportion() -> None:
    once, twice = _bytes_kept(2000), _bytes_kept(4000)
    assert twice < 3 * once  # four times as much, if each turn held its whole text
    assert twice < 4000 * 500  # a link, a segment, a turn: nothing that grows


def test_a_very_long_chain_can_be_shown_compared_and_let_go() -> None:
    many = [TEXT, *[TextDelta("0", "a")] * 100_000]
    turn = fold(many)
    assert len(turn.text) == 100_000
    assert turn == fold(many)
    assert msgspec.structs.asdict(turn)["started"] == 1
    del turn


def test_folding_nothing_is_the_empty_turn() -> None:
    assert fold([]) is EMPTY
    assert Turn() == EMPTY
    assert not EMPTY.complete


def test_two_turns_are_equal_or_they_are_not() -> None:
    """`!=` is the opposite of `==`, which msgspec would not make of it."""
    first, second = (fold([TEXT, TextDelta("0", "a"), SegmentStopped("0", 4)]) for _ in range(2))
    assert first is not second
    for one, same in ((first, second), (first.segments[0], second.segments[0])):
        assert operator.eq(one, same) and operator.ne(one, same) is False
    other = reduce(first, Problem("a-rule", "note", "something", 9))
    assert operator.ne(first, other) and operator.eq(first, other) is False


def test_no_part_of_an_answer_begins_after_its_end() -> None:
    done = fold([TEXT, TextDelta("0", "a"), MessageCompleted(9)])
    for late in (SegmentStarted("7", "tool_call", 10, name="x"), StopReported("end_turn", "x", 10)):
        assert reduce(done, late) is done


@pytest.mark.parametrize(
    ("events", "complete"),
    [
        ([TEXT, SegmentStopped("0", 3), STOPPED_FOR_TOOL, MessageCompleted(4)], True),
        ([TEXT, STOPPED_FOR_TOOL, MessageCompleted(4)], False),
        ([TEXT, SegmentStopped("0", 3), MessageCompleted(4)], False),
        ([TEXT, SegmentStopped("0", 3), STOPPED_FOR_TOOL], False),
    ],
    ids=["whole", "an open block", "no stop reason", "no marker"],
)
def test_a_marker_alone_completes_nothing(events: list[Any], complete: bool) -> None:
    assert fold(events).complete is complete
