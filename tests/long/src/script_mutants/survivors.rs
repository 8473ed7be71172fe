//! The mutants that no test can be expected to find, each with the reason.

use crate::mutants::Mutant;

/// File, how the line begins, how the change begins, why.
const KNOWN: &[(&str, &str, &str, &str)] = &[
    (
        "acquire.lua",
        "if redis.call('PTTL', at.lock) < lease",
        "< → <=",
        SAME_END,
    ),
    (
        "acquire.lua",
        "elseif tonumber(held) < time + lease * 1000",
        "< → <=",
        SAME_END,
    ),
    (
        "acquire.lua",
        "if state.shared and state.used > 0 then",
        "> → >=",
        "an emptied set never comes here: what is free is granted, or is another kind",
    ),
    (
        "acquire_all.lua",
        "elseif redis.call('PTTL', at.lock) < lease then",
        "< → <=",
        SAME_END,
    ),
    (
        "inspect.lua",
        "local last = redis.call('ZREVRANGE'",
        "0 → 1",
        "only the first of them is used",
    ),
    (
        "latch_look.lua",
        "if not latch then return {-1,",
        "- dropped",
        "the time left of a latch that is not set is not read",
    ),
    (
        "lib.lua",
        "if redis.call('PTTL', at.lock) < lease + SLACK",
        "< → <=",
        SAME_END,
    ),
    (
        "rate.lua",
        "return {0, delay, 0}",
        "0 → 1 at 21",
        "of a refusal only the delay is read",
    ),
    (
        "rate.lua",
        "return {1, delay, math.floor(math.max(0,",
        "0 → 1 at 39",
        "one nanosecond is never a whole token: an interval has at least a thousand",
    ),
    (
        "release.lua",
        "for i = 1, #KEYS / 3 do",
        "1 → 0",
        "there is no lock of that number: it is not held, and its reply is not in the list",
    ),
    (
        "release.lua",
        "if keep > 0 then",
        "0 → 1",
        "a key that is kept for one millisecond is free one millisecond early",
    ),
    (
        "renew.lua",
        "if redis.call('PTTL', key) < lease",
        "< → <=",
        SAME_END,
    ),
    (
        "renew.lua",
        "if type(ends) == 'string' and tonumber(ends) > time",
        "> → >=",
        "no test can meet the microsecond in which a lease ends",
    ),
    (
        "shrink.lua",
        "if ends and has > rest then",
        "> → >=",
        "it is taken out and put back as it was",
    ),
];

const SAME_END: &str = "it is given the end that it has";

/// Why a mutant survives, if that is known.
pub(super) fn reason(mutant: &Mutant) -> Option<&'static str> {
    let is = |(file, line, what, _): &&(&str, &str, &str, &str)| {
        mutant.file == *file && mutant.old.starts_with(line) && mutant.what.starts_with(what)
    };
    KNOWN.iter().find(is).map(|(.., why)| *why)
}
