//! One lock, and how the operations that grant and end holds change it. They fail as the engine
//! does, and for nothing else.

use std::time::Duration;

use super::holders::Holders;
use super::queue::{Turn, Waiting};
use crate::instant::Instant;
use crate::{
    Acquire, Acquired, AcquiredAll, Busy, Claim, Fenced, FoundHolder, Granted, LockFound, Queue,
    Release, Released, Renewal, Renewed,
};

/// One lock during one step, as an engine keeps it. No other step sees or changes it meanwhile.
pub trait LockRecord {
    /// A place in the queue.
    type Place;
    /// A failure of the engine: nothing of this step counts. For records in memory,
    /// [`Infallible`](std::convert::Infallible).
    type Error;

    /// The time of the step.
    fn now(&self) -> Instant;

    /// The holders, without those whose lease has ended.
    fn holders(&mut self) -> &mut Holders;

    /// True if the key is a latch. No lock can be taken on it.
    fn is_latch(&mut self) -> Result<bool, Self::Error>;

    /// The first of this many new fencing tokens, by [`next_token`](super::next_token).
    fn mint(&mut self, tokens: u32) -> Result<u64, Self::Error>;

    /// The first place that is not suspended.
    fn first(&mut self) -> Result<Option<(Self::Place, Waiting)>, Self::Error>;

    /// True if this place is the request's.
    fn is_of(&self, place: &Self::Place, request: &Acquire) -> bool;

    /// True if the client of this place can be told of a grant.
    fn listens(&mut self, place: &Self::Place) -> Result<bool, Self::Error>;

    /// Tells the client of this place of its grant, when the step is done.
    fn notify(&mut self, place: &Self::Place, token: Option<u64>);

    /// Suspends this place, which is the first, until its client is heard. Those of its client
    /// that were suspended before are as of now.
    fn suspend(&mut self, place: &Self::Place) -> Result<(), Self::Error>;

    /// Takes this place out of the queue.
    fn remove(&mut self, place: &Self::Place) -> Result<(), Self::Error>;

    /// True if the request has a place. One that barges has none yet, and need not be looked for.
    fn is_queued(&mut self, request: &Acquire) -> Result<bool, Self::Error>;

    /// Gives the request a place at the end. Suspended places of its client come back.
    fn join(&mut self, request: &Acquire) -> Result<(), Self::Error>;

    /// The client of a request that has a place is heard: its suspended places come back.
    fn hear(&mut self, request: &Acquire) -> Result<(), Self::Error>;

    /// Gives up the request's place, if it has one.
    fn leave(&mut self, request: &Acquire) -> Result<(), Self::Error>;

    /// Removes the first of the suspended places, if it [is forgotten](super::is_forgotten).
    fn forget_one(&mut self) -> Result<(), Self::Error>;

    /// The number of places.
    fn places(&mut self) -> Result<usize, Self::Error>;
}

/// Decides what happens to the first place.
fn turn_of<R: LockRecord>(
    record: &mut R,
    place: &R::Place,
    waiting: &Waiting,
) -> Result<Turn, R::Error> {
    let now = record.now();
    if waiting.has_ended(now) || !record.listens(place)? {
        return Ok(Turn::Ended);
    }
    Ok(waiting.turn(record.holders(), now))
}

/// Gives what is free to the first places in the queue, as long as it is enough for the next one.
/// Stops at the place of `me`, if given. Returns true there and at the end of the queue.
pub fn hand_over<R: LockRecord>(record: &mut R, me: Option<&Acquire>) -> Result<bool, R::Error> {
    while !record.holders().is_exclusive() {
        let Some((place, waiting)) = record.first()? else {
            record.forget_one()?;
            return Ok(true);
        };
        if me.is_some_and(|me| record.is_of(&place, me)) {
            return Ok(true);
        }
        match turn_of(record, &place, &waiting)? {
            Turn::Blocks => return Ok(false),
            Turn::Suspended => record.suspend(&place)?,
            Turn::Ended => record.remove(&place)?,
            Turn::Served => {
                // A latch set while the lock was free: whoever waits learns of it by asking again.
                if record.is_latch()? {
                    return Ok(false);
                }
                record.remove(&place)?;
                let token = enter(record, &waiting, waiting.first_lease)?;
                record.notify(&place, token);
            }
        }
    }
    Ok(false)
}

/// The next fencing token after `last` (0: none yet), and at least the store's time `micros`. So a
/// token below that time need not be remembered.
#[must_use]
pub fn next_token(last: u64, micros: u64) -> u64 {
    last.saturating_add(1).max(micros)
}

fn enter<R: LockRecord>(
    record: &mut R,
    waiting: &Waiting,
    lease: Duration,
) -> Result<Option<u64>, R::Error> {
    let ends = record.now() + lease;
    record.holders().enter(waiting.owner, waiting.permits, ends);
    match waiting.tokens {
        0 => Ok(None),
        tokens => record.mint(tokens).map(Some),
    }
}

/// Grants a request. Returns the first of its fencing tokens, if it asks for some.
pub fn grant<R: LockRecord>(record: &mut R, request: &Acquire) -> Result<Option<u64>, R::Error> {
    let waiting = Waiting::of(request, record.now());
    enter(record, &waiting, request.lease)
}

/// See [`Store::acquire`](crate::Store::acquire).
pub fn acquire<R: LockRecord>(record: &mut R, request: &Acquire) -> Result<Acquired, R::Error> {
    if record.is_latch()? {
        return Ok(Acquired::Conflict);
    }
    let claim = &request.claim;
    let now = record.now();
    if let Some(owner) = request.instead_of {
        let before = Claim::new(claim.key.clone(), owner, None);
        end(record.holders(), &before, now, Duration::ZERO);
    }
    let joins = request.queue == Queue::Join;
    let queued = record.is_queued(request)?;
    if joins && queued {
        record.hear(request)?;
    }
    let limit = record.holders().other_limit(claim.permits);
    let mut mine = record.holders().has(claim);
    if !mine {
        if record.holders().is_other_kind(claim.permits) {
            return Ok(Acquired::Conflict);
        }
        if !record.holders().is_exclusive() {
            let next = request.queue == Queue::Barge || hand_over(record, Some(request))?;
            // The holders may have changed.
            if record.holders().is_other_kind(claim.permits) {
                return Ok(Acquired::Conflict);
            }
            mine = next && record.holders().fits(claim.permits);
        }
    }
    if mine {
        let token = grant(record, request)?;
        // A hand-over stopped here: those behind may have their turn too.
        if queued {
            record.leave(request)?;
            hand_over(record, None)?;
        }
        let mut granted = Granted::new(token, request.tokens);
        granted.limit = limit;
        return Ok(Acquired::Granted(granted));
    }
    // Its place may have been forgotten meanwhile.
    let queued = queued && record.is_queued(request)?;
    if joins && !queued {
        record.join(request)?;
    }
    let first = record.holders().first();
    let mut busy = Busy::new(first.map(|(_, ends)| ends - now), queued || joins);
    busy.holder = first.map(|(holder, _)| holder);
    busy.limit = limit;
    Ok(Acquired::Busy(busy))
}

/// Why not all of several keys can be taken at once, if it is for this one, the request with this
/// index. See [`Store::acquire_all`](crate::Store::acquire_all).
pub fn refuse_one<R: LockRecord>(
    record: &mut R,
    at: usize,
    request: &Acquire,
) -> Result<Option<AcquiredAll>, R::Error> {
    if record.is_latch()? || record.holders().is_other_kind(request.claim.permits) {
        return Ok(Some(AcquiredAll::Conflict(at)));
    }
    if request.queue == Queue::Respect && record.holders().is_empty() {
        hand_over(record, None)?;
    }
    let holders = record.holders();
    let is_taken = !holders.is_empty() && !holders.has(&request.claim);
    Ok(is_taken.then_some(AcquiredAll::Busy(at)))
}

/// See [`Store::renew`](crate::Store::renew).
pub fn renew(record: &mut impl LockRecord, renewal: &Renewal) -> Renewed {
    let ends = record.now() + renewal.lease;
    let holders = record.holders();
    if !holders.has(&renewal.claim) {
        return Renewed::Gone;
    }
    holders.prolong(renewal.claim.owner, ends);
    Renewed::Renewed
}

/// See [`Store::fence`](crate::Store::fence).
pub fn fence<R: LockRecord>(record: &mut R, claim: &Claim) -> Result<Fenced, R::Error> {
    if record.is_latch()? {
        return Ok(Fenced::Conflict);
    }
    if !record.holders().has(claim) {
        return Ok(Fenced::Gone);
    }
    record.mint(1).map(Fenced::Token)
}

/// Ends a hold, of which the key stays taken for `keep`. True if it was held.
fn end(holders: &mut Holders, claim: &Claim, now: Instant, keep: Duration) -> bool {
    let held = holders.has(claim);
    if held {
        holders.leave(claim.owner, now, keep);
    }
    held
}

/// At most this many holders are listed.
pub const MOST_HOLDERS: usize = 1_000;

/// See [`Store::release`](crate::Store::release).
pub fn release<R: LockRecord>(record: &mut R, request: &Release) -> Result<Released, R::Error> {
    let now = record.now();
    let held = end(record.holders(), &request.claim, now, request.keep);
    hand_over(record, None)?;
    Ok(Released::of(held))
}

/// See [`Store::shrink`](crate::Store::shrink).
pub fn shrink<R: LockRecord>(
    record: &mut R,
    claim: &Claim,
    permits: u32,
) -> Result<Released, R::Error> {
    let mut rest = claim.clone();
    if let Some(held) = &mut rest.permits {
        held.count = permits;
    }
    let holders = record.holders();
    let held = holders.has(claim);
    if held {
        holders.shrink(claim.owner, permits);
    }
    let done = held || holders.has(&rest);
    hand_over(record, None)?;
    Ok(Released::of(done))
}

/// See [`Store::abandon`](crate::Store::abandon).
pub fn abandon<R: LockRecord>(record: &mut R, request: &Acquire) -> Result<Released, R::Error> {
    record.leave(request)?;
    let end = Release::new(request.claim.clone(), Duration::ZERO);
    release(record, &end)
}

/// See [`Store::inspect`](crate::Store::inspect).
pub fn inspect<R: LockRecord>(record: &mut R) -> Result<Option<LockFound>, R::Error> {
    if record.is_latch()? {
        return Ok(None);
    }
    let mut found = LockFound::free(record.places()?);
    let now = record.now();
    let holders = record.holders();
    found.holders = holders.len();
    if let Some((holder, ends)) = holders.last() {
        found.holder = Some(holder);
        found.remaining = Some(ends - now);
        found.permits = holders.permits();
    }
    Ok(Some(found))
}

/// See [`Store::holders`](crate::Store::holders).
pub fn holders<R: LockRecord>(record: &mut R) -> Result<Option<Vec<FoundHolder>>, R::Error> {
    if record.is_latch()? {
        return Ok(None);
    }
    Ok(Some(record.holders().all().take(MOST_HOLDERS).collect()))
}

/// See [`Store::force_release`](crate::Store::force_release).
pub fn force_release<R: LockRecord>(record: &mut R) -> Result<Option<bool>, R::Error> {
    if record.is_latch()? {
        return Ok(None);
    }
    let held = !record.holders().is_empty();
    record.holders().clear();
    hand_over(record, None)?;
    Ok(Some(held))
}
