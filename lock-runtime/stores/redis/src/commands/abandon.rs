//! The script that leaves the queue, or ends a grant that came meanwhile.

use std::iter::once;

use lock_store::{Acquire, Answer, Failure, Instant, Released};

use super::acquire::rest_of_place;
use crate::names::Shown;
use crate::scripts;
use crate::store::RedisStore;
use crate::wire::{Reply, permits, released};

impl RedisStore {
    pub(crate) async fn abandon_request(
        &self,
        request: Acquire,
        by: Instant,
    ) -> Result<Answer<Released>, Failure> {
        let reply: Reply<i64> = self
            .script(
                Some(request.via),
                by,
                &scripts::ABANDON,
                once(&request.claim.key),
                |command| {
                    command
                        .arg(Shown(request.claim.owner))
                        .arg(rest_of_place(&request))
                        .arg(self.channels(&request.claim.key))
                        .arg(permits(request.claim.permits));
                },
            )
            .await?;
        if let Ok(reply) = reply.value {
            self.serve_the_rest(&request.claim.key, reply, by).await;
        }
        Ok(reply.map(released))
    }
}
