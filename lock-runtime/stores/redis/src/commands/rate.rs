//! Rate limiters: a script for token buckets, and one for exact limits.

use std::time::Duration;

use lock_store::rules::PassLog;
use lock_store::{Answer, Instant, RateRequest, Rated, Replied, micros, nanos};

use crate::scripts;
use crate::store::RedisStore;
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, WrongType};

impl RedisStore {
    pub(crate) async fn take_tokens(&self, request: RateRequest, by: Instant) -> Replied<Rated> {
        if let Some(window) = request.window {
            return self.take_exactly(request, window, by).await;
        }
        let bucket = self.namespace.bucket(&request.key);
        let take = Request::script(self.form(&scripts::RATE), |command| {
            command.arg(1).add_text(bucket);
            command.arg(nanos(request.interval)).arg(request.burst);
            command.arg(request.tokens).arg(nanos(request.wait));
        });
        let reply = self.call(&request.key, by, &take).await?;
        Ok(rated(reply, Duration::from_nanos))
    }

    async fn take_exactly(
        &self,
        request: RateRequest,
        window: Duration,
        by: Instant,
    ) -> Replied<Rated> {
        let log = self.namespace.pass_log(&request.key);
        let take = Request::script(self.form(&scripts::LIMIT), |command| {
            command.arg(1).add_text(log);
            command.arg(micros(window)).arg(request.burst);
            command.arg(request.tokens).arg(micros(request.wait));
            command.arg(micros(PassLog::share(request.burst, window)));
        });
        let reply = self.call(&request.key, by, &take).await?;
        Ok(rated(reply, Duration::from_micros))
    }
}

fn rated(reply: Reply<(i64, u64, u32)>, time: fn(u64) -> Duration) -> Answer<Rated> {
    let value = match reply.value {
        Err(WrongType) => Rated::Conflict,
        Ok((1, delay, left)) => Rated::Passed {
            delay: time(delay),
            left,
        },
        Ok((_, retry_after, _)) => Rated::Limited {
            retry_after: time(retry_after),
        },
    };
    Answer::new(value, reply.link)
}
