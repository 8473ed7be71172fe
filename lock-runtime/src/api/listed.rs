//! [`Listed`]: the keys of a guard, in the order in which they were listed.

/// Which part of a hold each key of a guard is. Nearly always there is one.
pub(super) enum Listed {
    One(usize),
    Several(Box<[usize]>),
}

impl Listed {
    pub(super) fn new(mut parts: impl Iterator<Item = usize>) -> Self {
        match (parts.next(), parts.next()) {
            (Some(one), None) => Self::One(one),
            (first, second) => {
                Self::Several(first.into_iter().chain(second).chain(parts).collect())
            }
        }
    }

    pub(super) fn as_slice(&self) -> &[usize] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Several(parts) => parts,
        }
    }
}
