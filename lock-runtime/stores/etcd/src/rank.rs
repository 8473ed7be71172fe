//! Who holds a key and who waits, by the keys of its requests in their order.

use std::cmp::Ordering;

use lock_store::ordered::{self, PlacedRequest};
use lock_store::rules::RankedRequest;
use lock_store::{Owner, Permits};

use crate::base::TokenSource;
use crate::names::Child;

/// The requests for a key, when they were read, and the base of tokens then.
pub(crate) type Listing = ordered::Listing<Child, TokenSource>;

impl RankedRequest for Child {
    fn name(&self) -> &str {
        &self.name
    }

    fn owner(&self) -> Owner {
        self.owner
    }

    fn permits(&self) -> Option<Permits> {
        self.permits
    }

    fn is_kept(&self) -> bool {
        self.kept
    }
}

impl PlacedRequest for Child {
    const SIGNALS: bool = false;

    fn is_same(&self, other: &Self) -> bool {
        self.made == other.made
    }

    fn order(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}
