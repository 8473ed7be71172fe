//! Both sides take one key over and over: never two, and each side has its turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{Lock, LockClient};
use lock_testkit::{RedisCluster, RedisServer, patient_connection};
use redis::AsyncCommands;

use crate::servers::Servers;
use crate::{Java, LONG, VERSIONS, client};

const LEASE: Duration = Duration::from_secs(20);
/// A holder stays for this long at most.
const STAY_MS: u64 = 3;
/// Fewer turns than these say nothing of the sides' parts: a busy machine has few in seconds.
const TURNS: u32 = 100;
/// How often both sides are let at the key, at most: for these turns, and as a busy machine may
/// favour one of them for a while.
const ROUNDS: u32 = 10;

/// For `REDISSON_SECONDS`, or some.
fn seconds() -> u64 {
    let seconds = std::env::var("REDISSON_SECONDS").ok();
    seconds.map_or(3, |seconds| seconds.parse().unwrap())
}

/// What one of our tasks wants again and again.
type Request = fn(&LockClient, &str) -> Lock;

/// A kind of lock, as both sides call it.
struct Kind {
    java: &'static str,
    ours: Request,
    /// As many may be in at once.
    most: u32,
    /// So many threads of Java want it, and at most so many tasks of ours.
    on_each_side: usize,
    /// A round lasts for so many seconds at most.
    longest: u64,
}

impl Kind {
    const fn new(java: &'static str, ours: Request, most: u32) -> Self {
        Self {
            java,
            ours,
            most,
            on_each_side: 3,
            longest: u64::MAX,
        }
    }
}

/// Turns, and how often others were there.
#[derive(Default)]
struct Seen {
    turns: AtomicU32,
    broken: AtomicU32,
}

/// A counter that both sides count in.
struct Counter {
    name: String,
    /// Its server's.
    url: String,
}

impl Counter {
    async fn of(servers: &impl Servers, name: String) -> Self {
        let url = servers.of(&name).await.url();
        Self { name, url }
    }
}

async fn contend(
    client: LockClient,
    [inside, writing]: [&Counter; 2],
    kind: &Kind,
    key: &str,
    (seconds, seen): (u64, Arc<Seen>),
) {
    let writes = kind.java == "write";
    let (own, other) = match writes {
        true => (writing, inside),
        false => (inside, writing),
    };
    let mut counters = patient_connection(&own.url).await;
    let mut of_others = patient_connection(&other.url).await;
    let most = if writes { 1 } else { kind.most };
    let ends = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < ends {
        let guard = (kind.ours)(&client, key).acquire().await.unwrap();
        let inside: u32 = counters.incr(&own.name, 1).await.unwrap();
        let others: Option<i64> = of_others.get(&other.name).await.unwrap();
        if inside > most || others.unwrap_or(0) > 0 {
            seen.broken.fetch_add(1, Ordering::Relaxed);
        }
        let stay = guard.held_for().as_nanos() as u64 % (STAY_MS + 1);
        tokio::time::sleep(Duration::from_millis(stay)).await;
        let _: i64 = counters.decr(&own.name, 1).await.unwrap();
        assert!(guard.is_held());
        guard.release().await.unwrap();
        seen.turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// For each task of ours, which of two clients it has.
type Ours = &'static [usize];

const BOTH_CLIENTS: Ours = &[0, 1, 0];

/// Threads of Java, and tasks of ours.
async fn both_sides(kinds: &'static [Kind], version: &str, ours: Ours) {
    let server = RedisServer::start().await;
    if let Some(mut java) = Java::of_version(&server, LEASE, version).await {
        both_at(&server, &mut java, kinds, version, ours).await;
    }
}

async fn both_at(
    servers: &impl Servers,
    java: &mut Java,
    kinds: &'static [Kind],
    version: &str,
    ours: Ours,
) {
    let key: Arc<str> = match version.starts_with("3.") {
        true => format!("{{shop}}:{}", kinds[0].java).into(),
        false => kinds[0].java.into(),
    };
    let [inside, writing] =
        ["in", "writing"].map(|what| Counter::of(servers, format!("{what}:{key}")));
    let counters = Arc::new((inside.await, writing.await));
    warm_up(java, kinds, &key).await;
    let of_ours = [client(servers, LEASE).await, client(servers, LEASE).await];
    let seen = Arc::new(Seen::default());
    let (mut theirs, mut turns, mut least) = (0, 0, 0);
    for _ in 0..ROUNDS {
        let clients = ours.iter().map(|client| &of_ours[*client]);
        theirs += one_round(java, kinds, &key, clients, (&counters, &seen)).await;
        turns = seen.turns.load(Ordering::Relaxed);
        assert_eq!(seen.broken.load(Ordering::Relaxed), 0, "ours was not alone");
        least = (turns + theirs) / 10;
        if turns + theirs >= TURNS && turns > least && theirs > least {
            break;
        }
    }
    let kind = kinds[0].java;
    println!("{kind}, Redisson {version}: {theirs} turns of Redisson, {turns} of ours");
    assert!(turns > least && theirs > least, "{theirs} and {turns}");
}

/// Both sides at once, for some seconds. Returns the turns of Redisson.
async fn one_round<'c>(
    java: &mut Java,
    kinds: &'static [Kind],
    key: &Arc<str>,
    clients: impl Iterator<Item = &'c LockClient> + Clone,
    (counters, seen): (&Arc<(Counter, Counter)>, &Arc<Seen>),
) -> u32 {
    let seconds = kinds
        .iter()
        .fold(seconds(), |all, kind| all.min(kind.longest));
    let millis = seconds * 1000;
    let mut tasks = Vec::new();
    let mut threads = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        for number in 0..kind.on_each_side {
            let thread = format!("t{at}{number}");
            let (java_kind, most) = (kind.java, kind.most);
            java.begin(
                &thread,
                &format!("contend {java_kind} {key} {millis} {STAY_MS} {most}"),
            );
            threads.push(thread);
        }
        for ours in clients.clone().take(kind.on_each_side) {
            let (ours, key, seen) = (ours.clone(), Arc::clone(key), Arc::clone(seen));
            let counters = Arc::clone(counters);
            tasks.push(tokio::spawn(async move {
                let (inside, writing) = &*counters;
                contend(ours, [inside, writing], kind, &key, (seconds, seen)).await;
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    turns_of(java, threads).await
}

/// Loads its classes, and sets the number of permits.
async fn warm_up(java: &mut Java, kinds: &[Kind], key: &str) {
    for kind in kinds {
        let (warm, says) = match kind.java {
            "permit" => (format!("permits permit {key} 2"), "set true"),
            kind => (format!("contend {kind} warm 1 1 100"), "contended"),
        };
        let warm = java.ask("t0", &warm).await;
        assert!(warm.starts_with(says), "{warm}");
    }
}

async fn turns_of(java: &mut Java, threads: Vec<String>) -> u32 {
    let mut turns = 0;
    for thread in threads {
        let answer = java.answer(&thread).await;
        let numbers = answer.strip_prefix("contended ");
        let numbers = numbers.unwrap_or_else(|| panic!("{answer}"));
        let (own, broken) = numbers.split_once(' ').unwrap();
        turns += own.parse::<u32>().unwrap();
        assert_eq!(broken, "0", "Redisson was not alone");
    }
    turns
}

const LOCK: &[Kind] = &[Kind::new("lock", |it, key| it.lock(key).wait(LONG), 1)];
const FENCED: &[Kind] = &[Kind::new(
    "fenced",
    |client, key| client.lock(key).fenced().wait(LONG),
    1,
)];
const FAIR: &[Kind] = &[Kind::new(
    "fair",
    |client, key| client.lock(key).fair().wait(LONG),
    1,
)];
const SPIN: &[Kind] = &[Kind::new("spin", |it, key| it.lock(key).wait(LONG), 1)];
const READ: Kind = Kind::new(
    "read",
    |client, key| client.rw_lock(key).read().wait(LONG),
    100,
);
const WRITE: Kind = Kind::new(
    "write",
    |client, key| client.rw_lock(key).write().wait(LONG),
    1,
);
/// A reader is let in beside others though a writer waits, and three that read without a pause
/// leave the writers of Redisson itself next to no turns. These come when a round ends, within the
/// 30 s for which they wait.
const READ_WRITE: &[Kind] = &[
    Kind {
        longest: 10,
        ..READ
    },
    Kind {
        longest: 10,
        ..WRITE
    },
];
const ONE_READER: &[Kind] = &[
    Kind {
        on_each_side: 1,
        ..READ
    },
    WRITE,
];
const PERMITS: &[Kind] = &[Kind::new(
    "permit",
    |client, key| client.semaphore(key, 2).permit().wait(LONG),
    2,
)];

async fn with_each_version(kinds: &'static [Kind]) {
    match std::env::var("REDISSON_VERSION") {
        Ok(version) => both_sides(kinds, &version, BOTH_CLIENTS).await,
        Err(_) => {
            for version in VERSIONS {
                both_sides(kinds, version, BOTH_CLIENTS).await;
            }
        }
    }
}

#[tokio::test]
async fn both_sides_exclude_each_other_by_an_r_lock() {
    with_each_version(LOCK).await;
}

/// It releases and asks again, and there is nobody of ours to hand it to.
#[tokio::test]
async fn a_single_task_of_ours_leaves_redisson_its_turns() {
    both_sides(LOCK, VERSIONS[0], &[0]).await;
}

#[tokio::test]
async fn both_sides_exclude_each_other_by_an_r_fenced_lock() {
    with_each_version(FENCED).await;
}

#[tokio::test]
async fn both_sides_exclude_each_other_by_an_r_fair_lock() {
    with_each_version(FAIR).await;
}

#[tokio::test]
async fn both_sides_exclude_each_other_by_an_r_read_write_lock() {
    with_each_version(READ_WRITE).await;
}

#[tokio::test]
async fn a_reader_of_each_side_leaves_the_writers_their_turns() {
    with_each_version(ONE_READER).await;
}

#[tokio::test]
async fn both_sides_share_an_r_permit_expirable_semaphore() {
    with_each_version(PERMITS).await;
}

/// It tells nobody that it is released, and does not hear of it either.
#[tokio::test]
async fn both_sides_exclude_each_other_by_an_r_spin_lock() {
    with_each_version(SPIN).await;
}

/// They hand it to one another, and nobody else listens for a release.
#[tokio::test]
async fn tasks_of_one_client_leave_an_r_spin_lock_its_turns() {
    both_sides(SPIN, VERSIONS[0], &[0, 0, 0]).await;
}

/// All kinds, each on the node of its slot; of the older version, in one slot by a hash tag.
async fn in_a_cluster(version: &str) {
    let cluster = RedisCluster::start_masters().await;
    let Some(mut java) = Java::of_version(&cluster, LEASE, version).await else {
        return;
    };
    for kinds in [LOCK, SPIN, FENCED, FAIR, READ_WRITE, PERMITS] {
        both_at(&cluster, &mut java, kinds, version, BOTH_CLIENTS).await;
    }
}

#[tokio::test]
async fn both_sides_exclude_each_other_in_a_cluster() {
    in_a_cluster(&crate::version()).await;
}

#[tokio::test]
async fn redisson_3_and_ours_exclude_each_other_in_a_cluster() {
    in_a_cluster(VERSIONS[1]).await;
}
