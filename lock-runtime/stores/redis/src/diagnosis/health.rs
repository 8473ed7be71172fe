//! Settings and states that endanger locks: asked of each server, reported, and logged once.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use lock_store::{Finding, Instant, Role, ServerHealth, StoreError, wall_micros};
use redis::RedisError;

use super::findings_log::no_answer;
use crate::commands::rights::{Rights, if_allowed};
use crate::config::{CLOCK_TOLERANCE, Replicas};
use crate::resp::Command;
use crate::server_text::without_secrets;
use crate::store::RedisStore;
use crate::topology::hello::Hello;
use crate::topology::info::Info;
use crate::transport::connected::Connected;
use crate::transport::proof::{DEAF, KNOWN_WITHIN};

const INFO: &str = "INFO";
const TIME: &str = "TIME";
const CONFIG_GET_SAVE: &str = "CONFIG GET save";

impl RedisStore {
    /// Asks every server that has locks. Findings are logged the first time. If a cluster's master
    /// does not answer, the list says so. An error if none answers.
    pub(crate) async fn diagnose(&self, by: Instant) -> Result<Vec<ServerHealth>, StoreError> {
        let policy = self.replication.as_ref().map(|it| it.policy());
        let masters = self.servers.masters(by).await?;
        let asked = masters.iter().map(|(_, connection)| {
            connection.ask_health(by, async move |up| health_of(up, policy).await)
        });
        let answers = join_all(asked).await;
        let (mut servers, mut failed) = (Vec::new(), Vec::new());
        for ((address, _), answer) in masters.iter().zip(answers) {
            servers.push(answer.unwrap_or_else(|error| {
                let server = no_answer(address, error.to_string());
                failed.push(error);
                server
            }));
        }
        if failed.len() == servers.len()
            && let Some(error) = failed.pop()
        {
            return Err(error);
        }
        self.logged.lock().await.note(&servers);
        Ok(servers)
    }

    /// True if the findings of all servers were logged.
    pub(crate) async fn is_diagnosed(&self) -> bool {
        self.logged.lock().await.is_complete()
    }
}

async fn health_of(up: &Connected, policy: Option<Replicas>) -> Result<ServerHealth, RedisError> {
    let sent = Instant::now();
    // A server that refuses `PING` is not healthy, whatever else it answers.
    let _: redis::Value = up.connection.query(&Command::new("PING")).await?;
    let round_trip = sent.elapsed();
    let hello = Hello::of(&up.connection).await?;
    let mut findings = Vec::new();
    let rights = Rights::to(up, &[TIME, INFO, CONFIG_GET_SAVE]).await?;

    match clock_difference(up, rights.allow(TIME)).await? {
        Some((difference, is_ahead)) if difference > CLOCK_TOLERANCE => {
            findings.push(Finding::clock_difference(difference, is_ahead));
        }
        Some(_) => {}
        None => findings.push(Finding::unknown("its clock", "+time")),
    }

    let info: Option<Info> = if_allowed(up, rights.allow(INFO), &Info::command()).await?;
    let mut replicas = None;
    match info {
        Some(info) => {
            let connected = info.field("connected_slaves");
            replicas = connected.and_then(|count| count.parse().ok());
            evicting(&info, &mut findings);
            if !info.is("aof_enabled", "1") {
                match saves_snapshots(up, rights.allow(CONFIG_GET_SAVE)).await? {
                    None => findings.push(Finding::SnapshotsUnknown),
                    Some(false) => findings.push(Finding::NoPersistence),
                    Some(true) => {}
                }
            }
            replication(&info, policy, replicas, &mut findings);
        }
        None => findings.push(Finding::unknown(
            "eviction, persistence and replicas",
            "+info",
        )),
    }
    if up.subscriptions.are_heard(up.since + KNOWN_WITHIN).await == Some(false) {
        findings.push(Finding::other(DEAF.to_owned()));
    }
    let mut server = ServerHealth::new(up.address());
    server.version = without_secrets(&hello.version);
    server.round_trip = round_trip;
    server.role = match hello.is_replica {
        true => Role::Replica,
        false => Role::Master,
    };
    server.replicas = replicas;
    server.findings = findings;
    Ok(server)
}

fn evicting(info: &Info, findings: &mut Vec<Finding>) {
    if let Some(policy) = info.field("maxmemory_policy")
        && policy != "noeviction"
    {
        findings.push(Finding::evicting(without_secrets(policy)));
    }
}

fn replication(
    info: &Info,
    policy: Option<Replicas>,
    connected: Option<u32>,
    findings: &mut Vec<Finding>,
) {
    let connected = connected.unwrap_or(0);
    // The line exists only if `min-replicas-to-write` is set.
    let has_minimum = info.field("min_slaves_good_slaves").is_some();
    if connected > 0 && info.is("role", "master") && !has_minimum {
        findings.push(Finding::no_min_replicas(connected));
    }
    if let Some(policy) = policy
        && policy.count > connected
    {
        findings.push(Finding::too_few_replicas(policy.count, connected));
    }
}

/// The minimum difference between its clock and this machine's, and true if its clock is ahead.
async fn clock_difference(
    up: &Connected,
    may: bool,
) -> Result<Option<(Duration, bool)>, RedisError> {
    // The wall clock, for once: no lock depends on this.
    let now = || Duration::from_micros(wall_micros());
    let sent = now();
    let time: Option<(u64, u32)> = if_allowed(up, may, &Command::new(TIME)).await?;
    let answered = now();
    Ok(time.map(|(seconds, micros)| {
        let server =
            Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros.into()));
        match server > answered {
            true => (server - answered, true),
            false => (sent.saturating_sub(server), false),
        }
    }))
}

/// Whether it saves snapshots, which `INFO` does not tell. `None` if the user may not ask: the
/// permission also covers `requirepass` and `masterauth`, so no client should be given it for this.
async fn saves_snapshots(up: &Connected, may: bool) -> Result<Option<bool>, RedisError> {
    let mut save = Command::new("CONFIG");
    save.arg("GET").arg("save");
    let save: Option<HashMap<String, String>> = if_allowed(up, may, &save).await?;
    Ok(save.map(|save| !save.values().all(String::is_empty)))
}
