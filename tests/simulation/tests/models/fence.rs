//! Leases, renewals and fencing tokens: an exclusive lock, and a store that restarts without its
//! data. The clients renew the lock, write to a resource, and stop for any time.
//!
//! What stands for which code:
//! - `fence/steps.rs`: `stores/redis/src/commands/{acquire,renew,release}.lua`, and `mint` and
//!   `keep_tokens` in `tokens.lua`.
//! - `Phase::Holding`: `engine/hold/mod.rs` (deadline) and `engine/background/watchdog.rs`
//!   (renewal).
//! - `Fence::trusted`: `timing::trusted`, the lease less its untrusted part.
//! - `Resource`: the user's resource. It remembers the highest token and refuses lower ones.
//!
//! **Time**: the clients' clocks tick together. The store's clock may tick on its own `drift`
//! times; the untrusted part of a lease covers this. The store's time in microseconds is the floor
//! of the tokens. It moves with each tick and with each token, since two grants take longer than a
//! microsecond.
//!
//! **The network** may delay anything for any time, or lose it: a command, a reply, a write to the
//! resource. A client that stops between its check and its write is the same as a write that
//! travels for long.
//!
//! **Left out**: the queue (see `queue.rs`; a hand-over mints in the same way); the counter's TTL
//! of 24 hours (the counter is lost while the clock goes on, which `losses` covers); clocks that
//! are set back, except in `set_backs`, where tokens are known to lose their order after a loss of
//! the data.

use std::hash::{Hash, Hasher};

use stateright::{Model, Property};

mod steps;

pub(crate) const TOKENS: &str = "tokens are unique and rise with every grant";
pub(crate) const STALE: &str = "the resource never accepts a stale write";
pub(crate) const EXCLUSION: &str = "mutual exclusion of beliefs while the store keeps its data";

/// The bounds, and at most one mistake.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    pub(crate) clients: usize,
    /// Acquires, over all clients.
    pub(crate) acquires: u8,
    /// Renewals, over all clients.
    pub(crate) renewals: u8,
    /// Writes, over all clients.
    pub(crate) writes: u8,
    /// Restarts of the store without its data.
    pub(crate) losses: u8,
    /// Extra ticks of the store's clock.
    pub(crate) drift: u8,
    /// How often the store's clock is set back to zero.
    pub(crate) set_backs: u8,
    pub(crate) lease: u8,
    pub(crate) mistake: Option<Mistake>,
}

/// A mistake that could have been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The whole lease is trusted.
    NoMargin,
    /// The deadline is counted from the reply.
    ValidityFromTheReply,
    /// A grant is believed although its reply comes after its deadline.
    ReplyTrustedAfterItsDeadline,
    /// Tokens have no floor of server time.
    TokenByPlainIncrement,
    /// A renewal sets the key, whoever has it.
    RenewalBySet,
    /// A renewal without a reply counts as done.
    LostRenewalTrusted,
    /// The resource accepts every write.
    ResourceChecksNothing,
}

/// A client, with at most one command under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Client {
    /// How many acquires it has made: its owner token.
    attempt: u8,
    phase: Phase,
    /// Its command under way, or the reply to that.
    command: Option<Way>,
    /// Commands whose replies the client no longer awaits. They may yet be carried out.
    strays: Vec<Stray>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    Idle,
    /// What is trusted of a lease that counts from before the sending of the acquire.
    Asking {
        left: u8,
    },
    Holding {
        left: u8,
        grant: Grant,
    },
}

/// A grant: its token, and its number, which no part of the system knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Grant {
    token: u8,
    number: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Way {
    Acquire,
    Granted(Grant),
    Busy,
    /// With the rest of the lease if the renewal succeeds.
    Renew {
        left: u8,
    },
    Renewed {
        left: u8,
        gone: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Stray {
    attempt: u8,
    verb: Verb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Verb {
    Acquire,
    Renew,
    Release,
}

/// The guarded resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Resource {
    /// The highest grant whose write it accepted.
    highest: Grant,
    /// A write arrived after one of a later grant, accepted or not.
    stale_arrived: bool,
    stale_accepted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// The client and attempt that hold the lock, and the remaining ticks of the lease.
    lock: Option<(usize, u8, u8)>,
    /// The fence counter.
    last: u8,
    /// The store's time.
    now: u8,
    clients: Vec<Client>,
    /// Writes on their way to the resource.
    writes: Vec<Grant>,
    resource: Resource,
    left: Budget,
    /// The number of grants, the highest token so far, and whether a token did not rise.
    grants: u8,
    highest: u8,
    disorder: bool,
    lost_data: bool,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    acquires: u8,
    renewals: u8,
    writes: u8,
    losses: u8,
    drift: u8,
    set_backs: u8,
}

/// One step. The first number is the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    /// The store's clock runs ahead.
    StoreTick,
    LoseData,
    SetClockBack,
    Ask(usize),
    Renew(usize),
    Release(usize),
    CarryOut(usize),
    CarryOutStray(usize, usize),
    Hear(usize),
    /// No reply in time. The command may be carried out or not.
    NoReply(usize),
    /// The client has checked that it holds the lock, and writes.
    Write(usize),
    /// A write reaches the resource.
    Arrive(usize),
}

impl Fence {
    fn steps_of(&self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let client = &state.clients[at];
        (0..client.strays.len()).for_each(|stray| actions.push(Action::CarryOutStray(at, stray)));
        match client.command {
            None => {}
            Some(Way::Acquire | Way::Renew { .. }) => {
                actions.extend([Action::CarryOut(at), Action::NoReply(at)]);
            }
            Some(_) => actions.extend([Action::Hear(at), Action::NoReply(at)]),
        }
        match client.phase {
            Phase::Idle if state.left.acquires > 0 => actions.push(Action::Ask(at)),
            Phase::Holding { .. } => {
                actions.push(Action::Release(at));
                if client.command.is_none() && state.left.renewals > 0 {
                    actions.push(Action::Renew(at));
                }
                if state.left.writes > 0 {
                    actions.push(Action::Write(at));
                }
            }
            _ => {}
        }
    }
}

impl Model for Fence {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let client = Client {
            attempt: 0,
            phase: Phase::Idle,
            command: None,
            strays: Vec::new(),
        };
        vec![State {
            lock: None,
            last: 0,
            now: 1,
            clients: vec![client; self.clients],
            writes: Vec::new(),
            resource: Resource::default(),
            left: Budget {
                acquires: self.acquires,
                renewals: self.renewals,
                writes: self.writes,
                losses: self.losses,
                drift: self.drift,
                set_backs: self.set_backs,
            },
            grants: 0,
            highest: 0,
            disorder: false,
            lost_data: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        let left = &state.left;
        let rare = [
            (left.drift, Action::StoreTick),
            (left.losses, Action::LoseData),
            (left.set_backs, Action::SetClockBack),
        ];
        actions.extend(
            rare.iter()
                .filter(|(left, _)| *left > 0)
                .map(|(_, action)| *action),
        );
        (0..state.clients.len()).for_each(|at| self.steps_of(state, at, actions));
        actions.extend((0..state.writes.len()).map(Action::Arrive));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        let left = &mut state.left;
        match action {
            Action::Tick => {
                state.store_tick();
                state.clients.iter_mut().for_each(Client::tick);
            }
            Action::StoreTick => {
                left.drift -= 1;
                state.store_tick();
            }
            Action::LoseData => {
                left.losses -= 1;
                (state.lock, state.last, state.lost_data) = (None, 0, true);
            }
            Action::SetClockBack => {
                left.set_backs -= 1;
                state.now = 0;
            }
            Action::Ask(at) => {
                left.acquires -= 1;
                let client = &mut state.clients[at];
                client.attempt += 1;
                client.phase = Phase::Asking {
                    left: self.trusted(),
                };
                client.command = Some(Way::Acquire);
            }
            Action::Renew(at) => {
                left.renewals -= 1;
                state.clients[at].command = Some(Way::Renew {
                    left: self.trusted(),
                });
            }
            Action::Release(at) => state.clients[at].end(),
            Action::CarryOut(at) => self.carry_out(&mut state, at),
            Action::CarryOutStray(at, stray) => self.carry_out_stray(&mut state, at, stray),
            Action::Hear(at) => self.hear(&mut state.clients[at]),
            Action::NoReply(at) => self.no_reply(&mut state.clients[at]),
            Action::Write(at) => {
                left.writes -= 1;
                if let Phase::Holding { grant, .. } = state.clients[at].phase {
                    state.writes.push(grant);
                    state.writes.sort_unstable();
                }
            }
            Action::Arrive(write) => self.arrive(&mut state, write),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(TOKENS, |_, state: &State| !state.disorder),
            Property::always(STALE, |_, state: &State| !state.resource.stale_accepted),
            Property::always(EXCLUSION, |_, state: &State| {
                state.lost_data || state.believing() <= 1
            }),
        ];
        if self.writes > 1 {
            // Without its check of the token the resource would take this write. Tokens prevent
            // that.
            properties.push(Property::sometimes(
                "a stale write arrives",
                |_, state: &State| state.resource.stale_arrived,
            ));
        }
        if self.losses > 0 {
            properties.push(Property::sometimes(
                "two believe after the store has lost its data",
                |_, state: &State| state.believing() > 1,
            ));
        }
        properties
    }
}

/// Clients are interchangeable.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut order: Vec<usize> = (0..self.clients.len()).collect();
        order.sort_by_key(|at| &self.clients[*at]);
        order.iter().for_each(|at| self.clients[*at].hash(hasher));
        let name = |at| order.iter().position(|other| *other == at);
        let lock = self
            .lock
            .map(|(at, attempt, left)| (name(at), attempt, left));
        let tokens = (self.last, self.now, self.grants, self.highest);
        (lock, tokens, &self.writes, &self.resource).hash(hasher);
        (self.left, self.disorder, self.lost_data).hash(hasher);
    }
}
