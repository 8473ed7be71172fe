//! SQLite: the tables are the file's, and so is their version.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{SqliteFile, eventually};

async fn client(file: &SqliteFile) -> LockClient {
    let builder = LockClient::builder().url(file.url());
    let builder = builder.command_timeout(Duration::from_secs(5));
    builder
        .connect_timeout(Duration::from_secs(10))
        .connect()
        .await
        .unwrap()
}

/// Another process changes the tables while clients of the version before run: they stop, and say
/// why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_whose_tables_become_another_versions_is_told_which_versions_meet() {
    for change in [
        // Today's tables stay as they are.
        "",
        "ALTER TABLE hold RENAME TO hold_of_before; CREATE TABLE hold (all_is_other TEXT);",
    ] {
        let file = SqliteFile::new();
        let before = client(&file).await;
        let lease = Duration::from_secs(3);
        let held = before
            .lock("k")
            .lease(lease)
            .renew(true)
            .acquire()
            .await
            .unwrap();
        let later = file.connection();
        later
            .execute_batch(&format!("BEGIN; {change} PRAGMA user_version = 7; COMMIT"))
            .unwrap();
        for request in [
            before.lock("l"),
            before.lock("k").fair(),
            before.rw_lock("m").read(),
        ] {
            let error = request.acquire().await.unwrap_err();
            let said = error.to_string();
            assert!(said.contains("version 7"), "{said}");
            assert!(said.contains("knows version 4"), "{said}");
            let LockError::Unavailable { source, .. } = error else {
                panic!("{error:?}");
            };
            assert_eq!(source.kind(), StoreErrorKind::OtherVersion);
        }
        // What can't be renewed is lost in its time.
        held.lost().await;
        assert!(!held.is_held());
        let rows = later.query_row("SELECT count(*) FROM client", (), |row| {
            row.get::<_, i64>(0)
        });
        assert_eq!(rows.unwrap(), 1, "nothing of the later tables was changed");
    }
}

/// A column had another name in the tables of version 3.
const BEFORE: &str = "BEGIN; ALTER TABLE place RENAME COLUMN suspended TO passed_over;
    PRAGMA user_version = 3; COMMIT";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_the_version_before_are_taken_over_once_nobody_uses_them() {
    let file = SqliteFile::new();
    let before = client(&file).await;
    before.lock("k").run(async {}).await.unwrap();
    let tables = file.connection();
    tables.execute_batch(BEFORE).unwrap();
    let version = || {
        let version = tables.query_row("PRAGMA user_version", (), |row| row.get::<_, i64>(0));
        version.unwrap()
    };
    // As long as another client may be of the version before, they stay as they are.
    let refused = LockClient::builder().url(file.url()).connect().await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("tables of version 3"), "{said}");
    assert_eq!(version(), 3);
    before.shutdown(Duration::ZERO).await;
    drop(before);
    let (one, two) = loop {
        let builder = LockClient::builder().url(file.url());
        if let Ok(one) = builder.connect().await {
            break (one, client(&file).await);
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(version(), 4);
    // Places are suspended in that column.
    let held = one.lock("k").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("k").fair().acquire());
    eventually("it waits", async || {
        one.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    held.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}
