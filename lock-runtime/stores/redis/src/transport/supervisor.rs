//! [`open`]: a connection, and the task that makes and replaces it.
//!
//! A firewall that forgets a quiet connection swallows what goes over it from then on, and says
//! nothing. So when an answer is late, the connection is asked for a sign of life, and at the same
//! time another one is made: if that is there first, the first is dead. A slow server, or a slow
//! way to it, answers first.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::{BACKOFF_MAX, backoff};
use lock_store::{Clock, Link, Listener, StoreError, StoreErrorKind};
use redis::Value;
use tokio::sync::{Notify, mpsc};

use super::connected::Connected;
use super::connection::{Connection, Report};
use super::login_renewal::keep_authenticated;
use super::proof::Proof;
use super::push::PushHandler;
use super::subscribe::Subscriptions;
use crate::commands::required_rights::Tried;
use crate::context::ClientContext;
use crate::resp::{Command, ConnectionEvents, RespConnection};
use crate::topology::address::name_of;
use crate::topology::endpoint::{Endpoint, Reached};
use crate::topology::progress::Progress;
use crate::topology::server::Addresses;
use crate::topology::unreached;
use crate::{errors, random};

/// A new connection listens on all channels at once if they are no more than this, else on none.
const RESUBSCRIBED: usize = 16;

/// The longest pause between two attempts to connect while somebody waits for a connection.
const WANTED_BACKOFF: Duration = Duration::from_millis(250);

/// How soon a server that is loading, or has denied something, is tried again. Each further pause
/// is twice as long, up to 16 of these.
const TRIED_AGAIN: Duration = Duration::from_millis(250);

/// A connection that was only slow is doubted again after this time.
const TRUSTED_FOR: Duration = Duration::from_secs(30);

/// Starts to connect, in the background. `links` counts the links of all connections of a store.
pub(crate) fn open(
    endpoint: Endpoint,
    context: ClientContext,
    links: Arc<AtomicU64>,
) -> Arc<Connection> {
    let (report, reports) = mpsc::unbounded_channel();
    let connection = Connection::new(context.clone(), endpoint.name(), links, report);
    let progress = connection.progress();
    let connection = Arc::new(connection);
    let runtime = context.clock.handle().clone();
    let supervisor = Supervisor {
        endpoint,
        context,
        connection: Arc::downgrade(&connection),
        progress,
        addresses: Addresses::default(),
    };
    let task = runtime.spawn(supervisor.run(reports));
    connection.set_supervisor(task.abort_handle());
    connection
}

struct Supervisor {
    endpoint: Endpoint,
    context: ClientContext,
    connection: Weak<Connection>,
    progress: Arc<Progress>,
    /// Those of the server's name.
    addresses: Addresses,
}

/// What stays from one connection to the next.
#[derive(Default)]
struct Past {
    /// What the next one should listen on.
    channels: Vec<String>,
    /// The next one, if it is there.
    replacement: Option<Box<MadeConnection>>,
    /// True after the warning that no messages come.
    is_told: bool,
}

/// Why a connection is left.
enum Left {
    Broken(StoreError),
    /// It was silent, and this one is not.
    Replaced(Box<MadeConnection>),
}

/// What has become of a connection that was silent.
enum Doubted {
    IsAlive,
    /// This one was there first.
    IsDead(Box<MadeConnection>),
    /// None could be made, which says nothing of it.
    MayBeEither,
}

struct MadeConnection {
    up: Connected,
    /// Where it leads.
    reached: Reached,
    /// Whether the server has said that the user can do what locks need.
    is_tried: bool,
}

impl Supervisor {
    async fn run(self, mut reports: mpsc::UnboundedReceiver<Report>) {
        let clock = &self.context.clock;
        let (mut failures, mut past) = (0_u32, Past::default());
        loop {
            let attempt = match past.replacement.take() {
                Some(made) => Ok(*made),
                None => self.attempt(&past.channels).await,
            };
            let error = match attempt {
                Ok(made) => {
                    let up_since = clock.now();
                    let error = match self.keep(made, &mut past, &mut reports).await {
                        None => return,
                        Some(Left::Broken(error)) => error,
                        Some(Left::Replaced(made)) => {
                            past.replacement = Some(made);
                            continue;
                        }
                    };
                    if clock.now() > up_since + BACKOFF_MAX {
                        failures = 0;
                    }
                    error
                }
                Err(error) => error,
            };
            failures = failures.saturating_add(1);
            let backoff = backoff(failures);
            tracing::debug!(%error, ?backoff, "connecting to the lock store again soon");
            let Some(shared) = self.connection.upgrade() else {
                return;
            };
            shared.stay_down(error);
            drop(shared);
            self.rest(jittered(backoff)).await;
        }
    }

    /// Brings a connection up, and watches it until it is left. `None`: nobody needs one any more.
    async fn keep(
        &self,
        made: MadeConnection,
        past: &mut Past,
        reports: &mut mpsc::UnboundedReceiver<Report>,
    ) -> Option<Left> {
        let MadeConnection {
            up,
            reached,
            is_tried,
        } = made;
        let shared = self.connection.upgrade()?;
        let (link, server) = (up.link, up.address());
        let connection = up.connection.clone();
        tracing::debug!(link = link.0, %server, "connected to the lock store");
        self.context.listener.on_connected(&server);
        let subscriptions = Arc::clone(&up.subscriptions);
        shared.bring_up(up);
        shared.subscribe_all();
        let denied = Arc::clone(&shared.denied);
        drop(shared);
        self.context.listener.recheck();
        let (tried, clock) = (self.tried(&connection), &self.context.clock);
        let proof = Proof {
            connection: &connection,
            subscriptions: &subscriptions,
            context: &self.context,
            server: &server,
        };
        let left = tokio::select! {
            left = self.until_left(link, reached, &subscriptions, reports) => left,
            error = refusal(tried, is_tried, &denied, clock) => self.leave(link, error.of(&server)),
            never = proof.find(&mut past.is_told) => match never {},
        }?;
        match &left {
            Left::Broken(error) => {
                past.channels = self.channels(&subscriptions);
                tracing::warn!(
                    link = link.0, %error, %server,
                    "the connection to the lock store is replaced"
                );
                self.context.listener.on_disconnected(&server, error);
                self.context.listener.recheck();
            }
            Left::Replaced(_) => {
                tracing::warn!(
                    link = link.0, %server,
                    "the connection to the lock store stayed silent and is replaced"
                );
                let text = "the connection stayed silent";
                let silent = StoreError::new(StoreErrorKind::Timeout, text);
                self.context.listener.on_disconnected(&server, &silent);
            }
        }
        Some(left)
    }

    /// Leaves the server alone for `backoff`, or for less if somebody waits for a connection.
    async fn rest(&self, backoff: Duration) {
        let clock = &self.context.clock;
        let until = clock.now() + backoff;
        clock
            .sleep_until(until.min(clock.now() + WANTED_BACKOFF))
            .await;
        // Without a hand on the connection, which may be given up meanwhile.
        let wanted = || {
            let connection = self.connection.upgrade()?;
            (!connection.is_wanted()).then(|| Arc::clone(&connection.wanted))
        };
        while let Some(wanted) = wanted() {
            if clock.by(until, wanted.notified()).await.is_none() {
                return;
            }
        }
    }

    /// True for a node of a cluster.
    fn is_node(&self) -> bool {
        matches!(self.endpoint, Endpoint::Node(..))
    }

    /// What the next connection should listen on, if it is little. Of more, and in a cluster, each
    /// request that waits knows best what to listen on, and where.
    fn channels(&self, subscriptions: &Subscriptions) -> Vec<String> {
        let channels = match self.is_node() {
            false => subscriptions.established(),
            true => Vec::new(),
        };
        // They cost a round trip each, in the time for connecting.
        match channels.len() {
            0..=RESUBSCRIBED => channels,
            _ => Vec::new(),
        }
    }

    /// One attempt to connect, in its time: at one of the server's addresses.
    async fn attempt(&self, channels: &[String]) -> Result<MadeConnection, StoreError> {
        let prepare = || {
            let subscriptions = Subscriptions::new(&self.context, self.is_node());
            let shared = self.connection.upgrade();
            // Each has its own, so that what is said of one that failed concerns no other.
            let link = shared.map_or(Link(0), |shared| shared.next_link());
            let handler = PushHandler {
                link,
                listener: self.context.listener.clone(),
                messages_are_hints: self.context.messages_are_hints,
                connection: self.connection.clone(),
                subscriptions: Arc::clone(&subscriptions),
                channels: self.context.channels.clone(),
                foreign: {
                    let foreign = self.context.foreign.clone();
                    foreign.map(|channels| (channels, self.context.clock.clone()))
                },
            };
            (
                Box::new(handler) as Box<dyn ConnectionEvents>,
                (link, subscriptions),
            )
        };
        let (context, addresses, progress) = (&self.context, &self.addresses, &self.progress);
        let reached = self
            .endpoint
            .connect(&prepare, addresses, context, progress);
        let (reached, (link, subscriptions)) = reached
            .await
            .map_err(|error| error.of(&self.endpoint.name()))?;
        let clock = &context.clock;
        let up = Connected {
            link,
            connection: reached.dialed.connection.clone(),
            _driver: Arc::clone(&reached.dialed.driver),
            since: clock.now(),
            client: Arc::clone(&reached.client),
            counts_from: reached.counts_from,
            subscriptions,
        };
        let by = clock.now() + context.timeouts.connect;
        // One that takes no writes for a while, as during a failover, does not answer yet.
        let tried = clock.by(by, self.tried(&up.connection).ensure()).await;
        let of_server = |error: StoreError| error.of(&up.address());
        let is_tried = tried.unwrap_or(Ok(false)).map_err(of_server)?;
        let subscribed = clock.by(by, listen_again(&up, channels)).await;
        let silent = || unreached::silent(&context.access, progress);
        subscribed
            .unwrap_or_else(|| match is_tried {
                true => Err(silent()),
                false => Ok(()),
            })
            .map_err(of_server)?;
        Ok(MadeConnection {
            up,
            reached,
            is_tried,
        })
    }

    /// Tries whether the user can do here what locks need. It may be another user than before.
    fn tried(&self, connection: &RespConnection) -> Tried<'_> {
        Tried {
            connection: connection.clone(),
            namespace: &self.context.namespace,
            needs: self.context.needs,
            layout: self.context.layout,
            is_node: self.is_node(),
        }
    }

    /// Waits until this connection is reported broken, or found to lead to the wrong server, and
    /// takes it out of use; or until another one shows that it is dead.
    async fn until_left(
        &self,
        link: Link,
        reached: Reached,
        subscriptions: &Subscriptions,
        reports: &mut mpsc::UnboundedReceiver<Report>,
    ) -> Option<Left> {
        let clock = &self.context.clock;
        let server = name_of(reached.client.get_connection_info());
        let dialed = &reached.dialed;
        let (same, renew_at) = (dialed.connection.clone(), dialed.renew_at);
        let (tried, context) = (self.tried(&same), &self.context);
        let renewal = keep_authenticated(same, context, renew_at, &server, Some(tried));
        let mut renewal = Box::pin(renewal);
        let outdated = self.endpoint.outdated(&reached, &self.context);
        let mut outdated = std::pin::pin!(outdated);
        let (mut another, mut trusted_until) = (None, clock.now());
        let error = loop {
            let made = async {
                match &mut another {
                    Some(attempt) => Pin::as_mut(attempt).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                report = reports.recv() => match report? {
                    Report::Broken(over, error) if over == link => break error.of(&server),
                    Report::Late(over) if over == link => {
                        if another.is_none() && clock.now() >= trusted_until {
                            let channels = self.channels(subscriptions);
                            let doubted = &reached.dialed.connection;
                            another = Some(Box::pin(async move {
                                self.make_replacement(doubted, &channels).await
                            }));
                        }
                    }
                    Report::Broken(..) | Report::Late(_) => {}
                },
                error = &mut outdated => break error,
                error = &mut renewal => break error.of(&server),
                doubted = made => {
                    another = None;
                    let trusted_for = match doubted {
                        Doubted::IsDead(made) => return Some(Left::Replaced(made)),
                        Doubted::IsAlive => TRUSTED_FOR,
                        Doubted::MayBeEither => WANTED_BACKOFF,
                    };
                    trusted_until = clock.now() + trusted_for;
                }
            }
        };
        self.leave(link, error)
    }

    /// Takes a connection out of use.
    fn leave(&self, link: Link, error: StoreError) -> Option<Left> {
        self.connection.upgrade()?.take_down(link, error.clone());
        Some(Left::Broken(error))
    }

    /// Makes another connection, and finds out whether that is there before a sign of life of this
    /// one.
    async fn make_replacement(&self, doubted: &RespConnection, channels: &[String]) -> Doubted {
        let (clock, reads) = (&self.context.clock, doubted.reads());
        let mut alive = pin!(sign_of_life(doubted));
        loop {
            let began = clock.now();
            let made = tokio::select! {
                biased;
                () = &mut alive => return Doubted::IsAlive,
                made = self.attempt(channels) => made,
            };
            let Ok(made) = made else {
                return Doubted::MayBeEither;
            };
            // This process may be slow itself.
            let took = clock.now() - began;
            let command = self.context.timeouts.command;
            let more = took.clamp(command / 10, command / 5);
            let is_alive = clock.by(clock.now() + more, &mut alive).await.is_some();
            // The question may stand behind a thousand commands.
            if is_alive || doubted.reads() != reads {
                return Doubted::IsAlive;
            }
            // Nobody has heard its end, as long as it was not in use.
            if !made.up.connection.has_ended() {
                return Doubted::IsDead(Box::new(made));
            }
        }
    }
}

/// Tries until the server has said whether the user can do what locks need, and again after each
/// denial; the error if not.
async fn refusal(
    tried: Tried<'_>,
    mut is_tried: bool,
    denied: &Notify,
    clock: &Clock,
) -> StoreError {
    let mut pause = TRIED_AGAIN;
    loop {
        if is_tried {
            denied.notified().await;
            pause = TRIED_AGAIN;
        }
        clock.sleep_until(clock.now() + pause).await;
        // A node that is cut off may not say it for hours.
        pause = (2 * pause).min(16 * TRIED_AGAIN);
        match tried.ensure().await {
            Ok(is_said) => is_tried = is_said,
            Err(error) if !error.kind().is_transient() => return error,
            Err(_) => is_tried = false,
        }
    }
}

/// Listens on what an earlier connection listened on.
async fn listen_again(up: &Connected, channels: &[String]) -> Result<(), StoreError> {
    for channel in channels {
        let subscribed = up
            .subscriptions
            .subscribe(&up.connection, channel, false, None);
        let subscribed = subscribed.await;
        match subscribed.map_err(|error| errors::store_error(&error)) {
            // Whoever waits there is told so; others are not concerned.
            Err(error) if error.kind() == StoreErrorKind::Denied => {}
            subscribed => subscribed?,
        }
    }
    Ok(())
}

/// Waits for a sign of life, which never comes from a dead connection.
async fn sign_of_life(over: &RespConnection) {
    let answer = over.query::<Value>(&Command::new("PING")).await;
    // A refusal is one, too.
    if answer.is_err_and(|error| errors::kind(&error) == StoreErrorKind::Disconnected) {
        pending::<()>().await;
    }
}

/// Between half and all of the back-off, another time at each attempt.
fn jittered(backoff: Duration) -> Duration {
    backoff / 2 + random::below(backoff / 2)
}
