//! The client does what a URL says, or reports an error.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{Proxy, RedisServer};

use crate::client;

fn refused(url: &str) -> String {
    match LockClient::builder().url(url).connect_lazy() {
        Err(error @ LockError::Config { .. }) => error.to_string(),
        other => panic!("{url}: {other:?}"),
    }
}

#[tokio::test]
async fn an_unknown_option_of_any_kind_of_url_is_refused_with_the_known_ones() {
    for (base, known) in [
        ("redis://h/", "`replicas`"),
        ("redis+unix:///tmp/redis.sock", "`pass`"),
        ("redis-sentinel://h1,h2/master", "`sentinel_user`"),
        ("redis-cluster://h1,h2", "`replicas`"),
        ("redis-quorum://h1,h2,h3", "`rejoin_after`"),
        ("memory:", "`?namespace=…`"),
    ] {
        for option in ["tls=true", "replica=1", "tls"] {
            let said = refused(&format!("{base}?{option}"));
            assert!(said.contains(known), "{base} {option}: {said}");
        }
        for twice in ["namespace=a&namespace=a", "name=a&name=b"] {
            let said = refused(&format!("{base}?{twice}"));
            assert!(said.contains("twice"), "{base} {twice}: {said}");
        }
        for second in ["namespace=a?name=b", "name=a?namespace=b"] {
            let said = refused(&format!("{base}?{second}"));
            assert!(said.contains("`&` between options"), "{base}: {said}");
        }
        let said = refused(&format!("{base}?namespace=a%3Ab"));
        assert!(said.contains("has a ':'"), "{base}: {said}");
        let said = refused(&format!("{base}?namespace={}", "n".repeat(129)));
        assert!(said.contains("the limit is 128"), "{base}: {said}");
        let said = refused(&format!("{base}?name=two%20words"));
        assert!(said.contains("has a ' '"), "{base}: {said}");
    }
    for ignored in [
        "redis://h/#insecure",
        "redis://h?protocol=2",
        "redis://h?db=2",
        "redis://h1,h2",
        "redis-sentinel://h/master?sentinel_user=a&sentinel_user=b",
        "memory:shop",
    ] {
        refused(ignored);
    }
}

#[tokio::test]
async fn namespace_and_name_in_a_url_are_those_of_the_client() {
    let server = RedisServer::start().await;
    let url = format!("{}?namespace=shop&name=orders-7f9c", server.url());
    let named = client(&url).await;
    let guard = named.lock("k").acquire().await.unwrap();
    assert_eq!(server.keys("*").await, ["shop:k"]);
    let listed = format!("{:?}", server.command(&["CLIENT", "LIST"]).await);
    assert!(listed.contains("name=orders-7f9c "), "{listed}");
    guard.release().await.unwrap();
    // The default name contains the number of the process.
    let unnamed = client(&server.url()).await;
    let pid = format!(":{} ", std::process::id());
    let listed = format!("{:?}", server.command(&["CLIENT", "LIST"]).await);
    assert!(listed.contains(&pid), "{listed}");
    drop((named, unnamed));
    // A setting may not be both in the URL and in the builder.
    for given in [
        LockClient::builder().namespace("other"),
        LockClient::builder().name("other"),
    ] {
        let said = given.url(&url).connect_lazy().unwrap_err().to_string();
        assert!(said.contains("leave one of them out"), "{said}");
    }
    let embedded = client("memory:?namespace=shop").await;
    assert!(format!("{embedded:?}").contains("shop"), "{embedded:?}");
}

/// The errors of a client that can't connect, and of one that is used all the same.
async fn unreachable(url: &str) -> Vec<String> {
    let builder = || {
        let builder = LockClient::builder().url(url);
        builder.connect_timeout(Duration::from_millis(300))
    };
    let connected = builder().connect().await.map(drop);
    let lazy = builder().connect_lazy().unwrap();
    let one_try = lazy.lock("k").try_acquire().await.map(drop);
    let waits = lazy.lock("k").wait(Duration::from_secs(1)).acquire().await;
    let health = lazy.health().await.map(drop);
    let errors = [connected, one_try, waits.map(drop), health];
    errors
        .into_iter()
        .map(|result| {
            let error = result.unwrap_err();
            assert!(error.is_unavailable(), "{url}: {error}");
            error.to_string()
        })
        .collect()
}

#[tokio::test]
async fn every_error_about_a_connection_names_the_server_and_no_password() {
    // A port that nobody listens on, and that no other server gets.
    let refuses = tokio::net::TcpSocket::new_v4().unwrap();
    refuses.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = refuses.local_addr().unwrap().to_string();
    // It accepts connections and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute = silent.local_addr().unwrap().to_string();
    for (url, names) in [
        (format!("redis://u:canary@{addr}/"), addr.clone()),
        (format!("rediss://u:canary@{addr}/"), addr.clone()),
        (format!("redis-cluster://u:canary@{addr}"), addr.clone()),
        (format!("redis-sentinel://u:canary@{addr}/m"), addr.clone()),
        (
            format!("redis-quorum://u:canary@{addr},{mute},127.0.0.1:1"),
            addr.clone(),
        ),
        (format!("redis://u:canary@{mute}/"), mute.clone()),
        (format!("rediss://u:canary@{mute}/"), mute.clone()),
        (format!("redis-cluster://u:canary@{mute}"), mute.clone()),
        (format!("redis-sentinel://u:canary@{mute}/m"), mute.clone()),
        (
            "redis://u:canary@no-such-host.invalid:7/".to_owned(),
            "no-such-host.invalid:7".to_owned(),
        ),
        (
            "redis+unix:///no/such.sock?user=u&pass=canary".to_owned(),
            "/no/such.sock".to_owned(),
        ),
    ] {
        for said in unreachable(&url).await {
            assert!(said.contains(&names), "{url}: {said}");
            assert!(!said.contains("canary"), "{url}: {said}");
            assert_eq!(
                said.matches(&format!("{names}: {names}")).count(),
                0,
                "{said}"
            );
        }
    }
}

/// Parts of a URL with an unescaped letter in its password look like hosts, paths and options.
#[tokio::test]
async fn no_error_repeats_a_part_of_a_password_with_an_unescaped_letter() {
    for (scheme, hosts) in [
        ("redis", "h"),
        ("rediss", "h#insecure"),
        ("redis-sentinel", "h1,h2/m"),
        ("redis-cluster", "h1,h2"),
        ("redis-quorum", "h1,h2,h3"),
        ("redis+unix", "h/tmp/s"),
        ("postgres", "h/db"),
        ("zookeeper", "h1,h2/locks"),
        ("etcd", "h1,h2/locks"),
        ("sqlite", "h/tmp/s"),
        ("memory", "h"),
    ] {
        for password in [
            "1?qxj",
            "1?qxj=a&b",
            "1?namespace=qxj:qxj&b",
            "1?namespace=qxj&namespace=b&c",
            "1?namespace=qxj&name=qxj%20qxj&b",
            "1?layout=qxj&b=c",
            "1?unit=qxj&skew=qxj&prefix=qxj:qxj&b",
            "1?listen=qxj&connections=qxj&b",
            "1?connect_timeout=qxj&sslmode=qxj&b",
            "1?user=qxj&pass=b",
            "1?qxj&sentinel_user=b",
            "1?qxj&sentinel_password=b",
            "1?session=qxj&tls=qxj&tick=qxj&b",
            "1?qxj&qxj&b",
            "1#qxj",
            "1/qxj",
            "1@qxj",
            "1@qxj/b",
            "1@qxj/b?c",
            "1@qxj,b",
            "1@qxj:b",
            "1,qxj",
            "1%qxj",
            "1[qxj",
            "qxjä[y:",
        ] {
            let url = format!("{scheme}://app:{password}@{hosts}");
            let builder = LockClient::builder().url(&url);
            let builder = builder.connect_timeout(Duration::from_millis(300));
            let Err(error) = builder.connect().await else {
                panic!("{url}");
            };
            let said = format!("{error} {error:?}");
            assert!(!said.contains("qxj"), "{url}: {said}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_or_falls_silent_names_the_server() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let client = client(&format!("redis://{}/", proxy.addr())).await;
    proxy.drop_replies(true);
    let silent = client.lock("k").try_acquire().await.unwrap_err();
    let (name, silent) = (proxy.addr().to_string(), silent.to_string());
    assert!(silent.contains(&name), "{silent}");
    proxy.refuse(true);
    proxy.cut();
    let broken = client
        .lock("k")
        .try_acquire()
        .await
        .unwrap_err()
        .to_string();
    assert!(broken.contains(&name), "{broken}");
}

#[tokio::test]
async fn valkey_is_a_twin_of_redis_and_a_scheme_is_in_any_letter_case() {
    let server = RedisServer::builder().unix_socket(true).start().await;
    let (addr, socket) = (server.addr(), server.socket_path());
    for url in [
        format!("valkey://{addr}"),
        format!("VALKEY://{addr}/0"),
        format!("Redis://{addr}"),
        format!("valkey+unix://{}", socket.display()),
        format!("REDIS+UNIX://{}", socket.display()),
    ] {
        drop(client(&url).await.lock("k").acquire().await.unwrap());
    }
    for url in [
        "valkeys://h",
        "RedisS://h",
        "valkey-sentinel://h/m",
        "valkeys-sentinel://h/m",
        "valkey-cluster://h",
        "Valkeys-Cluster://h",
        "valkey-quorum://h1,h2,h3",
        "valkeys-quorum://h1,h2,h3",
        "MEMORY:",
        "Memory:?namespace=shop",
        "Postgres://u@h/db",
    ] {
        let lazy = LockClient::builder().url(url).connect_lazy();
        assert!(lazy.is_ok(), "{url}: {lazy:?}");
    }
    for url in ["valkeyx://h", "valkey-other://h", "valkeyss://h"] {
        let said = refused(url);
        assert!(said.contains("known scheme"), "{url}");
        assert!(said.len() <= 200, "{}: {said}", said.len());
    }
    // The advice is in the words of the URL.
    let said = LockClient::builder().url(format!("valkeys://{addr}"));
    let said = said.connect().await.unwrap_err().to_string();
    assert!(
        said.contains("write `valkey://` instead of `valkeys://`"),
        "{said}"
    );
}

#[tokio::test]
async fn white_space_around_a_url_is_told() {
    for base in [
        "redis://h",
        "memory:",
        "sqlite:///tmp/locks",
        "postgres://u@h/db",
    ] {
        for url in [
            format!("{base}\n"),
            format!(" {base}"),
            format!("{base}\r\n"),
            format!("\t{base} "),
        ] {
            let said = refused(&url);
            assert!(
                said.contains("white space before or behind it"),
                "{url:?}: {said}"
            );
        }
    }
}
