//! The script that leaves the queue, or ends a grant that came meanwhile.

use std::iter::once;

use lock_store::{Acquire, Answer, Failure, Instant, Released};

use super::acquire::rest_of_place;
use crate::names::Shown;
use crate::scripts;
use crate::store::RedisStore;
use crate::transport::request::Request;
use crate::wire::{Reply, permits, released};

impl RedisStore {
    pub(crate) async fn abandon_request(
        &self,
        request: Acquire,
        by: Instant,
    ) -> Result<Answer<Released>, Failure> {
        let key = &request.claim.key;
        let abandon = Request::script(self.form(&scripts::ABANDON), |command| {
            self.name(command, once(key));
            command
                .arg(Shown(request.claim.owner))
                .arg(rest_of_place(&request))
                .arg(self.channels(key))
                .arg(permits(request.claim.permits));
        });
        let reply: Reply<i64> = self.call(key, by, &abandon).await?;
        if let Ok(reply) = reply.value {
            self.serve_the_rest(key, reply, by).await;
        }
        Ok(reply.map(released))
    }
}
