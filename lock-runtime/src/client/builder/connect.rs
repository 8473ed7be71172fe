//! From settings to a client: they are checked, the store of the URL is opened, and the engine
//! started.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use lock_store::memory::MemoryStore;
use lock_store::timing::{DEFAULT_CONNECT_TIMEOUT, Timeouts};
use lock_store::{
    ClientId, Clock, Layout, Listener, Namespace, Store, StoreContext, StoreError, StoreErrorKind,
    Wish,
};
use tokio::sync::oneshot;

use super::LockClientBuilder;
use super::client_name;
use super::engines::connect_timeout_of;
use super::url_settings::UrlSettings;
use crate::client::LockClient;
use crate::client::diagnosis::{diagnosis, log_in_process, of_this_process, refuse};
use crate::client::first_connection;
use crate::config::{DEFAULT_NAMESPACE, DEFAULT_UNAVAILABLE_AFTER, check_lease};
use crate::engine::Engine;
use crate::engine::background::{cleanup, thread};
use crate::engine::holder_names::HolderNames;
use crate::engine::local_queue::LocalQueues;
use crate::engine::messages::Messages;
use crate::engine::request_numbers::RequestNumbers;
use crate::engine::revocation_inbox::Revocations;
use crate::error::LockError;
use crate::observe::{Events, ObservedStore, What};

impl LockClientBuilder {
    /// Connects.
    ///
    /// # Errors
    /// [`LockError::Config`] for a bad URL, namespace or setting, and for a store that is not what
    /// the URL says (no sentinel, no cluster, no master of that name); [`LockError::Unavailable`]
    /// if the store can't be reached within the connect timeout, refuses the user or the password,
    /// or leaves the questions of [`strict_checks`](Self::strict_checks) unanswered for as long
    /// again.
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the connection.
    pub async fn connect(mut self) -> Result<LockClient, LockError> {
        self.read_url_settings()?;
        let (timeouts, strict) = (self.timeouts(), self.strict_checks);
        let (client, store, _) = self.start()?;
        let by = || client.engine().clock().now() + timeouts.connect;
        let failed = |source: StoreError| match source.kind() {
            StoreErrorKind::Misconfigured | StoreErrorKind::OtherVersion => {
                LockError::config(source.to_string())
            }
            _ => LockError::Unavailable { key: None, source },
        };
        store.await_connection(by()).await.map_err(failed)?;
        if strict {
            let mut servers = store.servers(by()).await.map_err(failed)?;
            servers.extend(client.layouts.are_in_process().then(of_this_process));
            refuse(&servers)?;
        }
        diagnose(&client, &store, timeouts);
        Ok(client)
    }

    /// Returns at once and connects in the background, for services that must start while the store
    /// is down. If it can't be reached, that is logged once, as a warning, and once more when it
    /// can. [`stats`](LockClient::stats) says `connected`.
    ///
    /// # Errors
    /// [`LockError::Config`] for a bad URL, namespace or setting.
    pub fn connect_lazy(mut self) -> Result<LockClient, LockError> {
        self.read_url_settings()?;
        if self.strict_checks {
            return Err(LockError::config(
                "`strict_checks` refuses a store before the service starts, and `connect_lazy` \
                 does not wait for one: use `connect`",
            ));
        }
        self.start_lazily()
    }

    fn start_lazily(self) -> Result<LockClient, LockError> {
        let timeouts = self.timeouts();
        let (client, store, events) = self.start()?;
        diagnose(&client, &store, timeouts);
        let clock = client.engine().clock().clone();
        let report = first_connection::report(store, clock.clone(), timeouts, events);
        clock.spawn(report);
        Ok(client)
    }

    /// Another engine with these settings, whose keys are in that layout.
    pub(in crate::client) fn open_layout(&self, layout: Layout) -> Result<Arc<Engine>, LockError> {
        if self.store.is_some() {
            return Err(LockError::config(format!(
                "a view in the layout `{layout}` needs a store of its own, and this client's store \
                 is the caller's; build another client for that layout"
            )));
        }
        let mut settings = self.clone();
        settings.url = match &self.url {
            Some(url) => Some(self.without_layout_options(url)?),
            None => None,
        };
        settings.layout = Some(layout);
        let client = settings.start_lazily()?;
        Ok(Arc::clone(client.engine()))
    }

    /// Takes out of the URL what is the client's own.
    fn read_url_settings(&mut self) -> Result<(), LockError> {
        let Some(url) = self.url.take() else {
            return Ok(());
        };
        let UrlSettings {
            url,
            namespace,
            name,
            layout,
        } = UrlSettings::of(&url)?;
        let timeout = connect_timeout_of(&url)?;
        give_once("connect_timeout", &mut self.connect_timeout, timeout)?;
        self.url = Some(url);
        give_once("namespace", &mut self.namespace, namespace)?;
        give_once("name", &mut self.name, name)?;
        give_once("layout", &mut self.layout, layout)
    }

    fn check(&self) -> Result<Namespace, LockError> {
        check_lease("lease", self.defaults.lease)?;
        for (name, timeout) in [
            ("command_timeout", self.defaults.command_timeout),
            ("connect_timeout", self.timeouts().connect),
        ] {
            if timeout.is_zero() {
                return Err(LockError::config(format!(
                    "`{name}` is zero; give the store some time, as 500 ms"
                )));
            }
        }
        #[cfg(feature = "redis")]
        if let Some(replicas) = self.replicas {
            replicas.check(self.defaults.command_timeout)?;
        }
        if let Some(name) = &self.name {
            client_name::check(name)?;
        }
        // Others' keys have no prefix of ours. On ZooKeeper they have a path.
        let default = match self.chosen_layout() {
            Layout::Native | Layout::Curator => DEFAULT_NAMESPACE,
            _ => "",
        };
        let namespace = self.namespace.as_deref().unwrap_or(default);
        Ok(Namespace::new(namespace)?)
    }

    fn start(self) -> Result<(LockClient, Arc<dyn Store>, Events), LockError> {
        let namespace = self.check()?;
        let id = self.id()?;
        let runtime = self.runtime()?;
        let name: Arc<str> = self.own_name().into();
        let events = Events::new(Arc::clone(&name), self.observers.clone()).map_err(no_thread)?;
        let told = events.clone();
        let start = EngineStart {
            namespace,
            id,
            name,
            runtime,
            events,
            refusal: None,
        };
        let (client, opened) = self.start_engine(start, |context| {
            let store = self.open(context)?;
            match store
                .capabilities()
                .refusal(Wish::Lease(self.defaults.lease))
            {
                Some(reason) => Err(LockError::config(reason)),
                None => Ok(store),
            }
        })?;
        if client.layouts.are_in_process() {
            log_in_process();
        }
        Ok((client, opened, told))
    }

    fn start_engine<E>(
        &self,
        start: EngineStart,
        open: impl FnOnce(StoreContext) -> Result<Arc<dyn Store>, E>,
    ) -> Result<(LockClient, Arc<dyn Store>), E> {
        let EngineStart {
            namespace,
            id,
            name,
            mut runtime,
            events,
            refusal,
        } = start;
        let clock = runtime.clock.clone();
        let local_queues = LocalQueues::default();
        let numbers = RequestNumbers::new(id, self.may_use_chance());
        let (names, questions) = HolderNames::new(clock.clone(), Arc::clone(&name));
        let (revocations, demands) = Revocations::new();
        let messages = Messages::new(local_queues, numbers, names, revocations, events.clone());
        let messages = Arc::new(messages);
        let listener: Arc<dyn Listener> = Arc::<Messages>::clone(&messages);
        let mut context = StoreContext::new(namespace.clone(), id, &listener, clock.clone());
        context.name = name;
        context.timeouts = self.timeouts();
        context.layout = self.chosen_layout();
        events.record_later(None, |recorder| recorder.record(What::Started));
        let opened = open(context)?;
        let can = opened.capabilities();
        let store = Arc::clone(&opened);
        let store: Arc<dyn Store> = match events.are_wanted() {
            true => ObservedStore::new(store, clock.clone(), events, thread::is_own),
            false => store,
        };
        let mut defaults = self.defaults;
        if defaults.unavailable_after.is_none() && !can.fails_over {
            defaults.unavailable_after = Some(DEFAULT_UNAVAILABLE_AFTER);
        }
        let end = runtime.end.take();
        let (engine, task) = Engine::new(
            clock,
            store,
            messages,
            (questions, demands),
            namespace,
            defaults,
            end,
            refusal,
        );
        runtime.run(task);
        Ok((LockClient::new(engine, self.clone()), opened))
    }

    pub(in crate::client) fn chosen_layout(&self) -> Layout {
        self.layout.unwrap_or_default()
    }

    /// Whether its locks are in this process, and nobody has said that they are meant to be.
    pub(in crate::client) fn is_in_process(&self) -> bool {
        let url = self.url.as_deref().unwrap_or_default();
        self.store.is_none() && url.starts_with("memory:") && !self.is_for_one_process
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect: self.connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT),
            command: self.defaults.command_timeout,
        }
    }

    /// Who it says that it is.
    fn own_name(&self) -> String {
        let given = self.name.clone();
        given.unwrap_or_else(client_name::of_this_process)
    }

    fn id(&self) -> Result<ClientId, LockError> {
        #[cfg(feature = "__internals")]
        if let Some(simulated) = &self.simulated {
            return Ok(simulated.id);
        }
        client_id()
    }

    /// Whether anything may be left to chance.
    fn may_use_chance(&self) -> bool {
        #[cfg(feature = "__internals")]
        if self.simulated.is_some() {
            return false;
        }
        true
    }

    fn runtime(&self) -> Result<Runtime, LockError> {
        #[cfg(feature = "test-util")]
        if let Some(runtime) = &self.runtime {
            let clock = Clock::simulated(runtime.clone());
            #[cfg(feature = "__internals")]
            let clock = clock.pausable(self.simulated.as_ref().map(|it| it.pause.clone()));
            return Ok(Runtime {
                clock,
                work: None,
                end: None,
            });
        }
        let patience = self.defaults.command_timeout;
        let (handle, work, end) = thread::start(patience).map_err(no_thread)?;
        Ok(Runtime {
            clock: Clock::new(handle),
            work: Some(work),
            end: Some(end),
        })
    }

    /// The URL without what it says of the client's layout alone.
    #[cfg(feature = "redis")]
    fn without_layout_options(&self, url: &str) -> Result<String, LockError> {
        Ok(lock_store_redis::without_layout_options(
            self.chosen_layout(),
            url,
        )?)
    }

    #[cfg(not(feature = "redis"))]
    #[expect(clippy::unnecessary_wraps, reason = "with Redis, a URL may be wrong")]
    fn without_layout_options(&self, url: &str) -> Result<String, LockError> {
        Ok(url.to_owned())
    }
}

/// In the background. Not of a store that was refused: that one is left alone.
fn diagnose(client: &LockClient, store: &Arc<dyn Store>, timeouts: Timeouts) {
    let clock = client.engine().clock();
    clock.spawn(diagnosis(Arc::clone(store), clock.clone(), timeouts));
}

/// Takes what the URL says, unless the builder says it too.
fn give_once<T>(option: &str, setting: &mut Option<T>, in_url: Option<T>) -> Result<(), LockError> {
    match in_url {
        Some(_) if setting.is_some() => Err(LockError::config(format!(
            "`{option}` is given by the builder and in the store's URL; leave one of them out"
        ))),
        in_url => {
            *setting = setting.take().or(in_url);
            Ok(())
        }
    }
}

fn no_thread(error: io::Error) -> LockError {
    LockError::config(format!(
        "the client's thread can't be started: {error}; allow the process more open files \
         (`ulimit -n`), threads (`ulimit -u`) or memory"
    ))
}

/// What an engine starts with, besides its settings.
struct EngineStart {
    namespace: Namespace,
    id: ClientId,
    name: Arc<str>,
    runtime: Runtime,
    events: Events,
    /// Why each call is refused, if it is.
    refusal: Option<Box<str>>,
}

/// Where an engine's tasks run.
struct Runtime {
    clock: Clock,
    work: Option<oneshot::Sender<cleanup::CleanupTask>>,
    end: Option<thread::ThreadEnd>,
}

impl Runtime {
    fn run(self, task: cleanup::CleanupTask) {
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
    /// If the operating system gives no thread or no random numbers, each request of this client,
    /// and each question to its store, is [`LockError::Config`], which says why.
    #[must_use]
    pub fn in_memory() -> Self {
        LockClientBuilder::for_one_process().in_this_process()
    }

    /// A client that has no thread and refuses each call for this reason.
    pub(crate) fn unusable(reason: &str) -> Self {
        let builder = LockClientBuilder::for_one_process();
        let start = EngineStart {
            namespace: Namespace::default(),
            id: ClientId(0),
            name: builder.own_name().into(),
            runtime: Runtime {
                clock: Clock::new(thread::ended_runtime()),
                work: None,
                end: None,
            },
            events: Events::none(),
            refusal: Some(reason.into()),
        };
        let open = |context| Ok::<_, Infallible>(MemoryStore::new().connect(context));
        let Ok((client, _)) = builder.start_engine(start, open);
        client
    }
}

impl LockClientBuilder {
    /// A client whose store is in this process, for which nothing but the operating system can
    /// fail.
    pub(crate) fn in_this_process(self) -> LockClient {
        self.connect_lazy().unwrap_or_else(|error| match error {
            LockError::Config { message } => LockClient::unusable(&message),
            other => LockClient::unusable(&other.to_string()),
        })
    }
}
