//! How to connect to the server at an address.

use lock_store::{StoreError, StoreErrorKind};
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo};
use tokio::net::lookup_host;

use super::address::ServerAddress;
use super::dial::{Dialed, dial};
use super::progress::Progress;
use super::unreached;
use crate::context::ClientContext;
use crate::errors;

/// The same settings, with another address.
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

/// Connects to the first of a name's addresses that accepts. The returned client leads to that
/// address only.
pub(crate) async fn connect(
    client: &Client,
    config: &AsyncConnectionConfig,
    context: &ClientContext,
    progress: &Progress,
) -> Result<(Client, Dialed), StoreError> {
    let info = client.get_connection_info();
    let mut clients = Vec::new();
    if let ConnectionAddr::Tcp(host, port) = info.addr()
        && !is_pinned(client)
    {
        let found = lookup_host((host.as_str(), *port)).await;
        let found = found.map_err(|error| unreached::unreachable(error, progress))?;
        for address in found {
            let (host, port) = (address.ip().to_string(), address.port());
            clients.push(client_at(info, &ServerAddress { host, port })?);
        }
    }
    if clients.is_empty() {
        clients.push(client.clone());
    }
    let mut failed = None;
    for client in clients {
        match dial(&client, config, &context.access, context.asking(), progress).await {
            Ok(dialed) => return Ok((client, dialed)),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| {
        let text = "its name has no address";
        StoreError::new(StoreErrorKind::Disconnected, text)
    }))
}

/// True if two addresses are those of one server: a server may have several names.
pub(super) async fn is_one_server(one: &ServerAddress, other: &ServerAddress) -> bool {
    let resolve = |address: &ServerAddress| {
        let address = (address.host.clone(), address.port);
        async move {
            lookup_host((address.0.as_str(), address.1))
                .await
                .map(Vec::from_iter)
        }
    };
    match tokio::join!(resolve(one), resolve(other)) {
        (Ok(one), Ok(other)) => one.iter().any(|address| other.contains(address)),
        _ => false,
    }
}

/// True if every connection of a client leads to the same address. A TLS server's name stays a
/// name, because its certificate has it: it may lead to several addresses.
pub(crate) fn is_pinned(client: &Client) -> bool {
    match client.get_connection_info().addr() {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => {
            host.parse::<std::net::IpAddr>().is_ok()
        }
        _ => true,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_lead_elsewhere_and_an_address_can_not() {
        let pinned = |url: &str| is_pinned(&Client::open(url).unwrap());
        for url in [
            "redis://127.0.0.1/",
            "redis://[::1]:7000/2",
            "redis+unix:///tmp/redis.sock",
        ] {
            assert!(pinned(url), "{url}");
        }
        assert!(!pinned("redis://localhost/") && !pinned("redis://u:p@redis.internal:7000/"));
    }
}
