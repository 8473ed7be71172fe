//! The quorum: three independent nodes, each with its own lease of a lock and its own fence
//! counter. Requests take the lock on a majority of them.
//! `lock-runtime/stores/redis/src/quorum/mod.rs` describes the protocol in words.
//!
//! What stands for which code:
//! - `quorum/steps.rs`, the nodes: `stores/redis/src/commands/quorum_{take,confirm,end}.lua`.
//! - `Phase`: `stores/redis/src/quorum/{acquire,fence,votes}.rs`.
//! - `Node::out`: `stores/redis/src/topology/members.rs`. A restarted node does not count for one
//!   lease.
//! - Releases: `stores/redis/src/quorum/release.rs`, on all nodes, until each has surely carried it
//!   out.
//! - `Quorum::trusted`: `lock_store::timing::trusted`, from before the first command was sent.
//!
//! **Two kinds of time.** `Time::AnyMoment`: a node's lease may end at any moment. This covers
//! every clock that jumps and every process that stands still. No client can know how long its hold
//! is valid; only the tokens must be right. `Time::Ticks`: all clocks tick together, except for
//! `drift`. Then beliefs must exclude each other, too.
//!
//! **The network** may carry out a command and deliver a reply after any time, in any order, or
//! never: each is an optional step. A node that restarts has lost its data and the commands on
//! their way to it.
//!
//! **Left out**: renewals (for a node, a renewal keeps its lease; the same code counts the
//! majority), waiting, and the repeats of one request. Every round has an owner token of its own,
//! so a round is a request here. `Mistake::RoundsShareAToken` shows why.

use std::hash::{Hash, Hasher};

use stateright::{Model, Property};

mod canonical;
mod steps;

pub(crate) const EXCLUSION: &str = "two holders never believe at once within their validity";
pub(crate) const TOKENS: &str = "tokens are unique and rise in the order of grants";
pub(crate) const NOTHING_LEFT: &str = "what has ended leaves nothing on any node";

/// The number of nodes, and how many of them decide.
const NODES: usize = 3;
const MAJORITY: u8 = 2;

/// The bounds, and at most one mistake.
#[derive(Clone, Debug)]
pub(crate) struct Quorum {
    /// Each round has a client of its own and may begin at any time.
    pub(crate) rounds: usize,
    pub(crate) time: Time,
    /// Whether a grant needs a token, and so the second phase.
    pub(crate) fenced: bool,
    /// How often nodes restart without their data, over all nodes.
    pub(crate) restarts: u8,
    pub(crate) mistake: Option<Mistake>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// A lease may end at any moment.
    AnyMoment,
    Ticks {
        lease: u8,
        /// Extra ticks of single nodes' clocks, over all nodes.
        drift: u8,
        /// One node's clock is ahead of the others by this many ticks.
        skew: u8,
    },
}

/// A mistake that could have been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// One phase only: each node counts when it is taken, and the token is the highest of their
    /// replies.
    HighestReplyIsTheToken,
    /// One node's confirmation is enough.
    ConfirmedByOne,
    /// A node confirms a token that it already has.
    ConfirmsTheSameToken,
    /// Any majority of replies is enough, also from nodes that others took.
    BusyCountsAsConfirmed,
    /// The deadline is counted from the reply that completed the majority.
    ValidityFromTheReply,
    /// The whole lease is trusted.
    NoMargin,
    /// Only the nodes that answered get the release.
    ReleasedWhereGranted,
    /// A node that came back empty counts at once.
    RestartedCountsAtOnce,
    /// An uncounted node is asked nothing either, and has no floor of time: tokens start from one
    /// again.
    RestartedWithoutFloor,
    /// A client's next round has the same owner token, so a late release of the first round ends
    /// the second.
    RoundsShareAToken,
}

/// A server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    /// The round that has the lock, and the remaining ticks of its lease.
    lock: Option<(u8, u8)>,
    /// The fence counter.
    counter: u8,
    /// The node does not count for this many ticks.
    out: u8,
    /// How far its clock is ahead.
    skew: u8,
}

/// A command of a round to one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Way {
    /// Not sent, lost, or no longer of use.
    #[default]
    Gone,
    Sent,
    /// The node has carried it out. Its reply is on its way.
    Done {
        /// The node's proposal for the next token.
        next: u8,
        /// Whether the node's reply counts.
        counts: bool,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    #[default]
    Idle,
    /// The nodes that granted the lock, and the highest token that they proposed.
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
    /// The nodes that answered.
    heard: [bool; NODES],
    /// The highest token of a grant before this round began.
    floor: u8,
    /// Its own token, if it was granted. Without fencing it is 1.
    token: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    nodes: [Node; NODES],
    rounds: Vec<Round>,
    /// The time of the nodes, without their skew.
    now: u8,
    /// The highest token that any round has heard of.
    highest: u8,
    disorder: bool,
    restarts: u8,
    drift: u8,
    /// Whether rounds are distinguishable.
    numbered: bool,
}

/// One step. The first number is the round, or the node if there is no second.
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
    /// Gives up, or has finished.
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
                    // Round 1 belongs to the client of round 0 and comes after it.
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
                // A release is repeated until it has surely come after the take.
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

/// Nodes, and rounds, are interchangeable.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.canonical().hash(hasher);
    }
}
