//! One connection to one server: made, watched, replaced, and what goes over it.
//!
//! Futures of what is rare are boxed: each command has room for the largest that it may wait for.

pub(crate) mod client_channels;
pub(crate) mod connected;
pub(crate) mod connection;
pub(crate) mod foreign_channels;
mod login_renewal;
pub(crate) mod messages;
pub(crate) mod proof;
pub(crate) mod push;
pub(crate) mod script_or_command;
mod subscribe;
pub(crate) mod supervisor;
