//! The options of a rate limiter that let nothing pass, or are missing.

use crate::args::Opt;
use crate::faults::Faults;
use crate::parse::Args;
use crate::parse::value::Value;
use proc_macro2::Span;

pub(super) fn options(args: &Args, faults: &mut Faults) {
    let burst = args.get(Opt::Burst).map(|given| (given, &given.value));
    if let Some((given, Value::Count(0))) = burst {
        faults.at(
            given.span,
            "a burst of zero lets nothing pass, ever: write how many may pass at once, at least 1",
        );
        return;
    }
    match args.get(Opt::Rate).map(|given| (given, &given.value)) {
        Some((given, Value::Rate(rate))) => match burst {
            Some((given, Value::Count(size))) if !rate.fills(*size) => faults.at(
                given.span,
                format!(
                    "at this rate a burst of {size} takes longer than 30 days to come back: write \
                     a faster rate or a smaller `burst`"
                ),
            ),
            None if !rate.fills(rate.tokens) => faults.at(
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
        None => faults.at(
            Span::call_site(),
            "`rate` is missing: write how many may pass in how long, for example `rate = \
             \"100/s\"`",
        ),
    }
}
