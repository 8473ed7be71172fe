//! One key, and how the operations that grant and end holds change it. The rules are those of the
//! embedded store.

use std::time::Duration;

use lock_store::{
    Acquire, Acquired, AcquiredAll, Busy, Claim, Fenced, Granted, Inspection, Queue, Release,
    Released, Renewal, Renewed,
};

use crate::holders::Holders;
use crate::latch;
use crate::machine::{duration, nanos};
use crate::queue::{self, Place};
use crate::step::Step;
use crate::tokens::mint;

/// What happens to the first place.
enum Turn {
    Served,
    /// The places behind it wait until enough is free for it.
    Blocks,
    /// It is passed over until its client is heard.
    PassedOver,
    Ended,
}

/// Decides what happens to the first place.
fn turn_of(step: &mut Step<'_>, holders: &Holders, first: &Place) -> rusqlite::Result<Turn> {
    if first.has_ended(step.now) {
        return Ok(Turn::Ended);
    }
    let lives = step.lives(first.session)?;
    Ok(if !lives {
        Turn::Ended
    } else if first.stands_still(step.now) {
        Turn::PassedOver
    } else if holders.fits(first.permits) {
        Turn::Served
    } else if holders.is_other_kind(first.permits) {
        // Its request learns of it when it asks again.
        Turn::Ended
    } else {
        Turn::Blocks
    })
}

/// Gives what is free to the first places in the queue, as long as it is enough for the next one.
/// Stops at the place of this client's `me`, if given. Returns true there and at the end of the
/// queue.
fn hand_over(
    step: &mut Step<'_>,
    name: &str,
    holders: &mut Holders,
    me: Option<&Claim>,
) -> rusqlite::Result<bool> {
    while !holders.is_exclusive() {
        let Some(first) = queue::first(step, name)? else {
            queue::forget_one(step, name)?;
            return Ok(true);
        };
        if me.is_some_and(|me| first.session == step.session && first.owner == me.owner) {
            return Ok(true);
        }
        match turn_of(step, holders, &first)? {
            Turn::Blocks => return Ok(false),
            Turn::PassedOver => first.pass_over(step, name)?,
            Turn::Ended => first.remove(step, name)?,
            Turn::Served => {
                first.remove(step, name)?;
                let ends = step.now.saturating_add(first.first_lease);
                holders.enter(step, first.session, first.owner, first.permits, ends)?;
                let token = match first.tokens {
                    0 => None,
                    tokens => Some(mint(step, name, tokens)?),
                };
                step.tell_granted(first.session, first.owner, token);
            }
        }
    }
    Ok(false)
}

/// Hands over what clients that are over have left.
pub(crate) fn hand_over_freed(step: &mut Step<'_>) -> rusqlite::Result<()> {
    while let Some(name) = step.freed.pop() {
        let mut holders = Holders::load(step, &name)?;
        hand_over(step, &name, &mut holders, None)?;
    }
    Ok(())
}

/// Grants this client's request.
fn grant(
    step: &mut Step<'_>,
    name: &str,
    holders: &mut Holders,
    request: &Acquire,
) -> rusqlite::Result<Option<u64>> {
    let Claim { owner, permits, .. } = request.claim;
    let ends = step.now.saturating_add(nanos(request.lease));
    holders.enter(step, step.session, owner, permits, ends)?;
    Ok(match request.tokens {
        0 => None,
        tokens => Some(mint(step, name, tokens)?),
    })
}

pub(crate) fn acquire(
    step: &mut Step<'_>,
    name: &str,
    request: &Acquire,
) -> rusqlite::Result<Acquired> {
    if latch::is_there(step, name)? {
        return Ok(Acquired::Conflict);
    }
    let mut holders = Holders::load(step, name)?;
    let claim = &request.claim;
    if let Some(owner) = request.instead_of {
        let before = Claim::new(claim.key.clone(), owner, None);
        if holders.has(&before) {
            holders.leave(step, owner, Duration::ZERO)?;
        }
    }
    let joins = request.queue == Queue::Join;
    let queued = request.queue != Queue::Barge && queue::contains(step, name, claim.owner)?;
    if joins && queued {
        queue::is_heard(step, name)?;
    }
    let limit = holders.other_limit(claim.permits);
    let mut mine = holders.has(claim);
    if !mine {
        if holders.is_other_kind(claim.permits) {
            return Ok(Acquired::Conflict);
        }
        if !holders.is_exclusive() {
            let barges = request.queue == Queue::Barge;
            let next = barges || hand_over(step, name, &mut holders, Some(claim))?;
            // The holders may have changed.
            if holders.is_other_kind(claim.permits) {
                return Ok(Acquired::Conflict);
            }
            mine = next && holders.fits(claim.permits);
        }
    }
    if mine {
        let token = grant(step, name, &mut holders, request)?;
        // A hand-over stopped here: those behind may have their turn too.
        if queued {
            queue::leave(step, name, claim.owner)?;
            hand_over(step, name, &mut holders, None)?;
        }
        let mut granted = Granted::new(token, request.tokens);
        granted.limit = limit;
        return Ok(Acquired::Granted(granted));
    }
    // Its place may have been forgotten meanwhile.
    let queued = queued && queue::contains(step, name, claim.owner)?;
    if joins {
        if !queued {
            queue::join(step, name, request)?;
        }
        for session in holders.sessions() {
            step.awaits(session);
        }
    }
    let first = holders.first();
    let remaining = first.map(|(_, ends)| duration(ends - step.now));
    let mut busy = Busy::new(remaining, queued || joins);
    busy.holder = first.map(|(holder, _)| holder);
    busy.limit = limit;
    Ok(Acquired::Busy(busy))
}

/// Takes all of them, or none.
pub(crate) fn acquire_all(
    step: &mut Step<'_>,
    requests: &[(String, Acquire)],
) -> rusqlite::Result<AcquiredAll> {
    for (at, (name, request)) in requests.iter().enumerate() {
        if latch::is_there(step, name)? {
            return Ok(AcquiredAll::Conflict(at));
        }
        let mut holders = Holders::load(step, name)?;
        if holders.is_other_kind(request.claim.permits) {
            return Ok(AcquiredAll::Conflict(at));
        }
        if request.queue == Queue::Respect && holders.is_empty() {
            hand_over(step, name, &mut holders, None)?;
        }
        if !holders.is_empty() && !holders.has(&request.claim) {
            return Ok(AcquiredAll::Busy(at));
        }
    }
    let mut tokens = Vec::with_capacity(requests.len());
    for (name, request) in requests {
        let mut holders = Holders::load(step, name)?;
        tokens.push(grant(step, name, &mut holders, request)?);
    }
    Ok(AcquiredAll::granted(tokens))
}

pub(crate) fn renew(
    step: &mut Step<'_>,
    name: &str,
    renewal: &Renewal,
) -> rusqlite::Result<Renewed> {
    let mut holders = Holders::load(step, name)?;
    if !holders.has(&renewal.claim) {
        return Ok(Renewed::Gone);
    }
    let ends = step.now.saturating_add(nanos(renewal.lease));
    holders.prolong(step, renewal.claim.owner, ends)?;
    Ok(Renewed::Renewed)
}

pub(crate) fn fence(step: &mut Step<'_>, name: &str, claim: &Claim) -> rusqlite::Result<Fenced> {
    if latch::is_there(step, name)? {
        return Ok(Fenced::Conflict);
    }
    if !Holders::load(step, name)?.has(claim) {
        return Ok(Fenced::Gone);
    }
    mint(step, name, 1).map(Fenced::Token)
}

fn released(held: bool) -> Released {
    if held {
        Released::Released
    } else {
        Released::NotHeld
    }
}

pub(crate) fn release(
    step: &mut Step<'_>,
    name: &str,
    request: &Release,
) -> rusqlite::Result<Released> {
    let mut holders = Holders::load(step, name)?;
    let held = holders.has(&request.claim);
    if held {
        holders.leave(step, request.claim.owner, request.keep)?;
    }
    hand_over(step, name, &mut holders, None)?;
    Ok(released(held))
}

pub(crate) fn shrink(
    step: &mut Step<'_>,
    name: &str,
    claim: &Claim,
    permits: u32,
) -> rusqlite::Result<Released> {
    let mut rest = claim.clone();
    if let Some(held) = &mut rest.permits {
        held.count = permits;
    }
    let mut holders = Holders::load(step, name)?;
    let held = holders.has(claim);
    if held {
        holders.shrink(step, claim.owner, permits)?;
    }
    let done = held || holders.has(&rest);
    hand_over(step, name, &mut holders, None)?;
    Ok(released(done))
}

pub(crate) fn abandon(
    step: &mut Step<'_>,
    name: &str,
    request: &Acquire,
) -> rusqlite::Result<Released> {
    queue::leave(step, name, request.claim.owner)?;
    let end = Release::new(request.claim.clone(), Duration::ZERO);
    release(step, name, &end)
}

pub(crate) fn inspect(step: &mut Step<'_>, name: &str) -> rusqlite::Result<Option<Inspection>> {
    if latch::is_there(step, name)? {
        return Ok(None);
    }
    let holders = Holders::load(step, name)?;
    let last = holders.last();
    let mut found = Inspection::free(queue::len(step, name)?);
    found.remaining = last.as_ref().map(|(_, ends)| duration(ends - step.now));
    found.holder = last.map(|(holder, _)| holder);
    found.holders = holders.len();
    Ok(Some(found))
}

pub(crate) fn force_release(step: &mut Step<'_>, name: &str) -> rusqlite::Result<Option<bool>> {
    if latch::is_there(step, name)? {
        return Ok(None);
    }
    let mut holders = Holders::load(step, name)?;
    let held = !holders.is_empty();
    holders.clear(step)?;
    hand_over(step, name, &mut holders, None)?;
    Ok(Some(held))
}
