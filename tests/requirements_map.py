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


START = "00-start-here"
ANATOMY = "01-anatomy"
WIRE = "02-bytes-on-the-wire"
ASSEMBLING = "03-assembling"
TWO_BUFFERS = "04-two-buffers"
ATTEMPT = "05-the-attempt"
CANCEL = "06-cancel-against-commit"
TOOL_LOOP = "07-the-tool-loop"
DIALECTS = "08-four-dialects"
RECORDINGS = "10-reading-recordings"
LAWS_OF_DIALECTS = "test_dialect_laws.py"
STOPPED = "test_gates.py::test_the_first_gate_that_does_not_pass_decides_and_says_what_it_saw"

ROWS: dict[str, Row] = {
    # --- the acceptance sequences
    "R1": Row(
        "05",
        "Fragments that look whole while their block is open are a preview: nothing is dispatched.",
        (
            "test_acceptance.py::test_r1_fragments_that_look_whole_in_an_open_block_are_a_preview",
            "test_lesson_05.py::test_what_is_printed_of_each_of_the_eight",
        ),
        (
            f"{ATTEMPT}#predict-whole",
            f"{ATTEMPT}#run-whole",
        ),
    ),
    "R2": Row(
        "05",
        "A whole, valid, authorised answer is a proposal that may be committed; blocking it fails.",
        (
            "test_acceptance.py::"
            "test_r2_a_whole_valid_authorised_answer_is_a_proposal_and_has_no_effect_by_itself",
            "test_lesson_05.py::test_somebody_does_try_to_commit_and_only_a_proposal_lets_them",
        ),
        (
            f"{ATTEMPT}#predict-whole",
            f"{ATTEMPT}#run-whole",
        ),
    ),
    "R3": Row(
        "05",
        "The block stopped, the line dropped, no marker came: incomplete, and nothing is done.",
        ("test_acceptance.py::test_r3_a_drop_after_the_block_stopped_leaves_nothing_to_act_on",),
        (
            f"{ATTEMPT}#predict-whole",
            f"{ATTEMPT}#run-whole",
        ),
    ),
    "R4": Row(
        "05",
        "The marker came, but max_tokens cut the answer short: held, and nothing is dispatched.",
        (
            "test_acceptance.py::"
            "test_r4_an_answer_cut_short_by_its_token_limit_is_held_with_every_marker_there",
            "test_acceptance.py::"
            "test_r4_the_limit_holds_it_even_where_the_json_happens_to_be_whole",
        ),
        (
            f"{ATTEMPT}#predict-back",
            f"{ATTEMPT}#run-back",
        ),
    ),
    "R5": Row(
        "05",
        "After an error a late completion changes nothing: invalid stays invalid.",
        (
            "test_acceptance.py::test_r5_a_completion_that_comes_after_an_error_revives_nothing",
            "test_acceptance.py::test_r5_nor_does_the_rest_of_the_answer_on_the_wire",
        ),
        (
            f"{ATTEMPT}#predict-back",
            f"{ATTEMPT}#run-back",
        ),
    ),
    "R6": Row(
        "05 06",
        "A cancellation before the commit wins: what still arrives is late, and proposes nothing.",
        (
            "test_acceptance.py::"
            "test_r6_a_cancellation_before_the_commit_wins_over_all_that_arrives_later",
            "test_acceptance.py::test_r6_a_cancellation_after_the_commit_comes_too_late",
            "test_lesson_06.py::"
            "test_on_one_row_whoever_comes_first_wins_and_both_hear_the_same[cancel]",
        ),
        (
            f"{ATTEMPT}#predict-back",
            f"{ATTEMPT}#run-back",
            f"{CANCEL}#run-race",
            f"{CANCEL}#view-race",
        ),
    ),
    "R7": Row(
        "05",
        "One envelope handled twice makes one transition; equal text is no repetition.",
        (
            "test_acceptance.py::test_r7_an_envelope_counts_once_and_equal_text_counts_each_time",
            "test_acceptance.py::test_r7_the_second_delivery_makes_no_second_transition",
            "test_lesson_05.py::test_repeating_any_envelopes_in_any_order_changes_nothing",
        ),
        (
            f"{ATTEMPT}#predict-often",
            f"{ATTEMPT}#run-often",
            f"{ATTEMPT}#inbox",
        ),
    ),
    "R8": Row(
        "05 06",
        "The effect happened, its answer was lost: the record is asked for, nothing is repeated.",
        (
            "test_acceptance.py::test_r8_a_lost_answer_is_asked_for_and_never_submitted_again",
            "test_acceptance.py::test_r8_the_trace_tells_the_same",
            "test_lesson_06.py::"
            "test_while_the_desk_is_down_a_person_reads_that_it_is_being_reconciled",
        ),
        (
            f"{ATTEMPT}#predict-often",
            f"{ATTEMPT}#run-often",
            f"{ATTEMPT}#stepper",
            f"{ATTEMPT}#stepper-code",
            f"{CANCEL}#run-crash",
            f"{CANCEL}#desk-dies",
        ),
    ),
    # --- states, gates and boundaries
    "B1": Row(
        "05",
        "Where an attempt can be, and how it gets there, is one machine in one table.",
        (
            "test_attempt.py::test_every_pair_is_in_the_table_or_refused_with_the_state_unchanged",
            "test_attempt.py::"
            "test_no_sequence_of_inputs_goes_around_the_marker_the_gates_or_the_commit",
            "test_lesson_05.py::test_the_solution_of_the_exercise_is_what_the_consumer_does",
        ),
        (
            f"{ATTEMPT}#said",
            f"{ATTEMPT}#machine",
            f"{ATTEMPT}#timeline",
        ),
    ),
    "B2": Row(
        "05",
        "A gate asks first whether the protocol's own sequence was whole.",
        (
            "test_gates.py::test_what_broke_a_complete_answer_afterwards_fails_the_first_gate",
            "test_gates.py::test_an_answer_that_is_not_complete_is_not_asked_and_would_fail",
            "test_lesson_05.py::test_an_answer_for_each_gate_passes_all_before_it",
            "test_lesson_05.py::test_who_says_completed_too_early_fails_the_first_gate",
        ),
        (
            f"{ATTEMPT}#early",
            f"{ATTEMPT}#gates-table",
        ),
    ),
    "B3": Row(
        "05",
        "A gate lets only those stop reasons pass that the application lists.",
        (
            f"{STOPPED}[no answer asked to act]",
            f"{STOPPED}[unknown reason]",
        ),
        (
            f"{ATTEMPT}#gates-table",
            f"{ATTEMPT}#run-back",
        ),
    ),
    "B4": Row(
        "05",
        "A gate lets only known, permitted tools pass.",
        (
            f"{STOPPED}[tool not permitted]",
            "test_workitem.py::test_only_one_tool_is_permitted",
        ),
        (f"{ATTEMPT}#gates-table",),
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
        (f"{ATTEMPT}#gates-table",),
    ),
    "B6": Row(
        "05 06",
        "Who may do this to this item is asked at the gate, and once more when it is committed.",
        (
            "test_lesson_05.py::test_who_may_is_asked_again_when_it_is_committed",
            "test_commit.py::test_authorisation_is_asked_again_and_a_refusal_submits_nothing",
            "test_workitem.py::test_a_change_of_label",
            "test_lesson_06.py::"
            "test_who_may_is_asked_inside_the_commit_and_a_refusal_asks_the_desk_nothing",
        ),
        (
            f"{ATTEMPT}#gates-table",
            f"{ATTEMPT}#revoked",
            f"{CANCEL}#revoked",
        ),
    ),
    "B7": Row(
        "06",
        "A commit is a step of its own: COMMITTING is written before anybody is asked to act.",
        (
            "test_lesson_06.py::"
            "test_a_process_that_dies_in_its_commit_leaves_committing_and_is_settled_by_asking",
            "test_lesson_06.py::test_a_story_tells_every_change_and_every_submission",
        ),
        (
            f"{CANCEL}#ledger",
            f"{CANCEL}#run-crash",
            f"{CANCEL}#exercise-stub",
        ),
    ),
    "B8": Row(
        "06",
        "COMMITTED stands on the record of the effect, which is written in the same transaction.",
        (
            "test_lesson_06.py::test_a_second_commit_reads_the_record_and_submits_nothing",
            "test_race.py::"
            "test_an_effect_is_submitted_once_at_most_and_is_on_record_where_it_happened",
            "test_ledger.py::test_nobody_but_the_effects_own_system_says_what_became_of_it",
        ),
        (f"{CANCEL}#ledger",),
    ),
    "B9": Row(
        "06",
        "An unknown outcome is settled by asking under its key; it never allows another try.",
        (
            "test_lesson_06.py::"
            "test_a_process_that_dies_in_its_commit_leaves_committing_and_is_settled_by_asking",
            "test_lesson_06.py::test_under_a_closed_key_it_is_refused_when_it_arrives",
            "test_ledger.py::test_an_unknown_outcome_is_asked_for_and_never_submitted_again",
        ),
        (
            f"{CANCEL}#predict-crash",
            f"{CANCEL}#run-crash",
            f"{CANCEL}#predict-way",
            f"{CANCEL}#run-way",
            f"{CANCEL}#without",
        ),
    ),
    "B10": Row(
        "06",
        "Cancel and commit meet in one row; in both orders one wins, and both read the same.",
        (
            "test_lesson_06.py::test_on_one_row_whoever_comes_first_wins_and_both_hear_the_same",
            "test_lesson_06.py::"
            "test_races_of_two_threads_have_one_winner_each_and_a_payment_for_each_commit",
            "test_race.py::test_whoever_comes_first_wins_and_nobody_else",
        ),
        (
            f"{CANCEL}#two-memories",
            f"{CANCEL}#predict-race",
            f"{CANCEL}#run-race",
            f"{CANCEL}#view-race",
            f"{CANCEL}#view-code",
        ),
    ),
    "B11": Row(
        "02",
        "A preview has bounds in bytes, in events and in seconds.",
        (
            "test_reader.py::"
            "test_a_bound_that_is_passed_ends_the_attempt_at_the_same_place_however_the_bytes_come",
            "test_reader.py::test_time_is_the_recordings_own_and_one_bound_is_enough",
            "test_boundaries.py::test_a_stream_that_never_ends_is_ended_by_each_bound_alone",
        ),
        (f"{WIRE}#run-bounds",),
    ),
    "B12": Row(
        "02",
        "A read is not an event: bytes are kept until whole, and any split gives the same.",
        (
            "test_boundaries.py::test_ours_gives_the_same_frames_for_any_number_of_cuts",
            "test_boundaries.py::test_ours_gives_the_same_frames_at_every_pair_of_cuts",
            "test_boundaries.py::test_a_naive_reader_fails_where_the_lesson_says",
            "test_sse.py::test_a_character_may_be_cut_anywhere",
        ),
        (
            f"{WIRE}#run-read",
            f"{WIRE}#run-half",
            f"{WIRE}#decoder",
            f"{WIRE}#explorer",
            f"{WIRE}#explorer-code",
            f"{WIRE}#exercise-stub",
        ),
    ),
    "B13": Row(
        "04",
        "A browser reconnects by itself; that resumes a log of events, and no POST stream.",
        (
            "test_reconnect.py::test_a_log_is_resumed_with_nothing_lost_or_doubled",
            "test_reconnect.py::test_the_same_reconnect_glues_two_answers_of_a_post_together",
            "test_reconnect.py::test_after_a_whole_answer_it_asks_and_pays_again",
        ),
        (
            f"{TWO_BUFFERS}#event-log",
            f"{TWO_BUFFERS}#run-post",
        ),
    ),
    "B14": Row(
        "03",
        "An event of an unknown kind is kept, and grants nothing.",
        (
            "test_claude.py::test_an_unknown_event_or_delta_is_noted_and_grants_nothing",
            "test_lesson_03.py::test_an_unknown_event_completes_nothing_however_final_it_sounds",
        ),
        (f"{ASSEMBLING}#run-held",),
    ),
    "B15": Row(
        "03",
        "A broken grammar or a fragment of nobody's stops the attempt, unguessed.",
        (
            "test_claude.py::test_breach_of_the_grammar",
            "test_lesson_03.py::test_only_what_keeps_the_grammar_may_become_a_proposal",
            "test_lesson_03.py::test_an_unknown_delta_of_a_tools_block_is_held",
        ),
        (
            f"{ASSEMBLING}#predict-held",
            f"{ASSEMBLING}#run-held",
        ),
    ),
    "B16": Row(
        "05 06",
        "A person is told each state in words of its own; only a record makes a change done.",
        (
            "test_lesson_05.py::"
            "test_each_state_has_words_of_its_own_and_only_a_record_makes_it_done",
            "test_lesson_05.py::test_no_text_that_stopped_is_called_done",
            "test_lesson_06.py::test_what_the_lesson_shows_is_never_the_words_done_or_failed",
        ),
        (
            f"{ATTEMPT}#said",
            f"{ATTEMPT}#stepper-code",
            f"{CANCEL}#run-crash",
            f"{CANCEL}#desk-dies",
        ),
    ),
    "B17": Row(
        "06 10",
        "The trace of an attempt says what happened, and holds nothing of what was proposed.",
        (
            "test_lesson_06.py::test_the_trace_says_what_happened_and_holds_no_payload",
            "test_lesson_10.py::test_a_row_of_a_scan_holds_nothing_of_what_was_said",
        ),
        (
            f"{CANCEL}#ledger",
            f"{RECORDINGS}#scan",
        ),
    ),
    # --- the interface: types, the reader, the reducer
    "C1": Row(
        "03",
        "Segments, turns and events are types of their own.",
        (
            "test_claude.py::test_each_event_states_one_fact",
            "test_turn.py::test_every_event_type_is_probed",
        ),
        (
            f"{ASSEMBLING}#loop-code",
            f"{ASSEMBLING}#stepper-code",
        ),
    ),
    "C2": Row(
        "03",
        "A segment's id is fixed by its start, before any content.",
        (
            "test_claude.py::test_blocks_are_kept_by_index_however_they_interleave_and_close",
            "test_turn.py::test_content_goes_to_its_segment_by_id_and_in_order",
            "test_lesson_03.py::test_a_segment_has_its_id_before_it_has_content",
        ),
        (f"{ASSEMBLING}#stepper-code",),
    ),
    "C3": Row(
        "03",
        "One reader turns the Claude wire format into those events.",
        (
            "test_claude.py::test_block",
            "test_claude.py::test_every_stop_reason_has_a_word_in_the_one_vocabulary",
        ),
        (f"{ASSEMBLING}#loop-code",),
    ),
    "C7": Row(
        "03",
        "Assembling is a pure function; the same events give the same turn.",
        (
            "test_turn.py::test_a_change_is_a_new_turn_and_the_old_one_stays_what_it_was",
            "test_laws.py::"
            "test_replaying_the_events_gives_the_turn_and_changes_nothing_that_was_given",
            "test_lesson_03.py::"
            "test_reducing_gives_the_same_object_where_nothing_changed_and_replay_equals_fold",
        ),
        (f"{ASSEMBLING}#loop-code",),
    ),
    "C8": Row(
        "03",
        "A tool's input is parsed when its segment ends, and not before.",
        (
            "test_turn.py::test_an_input_is_parsed_at_its_stop_and_only_there",
            "test_lesson_03.py::test_no_input_is_an_empty_one_and_half_an_input_is_none",
        ),
        (f"{ASSEMBLING}#once-code",),
    ),
    "C9": Row(
        "03 07",
        "JSON on its way to a tool is never part of the visible text.",
        (
            "test_turn.py::test_content_goes_to_its_segment_by_id_and_in_order",
            "test_questions.py::test_text_in_pieces_loses_the_call_and_hides_the_cut",
            "test_lesson_03.py::"
            "test_an_input_is_there_from_its_stop_on_and_its_json_is_never_in_the_text",
            "test_lesson_07.py::"
            "test_the_same_streams_are_one_bubble_by_the_turn_and_no_json_is_in_its_text",
            "test_turnview.py::test_json_on_its_way_to_a_tool_is_at_no_moment_in_what_is_sent",
        ),
        (
            f"{ASSEMBLING}#once-code",
            f"{TOOL_LOOP}#one-bubble",
        ),
    ),
    "C10": Row(
        "07",
        "A call is on the screen as running before its tool is awaited.",
        (
            "test_toolloop.py::test_a_call_is_published_as_running_before_its_tool_is_awaited",
            "test_lesson_07.py::test_running_is_on_the_screen_before_the_tool_is_called",
            "test_lesson_07_browser.py::"
            "test_a_turn_that_is_cancelled_while_tools_run_says_so_and_nothing_moves_afterwards",
        ),
        (
            f"{TOOL_LOOP}#run-order",
            f"{TOOL_LOOP}#view",
        ),
    ),
    "C11": Row(
        "07",
        "Calls run side by side, and each card changes when its own tool is done.",
        (
            "test_toolloop.py::test_two_calls_run_at_the_same_time_and_resolve_as_each_is_done",
            "test_turnview.py::"
            "test_a_card_says_running_while_its_tool_runs_and_changes_when_its_own_tool_is_done",
            "test_lesson_07.py::"
            "test_cards_change_as_each_is_done_and_the_model_hears_in_its_own_order",
        ),
        (
            f"{TOOL_LOOP}#naive-order",
            f"{TOOL_LOOP}#run-order",
            f"{TOOL_LOOP}#exercise-stub",
        ),
    ),
    "C12": Row(
        "07",
        "However many streams a turn takes, it has one id, and its answer is one bubble.",
        (
            "test_toolloop.py::"
            "test_five_streams_are_one_bubble_and_found_by_the_stream_they_would_be_five",
            "test_bus.py::"
            "test_found_by_the_stream_every_round_is_a_bubble_and_only_the_last_one_ends",
            "test_lesson_07.py::test_the_naive_loop_draws_a_bubble_a_stream_and_shows_json",
        ),
        (
            f"{TOOL_LOOP}#run-bubbles",
            f"{TOOL_LOOP}#one-bubble",
        ),
    ),
    "C13": Row(
        "07",
        "Six rounds and no answer end the turn in a state of its own, which a person is told.",
        (
            "test_toolloop.py::test_after_six_rounds_the_turn_ends_in_a_state_of_its_own",
            "test_toolloop.py::"
            "test_the_very_same_call_too_often_ends_the_turn_in_a_state_of_its_own",
            "test_toolloop.py::test_each_end_has_words_of_its_own",
            "test_lesson_07.py::test_the_guard_and_the_cap_are_as_the_lesson_says",
        ),
        (
            f"{TOOL_LOOP}#naive-broken",
            f"{TOOL_LOOP}#run-cap",
        ),
    ),
    "C14": Row(
        "07",
        "What goes wrong in a tool becomes its result, and the turn goes on.",
        (
            "test_toolloop.py::test_what_goes_wrong_in_a_tool_is_its_result_and_the_turn_goes_on",
            "test_lesson_07.py::test_a_tools_error_is_its_result_and_the_model_answers",
        ),
        (
            f"{TOOL_LOOP}#naive-broken",
            f"{TOOL_LOOP}#run-error",
            f"{TOOL_LOOP}#exercise-stub",
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
        (
            f"{ANATOMY}#six",
            f"{ANATOMY}#order",
        ),
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
        (
            f"{ANATOMY}#jobs-code",
            f"{ANATOMY}#stepper-code",
        ),
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
    "S6": Row(
        "03",
        "A delta can carry part of a structured value, not only text.",
        (
            "test_prefixes.py::test_each_fragment_of_a_payment_has_its_own_meaning",
            "test_claude.py::test_each_event_states_one_fact",
        ),
        (f"{ASSEMBLING}#execute-code",),
    ),
    "S7": Row(
        "03",
        "A tool request that is not whole is never acted on; it may be shown, as text only.",
        (
            "test_lesson_03.py::test_to_act_as_soon_as_it_looks_valid_is_to_pay_one",
            "test_preview.py::test_what_is_not_whole_can_be_read_as_no_value",
            "test_preview.py::test_a_number_at_the_end_of_the_text_is_never_called_whole",
        ),
        (
            f"{ASSEMBLING}#execute-code",
            f"{ASSEMBLING}#preview-code",
        ),
    ),
    "S8": Row(
        "01 03",
        "content_block_stop closes a block; only then its input is parsed, then validated.",
        (
            "test_claude.py::test_a_tool_calls_input_is_parsed_once_at_its_stop",
            "test_questions.py::"
            "test_a_stopped_block_may_be_parsed_and_only_a_whole_message_may_be_judged",
            "test_prefixes.py::test_the_strict_reading_is_what_a_turn_does_at_the_stop",
        ),
        (
            f"{ANATOMY}#run-block",
            f"{ASSEMBLING}#once-code",
            f"{ASSEMBLING}#exercise-stub",
        ),
    ),
    "S9": Row(
        "00 03",
        "Part of a JSON text can be broken, can lack fields, or can mean something else.",
        (
            "test_questions.py::test_half_a_json_text_can_lack_fields_or_mean_something_else",
            "test_claude.py::test_an_input_that_does_not_parse_is_kept_as_text_and_never_repaired",
            "test_prefixes.py::test_each_fragment_of_a_payment_has_its_own_meaning",
            "test_prefixes.py::test_character_by_character_there_are_more_wrong_payments",
        ),
        (
            f"{START}#run-schema",
            f"{START}#parsed-once",
            f"{ASSEMBLING}#execute-code",
            f"{ASSEMBLING}#run-meanings",
        ),
    ),
    "S10": Row(
        "01",
        "message_delta says why the model stopped, and what it took in all.",
        (
            "test_questions.py::test_the_last_token_count_is_the_total",
            "test_claude.py::test_usage_is_cumulative_and_a_null_overwrites_nothing",
        ),
        (
            f"{ANATOMY}#run-usage",
            f"{ANATOMY}#limit",
        ),
    ),
    "S11": Row(
        "07",
        "A stream that stops for a tool is followed by another, whose request holds the result.",
        (
            "test_toolloop.py::test_the_result_of_a_call_goes_back_and_the_answer_ends_the_turn",
            "test_toolloop.py::test_over_a_real_socket_every_request_holds_a_history_that_is_taken",
            "test_lesson_07.py::"
            "test_all_recordings_of_the_lesson_are_whole_and_stop_for_a_tool_or_at_the_end",
        ),
        (
            f"{TOOL_LOOP}#naive-good",
            f"{TOOL_LOOP}#bus-code",
        ),
    ),
    "S12": Row(
        "01",
        "message_stop, and nothing before it, ends the message.",
        (
            "test_claude.py::"
            "test_an_end_without_the_marker_is_not_complete_and_says_what_is_missing",
            "test_questions.py::test_the_cases_of_lesson_01_agree_with_streamlab",
        ),
        (
            f"{ANATOMY}#run-block",
            f"{ANATOMY}#exercise-stub",
        ),
    ),
    "S13": Row(
        "00 04",
        "Where the network's stream ends, the message need not.",
        (
            "test_questions.py::test_the_sdk_returns_a_call_that_was_cut_inside_a_number",
            "test_faults.py::test_a_cut_at_any_byte_before_the_last_is_incomplete",
            "test_lesson_04.py::test_the_marker_and_not_the_ending_decides_what_is_kept",
        ),
        (
            f"{START}#sdk",
            f"{START}#judge",
            f"{START}#run-endings",
            f"{TWO_BUFFERS}#run-endings",
        ),
    ),
    "S14": Row(
        "04",
        "Half of an answer can be a sentence with a full stop, and look like all of it.",
        (
            "test_lesson_04.py::"
            "test_half_of_the_answer_is_a_sentence_and_says_the_opposite_of_the_whole",
        ),
        (
            f"{TWO_BUFFERS}#broken",
            f"{TWO_BUFFERS}#screen",
        ),
    ),
    "S15": Row(
        "04",
        "A turn that never became complete is not put into the history.",
        (
            "test_lesson_04.py::test_the_cases_of_lesson_04_agree_with_streamlab",
            "test_lesson_04.py::"
            "test_a_recorded_fragment_poisons_the_next_request_loudly_or_silently",
        ),
        (
            f"{TWO_BUFFERS}#two-buffers",
            f"{TWO_BUFFERS}#exercise-stub",
        ),
    ),
    "S16": Row(
        "04",
        "What half a turn does to the next request: it is believed, or it is refused.",
        (
            "test_lesson_04.py::"
            "test_a_recorded_fragment_poisons_the_next_request_loudly_or_silently",
            "test_server.py::test_a_history_that_the_api_would_refuse_is_refused_before_any_answer",
        ),
        (
            f"{TWO_BUFFERS}#four",
            f"{TWO_BUFFERS}#run-next",
        ),
    ),
    "S17": Row(
        "04",
        "A retry starts from the last whole turn, as an attempt of its own.",
        (
            "test_lesson_04.py::"
            "test_a_retry_sends_what_the_first_attempt_sent_and_nothing_of_that_one_survives",
        ),
        (
            f"{TWO_BUFFERS}#predict-retry",
            f"{TWO_BUFFERS}#run-retry",
        ),
    ),
    "S18": Row(
        "04",
        "The history before and after an interruption, kept well and badly, side by side.",
        ("test_lesson_04.py::test_two_designs_side_by_side_differ_in_what_is_kept_alone",),
        (
            f"{TWO_BUFFERS}#two-buffers",
            f"{TWO_BUFFERS}#run-call",
        ),
    ),
    "S19": Row(
        "04",
        "Half a text misleads; half a tool call gets carried out, and nobody objects.",
        ("test_lesson_04.py::test_half_a_call_that_was_run_is_refused_by_nobody",),
        (
            f"{TWO_BUFFERS}#predict-call",
            f"{TWO_BUFFERS}#run-call",
        ),
    ),
    "S20": Row(
        "05",
        "First the block's end, then parse, then validate; a commit executes, and nothing before.",
        (
            "test_lesson_05.py::"
            "test_each_rule_acts_on_the_good_stream_and_on_one_where_nothing_may_happen",
            "test_acceptance.py::test_r3_a_drop_after_the_block_stopped_leaves_nothing_to_act_on",
        ),
        (
            f"{ATTEMPT}#naive-broken",
            f"{ATTEMPT}#run-whole",
            f"{ATTEMPT}#without",
        ),
    ),
    "S21": Row(
        "03",
        "Of several blocks each is put together by its own index, not by arrival.",
        (
            "test_lesson_03.py::test_the_last_block_gets_what_the_index_gives_to_another",
            "test_lesson_03.py::test_two_parallel_calls_keep_their_own_inputs_however_they_come",
            "test_claude.py::test_blocks_are_kept_by_index_however_they_interleave_and_close",
        ),
        (
            f"{ASSEMBLING}#run-order",
            f"{ASSEMBLING}#calls",
            f"{ASSEMBLING}#exercise-stub",
        ),
    ),
    "S22": Row(
        "07",
        "Several calls in one answer get a result each, in one message, in the order of the calls.",
        (
            "test_toolloop.py::test_two_calls_run_at_the_same_time_and_resolve_as_each_is_done",
            "test_toolloop.py::test_whatever_the_model_the_tools_and_the_person_do_the_laws_hold",
            "test_lesson_07.py::test_a_history_with_one_of_two_results_is_refused",
        ),
        (
            f"{TOOL_LOOP}#run-order",
            f"{TOOL_LOOP}#half-results",
            f"{TOOL_LOOP}#exercise-stub",
        ),
    ),
    "S23": Row(
        "03",
        "Running a tool on a delta is the wrong way: it pays 1 where 100000 was meant.",
        (
            "test_lesson_03.py::test_to_act_as_soon_as_it_looks_valid_is_to_pay_one",
            "test_prefixes.py::test_the_lenient_reading_is_the_real_sdks",
        ),
        (f"{ASSEMBLING}#execute-code",),
    ),
    "S24": Row(
        "03",
        "A thinking block goes back byte for byte, and its signature with it.",
        ("test_lesson_03.py::test_thinking_goes_back_byte_for_byte_and_tidying_changes_it",),
        (
            f"{ASSEMBLING}#predict-thinking",
            f"{ASSEMBLING}#run-thinking",
        ),
    ),
    "S25": Row(
        "04",
        "One buffer: the program that records what it shows, and where it goes wrong.",
        (
            "test_lesson_04.py::"
            "test_a_recorded_fragment_poisons_the_next_request_loudly_or_silently",
        ),
        (
            f"{TWO_BUFFERS}#naive-code",
            f"{TWO_BUFFERS}#run-next",
        ),
    ),
    "S26": Row(
        "04",
        "Two buffers: one for the screen, and one for what the next request holds.",
        (
            "test_lesson_04.py::test_what_is_shown_grows_and_what_is_kept_comes_at_once_and_whole",
            "test_lesson_04_browser.py::test_the_screen_grows_by_key_while_what_is_kept_stays",
        ),
        (
            f"{TWO_BUFFERS}#two-buffers",
            f"{TWO_BUFFERS}#stepper",
            f"{TWO_BUFFERS}#stepper-code",
        ),
    ),
    "S27": Row(
        "03",
        "The whole consumer is one short loop: frames, events, then the turn and the attempt.",
        ("test_lesson_03.py::test_the_loop_of_the_lesson_gets_as_far_as_the_consumers_own",),
        (f"{ASSEMBLING}#loop-code",),
    ),
    "S28": Row(
        "05",
        "The way in one's head: start, blocks, the reason, the marker, the gates, the commit.",
        (
            "test_lesson_05.py::test_the_solution_of_the_exercise_is_what_the_consumer_does",
            "test_lesson_05.py::test_the_way_of_the_lost_answer_goes_through_the_doubt",
        ),
        (
            f"{ATTEMPT}#stepper-code",
            f"{ATTEMPT}#run-whole",
            f"{ATTEMPT}#exercise-stub",
        ),
    ),
    "S29": Row(
        "04",
        "After a cut, a reset or a timeout the history is what it was, and a retry can start.",
        (
            "test_lesson_04.py::test_the_marker_and_not_the_ending_decides_what_is_kept[timeout]",
            "test_lesson_04.py::"
            "test_a_retry_sends_what_the_first_attempt_sent_and_nothing_of_that_one_survives",
        ),
        (
            f"{TWO_BUFFERS}#run-endings",
            f"{TWO_BUFFERS}#run-retry",
        ),
    ),
    "S30": Row(
        "06",
        "A retry pays twice; a key, a recorded state, the gates and a person's review prevent it.",
        (
            "test_lesson_06.py::test_a_lost_answer_and_one_more_try_pay_twice",
            "test_lesson_06.py::test_of_the_repairs_only_the_key_prevents_the_second_payment",
            "test_lesson_06.py::"
            "test_a_proposal_waits_for_a_person_and_outlives_the_program_that_made_it",
        ),
        (
            f"{CANCEL}#naive",
            f"{CANCEL}#naive-broken",
            f"{CANCEL}#predict-fix",
            f"{CANCEL}#run-fix",
            f"{CANCEL}#ledger",
        ),
    ),
    "S31": Row(
        "06",
        "What can't be undone is never done from a fragment, however whole the fragment looks.",
        (
            "test_lesson_06.py::test_no_fragment_can_be_committed_whatever_it_looks_like",
            "test_lesson_06.py::test_the_fragment_of_the_lesson_does_parse",
        ),
        (f"{CANCEL}#fragment",),
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
        (
            f"{ANATOMY}#stepper",
            f"{ANATOMY}#stepper-code",
        ),
    ),
    "S34": Row(
        "05",
        "Once more, all of it: parseable, eligible, executable, and which state says which.",
        (
            "test_lesson_05.py::test_the_program_and_the_trace_go_two_ways_to_one_answer",
            "test_lesson_05.py::test_every_state_of_the_program_is_an_edge_of_the_table",
        ),
        (
            f"{ATTEMPT}#timeline",
            f"{ATTEMPT}#exercise-stub",
            f"{ATTEMPT}#summary",
        ),
    ),
    # --- principles
    "P1": Row(
        "01",
        "A stream is made of events; text is in some of them.",
        ("test_questions.py::test_text_in_pieces_loses_the_call_and_hides_the_cut",),
        (
            f"{ANATOMY}#run-text",
            f"{ANATOMY}#naive-cut",
        ),
    ),
    "P2": Row(
        "03",
        "A delta is a part: by itself it has no meaning to act on.",
        (
            "test_prefixes.py::test_only_the_whole_is_read_strictly",
            "test_preview.py::test_a_prefix_shows_a_prefix_of_what_the_whole_shows",
        ),
        (
            f"{ASSEMBLING}#execute-code",
            f"{ASSEMBLING}#run-meanings",
        ),
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
    "P4": Row(
        "04",
        "How a connection ends says nothing about the answer that it carried.",
        ("test_lesson_04.py::test_the_marker_and_not_the_ending_decides_what_is_kept",),
        (
            f"{TWO_BUFFERS}#predict-endings",
            f"{TWO_BUFFERS}#run-endings",
        ),
    ),
    "P5": Row(
        "04",
        "The history takes a turn after its final marker, and at no moment before.",
        ("test_lesson_04.py::test_what_is_shown_grows_and_what_is_kept_comes_at_once_and_whole",),
        (f"{TWO_BUFFERS}#stepper-code",),
    ),
    "P6": Row(
        "04",
        "What is displayed and what the conversation holds are two states, never one.",
        (
            "test_lesson_04.py::test_two_designs_side_by_side_differ_in_what_is_kept_alone",
            "test_lesson_04.py::test_what_is_shown_grows_and_what_is_kept_comes_at_once_and_whole",
        ),
        (
            f"{TWO_BUFFERS}#two-buffers",
            f"{TWO_BUFFERS}#stepper",
        ),
    ),
    # --- traps
    "T1": Row(
        "00 04",
        "Trap: my loop over the stream ended, so I have the whole message.",
        (
            "test_questions.py::test_a_loop_that_ended_proves_nothing",
            "test_lesson_04.py::test_the_marker_and_not_the_ending_decides_what_is_kept[eof]",
        ),
        (
            f"{START}#predict-loop",
            f"{START}#run-loop",
            f"{START}#exercise-stub",
            f"{TWO_BUFFERS}#run-endings",
        ),
    ),
    "T2": Row(
        "03",
        "Trap: the JSON looks valid by now, so the tool can run.",
        ("test_lesson_03.py::test_to_act_as_soon_as_it_looks_valid_is_to_pay_one",),
        (
            f"{ASSEMBLING}#predict-meanings",
            f"{ASSEMBLING}#execute-code",
        ),
    ),
    "T3": Row(
        "04",
        "Trap: the partial text is kept, and the conversation goes on from it.",
        (
            "test_lesson_04.py::test_only_text_is_gone_on_from_and_it_is_quoted_by_the_user",
            "test_lesson_04.py::"
            "test_a_recorded_fragment_poisons_the_next_request_loudly_or_silently",
        ),
        (
            f"{TWO_BUFFERS}#predict-retry",
            f"{TWO_BUFFERS}#run-retry",
            f"{TWO_BUFFERS}#continue-from",
        ),
    ),
    "T4": Row(
        "01",
        "Trap: a block stopped, so the answer is over.",
        (
            "test_questions.py::"
            "test_a_stopped_block_may_be_parsed_and_only_a_whole_message_may_be_judged",
        ),
        (
            f"{ANATOMY}#predict-block",
            f"{ANATOMY}#run-block",
        ),
    ),
    "T5": Row(
        "04",
        "Trap: one list is the screen and the history at the same time.",
        (
            "test_lesson_04.py::test_two_designs_side_by_side_differ_in_what_is_kept_alone",
            "test_lesson_04.py::test_the_question_counts_the_loud_ones",
        ),
        (
            f"{TWO_BUFFERS}#naive-code",
            f"{TWO_BUFFERS}#run-next",
        ),
    ),
    # --- the dialects, and what goes on to a browser
    "C4": Row(
        "08",
        "Chat Completions becomes events: calls are joined by choice and index, and held in doubt.",
        (
            "test_openai_chat.py::test_whose_a_fragment_is_can_be_proved",
            "test_openai_chat.py::test_what_cannot_be_proved_is_held",
            "test_openai_chat.py::test_an_end_is_judged_by_the_letter",
            "test_lesson_08.py::"
            "test_by_index_is_right_about_mixed_calls_and_loses_one_of_two_at_the_same_index",
            "test_lesson_08.py::test_the_exercise_agrees_with_streamlab",
        ),
        (
            f"{DIALECTS}#naive-code",
            f"{DIALECTS}#run-index",
            f"{DIALECTS}#proved",
            f"{DIALECTS}#exercise-stub",
        ),
    ),
    "C5": Row(
        "08",
        "Responses becomes events: output_index joins, and what is said again is authority.",
        (
            "test_openai_responses.py::test_each_item_becomes_one_segment",
            "test_openai_responses.py::test_items_may_interleave_and_start_at_any_index",
            "test_openai_responses.py::test_a_call_that_cannot_be_proved_is_held",
            "test_lesson_08.py::test_two_versions_of_a_call_are_held_and_of_a_text_the_last_counts",
        ),
        (
            f"{DIALECTS}#predict-twice",
            f"{DIALECTS}#run-twice",
        ),
    ),
    "C6": Row(
        "08",
        "Gemini becomes events: whole calls, Vertex's arguments by path, and an end nobody says.",
        (
            "test_gemini.py::test_a_whole_call_is_a_proposal",
            "test_gemini.py::test_arguments_by_path_become_one_object",
            "test_gemini.py::test_what_has_not_ended_is_incomplete_and_says_what_is_missing",
            "test_lesson_08.py::test_arguments_by_path_are_a_third_way_to_the_same_input",
            "test_lesson_08.py::"
            "test_a_gemini_answer_is_whole_by_its_reason_and_a_clean_end_and_by_nothing_else",
        ),
        (
            f"{DIALECTS}#run-equal",
            f"{DIALECTS}#naive-end",
            f"{DIALECTS}#run-end",
        ),
    ),
    "C15": Row(
        "08",
        "What is normal of a stream goes on to a browser as server-sent events.",
        (
            "test_forward.py::test_every_event_of_the_bus_comes_in_its_order_with_ids_from_one",
            "test_forward.py::"
            "test_no_fragment_of_an_input_is_ever_sent_only_its_size_and_then_what_is_whole",
            "test_lesson_08.py::"
            "test_a_browser_hears_the_same_events_whoever_answers_and_no_vendors_words",
            "test_lesson_08_browser.py::test_the_link_leads_to_the_page_and_a_turn_runs_there",
        ),
        (
            f"{DIALECTS}#forward-code",
            f"{DIALECTS}#page-link",
        ),
    ),
    "C16": Row(
        "08",
        "Headers keep a proxy from collecting what is forwarded, each with its reason.",
        (
            "test_forward.py::test_the_head_is_the_table_and_nothing_else",
            "test_forward.py::test_each_event_is_a_chunk_of_its_own_as_soon_as_it_is_there",
            "test_forward_nginx.py::"
            "test_with_our_headers_events_pass_a_proxy_one_by_one_and_without_them_together",
            "test_lesson_08.py::test_each_header_that_comes_is_shown_with_its_reason",
        ),
        (f"{DIALECTS}#headers",),
    ),
    "C17": Row(
        "10",
        "A proxy that collects an answer is told from a slow model by the arrival times alone.",
        (
            "test_proxies.py::test_the_times_alone_say_whether_a_proxy_collects",
            "test_proxies.py::test_what_was_kept_has_the_same_bytes_and_the_same_verdict",
            "test_lesson_10.py::test_of_six_ways_two_hold_the_answer_back",
            "test_lesson_10.py::test_what_collects_makes_the_model_look_faster",
            "test_lesson_10.py::test_the_solution_agrees_with_the_meter_on_what_a_real_proxy_did",
            "test_lesson_10.py::test_thursday_stands_out_by_what_was_held_and_not_by_its_median",
        ),
        (
            f"{RECORDINGS}#rhythm",
            f"{RECORDINGS}#predict-proxy",
            f"{RECORDINGS}#run-proxy",
            f"{RECORDINGS}#run-pace",
            f"{RECORDINGS}#by-model",
            f"{RECORDINGS}#aligned",
        ),
    ),
    "C18": Row(
        "08",
        "A recorded log and what it should have meant are a test of reader and reducer.",
        (
            "test_lesson_08.py::test_a_recorded_log_folds_to_what_was_meant_and_a_lost_frame_shows",
            "test_dialect_fixtures.py::test_a_fixture_is_recognised_and_judged_as_its_recording",
        ),
        (f"{DIALECTS}#log-code",),
    ),
    "C19": Row(
        "08",
        "One answer in four dialects becomes equal segments and an equal verdict.",
        (
            f"{LAWS_OF_DIALECTS}::test_the_story_is_the_same_on_every_wire",
            f"{LAWS_OF_DIALECTS}::test_a_random_answer_reads_back_as_it_was_meant",
            f"{LAWS_OF_DIALECTS}::test_a_style_changes_nothing_in_the_story",
            "test_lesson_08.py::test_the_story_means_the_same_whoever_tells_it",
            "test_dialect_stepper.py::"
            "test_whoever_changes_the_wire_stays_at_the_moment_and_sees_the_same_on_the_screen",
        ),
        (
            f"{DIALECTS}#first",
            f"{DIALECTS}#predict-equal",
            f"{DIALECTS}#run-equal",
            f"{DIALECTS}#stepper",
            f"{DIALECTS}#stepper-code",
        ),
    ),
}

#: Lessons that are still to be written -> their rows. A row moves from here to `ROWS`.
LATER: dict[str, tuple[str, ...]] = {}
