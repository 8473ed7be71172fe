//! What a client does, as events: for metrics, traces and alarms.
//!
//! An [`Observer`] is given to the builder. It hears of every request, hold, command and connection
//! of its client as an [`Event`]. Without one, no event is told.
//! [`LockClient::stats`](crate::LockClient::stats) has the most important numbers without an
//! observer.
//!
//! # Examples
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use lock_runtime::LockClient;
//! use lock_runtime::observe::{Event, What};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lock_runtime::LockError> {
//! let busy = Arc::new(AtomicU64::new(0));
//! let counted = Arc::clone(&busy);
//! let client = LockClient::builder()
//!     .url("memory:")
//!     .observer(move |event: &Event<'_>| {
//!         if let What::Busy { .. } = event.what {
//!             counted.fetch_add(1, Ordering::Relaxed);
//!         }
//!     })
//!     .connect()
//!     .await?;
//! let guard = client.lock("stock:42").label("stock:<product>").acquire().await?;
//! assert!(client.lock("stock:42").try_acquire().await?.is_none());
//! assert_eq!(busy.load(Ordering::Relaxed), 1);
//! # drop(guard);
//! # Ok(())
//! # }
//! ```

mod counters;
mod event;
mod events;
#[cfg(feature = "metrics")]
mod metrics;
mod observed_store;
mod span;
mod stats;

pub use self::event::{Event, GrantedBy, LockKind, Subject, TermEnd, Verb, What};
pub use self::events::Observer;
#[cfg(feature = "metrics")]
pub use self::metrics::{METRICS, MetricInfo, MetricKind, MetricsObserver};
pub use self::stats::Stats;

pub(crate) use self::counters::Counters;
pub(crate) use self::events::{Events, OwnedSubject};
pub(crate) use self::observed_store::ObservedStore;
pub(crate) use self::span::{BodySpan, Outcome};
