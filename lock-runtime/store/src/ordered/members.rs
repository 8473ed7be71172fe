//! [`SessionMembers`]: the servers of a URL, and which of them a client connects to.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::fault::{gone, silent};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::owner::ClientId;
use crate::server_url::Host;
use crate::staggered::Staggered;

/// What a host's name stands for. `None`: that was not known in time.
pub type ResolvedHost<A> = (Host, Option<io::Result<A>>);

/// The servers of a URL.
pub struct SessionMembers {
    hosts: Vec<Host>,
    /// Which of them this client tries first, so that clients spread.
    begins: usize,
    /// Of an attempt to connect.
    limit: Duration,
    known: Staggered<(Host, SocketAddr)>,
}

impl fmt::Debug for SessionMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.hosts).finish()
    }
}

impl SessionMembers {
    /// The servers of a URL, for this client.
    #[must_use]
    pub fn new(hosts: Vec<Host>, client: ClientId, limit: Duration) -> Self {
        let begins = usize::try_from(client.0 & 0xffff).unwrap_or(0);
        Self {
            begins: begins % hosts.len().max(1),
            hosts,
            limit,
            known: Staggered::default(),
        }
    }

    /// All servers, in the order in which they are tried.
    pub fn in_turn(&self) -> impl Iterator<Item = Host> {
        let hosts = self.hosts.iter().cycle().skip(self.begins);
        hosts.take(self.hosts.len()).cloned()
    }

    /// How long an attempt to connect may take, and a question for a host's address.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Connects to one of them.
    ///
    /// # Errors
    /// All attempts have failed. The error has the reasons.
    pub async fn connect<A, T, F>(
        &self,
        clock: &Clock,
        found: Vec<ResolvedHost<A>>,
        attempt: impl Fn(Host, SocketAddr) -> F,
    ) -> Result<T, StoreError>
    where
        A: Iterator<Item = SocketAddr>,
        F: Future<Output = Result<T, StoreError>>,
    {
        let (mut addresses, mut errors) = (Vec::new(), Vec::new());
        for (host, found) in found {
            match found {
                Some(Ok(found)) => addresses.extend(found.map(|address| (host.clone(), address))),
                Some(Err(error)) => {
                    let why = format!("its name can't be resolved: {error}");
                    errors.push(gone(&host.to_string(), &why));
                }
                None => errors.push(gone(&host.to_string(), "its name is not resolved in time")),
            }
        }
        let limited = |(host, address): (Host, SocketAddr)| {
            let server = host.to_string();
            let (by, attempt) = (clock.now() + self.limit, attempt(host, address));
            async move {
                let attempted = clock.by(by, attempt).await;
                attempted.unwrap_or_else(|| Err(silent(&server)))
            }
        };
        let connected = self.known.connect(addresses, self.limit, clock, limited);
        connected.await.map_err(|failed| {
            errors.extend(failed);
            let none = || gone("the URL's hosts", "they have no address");
            StoreError::of_all(errors).unwrap_or_else(none)
        })
    }
}
