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

use lock_store::{Instant, Mutex, StoreError, StoreErrorKind};
use redis::{Client, ConnectionInfo};
use tokio::sync::mpsc;

use super::address::{ServerAddress, name_of};
use super::dial::{Dialed, dial};
use super::progress::Progress;
use super::server::{self, Addresses, OneAddress};
use super::unreached;
use crate::context::ClientContext;
use crate::errors;
use crate::resp::Command;

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
    addresses: Addresses,
    progress: Arc<Progress>,
}

/// A sentinel's answer.
#[derive(Clone, Debug)]
pub(crate) struct NamedMaster {
    /// The address, as the sentinel announces it.
    pub(crate) announced: ServerAddress,
    /// The run id of the server there, if the sentinel knows it.
    run: Option<String>,
    epoch: u64,
}

impl NamedMaster {
    /// True if both are certainly the same server, whatever it is called.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.announced == other.announced || (self.run.is_some() && self.run == other.run)
    }
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
                addresses: Addresses::default(),
                progress: Arc::default(),
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
    pub(crate) async fn master(&self, context: &ClientContext) -> Result<NamedMaster, StoreError> {
        let (answered, mut asked) = mpsc::unbounded_channel();
        for sentinel in &self.sentinels {
            let (sentinel, name, limit) =
                (Arc::clone(sentinel), Arc::clone(&self.name), self.limit);
            let (context, answered) = (context.clone(), answered.clone());
            // In tasks of their own: also one that nobody waits for any more gives up the
            // connection to a silent sentinel, or the next question would go there.
            context.clock.clone().spawn(async move {
                let _ = answered.send(sentinel.ask(&name, limit, &context).await);
            });
        }
        drop(answered);
        let majority = self.sentinels.len() / 2 + 1;
        let (mut best, mut answers, mut errors) = (None::<NamedMaster>, 0, Vec::new());
        // Once one has answered, silent ones are not waited for much longer.
        let clock = &context.clock;
        let mut until = clock.now() + 2 * self.limit;
        while answers < majority
            && let Some(Some(answer)) = clock.by(until, asked.recv()).await
        {
            match answer {
                Ok(word) => {
                    answers += 1;
                    until = until.min(clock.now() + self.limit / 2);
                    if best.as_ref().is_none_or(|best| best.epoch < word.epoch) {
                        best = Some(word);
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        let Some(best) = best else {
            return Err(self.nobody_knows(errors));
        };
        // A majority is right even if it has forgotten every epoch, as after a new setup.
        if answers < majority && best.epoch < self.epoch.load(Ordering::Relaxed) {
            return Err(StoreError::new(
                StoreErrorKind::Disconnected,
                "too few sentinels can be reached, and those name an outdated master",
            ));
        }
        self.epoch.store(best.epoch, Ordering::Relaxed);
        Ok(best)
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
        context: &ClientContext,
    ) -> Result<NamedMaster, StoreError> {
        let kept = self.connection.lock().clone();
        let by = context.clock.now() + limit;
        let answer = match &kept {
            Some(dialed) => {
                let answer = context.clock.by(by, named_by(dialed, name)).await;
                answer.unwrap_or_else(|| Err(unreached::silent(&context.access, &self.progress)))
            }
            None => self.ask_anew(name, by, context).await,
        };
        answer.map_err(|error| {
            // After any error, the next question uses a new connection. Another may have made one.
            let mut connection = self.connection.lock();
            let is_kept = |now: &Dialed| {
                let kept = kept.as_ref();
                kept.is_some_and(|kept| Arc::ptr_eq(&kept.driver, &now.driver))
            };
            if connection.as_ref().is_some_and(is_kept) {
                *connection = None;
            }
            drop(connection);
            error.of(&name_of(self.client.get_connection_info()))
        })
    }

    /// Asks over a new connection, at the first of its addresses where a sentinel answers.
    async fn ask_anew(
        &self,
        name: &str,
        by: Instant,
        context: &ClientContext,
    ) -> Result<NamedMaster, StoreError> {
        let ask = |one: OneAddress| async move {
            let dialed = dial(&self.client, one.at, None, context, None, &one.progress).await?;
            let named = named_by(&dialed, name).await?;
            Ok((dialed, named))
        };
        let (client, addresses, progress) = (&self.client, &self.addresses, &self.progress);
        let made = server::at_one_address(client, addresses, context, progress, by, ask);
        let (dialed, named) = made.await?;
        *self.connection.lock() = Some(dialed);
        Ok(named)
    }
}

/// Asks the sentinel of this connection.
async fn named_by(dialed: &Dialed, name: &str) -> Result<NamedMaster, StoreError> {
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
    let connection = &dialed.connection;
    // Ask for the epoch first: a change between the two replies must not make an old address
    // look new.
    let mut state = Command::new("SENTINEL");
    state.arg("MASTER").arg(name);
    let mut addr = Command::new("SENTINEL");
    addr.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let (state, addr) = tokio::join!(connection.query(&state), connection.query(&addr));
    let state: HashMap<String, String> = state.map_err(failed)?;
    let (host, port) = addr.map_err(failed)?;
    let epoch = state
        .get("config-epoch")
        .and_then(|epoch| epoch.parse().ok());
    let run = state.get("runid").filter(|run| !run.is_empty());
    Ok(NamedMaster {
        announced: ServerAddress { host, port },
        run: run.cloned(),
        epoch: epoch.unwrap_or(0),
    })
}
