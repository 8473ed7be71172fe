//! The steps of the nodes and of the clients.

use super::{MAJORITY, Mistake, NODES, Node, Phase, Quorum, Round, State, Time, Way};

impl Quorum {
    pub(super) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(super) fn ticks(&self) -> bool {
        self.time != Time::AnyMoment
    }

    fn lease(&self) -> u8 {
        match self.time {
            Time::AnyMoment => 1,
            Time::Ticks { lease, .. } => lease,
        }
    }

    fn trusted(&self) -> u8 {
        match self.time {
            Time::AnyMoment => 1,
            Time::Ticks { lease, .. } => lease - u8::from(!self.makes(Mistake::NoMargin)),
        }
    }

    /// The owner token of a round.
    pub(super) fn owner(&self, at: usize) -> u8 {
        match self.makes(Mistake::RoundsShareAToken) && at == 1 {
            true => 0,
            false => u8::try_from(at).unwrap_or(u8::MAX),
        }
    }

    pub(super) fn tick(&self, state: &mut State) {
        // More ticks would change no token.
        if self.fenced {
            state.now = (state.now + 1).min(state.highest + 1);
        }
        state.nodes.iter_mut().for_each(Node::tick);
        for at in 0..state.rounds.len() {
            let left = match &mut state.rounds[at].phase {
                Phase::Idle | Phase::Ended => continue,
                Phase::Holding { left } => left,
                _ if self.makes(Mistake::ValidityFromTheReply) => continue,
                Phase::Taking { left, .. } | Phase::Confirming { left, .. } => left,
            };
            *left -= 1;
            if *left == 0 {
                self.end(state, at);
            }
        }
    }

    /// Its data and the commands on their way to it are lost.
    pub(super) fn restart(&self, state: &mut State, at: usize) {
        state.restarts -= 1;
        let node = &mut state.nodes[at];
        (node.lock, node.counter) = (None, 0);
        node.out = match self.makes(Mistake::RestartedCountsAtOnce) {
            true => 0,
            false => self.lease(),
        };
        for round in &mut state.rounds {
            for way in [&mut round.takes[at], &mut round.confirms[at]] {
                if *way == Way::Sent {
                    *way = Way::Gone;
                }
            }
        }
    }

    pub(super) fn ask(&self, state: &mut State, at: usize) {
        let granted = state.rounds.iter().map(|round| round.token);
        let floor = granted.max().unwrap_or(0);
        let round = &mut state.rounds[at];
        round.floor = floor;
        round.takes = [Way::Sent; NODES];
        round.phase = Phase::Taking {
            left: self.trusted(),
            votes: 0,
            highest: 0,
        };
    }

    pub(super) fn take(&self, state: &mut State, at: usize, to: usize) {
        let (owner, time) = (self.owner(at), state.now);
        let node = &mut state.nodes[to];
        let free = node.lock.is_none_or(|(holder, _)| holder == owner);
        state.rounds[at].takes[to] = if free {
            node.lock = Some((owner, self.lease()));
            let floor = match self.makes(Mistake::RestartedWithoutFloor) {
                true => 0,
                false => time + node.skew,
            };
            let next = match self.fenced {
                true => (node.counter + 1).max(floor),
                false => 1,
            };
            if self.makes(Mistake::HighestReplyIsTheToken) {
                node.counter = next;
            }
            let counts = node.out == 0;
            Way::Done { next, counts }
        } else {
            Way::Gone
        };
        state.rounds[at].tidy();
    }

    pub(super) fn hear_take(&self, state: &mut State, at: usize, from: usize) {
        let round = &mut state.rounds[at];
        let Way::Done { next, counts } = std::mem::take(&mut round.takes[from]) else {
            return;
        };
        // Only that mistake depends on this.
        round.heard[from] = self.makes(Mistake::ReleasedWhereGranted);
        let Phase::Taking {
            left,
            votes,
            highest,
        } = &mut round.phase
        else {
            return;
        };
        if !counts {
            return;
        }
        (*votes, *highest) = (*votes + 1, next.max(*highest));
        let (left, votes, token) = (*left, *votes, *highest);
        state.highest = state.highest.max(token);
        if votes < MAJORITY {
            return;
        }
        if !self.fenced || self.makes(Mistake::HighestReplyIsTheToken) {
            self.granted(state, at, left, token);
        } else {
            round.phase = Phase::Confirming {
                left,
                token,
                votes: 0,
            };
            round.confirms = [Way::Sent; NODES];
        }
    }

    pub(super) fn confirm(&self, state: &mut State, at: usize, to: usize) {
        let owner = self.owner(at);
        let token = match state.rounds[at].phase {
            Phase::Confirming { token, .. } => token,
            _ => state.rounds[at].token,
        };
        let node = &mut state.nodes[to];
        let holds = node.lock.is_some_and(|(holder, _)| holder == owner);
        let above = node.counter < token
            || (self.makes(Mistake::ConfirmsTheSameToken) && node.counter == token);
        let confirmed = holds && above;
        if confirmed {
            node.counter = token;
        }
        let counts = node.out == 0;
        let says_yes = confirmed || self.makes(Mistake::BusyCountsAsConfirmed);
        state.rounds[at].confirms[to] = match says_yes {
            true => Way::Done { next: 0, counts },
            false => Way::Gone,
        };
        state.rounds[at].tidy();
    }

    pub(super) fn hear_confirm(&self, state: &mut State, at: usize, from: usize) {
        let round = &mut state.rounds[at];
        let way = std::mem::take(&mut round.confirms[from]);
        let (Way::Done { counts: true, .. }, Phase::Confirming { left, token, votes }) =
            (way, &mut round.phase)
        else {
            return;
        };
        *votes += 1;
        let enough = match self.makes(Mistake::ConfirmedByOne) {
            true => 1,
            false => MAJORITY,
        };
        if *votes >= enough {
            let (left, token) = (*left, *token);
            self.granted(state, at, left, token);
        }
    }

    fn granted(&self, state: &mut State, at: usize, left: u8, token: u8) {
        let mut others = state.rounds.iter().map(|round| round.token);
        // With reliable clocks, tokens follow the order of the grants. Without them, a holder may
        // not know that its time is over; but a request made after a grant gets a higher token.
        let disorder = match self.ticks() {
            true => others.any(|other| other >= token),
            false => token <= state.rounds[at].floor || others.any(|other| other == token),
        };
        state.disorder |= disorder && self.fenced;
        let round = &mut state.rounds[at];
        round.token = token;
        round.phase = Phase::Holding { left };
        round.tidy();
        if !self.ticks() {
            // How long the holder believes is unknown, and its lease may end at any moment anyway.
            round.phase = Phase::Ended;
            round.takes = [Way::Gone; NODES];
        }
    }

    pub(super) fn end(&self, state: &mut State, at: usize) {
        let owner = self.owner(at);
        let has = state
            .nodes
            .map(|node| node.lock.is_some_and(|(holder, _)| holder == owner));
        let round = &mut state.rounds[at];
        round.phase = Phase::Ended;
        round.confirms = [Way::Gone; NODES];
        if !self.ticks() {
            // A late take does nothing that a lost reply would not do.
            round.takes = [Way::Gone; NODES];
            return;
        }
        round.releases = match self.makes(Mistake::ReleasedWhereGranted) {
            true => round.heard,
            false => [true; NODES],
        };
        if !state.numbered {
            // A release changes nothing if there is no hold and none can still come.
            for (node, has) in has.into_iter().enumerate() {
                round.releases[node] &= has || round.takes[node] == Way::Sent;
            }
        }
        round.tidy();
    }

    /// No node keeps the lock of a round that has ended and has nothing on its way there.
    pub(super) fn nothing_left(&self, state: &State) -> bool {
        (0..NODES).all(|node| {
            state.nodes[node].lock.is_none_or(|(owner, _)| {
                let rounds = state.rounds.iter().enumerate();
                let mut of = rounds.filter(|(at, _)| self.owner(*at) == owner);
                of.any(|(_, round)| round.phase != Phase::Ended || round.releases[node])
            })
        })
    }
}

impl Node {
    pub(super) fn tick(&mut self) {
        self.out = self.out.saturating_sub(1);
        self.lock = self
            .lock
            .filter(|(_, left)| *left > 1)
            .map(|(owner, left)| (owner, left - 1));
    }

    pub(super) fn release(&mut self, owner: u8) {
        self.lock = self.lock.filter(|(holder, _)| *holder != owner);
    }
}

impl Round {
    /// Replies that no round listens to make no difference.
    fn tidy(&mut self) {
        let (takes, confirms) = match self.phase {
            Phase::Idle | Phase::Taking { .. } => return,
            Phase::Confirming { .. } => (true, false),
            Phase::Holding { .. } | Phase::Ended => (true, true),
        };
        let done = |way: &mut Way| {
            if matches!(way, Way::Done { .. }) {
                *way = Way::Gone;
            }
        };
        if takes {
            self.takes.iter_mut().for_each(done);
        }
        if confirms {
            self.confirms.iter_mut().for_each(done);
        }
    }
}

impl State {
    pub(super) fn believing(&self) -> usize {
        let believes = |round: &&Round| matches!(round.phase, Phase::Holding { .. });
        self.rounds.iter().filter(believes).count()
    }
}
