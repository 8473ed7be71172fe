//! Each rule, also exactly at its limit.

use super::*;

const MS: Duration = Duration::from_millis(1);
const NANO: Duration = Duration::from_nanos(1);
const DEFAULTS: Defaults = Defaults::STANDARD;

fn budget(started: Instant, wait: Wait) -> Budget {
    Budget::new(started, wait, &DEFAULTS)
}

fn options(lease: Duration, renew: bool) -> Resolved {
    Resolved {
        lease,
        renew,
        max_hold: Some(5000 * MS),
        wait: Wait::Forever,
        fair: false,
        permits: None,
        reentrant: true,
        hold_at_least: Duration::ZERO,
        hold_after: crate::config::HoldAfter::Always,
        fenced: false,
        leads: false,
        is_part: false,
    }
}

#[test]
fn only_a_wait_of_zero_is_none() {
    let start = Instant::now();
    assert!(!budget(start, Wait::For(Duration::ZERO)).may_wait());
    assert!(budget(start, Wait::For(NANO)).may_wait());
    assert!(budget(start, Wait::Forever).may_wait());
}

#[test]
fn a_wait_ends_after_its_time_or_never() {
    let start = Instant::now();
    let three = budget(start, Wait::For(3000 * MS));
    assert_eq!(three.end(), Some(start + 3000 * MS));
    assert_eq!(budget(start, Wait::Forever).end(), None);
    assert_eq!(budget(start, Wait::Forever).last_recheck(), None);
}

#[test]
fn a_dead_store_is_reported_after_the_longer_of_wait_and_command_timeout() {
    let start = Instant::now();
    let at = |ms: u32| start + ms * MS;
    let gives_up = |wait, answered| budget(start, wait).latest_end(answered);
    assert_eq!(gives_up(Wait::For(Duration::ZERO), None), at(500));
    let three = Wait::For(3000 * MS);
    assert_eq!(gives_up(three, Some(at(2000))), at(3000));
    assert_eq!(gives_up(Wait::Forever, None), at(10_000));
    assert_eq!(gives_up(Wait::Forever, Some(at(60_000))), at(70_000));
}

#[test]
fn a_silent_store_is_not_dead_before_a_commands_time() {
    let start = Instant::now();
    let hasty = Defaults {
        wait: 100 * MS,
        ..DEFAULTS
    };
    let budget = Budget::new(start, Wait::Forever, &hasty);
    assert_eq!(budget.latest_end(None), start + 500 * MS);
    // What was answered before the request began is not news.
    assert_eq!(budget.latest_end(Some(start - 200 * MS)), start + 500 * MS);
}

#[test]
fn a_command_has_its_own_time_as_long_as_the_request_has_it() {
    let start = Instant::now();
    let budget = budget(start, Wait::For(3000 * MS));
    let by = |sent: u32| budget.command_by(start + sent * MS, budget.latest_end(None)) - start;
    assert_eq!(
        [0, 2500, 2501, 2900].map(by),
        [500, 3000, 3000, 3000].map(|ms| ms * MS)
    );
}

#[test]
fn a_command_with_less_than_nine_tenths_of_its_time_is_cut() {
    let start = Instant::now();
    let budget = budget(start, Wait::For(3000 * MS));
    let sent = start + 2000 * MS;
    assert!(!budget.is_cut(sent, sent + 500 * MS));
    assert!(!budget.is_cut(sent, sent + 450 * MS));
    assert!(budget.is_cut(sent, sent + 450 * MS - NANO));
}

#[test]
fn the_last_recheck_leaves_time_for_a_command_and_comes_half_way_through_a_short_wait() {
    let start = Instant::now();
    let last = |wait: Duration| budget(start, Wait::For(wait)).last_recheck();
    for (wait, expected) in [
        (400, 200),
        (900, 450),
        (1000, 500),
        (3000, 2500),
        (10_000, 9500),
    ] {
        assert_eq!(last(wait * MS), Some(start + expected * MS), "{wait}");
    }
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
fn a_handed_over_lease_is_two_seconds_at_most() {
    assert_eq!(first_lease(30_000 * MS), 2000 * MS);
    assert_eq!(first_lease(1999 * MS), 1999 * MS);
}

#[test]
fn a_lease_is_trusted_a_hundredth_and_two_milliseconds_less() {
    let sent = Instant::now();
    assert_eq!(deadline(sent, 30_000 * MS), sent + 29_698 * MS);
    assert_eq!(
        deadline(sent, 10 * MS),
        sent + 7900 * Duration::from_micros(1)
    );
}

#[test]
fn a_hand_over_with_a_quarter_of_its_first_lease_left_is_confirmed_first() {
    let confirmed = Instant::now();
    let until = confirmed + trusted(2000 * MS);
    assert_eq!(until, confirmed + 1978 * MS);
    let at = |now| handed_over_deadline(now, confirmed, 30_000 * MS);
    assert_eq!(at(confirmed + 1000 * MS), Some(until));
    assert_eq!(at(until - 500 * MS - NANO), Some(until));
    assert_eq!(at(until - 500 * MS), None);
    assert_eq!(
        handed_over_deadline(confirmed + 90 * MS, confirmed, 100 * MS),
        None
    );
}

#[test]
fn the_rest_of_a_handed_over_lease_is_asked_for_after_an_eighth_of_what_is_left() {
    let now = Instant::now();
    assert_eq!(handed_over_renewal(now, now + 800 * MS), now + 100 * MS);
    assert_eq!(handed_over_renewal(now + MS, now), now + MS);
}

#[test]
fn what_is_handed_off_has_enough_left_and_no_more_than_the_whole() {
    let now = Instant::now();
    let lease = 30_000 * MS;
    let whole = trusted(lease);
    let left = |left, fresh, renew| {
        handed_off_renewal(now, now + left, fresh, None, &options(lease, renew))
    };
    // Of a hand-over by the store, whose rest was not asked for yet: half of a first lease.
    for renew in [true, false] {
        assert_eq!(left(1000 * MS, true, renew), Some(Some(now + 125 * MS)));
        assert_eq!(left(1000 * MS - NANO, true, renew), None);
        assert_eq!(left(whole + NANO, true, renew), None);
    }
    let of_short = |left| handed_off_renewal(now, now + left, true, None, &options(500 * MS, true));
    assert!(of_short(200 * MS).is_none() && of_short(300 * MS).is_some());
    // Of one that is renewed: half.
    assert_eq!(left(whole / 2, false, true), Some(Some(now)));
    assert_eq!(left(whole / 2 - NANO, false, true), None);
    assert_eq!(left(whole, false, true), Some(Some(now + lease / 3)));
    let used = 4000 * MS;
    assert_eq!(
        left(whole - used, false, true),
        Some(Some(now + lease / 3 - used))
    );
    assert_eq!(left(whole + NANO, false, true), None);
    // Of a fixed lease: all but a hundredth.
    assert_eq!(left(whole, false, false), Some(None));
    assert_eq!(left(whole + NANO, false, false), None);
    assert_eq!(left(whole - lease / 100, false, false), Some(None));
    assert_eq!(left(whole - lease / 100 - NANO, false, false), None);
}

/// As one that is renewed, whose lease is as long as its store allows.
#[test]
fn what_is_handed_off_where_its_store_is_trusted_for_less_has_half_of_that() {
    let now = Instant::now();
    let left = |left, lease, renew| {
        let (until, allowed) = (now + left, Some(6000 * MS));
        handed_off_renewal(now, until, false, allowed, &options(lease, renew))
    };
    for renew in [true, false] {
        let left = |milliseconds: u32| left(milliseconds * MS, 30_000 * MS, renew);
        assert_eq!(left(6000), Some(Some(now + 2000 * MS)));
        assert_eq!(left(5000), Some(Some(now + 1000 * MS)));
        assert_eq!(left(3000), Some(Some(now)));
        assert_eq!(left(2999), None);
    }
    // A lease that is shorter than that is as it is everywhere.
    let whole = trusted(1000 * MS);
    assert_eq!(left(whole, 1000 * MS, false), Some(None));
    assert_eq!(left(whole - 11 * MS, 1000 * MS, false), None);
    assert_eq!(left(whole + MS, 1000 * MS, true), None);
}

#[test]
fn a_request_awaits_a_handoff_for_a_tenure_or_a_quarter_of_its_wait() {
    let start = Instant::now();
    let awaits = |wait, now| handoff_wait_end(now, &budget(start, wait), &DEFAULTS);
    assert_eq!(awaits(Wait::Forever, start + MS), start + 11 * MS);
    assert_eq!(awaits(Wait::For(1000 * MS), start + MS), start + 11 * MS);
    assert_eq!(awaits(Wait::For(20 * MS), start), start + 5 * MS);
    assert_eq!(awaits(Wait::For(20 * MS), start + 12 * MS), start + 14 * MS);
}

#[test]
fn a_hold_is_renewed_at_a_third_of_its_lease() {
    let sent = Instant::now();
    let at = |until| renewal_at(sent, 30_000 * MS, until);
    assert_eq!(at(None), sent + 10_000 * MS);
    assert_eq!(at(Some(sent + 6_000 * MS)), sent + 2_000 * MS);
    assert_eq!(at(Some(sent + 60_000 * MS)), sent + 10_000 * MS);
}

#[test]
fn the_rest_of_a_fixed_lease_is_asked_for_after_a_third_of_what_can_be_trusted() {
    let now = Instant::now();
    assert_eq!(rest_at(now, now + 6_000 * MS), now + 2_000 * MS);
    assert_eq!(rest_at(now + MS, now), now + MS);
    let rest = |left| renewal_lease(now, 10_000 * MS, false, Some(now + left));
    assert_eq!(rest(4_000 * MS), Some(4_000 * MS));
    assert_eq!(rest(MIN_LEASE - NANO), None);
    // After an extension.
    assert_eq!(rest(60_000 * MS), Some(60_000 * MS));
}

#[test]
fn a_hold_is_trusted_to_its_end_but_for_the_part_of_a_lease_that_is_never_trusted() {
    let (now, asked) = (Instant::now(), 10_000 * MS);
    let is_to_end = |left| is_to_end(now + left, asked, Some(now + asked));
    assert!(is_to_end(trusted(asked)) && is_to_end(asked - 215 * MS));
    assert!(!is_to_end(asked - 216 * MS));
    assert!(!super::is_to_end(now, asked, None));
}

#[test]
fn a_failed_renewal_is_tried_again_after_a_twentieth_of_the_lease_at_most() {
    let now = Instant::now();
    let before = |left, lease, failures| renewal_retry_at(now, lease, now + left, failures) - now;
    let again = |lease, failures| before(lease, lease, failures);
    assert_eq!(again(30_000 * MS, 1), 50 * MS);
    assert_eq!(again(30_000 * MS, 3), 200 * MS);
    assert_eq!(again(30_000 * MS, 9), 1500 * MS);
    assert_eq!(again(600 * MS, 3), 30 * MS);
    assert_eq!(again(10 * MS, 1), MS);
    assert_eq!(before(1148 * MS, 30_000 * MS, 11), 574 * MS);
    assert_eq!(before(MS, 30_000 * MS, 11), 50 * MS);
}

#[test]
fn a_renewal_has_a_third_of_what_the_first_of_its_holds_has_left() {
    let sent = Instant::now();
    let by = |left: &[u32]| {
        let deadlines = left.iter().map(|left| sent + *left * MS);
        renewal_by(sent, deadlines, 500 * MS) - sent
    };
    assert_eq!(by(&[3000, 600, 900]), 200 * MS);
    assert_eq!(by(&[3000]), 500 * MS);
    assert_eq!(by(&[]), 500 * MS);
    // A third of a command's time at least, and all of it where there is no time for two.
    assert_eq!(by(&[450]), 500 * MS / 3);
    assert_eq!(by(&[334]), 500 * MS / 3);
    assert_eq!(by(&[333]), 333 * MS);
    assert_eq!(by(&[6]), 6 * MS);
    assert_eq!(by(&[4]), 5 * MS);
}

#[test]
fn the_last_renewal_ends_at_max_hold_and_asks_for_the_shortest_lease_at_least() {
    let now = Instant::now();
    assert_eq!(
        renewal_lease(now, 30_000 * MS, true, None),
        Some(30_000 * MS)
    );
    let left = |left| renewal_lease(now, 30_000 * MS, true, Some(now + left));
    assert_eq!(left(MIN_LEASE), Some(MIN_LEASE));
    assert_eq!(left(MIN_LEASE - NANO), None);
    assert_eq!(left(5000 * MS), Some(5000 * MS));
    assert_eq!(left(40_000 * MS), Some(30_000 * MS));
}

#[test]
fn back_off_doubles_from_fifty_milliseconds_to_two_seconds() {
    let pauses = [0, 1, 2, 3, 4, 5, 6, 7, 8, 17, 18, u32::MAX].map(backoff);
    let expected = [
        50, 50, 100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000, 2000,
    ];
    assert_eq!(pauses, expected.map(|pause| pause * MS));
}

#[test]
fn each_failure_in_a_row_puts_the_next_try_off_for_longer() {
    let now = Instant::now();
    let mut retry = Retry::default();
    let pauses = [(); 4].map(|()| retry.again_at(now) - now);
    assert_eq!(pauses, [50, 100, 200, 400].map(|pause| pause * MS));
}

#[test]
fn an_undo_is_repeated_ever_more_seldom_up_to_a_tenth_of_the_lease() {
    let pauses = |lease: Duration| [0, 1, 2, 3, 4, 40].map(|tries| undo_pause(tries, lease));
    let expected = [50, 50, 100, 200, 300, 300].map(|pause| pause * MS);
    assert_eq!(pauses(3000 * MS), expected);
    assert_eq!(pauses(100 * MS), [50 * MS; 6]);
}

#[test]
fn max_hold_and_a_fixed_lease_count_from_the_grant() {
    let since = Instant::now();
    let mut options = options(1000 * MS, true);
    assert_eq!(hold_ends(since, &options), Some(since + 5000 * MS));
    options.max_hold = None;
    assert_eq!(hold_ends(since, &options), None);
    options.renew = false;
    assert_eq!(hold_ends(since, &options), Some(since + 1000 * MS));
}

#[test]
fn patience_with_a_store_that_fails_counts_from_its_first_failure() {
    let start = Instant::now();
    let at = |after: u32| start + after * MS;
    let forever = budget(start, Wait::Forever);
    assert_eq!(forever.lose_patience_at(at(700)), at(10_700));
    // A request that came later has the time of one command.
    let late = budget(at(20_000), Wait::Forever);
    assert_eq!(late.lose_patience_at(at(700)), at(20_500));
    let short = budget(start, Wait::For(700 * MS));
    assert_eq!(short.lose_patience_at(at(100)), at(700));
}

#[test]
fn a_process_stood_still_if_it_hears_of_a_failure_after_twice_its_time() {
    let start = Instant::now();
    assert!(!stood_still(start, start + 1000 * MS, 500 * MS));
    assert!(stood_still(start, start + 1000 * MS + NANO, 500 * MS));
}

#[test]
fn a_foreign_holder_is_looked_at_the_more_seldom_the_longer_it_lasts() {
    let now = Instant::now();
    let look = |since: Duration, scattered| {
        let at = recheck_beside_foreign(now + since, now, None, scattered);
        at.saturating_duration_since(now + since)
    };
    assert_eq!(look(Duration::ZERO, 0), 2 * MS);
    assert_eq!(look(Duration::ZERO, 7_999), 9 * MS + 999 * MS / 1000);
    assert_eq!(look(10 * MS, 8_000), 2 * MS);
    assert_eq!(look(30 * MS, 27_999), 29 * MS + 999 * MS / 1000);
    assert_eq!(look(50 * MS, 47_999), 49 * MS + 999 * MS / 1000);
    assert_eq!(look(1000 * MS - NANO, 48_000), 2 * MS);
    assert_eq!(look(1000 * MS, 0), 250 * MS);
}

#[test]
fn a_key_in_short_turns_of_others_is_looked_at_often() {
    let changed = Instant::now();
    let look = |now: Instant, scattered| {
        let at = recheck_beside_foreign(now, now, Some(changed), scattered);
        at.saturating_duration_since(now)
    };
    assert_eq!(look(changed, 0), MS / 2);
    assert_eq!(look(changed, 999), 999 * MS / 1000);
    assert_eq!(look(changed + 50 * MS - NANO, 1_000), MS / 2);
    assert_eq!(look(changed + 50 * MS, 2_000), 4 * MS);
}

#[cfg(feature = "test-util")]
#[tokio::test(start_paused = true)]
async fn there_is_no_next_try_at_the_very_end() {
    let clock = Clock::simulated(tokio::runtime::Handle::current());
    let start = clock.now();
    assert!(!Retry::default().pause(&clock, start + 50 * MS).await);
    assert_eq!(clock.now(), start);
    assert!(Retry::default().pause(&clock, start + 51 * MS).await);
    assert_eq!(clock.now(), start + 50 * MS);
}
