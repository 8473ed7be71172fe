//! [`Polling`]: a lent body is being polled.

use super::gate::NestedGate;

/// As long as this is there, no guard that lends the hold gives it back: neither the one that the
/// body has borrowed from, nor those around it.
pub(crate) struct Polling<'g> {
    gate: &'g NestedGate,
    /// How many of the gates, from the inside, know of the poll.
    entered: usize,
}

impl<'g> Polling<'g> {
    /// `None` if one of them has ended.
    pub(crate) fn enter(gate: &'g NestedGate) -> Option<Self> {
        let mut polling = Self { gate, entered: 0 };
        for gate in gate.and_outer() {
            if !gate.enter_poll() {
                return None;
            }
            polling.entered += 1;
        }
        Some(polling)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        let entered = self.gate.and_outer().take(self.entered);
        entered.for_each(NestedGate::leave_poll);
    }
}
