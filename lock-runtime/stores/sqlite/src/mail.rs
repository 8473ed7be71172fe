//! [`News`]: what one client tells another, and how it is written in a datagram.

use lock_store::{Letter, Owner, read_number, read_owner, write_number, write_owner};

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A hint that this owner was granted its lock, or that a latch has opened.
    Granted {
        owner: Owner,
        token: Option<u64>,
    },
    Told(Letter),
}

/// News for another client, by its file; `None` is this client.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    pub(crate) to: Option<String>,
    pub(crate) news: News,
}

/// A datagram about a grant begins with this; others are letters. The first byte is the version.
const GRANTED: [u8; 2] = [1, 1];

/// The longest datagram: a key, a namespace and a name.
pub(crate) const LONGEST: usize = 64 * 1024;

impl News {
    /// `None` if it is too long for a datagram.
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        let datagram = match self {
            Self::Granted { owner, token } => {
                let mut to = GRANTED.to_vec();
                write_owner(&mut to, *owner);
                write_number(&mut to, *token);
                to
            }
            Self::Told(letter) => letter.write()?,
        };
        (datagram.len() <= LONGEST).then_some(datagram)
    }

    /// `None` if it is not what this version writes.
    pub(crate) fn read(datagram: &[u8]) -> Option<Self> {
        let Some(mut rest) = datagram.strip_prefix(&GRANTED) else {
            return Letter::read(datagram).map(Self::Told);
        };
        let (owner, token) = (read_owner(&mut rest)?, read_number(&mut rest)?);
        rest.is_empty().then_some(Self::Granted { owner, token })
    }
}

#[cfg(test)]
mod tests {
    use lock_store::{ClientId, ClientMessage};

    use super::*;

    fn all() -> Vec<News> {
        let owner = Owner::new(ClientId(u128::MAX - 7), u64::MAX - 1);
        let message = ClientMessage::WhoHolds {
            key: "a:b".into(),
            asker: ClientId(7),
        };
        let letter = Letter {
            namespace: "shöp".to_owned(),
            message,
        };
        let token = Some(1 << 52);
        vec![
            News::Granted { owner, token: None },
            News::Granted { owner, token },
            News::Told(letter),
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
}
