//! Count-down latches in Redis: a hash for each, a sorted set of who waits, and for a minute one string for each call.

use std::time::Instant;

use lock_store::timing::{CALL_REMEMBERED, QUEUE_TTL};
use lock_store::{Answer, Failure, LatchRequest, LatchState, LatchVerb, Latched};
use redis::Cmd;

use crate::names::LatchNames;
use crate::scripts::{self, Text};
use crate::store::RedisStore;
use crate::transport::request::Request;
use crate::wire::{Reply, WrongType, millis, remaining};

impl RedisStore {
    pub(crate) async fn latch_now(
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
                let answer = self.latch_count(request, by, &scripts::LATCH_SET, names, set);
                map(answer.await?, |set| Latched::Set(set == 1))
            }
            LatchVerb::CountDown => {
                let count_down = |command: &mut Cmd| {
                    command.arg(millis(CALL_REMEMBERED));
                    command.arg(self.channels(&request.key));
                };
                let answer =
                    self.latch_count(request, by, &scripts::LATCH_COUNT_DOWN, names, count_down);
                map(answer.await?, |left| {
                    u32::try_from(left).map_or(Latched::NotSet, Latched::Counted)
                })
            }
            LatchVerb::Look => self.latch_look(request, by, names, None).await?,
            LatchVerb::Wait => self.latch_look(request, by, names, Some(owner)).await?,
            LatchVerb::Leave => {
                let mut leave = redis::cmd("ZREM");
                leave.arg(names.waiters).arg(owner);
                let answer: Reply<i64> = self
                    .call(&request.key, by, &Request::command(leave))
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
        request: &LatchRequest,
        by: Instant,
        script: &'static Text,
        names: LatchNames,
        arguments: impl FnOnce(&mut Cmd),
    ) -> Result<Reply<i64>, Failure> {
        let count = Request::script(self.form(script), |command| {
            keys(command, names);
            arguments(command);
        });
        self.call(&request.key, by, &count).await
    }

    async fn latch_look(
        &self,
        request: &LatchRequest,
        by: Instant,
        names: LatchNames,
        place: Option<String>,
    ) -> Result<Answer<Result<Latched, WrongType>>, Failure> {
        let channel = place.is_some().then(|| self.channel(&request.key));
        let look = Request::script(self.form(&scripts::LATCH_LOOK), |command| {
            keys(command, names);
            command
                .arg(place.unwrap_or_default())
                .arg(millis(QUEUE_TTL));
        });
        let look = look.listening(channel);
        let answer: Reply<(i64, String, String, i64)> = self.call(&request.key, by, &look).await?;
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
