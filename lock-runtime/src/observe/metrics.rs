//! [`MetricsObserver`]: what a client does, as metrics of the crate `metrics`.

mod level;
mod locks;
mod made;
mod recorded;
mod table;

pub use self::table::{METRICS, MetricInfo, MetricKind};

use self::made::Made;
use self::recorded::{Levels, Recorded};
use super::event::Event;
use super::events::Observer;

/// Tells the recorder that the service has installed for the crate
/// [`metrics`](https://docs.rs/metrics/0.24) what a client does. Needs the feature `metrics`.
///
/// [`METRICS`] lists the metrics. They are labelled by the [template](crate::LockKey::template) of
/// a key (`stock:<product_id>`), never by the key, so their number does not grow with the keys. A
/// key without a template has the template `unlabelled`; [`Lock::label`](crate::Lock::label) gives
/// it one.
///
/// The recorder may be installed late. From the next event on it is told what happens, and its
/// gauges show what is held and waits, from before as well. Several clients, with an observer each,
/// add up.
///
/// # Examples
/// ```
/// use lock_runtime::LockClient;
/// use lock_runtime::observe::MetricsObserver;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let client = LockClient::builder()
///     .url("memory:")
///     .observer(MetricsObserver::new())
///     .connect()
///     .await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MetricsObserver {
    levels: Levels,
    /// None at first, later the service's. In tests each thread may have another.
    recorders: Made<usize, Recorded>,
}

impl MetricsObserver {
    /// For one client.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Observer for MetricsObserver {
    fn observe(&self, event: &Event<'_>) {
        metrics::with_recorder(|recorder| {
            // It is the same recorder as long as it is there.
            let address = std::ptr::from_ref(recorder).addr();
            let new = || Recorded::new(recorder, &self.levels);
            let recorders = self.recorders.pin();
            let recorded = recorders.get_or_insert_with(address, new);
            recorded.record(event, recorder, &self.levels);
        });
    }
}

lock_store::show!(MetricsObserver);
