//! Where the store is, and what its servers must do.

#[cfg(feature = "redis")]
use std::time::Duration;

#[cfg(feature = "redis")]
use lock_store_redis::{AddressMap, Replicas};

use lock_store::Layout;

use super::LockClientBuilder;

impl LockClientBuilder {
    /// Where the store is. Read at `connect`.
    /// - `redis://[user:password@]host[:port][/db]`: one server
    /// - `redis+unix:///path/to/socket`: the same over a Unix socket
    /// - `redis-sentinel://[user:password@]host[:port],host[:port],…/master[/db]`: the master of
    ///   that name, by the word of its sentinels (port 26379), whichever server that is at the
    ///   time. User and password are those of the master; those of the sentinels are given as
    ///   `?sentinel_user=…&sentinel_password=…`
    /// - `redis-cluster://[user:password@]host[:port],host[:port],…`: a Redis Cluster (7.0 or
    ///   later), of which these are some nodes; the others are found by themselves
    /// - `redis-quorum://[user:password@]host[:port],host[:port],…[/db][?rejoin_after=60s]`: a
    ///   majority of independent servers, three or five. A server that was restarted does not count
    ///   for `rejoin_after` (default 60 s), which is also the longest lease; `0s` is for servers
    ///   that write every change to disk
    /// - `rediss://…`, `rediss-sentinel://…`, `rediss-cluster://…`, `rediss-quorum://…`: the same
    ///   over TLS, by the feature `tls`; for sentinels, too
    /// - `valkey` and `valkeys` in place of `redis` and `rediss` in any of these: the same
    /// - `postgres://…`, `zookeeper://…`, `etcd://…`, `sqlite:///path`: see the page of each
    ///   [engine](crate::guide::engines)
    /// - `memory:`: a store of its own in this process. A service that runs so is told by a warning
    ///   and by a finding in [`health`](crate::LockClient::health);
    ///   [`LockClient::in_memory`](crate::LockClient::in_memory) is the same without
    ///
    /// Every kind takes `?namespace=shop` and `?name=orders-7f9c`, for
    /// [`namespace`](Self::namespace) and [`name`](Self::name), and `?layout=…` for
    /// [`layout`](Self::layout). Of Redis, all but a quorum take
    /// `?replicas=1&replicas_timeout=100ms` in this library's own layout
    /// ([`replicas`](Self::replicas)); sentinels and a cluster
    /// take `?map=announced:port>reachable:port,…` ([`address_map`](Self::address_map)). A socket's
    /// database, user and password are `?db=2&user=…&pass=…`. Nothing in a URL is ignored: an
    /// option that is not known is an error at `connect`, and so is one that the builder gives as
    /// well. A scheme may be in any letter case.
    ///
    /// Reserved characters in a user or password are written as `%XX`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// The form in which the client keeps its locks: its own, or another library's, so that both
    /// exclude each other. In the URL: `?layout=redisson`. The page on
    /// [migration](crate::guide::migration) says what each can do. Default: this library's own.
    ///
    /// # Errors
    /// At [`connect`](Self::connect), [`LockError::Config`](crate::LockError::Config) for a layout
    /// that the engine does not have (a store of the caller's own has none), and for settings that
    /// it can't keep.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// This many replicas have to confirm each hold within `timeout`: each acquire, each lock that
    /// is handed over, and each renewal, of whatever kind. In the URL:
    /// `?replicas=1&replicas_timeout=100ms` (without the timeout: 100 ms). Default: none.
    ///
    /// A hold that too few confirm is not granted. It is undone and tried again within the
    /// request's wait. Then the request is [`Unavailable`](crate::LockError::Unavailable) of the
    /// kind [`NotReplicated`](crate::StoreErrorKind::NotReplicated), with how many confirmed. A
    /// renewal that too few confirm counts as unanswered: it is tried again, and at its old
    /// deadline the hold is lost. So a master that was cut off from its replicas grants nothing,
    /// and its holds end.
    ///
    /// Redis replication stays asynchronous: a failover may promote a replica that did not confirm.
    /// To rule this out, require every replica. Fencing tokens hold in any case. Not confirmed are
    /// rate limiters, latches, the token that a nested call is the first to ask for, and a
    /// [`release`](crate::Guard::release). After a failover a bucket may be fuller, a count higher,
    /// and that token rests on the servers' clocks.
    ///
    /// It costs a second connection, and one more round trip for each acquire, which includes that
    /// to the replicas. Acquires and renewals at the same time share one. How many replicas there
    /// are is not known beforehand: more than there are never confirm. `memory:` has none.
    ///
    /// # Errors
    /// At [`connect`](Self::connect), [`LockError::Config`](crate::LockError::Config) for no
    /// replicas, a zero timeout, one of more than half of the [command
    /// timeout](Self::command_timeout), or another store than Redis, your own included.
    #[cfg(feature = "redis")]
    pub fn replicas(mut self, count: u32, timeout: Duration) -> Self {
        self.replicas = Some(Replicas { count, timeout });
        self
    }

    /// Where the addresses lead that sentinels and the nodes of a cluster announce, for a client on
    /// the other side of an address translation (NAT, port forwarding, containers). It is called
    /// with host and port of each announced address, also of those in redirects; `None` leaves an
    /// address as it is. The addresses in the URL are not translated. In the URL:
    /// `?map=10.0.0.5:7000>redis.example:17000,10.0.0.6:7000>redis.example:17001`. Default: each
    /// address is used as it is announced.
    ///
    /// # Errors
    /// At [`connect`](Self::connect), [`LockError::Config`](crate::LockError::Config) for a store
    /// that is not Redis' sentinels or cluster, or a URL that has a `map` itself.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn connect() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockClient;
    ///
    /// // Each node's port is forwarded by one gateway, as a number that is 10,000 higher.
    /// let client = LockClient::builder()
    ///     .url("redis-cluster://gateway:17000")
    ///     .address_map(|_, port| Some(("gateway".to_owned(), port + 10_000)))
    ///     .connect()
    ///     .await?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "redis")]
    pub fn address_map(
        mut self,
        translate: impl Fn(&str, u16) -> Option<(String, u16)> + Send + Sync + 'static,
    ) -> Self {
        self.addresses = Some(AddressMap::new(translate));
        self
    }

    /// Whether [`connect`](Self::connect) refuses a store that is not set up for locks. The
    /// [`Config`](crate::LockError::Config) names each [`Finding`](crate::Finding), unknown ones
    /// included: eviction, no persistence, no `min-replicas-to-write`, clocks that differ, a server
    /// of several that does not answer, or no server at all (`memory:`).
    ///
    /// The checks may take as long again as [connecting](Self::connect_timeout).
    ///
    /// Default: no. The same is then logged once by `tracing`, as warnings (unknown ones as
    /// information), in the background and beside the first locks.
    ///
    /// # Errors
    /// `connect_lazy` returns before anything can be known:
    /// [`LockError::Config`](crate::LockError::Config).
    pub fn strict_checks(mut self, strict: bool) -> Self {
        self.strict_checks = strict;
        self
    }
}
