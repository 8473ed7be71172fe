//! `SENTINEL`: which server is the master (Redis documentation, *Guidelines for Redis clients with
//! support for Redis Sentinel*).
//!
//! All sentinels are asked at once. As soon as a majority has answered, the answer with the highest
//! configuration epoch counts: a sentinel that was cut off during a failover still names the old
//! master.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_store::{Mutex, StoreError, StoreErrorKind};
use redis::{AsyncConnectionConfig, Client, ConnectionInfo};
use tokio::task::JoinSet;

use super::dial::{Dialed, dial};
use super::progress::Progress;
use super::server::{ServerAddress, name_of};
use super::unreached;
use crate::access::Access;
use crate::errors;

/// The sentinels of one master.
pub(crate) struct Sentinels {
    sentinels: Vec<Arc<Sentinel>>,
    name: Arc<str>,
    /// The settings for a master. Its address is not known yet.
    template: ConnectionInfo,
    /// The time limit for one sentinel.
    limit: Duration,
    /// The highest epoch seen.
    epoch: AtomicU64,
}

/// One sentinel, and the connection to it if there is one.
struct Sentinel {
    client: Client,
    connection: Mutex<Option<Dialed>>,
    progress: Progress,
}

/// A sentinel's answer.
struct NamedMaster {
    master: ServerAddress,
    epoch: u64,
}

impl Sentinels {
    pub(crate) fn new(
        sentinels: Vec<Client>,
        name: &str,
        template: ConnectionInfo,
        limit: Duration,
    ) -> Self {
        let sentinel = |client| {
            Arc::new(Sentinel {
                client,
                connection: Mutex::default(),
                progress: Progress::default(),
            })
        };
        Self {
            sentinels: sentinels.into_iter().map(sentinel).collect(),
            name: name.into(),
            template,
            limit,
            epoch: AtomicU64::new(0),
        }
    }

    /// Their name in errors, with that of the master.
    pub(crate) fn names(&self) -> String {
        let infos = self.sentinels.iter();
        let names = infos.map(|sentinel| name_of(sentinel.client.get_connection_info()));
        let names: Vec<String> = names.collect();
        format!("master {:?} of {}", self.name, names.join(", "))
    }

    /// The settings for a master at any address.
    pub(crate) fn template(&self) -> &ConnectionInfo {
        &self.template
    }

    /// Asks for the present master.
    pub(crate) async fn master(&self, access: &Arc<Access>) -> Result<ServerAddress, StoreError> {
        let mut asked = JoinSet::new();
        for sentinel in &self.sentinels {
            let (sentinel, name, limit) =
                (Arc::clone(sentinel), Arc::clone(&self.name), self.limit);
            let access = Arc::clone(access);
            asked.spawn(async move { sentinel.ask(&name, limit, &access).await });
        }
        let majority = self.sentinels.len() / 2 + 1;
        let (mut best, mut answers, mut errors) = (None::<NamedMaster>, 0, Vec::new());
        while answers < majority
            && let Some(answer) = asked.join_next().await
        {
            match answer {
                Ok(Ok(word)) => {
                    answers += 1;
                    if best.as_ref().is_none_or(|best| best.epoch < word.epoch) {
                        best = Some(word);
                    }
                }
                Ok(Err(error)) => errors.push(error),
                Err(_) => {}
            }
        }
        let Some(NamedMaster { master, epoch }) = best else {
            return Err(self.nobody_knows(errors));
        };
        // A majority is right even if it has forgotten every epoch, as after a new setup.
        if answers < majority && epoch < self.epoch.load(Ordering::Relaxed) {
            return Err(StoreError::new(
                StoreErrorKind::Disconnected,
                "too few sentinels can be reached, and those name an outdated master",
            ));
        }
        self.epoch.store(epoch, Ordering::Relaxed);
        Ok(master)
    }

    /// Picks the most helpful of the errors.
    fn nobody_knows(&self, errors: Vec<StoreError>) -> StoreError {
        use StoreErrorKind::{Denied, Misconfigured};
        let told = errors
            .iter()
            .find(|error| matches!(error.kind(), Misconfigured | Denied));
        if let Some(told) = told {
            return told.clone();
        }
        let details: Vec<&str> = errors.iter().map(StoreError::detail).collect();
        StoreError::new(
            StoreErrorKind::Disconnected,
            format!(
                "none of the {} sentinels names the master {:?}: {}",
                self.sentinels.len(),
                self.name,
                details.join("; ")
            ),
        )
    }
}

impl Sentinel {
    async fn ask(
        &self,
        name: &str,
        limit: Duration,
        access: &Access,
    ) -> Result<NamedMaster, StoreError> {
        let answer = tokio::time::timeout(limit, self.ask_now(name, access)).await;
        let answer =
            answer.unwrap_or_else(|_| Err(unreached::silent(access, &self.progress, limit)));
        answer.map_err(|error| {
            // After any error, the next question uses a new connection.
            *self.connection.lock() = None;
            error.of(&name_of(self.client.get_connection_info()))
        })
    }

    async fn ask_now(&self, name: &str, access: &Access) -> Result<NamedMaster, StoreError> {
        let kept = self.connection.lock().clone();
        let failed = |error| match errors::store_error(&error) {
            error if error.kind() == StoreErrorKind::Refused => {
                // A server that is no sentinel does not know the command.
                StoreError::new(
                    StoreErrorKind::Misconfigured,
                    format!("it is no sentinel of {name:?}: {}", error.detail()),
                )
            }
            error => error,
        };
        let Dialed { mut connection, .. } = match kept {
            Some(dialed) => dialed,
            None => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(None)
                    .set_response_timeout(None);
                let dialed = dial(&self.client, &config, access, None, &self.progress).await?;
                *self.connection.lock() = Some(dialed.clone());
                dialed
            }
        };
        // Ask for the epoch first: a change between the two replies must not make an old address
        // look new.
        let (mut same, mut state) = (connection.clone(), redis::cmd("SENTINEL"));
        let state = state.arg("MASTER").arg(name).query_async(&mut same);
        let mut addr = redis::cmd("SENTINEL");
        addr.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let (state, addr) = tokio::join!(state, addr.query_async(&mut connection));
        let state: HashMap<String, String> = state.map_err(failed)?;
        let (host, port) = addr.map_err(failed)?;
        let epoch = state
            .get("config-epoch")
            .and_then(|epoch| epoch.parse().ok());
        Ok(NamedMaster {
            master: ServerAddress { host, port },
            epoch: epoch.unwrap_or(0),
        })
    }
}
