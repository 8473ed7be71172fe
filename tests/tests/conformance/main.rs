//! The contract, written once and run against every store.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

use std::pin::Pin;

use lock_tests::Backend;

mod cancellation;
mod drift;
mod exclusion;
mod fencing;
mod keys;
mod latch;
mod latch_verbs;
mod losing;
mod multi_hold;
mod multi_lock;
mod multi_verbs;
mod rates;
mod reentrancy;
mod releasing;
mod rw_lock;
mod rw_lock_holds;
mod semaphore;
mod semaphore_holds;
mod shares;
mod stored;
mod stored_latch;
mod turns;
mod verbs;
mod waiting;

mod topologies;

/// Its name, and the test.
pub(crate) type Behaviour = (
    &'static str,
    fn(Backend) -> Pin<Box<dyn Future<Output = ()>>>,
);

/// Runs each behaviour against each store: the embedded one and one server here, and other topologies in `topologies`.
#[macro_export]
macro_rules! on_every_store {
    ($($behaviour:ident),+ $(,)?) => {
        pub(crate) const BEHAVIOURS: &[$crate::Behaviour] = &[
            $((concat!(module_path!(), "::", stringify!($behaviour)), |store| Box::pin($behaviour(store)))),+
        ];
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(lock_tests::Backend::memory()).await;
            })+
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(lock_tests::Backend::redis().await).await;
            })+
        }
    };
}

/// Runs on a quorum of three servers those that need neither a queue nor an order of arrival nor shares.
#[macro_export]
macro_rules! on_a_quorum {
    ($($behaviour:ident),+ $(,)?) => {
        mod quorum {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(lock_tests::Backend::quorum().await).await;
            })+
        }
    };
}
