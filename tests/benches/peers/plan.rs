//! The workloads and the libraries.

/// What each process does. The names are those of the line protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every task takes and releases a lock of its own.
    Own,
    /// All tasks take and release the same lock.
    One,
    /// The same, with GET and SET of an inventory under the lock.
    Sale,
    /// Two processes in turn: one waits while the other releases.
    Turns,
    /// This many locks are kept and renewed.
    Held,
    /// This many requests wait for one lock.
    Crowd,
    /// One task on a lock inside the process, without a clock in between.
    Batch,
    /// The attribute beside `run()`.
    Attribute,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::One => "one",
            Self::Sale => "sale",
            Self::Turns => "turns",
            Self::Held => "held",
            Self::Crowd => "crowd",
            Self::Batch => "batch",
            Self::Attribute => "attribute",
        }
    }
}

/// The servers that a workload runs against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    One,
    /// Three masters.
    Cluster,
    /// A master, and a replica that confirms each lock.
    Replica,
}

#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
    pub(crate) processes: usize,
    /// Tasks (or locks, or waiters) in each process.
    pub(crate) tasks: usize,
    /// The library that the others are compared with.
    pub(crate) reference: &'static str,
    pub(crate) topology: Topology,
}

/// Not one library, but two beside each other on one key.
pub(crate) const BESIDE_REDISSON: &str = "ours-beside-redisson";

/// The processes of `hot4` and `sale4`.
pub(crate) const PROCESSES: usize = 4;

pub(crate) const WORKLOADS: [Workload; 13] = [
    workload("solo", "1 task, 1 key", Kind::One, 1, 1, "bare"),
    workload("many", "64 tasks, a key each", Kind::Own, 1, 64, "bare"),
    workload(
        "many-cluster",
        "as many, in a cluster of 3 nodes",
        Kind::Own,
        1,
        64,
        "bare",
    )
    .on(Topology::Cluster),
    workload(
        "many-replicas",
        "as many, and a replica confirms each lock",
        Kind::Own,
        1,
        64,
        "bare",
    )
    .on(Topology::Replica),
    workload("hot", "64 tasks, 1 key", Kind::One, 1, 64, "bare"),
    workload(
        "hot4",
        "4 processes of 16 tasks, 1 key",
        Kind::One,
        PROCESSES,
        16,
        "bare",
    ),
    workload(
        "sale",
        "as hot, with GET and SET under the lock",
        Kind::Sale,
        1,
        64,
        "no-lock",
    ),
    workload(
        "sale4",
        "as hot4, with GET and SET under the lock",
        Kind::Sale,
        PROCESSES,
        16,
        "no-lock",
    ),
    workload(
        "handoff",
        "2 processes hand over: from calling release to having the lock",
        Kind::Turns,
        2,
        1,
        "no-lock",
    ),
    workload(
        "held",
        "10,000 locks held and renewed, lease 30 s",
        Kind::Held,
        1,
        10_000,
        "ours",
    ),
    workload(
        "crowd",
        "10,000 tasks wait for 1 key",
        Kind::Crowd,
        1,
        10_000,
        "bare",
    ),
    workload(
        "memory",
        "1 task, 1 key, inside the process",
        Kind::Batch,
        1,
        1,
        "mutex",
    ),
    workload(
        "attribute",
        "the attribute beside `client.lock(key).run(…)`, inside the process",
        Kind::Attribute,
        1,
        1,
        "ours",
    ),
];

const fn workload(
    name: &'static str,
    about: &'static str,
    kind: Kind,
    processes: usize,
    tasks: usize,
    reference: &'static str,
) -> Workload {
    Workload {
        name,
        about,
        kind,
        processes,
        tasks,
        reference,
        topology: Topology::One,
    }
}

impl Workload {
    const fn on(self, topology: Topology) -> Self {
        Self { topology, ..self }
    }
}

/// What it takes to build and run a library's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// Part of this program.
    Ours,
    Rust,
    Java,
    Go,
    Python,
}

#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) toolchain: Toolchain,
    kinds: &'static [Kind],
}

impl Library {
    pub(crate) fn takes_part_in(&self, workload: &Workload) -> bool {
        let knows_topology = workload.topology == Topology::One
            || ["bare", "bare-fenced", "ours", "ours-fenced"].contains(&self.name);
        let is_of_several = ["chain", BESIDE_REDISSON].contains(&self.name);
        let knows_processes = !is_of_several || workload.processes == PROCESSES;
        knows_topology && knows_processes && self.kinds.contains(&workload.kind)
    }

    /// Processes and tasks. A workload without a lock is one loop, however many others share the
    /// work.
    pub(crate) fn size(&self, workload: &Workload) -> (usize, usize) {
        match (self.name, workload.kind) {
            ("no-lock", _) => (1, 1),
            ("chain", _) => (workload.processes, 1),
            _ => (workload.processes, workload.tasks),
        }
    }
}

const CYCLES: &[Kind] = &[Kind::Own, Kind::One, Kind::Sale, Kind::Turns];
const CYCLES_CROWD: &[Kind] = &[Kind::Own, Kind::One, Kind::Sale, Kind::Turns, Kind::Crowd];
const CYCLES_HELD: &[Kind] = &[Kind::Own, Kind::One, Kind::Sale, Kind::Turns, Kind::Held];
const CYCLES_CROWD_HELD: &[Kind] = &[
    Kind::Own,
    Kind::One,
    Kind::Sale,
    Kind::Turns,
    Kind::Crowd,
    Kind::Held,
];
const CYCLES_CROWD_BATCH: &[Kind] = &[
    Kind::Own,
    Kind::One,
    Kind::Sale,
    Kind::Turns,
    Kind::Crowd,
    Kind::Batch,
];
const ALL: &[Kind] = &[
    Kind::Own,
    Kind::One,
    Kind::Sale,
    Kind::Turns,
    Kind::Held,
    Kind::Crowd,
    Kind::Batch,
    Kind::Attribute,
];

pub(crate) const LIBRARIES: [Library; 19] = [
    library(
        "no-lock",
        "one loop without any lock",
        Toolchain::Ours,
        &[Kind::Sale, Kind::Turns],
    ),
    library(
        "mutex",
        "`tokio::sync::Mutex`",
        Toolchain::Ours,
        &[Kind::Crowd, Kind::Batch],
    ),
    library(
        "chain",
        "a hand-over alone: a command, its message, a wake-up",
        Toolchain::Ours,
        &[Kind::One],
    ),
    library(
        "bare",
        "by hand with redis-rs 1.8, polling",
        Toolchain::Ours,
        CYCLES_CROWD,
    ),
    library(
        "bare-fenced",
        "the same with a fencing token",
        Toolchain::Ours,
        &[Kind::Own, Kind::One],
    ),
    library("ours", "this library", Toolchain::Ours, ALL),
    library(
        "ours-fenced",
        "this library, `fenced()`",
        Toolchain::Ours,
        CYCLES_CROWD_BATCH,
    ),
    library(
        "ours-fair",
        "this library, `fair()`",
        Toolchain::Ours,
        CYCLES_CROWD_BATCH,
    ),
    library(
        "ours-observed",
        "this library, with metrics for Prometheus",
        Toolchain::Ours,
        &[Kind::Own],
    ),
    library(
        "ours-redisson",
        "this library, `layout=redisson`",
        Toolchain::Ours,
        &[Kind::Own, Kind::One],
    ),
    library(
        BESIDE_REDISSON,
        "half the processes this library, `layout=redisson`, and half Redisson 4.7.0",
        Toolchain::Java,
        &[Kind::One],
    ),
    library("rslock", "rslock 0.10.0", Toolchain::Rust, CYCLES_CROWD),
    library(
        "async-redis-lock",
        "async-redis-lock 0.4.0",
        Toolchain::Rust,
        CYCLES_CROWD_HELD,
    ),
    library(
        "redisson",
        "Redisson 4.7.0 `RLock`, a thread a task",
        Toolchain::Java,
        CYCLES_HELD,
    ),
    library(
        "redisson-async",
        "Redisson 4.7.0 `RLock`, `lockAsync`",
        Toolchain::Java,
        CYCLES_CROWD_HELD,
    ),
    library(
        "redisson-fair",
        "Redisson 4.7.0 `RFairLock`, a thread a task",
        Toolchain::Java,
        CYCLES,
    ),
    library("redsync", "redsync 4.18 (Go)", Toolchain::Go, CYCLES_CROWD),
    library(
        "redislock",
        "bsm/redislock 0.9.4 (Go)",
        Toolchain::Go,
        CYCLES_CROWD,
    ),
    library(
        "redis-py",
        "redis-py 8.1, asyncio `Lock`",
        Toolchain::Python,
        CYCLES_CROWD,
    ),
];

const fn library(
    name: &'static str,
    about: &'static str,
    toolchain: Toolchain,
    kinds: &'static [Kind],
) -> Library {
    Library {
        name,
        about,
        toolchain,
        kinds,
    }
}

/// Whether a library is this one. It gets another colour, and is held to the aims.
pub(crate) fn is_ours(library: &str) -> bool {
    library == "ours" || library.starts_with("ours-")
}

/// Whether it is another library, and not a reference.
pub(crate) fn is_peer(library: &str) -> bool {
    let toolchain = LIBRARIES.iter().find(|known| known.name == library);
    toolchain.is_some_and(|known| known.toolchain != Toolchain::Ours) && !is_ours(library)
}
