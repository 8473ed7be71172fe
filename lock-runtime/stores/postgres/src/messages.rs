//! [`News`]: what a client hears, and how it is written in the payload of a `NOTIFY`.

use std::time::Duration;

use lock_store::{ClientId, ClientMessage, LockKey, Namespace};

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A request of this client was granted its lock, or a latch that it waits for has opened.
    Granted { request: u64, token: Option<u64> },
    /// A message about a key of this namespace.
    Told {
        namespace: String,
        message: ClientMessage,
    },
}

/// One that is to be told: the channel, and what to say there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) channel: String,
    pub(crate) payload: String,
}

impl Note {
    /// What a function replied: `channel request token`.
    pub(crate) fn of(told: &str) -> Option<Self> {
        let (channel, payload) = told.split_once(' ')?;
        Some(Self {
            channel: channel.to_owned(),
            payload: payload.to_owned(),
        })
    }
}

/// A payload has at most 7999 bytes.
const LONGEST: usize = 7999;

/// The payload of a message about a key of this namespace. `None` if it is too long.
pub(crate) fn write(namespace: &str, message: &ClientMessage) -> Option<String> {
    let (kind, client, held_for, name) = match message {
        ClientMessage::WhoHolds { asker, .. } => ("who", asker, None, ""),
        ClientMessage::Holds {
            client,
            held_for,
            name,
            ..
        } => ("holds", client, *held_for, &**name),
    };
    let held_for = held_for.map_or_else(String::new, |held| held.as_micros().to_string());
    let key = hex(message.key().as_str().as_bytes());
    let payload = format!(
        "{kind} {:032x} {held_for} {} {namespace} {key}",
        client.0,
        hex(name.as_bytes())
    );
    (payload.len() <= LONGEST).then_some(payload)
}

impl News {
    /// `None` if it is not what this version writes.
    pub(crate) fn read(payload: &str) -> Option<Self> {
        let words: Vec<&str> = payload.split(' ').collect();
        match *words.as_slice() {
            [request, token] => Some(Self::Granted {
                request: request.parse::<i64>().ok()?.cast_unsigned(),
                token: match token {
                    "" => None,
                    token => Some(token.parse().ok()?),
                },
            }),
            [kind, client, held_for, name, namespace, key] => {
                let client = ClientId(u128::from_str_radix(client, 16).ok()?);
                let key = LockKey::from(text(key)?);
                let message = match kind {
                    "who" => ClientMessage::WhoHolds { key, asker: client },
                    "holds" => ClientMessage::Holds {
                        key,
                        client,
                        name: text(name)?.into(),
                        held_for: match held_for {
                            "" => None,
                            micros => Some(Duration::from_micros(micros.parse().ok()?)),
                        },
                    },
                    _ => return None,
                };
                Some(Self::Told {
                    namespace: namespace.to_owned(),
                    message,
                })
            }
            _ => None,
        }
    }

    /// The message as a client of this namespace writes its key.
    pub(crate) fn message_for(self, own: &Namespace) -> Option<ClientMessage> {
        let Self::Told { namespace, message } = self else {
            return None;
        };
        if namespace == own.as_str() {
            return Some(message);
        }
        let other = Namespace::new(&namespace).ok()?;
        let key = message.key().clone().in_namespace(Some(other));
        Some(message.about(key))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(hex: &str) -> Option<String> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let key = || LockKey::from("a b\0%'ü");
        for message in [
            ClientMessage::WhoHolds {
                key: key(),
                asker: ClientId(7),
            },
            ClientMessage::Holds {
                key: key(),
                client: ClientId(u128::MAX),
                name: "host:1".into(),
                held_for: Some(Duration::from_micros(5)),
            },
            ClientMessage::Holds {
                key: key(),
                client: ClientId(0),
                name: "".into(),
                held_for: None,
            },
        ] {
            let written = write("shop", &message).unwrap();
            let namespace = "shop".to_owned();
            assert_eq!(News::read(&written), Some(News::Told { namespace, message }));
        }
        for (token, written) in [(None, "channel -1 "), (Some(9), "channel -1 9")] {
            let note = Note::of(written).unwrap();
            let request = u64::MAX;
            assert_eq!(note.channel, "channel");
            assert_eq!(News::read(&note.payload), Some(News::Granted { request, token }));
        }
    }

    #[test]
    fn other_payloads_are_not_read() {
        for payload in ["", "x", "x y", "1 y", "what 1 2 3 4 5", "who x  6b n 6b", "who 1   n 6"] {
            assert_eq!(News::read(payload), None, "{payload}");
        }
    }
}
