//! The ends of leases, of waits, and of what stays taken after a release.
//!
//! What stays taken is a node of no session, so that it outlives its client. The client ends it in
//! time. If the client is gone, whoever finds it there ends it, after having seen it for as long as
//! it is to stay: nobody's clock but its own counts.

use std::sync::Arc;
use std::time::Duration;

use lock_store::Acquire;
use lock_store::ordered::KeyNode;

use crate::names::Child;
use crate::store::Inner;
use crate::wire;

/// The limit of a reading.
const LIMIT: Duration = Duration::from_secs(5);

impl Inner {
    /// Ends what is over, until the client is closed.
    pub(crate) async fn end_in_time(self: Arc<Self>) {
        while !self.session.connecting.is_closed() {
            let changed = self.ends.notified();
            let next = self.holds.lock().next_end();
            match next {
                None => changed.await,
                Some(at) => {
                    let _ = self.clock.by(at, changed).await;
                }
            }
            let ended = self.holds.lock().take_ended(self.clock.now());
            for (path, session) in ended {
                self.bury(path, session);
            }
        }
    }

    /// Undoes an acquire, in a task, as often as it takes. The engine tries that until a lease
    /// would have ended, but what it leaves here lasts for as long as the client does.
    pub(crate) fn keep_undoing(self: &Arc<Self>, request: Acquire) {
        let (me, owner) = (Arc::clone(self), request.claim.owner);
        let request = Arc::new(request);
        self.burials.undo(owner, move |by| {
            let (me, request) = (Arc::clone(&me), Arc::clone(&request));
            async move {
                let abandon = async |live: Arc<_>| me.abandon(&live, &request).await;
                let is_closed = me.session.connecting.is_closed();
                is_closed || me.carry_out(by, abandon).await.is_ok()
            }
        });
    }

    /// Deletes a node, in a task, as often as it takes. One of a session ends with it.
    pub(crate) fn bury(self: &Arc<Self>, path: String, session: Option<i64>) {
        let (me, buried, path) = (Arc::clone(self), Arc::clone(self), Arc::new(path));
        let forgotten = Arc::clone(&path);
        let attempt = move |by| {
            let (me, path) = (Arc::clone(&me), Arc::clone(&path));
            async move {
                match me.session.connecting.live(by).await {
                    Ok(live) if session.is_some_and(|session| session != live.session) => true,
                    Ok(live) => me.delete(&live, &path).await.is_ok(),
                    Err(_) => me.session.connecting.is_closed(),
                }
            }
        };
        self.burials.repeat(attempt, move || {
            buried.holds.lock().forget_buried(&forgotten);
        });
    }

    /// Sees to it that what stays taken after a release ends.
    pub(crate) fn note_kept(&self, node: &KeyNode, children: &[Child]) {
        for child in children.iter().filter(|child| child.kept) {
            let path = node.child(&child.name);
            if self.holds.lock().is_kept(&path) {
                continue;
            }
            let Some(me) = self.me.upgrade() else {
                return;
            };
            let seen = self.clock.now();
            self.holds.lock().keep(path.clone(), None);
            self.clock.spawn(async move {
                let by = me.clock.now() + LIMIT;
                let Ok(live) = me.session.connecting.live(by).await else {
                    me.holds.lock().unkeep(&path);
                    return;
                };
                let found = me.clock.by(by, live.send(wire::data(&path, false)).reply());
                let data = found.await.and_then(Result::ok);
                let data = data.and_then(|reply| reply.read(wire::found_data).ok());
                match data.and_then(|(data, _)| keep_in(&data)) {
                    Some(keep) => me.holds.lock().keep(path, Some(seen + keep)),
                    None => me.holds.lock().unkeep(&path),
                }
                me.ends.notify_one();
            });
        }
    }
}

/// As the contract's longest lease.
const LONGEST: Duration = lock_store::timing::MAX_LEASE;

/// The data of a node that stays for this long.
pub(crate) fn kept_data(keep: Duration) -> Vec<u8> {
    // Rounded up: it stays at least so long.
    let millis = keep.as_nanos().div_ceil(1_000_000);
    millis.to_string().into_bytes()
}

fn keep_in(data: &[u8]) -> Option<Duration> {
    let millis = std::str::from_utf8(data).ok()?.parse().ok()?;
    Some(Duration::from_millis(millis).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_says_for_how_long() {
        for (keep, found) in [
            (1, 1),
            (1_000_000, 1),
            (1_000_001, 2),
            (5_000_000_000, 5_000),
        ] {
            let data = kept_data(Duration::from_nanos(keep));
            assert_eq!(keep_in(&data), Some(Duration::from_millis(found)));
        }
        assert_eq!(keep_in(b"somebody's"), None);
    }
}
