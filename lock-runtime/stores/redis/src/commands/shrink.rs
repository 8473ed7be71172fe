//! The script that gives back some permits of a hold.

use lock_store::{Answer, Claim, Failure, Instant, Released};

use crate::names::Shown;
use crate::scripts;
use crate::store::RedisStore;
use crate::wire::{Reply, permits, released};

impl RedisStore {
    pub(crate) async fn shrink_to(
        &self,
        claim: Claim,
        rest: u32,
        by: Instant,
    ) -> Result<Answer<Released>, Failure> {
        let reply: Reply<i64> = self
            .one(by, &scripts::SHRINK, &claim.key, |command| {
                command
                    .arg(Shown(claim.owner))
                    .arg(permits(claim.permits))
                    .arg(rest)
                    .arg(self.channels(&claim.key));
            })
            .await?;
        if let Ok(reply) = reply.value {
            self.serve_the_rest(&claim.key, reply, by).await;
        }
        Ok(reply.map(released))
    }
}
