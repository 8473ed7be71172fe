//! What engines have in common whose servers keep the requests for a lock in their order, and
//! decide nothing: ZooKeeper and etcd. Who holds by that order, the [`rules`](crate::rules) say.
//!
//! The client has a session, over one connection after the other ([`Connecting`]). Its operations
//! go on when nobody polls them ([`in_a_task`]) and over another connection ([`carry_out`]). It
//! knows its own requests ([`OwnRequests`]), and ends what is over ([`Burials`]).

mod burials;
mod carried;
mod connecting;
mod fault;
mod looks;
mod members;
mod names;
mod news;
mod own_requests;

pub use burials::Burials;
pub use carried::{LiveConnection, carry_out, in_a_task};
pub use connecting::Connecting;
pub use fault::{OperationFault, gone, silent};
pub use looks::Looks;
pub use members::{ResolvedHost, SessionMembers};
pub use names::{KeyNode, escaped_part, permits_in, text_of};
pub use news::SessionNews;
pub use own_requests::{HandOver, OwnPart, OwnRequest, OwnRequests, PlacedRequest};
