//! Guides by subject: what holds, what to do, what it costs.
//!
//! | page | answers |
//! |---|---|
//! | [attribute] | which option for which job |
//! | [leaders] | one replica does it as long as it holds the lock: the pattern, its guarantees, fencing |
//! | [guarantees] | what holds, what does not, and how a database checks the fencing token |
//! | [errors] | what each error means, and what to do |
//! | [engines] | which engine can do what, and how to add one |
//! | [settings] | what a client can be told, and the defaults |
//! | [redis] | URLs, persistence, rights |
//! | [postgresql] | locks in a database: set-up, `lock_check`, poolers, standbys |
//! | [zookeeper] | an ensemble that survives any minority: sessions, trust, cost |
//! | [etcd] | a cluster that survives any minority: leases, trust, rights, cost |
//! | [sqlite] | a file for the processes of one machine: what it survives, its limits |
//! | [topologies] | one server, Sentinel, Cluster, replicas, a quorum: what each survives |
//! | [cost] | commands, memory, and figures beside other libraries |
//! | [observability] | metrics and their table, alerts, spans, and what an observer hears |
//! | [probes] | readiness and liveness, and a store that is not there yet |
//! | [testing] | tests of your own service: a store in the process, paused time, faults |
//! | [comparison] | facts and figures of other libraries, advisory locks, etcd and ZooKeeper |
//! | [migration] | from Redisson, lock4j, ShedLock, `SET NX` code, rslock |

/// A file of `docs/` as a page. Its links have definitions at its end, for readers of the file.
/// Those here come first, and so win: they lead to the other pages. A picture stands in the page
/// itself, in front of the text.
macro_rules! page {
    ($name:ident $(, $picture:literal)?) => {
        /// [attribute]: crate::guide::attribute
        /// [outlives]: crate::guide::attribute#what-outlives-the-lock
        /// [options]: macro@crate::distributed_lock#options
        /// [order]: macro@crate::distributed_lock#the-order-of-attributes
        /// [rate_limited]: macro@crate::rate_limited#options
        /// [errors]: crate::guide::errors
        /// [access]: crate::guide::redis#user-and-password
        /// [advisory]: crate::guide::postgresql#why-not-advisory-locks-or-unlogged-tables
        /// [announced]: crate::guide::redis#addresses-that-servers-announce
        /// [check]: crate::guide::postgresql#lock_check-a-lock-that-no-clock-can-break
        /// [engines]: crate::guide::engines
        /// [own]: crate::guide::engines#an-engine-of-your-own
        /// [fencing]: crate::guide::guarantees#the-fencing-token
        /// [settings]: crate::guide::settings
        /// [trust]: crate::guide::redis#who-is-trusted
        /// [stuck]: crate::guide::errors#a-lock-is-stuck
        /// [watch]: crate::guide::errors#what-to-watch
        /// [beside]: crate::guide::cost#beside-other-libraries
        /// [exported]: crate::guide::observability#metrics
        /// [kinds]: crate::guide::errors#unavailable
        /// [versions]: crate::guide::migration#to-another-version
        /// [dies]: crate::guide::engines#what-each-can-do
        /// [disk]: crate::guide::postgresql#cost
        /// [grants]: crate::guide::postgresql#set-up
        /// [leases]: crate::guide::etcd#leases-and-trust
        /// [users]: crate::guide::etcd#users-and-tls
        /// [curator]: crate::guide::zookeeper#beside-curator
        /// [rights]: crate::guide::redis#rights
        /// [redisson]: crate::guide::migration#locks-shared-with-redisson
        /// [fair]: crate::guide::guarantees#fair
        /// [cost]: crate::guide::cost#waiting-and-handing-over
        /// [checks]: crate::guide::redis#start-up-checks
        /// [guarantees]: crate::guide::guarantees
        /// [leaders]: crate::guide::leaders
        /// [when]: crate::guide::guarantees#when-the-lock-is-lost
        /// [migration]: crate::guide::migration
        /// [observability]: crate::guide::observability
        /// [quorum]: crate::guide::topologies#a-quorum-of-independent-servers
        /// [redis]: crate::guide::redis
        /// [postgresql]: crate::guide::postgresql
        /// [probes]: crate::guide::probes
        /// [stopping]: crate::guide::errors#in-a-web-service
        /// [statuses]: crate::guide::errors#in-http-handlers
        /// [sqlite]: crate::guide::sqlite
        /// [etcd]: crate::guide::etcd
        /// [zookeeper]: crate::guide::zookeeper
        /// [testing]: crate::guide::testing
        /// [topologies]: crate::guide::topologies
        /// [life]: data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20width='0'/%3E
        /// [handoff]: data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20width='0'/%3E
        ///
        $(
            /// <div>
            #[doc = include_str!(concat!("../docs/", $picture))]
            /// </div>
            ///
        )?
        #[doc = include_str!(concat!("../docs/", stringify!($name), ".md"))]
        pub mod $name {}
    };
}

page!(attribute);
page!(comparison);
page!(cost, "hand-off.svg");
page!(engines);
page!(errors);
page!(etcd);
page!(guarantees, "life-of-a-lock.svg");
page!(leaders);
page!(migration);
// Its example needs this feature.
#[cfg(any(not(doctest), feature = "metrics"))]
page!(observability);
page!(postgresql);
page!(probes);
page!(redis);
page!(settings);
page!(sqlite);
// Its examples need these features.
#[cfg(any(not(doctest), all(feature = "test-util", feature = "macros")))]
page!(testing);
page!(topologies);
page!(zookeeper);
