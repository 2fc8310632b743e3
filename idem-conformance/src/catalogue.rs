//! The one list of the properties.

use std::fmt;
use std::pin::Pin;

use crate::failure::Verdict;
use crate::harness::Hook;
use crate::lab::Lab;
use crate::law::{Law, Level};

/// One sentence of the contract, and how it is tried.
pub struct Property {
    /// Its name: the theme and the sentence, as in `l6_first_completion::ended_lease_completes`.
    pub name: &'static str,
    /// The law that it belongs to.
    pub law: Law,
    /// What it asks of the harness, and how much it shows.
    pub level: Level,
    /// The hooks without which it is skipped, time apart.
    pub needs: &'static [Hook],
    pub(crate) run: fn(Lab) -> Running,
}

/// A property that is being tried.
pub(crate) type Running = Pin<Box<dyn Future<Output = Verdict> + Send>>;

impl Property {
    /// Every property, in the order of the laws.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// The property of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|property| property.name == name)
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Property")
            .field("name", &self.name)
            .field("law", &self.law)
            .field("level", &self.level)
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}

macro_rules! list {
    ($($module:ident ($law:ident) {
        $($level:ident $name:ident [$($hook:ident)*];)+
    })+) => {
        const ALL: &[Property] = &[$($(
            Property {
                name: concat!(stringify!($module), "::", stringify!($name)),
                law: Law::$law,
                level: Level::$level,
                needs: &[$(Hook::$hook),*],
                run: |lab| Box::pin(crate::properties::$module::$name(lab)),
            },
        )+)+];
    };
}

/// Calls `$then!` with every property: theme (law) { level name [hooks it needs]; }
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_property {
    ([$($then:tt)+] $($args:tt)*) => {
        $($then)+! { $($args)*
            l1_repeatable (Repeatable) {
                Core repeated_reserve_answers_with_the_same_lease [];
                Time repeated_reserve_does_not_extend_the_lease [];
                Time repeated_reserve_shows_its_own_ended_lease [];
                Core repeated_takeover_counts_once [];
                Core reserve_repeated_after_completion_replays [];
                Core repeated_complete_is_ok [];
                Core repeated_release_is_ok [];
                Core repeated_renew_is_ok [];
                Core repeated_abandoning_is_ok [];
                Core released_attempt_does_not_return [];
                Core late_release_leaves_the_next_holder_alone [];
                Faults lost_reply_to_reserve_is_recovered [];
                Faults lost_reply_to_renew_is_recovered [];
                Faults lost_reply_to_complete_is_recovered [];
                Faults lost_reply_to_release_is_recovered [];
            }
            l2_free (Free) {
                Core first_attempt_acquires [];
                Core free_key_needs_no_right_to_take_over [];
                Core held_key_is_in_progress [];
                Core losing_attempt_changes_nothing [];
                Core pending_key_mismatches_another_request [];
                Core completed_key_mismatches_another_request [];
                Core abandoned_key_mismatches_another_request [];
                Time ended_lease_is_taken_over [];
                Core abandoned_key_is_left_to_those_who_may_take_over [];
                Core takeovers_are_counted [];
                Core taken_over_attempt_waits_like_anyone [];
                Core released_key_is_free_for_any_request [];
                Time completed_key_is_never_taken [];
            }
            l3_fence (Fence) {
                Core fence_grows_by_takeover [];
                Core fence_grows_across_a_release [];
                Time fence_grows_past_the_retention [];
                Faults fence_grows_across_a_purge [Purge];
                Faults fence_grows_across_a_restart [Restart];
            }
            l4_fenced (Fenced) {
                Core taken_over_holder_can_write_nothing [];
                Core late_owner_cannot_replace_the_answer [];
                Core fence_alone_does_not_make_a_holder [];
                Core id_alone_makes_a_holder [];
                Core nobody_holds_a_free_key [];
                Core lease_holds_its_own_key_only [];
                Core completed_lease_is_over [];
                Core released_lease_is_over [];
            }
            l5_ends_not_voids (EndsNotVoids) {
                Time ended_lease_completes [];
                Time ended_lease_renews [];
                Time ended_lease_releases [];
                Core abandoned_lease_completes [];
                Core abandoned_lease_renews [];
                Core refused_takeover_leaves_the_holder [];
            }
            l6_first_completion (FirstCompletion) {
                Core second_completion_changes_nothing [];
                Time second_completion_does_not_lengthen_the_retention [];
                Time second_completion_does_not_shorten_the_retention [];
                Core every_later_attempt_replays [];
                Core completion_keeps_who_completed [];
            }
            l7_store_clock (StoreClock) {
                Time client_ahead_takes_nothing [Skewed];
                Time client_behind_is_not_cut_short [Skewed];
                Time skewed_clients_see_the_same_end [Skewed];
                Time left_counts_down [];
                Time lease_lives_to_its_last_moment [Advance];
                Time lease_ends_on_time [];
            }
            l8_unreadable (Unreadable) {
                Faults garbage_is_corrupt [Corrupt];
                Faults truncated_record_is_corrupt [Corrupt];
                Faults newer_format_is_corrupt [Corrupt];
                Faults foreign_type_is_corrupt [Corrupt];
                Faults purge_keeps_a_damaged_record [Purge Corrupt];
            }
            l9_errors (Errors) {
                Faults failed_reserve_is_no_grant [FailNext];
                Faults failed_complete_is_said [FailNext];
                Faults failed_renew_is_said [FailNext];
                Faults failed_release_is_said [FailNext];
                Faults applied_is_never_said_to_be_not_applied [FailNext];
                Faults fault_passes [FailNext];
            }
            keys (Keys) {
                Core case_counts [];
                Core spaces_count [];
                Core nul_does_not_end_a_key [];
                Core normal_forms_differ [];
                Core falsy_texts_are_keys [];
                Core injections_are_only_text [];
                Core long_keys_are_whole [];
                Core long_scopes_are_whole [];
                Core operations_are_apart [];
                Core tenants_are_apart [];
                Core parts_do_not_run_together [];
                Core many_keys_do_not_collide [];
            }
            payloads (Payloads) {
                Core every_byte_comes_back [];
                Core empty_payload_comes_back [];
                Core payload_is_not_interpreted [];
                Core mebibyte_comes_back [];
                Core mismatch_carries_no_payload [];
            }
            limits (Limits) {
                Core limits_themselves_are_taken [];
                Core zero_lease_is_refused [];
                Core wrong_lease_is_refused [];
                Core wrong_retention_of_an_attempt_is_refused [];
                Core wrong_renewal_is_refused [];
                Core wrong_retention_of_a_completion_is_refused [];
                Core wrong_durations_are_refused_first [];
            }
            retention (Retention) {
                Time retention_counts_from_completion [];
                Time retention_counts_from_a_late_completion [];
                Time completion_is_forgotten_after_its_retention [];
                Time completion_has_its_own_retention [];
                Time longest_retention_is_kept [];
                Time abandoned_record_is_kept_for_its_retention [];
                Time holder_past_the_retention_has_lost_its_lease [];
                Time renewing_moves_the_retention [];
                Time giving_up_moves_the_retention [];
                Time takeover_has_its_own_retention [];
            }
            renewal (Renewal) {
                Time renewed_lease_holds_on [];
                Time renewed_lease_ends [];
                Core renewing_answers_with_what_is_left [];
                Time renewing_never_shortens [];
                Core renewing_changes_nothing_else [];
                Core zero_ends_the_lease_now [];
                Time zero_does_not_revive_an_ended_lease [];
            }
            races (Free) {
                Core one_of_many_racers_acquires [];
                Core one_of_many_racers_takes_over [];
                Core one_of_many_racers_acquires_after_a_release [];
                Core racing_requests_do_not_mix [];
                Core completion_meets_takeover [];
                Core renewal_meets_takeover [];
                Core release_meets_takeover [];
                Core one_of_many_completions_stands [];
                Core one_attempt_sent_many_times_is_one [];
                Core reserve_does_not_wait [];
            }
            hints (Hints) {
                Core completion_is_hinted_at [Watch];
                Core release_is_hinted_at [Watch];
                Core giving_up_is_hinted_at [Watch];
                Core watch_is_subscribed_when_it_returns [Watch];
                Core every_watcher_is_woken [Watch];
                Core watch_goes_on [Watch];
                Core watches_of_two_keys_are_apart [Watch];
                Core watching_changes_nothing [Watch];
            }
            upkeep (Upkeep) {
                Faults purge_keeps_a_live_reservation [Purge];
                Faults purge_keeps_an_abandoned_reservation [Purge];
                Faults purge_keeps_a_completion [Purge];
                Faults purge_keeps_who_released [Purge];
                Faults purge_meets_reserve [Purge];
                Faults full_store_refuses [Bounded];
                Faults full_store_keeps_reservations [Bounded];
                Faults full_store_keeps_completions [Bounded];
                Faults full_store_serves_the_keys_it_has [Bounded];
                Faults full_store_has_room_after_a_retention [Bounded];
                Faults restart_keeps_what_was_acknowledged [Restart];
                Core handles_see_one_truth [Fork];
            }
            one_effect (OneEffect) {
                Coordinator hundred_callers_have_one_effect [];
                Coordinator waiting_retry_is_given_the_first_answer [];
                Coordinator rejected_retry_is_told_in_progress [];
                Coordinator result_cache_has_the_effect_twice [];
                Coordinator reused_key_is_refused [];
                Coordinator failed_action_runs_again [];
                Coordinator final_error_is_given_again [];
                Coordinator dead_worker_is_taken_over [];
                Coordinator unknown_outcome_is_refused [];
                Coordinator waiter_ends_with_a_completion [];
                Coordinator waiter_ends_with_a_release [];
                Coordinator waiter_ends_when_the_holder_gives_up [];
                Coordinator waiter_ends_with_its_patience [];
                Coordinator action_outlives_its_caller [];
                Coordinator late_owner_gives_the_winners_answer [];
                Coordinator trouble_with_one_call_costs_no_second_effect [];
                Coordinator lost_hints_leave_nobody_waiting [];
                Coordinator failed_completion_is_made_good [];
                Coordinator hanging_store_fails_open [];
                Coordinator unreadable_answer_is_not_run_again [];
            }
            history (All) {
                History random_runs_agree_with_the_model [];
                History random_runs_in_time_agree_with_the_model [Advance];
                History concurrent_histories_are_linearizable [];
                History histories_with_lost_replies_are_linearizable [];
            }
        }
    };
}

for_each_property! { [list] }
