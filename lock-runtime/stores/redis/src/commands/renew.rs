//! The script that renews holds, however many.

use lock_store::{Renewal, Renewed};

use crate::names::{Prefix, Shown};
use crate::scripts;
use crate::transport::request::Request;
use crate::wire::millis;

/// One script for holds of one slot.
pub(crate) fn request(is_cluster: bool, namespace: &Prefix, holds: &[&Renewal]) -> Request {
    Request::script(scripts::RENEW.form(is_cluster), |command| {
        command.arg(holds.len());
        for hold in holds {
            command.arg(Shown(namespace.lock(&hold.claim.key)));
        }
        for hold in holds {
            let owner = hold.claim.owner;
            match hold.claim.permits {
                Some(permits) => command.arg(format!("{owner}:{}", permits.count)),
                None => command.arg(Shown(owner)),
            };
            command.arg(millis(hold.lease));
        }
    })
}

/// What that script replied.
pub(crate) fn read(replies: &[i64]) -> Vec<Renewed> {
    let renewed = |one: &i64| match one {
        1 => Renewed::Renewed,
        _ => Renewed::Gone,
    };
    replies.iter().map(renewed).collect()
}
