//! A connection that speaks RESP3, made for many small commands.
//!
//! A request is written as RESP straight into one buffer, under a short mutex. Beside the buffer
//! stands a queue: who awaits which reply. The caller itself writes the buffer to the socket. If
//! others have requests under way, it first lets the tasks that are ready add theirs, up to a
//! number that is worth a write, and then also reads what has been answered by now. A task on the
//! client's own runtime reads whatever comes when no caller does, gives each reply to its request,
//! and ends those whose time is over. It also writes what the callers can't: what the socket did
//! not take, what a caller left unsent, and everything over TLS.
//!
//! Calls of the scripts that grant and release one lock are merged, as long as they are not
//! written.
//!
//! So a caller needs no I/O of its own runtime, and a runtime that is blocked delays only its own
//! replies.

mod command;
mod connection;
mod decoder;
mod driver;
mod merging;
mod queue;
mod reader;
mod scanner;
mod socket;
mod time_limits;

pub(crate) use self::command::{Command, Pieces};
pub(crate) use self::connection::RespConnection;
pub(crate) use self::driver::{Driver, start};
pub(crate) use self::reader::ConnectionEvents;
pub(crate) use self::socket::Socket;
pub(crate) use self::time_limits::{Limits, late};
