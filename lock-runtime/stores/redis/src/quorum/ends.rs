//! [`Ends`]: the progress of a round's end on each server, and the tasks that wait for it.

use lock_store::{Instant, Mutex, Released, StoreError};
use tokio::sync::{Notify, mpsc};

/// The next reply of one server to the end of a round.
pub(super) type EndReply = Result<Released, StoreError>;

/// The replies of the servers, one from each.
pub(super) type EndReplies = mpsc::UnboundedReceiver<(usize, EndReply)>;

/// The progress of a round's end on each server, and the tasks that wait for it.
#[derive(Debug)]
pub(super) struct Ends {
    servers: Mutex<Vec<ServerEnd>>,
    /// Notified when the end is requested once more.
    pub(super) again: Notify,
}

#[derive(Debug, Default)]
struct ServerEnd {
    wish: EndWish,
    /// True if a task is ending it.
    under_way: bool,
    /// The server's reply when nothing was left to do.
    done: Option<Released>,
    /// Each listener gets the next answer.
    listeners: Vec<mpsc::UnboundedSender<(usize, EndReply)>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndWish {
    /// Servers tell waiting clients that the lock is free. So those that do not have it are asked
    /// as well.
    pub(super) tells_waiters: bool,
    pub(super) keep_until: Option<Instant>,
    /// The time limit for the next answer, if there is one.
    pub(super) by: Option<Instant>,
}

impl Ends {
    pub(super) fn new(servers: usize) -> Self {
        Self {
            servers: Mutex::new((0..servers).map(|_| ServerEnd::default()).collect()),
            again: Notify::new(),
        }
    }

    /// Listens to the end on one server. Returns true if it must still be started.
    pub(super) fn ask(
        &self,
        at: usize,
        wish: EndWish,
        listener: mpsc::UnboundedSender<(usize, EndReply)>,
    ) -> bool {
        let mut servers = self.servers.lock();
        let end = &mut servers[at];
        if let Some(released) = end.done {
            let _ = listener.send((at, Ok(released)));
            return false;
        }
        end.listeners.push(listener);
        end.wish = EndWish {
            tells_waiters: wish.tells_waiters || end.wish.tells_waiters,
            keep_until: wish.keep_until.max(end.wish.keep_until),
            by: wish.by,
        };
        let begins = !std::mem::replace(&mut end.under_way, true);
        drop(servers);
        self.again.notify_waiters();
        begins
    }

    pub(super) fn wish(&self, at: usize) -> EndWish {
        let mut servers = self.servers.lock();
        let wish = servers[at].wish;
        servers[at].wish.by = None;
        wish
    }

    /// Records a server's reply. If it `is_sure` that the part has ended, nothing is left to do
    /// there. If the end `has_ended`, nothing more is done.
    pub(super) fn record(&self, at: usize, reply: &EndReply, is_sure: bool, has_ended: bool) {
        let mut servers = self.servers.lock();
        let end = &mut servers[at];
        end.under_way = !has_ended;
        if let (true, Ok(released)) = (is_sure, reply) {
            end.done = Some(*released);
        }
        for listener in end.listeners.drain(..) {
            // No task listens any more: a majority has answered.
            let _ = listener.send((at, reply.clone()));
        }
    }
}
