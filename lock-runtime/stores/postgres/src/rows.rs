//! Values of rows, and times in microseconds.

use std::error::Error;
use std::time::Duration;

use lock_store::{ClientId, Holder, Owner};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type, accepts};

use crate::news::Told;

/// What a statement gave is not what this version reads, or the server's own error.
pub(crate) type Read<T> = Result<T, tokio_postgres::Error>;

/// One row. All functions give one.
pub(crate) struct Values<'r>(pub(crate) &'r Row);

impl Values<'_> {
    pub(crate) fn get<'a, T: FromSql<'a>>(&'a self, column: &str) -> Read<T> {
        self.0.try_get(column)
    }

    /// Owners that were granted a key, each with the first of its tokens.
    pub(crate) fn grants(&self) -> Read<Told> {
        Ok(grants(self.get("told")?, self.get("tokens")?))
    }
}

fn grants(owners: Option<Vec<&[u8]>>, tokens: Option<Vec<Option<i64>>>) -> Told {
    let mut tokens = tokens.unwrap_or_default().into_iter();
    let owners = owners.unwrap_or_default().into_iter();
    let told = owners.map(|owner| (owner_of(owner), tokens.next().flatten().map(unsigned)));
    told.filter_map(|(owner, token)| Some((owner?, token)))
        .collect()
}

type Decoded<T> = Result<T, Box<dyn Error + Sync + Send>>;

/// What a function gives, as one value: its fields, one after the other. To the server, this costs
/// less than a column for each.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn new(value: &'a [u8]) -> Decoded<Self> {
        let (_count, fields) = value.split_first_chunk::<4>().ok_or("no record")?;
        Ok(Self(fields))
    }

    fn next<T: FromSql<'a>>(&mut self) -> Decoded<T> {
        let cut = "the record is cut off";
        let (of, rest) = self.0.split_first_chunk().ok_or(cut)?;
        let (len, rest) = rest.split_first_chunk().ok_or(cut)?;
        let of = Type::from_oid(u32::from_be_bytes(*of)).filter(T::accepts);
        let of = of.ok_or("a field of another type")?;
        // Below zero: there is none.
        let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) else {
            self.0 = rest;
            return T::from_sql_null(&of);
        };
        let (value, rest) = rest.split_at_checked(len).ok_or(cut)?;
        self.0 = rest;
        T::from_sql(&of, value)
    }

    fn grants(&mut self) -> Decoded<Told> {
        Ok(grants(self.next()?, self.next()?))
    }
}

/// What `acquire` gives.
pub(crate) struct AcquireFields<'a> {
    pub(crate) code: i32,
    pub(crate) token: Option<i64>,
    pub(crate) limit: Option<i32>,
    pub(crate) remaining: Option<i64>,
    pub(crate) queued: bool,
    pub(crate) holder: Option<&'a [u8]>,
    pub(crate) granted: Told,
}

impl<'a> FromSql<'a> for AcquireFields<'a> {
    fn from_sql(_: &Type, value: &'a [u8]) -> Decoded<Self> {
        let mut fields = Fields::new(value)?;
        Ok(Self {
            code: fields.next()?,
            token: fields.next()?,
            limit: fields.next()?,
            remaining: fields.next()?,
            queued: fields.next()?,
            holder: fields.next()?,
            granted: fields.grants()?,
        })
    }

    accepts!(RECORD);
}

/// What a function gives that ends a hold, or a part of it.
pub(crate) struct EndFields {
    pub(crate) was_held: Option<bool>,
    pub(crate) granted: Told,
}

impl<'a> FromSql<'a> for EndFields {
    fn from_sql(_: &Type, value: &'a [u8]) -> Decoded<Self> {
        let mut fields = Fields::new(value)?;
        Ok(Self {
            was_held: fields.next()?,
            granted: fields.grants()?,
        })
    }

    accepts!(RECORD);
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// `None` if it is none. What follows it says that the hold is kept.
pub(crate) fn owner_of(bytes: &[u8]) -> Option<Owner> {
    let (client, rest) = bytes.split_first_chunk::<16>()?;
    let (request, _) = rest.split_first_chunk::<8>()?;
    Some(Owner::new(
        ClientId(u128::from_be_bytes(*client)),
        u64::from_be_bytes(*request),
    ))
}

pub(crate) fn is_kept(owner: &[u8]) -> bool {
    owner.len() > 24
}

pub(crate) fn holder_of(bytes: &[u8]) -> Option<Holder> {
    match is_kept(bytes) {
        true => Some(Holder::Kept),
        false => owner_of(bytes).map(Holder::Owner),
    }
}

/// Rounded up.
pub(crate) fn micros(duration: Duration) -> i64 {
    let micros = duration.as_nanos().div_ceil(1000);
    // Sums with the time of day must not overflow.
    i64::try_from(micros).unwrap_or(i64::MAX).min(1 << 55)
}

pub(crate) fn of_micros(micros: i64) -> Duration {
    Duration::from_micros(unsigned(micros))
}
