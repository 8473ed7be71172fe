//! [`Together`]: requests of one kind for one key, taken up together.
//!
//! A statement about a contended key locks its row until its commit. So one of a client is under way
//! at a time. The others wait here, and then go as one statement: the row is locked once for all of
//! them, and committed once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_store::{Answer, Failure, Instant, Mutex};
use tokio::sync::oneshot;

use crate::errors::contended;
use crate::link::LINK;
use crate::store::PostgresStore;

/// At most so many go as one statement: a commit of more takes too long.
const AT_ONCE: usize = 64;

pub(crate) type Reply<T> = Result<Answer<T>, Failure>;

/// What can go together.
pub(crate) trait Batched: Sized + Send + 'static {
    type Reply: Send + 'static;

    /// Those of this kind that wait.
    fn together(store: &PostgresStore) -> &Together<Self>;

    /// Carries out requests for one key. The replies are in their order.
    fn carry_out(
        store: &PostgresStore,
        requests: Vec<Self>,
        by: Instant,
    ) -> impl Future<Output = Reply<Vec<Self::Reply>>> + Send;
}

struct Waiting<R: Batched> {
    number: u64,
    request: R,
    by: Instant,
    reply: oneshot::Sender<Reply<R::Reply>>,
}

/// The requests of one kind that wait, by their key's name. A name that is there has a statement
/// under way.
pub(crate) struct Together<R: Batched> {
    keys: Mutex<HashMap<Vec<u8>, VecDeque<Waiting<R>>>>,
    numbers: AtomicU64,
}

impl<R: Batched> Default for Together<R> {
    fn default() -> Self {
        Self {
            keys: Mutex::default(),
            numbers: AtomicU64::default(),
        }
    }
}

/// The right to a statement. When it is dropped, those that have come meanwhile go.
struct Turn<'s, R: Batched> {
    store: &'s PostgresStore,
    together: &'s Together<R>,
    name: Vec<u8>,
}

impl<R: Batched> Drop for Turn<'_, R> {
    fn drop(&mut self) {
        if !self.together.is_last(&self.name)
            && let Some(store) = self.store.me.upgrade()
        {
            let (clock, name) = (store.pool.clock.clone(), std::mem::take(&mut self.name));
            clock.spawn(carry_out_all::<R>(store, name));
        }
    }
}

/// A request that waits. Dropped before it was sent, it is not sent.
struct Place<'s, R: Batched> {
    together: &'s Together<R>,
    name: Vec<u8>,
    number: u64,
}

impl<R: Batched> Place<'_, R> {
    /// True if it was not sent.
    fn leave(&self) -> bool {
        let mut keys = self.together.keys.lock();
        let Some(waiting) = keys.get_mut(&self.name) else {
            return false;
        };
        let at = waiting.iter().position(|one| one.number == self.number);
        at.and_then(|at| waiting.remove(at)).is_some()
    }
}

impl<R: Batched> Drop for Place<'_, R> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<R: Batched> Together<R> {
    /// Ends the turn if nobody waits.
    fn is_last(&self, name: &[u8]) -> bool {
        let mut keys = self.keys.lock();
        let is_last = keys.get(name).is_none_or(VecDeque::is_empty);
        if is_last {
            keys.remove(name);
        }
        is_last
    }

    /// The next to go. Without any, the turn ends.
    fn next(&self, name: &[u8]) -> Vec<Waiting<R>> {
        let mut keys = self.keys.lock();
        let Some(waiting) = keys.get_mut(name) else {
            return Vec::new();
        };
        let many = waiting.len().min(AT_ONCE);
        let next: Vec<_> = waiting.drain(..many).collect();
        if next.is_empty() {
            keys.remove(name);
        }
        next
    }

    /// Its reply, if there is one to wait for. Otherwise the request has its turn.
    fn join(
        &self,
        name: &[u8],
        request: R,
        by: Instant,
    ) -> Result<R, (u64, oneshot::Receiver<Reply<R::Reply>>)> {
        let mut keys = self.keys.lock();
        let Some(waiting) = keys.get_mut(name) else {
            keys.insert(name.to_vec(), VecDeque::new());
            return Ok(request);
        };
        let (reply, replied) = oneshot::channel();
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        waiting.push_back(Waiting {
            number,
            request,
            by,
            reply,
        });
        Err((number, replied))
    }
}

impl PostgresStore {
    /// Carries out a request now, or with others when the one before has ended.
    pub(crate) async fn together<R: Batched>(
        &self,
        name: Vec<u8>,
        request: R,
        by: Instant,
    ) -> Reply<R::Reply> {
        let (store, together) = (self, R::together(self));
        match together.join(&name, request, by) {
            Ok(request) => {
                let _turn = Turn {
                    store,
                    together,
                    name,
                };
                let answer = R::carry_out(self, vec![request], by).await?;
                first(answer).ok_or_else(|| Failure::unknown(self.silence(), LINK))
            }
            Err((number, replied)) => {
                let place = Place {
                    together,
                    name,
                    number,
                };
                let replied = self.pool.clock.by(by, replied).await;
                match replied {
                    Some(Ok(reply)) => reply,
                    _ if place.leave() => Err(Failure::without_effect(contended(self.server()))),
                    _ => Err(Failure::unknown(self.silence(), LINK)),
                }
            }
        }
    }
}

fn first<T>(answer: Answer<Vec<T>>) -> Option<Answer<T>> {
    let link = answer.link;
    let first = answer.value.into_iter().next()?;
    Some(Answer::new(first, link))
}

/// Until nobody waits any more.
async fn carry_out_all<R: Batched>(store: Arc<PostgresStore>, name: Vec<u8>) {
    loop {
        let (mut requests, mut replies) = (Vec::new(), Vec::new());
        let mut by = store.pool.clock.now();
        let next = R::together(&store).next(&name);
        if next.is_empty() {
            return;
        }
        for one in next {
            by = by.max(one.by);
            requests.push(one.request);
            replies.push(one.reply);
        }
        match R::carry_out(&store, requests, by).await {
            Ok(answer) => {
                for (reply, value) in replies.into_iter().zip(answer.value) {
                    let _ = reply.send(Ok(Answer::new(value, answer.link)));
                }
            }
            Err(failure) => {
                for reply in replies {
                    let _ = reply.send(Err(failure.clone()));
                }
            }
        }
    }
}
