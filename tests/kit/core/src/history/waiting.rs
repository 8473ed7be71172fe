//! No attempt waits for ever.

use std::time::Duration;

use super::attempts::History;
use super::disturbance::stopped_for;
use super::{Check, Disturbance, Effect, Violation};

impl History {
    /// Every attempt that took longer than its time and `slack`. The time in which its process
    /// stood still does not count. Attempts of a killed process may lack their end.
    #[must_use]
    pub fn endless_waits(&self, slack: Duration, disturbances: &[Disturbance]) -> Vec<Violation> {
        let slack = u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX);
        let late = self.attempts().iter().filter_map(|attempt| {
            let process = attempt.process;
            let killed = disturbances
                .iter()
                .find(|disturbance| disturbance.effect == Effect::Killed { process });
            let until = match (attempt.answer, killed) {
                (Some((at, _)), _) => at,
                (None, Some(killed)) => killed.from,
                (None, None) => self.end(),
            };
            let stopped = stopped_for(disturbances, process, attempt.asked, until);
            let by = attempt.by?.saturating_add(slack).saturating_add(stopped);
            (until > by).then(|| Violation {
                check: Check::Waiting,
                in_model: true,
                text: format!(
                    "{}: process {process} attempt {} asked at {} for an answer by {} and had \
                     {:?} at {until}",
                    attempt.key,
                    attempt.number,
                    attempt.asked,
                    by - slack,
                    attempt.answer.map(|(_, outcome)| outcome)
                ),
            })
        });
        late.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempts::by_hand::{Line, attempt, history};
    use super::super::{Kind, Outcome};
    use super::*;

    const SLACK: Duration = Duration::from_nanos(10);

    fn asked() -> Line {
        attempt(1, 0, "k", Kind::Exclusive).asked(100, 200)
    }

    /// An event long after.
    fn later() -> Line {
        attempt(2, 0, "k", Kind::Exclusive).asked(900, 950)
    }

    fn late(line: Line, disturbances: &[Disturbance]) -> usize {
        let history = history([line, later()]);
        history.endless_waits(SLACK, disturbances).len()
    }

    #[test]
    fn an_answer_in_time_is_fine_whatever_it_is() {
        for outcome in [Outcome::Busy, Outcome::Failed, Outcome::Unknown] {
            assert_eq!(late(asked().ended(210, outcome), &[]), 0);
        }
        assert_eq!(late(asked().granted(210, None, 300), &[]), 0);
    }

    #[test]
    fn an_answer_too_late_is_found_and_so_is_none() {
        assert_eq!(late(asked().ended(211, Outcome::Busy), &[]), 1);
        assert_eq!(late(asked().granted(211, None, 300), &[]), 1);
        assert_eq!(late(asked(), &[]), 1);
    }

    #[test]
    fn only_the_time_in_which_its_own_process_stood_still_or_was_dead_does_not_count() {
        let during = |effect| {
            [Disturbance {
                from: 150,
                to: 250,
                effect,
            }]
        };
        let answered = || asked().ended(310, Outcome::Busy);
        assert_eq!(late(answered(), &during(Effect::Stopped { process: 1 })), 0);
        assert_eq!(late(answered(), &during(Effect::Stopped { process: 2 })), 1);
        assert_eq!(late(answered(), &during(Effect::Other)), 1);
        assert_eq!(late(asked(), &during(Effect::Killed { process: 1 })), 0);
        assert_eq!(late(asked(), &during(Effect::Killed { process: 2 })), 1);
    }
}
