//! Token buckets of rate limiters.

use std::time::Duration;

use super::name::SharedName;
use crate::instant::Instant;
use crate::rules::TokenBucket;
use crate::{RateRequest, Rated, SweepingMap};

/// All buckets that are not full.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    buckets: SweepingMap<SharedName, Bucket>,
}

/// A bucket as it was then.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    at: Instant,
    tokens: TokenBucket,
}

impl Buckets {
    pub(super) fn clear(&mut self) {
        self.buckets.clear();
    }

    /// The number of buckets that are not full.
    pub(super) fn count(&self, now: Instant) -> usize {
        let open = self.buckets.values().filter(|bucket| !bucket.is_full(now));
        open.count()
    }

    pub(super) fn take(&mut self, name: SharedName, now: Instant, request: &RateRequest) -> Rated {
        let known = self.buckets.get(&name).copied();
        let (elapsed, tokens) = known
            .map_or((Some(Duration::ZERO), TokenBucket::default()), |bucket| {
                (now.checked_duration_since(bucket.at), bucket.tokens)
            });
        let (rated, changed) = tokens.take(elapsed, request);
        if let Some(tokens) = changed {
            self.buckets.sweep(|bucket| !bucket.is_full(now));
            self.buckets.insert(name, Bucket { at: now, tokens });
        }
        rated
    }
}

impl Bucket {
    fn is_full(&self, now: Instant) -> bool {
        self.tokens.debt <= now.saturating_duration_since(self.at)
    }
}
