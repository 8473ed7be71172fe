//! SQLite: the tables are the file's, and so is their version.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::SqliteFile;

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
            assert!(said.contains("knows version 3"), "{said}");
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
