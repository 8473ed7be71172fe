//! The whole suite where there is more than one Redis: with a replica that confirms, under sentinels, in a cluster.
//!
//! Servers are started once for many behaviours, which find them empty. `LOCK_TESTS_ONLY=multi_hold` runs those with that
//! in their name, and more often than once with `LOCK_TESTS_TIMES=100`. A quorum has neither a queue nor shares: what it can
//! do is run as `quorum::…` beside each behaviour. `stored` and `drift` are about scripts, which know of no topology.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lock_tests::Backend;
use tokio::runtime::{Builder, Runtime};

use crate::Behaviour;

/// Behaviours wait for leases to end, most of the time.
const AT_ONCE: usize = 3;
/// Far more than any needs.
const LIMIT: Duration = Duration::from_secs(120);

const ALL: &[&[Behaviour]] = &[
    crate::cancellation::BEHAVIOURS,
    crate::exclusion::BEHAVIOURS,
    crate::fencing::BEHAVIOURS,
    crate::keys::BEHAVIOURS,
    crate::latch::BEHAVIOURS,
    crate::latch_verbs::BEHAVIOURS,
    crate::losing::BEHAVIOURS,
    crate::multi_hold::BEHAVIOURS,
    crate::multi_lock::BEHAVIOURS,
    crate::multi_verbs::BEHAVIOURS,
    crate::rates::BEHAVIOURS,
    crate::reentrancy::BEHAVIOURS,
    crate::releasing::BEHAVIOURS,
    crate::rw_lock::BEHAVIOURS,
    crate::rw_lock_holds::BEHAVIOURS,
    crate::semaphore::BEHAVIOURS,
    crate::semaphore_holds::BEHAVIOURS,
    crate::shares::BEHAVIOURS,
    crate::turns::BEHAVIOURS,
    crate::verbs::BEHAVIOURS,
    crate::waiting::BEHAVIOURS,
];

#[test]
fn the_suite_where_a_replica_confirms() {
    each_on(async || Backend::replicated().await);
}

#[test]
fn the_suite_under_sentinels() {
    each_on(async || Backend::sentinels().await);
}

#[test]
fn the_suite_in_a_cluster() {
    each_on(async || Backend::cluster().await);
}

fn each_on(start: impl AsyncFn() -> Backend + Sync) {
    let only = std::env::var("LOCK_TESTS_ONLY").unwrap_or_default();
    let times = std::env::var("LOCK_TESTS_TIMES").map_or(1, |times| times.parse().unwrap());
    let chosen: Vec<&Behaviour> = ALL.iter().copied().flatten().collect();
    let chosen = chosen.into_iter().filter(|(name, _)| name.contains(&only));
    let chosen: Vec<&Behaviour> = chosen.collect();
    assert!(!chosen.is_empty(), "no behaviour has {only:?} in its name");
    let failed = run(&chosen.repeat(times), AT_ONCE, &start);
    // On a busy machine a second can pass in which nothing runs, and leases end. What is wrong fails alone as well.
    for (name, _) in &failed {
        println!("{name} failed, and is run again alone");
    }
    let failed = run(&failed, 1, &start);
    let failed: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    assert!(failed.is_empty(), "{} failed: {failed:?}", failed.len());
}

/// Those that failed.
fn run<'b>(
    behaviours: &[&'b Behaviour],
    at_once: usize,
    start: &(impl AsyncFn() -> Backend + Sync),
) -> Vec<&'b Behaviour> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        let servers = runtime();
        let mut ready: Option<Backend> = None;
        while let Some(one) = behaviours.get(next.fetch_add(1, Ordering::SeqCst)) {
            let (name, behaviour) = one;
            let backend = match ready.take() {
                Some(backend) => backend,
                None => servers.block_on(start()),
            };
            let (began, store) = (Instant::now(), backend.clone());
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                // One of its own, which ends whatever the behaviour has left.
                runtime().block_on(async {
                    let done = tokio::time::timeout(LIMIT, behaviour(store)).await;
                    done.expect("it ends");
                });
            }));
            println!("{name}: {:?}", began.elapsed());
            match outcome {
                Ok(()) => {
                    servers.block_on(backend.emptied());
                    ready = Some(backend);
                }
                // Nobody knows in which state its servers are.
                Err(_) => failed.lock().unwrap().push(*one),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(behaviours.len()) {
            scope.spawn(worker);
        }
    });
    failed.into_inner().unwrap()
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}
