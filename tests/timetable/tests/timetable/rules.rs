//! What no schedule may do, whatever its snapshot says. A new snapshot does not change these rules.

use std::collections::BTreeSet;

use lock_runtime::StoreErrorKind;
use lock_store::{LatchCounted, LatchSet, Owner};
use lock_testkit_core::store_decorator::{Reply, Request};

use crate::schedule::{Ask, Command, Line, Outcome, Schedule};

mod history;
#[cfg(test)]
mod tests;

use history::{Means, OwnerStep, leased, meaning, owners, trusted};

/// A command's default time limit, in milliseconds.
const COMMAND_TIMEOUT: u64 = 500;
/// The watchdog renews together what is due within this many milliseconds.
const TOGETHER: u64 = 20;
/// The longest pause before a failed command is repeated.
const LONGEST_PAUSE: u64 = 2000;
/// The store forgets a place in a queue after this time.
const PLACE: u64 = 60_000;

type Rule = fn(&Schedule) -> Result<(), String>;

macro_rules! rules {
    ($($rule:ident)*) => {
        const RULES: &[(&str, Rule)] = &[$((stringify!($rule), $rule)),*];
    };
}

rules! {
    a_command_has_a_time_limit
    nothing_is_asked_for_after_the_wait
    a_command_ends_with_its_request
    a_try_asks_once
    a_grant_is_asked_for_once
    a_renewal_comes_at_a_third_of_the_lease
    what_is_renewed_is_renewed_again
    a_renewal_comes_before_the_deadline
    a_renewal_leaves_time_for_another
    what_is_gone_is_not_renewed
    a_release_is_the_last_word
    what_may_be_held_is_undone
    an_undo_is_repeated_until_it_is_answered
}

/// Checks every rule on one schedule.
pub(crate) fn check(schedule: &Schedule) {
    if let Some((name, what)) = broken(schedule).first() {
        panic!("the rule {name} is broken: {what}\n{schedule}");
    }
}

fn broken(schedule: &Schedule) -> Vec<(&'static str, String)> {
    let check = |(name, rule): &(&'static str, Rule)| Some((*name, rule(schedule).err()?));
    RULES.iter().filter_map(check).collect()
}

pub(crate) fn commands(schedule: &Schedule) -> impl Iterator<Item = &Command> {
    schedule.lines.iter().filter_map(Line::command)
}

fn ask(schedule: &Schedule) -> Vec<&Ask> {
    schedule.lines.iter().filter_map(Line::ask).collect()
}

/// Whether the command requests something, rather than keeping or ending a hold.
fn wants(command: &Command) -> bool {
    matches!(
        command.request,
        Request::Acquire(_)
            | Request::AcquireAll(_)
            | Request::Rate(_)
            | Request::Fence(_)
            | Request::LatchSet(..)
            | Request::LatchCountDown(_)
            | Request::LatchLook(_)
            | Request::LatchWait(_)
    )
}

/// Whether its connection fell silent before its time was over. Another may answer in time.
fn was_cut_off(command: &Command) -> bool {
    matches!(
        command.outcome,
        Outcome::Failed { at, kind: StoreErrorKind::Timeout, unknown: true }
            if at < command.at + command.within
    )
}

/// Whether it was a call on a latch to which the store replied with its time. Such a call is sent
/// again.
fn was_untimely(command: &Command) -> bool {
    let Outcome::Answered { reply, .. } = &command.outcome else {
        return false;
    };
    matches!(
        reply,
        Reply::LatchSet(LatchSet::Untimely { .. })
            | Reply::LatchCountDown(LatchCounted::Untimely { .. })
    )
}

impl Ask {
    /// Whether the request had begun by then, and was still within its wait. A try may first wait
    /// for a release.
    fn may_ask(&self, at: u64) -> bool {
        let ended = self.ended.is_some_and(|ended| ended < at);
        let wait = self.wait.map(|wait| wait.max(COMMAND_TIMEOUT / 2));
        self.at <= at && !ended && wait.is_none_or(|wait| at <= self.at + wait)
    }

    /// The latest end of the request's commands. `None` if it waits for ever.
    fn give_up_at(&self) -> Option<u64> {
        Some(self.at + self.wait?.max(COMMAND_TIMEOUT))
    }
}

/// Checks each step of each owner against the steps before it.
fn each_step<'s>(
    schedule: &'s Schedule,
    is_right: impl Fn(&[OwnerStep<'s>], OwnerStep<'s>) -> bool,
) -> Result<(), String> {
    for steps in owners(schedule).into_values() {
        for (at, step) in steps.iter().enumerate() {
            ensure(is_right(&steps[..at], *step), step.command)?;
        }
    }
    Ok(())
}

fn ensure(right: bool, command: &Command) -> Result<(), String> {
    if right {
        Ok(())
    } else {
        Err(command.to_string())
    }
}

fn each(schedule: &Schedule, is_right: impl Fn(&Command) -> bool) -> Result<(), String> {
    commands(schedule).try_for_each(|command| ensure(is_right(command), command))
}

/// A command has a time limit, of at most `command_timeout`.
fn a_command_has_a_time_limit(schedule: &Schedule) -> Result<(), String> {
    each(schedule, |command| {
        (1..=COMMAND_TIMEOUT).contains(&command.within)
    })
}

/// A command that requests something goes out for a request under way, within its wait.
fn nothing_is_asked_for_after_the_wait(schedule: &Schedule) -> Result<(), String> {
    let asks = ask(schedule);
    each(schedule, |command| {
        !wants(command) || asks.iter().any(|ask| ask.may_ask(command.at))
    })
}

/// If nothing is heard of a request, it ends with its wait, or after one command's time: no command
/// has longer. A look at a latch serves all waiters, and the token of an existing hold is requested
/// with a whole command's time.
fn a_command_ends_with_its_request(schedule: &Schedule) -> Result<(), String> {
    let asks = ask(schedule);
    each(schedule, |command| {
        let until = command.at + command.within;
        let may = |ask: &&Ask| {
            ask.may_ask(command.at) && ask.give_up_at().is_none_or(|latest| until <= latest)
        };
        // For a request that waits for a latch, a task looks that others may share.
        let of_a_wait = || {
            let mut waits = commands(schedule).filter(|one| one.verb() == "wait");
            command.verb() == "look" && waits.any(|one| one.at <= command.at)
        };
        let own_time = matches!(command.verb(), "wait" | "fence") || of_a_wait();
        !wants(command) || own_time || asks.iter().any(may)
    })
}

/// A request that may not wait sends one command, and one more after one whose connection fell
/// silent before its time was over.
fn a_try_asks_once(schedule: &Schedule) -> Result<(), String> {
    let asks = ask(schedule);
    for ask in asks.iter().filter(|ask| ask.wait == Some(0)) {
        // Other requests of the same millisecond have a command of their own.
        let others = asks.iter().filter(|other| other.may_ask(ask.at)).count() - 1;
        let during = commands(schedule).filter(|one| {
            let counts = !was_untimely(one) && !was_cut_off(one);
            wants(one) && counts && ask.may_ask(one.at)
        });
        let of_it = during.count().saturating_sub(others);
        if of_it > 1 {
            return Err(format!("{of_it} commands of the try at {}", ask.at));
        }
    }
    Ok(())
}

/// An uncontended call is one command, and renewals keep a hold. An owner that was granted a key
/// does not acquire it again, except for fencing tokens that it lacked.
fn a_grant_is_asked_for_once(schedule: &Schedule) -> Result<(), String> {
    each_step(schedule, |before, step| {
        let again = match &step.command.request {
            Request::Acquire(request) => request.tokens == 0,
            Request::AcquireAll(requests) => requests.iter().all(|one| one.tokens == 0),
            _ => false,
        };
        !again || leased(before).is_none()
    })
}

/// A hold is renewed no later than a third of its lease after the last command that was to prolong
/// it. If that command was answered, it is not renewed much sooner either.
fn a_renewal_comes_at_a_third_of_the_lease(schedule: &Schedule) -> Result<(), String> {
    each_step(schedule, |before, step| {
        let (Request::Renew(_), Some(last), Some(leased)) =
            (&step.command.request, before.last(), leased(before))
        else {
            return true;
        };
        let whole = before
            .iter()
            .map(|step| step.lease)
            .max()
            .unwrap_or_default();
        let since = if last.command.at == leased.command.at {
            last.command.at
        } else {
            last.command.ended().unwrap_or(last.command.at)
        };
        // Instants are recorded in whole milliseconds.
        let latest = since + whole / 3 + 1;
        let soonest = match leased.means {
            Means::Renewed => (leased.command.at + leased.lease / 3).saturating_sub(TOGETHER),
            _ => 0,
        };
        (soonest..=latest).contains(&step.command.at)
    })
}

/// After the watchdog has renewed a hold for its whole lease, it renews it again, until the hold is
/// released or gone.
fn what_is_renewed_is_renewed_again(schedule: &Schedule) -> Result<(), String> {
    for steps in owners(schedule).into_values() {
        let whole = steps.iter().map(|step| step.lease).max();
        let Some(last) = steps.last().filter(|last| Some(last.lease) == whole) else {
            continue;
        };
        let due = last.command.at + last.lease / 3 + 1;
        let renewed = last.means == Means::Renewed;
        ensure(!renewed || schedule.ends <= due, last.command)?;
    }
    Ok(())
}

/// A hold that its owner no longer believes in is not renewed.
fn a_renewal_comes_before_the_deadline(schedule: &Schedule) -> Result<(), String> {
    each_step(schedule, |before, step| {
        let renews = matches!(step.command.request, Request::Renew(_));
        let deadline = leased(before).map(|last| last.command.at + trusted(last.lease));
        !renews || deadline.is_none_or(|deadline| step.command.at < deadline)
    })
}

/// The watchdog gives a renewal a third of the time left until the deadline, or a third of a
/// command's time. It gives all of the time left if that is not enough for two. When several locks
/// were taken one after the other, their first renewal is the request's own.
fn a_renewal_leaves_time_for_another(schedule: &Schedule) -> Result<(), String> {
    let owners = owners(schedule);
    let before = |owner: Owner, command: &Command| {
        let steps = &owners[&owner];
        let at = steps
            .iter()
            .position(|step| std::ptr::eq(step.command, command));
        leased(&steps[..at.unwrap_or(0)])
    };
    each(schedule, |command| {
        let Request::Renew(holds) = &command.request else {
            return true;
        };
        let before = holds.iter().map(|hold| before(hold.claim.owner, command));
        let before: Vec<_> = before.collect();
        let first = |last: &Option<&OwnerStep<'_>>| {
            last.is_none_or(|last| matches!(last.command.request, Request::Acquire(_)))
        };
        let own = holds.len() > 1 && before.iter().any(first);
        let deadlines = before
            .iter()
            .flatten()
            .map(|last| last.command.at + trusted(last.lease));
        own || deadlines.min().is_none_or(|deadline| {
            let left = deadline.saturating_sub(command.at);
            let usual = COMMAND_TIMEOUT / 3 + 1;
            let for_one = if left <= 2 * usual { left } else { usual };
            command.within <= (left / 3 + 1).max(for_one).max(5)
        })
    })
}

/// A hold that the store no longer knows is not renewed.
fn what_is_gone_is_not_renewed(schedule: &Schedule) -> Result<(), String> {
    let mut gone = BTreeSet::new();
    for command in commands(schedule) {
        let mut owners = command.request.claims().map(|claim| &claim.owner);
        let right = match command.request {
            Request::Renew(_) => owners.all(|owner| !gone.contains(owner)),
            _ => true,
        };
        ensure(right, command)?;
        for (at, claim) in command.request.claims().enumerate() {
            match meaning(command, at, 0) {
                Means::Gone => gone.insert(claim.owner),
                Means::Nothing => false,
                // Also after a grant that came late.
                _ => gone.remove(&claim.owner),
            };
        }
    }
    Ok(())
}

/// After its first release an owner only repeats the release, or undoes what may arrive late.
fn a_release_is_the_last_word(schedule: &Schedule) -> Result<(), String> {
    each_step(schedule, |before, step| {
        let ends = |request: &Request| matches!(request, Request::Release(_) | Request::Abandon(_));
        let released = before
            .iter()
            .any(|step| matches!(step.command.request, Request::Release(_)));
        !released || ends(&step.command.request)
    })
}

/// An owner's last command is not an acquire that may have been carried out, nor one that got a
/// place in the queue for a request that has ended in vain.
fn what_may_be_held_is_undone(schedule: &Schedule) -> Result<(), String> {
    let asks = ask(schedule);
    for steps in owners(schedule).into_values() {
        let Some(last) = steps.last() else { continue };
        let acquires = matches!(
            last.command.request,
            Request::Acquire(_) | Request::AcquireAll(_)
        );
        let over = last
            .command
            .ended()
            .is_some_and(|ended| ended < schedule.ends);
        let in_vain =
            |ask: &&Ask| !ask.has_it && ask.ended.is_some_and(|ended| ended < schedule.ends);
        let in_vain = asks.iter().all(in_vain);
        let left = match last.means {
            Means::Unknown => over,
            Means::Queued => over && in_vain,
            _ => false,
        };
        ensure(!(acquires && left), last.command)?;
    }
    Ok(())
}

/// An undo that failed is sent again, for as long as the store could keep the place. A command for
/// several keys asks for none: then for as long as it could keep the hold.
fn an_undo_is_repeated_until_it_is_answered(schedule: &Schedule) -> Result<(), String> {
    for steps in owners(schedule).into_values() {
        let undoes = |step: &&OwnerStep<'_>| matches!(step.command.request, Request::Abandon(_));
        let undoes: Vec<_> = steps.iter().filter(undoes).collect();
        let keeps = match &steps[0].command.request {
            Request::AcquireAll(requests) => u64::try_from(requests[0].lease.as_millis()).unwrap(),
            _ => PLACE,
        };
        for (at, undo) in undoes.iter().enumerate() {
            let Outcome::Failed { at: failed, .. } = undo.command.outcome else {
                continue;
            };
            let again = failed + LONGEST_PAUSE;
            let next = undoes.get(at + 1).map(|next| next.command.at);
            let long_enough = failed >= undoes[0].command.at + keeps;
            let repeated = next.is_some_and(|next| next <= again);
            ensure(
                repeated || long_enough || schedule.ends < again,
                undo.command,
            )?;
        }
    }
    Ok(())
}
