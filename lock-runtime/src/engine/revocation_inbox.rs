//! [`Revocations`]: what other clients demand of this one's holds, and what they answer to it.

use std::collections::HashMap;

use lock_store::{ClientId, ClientMessage, LockKey, Mutex, Owner, RevokeAnswer};
use tokio::sync::{Notify, mpsc};

/// At most this many demands of others wait. The rest gets no answer, and is sent again.
pub(super) const DEMANDS: usize = 1024;

/// The demands and the answers of a client.
#[derive(Debug)]
pub(crate) struct Revocations {
    demands: mpsc::Sender<Demand>,
    /// The holds that calls of this client want to end.
    asked: Mutex<HashMap<Owner, AskedHold>>,
    /// An answer has come.
    pub(super) answer_came: Notify,
}

/// What is known of a hold that is to end, and how many calls want to know it.
#[derive(Debug, Default)]
struct AskedHold {
    calls: usize,
    answered: Option<Answered>,
}

/// Another client wants the end of a hold.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(super) key: LockKey,
    pub(super) asker: ClientId,
    pub(super) owner: Owner,
    pub(super) only: Option<Box<str>>,
}

/// Demands of others, for the task that carries them out.
pub(crate) type Demands = mpsc::Receiver<Demand>;

/// What a holder's client says.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) answer: RevokeAnswer,
    pub(super) name: Box<str>,
}

/// Answers about these holds are listened to, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening<'r> {
    revocations: &'r Revocations,
    owners: Vec<Owner>,
}

impl Revocations {
    pub(crate) fn new() -> (Self, Demands) {
        let (demands, carried_out) = mpsc::channel(DEMANDS);
        let revocations = Self {
            demands,
            asked: Mutex::default(),
            answer_came: Notify::new(),
        };
        (revocations, carried_out)
    }

    /// Another client says something about a revocation.
    pub(super) fn on_message(&self, message: ClientMessage) {
        match message {
            ClientMessage::Revoke {
                key,
                asker,
                owner,
                only,
            } => {
                let _ = self.demands.try_send(Demand {
                    key,
                    asker,
                    owner,
                    only,
                });
            }
            ClientMessage::Revoking {
                owner,
                name,
                answer,
                ..
            } => {
                // Nobody else is believed to be asked.
                if let Some(known) = self.asked.lock().get_mut(&owner) {
                    known.answered = Some(Answered { answer, name });
                }
                self.answer_came.notify_waiters();
            }
            ClientMessage::WhoHolds { .. } | ClientMessage::Holds { .. } => {}
        }
    }

    pub(super) fn listen(&self, owners: impl Iterator<Item = Owner>) -> Listening<'_> {
        let owners: Vec<_> = owners.collect();
        let mut asked = self.asked.lock();
        for owner in &owners {
            asked.entry(*owner).or_default().calls += 1;
        }
        drop(asked);
        Listening {
            revocations: self,
            owners,
        }
    }

    /// What the client of a hold has said last to who wants the end of it, or of `only` this
    /// client's. It may have said that to another demand: under another name it is another client
    /// in any case, and under this name what it said of another counts for nothing.
    pub(super) fn answered(&self, owner: Owner, only: Option<&str>) -> Option<Answered> {
        let known = self.asked.lock().get(&owner)?.answered.clone()?;
        let answer = RevokeAnswer::IsAnother;
        match only {
            Some(only) if *only != *known.name => Some(Answered { answer, ..known }),
            _ => (known.answer != answer).then_some(known),
        }
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let mut asked = self.revocations.asked.lock();
        for owner in &self.owners {
            if let Some(known) = asked.get_mut(owner) {
                known.calls -= 1;
                if known.calls == 0 {
                    asked.remove(owner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_a_demand_that_meant_another_client_does_not_count() {
        let (revocations, _demands) = Revocations::new();
        let owner = Owner::new(ClientId(1), 1);
        let _listening = revocations.listen(std::iter::once(owner));
        let tell = |answer| {
            revocations.on_message(ClientMessage::Revoking {
                key: LockKey::from("k"),
                owner,
                name: Box::from("b"),
                answer,
            });
        };
        let said = |only| {
            let answered = revocations.answered(owner, only);
            answered.map(|known| known.answer)
        };
        tell(RevokeAnswer::IsAnother);
        assert_eq!(said(Some("c")), Some(RevokeAnswer::IsAnother));
        assert_eq!((said(Some("b")), said(None)), (None, None));
        tell(RevokeAnswer::Stops);
        assert_eq!(said(Some("b")), Some(RevokeAnswer::Stops));
        assert_eq!(said(None), Some(RevokeAnswer::Stops));
        assert_eq!(said(Some("c")), Some(RevokeAnswer::IsAnother));
    }
}
