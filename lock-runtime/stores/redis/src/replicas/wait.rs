//! `WAIT`: replicas confirm a write before its reply counts (Redis documentation, *WAIT*).

use redis::{FromRedisValue, RedisError, Value};

use crate::config::Replicas;
use crate::errors;
use crate::resp::Command;
use crate::transport::connected::Connected;
use crate::transport::script_or_command::Request;
use crate::wire::millis;

fn wait(replicas: Replicas) -> Command {
    let mut wait = Command::new("WAIT");
    wait.arg(replicas.count).arg(millis(replicas.timeout));
    wait
}

/// Makes the reply a pair: the request's own, and the number of replicas that have its write.
pub(super) fn with_wait(request: Request, replicas: Replicas) -> Request {
    request.followed_by(wait(replicas))
}

/// Sends several requests and one `WAIT` after them together. Returns their replies and the number
/// of replicas that have all their writes.
pub(super) async fn confirmed_together(
    up: &Connected,
    requests: &[Request],
    replicas: Replicas,
) -> Result<(Vec<Result<Value, RedisError>>, u32), RedisError> {
    let mut by_text = false;
    let (first, wait) = (requests.first().map(Request::by_text), wait(replicas));
    loop {
        // All run the same script, so the server knows it after the first.
        let mut all: Vec<&Command> = requests.iter().map(Request::by_hash).collect();
        if let (true, Some(first), Some(at_first)) = (by_text, &first, all.first_mut()) {
            *at_first = first;
        }
        all.push(&wait);
        let mut replies = up.connection.send_together(&all, false, None).await?;
        let is_missing =
            |reply: &Result<_, RedisError>| reply.as_ref().is_err_and(errors::is_no_script);
        if !by_text && replies.iter().any(is_missing) {
            by_text = true;
            continue;
        }
        let confirmed = replies.pop().unwrap_or(Ok(Value::Nil))?;
        return Ok((replies, u32::from_redis_value(confirmed)?));
    }
}
