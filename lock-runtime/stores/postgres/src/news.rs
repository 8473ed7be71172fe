//! [`News`]: what one client tells another, and how it is written in a message of `NOTIFY`: text of
//! less than 8000 bytes, whose parts are hexadecimal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Weak;
use std::time::Duration;

use lock_store::{
    ClientId, ClientMessage, HandedOver, Letter, Listener, LockKey, Namespace, Owner, RevokeAnswer,
    Trust,
};

use crate::statement::LINK;

/// An owner that was granted its lock, and its first token.
pub(crate) type GrantNews = (Owner, Option<u64>);
pub(crate) type Told = Vec<GrantNews>;

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A hint that these owners, of one client, were granted their locks, or that a latch has
    /// opened.
    Granted(Vec<GrantNews>),
    /// A message about a key of this namespace.
    Told(Letter),
}

/// PostgreSQL's limit.
const LONGEST: usize = 7999;
/// This many grants are never too long.
const GRANTS: usize = 200;

pub(crate) fn channel(client: ClientId) -> String {
    format!("lock_{:032x}", client.0)
}

fn hex(text: &str) -> String {
    let mut to = String::with_capacity(2 * text.len() + 1);
    // Never empty, so that parts can be split at spaces.
    to.push('x');
    for byte in text.bytes() {
        let _ = write!(to, "{byte:02x}");
    }
    to
}

fn read_hex(text: &str) -> Option<String> {
    let text = text.strip_prefix('x')?;
    let digits = text.as_bytes().chunks(2);
    let bytes = digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
    String::from_utf8(bytes.collect::<Option<_>>()?).ok()
}

impl News {
    /// The grants of each client.
    pub(crate) fn granted(grants: Vec<GrantNews>) -> Vec<(ClientId, Self)> {
        let mut of_clients = BTreeMap::<_, Vec<_>>::new();
        for grant in grants {
            of_clients.entry(grant.0.client).or_default().push(grant);
        }
        let news = of_clients.into_iter().flat_map(|(client, grants)| {
            let some = grants.chunks(GRANTS).map(<[_]>::to_vec);
            some.map(|some| (client, Self::Granted(some)))
                .collect::<Vec<_>>()
        });
        news.collect()
    }

    /// `None` if it is too long.
    pub(crate) fn write(&self) -> Option<String> {
        let text = match self {
            Self::Granted(grants) => {
                let client = grants.first().map_or(0, |(owner, _)| owner.client.0);
                let mut text = format!("1 granted {client:032x}");
                for (owner, token) in grants {
                    let _ = write!(text, " {:x} {:x}", owner.request, token.unwrap_or(0));
                }
                text
            }
            Self::Told(Letter { namespace, message }) => {
                let (namespace, key) = (hex(namespace), hex(message.key().as_str()));
                match message {
                    ClientMessage::WhoHolds { asker, .. } => {
                        format!("1 who {:032x} {namespace} {key}", asker.0)
                    }
                    ClientMessage::Holds {
                        client,
                        name,
                        held_for,
                        ..
                    } => {
                        let held = held_for.map_or_else(
                            || "-".to_owned(),
                            |held| format!("{:x}", held.as_micros()),
                        );
                        let name = hex(name);
                        format!("1 holds {:032x} {namespace} {key} {held} {name}", client.0)
                    }
                    ClientMessage::Revoke {
                        asker, owner, only, ..
                    } => {
                        let only = only.as_deref().map_or_else(|| "-".to_owned(), hex);
                        format!("1 revoke {:032x} {namespace} {key} {owner} {only}", asker.0)
                    }
                    ClientMessage::Revoking {
                        owner,
                        name,
                        answer,
                        ..
                    } => {
                        let (word, name) = (answer.word(), hex(name));
                        format!("1 revoking {owner} {namespace} {key} {word} {name}")
                    }
                }
            }
        };
        (text.len() <= LONGEST).then_some(text)
    }

    /// `None` if it is not what this version writes.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(' ').collect();
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let id = |text: &str| u128::from_str_radix(text, 16).ok().map(ClientId);
        let key = |text: &str| read_hex(text).map(LockKey::from);
        let (namespace, message) = match parts[..] {
            ["1", "granted", client, ref grants @ ..] => {
                let client = id(client)?;
                let grants = grants.chunks(2).map(|grant| {
                    let [request, token] = grant else { return None };
                    let request = number(request)?;
                    let token = Some(number(token)?).filter(|token| *token > 0);
                    Some((Owner { client, request }, token))
                });
                return Some(Self::Granted(grants.collect::<Option<_>>()?));
            }
            ["1", "who", asker, namespace, of] => {
                let (key, asker) = (key(of)?, id(asker)?);
                (namespace, ClientMessage::WhoHolds { key, asker })
            }
            ["1", "holds", client, namespace, of, held, name] => {
                let message = ClientMessage::Holds {
                    key: key(of)?,
                    client: id(client)?,
                    name: read_hex(name)?.into(),
                    held_for: match held {
                        "-" => None,
                        held => Some(Duration::from_micros(number(held)?)),
                    },
                };
                (namespace, message)
            }
            ["1", "revoke", asker, namespace, of, owner, only] => {
                let message = ClientMessage::Revoke {
                    key: key(of)?,
                    asker: id(asker)?,
                    owner: Owner::parse(owner)?,
                    only: match only {
                        "-" => None,
                        only => Some(read_hex(only)?.into()),
                    },
                };
                (namespace, message)
            }
            ["1", "revoking", owner, namespace, of, word, name] => {
                let message = ClientMessage::Revoking {
                    key: key(of)?,
                    owner: Owner::parse(owner)?,
                    name: read_hex(name)?.into(),
                    answer: RevokeAnswer::of_word(word)?,
                };
                (namespace, message)
            }
            _ => return None,
        };
        let namespace = read_hex(namespace)?;
        Some(Self::Told(Letter { namespace, message }))
    }
}

/// Brings news to the client's engine. These are hints: whoever misses one asks again within a
/// second.
#[derive(Clone, Debug)]
pub(crate) struct Hearer {
    pub(crate) listener: Weak<dyn Listener>,
    pub(crate) namespace: Namespace,
}

impl Hearer {
    pub(crate) fn on_news(&self, news: News) {
        match news {
            News::Granted(grants) => {
                for (owner, token) in grants {
                    let granted = HandedOver::new(owner, token, Trust::Ask(LINK));
                    drop(self.listener.on_granted(granted));
                }
            }
            News::Told(letter) => {
                if let Some(message) = letter.message_for(&self.namespace) {
                    self.listener.on_message(message);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let owner = Owner::new(ClientId(u128::MAX - 7), u64::MAX - 1);
        let told = |message| {
            let namespace = "shöp".to_owned();
            News::Told(Letter { namespace, message })
        };
        for news in [
            News::Granted(vec![(owner, None)]),
            News::Granted(vec![(owner, Some(1 << 52)); GRANTS]),
            told(ClientMessage::WhoHolds {
                key: "a\0:b c".into(),
                asker: ClientId(7),
            }),
            told(ClientMessage::Holds {
                key: "k".into(),
                client: ClientId(8),
                name: "".into(),
                held_for: Some(Duration::from_micros(1234)),
            }),
            told(ClientMessage::Holds {
                key: "k".into(),
                client: ClientId(8),
                name: "orders".into(),
                held_for: None,
            }),
            told(ClientMessage::Revoke {
                key: "a b".into(),
                asker: ClientId(7),
                owner,
                only: None,
            }),
            told(ClientMessage::Revoke {
                key: "k".into(),
                asker: ClientId(7),
                owner,
                only: Some("-".into()),
            }),
            told(ClientMessage::Revoking {
                key: "k".into(),
                owner,
                name: "orders".into(),
                answer: RevokeAnswer::Refuses,
            }),
        ] {
            let written = news.write().unwrap();
            assert_eq!(News::read(&written), Some(news));
            assert_eq!(News::read(&format!("{written} ")), None);
            assert_eq!(News::read(&written.replacen('1', "2", 1)), None);
        }
    }
}
