//! The few commands that are needed, and their replies (memcached, `doc/protocol.txt`, *Meta
//! commands*).

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// What a server replies to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An item: its value, and the flags that were asked for.
    Item { value: Vec<u8>, flags: String },
    /// The first word of any other line: `HD` is done, `EN` and `NF` are no item, `NS` and `EX` not
    /// stored.
    Code(String),
    /// The lines of `stats`.
    Lines(Vec<String>),
    /// It did nothing, and says why.
    Refused(String),
}

/// Takes an item that is not there.
pub(crate) fn add(name: &str, value: &str, lease: Duration) -> String {
    let (length, seconds) = (value.len(), seconds(lease));
    format!("ms {name} {length} ME T{seconds}\r\n{value}\r\n")
}

/// Writes an item if it is still the one with this number.
pub(crate) fn replace(name: &str, value: &str, seconds: u64, cas: u64) -> String {
    let length = value.len();
    format!("ms {name} {length} C{cas} T{seconds}\r\n{value}\r\n")
}

/// Deletes an item if it is still the one with this number.
pub(crate) fn delete(name: &str, cas: u64) -> String {
    format!("md {name} C{cas}\r\n")
}

/// Asks for an item's value, its number and the rest of its time.
pub(crate) fn get(name: &str) -> String {
    format!("mg {name} v c t\r\n")
}

/// A lease in whole seconds, never too short. The server's clock counts whole seconds, and moves
/// once a second: what it says is up to 2 s old, so that an item may end nearly 2 s early.
pub(crate) fn seconds(lease: Duration) -> u64 {
    lease.as_secs() + u64::from(lease.subsec_nanos() > 0) + 2
}

/// Reads the reply to one command.
pub(crate) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Reply> {
    let line = read_line(from).await?;
    if let Some(item) = line.strip_prefix("VA ") {
        let (length, flags) = item.split_once(' ').unwrap_or((item, ""));
        let length: usize = length.parse().map_err(|_| garbled(&line))?;
        let mut value = vec![0; length + 2];
        from.read_exact(&mut value).await?;
        value.truncate(length);
        let flags = flags.to_owned();
        return Ok(Reply::Item { value, flags });
    }
    if line.starts_with("STAT ") {
        let mut lines = vec![line];
        loop {
            let next = read_line(from).await?;
            if next == "END" {
                return Ok(Reply::Lines(lines));
            }
            lines.push(next);
        }
    }
    // Such as `SERVER_ERROR out of memory storing object`.
    if line.contains("ERROR") {
        return Ok(Reply::Refused(line));
    }
    Ok(Reply::Code(line))
}

async fn read_line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn garbled(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_never_too_short() {
        let of = |millis| seconds(Duration::from_millis(millis));
        assert_eq!([of(10), of(1000), of(1001)], [3, 3, 4]);
    }
}
