//! The connection between a client and one server: delays, losses, repeats, cuts, and late
//! arrivals.
//!
//! As the store contract demands, one connection keeps its order in both directions. So messages
//! are reordered only between clients and, after a cut, between the old connection and the new one.
//! The server carries a command out when it arrives.

mod exchange;
mod pushes;

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use lock_store::{ClientId, Link, Listener, SimulatedStop, Store};
use tokio::sync::{Notify, mpsc};

pub(crate) use self::exchange::PLACE_OF_A_COPY;
pub(crate) use self::pushes::Told;
use crate::couriers::{Command, Ends, Parcel, back_again, there};
use crate::rng::Rng;
use crate::server::Server;
use crate::world::{World, now, sleep, sleep_until};

/// After this many commands in a row without an answer, the connection is replaced, as in the Redis
/// store.
const SILENT_COMMANDS: u32 = 2;

/// How long a failed command may affect others: its own time, and a pause after it.
const AFTERMATH: Duration = Duration::from_secs(4);

/// Links of different servers are different.
const LINKS_OF_A_SERVER: u64 = 1_000_000;

/// One client's connection to one server, and the connections that replace it.
pub(crate) struct Wires {
    world: Arc<World>,
    pub(crate) client: usize,
    pub(crate) number: usize,
    pause: SimulatedStop,
    lines: Weak<dyn Listener>,
    served: Mutex<Option<Weak<dyn Store>>>,
    /// Notified when a connection is up, or when there will be no more. (Not tokio's `watch`, which
    /// leaves the order of waking to chance.)
    up: Notify,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    link: u64,
    wire: Option<Wire>,
    silent: u32,
    closed: bool,
    /// The client is asking where the keys are.
    learns: bool,
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
            .field("server", &self.number)
            .finish_non_exhaustive()
    }
}

/// Client ids need not be secret here.
pub(crate) fn id(client: usize) -> ClientId {
    ClientId((client as u128 + 1) << 96)
}

impl Wires {
    pub(crate) fn new(
        world: &Arc<World>,
        rng: Rng,
        client: usize,
        number: usize,
        pause: SimulatedStop,
        lines: &Arc<dyn Listener>,
    ) -> Arc<Self> {
        let first = u64::try_from(number).unwrap() * LINKS_OF_A_SERVER + 1;
        Arc::new(Self {
            world: Arc::clone(world),
            client,
            number,
            pause,
            lines: Arc::downgrade(lines),
            served: Mutex::default(),
            up: Notify::new(),
            state: Mutex::new(State {
                rng,
                link: first,
                wire: None,
                silent: 0,
                closed: false,
                learns: false,
            }),
        })
    }

    /// Opens the first connection to this store.
    pub(crate) fn start(self: &Arc<Self>, served: &Arc<dyn Store>) {
        *self.served.lock().unwrap() = Some(Arc::downgrade(served));
        self.plug_in(served);
    }

    pub(crate) fn server(&self) -> &Server {
        &self.world.servers[self.number]
    }

    /// Records a disturbance of this client's commands, for this time and its consequences.
    fn disturbed(&self, time: Duration) {
        let until = now() + time;
        // A hold of several keys is released as a whole. A reply that one server owes holds up the
        // client's next request for a key of another.
        for server in 0..self.world.servers.len() {
            self.world.witness.disturbed(self.client, server, until);
        }
    }

    /// In a cluster, a client that fails at one server asks the others where its keys are. Then all
    /// its waiters recheck.
    fn learn_soon(self: &Arc<Self>) {
        if self.world.servers.len() == 1 || std::mem::replace(&mut self.state().learns, true) {
            return;
        }
        let time = self.state().rng.ms(1..=300);
        let (pause, wires) = (self.pause.clone(), Arc::downgrade(self));
        tokio::spawn(async move {
            sleep(time).await;
            pause.gate(std::future::ready(())).await;
            if let Some(wires) = wires.upgrade() {
                wires.state().learns = false;
                wires.recheck();
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
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

    /// Cuts the connection; soon there is another. What was under way to the client is lost, and
    /// mostly also what was under way to the server.
    pub(crate) fn cut(self: &Arc<Self>, why: &'static str) {
        let (delay, link) = {
            let mut state = self.state();
            let Some(wire) = state.wire.take() else {
                return;
            };
            let link = Link(state.link);
            state.link += 1;
            state.silent = 0;
            let late = self.world.faults.late;
            if why != "restart" && state.rng.chance(late) && !self.world.is_calm() {
                *wire.ends.late.lock().unwrap() = Some(state.rng.ms(0..=1500));
                self.world.counts.add("late arrivals after a cut");
            }
            wire.ends.cut();
            (state.rng.ms(1..=200), link)
        };
        self.world.counts.add("cuts");
        let (client, number) = (self.client, self.number);
        self.world
            .note(format_args!("c{client} cut from s{number}: {why}"));
        self.disturbed(delay);
        match (&*self.world.servers, self.lines.upgrade()) {
            ([_, _, ..], Some(lines)) => lines.on_lost(link),
            _ => self.recheck(),
        }
        let wires = Arc::downgrade(self);
        let (pause, world) = (self.pause.clone(), Arc::clone(&self.world));
        tokio::spawn(async move {
            sleep(delay).await;
            loop {
                let until = world.servers[number].unreachable_until();
                if now() >= until {
                    break;
                }
                if let Some(wires) = wires.upgrade() {
                    wires.disturbed(until - now());
                }
                sleep_until(until).await;
            }
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

    pub(crate) fn link(&self) -> Link {
        Link(self.state().link)
    }

    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.wire = None;
        drop(state);
        self.up.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Opens a new connection, and starts the couriers for it.
    fn plug_in(&self, served: &Arc<dyn Store>) {
        let (to_server, requests) = mpsc::unbounded_channel();
        let (to_client, parcels) = mpsc::unbounded_channel();
        let ends = Arc::<Ends>::default();
        let back = to_client.clone();
        let server = (Arc::clone(&self.world), self.number);
        let (served, until) = (Arc::clone(served), Arc::clone(&ends));
        tokio::spawn(there(requests, back, server, served, until));
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
