//! The script that grants several locks at once, or none of them.

use lock_store::{Acquire, AcquiredAll, Answer, Instant, Link, Replied};
use redis::{FromRedisValue, Value};

use super::acquire::{mode, token};
use crate::scripts;
use crate::store::RedisStore;
use crate::wire::{Reply, millis};

impl RedisStore {
    pub(crate) async fn acquire_together(
        &self,
        requests: Vec<Acquire>,
        by: Instant,
    ) -> Replied<AcquiredAll> {
        let Some(first) = requests.first() else {
            return Ok(Answer::new(
                AcquiredAll::granted(Vec::new()),
                self.servers.link(),
            ));
        };
        let key = &first.claim.key;
        let keys = requests.iter().map(|request| &request.claim.key);
        if !self.is_together(keys.clone()) {
            return Ok(Answer::new(AcquiredAll::Apart, Link::SEVERAL));
        }
        for request in &requests {
            self.leave_alone(&request.claim.key, request.lease, by)
                .await;
        }
        let reply: Reply<Vec<Value>> = self
            .run_script(by, &scripts::ACQUIRE_ALL, keys, |command| {
                command
                    .arg(millis(first.lease))
                    .arg(first.tokens)
                    .arg(mode(first.queue))
                    .add_text(self.channel_prefix(key));
                for request in &requests {
                    command.add_text(request.claim.owner);
                }
            })
            .await?;
        let answer = reply.map(|value| value.map_or(AcquiredAll::Conflict(0), acquired_all));
        if let AcquiredAll::Granted { .. } = answer.value {
            self.confirm(requests.iter(), answer.link, by).await?;
        }
        Ok(answer)
    }
}

fn acquired_all(reply: Vec<Value>) -> AcquiredAll {
    let mut reply = reply.into_iter();
    let outcome = reply.next();
    if outcome == Some(Value::Int(1)) {
        return AcquiredAll::granted(reply.map(token).collect());
    }
    // Lua counts from one.
    let at = reply.next().and_then(|at| usize::from_redis_value(at).ok());
    let at = at.unwrap_or(1).saturating_sub(1);
    match outcome {
        Some(Value::Int(2)) => AcquiredAll::Conflict(at),
        _ => AcquiredAll::Busy(at),
    }
}
