//! The two streams of a connection: keep-alives of the leases, and watches.

use std::collections::HashMap;
use std::time::Duration;

use lock_store::ordered::{SessionNews, gone, silent};
use lock_store::{Clock, StoreError};
use tokio::sync::mpsc;

use crate::connection::{Live, Watch, WatchedChange};
use crate::dial::error_of;
use crate::leases::ClientLeases;
use crate::wire::{self, LeaseId, LeaseReply, WatchKind, WatchReply, WatchRequest, path};

/// Watches leave out what is written.
const NO_PUT: i32 = 0;
/// Watches leave out what is deleted.
const NO_DELETE: i32 = 1;

/// Keeps the leases alive, until the connection ends.
pub(crate) async fn keep_alive(
    live: &Live,
    leases: &ClientLeases,
    clock: &Clock,
    session: Duration,
) -> StoreError {
    let server = &live.server;
    let opened = live.channel.stream(path::KEEP_ALIVE, live.identity.token());
    let (mut outgoing, mut incoming) = match opened.await {
        Ok(streams) => streams,
        Err(error) => return error_of(error, server),
    };
    let pause = pause_of(session);
    let silence = (session / 2).clamp(Duration::from_secs(1), Duration::from_millis(2_500));
    let mut beats_at = clock.now();
    loop {
        let reply = clock.by(beats_at, incoming.next::<LeaseReply>()).await;
        let now = clock.now();
        match reply {
            Some(Ok(reply)) if reply.seconds > 0 => {
                let term = reply.header.map_or(0, |header| header.raft_term);
                leases.answer(reply.id, now, term);
            }
            Some(Ok(reply)) => {
                leases.remove(reply.id);
                if reply.id == live.epoch.lease {
                    return gone(server, "the client's session is over");
                }
            }
            Some(Err(error)) => return error_of(error, server),
            None => {
                if leases.first_asked().is_some_and(|at| now - at > silence) {
                    return silent(server);
                }
                for id in leases.ask(now) {
                    if let Err(error) = outgoing.send(&LeaseId { id }) {
                        return error_of(error, server);
                    }
                }
                beats_at = now + pause;
            }
        }
    }
}

/// The time between two keep-alives.
fn pause_of(session: Duration) -> Duration {
    (session / 5).min(Duration::from_secs(2))
}

/// Watches what it is asked to, until the connection ends. Each change is told once.
pub(crate) async fn watch(
    live: &Live,
    wanted: &mut mpsc::UnboundedReceiver<Watch>,
    news: &mpsc::UnboundedSender<SessionNews>,
) -> StoreError {
    let server = &live.server;
    let Some(first) = wanted.recv().await else {
        return gone(server, "the client is closed");
    };
    let opened = live.channel.stream(path::WATCH, live.identity.token());
    let (mut outgoing, mut incoming) = match opened.await {
        Ok(streams) => streams,
        Err(error) => return error_of(error, server),
    };
    let mut watched = PathWatches::default();
    let mut next = Some(first);
    loop {
        if let Some(watch) = next.take() {
            let request = watched.begin(watch);
            if let Err(error) = outgoing.send(&request) {
                return error_of(error, server);
            }
        }
        let reply: WatchReply = tokio::select! {
            reply = incoming.next() => match reply {
                Ok(reply) => reply,
                Err(error) => return error_of(error, server),
            },
            watch = wanted.recv() => match watch {
                Some(watch) => {
                    next = Some(watch);
                    continue;
                }
                None => return gone(server, "the client is closed"),
            },
        };
        match watched.hear(&reply) {
            Heard::Nothing => {}
            Heard::Refused => return gone(server, &lock_store::escaped(&reply.reason)),
            Heard::Changed(path, cancel) => {
                let _ = news.send(SessionNews::Changed(path));
                if let Some(Err(error)) = cancel.map(|request| outgoing.send(&request)) {
                    return error_of(error, server);
                }
            }
        }
    }
}

/// The watches of a connection.
#[derive(Debug, Default)]
struct PathWatches {
    paths: HashMap<i64, String>,
    last: i64,
}

/// What a reply says.
enum Heard {
    Nothing,
    /// A watch can't be, or none at all: some servers do not say which. The next connection logs in
    /// again.
    Refused,
    /// This has changed, or may have. The watch is cancelled by what follows, if it is not yet.
    Changed(String, Option<WatchRequest>),
}

impl PathWatches {
    /// The request for a watch.
    fn begin(&mut self, watch: Watch) -> WatchRequest {
        self.last += 1;
        let create = wire::WatchCreate {
            key: watch.path.clone().into(),
            end: match watch.is_prefix {
                true => wire::end_of(&watch.path),
                false => Vec::new(),
            },
            start: watch.start,
            filters: match watch.what {
                WatchedChange::Ends => vec![NO_PUT],
                WatchedChange::News => vec![NO_DELETE],
                WatchedChange::Both => Vec::new(),
            },
            id: self.last,
        };
        self.paths.insert(self.last, watch.path);
        let kind = Some(WatchKind::Create(create));
        WatchRequest { kind }
    }

    fn hear(&mut self, reply: &WatchReply) -> Heard {
        let is_over = reply.canceled && self.paths.contains_key(&reply.id);
        // Cut off by a compaction, it may have missed something.
        let is_compacted = is_over && reply.compact_revision != 0;
        if (reply.canceled && reply.id < 0) || (is_over && !is_compacted) {
            return Heard::Refused;
        }
        if !is_compacted && reply.events.is_empty() {
            return Heard::Nothing;
        }
        let Some(path) = self.paths.remove(&reply.id) else {
            return Heard::Nothing;
        };
        let cancel = wire::WatchCancel { id: reply.id };
        let kind = Some(WatchKind::Cancel(cancel));
        Heard::Changed(path, (!is_over).then_some(WatchRequest { kind }))
    }
}
