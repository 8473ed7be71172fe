//! The servers' addresses, and what each server says about itself.

pub(crate) mod address;
pub(crate) mod address_map;
pub(crate) mod dial;
pub(crate) mod endpoint;
pub(crate) mod hello;
mod identity;
pub(crate) mod info;
pub(crate) mod key_slot;
pub(crate) mod members;
pub(crate) mod progress;
mod resp2;
mod sentinel;
pub(crate) mod server;
mod unescaped;
pub(crate) mod unreached;
pub(crate) mod url;
pub(crate) mod url_options;
mod url_parts;
