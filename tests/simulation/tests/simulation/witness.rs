//! What was really so, by which the oracle judges what users are told: when keys were held, and
//! whom what kept from which server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use lock_runtime::LockKey;
use lock_store::{Instant, Store};
use lock_testkit::store_decorator::Request;

use crate::server::{Silence, answer};
use crate::world::now;

/// A hold without a lease.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Default)]
pub(crate) struct Witness(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// By client and server: until when something was in the way of their commands.
    disturbed: BTreeMap<(usize, usize), Instant>,
    /// Until when somebody held it, as far as is known.
    held: BTreeMap<LockKey, Instant>,
    /// By client and key: until when a task that nobody polls may be before others.
    unpolled: BTreeMap<(usize, String), Instant>,
    /// By client and key: until when a task may be before others that can't use what it is granted.
    in_vain: BTreeMap<(usize, String), Instant>,
    silences: Vec<(usize, Instant, Silence)>,
    /// When a server last carried out a command for the key.
    touched: BTreeMap<LockKey, Instant>,
}

impl Witness {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    /// Something is in the way of this client's commands to the server, or of what follows from
    /// them.
    pub(crate) fn disturbed(&self, client: usize, server: usize, until: Instant) {
        let mut seen = self.seen();
        let known = seen.disturbed.entry((client, server)).or_insert(until);
        *known = until.max(*known);
    }

    /// Whether nothing was in the way since then.
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

    /// Whether anybody held the key since then.
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

    /// The clock by which these keys' leases end is set back.
    pub(crate) fn set_back(&self, of: impl Fn(&LockKey) -> bool, by: Duration) {
        let mut seen = self.seen();
        let held = seen.held.iter_mut().filter(|(key, _)| of(key));
        held.for_each(|(_, until)| *until += by);
    }

    /// A task that stands before others of its client is not polled.
    pub(crate) fn is_not_polled(&self, client: usize, key: &str, until: Instant) {
        let mut seen = self.seen();
        let known = seen.unpolled.entry((client, key.to_owned()));
        let known = known.or_insert(until);
        *known = until.max(*known);
    }

    /// The machines slept: alarms ring so much later.
    pub(crate) fn slept(&self, time: Duration) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        let both = seen.unpolled.values_mut().chain(seen.in_vain.values_mut());
        both.for_each(|until| *until += time);
    }

    /// A task asks whose lease the network's delay uses up: those behind it wait until it gives up.
    pub(crate) fn asks_in_vain(&self, client: usize, key: &str, until: Instant) {
        let mut seen = self.seen();
        let known = seen.in_vain.entry((client, key.to_owned()));
        let known = known.or_insert(until);
        *known = until.max(*known);
    }

    /// Whether every task of the client that has asked for the key since then could use a grant.
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

    /// For how long at a stretch the server was silent since then.
    pub(crate) fn was_silent(&self, server: usize, since: Instant) -> Duration {
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
