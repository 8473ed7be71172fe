//! Count-down latches in Redis: a hash for each, a sorted set of who waits, and for a minute one string for each call.

use std::time::Instant;

use redis::Cmd;

use super::names::LatchNames;
use super::scripts::{self, Text};
use super::{RedisStore, Reply, WrongType, invoke, millis, remaining};
use crate::config::{CALL_REMEMBERED, QUEUE_TTL};
use crate::store::{Answer, Failure, LatchRequest, LatchState, LatchVerb, Latched};

impl RedisStore {
    pub(super) async fn latch_now(
        &self,
        request: &LatchRequest,
        by: Instant,
    ) -> Result<Answer<Latched>, Failure> {
        let names = self.namespace.latch(&request.key, request.owner);
        let owner = request.owner.to_string();
        let Answer { value, link } = match request.verb {
            LatchVerb::Set { count, ttl } => {
                let set = |command: &mut Cmd| {
                    command.arg(count).arg(millis(ttl));
                    command.arg(millis(CALL_REMEMBERED));
                };
                let answer = self.latch_count(by, &scripts::LATCH_SET, names, set);
                map(answer.await?, |set| Latched::Set(set == 1))
            }
            LatchVerb::CountDown => {
                let count_down = |command: &mut Cmd| {
                    command.arg(millis(CALL_REMEMBERED)).arg(&self.channels);
                };
                let answer = self.latch_count(by, &scripts::LATCH_COUNT_DOWN, names, count_down);
                map(answer.await?, |left| {
                    u32::try_from(left).map_or(Latched::NotSet, Latched::Counted)
                })
            }
            LatchVerb::Look => self.latch_look(by, names, None).await?,
            LatchVerb::Wait => self.latch_look(by, names, Some(owner)).await?,
            LatchVerb::Leave => {
                let mut leave = redis::cmd("ZREM");
                leave.arg(names.waiters).arg(owner);
                let answer: Reply<i64> = self
                    .call(by, async |mut up| {
                        leave.query_async(&mut up.connection).await
                    })
                    .await?;
                map(answer, |_| Latched::Left)
            }
        };
        let value = value.unwrap_or(Latched::Conflict);
        Ok(Answer { value, link })
    }

    /// Runs a script that answers with a number.
    async fn latch_count(
        &self,
        by: Instant,
        script: &Text,
        names: LatchNames,
        arguments: impl FnOnce(&mut Cmd),
    ) -> Result<Reply<i64>, Failure> {
        self.call(by, async |mut up| {
            invoke(&mut up, script, |command| {
                keys(command, names);
                arguments(command);
            })
            .await
        })
        .await
    }

    async fn latch_look(
        &self,
        by: Instant,
        names: LatchNames,
        place: Option<String>,
    ) -> Result<Answer<Result<Latched, WrongType>>, Failure> {
        let answer: Reply<(i64, String, String, i64)> = self
            .call(by, async |mut up| {
                if place.is_some() {
                    self.connection.subscribe(&mut up).await?;
                }
                invoke(&mut up, &scripts::LATCH_LOOK, |command| {
                    keys(command, names);
                    command
                        .arg(place.unwrap_or_default())
                        .arg(millis(QUEUE_TTL));
                })
                .await
            })
            .await?;
        let value = answer.value.and_then(|(count, generation, opened, pttl)| {
            let Ok(count) = u32::try_from(count) else {
                return Ok(Latched::NotSet);
            };
            let (Ok(generation), Ok(opened)) = (generation.parse(), opened.parse()) else {
                return Err(WrongType);
            };
            let remaining = remaining(pttl);
            Ok(Latched::Is(LatchState {
                count,
                generation,
                opened,
                remaining,
            }))
        });
        let link = answer.link;
        Ok(Answer { value, link })
    }
}

fn keys(command: &mut Cmd, names: LatchNames) {
    command.arg(3);
    command.arg(names.latch).arg(names.waiters).arg(names.call);
}

fn map<T, U>(answer: Reply<T>, value: impl FnOnce(T) -> U) -> Reply<U> {
    Answer {
        value: answer.value.map(value),
        link: answer.link,
    }
}
