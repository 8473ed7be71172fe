//! Every word that a user writes in an attribute, and what may stand behind it.

/// An option, of one of the attributes or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opt {
    Key,
    Keys,
    Rate,
    Limit,
    Burst,
    Lease,
    Renew,
    MaxHold,
    Wait,
    Mode,
    Permits,
    Reentrant,
    Fair,
    OnLost,
    OnBusy,
    OnError,
    HoldAtLeast,
    HoldAfter,
    Fence,
    Guard,
    Outlives,
    Client,
    Crate,
}

/// What may stand behind the `=`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueKind {
    /// A template in quotes, or an expression that gives a `LockKey`.
    Key,
    /// A list of keys in brackets.
    Keys,
    /// How many in how long, or an expression that gives a `Rate`.
    Rate,
    /// How many at most in a window.
    Limit,
    /// A number of at least one, or an expression that gives a `u32`.
    Count,
    Duration,
    /// A duration, or [`FOREVER`].
    DurationOrForever,
    Bool,
    OneOf(&'static [&'static str]),
    /// As `Count`, with the limits of a semaphore.
    Permits,
    /// A variable for the body.
    Name,
    /// What the expression has to give.
    Expression(&'static str),
    Path,
}

/// How an option is written.
pub(crate) struct Spelling {
    pub(crate) opt: Opt,
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    /// A right use, for messages.
    pub(crate) example: &'static str,
}

const fn spelling(
    opt: Opt,
    name: &'static str,
    kind: ValueKind,
    example: &'static str,
) -> Spelling {
    Spelling {
        opt,
        name,
        kind,
        example,
    }
}

/// One attribute: its name, the words a user may write in it, and what its messages say it does.
pub(crate) struct Vocabulary {
    pub(crate) name: &'static str,
    /// Every option of the attribute.
    pub(crate) options: &'static [Spelling],
    /// Our name for an option, and what other libraries call it.
    pub(crate) synonyms: &'static [(&'static str, &'static [&'static str])],
    /// What the key names.
    pub(crate) key_is: &'static str,
    /// What may be written in the key's place.
    pub(crate) or_keys: &'static str,
    /// What stands beside the key in an example.
    pub(crate) with_key: &'static str,
    pub(crate) has_to_wait: &'static str,
    pub(crate) cannot_wait: &'static str,
    pub(crate) runs: &'static str,
}

/// Both attributes. A word of one may have been meant for the other.
pub(crate) const ATTRIBUTES: [&Vocabulary; 2] = [&DISTRIBUTED_LOCK, &RATE_LIMITED];

pub(crate) const DISTRIBUTED_LOCK: Vocabulary = Vocabulary {
    name: "distributed_lock",
    options: &LOCK_OPTIONS,
    synonyms: &LOCK_SYNONYMS,
    key_is: "what is locked",
    or_keys: ", or several in `keys = […]`",
    with_key: "",
    has_to_wait: "the lock is waited for",
    cannot_wait: "wait for a lock",
    runs: "run under a lock",
};

pub(crate) const RATE_LIMITED: Vocabulary = Vocabulary {
    name: "rate_limited",
    options: &RATE_OPTIONS,
    synonyms: &RATE_SYNONYMS,
    key_is: "what is limited",
    or_keys: "",
    with_key: ", rate = \"100/s\"",
    has_to_wait: "the rate limiter is asked over the network",
    cannot_wait: "ask a rate limiter",
    runs: "be limited",
};

/// The options of a lock whose values are durations.
pub(crate) const DURATIONS: [Opt; 4] = [Opt::Lease, Opt::MaxHold, Opt::Wait, Opt::HoldAtLeast];

/// The `wait` that never ends for a busy lock.
pub(crate) const FOREVER: &str = "forever";

/// The `mode` of a lock that nobody shares.
pub(crate) const EXCLUSIVE: &str = "exclusive";
/// The `mode` that readers share.
pub(crate) const READ: &str = "read";
/// The `mode` that excludes readers and writers.
pub(crate) const WRITE: &str = "write";

/// The `on_lost` that drops the body.
pub(crate) const CANCEL: &str = "cancel";
/// The `on_lost` that lets the body run on.
pub(crate) const CONTINUE: &str = "continue";

/// The `on_busy` that returns an error.
const ERROR: &str = "error";
/// The `on_busy` that skips the body.
pub(crate) const SKIP: &str = "skip";

/// The `hold_after` that counts whatever became of the body.
pub(crate) const ALWAYS: &str = "always";
/// The `hold_after` that counts after `Ok` only.
pub(crate) const SUCCESS: &str = "success";

#[rustfmt::skip]
const LOCK_OPTIONS: [Spelling; 20] = [
    spelling(Opt::Key, "key", ValueKind::Key, "key = \"stock:<product_id>\""),
    spelling(Opt::Keys, "keys", ValueKind::Keys, "keys = [\"account:<from>\", \"account:<to>\"]"),
    spelling(Opt::Lease, "lease", ValueKind::Duration, "lease = \"10s\""),
    spelling(Opt::Renew, "renew", ValueKind::Bool, "renew = true"),
    spelling(Opt::MaxHold, "max_hold", ValueKind::Duration, "max_hold = \"5m\""),
    spelling(Opt::Wait, "wait", ValueKind::DurationOrForever, "wait = \"3s\""),
    spelling(Opt::Mode, "mode", ValueKind::OneOf(&[EXCLUSIVE, READ, WRITE]), "mode = \"read\""),
    spelling(Opt::Permits, "permits", ValueKind::Permits, "permits = 5"),
    spelling(Opt::Reentrant, "reentrant", ValueKind::Bool, "reentrant = false"),
    spelling(Opt::Fair, "fair", ValueKind::Bool, "fair = true"),
    spelling(Opt::OnLost, "on_lost", ValueKind::OneOf(&[CANCEL, CONTINUE]),
        "on_lost = \"continue\""),
    spelling(Opt::OnBusy, "on_busy", ValueKind::OneOf(&[ERROR, SKIP]), "on_busy = \"skip\""),
    spelling(Opt::OnError, "on_error", ValueKind::Expression("called with a `LockError`"),
        "on_error = |error| Reply::from(error)"),
    spelling(Opt::HoldAtLeast, "hold_at_least", ValueKind::Duration, "hold_at_least = \"5s\""),
    spelling(Opt::HoldAfter, "hold_after", ValueKind::OneOf(&[ALWAYS, SUCCESS]),
        "hold_after = \"success\""),
    spelling(Opt::Fence, "fence", ValueKind::Name, "fence = token"),
    spelling(Opt::Guard, "guard", ValueKind::Name, "guard = lock"),
    spelling(Opt::Outlives, "outlives", ValueKind::Bool, "outlives = true"),
    spelling(Opt::Client, "client", ValueKind::Expression("a `&LockClient`"),
        "client = &self.locks"),
    spelling(Opt::Crate, "crate", ValueKind::Path, "crate = my_facade::lock_runtime"),
];

#[rustfmt::skip]
const RATE_OPTIONS: [Spelling; 8] = [
    spelling(Opt::Key, "key", ValueKind::Key, "key = \"api:<app_id>\""),
    spelling(Opt::Rate, "rate", ValueKind::Rate, "rate = \"100/s\""),
    spelling(Opt::Limit, "limit", ValueKind::Limit, "limit = \"100/1s\""),
    spelling(Opt::Burst, "burst", ValueKind::Count, "burst = 20"),
    spelling(Opt::Wait, "wait", ValueKind::Duration, "wait = \"1s\""),
    spelling(Opt::OnError, "on_error", ValueKind::Expression("called with a `LockError`"),
        "on_error = |error| Reply::from(error)"),
    spelling(Opt::Client, "client", ValueKind::Expression("a `&LockClient`"),
        "client = &self.locks"),
    spelling(Opt::Crate, "crate", ValueKind::Path, "crate = my_facade::lock_runtime"),
];

/// What other lock libraries call the same thing.
const LOCK_SYNONYMS: [(&str, &[&str]); 8] = [
    (
        "lease",
        &[
            "ttl",
            "expire",
            "expires",
            "expiry",
            "leaseTime",
            "lease_time",
            "lock_at_most_for",
        ],
    ),
    ("hold_at_least", &["lock_at_least_for", "at_least"]),
    ("wait", &["timeout", "waitTime", "wait_time"]),
    ("key", &["name"]),
    ("keys", &["names"]),
    ("mode", &["read", "write", "shared"]),
    ("permits", &["limit", "concurrency"]),
    ("crate", &["runtime"]),
];

/// What other rate limiters call the same thing.
const RATE_SYNONYMS: [(&str, &[&str]); 6] = [
    ("limit", &["quota"]),
    ("rate", &["per_second", "replenish_rate"]),
    (
        "burst",
        &["max_burst", "burst_size", "burst_capacity", "capacity"],
    ),
    ("wait", &["timeout", "max_wait", "wait_time"]),
    ("key", &["name"]),
    ("crate", &["runtime"]),
];
