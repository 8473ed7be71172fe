//! The end of a round, on every server.

use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::backoff;
use lock_store::{Clock, Failure, Instant, Released, Store, StoreError, StoreErrorKind};
use tokio::sync::{mpsc, watch};

use super::ends::{EndReplies, EndWish};
use super::round::{Round, RoundPart};
use super::store::QuorumStore;
use crate::commands::quorum::EndPart;
use crate::store::RedisStore;

impl QuorumStore {
    /// Ends a granted hold. Returns whether it existed, as soon as a majority of the servers has
    /// answered.
    pub(super) async fn end_hold(
        &self,
        round: &Arc<Round>,
        by: Instant,
    ) -> Result<Released, Failure> {
        let replies = self.end_everywhere(round, true, None, by);
        self.decide_end(round, replies, by).await
    }

    /// Decides from the replies whether the hold existed.
    pub(super) async fn decide_end(
        &self,
        round: &Arc<Round>,
        mut replies: EndReplies,
        by: Instant,
    ) -> Result<Released, Failure> {
        let servers = self.nodes.len();
        let (mut heard, mut answered) = (vec![false; servers], 0);
        // A server that has not answered is assumed to still have what it reported before.
        let mut has: Vec<bool> = (0..servers)
            .map(|at| round.part(at) == RoundPart::Has)
            .collect();
        let mut failures = Vec::new();
        let collect = async {
            while let Some((at, reply)) = replies.recv().await {
                heard[at] = true;
                match reply {
                    Ok(released) => {
                        answered += 1;
                        has[at] = released == Released::Released;
                    }
                    Err(error) => failures.push((at, error)),
                }
                // Servers that may have it, and can still report it.
                let more = (0..servers)
                    .filter(|at| !heard[*at] && !has[*at] && round.part(*at) != RoundPart::HasNot);
                let held = has.iter().filter(|has| **has).count();
                let is_known = held >= self.majority() || held + more.count() < self.majority();
                if answered >= self.majority() && is_known {
                    return;
                }
            }
        };
        let _ = self.clock.by(by, collect).await;
        if answered < self.majority() {
            let silent =
                || StoreError::new(StoreErrorKind::Timeout, "the command was not answered");
            let unheard = (0..servers).filter(|at| !heard[*at]);
            failures.extend(unheard.map(|at| (at, silent())));
            return self.too_few(&failures);
        }
        let held = has.iter().filter(|has| **has).count();
        Ok(Released::of(held >= self.majority()))
    }

    /// Ends what a round without a grant may have. Returns when a majority does not have it any
    /// more.
    pub(super) async fn undo(&self, round: &Arc<Round>, by: Instant) -> Released {
        let mut replies = self.end_everywhere(round, false, None, by);
        let (mut ended, mut answered) = (Released::NotHeld, 0);
        let collect = async {
            while answered < self.majority()
                && let Some((_, reply)) = replies.recv().await
            {
                answered += usize::from(reply.is_ok());
                if let Ok(Released::Released) = reply {
                    ended = Released::Released;
                }
            }
        };
        let _ = self.clock.by(by, collect).await;
        ended
    }

    /// Waits until every end of a round that is under way has come to an end. Servers that can't be
    /// reached are not waited for.
    pub(super) async fn wait_for_all_ends(&self, by: Instant) {
        let mut ending = self.ending.subscribe();
        let has_ended = |ending: &Vec<usize>| {
            let mut all = self.nodes.iter().zip(ending);
            all.all(|(node, ending)| *ending == 0 || !node.servers.is_up())
        };
        let _ = self.clock.by(by, ending.wait_for(has_ended)).await;
    }

    /// Ends a round on every server, even if nothing listens. Each server is asked until it has
    /// surely done it or the round's time is over. With `tells_waiters`, servers that do not have
    /// it are asked as well, so that they tell waiting clients that the lock is free. However
    /// often this is called, one task asks each server.
    pub(super) fn end_everywhere(
        &self,
        round: &Arc<Round>,
        tells_waiters: bool,
        keep_until: Option<Instant>,
        by: Instant,
    ) -> EndReplies {
        round.end();
        let (sender, replies) = mpsc::unbounded_channel();
        for (at, node) in self.nodes.iter().enumerate() {
            let wish = EndWish {
                tells_waiters,
                keep_until,
                by: Some(by),
            };
            if round.ends.ask(at, wish, sender.clone()) {
                self.ending.send_modify(|ending| ending[at] += 1);
                let ending = PartEnding {
                    ending: self.ending.clone(),
                    node: Arc::clone(node),
                    at,
                    round: Arc::clone(round),
                    clock: self.clock.clone(),
                    command_timeout: self.command_timeout,
                };
                self.clock.spawn(ending.run());
            }
        }
        replies
    }
}

/// The end of a round on one server.
struct PartEnding {
    ending: watch::Sender<Vec<usize>>,
    node: Arc<RedisStore>,
    at: usize,
    round: Arc<Round>,
    clock: Clock,
    command_timeout: Duration,
}

impl Drop for PartEnding {
    fn drop(&mut self) {
        self.ending.send_modify(|ending| ending[self.at] -= 1);
    }
}

impl PartEnding {
    async fn run(self) {
        // Wait until the take was answered or its time has passed: it could still be on its way to
        // the server.
        let part = self.round.wait_for_reply(self.at).await;
        let ends = &self.round.ends;
        let (mut tries, mut told) = (0, false);
        loop {
            let wish = ends.wish(self.at);
            if part == RoundPart::HasNot && !wish.tells_waiters {
                return ends.record(self.at, &Ok(Released::NotHeld), false, true);
            }
            let sent = self.clock.now();
            let keep = wish.keep_until.map_or(Duration::ZERO, |until| {
                until.saturating_duration_since(sent)
            });
            let end = EndPart {
                key: self.round.key.clone(),
                owner: self.round.owner,
                keep,
                // Tell waiting clients only once.
                tell: wish.tells_waiters && !told,
            };
            told = true;
            let by = wish.by.unwrap_or(sent + self.command_timeout);
            let result = self.node.end(&end, by.max(sent)).await;
            let is_sure = match (&result, part) {
                (_, RoundPart::HasNot) => true,
                (Ok(answer), RoundPart::Unknown(link)) => answer.link == link,
                (Ok(_), _) => true,
                (Err(_), _) => false,
            };
            let has_ended = is_sure || sent >= self.round.until() || self.node.is_closed();
            let reply = result.map(|answer| answer.value);
            let reply = reply.map_err(|failure| failure.error);
            // Register before any listener is told: it may then ask once more.
            let again = ends.again.notified();
            ends.record(self.at, &reply, is_sure, has_ended);
            if has_ended {
                return;
            }
            // Try once more at the very end. After that, a late command counts as lost.
            let now = self.clock.now();
            tries += 1;
            let next = self.round.until().max(now).min(now + backoff(tries));
            let _ = self.clock.by(next, again).await;
        }
    }
}
