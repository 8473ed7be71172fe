//! Grants that the store sends on its own: their waiters, the link over which one can be believed,
//! and how old it can be at most.

use std::collections::BTreeMap;
use std::sync::Arc;

use lock_store::{HandedOver, Instant, Link, Mutex, Owner, Trust, WakeUp};

use super::local_queue::{HeardGrant, Signal};

/// All grants that a client waits for.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    state: Mutex<ExpectedGrants>,
}

#[derive(Debug, Default)]
struct ExpectedGrants {
    expected: BTreeMap<Owner, ExpectedGrant>,
    /// The links over which a command has changed the store since a request waits, each with the
    /// send time of its newest such command. They are few, the latest at the end.
    written: Vec<(Link, Instant)>,
}

#[derive(Debug)]
struct ExpectedGrant {
    signal: Arc<Signal>,
    /// The link that will tell the grant, if it is known. News over another link may be old.
    grant_link: Option<Link>,
}

impl Grants {
    /// From now on, the signal hears of a grant to this owner, over whichever link it comes.
    pub(crate) fn register(&self, owner: Owner, signal: &Arc<Signal>) {
        let signal = Arc::clone(signal);
        let grant_link = None;
        let expected = ExpectedGrant { signal, grant_link };
        let mut grants = self.state.lock();
        grants.expected.insert(owner, expected);
    }

    /// From now on, the signal hears of a grant to this owner over this link only.
    pub(crate) fn expect_over(&self, owner: Owner, link: Option<Link>) {
        let mut grants = self.state.lock();
        if let Some(expected) = grants.expected.get_mut(&owner) {
            expected.grant_link = link;
        }
    }

    pub(crate) fn forget(&self, owner: Owner) {
        let mut grants = self.state.lock();
        grants.expected.remove(&owner);
    }

    /// The answer over this link says that a command sent then has changed the store. All news over
    /// the link from now on comes from the same server, after that. A replica changes nothing: it
    /// only forwards its master's words.
    pub(crate) fn note_write(&self, link: Link, sent: Instant) {
        self.state.lock().note_write(link, sent);
    }

    /// Only the store knows the state of the requests that `affected` names.
    fn recheck_if(&self, affected: impl Fn(&ExpectedGrant) -> bool) {
        let grants = self.state.lock();
        let affected = grants.expected.values().filter(|one| affected(one));
        let signals: Vec<_> = affected.map(|one| Arc::clone(&one.signal)).collect();
        drop(grants);
        for signal in signals {
            signal.recheck();
        }
    }

    /// A grant was heard. Returns the waiter to wake.
    pub(super) fn on_granted(&self, grant: HandedOver) -> WakeUp {
        let HandedOver {
            owner,
            token,
            trust,
            ..
        } = grant;
        let link = match trust {
            Trust::Order(link) | Trust::Ask(link) => Some(link),
            _ => None,
        };
        let grants = self.state.lock();
        let after = link.and_then(|link| grants.written_over(link));
        let expected = grants.expected.get(&owner);
        let is_meant = |by: Option<Link>| by.is_none() || link.is_none() || by == link;
        let expected = expected.filter(|one| is_meant(one.grant_link));
        let signal = expected.map(|one| Arc::clone(&one.signal));
        drop(grants);
        signal.map_or_else(WakeUp::default, |signal| {
            signal.on_granted(HeardGrant {
                trust,
                token,
                after,
            })
        })
    }

    /// Messages may have been lost, over any link.
    pub(super) fn recheck(&self) {
        self.recheck_if(|_| true);
    }

    /// Nothing more is heard over this link.
    pub(super) fn on_lost(&self, link: Link) {
        // A request without a reply yet may have asked over it.
        self.recheck_if(|one| one.grant_link.is_none_or(|over| over == link));
    }
}

/// How many links are remembered.
const WRITTEN_LINKS: usize = 16;

impl ExpectedGrants {
    fn written_over(&self, link: Link) -> Option<Instant> {
        let found = self.written.iter().find(|(one, _)| *one == link);
        found.map(|(_, sent)| *sent)
    }

    /// See [`Grants::note_write`].
    fn note_write(&mut self, link: Link, sent: Instant) {
        if self.expected.is_empty() || link == Link::SEVERAL {
            return;
        }
        let written = &mut self.written;
        let before = match written.iter().position(|(one, _)| *one == link) {
            Some(at) => written.remove(at).1,
            None => sent,
        };
        if written.len() == WRITTEN_LINKS {
            written.remove(0);
        }
        written.push((link, sent.max(before)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_store::ClientId;

    use super::*;

    fn owner(request: u64) -> Owner {
        Owner::new(ClientId(1), request)
    }

    fn signal() -> Arc<Signal> {
        Arc::default()
    }

    #[test]
    fn what_is_not_expected_any_more_is_forgotten() {
        let grants = Grants::default();
        grants.register(owner(1), &signal());
        grants.register(owner(2), &signal());
        grants.forget(owner(1));
        let expected: Vec<_> = grants.state.lock().expected.keys().copied().collect();
        assert_eq!(expected, [owner(2)]);
    }

    #[test]
    fn the_newest_change_of_each_of_the_last_links_is_known_while_anybody_waits() {
        let (grants, start) = (Grants::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let over = |link| grants.state.lock().written_over(Link(link));
        grants.note_write(Link(1), start);
        assert_eq!(over(1), None);
        grants.register(owner(1), &signal());
        grants.note_write(Link::SEVERAL, start);
        assert!(grants.state.lock().written.is_empty());
        grants.note_write(Link(1), at(2));
        // One that was sent before and answered after.
        grants.note_write(Link(1), at(1));
        assert_eq!(over(1), Some(at(2)));
        for link in 2..=16 {
            grants.note_write(Link(link), start);
        }
        assert_eq!(over(1), Some(at(2)));
        grants.note_write(Link(17), start);
        assert_eq!(
            (over(1), over(2), over(17)),
            (None, Some(start), Some(start))
        );
        assert_eq!(grants.state.lock().written.len(), WRITTEN_LINKS);
    }
}
