//! Where both sides have their locks: one server, sentinels or a cluster.

use lock_testkit::{RedisCluster, RedisServer, SentinelGroup};

pub(crate) trait Servers {
    fn url(&self) -> String;

    /// The server that has this key.
    async fn of(&self, key: &str) -> &RedisServer;

    /// How many channels somebody listens on whose names have this.
    async fn channels_with(&self, name: &str) -> usize;
}

impl Servers for RedisServer {
    fn url(&self) -> String {
        self.url()
    }

    async fn of(&self, _: &str) -> &RedisServer {
        self
    }

    async fn channels_with(&self, name: &str) -> usize {
        let channels = self.channels().await;
        channels.iter().filter(|one| one.contains(name)).count()
    }
}

impl Servers for SentinelGroup {
    fn url(&self) -> String {
        self.url()
    }

    async fn of(&self, _: &str) -> &RedisServer {
        self.master().await
    }

    async fn channels_with(&self, name: &str) -> usize {
        self.master().await.channels_with(name).await
    }
}

impl Servers for RedisCluster {
    fn url(&self) -> String {
        self.url()
    }

    async fn of(&self, key: &str) -> &RedisServer {
        self.master_of(self.slot(key).await).await
    }

    async fn channels_with(&self, name: &str) -> usize {
        let mut count = 0;
        for node in &self.nodes {
            let channels: Vec<String> = node.query(&["PUBSUB", "SHARDCHANNELS"]).await;
            count += channels.iter().filter(|one| one.contains(name)).count();
        }
        count
    }
}
