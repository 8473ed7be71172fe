//! The scripts that report the holders of a lock.

use lock_store::{FoundHolder, Instant, LockFound, LockKey, Permits, Replied};

use crate::scripts;
use crate::store::RedisStore;
use crate::wire::{Reply, remaining};

impl RedisStore {
    pub(crate) async fn inspect_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<LockFound>> {
        type InspectReply = (Option<Vec<u8>>, i64, usize, usize, u32, u32);
        let reply: Reply<InspectReply> = self
            .run_on_lock(by, &scripts::INSPECT, &key, |_| ())
            .await?;
        Ok(reply.map(|value| {
            let (holder, pttl, waiting, holders, count, of) = value.ok()?;
            let mut found = LockFound::free(waiting);
            found.holder = holder.map(|value| FoundHolder::parse(&value));
            found.holders = holders;
            found.remaining = remaining(pttl);
            found.permits = (of > 0).then_some(Permits { count, of });
            Some(found)
        }))
    }

    pub(crate) async fn holders_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<Vec<FoundHolder>>> {
        let reply: Reply<Vec<Vec<u8>>> = self
            .run_on_lock(by, &scripts::HOLDERS, &key, |_| ())
            .await?;
        let found = |value: &Vec<u8>| FoundHolder::parse(value);
        Ok(reply.map(|value| Some(value.ok()?.iter().map(found).collect())))
    }
}
