//! [`News`]: what one client tells another, and how it is written in a datagram.

use std::time::Duration;

use lock_store::{ClientId, ClientMessage, LockKey, Namespace, Owner, RevokeAnswer};

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A hint that this owner was granted its lock, or that a latch has opened.
    Granted { owner: Owner, token: Option<u64> },
    /// A message about a key of this namespace.
    Told {
        namespace: String,
        message: ClientMessage,
    },
}

/// News for another client, by its file; `None` is this client.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    pub(crate) to: Option<String>,
    pub(crate) news: News,
}

/// Datagrams of other versions are not read.
const VERSION: u8 = 1;
const GRANTED: u8 = 1;
const WHO_HOLDS: u8 = 2;
const HOLDS: u8 = 3;
const REVOKE: u8 = 4;
const REVOKING: u8 = 5;

/// The longest datagram: a key, a namespace and a name.
pub(crate) const LONGEST: usize = 64 * 1024;

impl News {
    /// `None` if it is too long for a datagram.
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        let mut to = vec![VERSION];
        match self {
            Self::Granted { owner, token } => {
                to.push(GRANTED);
                to.extend(owner.client.0.to_be_bytes());
                to.extend(owner.request.to_be_bytes());
                write_number(&mut to, *token);
            }
            Self::Told { namespace, message } => {
                match message {
                    ClientMessage::WhoHolds { asker, .. } => {
                        to.push(WHO_HOLDS);
                        to.extend(asker.0.to_be_bytes());
                    }
                    ClientMessage::Holds {
                        client,
                        name,
                        held_for,
                        ..
                    } => {
                        to.push(HOLDS);
                        to.extend(client.0.to_be_bytes());
                        let micros = held_for.map(|held| held.as_micros());
                        write_number(&mut to, micros.and_then(|held| u64::try_from(held).ok()));
                        write_text(&mut to, name)?;
                    }
                    ClientMessage::Revoke {
                        asker, owner, only, ..
                    } => {
                        to.push(REVOKE);
                        to.extend(asker.0.to_be_bytes());
                        to.extend(owner.client.0.to_be_bytes());
                        to.extend(owner.request.to_be_bytes());
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
                        to.extend(owner.client.0.to_be_bytes());
                        to.extend(owner.request.to_be_bytes());
                        write_text(&mut to, answer.word())?;
                        write_text(&mut to, name)?;
                    }
                }
                write_text(&mut to, namespace)?;
                write_text(&mut to, message.key().as_str())?;
            }
        }
        (to.len() <= LONGEST).then_some(to)
    }

    /// `None` if it is not what this version writes.
    pub(crate) fn read(datagram: &[u8]) -> Option<Self> {
        let mut rest = datagram;
        let (version, kind) = (take::<1>(&mut rest)?[0], take::<1>(&mut rest)?[0]);
        if version != VERSION {
            return None;
        }
        let client = ClientId(u128::from_be_bytes(take(&mut rest)?));
        let news = match kind {
            GRANTED => Self::Granted {
                owner: Owner {
                    client,
                    request: u64::from_be_bytes(take(&mut rest)?),
                },
                token: read_number(&mut rest)?,
            },
            WHO_HOLDS => {
                let (namespace, key) = (read_text(&mut rest)?, read_text(&mut rest)?);
                let key = LockKey::from(key);
                let message = ClientMessage::WhoHolds { key, asker: client };
                Self::Told { namespace, message }
            }
            HOLDS => {
                let held_for = read_number(&mut rest)?.map(Duration::from_micros);
                let name = read_text(&mut rest)?.into();
                let (namespace, key) = (read_text(&mut rest)?, read_text(&mut rest)?);
                let message = ClientMessage::Holds {
                    key: key.into(),
                    client,
                    name,
                    held_for,
                };
                Self::Told { namespace, message }
            }
            REVOKE => {
                let owner = Owner {
                    client: ClientId(u128::from_be_bytes(take(&mut rest)?)),
                    request: u64::from_be_bytes(take(&mut rest)?),
                };
                let [is_named] = take(&mut rest)?;
                let only = Some(read_text(&mut rest)?.into()).filter(|_| is_named == 1);
                let (namespace, key) = (read_text(&mut rest)?, read_text(&mut rest)?);
                let message = ClientMessage::Revoke {
                    key: key.into(),
                    asker: client,
                    owner,
                    only,
                };
                Self::Told { namespace, message }
            }
            REVOKING => {
                let request = u64::from_be_bytes(take(&mut rest)?);
                let answer = RevokeAnswer::of_word(&read_text(&mut rest)?)?;
                let name = read_text(&mut rest)?.into();
                let (namespace, key) = (read_text(&mut rest)?, read_text(&mut rest)?);
                let message = ClientMessage::Revoking {
                    key: key.into(),
                    owner: Owner { client, request },
                    name,
                    answer,
                };
                Self::Told { namespace, message }
            }
            _ => return None,
        };
        rest.is_empty().then_some(news)
    }
}

impl News {
    /// The message as a client of this namespace writes its key. `None` if it is none.
    pub(crate) fn message_for(self, own: &Namespace) -> Option<ClientMessage> {
        let Self::Told { namespace, message } = self else {
            return None;
        };
        let other = match namespace == own.as_str() {
            true => None,
            false => Some(Namespace::new(&namespace).ok()?),
        };
        let key = message.key().clone().in_namespace(other);
        Some(message.about(key))
    }
}

fn write_number(to: &mut Vec<u8>, number: Option<u64>) {
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

fn read_number(from: &mut &[u8]) -> Option<Option<u64>> {
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
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    fn all() -> Vec<News> {
        let owner = Owner {
            client: ClientId(u128::MAX - 7),
            request: u64::MAX - 1,
        };
        let told = |message| News::Told {
            namespace: "shöp".to_owned(),
            message,
        };
        vec![
            News::Granted { owner, token: None },
            News::Granted {
                owner,
                token: Some(1 << 52),
            },
            told(ClientMessage::WhoHolds {
                key: "a:b".into(),
                asker: ClientId(7),
            }),
            told(ClientMessage::Holds {
                key: "k".into(),
                client: ClientId(8),
                name: "orders-7f9c".into(),
                held_for: Some(Duration::from_micros(1234)),
            }),
            told(ClientMessage::Holds {
                key: "k".into(),
                client: ClientId(8),
                name: "".into(),
                held_for: None,
            }),
            told(ClientMessage::Revoke {
                key: "k".into(),
                asker: ClientId(8),
                owner,
                only: None,
            }),
            told(ClientMessage::Revoke {
                key: "k".into(),
                asker: ClientId(8),
                owner,
                only: Some("orders".into()),
            }),
            told(ClientMessage::Revoking {
                key: "k".into(),
                owner,
                name: "orders".into(),
                answer: RevokeAnswer::Stops,
            }),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        for news in all() {
            assert_eq!(News::read(&news.write().unwrap()), Some(news));
        }
    }

    #[test]
    fn other_datagrams_are_not_read() {
        for news in all() {
            let written = news.write().unwrap();
            for end in 0..written.len() {
                assert_eq!(News::read(&written[..end]), None);
            }
            let longer = [&written[..], &[0]].concat();
            assert_eq!(News::read(&longer), None);
            for (at, byte) in [(0, 9), (1, 9)] {
                let mut other = written.clone();
                other[at] = byte;
                assert_eq!(News::read(&other), None);
            }
        }
    }

    #[test]
    fn a_key_is_told_as_the_hearer_writes_it() {
        let told = |namespace: &str| News::Told {
            namespace: namespace.to_owned(),
            message: ClientMessage::WhoHolds {
                key: "k".into(),
                asker: ClientId(7),
            },
        };
        let own = Namespace::new("shop").unwrap();
        let namespace_of = |message: ClientMessage| message.key().namespace().cloned();
        let message = |namespace| told(namespace).message_for(&own).map(namespace_of);
        assert_eq!(message("shop"), Some(None));
        assert_eq!(message("other"), Some(Namespace::new("other").ok()));
        assert_eq!(message("a:b"), None);
    }
}
