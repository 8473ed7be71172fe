//! The script that changes how many permits a lock has.

use lock_store::{Answer, Failure, Instant, LockKey};

use crate::scripts;
use crate::store::RedisStore;
use crate::wire::{Reply, is_done};

impl RedisStore {
    pub(crate) async fn resize_to(
        &self,
        key: LockKey,
        of: u32,
        by: Instant,
    ) -> Result<Answer<bool>, Failure> {
        let reply: Reply<i64> = self
            .one(by, &scripts::RESIZE, &key, |command| {
                command.arg(of).arg(self.channels(&key));
            })
            .await?;
        if let Ok(reply) = reply.value {
            self.serve_the_rest(&key, reply, by).await;
        }
        Ok(reply.map(|value| value.is_ok_and(is_done)))
    }
}
