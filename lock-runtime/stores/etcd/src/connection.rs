//! One connection that is up: calls, and what keeps them in order.
//!
//! A server carries out the calls of one connection side by side. So what concerns one owner is
//! sent after its earlier calls were answered (`Flight`), and a call goes on when nobody waits for
//! it any more. What was sent over a connection before is not carried out any more: each
//! transaction asks for the [epoch](Epoch), and each new connection begins with another.

use std::collections::{HashSet, VecDeque};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http::HeaderValue;
use lock_store::ordered::{LiveConnection, gone};
use lock_store::{Clock, CredentialsProvider, Instant, Link, Mutex, Owner, StoreError, User};
use prost::Message;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::errors::{Fault, error_of, of_status, strange};
use crate::grpc::{CallError, Channel};
use crate::wire::{self, Compare, Header, ReplyOp, RequestOp, StoredKey, Txn, TxnReply, path};

/// What stands behind each transaction: the session's key was last written by this connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) key: String,
    /// The revision of the connection's own write.
    pub(crate) revision: i64,
    pub(crate) lease: i64,
}

/// Who the client is to the servers, and the token that they gave it.
#[derive(Debug, Default)]
pub(crate) struct LoginToken {
    pub(crate) user: Option<User>,
    pub(crate) provider: Option<CredentialsProvider>,
    token: Mutex<Option<HeaderValue>>,
    /// One asks for a token at a time.
    turn: tokio::sync::Mutex<()>,
}

impl LoginToken {
    pub(crate) fn new(user: Option<User>, provider: Option<CredentialsProvider>) -> Self {
        Self {
            user,
            provider,
            ..Self::default()
        }
    }

    fn is_known(&self) -> bool {
        self.user.is_some() || self.provider.is_some()
    }

    pub(crate) fn token(&self) -> Option<HeaderValue> {
        self.token.lock().clone()
    }

    /// Asks for a token, unless there is another than the one that was used.
    pub(crate) async fn authenticate(
        &self,
        channel: &Channel,
        clock: &Clock,
        server: &str,
        used: Option<&HeaderValue>,
    ) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        if self.token().as_ref() != used {
            return Ok(());
        }
        let request = match (&self.user, &self.provider) {
            (None, None) => return Ok(()),
            (Some(user), _) => wire::AuthenticateRequest {
                name: user.name.clone(),
                password: user.password.clone(),
            },
            (None, Some(provider)) => {
                let (credentials, _) = provider.ask(clock).await?;
                let (name, password) = credentials.both();
                wire::AuthenticateRequest {
                    name: name.to_owned(),
                    password: password.to_owned(),
                }
            }
        };
        let reply = channel.unary(path::AUTHENTICATE, None, &request).await;
        let reply: wire::AuthenticateReply = reply.map_err(|error| error_of(error, server))?;
        let mut token = HeaderValue::from_str(&reply.token).map_err(|_| strange(server))?;
        token.set_sensitive(true);
        *self.token.lock() = Some(token);
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) path: String,
    /// All keys that begin so.
    pub(crate) is_prefix: bool,
    pub(crate) start: i64,
    pub(crate) what: WatchedChange,
}

/// The changes that a watch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchedChange {
    Ends,
    News,
    Both,
}

/// A connection that is up, as those see it who use it.
pub(crate) struct Live {
    begin: Begin,
    pub(crate) since: Instant,
    pub(crate) watches: mpsc::UnboundedSender<Watch>,
    /// Why it has ended.
    pub(crate) broken: watch::Sender<Option<StoreError>>,
    /// Owners whose calls are under way.
    flying: Mutex<HashSet<Owner>>,
    landed: Notify,
}

pub(crate) struct Begin {
    pub(crate) channel: Channel,
    pub(crate) identity: Arc<LoginToken>,
    pub(crate) clock: Clock,
    pub(crate) epoch: Epoch,
    /// One for each session: what was sent over its connections before is not carried out any
    /// more.
    pub(crate) link: Link,
    pub(crate) server: String,
    /// The highest revision of the answers so far.
    pub(crate) seen: Arc<AtomicI64>,
}

/// The calls of these owners, one after the other.
pub(crate) struct OwnerFlight {
    live: Arc<Live>,
    owners: Vec<Owner>,
}

impl Drop for OwnerFlight {
    fn drop(&mut self) {
        let mut flying = self.live.flying.lock();
        for owner in &self.owners {
            flying.remove(owner);
        }
        drop(flying);
        self.live.landed.notify_waiters();
    }
}

#[derive(Debug)]
pub(crate) struct TxnOutcome {
    pub(crate) header: Header,
    /// Whether its conditions were true.
    pub(crate) succeeded: bool,
    replies: VecDeque<ReplyOp>,
}

impl TxnOutcome {
    /// The reply to the next operation, which is no question.
    pub(crate) fn skip(&mut self) {
        self.replies.pop_front();
    }

    /// What the next operation has found.
    pub(crate) fn found(&mut self) -> Result<Vec<StoredKey>, Fault> {
        wire::found(self.replies.pop_front()).ok_or(Fault::Unreadable)
    }
}

impl Deref for Live {
    type Target = Begin;

    fn deref(&self) -> &Begin {
        &self.begin
    }
}

impl Live {
    pub(crate) fn new(begin: Begin, watches: mpsc::UnboundedSender<Watch>) -> Self {
        Self {
            since: begin.clock.now(),
            begin,
            watches,
            broken: watch::Sender::new(None),
            flying: Mutex::default(),
            landed: Notify::new(),
        }
    }

    /// The connection is of no use any more.
    pub(crate) fn end(&self, error: StoreError) {
        self.broken.send_if_modified(|broken| {
            let is_first = broken.is_none();
            if is_first {
                *broken = Some(error);
            }
            is_first
        });
    }

    /// Waits for the earlier calls of these owners.
    pub(crate) async fn begin(self: &Arc<Self>, owners: Vec<Owner>) -> OwnerFlight {
        loop {
            let landed = self.landed.notified();
            tokio::pin!(landed);
            // Before the look, so that no landing is missed.
            landed.as_mut().enable();
            {
                let mut flying = self.flying.lock();
                if owners.iter().all(|owner| !flying.contains(owner)) {
                    flying.extend(&owners);
                    drop(flying);
                    let live = Arc::clone(self);
                    return OwnerFlight { live, owners };
                }
            }
            landed.await;
        }
    }

    /// A call that goes on when nobody waits for it any more.
    pub(crate) async fn call<Q, R>(
        self: &Arc<Self>,
        path: &'static str,
        request: Q,
        flight: Option<&Arc<OwnerFlight>>,
    ) -> Result<R, Fault>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let (sender, reply) = oneshot::channel();
        let (me, flight) = (Arc::clone(self), flight.cloned());
        self.clock.spawn(async move {
            let reply = me.call_here(path, &request).await;
            drop(flight);
            let _ = sender.send(reply);
        });
        let closed = || Fault::Lost(gone(&self.server, "the connection was closed"));
        reply.await.unwrap_or_else(|_| Err(closed()))
    }

    async fn call_here<R: Message + Default>(
        &self,
        path: &str,
        request: &impl Message,
    ) -> Result<R, Fault> {
        let mut broken = self.broken.subscribe();
        let ended = async {
            let ended = broken.wait_for(Option::is_some).await;
            ended.ok().and_then(|error| error.clone())
        };
        let called = async {
            let mut was_asked = false;
            loop {
                let token = self.identity.token();
                let reply = self.channel.unary(path, token.clone(), request).await;
                let status = match reply {
                    Ok(reply) => return Ok(reply),
                    Err(CallError::Gone(why)) => return Err(self.lose(gone(&self.server, &why))),
                    // A proxy may have passed it on before it failed.
                    Err(CallError::Unreadable) => {
                        self.end(strange(&self.server));
                        return Err(Fault::Unreadable);
                    }
                    Err(CallError::Status(status)) => status,
                };
                if status.wants_login() && self.identity.is_known() && !was_asked {
                    was_asked = true;
                    let asked = self.identity.authenticate(
                        &self.channel,
                        &self.clock,
                        &self.server,
                        token.as_ref(),
                    );
                    asked.await.map_err(|error| self.lose(error))?;
                    continue;
                }
                return Err(match status.is_unclear() {
                    true => self.lose(of_status(&status, &self.server)),
                    false => Fault::Refused(status),
                });
            }
        };
        tokio::select! {
            biased;
            reply = called => reply,
            error = ended => {
                let closed = || gone(&self.server, "the connection was closed");
                Err(Fault::Lost(error.unwrap_or_else(closed)))
            }
        }
    }

    fn lose(&self, error: StoreError) -> Fault {
        self.end(error.clone());
        Fault::Lost(error)
    }

    /// Carries out a transaction in this connection's epoch.
    pub(crate) async fn txn(
        self: &Arc<Self>,
        conditions: Vec<Compare>,
        success: Vec<RequestOp>,
        failure: Vec<RequestOp>,
        flight: Option<&Arc<OwnerFlight>>,
    ) -> Result<TxnOutcome, Fault> {
        let mut compare = vec![wire::changed_by(&self.epoch.key, self.epoch.revision)];
        compare.extend(conditions);
        let mut otherwise = vec![wire::get(&self.epoch.key)];
        otherwise.extend(failure);
        let txn = Txn {
            compare,
            success,
            failure: otherwise,
        };
        let reply: TxnReply = self.call(path::TXN, txn, flight).await?;
        let mut outcome = TxnOutcome {
            header: reply.header.ok_or(Fault::Unreadable)?,
            succeeded: reply.succeeded,
            replies: reply.replies.into(),
        };
        self.seen
            .fetch_max(outcome.header.revision, Ordering::AcqRel);
        if !outcome.succeeded {
            let session = outcome.found()?;
            let is_ours = |kv: &StoredKey| kv.mod_revision == self.epoch.revision;
            if !session.first().is_some_and(is_ours) {
                return Err(self.lose(gone(&self.server, "the client's session is over")));
            }
        }
        Ok(outcome)
    }
}

impl LiveConnection for Live {
    fn link(&self) -> Link {
        self.link
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn since(&self) -> Instant {
        self.since
    }
}
