//! From addresses to a connection whose session is there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lock_store::ordered::{SessionMembers, gone};
use lock_store::{ClientId, Clock, Host, Instant, StoreError};
use tokio::io::AsyncWriteExt;
use tokio::net::lookup_host;

use crate::connection::message;
use crate::errors::{not_serving, of_code, too_short};
use crate::transport::{ReadHalf, Transport, WriteHalf};
use crate::trust::SharedTrust;
use crate::url::Settings;
use crate::wire::{self, GivenSession, NodeRequest};

/// The session that a server is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Zero: a new one.
    pub(crate) session: i64,
    pub(crate) secret: Vec<u8>,
    /// The last transaction that this client has seen. A server that is behind refuses.
    pub(crate) seen: i64,
    /// Of a session that is there.
    pub(crate) trust: Option<SharedTrust>,
}

impl Wanted {
    pub(crate) fn new(seen: i64) -> Self {
        Self {
            session: 0,
            secret: vec![0; 16],
            seen,
            trust: None,
        }
    }
}

pub(crate) struct DialedSession {
    pub(crate) read: ReadHalf,
    pub(crate) write: WriteHalf,
    pub(crate) connected: GivenSession,
    /// When the session was asked for.
    pub(crate) sent: Instant,
    pub(crate) server: String,
}

pub(crate) struct Dialer {
    pub(crate) settings: Arc<Settings>,
    pub(crate) transport: Transport,
    pub(crate) clock: Clock,
    pub(crate) members: SessionMembers,
}

impl Dialer {
    /// A connection to one of the servers.
    pub(crate) async fn dial(&self, wanted: &Wanted) -> Result<DialedSession, StoreError> {
        let by = self.clock.now() + self.members.limit();
        let resolve = |host: Host| async move {
            let found = lookup_host((host.name.clone(), host.port));
            let found = self.clock.by(by, found).await;
            (host, found)
        };
        let found = join_all(self.members.in_turn().map(resolve)).await;
        let attempt = async |host, address| self.attempt(&host, address, wanted).await;
        self.members.connect(&self.clock, found, attempt).await
    }

    /// How long the servers' sessions last at least, whatever is asked for: two ticks, unless their
    /// `minSessionTimeout` says otherwise.
    pub(crate) async fn shortest_session(&self) -> Option<Duration> {
        let settings = Settings {
            session: Duration::from_millis(1),
            tick: None,
            ..Settings::clone(&self.settings)
        };
        let limit = self.members.limit();
        let dialer = Self {
            members: SessionMembers::new(settings.hosts.clone(), ClientId(0), limit),
            settings: Arc::new(settings),
            transport: self.transport.clone(),
            clock: self.clock.clone(),
        };
        let mut dialed = dialer.dial(&Wanted::new(0)).await.ok()?;
        // If they do not hear it, the session ends after this time.
        let close = wire::close();
        let end = exchange(&mut dialed, 1, &close);
        let _ = self.clock.by(self.clock.now() + limit, end).await;
        (dialed.connected.session != 0).then_some(dialed.connected.timeout)
    }

    async fn attempt(
        &self,
        host: &Host,
        address: SocketAddr,
        wanted: &Wanted,
    ) -> Result<DialedSession, StoreError> {
        let server = host.to_string();
        let failed =
            |error: std::io::Error| gone(&server, &error.to_string()).advise_about_certificates();
        let (mut read, mut write) = self
            .transport
            .connect(&host.name, address)
            .await
            .map_err(failed)?;
        let sent = self.clock.now();
        let timeout = i32::try_from(self.settings.session.as_millis()).unwrap_or(i32::MAX);
        let first = wire::connect(wanted.seen, timeout, wanted.session, &wanted.secret);
        let framed = crate::jute::JuteWriter::default().bytes(&first).done();
        write.write_all(&framed).await.map_err(failed)?;
        write.flush().await.map_err(failed)?;
        let reply = message(&mut read)
            .await
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset => {
                    not_serving(&server, self.transport.is_plain())
                }
                _ => failed(error),
            })?;
        let connected = wire::connected(&reply)
            .ok_or_else(|| gone(&server, "it does not speak ZooKeeper's protocol"))?;
        // It has that, whatever becomes of this attempt.
        let trust = wanted.trust.as_ref();
        if let Some(trust) = trust.filter(|_| connected.session != 0) {
            let shortened = trust.lock().grant(sent, connected.timeout);
            if let Some(before) = shortened {
                tracing::warn!(
                    server,
                    ?before,
                    granted = ?connected.timeout,
                    "a server has shortened the client's session, so its holds are trusted for \
                     less; set `maxSessionTimeout` of all members to the URL's `session` or more"
                );
            }
        }
        let mut dialed = DialedSession {
            read,
            write,
            connected,
            sent,
            server,
        };
        if dialed.connected.session != 0 {
            let granted = dialed.connected.timeout;
            // One that is taken over may have locks, which end as they are given up.
            if wanted.session == 0 && self.settings.is_too_short(granted) {
                let _ = exchange(&mut dialed, 1, &wire::close()).await;
                return Err(too_short(granted, &dialed.server));
            }
            self.greet(&mut dialed).await?;
        }
        Ok(dialed)
    }

    async fn greet(&self, dialed: &mut DialedSession) -> Result<(), StoreError> {
        let Some(user) = &self.settings.user else {
            return Ok(());
        };
        let auth = wire::auth(&user.name, &user.password);
        exchange(dialed, wire::AUTH, &auth).await
    }
}

/// One request and its reply, before the connection is used.
async fn exchange(
    dialed: &mut DialedSession,
    number: i32,
    request: &NodeRequest,
) -> Result<(), StoreError> {
    let server = dialed.server.clone();
    let failed = |error: std::io::Error| gone(&server, &error.to_string());
    let framed = wire::framed(number, request);
    dialed.write.write_all(&framed).await.map_err(failed)?;
    dialed.write.flush().await.map_err(failed)?;
    loop {
        // Who refuses a user says so. A server that is killed, or loses its majority, does not.
        let reply = message(&mut dialed.read).await.map_err(failed)?;
        match wire::header(&reply) {
            Some(header) if header.number != number => {}
            Some(header) if header.error == 0 => return Ok(()),
            Some(header) => return Err(of_code(header.error, &server)),
            None => return Err(gone(&server, "it does not speak ZooKeeper's protocol")),
        }
    }
}
