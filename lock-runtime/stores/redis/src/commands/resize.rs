//! The script that changes how many permits a lock has.

use lock_store::{Answer, Failure, Instant, LockKey};

use crate::scripts;
use crate::store::RedisStore;
use crate::wire::Reply;

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
        Ok(reply.map(|value| matches!(value, Ok(1))))
    }
}
