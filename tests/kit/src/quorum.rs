//! Independent servers.

use crate::RedisServer;

/// Independent masters: separate `redis-server` processes for this test.
///
/// # Examples
///
/// ```no_run
/// # async fn example() {
/// use lock_testkit::RedisQuorum;
///
/// let quorum = RedisQuorum::start(5).await;
/// quorum.servers[0].kill();
/// assert!(quorum.url().starts_with("redis-quorum://"));
/// # }
/// ```
#[derive(Debug)]
pub struct RedisQuorum {
    /// All servers.
    pub servers: Vec<RedisServer>,
}

impl RedisQuorum {
    /// Starts this many servers.
    pub async fn start(servers: usize) -> Self {
        let mut started = Vec::new();
        for _ in 0..servers {
            started.push(RedisServer::start().await);
        }
        Self { servers: started }
    }

    /// `redis-quorum://…`, in which a restarted server counts at once: all of them have just been
    /// started.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_with("0s")
    }

    /// The same, in which a restarted server counts after this time.
    #[must_use]
    pub fn url_with(&self, rejoin_after: &str) -> String {
        let hosts = self.servers.iter().map(|server| server.addr().to_string());
        let hosts: Vec<String> = hosts.collect();
        format!(
            "redis-quorum://{}?rejoin_after={rejoin_after}",
            hosts.join(",")
        )
    }

    /// The holder of a lock of the default namespace, on each server that answers.
    pub async fn holders(&self, key: &str) -> Vec<Option<String>> {
        let mut holders = Vec::new();
        for server in &self.servers {
            let value = server.try_command(&["GET", &format!("lock:{key}")]).await;
            holders.push(
                value
                    .ok()
                    .and_then(|value| redis::from_redis_value(value).ok()),
            );
        }
        holders
    }
}
