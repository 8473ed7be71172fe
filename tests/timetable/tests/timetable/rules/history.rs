//! A schedule as each owner knows it: what it sent, and what the replies meant for its hold.

use std::collections::BTreeMap;

use lock_store::{Acquired, AcquiredAll, Busy, Granted, Owner, Renewed};
use lock_testkit_core::store_decorator::{Reply, Request};

use super::commands;
use crate::schedule::{Command, Outcome, Schedule};

/// One command, as one of its owners sees it.
#[derive(Clone, Copy)]
pub(crate) struct OwnerStep<'s> {
    pub(crate) command: &'s Command,
    pub(crate) means: Means,
    pub(crate) lease: u64,
}

/// What the owner knows from the reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Means {
    /// The owner has the key, and all tokens that it requested.
    Granted,
    Queued,
    Renewed,
    Gone,
    /// The store may have carried the command out, or may do so later.
    Unknown,
    /// Anything else.
    Nothing,
}

pub(crate) fn meaning(command: &Command, at: usize, lease: u64) -> Means {
    let reply = match &command.outcome {
        Outcome::Answered { reply, .. } => reply,
        Outcome::Failed { unknown: true, .. } | Outcome::Dropped { .. } => return Means::Unknown,
        _ => return Means::Nothing,
    };
    let in_time = command
        .ended()
        .is_some_and(|ended| ended < command.at + trusted(lease));
    let granted = |complete| match (in_time, complete) {
        (true, true) => Means::Granted,
        (true, false) => Means::Nothing,
        (false, _) => Means::Unknown,
    };
    match (reply, &command.request) {
        (Reply::Acquire(Acquired::Granted(Granted { token, .. })), Request::Acquire(request)) => {
            granted(token.is_some() || request.tokens == 0)
        }
        (Reply::Acquire(Acquired::Busy(Busy { queued: true, .. })), _) => Means::Queued,
        (Reply::AcquireAll(AcquiredAll::Granted { tokens, .. }), Request::AcquireAll(requests)) => {
            let all = tokens.len() == requests.len();
            let wanted = requests.iter().all(|request| request.tokens > 0);
            granted(all && (!wanted || tokens.iter().all(Option::is_some)))
        }
        // A command that was not answered for all holds is sent again for all.
        (Reply::Renew(replies), Request::Renew(holds)) => match replies.get(at) {
            Some(Renewed::Gone) => Means::Gone,
            _ if replies.len() != holds.len() => Means::Nothing,
            _ if replies.iter().all(|one| *one == Renewed::Renewed) => Means::Renewed,
            _ => Means::Nothing,
        },
        _ => Means::Nothing,
    }
}

/// How long a hold is trusted, for a lease that counts from the command.
pub(crate) fn trusted(lease: u64) -> u64 {
    lease.saturating_sub(lease / 100 + 2)
}

/// What each owner sent, in its order.
pub(crate) fn owners(schedule: &Schedule) -> BTreeMap<Owner, Vec<OwnerStep<'_>>> {
    let mut owners = BTreeMap::<Owner, Vec<OwnerStep<'_>>>::new();
    for command in commands(schedule) {
        let lease = command.request.lease().unwrap_or_default().as_millis();
        let lease = u64::try_from(lease).unwrap();
        for (at, claim) in command.request.claims().enumerate() {
            let means = meaning(command, at, lease);
            owners.entry(claim.owner).or_default().push(OwnerStep {
                command,
                means,
                lease,
            });
        }
    }
    owners
}

/// The last step that set the lease of a hold, if the hold still exists as far as its owner knows.
pub(crate) fn leased<'a, 's>(before: &'a [OwnerStep<'s>]) -> Option<&'a OwnerStep<'s>> {
    let last = before
        .iter()
        .rev()
        .find(|step| matches!(step.means, Means::Granted | Means::Renewed | Means::Gone))?;
    (last.means != Means::Gone).then_some(last)
}
