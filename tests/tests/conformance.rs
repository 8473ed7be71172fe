//! The behaviours of the contract, on each engine of this workspace.

use lock_testkit::conformance::{
    CLUSTER, ETCD, ETCDS, MEMORY, QUORUM, REDIS, REDISSON, REPLICATED, SENTINELS, SHEDLOCK,
    TIMESTAMP, ZOOKEEPER, ZOOKEEPERS,
};

#[cfg(target_os = "linux")]
lock_testkit::conformance!(
    MEMORY,
    lock_testkit::conformance::SQLITE,
    lock_testkit::conformance::POSTGRES,
    lock_testkit::conformance::SHEDLOCK_TABLE,
    REDIS,
    REDISSON,
    TIMESTAMP,
    SHEDLOCK,
    QUORUM,
    REPLICATED,
    SENTINELS,
    CLUSTER,
    ZOOKEEPER,
    ZOOKEEPERS,
    ETCD,
    ETCDS,
);

// The store for SQLite needs Linux.
#[cfg(not(target_os = "linux"))]
lock_testkit::conformance!(
    MEMORY, REDIS, REDISSON, TIMESTAMP, SHEDLOCK, QUORUM, REPLICATED, SENTINELS, CLUSTER,
    ZOOKEEPER, ZOOKEEPERS, ETCD, ETCDS,
);
