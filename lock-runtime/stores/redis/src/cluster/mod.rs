//! A Redis Cluster: which node has a slot, a connection to each node that is needed, and what to do
//! when a slot moves.

mod cluster_slots;
pub(crate) mod nodes;
mod redirect;
