//! Which link an answer came over.

use lock_store::Link;

/// Statements go over whichever connection is free, in no order. What ends an unknown outcome is
/// the deadline that each statement carries, and the lock of the key's row.
pub(crate) const LINK: Link = Link::SEVERAL;
