//! Count-down latches in Redis: a hash for each latch, a sorted set of its waiters, and for two
//! minutes one string for each call.

use std::time::Duration;

use lock_store::timing::{CALL_REMEMBERED, QUEUE_TTL};
use lock_store::{
    Failure, Instant, LatchCall, LatchCounted, LatchFound, LatchSet, LatchState, LockKey, Owner,
    Replied,
};

use crate::names::LatchNames;
use crate::resp::Command;
use crate::scripts::{self, Text};
use crate::store::RedisStore;
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, WrongType, millis, remaining};

impl RedisStore {
    pub(crate) async fn set_latch(
        &self,
        call: LatchCall,
        count: u32,
        ttl: Duration,
        by: Instant,
    ) -> Replied<LatchSet> {
        let set = |command: &mut Command| {
            command.arg(count).arg(millis(ttl));
        };
        let answer = self
            .count_latch(&call, by, &scripts::LATCH_SET, set)
            .await?;
        Ok(answer.map(|set| match set {
            Ok(now) if now < 0 => LatchSet::Untimely {
                now: now.unsigned_abs(),
            },
            Ok(0) => LatchSet::SetBefore,
            Ok(_) => LatchSet::Set,
            Err(WrongType) => LatchSet::Conflict,
        }))
    }

    pub(crate) async fn count_down_latch(
        &self,
        call: LatchCall,
        by: Instant,
    ) -> Replied<LatchCounted> {
        let count_down = |command: &mut Command| {
            command.add_text(self.channel_prefix(&call.key));
        };
        let script = &scripts::LATCH_COUNT_DOWN;
        let answer = self.count_latch(&call, by, script, count_down).await?;
        Ok(answer.map(|left| match left {
            Ok(now) if now < -1 => LatchCounted::Untimely {
                now: now.unsigned_abs(),
            },
            Ok(left) => u32::try_from(left).map_or(LatchCounted::NotSet, LatchCounted::Left),
            Err(WrongType) => LatchCounted::Conflict,
        }))
    }

    pub(crate) async fn look_at_latch(&self, key: LockKey, by: Instant) -> Replied<LatchFound> {
        self.read_latch(&key, None, by).await
    }

    pub(crate) async fn wait_at_latch(&self, place: LatchCall, by: Instant) -> Replied<LatchFound> {
        self.read_latch(&place.key, Some(place.owner), by).await
    }

    /// Reads the latch. An owner gets a place among the waiters, unless the latch is open.
    async fn read_latch(
        &self,
        key: &LockKey,
        place: Option<Owner>,
        by: Instant,
    ) -> Replied<LatchFound> {
        let channel = place.is_some().then(|| self.channel(key));
        let look = Request::script(self.form(&scripts::LATCH_LOOK), |command| {
            keys(command, self.namespace.latch(key, place));
            let place = place.map(|owner| owner.to_string());
            command
                .arg(place.unwrap_or_default())
                .arg(millis(QUEUE_TTL));
        });
        let look = look.listening(channel);
        let answer: Reply<(i64, String, String, i64)> = self.call(key, by, &look).await?;
        Ok(answer.map(|found| {
            let Ok((count, generation, opened, pttl)) = found else {
                return LatchFound::Conflict;
            };
            let Ok(count) = u32::try_from(count) else {
                return LatchFound::NotSet;
            };
            let (Ok(generation), Ok(opened)) = (generation.parse(), opened.parse()) else {
                return LatchFound::Conflict;
            };
            let mut latch = LatchState::new(count, generation);
            latch.opened = opened;
            latch.remaining = remaining(pttl);
            LatchFound::Is(latch)
        }))
    }

    pub(crate) async fn leave_latch(&self, place: LatchCall, by: Instant) -> Replied<()> {
        let names = self.namespace.latch(&place.key, Some(place.owner));
        let mut leave = Command::new("ZREM");
        leave.arg(names.waiters).arg(place.owner.to_string());
        let leave = Request::command(leave);
        let answer: Reply<i64> = self.call(&place.key, by, &leave).await?;
        Ok(answer.map(drop))
    }

    /// Runs a script that replies with a number.
    async fn count_latch(
        &self,
        call: &LatchCall,
        by: Instant,
        script: &'static Text,
        arguments: impl FnOnce(&mut Command),
    ) -> Result<Reply<i64>, Failure> {
        let names = self.namespace.latch(&call.key, Some(call.owner));
        let count = Request::script(self.form(script), |command| {
            keys(command, names);
            let valid = call.valid();
            command.arg(*valid.start()).arg(*valid.end());
            command.arg(millis(CALL_REMEMBERED));
            arguments(command);
        });
        self.call(&call.key, by, &count).await
    }
}

fn keys(command: &mut Command, names: LatchNames) {
    command.arg(3);
    command.arg(names.latch).arg(names.waiters).arg(names.call);
}
