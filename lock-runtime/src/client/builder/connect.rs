//! From settings to a client: they are checked, the store of the URL is opened, and the engine started.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::LockClientBuilder;
use crate::client::LockClient;
use crate::client::checks::{Servers, diagnosis, refuse};
use crate::clock::Clock;
use crate::config::{Timeouts, check_lease};
use crate::engine::line::Lines;
use crate::engine::{Engine, reaper, thread};
use crate::error::{LockError, StoreError, StoreErrorKind};
use crate::store::memory::MemoryStore;
use crate::store::quorum::QuorumStore;
use crate::store::redis::RedisStore;
use crate::store::redis::names::Namespace;
use crate::store::{ClientId, Listener, Store, Wish};

impl LockClientBuilder {
    /// Connects.
    ///
    /// # Errors
    /// [`LockError::Config`] for a bad URL, namespace or setting, and for a store that is not what the URL says (no
    /// sentinel, no cluster, no master of that name); [`LockError::Unavailable`] if the store can't be reached within the
    /// connect timeout, or refuses the user or the password.
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the connection.
    pub async fn connect(self) -> Result<LockClient, LockError> {
        let (connect_timeout, strict) = (self.connect_timeout, self.strict_checks);
        let (client, redis) = self.start()?;
        if let Some(redis) = redis {
            let by = client.engine().clock().now() + connect_timeout;
            let failed = |source: StoreError| match source.kind() {
                StoreErrorKind::Misconfigured => LockError::config(source.to_string()),
                _ => LockError::Unavailable { key: None, source },
            };
            redis.first_attempt(by).await.map_err(failed)?;
            if strict {
                let by = client.engine().clock().now() + connect_timeout;
                refuse(&redis.diagnose(by).await.map_err(failed)?)?;
            }
        }
        Ok(client)
    }

    /// Returns at once and connects in the background, for services that must start while the store is down.
    ///
    /// # Errors
    /// [`LockError::Config`] for a bad URL, namespace or setting.
    pub fn connect_lazy(self) -> Result<LockClient, LockError> {
        if self.strict_checks {
            return Err(LockError::config(
                "`strict_checks` refuses a store before the service starts, and `connect_lazy` does not wait for one: use `connect`",
            ));
        }
        self.start().map(|(client, _)| client)
    }

    fn check(&self) -> Result<Namespace, LockError> {
        check_lease("lease", self.defaults.lease)?;
        for (name, timeout) in [
            ("command_timeout", self.defaults.command_timeout),
            ("connect_timeout", self.connect_timeout),
        ] {
            if timeout.is_zero() {
                return Err(LockError::config(format!(
                    "`{name}` is zero; give the store some time, as 500 ms"
                )));
            }
        }
        if let Some(replicas) = self.replicas {
            replicas.check(self.defaults.command_timeout)?;
        }
        Namespace::new(&self.namespace)
    }

    fn start(self) -> Result<(LockClient, Option<Servers>), LockError> {
        let namespace = self.check()?;
        let id = self.id()?;
        let runtime = self.runtime()?;
        let clock = runtime.clock.clone();
        let lines = Arc::<Lines>::default();
        let listener: Arc<dyn Listener> = Arc::<Lines>::clone(&lines);
        let (store, redis) = self.open(namespace.clone(), id, &listener, clock.clone())?;
        let (engine, task) = Engine::new(id, clock, store, lines, self.defaults);
        runtime.run(task);
        if let Some(redis) = &redis {
            let (redis, timeouts) = (redis.clone(), self.timeouts());
            let clock = engine.clock().clone();
            let diagnosis = diagnosis(redis, clock.clone(), timeouts);
            clock.spawn(diagnosis);
        }
        Ok((LockClient::new(engine, namespace.as_str().into()), redis))
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect: self.connect_timeout,
            command: self.defaults.command_timeout,
        }
    }

    fn id(&self) -> Result<ClientId, LockError> {
        #[cfg(feature = "test-util")]
        if let Some(simulated) = &self.simulated {
            return Ok(simulated.id);
        }
        client_id()
    }

    fn runtime(&self) -> Result<Runtime, LockError> {
        #[cfg(feature = "test-util")]
        if let Some(simulated) = &self.simulated {
            let clock = Clock::simulated(simulated.runtime.clone());
            return Ok(Runtime {
                clock: clock.pausable(Some(simulated.pause.clone())),
                work: None,
            });
        }
        let (handle, work) = thread::start().map_err(|error| {
            LockError::config(format!("the client's thread can't be started: {error}"))
        })?;
        Ok(Runtime {
            clock: Clock::new(handle),
            work: Some(work),
        })
    }

    fn open(
        &self,
        namespace: Namespace,
        id: ClientId,
        listener: &Arc<dyn Listener>,
        clock: Clock,
    ) -> Result<Opened, LockError> {
        #[cfg(feature = "test-util")]
        if let Some(store) = &self.store {
            return Ok((store(namespace.as_str(), id, listener, clock), None));
        }
        let Some(url) = &self.url else {
            return Err(LockError::config(
                "the client has no URL; add `.url(\"redis://…\")`, or use `LockClient::in_memory()`",
            ));
        };
        if url.starts_with("memory:") && (self.replicas.is_some() || url.contains("replicas=")) {
            return Err(LockError::config(
                "`replicas` asks for replicas, and `memory:` is a store of its own in this process, which has none",
            ));
        }
        if url.trim_end_matches('/') == "memory:" {
            return Ok((
                MemoryStore::new().connect(namespace.as_str(), id, listener, clock),
                None,
            ));
        }
        let quorum = QuorumStore::open(
            url,
            self.timeouts(),
            &namespace,
            id,
            Arc::downgrade(listener),
            clock.clone(),
            self.replicas,
        )?;
        if let Some(store) = quorum {
            if let Some(reason) = store.refuses(Wish::Lease(self.defaults.lease)) {
                return Err(LockError::config(reason));
            }
            let store = Arc::new(store);
            return Ok((
                Arc::<QuorumStore>::clone(&store),
                Some(Servers::Quorum(store)),
            ));
        }
        let store = RedisStore::open(
            url,
            self.timeouts(),
            namespace,
            id,
            Arc::downgrade(listener),
            clock,
            self.replicas,
        )?;
        let store = Arc::new(store);
        Ok((
            Arc::<RedisStore>::clone(&store),
            Some(Servers::Redis(store)),
        ))
    }
}

/// A store, and the same one as what `connect` waits for.
type Opened = (Arc<dyn Store>, Option<Servers>);

/// Where an engine's tasks run.
struct Runtime {
    clock: Clock,
    work: Option<oneshot::Sender<reaper::Task>>,
}

impl Runtime {
    fn run(self, task: reaper::Task) {
        match self.work {
            // A thread that is gone can't be told; then its store is gone, too.
            Some(work) => _ = work.send(task),
            None => self.clock.spawn(task.run()),
        }
    }
}

fn client_id() -> Result<ClientId, LockError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        LockError::config(format!(
            "the operating system gives no random numbers: {error}"
        ))
    })?;
    Ok(ClientId(u128::from_le_bytes(bytes)))
}

impl LockClient {
    /// A client of a store of its own in this process: for trying things out, and for tests.
    ///
    /// # Panics
    /// If the operating system gives no thread or no random numbers.
    #[must_use]
    #[expect(
        clippy::panic,
        reason = "as `std::thread::spawn`, which panics when there is no thread to be had"
    )]
    pub fn in_memory() -> Self {
        match Self::builder().url("memory:").connect_lazy() {
            Ok(client) => client,
            Err(error) => panic!("{error}"),
        }
    }
}
