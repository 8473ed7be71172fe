//! The script that renews any number of holds.

use lock_store::{Failure, Link, Renewal, Renewed};
use redis::{RedisError, Value};

use crate::names::Prefix;
use crate::scripts;
use crate::transport::script_or_command::Request;
use crate::wire::{millis, one_for_each};

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

/// Reads that script's reply for so many holds.
pub(crate) fn read(replies: &[i64], holds: usize, link: Link) -> Result<Vec<Renewed>, Failure> {
    one_for_each("renewal", holds, replies.len(), link)?;
    let renewed = |one: &i64| match one {
        1 => Renewed::Renewed,
        0 => Renewed::Gone,
        _ => Renewed::Unanswered,
    };
    Ok(replies.iter().map(renewed).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_too_few_or_too_many_is_about_no_lock() {
        assert!(read(&[1, 0], 2, Link(7)).is_ok());
        for replies in [&[0][..], &[1, 0, 1]] {
            let failure = read(replies, 2, Link(7)).unwrap_err();
            let text = failure.error.to_string();
            let says = format!("the renewal of 2 locks about {}", replies.len());
            assert!(text.contains(&says) && text.contains("proxy"), "{text}");
        }
    }
}
