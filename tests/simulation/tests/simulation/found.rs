//! What the simulation has found, kept as small as it could be made.

use std::time::Duration;

use crate::faults::Faults;
use crate::rng::Rng;
use crate::run::{clean_up, connect, in_simulation};
use crate::world::{World, now, sleep};

/// The last command of a request for several locks, which renews those that were got first, had a command timeout of
/// its own, beyond the wait.
#[test]
fn several_locks_are_had_or_given_up_within_the_wait() {
    const WAIT: Duration = Duration::from_millis(500);
    for freed_after in (100..=500).step_by(10) {
        in_simulation(async {
            let faults = Faults {
                delay: (60, 60),
                ..Faults::none()
            };
            let world = World::new(faults, None, false);
            let mut rng = Rng::new(1);
            let (timeout, lease) = (Duration::from_millis(500), Duration::from_secs(30));
            let asks = connect(&world, 0, &mut rng, timeout, lease).await;
            let holds = connect(&world, 1, &mut rng, timeout, lease).await;
            let guard = holds.client.lock("m").acquire().await.unwrap();
            let started = now();
            let request = asks.client.multi_lock(["k", "m"]).wait(WAIT);
            let (answer, ()) = tokio::join!(
                async {
                    let answer = request.acquire().await;
                    (answer, now() - started)
                },
                async {
                    sleep(Duration::from_millis(freed_after)).await;
                    drop(guard);
                }
            );
            let (answer, took) = answer;
            assert!(
                took <= WAIT,
                "{took:?}, freed after {freed_after} ms: {answer:?}"
            );
            drop(answer);
            clean_up(&world, vec![asks, holds]).await;
            assert_eq!(world.violations(), []);
        });
    }
}
