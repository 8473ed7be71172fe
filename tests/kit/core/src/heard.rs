//! The messages that a store sends to a client.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_store::{HandedOver, Listener, Owner, WakeUp};

/// The grants that a client heard of, with their fencing tokens, and whether it was told to look
/// again.
#[derive(Debug, Default)]
pub struct Heard(pub Mutex<Vec<(Owner, Option<u64>)>>, pub AtomicBool);

impl Heard {
    /// Waits until it was told to look again, as a store does that subscribes in the background
    /// once it hears. The verbs of a store alone do not ask again.
    pub async fn until_hearing(&self) {
        crate::eventually("it hears", async || self.1.load(Ordering::Acquire)).await;
    }
}

impl Listener for Heard {
    fn on_granted(&self, grant: HandedOver) -> WakeUp {
        let (owner, token) = (grant.owner, grant.token);
        let mut heard = self.0.lock().expect("no test panics with it");
        heard.push((owner, token));
        WakeUp::default()
    }

    fn recheck(&self) {
        self.1.store(true, Ordering::Release);
    }
}
