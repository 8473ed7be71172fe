//! SUBSCRIBE and SSUBSCRIBE: the channels that one connection listens on.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use lock_store::{Clock, Instant, Mutex, StoreErrorKind};
use redis::RedisError;
use tokio::sync::{OnceCell, RwLock, watch};

use super::client_channels::ClientChannels;
use super::foreign_channels::ForeignChannels;
use crate::context::ClientContext;
use crate::errors;
use crate::resp::{Limits, RespConnection};

/// A channel is given up when nobody used it between two looks, nobody depends on it, and its view
/// is not in use. Where views are not known (beyond 1,024), whoever waits uses it each second.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// At most this many end in one piece. Who begins to listen waits for one piece at most.
const END_AT_ONCE: usize = 64;

/// What is heard over one connection.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    clock: Clock,
    /// Whether the connection leads to a node of a cluster, where channels belong to slots.
    sharded: bool,
    /// What the channels of the client's own namespace begin with, which it keeps.
    kept: String,
    /// Where the client hears others: knows which views are in use.
    views: Option<Arc<ClientChannels>>,
    /// In another library's layout: knows on which of its channels somebody waits.
    foreign: Option<Arc<ForeignChannels>>,
    state: Mutex<State>,
    /// Held while a subscription is made, and exclusively while some end: each is sent after what
    /// the state says was before it.
    order: Arc<RwLock<()>>,
    /// Whether messages come; `None` until that is known.
    hears: watch::Sender<Option<bool>>,
}

#[derive(Debug, Default)]
struct State {
    /// One for each namespace that somebody waits in, and in a cluster for each slot of it.
    channels: HashMap<String, Subscription>,
    /// Whether a task looks for unused ones.
    is_looked_after: bool,
}

#[derive(Debug, Default)]
struct Subscription {
    made: Arc<OnceCell<()>>,
    /// Since the last look.
    is_used: bool,
}

impl Subscriptions {
    pub(crate) fn new(context: &ClientContext, sharded: bool) -> Arc<Self> {
        Arc::new(Self {
            clock: context.clock.clone(),
            sharded,
            kept: context.namespace.channels_begin_with(),
            views: context.channels.clone(),
            foreign: context.foreign.clone(),
            state: Mutex::default(),
            order: Arc::default(),
            // It is not tried in a cluster, where a message goes to every node.
            hears: watch::Sender::new(sharded.then_some(true)),
        })
    }

    /// Notes that a channel is used, if it is one of this connection's. Whether the connection
    /// listens on it.
    pub(crate) fn use_if_heard(&self, channel: &str) -> bool {
        let mut state = self.state.lock();
        let subscription = state.channels.get_mut(channel);
        subscription.is_some_and(|subscription| {
            subscription.is_used = true;
            subscription.made.initialized()
        })
    }

    /// Listens on a channel of this connection, once.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        connection: &RespConnection,
        channel: &str,
        asking: bool,
        limits: Option<Limits>,
    ) -> Result<(), RedisError> {
        if self.use_if_heard(channel) {
            return Ok(());
        }
        let made = {
            let mut state = self.state.lock();
            if !channel.starts_with(&self.kept) {
                self.look_after(&mut state, connection);
            }
            let subscription = state.channels.entry(channel.to_owned()).or_default();
            subscription.is_used = true;
            Arc::clone(&subscription.made)
        };
        // A task of the client subscribes: others wait for it as well, and the first caller may
        // stop polling.
        let (connection, channel) = (connection.clone(), channel.to_owned());
        let (word, order) = (self.word(), Arc::clone(&self.order));
        let subscribed = self.clock.handle().spawn(async move {
            let _in_order = order.read().await;
            let subscribe = async || {
                let subscribed = connection.subscribe(word, &channel, asking, limits);
                subscribed.await
            };
            made.get_or_try_init(subscribe).await.copied()
        });
        let subscribed = match limits {
            Some(limits) => self.clock.by(limits.by, subscribed).await,
            None => Some(subscribed.await),
        };
        match subscribed {
            Some(Ok(subscribed)) => subscribed,
            Some(Err(_)) => Err(io::Error::other("the client's thread has ended").into()),
            None => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }

    fn word(&self) -> &'static str {
        match self.sharded {
            true => "SSUBSCRIBE",
            false => "SUBSCRIBE",
        }
    }

    /// Starts the task that gives up unused channels, unless it runs. It ends with the last of
    /// them.
    fn look_after(self: &Arc<Self>, state: &mut State, connection: &RespConnection) {
        if std::mem::replace(&mut state.is_looked_after, true) {
            return;
        }
        let (this, clock) = (Arc::downgrade(self), self.clock.clone());
        let connection = connection.clone();
        self.clock.spawn(async move {
            let mut goes_on = true;
            while goes_on {
                clock.sleep_until(clock.now() + LOOK_EVERY).await;
                let Some(subscriptions) = this.upgrade() else {
                    return;
                };
                let unused = {
                    let mut state = subscriptions.state.lock();
                    let unused = state.take_unused(|channel| subscriptions.is_needed(channel));
                    goes_on = state.has_others_than(&subscriptions.kept);
                    state.is_looked_after = goes_on;
                    unused
                };
                let is_back =
                    |channel: &str| subscriptions.state.lock().channels.contains_key(channel);
                let word = match subscriptions.sharded {
                    true => "SUNSUBSCRIBE",
                    false => "UNSUBSCRIBE",
                };
                let ended = subscriptions.end(&connection, word, &unused, is_back);
                ended.await;
            }
        });
    }

    /// True if a waiter may depend on this channel without asking the store itself, as behind
    /// others of this process.
    fn is_needed(&self, channel: &str) -> bool {
        let (views, foreign) = (self.views.as_ref(), self.foreign.as_ref());
        channel.starts_with(&self.kept)
            || views.is_some_and(|views| views.may_wait_on(channel))
            || foreign.is_some_and(|foreign| foreign.is_awaited(channel))
    }

    /// Listens on these channels no longer, unless somebody uses them again. Who may not say so
    /// goes on to hear what is of no use.
    async fn end(
        &self,
        connection: &RespConnection,
        word: &'static str,
        channels: &[String],
        is_back: impl Fn(&str) -> bool,
    ) {
        for channels in channels.chunks(END_AT_ONCE) {
            let _alone = self.order.write().await;
            let mut unused = channels.to_vec();
            unused.retain(|channel| !is_back(channel));
            let ended = unused
                .iter()
                .map(|channel| connection.subscribe(word, channel, false, None));
            if let Err(error) = try_join_all(ended).await {
                let error = errors::store_error(&error);
                tracing::debug!(%error, "subscriptions go on that nobody uses");
            }
        }
    }

    /// Listens in the background no longer on these channels of the client's own.
    pub(super) fn unsubscribe(
        self: &Arc<Self>,
        connection: &RespConnection,
        channels: Vec<String>,
        own: Arc<ClientChannels>,
    ) {
        let (this, connection) = (Arc::clone(self), connection.clone());
        self.clock.spawn(async move {
            let is_back = |channel: &str| own.has(channel);
            this.end(&connection, "UNSUBSCRIBE", &channels, is_back)
                .await;
        });
    }

    /// Listens in the background on channels that no slot owns, on a connection of the client's
    /// own. Who may not subscribe hears nothing there.
    pub(super) fn subscribe_own(
        &self,
        connection: &RespConnection,
        channels: Vec<String>,
        own: Arc<ClientChannels>,
    ) {
        let (connection, order) = (connection.clone(), Arc::clone(&self.order));
        self.clock.spawn(async move {
            // One refused channel refuses the whole command: the first is the client's own.
            for channel in channels {
                let _in_order = order.read().await;
                // Given up before it was its turn.
                if !own.has(&channel) {
                    continue;
                }
                let subscribed = connection.subscribe("SUBSCRIBE", &channel, false, None);
                if let Err(error) = subscribed.await {
                    let error = errors::store_error(&error);
                    tracing::debug!(%error, "this client does not hear other clients there");
                    if error.kind() != StoreErrorKind::Denied {
                        return;
                    }
                }
            }
        });
    }

    /// What a new connection should listen on as well.
    pub(crate) fn established(&self) -> Vec<String> {
        let state = self.state.lock();
        let made = state
            .channels
            .iter()
            .filter(|(_, one)| one.made.initialized());
        made.map(|(channel, _)| channel.clone()).collect()
    }

    /// The server ended this subscription on its own.
    pub(super) fn forget_ended(&self, channel: &[u8]) {
        if let Ok(channel) = std::str::from_utf8(channel) {
            self.state.lock().channels.remove(channel);
        }
    }

    /// Notes that a message has come.
    pub(super) fn note_message(&self) {
        if !self.are_known_to_be_heard() {
            self.hears.send_replace(Some(true));
        }
    }

    /// Notes that messages should have come, and none has.
    pub(super) fn note_silence(&self) {
        self.hears.send_if_modified(|hears| {
            let is_unknown = hears.is_none();
            *hears = hears.or(Some(false));
            is_unknown
        });
    }

    pub(super) fn are_known_to_be_heard(&self) -> bool {
        *self.hears.borrow() == Some(true)
    }

    pub(super) async fn until_heard(&self) {
        let mut hears = self.hears.subscribe();
        // The sender lives as long as this.
        let _ = hears.wait_for(|hears| *hears == Some(true)).await;
    }

    /// Whether messages come, as soon as it is known; `None` if it is not by then.
    pub(crate) async fn are_heard(&self, by: Instant) -> Option<bool> {
        let mut hears = self.hears.subscribe();
        let known = hears.wait_for(|hears| hears.is_some());
        *self.clock.by(by, known).await?.ok()?
    }
}

impl State {
    /// Removes what nobody used since the last look. What is being made is used.
    fn take_unused(&mut self, keeps: impl Fn(&str) -> bool) -> Vec<String> {
        let unused = self.channels.extract_if(|channel, one| {
            let is_being_made = Arc::strong_count(&one.made) > 1;
            let is_used = std::mem::take(&mut one.is_used) || is_being_made;
            !is_used && !keeps(channel)
        });
        unused.map(|(channel, _)| channel).collect()
    }

    fn has_others_than(&self, kept: &str) -> bool {
        let mut channels = self.channels.keys();
        channels.any(|channel| !channel.starts_with(kept))
    }
}
