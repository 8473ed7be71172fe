//! What this client knows of its requests.

use lock_store::ordered::OwnRequest;

use crate::names::Child;

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

/// A child of ours.
pub(crate) type Own = OwnRequest<Child, OwnDetails>;
