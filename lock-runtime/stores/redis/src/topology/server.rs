//! How to connect to the server at an address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use lock_store::{Instant, Staggered, StoreError, StoreErrorKind};
use redis::{Client, ConnectionAddr, ConnectionInfo};
use tokio::net::lookup_host;

use super::address::ServerAddress;
use super::progress::Progress;
use super::unreached;
use crate::context::ClientContext;
use crate::errors;

/// A client with the template's settings, at another address.
pub(crate) fn client_at(
    template: &ConnectionInfo,
    address: &ServerAddress,
) -> Result<Client, StoreError> {
    let (host, port) = (address.host.clone(), address.port);
    let addr = match template.addr() {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    };
    Client::open(template.clone().set_addr(addr)).map_err(|error| errors::store_error(&error))
}

/// Which of a server's addresses worked last.
pub(crate) type Addresses = Staggered<Option<SocketAddr>>;

/// One of a server's addresses.
pub(super) struct OneAddress {
    /// A socket has none.
    pub(super) at: Option<SocketAddr>,
    pub(super) all: Arc<[Option<SocketAddr>]>,
    pub(super) progress: Arc<Progress>,
}

impl OneAddress {
    /// The server has no other.
    pub(super) fn is_only(&self) -> bool {
        self.all.len() == 1
    }
}

/// Tries the addresses of a server's name, each soon after the one before, until an attempt
/// succeeds. The first has until `by`, and the others have the same time from their beginning.
pub(super) async fn at_one_address<T, F>(
    client: &Client,
    addresses: &Addresses,
    context: &ClientContext,
    progress: &Arc<Progress>,
    by: Instant,
    attempt: impl Fn(OneAddress) -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let (clock, access) = (&context.clock, &context.access);
    let found = clock.by(by, resolve(client.get_connection_info())).await;
    let found = match found {
        Some(found) => found.map_err(|error| unreached::unreachable(error, progress))?,
        None => return Err(unreached::silent(access, progress)),
    };
    let limit = by.saturating_duration_since(clock.now());
    let all: Arc<[_]> = found.as_slice().into();
    let is_only = all.len() == 1;
    let attempt = |at: Option<SocketAddr>| {
        let one = OneAddress {
            at,
            all: Arc::clone(&all),
            progress: Arc::new(Progress::of_one(progress)),
        };
        let progress = Arc::clone(&one.progress);
        let made = clock.by(clock.now() + limit, attempt(one));
        async move {
            let made = made.await;
            let made = made.unwrap_or_else(|| Err(unreached::silent(access, &progress)));
            made.map_err(|error| match at {
                Some(at) if !is_only => error.of(&at.to_string()),
                _ => error,
            })
        }
    };
    addresses
        .connect(found, limit, clock, attempt)
        .await
        .map_err(|failed| {
            StoreError::of_all(failed).unwrap_or_else(|| {
                let text = "its name has no address";
                StoreError::new(StoreErrorKind::Disconnected, text)
            })
        })
}

/// The addresses of a server. A socket has none.
async fn resolve(info: &ConnectionInfo) -> io::Result<Vec<Option<SocketAddr>>> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            let mut addresses: Vec<_> = lookup_host((host.as_str(), *port)).await?.collect();
            // Resolvers shuffle, and all clients should find the same of two servers. Which of both
            // protocols comes first is the system's choice.
            let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
            addresses.sort_by_key(|address| (address.is_ipv6() != first, *address));
            addresses.dedup();
            Ok(addresses.into_iter().map(Some).collect())
        }
        _ => Ok(vec![None]),
    }
}

/// A client that leads to one address. A certificate that is verified needs the name.
pub(super) fn pinned(client: &Client, at: Option<SocketAddr>) -> Result<Client, StoreError> {
    match (client.get_connection_info(), at) {
        (info, Some(at)) if matches!(info.addr(), ConnectionAddr::Tcp(..)) => {
            let (host, port) = (at.ip().to_string(), at.port());
            client_at(info, &ServerAddress { host, port })
        }
        _ => Ok(client.clone()),
    }
}

/// True if two addresses are those of one server: a server may have several names.
pub(super) async fn is_one_server(one: &ServerAddress, other: &ServerAddress) -> bool {
    let found = |address: &ServerAddress| {
        let address = (address.host.clone(), address.port);
        let plain = |at: SocketAddr| (at.ip().to_canonical(), at.port());
        async move {
            lookup_host(address)
                .await
                .map(|found| Vec::from_iter(found.map(plain)))
        }
    };
    match tokio::join!(found(one), found(other)) {
        (Ok(one), Ok(other)) => one.iter().any(|address| other.contains(address)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_server_has_its_address_in_both_forms() {
        let address = |host: &str| ServerAddress {
            host: host.to_owned(),
            port: 7,
        };
        for (one, other) in [
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("LOCALHOST", "localhost"),
        ] {
            assert!(is_one_server(&address(one), &address(other)).await, "{one}");
        }
        assert!(!is_one_server(&address("127.0.0.1"), &address("127.0.0.2")).await);
    }
}
