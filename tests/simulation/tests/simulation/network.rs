//! The network between a client and the server: delays, losses, repeats, cuts, and what arrives late.
//!
//! As the store contract has it, one connection keeps its order in both directions, so reordering is between clients
//! and, after a cut, between the old connection and the new one. Whatever is carried out is carried out when it arrives.

use std::fmt::Debug;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use lock_runtime::{StoreError, StoreErrorKind};
use lock_store::{
    Answer, ClientId, Failure, Instant, Link, Listener, Owner, Store, StoreFuture, WakeUp,
};
use lock_store::{Clock, Pause};
use lock_testkit::store_decorator::{Interceptor, Reply, Request, decorated};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::couriers::{Command, Deliver, Ends, Parcel, back_again, there};
use crate::rng::Rng;
use crate::server::answer;
use crate::world::{World, now, sleep, sleep_until};

/// So many commands in a row without an answer, and the connection is replaced, as the Redis store does it.
const SILENT_COMMANDS: u32 = 2;

/// What lies between a client and the server: what it asks goes over its wires.
#[derive(Debug)]
pub(crate) struct Network {
    wires: Arc<Wires>,
    /// What the server tells; kept here, since the server keeps only a weak one.
    _listener: Arc<dyn Listener>,
}

/// One client's connection, and the ones after it.
pub(crate) struct Wires {
    world: Arc<World>,
    pub(crate) client: usize,
    pause: Pause,
    lines: Weak<dyn Listener>,
    served: Mutex<Option<Weak<dyn Store>>>,
    /// A connection is up, or none will be any more. (Of tokio's `watch`, who is woken first is left to chance.)
    up: Notify,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    link: u64,
    wire: Option<Wire>,
    silent: u32,
    closed: bool,
}

#[derive(Clone)]
struct Wire {
    to_server: mpsc::UnboundedSender<Command>,
    to_client: mpsc::UnboundedSender<Parcel>,
    ends: Arc<Ends>,
}

impl Debug for Wires {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wires")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// What the server tells one client.
#[derive(Debug)]
struct Told(Weak<Wires>);

impl Listener for Told {
    fn granted(&self, _: Link, owner: Owner, token: Option<u64>) -> WakeUp {
        if let Some(wires) = self.0.upgrade() {
            wires.push(owner, token);
        }
        WakeUp::default()
    }

    /// What a server's restart looks like is up to the wires.
    fn recheck(&self) {}
}

/// Client ids are no secrets here.
pub(crate) fn id(client: usize) -> ClientId {
    ClientId((client as u128 + 1) << 96)
}

impl Network {
    pub(crate) fn connect(
        world: &Arc<World>,
        rng: Rng,
        client: usize,
        pause: Pause,
        lines: &Arc<dyn Listener>,
        connect: impl FnOnce(&Arc<dyn Listener>, Clock) -> Arc<dyn Store>,
    ) -> Arc<dyn Store> {
        let wires = Arc::new(Wires {
            world: Arc::clone(world),
            client,
            pause,
            lines: Arc::downgrade(lines),
            served: Mutex::default(),
            up: Notify::new(),
            state: Mutex::new(State {
                rng,
                link: 1,
                wire: None,
                silent: 0,
                closed: false,
            }),
        });
        let listener: Arc<dyn Listener> = Arc::new(Told(Arc::downgrade(&wires)));
        let clock = Clock::simulated(Handle::current()).ahead(world.server.ahead());
        let served = world.server.serve(connect(&listener, clock));
        *wires.served.lock().unwrap() = Some(Arc::downgrade(&served));
        wires.plug_in(&served);
        world.wires.lock().unwrap().push(Arc::downgrade(&wires));
        let network = Arc::new(Self {
            wires,
            _listener: listener,
        });
        decorated(served, network)
    }
}

/// The engine counts an acquire that has not arrived when its lease is over as lost.
fn expires(request: &Request) -> Option<Instant> {
    let after = match request {
        Request::Acquire(_) | Request::AcquireAll(_) => request.lease(),
        // A place of a process that is gone is forgotten after a minute.
        Request::LatchLook(_) => Some(Duration::from_secs(1)),
        other => other.latch_call().map(|_| Duration::from_secs(1)),
    };
    after.map(|after| now() + after)
}

impl Interceptor for Network {
    /// Sends the command over the connection that is up, or will be in time.
    fn intercept<'s>(
        &'s self,
        _: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        let (name, expires) = (request.verb(), expires(&request));
        let sent = now();
        let wires = Arc::clone(&self.wires);
        Box::pin(async move {
            let wire = wires.wire(by).await?;
            let link = Link(wires.state().link);
            let (reply, replied) = oneshot::channel::<Reply>();
            let reply = Arc::new(Mutex::new(Some(reply)));
            let (world, client) = (Arc::clone(&wires.world), wires.client);
            wires.send(&wire, expires, move |served| {
                let value = answer(request.clone().send(served, now()));
                world.note(format_args!("c{client} {name} -> {value:?}"));
                let reply = Arc::clone(&reply);
                Box::new(move || {
                    let reply = reply.lock().unwrap().take();
                    reply.map(|reply| reply.send(value));
                })
            });
            let answer = async {
                match replied.await {
                    Ok(value) => value,
                    // Lost: nobody tells.
                    Err(_) => pending().await,
                }
            };
            let cut = wire.ends.until_cut();
            let unknown = |kind, detail: &'static str| Failure {
                error: StoreError::new(kind, detail),
                unknown: Some(link),
            };
            tokio::select! {
                biased;
                value = answer => {
                    wires.state().silent = 0;
                    Ok(Answer { value, link })
                }
                () = cut => {
                    Err(unknown(StoreErrorKind::Disconnected, "the connection was cut"))
                }
                () = sleep_until(by) => {
                    wires.world.note(format_args!("c{client} {name} timed out"));
                    wires.note_silence(link, by - sent);
                    Err(unknown(StoreErrorKind::Timeout, "the command was not answered"))
                }
            }
        })
    }

    fn link(&self, _: Link) -> Link {
        self.wires.link()
    }

    fn close(&self) {
        self.wires.close();
    }

    fn is_closed(&self) -> bool {
        self.wires.is_closed()
    }
}

impl Wires {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The connection that is up, as soon as there is one.
    async fn wire(&self, by: Instant) -> Result<Wire, Failure> {
        let failure = |kind, detail: &'static str| Failure {
            error: StoreError::new(kind, detail),
            unknown: None,
        };
        loop {
            let up = self.up.notified();
            {
                let state = self.state();
                if state.closed {
                    return Err(failure(StoreErrorKind::Refused, "the client was shut down"));
                }
                if let Some(wire) = &state.wire {
                    return Ok(wire.clone());
                }
            }
            tokio::select! {
                biased;
                () = up => {}
                () = sleep_until(by) => {
                    return Err(failure(StoreErrorKind::Timeout, "connecting takes too long"));
                }
            }
        }
    }

    fn send(
        &self,
        wire: &Wire,
        expires: Option<Instant>,
        carry_out: impl FnMut(&dyn Store) -> Deliver + Send + 'static,
    ) {
        let calm = self.world.is_calm();
        let faults = &self.world.faults;
        let counts = &self.world.counts;
        let mut state = self.state();
        let mut chance = |per_mille: u64, what: &'static str| {
            let happens = state.rng.chance(per_mille) && !calm;
            if happens {
                counts.add(what);
            }
            happens
        };
        let lost = chance(faults.lost_request, "lost requests");
        let lost_reply = chance(faults.lost_reply, "lost replies");
        let repeated = chance(faults.twice, "requests carried out twice");
        let slow = chance(faults.slow, "slow messages");
        let mut way = || {
            let (from, to) = faults.delay;
            let delay = state.rng.ms(from..=to);
            delay
                + if slow {
                    state.rng.ms(0..=800)
                } else {
                    Duration::ZERO
                }
        };
        let (there, back) = (way(), way());
        let command = Command {
            at: now() + there,
            lost,
            lost_reply,
            twice: repeated.then(|| state.rng.ms(0..=20)),
            back,
            expires,
            carry_out: Box::new(carry_out),
        };
        // A wire that was cut just now takes nothing any more.
        let _ = wire.to_server.send(command);
    }

    /// The server tells this client of a grant.
    pub(crate) fn push(&self, owner: Owner, token: Option<u64>) {
        let faults = &self.world.faults;
        let mut state = self.state();
        let (from, to) = faults.delay;
        let delay = state.rng.ms(from..=to);
        let lost = state.rng.chance(faults.lost_grant) && !self.world.is_calm();
        let Some(wire) = &state.wire else { return };
        self.world
            .note(format_args!("c{} push {owner:?} lost={lost}", self.client));
        if lost {
            self.world.counts.add("lost grants");
            return;
        }
        let token = self.world.server.wrong().token(token);
        if let Some(second) = self.world.server.wrong().second(owner) {
            let at = self.world.all_wires().into_iter();
            for other in at.filter(|other| other.is_of(second) && other.client != self.client) {
                other.tell(second, token, delay);
            }
        }
        self.put(wire, Link(state.link), owner, token, delay);
    }

    /// Whether the owner is this client's.
    fn is_of(&self, owner: Owner) -> bool {
        owner.client == id(self.client)
    }

    fn tell(&self, owner: Owner, token: Option<u64>, delay: Duration) {
        let state = self.state();
        if let Some(wire) = &state.wire {
            self.put(wire, Link(state.link), owner, token, delay);
        }
    }

    fn put(&self, wire: &Wire, link: Link, owner: Owner, token: Option<u64>, delay: Duration) {
        let lines = Weak::clone(&self.lines);
        let deliver = move || {
            if let Some(lines) = lines.upgrade() {
                drop(lines.granted(link, owner, token));
            }
        };
        let _ = wire.to_client.send(Parcel {
            at: now() + delay,
            deliver: Box::new(deliver),
        });
    }

    fn note_silence(self: &Arc<Self>, link: Link, waited: Duration) {
        let whole = waited >= Duration::from_millis(150);
        let replace = {
            let mut state = self.state();
            state.silent += u32::from(whole);
            state.silent >= SILENT_COMMANDS && state.link == link.0
        };
        if replace {
            self.cut("replaced");
        }
    }

    /// Ends the connection; soon there is another. What was under way back is lost, what was under way there mostly is.
    pub(crate) fn cut(self: &Arc<Self>, why: &'static str) {
        let delay = {
            let mut state = self.state();
            let Some(wire) = state.wire.take() else {
                return;
            };
            state.link += 1;
            state.silent = 0;
            let late = self.world.faults.late;
            if why != "restart" && state.rng.chance(late) && !self.world.is_calm() {
                *wire.ends.late.lock().unwrap() = Some(state.rng.ms(0..=1500));
                self.world.counts.add("late arrivals after a cut");
            }
            wire.ends.cut();
            state.rng.ms(1..=200)
        };
        self.world.counts.add("cuts");
        self.world.note(format_args!("c{} cut: {why}", self.client));
        self.recheck();
        let wires = Arc::downgrade(self);
        let (pause, world) = (self.pause.clone(), Arc::clone(&self.world));
        tokio::spawn(async move {
            sleep(delay).await;
            sleep_until(world.server.down_until()).await;
            pause.gate(std::future::ready(())).await;
            let Some(wires) = wires.upgrade() else { return };
            let served = wires
                .served
                .lock()
                .unwrap()
                .as_ref()
                .and_then(Weak::upgrade);
            if let Some(served) = served {
                wires.plug_in(&served);
                wires.recheck();
            }
        });
    }

    fn recheck(&self) {
        if let Some(lines) = self.lines.upgrade() {
            lines.recheck();
        }
    }

    fn link(&self) -> Link {
        Link(self.state().link)
    }

    fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.wire = None;
        drop(state);
        self.up.notify_waiters();
    }

    fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// A new connection, and the tasks that carry what goes over it.
    fn plug_in(&self, served: &Arc<dyn Store>) {
        let (to_server, requests) = mpsc::unbounded_channel();
        let (to_client, parcels) = mpsc::unbounded_channel();
        let ends = Arc::<Ends>::default();
        let back = to_client.clone();
        tokio::spawn(there(requests, back, Arc::clone(served), Arc::clone(&ends)));
        tokio::spawn(back_again(parcels, self.pause.clone(), Arc::clone(&ends)));
        let mut state = self.state();
        if !state.closed {
            state.wire = Some(Wire {
                to_server,
                to_client,
                ends,
            });
        }
        drop(state);
        self.up.notify_waiters();
    }
}
