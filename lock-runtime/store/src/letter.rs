//! [`Letter`]: a message from client to client, as engines write it that have no form of their own.

use std::time::Duration;

use crate::client_message::{ClientMessage, RevokeAnswer};
use crate::key::LockKey;
use crate::namespace::Namespace;
use crate::owner::{ClientId, Owner};

/// A message about a key of this namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Where the key is.
    pub namespace: String,
    /// What is said about it.
    pub message: ClientMessage,
}

/// Letters of other versions are not read.
const VERSION: u8 = 1;
/// [`ClientMessage::WhoHolds`]. 1 is SQLite's word of a grant.
const WHO_HOLDS: u8 = 2;
/// [`ClientMessage::Holds`].
const HOLDS: u8 = 3;
/// [`ClientMessage::Revoke`].
const REVOKE: u8 = 4;
/// [`ClientMessage::Revoking`].
const REVOKING: u8 = 5;

impl Letter {
    /// What a client of this namespace says.
    #[must_use]
    pub fn of(message: &ClientMessage, own: &Namespace) -> Self {
        Self {
            namespace: message.key().namespace().unwrap_or(own).to_string(),
            message: message.clone(),
        }
    }

    /// The letter in bytes. `None` if one of its texts has more than 65,535.
    #[must_use]
    pub fn write(&self) -> Option<Vec<u8>> {
        let mut to = vec![VERSION];
        match &self.message {
            ClientMessage::WhoHolds { asker, .. } => {
                to.push(WHO_HOLDS);
                write_client(&mut to, *asker);
            }
            ClientMessage::Holds {
                client,
                name,
                held_for,
                ..
            } => {
                to.push(HOLDS);
                write_client(&mut to, *client);
                let micros = held_for.map(|held| held.as_micros());
                write_number(&mut to, micros.and_then(|held| u64::try_from(held).ok()));
                write_text(&mut to, name)?;
            }
            ClientMessage::Revoke {
                asker, owner, only, ..
            } => {
                to.push(REVOKE);
                write_client(&mut to, *asker);
                write_owner(&mut to, *owner);
                to.push(only.is_some().into());
                write_text(&mut to, only.as_deref().unwrap_or_default())?;
            }
            ClientMessage::Revoking {
                owner,
                name,
                answer,
                ..
            } => {
                to.push(REVOKING);
                write_owner(&mut to, *owner);
                write_text(&mut to, answer.word())?;
                write_text(&mut to, name)?;
            }
        }
        write_text(&mut to, &self.namespace)?;
        write_text(&mut to, self.message.key().as_str())?;
        Some(to)
    }

    /// `None` if it is not what this version writes.
    #[must_use]
    pub fn read(letter: &[u8]) -> Option<Self> {
        let mut rest = letter;
        let [version, kind] = take(&mut rest)?;
        if version != VERSION {
            return None;
        }
        let client = ClientId(u128::from_be_bytes(take(&mut rest)?));
        // The key stands at the end.
        let message = match kind {
            WHO_HOLDS => ClientMessage::WhoHolds {
                key: LockKey::from(""),
                asker: client,
            },
            HOLDS => ClientMessage::Holds {
                key: LockKey::from(""),
                client,
                held_for: read_number(&mut rest)?.map(Duration::from_micros),
                name: read_text(&mut rest)?.into(),
            },
            REVOKE => ClientMessage::Revoke {
                key: LockKey::from(""),
                asker: client,
                owner: read_owner(&mut rest)?,
                only: {
                    let [is_named] = take(&mut rest)?;
                    Some(read_text(&mut rest)?.into()).filter(|_| is_named == 1)
                },
            },
            REVOKING => ClientMessage::Revoking {
                key: LockKey::from(""),
                owner: Owner::new(client, u64::from_be_bytes(take(&mut rest)?)),
                answer: RevokeAnswer::of_word(&read_text(&mut rest)?)?,
                name: read_text(&mut rest)?.into(),
            },
            _ => return None,
        };
        let namespace = read_text(&mut rest)?;
        let message = message.about(read_text(&mut rest)?.into());
        rest.is_empty().then_some(Self { namespace, message })
    }

    /// The message as a client of this namespace writes its key. `None` if it is none.
    #[must_use]
    pub fn message_for(self, own: &Namespace) -> Option<ClientMessage> {
        let other = match self.namespace == own.as_str() {
            true => None,
            false => Some(Namespace::new(&self.namespace).ok()?),
        };
        let key = self.message.key().clone().in_namespace(other);
        Some(self.message.about(key))
    }
}

fn write_client(to: &mut Vec<u8>, client: ClientId) {
    to.extend(client.0.to_be_bytes());
}

/// Adds an owner to a message.
pub fn write_owner(to: &mut Vec<u8>, owner: Owner) {
    write_client(to, owner.client);
    to.extend(owner.request.to_be_bytes());
}

/// Adds a number to a message, or that there is none.
pub fn write_number(to: &mut Vec<u8>, number: Option<u64>) {
    to.push(number.is_some().into());
    to.extend(number.unwrap_or(0).to_be_bytes());
}

fn write_text(to: &mut Vec<u8>, text: &str) -> Option<()> {
    to.extend(u16::try_from(text.len()).ok()?.to_be_bytes());
    to.extend(text.as_bytes());
    Some(())
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*taken)
}

/// What [`write_owner`] has written. `None` if the message ends before.
pub fn read_owner(from: &mut &[u8]) -> Option<Owner> {
    let client = ClientId(u128::from_be_bytes(take(from)?));
    Some(Owner::new(client, u64::from_be_bytes(take(from)?)))
}

/// What [`write_number`] has written. `None` if the message ends before.
pub fn read_number(from: &mut &[u8]) -> Option<Option<u64>> {
    let [is_some] = take(from)?;
    let number = u64::from_be_bytes(take(from)?);
    Some((is_some == 1).then_some(number))
}

fn read_text(from: &mut &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes(take(from)?));
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Letter> {
        let owner = Owner::new(ClientId(u128::MAX - 7), u64::MAX - 1);
        let key = || LockKey::from("kä\ny");
        let asker = ClientId(7);
        let mut messages = vec![ClientMessage::WhoHolds { key: key(), asker }];
        for held_for in [None, Some(Duration::from_micros(1234))] {
            messages.push(ClientMessage::Holds {
                key: key(),
                client: asker,
                name: "orders-7f9c".into(),
                held_for,
            });
        }
        for only in [None, Some("".into()), Some("orders-1".into())] {
            messages.push(ClientMessage::Revoke {
                key: key(),
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
        let of = |message| Letter {
            namespace: "shöp".to_owned(),
            message,
        };
        messages.into_iter().map(of).collect()
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        for letter in all() {
            let written = letter.write().unwrap();
            assert_eq!(Letter::read(&written), Some(letter));
            for end in 0..written.len() {
                assert_eq!(Letter::read(&written[..end]), None);
            }
            let longer = [&written[..], &[0]].concat();
            assert_eq!(Letter::read(&longer), None);
            for (at, byte) in [(0, 9), (1, 9)] {
                let mut other = written.clone();
                other[at] = byte;
                assert_eq!(Letter::read(&other), None);
            }
        }
    }

    #[test]
    fn a_key_is_told_as_the_hearer_writes_it() {
        let letter = |namespace: &str| Letter {
            namespace: namespace.to_owned(),
            message: ClientMessage::WhoHolds {
                key: "k".into(),
                asker: ClientId(7),
            },
        };
        let own = Namespace::new("shop").unwrap();
        let namespace_of = |message: ClientMessage| message.key().namespace().cloned();
        let message = |namespace| letter(namespace).message_for(&own).map(namespace_of);
        assert_eq!(message("shop"), Some(None));
        assert_eq!(message("other"), Some(Namespace::new("other").ok()));
        assert_eq!(message("a:b"), None);
    }
}
