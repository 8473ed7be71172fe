//! The futures, and what is held before they begin.

use std::pin::Pin;
use std::time::Duration;

use lock_runtime::{Guard, LockClient, Rate};

use crate::world::sleep;

pub(super) const MS: Duration = Duration::from_millis(1);
/// Longer than anything here takes. A lock that becomes free only by the end of its lease counts as
/// not free.
pub(super) const LEASE: Duration = Duration::from_secs(50);
pub(super) const PERMITS: u32 = 3;

/// A future under test.
pub(super) type Subject = Pin<Box<dyn Future<Output = ()> + Send>>;
/// What is held before the future begins.
pub(super) type Before = fn(&LockClient) -> lock_runtime::Lock;

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) before: Option<Before>,
    pub(super) make: fn(LockClient, Option<Guard>) -> Subject,
}

fn case(name: &'static str, make: fn(LockClient, Option<Guard>) -> Subject) -> Case {
    let before = None;
    Case { name, before, make }
}

fn with_guard(
    name: &'static str,
    before: Before,
    make: fn(LockClient, Option<Guard>) -> Subject,
) -> Case {
    let before = Some(before);
    Case { name, before, make }
}

/// The subject's output does not matter. Its guard is dropped with it.
macro_rules! subject {
    (|$client:ident| $future:expr) => {
        |$client: LockClient, _| Box::pin(async move { drop($future.await) })
    };
    (|$client:ident, $guard:ident| $future:expr) => {
        |$client: LockClient, guard: Option<Guard>| {
            let $guard = guard.unwrap();
            Box::pin(async move {
                let _client = &$client;
                drop($future.await)
            })
        }
    };
}

pub(super) fn wait_for_ever() -> Case {
    case(
        "acquire that waits for ever",
        subject!(|c| c.lock("k").wait_forever().acquire()),
    )
}

pub(super) fn requests() -> Vec<Case> {
    vec![
        case("acquire", subject!(|c| c.lock("k").wait(40 * MS).acquire())),
        case(
            "fenced fair acquire",
            subject!(|c| c.lock("k").fenced().fair().wait(40 * MS).acquire()),
        ),
        case(
            "acquire that waits for ever",
            subject!(|c| c.lock("k").wait_forever().acquire()),
        ),
        case("into_future", |c, _| {
            Box::pin(async move { drop(c.lock("k").wait(40 * MS).await) })
        }),
        case("try_acquire", subject!(|c| c.lock("k").try_acquire())),
        case(
            "fenced try_acquire",
            subject!(|c| c.lock("k").fenced().try_acquire()),
        ),
        case(
            "run",
            subject!(|c| c.lock("k").wait(40 * MS).run(sleep(5 * MS))),
        ),
        case("run with a nested request", |c, _| {
            Box::pin(async move {
                let nested = c.lock("k").fenced().run(sleep(3 * MS));
                drop(c.lock("k").wait(40 * MS).run(nested).await);
            })
        }),
        case("run that keeps its key", |c, _| {
            let lock = c.lock("k").wait(40 * MS).hold_at_least(15 * MS);
            Box::pin(async move { drop(lock.run(sleep(5 * MS)).await) })
        }),
        case("run_with", |c, _| {
            let body = async |guard: &Guard| {
                sleep(2 * MS).await;
                let _ = guard.extend(LEASE).await;
            };
            Box::pin(async move { drop(c.lock("k").wait(40 * MS).run_with(body).await) })
        }),
        case(
            "several",
            subject!(|c| c.multi_lock(["m", "k", "a"]).wait(40 * MS).acquire()),
        ),
        case(
            "fenced try of several",
            subject!(|c| c.multi_lock(["m", "k"]).fenced().try_acquire()),
        ),
        case(
            "read",
            subject!(|c| c.rw_lock("rw").read().wait(40 * MS).acquire()),
        ),
        case(
            "write",
            subject!(|c| c.rw_lock("rw").write().wait(40 * MS).acquire()),
        ),
        case(
            "permits",
            subject!(|c| c
                .semaphore("sem", PERMITS)
                .permits(2)
                .wait(40 * MS)
                .acquire()),
        ),
    ]
}

pub(super) fn guards() -> Vec<Case> {
    let lock: Before = |c| c.lock("k");
    let two: Before = |c| c.multi_lock(["k", "m"]);
    let write: Before = |c| c.rw_lock("rw").write();
    vec![
        with_guard("release", lock, subject!(|c, guard| guard.release())),
        with_guard(
            "release of several",
            two,
            subject!(|c, guard| guard.release()),
        ),
        with_guard(
            "release of a writer",
            write,
            subject!(|c, guard| guard.release()),
        ),
        with_guard("extend", lock, subject!(|c, guard| guard.extend(LEASE))),
        with_guard("downgrade", write, subject!(|c, guard| guard.downgrade())),
        with_guard(
            "lost",
            |c| c.lock("k").lease(250 * MS),
            |_, guard| Box::pin(async move { guard.unwrap().lost().await }),
        ),
        with_guard("scope", lock, |c, guard| {
            let guard = guard.unwrap();
            Box::pin(async move {
                let nested = c.lock("k").fenced().run(sleep(2 * MS));
                drop(guard.scope(nested).await);
            })
        }),
    ]
}

pub(super) fn others() -> Vec<Case> {
    vec![
        case(
            "latch set",
            subject!(|c| c.latch("latch").ttl(500 * MS).set(2)),
        ),
        case("latch count_down", |c, _| {
            let latch = c.latch("latch").ttl(500 * MS);
            Box::pin(async move {
                let _ = latch.set(2).await;
                let _ = latch.count_down().await;
            })
        }),
        case("latch count", subject!(|c| c.latch("latch").count())),
        case("latch wait", subject!(|c| c.latch("latch").wait(40 * MS))),
        case("latch wait_forever", |c, _| {
            let latch = c.latch("latch").ttl(500 * MS);
            Box::pin(async move {
                let _ = latch.set(1).await;
                let other = latch.clone();
                let counting = async {
                    sleep(10 * MS).await;
                    other.count_down().await
                };
                let _ = tokio::join!(latch.wait_forever(), counting);
            })
        }),
        case("rate limiter acquire", |c, _| {
            let limiter = c.rate_limiter("rate", Rate::per_second(100).burst(1));
            let limiter = limiter.wait(50 * MS);
            Box::pin(async move {
                let _ = limiter.acquire().await;
                let _ = limiter.acquire().await;
            })
        }),
        case("rate limiter try_acquire", |c, _| {
            let limiter = c.rate_limiter("rate", Rate::per_second(100).burst(1));
            Box::pin(async move { drop(limiter.try_acquire().await) })
        }),
        case("inspect", subject!(|c| c.inspect("k"))),
        case("force_release", subject!(|c| c.force_release("k"))),
        case("health", subject!(|c| c.health())),
        case("shutdown", |c, _| {
            Box::pin(async move { c.shutdown(20 * MS).await })
        }),
        with_guard(
            "shutdown with a hold",
            |c| c.lock("k"),
            |c, guard| {
                Box::pin(async move {
                    c.shutdown(20 * MS).await;
                    drop(guard);
                })
            },
        ),
        with_guard(
            "shutdown with a request",
            |c| c.lock("k"),
            |c, guard| {
                Box::pin(async move {
                    let more = c.lock("k").acquire();
                    let shutdown = c.shutdown(20 * MS);
                    let (more, ()) = tokio::join!(more, shutdown);
                    drop((more, guard));
                })
            },
        ),
    ]
}
