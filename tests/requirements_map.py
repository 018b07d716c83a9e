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
        ),
        (
            f"{ATTEMPT}#predict-back",
            f"{ATTEMPT}#run-back",
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
        ),
        (
            f"{ATTEMPT}#predict-often",
            f"{ATTEMPT}#run-often",
            f"{ATTEMPT}#stepper",
            f"{ATTEMPT}#stepper-code",
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
        ),
        (
            f"{ATTEMPT}#gates-table",
            f"{ATTEMPT}#revoked",
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
        ),
        (
            f"{ATTEMPT}#said",
            f"{ATTEMPT}#stepper-code",
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
        ),
        (f"{ASSEMBLING}#once-code",),
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
}

#: Lessons that are still to be written -> their rows. A row moves from here to `ROWS`.
LATER: dict[str, tuple[str, ...]] = {
    "06": ("B7", "B8", "B9", "B10", "B17", "S30", "S31"),
    "07": ("C10", "C11", "C12", "C13", "C14", "S11", "S22"),
    "08": ("C4", "C5", "C6", "C15", "C16", "C18", "C19"),
    "10": ("C17",),
}
