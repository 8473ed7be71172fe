//! The engines of this workspace.

use lock_store::{Ability, Capabilities};

use super::engine::Engine;
use crate::{
    EtcdCluster, MemoryBackend, RedisBackend, RedissonBackend, TextBackend, ZooKeeperEnsemble,
};
#[cfg(target_os = "linux")]
use crate::{PostgresServer, ShedlockTable, SqliteFile};

/// The embedded store.
pub const MEMORY: Engine = Engine::new("memory", || Box::pin(MemoryBackend::start())).at_once(3);
/// A SQLite database.
#[cfg(target_os = "linux")]
pub const SQLITE: Engine = Engine::new("sqlite", || Box::pin(SqliteFile::start())).at_once(3);
/// A PostgreSQL server, and clients with the least rights.
#[cfg(target_os = "linux")]
pub const POSTGRES: Engine = Engine::new("postgres", || Box::pin(PostgresServer::under_test()))
    .at_once(5)
    .that_can(of_postgres)
    .that_fails();
/// A PostgreSQL server, and locks in ShedLock's table.
#[cfg(target_os = "linux")]
pub const SHEDLOCK_TABLE: Engine =
    Engine::new("shedlock_table", || Box::pin(ShedlockTable::start()))
        .at_once(3)
        .that_can(ShedlockTable::capabilities)
        .that_fails();
/// One Redis server.
pub const REDIS: Engine = Engine::new("redis", || Box::pin(RedisBackend::redis()))
    .at_once(3)
    .that_fails()
    .on_one_redis();
/// A Redis server, and locks as Redisson keeps them.
pub const REDISSON: Engine = Engine::new("redisson", || Box::pin(RedissonBackend::start()))
    .at_once(3)
    .that_can(RedissonBackend::capabilities)
    .that_fails();
/// A Redis server, and locks whose value is the time of their end.
pub const TIMESTAMP: Engine = Engine::new("timestamp", || Box::pin(TextBackend::timestamp()))
    .at_once(3)
    .that_can(TextBackend::of_timestamp)
    .that_fails();
/// A Redis server, and locks as ShedLock keeps them there.
pub const SHEDLOCK: Engine = Engine::new("shedlock", || Box::pin(TextBackend::shedlock()))
    .at_once(3)
    .that_can(TextBackend::of_shedlock)
    .that_fails();
/// Three independent Redis servers.
pub const QUORUM: Engine =
    Engine::new("quorum", || Box::pin(RedisBackend::quorum())).that_can(of_a_quorum);
/// A Redis server, and a replica that confirms each hold.
pub const REPLICATED: Engine =
    Engine::new("replicated", || Box::pin(RedisBackend::replicated())).at_once(3);
/// Redis under sentinels.
pub const SENTINELS: Engine =
    Engine::new("sentinels", || Box::pin(RedisBackend::sentinels())).at_once(3);
/// A Redis cluster.
pub const CLUSTER: Engine = Engine::new("cluster", || Box::pin(RedisBackend::cluster())).at_once(3);

/// One ZooKeeper server.
pub const ZOOKEEPER: Engine =
    Engine::new(
        "zookeeper",
        || Box::pin(ZooKeeperEnsemble::one_under_test()),
    )
    .at_once(3)
    .that_can(of_zookeeper)
    .that_fails();
/// An ensemble of three ZooKeeper servers.
pub const ZOOKEEPERS: Engine = Engine::new("zookeepers", || {
    Box::pin(ZooKeeperEnsemble::three_under_test())
})
.at_once(2)
.that_can(of_zookeeper)
.that_fails();

/// One etcd server, and clients with the least rights.
pub const ETCD: Engine = Engine::new("etcd", || Box::pin(EtcdCluster::one_under_test()))
    .at_once(3)
    .that_can(of_etcd)
    .that_fails();
/// A cluster of three etcd servers, and clients with the least rights.
pub const ETCDS: Engine = Engine::new("etcds", || Box::pin(EtcdCluster::three_under_test()))
    .at_once(2)
    .that_can(of_etcd)
    .that_fails();

fn of_etcd() -> Capabilities {
    let mut can = Capabilities::all();
    let lacks = || Ability::no("no server of it shows a clock");
    (can.rate, can.exact_rate, can.latch) = (lacks(), lacks(), lacks());
    can
}

fn of_zookeeper() -> Capabilities {
    let mut can = Capabilities::all();
    let lacks = || Ability::no("no server of it shows a clock");
    (can.rate, can.exact_rate, can.latch) = (lacks(), lacks(), lacks());
    can
}

/// All, but it gives one token at a time. Only what tests go by is said here.
#[cfg(target_os = "linux")]
fn of_postgres() -> Capabilities {
    let mut can = Capabilities::all();
    can.token_window = false;
    can
}

fn of_a_quorum() -> Capabilities {
    let mut can = Capabilities::all();
    let lacks = || Ability::no("a quorum has no queue, and can't count");
    (can.shares, can.fair, can.rate, can.latch) = (lacks(), lacks(), lacks(), lacks());
    can
}
