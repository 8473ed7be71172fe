//! The script that renews any number of holds.

use lock_store::{Failure, Renewal, Renewed};
use redis::{RedisError, Value};

use crate::names::Prefix;
use crate::scripts;
use crate::transport::script_or_command::Request;
use crate::wire::millis;

/// One script for holds of one slot. It can be divided, since each hold has one key.
pub(crate) fn request(is_cluster: bool, namespace: &Prefix, holds: &[&Renewal]) -> Request {
    let request = Request::script(scripts::RENEW.form(is_cluster), |command| {
        command.arg(holds.len());
        for hold in holds {
            command.add_text(namespace.lock(&hold.claim.key));
        }
        for hold in holds {
            let owner = hold.claim.owner;
            match hold.claim.permits {
                Some(permits) => command.arg(format!("{owner}:{}", permits.count)),
                None => command.add_text(owner),
            };
            command.arg(millis(hold.lease));
        }
    });
    match holds.len() {
        0 | 1 => request,
        _ => request.divisible(),
    }
}

/// True if the keys of several holds are on different nodes, since half of their slot has moved, or
/// behind a proxy. Then no single command can name them all.
pub(crate) fn lie_apart(result: &Result<Value, RedisError>, holds: usize) -> bool {
    let apart = |error: &RedisError| matches!(error.code(), Some("TRYAGAIN" | "CROSSSLOT"));
    holds > 1 && result.as_ref().is_err_and(apart)
}

/// Reads that script's reply.
pub(crate) fn read(replies: &[i64]) -> Vec<Renewed> {
    let renewed = |one: &i64| match one {
        1 => Renewed::Renewed,
        0 => Renewed::Gone,
        _ => Renewed::Unanswered,
    };
    replies.iter().map(renewed).collect()
}

/// The outcome for holds that were renewed one by one. Missing answers are a failure only if all
/// are missing.
pub(crate) fn renewed_each(
    outcomes: Vec<Result<Renewed, Failure>>,
) -> Result<Vec<Renewed>, Failure> {
    let failed = outcomes.iter().find_map(|one| one.as_ref().err());
    if let Some(failure) = failed
        && outcomes.iter().all(Result::is_err)
    {
        return Err(failure.clone());
    }
    let renewed = |one: Result<Renewed, Failure>| one.unwrap_or(Renewed::Unanswered);
    Ok(outcomes.into_iter().map(renewed).collect())
}
