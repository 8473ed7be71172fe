//! One global client for the whole process, and test functions that each have a runtime of their
//! own.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::time::Duration;

use lock_runtime::{LockClient, LockError, distributed_lock, init};
use lock_testkit::{RedisServer, eventually};

#[distributed_lock(key = "global")]
async fn locked() -> Result<bool, LockError> {
    Ok(LockClient::global()?
        .inspect("global")
        .await?
        .holder
        .is_some())
}

/// Runs on a runtime of its own, as `#[tokio::test]` would.
fn on_a_new_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

#[test]
fn the_global_client_outlives_the_runtimes_of_its_callers() {
    on_a_new_runtime(async {
        assert!(matches!(locked().await, Err(LockError::NotInitialized)));
        assert!(matches!(
            LockClient::global(),
            Err(LockError::NotInitialized)
        ));
        let scoped = LockClient::in_memory();
        assert!(matches!(
            scoped
                .scope(LockClient::in_memory().scope(async { 1 }))
                .await,
            1
        ));
    });
    let server = on_a_new_runtime(RedisServer::start());
    let url = server.url();
    // A call that fails installs nothing.
    on_a_new_runtime(async {
        assert!(matches!(
            init("nonsense").await,
            Err(LockError::Config { .. })
        ))
    });
    on_a_new_runtime(async { init(&url).await.unwrap() });
    on_a_new_runtime(async {
        assert!(matches!(
            init(&url).await,
            Err(LockError::AlreadyInitialized)
        ));
        assert!(matches!(
            LockClient::in_memory().install(),
            Err(LockError::AlreadyInitialized)
        ));
    });
    for _ in 0..3 {
        on_a_new_runtime(async { assert!(locked().await.unwrap()) });
        // Held when its runtime ends, and released all the same.
        let guard = on_a_new_runtime(async {
            LockClient::global()
                .unwrap()
                .lock("global")
                .acquire()
                .await
                .unwrap()
        });
        drop(guard);
        on_a_new_runtime(async {
            let client = LockClient::global().unwrap();
            client
                .lock("global")
                .acquire()
                .await
                .unwrap()
                .release()
                .await
                .unwrap();
            let waiting = tokio::spawn(client.lock("global").acquire());
            drop(waiting.await.unwrap().unwrap());
            eventually("it is free", async || {
                client.inspect("global").await.unwrap().holder.is_none()
            })
            .await;
        });
    }
    on_a_new_runtime(async {
        // After a shutdown, calls report it until another client is installed.
        let first = LockClient::global().unwrap();
        first.shutdown(Duration::ZERO).await;
        assert!(matches!(locked().await, Err(LockError::Shutdown)));
        assert!(matches!(first.install(), Err(LockError::Shutdown)));
        init(&url).await.unwrap();
        assert!(locked().await.unwrap());
        let refused = LockClient::in_memory().install();
        assert!(matches!(refused, Err(LockError::AlreadyInitialized)));
        LockClient::global().unwrap().shutdown(Duration::ZERO).await;
        LockClient::in_memory().install().unwrap();
        assert!(locked().await.unwrap());
        LockClient::global().unwrap().shutdown(Duration::ZERO).await;
        init(&url).await.unwrap();
    });
    on_a_new_runtime(async {
        let scoped = LockClient::in_memory();
        let held_globally = scoped.scope(locked()).await.unwrap();
        assert!(
            !held_globally,
            "inside the scope the scoped client's lock is taken"
        );
    });
}
