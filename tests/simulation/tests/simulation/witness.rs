//! The facts by which the oracle judges what users are told: when keys were held, and which
//! disturbances kept which client from which server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use lock_runtime::LockKey;
use lock_store::{Instant, Store};
use lock_testkit_core::store_decorator::Request;

use crate::server::{Silence, answer};
use crate::world::now;

/// A hold without a lease.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Default)]
pub(crate) struct Witness(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// By client and server: until when their commands were disturbed.
    disturbed: BTreeMap<(usize, usize), Instant>,
    /// Until when the key was held, as far as is known.
    held: BTreeMap<LockKey, Instant>,
    /// By client and key: until when an unpolled task may stand before others.
    unpolled: BTreeMap<(usize, String), Instant>,
    /// By client and key: until when a task that can't use its grant may stand before others.
    in_vain: BTreeMap<(usize, String), Instant>,
    /// Until when a request that came over a cut connection may stand before others.
    late: BTreeMap<LockKey, Instant>,
    silences: Vec<(usize, Instant, Silence)>,
    /// When a server last carried out a command for the key.
    touched: BTreeMap<LockKey, Instant>,
}

impl Witness {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    /// Records a disturbance of this client's commands to the server, or of their consequences.
    pub(crate) fn disturbed(&self, client: usize, server: usize, until: Instant) {
        let mut seen = self.seen();
        let known = seen.disturbed.entry((client, server)).or_insert(until);
        *known = until.max(*known);
    }

    /// Whether nothing has disturbed them since then.
    pub(crate) fn is_undisturbed(&self, client: usize, server: usize, since: Instant) -> bool {
        let seen = self.seen();
        let until = seen.disturbed.get(&(client, server));
        until.is_none_or(|until| *until < since)
    }

    /// Looks at the keys of a command that the server has just carried out.
    pub(crate) fn saw(&self, request: &Request, served: &dyn Store) {
        for claim in request.claims() {
            let found = answer(served.inspect(claim.key.clone(), now()));
            let held = found.filter(|found| found.holder.is_some());
            let mut seen = self.seen();
            seen.touched.insert(claim.key.clone(), now());
            match held {
                Some(found) => {
                    let until = now() + found.remaining.unwrap_or(LONG);
                    seen.held.insert(claim.key.clone(), until);
                }
                None => seen.end(&claim.key),
            }
        }
    }

    /// Whether the key was held at any time since then.
    pub(crate) fn was_held(&self, key: &LockKey, since: Instant) -> bool {
        let seen = self.seen();
        seen.held.get(key).is_some_and(|until| *until >= since)
    }

    /// The keys of locks that no command has touched for so long.
    pub(crate) fn untouched(&self, time: Duration) -> Vec<LockKey> {
        let seen = self.seen();
        let touched = seen.touched.iter();
        let untouched = touched.filter(|(_, at)| now() - **at > time);
        untouched.map(|(key, _)| key.clone()).collect()
    }

    /// All holds of these keys end.
    pub(crate) fn ended(&self, of: impl Fn(&LockKey) -> bool) {
        let mut seen = self.seen();
        let keys: Vec<_> = seen.held.keys().filter(|key| of(key)).cloned().collect();
        keys.iter().for_each(|key| seen.end(key));
    }

    /// The clock that ends these keys' leases is set back.
    pub(crate) fn set_back(&self, of: impl Fn(&LockKey) -> bool, by: Duration) {
        let mut seen = self.seen();
        let held = seen.held.iter_mut().filter(|(key, _)| of(key));
        held.for_each(|(_, until)| *until += by);
    }

    /// A request for the key has come over a connection that was cut. What it got is given back
    /// with the next of its undos, which are ever longer apart.
    pub(crate) fn came_late(&self, key: &LockKey, until: Instant) {
        let mut seen = self.seen();
        let known = seen.late.entry(key.clone()).or_insert(until);
        *known = until.max(*known);
    }

    /// Whether no request that came late stood before others since then.
    pub(crate) fn is_in_time(&self, key: &str, since: Instant) -> bool {
        let seen = self.seen();
        let mut late = seen.late.iter().filter(|(late, _)| late.as_str() == key);
        late.all(|(_, until)| *until < since)
    }

    /// A task that stands before others of its client is not polled.
    pub(crate) fn is_not_polled(&self, client: usize, key: &str, until: Instant) {
        let mut seen = self.seen();
        let known = seen.unpolled.entry((client, key.to_owned()));
        let known = known.or_insert(until);
        *known = until.max(*known);
    }

    /// The machines slept: alarms ring that much later.
    pub(crate) fn slept(&self, time: Duration) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        let both = seen.unpolled.values_mut().chain(seen.in_vain.values_mut());
        both.for_each(|until| *until += time);
    }

    /// A task asks for a lease that the network's delay uses up. Tasks behind it wait until it
    /// gives up.
    pub(crate) fn note_vain_request(&self, client: usize, key: &str, until: Instant) {
        let mut seen = self.seen();
        let known = seen.in_vain.entry((client, key.to_owned()));
        let known = known.or_insert(until);
        *known = until.max(*known);
    }

    /// Whether every task of the client that asked for the key since then could use a grant.
    pub(crate) fn is_usable(&self, client: usize, key: &str, since: Instant) -> bool {
        let seen = self.seen();
        let until = seen.in_vain.get(&(client, key.to_owned()));
        until.is_none_or(|until| *until < since)
    }

    pub(crate) fn is_polled(&self, client: usize, key: &str, since: Instant) -> bool {
        let seen = self.seen();
        let until = seen.unpolled.get(&(client, key.to_owned()));
        until.is_none_or(|until| *until < since)
    }

    pub(crate) fn is_silent(&self, server: usize, silence: Silence) {
        self.seen().silences.push((server, now(), silence));
    }

    /// The longest silence of the server since then.
    pub(crate) fn longest_silence(&self, server: usize, since: Instant) -> Duration {
        let seen = self.seen();
        let silences = seen.silences.iter();
        let silences = silences.filter(|(of, ..)| *of == server);
        let times = silences.map(|(_, from, silence)| silence.until.min(now()) - since.max(*from));
        times.max().unwrap_or_default()
    }
}

impl Seen {
    /// The key is free.
    fn end(&mut self, key: &LockKey) {
        if let Some(until) = self.held.get_mut(key) {
            *until = now().min(*until);
        }
    }
}
