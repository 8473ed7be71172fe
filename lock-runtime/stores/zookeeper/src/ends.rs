//! The ends of leases, of waits, and of what stays taken after a release.
//!
//! What stays taken is a node of no session, so that it outlives its client. The client ends it in
//! time. If the client is gone, whoever finds it there ends it, after having seen it for as long as
//! it is to stay: nobody's clock but its own counts.

use std::sync::Arc;
use std::time::Duration;

use lock_store::ordered::{EndedRequest, EngineEnds, KeyNode};

use crate::names::Child;
use crate::own_children::{EndedChild, paths_of, take_ended};
use crate::store::ZooKeeperEngine;
use crate::wire;

/// The limit of a reading.
const LIMIT: Duration = Duration::from_secs(5);

impl EngineEnds for ZooKeeperEngine {
    fn take_ended(&self) -> Vec<EndedChild> {
        take_ended(&mut self.own.lock(), self.clock.now())
    }

    fn bury(self: &Arc<Self>, ended: EndedChild) {
        let session = match &ended {
            EndedRequest::Own(_, own) => Some(own.details.session),
            EndedRequest::Kept(..) => None,
        };
        for path in paths_of(&ended) {
            self.bury_path(path, session);
        }
    }
}

impl ZooKeeperEngine {
    /// Deletes a node, in a task, as often as it takes. One of a session ends with it.
    fn bury_path(self: &Arc<Self>, path: String, session: Option<i64>) {
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
            buried.own.lock().forget_buried(&forgotten);
        });
    }

    /// Sees to it that what stays taken after a release ends.
    pub(crate) fn note_kept(&self, node: &KeyNode, children: &[Child]) {
        for child in children.iter().filter(|child| child.kept) {
            let path = node.child(&child.name);
            if self.own.lock().is_kept(&path) {
                continue;
            }
            let Some(me) = self.me.upgrade() else {
                return;
            };
            let seen = self.clock.now();
            self.own.lock().keep(path.clone(), None, 0);
            self.clock.spawn(async move {
                let by = me.clock.now() + LIMIT;
                let Ok(live) = me.session.connecting.live(by).await else {
                    me.own.lock().unkeep(&path);
                    return;
                };
                let found = me.clock.by(by, live.send(wire::data(&path, false)).reply());
                let data = found.await.and_then(Result::ok);
                let data = data.and_then(|reply| reply.read(wire::found_data).ok());
                match data.and_then(|(data, _)| keep_in(&data)) {
                    Some(keep) => me.own.lock().keep(path, Some(seen + keep), 0),
                    None => me.own.lock().unkeep(&path),
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
