//! What is wrong with the options of a lock once all are known: limits, contradictions, and names
//! that hide a parameter.

use crate::args::{Opt, READ, SKIP, WRITE};
use crate::faults::Faults;
use crate::function::parameters::Names;
use crate::parse::duration;
use crate::parse::value::Value;
use crate::parse::{Arg, Args};
use proc_macro2::Ident;

const SHORTEST_LEASE: u64 = 10;
const LONGEST_LEASE: u64 = 24 * 60 * 60 * 1_000;

/// `names` are those of the function's parameters.
pub(crate) fn options(args: &Args, names: Option<&Names>, faults: &mut Faults) {
    lease(args, faults);
    max_hold(args, faults);
    if let Some(wait) = args.get(Opt::Wait)
        && let Some(on_busy) = args.get(Opt::OnBusy)
        && matches!(wait.value, Value::Forever)
        && args.is_word(Opt::OnBusy, SKIP)
    {
        faults.at(
            on_busy.span,
            "`on_busy = \"skip\"` never happens with `wait = \"forever\"`: write a `wait` after \
             which to skip, for example `wait = \"0s\"`, or leave out `on_busy`",
        );
    }
    synchronizers(args, faults);
    bound_names(args, names, faults);
}

/// A call takes one kind of lock: several keys, a read-write lock or a semaphore.
fn synchronizers(args: &Args, faults: &mut Faults) {
    if let (Some(_), Some(keys)) = (args.get(Opt::Key), args.get(Opt::Keys)) {
        faults.at(
            keys.name_span,
            "`key` and `keys` both say what is locked: leave out one of them, several keys all \
             stand in `keys`",
        );
    }
    if let (Some(_), Some(permits)) = (args.get(Opt::Mode), args.get(Opt::Permits)) {
        faults.at(
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
        faults.at(
            mode.name_span,
            format!(
                "several `keys` are always locked exclusively, not with `mode = \"{word}\"`: \
                 leave out `mode`, or lock one `key`"
            ),
        );
    }
    if let Some(permits) = args.get(Opt::Permits) {
        faults.at(
            permits.name_span,
            "several `keys` are always locked exclusively, and `permits` makes a semaphore of \
             one: leave out `permits`, or write one `key`",
        );
    }
}

fn lease(args: &Args, faults: &mut Faults) {
    let (Some(given), Some(millis)) = (args.get(Opt::Lease), args.millis(Opt::Lease)) else {
        return;
    };
    if millis == 0 {
        faults.at(
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
        faults.at(
            given.span,
            format!(
                "a lease is {} to 24h: {advice}",
                duration::print(SHORTEST_LEASE)
            ),
        );
    }
}

fn max_hold(args: &Args, faults: &mut Faults) {
    let Some(given) = args.get(Opt::MaxHold) else {
        return;
    };
    let max_hold = args.millis(Opt::MaxHold);
    let renew = args.bool(Opt::Renew);
    let says_renew = args.get(Opt::Renew).is_some();
    if max_hold.is_some_and(|max_hold| max_hold < SHORTEST_LEASE) {
        faults.at(
            given.span,
            format!(
                "`max_hold` is shorter than the shortest lease ({}): write a longer one",
                duration::print(SHORTEST_LEASE)
            ),
        );
    } else if renew == Some(false) {
        faults.at(
            given.name_span,
            "`max_hold` ends the renewal, and `renew = false` says that there is none: leave out \
             one of them",
        );
    } else if args.get(Opt::Lease).is_some() && !says_renew {
        faults.at(
            given.name_span,
            "`max_hold` ends the renewal, and a hold with `lease` is not renewed: add `renew = \
             true`, or leave out `lease` or `max_hold`",
        );
    } else if let (Some(max_hold), Some(lease)) = (max_hold, args.millis(Opt::Lease))
        && max_hold < lease
    {
        faults.at(
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

fn bound_names(args: &Args, names: Option<&Names>, faults: &mut Faults) {
    let bound = |opt| args.get(opt).zip(args.name(opt));
    let (fence, guard) = (bound(Opt::Fence), bound(Opt::Guard));
    if let (Some((_, fence)), Some((given, guard))) = (fence, guard)
        && fence == guard
    {
        faults.at(
            given.span,
            format!("`fence` and `guard` are both called `{guard}`: give them two names"),
        );
    }
    let hides = |option: &str, given: &Arg, name: &Ident, faults: &mut Faults| {
        if names.is_some_and(|names| names.parameters.contains(name)) {
            faults.at(
                given.span,
                format!(
                    "`{option} = {name}` would hide the parameter `{name}`: write another name"
                ),
            );
        }
    };
    if let Some((given, name)) = fence {
        hides("fence", given, name, faults);
    }
    if let Some((given, name)) = guard {
        hides("guard", given, name, faults);
    }
}
