//! [`Grown`] and [`ByLock`]: what is kept once for each name, and found again without a lock.

use std::sync::OnceLock;

use crate::observe::event::LockKind;

/// A list that only grows. It is read without a lock and without an allocation, so it has to stay
/// short.
#[derive(Debug)]
pub(super) struct Grown<T>(OnceLock<Box<GrownLink<T>>>);

#[derive(Debug)]
struct GrownLink<T> {
    value: T,
    next: Grown<T>,
}

impl<T> Default for Grown<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> Grown<T> {
    /// The first that is it. If there is none, `make` makes it, once for all threads.
    pub(super) fn find_or_add(&self, is_it: impl Fn(&T) -> bool, make: impl Fn() -> T) -> &T {
        let mut list = self;
        loop {
            let link = list.0.get_or_init(|| {
                let (value, next) = (make(), Self::default());
                Box::new(GrownLink { value, next })
            });
            if is_it(&link.value) {
                return &link.value;
            }
            list = &link.next;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let first = self.0.get();
        let links = std::iter::successors(first, |link| link.next.0.get());
        links.map(|link| &link.value)
    }
}

/// Locks that are counted together: by their template, never by their key.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockLabels {
    pub(super) template: &'static str,
    pub(super) kind: LockKind,
}

impl LockLabels {
    /// Compares places in memory: a service has few templates, and each in few places.
    fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.template, other.template) && self.kind == other.kind
    }
}

const LISTS: usize = 64;

/// One value for each [`LockLabels`], spread over lists that stay short.
#[derive(Debug)]
pub(super) struct ByLock<T>([Grown<(LockLabels, T)>; LISTS]);

impl<T> Default for ByLock<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Grown::default()))
    }
}

impl<T> ByLock<T> {
    pub(super) fn find_or_add(&self, labels: LockLabels, make: impl Fn() -> T) -> &T {
        // Texts of several bytes begin in different places.
        let place = labels.template.as_ptr().addr();
        let list = &self.0[(place ^ (place >> 6) ^ labels.kind as usize) % LISTS];
        let (_, value) = list.find_or_add(|(of, _)| of.is(&labels), || (labels, make()));
        value
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(LockLabels, T)> {
        self.0.iter().flat_map(Grown::iter)
    }
}
