//! [`View`]: what a view of a client has of its own.

use std::time::Duration;

use lock_store::{LockKey, Namespace};

use crate::config::{Spec, Wait};

/// A namespace and defaults; of the client itself, those that it was built with.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) namespace: ViewNamespace,
    pub(super) lease: Option<Duration>,
    pub(super) wait: Option<Duration>,
}

#[derive(Clone, Debug, Default)]
pub(super) enum ViewNamespace {
    /// The one that the client was built with.
    #[default]
    OfClient,
    Other(Namespace),
    /// A namespace that can't be used. Each key says so.
    Bad,
}

impl View {
    /// Its namespace, if it can be used. `own` is the one that the client was built with.
    pub(super) fn namespace<'v>(&'v self, own: &'v Namespace) -> Option<&'v Namespace> {
        match &self.namespace {
            ViewNamespace::OfClient => Some(own),
            ViewNamespace::Other(namespace) => Some(namespace),
            ViewNamespace::Bad => None,
        }
    }

    /// The key as the engine knows it.
    pub(super) fn key(&self, key: LockKey) -> LockKey {
        match &self.namespace {
            ViewNamespace::OfClient => key.in_namespace(None),
            ViewNamespace::Other(namespace) => key.in_namespace(Some(namespace.clone())),
            ViewNamespace::Bad => key.in_bad_namespace(),
        }
    }

    /// A request's options over the defaults of this view.
    pub(super) fn spec(&self, mut spec: Spec) -> Spec {
        spec.wait = spec.wait.or(self.wait.map(Wait::For));
        spec.default_lease = self.lease;
        spec
    }
}
