//! Users and roles: least rights, tokens that the servers forget, and what strangers are told.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::LockClient;
use lock_store::{
    Acquire, Acquired, Claim, ClientId, Clock, Instant, Listener, LockKey, Owner, Renewal, Renewed,
};
use lock_testkit::{
    EtcdCluster, EtcdOptions, Heard, StoreUnderTest as _, eventually, eventually_within,
};
use serde_json::json;
use tokio::runtime::Handle;

use crate::{LONG, client, requests};

async fn refused(url: &str) -> String {
    let builder = LockClient::builder().url(url);
    let builder = builder.connect_timeout(Duration::from_secs(5));
    builder.connect().await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_token_that_the_servers_have_forgotten_is_asked_for_again() {
    let options = EtcdOptions {
        has_users: true,
        // In seconds.
        arguments: ["--auth-token-ttl", "1"].map(str::to_owned).to_vec(),
        ..EtcdOptions::default()
    };
    let servers = EtcdCluster::of(1, options).await;
    let (a, b) = (
        client(&servers.url("")).await,
        client(&servers.url("")).await,
    );
    for round in 0..3 {
        let guard = a.lock("k").acquire().await.unwrap();
        let waiter = tokio::spawn(b.lock("k").acquire());
        eventually("it waits", async || {
            a.inspect("k").await.is_ok_and(|found| found.waiting == 1)
        })
        .await;
        // Nothing is asked meanwhile but what those who wait ask each second.
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(guard.is_held(), "round {round}");
        guard.release().await.unwrap();
        waiter.await.unwrap().unwrap().release().await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

#[tokio::test]
async fn users_without_rights_or_passwords_are_told_what_to_do() {
    let servers = EtcdCluster::with_users(1).await;
    let url = servers.url("");
    let client = client(&url).await;
    client.lock("k").run(async {}).await.unwrap();
    // What a user may not know is no failure.
    for server in client.health().await.unwrap().servers {
        let findings: Vec<String> = server.findings.iter().map(ToString::to_string).collect();
        assert!(!findings.concat().contains("answer"), "{findings:?}");
    }
    for (other, says) in [
        (url.replace("app:app@", ""), "give the URL one"),
        (
            url.replace("app:app@", "app:wr%40ng@"),
            "check user and password",
        ),
        (
            url.replace("app:app@", "nobody:app@"),
            "check user and password",
        ),
        (url.replace("/t0", "/other"), "grant-permission"),
    ] {
        let error = refused(&other).await;
        assert!(error.contains(says) && !error.contains("wr@ng"), "{error}");
    }
}

#[tokio::test]
async fn a_user_where_there_are_none_is_refused_by_that_name() {
    let servers = EtcdCluster::one().await;
    let url = servers.url("").replace("etcd://", "etcd://app:app@");
    let error = refused(&url).await;
    assert!(error.contains("leave user and password out"), "{error}");
}

#[tokio::test]
async fn rights_that_are_taken_away_are_told_and_back_again_work() {
    let servers = EtcdCluster::with_users(1).await;
    let client = client(&servers.url("")).await;
    client.lock("k").run(async {}).await.unwrap();
    let gateway = servers.gateway().await;
    let revoke = json!({ "role": "app", "key": "dA==", "range_end": "dQ==" });
    gateway.ask("auth/role/revoke", &revoke).await.unwrap();
    for request in [client.lock("k"), client.multi_lock(["k", "l"])] {
        let error = request.try_acquire().await.map(drop).unwrap_err();
        assert!(error.to_string().contains("grant-permission"), "{error}");
        // An undo would be refused as well, again and again.
        assert_eq!(client.stats().undoing, 0, "{error}");
    }
    gateway.grant("app", "t").await.unwrap();
    // If the client's connection was refused meanwhile, its next attempt comes within two seconds.
    let bound = Duration::from_secs(10);
    eventually_within(bound, "the rights are back", async || {
        match client.lock("k").run(async {}).await {
            Ok(()) => true,
            Err(error) => {
                assert!(error.to_string().contains("grant-permission"), "{error}");
                false
            }
        }
    })
    .await;
}

/// A hold that gets a longer lease is written again. If that is refused, the others are known all
/// the same.
#[tokio::test]
async fn a_refused_renewal_does_not_hide_what_is_known_of_others() {
    let servers = EtcdCluster::with_users(1).await;
    let heard: Arc<dyn Listener> = Arc::<Heard>::default();
    let id = ClientId(1);
    let store = servers.store(id, &heard, Clock::new(Handle::current()));
    let by = || Instant::now() + LONG;
    let mut claims = Vec::new();
    for (number, key, lease) in [(1, "gone", 60), (2, "kept", 60), (3, "longer", 30)] {
        let owner = Owner {
            client: id,
            request: number,
        };
        let claim = Claim::new(LockKey::from(key), owner, None);
        let request = Acquire::new(claim.clone(), Duration::from_secs(lease));
        let granted = store.acquire(request, by()).await.unwrap().value;
        assert!(matches!(granted, Acquired::Granted(_)), "{granted:?}");
        claims.push(claim);
    }
    let gateway = servers.gateway().await;
    let revoke = json!({ "role": "app", "key": "dA==", "range_end": "dQ==" });
    gateway.ask("auth/role/revoke", &revoke).await.unwrap();
    let reads = json!({ "permType": "READ", "key": "dA==", "range_end": "dQ==" });
    let reads = json!({ "name": "app", "perm": reads });
    gateway.ask("auth/role/grant", &reads).await.unwrap();
    let renew = async |claims: &[Claim]| {
        let renewal = |claim: &Claim| Renewal::new(claim.clone(), LONG);
        let renewed = store
            .renew(claims.iter().map(renewal).collect(), by())
            .await;
        renewed.map(|answer| answer.value)
    };
    assert_eq!(
        renew(&claims).await.unwrap(),
        [Renewed::Renewed, Renewed::Renewed, Renewed::Unanswered]
    );
    gateway
        .delete(&requests(&servers, "gone").await[0])
        .await
        .unwrap();
    assert_eq!(
        renew(&claims).await.unwrap(),
        [Renewed::Gone, Renewed::Renewed, Renewed::Unanswered]
    );
    let refused = renew(&claims[2..]).await.unwrap_err().error;
    assert!(
        refused.to_string().contains("grant-permission"),
        "{refused}"
    );
}
