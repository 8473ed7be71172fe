//! Waiting for a condition.

use std::panic::Location;
use std::time::{Duration, Instant};

use lock_runtime::LockClient;

/// Generous: a loaded machine must not fail a test, only a condition that never comes true.
const LIMIT: Duration = Duration::from_secs(30);
/// Short enough that polling costs a test no time.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `condition` holds. Checks it every few milliseconds, for up to 30 s.
///
/// `what` completes the sentence "it never happened that …".
///
/// # Panics
///
/// When the condition does not hold in time. The message names `what` and the caller.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut asked = 0;
/// lock_testkit_core::eventually("the third answer is yes", async || {
///     asked += 1;
///     asked == 3
/// })
/// .await;
/// # }
/// ```
#[track_caller]
pub fn eventually(what: &str, condition: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    eventually_within(LIMIT, what, condition)
}

/// Until a client's store answers it again: a release, or a request that does not wait, is tried
/// for as long as a command may take, and no longer.
///
/// # Panics
///
/// As [`eventually`].
pub async fn until_served(client: &LockClient) {
    eventually("the client's store answers it", async || {
        client.inspect("k").await.is_ok()
    })
    .await;
}

/// Like [`eventually`], with another limit: for a promise that has a deadline.
///
/// # Panics
///
/// When the condition does not hold within `limit`.
#[track_caller]
pub fn eventually_within(
    limit: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        // std's clock, since a test may have paused tokio's.
        let started = Instant::now();
        let mut looks = 0_u32;
        loop {
            let left = limit.saturating_sub(started.elapsed());
            let looked = Instant::now();
            match tokio::time::timeout(left, condition()).await {
                Ok(true) => return,
                Ok(false) if !left.is_zero() => tokio::time::sleep(PAUSE).await,
                Ok(false) => panic!("{caller}: within {limit:?} it never happened that {what}"),
                // If that is long, nothing is known of what was looked for.
                Err(_) => panic!(
                    "{caller}: within {limit:?} it never happened that {what}; {looks} looks \
                     ended, and the last was cut off after {:?}",
                    looked.elapsed()
                ),
            }
            looks += 1;
        }
    }
}
