//! [`HolderNames`]: what other clients have said of themselves, and what they want to know.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lock_store::{ClientId, ClientMessage, Clock, Instant, LockKey, Mutex};
use tokio::sync::{Notify, mpsc};

use crate::error::HeldBy;

/// The pause before a client is asked again about the same key.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// The number of answers that are remembered.
const MOST_REMEMBERED: usize = 64;
/// At most this many questions of others wait for their answers. The rest gets none.
const QUESTIONS: usize = 64;

/// What a client says of itself, and has heard of others.
#[derive(Debug)]
pub(crate) struct HolderNames {
    clock: Clock,
    /// Its own.
    pub(super) name: Arc<str>,
    asked: Mutex<VecDeque<AskedHolder>>,
    /// An answer has come.
    pub(super) answer_came: Notify,
    questions: mpsc::Sender<Question>,
}

/// Who else wants to know who has this key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(super) key: LockKey,
    pub(super) asker: ClientId,
}

/// Questions of others, for the task that answers them.
pub(crate) type Questions = mpsc::Receiver<Question>;

#[derive(Debug)]
struct AskedHolder {
    client: ClientId,
    key: LockKey,
    at: Instant,
    /// Whether it listens.
    listens: Option<bool>,
    said: Option<HolderSaid>,
}

#[derive(Debug)]
struct HolderSaid {
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
            answer_came: Notify::new(),
            questions,
        };
        (names, answered)
    }

    /// Another client says something.
    pub(super) fn on_message(&self, message: ClientMessage) {
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
                    it.said = Some(HolderSaid { name, since });
                    drop(asked);
                    self.answer_came.notify_waiters();
                }
            }
            ClientMessage::Revoke { .. } | ClientMessage::Revoking { .. } => {}
        }
    }

    /// Whether it is time to ask this client about the key.
    pub(super) fn is_to_be_asked(&self, client: ClientId, key: &LockKey, now: Instant) -> bool {
        let mut asked = self.asked.lock();
        let mut asked_it = asked.iter_mut();
        if let Some(it) = asked_it.find(|it| it.client == client && it.key == *key) {
            let is_time = now >= it.at + ASKED_EVERY;
            if is_time {
                // What it said stays, until it says something else.
                (it.at, it.listens) = (now, None);
            }
            return is_time;
        }
        if asked.len() >= MOST_REMEMBERED {
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

    pub(super) fn note_asked(&self, client: ClientId, key: &LockKey, listens: bool) {
        let mut asked = self.asked.lock();
        let mut asked_it = asked.iter_mut();
        if let Some(it) = asked_it.find(|it| it.client == client && it.key == *key) {
            it.listens = Some(listens);
        }
        drop(asked);
        self.answer_came.notify_waiters();
    }

    /// What is known of a holder now, and whether there is more to come.
    pub(super) fn known(&self, client: ClientId, key: &LockKey, now: Instant) -> (HeldBy, bool) {
        let asked = self.asked.lock();
        let it = asked
            .iter()
            .find(|it| it.client == client && it.key == *key);
        match it {
            Some(AskedHolder {
                listens: Some(false),
                ..
            }) => (HeldBy::Disconnected, false),
            Some(AskedHolder {
                said: Some(said), ..
            }) => {
                let held_for = said.since.map(|since| now.saturating_duration_since(since));
                let name = said.name.clone();
                (HeldBy::Client { name, held_for }, false)
            }
            Some(_) => (HeldBy::AnotherClient, true),
            None => (HeldBy::AnotherClient, false),
        }
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests;
