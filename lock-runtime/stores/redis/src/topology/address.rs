//! [`ServerAddress`]: where a server is, by its own words or by those of others.

use std::fmt;

use redis::ConnectionInfo;

use lock_store::escaped;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ServerAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl ServerAddress {
    /// Reads `host:port`. An IPv6 address may stand in brackets.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host
            .strip_prefix('[')
            .map_or(Some(host), |host| host.strip_suffix(']'))?;
        Some(Self {
            host: host.to_owned(),
            port: port.parse().ok()?,
        })
    }

    /// Whether a server can be there.
    pub(crate) fn is_one(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The host may come from a sentinel or a cluster node, so escape it.
        write!(f, "{}:{}", escaped(&self.host), self.port)
    }
}

/// A server's name in errors: `host:port`, or the path of its socket. Never user or password.
pub(crate) fn name_of(info: &ConnectionInfo) -> String {
    // The host may come from a sentinel or a cluster node, so escape it.
    escaped(&info.addr().to_string())
}
