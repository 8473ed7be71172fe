//! [`Statement`]: one call of a function, with its parameters and their types.

use lock_store::{Acquire, Claim, Link, Owner};
use tokio_postgres::types::{ToSql, Type};

/// Statements go over whichever connection is free, in no order. What ends an unknown outcome is
/// the deadline that each statement carries, and the lock of the key's row.
pub(crate) const LINK: Link = Link::SEVERAL;

#[derive(Clone, Debug)]
pub(crate) enum Param {
    Bytes(Option<Vec<u8>>),
    Int(Option<i32>),
    Long(Option<i64>),
    /// Until when the server may carry this out, on its own clock. The connection knows it.
    Deadline,
    ManyBytes(Vec<Vec<u8>>),
    ManyInts(Vec<Option<i32>>),
    ManyLongs(Vec<i64>),
    ManyBools(Vec<bool>),
    ManyTexts(Vec<String>),
}

/// What is sent at once.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) params: Vec<Param>,
    /// If it can't get at a row, it is sent again while there is time.
    pub(crate) is_repeated: bool,
    /// It is for several callers. What any of them asks of the same names afterwards does not
    /// overtake it.
    pub(crate) is_for_many: bool,
}

impl Statement {
    pub(crate) fn new(sql: &'static str, params: Vec<Param>) -> Self {
        Self {
            sql,
            params,
            is_repeated: true,
            is_for_many: false,
        }
    }

    /// If it can't get at a row, that is the answer.
    pub(crate) fn once(self) -> Self {
        Self {
            is_repeated: false,
            ..self
        }
    }

    pub(crate) fn for_many(self) -> Self {
        Self {
            is_for_many: true,
            ..self
        }
    }

    pub(crate) fn names(&self) -> &[Vec<u8>] {
        match self.params.first() {
            Some(Param::Bytes(Some(name))) => std::slice::from_ref(name),
            Some(Param::ManyBytes(names)) => names,
            _ => &[],
        }
    }
}

impl Param {
    /// Its value and type. `deadline` stands for [`Deadline`](Self::Deadline).
    pub(crate) fn typed<'p>(&'p self, deadline: &'p i64) -> (&'p (dyn ToSql + Sync), Type) {
        match self {
            Self::Bytes(value) => (value, Type::BYTEA),
            Self::Int(value) => (value, Type::INT4),
            Self::Long(value) => (value, Type::INT8),
            Self::Deadline => (deadline, Type::INT8),
            Self::ManyBytes(values) => (values, Type::BYTEA_ARRAY),
            Self::ManyInts(values) => (values, Type::INT4_ARRAY),
            Self::ManyLongs(values) => (values, Type::INT8_ARRAY),
            Self::ManyBools(values) => (values, Type::BOOL_ARRAY),
            Self::ManyTexts(values) => (values, Type::TEXT_ARRAY),
        }
    }

    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        Self::Bytes(Some(bytes))
    }

    pub(crate) fn long(number: i64) -> Self {
        Self::Long(Some(number))
    }
}

/// An owner in the tables.
pub(crate) fn owner(owner: Owner) -> Vec<u8> {
    let mut bytes = owner.client.0.to_be_bytes().to_vec();
    bytes.extend(owner.request.to_be_bytes());
    bytes
}

/// The count and the capacity of a part of a key.
pub(crate) fn part(claim: &Claim) -> (Option<i32>, Option<i32>) {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let permits = claim.permits;
    (
        permits.map(|permits| number(permits.count)),
        permits.map(|permits| number(permits.of)),
    )
}

/// How many tokens.
pub(crate) fn tokens(request: &Acquire) -> i32 {
    i32::try_from(request.tokens).unwrap_or(i32::MAX)
}
