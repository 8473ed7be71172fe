//! Fencing tokens: `max(last + 1, the store's time in microseconds)`.

/// The next token after `last` (0: none yet), and at least the store's time `micros`. So a token
/// below that time need not be remembered.
#[must_use]
pub fn next_token(last: u64, micros: u64) -> u64 {
    last.saturating_add(1).max(micros)
}
