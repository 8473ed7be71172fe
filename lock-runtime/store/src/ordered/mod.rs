//! What engines have in common whose servers keep the requests for a lock in their order, and
//! decide nothing: ZooKeeper and etcd. Who holds by that order, the [`rules`](crate::rules) say.
//!
//! An engine tells what is its own ([`OrderedEngine`]), and [`OrderedStore`] has the contract. The
//! client has a session, over one connection after the other ([`Connecting`]). Its operations go on
//! when nobody polls them and over another connection ([`carry_out`]). It knows its own requests
//! ([`OwnRequests`]), and ends what is over ([`Burials`]).

mod burials;
mod carried;
mod client;
mod connecting;
mod ends;
mod engine;
mod fault;
mod listing;
mod members;
mod names;
mod own_requests;
mod servers;
mod store;
mod waiting;

pub use burials::Burials;
pub use carried::{carry_out, each_by, renewed_each};
pub use client::OrderedClient;
pub use connecting::{Connecting, SessionNews};
pub use ends::EngineEnds;
pub use engine::{
    Attempt, Carried, EngineHolds, EngineMail, ListingOf, Minted, OperationProgress, OrderedEngine,
    capabilities,
};
pub use fault::{LiveConnection, OperationFault, gone, silent};
pub use listing::Listing;
pub use members::{ResolvedHost, SessionMembers};
pub use names::{KeyNode, escaped_part, permits_in, text_of};
pub use own_requests::{
    EndedRequest, OwnRequest, OwnRequests, OwnStanding, PlaceBecameHold, PlacedRequest,
};
pub use servers::{EngineServers, at_some_address};
pub use store::{OrderedStore, WholeEngine};
pub use waiting::{EngineQueue, look};
