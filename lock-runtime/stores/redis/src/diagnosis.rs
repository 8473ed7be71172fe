//! What a server says about itself that matters for locks. Asked at the start and for `health`, never for a lock.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lock_store::{Finding, Role, ServerHealth, StoreError};
use redis::{Cmd, FromRedisValue, RedisError, Value};

use super::connection::Connected;
use super::target::Hello;
use super::{RedisStore, Servers, errors, scripts};
use crate::config::{CLOCK_TOLERANCE, Replicas};

/// What may not be allowed, and is then not tried.
const TIME: &str = "TIME";
const INFO: &str = "INFO";
const SAVE: &str = "CONFIG GET save";

impl RedisStore {
    /// Asks every server that has locks. Findings are logged the first time.
    pub(crate) async fn diagnose(&self, by: Instant) -> Result<Vec<ServerHealth>, StoreError> {
        let mut logged = self.logged.lock().await;
        let connections = match &self.servers {
            Servers::One(connection) => vec![connection.clone()],
            Servers::Cluster(cluster) => cluster.masters(by).await?,
        };
        let policy = self.replication.as_ref().map(|it| it.policy());
        let mut servers = Vec::new();
        for connection in connections {
            servers.push(connection.look(by, async |up| of(up, policy).await).await?);
        }
        if !std::mem::replace(&mut *logged, true) {
            log(&servers);
        }
        Ok(servers)
    }

    /// Whether findings were logged.
    pub(crate) async fn is_diagnosed(&self) -> bool {
        *self.logged.lock().await
    }
}

/// Logs findings.
pub(crate) fn log(servers: &[ServerHealth]) {
    for server in servers {
        for finding in &server.findings {
            match finding {
                // Who gives few rights has chosen so.
                Finding::Unknown { .. } => {
                    tracing::info!(server = %server.address, "the lock store: {finding}");
                }
                _ => tracing::warn!(server = %server.address, "the lock store: {finding}"),
            }
        }
    }
}

/// Asks one server.
async fn of(up: &mut Connected, policy: Option<Replicas>) -> Result<ServerHealth, RedisError> {
    let hello = Hello::of(&mut up.connection).await?;
    let mut findings = Vec::new();
    let rights = rights(up).await?;
    let may = |command: usize| rights.get(command) != Some(&0);

    match clock(up, may(0)).await? {
        Some((difference, is_ahead)) if difference > CLOCK_TOLERANCE => {
            findings.push(Finding::clock_difference(difference, is_ahead));
        }
        Some(_) => {}
        None => findings.push(Finding::unknown("its clock", "+time")),
    }

    let mut info = redis::cmd(INFO);
    let info: Option<String> = if_allowed(up, may(1), &mut info).await?;
    let mut replicas = None;
    match info {
        Some(info) => {
            let connected = field(&info, "connected_slaves").and_then(|count| count.parse().ok());
            replicas = connected;
            evicting(&info, &mut findings);
            if !is(&info, "aof_enabled", "1") {
                let mut save = redis::cmd("CONFIG");
                save.arg("GET").arg("save");
                let save: Option<HashMap<String, String>> =
                    if_allowed(up, may(2), &mut save).await?;
                match save {
                    None => findings.push(Finding::unknown(
                        "whether it saves snapshots",
                        "+config|get",
                    )),
                    Some(save) if save.values().all(String::is_empty) => {
                        findings.push(Finding::NoPersistence);
                    }
                    Some(_) => {}
                }
            }
            replication(&info, policy, connected, &mut findings);
        }
        None => findings.push(Finding::unknown(
            "eviction, persistence and replicas",
            "+info",
        )),
    }
    let mut server = ServerHealth::new(up.address());
    server.version = hello.version;
    server.role = match hello.is_replica {
        true => Role::Replica,
        false => Role::Master,
    };
    server.replicas = replicas;
    server.findings = findings;
    Ok(server)
}

fn evicting(info: &str, findings: &mut Vec<Finding>) {
    if let Some(policy) = field(info, "maxmemory_policy")
        && policy != "noeviction"
    {
        let policy = policy.to_owned();
        findings.push(Finding::evicting(policy));
    }
}

fn replication(
    info: &str,
    policy: Option<Replicas>,
    connected: Option<u32>,
    findings: &mut Vec<Finding>,
) {
    let connected = connected.unwrap_or(0);
    // Only said by a server that asks for some.
    if connected > 0
        && is(info, "role", "master")
        && field(info, "min_slaves_good_slaves").is_none()
    {
        let replicas = connected;
        findings.push(Finding::no_min_replicas(replicas));
    }
    if let Some(policy) = policy
        && policy.count > connected
    {
        let asked = policy.count;
        findings.push(Finding::too_few_replicas(asked, connected));
    }
}

/// For each of what may not be allowed: 0 if it is not. Nothing if that can't be known without trying.
async fn rights(up: &mut Connected) -> Result<Vec<i64>, RedisError> {
    let form = scripts::RIGHTS.form(false);
    let mut commands = redis::cmd("EVALSHA");
    commands.arg(form.hash()).arg(0);
    commands.arg(TIME).arg(INFO).arg(SAVE);
    let rights = if_allowed(up, true, &mut form.by_text(&commands)).await?;
    Ok(rights.unwrap_or_default())
}

/// How far the server's clock is from this machine's at least, and whether it is ahead.
async fn clock(up: &mut Connected, may: bool) -> Result<Option<(Duration, bool)>, RedisError> {
    // The wall clock, for once: nothing that a lock depends on.
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    };
    let sent = now();
    let time: Option<(u64, u32)> = if_allowed(up, may, &mut redis::cmd(TIME)).await?;
    let answered = now();
    Ok(time.map(|(seconds, micros)| {
        let server = Duration::from_secs(seconds) + Duration::from_micros(micros.into());
        match server > answered {
            true => (server - answered, true),
            false => (sent.saturating_sub(server), false),
        }
    }))
}

/// `None` if the server refuses it. An error if there is no answer, or none for now.
async fn if_allowed<T: FromRedisValue>(
    up: &mut Connected,
    may: bool,
    command: &mut Cmd,
) -> Result<Option<T>, RedisError> {
    if !may {
        return Ok(None);
    }
    match command.query_async::<Value>(&mut up.connection).await {
        Ok(value) => Ok(T::from_redis_value(value).ok()),
        Err(error) if error.code().is_some() && !errors::kind(&error).is_transient() => Ok(None),
        Err(error) => Err(error),
    }
}

/// One line of `INFO`.
fn field<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

fn is(info: &str, name: &str, value: &str) -> bool {
    field(info, name) == Some(value)
}
