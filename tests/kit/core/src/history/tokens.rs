//! Fencing tokens are unique and rise in real time.

use std::collections::HashMap;

use super::attempts::{Attempt, History};
use super::disturbance::excuses_tokens;
use super::{Check, Disturbance, Violation};

impl History {
    /// Every token given twice for a key, and every hold whose token is lower than one granted
    /// before its request.
    #[must_use]
    pub fn token_faults(&self, disturbances: &[Disturbance]) -> Vec<Violation> {
        let mut found = Vec::new();
        for (key, attempts) in self.by_key() {
            let granted = attempts.into_iter().filter_map(|attempt| {
                let (token, (at, _)) = (attempt.token?, attempt.answer?);
                Some((at, token, attempt))
            });
            let mut granted: Vec<(u64, u64, &Attempt)> = granted.collect();
            let mut violation = |from: u64, at: u64, text: String| {
                found.push(Violation {
                    check: Check::TokenOrder,
                    in_model: !excuses_tokens(disturbances, from, at),
                    text: format!("{key} at {at}: {text}"),
                });
            };
            granted.sort_by_key(|(at, ..)| *at);
            let mut owners = HashMap::new();
            for (at, token, attempt) in &granted {
                if let Some(other) = owners.insert(*token, *attempt) {
                    let since = other.asked.min(attempt.asked);
                    let (one, two) = (other.process, attempt.process);
                    violation(
                        since,
                        *at,
                        format!("token {token} for processes {one} and {two}"),
                    );
                }
            }
            let mut asked = granted.clone();
            asked.sort_by_key(|(.., attempt)| attempt.asked);
            let mut earlier = granted.iter().peekable();
            let mut highest: Option<(u64, u64)> = None;
            for (at, token, attempt) in asked {
                while let Some((_, before, by)) =
                    earlier.next_if(|(granted, ..)| *granted < attempt.asked)
                {
                    highest = highest.max(Some((*before, by.asked)));
                }
                if let Some((highest, since)) = highest.filter(|(highest, _)| *highest > token) {
                    let (process, asked) = (attempt.process, attempt.asked);
                    violation(
                        since,
                        at,
                        format!(
                            "token {token} for process {process}, which asked at {asked}, \
                             after {highest}"
                        ),
                    );
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempts::by_hand::{Line, attempt, history};
    use super::super::{Effect, Kind};
    use super::*;

    fn grant(process: u32, asked: u64, at: u64, token: u64) -> Line {
        attempt(process, 0, "k", Kind::Exclusive)
            .asked(asked, at + 9)
            .granted(at, Some(token), at + 5)
            .released(at + 1)
    }

    fn faults(lines: impl IntoIterator<Item = Line>) -> Vec<Violation> {
        history(lines).token_faults(&[])
    }

    #[test]
    fn tokens_that_rise_are_fine_and_so_are_those_of_attempts_side_by_side() {
        assert_eq!(faults([grant(1, 1, 5, 7), grant(2, 6, 9, 8)]), []);
        // The process that learned of its grant later may still have been first.
        assert_eq!(faults([grant(1, 1, 9, 7), grant(2, 2, 5, 8)]), []);
        let other = attempt(2, 0, "other", Kind::Exclusive);
        let other = other.asked(6, 9).granted(8, Some(7), 20);
        assert_eq!(faults([grant(1, 1, 5, 7), other]), []);
    }

    #[test]
    fn a_token_given_twice_is_found() {
        let found = faults([grant(1, 1, 9, 7), grant(2, 2, 5, 7)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].check, Check::TokenOrder);
    }

    #[test]
    fn a_token_that_falls_is_found() {
        let lines = || [grant(1, 1, 5, 7), grant(2, 6, 9, 6)];
        assert_eq!(faults(lines()).len(), 1);
        let disturbance = |at, effect| Disturbance {
            from: at,
            to: at,
            effect,
        };
        let lost = |at| disturbance(at, Effect::DataLost);
        let moved = disturbance(3, Effect::ClockMoved);
        let in_model =
            |disturbances: &[Disturbance]| history(lines()).token_faults(disturbances)[0].in_model;
        assert!(in_model(&[lost(2)]), "tokens rise without data");
        assert!(
            in_model(&[moved]),
            "tokens rise on a clock that was set back"
        );
        assert!(in_model(&[moved, lost(20)]), "that was later");
        assert!(!in_model(&[lost(2), moved]), "both together are too much");
        assert!(!in_model(&[moved, lost(4)]), "both together are too much");
    }
}
