//! Wrong URLs, users without rights, and nodes of others.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{Port, Proxy, ZooKeeperEnsemble, ZooKeeperSession, eventually};

use crate::sessions::behind_a_proxy;
use crate::{LONG, builder, classpath, client};

async fn refused(url: &str) -> LockError {
    let builder = LockClient::builder().url(url);
    let builder = builder.connect_timeout(Duration::from_secs(2));
    let began = Instant::now();
    let error = builder.connect().await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(10), "{error}");
    error
}

#[tokio::test]
async fn what_can_not_be_reached_is_said_in_time_and_by_its_name() {
    let nobody = Port::free();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    for (url, says) in [
        (
            format!("zookeeper://127.0.0.1:{}/c", nobody.number()),
            "refused",
        ),
        (format!("zookeeper://{silent}/c"), "slow, stands still"),
        (
            "zookeeper://nowhere.invalid/c".to_owned(),
            "can't be resolved",
        ),
    ] {
        let error = refused(&url).await;
        assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn settings_that_can_not_be_meant_are_refused() {
    for (builder, says) in [
        (
            LockClient::builder().replicas(1, Duration::from_secs(1)),
            "`replicas`",
        ),
        (
            LockClient::builder().username("u"),
            "both user and password",
        ),
    ] {
        let error = builder.url("zookeeper://127.0.0.1/c").connect().await;
        let error = error.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn a_chroot_that_is_not_there_is_refused_and_made_by_a_migration() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("").replace(&servers.chroot(), "/apps/locks");
    let error = refused(&url).await;
    let text = error.to_string();
    assert!(
        text.contains("does not exist") && text.contains("migrate"),
        "{text}"
    );
    let lazy = LockClient::builder().url(&url).connect_lazy().unwrap();
    lazy.migrate().await.unwrap();
    lazy.migrate().await.unwrap();
    client(&url).await.lock("k").run(async {}).await.unwrap();
}

/// It has no other connection to try it on.
#[tokio::test]
async fn a_client_that_was_connected_before_the_chroot_was_made_hears_others_then() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("").replace(&servers.chroot(), "/apps/locks");
    let lazy = LockClient::builder().url(&url).connect_timeout(LONG);
    let lazy = lazy.command_timeout(LONG).connect_lazy().unwrap();
    for _ in 0..2 {
        let error = lazy.lock("k").try_acquire().await.map(drop).unwrap_err();
        assert!(error.to_string().contains("does not exist"), "{error}");
    }
    lazy.migrate().await.unwrap();
    let mut session = servers.session().await;
    eventually("it listens for messages", async || {
        session.children("/apps/locks/%mail").await.len() == 1
    })
    .await;
    let guard = lazy.lock("k").acquire().await.unwrap();
    let other = client(&url).await;
    let released = async {
        guard.lost().await;
        drop(guard);
    };
    let (revoked, ()) = tokio::join!(other.revoke("k", LONG), released);
    assert!(revoked.unwrap().is_complete());
}

#[tokio::test]
async fn another_user_can_neither_take_nor_end_locks() {
    let servers = ZooKeeperEnsemble::one().await;
    let ports = servers.url("");
    let as_user = |user: &str| ports.replace("zookeeper://", &format!("zookeeper://{user}@"));
    let owner = client(&as_user("app:w%40rd")).await;
    let guard = owner.lock("k").acquire().await.unwrap();
    for stranger in [ports.clone(), as_user("app:wrong"), as_user("other:word")] {
        let stranger = client(&stranger).await;
        for error in [
            stranger
                .lock("k")
                .try_acquire()
                .await
                .map(drop)
                .unwrap_err(),
            stranger
                .lock("new")
                .try_acquire()
                .await
                .map(drop)
                .unwrap_err(),
            stranger.force_release("k").await.map(drop).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(text.contains("NoAuth") && !text.contains("w@rd"), "{text}");
        }
    }
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

/// To create, read, write and delete below the chroot is enough: the conformance suite has no more.
#[tokio::test]
async fn below_a_chroot_of_one_user_another_can_neither_make_nor_delete_anything() {
    const NO_AUTH: i32 = -102;
    let servers = ZooKeeperEnsemble::with_user(1).await;
    let (url, chroot) = (servers.url(""), servers.chroot());
    let owner = client(&url).await;
    let guard = owner.lock("k").acquire().await.unwrap();
    let key = format!("{chroot}/lock/k");
    let children = servers.session().await.children(&key).await;
    let [child] = &children[..] else {
        panic!("{children:?}")
    };
    let mut other = ZooKeeperSession::open(servers.ports()[0]).await.unwrap();
    other.log_in("other:word").await.unwrap();
    for parent in [chroot.clone(), format!("{chroot}/lock"), key.clone()] {
        let made = other.create_own(&format!("{parent}/theirs")).await;
        assert_eq!(made, NO_AUTH, "below {parent}");
    }
    assert_eq!(other.try_delete(&format!("{key}/{child}")).await, NO_AUTH);
    let at = url.split_once('@').unwrap().1;
    for user in ["", "other:word@"] {
        let builder = LockClient::builder().url(format!("zookeeper://{user}{at}"));
        let patient = builder.command_timeout(LONG).connect_timeout(LONG);
        let stranger = patient.connect_lazy().unwrap();
        for key in ["k", "new"] {
            let error = stranger.lock(key).try_acquire().await.map(drop);
            let error = error.unwrap_err().to_string();
            assert!(error.contains("NoAuth"), "{user}{key}: {error}");
        }
    }
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

/// An undo would be refused as well, again and again.
#[tokio::test]
async fn a_request_that_was_refused_for_missing_rights_leaves_nothing_to_undo() {
    let servers = ZooKeeperEnsemble::with_user(1).await;
    let url = servers.url("");
    let owner = client(&url).await;
    owner.lock("k").run(async {}).await.unwrap();
    let at = url.split_once('@').unwrap().1;
    let builder = LockClient::builder().url(format!("zookeeper://other:word@{at}"));
    let patient = builder.command_timeout(LONG).connect_timeout(LONG);
    let stranger = patient.connect_lazy().unwrap();
    let semaphore = stranger.semaphore("s", 2);
    for request in [
        stranger.lock("k"),
        stranger.lock("new"),
        stranger.lock("fair").fair(),
        stranger.multi_lock(["k", "l"]),
        semaphore.permit(),
    ] {
        let error = request.try_acquire().await.map(drop).unwrap_err();
        assert!(error.to_string().contains("NoAuth"), "{error}");
        assert_eq!(stranger.stats().undoing, 0, "{error}");
    }
}

/// As when its server is killed, or loses its majority, just then.
#[tokio::test]
async fn a_connection_that_ends_while_its_user_logs_in_is_no_refusal_of_the_user() {
    let servers = ZooKeeperEnsemble::with_user(1).await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_zookeeper(address).await;
    let client = client(&servers.url_at(&[proxy.addr().port()], "")).await;
    let connections = proxy.connections();
    // The login.
    proxy.cut_after_next("OTHER");
    proxy.cut();
    client.lock("k").run(async {}).await.unwrap();
    // One whose login was cut, and those after it: a slow machine may take more than one.
    assert!(proxy.connections() >= connections + 2);
}

#[tokio::test]
async fn without_a_majority_it_is_said_in_time() {
    let servers = ZooKeeperEnsemble::three().await;
    servers.kill_member(0);
    servers.kill_member(1);
    let error = refused(&servers.url("")).await;
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("majority"), "{error}");
}

/// Servers of 3.4 have no containers, and no `create` that tells its transaction.
#[tokio::test]
async fn a_server_that_is_too_old_is_told() {
    let Some(jars) = classpath("zookeeper-3.4") else {
        return;
    };
    let servers = ZooKeeperEnsemble::one_of(&jars).await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_zookeeper(address).await;
    let client = LockClient::builder()
        .url(servers.url_at(&[proxy.addr().port()], "?session=60s"))
        // Who asks again within this time does it for other reasons.
        .command_timeout(Duration::from_secs(10))
        .connect_timeout(LONG)
        .connect_lazy()
        .unwrap();
    // Each request that it does not know costs the connection, also those of the client itself.
    let (_, refused) = tokio::join!(client.inspect("other"), client.lock("k").acquire());
    let error = refused.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("use ZooKeeper 3.5"), "{error}");
    let asked = proxy.requests_named("CREATE");
    assert!(asked < 6, "asked {asked} times in vain");
}

#[tokio::test]
async fn nodes_of_others_are_a_conflict_and_stay_as_they_are() {
    let servers = ZooKeeperEnsemble::one().await;
    let (client, chroot) = (client(&servers.url("")).await, servers.chroot());
    client.lock("first").run(async {}).await.unwrap();
    let mut session = servers.session().await;
    let (data, child) = (
        format!("{chroot}/lock/data"),
        format!("{chroot}/lock/child"),
    );
    session.create(&data, b"somebody's").await;
    session.create(&child, b"").await;
    session.create(&format!("{child}/somebodys"), b"x").await;
    session
        .create_ephemeral(&format!("{chroot}/lock/session"))
        .await;
    for key in ["data", "child", "session"] {
        for error in [
            client.lock(key).try_acquire().await.map(drop).unwrap_err(),
            client.lock(key).acquire().await.map(drop).unwrap_err(),
            client
                .rw_lock(key)
                .read()
                .acquire()
                .await
                .map(drop)
                .unwrap_err(),
        ] {
            assert!(matches!(error, LockError::KeyConflict { .. }), "{error:?}");
        }
        assert!(client.force_release(key).await.is_err());
    }
    assert_eq!(
        session.data(&data).await.as_deref(),
        Some(&b"somebody's"[..])
    );
    assert_eq!(session.children(&data).await.len(), 0);
    assert_eq!(session.children(&child).await, ["somebodys"]);
}

/// A server closes the connection of whoever sends it more, without a word.
#[tokio::test]
async fn more_keys_than_a_server_reads_at_once_are_refused_and_cost_no_connection() {
    let (servers, proxy) = behind_a_proxy().await;
    let builder = builder(&servers.url_at(&[proxy.addr().port()], ""));
    let client = builder.command_timeout(LONG).connect().await.unwrap();
    client.lock("first").run(async {}).await.unwrap();
    let connections = proxy.connections();
    let keys = |count: usize| (0..count).map(|key| format!("{key}{}", "ä".repeat(250)));
    let refused = client.multi_lock(keys(700)).acquire().await.map(drop);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("lock fewer keys at once"), "{refused}");
    assert_eq!(proxy.connections(), connections);
    assert_eq!(client.stats().undoing, 0);
    let guard = client.multi_lock(keys(500)).acquire().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(proxy.connections(), connections);
}

/// The server makes a child, and nobody hears of it. Asked again, the store finds the conflict.
#[tokio::test]
async fn beside_nodes_of_others_a_lost_reply_leaves_nothing_in_the_queue() {
    let (servers, proxy) = behind_a_proxy().await;
    let client = client(&servers.url_at(&[proxy.addr().port()], "")).await;
    client.lock("first").run(async {}).await.unwrap();
    let mut session = servers.session().await;
    for key in ["a", "b", "c"] {
        let node = format!("{}/lock/{key}", servers.chroot());
        session.create(&node, b"").await;
        session.create(&format!("{node}/somebodys"), b"x").await;
        proxy.cut_after_next("CREATE");
        let error = client.lock(key).try_acquire().await.map(drop).unwrap_err();
        assert!(matches!(error, LockError::KeyConflict { .. }), "{error:?}");
        assert_eq!(session.children(&node).await, ["somebodys"]);
    }
}

#[tokio::test]
async fn a_namespace_of_another_program_is_a_conflict_by_its_name_and_stays_as_it_is() {
    let servers = ZooKeeperEnsemble::one().await;
    let theirs = format!("{}/theirs", servers.chroot());
    let mut session = servers.session().await;
    session.create(&theirs, b"somebody's").await;
    let client = client(&servers.url("?namespace=theirs")).await;
    let semaphore = client.semaphore("part", 2);
    for request in [
        client.lock("k").fenced(),
        client.multi_lock(["k", "l"]).fenced(),
        semaphore.permit().fenced(),
    ] {
        let error = request.acquire().await.map(drop).unwrap_err();
        assert!(matches!(error, LockError::KeyConflict { .. }), "{error:?}");
        assert!(error.to_string().contains(&theirs), "{error}");
        // Locks stand below it.
        assert!(error.to_string().contains("do not delete it"), "{error}");
    }
    assert_eq!(
        session.data(&theirs).await.as_deref(),
        Some(&b"somebody's"[..])
    );
    for key in ["k", "l", "part"] {
        eventually("what was asked for is undone", async || {
            session
                .children(&format!("{theirs}/{key}"))
                .await
                .is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_that_serves_only_who_has_logged_in_is_told() {
    let servers = ZooKeeperEnsemble::one().await;
    servers.kill_member(0);
    let enforced = "enforce.auth.enabled=true\nenforce.auth.schemes=digest";
    servers.configure(0, enforced);
    servers.restart_member(0).await;
    let url = servers.url("");
    let LockError::Unavailable { source, .. } = refused(&url).await else {
        panic!("it is the user's fault, and not the URL's")
    };
    assert_eq!(source.kind(), StoreErrorKind::Denied, "{source}");
    let text = source.to_string();
    assert!(text.contains("give the URL a user"), "{text}");
    let as_user = url.replace("zookeeper://", "zookeeper://app:word@");
    client(&as_user)
        .await
        .lock("k")
        .run(async {})
        .await
        .unwrap();
}

/// The child is there, and the list of all children is refused.
#[tokio::test]
async fn what_was_made_before_a_refusal_is_undone_as_soon_as_rights_allow_it() {
    let servers = ZooKeeperEnsemble::one().await;
    let client = client(&servers.url("")).await;
    client.lock("other").run(async {}).await.unwrap();
    let path = format!("{}/lock/k", servers.chroot());
    let mut session = servers.session().await;
    let create_and_administer = 4 | 16;
    session.create_for_all(&path, create_and_administer).await;
    let refused = client.lock("k").try_acquire().await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("NoAuth"), "{refused}");
    eventually("it is undone", async || client.stats().undoing > 0).await;
    session.allow_all(&path, 31).await;
    eventually("nothing is left", async || {
        session.children(&path).await.is_empty()
    })
    .await;
    eventually("it was undone", async || client.stats().undoing == 0).await;
    client.lock("k").run(async {}).await.unwrap();
}

/// What stays taken would be another node. Its lease ends the hold all the same.
#[tokio::test]
async fn a_release_that_may_not_keep_its_key_is_told_and_the_key_is_free_later() {
    let servers = ZooKeeperEnsemble::one().await;
    let client = client(&servers.url("")).await;
    let path = format!("{}/lock/k", servers.chroot());
    let mut session = servers.session().await;
    let (read, write, delete, administer) = (1, 2, 8, 16);
    let all_but_create = read | write | delete | administer;
    let lease = Duration::from_secs(1);
    for rights in [all_but_create, all_but_create - read] {
        let lock = client.lock("k").lease(lease).hold_at_least(lease);
        let guard = lock.acquire().await.unwrap();
        let children = session.children(&path).await;
        let child = format!("{path}/{}", children.concat());
        session.allow_all(&path, rights).await;
        let refused = guard.release().await.unwrap_err();
        let LockError::Unavailable { source, .. } = &refused else {
            panic!("{rights}: {refused:?}")
        };
        assert_eq!(source.kind(), StoreErrorKind::Denied, "{refused}");
        eventually("its lease ends it", async || {
            session.data(&child).await.is_none()
        })
        .await;
        session.allow_all(&path, 31).await;
        client.lock("k").run(async {}).await.unwrap();
    }
}

#[tokio::test]
async fn a_release_that_was_refused_is_repeated_when_rights_allow_it() {
    let servers = ZooKeeperEnsemble::one().await;
    let client = client(&servers.url("")).await;
    let path = format!("{}/lock/k", servers.chroot());
    let mut session = servers.session().await;
    let keep = Duration::from_secs(3);
    let lock = client.lock("k").hold_at_least(keep);
    let guard = lock.acquire().await.unwrap();
    let held = session.children(&path).await;
    let all_but_create = 1 | 2 | 8 | 16;
    session.allow_all(&path, all_but_create).await;
    let refused = guard.release().await.unwrap_err();
    assert!(refused.to_string().contains("NoAuth"), "{refused}");
    session.allow_all(&path, 31).await;
    eventually("it is released", async || {
        session.children(&path).await != held
    })
    .await;
    eventually("it is free again", async || {
        client.lock("k").try_acquire().await.unwrap().is_some()
    })
    .await;
}

#[tokio::test]
async fn a_downgrade_that_is_refused_leaves_the_hold_as_it_is() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("");
    let (client, other) = (client(&url).await, client(&url).await);
    let guard = client.rw_lock("k").write().acquire().await.unwrap();
    let path = format!("{}/lock/k", servers.chroot());
    let mut session = servers.session().await;
    let all_but_create = 1 | 2 | 8 | 16;
    session.allow_all(&path, all_but_create).await;
    let refused = guard.downgrade().await.unwrap_err();
    assert!(refused.to_string().contains("NoAuth"), "{refused}");
    assert!(guard.is_held());
    session.allow_all(&path, 31).await;
    let reads = other.rw_lock("k").read();
    assert!(reads.try_acquire().await.unwrap().is_none());
    guard.downgrade().await.unwrap();
    drop(other.rw_lock("k").read().acquire().await.unwrap());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn health_tells_of_an_ensemble_of_one_and_of_sessions_longer_than_asked() {
    let servers = ZooKeeperEnsemble::one().await;
    // Two ticks are the least.
    let client = client(&servers.url("?session=200ms")).await;
    let health = client.health().await.unwrap();
    let [server] = &health.servers[..] else {
        panic!("{health:?}")
    };
    assert!(server.version.starts_with('3'), "{server:?}");
    let findings: Vec<String> = server.findings.iter().map(ToString::to_string).collect();
    let has = |text: &str| findings.iter().any(|finding| finding.contains(text));
    assert!(
        has("ensemble of one") && has("sessions last at least 1s"),
        "{findings:?}"
    );
}

#[tokio::test]
async fn health_tells_of_a_session_that_is_shorter_than_asked_and_of_no_other() {
    let servers = ZooKeeperEnsemble::one().await;
    for (asked, is_told) in [(121, true), (120, false)] {
        let url = servers.url(&format!("?session={asked}s"));
        let health = client(&url).await.health().await.unwrap();
        let mut findings = health.servers.iter().flat_map(|server| &server.findings);
        let tells = findings.any(|finding| finding.to_string().contains("lasts 120s at most"));
        assert_eq!(tells, is_told, "{asked}: {health:?}");
    }
}

/// It could not be trusted until the next heartbeat.
#[tokio::test]
async fn a_session_that_is_granted_for_less_than_three_ticks_is_refused() {
    let servers = ZooKeeperEnsemble::one().await;
    servers.kill_member(0);
    servers.limit_sessions(0, Duration::from_millis(1_100));
    servers.restart_member(0).await;
    let error = refused(&servers.url("?tick=500ms")).await;
    let text = error.to_string();
    assert!(
        text.contains("a session of 1.1s") && text.contains("`maxSessionTimeout`"),
        "{text}"
    );
    client(&servers.url("")).await;
}

#[tokio::test]
async fn a_tick_that_is_shorter_than_that_of_the_servers_is_told_and_no_other() {
    let servers = ZooKeeperEnsemble::one().await;
    for (tick, is_told) in [(499, true), (500, false), (800, false)] {
        let url = servers.url(&format!("?tick={tick}ms&session=3s"));
        let health = client(&url).await.health().await.unwrap();
        let mut findings = health.servers.iter().flat_map(|server| &server.findings);
        let about = format!("`tick={tick}ms`: with less than its `tickTime`");
        let tells = findings.any(|finding| finding.to_string().contains(&about));
        assert_eq!(tells, is_told, "{health:?}");
    }
    let strict = LockClient::builder().url(servers.url("?tick=100ms"));
    let strict = strict.connect_timeout(LONG);
    let refused = strict.strict_checks(true).connect().await.unwrap_err();
    assert!(refused.to_string().contains("two can hold"), "{refused}");
}
