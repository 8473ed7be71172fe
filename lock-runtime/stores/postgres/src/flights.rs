//! [`Flights`]: statements whose callers did not wait for the end.
//!
//! What concerns the same names goes over the same connection then, and so is carried out after
//! them: the undo of an acquire that was dropped must not overtake it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{Instant, Mutex};

use crate::connection::Connection;

/// The connection of a statement, and when it was sent.
type SentBy = (Weak<Connection>, Instant);

/// The last such statement of each name.
#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<Vec<u8>, SentBy>>);

/// A statement under way, which is remembered if this is dropped before it [lands](Self::land). One
/// for many callers is remembered from its beginning: each of them may leave.
pub(crate) struct Flight<'f> {
    flights: &'f Flights,
    connection: &'f Arc<Connection>,
    names: &'f [Vec<u8>],
    sent: Instant,
    has_landed: bool,
}

impl Flights {
    /// The connection that these names' statements must go over.
    pub(crate) fn connection_of(&self, names: &[Vec<u8>], now: Instant) -> Option<Arc<Connection>> {
        let flights = self.0.lock();
        if flights.is_empty() {
            return None;
        }
        let found = names.iter().find_map(|name| flights.get(name))?;
        let connection = found.0.upgrade();
        connection.filter(|connection| connection.is_open(now))
    }

    pub(crate) fn begin<'f>(
        &'f self,
        connection: &'f Arc<Connection>,
        names: &'f [Vec<u8>],
        sent: Instant,
        for_many: bool,
    ) -> Flight<'f> {
        let flight = Flight {
            flights: self,
            connection,
            names,
            sent,
            has_landed: false,
        };
        if for_many {
            flight.note();
        }
        flight
    }

    /// Forgets statements that can't begin any more.
    pub(crate) fn forget(&self, now: Instant, late: Duration) {
        let mut flights = self.0.lock();
        flights.retain(|_, (connection, sent)| now < *sent + late && connection.strong_count() > 0);
    }
}

impl Flight<'_> {
    fn note(&self) {
        let mut flights = self.flights.0.lock();
        for name in self.names {
            let flight = (Arc::downgrade(self.connection), self.sent);
            flights.insert(name.clone(), flight);
        }
    }

    /// The statement has ended, and with it what was sent before over this connection.
    pub(crate) fn land(mut self) {
        self.has_landed = true;
        let mut flights = self.flights.0.lock();
        if flights.is_empty() {
            return;
        }
        let own = Arc::downgrade(self.connection);
        for name in self.names {
            let is_over = |(other, sent): &SentBy| other.ptr_eq(&own) && *sent <= self.sent;
            if flights.get(name).is_some_and(is_over) {
                flights.remove(name);
            }
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.has_landed {
            self.note();
        }
    }
}
