//! A Redis Cluster: the map of slots, a connection to each node that is needed, and slots that
//! move.

pub(crate) mod nodes;
mod redirect;
pub(crate) mod slot_map;
