//! What a URL says is done, or it is an error.

use lock_runtime::{LockClient, LockError};
use lock_testkit::RedisServer;

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
        let said = refused(&format!("{base}?namespace=a%3Ab"));
        assert!(said.contains("has a ':'"), "{base}: {said}");
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
    // Unless it is given, it says which process it is.
    let unnamed = client(&server.url()).await;
    let pid = format!(":{} ", std::process::id());
    let listed = format!("{:?}", server.command(&["CLIENT", "LIST"]).await);
    assert!(listed.contains(&pid), "{listed}");
    drop((named, unnamed));
    // Not both, here and there.
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
