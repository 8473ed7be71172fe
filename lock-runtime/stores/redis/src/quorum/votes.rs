//! The outcome of the single servers' replies.

use std::collections::HashMap;
use std::time::Duration;

use lock_store::{Failure, Holder, StoreError, StoreErrorKind};

use super::majority::{majority, too_few};
use crate::commands::quorum::QuorumTaken;
use crate::errors;
use crate::topology::members::Members;

/// The replies to one round, so far.
#[derive(Debug)]
pub(super) struct Votes {
    servers: usize,
    /// Grants of servers that count, and the highest token that they propose.
    granted: usize,
    highest: u64,
    /// Grants of servers that were restarted recently.
    uncounted: usize,
    /// The other owners with the number of their parts, and how long each part lasts.
    holders: HashMap<String, usize>,
    remaining: Vec<Option<Duration>>,
    /// Those on which the key is no lock.
    conflicts: Vec<usize>,
    failures: Vec<(usize, StoreError)>,
}

/// The outcome of a round.
#[derive(Debug)]
pub(super) enum QuorumVerdict {
    Granted {
        highest: u64,
    },
    /// Another owner has the lock.
    Busy {
        remaining: Option<Duration>,
        holder: Option<Holder>,
    },
    /// Another owner has parts. They are a majority only together with servers that did not answer
    /// or do not count.
    Perhaps {
        holder: String,
        remaining: Option<Duration>,
    },
    /// Several owners have parts, and none has a majority.
    Split,
    Conflict,
    Failed(StoreError),
}

impl Votes {
    pub(super) fn new(servers: usize) -> Self {
        Self {
            servers,
            granted: 0,
            highest: 0,
            uncounted: 0,
            holders: HashMap::new(),
            remaining: Vec::new(),
            conflicts: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, at: usize, reply: Result<QuorumTaken, Failure>) {
        match reply {
            Ok(QuorumTaken::Granted { next, counts: true }) => {
                self.granted += 1;
                self.highest = self.highest.max(next.unwrap_or(0));
            }
            Ok(QuorumTaken::Granted { counts: false, .. }) => self.uncounted += 1,
            Ok(QuorumTaken::Held { by, remaining }) => {
                *self.holders.entry(by).or_default() += 1;
                self.remaining.push(remaining);
            }
            Ok(QuorumTaken::Conflict) => {
                self.conflicts.push(at);
                self.remaining.push(None);
            }
            Err(failure) => self.failures.push((at, failure.error)),
        }
    }

    /// The outcome of the replies so far, whatever the missing replies will be. `None` if it
    /// depends on them. Servers that can't be reached now are waited for only if the others are too
    /// few.
    pub(super) fn verdict(&self, members: &Members, unreachable: usize) -> Option<QuorumVerdict> {
        let enough = majority(self.servers);
        if self.granted >= enough {
            let highest = self.highest;
            return Some(QuorumVerdict::Granted { highest });
        }
        // If a server never was what the URL says, no majority is the intended one. A server that
        // was, and no longer is, counts as failed.
        let wrong = |(at, error): &&(usize, StoreError)| {
            error.kind() == StoreErrorKind::Misconfigured && !members.is_known(*at)
        };
        if let Some((at, error)) = self.failures.iter().find(wrong) {
            return Some(QuorumVerdict::Failed(error.of(members.name(*at))));
        }
        // The others are too few, whatever they say.
        if self.conflicts.len() > self.servers - enough {
            return Some(QuorumVerdict::Conflict);
        }
        if self.failures.len() > self.servers - enough {
            return Some(QuorumVerdict::Failed(self.error(members)));
        }
        let held = self.remaining.len();
        let answered = self.granted + self.uncounted + held;
        let unheard = self.servers - answered - self.failures.len();
        let pending = unheard.saturating_sub(unreachable);
        if self.granted + pending >= enough || answered < enough {
            return None;
        }
        // No other owner has enough parts.
        if held == 0 || self.granted + self.uncounted >= enough {
            return Some(QuorumVerdict::Failed(self.error(members)));
        }
        // Nobody is known to have a part, so nothing is busy: keys that are no locks and servers
        // that are down leave no majority together.
        if self.holders.is_empty() {
            return (unheard == 0).then(|| QuorumVerdict::Failed(self.error(members)));
        }
        let remaining = self.free_in(enough - self.granted);
        let most = self.holders.iter().max_by_key(|(_, parts)| **parts);
        let (holder, most) = most.map_or(("", 0), |(holder, parts)| (holder.as_str(), *parts));
        if most >= enough || !self.conflicts.is_empty() {
            let holder = Some(Holder::parse(holder.as_bytes()));
            return Some(QuorumVerdict::Busy { remaining, holder });
        }
        // Also if one of several owners could have a majority with servers that did not answer:
        // asking again soon costs little.
        let perhaps = self.servers - self.granted - held;
        if self.holders.len() > 1 || most + perhaps < enough {
            return Some(QuorumVerdict::Split);
        }
        let holder = holder.to_owned();
        Some(QuorumVerdict::Perhaps { holder, remaining })
    }

    /// The time until this many more parts could be free, if servers that reported no time are free
    /// now.
    fn free_in(&self, more: usize) -> Option<Duration> {
        let mut remaining: Vec<_> = self.remaining.iter().flatten().copied().collect();
        remaining.sort_unstable();
        let others = self.servers - self.granted - self.remaining.len();
        remaining.get(more.saturating_sub(others + 1)).copied()
    }

    fn error(&self, members: &Members) -> StoreError {
        if self.granted + self.uncounted >= majority(self.servers) {
            let text = format!(
                "{} or more of {} servers were started less than {:?} ago and do not count \
                 yet, since they may have forgotten what they granted; `?rejoin_after=…` in the \
                 URL sets this time (`0s` for servers that write every change to disk)",
                self.uncounted,
                self.servers,
                members.rejoin_after()
            );
            return StoreError::new(StoreErrorKind::Loading, text);
        }
        let error = too_few(members, self.servers, &self.failures);
        if self.conflicts.is_empty() {
            return error;
        }
        let names = self.conflicts.iter().map(|at| members.name(*at));
        let names = names.collect::<Vec<_>>().join(", ");
        let text = format!("{}; on {names} the key is no lock", error.detail());
        errors::advised(StoreError::new(error.kind(), text))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use lock_store::Clock;

    fn members(servers: usize) -> Arc<Members> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let Ok(runtime) = runtime else {
            panic!("no runtime");
        };
        let names = (1..=servers).map(|at| format!("h{at}")).collect();
        let rejoin_after = Duration::from_secs(60);
        Members::new(names, rejoin_after, Clock::new(runtime.handle().clone()))
    }

    fn granted(next: u64) -> Result<QuorumTaken, Failure> {
        let (next, counts) = (Some(next), true);
        Ok(QuorumTaken::Granted { next, counts })
    }

    fn restarted() -> Result<QuorumTaken, Failure> {
        let (next, counts) = (Some(99), false);
        Ok(QuorumTaken::Granted { next, counts })
    }

    fn held(by: &str, seconds: u64) -> Result<QuorumTaken, Failure> {
        Ok(QuorumTaken::Held {
            by: by.to_owned(),
            remaining: Some(Duration::from_secs(seconds)),
        })
    }

    /// The verdict in its `Debug` form.
    fn busy(by: &str, seconds: u64) -> String {
        let remaining = Some(Duration::from_secs(seconds));
        let holder = Some(Holder::parse(by.as_bytes()));
        format!("{:?}", QuorumVerdict::Busy { remaining, holder })
    }

    fn failed(kind: StoreErrorKind) -> Result<QuorumTaken, Failure> {
        Err(Failure::without_effect(StoreError::new(kind, "x")))
    }

    /// The verdict of this many servers, and the number of replies that it took.
    fn verdict(servers: usize, replies: Vec<Result<QuorumTaken, Failure>>) -> (usize, String) {
        let (members, mut votes) = (members(servers), Votes::new(servers));
        for (at, reply) in replies.into_iter().enumerate() {
            votes.add(at, reply);
            if let Some(verdict) = votes.verdict(&members, 0) {
                return (at + 1, format!("{verdict:?}"));
            }
        }
        (0, String::new())
    }

    use StoreErrorKind::{Denied, Disconnected, Misconfigured, Timeout};

    #[test]
    fn a_majority_decides_and_nobody_waits_for_the_others() {
        let (after, said) = verdict(5, vec![granted(3), held("x", 1), granted(9), granted(4)]);
        assert_eq!((after, said.as_str()), (4, "Granted { highest: 9 }"));
        let (after, said) = verdict(5, vec![held("x", 3), held("x", 9), held("x", 5)]);
        assert_eq!(after, 3);
        assert_eq!(said, busy("x", 3));
        let gone = || failed(Disconnected);
        let (after, said) = verdict(5, vec![gone(), gone(), gone()]);
        assert!(
            after == 3 && said.contains("Disconnected"),
            "{after} {said}"
        );
    }

    #[test]
    fn a_split_vote_is_told_from_a_lock_that_somebody_may_have() {
        let split = vec![held("x", 1), held("y", 1), granted(1)];
        assert_eq!(verdict(3, split), (2, "Split".to_owned()));
        let alone = vec![
            held("x", 1),
            granted(1),
            granted(1),
            held("y", 1),
            held("y", 1),
        ];
        assert_eq!(verdict(5, alone), (5, "Split".to_owned()));
        let somebody = vec![held("x", 1), held("y", 1), held("y", 1), held("y", 1)];
        assert_eq!(verdict(5, somebody).0, 3);
    }

    #[test]
    fn a_part_and_a_silent_server_are_no_majority() {
        let perhaps = vec![held("x", 1), failed(Timeout), granted(1)];
        let (after, said) = verdict(3, perhaps);
        assert_eq!(after, 3);
        assert_eq!(
            said,
            "Perhaps { holder: \"x\", remaining: Some(1s) }".to_owned()
        );
        let known = vec![failed(Timeout), held("x", 1), held("x", 2)];
        assert_eq!(verdict(3, known).1, busy("x", 1));
    }

    #[test]
    fn who_can_not_be_reached_is_waited_for_only_if_the_others_are_too_few() {
        let (members, mut votes) = (members(3), Votes::new(3));
        votes.add(0, granted(1));
        assert!(votes.verdict(&members, 1).is_none());
        assert!(votes.verdict(&members, 2).is_none());
        votes.add(1, held("x", 1));
        assert!(votes.verdict(&members, 0).is_none());
        let said = votes.verdict(&members, 1);
        assert!(
            matches!(said, Some(QuorumVerdict::Perhaps { .. })),
            "{said:?}"
        );
    }

    #[test]
    fn a_server_that_is_not_what_it_was_counts_as_one_that_failed() {
        let members = members(3);
        let said = |members: &Members| {
            let mut votes = Votes::new(3);
            votes.add(0, granted(1));
            votes.add(2, failed(Misconfigured));
            let wrong = votes.verdict(members, 0);
            votes.add(1, granted(2));
            (wrong, votes.verdict(members, 0))
        };
        // At the start it is reported, whatever the other servers reply.
        let (wrong, _) = said(&members);
        assert!(matches!(wrong, Some(QuorumVerdict::Failed(_))), "{wrong:?}");
        members.note_known(2);
        let (wrong, verdict) = said(&members);
        assert!(wrong.is_none(), "{wrong:?}");
        assert!(matches!(
            verdict,
            Some(QuorumVerdict::Granted { highest: 2 })
        ));
    }

    #[test]
    fn who_refuses_is_told_from_who_does_not_answer_and_a_client_that_is_shut_down_from_both() {
        let (members, error) = (members(3), |kind| StoreError::new(kind, "x"));
        let denied = [(0, error(Denied)), (2, error(StoreErrorKind::OutOfMemory))];
        let said = too_few(&members, 3, &denied).to_string();
        assert!(
            said.contains("2 must answer; 2 refused: h1: x, h3: x"),
            "{said}"
        );
        let said = too_few(&members, 3, &[]).to_string();
        assert!(said.contains("the client was shut down"), "{said}");
    }

    #[test]
    fn a_key_that_is_no_lock_and_a_server_that_is_down_are_never_busy() {
        let conflict = || Ok(QuorumTaken::Conflict);
        let down = || failed(Disconnected);
        for (servers, replies) in [
            (3, vec![granted(1), down(), conflict()]),
            (3, vec![conflict(), granted(1), down()]),
            (5, vec![granted(1), granted(1), conflict(), down(), down()]),
        ] {
            let (_, said) = verdict(servers, replies);
            assert!(said.contains("Disconnected"), "{said}");
            assert!(said.contains("the key is no lock"), "{said}");
        }
        // Two of four are too few, whatever the others say.
        for replies in [
            vec![granted(1), conflict(), granted(1), conflict()],
            vec![down(), granted(1), conflict(), conflict()],
            vec![conflict(), conflict()],
        ] {
            assert_eq!(verdict(4, replies).1, "Conflict");
        }
        // A server that was restarted counts later, and the third may know of a holder.
        let (_, said) = verdict(3, vec![restarted(), conflict(), granted(1)]);
        assert!(said.contains("Loading"), "{said}");
        let (_, said) = verdict(3, vec![restarted(), conflict(), held("x", 1)]);
        assert_eq!(said, busy("x", 1));
        let (members, mut votes) = (members(3), Votes::new(3));
        votes.add(0, granted(1));
        votes.add(1, conflict());
        assert!(votes.verdict(&members, 1).is_none(), "it will have failed");
    }

    #[test]
    fn servers_that_were_restarted_neither_grant_nor_propose() {
        let (_, said) = verdict(3, vec![restarted(), granted(1), granted(2)]);
        assert_eq!(said, "Granted { highest: 2 }");
        let (_, said) = verdict(3, vec![granted(1), held("x", 1), restarted()]);
        assert!(said.contains("Loading"), "{said}");
        let (after, said) = verdict(3, vec![restarted(), restarted()]);
        assert!(
            after == 2 && said.contains("Loading") && said.contains("2 or more of 3 servers"),
            "{said}"
        );
    }

    #[test]
    fn too_few_answers_are_never_busy_and_what_lasts_is_told_if_it_decides() {
        let (_, said) = verdict(3, vec![held("x", 1), failed(Timeout), failed(Denied)]);
        assert!(
            said.contains("Timeout")
                && said.contains("2 must answer; 1 did not: h2: x; 1 refused: h3: x"),
            "{said}"
        );
        let (_, said) = verdict(3, vec![failed(Denied), failed(Denied)]);
        assert!(said.contains("Denied"), "{said}");
        let (after, said) = verdict(5, vec![granted(1), failed(Misconfigured)]);
        assert!(after == 2 && said.contains("h2: x"), "{said}");
    }
}
