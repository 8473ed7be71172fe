//! [`HolderNames`]: who holds a key, by name.
//!
//! The store knows a holder by a random number. Its client knows its own name, and tells it to
//! others that ask by a message. Names are for people: nothing else depends on them.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{ClientId, ClientMessage, Clock, Holder, Instant, LockKey, Mutex};
use tokio::sync::{Notify, mpsc};

use super::Engine;
use crate::error::HeldBy;

/// The same client is asked about the same key at most so often.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// How long a question of people waits for its answer.
const ANSWERED: Duration = Duration::from_millis(250);
/// So many answers are kept.
const KEPT: usize = 64;
/// So many questions of others wait for their answers. The rest gets none.
const QUESTIONS: usize = 64;
/// The same question in so short a time came twice: over several connections of this client.
const TWICE: Duration = Duration::from_millis(100);

/// What a client says of itself, and has heard of others.
#[derive(Debug)]
pub(crate) struct HolderNames {
    clock: Clock,
    /// Its own.
    name: Arc<str>,
    asked: Mutex<VecDeque<AskedHolder>>,
    /// An answer has come.
    heard: Notify,
    questions: mpsc::Sender<Question>,
}

/// Who else wants to know who has this key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    key: LockKey,
    asker: ClientId,
}

/// Questions of others, for the task that answers them.
pub(crate) type Questions = mpsc::Receiver<Question>;

/// A holder that was asked for its name.
#[derive(Debug)]
struct AskedHolder {
    client: ClientId,
    key: LockKey,
    at: Instant,
    /// Whether it listens.
    listens: Option<bool>,
    said: Option<Said>,
}

#[derive(Debug)]
struct Said {
    name: Box<str>,
    /// Since when it holds the key.
    since: Option<Instant>,
}

impl HolderNames {
    pub(crate) fn new(clock: Clock, name: Arc<str>) -> (Self, Questions) {
        let (questions, answered) = mpsc::channel(QUESTIONS);
        let names = Self {
            clock,
            name,
            asked: Mutex::default(),
            heard: Notify::new(),
            questions,
        };
        (names, answered)
    }

    /// Another client says something.
    pub(super) fn told(&self, message: ClientMessage) {
        match message {
            // Too many of them are not answered.
            ClientMessage::WhoHolds { key, asker } => {
                let _ = self.questions.try_send(Question { key, asker });
            }
            ClientMessage::Holds {
                key,
                client,
                name,
                held_for,
            } => {
                let now = self.clock.now();
                let since = held_for.and_then(|held_for| now.checked_sub(held_for));
                let mut asked = self.asked.lock();
                let mut asked_it = asked.iter_mut();
                let it = asked_it.find(|it| it.client == client && it.key == key);
                // Nobody else is believed to be asked.
                if let Some(it) = it {
                    it.said = Some(Said { name, since });
                    drop(asked);
                    self.heard.notify_waiters();
                }
            }
        }
    }

    /// Whether it is time to ask this client about the key.
    fn is_to_be_asked(&self, client: ClientId, key: &LockKey, now: Instant) -> bool {
        let mut asked = self.asked.lock();
        let earlier = asked
            .iter()
            .position(|it| it.client == client && it.key == *key);
        if let Some(at) = earlier {
            if now < asked[at].at + ASKED_EVERY {
                return false;
            }
            asked.remove(at);
        }
        if asked.len() >= KEPT {
            asked.pop_front();
        }
        asked.push_back(AskedHolder {
            client,
            key: key.clone(),
            at: now,
            listens: None,
            said: None,
        });
        true
    }

    fn was_asked(&self, client: ClientId, key: &LockKey, listens: bool) {
        let mut asked = self.asked.lock();
        let mut asked_it = asked.iter_mut();
        if let Some(it) = asked_it.find(|it| it.client == client && it.key == *key) {
            it.listens = Some(listens);
        }
        drop(asked);
        self.heard.notify_waiters();
    }

    /// What is known of a holder now, and whether there is more to come.
    fn known(&self, client: ClientId, key: &LockKey, now: Instant) -> (HeldBy, bool) {
        let asked = self.asked.lock();
        let it = asked
            .iter()
            .find(|it| it.client == client && it.key == *key);
        match it {
            Some(AskedHolder {
                said: Some(said), ..
            }) => {
                let held_for = said.since.map(|since| now.saturating_duration_since(since));
                let name = said.name.clone();
                (HeldBy::Client { name, held_for }, false)
            }
            Some(AskedHolder {
                listens: Some(false),
                ..
            }) => (HeldBy::Disconnected, false),
            Some(_) => (HeldBy::AnotherClient, true),
            None => (HeldBy::AnotherClient, false),
        }
    }
}

impl Engine {
    /// Asks the holder's client for its name, in the background. The answer comes soon or never.
    pub(super) fn asks_for_name(&self, key: &LockKey, holder: Option<Holder>) {
        let Some(Holder::Owner(owner)) = holder else {
            return;
        };
        let (client, now) = (owner.client, self.clock.now());
        if client == self.id() || !self.names.is_to_be_asked(client, key, now) {
            return;
        }
        let (store, names) = (Arc::clone(&self.store), Arc::clone(&self.names));
        let (key, asker, by) = (key.clone(), self.id(), self.command_by());
        self.clock.spawn(async move {
            let question = ClientMessage::WhoHolds {
                key: key.clone(),
                asker,
            };
            // Who may not publish does not know whether anybody listens.
            let listens = store.tell(client, question, by).await.unwrap_or(true);
            names.was_asked(client, &key, listens);
        });
    }

    /// Who has a key, as far as it is known now.
    pub(super) fn held_by(&self, key: &LockKey, holder: Option<Holder>) -> HeldBy {
        match holder {
            Some(Holder::Owner(owner)) if owner.client == self.id() => HeldBy::ThisClient,
            Some(Holder::Owner(owner)) => {
                let (held_by, _) = self.names.known(owner.client, key, self.clock.now());
                held_by
            }
            Some(Holder::Kept) => HeldBy::Kept,
            Some(Holder::Foreign(_)) => HeldBy::Foreign,
            None if self.local_queues.has_hold(key) => HeldBy::ThisClient,
            None => HeldBy::Unknown,
        }
    }

    /// Who wrote this into a key. Waits a moment for what its client says.
    pub(crate) async fn names_holder(&self, key: &LockKey, holder: &str) -> HeldBy {
        let (holder, by) = (
            Holder::parse(holder.as_bytes()),
            self.clock.now() + ANSWERED,
        );
        self.asks_for_name(key, Some(holder));
        let Holder::Owner(owner) = holder else {
            return self.held_by(key, Some(holder));
        };
        let answer = async {
            loop {
                let heard = self.names.heard.notified();
                let (_, more) = self.names.known(owner.client, key, self.clock.now());
                if !more {
                    return;
                }
                heard.await;
            }
        };
        let _ = self.clock.by(by, answer).await;
        self.held_by(key, Some(holder))
    }
}

/// The task that answers the questions of others. Ends with the engine.
pub(super) async fn answers(engine: Weak<Engine>, mut questions: Questions) {
    let mut last: Option<(Question, Instant)> = None;
    while let Some(question) = questions.recv().await {
        let Some(engine) = engine.upgrade() else {
            return;
        };
        let now = engine.clock.now();
        let is_same =
            |(earlier, at): &(Question, Instant)| *earlier == question && now < *at + TWICE;
        if last.as_ref().is_some_and(is_same) {
            continue;
        }
        let held_for = engine
            .watchdog
            .held_since(&question.key)
            .map(|since| now.saturating_duration_since(since));
        let answer = ClientMessage::Holds {
            key: question.key.clone(),
            client: engine.id(),
            name: Box::from(&*engine.names.name),
            held_for,
        };
        let (store, by) = (Arc::clone(&engine.store), engine.command_by());
        // A client that goes away does not wait for this.
        drop(engine);
        let told = store.tell(question.asker, answer, by).await;
        if let Err(error) = told {
            tracing::debug!(%error, "another client is not told who has its key");
        }
        last = Some((question, now));
    }
}
