//! Why a property exists that is not the only one to catch something.

/// Why the property of this name exists, if it is not needed to catch a wrong store (see
/// [`Matrix::is_needed`](crate::wrong::Matrix::is_needed)): a sentence to argue with. Without
/// either, it is to be deleted.
pub fn reason_to_exist(name: &str) -> Option<&'static str> {
    REASONS.iter().find(|(names, _)| names.contains(&name)).map(|(_, reason)| *reason)
}

const REASONS: &[(&[&str], &str)] = &[
    (
        &[
            "one_effect::hundred_callers_have_one_effect",
            "one_effect::waiting_retry_is_given_the_first_answer",
            "one_effect::rejected_retry_is_told_in_progress",
            "one_effect::result_cache_has_the_effect_twice",
            "one_effect::reused_key_is_refused",
            "one_effect::failed_action_runs_again",
            "one_effect::final_error_is_given_again",
            "one_effect::dead_worker_is_taken_over",
            "one_effect::unknown_outcome_is_refused",
            "one_effect::waiter_ends_with_a_completion",
            "one_effect::waiter_ends_with_a_release",
            "one_effect::waiter_ends_when_the_holder_gives_up",
            "one_effect::waiter_ends_with_its_patience",
            "one_effect::action_outlives_its_caller",
            "one_effect::late_owner_gives_the_winners_answer",
            "one_effect::trouble_with_one_call_costs_no_second_effect",
            "one_effect::lost_hints_leave_nobody_waiting",
            "one_effect::failed_completion_is_made_good",
            "one_effect::hanging_store_fails_open",
            "one_effect::unreadable_answer_is_not_run_again",
        ],
        "the laws are worth what they add up to: here the coordinator and the store are seen to \
         keep the promise together",
    ),
    (
        &[
            "l1_repeatable::lost_reply_to_reserve_is_recovered",
            "l1_repeatable::lost_reply_to_renew_is_recovered",
            "l1_repeatable::lost_reply_to_complete_is_recovered",
            "l1_repeatable::lost_reply_to_release_is_recovered",
            "l9_errors::fault_passes",
        ],
        "with a real fault it tries the client and the connection, which a repeat does not",
    ),
    (
        &[
            "l1_repeatable::repeated_reserve_answers_with_the_same_lease",
            "l1_repeatable::repeated_reserve_does_not_extend_the_lease",
            "l1_repeatable::repeated_complete_is_ok",
            "l1_repeatable::repeated_renew_is_ok",
            "l2_free::first_attempt_acquires",
            "l2_free::pending_key_mismatches_another_request",
            "l2_free::abandoned_key_mismatches_another_request",
            "l2_free::ended_lease_is_taken_over",
            "l2_free::takeovers_are_counted",
            "l2_free::released_key_is_free_for_any_request",
            "l2_free::completed_key_is_never_taken",
            "l5_ends_not_voids::ended_lease_completes",
            "l5_ends_not_voids::ended_lease_renews",
            "l5_ends_not_voids::abandoned_lease_completes",
            "l6_first_completion::second_completion_changes_nothing",
            "l6_first_completion::every_later_attempt_replays",
            "l7_store_clock::left_counts_down",
            "l7_store_clock::lease_ends_on_time",
            "renewal::renewed_lease_holds_on",
            "renewal::renewed_lease_ends",
            "renewal::zero_ends_the_lease_now",
            "hints::completion_is_hinted_at",
            "hints::giving_up_is_hinted_at",
        ],
        "it is the sentence of the contract itself; others break only as a consequence, and the \
         first failure to read should say what is wrong",
    ),
    (
        &["l3_fence::fence_grows_across_a_purge", "upkeep::purge_keeps_who_released"],
        "a store may keep the fence apart from who released the key, and forget only one of them",
    ),
    (
        &[
            "l4_fenced::fence_alone_does_not_make_a_holder",
            "l4_fenced::lease_holds_its_own_key_only",
        ],
        "fences of two keys differ on a clock that moves, and are the same on one that does not: \
         there one property stands for both, elsewhere each has its own",
    ),
    (
        &["l7_store_clock::client_ahead_takes_nothing"],
        "a store may judge and write by different clocks; this is the judging",
    ),
    (
        &["keys::operations_are_apart"],
        "parts that run together are another fault than a part that is missing",
    ),
    (
        &[
            "limits::wrong_renewal_is_refused",
            "limits::wrong_retention_of_a_completion_is_refused",
            "limits::wrong_durations_are_refused_first",
        ],
        "refused at all, and refused before any work, are two promises",
    ),
    (
        &[
            "retention::retention_counts_from_completion",
            "retention::completion_is_forgotten_after_its_retention",
            "retention::completion_has_its_own_retention",
            "retention::abandoned_record_is_kept_for_its_retention",
        ],
        "it takes a minute on a real clock, and others that catch the same take hours or years",
    ),
    (
        &[
            "races::one_of_many_racers_acquires",
            "races::one_of_many_racers_takes_over",
            "races::one_of_many_racers_acquires_after_a_release",
            "races::racing_requests_do_not_mix",
            "races::completion_meets_takeover",
            "races::renewal_meets_takeover",
            "races::release_meets_takeover",
            "races::one_of_many_completions_stands",
            "races::one_attempt_sent_many_times_is_one",
            "races::reserve_does_not_wait",
        ],
        "another pair of verbs that meet, so another statement of a store in SQL or Lua; in a \
         table in memory all are one step, or none is",
    ),
    (
        &["hints::watch_is_subscribed_when_it_returns"],
        "a subscription that takes effect late is missed only sometimes; it is tried many times",
    ),
    (
        &[
            "upkeep::full_store_refuses",
            "upkeep::full_store_keeps_reservations",
            "upkeep::full_store_keeps_completions",
        ],
        "what a full store does to new keys, to held ones and to answers are three decisions",
    ),
    (
        &["upkeep::handles_see_one_truth"],
        "the races run on one handle if there is no other; this one says so",
    ),
    (
        &[
            "history::random_runs_agree_with_the_model",
            "history::random_runs_in_time_agree_with_the_model",
            "history::concurrent_histories_are_linearizable",
            "history::histories_with_lost_replies_are_linearizable",
        ],
        "it looks for what no property has a sentence for yet",
    ),
];
