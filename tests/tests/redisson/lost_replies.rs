//! The server has carried out a command, and its reply never comes.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{Proxy, RedisServer, eventually, eventually_within};

use crate::client;
use crate::deaths::{KINDS, lock};

const LEASE: Duration = Duration::from_secs(30);
/// Long before a lease has ended.
const UNDONE: Duration = Duration::from_secs(15);

/// Two clients, one of them behind a network that can fail.
struct Scene {
    server: RedisServer,
    proxy: Proxy,
    cut_off: LockClient,
    other: LockClient,
}

impl Scene {
    /// The server knows all scripts, and each kind has a free lock of its name.
    async fn start() -> Self {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        let url = format!("{}?layout=redisson", proxy.url());
        let cut_off = LockClient::builder().url(url).connect().await.unwrap();
        let other = client(&server, LEASE).await;
        server.command(&["SET", "permit", "1"]).await;
        for [kind, _] in KINDS {
            let guard = lock(&cut_off, kind, kind).acquire().await.unwrap();
            let busy = lock(&other, kind, against(kind)).try_acquire().await;
            assert!(busy.unwrap().is_none(), "{kind}");
            guard.release().await.unwrap();
        }
        Self {
            server,
            proxy,
            cut_off,
            other,
        }
    }

    async fn holders(&self, kind: &str) -> usize {
        self.other.inspect(kind).await.unwrap().holders
    }

    /// Whether another client gets it.
    async fn is_free(&self, kind: &str) -> bool {
        let taken = lock(&self.other, kind, against(kind)).try_acquire().await;
        match taken.unwrap() {
            Some(guard) => guard.release().await.is_ok(),
            None => false,
        }
    }

    /// It becomes free long before its lease ends, and nothing of it is left.
    async fn assert_freed(&self, kind: &str) {
        eventually_within(UNDONE, "it is free", async || self.is_free(kind).await).await;
        assert_eq!(self.holders(kind).await, 0, "{kind}");
        let mut left = self.server.keys(&format!("*{kind}*")).await;
        left.retain(|key| key != "permit" && !key.starts_with("redisson_lock_token"));
        assert!(left.is_empty(), "{kind}: {left:?}");
    }
}

/// What can't be had beside it.
fn against(kind: &str) -> &str {
    if kind == "read" { "write" } else { kind }
}

#[tokio::test]
async fn an_acquire_whose_reply_is_lost_holds_once_and_is_released_at_once() {
    let scene = Scene::start().await;
    for [kind, _] in KINDS {
        let before = scene.proxy.requests_named("EVALSHA");
        scene.proxy.cut_after_next("EVALSHA");
        let guard = lock(&scene.cut_off, kind, kind).acquire().await.unwrap();
        let sent = scene.proxy.requests_named("EVALSHA") - before;
        assert!(sent >= 2, "{kind}: it was repeated: {sent}");
        assert_eq!(scene.holders(kind).await, 1, "{kind}");
        assert!(!scene.is_free(kind).await, "{kind}: two");
        guard.release().await.unwrap();
        scene.assert_freed(kind).await;
    }
}

#[tokio::test]
async fn a_release_whose_reply_is_lost_frees_the_lock_and_ends_nobody_elses() {
    let scene = Scene::start().await;
    for [kind, _] in KINDS {
        let guard = lock(&scene.cut_off, kind, kind).acquire().await.unwrap();
        let waiting = lock(&scene.other, kind, against(kind)).wait(UNDONE);
        let waiting = tokio::spawn(waiting.acquire());
        eventually_within(UNDONE, "it waits", async || {
            scene.other.stats().waiting == 1
        })
        .await;
        scene.proxy.cut_after_next("EVALSHA");
        let released = guard.release().await;
        let is_unknown = matches!(released, Err(LockError::Unavailable { .. }));
        assert!(released.is_ok() || is_unknown, "{kind}: {released:?}");
        let next = waiting.await.unwrap().unwrap();
        // Behind the repeat of the release. Its link may break only now: then it learns nothing.
        eventually("it is answered", async || {
            let tried = lock(&scene.cut_off, kind, kind).try_acquire().await;
            assert!(!matches!(tried, Ok(Some(_))), "{kind}: two");
            tried.is_ok()
        })
        .await;
        assert!(next.is_held());
        next.extend(LEASE).await.unwrap();
        next.release().await.unwrap();
        scene.assert_freed(kind).await;
    }
}

#[tokio::test]
async fn an_acquire_that_never_gets_a_reply_is_undone() {
    let scene = Scene::start().await;
    for [kind, _] in KINDS {
        // A client that makes its connection anew can't even ask. It has one that answers.
        eventually("the server has executed it", async || {
            if scene.cut_off.inspect(kind).await.is_err() {
                return false;
            }
            scene.server.reset_stats().await;
            scene.proxy.drop_replies(true);
            let tried = lock(&scene.cut_off, kind, kind).try_acquire().await;
            assert!(tried.unwrap_err().is_unavailable(), "{kind}");
            // Perhaps ended again by now.
            let holds = scene.server.command_calls("hset").await;
            let permits = scene.server.command_calls("zadd").await;
            scene.proxy.drop_replies(false);
            holds + permits > 0
        })
        .await;
        scene.assert_freed(kind).await;
    }
}
