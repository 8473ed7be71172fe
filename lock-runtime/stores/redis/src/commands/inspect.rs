//! The scripts that report the holders of a lock.

use lock_store::{Answer, Failure, Inspection, Instant, LockKey};

use crate::scripts;
use crate::store::RedisStore;
use crate::wire::{Reply, remaining};

impl RedisStore {
    pub(crate) async fn inspect_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Result<Answer<Option<Inspection>>, Failure> {
        let reply: Reply<(Option<Vec<u8>>, i64, usize, usize)> =
            self.one(by, &scripts::INSPECT, &key, |_| ()).await?;
        Ok(reply.map(|value| {
            let (holder, pttl, waiting, holders) = value.ok()?;
            let mut found = Inspection::free(waiting);
            found.holder = holder.map(|value| String::from_utf8_lossy(&value).into_owned());
            found.holders = holders;
            found.remaining = remaining(pttl);
            Some(found)
        }))
    }

    pub(crate) async fn holders_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Result<Answer<Option<Vec<String>>>, Failure> {
        let reply: Reply<Vec<Vec<u8>>> = self.one(by, &scripts::HOLDERS, &key, |_| ()).await?;
        let shown = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        Ok(reply.map(|value| Some(value.ok()?.into_iter().map(shown).collect())))
    }
}
