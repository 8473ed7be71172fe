//! Fencing tokens: `max(last + 1, the store's time in microseconds)`.

/// The first of the tokens that follow the last one of a lock, or follow none (zero). `micros` is
/// the store's time since 1970. So a token below it need not be remembered.
#[must_use]
pub fn next_token(last: u64, micros: u64) -> u64 {
    last.saturating_add(1).max(micros)
}
