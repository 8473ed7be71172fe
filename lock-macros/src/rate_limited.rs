//! `#[rate_limited]`: its words, its own checks, and the way from what is written to what is compiled.

mod expand;

use crate::args::{Args, Kind, Opt, Spelling, Vocabulary, spelling};
use crate::attribute::read_function;
use crate::check;
use crate::fallback::{self, Faults};
use crate::params;
use crate::shape;
use crate::value::Value;
use proc_macro2::{Span, TokenStream};

#[rustfmt::skip]
const OPTIONS: [Spelling; 7] = [
    spelling(Opt::Key, "key", Kind::Key, "key = \"api:<app_id>\""),
    spelling(Opt::Rate, "rate", Kind::Rate, "rate = \"100/s\""),
    spelling(Opt::Burst, "burst", Kind::Count, "burst = 20"),
    spelling(Opt::Wait, "wait", Kind::Duration, "wait = \"1s\""),
    spelling(Opt::OnError, "on_error", Kind::Expression("called with a `LockError`"), "on_error = |error| Reply::from(error)"),
    spelling(Opt::Client, "client", Kind::Expression("a `&LockClient`"), "client = &self.locks"),
    spelling(Opt::Crate, "crate", Kind::Path, "crate = my_facade::lock_runtime"),
];

/// What other rate limiters call the same thing.
const ELSEWHERE: [(&str, &str); 13] = [
    ("limit", "rate"),
    ("quota", "rate"),
    ("per_second", "rate"),
    ("replenish_rate", "rate"),
    ("max_burst", "burst"),
    ("burst_size", "burst"),
    ("burst_capacity", "burst"),
    ("capacity", "burst"),
    ("timeout", "wait"),
    ("max_wait", "wait"),
    ("wait_time", "wait"),
    ("name", "key"),
    ("runtime", "crate"),
];

pub(crate) const RATE_LIMITED: Vocabulary = Vocabulary {
    name: "rate_limited",
    options: &OPTIONS,
    elsewhere: &ELSEWHERE,
    key_is: "what is limited",
    or_keys: "",
    with_key: ", rate = \"100/s\"",
    has_to_wait: "the rate limiter is asked over the network",
    cannot_wait: "ask a rate limiter",
    runs: "be limited",
};

pub(crate) fn rate_limited(tokens: TokenStream, item: TokenStream) -> TokenStream {
    let mut faults = Faults::default();
    let args = Args::parse(tokens.clone(), &RATE_LIMITED, &mut faults);
    let function = read_function(&item, &args, &mut faults);
    let sig = function.as_ref().map(|function| &function.sig);
    let names = sig.map(params::names);
    options(&args, &mut faults);
    let keys = check::keys(&args, sig, names.as_deref(), &mut faults);
    let shaped = function
        .as_ref()
        .and_then(|function| shape::of(function, args.attribute, &mut faults));
    match (keys, function, shaped) {
        (Some(keys), Some(function), Some(shaped)) if faults.is_empty() => {
            if expand::is_locked(&function) {
                return expand::behind_the_lock(&args, tokens, function);
            }
            expand::function(&args, &keys, function, shaped)
        }
        _ => fallback::emit(faults, item, &args),
    }
}

fn options(args: &Args, faults: &mut Faults) {
    let burst = args.get(Opt::Burst).map(|given| (given, &given.value));
    if let Some((given, Value::Count(0))) = burst {
        faults.at(
            given.span,
            "a burst of zero lets nothing pass, ever: write how many may pass at once, at least 1",
        );
        return;
    }
    match args.get(Opt::Rate).map(|given| (given, &given.value)) {
        Some((given, Value::Rate(rate))) => {
            match burst {
                Some((given, Value::Count(size))) if !rate.fills(*size) => faults.at(
                    given.span,
                    format!(
                        "at this rate a burst of {size} takes longer than 30 days to come back: write a faster rate \
                         or a smaller `burst`"
                    ),
                ),
                None if !rate.fills(rate.tokens) => faults.at(
                    given.span,
                    format!(
                        "the time of this rate is longer than 30 days: write a shorter one, for example \"{}/24h\"",
                        rate.tokens
                    ),
                ),
                _ => {}
            }
        }
        Some(_) => {}
        None if args.unclear => {}
        None => faults.at(
            Span::call_site(),
            "`rate` is missing: write how many may pass in how long, for example `rate = \"100/s\"`",
        ),
    }
}
