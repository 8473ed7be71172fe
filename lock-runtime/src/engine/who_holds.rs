//! Who holds a key, by name.
//!
//! The store knows a holder by a random number. Its client knows its own name, and tells it to
//! others that ask by a message. Names are for people: nothing else depends on them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{ClientMessage, Holder, Instant, LockKey};

use super::Engine;
use super::holder_names::{Question, Questions};
use crate::error::HeldBy;

/// How long a question of people waits for its answer.
const ANSWERED: Duration = Duration::from_millis(250);
/// A question that comes again within this time came over several connections of this client.
const TWICE: Duration = Duration::from_millis(100);

impl Engine {
    /// Asks the holder's client for its name, in the background. The answer comes soon or never.
    pub(super) fn ask_for_name(&self, key: &LockKey, holder: Option<Holder>) {
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
            // Without the right to publish we cannot tell whether anybody listens.
            let listens = store.tell(client, question, by).await.unwrap_or(true);
            names.note_asked(client, &key, listens);
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
            Some(holder @ Holder::Foreign(_)) => match self.store.foreign_name(holder) {
                Some(name) => HeldBy::ForeignClient { name: name.into() },
                None => HeldBy::Foreign,
            },
            None if self.local_queues.has_hold(key) => HeldBy::ThisClient,
            None => HeldBy::Unknown,
        }
    }

    /// Finds out who the holder of a key is. Waits a moment for the answer of its client.
    pub(crate) async fn identify_holder(&self, key: &LockKey, holder: Holder) -> HeldBy {
        let by = self.clock.now() + ANSWERED;
        self.ask_for_name(key, Some(holder));
        let Holder::Owner(owner) = holder else {
            return self.held_by(key, Some(holder));
        };
        let answer = async {
            loop {
                let heard = self.names.answer_came.notified();
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
pub(super) async fn answer_questions(engine: Weak<Engine>, mut questions: Questions) {
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
        // Nobody waits for it longer.
        let (store, by) = (Arc::clone(&engine.store), now + ANSWERED);
        // A client that goes away does not wait for this.
        drop(engine);
        let told = store.tell(question.asker, answer, by).await;
        if let Err(error) = told {
            tracing::debug!(%error, "another client is not told who has its key");
        }
        last = Some((question, now));
    }
}
