"""The bus never waits, and a slow reader costs no memory; the screen is a fold of its events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.consumer.attempt import State
from streamlab.consumer.bus import Bus
from streamlab.consumer.screen import (
    CaughtUp,
    Part,
    Screen,
    by_stream,
    fold_screen,
    show,
)
from streamlab.consumer.toolloop import run_turn
from streamlab.consumer.turn_events import (
    BusEvent,
    RoundEnded,
    RoundStarted,
    SegmentGrew,
    SegmentOpened,
    SegmentStopped,
    Status,
    ToolProposed,
    ToolResolved,
    ToolRunning,
    TurnEnded,
    TurnState,
)
from streamlab.streams import faults, rounds
from streamlab.streams.parts import ServerToolCall, ServerToolResult, Text
from tests.tools_for_tests import ASKED, Asker, Desk, play, stream, watched

T, A = "turn-1", "turn-1/1"
BEGIN = RoundStarted(T, A, 1)
TEXT = SegmentOpened(T, A, "s0", "text")
CARD = SegmentOpened(T, A, "s1", "tool_call", "read_item")
END = TurnEnded(T, A, TurnState.ANSWERED, "The answer is complete")


def grew(text: str, segment: str = "s0") -> SegmentGrew:
    return SegmentGrew(T, A, segment, text)


def taken(bus: Bus) -> list[BusEvent | CaughtUp]:
    """Everything that waits; nothing more may come after it."""

    async def main() -> list[BusEvent | CaughtUp]:
        bus.close()
        return [event async for event in bus]

    return asyncio.run(main())


def filled(events: Iterable[BusEvent], limit: int = 1000) -> Bus:
    bus = Bus(limit)
    for event in events:
        bus.publish(event)
    return bus


# --- The bus --------------------------------------------------------------------------------------


def test_events_come_out_as_they_went_in() -> None:
    events = [BEGIN, TEXT, grew("Hi"), SegmentStopped(T, A, "s0"), END]
    assert taken(filled(events)) == events


def test_text_that_waits_becomes_one_event_a_part() -> None:
    events = [BEGIN, TEXT, CARD, grew("a"), grew("{", "s1"), grew("b"), grew("}", "s1"), grew("c")]
    assert taken(filled(events)) == [BEGIN, TEXT, CARD, grew("abc"), grew("{}", "s1")]


def test_text_that_comes_after_it_was_read_is_an_event_of_its_own() -> None:
    async def main() -> list[BusEvent | CaughtUp]:
        bus = filled([grew("a"), grew("b")])
        first = await anext(bus)
        bus.publish(grew("c"))
        return [first, await anext(bus)]

    assert asyncio.run(main()) == [grew("ab"), grew("c")]


@pytest.mark.parametrize("text", ["\r\n", "\r", "\ud83d", "\0"])
def test_waiting_changes_no_character(text: str) -> None:
    assert taken(filled([grew(text), grew("\n")])) == [grew(text + "\n")]


def test_a_million_pieces_of_text_for_a_reader_that_sleeps_are_one_event() -> None:
    bus = filled([BEGIN, TEXT])
    for _ in range(1_000_000):
        bus.publish(grew("x"))
    assert len(bus) == 3
    last = taken(bus)[-1]
    assert isinstance(last, SegmentGrew) and last.text == "x" * 1_000_000


def test_a_reader_that_is_far_behind_is_given_the_screen_and_no_more_than_the_limit_waits() -> None:
    events: list[BusEvent] = [BEGIN]
    for n in range(500):
        events += [SegmentOpened(T, A, f"s{n}", "text"), grew("x", f"s{n}")]
        events.append(SegmentStopped(T, A, f"s{n}"))
    bus = Bus(limit=20)
    for event in events:
        bus.publish(event)
        assert len(bus) <= 21
    first, *rest = taken(bus)
    assert isinstance(first, CaughtUp) and len(rest) <= 20
    assert fold_screen([first, *rest]) == fold_screen(events)


def test_a_bus_for_the_mistaken_screen_catches_up_with_that_one() -> None:
    _, events = play(Asker(*rounds.one_after_another()))
    bus = Bus(limit=5, bubble_of=by_stream)
    for event in events:
        bus.publish(event)
    screen = fold_screen(taken(bus), bubble_of=by_stream)
    assert screen == fold_screen(events, bubble_of=by_stream) and len(screen.bubbles) == 5


def test_a_reader_waits_for_news_and_its_loop_ends_when_the_bus_is_closed() -> None:
    async def main() -> tuple[bool, list[BusEvent | CaughtUp]]:
        bus = Bus()

        async def read() -> list[BusEvent | CaughtUp]:
            return [event async for event in bus]

        reader = asyncio.create_task(read())
        for _ in range(5):
            await asyncio.sleep(0)
        waits = not reader.done()
        bus.publish(BEGIN)
        await asyncio.sleep(0)
        bus.publish(END)
        bus.close()
        bus.publish(TEXT)  # too late
        return waits, await reader

    assert asyncio.run(main()) == (True, [BEGIN, END])


def test_a_slow_reader_does_not_slow_the_turn_and_sees_the_same_in_the_end() -> None:
    async def main() -> tuple[int, Screen, list[BusEvent]]:
        events: list[BusEvent] = []
        bus = Bus()

        def publish(event: BusEvent) -> None:
            events.append(event)
            bus.publish(event)

        turn = run_turn(
            ASKED, Asker(*rounds.two_at_once()), Desk().tools, rounds.READING, publish=publish
        )
        task = asyncio.create_task(turn)
        await task  # not one event was read so far
        return len(bus), await watched(bus, task), events

    waiting, screen, events = asyncio.run(main())
    assert waiting < len(events)
    assert screen == fold_screen(events)


@given(
    st.integers(1, 12),
    st.lists(st.integers(0, 4), min_size=120, max_size=120),
    st.sampled_from([rounds.two_at_once(), rounds.one_after_another(3)]),
)
def test_at_whatever_pace_it_is_read_the_screen_ends_the_same(
    limit: int, pace: list[int], turn: tuple[rounds.Recording, ...]
) -> None:
    _, events = play(Asker(*turn))

    async def main() -> Screen:
        bus, screen = Bus(limit), Screen()
        for event, reads in zip(events, pace, strict=False):
            bus.publish(event)
            for _ in range(min(reads, len(bus))):
                screen = show(screen, await anext(bus))
        bus.close()
        return fold_screen([event async for event in bus], screen)

    assert asyncio.run(main()) == fold_screen(events)


def test_every_event_can_be_written_down_and_read_back() -> None:
    _, events = play(Asker(*rounds.lookup_then_proposal()))
    text = msgspec.json.encode(events)
    assert msgspec.json.decode(text, type=list[BusEvent]) == events
    assert msgspec.json.decode(text)[0] == {"type": "RoundStarted", "number": 1} | {
        "turn": T,
        "attempt": A,
    }


# --- The screen -----------------------------------------------------------------------------------

WHOLE_CARD = [BEGIN, CARD, grew("{}", "s1"), SegmentStopped(T, A, "s1")]
CHIPS: dict[str, tuple[list[BusEvent], Status]] = {
    "streaming": ([BEGIN, CARD, grew("{", "s1")], Status.STREAMING),
    "ready": (WHOLE_CARD, Status.READY),
    "an input that does not parse": (
        [BEGIN, CARD, SegmentStopped(T, A, "s1", "no JSON")],
        Status.FAILED,
    ),
    "running": ([*WHOLE_CARD, ToolRunning(T, A, "s1")], Status.RUNNING),
    "done": (
        [*WHOLE_CARD, ToolRunning(T, A, "s1"), ToolResolved(T, A, "s1", Status.DONE, "ok")],
        Status.DONE,
    ),
    "never run": ([*WHOLE_CARD, ToolResolved(T, A, "s1", Status.NOT_RUN, "")], Status.NOT_RUN),
    "proposed": ([*WHOLE_CARD, ToolProposed(T, A, "s1")], Status.PROPOSED),
    "proposed, then done": (
        [*WHOLE_CARD, ToolProposed(T, A, "s1"), ToolResolved(T, A, "s1", Status.DONE, "ok")],
        Status.DONE,
    ),
    "a round that does not count": (
        [*WHOLE_CARD, RoundEnded(T, A, State.INVALID, "", False)],
        Status.DISCARDED,
    ),
    "a round that counts": ([*WHOLE_CARD, RoundEnded(T, A, State.HELD, "", True)], Status.READY),
}


@pytest.mark.parametrize(("events", "chip"), CHIPS.values(), ids=CHIPS)
def test_the_chip_of_a_card(events: list[BusEvent], chip: Status) -> None:
    (bubble,) = fold_screen(events).bubbles
    assert [part.status for part in bubble.parts] == [chip]


DONE = CHIPS["done"][0]
IDLE: dict[str, tuple[list[BusEvent], BusEvent]] = {
    "running before its input is whole": ([BEGIN, CARD], ToolRunning(T, A, "s1")),
    "running after it is done": (DONE, ToolRunning(T, A, "s1")),
    "resolved twice": (DONE, ToolResolved(T, A, "s1", Status.FAILED, "late")),
    "text after the end of its part": (WHOLE_CARD, grew("more", "s1")),
    "a part that never began": ([BEGIN], grew("x")),
    "a turn that never began": ([], TEXT),
    "another attempt's part": (WHOLE_CARD, ToolRunning(T, "turn-1/2", "s1")),
}


@pytest.mark.parametrize(("events", "late"), IDLE.values(), ids=IDLE)
def test_what_makes_no_sense_changes_nothing_and_the_same_object_comes_back(
    events: list[BusEvent], late: BusEvent
) -> None:
    screen = fold_screen(events)
    assert show(screen, late) is screen


def test_segments_of_two_rounds_may_have_the_same_id() -> None:
    second = "turn-1/2"
    more = [
        RoundStarted(T, second, 2),
        SegmentOpened(T, second, "s0", "text"),
        SegmentGrew(T, second, "s0", "two"),
    ]
    (bubble,) = fold_screen([BEGIN, TEXT, grew("one"), *more]).bubbles
    assert [part.text for part in bubble.parts] == ["one", "two"] and bubble.rounds == 2


def test_what_a_failed_try_left_is_marked_and_gone_when_the_next_begins() -> None:
    failed = [BEGIN, TEXT, grew("Ha"), RoundEnded(T, A, State.INCOMPLETE, "cut", False)]
    assert str(fold_screen(failed)) == "┌ turn-1\n│ Ha (discarded)\n└ under way …"
    (bubble,) = fold_screen([*failed, RoundStarted(T, "turn-1/2", 2)]).bubbles
    assert bubble.parts == () and bubble.state is None


def test_two_turns_are_two_bubbles() -> None:
    screen = fold_screen([BEGIN, TEXT, END, RoundStarted("turn-2", "turn-2/1", 1)])
    assert [(bubble.id, bubble.state) for bubble in screen.bubbles] == [
        ("turn-1", TurnState.ANSWERED),
        ("turn-2", None),
    ]


def test_a_turn_that_ended_before_it_began_is_seen_all_the_same() -> None:
    (bubble,) = fold_screen([TurnEnded(T, "", TurnState.CANCELLED, "Cancelled")]).bubbles
    assert bubble.said == "Cancelled"


def test_found_by_the_stream_every_round_is_a_bubble_and_only_the_last_one_ends() -> None:
    _, events = play(Asker(*rounds.one_after_another()))
    lines = str(fold_screen(events, bubble_of=by_stream)).splitlines()
    assert [line for line in lines if line.startswith("└")] == [
        *["└ under way …"] * 4,
        "└ The answer is complete",
    ]


def test_a_screen_prints_strangers_text_in_one_line_and_nothing_in_it_moves_a_cursor() -> None:
    _, events = play(Asker(stream(1, Text("one\ntwo\x1b[2J\r\u202e<b>"))))
    assert str(fold_screen(events)).splitlines()[1] == r"│ one\ntwo\x1b[2J\r\u202e<b>"


def test_names_and_last_words_of_a_bubble_move_no_cursor_either() -> None:
    turn = "t\x1b[2J\n"
    events: list[BusEvent] = [
        RoundStarted(turn, "a", 1),
        SegmentOpened(turn, "a", "s", "tool_call", "\u202eevil\x1b[31m"),
        TurnEnded(turn, "a", TurnState.ANSWERED, "said\x1b[2J"),
    ]
    assert str(fold_screen(events)).splitlines() == [
        r"┌ t\x1b[2J\n",
        r"│ \u202eevil\x1b[31m  [streaming]",
        r"└ said\x1b[2J",
    ]


def test_a_tool_that_the_provider_runs_has_no_chip_of_ours() -> None:
    search = ServerToolCall("web_search", {"query": "W-7"})
    found = ServerToolResult("web_search_tool_result", [])
    ended, events = play(Asker(stream(1, search, found, Text("Found."))))
    assert ended.state is TurnState.ANSWERED and ended.runs == ()
    lines = str(fold_screen(events)).splitlines()
    assert lines[1] == '│ web_search {"query": "W-7"}'


def test_two_halves_of_a_character_in_two_pieces_are_one() -> None:
    (bubble,) = fold_screen([BEGIN, TEXT, grew("\ud83d"), grew("\ude00")]).bubbles
    assert bubble.parts[0].text == "\N{GRINNING FACE}"


def test_parts_are_equal_by_what_they_show() -> None:
    whole, pieces = [BEGIN, TEXT, grew("ab")], [BEGIN, TEXT, grew("a"), grew("b")]
    assert fold_screen(whole) == fold_screen(pieces)
    assert hash(fold_screen(whole)) == hash(fold_screen(pieces))
    assert fold_screen(whole) != fold_screen([BEGIN, TEXT, grew("ac")])
    part = fold_screen(whole).bubbles[0].parts[0]
    assert part != "ab" and repr(part) == "Part(text, streaming, 'ab')"
    assert isinstance(part, Part)


def test_a_long_text_is_appended_piece_by_piece_without_copying_it() -> None:
    screen = fold_screen([BEGIN, TEXT])
    for _ in range(100_000):
        screen = show(screen, grew("0123456789"))
    assert len(screen.bubbles[0].parts[0].text) == 1_000_000


def test_what_is_shown_of_a_cut_round_is_discarded_and_of_a_whole_one_it_stays() -> None:
    first, second = rounds.lookup_then_answer()
    ended, events = play(Asker(first, faults.disconnect(second, 3)))
    assert ended.state is TurnState.INCOMPLETE
    (bubble,) = fold_screen(events).bubbles
    assert [(part.text, part.status.value) for part in bubble.parts] == [
        ("Let me look.", "ready"),
        ('{"item": "W-7"}', "done"),
        ("W-7 is a dra", "discarded"),
    ]
