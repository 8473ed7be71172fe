//! The messages that scripts and clients publish.

use std::fmt;
use std::time::Duration;

use lock_store::{
    ClientId, ClientMessage, Ended, FencingToken, MAX_KEY_BYTES, Owner, RevokeAnswer,
};

/// What follows the version and the kind of a message: `1 <kind> …`. `None` of another version or
/// kind, which this one does not understand.
fn body<'p>(payload: &'p [u8], kind: &str) -> Option<&'p str> {
    let message = std::str::from_utf8(payload).ok()?.strip_prefix("1 ")?;
    message.strip_prefix(kind)?.strip_prefix(' ')
}

/// What `lib.lua` tells the owner to whom it hands a lock: `1 granted <owner> <token or ''>`; and
/// `latch_count_down.lua` those who wait for a latch that opens, with its generation as the token:
/// `1 opened …`.
pub(super) fn granted(payload: &[u8]) -> Option<(Owner, Option<u64>)> {
    let message = body(payload, "granted").or_else(|| body(payload, "opened"))?;
    let (owner, token) = message.split_once(' ')?;
    let token = token.parse().ok();
    let token = token.filter(|token| FencingToken::is_valid(*token));
    Some((Owner::parse(owner)?, token))
}

/// What `quorum_end.lua` tells of a lock that is free: `1 freed <owner> <clients that hear it>
/// <key>`.
pub(super) fn ended(payload: &[u8]) -> Option<Ended> {
    let mut parts = body(payload, "freed")?.splitn(3, ' ');
    let owner = Owner::parse(parts.next()?)?;
    let told = parts.next()?.parse().ok()?;
    let key = parts.next()?;
    Some(Ended::new(key.into(), owner, told))
}

/// Longer names are not shown.
const LONGEST_NAME: usize = 128;

/// What one client says to another, as it is published: `1 who <asker> <key>`, and `1 holds
/// <client> <milliseconds or '-'> <name> <key>`; `1 revoke <asker> <owner> <'=' and a name, or '-'>
/// <key>`, and `1 revoking <owner> <word> <name> <key>`.
pub(crate) struct Written<'m>(pub(crate) &'m ClientMessage);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ClientMessage::WhoHolds { key, asker } => {
                write!(f, "1 who {:032x} {}", asker.0, key.as_str())
            }
            ClientMessage::Holds {
                key,
                client,
                name,
                held_for,
            } => {
                write!(f, "1 holds {:032x} ", client.0)?;
                match held_for {
                    Some(held_for) => write!(f, "{}", held_for.as_millis())?,
                    None => f.write_str("-")?,
                }
                write!(f, " {name} {}", key.as_str())
            }
            ClientMessage::Revoke {
                key,
                asker,
                owner,
                only,
            } => {
                write!(f, "1 revoke {:032x} {owner} ", asker.0)?;
                match only {
                    Some(name) => write!(f, "={name}")?,
                    None => f.write_str("-")?,
                }
                write!(f, " {}", key.as_str())
            }
            ClientMessage::Revoking {
                key,
                owner,
                name,
                answer,
            } => {
                let (word, key) = (answer.word(), key.as_str());
                write!(f, "1 revoking {owner} {word} {name} {key}")
            }
        }
    }
}

/// Reads what [`Written`] writes. What is longer than any such message is none.
pub(super) fn between_clients(payload: &[u8]) -> Option<ClientMessage> {
    if payload.len() > MAX_KEY_BYTES + 2 * LONGEST_NAME {
        return None;
    }
    if let Some(question) = body(payload, "who") {
        let (asker, key) = question.split_once(' ')?;
        return Some(ClientMessage::WhoHolds {
            key: key.into(),
            asker: client(asker)?,
        });
    }
    if let Some(demand) = body(payload, "revoke") {
        let mut parts = demand.splitn(4, ' ');
        let (asker, owner) = (client(parts.next()?)?, Owner::parse(parts.next()?)?);
        let only = match parts.next()? {
            "-" => None,
            only => Some(name(only.strip_prefix('=')?)?),
        };
        return Some(ClientMessage::Revoke {
            key: parts.next()?.into(),
            asker,
            owner,
            only,
        });
    }
    if let Some(answer) = body(payload, "revoking") {
        let mut parts = answer.splitn(4, ' ');
        return Some(ClientMessage::Revoking {
            owner: Owner::parse(parts.next()?)?,
            answer: RevokeAnswer::of_word(parts.next()?)?,
            name: name(parts.next()?)?,
            key: parts.next()?.into(),
        });
    }
    let mut parts = body(payload, "holds")?.splitn(4, ' ');
    let client = client(parts.next()?)?;
    let held_for = match parts.next()? {
        "-" => None,
        millis => Some(Duration::from_millis(millis.parse().ok()?)),
    };
    Some(ClientMessage::Holds {
        name: name(parts.next()?)?,
        key: parts.next()?.into(),
        client,
        held_for,
    })
}

fn name(text: &str) -> Option<Box<str>> {
    let is_name = text.len() <= LONGEST_NAME && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_name.then(|| text.into())
}

fn client(text: &str) -> Option<ClientId> {
    let id = u128::from_str_radix(text, 16).ok()?;
    (text.len() == 32).then_some(ClientId(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_say_to_each_other_is_read_as_it_was_written() {
        let (asker, client) = (ClientId(7), ClientId(u128::MAX));
        for key in ["stock:42", "with spaces \n and more", ""] {
            let question = ClientMessage::WhoHolds {
                key: key.into(),
                asker,
            };
            let answers = [None, Some(Duration::from_millis(4200))].map(|held_for| {
                let (key, name) = (key.into(), "orders-7f9c".into());
                ClientMessage::Holds {
                    key,
                    client,
                    name,
                    held_for,
                }
            });
            let owner = Owner {
                client,
                request: 42,
            };
            let demands = [None, Some("-".into()), Some("orders".into())].map(|only| {
                let key = key.into();
                ClientMessage::Revoke {
                    key,
                    asker,
                    owner,
                    only,
                }
            });
            let done = RevokeAnswer::ALL.map(|answer| ClientMessage::Revoking {
                key: key.into(),
                owner,
                name: "orders-7f9c".into(),
                answer,
            });
            let all = answers.into_iter().chain([question]);
            for message in all.chain(demands).chain(done) {
                let written = Written(&message).to_string();
                assert_eq!(between_clients(written.as_bytes()), Some(message));
            }
        }
    }

    #[test]
    fn what_is_no_such_message_is_ignored() {
        let id = format!("{:032x}", 7);
        for bad in [
            String::new(),
            format!("2 who {id} k"),
            format!("1 what {id} k"),
            "1 who 7 k".to_owned(),
            format!("1 holds {id} 1 {} k", "n".repeat(LONGEST_NAME + 1)),
            format!("1 holds {id} 1 na\u{1b}me k"),
            format!("1 holds {id} -1 name k"),
            format!("1 holds {id} 1 name"),
            format!("1 revoke {id} {id}-1 name k"),
            format!("1 revoke {id} 7-1 - k"),
            format!("1 revoking {id}-1 sings name k"),
            format!(
                "1 who {id} {}",
                "k".repeat(MAX_KEY_BYTES + 2 * LONGEST_NAME)
            ),
        ] {
            assert_eq!(between_clients(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
