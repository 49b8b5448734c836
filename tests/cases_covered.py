"""The collected cases of what breaks when people run judges, and the test of ours that covers each.

COVERED: case id -> tests as "file.Class.test". A case that a table of cases covers names the test that walks the table;
its row there begins with the id. DECIDED: case id -> what we do otherwise than the case recommends, and why; such a
case has its tests all the same. tests/test_cases.py checks that every test named here exists and names its case.
"""

from __future__ import annotations

# === Where the tests are ===

TOOL = "test_recipe.EveryKindOfReply.test_tool_replies_become_a_choice_or_a_reason_code"
JSON = "test_recipe.EveryKindOfReply.test_json_replies_become_a_choice_or_a_reason_code"
TEXT = "test_recipe.EveryKindOfReply.test_text_replies_become_a_choice_or_a_reason_code"
BODIES = "test_recipe.EveryKindOfReply.test_bodies_with_blanks_comments_or_a_byte_order_mark_are_read"
WAITS = "test_client.TryingAgain.test_h02_h03_every_form_of_retry_after"
AGAIN = "test_client.TryingAgain.test_h08_h09_h27_what_is_tried_again"
BROKEN = "test_client.TryingAgain.test_h12_h14_broken_connections"
SILENT = "test_client.TryingAgain.test_h15_h16_silence_and_dripping_end_as_failed_rows"
ROWS = "test_client.RowsWithoutAVerdict.test_filters_and_long_prompts_concern_one_row_and_are_not_tried_again"
REFUSED = "test_client.RefusedRequests.test_"
FIXTURE = "test_fixtures.Fixture.test_"

# === Which test covers which case ===

COVERED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("R01", "R02", "R04", "R05", "R07", "R08", "R09", "R10", "R12", "R13", "R15", "R16"), (TOOL,)),
    **dict.fromkeys(("R17", "R18", "R19", "R20", "R21", "R22", "R23", "R24", "R33", "R35", "R45"), (TOOL,)),
    **dict.fromkeys(("R28", "R29", "R30"), (TOOL, JSON)),
    **dict.fromkeys(("R06", "R25", "R27"), (JSON,)),
    **dict.fromkeys(("R26", "R41", "R42", "R44", "D16"), (TEXT,)),
    **dict.fromkeys(("R36", "R37", "R39"), (BODIES,)),
    "R03": (TOOL, "test_generate.Warnings.test_five_replies_without_a_call_in_a_row_give_one_warning"),
    "R32": ("test_providers.Usage.test_r32_unknown_counts_stay_unknown",),
    "R34": ("test_recipe.EveryKindOfReply.test_bodies_without_an_answer_are_refused_with_their_kind",),
    "R38": ("test_client.BodiesThatAreNoReply.test_r38_an_event_stream_stops_the_run_at_once",),
    "R40": ("test_client.WhoServedIt.test_r40_another_model_or_provider_than_the_arm_allows_stops",),
    "Q01": (REFUSED + "q01_max_tokens",),
    "Q02": (REFUSED + "q02_max_completion_tokens_in_a_validation_list",),
    "Q03": (REFUSED + "q03_temperature",),
    "Q04": (REFUSED + "q04_seed_under_message_detail",),
    "Q05": (REFUSED + "q05_parallel_tool_calls",),
    "Q06": ("test_recipe.Requests.test_the_schema_is_closed_and_uses_no_keyword_that_servers_refuse",),
    "Q08": (REFUSED + "q08_forced_tool_and_thinking",),
    "Q09": ("test_cases.Requests.test_q09_extra_fields_stand_in_the_manifest_and_prose_stays_invalid",),
    "Q10": (REFUSED + "q10_response_format_in_an_error_that_is_a_string",),
    "Q11": ("test_cases.Requests.test_q11_a_schema_that_is_ignored_is_invalid_and_warned_about_once",),
    "Q13": ("test_providers.Addresses.test_q13_the_base_is_taken_literally_and_the_path_added_once",),
    "Q14": (REFUSED + "q14_h26_a_404_shows_the_address_and_is_not_tried_again",),
    "H01": ("test_client.TryingAgain.test_h01_429_without_a_time_waits_with_jitter",),
    "H02": (WAITS,),
    "H03": (WAITS,),
    "H04": ("test_client.TryingAgain.test_h04_a_wait_of_a_day_stops_and_says_how_to_go_on",),
    "H06": ("test_client.TryingAgain.test_h06_a_daily_quota_stops_at_once",),
    "H07": ("test_client.TryingAgain.test_h07_the_word_quota_alone_does_not_stop",),
    "H08": (AGAIN,),
    "H09": (AGAIN,),
    "H11": ("test_client.ErrorsInGoodReplies.test_h11_an_error_in_a_200_is_ruled_by_its_own_code",),
    "H12": (BROKEN,),
    "H14": (BROKEN,),
    "H15": (SILENT, "test_transport.TimeLimits.test_h15_silence_ends_with_the_time_of_one_operation"),
    "H16": (SILENT, "test_transport.TimeLimits.test_h16_bytes_now_and_then_do_not_hold_a_worker"),
    "H17": ("test_client.TryingAgain.test_h17_redirects_are_named_and_not_followed",),
    "H18": ("test_transport.Proxies.test_h18_this_machine_is_never_reached_through_a_proxy",),
    "H19": ("test_transport.Proxies.test_h19_the_library_decides_which_hosts_go_direct",),
    "H20": ("test_transport.Tls.test_h20_an_untrusted_certificate_is_a_fault_that_says_what_to_set",),
    "H21": (
        "test_transport.Connecting.test_h21_a_name_with_two_addresses_is_tried_at_both",
        "test_transport.Connecting.test_h21_a_refused_connection_names_the_place_and_nothing_was_sent",
    ),
    "H22": ("test_client.GoodReplies.test_h22_a_compressed_reply_is_read",),
    "H23": ("test_refusals.Words.test_h23_the_most_specific_words_are_found_in_every_shape",),
    "H24": (ROWS,),
    "H25": (ROWS,),
    "H26": (REFUSED + "q14_h26_a_404_shows_the_address_and_is_not_tried_again",),
    "H27": (AGAIN, "test_client.TryingAgain.test_h27_a_server_that_says_no_retry_is_obeyed"),
    "D01": (FIXTURE + "half_a_surrogate_pair_is_taken_and_written_again",),
    "D02": (FIXTURE + "a_nul_is_taken_with_a_warning_that_names_row_and_side",),
    "D03": (FIXTURE + "line_separators_inside_a_text_do_not_split_the_row",),
    "D04": (FIXTURE + "carriage_returns_and_blank_lines_between_rows_are_passed_over",),
    "D05": (FIXTURE + "a_byte_order_mark_is_dropped_at_the_start_only",),
    "D06": ("test_cases.Anywhere.test_d06_c08_ids_of_any_script_survive_a_plain_locale_and_a_foreign_code_page",),
    "D07": (FIXTURE + "bytes_that_are_not_utf_8_are_refused_with_line_and_byte",),
    "D08": (FIXTURE + "two_rows_with_one_id_are_refused_with_both_lines",),
    "D10": (FIXTURE + "all_faulty_lines_are_listed_with_id_and_field",),
    "D11": (
        FIXTURE + "an_empty_answer_is_taken_with_a_warning",
        "test_recipe.Requests.test_an_empty_answer_is_shown_as_empty_in_words",
    ),
    "D12": ("test_recipe.EveryKindOfReply.test_a_prompt_far_longer_than_the_tokens_counted_is_flagged",),
    "D13": ("test_recipe.Requests.test_an_answer_that_talks_to_the_judge_stays_inside_its_string",),
    "D15": (FIXTURE + "a_text_that_looks_like_a_key_stays_as_it_is",),
    "S01": ("test_cases.Figures.test_s01_one_label_everywhere_leaves_kappa_undefined_with_a_reason",),
    "S02": ("test_cases.Figures.test_s02_high_agreement_by_chance_is_kappa_zero_with_both_numbers",),
    "S03": ("test_cases.Figures.test_s03_an_equal_pair_is_half_a_win",),
    "S04": ("test_cases.Figures.test_s04_s06_a_pair_without_a_verdict_is_neither_win_nor_loss_nor_tie",),
    "S05": ("test_cases.Figures.test_s05_invalid_verdicts_stay_in_the_denominator",),
    "S06": ("test_cases.Figures.test_s04_s06_a_pair_without_a_verdict_is_neither_win_nor_loss_nor_tie",),
    "S07": ("test_cases.Figures.test_s07_s09_each_pair_of_choices_is_counted_as_what_it_is",),
    "S09": ("test_cases.Figures.test_s07_s09_each_pair_of_choices_is_counted_as_what_it_is",),
    "S10": ("test_cases.Figures.test_s10_choices_are_kept_as_shown_and_mapped_by_one_function",),
    "S11": ("test_cases.Figures.test_s11_votes_without_a_unique_plurality_are_no_consensus",),
    "S12": ("test_cases.Figures.test_s12_items_with_fewer_than_two_ratings_leave_pairwise_agreement",),
    "S14": ("test_cases.Figures.test_s14_agreement_by_vote_and_by_item_are_two_figures",),
    "S15": ("test_cases.Figures.test_s15_files_without_a_common_item_are_refused",),
    "S16": ("test_cases.Figures.test_s16_a_difference_is_over_the_items_both_judges_have",),
    "S17": ("test_cases.Kept.test_s17_a_stored_figure_or_choice_is_never_trusted",),
    "C01": ("test_endurance.Interrupted.test_ctrl_c_ends_soon_with_130_keeps_what_arrives_and_says_how_to_resume",),
    "C02": ("test_generate.ReadingTheJournal.test_of_two_lines_for_one_reply_the_first_counts_for_every_reader",),
    "C03": ("test_generate.Asking.test_failed_replies_are_asked_again_and_invalid_ones_are_kept",),
    "C04": ("test_cases.Kept.test_c04_c05_a_cut_journal_loses_its_last_line_and_nothing_else",),
    "C05": ("test_cases.Kept.test_c04_c05_a_cut_journal_loses_its_last_line_and_nothing_else",),
    "C06": ("test_cases.Kept.test_c06_every_reply_is_on_disk_before_the_next_is_asked_for",),
    "C07": ("test_endurance.Doubled.test_a_second_process_on_one_run_is_refused_and_the_first_ends_well",),
    "C08": ("test_cases.Anywhere.test_d06_c08_ids_of_any_script_survive_a_plain_locale_and_a_foreign_code_page",),
    "C09": ("test_cases.Anywhere.test_c09_a_reader_that_goes_away_is_no_error",),
    "C10": ("test_endurance.Failing.test_nothing_judged_gives_exit_3_with_the_counts",),
    "C12": ("test_endurance.Resumed.test_changed_inputs_are_refused_by_name_and_nothing_is_sent",),
}

# === Where we do otherwise ===

DECIDED: dict[str, str] = {
    "R24": "no option mines a tool call out of a text, live or later: the mode that was asked for was not "
    "honoured, and the hint and --probe name one that is",
    "R27": "no option recovers a verdict from the reasoning: what a model considers is not what it says",
    "R37": "comment lines before the JSON are no repair of the judge's words, so they are skipped without a mark",
    "R40": "an arm that names its model or provider stops at another one; without a rule every name is kept and "
    "several names are warned about",
    "Q03": "no sampling parameter is ever sent by run_eval.py, so there is no flag to leave it out; judge.py has one",
    "Q05": "parallel_tool_calls: false is part of the frozen request, as published; the hint names how to omit it",
    "H18": "a proxy's own refusal says that it was the proxy, in place of a list of status numbers",
    "D01": "files are UTF-8 with characters as they are; only a line with half a surrogate pair is written in escapes",
    "D12": "the flag is counted and warned about; no option turns it into an invalid verdict, since the limit is"
    " a guess",
    "D13": "no random delimiter: the pair travels as one JSON text, in which no answer can close its own string,"
    " and equal inputs make equal requests",
    "S07": "headline figures count a pair whose orders disagree as equal (the frozen rule); the four counts "
    "stand beside it under position consistency",
    "S11": "people's votes need a unique plurality, repeats of a judge a plurality with draws as equal: the "
    "published rules",
    "S14": "gold is one label per item; agreement vote by vote is its own table for evaluations that have raw votes",
    "S15": "exit code 3, the code for what could not run; 2 is for usage alone; the ids of each file are listed",
    "C04": "replies are kept in a plain text journal until a run is complete; the gzip file is written whole and"
    " renamed, so a cut one is damage that is named and refused, not read in part",
    "C05": "see C04: nothing is ever appended to a gzip file",
    "C07": "exit code 3, the code for what could not run; 2 is for usage alone",
    "C08": "the tool's own text is UTF-8 with backslash escapes for what cannot be printed, whatever the locale says",
    "C12": "--resume takes the judges from the run itself, so no other model can be given; changed inputs are "
    "refused by name",
}
