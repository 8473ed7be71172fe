//! Token buckets of rate limiters: one script.

use std::time::Duration;

use lock_store::{Answer, Failure, Instant, RateRequest, Rated};

use crate::names::Shown;
use crate::scripts;
use crate::store::RedisStore;
use crate::transport::request::Request;
use crate::wire::{Reply, WrongType};

impl RedisStore {
    pub(crate) async fn take_tokens(
        &self,
        request: RateRequest,
        by: Instant,
    ) -> Result<Answer<Rated>, Failure> {
        let bucket = self.namespace.bucket(&request.key);
        let take = Request::script(self.form(&scripts::RATE), |command| {
            command.arg(1).arg(Shown(bucket));
            command.arg(nanos(request.interval)).arg(request.burst);
            command.arg(request.tokens).arg(nanos(request.wait));
        });
        let answer: Reply<(i64, u64, u32)> = self.call(&request.key, by, &take).await?;
        let value = match answer.value {
            Err(WrongType) => Rated::Conflict,
            Ok((1, delay, left)) => Rated::Passed {
                delay: Duration::from_nanos(delay),
                left,
            },
            Ok((_, retry_after, _)) => Rated::Limited {
                retry_after: Duration::from_nanos(retry_after),
            },
        };
        Ok(Answer::new(value, answer.link))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
