//! [`Observer`]: who wants to know what a client does.

use super::event::Event;

/// Hears what a client does; see the [builder](crate::LockClientBuilder::observer)
/// and the [module](crate::observe). Every `Fn(&Event<'_>)` is one.
///
/// # What it may do
/// It is called outside of all locks of this library, one event after the other or several at once,
/// from any thread:
/// - What a request does, its task tells: `Asked` to `Cancelled`, `Released`, most of `Command`.
///   A slow observer makes that task slow, and what waits for it. At `Command`, a request has its
///   answer but not yet its lock, and asks again if the lease ends meanwhile. At `Granted`, the
///   lock is held and renewed as long as the observer takes. A task that releases in `Drop` tells
///   there. So count and return; send what takes longer to a task of your own.
/// - What happens in the background is told on a thread that does nothing else: `Lost`, `Renewed`,
///   `Undoing`, `Undone`, `Started`, `Unreachable`, `Connected`, `Disconnected`, and the commands
///   for them. A slow observer
///   delays only later events of these. If it is more than 10,000 events behind, events are left
///   out, and that is logged once.
///
/// So no observer costs a lock that is held: leases are renewed whatever it does. If it panics, the
/// panic is caught and logged once, and the next event is told as before.
///
/// It may call the client: its methods without `async`, or the others in a task that it spawns. If
/// it owns a clone of the client, that client lives for ever: give it a `Weak` or a `OnceLock`.
/// A guard that it drops tells the next event inside of this one, so hold no mutex meanwhile. A
/// [shutdown](crate::LockClient::shutdown) waits until everything is told, for at most two command
/// timeouts. Events of one thread come in their order. Across threads the order is not defined: a
/// `Lost` may be told before its `Granted`.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn observe(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event<'_>) {
        self(event);
    }
}
