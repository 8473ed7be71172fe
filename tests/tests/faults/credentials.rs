//! A user and a password that come from a provider and change while a client runs.

use std::collections::BTreeSet;
use std::error::Error;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_runtime::{Credentials, LockClient, LockClientBuilder, LockError, StoreErrorKind};
use lock_testkit::{RedisServer, eventually, server_is_at_least};

use crate::{SLACK, timed, unavailable};

const CANARY: &str = "canary-of-the-day";
/// Only a provider gives this password.
const ENDED: &str = "canary-of-yesterday";

/// A server with these passwords for `app`. Only the test and `app` can log in.
async fn server(passwords: &[&str]) -> RedisServer {
    let server = RedisServer::start().await;
    has_user(&server, passwords).await;
    server
}

async fn has_user(server: &RedisServer, passwords: &[&str]) {
    let passwords: Vec<String> = passwords.iter().map(|one| format!(">{one}")).collect();
    let mut rules = vec![
        "ACL",
        "SETUSER",
        "app",
        "on",
        "resetpass",
        "~*",
        "&*",
        "+@all",
    ];
    rules.extend(passwords.iter().map(String::as_str));
    server.command(&rules).await;
}

fn builder(server: &RedisServer) -> LockClientBuilder {
    LockClient::builder().url(format!("redis://{}", server.addr()))
}

/// A provider of the password that is current at the time.
fn current(password: &Arc<Mutex<String>>) -> impl Fn() -> Given + Send + Sync + 'static {
    let password = Arc::clone(password);
    move || {
        let password = password.lock().unwrap().clone();
        std::future::ready(Ok(Credentials::new("app", password)))
    }
}

type Given = std::future::Ready<Result<Credentials, io::Error>>;

fn text(error: &LockError) -> String {
    format!(
        "{error}: {:?} {error:?}",
        error.source().map(ToString::to_string)
    )
}

/// The connections of `app`.
async fn connections(server: &RedisServer) -> BTreeSet<String> {
    let list: String = server.query(&["CLIENT", "LIST"]).await;
    let of_app = list.lines().filter(|line| line.contains(" user=app "));
    let ids = of_app.filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_rotated_under_a_holder_loses_nothing() {
    let server = server(&["one"]).await;
    let password = Arc::new(Mutex::new("one".to_owned()));
    let client = builder(&server).credentials(current(&password));
    let client = client
        .lease(Duration::from_secs(1))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    let (first, lost) = (connections(&server).await, guard.lost());
    has_user(&server, &["two"]).await;
    *password.lock().unwrap() = "two".to_owned();
    server.command(&["CLIENT", "KILL", "USER", "app"]).await;
    eventually("other connections are there", async || {
        let now = connections(&server).await;
        !now.is_empty() && now.is_disjoint(&first)
    })
    .await;
    // More than one lease passes.
    let before = server.command_calls("pexpire").await;
    eventually("the hold is renewed several times", async || {
        server.command_calls("pexpire").await >= before + 4
    })
    .await;
    assert!(guard.is_held());
    drop(lost);
    assert!(
        client
            .lock("k")
            .reentrant(false)
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    guard.release().await.unwrap();
    assert_eq!(server.keys("lock:k").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_end_are_renewed_over_the_connections_that_are_up() {
    let passwords: Vec<String> = (0..200).map(|at| format!("{CANARY}-{at}")).collect();
    let passwords: Vec<&str> = passwords.iter().map(String::as_str).collect();
    let server = server(&passwords).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let client = builder(&server).credentials(move || {
        let at = counter.fetch_add(1, Ordering::Relaxed);
        async move {
            match at {
                // The client asks the provider again after a failure.
                3 => Err(format!("there is no {CANARY}-2 any more")),
                _ => Ok(Credentials::new("app", format!("{CANARY}-{at}"))
                    .valid_for(Duration::from_millis(800))),
            }
        }
    });
    let client = client.connect().await.unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    let (before, so_far) = (
        connections(&server).await,
        server.command_calls("auth").await,
    );
    eventually("it has authenticated anew", async || {
        server.command_calls("auth").await >= so_far + 3
    })
    .await;
    assert_eq!(connections(&server).await, before);
    assert!(asked.load(Ordering::Relaxed) >= 5 && guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_wrong_password_of_a_provider_is_told_and_not_shown() {
    let server = server(&["one"]).await;
    let password = Arc::new(Mutex::new(CANARY.to_owned()));
    let refused = builder(&server)
        .credentials(current(&password))
        .connect()
        .await;
    let said = text(refused.as_ref().unwrap_err());
    for part in [
        "WRONGPASS",
        "the credentials provider",
        &server.addr().to_string(),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains(CANARY), "{said}");
    assert_eq!(unavailable(refused), StoreErrorKind::Denied);
}

#[tokio::test]
async fn a_provider_that_fails_or_hangs_is_reported() {
    let server = server(&[ENDED]).await;
    let connect = async |builder: LockClientBuilder| {
        let builder = builder.connect_timeout(Duration::from_millis(400));
        let (failed, took) = timed(builder.connect()).await;
        // It does not hang.
        assert!(took < Duration::from_millis(400) + 5 * SLACK, "{took:?}");
        let said = text(failed.as_ref().unwrap_err());
        assert!(said.contains(&server.addr().to_string()), "{said}");
        (unavailable(failed), said)
    };
    let fails = || async { Err(io::Error::other("the cloud is away")) };
    let (kind, said) = connect(builder(&server).credentials(fails)).await;
    assert!(
        said.contains("the credentials provider failed: the cloud is away"),
        "{said}"
    );
    assert_eq!(kind, StoreErrorKind::Disconnected);
    let hangs = || pending::<Result<Credentials, io::Error>>();
    let (kind, said) = connect(builder(&server).credentials(hangs)).await;
    assert!(
        said.contains("the credentials provider does not answer in time"),
        "{said}"
    );
    assert_eq!(kind, StoreErrorKind::Timeout);
    let panics = || async { Err::<Credentials, _>(io::Error::other(panicked())) };
    let (_, said) = connect(builder(&server).credentials(panics)).await;
    assert!(said.contains("the credentials provider panicked"), "{said}");
    let panics_at_once = || std::future::ready(Err::<Credentials, _>(io::Error::other(panicked())));
    let (_, said) = connect(builder(&server).credentials(panics_at_once)).await;
    assert!(said.contains("the credentials provider panicked"), "{said}");

    // The earlier password is not shown when the provider repeats it.
    let times = AtomicUsize::new(0);
    let client = builder(&server).credentials(move || {
        let given = match times.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(Credentials::new("app", ENDED)),
            _ => Err(io::Error::other(format!("{ENDED} has ended"))),
        };
        std::future::ready(given)
    });
    assert!(!format!("{client:?} {:?}", Credentials::new("app", ENDED)).contains(ENDED));
    let client = client.connect().await.unwrap();
    server.command(&["CLIENT", "KILL", "USER", "app"]).await;
    eventually("the provider was asked again", async || {
        let lock = client.lock("k").wait(Duration::from_millis(300));
        let said = text(&lock.acquire().await.unwrap_err());
        assert!(!said.contains(ENDED), "{said}");
        said.contains("the credentials provider failed: <password> has ended")
    })
    .await;
}

// The runtime has no connection of its own, which would ask as well.
#[tokio::test]
async fn the_answer_of_a_slow_provider_is_used_by_the_next_attempt() {
    let server = server(&["one"]).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let limit = Duration::from_millis(300);
    let builder = builder(&server).unavailable_after(Duration::from_secs(30));
    let client = builder.connect_timeout(limit).credentials(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(3 * limit).await;
            Ok::<_, io::Error>(Credentials::new("app", "one"))
        }
    });
    let client = client.connect_lazy().unwrap();
    let told = client.lock("k").wait(limit / 2).acquire().await;
    let said = text(&told.unwrap_err());
    let parts = ["the credentials provider", "300ms", "`connect_timeout`"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    let got = client.lock("k").wait(Duration::from_secs(20)).acquire();
    got.await.unwrap().release().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // Each further connection asks again.
    server.command(&["CLIENT", "KILL", "USER", "app"]).await;
    let got = client.lock("k").wait(Duration::from_secs(20)).acquire();
    got.await.unwrap().release().await.unwrap();
    let asked = asked.load(Ordering::SeqCst);
    assert!((2..=3).contains(&asked), "{asked}");
}

/// Another user's credentials come while a connection is up.
#[tokio::test]
async fn a_later_user_who_may_not_use_locks_is_told_with_the_right() {
    let server = server(&["one"]).await;
    let rule = [
        "ACL", "SETUSER", "other", "on", ">one", "~*", "&*", "+@all", "-pexpire",
    ];
    server.command(&rule).await;
    let user = Arc::new(Mutex::new("app"));
    let given = Arc::clone(&user);
    let client = builder(&server).credentials(move || {
        let user = *given.lock().unwrap();
        let credentials = Credentials::new(user, "one").valid_for(Duration::from_millis(800));
        std::future::ready(Ok::<_, io::Error>(credentials))
    });
    let client = client.connect().await.unwrap();
    client
        .lock("k")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    *user.lock().unwrap() = "other";
    eventually("the right is told before a body runs", async || {
        let tried = client.lock("k").wait(Duration::ZERO).acquire().await;
        tried.is_err_and(|error| text(&error).contains("`PEXPIRE`"))
    })
    .await;
    *user.lock().unwrap() = "app";
    eventually("it is used again", async || {
        client.lock("k").run(async {}).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_provider_without_a_user_gives_the_password_of_the_default_user() {
    let server = RedisServer::builder().password("one").start().await;
    let url = format!("redis://{}", server.addr());
    let given = || std::future::ready(Ok::<_, io::Error>(Credentials::new("", "one")));
    let client = LockClient::builder().url(url).credentials(given);
    let client = client.connect().await.unwrap();
    drop(client.lock("k").acquire().await.unwrap());
}

fn panicked() -> String {
    panic!("on purpose");
}

#[tokio::test]
async fn every_kind_of_url_asks_the_provider_and_no_sentinel_does() {
    let servers = [
        server(&["one"]).await,
        server(&["one"]).await,
        server(&["one"]).await,
    ];
    for server in &servers {
        // Without the provider no login succeeds.
        server
            .command(&["ACL", "SETUSER", "default", "-set", "-eval", "-evalsha"])
            .await;
    }
    let password = Arc::new(Mutex::new("one".to_owned()));
    // Each has a key of its own: servers of the quorum serve others, too, and the last of three may
    // not have had its release when the client is gone.
    let holds = async |url: String| {
        let (key, _) = url.split_once(':').unwrap();
        let client = LockClient::builder()
            .url(&url)
            .credentials(current(&password));
        let client = client.connect().await.unwrap();
        let guard = client.lock(key).acquire().await.unwrap();
        guard.release().await.unwrap();
    };
    let [one, two, three] = servers.each_ref().map(|server| server.addr().to_string());
    holds(format!(
        "redis-quorum://{one},{two},{three}?rejoin_after=0s"
    ))
    .await;
    let port = servers[0].addr().port();
    let monitor = format!("sentinel monitor mymaster 127.0.0.1 {port} 1\n");
    let sentinel = RedisServer::builder().sentinel(monitor).start().await;
    holds(format!("redis-sentinel://{}/mymaster", sentinel.addr())).await;
    let socket = RedisServer::builder().unix_socket(true).start().await;
    has_user(&socket, &["one"]).await;
    socket
        .command(&["ACL", "SETUSER", "default", "-set", "-eval", "-evalsha"])
        .await;
    holds(format!("redis+unix://{}", socket.socket_path().display())).await;
    // A node's port for others is set since then.
    if !server_is_at_least(7) {
        return;
    }
    let node = RedisServer::builder().cluster_node().start().await;
    crate::tls::has_all_slots(&node).await;
    has_user(&node, &["one"]).await;
    node.command(&["ACL", "SETUSER", "default", "-set", "-eval", "-evalsha"])
        .await;
    holds(format!("redis-cluster://{}", node.addr())).await;
}

#[tokio::test]
async fn a_provider_and_a_password_are_told() {
    let password = Arc::new(Mutex::new(CANARY.to_owned()));
    let at = |url: &str| {
        LockClient::builder()
            .url(url)
            .credentials(current(&password))
    };
    for (builder, says) in [
        (
            at(&format!("redis://app:{CANARY}@127.0.0.1:1")),
            "`credentials` provides user and password",
        ),
        (
            at("redis://127.0.0.1:1").username("app").password(CANARY),
            "`credentials` provides user and password",
        ),
        (at("memory:"), "`credentials` is for a server"),
    ] {
        let refused = builder.connect().await.unwrap_err();
        let said = text(&refused);
        assert!(matches!(refused, LockError::Config { .. }), "{said}");
        assert!(said.contains(says) && !said.contains(CANARY), "{said}");
    }
}
