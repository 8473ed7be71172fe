//! The mutants that no test can be expected to find, each with the reason.

use crate::mutants::Known;

pub(super) const KNOWN: &[Known] = &[
    (
        "acquire.lua",
        "if redis.call('PTTL', at.lock) < lease",
        "< → <=",
        [1, 1],
        SAME_END,
    ),
    (
        "acquire.lua",
        "elseif tonumber(held) < time + lease * 1000",
        "< → <=",
        [1, 1],
        SAME_END,
    ),
    (
        "acquire.lua",
        "elseif state.shared and state.used > 0 then",
        "> → >=",
        [1, 1],
        "an emptied set never comes here: what is free is granted, or is another kind",
    ),
    (
        "acquire_all.lua",
        "elseif redis.call('PTTL', at.lock) < lease then",
        "< → <=",
        [1, 1],
        SAME_END,
    ),
    (
        "inspect.lua",
        "local last = redis.call('ZREVRANGE'",
        "0 → 1",
        [2, 2],
        "only the first of them is used",
    ),
    (
        "latch_look.lua",
        "if not latch then return {-1,",
        "- dropped",
        [2, 2],
        "the time left of a latch that is not set is not read",
    ),
    (
        "lib.lua",
        "if redis.call('PTTL', at.lock) < lease + SLACK",
        "< → <=",
        [1, 1],
        SAME_END,
    ),
    (
        "rate.lua",
        "return {0, delay, 0}",
        "0 → 1 at 21",
        [1, 1],
        "of a refusal only the delay is read",
    ),
    (
        "rate.lua",
        "return {1, delay, math.floor(math.max(0,",
        "0 → 1 at 39",
        [1, 1],
        "one nanosecond is never a whole token: an interval has at least a thousand",
    ),
    (
        "release.lua",
        "for i = 1, #KEYS / 3 do",
        "1 → 0",
        [1, 1],
        "there is no lock of that number: it is not held, and its reply is not in the list",
    ),
    (
        "release.lua",
        "if keep > 0 then",
        "0 → 1",
        [1, 1],
        "a key that is kept for one millisecond is free one millisecond early",
    ),
    (
        "renew.lua",
        "if type(ends) == 'string' and tonumber(ends) > time",
        "> → >=",
        [1, 1],
        "no test can meet the microsecond in which a lease ends",
    ),
    (
        "shrink.lua",
        "if ends and has > rest then",
        "> → >=",
        [1, 1],
        "it is taken out and put back as it was",
    ),
];

const SAME_END: &str = "it is given the end that it has";
