use std::time::Duration;

use super::*;
use crate::timing::{CALL_AHEAD, CALL_VALID, QUEUE_TTL, UNHEARD};
use crate::{
    Acquire, Claim, ClientId, Holder, Instant, LatchCall, LatchCounted, LatchFound, LatchSet,
    LockKey, Owner, Permits,
};

const SECOND: Duration = Duration::from_secs(1);
const NOW: Instant = Instant::from_nanos(0);

fn owner(request: u64) -> Owner {
    let client = ClientId(1);
    Owner { client, request }
}

fn permits(count: u32, of: u32) -> Option<Permits> {
    Some(Permits { count, of })
}

fn claim(request: u64, permits: Option<Permits>) -> Claim {
    Claim::new("k".into(), owner(request), permits)
}

/// Each holds for as many seconds as its number says.
fn holders(parts: &[Option<Permits>]) -> Holders {
    let mut holders = Holders::default();
    for (permits, request) in parts.iter().zip(1..) {
        holders.enter(
            owner(request),
            *permits,
            NOW + SECOND * u32::try_from(request).unwrap(),
        );
    }
    holders
}

const READ: Option<Permits> = Some(Permits::READ);
const WRITE: Option<Permits> = Some(Permits::WRITE);

#[test]
fn what_is_free_by_the_limit_of_the_request_fits() {
    let three_of_five = holders(&[permits(1, 5), permits(2, 5)]);
    assert!(three_of_five.fits(permits(2, 5)));
    assert!(!three_of_five.fits(permits(3, 5)));
    assert!(three_of_five.fits(permits(3, 6)));
    assert!(!three_of_five.fits(permits(1, 3)));
    assert!(Holders::default().fits(None) && !holders(&[None]).fits(None));
    let readers = holders(&[READ, READ]);
    assert!(readers.fits(READ) && !readers.fits(WRITE));
    assert!(!holders(&[WRITE]).fits(READ));
}

#[test]
fn a_lock_has_one_kind_while_it_is_held() {
    for (held, others) in [
        (None, [READ, permits(1, 1)]),
        (READ, [None, permits(1, 5)]),
        (permits(1, 5), [None, WRITE]),
    ] {
        let holders = holders(&[held]);
        assert!(!holders.is_other_kind(held));
        for other in others {
            assert!(
                holders.is_other_kind(other) && !holders.fits(other),
                "{held:?} {other:?}"
            );
        }
    }
    assert!(!Holders::default().is_other_kind(None));
}

#[test]
fn the_limit_of_the_last_holder_is_told_to_those_with_another() {
    let holders = holders(&[permits(1, 5), permits(1, 3)]);
    assert_eq!(holders.other_limit(permits(1, 3)), None);
    assert_eq!(holders.other_limit(permits(1, 5)), Some(3));
    assert_eq!(self::holders(&[None]).other_limit(permits(1, 5)), None);
}

#[test]
fn a_claim_is_held_with_its_part_and_a_downgrade_may_cross_it() {
    let shares = holders(&[permits(2, 5)]);
    assert!(shares.has(&claim(1, permits(2, 4))) && !shares.has(&claim(1, permits(1, 5))));
    assert!(!shares.has(&claim(1, None)) && !shares.has(&claim(2, permits(2, 5))));
    assert!(holders(&[WRITE]).has(&claim(1, READ)) && holders(&[READ]).has(&claim(1, WRITE)));
}

#[test]
fn a_lease_is_never_shortened_and_ends_to_the_instant() {
    let mut holders = holders(&[None]);
    holders.enter(owner(1), None, NOW + SECOND / 2);
    holders.prolong(owner(2), NOW + 9 * SECOND);
    assert_eq!(
        holders.first(),
        Some((Holder::Owner(owner(1)), NOW + SECOND))
    );
    holders.sweep(NOW + SECOND - Duration::from_nanos(1));
    assert_eq!(holders.len(), 1);
    holders.sweep(NOW + SECOND);
    assert!(holders.is_empty());
}

#[test]
fn a_rest_belongs_to_nobody_and_takes_the_place_of_one_of_its_size() {
    let mut holders = holders(&[permits(2, 5)]);
    holders.leave(owner(1), NOW, 3 * SECOND);
    assert!(!holders.has(&claim(1, permits(2, 5))) && !holders.fits(permits(4, 5)));
    assert_eq!(holders.first(), Some((Holder::Kept, NOW + 3 * SECOND)));
    holders.enter(owner(1), permits(2, 5), NOW + SECOND);
    holders.leave(owner(1), NOW, SECOND);
    assert_eq!(
        (holders.len(), holders.first().unwrap().1),
        (1, NOW + SECOND)
    );
    holders.enter(owner(1), permits(1, 5), NOW + SECOND);
    holders.leave(owner(1), NOW, SECOND);
    assert_eq!(holders.len(), 2);
}

#[test]
fn permits_that_are_given_back_fit_again_and_none_are_added() {
    let mut holders = holders(&[permits(3, 5)]);
    holders.shrink(owner(1), 4);
    assert!(!holders.fits(permits(3, 5)));
    holders.shrink(owner(1), 1);
    assert!(holders.fits(permits(4, 5)) && !holders.fits(permits(5, 5)));
}

#[test]
fn only_what_has_changed_is_written() {
    let before = holders(&[permits(1, 5), permits(1, 5), permits(1, 5)]);
    let mut after = before.clone();
    assert_eq!(after.changes(&before).count(), 0);
    after.leave(owner(1), NOW, Duration::ZERO);
    after.prolong(owner(2), NOW + 9 * SECOND);
    after.enter(owner(4), permits(2, 5), NOW + SECOND);
    let changed = after.changes(&before);
    let changed: Vec<_> = changed
        .map(|(name, hold)| (name.owner.request, hold.map(|hold| hold.expires)))
        .collect();
    let until = |seconds: u32| Some(NOW + SECOND * seconds);
    assert_eq!(changed, [(1, None), (2, until(9)), (4, until(1))]);
}

fn waiting(permits: Option<Permits>) -> Waiting {
    let mut request = Acquire::new(claim(9, permits), SECOND);
    request.wait = Some(5 * SECOND);
    Waiting::of(&request, NOW)
}

#[test]
fn the_first_place_is_served_blocks_is_suspended_or_ends() {
    let two_of_three = holders(&[permits(2, 3)]);
    for (holders, permits, turn) in [
        (&Holders::default(), None, Turn::Served),
        (&two_of_three, permits(1, 3), Turn::Served),
        (&two_of_three, permits(2, 3), Turn::Blocks),
        (&two_of_three, READ, Turn::Ended),
        (&two_of_three, None, Turn::Ended),
    ] {
        assert_eq!(
            waiting(permits).turn(holders, NOW + UNHEARD),
            turn,
            "{permits:?}"
        );
        let later = NOW + UNHEARD + Duration::from_nanos(1);
        assert_eq!(waiting(permits).turn(holders, later), Turn::Suspended);
    }
}

#[test]
fn a_place_is_over_after_its_wait_and_a_suspended_one_after_a_minute() {
    let place = waiting(None);
    let later = Duration::from_nanos(1);
    assert!(!place.has_ended(NOW + 5 * SECOND) && place.has_ended(NOW + 5 * SECOND + later));
    assert!(!is_forgotten(NOW, NOW + QUEUE_TTL) && is_forgotten(NOW, NOW + QUEUE_TTL + later));
}

#[test]
fn tokens_follow_the_last_one_and_the_time() {
    assert_eq!(next_token(0, 500), 500);
    assert_eq!(next_token(499, 500), 500);
    assert_eq!(next_token(500, 500), 501);
    assert_eq!(next_token(900, 500), 901);
}

/// The store's time in these tests, in microseconds.
const MICROS: u64 = 1_000_000_000;

fn call(made: u64) -> LatchCall {
    LatchCall::new(LockKey::from("l"), owner(1), Some(made))
}

fn record(latch: Option<StoredLatch>) -> LatchRecord {
    LatchRecord {
        latch,
        left: None,
        micros: MICROS,
    }
}

#[test]
fn a_latch_opens_at_the_last_count_and_can_be_set_again() {
    let ends = NOW + SECOND;
    let (reply, latch) = record(None).set(&call(MICROS), 2, ends);
    assert_eq!((reply, latch.unwrap().generation), (LatchSet::Set, MICROS));
    assert_eq!(
        record(latch).set(&call(MICROS), 9, ends),
        (LatchSet::SetBefore, None)
    );
    assert!(StoredLatch::takes_waiters(latch) && StoredLatch::takes_waiters(None));
    let (reply, latch) = record(latch).count_down(&call(MICROS));
    assert_eq!(reply, LatchCounted::Left(1));
    let (reply, open) = record(latch).count_down(&call(MICROS));
    assert_eq!((reply, open.unwrap().count), (LatchCounted::Left(0), 0));
    assert!(!StoredLatch::takes_waiters(open));
    assert_eq!(
        record(open).count_down(&call(MICROS)),
        (LatchCounted::Left(0), None)
    );
    let (_, again) = record(open).set(&call(MICROS), 1, ends);
    let LatchFound::Is(state) = StoredLatch::look(again, NOW) else {
        panic!("it is set");
    };
    assert_eq!((state.generation, state.opened), (MICROS + 1, MICROS));
    assert_eq!(state.remaining, Some(SECOND));
    assert_eq!(
        record(None).count_down(&call(MICROS)).0,
        LatchCounted::NotSet
    );
}

#[test]
fn a_call_counts_once_and_only_while_it_is_valid() {
    let (_, latch) = record(None).set(&call(MICROS), 2, NOW + SECOND);
    let mut known = record(latch);
    known.left = Some(1);
    assert_eq!(known.count_down(&call(0)), (LatchCounted::Left(1), None));
    assert_eq!(known.set(&call(0), 5, NOW), (LatchSet::Set, None));
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap();
    let (late, early) = (MICROS - micros(CALL_VALID), MICROS + micros(CALL_AHEAD));
    let now = MICROS;
    for (made, counts) in [
        (late - 1, false),
        (late, true),
        (early, true),
        (early + 1, false),
    ] {
        let (reply, changed) = record(latch).count_down(&call(made));
        assert_eq!(reply != LatchCounted::Untimely { now }, counts, "{made}");
        assert_eq!(changed.is_some(), counts);
        let (reply, _) = record(None).set(&call(made), 1, NOW);
        assert_eq!(reply != LatchSet::Untimely { now }, counts, "{made}");
    }
}
