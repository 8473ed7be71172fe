//! From addresses to a connection whose server has a leader.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use lock_store::ordered::{SessionMembers, gone};
use lock_store::{Clock, Host, StoreError};
use tokio::net::lookup_host;

use crate::connection::LoginToken;
use crate::errors::{error_of, too_old};
use crate::grpc::{CallError, Channel};
use crate::transport::{ByteStream, Transport};
use crate::url::Settings;
use crate::wire::{RangeReply, RangeRequest, StatusReply, StatusRequest, path};

/// Older servers let no client number its watches.
const OLDEST: (u32, u32) = (3, 4);

/// A connection to a server that serves.
pub(crate) struct DialedMember {
    pub(crate) channel: Channel,
    pub(crate) connection: h2::client::Connection<ByteStream, bytes::Bytes>,
    pub(crate) server: String,
}

#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) settings: Arc<Settings>,
    pub(crate) transport: Transport,
    pub(crate) identity: Arc<LoginToken>,
    pub(crate) clock: Clock,
    pub(crate) members: SessionMembers,
    /// A key that the client may read.
    pub(crate) probe: String,
}

impl Dialer {
    /// A connection to one of the servers.
    pub(crate) async fn dial(&self) -> Result<DialedMember, StoreError> {
        let by = self.clock.now() + self.members.limit();
        let resolve = |host: Host| async move {
            let found = lookup_host((host.name.clone(), host.port));
            let found = self.clock.by(by, found).await;
            (host, found)
        };
        let found = join_all(self.members.in_turn().map(resolve)).await;
        let attempt = async |host, address| self.attempt(&host, address).await;
        self.members.connect(&self.clock, found, attempt).await
    }

    async fn attempt(&self, host: &Host, address: SocketAddr) -> Result<DialedMember, StoreError> {
        let server = host.to_string();
        let failed = |error: &dyn std::error::Error| {
            gone(&server, &error.to_string()).advise_about_certificates()
        };
        let connected = self.transport.connect(&host.name, address, true).await;
        let stream = connected.map_err(|error| failed(&error))?;
        let handshake = h2::client::handshake(stream).await;
        let (send, mut connection) = handshake.map_err(|error| failed(&error))?;
        let channel = Channel::new(send, format!("{}://{host}", self.transport.scheme()));
        // The connection is driven only while something is asked for, until somebody has it.
        let greeted = tokio::select! {
            biased;
            ended = &mut connection => Err(match ended {
                Err(error) => failed(&error),
                Ok(()) => gone(&server, "it closed the connection at once"),
            }),
            greeted = self.greet(&channel, &server) => greeted,
        };
        greeted?;
        Ok(DialedMember {
            channel,
            connection,
            server,
        })
    }

    /// Logs in, and makes sure that the server is new enough and has a leader.
    async fn greet(&self, channel: &Channel, server: &str) -> Result<(), StoreError> {
        let mut used = self.identity.token();
        let mut is_asked = used.is_none();
        loop {
            if is_asked {
                let login = self
                    .identity
                    .authenticate(channel, &self.clock, server, used.as_ref());
                login.await?;
            }
            let probe = RangeRequest {
                key: self.probe.clone().into(),
                ..RangeRequest::default()
            };
            used = self.identity.token();
            let reply = channel.unary::<RangeReply>(path::RANGE, used.clone(), &probe);
            match reply.await {
                Ok(_) => break,
                Err(CallError::Status(status)) if status.wants_login() && !is_asked => {
                    is_asked = true;
                }
                Err(error) => return Err(error_of(error, server)),
            }
        }
        // With users, some versions tell it to nobody but root: then it is not known.
        let token = self.identity.token();
        let status = channel.unary(path::STATUS, token, &StatusRequest {}).await;
        match status {
            Ok(StatusReply { version, .. }) if !is_new_enough(&version) => {
                Err(too_old(server, &version))
            }
            Ok(_) => Ok(()),
            Err(CallError::Status(status)) if !status.is_unavailable() => Ok(()),
            Err(error) => Err(error_of(error, server)),
        }
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => (major, minor) >= OLDEST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_3_4_are_refused() {
        for (version, is_new) in [
            ("3.4.23", true),
            ("3.5.0", true),
            ("4.0.1", true),
            ("3.3.27", false),
            ("2.3.8", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), is_new, "{version}");
        }
    }
}
