//! What is wrong with the options once all are known: limits, contradictions, and names that hide a
//! parameter. (What is wrong with the function: `function.rs` and `function/body.rs`.)

use crate::args::{Opt, READ, SKIP, WRITE};
use crate::function::parameters::ParameterNames;
use crate::mistakes::Mistakes;
use crate::parse::duration;
use crate::parse::value::Value;
use crate::parse::{Arg, Args};
use proc_macro2::{Ident, Span};

/// The runtime's shortest lease, in milliseconds.
const SHORTEST_LEASE: u64 = 10;
/// The runtime's longest lease, in milliseconds.
const LONGEST_LEASE: u64 = 24 * 60 * 60 * 1_000;

/// `names` are those of the function's parameters.
pub(crate) fn check_lock(args: &Args, names: Option<&ParameterNames>, mistakes: &mut Mistakes) {
    check_lease(args, mistakes);
    check_max_hold(args, mistakes);
    check_hold_at_least(args, mistakes);
    check_hold_after(args, mistakes);
    check_wait(args, mistakes);
    check_synchronizers(args, mistakes);
    check_bound_names(args, names, mistakes);
}

fn check_wait(args: &Args, mistakes: &mut Mistakes) {
    if let Some(wait) = args.get(Opt::Wait)
        && let Some(on_busy) = args.get(Opt::OnBusy)
        && matches!(wait.value, Value::Forever)
        && args.is_word(Opt::OnBusy, SKIP)
    {
        mistakes.report_at(
            on_busy.span,
            "`on_busy = \"skip\"` never happens with `wait = \"forever\"`: write a `wait` after \
             which to skip, for example `wait = \"0s\"`, or leave out `on_busy`",
        );
    }
}

/// A call takes one kind of lock: several keys, a read-write lock or a semaphore.
fn check_synchronizers(args: &Args, mistakes: &mut Mistakes) {
    if let (Some(_), Some(keys)) = (args.get(Opt::Key), args.get(Opt::Keys)) {
        mistakes.report_at(
            keys.name_span,
            "`key` and `keys` both say what is locked: leave out one of them, several keys all \
             stand in `keys`",
        );
    }
    if let (Some(_), Some(permits)) = (args.get(Opt::Mode), args.get(Opt::Permits)) {
        mistakes.report_at(
            permits.name_span,
            "`mode` is how a lock is held and `permits` makes a semaphore: leave out one of them",
        );
    }
    if args.get(Opt::Keys).is_none() {
        return;
    }
    if let Some(mode) = args.get(Opt::Mode)
        && let Value::Word(word @ (READ | WRITE)) = mode.value
    {
        mistakes.report_at(
            mode.name_span,
            format!(
                "several `keys` are always locked exclusively, not with `mode = \"{word}\"`: \
                 leave out `mode`, or lock one `key`"
            ),
        );
    }
    if let Some(permits) = args.get(Opt::Permits) {
        mistakes.report_at(
            permits.name_span,
            "several `keys` are always locked exclusively, and `permits` makes a semaphore of \
             one: leave out `permits`, or write one `key`",
        );
    }
}

fn check_lease(args: &Args, mistakes: &mut Mistakes) {
    let (Some(given), Some(millis)) = (args.get(Opt::Lease), args.millis(Opt::Lease)) else {
        return;
    };
    if millis == 0 {
        mistakes.report_at(
            given.span,
            "a lease of zero would be over before the body begins: write how long the body may \
             take at most, for example `lease = \"10s\"`, or leave out `lease` to have the lock \
             renewed while the body runs",
        );
    } else if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&millis) {
        let advice = if millis < SHORTEST_LEASE {
            "write a longer one"
        } else {
            "write a shorter one, or leave out `lease` to have the lock renewed for as long as \
             the body runs"
        };
        mistakes.report_at(
            given.span,
            format!(
                "a lease is {} to 24h: {advice}",
                duration::print(SHORTEST_LEASE)
            ),
        );
    }
}

fn check_max_hold(args: &Args, mistakes: &mut Mistakes) {
    let Some(given) = args.get(Opt::MaxHold) else {
        return;
    };
    let max_hold = args.millis(Opt::MaxHold);
    let renew = args.bool(Opt::Renew);
    let says_renew = args.get(Opt::Renew).is_some();
    if max_hold.is_some_and(|max_hold| max_hold < SHORTEST_LEASE) {
        mistakes.report_at(
            given.span,
            format!(
                "`max_hold` is shorter than the shortest lease ({}): write a longer one",
                duration::print(SHORTEST_LEASE)
            ),
        );
    } else if renew == Some(false) {
        mistakes.report_at(
            given.name_span,
            "`max_hold` ends the renewal, and `renew = false` says that there is none: leave out \
             one of them",
        );
    } else if args.get(Opt::Lease).is_some() && !says_renew {
        mistakes.report_at(
            given.name_span,
            "`max_hold` ends the renewal, and a hold with `lease` is not renewed: add `renew = \
             true`, or leave out `lease` or `max_hold`",
        );
    } else if let (Some(max_hold), Some(lease)) = (max_hold, args.millis(Opt::Lease))
        && max_hold < lease
    {
        mistakes.report_at(
            given.span,
            format!(
                "`max_hold` ({}) is shorter than `lease` ({}): write a longer `max_hold` or a \
                 shorter `lease`",
                duration::print(max_hold),
                duration::print(lease)
            ),
        );
    }
}

fn check_hold_at_least(args: &Args, mistakes: &mut Mistakes) {
    if let (Some(given), Some(millis)) = (args.get(Opt::HoldAtLeast), args.millis(Opt::HoldAtLeast))
        && millis > LONGEST_LEASE
    {
        mistakes.report_at(
            given.span,
            "`hold_at_least` is 24h at most: write a shorter one",
        );
    }
}

fn check_hold_after(args: &Args, mistakes: &mut Mistakes) {
    if let Some(given) = args.get(Opt::HoldAfter)
        && args.get(Opt::HoldAtLeast).is_none()
        && !args.unclear
    {
        mistakes.report_at(
            given.name_span,
            "`hold_after` says after which bodies `hold_at_least` counts, and there is none: add, \
             for example, `hold_at_least = \"30s\"`, or leave out `hold_after`",
        );
    }
}

fn check_bound_names(args: &Args, names: Option<&ParameterNames>, mistakes: &mut Mistakes) {
    let bound = |opt| args.get(opt).zip(args.name(opt));
    let (fence, guard) = (bound(Opt::Fence), bound(Opt::Guard));
    if let (Some((_, fence)), Some((given, guard))) = (fence, guard)
        && fence == guard
    {
        mistakes.report_at(
            given.span,
            format!("`fence` and `guard` are both called `{guard}`: give them two names"),
        );
    }
    let hides = |option: &str, given: &Arg, name: &Ident, mistakes: &mut Mistakes| {
        if names.is_some_and(|names| names.parameters.contains(name)) {
            mistakes.report_at(
                given.span,
                format!(
                    "`{option} = {name}` would hide the parameter `{name}`: write another name"
                ),
            );
        }
    };
    if let Some((given, name)) = fence {
        hides("fence", given, name, mistakes);
    }
    if let Some((given, name)) = guard {
        hides("guard", given, name, mistakes);
    }
}

pub(crate) fn check_rate_limit(args: &Args, mistakes: &mut Mistakes) {
    let burst = args.get(Opt::Burst).map(|given| (given, &given.value));
    if let Some((given, Value::Count(0))) = burst {
        mistakes.report_at(
            given.span,
            "a burst of zero lets nothing pass, ever: write how many may pass at once, at least 1",
        );
        return;
    }
    if let Some(limit) = args.get(Opt::Limit) {
        for (other, advice) in [
            (
                Opt::Rate,
                "`rate` lets a burst pass beside, and `limit` nothing: leave out one of them",
            ),
            (
                Opt::Burst,
                "`limit` is exact and has no `burst`: leave it out",
            ),
        ] {
            if args.get(other).is_some() {
                mistakes.report_at(limit.name_span, advice);
            }
        }
        return;
    }
    match args.get(Opt::Rate).map(|given| (given, &given.value)) {
        Some((given, Value::Rate(rate))) => match burst {
            Some((given, Value::Count(size))) if !rate.is_full_in_time(*size) => mistakes.report_at(
                given.span,
                format!(
                    "at this rate a burst of {size} takes longer than 30 days to come back: write \
                     a faster rate or a smaller `burst`"
                ),
            ),
            None if !rate.is_full_in_time(rate.tokens) => mistakes.report_at(
                given.span,
                format!(
                    "the time of this rate is longer than 30 days: write a shorter one, for \
                     example \"{}/24h\"",
                    rate.tokens
                ),
            ),
            _ => {}
        },
        Some(_) => {}
        None if args.unclear => {}
        None => mistakes.report_at(
            Span::call_site(),
            "`rate` is missing: write how many may pass in how long, for example `rate = \
             \"100/s\"`, or exactly, for example `limit = \"100/1s\"`",
        ),
    }
}
