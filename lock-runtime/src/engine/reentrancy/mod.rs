//! Re-entrancy: a request inside a hold of its own call chain shares that hold.
//!
//! A body runs in a frame of its call chain. A nested request finds the frame, waits for the
//! frame's gate until no sibling uses the hold, and gets a permit to use it too. What has a permit
//! is lost when the gate closes.

pub(crate) mod call_chain;
mod gate;
mod nested;

pub(super) use self::call_chain::enclosing;
pub(crate) use self::gate::{End, NestedGate, NestedPermit, Polling};
pub(crate) use self::nested::{Got, OwnOrNested};
