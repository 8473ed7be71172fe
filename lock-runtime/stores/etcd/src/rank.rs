//! The keys of a lock's requests as places in their order, and what this client knows of its own.
//! Who of them holds the lock is for [`lock_store::rules`].

use std::cmp::Ordering;

use lock_store::ordered::{self, OwnRequest, PlacedRequest};
use lock_store::rules::RankedRequest;
use lock_store::{Owner, Permits};

use crate::base::TokenSource;
use crate::names::Child;

/// The requests for a key, when they were read, and the base of tokens then.
pub(crate) type Listing = ordered::Listing<Child, TokenSource>;

/// The tokens of one revision, of which there are [`WINDOW`](crate::base::WINDOW).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RevisionWindow {
    pub(crate) first: u64,
    pub(crate) used: u32,
}

/// What is known of a child of ours.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnDetails {
    /// Its end was asked for. The answer may have been lost.
    pub(crate) end_sent: bool,
    /// `None`: it has had no token yet.
    pub(crate) window: Option<RevisionWindow>,
}

pub(crate) type Own = OwnRequest<Child, OwnDetails>;

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
