//! [`Ends`]: how far the end of a round has come on each server, and which tasks wait for that.

use lock_store::{Instant, Mutex, Released, StoreError};
use tokio::sync::{Notify, mpsc};

/// What one server said first.
pub(super) type EndReply = Result<Released, StoreError>;

/// What the servers say, each once.
pub(super) type EndReplies = mpsc::UnboundedReceiver<(usize, EndReply)>;

/// How a round ends on each server, and which tasks wait for that.
#[derive(Debug)]
pub(super) struct Ends {
    servers: Mutex<Vec<ServerEnd>>,
    /// The end is asked for once more.
    pub(super) again: Notify,
}

#[derive(Debug, Default)]
struct ServerEnd {
    wish: EndWish,
    /// Whether a task sees to it.
    under_way: bool,
    /// What the server said when nothing was left to be done.
    done: Option<Released>,
    /// Each is told the next answer.
    listeners: Vec<mpsc::UnboundedSender<(usize, EndReply)>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndWish {
    /// Servers that do not have it are asked as well, and tell waiting clients that the lock is
    /// free.
    pub(super) held: bool,
    pub(super) keep_until: Option<Instant>,
    /// By when the next answer is wanted, if that was said.
    pub(super) by: Option<Instant>,
}

impl Ends {
    pub(super) fn new(servers: usize) -> Self {
        Self {
            servers: Mutex::new((0..servers).map(|_| ServerEnd::default()).collect()),
            again: Notify::new(),
        }
    }

    /// Listens to the end on one server. Whether it is still to be begun.
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
            held: wish.held || end.wish.held,
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

    /// One server has said something. Nothing is left to be done there if it is `surely` ended, and
    /// nothing more is done if that is `over`.
    pub(super) fn tell(&self, at: usize, reply: &EndReply, surely: bool, over: bool) {
        let mut servers = self.servers.lock();
        let end = &mut servers[at];
        end.under_way = !over;
        if let (true, Ok(released)) = (surely, reply) {
            end.done = Some(*released);
        }
        for listener in end.listeners.drain(..) {
            // No task listens any more: a majority has answered.
            let _ = listener.send((at, reply.clone()));
        }
    }
}
