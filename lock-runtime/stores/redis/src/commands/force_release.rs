//! The script that ends every hold of a lock.

use lock_store::{Answer, Failure, Instant, LockKey};

use crate::scripts;
use crate::store::RedisStore;
use crate::wire::Reply;

impl RedisStore {
    pub(crate) async fn force_release_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Result<Answer<Option<bool>>, Failure> {
        let reply: Reply<i64> = self
            .one(by, &scripts::FORCE_RELEASE, &key, |command| {
                _ = command.arg(self.channels(&key))
            })
            .await?;
        Ok(reply.map(|value| value.ok().map(|ended| ended == 1)))
    }
}
