//! [`OneOrMore`]: what is nearly always one, and then needs no allocation.

/// One, or several.
#[derive(Clone, Debug)]
pub(crate) enum OneOrMore<T> {
    One(T),
    Several(Box<[T]>),
}

impl<T> OneOrMore<T> {
    pub(crate) fn of(mut items: impl Iterator<Item = T>) -> Self {
        match (items.next(), items.next()) {
            (Some(one), None) => Self::One(one),
            (first, second) => {
                Self::Several(first.into_iter().chain(second).chain(items).collect())
            }
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }

    pub(crate) fn map(self, change: impl Fn(T) -> T) -> Self {
        match self {
            Self::One(one) => Self::One(change(one)),
            Self::Several(several) => Self::Several(several.into_iter().map(change).collect()),
        }
    }
}
