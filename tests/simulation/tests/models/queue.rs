//! The queue with direct hand-off: an exclusive lock, its queue in the store, and clients that
//! wait, hold, give up and fail.
//!
//! What stands for which code:
//! - `queue/store.rs`: `stores/redis/src/commands/{acquire,renew,release,abandon}.lua`, and
//!   `hand_over` and `grant` in `lib.lua`.
//! - `queue/client.rs`: `engine/acquire/` (what to ask, to trust, to undo), `engine/local_queue/`
//!   (grants heard), `engine/hold/` and `engine/background/watchdog.rs` (deadline, renewal),
//!   `stores/redis/src/transport/connection.rs` (links).
//! - `queue/reaper.rs`: `engine/background/cleanup/mod.rs`, releases and undos.
//! - `Unknown`: `LateAcquire` in `engine/hold/part.rs`.
//! - `lease`, `first_lease`, `poll`: the lease, `FIRST_LEASE`, `FALLBACK_POLL`,
//!   `timing::handed_over_deadline`.
//!
//! **Time** is a small discrete clock, the same for the store and the clients. The state keeps
//! times as ticks left, so time never runs out. Anything may take any number of ticks, or none. A
//! client counts a lease from before it sends, the store from when it carries the command out.
//!
//! **The network** keeps the order of one connection in both directions, and guarantees nothing
//! else. A reply can be late for any time. A connection can break; then what was sent over it is
//! carried out at any later time, or never.
//!
//! **Faults**, `faults` of them in any mix, at any moment: a request is cancelled or gives up; a
//! command gets no answer in time; a grant's message is lost; a connection breaks, noticed by the
//! store or not; a process dies, noticed or not; a place is suspended, or ends because a clock
//! jumped.
//!
//! **Left out**: shares, several keys, fencing tokens (see `fence.rs`), `hold_at_least`, the
//! queue's own TTL, loss of the store's data (it breaks exclusion; tokens cover it), clocks at
//! different speeds (see `fence.rs`), and the local queue of a process (only its first request
//! talks to the store). Pauses between retries are any number of ticks.

use stateright::{Model, Property};

use self::client::{Client, Message, Phase};
pub(crate) use self::state::State;
use self::state::{ModelHold, Owner};
use self::store::Verb;

mod client;
mod reaper;
mod settle;
mod state;
mod store;

pub(crate) const EXCLUSION: &str = "mutual exclusion of beliefs";
pub(crate) const OWNER: &str = "only the owner releases";
pub(crate) const HAND_OFF: &str = "no lost hand-off: a free lock with a live waiter is given";
pub(crate) const NOTHING_LEFT: &str = "nothing left behind";
pub(crate) const ORDER: &str = "arrival order among live waiters";

/// The bounds, and at most one mistake.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// How many requests each client makes, one after the other.
    pub(crate) requests: Vec<u8>,
    pub(crate) faults: u8,
    /// First tries respect the queue, too.
    pub(crate) fair: bool,
    /// Holds may be renewed at any time.
    pub(crate) renews: bool,
    pub(crate) lease: u8,
    pub(crate) first_lease: u8,
    pub(crate) poll: u8,
    pub(crate) mistake: Option<Mistake>,
}

/// A mistake that could have been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    ReleaseWithoutOwnerCheck,
    /// The deadline of a grant is counted from its reply.
    ValidityFromTheReply,
    /// A grant is believed although its reply comes after its deadline.
    ReplyTrustedAfterItsDeadline,
    /// The first lease of a hand-over is counted from the arrival of its message.
    GrantCountedFromItsMessage,
    /// A grant is believed although the reply that confirms the place came after it.
    StaleGrantKept,
    /// Grants come over a connection of their own. They and replies overtake each other.
    GrantsInNoOrder,
    /// Grants over a replaced connection are believed.
    OldConnectionHeard,
    /// Without a reply, nothing is undone.
    NoUndoOfUnknown,
    /// An undo counts as done with its first answer, over any connection.
    UndoneOnlyOnce,
    /// A release that finds no hold counts as the undo of an unknown acquire. That acquire may have
    /// left a place in the queue.
    ReleaseCountsAsUndo,
    /// A request that gives up leaves the queue, but does not end a grant that came meanwhile.
    AbandonLeavesTheGrant,
    /// A waiter relies on its message alone.
    NoFallbackPoll,
    /// A waiter that looks again takes a free lock without regard to the queue.
    LookingAgainBarges,
    /// A look does not restore a client's suspended places.
    SuspendedForEver,
}

/// How an acquire treats the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Mode {
    Barge,
    Join,
}

/// One step. The number is the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    Start(u8),
    LookAgain(u8),
    Renew(u8),
    Release(u8),
    Work(u8, usize),
    Reconnect(u8),
    /// The store carries out the next command.
    CarryOut(u8),
    CarryOutStray(u8, usize),
    LoseStray(u8, usize),
    /// The client hears a message.
    Hear(u8, usize),
    // Faults.
    GiveUp(u8),
    NoAnswer(u8),
    NoAnswerToJob(u8, usize),
    LoseGrant(u8, usize),
    Cut(u8, bool),
    Die(u8, bool),
    /// The store has not heard the client for long, and suspends its first place.
    Suspend(u8),
    /// The store's clock has jumped past the end of its first place.
    EndPlace(u8),
}

impl Action {
    fn is_fault(self) -> bool {
        matches!(
            self,
            Self::GiveUp(_)
                | Self::NoAnswer(_)
                | Self::NoAnswerToJob(..)
                | Self::LoseGrant(..)
                | Self::Cut(..)
                | Self::Die(..)
                | Self::Suspend(_)
                | Self::EndPlace(_)
        )
    }
}

impl Queue {
    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The steps of one client, of its connection and of the commands on it.
    fn steps_of(&self, state: &State, at: u8, actions: &mut Vec<Action>) {
        let client = &state.clients[usize::from(at)];
        for index in 0..client.stray.len() {
            actions.push(Action::CarryOutStray(at, index));
            actions.push(Action::LoseStray(at, index));
        }
        if !client.alive {
            return;
        }
        if !client.linked {
            actions.push(Action::Reconnect(at));
        }
        if !client.out.is_empty() {
            actions.push(Action::CarryOut(at));
        }
        self.hearable(client, at, actions);
        match client.phase {
            Phase::Idle => {
                let first = client.jobs.iter().any(|job| job.first);
                if client.to_come > 0 && client.linked && !first {
                    actions.push(Action::Start(at));
                }
            }
            Phase::Waiting { look_in: 0 } if client.linked && self.looks_again(client) => {
                actions.push(Action::LookAgain(at));
            }
            Phase::Holding { left, renewing } => {
                actions.push(Action::Release(at));
                if self.renews && renewing.is_none() && client.linked && left < self.lease {
                    actions.push(Action::Renew(at));
                }
            }
            _ => {}
        }
        for (index, job) in client.jobs.iter().enumerate() {
            if job.sent.is_none() && client.linked {
                actions.push(Action::Work(at, index));
            }
        }
        if state.faults > 0 {
            self.faults_of(client, at, actions);
            if state.queue.iter().any(|place| place.client == at) {
                actions.push(Action::Suspend(at));
                actions.push(Action::EndPlace(at));
            }
        }
    }

    fn looks_again(&self, client: &Client) -> bool {
        let placed = client.may_be_stored || client.confirmed > 0;
        !(placed && self.makes(Mistake::NoFallbackPoll))
    }

    /// The first message of each connection.
    fn hearable(&self, client: &Client, at: u8, actions: &mut Vec<Action>) {
        let link = |message: &Message| match message {
            Message::Grant { link, .. } => *link,
            Message::Reply { .. } => client.link,
        };
        for (index, message) in client.inbound.iter().enumerate() {
            let mut before = client.inbound[..index].iter();
            let next = !before.any(|earlier| link(earlier) == link(message));
            if next || self.makes(Mistake::GrantsInNoOrder) {
                actions.push(Action::Hear(at, index));
            }
        }
    }

    fn faults_of(&self, client: &Client, at: u8, actions: &mut Vec<Action>) {
        if client.waits() {
            actions.push(Action::GiveUp(at));
        }
        if let Phase::Asking { .. }
        | Phase::Holding {
            renewing: Some(_), ..
        } = client.phase
        {
            actions.push(Action::NoAnswer(at));
        }
        for (index, job) in client.jobs.iter().enumerate() {
            if job.sent.is_some() {
                actions.push(Action::NoAnswerToJob(at, index));
            }
        }
        for (index, message) in client.inbound.iter().enumerate() {
            if matches!(message, Message::Grant { .. }) {
                actions.push(Action::LoseGrant(at, index));
            }
        }
        for noticed in [true, false] {
            if client.linked {
                actions.push(Action::Cut(at, noticed));
            }
            actions.push(Action::Die(at, noticed));
        }
    }

    /// One step, in place.
    fn step(&self, state: &mut State, action: Action) {
        state.faults -= u8::from(action.is_fault());
        let (Action::Start(at)
        | Action::LookAgain(at)
        | Action::Renew(at)
        | Action::Release(at)
        | Action::Work(at, _)
        | Action::Reconnect(at)
        | Action::CarryOut(at)
        | Action::CarryOutStray(at, _)
        | Action::LoseStray(at, _)
        | Action::Hear(at, _)
        | Action::GiveUp(at)
        | Action::NoAnswer(at)
        | Action::NoAnswerToJob(at, _)
        | Action::LoseGrant(at, _)
        | Action::Cut(at, _)
        | Action::Die(at, _)
        | Action::Suspend(at)
        | Action::EndPlace(at)) = action
        else {
            return self.tick(state);
        };
        let first = state.queue.iter().find(|place| place.client == at).copied();
        let client = &mut state.clients[usize::from(at)];
        match action {
            Action::Suspend(_) => {
                state.suspended.extend(first);
                state.unheard.extend(first);
            }
            Action::EndPlace(_) => {
                if let Some(first) = first {
                    state.vacate(first);
                    state.arrived.retain(|place| *place != first);
                }
            }
            Action::Tick => {}
            Action::Start(_) => self.start(client),
            Action::LookAgain(_) => self.ask(client, Mode::Join),
            Action::Renew(_) => self.renew(client),
            Action::Release(_) => self.end(client, Verb::Release, true),
            Action::Work(_, job) => self.work(client, job),
            Action::Reconnect(_) => {
                client.link += 1;
                (client.linked, client.listening) = (true, true);
                if let Phase::Waiting { look_in } = &mut client.phase {
                    *look_in = 0;
                }
            }
            Action::CarryOut(_) => self.answer(state, at),
            Action::CarryOutStray(_, stray) => {
                let attempt = client.stray[stray].attempt;
                let stray = client.stray.remove(stray);
                state.astray |= matches!(stray.verb, Verb::Acquire(_)) && stray.left == 0;
                let owner = Owner {
                    client: at,
                    attempt,
                };
                self.carry_out(state, owner, stray.verb);
            }
            Action::LoseStray(_, stray) => _ = client.stray.remove(stray),
            Action::Hear(_, message) => {
                let message = client.inbound.remove(message);
                self.hear(client, message);
            }
            Action::GiveUp(_) => self.give_up(client),
            Action::NoAnswer(_) => {
                self.forget_acquire(client);
                self.forget_renewal(client);
            }
            Action::NoAnswerToJob(_, job) => self.forget_job(client, job),
            Action::LoseGrant(_, message) => _ = client.inbound.remove(message),
            Action::Cut(_, noticed) => {
                client.linked = false;
                client.listening &= !noticed;
                self.forget_acquire(client);
                self.forget_renewal(client);
                (0..client.jobs.len()).for_each(|job| self.forget_job(client, job));
                client.cut(self.makes(Mistake::OldConnectionHeard));
            }
            Action::Die(_, noticed) => {
                self.forget_acquire(client);
                client.cut(false);
                let stray = std::mem::take(&mut client.stray);
                *client = Client {
                    alive: false,
                    linked: false,
                    listening: client.listening && !noticed,
                    stray,
                    ..Client::new(0)
                };
                state.arrived.retain(|place| place.client != at);
            }
        }
    }

    /// The store carries out the next command of a connection. It replies if the client awaits the
    /// reply.
    fn answer(&self, state: &mut State, client: u8) {
        let command = state.clients[usize::from(client)].out.remove(0);
        let (attempt, verb) = (command.attempt, command.verb);
        let reply = self.carry_out(state, Owner { client, attempt }, verb);
        if command.wanted {
            let message = Message::Reply {
                attempt,
                verb,
                reply,
            };
            state.clients[usize::from(client)].inbound.push(message);
        }
    }

    fn tick(&self, state: &mut State) {
        state.lock = state.lock.and_then(|hold| {
            (hold.left > 1).then_some(ModelHold {
                left: hold.left - 1,
                ..hold
            })
        });
        for client in &mut state.clients {
            if client.tick() {
                self.end(client, Verb::Release, false);
            }
        }
    }
}

impl Model for Queue {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            lock: None,
            queue: Vec::new(),
            suspended: Vec::new(),
            unheard: Vec::new(),
            clients: self.requests.iter().copied().map(Client::new).collect(),
            faults: self.faults,
            arrived: Vec::new(),
            overtaken: false,
            ended_by_another: false,
            astray: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        (0..)
            .zip(&state.clients)
            .for_each(|(at, _)| self.steps_of(state, at, actions));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        self.step(&mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(EXCLUSION, |_, state: &State| {
                let believe = state.clients.iter().filter(|client| client.believes());
                believe.count() <= 1
            }),
            Property::always(OWNER, |_, state: &State| !state.ended_by_another),
            Property::always(ORDER, |_, state: &State| !state.overtaken),
            Property::always(NOTHING_LEFT, |_, state: &State| state.is_clean()),
            Property::always(HAND_OFF, |model: &Self, state| model.settles(state)),
            // The difficult cases do happen.
            Property::sometimes(
                "a grant's message outlives the grant",
                |_, state: &State| state.has_stale_grant(),
            ),
        ];
        if self.faults > 0 {
            properties.push(Property::sometimes(
                "a grant races the undo of its request",
                |_, state: &State| state.has_grant_to_undo(),
            ));
        }
        properties
    }
}
