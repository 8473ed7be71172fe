//! The rules as a reader would tell them; their exact limits are in `boundaries`.

mod boundaries;

use self::boundaries::{DEFAULTS, MS, options};
use super::*;

#[test]
fn a_dead_store_is_reported_after_the_longer_of_wait_and_command_timeout() {
    let start = Instant::now();
    let budget = |wait| Budget::new(start, wait, &DEFAULTS);
    assert_eq!(
        budget(Wait::For(Duration::ZERO)).give_up_at(None),
        start + 500 * MS
    );
    assert_eq!(
        budget(Wait::For(3000 * MS)).give_up_at(Some(start + 2000 * MS)),
        start + 3000 * MS
    );
    assert_eq!(budget(Wait::Forever).give_up_at(None), start + 10_000 * MS);
    assert_eq!(
        budget(Wait::Forever).give_up_at(Some(start + 60_000 * MS)),
        start + 70_000 * MS
    );
    let short = budget(Wait::For(3000 * MS));
    assert_eq!(
        short.command_by(start + 2900 * MS, short.give_up_at(None)),
        start + 3000 * MS
    );
}

#[test]
fn the_last_recheck_leaves_time_for_a_command() {
    let start = Instant::now();
    let last = |wait: Duration| Budget::new(start, Wait::For(wait), &DEFAULTS).last_recheck();
    assert_eq!(last(3000 * MS), Some(start + 2500 * MS));
    assert_eq!(last(400 * MS), Some(start + 200 * MS));
}

#[test]
fn a_waiter_looks_again_when_the_lease_ends_or_after_a_second() {
    let sent = Instant::now();
    assert_eq!(next_recheck(sent, None), sent + 1000 * MS);
    assert_eq!(next_recheck(sent, Some(30_000 * MS)), sent + 1000 * MS);
    assert_eq!(next_recheck(sent, Some(300 * MS)), sent + 301 * MS);
    assert_eq!(next_recheck(sent, Some(Duration::ZERO)), sent + 10 * MS);
}

#[test]
fn a_hand_over_is_trusted_only_as_far_as_the_last_word_of_the_store_reaches() {
    let confirmed = Instant::now();
    let until = confirmed + trusted(2000 * MS);
    assert_eq!(
        handed_over_deadline(confirmed + 1000 * MS, confirmed, 30_000 * MS),
        Some(until)
    );
    assert_eq!(
        handed_over_deadline(confirmed + 1600 * MS, confirmed, 30_000 * MS),
        None
    );
    assert_eq!(
        handed_over_deadline(confirmed + 90 * MS, confirmed, 100 * MS),
        None
    );
}

#[test]
fn what_is_handed_off_has_enough_left_and_no_more_than_its_own_lease() {
    let now = Instant::now();
    let lease = 30_000 * MS;
    let (renewed, fixed) = (options(lease, true), options(lease, false));
    let whole = now + trusted(lease);
    let passed = |until, options| handed_off_renewal(now, until, false, options);
    let fresh = |left: u32, options| handed_off_renewal(now, now + left * MS, true, options);
    assert_eq!(passed(whole, &renewed), Some(Some(now + lease / 3)));
    assert_eq!(passed(whole, &fixed), Some(None));
    let used = whole - 4000 * MS;
    let soon = now + lease / 3 - 4000 * MS;
    assert_eq!(passed(used, &renewed), Some(Some(soon)));
    assert_eq!(passed(now + trusted(lease) / 2 - MS, &renewed), None);
    assert_eq!(passed(whole - 290 * MS, &fixed), Some(None));
    assert_eq!(passed(whole - 310 * MS, &fixed), None);
    // Right after a hand-over by the store.
    for options in [&renewed, &fixed] {
        assert_eq!(fresh(1600, options), Some(Some(now + 200 * MS)));
        assert_eq!(fresh(900, options), None);
        assert_eq!(passed(whole + MS, options), None);
    }
    let short = options(500 * MS, true);
    assert_eq!(fresh(200, &short), None);
    assert!(fresh(300, &short).is_some());
}

#[test]
fn the_last_renewal_ends_at_max_hold() {
    let now = Instant::now();
    assert_eq!(renewal_lease(now, 30_000 * MS, None), Some(30_000 * MS));
    assert_eq!(
        renewal_lease(now, 30_000 * MS, Some(now + 5000 * MS)),
        Some(5000 * MS)
    );
    assert_eq!(renewal_lease(now, 30_000 * MS, Some(now + 9 * MS)), None);
}
