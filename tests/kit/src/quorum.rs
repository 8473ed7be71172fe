//! Servers that know nothing of each other.

use crate::RedisServer;

/// Independent masters, all of them `redis-server` processes of this test's own.
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
    /// All of them.
    pub servers: Vec<RedisServer>,
}

impl RedisQuorum {
    /// Starts so many.
    pub async fn start(servers: usize) -> Self {
        let mut started = Vec::new();
        for _ in 0..servers {
            started.push(RedisServer::start().await);
        }
        Self { servers: started }
    }

    /// `redis-quorum://…`, where a server that was restarted counts at once: all of them were
    /// started just now.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_with("0s")
    }

    /// The same, where it counts after so long.
    #[must_use]
    pub fn url_with(&self, rejoin_after: &str) -> String {
        let hosts = self.servers.iter().map(|server| server.addr().to_string());
        let hosts: Vec<String> = hosts.collect();
        format!(
            "redis-quorum://{}?rejoin_after={rejoin_after}",
            hosts.join(",")
        )
    }

    /// Who has a lock of the default namespace, at each server that answers.
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
