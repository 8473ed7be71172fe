//! The health of a server, and its settings that endanger locks.

use std::fmt;
use std::time::Duration;

/// One server, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerHealth {
    /// `host:port`, or the path of its socket.
    pub address: String,
    /// Its version, such as `7.0.15`; empty if it did not answer.
    pub version: String,
    /// Its role: only a master takes writes.
    pub role: Role,
    /// The number of connected replicas. `None` if the user may not ask, or the server did not
    /// answer.
    pub replicas: Option<u32>,
    /// How long its answer took just now. Zero if it did not answer.
    pub round_trip: Duration,
    /// How long this client has been connected to it without a break.
    pub connected_for: Duration,
    /// The number of reconnects since the client was made, to this or an earlier master.
    pub reconnects: u64,
    /// The problems to solve. Empty if there are none.
    pub findings: Vec<Finding>,
}

impl ServerHealth {
    /// A server with only its address known.
    #[must_use]
    pub fn new(address: String) -> Self {
        Self {
            address,
            version: String::new(),
            role: Role::Unknown,
            replicas: None,
            round_trip: Duration::ZERO,
            connected_for: Duration::ZERO,
            reconnects: 0,
            findings: Vec::new(),
        }
    }

    /// Logs the findings.
    pub fn log(&self) {
        for finding in &self.findings {
            match finding {
                // A user with few permissions has few on purpose.
                Finding::Unknown { .. } | Finding::SnapshotsUnknown => {
                    tracing::info!(server = %self.address, "the lock store: {finding}");
                }
                _ => tracing::warn!(server = %self.address, "the lock store: {finding}"),
            }
        }
    }
}

/// The role of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// It takes writes.
    Master,
    /// It copies a master, and can't grant locks.
    Replica,
    /// It did not answer.
    Unknown,
}

/// Something about a server that endangers locks. Its [`Display`](fmt::Display) says what it is and
/// what to do.
///
/// Findings are logged once as warnings when a client has connected. They are in the client's
/// health at any time. `strict_checks` refuses to start with any of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finding {
    /// When memory is full, the server may evict locks.
    #[non_exhaustive]
    Evicting {
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// A restart of the server loses all locks: it writes no append-only file and no snapshots.
    NoPersistence,
    /// It writes no append-only file, and it is unknown whether it saves snapshots: the user may
    /// not read the server's configuration, which also contains passwords.
    SnapshotsUnknown,
    /// A master that is cut off from its replicas continues to grant locks. Its successor does not
    /// know them.
    #[non_exhaustive]
    NoMinReplicas {
        /// The number of connected replicas.
        replicas: u32,
    },
    /// The client asks for more confirmations than there are replicas. So no lock can be acquired.
    #[non_exhaustive]
    TooFewReplicas {
        /// The number of replicas that must confirm.
        asked: u32,
        /// The number of connected replicas.
        connected: u32,
    },
    /// The server's wall clock and this machine's are far apart.
    #[non_exhaustive]
    ClockDifference {
        /// The minimum difference.
        difference: Duration,
        /// True if the server's clock is ahead.
        is_ahead: bool,
    },
    /// One of several servers does not answer while others do. A quorum, ZooKeeper and etcd work
    /// without it as long as a majority is left. In a Redis Cluster, locks in the slots of this
    /// master can't be acquired. With a single server, no answer is an error instead of a finding.
    #[non_exhaustive]
    NoAnswer {
        /// The error met instead of an answer.
        reason: String,
    },
    /// Anything else that endangers locks, in the words of the store: what it is, and what to do.
    #[non_exhaustive]
    Other {
        /// What it is, and what to do.
        text: String,
    },
    /// There is no server: with the URL `memory:`, locks are in the memory of this process.
    InProcess,
    /// The user may not ask the server.
    #[non_exhaustive]
    Unknown {
        /// What can't be checked.
        what: &'static str,
        /// The missing permission, in the syntax of the server's own rules.
        right: &'static str,
    },
}

/// For stores: other crates can't construct these variants, since they may grow.
#[expect(missing_docs, reason = "each makes the variant of its name")]
impl Finding {
    #[must_use]
    pub fn evicting(policy: String) -> Self {
        Self::Evicting { policy }
    }

    #[must_use]
    pub fn no_min_replicas(replicas: u32) -> Self {
        Self::NoMinReplicas { replicas }
    }

    #[must_use]
    pub fn too_few_replicas(asked: u32, connected: u32) -> Self {
        Self::TooFewReplicas { asked, connected }
    }

    #[must_use]
    pub fn clock_difference(difference: Duration, is_ahead: bool) -> Self {
        Self::ClockDifference {
            difference,
            is_ahead,
        }
    }

    #[must_use]
    pub fn no_answer(reason: String) -> Self {
        Self::NoAnswer { reason }
    }

    #[must_use]
    pub fn other(text: String) -> Self {
        Self::Other { text }
    }

    #[must_use]
    pub fn unknown(what: &'static str, right: &'static str) -> Self {
        Self::Unknown { what, right }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evicting { policy } => write!(
                f,
                "`maxmemory-policy` is `{policy}`, which evicts locks when memory is full; set it \
                 to `noeviction`"
            ),
            Self::NoPersistence => f.write_str(
                "it keeps nothing on disk, so a restart frees every lock that is held; set \
                 `appendonly yes` (and `appendfsync always` to keep all of them), or rely on \
                 fencing tokens",
            ),
            Self::SnapshotsUnknown => f.write_str(
                "it writes no append-only file, and whether it saves snapshots can't be checked; \
                 set `appendonly yes`, or make sure that its `save` is set (the permission \
                 `+config|get` would show that, but also the server's passwords)",
            ),
            Self::NoMinReplicas { replicas } => write!(
                f,
                "it has {replicas} replica(s) and `min-replicas-to-write 0`, so it continues to \
                 grant locks when it is cut off from them and another takes over; set \
                 `min-replicas-to-write 1`"
            ),
            Self::TooFewReplicas { asked, connected } => write!(
                f,
                "{asked} replica(s) are to confirm each lock and {connected} are connected, so no \
                 lock can be acquired; add replicas, or ask for fewer"
            ),
            Self::ClockDifference {
                difference,
                is_ahead,
            } => {
                let side = if *is_ahead { "ahead of" } else { "behind" };
                write!(
                    f,
                    "its clock is {difference:.1?} {side} this machine's; one of them is wrong, \
                     and fencing tokens rise only as far as servers' clocks agree: synchronise \
                     both (NTP)"
                )
            }
            Self::NoAnswer { reason } => write!(
                f,
                "it does not answer ({reason}): a quorum, ZooKeeper and etcd work without it as \
                 long as a majority is left; in a Redis Cluster the locks of its slots can't be \
                 acquired. Start it, or repair the network"
            ),
            Self::Other { text } => f.write_str(text),
            Self::InProcess => f.write_str(
                "its locks are in the memory of this process, so no other process sees them and a \
                 restart frees them; give the URL of a store that processes share, or write \
                 `LockClient::in_memory()` if this is intended",
            ),
            Self::Unknown { what, right } => write!(
                f,
                "{what} can't be checked, since the user may not ask; allow it `{right}`"
            ),
        }
    }
}
