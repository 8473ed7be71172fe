//! Values of rows, and times in microseconds.

use std::time::Duration;

use lock_store::{ClientId, Holder, Owner};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// What a statement gave is not what this version reads, or the server's own error.
pub(crate) type Read<T> = Result<T, tokio_postgres::Error>;

/// One row. All functions give one.
pub(crate) struct Values<'r>(pub(crate) &'r Row);

impl Values<'_> {
    pub(crate) fn get<'a, T: FromSql<'a>>(&'a self, column: &str) -> Read<T> {
        self.0.try_get(column)
    }

    /// Owners that were granted a key, each with the first of its tokens.
    pub(crate) fn grants(&self) -> Read<Vec<(Owner, Option<u64>)>> {
        let owners: Option<Vec<&[u8]>> = self.get("told")?;
        let tokens: Option<Vec<Option<i64>>> = self.get("tokens")?;
        let mut tokens = tokens.unwrap_or_default().into_iter();
        let owners = owners.unwrap_or_default().into_iter();
        let told = owners.map(|owner| (owner_of(owner), tokens.next().flatten().map(unsigned)));
        Ok(told
            .filter_map(|(owner, token)| Some((owner?, token)))
            .collect())
    }
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// `None` if it is none. What follows it says that the hold is kept.
pub(crate) fn owner_of(bytes: &[u8]) -> Option<Owner> {
    let (client, rest) = bytes.split_first_chunk::<16>()?;
    let (request, _) = rest.split_first_chunk::<8>()?;
    Some(Owner {
        client: ClientId(u128::from_be_bytes(*client)),
        request: u64::from_be_bytes(*request),
    })
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

pub(crate) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn of_micros(micros: i64) -> Duration {
    Duration::from_micros(unsigned(micros))
}
