//! How values are written into commands and read from replies, the same for all commands.

use std::time::Duration;

use lock_store::{Answer, Failure, Link, Permits, Released, StoreError, StoreErrorKind};
use redis::{FromRedisValue, RedisError, Value};

use crate::errors;

/// A lock script's reply, and the link that it came over.
pub(crate) type Reply<T> = Answer<Result<T, WrongType>>;

/// A key of ours holds another type, or a fence counter is not a number.
#[derive(Debug)]
pub(crate) struct WrongType;

/// What a server's answer means.
pub(crate) fn reply<T: FromRedisValue>(
    link: Link,
    result: Result<Value, RedisError>,
) -> Result<Reply<T>, Failure> {
    let value = match result.and_then(|value| Ok(T::from_redis_value(value)?)) {
        Ok(value) => Ok(value),
        Err(error) if errors::is_wrong_type(&error) => Err(WrongType),
        Err(error) => {
            let unknown = errors::may_have_acted(&error).then_some(link);
            let error = errors::store_error(&error);
            return Err(Failure::new(error, unknown));
        }
    };
    Ok(Answer::new(value, link))
}

/// Ok if there is a reply for each lock.
///
/// # Errors
/// If there are more or fewer: which lock each is about can't be told.
pub(crate) fn one_for_each(
    what: &str,
    locks: usize,
    replies: usize,
    link: Link,
) -> Result<(), Failure> {
    if locks == replies {
        return Ok(());
    }
    let text = format!(
        "it replied to the {what} of {locks} locks about {replies}; is there a proxy in front of \
         it?"
    );
    let error = StoreError::new(StoreErrorKind::Refused, text);
    Err(Failure::unknown(error, link))
}

/// Rounded up: a hold never gets less than it asked for, and zero would delete the key.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// As the scripts write it: 0 is an exclusive lock.
pub(crate) fn permits(permits: Option<Permits>) -> u32 {
    permits.map_or(0, |permits| permits.count)
}

/// `PTTL`'s reply: -1 is a key without TTL, -2 no key.
pub(crate) fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}

/// True if a script that hands locks over did what it was asked.
pub(crate) fn is_done(reply: i64) -> bool {
    reply & 1 == 1
}

/// True if it left waiters that can have their turn now.
pub(crate) fn leaves_more(reply: i64) -> bool {
    reply & 2 == 2
}

/// The reply of a script that ends a hold.
pub(crate) fn released(reply: Result<i64, WrongType>) -> Released {
    Released::of(reply.is_ok_and(is_done))
}
