//! What the servers say about themselves, and what of it endangers locks.

use std::sync::Arc;

use http::HeaderValue;
use lock_store::ordered::{EngineServers, at_some_address};
use lock_store::{Clock, Finding, Host, Role, ServerHealth, StoreError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::lookup_host;

use crate::connection::Live;
use crate::errors::{Fault, error_of, strange};
use crate::grpc::{CallError, Channel};
use crate::store::EtcdEngine;
use crate::transport::Transport;
use crate::wire::{
    AlarmReply, AlarmRequest, RangeReply, RangeRequest, StatusReply, StatusRequest, path,
};

/// Longer metrics are not read.
const LONGEST: u64 = 1 << 20;
/// Unless `--quota-backend-bytes` says it.
const QUOTA: i64 = 2 << 30;
/// A cluster with more revisions has been compacted, if it ever is.
const MANY: i64 = 100_000;
/// The alarm of a full quota.
const NO_SPACE: i32 = 1;
/// Before these versions of 3.4 and 3.5, a leader that was replaced while it stood still may revoke
/// leases that its successor has prolonged (etcd's issue 15247).
const REVOKES_NO_MORE: [(u32, u32, u32); 2] = [(3, 4, 31), (3, 5, 13)];

impl EngineServers for EtcdEngine {
    type Said = MemberSaid;

    fn hosts(&self) -> &[Host] {
        &self.settings.hosts
    }

    fn ask(
        &self,
        live: &Live,
        host: Host,
    ) -> impl Future<Output = Result<MemberSaid, StoreError>> + Send + use<> {
        let token = live.identity.token();
        ask(self.clock.clone(), self.transport.clone(), host, token)
    }

    async fn about_session(&self, live: &Arc<Live>) -> Vec<Finding> {
        let mut findings = self.of_cluster(live).await;
        let asked = self.settings.session;
        if let Some(granted) = self.session.granted().filter(|granted| *granted > asked) {
            findings.push(Finding::other(format!(
                "its sessions last at least {granted:?}, and the URL asks for {asked:?}: the \
                 places of a process that has died keep others waiting for longer; lower its \
                 `--election-timeout`"
            )));
        }
        findings
    }

    fn describe(health: &mut ServerHealth, said: &MemberSaid) {
        describe(health, said);
    }
}

impl EtcdEngine {
    async fn of_cluster(&self, live: &Arc<Live>) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Ok(reply) = live
            .call::<_, AlarmReply>(path::ALARM, AlarmRequest {}, None)
            .await
            && reply.alarms.iter().any(|alarm| alarm.kind == NO_SPACE)
        {
            findings.push(Finding::other(
                "its quota is used up (the alarm NOSPACE), so that no lock can be acquired; free \
                 some: `etcdctl compact`, `etcdctl defrag` and then `etcdctl alarm disarm`"
                    .to_owned(),
            ));
        }
        if self.is_never_compacted(live).await {
            findings.push(Finding::other(
                "it has never been compacted, and keeps what each lock has written until its \
                 quota is used up; set `--auto-compaction-retention`, as `1h`"
                    .to_owned(),
            ));
        }
        findings
    }

    async fn is_never_compacted(&self, live: &Arc<Live>) -> bool {
        if live.epoch.revision <= MANY {
            return false;
        }
        let first = RangeRequest {
            key: live.epoch.key.clone().into(),
            revision: 1,
            ..RangeRequest::default()
        };
        let reply: Result<RangeReply, Fault> = live.call(path::RANGE, first, None).await;
        // Otherwise it says that it was compacted.
        reply.is_ok()
    }
}

pub(crate) struct MemberSaid {
    /// `None`: this user may not know.
    status: Option<StatusReply>,
    metrics: String,
}

async fn ask(
    clock: Clock,
    transport: Transport,
    host: Host,
    token: Option<HeaderValue>,
) -> Result<MemberSaid, StoreError> {
    let server = host.to_string();
    let found = lookup_host((host.name.clone(), host.port)).await;
    let connect = |address| transport.connect(&host.name, address, true);
    let (address, stream) = at_some_address(&server, found, &clock, connect).await?;
    let handshake = h2::client::handshake(stream).await;
    let (send, connection) = handshake.map_err(|_| strange(&server))?;
    let driven = clock.handle().spawn(async move {
        let _ = connection.await;
    });
    let channel = Channel::new(send, format!("{}://{host}", transport.scheme()));
    let status = channel.unary(path::STATUS, token, &StatusRequest {}).await;
    driven.abort();
    // With users, some versions tell it to nobody but root.
    let status: Option<StatusReply> = match status {
        Ok(status) => Some(status),
        Err(CallError::Status(status)) if status.is_about_rights() => None,
        Err(error) => return Err(error_of(error, &server)),
    };
    // Where they can't be read, less is known.
    let metrics = match transport.connect(&host.name, address, false).await {
        Ok(mut stream) => {
            let question = format!("GET /metrics HTTP/1.0\r\nHost: {host}\r\n\r\n");
            let mut answer = Vec::new();
            let asked = stream.write_all(question.as_bytes()).await;
            if asked.is_ok() && stream.flush().await.is_ok() {
                let _ = stream.take(LONGEST).read_to_end(&mut answer).await;
            }
            String::from_utf8_lossy(&answer).into_owned()
        }
        Err(_) => String::new(),
    };
    Ok(MemberSaid { status, metrics })
}

/// A number in a server's metrics.
fn metric(metrics: &str, name: &str) -> Option<i64> {
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let value: f64 = value.trim().parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "bytes and members")]
    Some(value as i64)
}

/// What a version means for holds whose leader stands still.
fn about_revoking(version: &str) -> Option<Finding> {
    let mut parts = version.split(['.', '-', '+']);
    let mut part = || parts.next()?.parse().ok();
    let version = (part()?, part()?, part()?);
    let [of_3_4, of_3_5] = REVOKES_NO_MORE;
    let is_mended = version >= of_3_5 || (of_3_4..(3, 5, 0)).contains(&version);
    (!is_mended).then(|| {
        Finding::other(
            "a leader of this version that is replaced while it stands still may end locks before \
             their leases when it comes back (etcd's issue 15247), so that two hold one; use etcd \
             3.5.13 or later (of 3.4: 3.4.31), and fencing tokens until then"
                .to_owned(),
        )
    })
}

fn describe(health: &mut ServerHealth, said: &MemberSaid) {
    let MemberSaid { status, metrics } = said;
    let leads = status.as_ref().map(|status| status.leader != 0);
    health.role = match leads {
        Some(true) => Role::Master,
        Some(false) | None => Role::Unknown,
    };
    if let Some(status) = status {
        health.version.clone_from(&status.version);
        health.findings.extend(about_revoking(&status.version));
    }
    if leads == Some(false) {
        health.findings.push(Finding::other(
            "it has no leader: it is cut off from the others, or no majority of the members runs"
                .to_owned(),
        ));
    }
    let quota = metric(metrics, "etcd_server_quota_backend_bytes").filter(|quota| *quota > 0);
    let quota = quota.unwrap_or(QUOTA);
    if let Some(status) = status.as_ref().filter(|it| it.size > quota / 10 * 8) {
        health.findings.push(Finding::other(format!(
            "{} of the {} bytes of its quota are used, and it takes no locks when all are; compact \
             and defragment it, or raise `--quota-backend-bytes`",
            status.size, quota
        )));
    }
    let peers = metrics
        .lines()
        .filter(|line| line.starts_with("etcd_network_active_peers"))
        .count();
    let knows_peers = !metrics.is_empty();
    health.replicas = knows_peers.then(|| u32::try_from(peers).unwrap_or(u32::MAX));
    if knows_peers && peers == 0 && leads != Some(false) {
        health.findings.push(Finding::other(
            "it is a cluster of one: without it there are no locks, and with its disk they are \
             lost; run three or five members"
                .to_owned(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_3_4_31_and_3_5_13_are_told_to_revoke_leases_early() {
        for (version, is_told) in [
            ("3.4.23", true),
            ("3.4.30", true),
            ("3.4.31", false),
            ("3.5.0", true),
            ("3.5.12", true),
            ("3.5.13-rc.0", false),
            ("3.5.13", false),
            ("3.6.0-alpha.0", false),
            ("4.0.0", false),
            ("unknown", false),
        ] {
            assert_eq!(about_revoking(version).is_some(), is_told, "{version}");
        }
    }

    #[test]
    fn numbers_are_read_from_metrics() {
        let metrics = "# TYPE a gauge\na_b 7\na 2.147483648e+09\n";
        assert_eq!(metric(metrics, "a"), Some(2_147_483_648));
        assert_eq!(metric(metrics, "b"), None);
    }
}
