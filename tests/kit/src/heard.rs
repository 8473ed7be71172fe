//! The messages that a store sends to a client.

use std::sync::Mutex;

use lock_store::{Link, Listener, Owner, WakeUp};

/// The grants that a client heard of, with their fencing tokens.
#[derive(Debug, Default)]
pub struct Heard(pub Mutex<Vec<(Owner, Option<u64>)>>);

impl Listener for Heard {
    fn granted(&self, _: Link, owner: Owner, token: Option<u64>) -> WakeUp {
        let mut heard = self.0.lock().expect("no test panics with it");
        heard.push((owner, token));
        WakeUp::default()
    }

    fn recheck(&self) {}
}
