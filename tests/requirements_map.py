"""Every requirement, in our words: the lesson that shows it, its cells, and the tests that hold it.

A cell is `notebook#cell-id` (without `.ipynb`); a test is `file::function`, with the `[id]` of one
case where that is meant. The cells of a row come with its lesson. `test_requirements.py` fails when
a row is missing or points at nothing.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One requirement."""

    lessons: str  #: their numbers
    says: str
    tests: tuple[str, ...]
    cells: tuple[str, ...] = ()


START, ANATOMY = "00-start-here", "01-anatomy"
STOPPED = "test_gates.py::test_the_first_gate_that_does_not_pass_decides_and_says_what_it_saw"

ROWS: dict[str, Row] = {
    # --- states, gates and boundaries
    "B1": Row(
        "05",
        "Where an attempt can be, and how it gets there, is one machine in one table.",
        (
            "test_attempt.py::test_every_pair_is_in_the_table_or_refused_with_the_state_unchanged",
            "test_attempt.py::test_no_sequence_of_inputs_goes_around_the_marker_the_gates_or_the_commit",
        ),
    ),
    "B2": Row(
        "05",
        "A gate asks first whether the protocol's own sequence was whole.",
        (
            "test_gates.py::test_what_broke_a_complete_answer_afterwards_fails_the_first_gate",
            "test_gates.py::test_an_answer_that_is_not_complete_is_not_asked_and_would_fail",
        ),
    ),
    "B3": Row(
        "05",
        "A gate lets only those stop reasons pass that the application lists.",
        (
            f"{STOPPED}[no answer asked to act]",
            f"{STOPPED}[unknown reason]",
        ),
    ),
    "B4": Row(
        "05",
        "A gate lets only known, permitted tools pass.",
        (
            f"{STOPPED}[tool not permitted]",
            "test_workitem.py::test_only_one_tool_is_permitted",
        ),
    ),
    "B5": Row(
        "05",
        "A gate parses the whole input, then asks its schema, then the rule.",
        (
            f"{STOPPED}[input cut]",
            f"{STOPPED}[wrong type]",
            f"{STOPPED}[rule]",
            "test_workitem.py::test_a_change_of_label",
        ),
    ),
    "B11": Row(
        "02",
        "A preview has bounds in bytes, in events and in seconds.",
        (
            "test_reader.py::test_a_bound_that_is_passed_ends_the_attempt_at_the_same_place_however_the_bytes_come",
            "test_reader.py::test_time_is_the_recordings_own_and_one_bound_is_enough",
        ),
    ),
    "B14": Row(
        "03",
        "An event of an unknown kind is kept, and grants nothing.",
        ("test_claude.py::test_an_unknown_event_or_delta_is_noted_and_grants_nothing",),
    ),
    "B15": Row(
        "03",
        "A broken grammar or a fragment of nobody's stops the attempt, unguessed.",
        ("test_claude.py::test_breach_of_the_grammar",),
    ),
    # --- explicit types, the normaliser, the reducer
    "C1": Row(
        "03",
        "Segments, turns and events are types of their own.",
        (
            "test_claude.py::test_each_event_states_one_fact",
            "test_turn.py::test_every_event_type_is_probed",
        ),
    ),
    "C2": Row(
        "03",
        "A segment's id is fixed by its start, before any content.",
        (
            "test_claude.py::test_blocks_are_kept_by_index_however_they_interleave_and_close",
            "test_turn.py::test_content_goes_to_its_segment_by_id_and_in_order",
        ),
    ),
    "C3": Row(
        "03",
        "One reader turns the Claude wire format into those events.",
        (
            "test_claude.py::test_block",
            "test_claude.py::test_every_stop_reason_has_a_word_in_the_one_vocabulary",
        ),
    ),
    "C7": Row(
        "03",
        "Assembling is a pure function; the same events give the same turn.",
        (
            "test_turn.py::test_a_change_is_a_new_turn_and_the_old_one_stays_what_it_was",
            "test_laws.py::test_replaying_the_events_gives_the_turn_and_changes_nothing_that_was_given",
        ),
    ),
    "C8": Row(
        "03",
        "A tool's input is parsed when its segment ends, and not before.",
        ("test_turn.py::test_an_input_is_parsed_at_its_stop_and_only_there",),
    ),
    "C9": Row(
        "03 07",
        "JSON on its way to a tool is never part of the visible text.",
        (
            "test_turn.py::test_content_goes_to_its_segment_by_id_and_in_order",
            "test_questions.py::test_text_in_pieces_loses_the_call_and_hides_the_cut",
        ),
    ),
    # --- the course
    "S1": Row(
        "01",
        "A whole answer is there or not; a stream is a preview first, and an answer later.",
        ("test_questions.py::test_a_stream_shows_something_before_it_is_an_answer",),
        (f"{ANATOMY}#growing",),
    ),
    "S2": Row(
        "01",
        "Six kinds of event make an answer, and their order is part of the meaning.",
        (
            "test_questions.py::test_the_smallest_answer_has_each_event_once_and_in_order",
            "test_claude.py::test_breach_of_the_grammar",
        ),
        (f"{ANATOMY}#six", f"{ANATOMY}#order"),
    ),
    "S3": Row(
        "01",
        "message_start gives an id and a model, and no promise of an answer.",
        ("test_questions.py::test_message_start_opens_the_message_and_nothing_more",),
        (f"{ANATOMY}#run-start",),
    ),
    "S4": Row(
        "01",
        "content_block_start opens a block and gives it the index that its fragments name.",
        (
            "test_questions.py::test_a_delta_goes_to_the_block_that_its_index_names",
            "test_claude.py::test_each_event_states_one_fact",
        ),
        (f"{ANATOMY}#jobs-code", f"{ANATOMY}#stepper-code"),
    ),
    "S5": Row(
        "01",
        "A text delta is appended to its block.",
        (
            "test_questions.py::test_a_stream_shows_something_before_it_is_an_answer",
            "test_claude.py::test_blocks_are_kept_by_index_however_they_interleave_and_close",
        ),
        (f"{ANATOMY}#growing",),
    ),
    "S8": Row(
        "01 03",
        "content_block_stop closes a block; only then its input is parsed, then validated.",
        (
            "test_claude.py::test_a_tool_calls_input_is_parsed_once_at_its_stop",
            "test_questions.py::"
            "test_a_stopped_block_may_be_parsed_and_only_a_whole_message_may_be_judged",
        ),
        (f"{ANATOMY}#run-block",),
    ),
    "S9": Row(
        "00 03",
        "Part of a JSON text can be broken, can lack fields, or can mean something else.",
        (
            "test_questions.py::test_half_a_json_text_can_lack_fields_or_mean_something_else",
            "test_claude.py::test_an_input_that_does_not_parse_is_kept_as_text_and_never_repaired",
        ),
        (f"{START}#run-schema", f"{START}#parsed-once"),
    ),
    "S10": Row(
        "01",
        "message_delta says why the model stopped, and what it took in all.",
        (
            "test_questions.py::test_the_last_token_count_is_the_total",
            "test_claude.py::test_usage_is_cumulative_and_a_null_overwrites_nothing",
        ),
        (f"{ANATOMY}#run-usage", f"{ANATOMY}#limit"),
    ),
    "S12": Row(
        "01",
        "message_stop, and nothing before it, ends the message.",
        (
            "test_claude.py::"
            "test_an_end_without_the_marker_is_not_complete_and_says_what_is_missing",
            "test_questions.py::test_the_cases_of_lesson_01_agree_with_streamlab",
        ),
        (f"{ANATOMY}#run-block", f"{ANATOMY}#exercise-stub"),
    ),
    "S13": Row(
        "00 04",
        "Where the network's stream ends, the message need not.",
        (
            "test_questions.py::test_the_sdk_returns_a_call_that_was_cut_inside_a_number",
            "test_faults.py::test_a_cut_at_any_byte_before_the_last_is_incomplete",
        ),
        (f"{START}#sdk", f"{START}#judge", f"{START}#run-endings"),
    ),
    "S32": Row(
        "01",
        "That a block stopped and that the message stopped are two different facts.",
        (
            "test_questions.py::"
            "test_a_stopped_block_may_be_parsed_and_only_a_whole_message_may_be_judged",
        ),
        (f"{ANATOMY}#run-block",),
    ),
    "S33": Row(
        "01",
        "One answer from end to end: a sentence, then a tool call.",
        (
            "test_questions.py::"
            "test_a_stopped_block_may_be_parsed_and_only_a_whole_message_may_be_judged",
            "test_questions.py::test_text_in_pieces_loses_the_call_and_hides_the_cut",
        ),
        (f"{ANATOMY}#stepper", f"{ANATOMY}#stepper-code"),
    ),
    # --- principles and traps
    "P1": Row(
        "01",
        "A stream is made of events; text is in some of them.",
        ("test_questions.py::test_text_in_pieces_loses_the_call_and_hides_the_cut",),
        (f"{ANATOMY}#run-text", f"{ANATOMY}#naive-cut"),
    ),
    "P3": Row(
        "01",
        "A message is more than its finished blocks.",
        (
            "test_questions.py::"
            "test_a_stopped_block_may_be_parsed_and_only_a_whole_message_may_be_judged",
        ),
        (f"{ANATOMY}#run-block",),
    ),
    "T1": Row(
        "00 04",
        "Trap: my loop over the stream ended, so I have the whole message.",
        ("test_questions.py::test_a_loop_that_ended_proves_nothing",),
        (f"{START}#predict-loop", f"{START}#run-loop", f"{START}#exercise-stub"),
    ),
    "T4": Row(
        "01",
        "Trap: a block stopped, so the answer is over.",
        (
            "test_questions.py::"
            "test_a_stopped_block_may_be_parsed_and_only_a_whole_message_may_be_judged",
        ),
        (f"{ANATOMY}#predict-block", f"{ANATOMY}#run-block"),
    ),
}

#: Rows whose lessons are still to be written. A row moves from here to `ROWS` with its tests.
LATER = frozenset(
    f"{group}{number}"
    for group, numbers in {
        "R": range(1, 9),
        "B": (6, 7, 8, 9, 10, 12, 13, 16, 17),
        "S": (6, 7, 11, *range(14, 32), 34),
        "P": (2, 4, 5, 6),
        "T": (2, 3, 5),
        "C": (4, 5, 6, *range(10, 20)),
    }.items()
    for number in numbers
)
