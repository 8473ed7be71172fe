//! SUBSCRIBE and SSUBSCRIBE: the channels that one connection listens on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_store::{Clock, Mutex, StoreError, StoreErrorKind};
use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tokio::sync::{OnceCell, RwLock};

use super::client_channels::ClientChannels;
use super::pipeline;
use crate::context::ClientContext;
use crate::errors;

/// A channel is given up when nobody used it between two looks, and its view is not in use. Where
/// views are not known (beyond 1,024), whoever waits uses it each second.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// So many end in one piece. Who begins to listen waits for one piece at most.
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
    state: Mutex<State>,
    /// Held while a subscription is made, and exclusively while some end: each is sent after what
    /// the state says was before it.
    order: Arc<RwLock<()>>,
    /// See [`mix_up`](Self::mix_up).
    mixed_up: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// One for each namespace that somebody waits in, and in a cluster for each slot of it.
    channels: HashMap<String, Subscription>,
    /// Those whose end is asked for and not told yet.
    ending: HashSet<String>,
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
            state: Mutex::default(),
            order: Arc::default(),
            mixed_up: AtomicBool::new(false),
        })
    }

    /// Listens on a channel of this connection, once.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        connection: &MultiplexedConnection,
        channel: &str,
        asking: bool,
    ) -> Result<(), RedisError> {
        let made = {
            let mut state = self.state.lock();
            let subscription = match state.channels.get_mut(channel) {
                Some(subscription) => subscription,
                None => {
                    if !channel.starts_with(&self.kept) {
                        self.look_after(&mut state, connection);
                    }
                    state.channels.entry(channel.to_owned()).or_default()
                }
            };
            subscription.is_used = true;
            Arc::clone(&subscription.made)
        };
        if made.initialized() {
            return Ok(());
        }
        // A task of the client subscribes: others wait for it as well, and the first caller may
        // stop polling.
        let (mut connection, channel) = (connection.clone(), channel.to_owned());
        let (sharded, order) = (self.sharded, Arc::clone(&self.order));
        let subscribed = self.clock.handle().spawn(async move {
            let _in_order = order.read().await;
            let subscribe = async || send(&mut connection, sharded, &channel, asking).await;
            made.get_or_try_init(subscribe).await.copied()
        });
        subscribed.await.unwrap_or_else(|_| {
            let ended = std::io::Error::other("the client's thread has ended");
            Err(RedisError::from(ended))
        })
    }

    /// Starts the task that gives up unused channels, unless it runs. It ends with the last of
    /// them.
    fn look_after(self: &Arc<Self>, state: &mut State, connection: &MultiplexedConnection) {
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
                    let unused = state.take_unused(|channel| subscriptions.keeps(channel));
                    goes_on = state.has_others_than(&subscriptions.kept);
                    state.is_looked_after = goes_on;
                    unused
                };
                // A node ends a subscription of itself when its slot goes elsewhere, in the words
                // of a reply, and then refuses to end it: each reply after that would go to the
                // wrong command. So there it ends with the connection.
                if subscriptions.sharded {
                    continue;
                }
                let is_back =
                    |channel: &str| subscriptions.state.lock().channels.contains_key(channel);
                let ended = subscriptions.end(&connection, &unused, is_back);
                ended.await;
            }
        });
    }

    /// Whether somebody may wait on it who does not ask by himself, as behind others of this
    /// process.
    fn keeps(&self, channel: &str) -> bool {
        let views = self.views.as_ref();
        channel.starts_with(&self.kept) || views.is_some_and(|views| views.may_wait_on(channel))
    }

    /// Listens on these channels no longer, unless somebody uses them again. Who may not say so
    /// goes on to hear what is of no use.
    async fn end(
        &self,
        connection: &MultiplexedConnection,
        channels: &[String],
        is_back: impl Fn(&str) -> bool,
    ) {
        for channels in channels.chunks(END_AT_ONCE) {
            let _alone = self.order.write().await;
            let mut unused = channels.to_vec();
            unused.retain(|channel| !is_back(channel));
            self.state.lock().ending.extend(unused.iter().cloned());
            let ended = pipeline::send_all(&mut connection.clone(), "UNSUBSCRIBE", &unused).await;
            self.state.lock().ending.clear();
            if let Err(error) = ended {
                let error = errors::store_error(&error);
                tracing::debug!(%error, "subscriptions go on that nobody uses");
            }
        }
    }

    /// Listens in the background no longer on these channels of the client's own.
    pub(super) fn forget(
        self: &Arc<Self>,
        connection: &MultiplexedConnection,
        channels: Vec<String>,
        own: Arc<ClientChannels>,
    ) {
        let (this, connection) = (Arc::clone(self), connection.clone());
        self.clock.spawn(async move {
            this.end(&connection, &channels, |channel| own.has(channel))
                .await;
        });
    }

    /// Listens in the background on channels that no slot owns, on a connection of the client's
    /// own. Who may not subscribe hears nothing there.
    pub(super) fn hear(
        &self,
        connection: &MultiplexedConnection,
        channels: Vec<String>,
        own: Arc<ClientChannels>,
    ) {
        let (mut connection, order) = (connection.clone(), Arc::clone(&self.order));
        self.clock.spawn(async move {
            // One refused channel refuses the whole command: the first is the client's own.
            for channel in channels {
                let _in_order = order.read().await;
                // Given up before it was its turn.
                if !own.has(&channel) {
                    continue;
                }
                if let Err(error) = connection.subscribe(channel).await {
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

    /// Whether the end of a subscription is what this client asked for. It is told once.
    pub(super) fn has_asked_for_end(&self, channel: &[u8]) -> bool {
        std::str::from_utf8(channel).is_ok_and(|channel| self.state.lock().ending.remove(channel))
    }

    /// A subscription ended that we did not give up: its slot went to another node. The redis crate
    /// takes the server's word of that for the reply to some command, so from now on each reply may
    /// belong to another command.
    pub(crate) fn mix_up(&self) -> StoreError {
        self.mixed_up.store(true, Ordering::Release);
        mixed_up()
    }

    /// An error if replies may belong to other commands.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.mixed_up.load(Ordering::Acquire) {
            true => Err(mixed_up()),
            false => Ok(()),
        }
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

async fn send(
    connection: &mut MultiplexedConnection,
    sharded: bool,
    channel: &str,
    asking: bool,
) -> Result<(), RedisError> {
    if !sharded {
        return connection.subscribe(channel).await;
    }
    let mut subscribe = redis::cmd("SSUBSCRIBE");
    subscribe.arg(channel);
    let reply = pipeline::send(connection, &subscribe, asking);
    reply.await.map(drop)
}

fn mixed_up() -> StoreError {
    let text = "the slot of a lock that is waited for went to another node";
    StoreError::new(StoreErrorKind::Disconnected, text)
}
