//! WAIT: a write is confirmed by replicas before its reply counts (Redis documentation, *WAIT*).

use redis::{Cmd, FromRedisValue, RedisError, Value};

use crate::config::Replicas;
use crate::errors;
use crate::transport::connected::Connected;
use crate::transport::request::Request;
use crate::wire::millis;

fn wait(replicas: Replicas) -> Cmd {
    let mut wait = redis::cmd("WAIT");
    wait.arg(replicas.count).arg(millis(replicas.timeout));
    wait
}

/// The reply of such a request is a pair: its own, and how many replicas have what it wrote.
pub(super) fn confirmed(request: Request, replicas: Replicas) -> Request {
    request.followed_by(wait(replicas))
}

/// Sends several requests and one `WAIT` behind them in one piece. What each replied, and how many
/// replicas have it all.
pub(super) async fn confirmed_together(
    up: &Connected,
    requests: &[Request],
    replicas: Replicas,
) -> Result<(Vec<Result<Value, RedisError>>, u32), RedisError> {
    let mut by_text = false;
    loop {
        let mut all = redis::pipe();
        for (at, request) in requests.iter().enumerate() {
            // All run the same script, so the server knows it behind the first.
            all.add_command(match by_text && at == 0 {
                true => request.by_text(),
                false => request.by_hash(),
            });
        }
        all.add_command(wait(replicas)).ignore_errors();
        let mut replies: Vec<Result<Value, RedisError>> =
            all.query_async(&mut up.connection.clone()).await?;
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
