//! [`FencingToken`]: the number that lets a resource refuse a holder that was overtaken.

use std::fmt;

/// A number that rises with every new hold of a key, and never changes within a hold.
///
/// Send it with each read and write that the lock protects. The resource keeps the highest token
/// that it has seen, and refuses lower ones. Then a holder that was stopped for longer than its
/// lease can do no harm, whatever the clocks did. If only writes carry the token, a late write can
/// still fall between its successor's read and write.
///
/// Tokens of one key are unique and rise in the order of the holds. A token is `max(last token + 1,
/// the store's time in microseconds since 1970)`. So tokens rise even if the store loses its data,
/// unless its clock was set back behind the last token's time. A token is below 2⁵³: it fits a JSON
/// number, a Lua number and a signed 64-bit database column.
///
/// The idea is from Gray and Cheriton's leases and Chubby's sequencers. The name is from Martin
/// Kleppmann's *How to do distributed locking*.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let client = lock_runtime::LockClient::in_memory();
/// let first = client.lock("stock:42").fenced().acquire().await?;
/// let a = first.fencing_token().expect("asked for with fenced()");
/// first.release().await?;
/// let second = client.lock("stock:42").fenced().acquire().await?;
/// assert!(second.fencing_token() > Some(a));
/// assert_eq!(a.to_string(), u64::from(a).to_string());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// For the engine, which gets the number from a store.
    #[doc(hidden)]
    #[must_use]
    pub fn new(value: u64) -> Self {
        Self(value)
    }

    /// True if a store may give this number as a token. The engine checks each reply before it uses
    /// it.
    #[doc(hidden)]
    #[must_use]
    pub fn is_valid(value: u64) -> bool {
        (1..Self::END).contains(&value)
    }

    /// All tokens are below this.
    const END: u64 = 1 << 53;
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}
