//! Faults that the simulation found, reduced as far as possible.

use std::time::Duration;

use lock_runtime::LockError;
use lock_testkit_core::polled;

use crate::faults::Faults;
use crate::rng::Rng;
use crate::run::{clean_up, connect, in_simulation, run};
use crate::server::Silence;
use crate::world::{World, now, sleep};

/// A request for several locks ends with a command that renews the first ones. That command had a
/// command timeout of its own, beyond the wait.
#[test]
fn several_locks_are_taken_or_given_up_within_the_wait() {
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

/// An unanswered release kept other requests of its process from a free lock. They were told that
/// the lock is busy.
#[test]
fn a_short_wait_behind_a_release_that_is_not_answered_gets_the_lock() {
    in_simulation(async {
        let world = World::new(Faults::none(), None, false);
        let (timeout, lease) = (Duration::from_millis(500), Duration::from_secs(30));
        let service = connect(&world, 0, &mut Rng::new(1), timeout, lease).await;
        let guard = service.client.lock("k").acquire().await.unwrap();
        let until = now() + Duration::from_millis(10);
        world.servers[0].be_silent(Silence {
            hears_until: until,
            until,
            keeps: false,
        });
        drop(guard);
        sleep(Duration::from_millis(15)).await;
        let request = service.client.lock("k").wait(Duration::from_millis(20));
        let guard = request.acquire().await.unwrap();
        drop(guard);
        clean_up(&world, vec![service]).await;
        assert_eq!(world.violations(), []);
    });
}

/// Seed 700,019,489. A try for several locks waited for a release of its process, and was not
/// polled until its time was over. It still sent its command, which had no time to be answered. Its
/// failure was taken for the store's, and a latch was unavailable that the store had answered for
/// all the time.
#[test]
fn a_command_that_had_no_time_says_nothing_about_a_latch() {
    in_simulation(async {
        let faults = Faults {
            delay: (60, 60),
            ..Faults::none()
        };
        let world = World::new(faults, None, false);
        let (timeout, lease) = (Duration::from_secs(1), Duration::from_secs(30));
        let service = connect(&world, 0, &mut Rng::new(1), timeout, lease).await;
        let held = service.client.lock("a").acquire().await.unwrap();
        let latch = service.client.latch("latch");
        let mut several = Box::pin(service.client.multi_lock(["a", "b"]).try_acquire());
        let (waited, ()) = tokio::join!(latch.wait(Duration::from_millis(3500)), async {
            drop(held);
            assert!(polled(1, &mut several).await.is_none());
            sleep(Duration::from_millis(3200)).await;
            let refused = several.await.unwrap_err();
            assert!(refused.is_unavailable(), "{refused}");
        });
        let error = waited.unwrap_err();
        assert!(matches!(error, LockError::LatchClosed { .. }), "{error}");
        drop(latch);
        clean_up(&world, vec![service]).await;
        assert_eq!(world.violations(), []);
    });
}

/// With a backlog for each link, undos were one by one on their way, a second apart, for a minute.
#[test]
fn undos_of_one_client_do_not_wait_for_one_another() {
    assert_eq!(run(63_020_616, None, false).violations, []);
}

/// One of eight asked for its turn as the message about it came: on links of 150 ms it got it up to
/// three messages' time after the first.
#[test]
fn who_asks_as_its_turn_comes_awaits_the_answer() {
    assert_eq!(run(64_048_825, None, false).violations, []);
}

/// The network was not done, and its couriers were taken for tasks of the client.
#[test]
fn what_the_network_keeps_for_long_is_no_task_of_the_client() {
    assert_eq!(run(64_015_395, None, false).violations, []);
}

/// Acquires of a group that was over came over a connection that was cut, one each second. The
/// first of them stood before the next group for 700 ms, until its next undo.
#[test]
fn what_a_cut_connection_hands_on_late_may_stand_before_others() {
    assert_eq!(run(76_561_501, None, false).violations, []);
}
