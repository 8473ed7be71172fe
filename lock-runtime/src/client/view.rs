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
    /// The one of this name, which may be the client's own.
    Named(Namespace),
    /// A namespace that can't be used. Each key says so.
    Bad,
}

impl View {
    /// The same in a store that perhaps has only one namespace, `own`.
    pub(super) fn where_namespaces(mut self, are_told_apart: bool, own: &Namespace) -> Self {
        if let ViewNamespace::Named(namespace) = &self.namespace
            && namespace != own
            && !are_told_apart
        {
            self.namespace = ViewNamespace::Bad;
        }
        self
    }

    /// Its namespace, if it can be used. `own` is the one that the client was built with.
    pub(super) fn namespace<'v>(&'v self, own: &'v Namespace) -> Option<&'v Namespace> {
        match &self.namespace {
            ViewNamespace::OfClient => Some(own),
            ViewNamespace::Named(namespace) => Some(namespace),
            ViewNamespace::Bad => None,
        }
    }

    /// The key as the engine knows it, whose own namespace is `own`. One key has one name there.
    pub(super) fn key(&self, key: LockKey, own: &Namespace) -> LockKey {
        match &self.namespace {
            ViewNamespace::OfClient => key.in_namespace(None),
            ViewNamespace::Named(namespace) if namespace == own => key.in_namespace(None),
            ViewNamespace::Named(namespace) => key.in_namespace(Some(namespace.clone())),
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
