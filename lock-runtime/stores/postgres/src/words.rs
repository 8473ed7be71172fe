//! How durations, owners and parts of keys are written as parameters, and read in replies.

use std::time::Duration;

use lock_store::{Claim, ClientId, Holder, Owner};

/// A time that no clock reaches, and that sums with.
const FOREVER: i64 = i64::MAX / 4;

/// In microseconds, rounded up.
pub(crate) fn micros(duration: Duration) -> i64 {
    let micros = duration.as_nanos().div_ceil(1000);
    i64::try_from(micros).unwrap_or(FOREVER).min(FOREVER)
}

/// From microseconds. Zero if it is past.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

pub(crate) fn client(id: ClientId) -> Vec<u8> {
    id.0.to_be_bytes().to_vec()
}

pub(crate) fn request(owner: Owner) -> i64 {
    owner.request.cast_signed()
}

pub(crate) fn permits(claim: &Claim) -> Option<i64> {
    claim.permits.map(|permits| permits.count.into())
}

pub(crate) fn capacity(claim: &Claim) -> Option<i64> {
    claim.permits.map(|permits| permits.of.into())
}

pub(crate) fn token(number: Option<i64>) -> Option<u64> {
    number.map(i64::cast_unsigned)
}

pub(crate) fn size(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(crate) fn holder(written: Option<String>) -> Option<Holder> {
    written.map(|holder| Holder::parse(holder.as_bytes()))
}
