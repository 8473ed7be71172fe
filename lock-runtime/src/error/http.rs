//! Errors as the answers of an HTTP service.

use std::time::Duration;

use super::LockError;

/// After what time a caller may repeat a request that met a busy lock, or a store that is away.
const SOON: Duration = Duration::from_secs(1);

impl LockError {
    /// The status that an HTTP service answers with, as the table above has it.
    ///
    /// An [`Unavailable`](Self::Unavailable) of [`Guard::release`](crate::Guard::release) is 503
    /// here too, although the work is done: do not make an answer of that one.
    ///
    /// # Examples
    /// ```
    /// use lock_runtime::{LockError, LostReason, StoreErrorKind};
    ///
    /// assert_eq!(LockError::busy("order:7").http_status(), 409);
    /// assert_eq!(LockError::unavailable(StoreErrorKind::Timeout, "500ms").http_status(), 503);
    /// // Stopped half-way: look before anyone repeats it.
    /// assert_eq!(LockError::lost("order:7", LostReason::Gone).http_status(), 500);
    /// // All of the work was done.
    /// assert_eq!(LockError::lost_after_body("order:7", LostReason::Gone).http_status(), 409);
    /// ```
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match self {
            Self::InvalidKey { .. } => 400,
            Self::LatchNotSet { .. } => 404,
            Self::Busy { .. } | Self::LatchClosed { .. } => 409,
            Self::Lost { body_ended, .. } if *body_ended => 409,
            Self::RateLimited { .. } => 429,
            Self::Unavailable { .. } | Self::Shutdown => 503,
            Self::Lost { .. }
            | Self::WouldDeadlock { .. }
            | Self::KeyConflict { .. }
            | Self::Config { .. }
            | Self::NotInitialized
            | Self::AlreadyInitialized => 500,
        }
    }

    /// After what time the same request may succeed, for a `Retry-After` header (in whole seconds:
    /// round up). `None` if repeating it alone helps nobody. Of
    /// [`RateLimited`](Self::RateLimited) the limiter's own time, of the others one second.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } => Some(*retry_after),
            Self::Busy { .. }
            | Self::LatchClosed { .. }
            | Self::Unavailable { .. }
            | Self::Shutdown => Some(SOON),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_store::{KeyFault, StoreErrorKind};

    use super::*;
    use crate::error::{KeyKind, LostReason};

    /// The status that the page's table begins with for this variant.
    fn in_the_page(variant: &str) -> u16 {
        let page = include_str!("../../docs/errors.md");
        let rows = page.lines().filter(|line| line.starts_with("| ["));
        let row = rows
            .clone()
            .find(|row| row.contains(&format!("`{variant}`")));
        let row = row.unwrap_or_else(|| panic!("no row for {variant}"));
        let names: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let at = names.iter().position(|name| *name == variant).unwrap_or(0);
        let last = row.trim_end_matches([' ', '|']).rsplit('|').next();
        // `409; 404` for two variants, or a status for all of them, or words behind it.
        let statuses: Vec<u16> = last
            .unwrap_or_default()
            .split(';')
            .filter_map(|status| status.trim().get(..3)?.parse().ok())
            .collect();
        statuses.get(at).or(statuses.first()).copied().unwrap_or(0)
    }

    /// The table in `docs/errors.md`.
    #[test]
    fn each_error_has_its_status_and_what_can_be_repeated_has_a_time() {
        let second = Some(Duration::from_secs(1));
        let minute = Duration::from_secs(60);
        let closed = LockError::LatchClosed {
            key: "k".into(),
            waited: minute,
        };
        let not_set = LockError::LatchNotSet { key: "k".into() };
        for (error, status, after) in [
            (LockError::busy("k"), 409, second),
            (LockError::rate_limited("k", minute), 429, Some(minute)),
            (LockError::lost("k", LostReason::Gone), 500, None),
            (LockError::lost_after_body("k", LostReason::Gone), 409, None),
            (closed, 409, second),
            (not_set, 404, None),
            (
                LockError::unavailable(StoreErrorKind::Timeout, ""),
                503,
                second,
            ),
            (LockError::would_deadlock("k"), 500, None),
            (LockError::invalid_key("k", KeyFault::Braces), 400, None),
            (LockError::key_conflict("k", KeyKind::NoLock), 500, None),
            (LockError::config("bad"), 500, None),
            (LockError::NotInitialized, 500, None),
            (LockError::AlreadyInitialized, 500, None),
            (LockError::Shutdown, 503, second),
        ] {
            assert_eq!(error.http_status(), status, "{error}");
            let shown = format!("{error:?}");
            let variant = shown.split([' ', '{', '(']).next().unwrap_or_default();
            if !error.body_ended() {
                assert_eq!(in_the_page(variant), status, "{error}");
            }
            assert_eq!(error.retry_after(), after, "{error}");
        }
    }
}
