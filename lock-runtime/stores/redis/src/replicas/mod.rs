//! Holds that count only when replicas have them too.

pub(crate) mod replication;
mod wait;
