//! One form for states that differ only in names.

use super::{Node, Phase, Round, State, Way};

impl State {
    /// Two states with the same code are the same up to names. Some states that are the same up to
    /// names get different codes; this costs only time.
    pub(super) fn canonical(&self) -> [u64; 16] {
        let heads = self.rounds.iter().enumerate();
        let heads: Vec<u64> = heads.map(|(at, round)| self.head(at, round)).collect();
        let mut nodes = [0, 1, 2].map(|node| {
            let pack = pack(&self.nodes[node]);
            let ways = self.rounds.iter().zip(&heads).enumerate();
            // Independent of the order of the rounds.
            let sum = ways.fold(0_u64, |sum, (at, (round, head))| {
                sum.wrapping_add(mixed(head ^ (self.code(at, round, node) << 40)))
            });
            (pack, sum, node)
        });
        nodes.sort_unstable();
        let mut form = [0; 16];
        let rest = [
            self.now,
            self.highest,
            u8::from(self.disorder),
            self.restarts,
            self.drift,
        ];
        form[0] = rest.iter().fold(0, |all, one| all << 8 | u64::from(*one));
        for (place, (pack, _, _)) in nodes.iter().enumerate() {
            form[1 + place] = *pack;
        }
        for (at, round) in self.rounds.iter().enumerate() {
            let codes = nodes.iter().fold(0, |all, (_, _, node)| {
                all << 20 | self.code(at, round, *node)
            });
            form[4 + 2 * at] = heads[at];
            form[5 + 2 * at] = codes;
        }
        // There are few rounds, so the simplest sort will do.
        let rounds = self.rounds.len();
        for _ in 1..rounds {
            for at in 1..rounds {
                let (one, two) = (2 + 2 * at, 4 + 2 * at);
                if (form[one], form[one + 1]) > (form[two], form[two + 1]) {
                    form.swap(one, two);
                    form.swap(one + 1, two + 1);
                }
            }
        }
        form
    }

    fn head(&self, at: usize, round: &Round) -> u64 {
        let phase = match round.phase {
            Phase::Idle => [0, 0, 0, 0],
            Phase::Taking {
                left,
                votes,
                highest,
            } => [1, left, votes, highest],
            Phase::Confirming { left, token, votes } => [2, left, votes, token],
            Phase::Holding { left } => [3, left, 0, 0],
            Phase::Ended => [4, 0, 0, 0],
        };
        let number = if self.numbered { at } else { 0 };
        let bytes = phase
            .into_iter()
            .chain([round.floor, round.token, number as u8]);
        bytes.fold(0, |all, one| all << 5 | u64::from(one))
    }

    /// What a round has to do with a node.
    fn code(&self, at: usize, round: &Round, node: usize) -> u64 {
        let holder = self.nodes[node].lock;
        let has = holder.is_some_and(|(owner, _)| usize::from(owner) == at);
        let bits = [round.releases[node], round.heard[node], has];
        let code = way(round.takes[node]) << 7 | way(round.confirms[node]);
        bits.iter()
            .fold(code, |all, bit| all << 1 | u64::from(*bit))
    }
}

fn way(way: Way) -> u64 {
    match way {
        Way::Gone => 0,
        Way::Sent => 1,
        Way::Done { next, counts } => 2 + 2 * u64::from(next) + u64::from(counts),
    }
}

fn pack(node: &Node) -> u64 {
    let left = node.lock.map_or(0, |(_, left)| left);
    let bytes = [left, node.counter, node.out, node.skew];
    bytes.iter().fold(0, |all, one| all << 8 | u64::from(*one))
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ number >> 29
}
