//! A checker that finds nothing wrong with a wrong lock is wrong itself. Each deliberate mistake of
//! the server is found, by a named check. Those of the engine are in the package `lock-mistakes`.

use crate::run::first_found;
use crate::world::Check;
use crate::wrong::Mistake;

/// One of that many seeds shows every mistake.
const ENOUGH: u64 = 1000;

#[track_caller]
fn is_found(mistake: Mistake, by: Check) {
    match first_found(0..ENOUGH, Some(mistake), by) {
        Some(seed) => println!("{mistake:?} is found by {by:?} with seed {seed}"),
        None => panic!("{ENOUGH} seeds do not find {mistake:?} by {by:?}"),
    }
}

#[test]
fn a_release_without_owner_check_is_found_by_exclusion() {
    is_found(Mistake::ReleasesWithoutOwnerCheck, Check::Exclusion);
}

#[test]
fn a_renewal_that_sets_the_key_is_found_by_what_losers_learn() {
    is_found(Mistake::RenewsBySetting, Check::LoserLearns);
}

#[test]
fn a_renewal_of_what_is_gone_is_found_by_what_losers_learn() {
    is_found(Mistake::RenewsWhatIsGone, Check::LoserLearns);
}

#[test]
fn tokens_from_a_plain_counter_are_found_by_tokens() {
    is_found(Mistake::PlainCounter, Check::Tokens);
}

#[test]
fn tokens_from_a_plain_counter_are_found_by_stale_writes() {
    is_found(Mistake::PlainCounter, Check::StaleWrite);
}

#[test]
fn tokens_that_are_given_again_are_found_by_tokens() {
    is_found(Mistake::RepeatsTokens, Check::Tokens);
}

#[test]
fn a_grant_that_is_trusted_past_its_lease_is_found_by_exclusion() {
    is_found(Mistake::GrantsForTooShort, Check::Exclusion);
}

#[test]
fn an_unknown_outcome_that_is_not_undone_is_found_by_leftovers() {
    is_found(Mistake::NeverUndoes, Check::Leftover);
}

#[test]
fn a_place_that_is_not_given_up_is_found_by_leftovers() {
    is_found(Mistake::LeavesThePlace, Check::Leftover);
}

#[test]
fn a_hand_over_to_two_is_found_by_exclusion() {
    is_found(Mistake::HandsOverToTwo, Check::Exclusion);
}

#[test]
fn a_reply_that_two_get_is_found_by_exclusion() {
    is_found(Mistake::RepliesToAnother, Check::Exclusion);
}

#[test]
fn one_permit_too_many_is_found_by_exclusion() {
    is_found(Mistake::OnePermitTooMany, Check::Exclusion);
}

#[test]
fn a_writer_beside_readers_is_found_by_exclusion() {
    is_found(Mistake::WritesBesideReaders, Check::Exclusion);
}

#[test]
fn holds_of_a_half_moved_slot_that_are_renewed_only_together_are_found_by_their_loss() {
    is_found(Mistake::RenewsOnlyTogether, Check::Loss);
}

#[test]
fn an_acquire_that_does_not_tell_those_behind_it_is_found_by_the_waiting() {
    is_found(Mistake::ServesThoseBehindSilently, Check::Waiting);
}
