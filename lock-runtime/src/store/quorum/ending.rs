//! The end of a round, on every server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::QuorumStore;
use super::round::{Part, Round};
use crate::clock::Clock;
use crate::config::{BACKOFF_MAX, BACKOFF_MIN};
use crate::error::StoreError;
use crate::store::redis::RedisStore;
use crate::store::redis::node::End;
use crate::store::{Failure, Released, Store};

/// What one server said first.
type Reply = Result<Released, StoreError>;

/// What the servers say, each once.
pub(super) type Replies = mpsc::UnboundedReceiver<(usize, Reply)>;

impl QuorumStore {
    /// Ends a hold that was granted, and says whether it was there, as soon as a majority of the servers has answered.
    pub(super) async fn end_hold(
        &self,
        round: &Arc<Round>,
        by: Instant,
    ) -> Result<Released, Failure> {
        let replies = self.end_everywhere(round, true, None, by);
        self.ended(round, replies, by).await
    }

    /// What the answers to the end of a hold come to.
    pub(super) async fn ended(
        &self,
        round: &Arc<Round>,
        mut replies: Replies,
        by: Instant,
    ) -> Result<Released, Failure> {
        let (mut answered, mut lost, mut failures) = (0, 0, Vec::new());
        let collect = async {
            while answered < self.majority()
                && let Some((at, reply)) = replies.recv().await
            {
                match reply {
                    Ok(Released::NotHeld) if round.part(at) == Part::Has => {
                        (answered, lost) = (answered + 1, lost + 1);
                    }
                    Ok(_) => answered += 1,
                    Err(error) => failures.push((at, error)),
                }
            }
        };
        let _ = self.clock.by(by, collect).await;
        if answered < self.majority() {
            return self.too_few(&failures);
        }
        // Of those that have not answered, it is taken for granted that they had it still.
        Ok(match round.held_by() - lost >= self.majority() {
            true => Released::Released,
            false => Released::NotHeld,
        })
    }

    /// Ends what a round that was not granted may have. Returns when a majority does not have it any more.
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

    /// Ends a round on every server, each until it has surely done it or the round's time is over, whoever listens. With
    /// `held`, those are asked as well that do not have it, and tell it to who waits.
    pub(super) fn end_everywhere(
        &self,
        round: &Arc<Round>,
        held: bool,
        keep_until: Option<Instant>,
        by: Instant,
    ) -> Replies {
        let (sender, replies) = mpsc::unbounded_channel();
        for (at, node) in self.nodes.iter().enumerate() {
            let ending = Ending {
                node: Arc::clone(node),
                at,
                round: Arc::clone(round),
                clock: self.clock.clone(),
                command_timeout: self.command_timeout,
                held,
                keep_until,
            };
            self.clock.spawn(ending.run(by, sender.clone()));
        }
        replies
    }
}

/// The end of a round on one server.
struct Ending {
    node: Arc<RedisStore>,
    at: usize,
    round: Arc<Round>,
    clock: Clock,
    command_timeout: Duration,
    held: bool,
    keep_until: Option<Instant>,
}

impl Ending {
    async fn run(self, by: Instant, listener: mpsc::UnboundedSender<(usize, Reply)>) {
        // Not before the question was answered, or its time has passed: it could still be on its way here.
        let part = self.round.settled(self.at).await;
        if part == Part::HasNot && !self.held {
            let _ = listener.send((self.at, Ok(Released::NotHeld)));
            return;
        }
        let mut listener = Some(listener);
        let mut pause = BACKOFF_MIN;
        let mut by = by;
        loop {
            let sent = self.clock.now();
            let keep = self.keep_until.map_or(Duration::ZERO, |until| {
                until.saturating_duration_since(sent)
            });
            let end = End {
                key: self.round.key.clone(),
                owner: self.round.owner,
                keep,
                // A repeat is no news.
                tell: self.held && listener.is_some(),
            };
            let result = self.node.end(&end, by.max(sent)).await;
            let surely = match (&result, part) {
                (_, Part::HasNot) => true,
                (Ok(answer), Part::Unknown(link)) => answer.link == link,
                (Ok(_), _) => true,
                (Err(_), _) => false,
            };
            let over = surely || sent >= self.round.until() || self.node.is_closed();
            if let Some(listener) = listener.take() {
                let reply = result.map(|answer| answer.value);
                let _ = listener.send((self.at, reply.map_err(|failure| failure.error)));
            }
            if over {
                return;
            }
            // Once more at the very end, after which a late command counts as lost.
            let now = self.clock.now();
            let again = self.round.until().max(now).min(now + pause);
            self.clock.sleep_until(again).await;
            pause = (2 * pause).min(BACKOFF_MAX);
            by = self.clock.now() + self.command_timeout;
        }
    }
}
