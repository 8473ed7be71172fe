//! URLs and files that can't be used: the error says what is wrong and what to do.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::SqliteFile;
use rusqlite::Connection;

use crate::{client, config};

async fn refused(url: &str) -> String {
    config(LockClient::builder().url(url).connect().await)
}

#[tokio::test]
async fn a_path_that_can_not_be_used_is_told() {
    let file = SqliteFile::new();
    let folder = file.folder().display().to_string();
    for (url, says) in [
        (format!("sqlite://{folder}"), "is a folder; name a file"),
        (format!("sqlite://{folder}/missing/locks.db"), "create it"),
        ("sqlite:locks.db".to_owned(), "is not absolute"),
        ("sqlite://locks.db".to_owned(), "names a host"),
        (
            format!("sqlite://{folder}/a?mode=ro"),
            "`mode` is no option",
        ),
        // A file system in which nobody may create a file.
        (
            "sqlite:///proc/locks.db".to_owned(),
            "give this user the right",
        ),
    ] {
        let text = refused(&url).await;
        assert!(text.contains(says), "{url}: {text}");
        let lazy = LockClient::builder().url(&url).connect_lazy();
        if !url.contains("proc") {
            assert_eq!(config(lazy), text);
        }
    }
}

#[tokio::test]
async fn a_file_of_another_kind_is_refused_and_left_alone() {
    let file = SqliteFile::new();
    let of_text = "This is no database. ".repeat(1000);
    fs::write(file.path(), &of_text).unwrap();
    let text = refused(&file.url()).await;
    assert!(
        text.contains("is no SQLite database; name another"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(file.path()).unwrap(), of_text);
    fs::remove_file(file.path()).unwrap();
    let others = Connection::open(file.path()).unwrap();
    others.execute_batch("CREATE TABLE orders (id)").unwrap();
    drop(others);
    let before = fs::read(file.path()).unwrap();
    let text = refused(&file.url()).await;
    assert!(text.contains("database of another program"), "{text}");
    assert_eq!(fs::read(file.path()).unwrap(), before);
}

/// Once it is refused, a client leaves the path to others.
#[tokio::test]
async fn a_refused_client_does_not_come_back() {
    let file = SqliteFile::new();
    for _ in 0..300 {
        let mut others = fs::File::create_new(file.path()).unwrap();
        others.write_all(&[b'n'; 20_000]).unwrap();
        refused(&file.url()).await;
        fs::remove_file(file.path()).unwrap();
        // Whoever comes back has time for it.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(!file.path().exists());
}

/// SQLite would open it to read. Root may write everything.
#[tokio::test]
async fn a_file_that_this_user_may_only_read_is_refused() {
    let file = SqliteFile::new();
    let old = client(&file.url()).await;
    let rights = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(file.path(), rights(0o444)).unwrap();
    if fs::File::options().append(true).open(file.path()).is_ok() {
        return println!("this user may write everything");
    }
    let text = refused(&file.url()).await;
    assert!(text.contains("can't be written by this user"), "{text}");
    // It has the file open.
    old.lock("k").run(async {}).await.unwrap();
    fs::set_permissions(file.path(), rights(0o644)).unwrap();
    client(&file.url())
        .await
        .lock("k")
        .run(async {})
        .await
        .unwrap();
}

#[tokio::test]
async fn tables_of_another_version_are_refused() {
    let file = SqliteFile::new();
    drop(client(&file.url()).await);
    let later = file.connection();
    later.pragma_update(None, "user_version", 7).unwrap();
    drop(later);
    let text = refused(&file.url()).await;
    assert!(text.contains("version 7"), "{text}");
    assert!(text.contains("use one version in all processes"), "{text}");
}

#[tokio::test]
async fn a_service_that_starts_before_its_folder_can_be_written_goes_on_when_it_can() {
    let file = SqliteFile::new();
    fs::write(file.path(), "no database ".repeat(1000)).unwrap();
    let client = LockClient::builder()
        .url(file.url())
        .connect_lazy()
        .unwrap();
    let failed = client.lock("k").acquire().await;
    assert!(
        matches!(failed, Err(LockError::Unavailable { .. })),
        "{failed:?}"
    );
    fs::remove_file(file.path()).unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn what_is_for_servers_is_refused() {
    let file = SqliteFile::new();
    let builder = || LockClient::builder().url(file.url());
    let named = builder().username("app").connect().await;
    assert!(config(named).contains("`username` is for a server"));
    let replicas = builder()
        .replicas(1, Duration::from_millis(100))
        .connect()
        .await;
    assert!(config(replicas).contains("`replicas` asks for replicas"));
}

#[tokio::test]
async fn a_path_with_any_characters_and_keys_with_any_characters_work() {
    let file = SqliteFile::new();
    let folder = file.folder().join("a b%ü?#");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("it's \"locks\".db");
    let shown = path.display().to_string();
    let escaped = shown.replace('%', "%25").replace('?', "%3F");
    let client = client(&format!("sqlite://{}", escaped.replace('#', "%23"))).await;
    for key in ["'; DROP TABLE hold; --", "a\0b", "ключ", "\"", "a:b:c"] {
        let held = client.lock(key).acquire().await.unwrap();
        let other = client.lock(format!("{key}x")).acquire().await.unwrap();
        other.release().await.unwrap();
        held.release().await.unwrap();
    }
    assert!(path.exists());
}
