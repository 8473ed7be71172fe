//! One connection to one server: made, watched, replaced, and what goes over it.

mod authentication;
pub(crate) mod client_channels;
pub(crate) mod connected;
pub(crate) mod connection;
mod doubt;
pub(crate) mod messages;
pub(crate) mod pipeline;
pub(crate) mod proof;
pub(crate) mod push;
pub(crate) mod request;
pub(crate) mod runtime_link;
mod runtime_table;
mod subscribe;
pub(crate) mod supervisor;
