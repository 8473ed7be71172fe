//! The folder beside the database may be somebody else's, and so may files in it.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use lock_runtime::{LockClient, LockError};
use lock_testkit::{ChildProcess, SqliteFile, eventually, left_out};

use crate::client;

fn clients(file: &SqliteFile) -> PathBuf {
    file.folder().join("locks.db-clients")
}

async fn refused(file: &SqliteFile) -> String {
    match LockClient::builder().url(file.url()).connect().await {
        Err(error @ LockError::Config { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_link_in_place_of_the_folder_is_refused_and_what_it_leads_to_left_alone() {
    let file = SqliteFile::new();
    let project = file.folder().join("project");
    fs::create_dir(&project).unwrap();
    for name in ["Cargo.lock", "flake.lock", "Cargo.sock", "abc.lock"] {
        fs::write(project.join(name), "x").unwrap();
    }
    symlink(&project, clients(&file)).unwrap();
    let text = refused(&file).await;
    assert!(text.contains("is a link"), "{text}");
    assert_eq!(fs::read_dir(&project).unwrap().count(), 4);
    fs::remove_file(clients(&file)).unwrap();
    fs::write(clients(&file), "").unwrap();
    let text = refused(&file).await;
    assert!(text.contains("is no folder"), "{text}");
    fs::remove_file(clients(&file)).unwrap();
    client(&file.url()).await;
}

/// While clients live: none follows it.
#[tokio::test]
async fn a_link_that_comes_in_place_of_the_folder_later_is_not_followed() {
    let file = SqliteFile::new();
    let (one, two) = (client(&file.url()).await, client(&file.url()).await);
    let held = one.lock("k").acquire().await.unwrap();
    let moved = file.folder().join("moved");
    fs::rename(clients(&file), &moved).unwrap();
    symlink(&moved, clients(&file)).unwrap();
    let before = fs::read_dir(&moved).unwrap().count();
    assert!(two.lock("k").try_acquire().await.unwrap().is_none());
    drop(two);
    held.release().await.unwrap();
    one.shutdown(std::time::Duration::from_secs(5)).await;
    assert_eq!(fs::read_dir(&moved).unwrap().count(), before);
}

#[tokio::test]
async fn only_files_with_names_that_clients_make_are_deleted() {
    let file = SqliteFile::new();
    drop(client(&file.url()).await);
    let folder = clients(&file);
    let others = [
        "Cargo.lock",
        "Cargo.sock",
        "ABC.lock",
        "-1.lock",
        ".lock",
        "a b.lock",
    ];
    for name in others {
        fs::write(folder.join(name), "x").unwrap();
    }
    fs::create_dir(folder.join("12ab.lock")).unwrap();
    symlink(file.folder().join("nowhere"), folder.join("34cd.lock")).unwrap();
    // What a client left that died.
    fs::write(folder.join("56ef.lock"), "").unwrap();
    let client = client(&file.url()).await;
    for name in others.into_iter().chain(["12ab.lock"]) {
        assert!(folder.join(name).exists(), "{name}");
    }
    assert!(folder.join("34cd.lock").is_symlink());
    assert!(!folder.join("56ef.lock").exists());
    drop(client);
}

/// Needs root, to give a folder to somebody else.
#[tokio::test]
async fn a_folder_of_a_third_user_is_refused() {
    let file = SqliteFile::new();
    drop(client(&file.url()).await);
    if chown(clients(&file), Some(12345), None).is_err() {
        return left_out("this user may give no folder away");
    }
    let text = refused(&file).await;
    assert!(text.contains("belongs to user 12345"), "{text}");
    // The owner of the database may have it.
    chown(file.path(), Some(12345), None).unwrap();
    client(&file.url()).await;
    let owner = fs::metadata(file.path()).unwrap().uid();
    assert_eq!(fs::metadata(clients(&file)).unwrap().uid(), owner);
}

/// Others of its group send to a client's socket, and lock its file.
#[tokio::test]
async fn a_clients_files_have_the_rights_of_the_database_file() {
    use std::os::unix::fs::PermissionsExt;
    let file = SqliteFile::new();
    fs::write(file.path(), "").unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o660)).unwrap();
    let _client = client(&file.url()).await;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(clients(&file)), 0o770);
    let mut files = 0;
    for entry in fs::read_dir(clients(&file)).unwrap() {
        assert_eq!(mode(entry.unwrap().path()), 0o660);
        files += 1;
    }
    assert_eq!(files, 2);
}

/// Each client's files have the group of the folder that they are made in.
#[tokio::test]
async fn users_of_a_group_share_a_file_in_folders_of_that_group() {
    use std::os::unix::fs::PermissionsExt;
    const OWNER: u32 = 51_234;
    const GROUP: u32 = 61_234;
    let file = SqliteFile::new();
    let outer = file.folder();
    if chown(outer, Some(OWNER), Some(GROUP)).is_err() {
        return left_out("this user may give no folder away");
    }
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    mode(outer, 0o755).unwrap();
    // The build may be where others may not look.
    let programs = tempfile::tempdir().unwrap();
    mode(programs.path(), 0o755).unwrap();
    let worker = programs.path().join("worker");
    fs::copy(env!("CARGO_BIN_EXE_lock-worker"), &worker).unwrap();
    let shared = outer.join("shared");
    let (database, clients) = (shared.join("locks.db"), shared.join("locks.db-clients"));
    fs::create_dir(&shared).unwrap();
    fs::create_dir(&clients).unwrap();
    fs::write(&database, "").unwrap();
    for (path, rights) in [(&shared, 0o2770), (&clients, 0o2770), (&database, 0o660)] {
        chown(path, Some(OWNER), Some(GROUP)).unwrap();
        mode(path, rights).unwrap();
    }
    let url = format!("sqlite://{}", database.display());
    let of_user = |user: u32| {
        let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
        let groups = format!("--groups={GROUP}");
        let worker = worker.to_str().unwrap();
        ChildProcess::start("setpriv", &[&user, &group, &groups, worker])
    };
    let (mut one, mut two) = (of_user(51_235), of_user(51_236));
    for user in [&mut one, &mut two] {
        user.send(&format!("connect {url} patient"));
        user.wait_for("connected").await;
    }
    one.send("hold a k");
    one.wait_for("held a").await;
    two.send("hold b k");
    two.wait_for("asking b").await;
    let operator = client(&url).await;
    eventually("it waits", async || {
        operator.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    one.send("release a");
    two.wait_for("held b").await;
    two.kill();
    one.send("hold c k");
    one.wait_for("held c").await;
    // What it left, the other users' clients delete.
    eventually("two clients are left", async || {
        fs::read_dir(&clients).unwrap().count() == 4
    })
    .await;
}
