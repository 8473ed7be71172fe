//! [`Letter`]: a message from client to client, as a key has it.

use std::time::Duration;

use lock_store::{ClientId, ClientMessage, LockKey, Namespace, Owner, RevokeAnswer};
use prost::Message;

/// A message about a key of this namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) namespace: String,
    pub(crate) message: ClientMessage,
}

/// Letters of other versions are not read.
const VERSION: u32 = 1;
const WHO_HOLDS: u32 = 1;
const HOLDS: u32 = 2;
const REVOKE: u32 = 3;
const REVOKING: u32 = 4;

/// How it is written. What a kind of message does not have is left out.
#[derive(Clone, PartialEq, Eq, Message)]
struct WrittenLetter {
    #[prost(uint32, tag = "1")]
    version: u32,
    #[prost(uint32, tag = "2")]
    kind: u32,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "4")]
    key: String,
    #[prost(string, tag = "5")]
    client: String,
    #[prost(string, tag = "6")]
    owner: String,
    #[prost(string, optional, tag = "7")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "8")]
    held_for_micros: Option<u64>,
    #[prost(string, tag = "9")]
    answer: String,
}

fn hexadecimal(id: ClientId) -> String {
    format!("{:032x}", id.0)
}

impl Letter {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut written = WrittenLetter {
            version: VERSION,
            namespace: self.namespace.clone(),
            key: self.message.key().as_str().to_owned(),
            ..WrittenLetter::default()
        };
        match &self.message {
            ClientMessage::WhoHolds { asker, .. } => {
                written.kind = WHO_HOLDS;
                written.client = hexadecimal(*asker);
            }
            ClientMessage::Holds {
                client,
                name,
                held_for,
                ..
            } => {
                written.kind = HOLDS;
                written.client = hexadecimal(*client);
                written.name = Some(name.to_string());
                written.held_for_micros =
                    held_for.and_then(|held| u64::try_from(held.as_micros()).ok());
            }
            ClientMessage::Revoke {
                asker, owner, only, ..
            } => {
                written.kind = REVOKE;
                written.client = hexadecimal(*asker);
                written.owner = owner.to_string();
                written.name = only.as_ref().map(ToString::to_string);
            }
            ClientMessage::Revoking {
                owner,
                name,
                answer,
                ..
            } => {
                written.kind = REVOKING;
                written.owner = owner.to_string();
                written.name = Some(name.to_string());
                written.answer = answer.word().to_owned();
            }
        }
        written.encode_to_vec()
    }

    /// `None` for one of another version, and for what is no letter.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let written = WrittenLetter::decode(data).ok()?;
        if written.version != VERSION {
            return None;
        }
        let key = LockKey::from(written.key);
        let client = || {
            let id = u128::from_str_radix(&written.client, 16);
            id.ok().map(ClientId)
        };
        let owner = || Owner::parse(&written.owner);
        let name = written.name.map(Into::into);
        let message = match written.kind {
            WHO_HOLDS => ClientMessage::WhoHolds {
                key,
                asker: client()?,
            },
            HOLDS => ClientMessage::Holds {
                key,
                client: client()?,
                name: name?,
                held_for: written.held_for_micros.map(Duration::from_micros),
            },
            REVOKE => ClientMessage::Revoke {
                key,
                asker: client()?,
                owner: owner()?,
                only: name,
            },
            REVOKING => ClientMessage::Revoking {
                key,
                owner: owner()?,
                name: name?,
                answer: RevokeAnswer::of_word(&written.answer)?,
            },
            _ => return None,
        };
        Some(Self {
            namespace: written.namespace,
            message,
        })
    }

    /// The message as a client of this namespace writes its key.
    pub(crate) fn message_for(self, own: &Namespace) -> Option<ClientMessage> {
        let other = match self.namespace == own.as_str() {
            true => None,
            false => Some(Namespace::new(&self.namespace).ok()?),
        };
        let key = self.message.key().clone().in_namespace(other);
        Some(self.message.about(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_read_as_it_was_written() {
        let owner = Owner {
            client: ClientId(u128::MAX - 7),
            request: u64::MAX - 1,
        };
        let key = || LockKey::from("kä\ny");
        let asker = ClientId(7);
        let mut messages = vec![ClientMessage::WhoHolds { key: key(), asker }];
        for held_for in [None, Some(Duration::from_micros(5))] {
            messages.push(ClientMessage::Holds {
                key: key(),
                client: asker,
                name: "orders-1".into(),
                held_for,
            });
        }
        for only in [None, Some("".into()), Some("orders-1".into())] {
            let key = key();
            messages.push(ClientMessage::Revoke {
                key,
                asker,
                owner,
                only,
            });
        }
        for answer in RevokeAnswer::ALL {
            messages.push(ClientMessage::Revoking {
                key: key(),
                owner,
                name: "".into(),
                answer,
            });
        }
        for message in messages {
            let letter = Letter {
                namespace: "shöp".to_owned(),
                message,
            };
            assert_eq!(Letter::read(&letter.write()), Some(letter));
        }
        assert_eq!(Letter::read(b"somebody's"), None);
        assert_eq!(Letter::read(b""), None);
    }
}
