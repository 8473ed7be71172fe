//! [`LastTokens`]: a token that does not rise fences nothing. A grant with such a token is not
//! used.

use lock_store::{LockKey, Mutex, StoreError, StoreErrorKind, SweepingMap};

/// The last token of each exclusive lock that this client was granted lately: of a few hundred
/// locks, at times of more.
#[derive(Debug, Default)]
pub(crate) struct LastTokens {
    tokens: Mutex<SweepingMap<LockKey, u64>>,
}

impl LastTokens {
    /// Notes the first of `reserved` tokens. It must be above all tokens before.
    pub(crate) fn note(&self, key: &LockKey, first: u64, reserved: u32) -> Result<(), u64> {
        let mut tokens = self.tokens.lock();
        tokens.sweep(|_| false);
        let last = first.saturating_add(reserved.saturating_sub(1).into());
        match tokens.get_mut(key) {
            Some(before) if *before >= first => return Err(*before),
            Some(before) => *before = last,
            None => _ = tokens.insert(key.clone(), last),
        }
        Ok(())
    }
}

/// Such a grant is older than another one, or its store has forgotten both.
pub(crate) fn not_rising(token: u64, before: u64) -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        format!(
            "its grant with the fencing token {token} came after one with {before}, so what it \
             granted is gone; if that goes on, the store has lost its counter and its clock was \
             set back"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_rise_above_all_that_were_reserved() {
        let tokens = LastTokens::default();
        let (one, other) = ("one".into(), "other".into());
        assert_eq!(tokens.note(&one, 5, 1), Ok(()));
        assert_eq!(tokens.note(&one, 5, 1), Err(5));
        assert_eq!(tokens.note(&one, 6, 65), Ok(()));
        assert_eq!(tokens.note(&one, 70, 1), Err(70));
        assert_eq!(tokens.note(&one, 71, 1), Ok(()));
        assert_eq!(tokens.note(&other, 1, 1), Ok(()));
        assert_eq!(tokens.note(&one, 1, 1), Err(71));
    }

    #[test]
    fn tokens_of_many_keys_are_forgotten() {
        let tokens = LastTokens::default();
        for number in 0..10_000 {
            assert_eq!(tokens.note(&number.to_string().into(), 1, 1), Ok(()));
        }
        assert!(tokens.tokens.lock().len() < 5000);
    }
}
