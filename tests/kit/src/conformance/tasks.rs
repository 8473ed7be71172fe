//! Whom a call chain belongs to: what is polled in it, and no other task.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::{Backend, polled};
use lock_runtime::{LockClient, LockError, distributed_lock};
use tokio::task::LocalSet;

super::on_every_store!(
    tasks_that_a_body_polls_are_outside_of_its_call_chain,
    a_task_spawned_in_a_body_that_polls_it_is_outside_of_the_call_chain,
    a_call_chain_goes_on_in_what_a_body_polls_itself,
    a_future_that_moves_into_a_task_keeps_its_call_chain,
    tasks_that_a_client_scope_polls_are_outside_of_it,
);

super::without_a_queue!(
    tasks_that_a_body_polls_are_outside_of_its_call_chain,
    a_task_spawned_in_a_body_that_polls_it_is_outside_of_the_call_chain,
    a_call_chain_goes_on_in_what_a_body_polls_itself,
    a_future_that_moves_into_a_task_keeps_its_call_chain,
    tasks_that_a_client_scope_polls_are_outside_of_it,
);

const WAIT: Duration = Duration::from_secs(20);

async fn job(client: LockClient, inside: &'static AtomicU32) -> Result<(), LockError> {
    let body = async {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
        tokio::time::sleep(Duration::from_millis(20)).await;
        inside.fetch_sub(1, Ordering::SeqCst);
    };
    client.lock("k").wait(WAIT).run(body).await
}

async fn tasks_that_a_body_polls_are_outside_of_its_call_chain(store: Backend) {
    let client = store.client().await;
    let (tasks, inside) = (LocalSet::new(), &*Box::leak(Box::new(AtomicU32::new(0))));
    let jobs: Vec<_> = (0..2)
        .map(|_| tasks.spawn_local(job(client.clone(), inside)))
        .collect();
    client
        .lock("k")
        .run(async {
            inside.fetch_add(1, Ordering::SeqCst);
            let time = tokio::time::sleep(Duration::from_millis(100));
            tasks.run_until(time).await;
            inside.fetch_sub(1, Ordering::SeqCst);
        })
        .await
        .unwrap();
    for job in jobs {
        tasks.run_until(job).await.unwrap().unwrap();
    }
}

async fn a_task_spawned_in_a_body_that_polls_it_is_outside_of_the_call_chain(store: Backend) {
    let client = store.client().await;
    for scoped in [false, true] {
        let body = async {
            let tasks = LocalSet::new();
            let attempt = client.lock("k").try_acquire();
            let spawns = async { tokio::task::spawn_local(attempt).await.unwrap() };
            tasks.run_until(spawns).await.unwrap().is_none()
        };
        let is_outside = match scoped {
            false => client.lock("k").run(body).await.unwrap(),
            true => {
                let guard = client.lock("k").acquire().await.unwrap();
                let is_outside = guard.scope(body).await;
                guard.release().await.unwrap();
                is_outside
            }
        };
        assert!(is_outside, "scoped: {scoped}");
    }
}

async fn a_call_chain_goes_on_in_what_a_body_polls_itself(store: Backend) {
    let client = store.client().await;
    let nested = || client.lock("k").try_acquire();
    let body = async {
        // The future that drives the set is a call of the body.
        let driven = LocalSet::new().run_until(nested()).await.unwrap();
        assert!(driven.is_some());
        drop(driven);
        let mut boxed = Box::pin(nested());
        let timed = tokio::time::timeout(WAIT, &mut boxed).await.unwrap();
        assert!(timed.unwrap().is_some());
    };
    client.lock("k").run(body).await.unwrap();
    // In a task, and outside of each.
    let (in_task, spawned) = (client.clone(), client.lock("k"));
    let task = spawned.run(async move { in_task.lock("k").try_acquire().await });
    assert!(
        tokio::spawn(task)
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .is_some()
    );
    let (client, runs) = (client.clone(), client.lock("k"));
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let body = async { client.lock("k").try_acquire().await };
        runtime.unwrap().block_on(runs.run(body))
    });
    assert!(thread.join().unwrap().unwrap().unwrap().is_some());
}

async fn a_future_that_moves_into_a_task_keeps_its_call_chain(store: Backend) {
    let client = store.client().await;
    let nested = client.clone();
    let mut moves = Box::pin(client.lock("k").run(async move {
        tokio::task::yield_now().await;
        nested.lock("k").try_acquire().await
    }));
    while client.inspect("k").await.unwrap().holder.is_none() {
        assert!(polled(1, &mut moves).await.is_none());
    }
    let shares = tokio::spawn(moves).await.unwrap().unwrap().unwrap();
    assert!(shares.is_some());
}

#[distributed_lock(key = "k", wait = "0s")]
async fn of_the_scoped_client() -> Result<(), LockError> {
    Ok(())
}

async fn tasks_that_a_client_scope_polls_are_outside_of_it(store: Backend) {
    let client = store.client().await;
    let own = async {
        let tasks = LocalSet::new();
        let spawned = async { tokio::task::spawn_local(of_the_scoped_client()).await };
        let spawned = tasks.run_until(spawned).await.unwrap();
        (spawned, of_the_scoped_client().await)
    };
    let (spawned, called) = client.scope(own).await;
    called.unwrap();
    assert!(
        matches!(spawned, Err(LockError::NotInitialized)),
        "{spawned:?}"
    );
}
