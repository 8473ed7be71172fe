//! Mutual exclusion: no two holds at once that exclude each other.

use super::attempts::{Attempt, BelievedHold, History};
use super::disturbance::excuses_overlap;
use super::{Check, Disturbance, Effect, Violation};

impl History {
    /// Every hold that began while other processes believed that they held what it took. Keys are
    /// checked one by one: exclusive locks, readers and writers, permits, and each key of several.
    /// A killed process holds nothing, whatever it believed: some stores see its death at once.
    #[must_use]
    pub fn overlaps(&self, disturbances: &[Disturbance]) -> Vec<Violation> {
        let mut found = Vec::new();
        for (key, attempts) in self.by_key() {
            let died = |process| {
                let killed = Effect::Killed { process };
                let mut killed = disturbances.iter().filter(|one| one.effect == killed);
                killed.next().map_or(u64::MAX, |killed| killed.from)
            };
            let holds = attempts
                .into_iter()
                .filter_map(|attempt| Some((attempt.hold?, attempt)))
                .map(|(hold, by)| {
                    let to = hold.to.min(died(by.process));
                    (BelievedHold { to, ..hold }, by)
                })
                .filter(|(hold, _)| hold.from < hold.to);
            let mut holds: Vec<_> = holds.collect();
            holds.sort_by_key(|(hold, _)| hold.from);
            let mut active: Vec<&(BelievedHold, &Attempt)> = Vec::new();
            for next in &holds {
                let (hold, attempt) = next;
                active.retain(|(earlier, _)| hold.from < earlier.to);
                active.push(next);
                let shares = active.iter().map(|(_, attempt)| attempt.kind.share());
                let taken: u64 = shares.clone().map(|(take, _)| take).sum();
                let there = shares.map(|(_, of)| of).min().unwrap_or(0);
                if taken <= there {
                    continue;
                }
                let since = active.iter().map(|(_, attempt)| attempt.asked).min();
                let since = since.unwrap_or(hold.from);
                found.push(Violation {
                    check: Check::Exclusion,
                    in_model: !excuses_overlap(disturbances, since, hold.from),
                    text: format!(
                        "{key} at {}: {}",
                        hold.from,
                        active
                            .iter()
                            .map(|(hold, by)| described(by, hold.from, hold.to))
                            .collect::<Vec<_>>()
                            .join(", ")
                    ),
                });
                // Report each once: later holds are compared with those that were there before.
                if active.len() > 1 {
                    active.retain(|(_, other)| !std::ptr::eq(*other, *attempt));
                }
            }
        }
        found
    }
}

fn described(attempt: &Attempt, from: u64, to: u64) -> String {
    let token = attempt
        .token
        .map_or(String::new(), |token| format!(" token {token}"));
    format!(
        "process {} attempt {} {}{token} from {from} to {to}",
        attempt.process, attempt.number, attempt.kind
    )
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::attempts::by_hand::{Line, attempt, history};
    use super::*;

    const READ: Kind = Kind::Read;
    const WRITE: Kind = Kind::Write;
    const ONE: Kind = Kind::Exclusive;

    fn permits(take: u32) -> Kind {
        Kind::Permits { take, of: 3 }
    }

    fn hold(process: u32, kind: Kind, from: u64, to: u64) -> Line {
        attempt(process, 0, "k", kind)
            .asked(from - 5, from + 100)
            .granted(from, None, to + 50)
            .released(to)
    }

    fn overlaps(lines: impl IntoIterator<Item = Line>) -> Vec<Violation> {
        history(lines).overlaps(&[])
    }

    #[test]
    fn holders_one_after_the_other_are_fine() {
        assert_eq!(overlaps([hold(1, ONE, 10, 20), hold(2, ONE, 20, 30)]), []);
        assert_eq!(
            overlaps([
                hold(1, READ, 10, 30),
                hold(2, READ, 20, 40),
                hold(3, WRITE, 40, 50)
            ]),
            []
        );
        assert_eq!(
            overlaps([
                hold(1, permits(2), 10, 30),
                hold(2, permits(1), 15, 40),
                hold(3, permits(2), 30, 50)
            ]),
            []
        );
    }

    #[test]
    fn two_holders_at_once_are_found() {
        for [one, two] in [
            [ONE, ONE],
            [READ, WRITE],
            [WRITE, READ],
            [WRITE, WRITE],
            [permits(2), permits(2)],
            [ONE, permits(1)],
        ] {
            let found = overlaps([hold(1, one, 10, 30), hold(2, two, 29, 40)]);
            assert_eq!(found.len(), 1, "{one} {two}: {found:?}");
            assert_eq!(found[0].check, Check::Exclusion);
            assert!(found[0].in_model);
        }
    }

    #[test]
    fn a_process_holds_until_it_is_killed() {
        let killed = |process, from| Disturbance {
            from,
            to: 60,
            effect: Effect::Killed { process },
        };
        let holds = || history([hold(1, ONE, 10, 30), hold(2, ONE, 20, 40)]);
        assert_eq!(holds().overlaps(&[killed(1, 20)]), []);
        assert_eq!(holds().overlaps(&[killed(1, 21)]).len(), 1);
        assert_eq!(holds().overlaps(&[killed(2, 21)]).len(), 1);
    }

    #[test]
    fn each_key_of_several_counts_and_each_alone() {
        let several = |key: &str| {
            attempt(1, 7, key, ONE)
                .asked(5, 100)
                .granted(10, None, 60)
                .released(30)
        };
        let other = |key: &str| {
            attempt(2, 8, key, ONE)
                .asked(5, 100)
                .granted(20, None, 60)
                .released(25)
        };
        assert_eq!(overlaps([several("a"), several("b"), other("c")]), []);
        assert_eq!(overlaps([several("a"), several("b"), other("b")]).len(), 1);
    }

    #[test]
    fn a_process_that_stopped_or_died_holds_until_its_own_deadline() {
        let silent = |deadline| {
            attempt(1, 0, "k", ONE)
                .asked(1, 100)
                .granted(10, None, 20)
                .work(15, deadline)
        };
        assert_eq!(overlaps([silent(30), hold(2, ONE, 30, 40)]), []);
        assert_eq!(overlaps([silent(31), hold(2, ONE, 30, 40)]).len(), 1);
        // The process woke up, saw that its time was over, and stopped.
        assert_eq!(overlaps([silent(30).lost(90), hold(2, ONE, 30, 40)]), []);
        // The process continued to work.
        assert_eq!(
            overlaps([silent(30).work(35, 30), hold(2, ONE, 30, 40)]).len(),
            1
        );
    }

    #[test]
    fn a_hold_ends_when_its_loss_is_known() {
        let line = || attempt(1, 0, "k", ONE).asked(1, 100).granted(10, None, 90);
        assert_eq!(overlaps([line().lost(30), hold(2, ONE, 30, 40)]), []);
        assert_eq!(overlaps([line().lost(31), hold(2, ONE, 30, 40)]).len(), 1);
    }

    #[test]
    fn only_what_lies_in_between_is_an_excuse() {
        let both = || [hold(1, ONE, 10, 30), hold(2, ONE, 20, 40)];
        let during = |from, to, effect| {
            let disturbance = Disturbance { from, to, effect };
            history(both()).overlaps(&[disturbance])[0].in_model
        };
        for effect in [Effect::DataLost, Effect::ClockMoved] {
            assert!(!during(12, 14, effect));
            assert!(during(1, 4, effect));
            assert!(during(21, 25, effect));
        }
        for effect in [Effect::Stopped { process: 1 }, Effect::Other] {
            assert!(during(12, 14, effect));
        }
    }
}
