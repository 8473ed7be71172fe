//! Who holds a lock and who waits, for an engine whose servers keep the requests in their order and
//! decide nothing.
//!
//! The requests that come first hold the lock, as long as what they ask for fits ([`Holders`]). The
//! first that does not fit blocks all behind it. One that holds goes on to do so whatever happens
//! to the others: those before it can only become fewer.

use super::{HeldPart, HoldId, Holders};
use crate::instant::Instant;
use crate::owner::{FoundHolder, Holder, Owner};
use crate::request::{Acquired, Busy, LockFound, Permits};
use crate::timing::FALLBACK_POLL;

/// A request, as everybody finds it at the servers.
pub trait RankedRequest {
    /// By which others watch it.
    fn name(&self) -> &str;

    /// Who asks.
    fn owner(&self) -> Owner;

    /// For which part of the lock. `None`: the whole.
    fn permits(&self) -> Option<Permits>;

    /// It was released, and the lock stays taken for a while.
    fn is_kept(&self) -> bool;

    /// It is another library's. Its owner stands for its name.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Whether it can hold the lock at all.
    fn is_able(&self) -> bool {
        true
    }

    /// For those who ask who holds the lock.
    fn holder(&self) -> FoundHolder {
        match self.is_foreign() {
            true => FoundHolder::Foreign(self.name().to_owned()),
            false => FoundHolder::Owner {
                owner: self.owner(),
                kept: self.is_kept(),
                permits: self.permits().map(|permits| permits.count),
            },
        }
    }
}

/// What a request may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildStanding {
    /// It holds the lock.
    Holds,
    /// It waits until this changes.
    Waits(Obstacle),
    /// The lock is held as another kind of lock.
    OtherKind,
}

/// What a waiting request watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The request with this name, the nearest that stands in its way.
    Child(String),
    /// All requests: any that leaves can make room for a part of a semaphore.
    Children,
}

/// A request's place among the others.
#[derive(Clone, Debug)]
pub struct Rank {
    /// What it may do.
    pub standing: ChildStanding,
    /// The capacity by the holders' requests, if it is another.
    pub limit: Option<u32>,
    /// One of the holders.
    pub holder: Option<Holder>,
}

impl Rank {
    /// The reply to the request. With `queued`, it has a place.
    #[must_use]
    pub fn busy(&self, queued: bool) -> Acquired {
        let mut busy = Busy::new(None, queued);
        (busy.holder, busy.limit) = (self.holder, self.limit);
        if queued && matches!(self.holder, Some(Holder::Foreign(_))) {
            // That client is in the same queue, so the store tells when it leaves.
            busy.look_in = Some(FALLBACK_POLL);
        }
        Acquired::Busy(busy)
    }
}

/// The rank of a request for this part, behind these.
///
/// With `signals`, a part of a semaphore tells when it holds: so the first that waits watches all
/// of them, and each other one the waiting one before it.
pub fn rank<C: RankedRequest>(
    before: &[&C],
    permits: Option<Permits>,
    is_able: bool,
    signals: bool,
) -> Rank {
    let holders = holders(before.iter().copied());
    let all_hold = holders.len() == before.len();
    let standing = if holders.is_other_kind(permits) {
        ChildStanding::OtherKind
    } else if all_hold && is_able && holders.fits(permits) {
        ChildStanding::Holds
    } else {
        ChildStanding::Waits(obstacle(before, holders.len(), permits, signals))
    };
    let first = before.first().filter(|_| !holders.is_empty());
    Rank {
        standing,
        limit: holders.other_limit(permits),
        holder: first.map(|request| request.holder().who()),
    }
}

/// Those of these requests that hold the lock: the first.
pub fn holding<C: RankedRequest>(all: &[C]) -> &[C] {
    all.get(..holders(all.iter()).len()).unwrap_or_default()
}

/// What is to be said about a lock with these requests.
pub fn found<C: RankedRequest>(all: &[C]) -> LockFound {
    let holders = holders(all.iter());
    let holding = holding(all);
    let mut found = LockFound::free(all.len() - holding.len());
    found.holders = holding.len();
    found.holder = holding.last().map(C::holder);
    found.permits = holders.permits();
    found
}

/// Whether a claim on `says` is one on what `has`: a downgrade may run before or after a command
/// that was sent around the same time.
#[must_use]
pub fn is_same_share(has: Option<Permits>, says: Option<Permits>) -> bool {
    match (has, says) {
        (Some(has), Some(says)) if has.is_read_write() => has.of == says.of,
        (Some(has), Some(says)) => has.count == says.count,
        (has, says) => has == says,
    }
}

/// Those that hold the lock, of these requests in their order.
fn holders<'l, C: RankedRequest + 'l>(requests: impl Iterator<Item = &'l C>) -> Holders {
    let mut holders = Holders::default();
    for (at, request) in requests.enumerate() {
        let permits = request.permits();
        if !request.is_able() || !holders.fits(permits) {
            break;
        }
        let count = permits.map_or(1, |permits| permits.count);
        let hold = HoldId {
            owner: request.owner(),
            kept: if request.is_kept() { count } else { 0 },
        };
        // Holds have no end that others know. Their order stands for it.
        let expires = Instant::from_nanos(i64::try_from(at).unwrap_or(i64::MAX));
        holders.add(hold, HeldPart { permits, expires });
    }
    holders
}

fn obstacle<C: RankedRequest>(
    before: &[&C],
    holding: usize,
    permits: Option<Permits>,
    signals: bool,
) -> Obstacle {
    let is_whole = |permits: Option<Permits>| permits.is_none_or(|part| part.count >= part.of);
    let nearest = match permits {
        _ if is_whole(permits) => before.last(),
        Some(part) if part.is_read_write() => {
            before.iter().rfind(|request| is_whole(request.permits()))
        }
        _ if signals => before.get(holding..).and_then(<[_]>::last),
        _ => None,
    };
    nearest.map_or(Obstacle::Children, |request| {
        Obstacle::Child(request.name().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::ClientId;

    const READ: Option<Permits> = Some(Permits::READ);
    const WRITE: Option<Permits> = Some(Permits::WRITE);

    struct Asked {
        name: String,
        permits: Option<Permits>,
    }

    impl RankedRequest for Asked {
        fn name(&self) -> &str {
            &self.name
        }

        fn owner(&self) -> Owner {
            Owner::new(ClientId(1), self.name.parse().unwrap_or(0))
        }

        fn permits(&self) -> Option<Permits> {
            self.permits
        }

        fn is_kept(&self) -> bool {
            false
        }
    }

    fn part(count: u32, of: u32) -> Option<Permits> {
        Some(Permits { count, of })
    }

    fn requests(parts: &[Option<Permits>]) -> Vec<Asked> {
        let request = |(at, permits): (usize, &Option<Permits>)| Asked {
            name: at.to_string(),
            permits: *permits,
        };
        parts.iter().enumerate().map(request).collect()
    }

    /// For each request, whether it holds the lock.
    fn standings(parts: &[Option<Permits>], signals: bool) -> Vec<ChildStanding> {
        let all = requests(parts);
        let standing = |at: usize| {
            let before: Vec<&Asked> = all[..at].iter().collect();
            rank(&before, all[at].permits, true, signals).standing
        };
        (0..all.len()).map(standing).collect()
    }

    fn waits_for(at: usize) -> ChildStanding {
        ChildStanding::Waits(Obstacle::Child(at.to_string()))
    }

    #[test]
    fn the_first_holds_and_each_watches_the_one_before() {
        let parts = [None, None, None];
        let expected = [ChildStanding::Holds, waits_for(0), waits_for(1)];
        assert_eq!(standings(&parts, true), expected);
        assert_eq!(standings(&parts, false), expected);
        let all = requests(&parts);
        assert_eq!((holding(&all).len(), found(&all).waiting), (1, 2));
    }

    #[test]
    fn readers_wait_for_the_writer_before_them_and_writers_for_all() {
        let parts = [READ, READ, WRITE, READ, READ, WRITE];
        let expected = [
            ChildStanding::Holds,
            ChildStanding::Holds,
            waits_for(1),
            waits_for(2),
            waits_for(2),
            waits_for(4),
        ];
        assert_eq!(standings(&parts, true), expected);
        assert_eq!(standings(&parts, false), expected);
    }

    #[test]
    fn a_part_that_does_not_fit_blocks_all_behind_it() {
        let parts = [part(1, 3), part(3, 3), part(1, 3), part(1, 9)];
        let any = ChildStanding::Waits(Obstacle::Children);
        // Where parts tell when they hold, one of those that wait watches the holders for all.
        let expected = [
            ChildStanding::Holds,
            waits_for(0),
            waits_for(1),
            waits_for(2),
        ];
        assert_eq!(standings(&parts, true), expected);
        let expected = [ChildStanding::Holds, waits_for(0), any.clone(), any.clone()];
        assert_eq!(standings(&parts, false), expected);
        assert_eq!(found(&requests(&parts)).permits, part(1, 3));
        let full = [part(2, 3), part(1, 3), part(1, 3), part(1, 3)];
        assert_eq!(standings(&full, true)[2..], [any.clone(), waits_for(2)]);
        assert_eq!(standings(&full, false)[2..], [any.clone(), any]);
    }

    #[test]
    fn another_kind_conflicts_with_holders_and_lets_nobody_pass() {
        let standings = standings(&[part(1, 1), None, part(1, 1)], true);
        assert_eq!(standings[1], ChildStanding::OtherKind);
        assert!(matches!(standings[2], ChildStanding::Waits(_)));
    }

    #[test]
    fn behind_a_client_in_the_same_queue_nobody_looks_often() {
        let rank = Rank {
            standing: ChildStanding::Waits(Obstacle::Children),
            limit: None,
            holder: Some(Holder::Foreign(7)),
        };
        let look_in = |queued| match rank.busy(queued) {
            Acquired::Busy(busy) => busy.look_in,
            other => panic!("{other:?}"),
        };
        assert_eq!(look_in(true), Some(FALLBACK_POLL));
        // Who only tries is told who has it.
        assert_eq!(look_in(false), None);
    }
}
