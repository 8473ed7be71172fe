//! The script that gives a new fencing token to an existing hold.

use lock_store::{Claim, Fenced, Instant, Replied};

use crate::scripts;
use crate::store::RedisStore;
use crate::wire::{Reply, WrongType, permits};

impl RedisStore {
    pub(crate) async fn fence_now(&self, claim: Claim, by: Instant) -> Replied<Fenced> {
        let reply: Reply<Option<String>> = self
            .run_on_lock(by, &scripts::FENCE, &claim.key, |command| {
                command.add_text(claim.owner).arg(permits(claim.permits));
            })
            .await?;
        Ok(reply.map(|value| match value {
            Err(WrongType) => Fenced::Conflict,
            Ok(None) => Fenced::Gone,
            Ok(Some(token)) => token.parse().map_or(Fenced::Conflict, Fenced::Token),
        }))
    }
}
