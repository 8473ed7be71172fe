//! The network between a client and its servers. Each key belongs to one server; a command with
//! keys of several is sent in parts.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use futures_util::future::join_all;
use lock_runtime::{LockKey, StoreErrorKind};
use lock_store::{
    AcquiredAll, Answer, Capabilities, Clock, Failure, Instant, Link, Listener, Release, Released,
    Renewal, Renewed, Store, StoreFuture,
};
use lock_store::{ClientId, SimulatedStop};
use lock_testkit_core::context;
use lock_testkit_core::store_decorator::{Interceptor, Reply, Request, decorated};
use tokio::runtime::Handle;

use crate::rng::Rng;
use crate::wires::{Told, Wires, id};
use crate::world::World;
use crate::wrong::Mistake;

/// What goes to one server, with its positions in the whole.
type Part<'r, T> = Vec<(usize, &'r T)>;

/// A client's way to each server.
pub(crate) struct Network {
    world: Arc<World>,
    wires: Vec<Arc<Wires>>,
    served: Vec<Arc<dyn Store>>,
    /// The servers' listeners. They are kept here, since servers keep only weak references.
    _listeners: Vec<Arc<dyn Listener>>,
}

impl Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("wires", &self.wires)
            .finish_non_exhaustive()
    }
}

impl Network {
    pub(crate) fn connect(
        world: &Arc<World>,
        rng: &Rng,
        client: usize,
        pause: &SimulatedStop,
        lines: &Arc<dyn Listener>,
        namespace: &str,
    ) -> Arc<dyn Store> {
        let (mut wires, mut served, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
        let mut rng = rng.clone();
        for (number, server) in world.servers.iter().enumerate() {
            let draws = match number {
                0 => rng.clone(),
                _ => rng.fork(),
            };
            let wire = Wires::new(world, draws, client, number, pause.clone(), lines);
            let listener: Arc<dyn Listener> = Arc::new(Told(Arc::downgrade(&wire)));
            let clock = Clock::simulated(Handle::current()).ahead(server.ahead());
            let id: ClientId = id(client);
            let store = server
                .memory()
                .connect(context(namespace, id, &listener, clock));
            let store = server.serve(store);
            wire.start(&store);
            world.wires.lock().unwrap().push(Arc::downgrade(&wire));
            wires.push(wire);
            served.push(store);
            listeners.push(listener);
        }
        let first = Arc::clone(&served[0]);
        let network = Arc::new(Self {
            world: Arc::clone(world),
            wires,
            served,
            _listeners: listeners,
        });
        decorated(first, network)
    }

    fn to(&self, key: &LockKey) -> &Arc<Wires> {
        &self.wires[self.world.server_of(key.as_str())]
    }

    /// Groups them by server.
    fn by_server<'r, T>(
        &self,
        all: &'r [T],
        key: impl Fn(&T) -> &LockKey,
    ) -> Vec<(&Arc<Wires>, Part<'r, T>)> {
        let mut parts = BTreeMap::<usize, Part<'_, T>>::new();
        for (at, one) in all.iter().enumerate() {
            let server = self.world.server_of(key(one).as_str());
            parts.entry(server).or_default().push((at, one));
        }
        let parts = parts.into_iter();
        parts
            .map(|(server, part)| (&self.wires[server], part))
            .collect()
    }

    /// If a server does not answer, its holds are unconfirmed. It is a failure only if no server
    /// answers.
    async fn renew(&self, holds: Vec<Renewal>, by: Instant) -> Result<Answer<Reply>, Failure> {
        let parts = self.by_server(&holds, |hold| &hold.claim.key);
        let (places, sent): (Vec<_>, Vec<_>) = parts
            .into_iter()
            .map(|(wires, part)| {
                let (at, part): (Vec<_>, Vec<_>) = part.into_iter().unzip();
                let part: Vec<Renewal> = part.into_iter().cloned().collect();
                (at, self.renew_at(wires, part, by))
            })
            .unzip();
        let mut replies = vec![Renewed::Unanswered; holds.len()];
        let (mut links, mut failed) = (Vec::new(), None);
        for (at, outcome) in places.into_iter().zip(join_all(sent).await) {
            match outcome {
                Ok(answer) => {
                    links.push(answer.link);
                    for (at, reply) in at.into_iter().zip(answer.value) {
                        replies[at] = reply;
                    }
                }
                Err(failure) => failed = Some(failure),
            }
        }
        match failed {
            Some(failure) if links.is_empty() => Err(failure),
            _ => Ok(Answer::new(Reply::Renew(replies), of_all(&links))),
        }
    }

    /// Renews key by key at a slot that has half moved.
    async fn renew_at(
        &self,
        wires: &Arc<Wires>,
        holds: Vec<Renewal>,
        by: Instant,
    ) -> Result<Answer<Vec<Renewed>>, Failure> {
        let together = wires.exchange(Request::Renew(holds.clone()), by).await;
        let lie_apart = |failure: &Failure| failure.error.kind() == StoreErrorKind::Loading;
        let mistaken = wires.server().wrong().is(Mistake::RenewsOnlyTogether);
        if mistaken || !together.as_ref().is_err_and(lie_apart) {
            return together.map(|answer| answer.map(renewed));
        }
        let each = holds.into_iter().map(async |hold| {
            let one = wires.exchange(Request::Renew(vec![hold]), by).await?;
            Ok::<_, Failure>(one.map(renewed).value[0])
        });
        let each = join_all(each).await;
        if let Some(Err(failure)) = each.first()
            && each.iter().all(Result::is_err)
        {
            return Err(failure.clone());
        }
        let value = each.into_iter();
        Ok(Answer::new(
            value
                .map(|one| one.unwrap_or(Renewed::Unanswered))
                .collect(),
            Link::SEVERAL,
        ))
    }

    async fn release(&self, requests: Vec<Release>, by: Instant) -> Result<Answer<Reply>, Failure> {
        let parts = self.by_server(&requests, |request| &request.claim.key);
        let (places, sent): (Vec<_>, Vec<_>) = parts
            .into_iter()
            .map(|(wires, part)| {
                let (at, part): (Vec<_>, Vec<_>) = part.into_iter().unzip();
                let part: Vec<Release> = part.into_iter().cloned().collect();
                (at, wires.exchange(Request::Release(part), by))
            })
            .unzip();
        let mut replies = vec![Released::NotHeld; requests.len()];
        let mut links = Vec::new();
        for (at, outcome) in places.into_iter().zip(join_all(sent).await) {
            let answer = outcome?;
            links.push(answer.link);
            let Reply::Release(part) = answer.value else {
                panic!("a release gets {:?}", answer.value)
            };
            for (at, reply) in at.into_iter().zip(part) {
                replies[at] = reply;
            }
        }
        Ok(Answer::new(Reply::Release(replies), of_all(&links)))
    }

    /// Asks each server for a sign of life.
    async fn ping(&self, by: Instant) -> Result<Answer<Reply>, Failure> {
        let pings = self
            .wires
            .iter()
            .map(|wires| wires.exchange(Request::Ping(), by));
        let mut links = Vec::new();
        for outcome in join_all(pings).await {
            links.push(outcome?.link);
        }
        Ok(Answer::new(Reply::Ping(()), of_all(&links)))
    }
}

fn renewed(reply: Reply) -> Vec<Renewed> {
    match reply {
        Reply::Renew(replies) => replies,
        other => panic!("a renewal gets {other:?}"),
    }
}

fn of_all(links: &[Link]) -> Link {
    match links {
        [link] => *link,
        _ => Link::SEVERAL,
    }
}

impl Interceptor for Network {
    fn intercept<'s>(
        &'s self,
        _: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        if let [wires] = &*self.wires {
            return Box::pin(wires.exchange(request, by));
        }
        match request {
            Request::Renew(holds) => Box::pin(self.renew(holds, by)),
            Request::Release(requests) => Box::pin(self.release(requests, by)),
            Request::Ping() => Box::pin(self.ping(by)),
            request => {
                let keys = request.keys();
                let wires = Arc::clone(self.to(keys[0]));
                if keys.iter().any(|key| !Arc::ptr_eq(self.to(key), &wires)) {
                    let value = Reply::AcquireAll(AcquiredAll::Apart);
                    let link = Link::SEVERAL;
                    return Box::pin(std::future::ready(Ok(Answer::new(value, link))));
                }
                Box::pin(async move { wires.exchange(request, by).await })
            }
        }
    }

    fn link(&self, _: Link) -> Link {
        match &*self.wires {
            [wires] => wires.link(),
            _ => Link(0),
        }
    }

    fn capabilities(&self, mut own: Capabilities) -> Capabilities {
        own.fails_over = self.wires.len() > 1;
        own
    }

    fn link_of(&self, key: &LockKey, _: Link) -> Link {
        self.to(key).link()
    }

    fn close(&self) {
        self.wires.iter().for_each(|wires| wires.close());
        self.served[1..].iter().for_each(|store| store.close());
    }

    fn is_closed(&self) -> bool {
        self.wires.iter().any(|wires| wires.is_closed())
    }
}
