//! Holds that count only when replicas have them as well.

pub(crate) mod replication;
mod wait;
