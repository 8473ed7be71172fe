//! [`Letter`]: a message from client to client, as a node has it.

use std::time::Duration;

use lock_store::{ClientId, ClientMessage, LockKey, Namespace, Owner, RevokeAnswer};

use crate::jute::{JuteReader, JuteWriter};

/// A message about a key of this namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) namespace: String,
    pub(crate) message: ClientMessage,
}

/// Letters of other versions are not read.
const VERSION: i32 = 1;
const WHO_HOLDS: i32 = 1;
const HOLDS: i32 = 2;
const REVOKE: i32 = 3;
const REVOKING: i32 = 4;

/// What stands for no time and no name.
const NONE: i64 = -1;

fn client(id: ClientId) -> String {
    format!("{:032x}", id.0)
}

fn client_in(reader: &mut JuteReader<'_>) -> Option<ClientId> {
    u128::from_str_radix(&reader.text()?, 16).ok().map(ClientId)
}

fn owner_in(reader: &mut JuteReader<'_>) -> Option<Owner> {
    Owner::parse(&reader.text()?)
}

impl Letter {
    pub(crate) fn write(&self) -> Vec<u8> {
        let head = JuteWriter::default()
            .int(VERSION)
            .text(&self.namespace)
            .text(self.message.key().as_str());
        match &self.message {
            ClientMessage::WhoHolds { asker, .. } => head.int(WHO_HOLDS).text(&client(*asker)),
            ClientMessage::Holds {
                client: from,
                name,
                held_for,
                ..
            } => {
                let micros = held_for.and_then(|held| i64::try_from(held.as_micros()).ok());
                let head = head.int(HOLDS).text(&client(*from));
                head.text(name).long(micros.unwrap_or(NONE))
            }
            ClientMessage::Revoke {
                asker, owner, only, ..
            } => {
                let head = head.int(REVOKE).text(&client(*asker));
                let head = head.text(&owner.to_string()).bool(only.is_some());
                head.text(only.as_deref().unwrap_or_default())
            }
            ClientMessage::Revoking {
                owner,
                name,
                answer,
                ..
            } => {
                let head = head.int(REVOKING).text(&owner.to_string());
                head.text(name).text(answer.word())
            }
        }
        .done()
    }

    /// `None` for one of another version, and for what is no letter.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let mut reader = JuteReader::new(data);
        if reader.int()? != VERSION {
            return None;
        }
        let (namespace, key) = (reader.text()?, LockKey::from(reader.text()?));
        let message = match reader.int()? {
            WHO_HOLDS => ClientMessage::WhoHolds {
                key,
                asker: client_in(&mut reader)?,
            },
            HOLDS => ClientMessage::Holds {
                key,
                client: client_in(&mut reader)?,
                name: reader.text()?.into(),
                held_for: u64::try_from(reader.long()?)
                    .ok()
                    .map(Duration::from_micros),
            },
            REVOKE => ClientMessage::Revoke {
                key,
                asker: client_in(&mut reader)?,
                owner: owner_in(&mut reader)?,
                only: {
                    let is_named = reader.bool()?;
                    Some(reader.text()?.into()).filter(|_| is_named)
                },
            },
            REVOKING => ClientMessage::Revoking {
                key,
                owner: owner_in(&mut reader)?,
                name: reader.text()?.into(),
                answer: RevokeAnswer::of_word(&reader.text()?)?,
            },
            _ => return None,
        };
        Some(Self { namespace, message })
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
            let written = letter.write();
            assert_eq!(Letter::read(&written), Some(letter));
            for len in 0..written.len() {
                assert_eq!(Letter::read(&written[..len]), None);
            }
        }
    }
}
