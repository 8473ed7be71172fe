//! What the servers say about themselves.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::engine::OrderedEngine;
use super::fault::{LiveConnection, gone, silent};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::health::{Finding, ServerHealth};
use crate::instant::Instant;
use crate::server_url::Host;
use crate::staggered::Staggered;

/// Within this time all addresses of a server's name are tried.
const ALL_TRIED: Duration = Duration::from_secs(1);

/// How servers are asked about themselves.
pub trait EngineServers: OrderedEngine {
    /// What a server says about itself.
    type Said: Send + 'static;

    /// The servers of the URL.
    fn hosts(&self) -> &[Host];

    /// Asks one server about itself.
    fn ask(
        &self,
        live: &Self::Live,
        host: Host,
    ) -> impl Future<Output = Result<Self::Said, StoreError>> + Send + use<Self>;

    /// What endangers locks at the server that the client is connected to.
    fn about_session(&self, live: &Arc<Self::Live>) -> impl Future<Output = Vec<Finding>> + Send;

    /// What a server has said about itself.
    fn describe(health: &mut ServerHealth, said: &Self::Said);
}

/// A connection to one of the addresses that a server's name has: a silent one keeps no other from
/// being tried.
///
/// # Errors
/// For a name that has none, and where none can be connected to.
pub async fn at_some_address<S, F>(
    server: &str,
    found: io::Result<impl Iterator<Item = SocketAddr>>,
    clock: &Clock,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<(SocketAddr, S), StoreError>
where
    F: Future<Output = io::Result<S>>,
{
    let failed = |error: io::Error| gone(server, &error.to_string());
    let addresses = found.map_err(failed)?.collect();
    let attempt = |address| {
        let connected = connect(address);
        async move { Ok((address, connected.await?)) }
    };
    let staggered = Staggered::default();
    let connected = staggered.connect(addresses, ALL_TRIED, clock, attempt);
    connected.await.map_err(|mut errors: Vec<io::Error>| {
        let none = || gone(server, "its name has no address");
        errors.pop().map_or_else(none, failed)
    })
}

/// Asks all servers, at once.
pub(super) async fn servers<E: EngineServers>(
    me: &E,
    by: Instant,
) -> Result<Vec<ServerHealth>, StoreError> {
    let live = me.connecting().live(by).await?;
    let mut asked = JoinSet::new();
    for (at, host) in me.hosts().iter().enumerate() {
        let (clock, said) = (me.clock.clone(), me.ask(&live, host.clone()));
        let sent = clock.now();
        // On the client's own runtime: who asks may have none.
        let ask = async move { (at, said.await, clock.now() - sent) };
        asked.spawn_on(ask, me.clock.handle());
    }
    let begun = me.clock.now();
    let about_session = me.clock.by(by, me.about_session(&live)).await;
    let mut answers: Vec<_> = me.hosts().iter().map(|_| None).collect();
    while let Some(Some(answered)) = me.clock.by(by, asked.join_next()).await {
        if let Ok((at, said, round_trip)) = answered
            && let Some(answer) = answers.get_mut(at)
        {
            *answer = Some((said, round_trip));
        }
    }
    let mut servers = Vec::new();
    for (host, answer) in me.hosts().iter().zip(answers) {
        let mut health = ServerHealth::new(host.to_string());
        health.reconnects = me.connecting().reconnects();
        if live.server() == health.address {
            health.connected_for = me.clock.now() - live.since();
            health
                .findings
                .extend(about_session.iter().flatten().cloned());
        }
        let unanswered = || (Err(silent(&health.address)), me.clock.now() - begun);
        let (said, round_trip) = answer.unwrap_or_else(unanswered);
        match said {
            Ok(said) => {
                health.round_trip = round_trip;
                E::describe(&mut health, &said);
            }
            Err(error) => {
                let reason = error.detail().to_owned();
                health.findings.push(Finding::no_answer(reason));
            }
        }
        servers.push(health);
    }
    Ok(servers)
}
