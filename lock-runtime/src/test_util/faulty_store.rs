//! The embedded store as a test wants it: silent, refusing, or well.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use lock_store::memory::MemoryStore;
use lock_store::{
    Asked, ClientId, ClientMessage, Clock, Ended, Failure, HandedOver, Instant, Link, Listener,
    LockKey, Mutex, Operation, Store, StoreContext, StoreError, StoreErrorKind, StoreFuture,
    WakeUp,
};
use tokio::sync::watch;

/// The client that is somebody else.
pub(super) const ANOTHER: ClientId = ClientId(u128::MAX);
/// What that client is called.
const ITS_NAME: &str = "somebody-else";

/// What a test has told the store.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    pub(super) behaviour: watch::Sender<Behaviour>,
    /// Since when somebody else has what.
    pub(super) held_by_another: Mutex<HashMap<LockKey, Instant>>,
}

/// What the store does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Behaviour {
    #[default]
    Answers,
    Silent,
    Refuses(StoreErrorKind),
}

/// What a command does to the store. A store that is in trouble refuses the last of them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CommandEffect {
    Reads,
    Writes,
    TakesMemory,
}

impl Behaviour {
    fn refusal(self, effect: CommandEffect) -> Option<StoreErrorKind> {
        let Self::Refuses(kind) = self else {
            return None;
        };
        let least = match kind {
            StoreErrorKind::OutOfMemory => CommandEffect::TakesMemory,
            StoreErrorKind::ReadOnly | StoreErrorKind::NotReplicated => CommandEffect::Writes,
            _ => CommandEffect::Reads,
        };
        (effect >= least).then_some(kind)
    }
}

/// A client's handle to this server, behind what is told to it.
pub(super) fn connect(
    server: &MemoryStore,
    mut context: StoreContext,
    told: &Arc<Instructions>,
) -> Arc<dyn Store> {
    let clock = context.clock.clone();
    let listener: Arc<dyn Listener> = Arc::new(FaultyListener {
        listener: context.listener,
        told: Arc::clone(told),
    });
    context.listener = Arc::downgrade(&listener);
    Arc::new(FaultyStore {
        store: server.connect(context),
        clock,
        told: Arc::clone(told),
        listener,
    })
}

#[derive(Debug)]
struct FaultyStore {
    store: Arc<dyn Store>,
    clock: Clock,
    told: Arc<Instructions>,
    /// The server tells it what it has to say, as long as it is there.
    listener: Arc<dyn Listener>,
}

impl FaultyStore {
    /// Waits until a command with this effect may be carried out.
    async fn let_pass(&self, effect: CommandEffect, by: Instant) -> Result<(), Failure> {
        let mut behaviour = self.told.behaviour.subscribe();
        let answers = behaviour.wait_for(|behaviour| *behaviour != Behaviour::Silent);
        let behaviour = match self.clock.by(by, answers).await {
            Some(told) => told.map_or(Behaviour::Answers, |behaviour| *behaviour),
            None => return Err(self.failure(StoreErrorKind::Timeout, Some(self.store.link()))),
        };
        match behaviour.refusal(effect) {
            Some(kind) => Err(self.failure(kind, None)),
            None => Ok(()),
        }
    }

    /// Somebody else is asked what it has.
    fn another_answers(&self, key: &LockKey) {
        let since = self.told.held_by_another.lock().get(key).copied();
        let now = self.clock.now();
        self.listener.on_message(ClientMessage::Holds {
            key: key.clone(),
            client: ANOTHER,
            name: ITS_NAME.into(),
            held_for: since.map(|since| now.saturating_duration_since(since)),
        });
    }

    fn failure(&self, kind: StoreErrorKind, unknown: Option<Link>) -> Failure {
        let error = StoreError::new(kind, "a fault of the test");
        Failure::new(error, unknown)
    }
}

fn effect(operation: Operation) -> CommandEffect {
    match operation {
        Operation::Acquire
        | Operation::AcquireAll
        | Operation::Fence
        | Operation::Rate
        | Operation::LatchSet
        | Operation::LatchCountDown
        | Operation::LatchWait => CommandEffect::TakesMemory,
        Operation::Renew
        | Operation::Release
        | Operation::Shrink
        | Operation::Abandon
        | Operation::ForceRelease
        | Operation::LatchLeave => CommandEffect::Writes,
        Operation::Inspect | Operation::Holders | Operation::LatchLook | Operation::Ping => {
            CommandEffect::Reads
        }
    }
}

macro_rules! faulty {
    ($($method:ident($($argument:ident: $type:ty),*) -> $Name:ident($reply:ty);)*) => {
        impl Store for FaultyStore {
            $(fn $method(&self, $($argument: $type,)* by: Instant) -> StoreFuture<'_, $reply> {
                Box::pin(async move {
                    self.let_pass(effect(Operation::$Name), by).await?;
                    self.store.$method($($argument,)* by).await
                })
            })*

            fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
                Box::pin(async move {
                    let passes = self.let_pass(CommandEffect::Writes, by).await;
                    passes.map_err(|failure| failure.error)?;
                    if to == ANOTHER {
                        self.another_answers(message.key());
                        return Ok(true);
                    }
                    self.store.tell(to, message, by).await
                })
            }

            fn is_connected(&self) -> bool {
                let is_silent = *self.told.behaviour.borrow() == Behaviour::Silent;
                !is_silent && self.store.is_connected()
            }

            lock_store::delegate! {
                capabilities owner_of foreign_name foreign_lock forget_unused_views await_connection
                log_findings migrate servers link link_of finish close is_closed
            }
        }
    };
}

lock_store::operations!(faulty);

/// Hears nothing while the store is silent.
#[derive(Debug)]
struct FaultyListener {
    listener: Weak<dyn Listener>,
    told: Arc<Instructions>,
}

impl FaultyListener {
    fn listener_unless_silent(&self) -> Weak<dyn Listener> {
        match *self.told.behaviour.borrow() {
            Behaviour::Silent => Weak::<Self>::new(),
            _ => Weak::clone(&self.listener),
        }
    }
}

impl Listener for FaultyListener {
    fn on_granted(&self, grant: HandedOver) -> WakeUp {
        self.listener_unless_silent().on_granted(grant)
    }

    fn recheck(&self) {
        self.listener_unless_silent().recheck();
    }

    fn on_lost(&self, link: Link) {
        self.listener_unless_silent().on_lost(link);
    }

    fn on_freed(&self, ended: Ended) {
        self.listener_unless_silent().on_freed(ended);
    }

    fn on_message(&self, message: ClientMessage) {
        self.listener_unless_silent().on_message(message);
    }
}
