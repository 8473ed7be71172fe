//! The watches of a connection: one stream for all.

use std::collections::HashMap;
use std::convert::Infallible;

use lock_store::StoreError;
use lock_store::ordered::{SessionNews, gone};
use tokio::sync::mpsc;

use crate::connection::{Live, Watch, WatchedChange};
use crate::errors::error_of;
use crate::wire::{self, WatchKind, WatchReply, WatchRequest, path};

/// Watches leave out what is written.
const NO_PUT: i32 = 0;
/// Watches leave out what is deleted.
const NO_DELETE: i32 = 1;

/// Watches what it is asked to, until the connection ends. Each change is told once.
pub(crate) async fn watch(
    live: &Live,
    wanted: &mut mpsc::UnboundedReceiver<Watch>,
    news: &mpsc::UnboundedSender<SessionNews>,
) -> Result<Infallible, StoreError> {
    let server = &live.server;
    let failed = |error| error_of(error, server);
    let closed = || gone(server, "the client is closed");
    let mut next = Some(wanted.recv().await.ok_or_else(closed)?);
    let opened = live.channel.stream(path::WATCH, live.identity.token());
    let (mut outgoing, mut incoming) = opened.await.map_err(failed)?;
    let mut watched = PathWatches::default();
    loop {
        if let Some(watch) = next.take() {
            outgoing.send(&watched.begin(watch)).map_err(failed)?;
        }
        let reply: WatchReply = tokio::select! {
            reply = incoming.next() => reply.map_err(failed)?,
            watch = wanted.recv() => {
                next = Some(watch.ok_or_else(closed)?);
                continue;
            }
        };
        match watched.on_reply(&reply) {
            WatchNews::Nothing => {}
            WatchNews::Refused => return Err(gone(server, &lock_store::escaped(&reply.reason))),
            WatchNews::Changed(path, cancel) => {
                let _ = news.send(SessionNews::Changed(path));
                if let Some(request) = cancel {
                    outgoing.send(&request).map_err(failed)?;
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
enum WatchNews {
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

    fn on_reply(&mut self, reply: &WatchReply) -> WatchNews {
        let is_over = reply.canceled && self.paths.contains_key(&reply.id);
        // Cut off by a compaction, it may have missed something.
        let is_compacted = is_over && reply.compact_revision != 0;
        if (reply.canceled && reply.id < 0) || (is_over && !is_compacted) {
            return WatchNews::Refused;
        }
        if !is_compacted && reply.events.is_empty() {
            return WatchNews::Nothing;
        }
        let Some(path) = self.paths.remove(&reply.id) else {
            return WatchNews::Nothing;
        };
        let cancel = wire::WatchCancel { id: reply.id };
        let kind = Some(WatchKind::Cancel(cancel));
        WatchNews::Changed(path, (!is_over).then_some(WatchRequest { kind }))
    }
}
