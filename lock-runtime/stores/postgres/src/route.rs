//! [`Route`]: the hosts of a URL, their addresses, and how connections to them are made.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lock_store::{Clock, CredentialsProvider, Instant, Staggered, StoreError, StoreErrorKind};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config};

use crate::errors::of_postgres;
use crate::identity::KnownIdentity;
use crate::own_session::HeardAddresses;
use crate::transport::{SessionMessages, Transport};

pub(crate) const CONNECT_SLOW_TEXT: &str = "connecting takes too long";

/// A host of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostEntry {
    /// What certificates must name, and what people read.
    pub(crate) host: Host,
    /// Where it is, if the URL says that apart from its name.
    pub(crate) at: Option<IpAddr>,
    pub(crate) port: u16,
}

impl fmt::Display for HostEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Tcp(host) if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            Host::Tcp(host) => write!(f, "{host}:{}", self.port),
            #[cfg(unix)]
            Host::Unix(path) => path.display().fmt(f),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    entry: HostEntry,
    /// `None` for a socket of this machine.
    ip: Option<IpAddr>,
}

/// For people.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entry.fmt(f)?;
        match (self.ip, &self.entry.host) {
            (Some(ip), Host::Tcp(host)) if *host != ip.to_string() => write!(f, " ({ip})"),
            _ => Ok(()),
        }
    }
}

pub(crate) struct PgSession {
    pub(crate) client: Client,
    pub(crate) messages: SessionMessages,
    /// For people.
    pub(crate) server: String,
    /// When there should be another one with new credentials.
    pub(crate) renew_at: Option<Instant>,
}

/// Where to, and how.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) hosts: Vec<HostEntry>,
    /// Without hosts.
    pub(crate) config: Config,
    pub(crate) transport: Transport,
    /// Of user and password, if the configuration has none.
    pub(crate) provider: Option<CredentialsProvider>,
    /// How long one attempt may take.
    pub(crate) limit: Duration,
    pub(crate) known: Arc<KnownIdentity>,
    pub(crate) heard: Arc<HeardAddresses>,
    pub(crate) staggered: Arc<Staggered<Address>>,
}

impl Route {
    /// Connects at one of the addresses. `greet` makes sure that it is the right server. If all
    /// addresses fail, and there is one, `all_failed` is called.
    pub(crate) async fn connect<T, F>(
        &self,
        clock: &Clock,
        greet: impl Fn(PgSession) -> F,
        all_failed: impl FnOnce(),
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let (config, renew_at) = &self.with_credentials(clock).await?;
        let (addresses, mut errors) = self.addresses(clock).await;
        let attempt = |address: Address| {
            let server = address.to_string();
            let greeted = async {
                let session = self.connect_at(address, config.clone(), *renew_at).await?;
                greet(session).await
            };
            let greeted = clock.by(clock.now() + self.limit, greeted);
            async move {
                greeted.await.unwrap_or_else(|| {
                    let text = format!("{server}: {CONNECT_SLOW_TEXT}");
                    Err(StoreError::new(StoreErrorKind::Timeout, text))
                })
            }
        };
        let connected = self
            .staggered
            .connect(addresses, self.limit, clock, attempt);
        connected.await.map_err(|failed| {
            if !failed.is_empty() {
                all_failed();
            }
            errors.extend(failed);
            let none = || StoreError::new(StoreErrorKind::Disconnected, "there is no address");
            StoreError::of_all(errors).unwrap_or_else(none)
        })
    }

    /// Whether there may be several servers.
    pub(crate) fn is_list(&self) -> bool {
        self.hosts.len() > 1
    }

    /// Of all hosts, in their order; and the errors of those that have none.
    async fn addresses(&self, clock: &Clock) -> (Vec<Address>, Vec<StoreError>) {
        // A name that can't be resolved keeps the others waiting as short as a silent host does.
        let by = clock.now() + self.limit / 4;
        addresses_of(&self.hosts, clock, by, resolve).await
    }

    /// The provider has a time limit of its own.
    async fn with_credentials(
        &self,
        clock: &Clock,
    ) -> Result<(Config, Option<Instant>), StoreError> {
        let mut config = self.config.clone();
        let Some(provider) = &self.provider else {
            return Ok((config, None));
        };
        let given = clock.by(clock.now() + self.limit, provider.ask(clock));
        let (credentials, renew_at) = given.await.unwrap_or_else(|| {
            let limit = self.limit;
            let text = format!(
                "the credentials provider did not answer within the connect timeout of {limit:?}"
            );
            let error = StoreError::new(StoreErrorKind::Timeout, text);
            Err(error.advise(
                "its answer is kept for the next attempt; make it faster, or raise \
                 `connect_timeout`",
            ))
        })?;
        let (user, password) = credentials.both();
        config.user(user).password(password);
        Ok((config, renew_at))
    }

    async fn connect_at(
        &self,
        address: Address,
        mut config: Config,
        renew_at: Option<Instant>,
    ) -> Result<PgSession, StoreError> {
        let server = address.to_string();
        match &address.entry.host {
            Host::Tcp(host) => config.host(host),
            #[cfg(unix)]
            Host::Unix(path) => config.host_path(path),
        };
        config.port(address.entry.port);
        if let Some(ip) = address.ip {
            config.hostaddr(ip);
        }
        let connected = self.transport.connect(&config).await;
        let (client, messages) = connected.map_err(|error| of_postgres(&error, &server))?;
        Ok(PgSession {
            client,
            messages,
            server,
            renew_at,
        })
    }
}

/// All names are looked up beside each other, so that one whose name server is silent leaves the
/// others their time.
async fn addresses_of<'p, L>(
    hosts: &'p [HostEntry],
    clock: &Clock,
    by: Instant,
    look_up: impl Fn(&'p HostEntry) -> L,
) -> (Vec<Address>, Vec<StoreError>)
where
    L: Future<Output = std::io::Result<Vec<Address>>>,
{
    let found = join_all(hosts.iter().map(|entry| clock.by(by, look_up(entry)))).await;
    let (mut addresses, mut errors) = (Vec::new(), Vec::new());
    for (entry, found) in hosts.iter().zip(found) {
        match found {
            Some(Ok(found)) => addresses.extend(found),
            Some(Err(error)) => errors.push(unresolved(entry, &error.to_string())),
            None => errors.push(unresolved(entry, "its name server does not answer")),
        }
    }
    (addresses, errors)
}

async fn resolve(entry: &HostEntry) -> std::io::Result<Vec<Address>> {
    let of = |ip| Address {
        entry: entry.clone(),
        ip,
    };
    Ok(match (&entry.host, entry.at) {
        (_, Some(ip)) => vec![of(Some(ip))],
        #[cfg(unix)]
        (Host::Unix(_), None) => vec![of(None)],
        (Host::Tcp(host), None) => {
            let found = tokio::net::lookup_host((&**host, entry.port)).await?;
            found.map(|at| of(Some(SocketAddr::ip(&at)))).collect()
        }
    })
}

fn unresolved(entry: &HostEntry, why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Disconnected, format!("{entry}: {why}"))
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::*;

    #[tokio::test]
    async fn a_name_whose_lookup_hangs_leaves_the_others_their_time() {
        let clock = Clock::new(Handle::current());
        let hosts = ["silent", "good"].map(|host| HostEntry {
            host: Host::Tcp(host.to_owned()),
            at: None,
            port: 5432,
        });
        let look_up = async |entry: &HostEntry| {
            if entry == &hosts[0] {
                std::future::pending::<()>().await;
            }
            tokio::task::yield_now().await;
            let (entry, ip) = (entry.clone(), None);
            Ok(vec![Address { entry, ip }])
        };
        let by = clock.now() + Duration::from_millis(100);
        let (found, errors) = addresses_of(&hosts, &clock, by, look_up).await;
        assert_eq!(
            found.iter().map(|one| &one.entry).collect::<Vec<_>>(),
            [&hosts[1]]
        );
        let said = errors.iter().map(ToString::to_string).collect::<String>();
        assert!(
            said.contains("silent:5432: its name server does not answer"),
            "{said}"
        );
    }
}
