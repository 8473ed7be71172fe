//! The quorum: three independent nodes, each with its own lease of a lock and its own fence
//! counter, and requests that take the lock on a majority of them. The protocol in words is in
//! `lock-runtime/stores/redis/src/quorum/mod.rs`.
//!
//! | here | the code |
//! |---|---|
//! | `quorum/steps.rs`, the nodes | `stores/redis/src/commands/quorum_{take,confirm,end}.lua` |
//! | `Phase` | `stores/redis/src/quorum/{acquire,fence,votes}.rs` |
//! | `Node::out` | `stores/redis/src/topology/members.rs`: a node that has restarted does not count for one lease |
//! | releases | `stores/redis/src/quorum/release.rs`: on all nodes, until each has surely done it |
//! | `Quorum::trusted` | `lock_store::timing::trusted`, from before the first command was sent |
//!
//! **Two kinds of time.** `Time::AnyMoment`: a node's lease may end at any moment, which covers
//! every clock that jumps and every process that stands still; nobody can know how long its hold is
//! valid, and the tokens alone must be right. `Time::Ticks`: all clocks tick together, but for
//! `drift`; then beliefs must exclude each other, too.
//!
//! **The network** may carry out a command and deliver a reply after any time, in any order, or
//! never: each is a step that need not be taken. A node that restarts has lost its data and what
//! was on its way to it.
//!
//! **Left out**: renewals (to a node they are what keeps its lease; that a majority has to say so
//! is counted by the same code), waiting, and that one request is repeated: every round has an
//! owner token of its own, so a round is a request here. `Mistake::RoundsShareAToken` shows why.

use std::hash::{Hash, Hasher};

use stateright::{Model, Property};

mod canonical;
mod steps;

pub(crate) const EXCLUSION: &str = "two holders never believe at once within their validity";
pub(crate) const TOKENS: &str = "tokens are unique and rise in the order of grants";
pub(crate) const NOTHING_LEFT: &str = "what has ended leaves nothing on any node";

/// How many nodes there are, and how many of them decide.
const NODES: usize = 3;
const MAJORITY: u8 = 2;

/// The bounds, and at most one mistake.
#[derive(Clone, Debug)]
pub(crate) struct Quorum {
    /// Each of a client of its own, at any time.
    pub(crate) rounds: usize,
    pub(crate) time: Time,
    /// Whether a grant needs a token, and so the second phase.
    pub(crate) fenced: bool,
    /// How often a node restarts without its data, of all nodes together.
    pub(crate) restarts: u8,
    pub(crate) mistake: Option<Mistake>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// A lease may end at any moment.
    AnyMoment,
    Ticks {
        lease: u8,
        /// Ticks that nodes' clocks make alone, of all nodes together.
        drift: u8,
        /// So many ticks is the clock of one node ahead of the others.
        skew: u8,
    },
}

/// What could have been built wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// One phase: each node counts when it is taken, and the token is the highest of their replies.
    HighestReplyIsTheToken,
    /// One node's confirmation is enough.
    ConfirmedByOne,
    /// A node confirms a token that it has already.
    ConfirmsTheSameToken,
    /// Any majority of replies is enough, from nodes that were taken by others as well.
    BusyCountsAsConfirmed,
    /// The deadline is counted from the reply that made the majority.
    ValidityFromTheReply,
    /// The whole lease is trusted.
    NoMargin,
    /// The release goes to the nodes that were heard of.
    ReleasedWhereGranted,
    /// A node that came back empty counts at once.
    RestartedCountsAtOnce,
    /// One that does not count is asked nothing either, and has no floor of time: tokens start from
    /// one again.
    RestartedWithoutFloor,
    /// A client's next round has the same owner token, so that a late release of the first round
    /// ends the second.
    RoundsShareAToken,
}

/// A server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    /// The round that has the lock, and the ticks left of its lease.
    lock: Option<(u8, u8)>,
    /// The fence counter.
    counter: u8,
    /// For so many ticks it does not count.
    out: u8,
    /// So much is its clock ahead.
    skew: u8,
}

/// A command of a round to one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Way {
    /// Not sent, or lost, or of no more use.
    #[default]
    Gone,
    Sent,
    /// The node has done it; its reply is on its way.
    Done {
        /// What the node would have as the next token.
        next: u8,
        /// Whether the node's word counts.
        counts: bool,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    #[default]
    Idle,
    /// The nodes that granted it, and the highest token that they proposed.
    Taking {
        left: u8,
        votes: u8,
        highest: u8,
    },
    Confirming {
        left: u8,
        token: u8,
        votes: u8,
    },
    Holding {
        left: u8,
    },
    Ended,
}

/// One round of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Round {
    phase: Phase,
    takes: [Way; NODES],
    confirms: [Way; NODES],
    /// Releases on their way.
    releases: [bool; NODES],
    /// The nodes that were heard of.
    heard: [bool; NODES],
    /// The highest token of a grant before this was asked for.
    floor: u8,
    /// Its own, if it was granted; without fencing it is 1.
    token: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    nodes: [Node; NODES],
    rounds: Vec<Round>,
    /// The time of the nodes, but for their skew.
    now: u8,
    /// The highest token anybody has heard of.
    highest: u8,
    disorder: bool,
    restarts: u8,
    drift: u8,
    /// Whether which round is which makes a difference.
    numbered: bool,
}

/// One step; the first number is the round, or the node if there is no second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    /// A node's clock runs ahead.
    TickOf(usize),
    Expire(usize),
    Restart(usize),
    Ask(usize),
    Take(usize, usize),
    HearTake(usize, usize),
    Confirm(usize, usize),
    HearConfirm(usize, usize),
    Release(usize, usize),
    /// Gives up, or is done with it.
    End(usize),
}

impl Model for Quorum {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut nodes = [Node::default(); NODES];
        let mut drift = 0;
        if let Time::Ticks {
            drift: of, skew, ..
        } = self.time
        {
            (nodes[0].skew, drift) = (skew, of);
        }
        vec![State {
            nodes,
            rounds: vec![Round::default(); self.rounds],
            now: u8::from(self.ticks()),
            highest: 0,
            disorder: false,
            restarts: self.restarts,
            drift,
            numbered: self.makes(Mistake::RoundsShareAToken),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if self.ticks() {
            actions.push(Action::Tick);
        }
        for at in 0..NODES {
            let node = &state.nodes[at];
            if state.drift > 0 {
                actions.push(Action::TickOf(at));
            }
            if !self.ticks() && node.lock.is_some() {
                actions.push(Action::Expire(at));
            }
            if state.restarts > 0 {
                actions.push(Action::Restart(at));
            }
        }
        for (at, round) in state.rounds.iter().enumerate() {
            match round.phase {
                Phase::Idle => {
                    // The second of those two is of the same client, after the first.
                    let waits = state.numbered && at == 1;
                    if !waits || state.rounds[0].phase == Phase::Ended {
                        actions.push(Action::Ask(at));
                    }
                }
                Phase::Ended => {}
                _ => actions.push(Action::End(at)),
            }
            for node in 0..NODES {
                match round.takes[node] {
                    Way::Gone => {}
                    Way::Sent => actions.push(Action::Take(at, node)),
                    Way::Done { .. } => actions.push(Action::HearTake(at, node)),
                }
                match round.confirms[node] {
                    Way::Gone => {}
                    Way::Sent => actions.push(Action::Confirm(at, node)),
                    Way::Done { .. } => actions.push(Action::HearConfirm(at, node)),
                }
                // It is repeated until it has surely come after the take.
                if round.releases[node] && round.takes[node] != Way::Sent {
                    actions.push(Action::Release(at, node));
                }
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        match action {
            Action::Tick => self.tick(&mut state),
            Action::TickOf(node) => {
                state.drift -= 1;
                state.nodes[node].tick();
            }
            Action::Expire(node) => state.nodes[node].lock = None,
            Action::Restart(node) => self.restart(&mut state, node),
            Action::Ask(at) => self.ask(&mut state, at),
            Action::Take(at, node) => self.take(&mut state, at, node),
            Action::HearTake(at, node) => self.hear_take(&mut state, at, node),
            Action::Confirm(at, node) => self.confirm(&mut state, at, node),
            Action::HearConfirm(at, node) => self.hear_confirm(&mut state, at, node),
            Action::Release(at, node) => {
                state.rounds[at].releases[node] = false;
                state.nodes[node].release(self.owner(at));
            }
            Action::End(at) => self.end(&mut state, at),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(TOKENS, |_, state: &State| !state.disorder),
            Property::sometimes("every round is granted", |_, state: &State| {
                state.rounds.iter().all(|round| round.token > 0)
            }),
        ];
        if self.ticks() {
            properties.push(Property::always(EXCLUSION, |_, state: &State| {
                state.believing() <= 1
            }));
            properties.push(Property::always(NOTHING_LEFT, Self::nothing_left));
        }
        properties
    }
}

/// Which node, and which round, is which makes no difference.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.canonical().hash(hasher);
    }
}
