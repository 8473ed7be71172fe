//! [`Base`]: what the key of a namespace says about its fencing tokens.

/// The tokens of one revision.
pub(crate) const WINDOW: u32 = 128;

/// What a hold's tokens are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenSource {
    /// The hold was there at this revision.
    pub(crate) revision: i64,
    /// As it was at that revision. `None`: it was not read, is not there, or must be raised.
    pub(crate) base: Option<Base>,
}

/// What the key of a namespace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    first: u64,
    cluster: u64,
    /// The highest revision that was lost in a restored cluster.
    lost: i64,
}

impl Base {
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(value).ok()?.split(' ');
        let base = Self {
            first: parts.next()?.parse().ok()?,
            cluster: parts.next()?.parse().ok()?,
            lost: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(base)
    }

    pub(crate) fn text(self) -> String {
        format!("{} {} {}", self.first, self.cluster, self.lost)
    }

    /// For a namespace without one.
    pub(crate) fn begin(cluster: u64, micros: u64, lost: i64) -> Self {
        let above = u64::try_from(lost).unwrap_or(0).saturating_add(1);
        Self {
            first: match lost {
                0 => micros,
                _ => micros.saturating_add(above.saturating_mul(WINDOW.into())),
            },
            cluster,
            lost,
        }
    }

    /// What it must become, if that is another.
    pub(crate) fn raised(self, cluster: u64, micros: u64, lost: i64) -> Option<Self> {
        if self.cluster == cluster && self.lost >= lost {
            return None;
        }
        let above = self.token(lost.max(self.lost).saturating_add(1));
        let lost = lost.max(self.lost);
        Some(Self {
            first: above.max(micros),
            cluster,
            lost,
        })
    }

    pub(crate) fn token(self, revision: i64) -> u64 {
        let revision = u64::try_from(revision).unwrap_or(0);
        let first = revision.saturating_mul(WINDOW.into());
        self.first.saturating_add(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_written_and_read() {
        let base = Base::begin(7, 1_700_000_000_000_000, 0);
        assert_eq!(Base::parse(base.text().as_bytes()), Some(base));
        for foreign in ["somebody's", "", "1 2", "1 2 3 4"] {
            assert_eq!(Base::parse(foreign.as_bytes()), None);
        }
    }

    #[test]
    fn a_restored_cluster_gives_higher_tokens_than_before() {
        let base = Base::begin(7, 1_000, 0);
        assert_eq!(base.raised(7, 2_000, 0), None);
        // Another cluster, of which nobody has seen the end.
        let other = base.raised(8, 2_000, 0).map(|base| base.token(1));
        assert!(other.is_some_and(|token| token > 2_000));
        // The same, and revisions up to 500 were seen.
        let lost = base.raised(7, 2_000, 500);
        assert!(lost.is_some_and(|lost| lost.token(1) > base.token(500) + u64::from(WINDOW)));
        assert_eq!(lost.and_then(|lost| lost.raised(7, 9_000, 500)), None);
    }
}
