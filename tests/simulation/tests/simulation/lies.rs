//! Checks that an error tells the truth.

use std::time::Duration;

use lock_runtime::{LockError, Probe, StoreErrorKind};
use lock_store::Instant;
use lock_store::timing::FALLBACK_POLL;

use crate::users::Service;
use crate::world::{Check, World, now};

/// How much longer than its limit a request may wait for a silent server: a recheck, a command, and
/// waking up.
const IMPATIENCE: Duration = Duration::from_secs(3);

const SPARE: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_millis(1);

/// A request, as it was made.
pub(crate) struct Asked {
    pub(crate) keys: Vec<&'static str>,
    pub(crate) at: Instant,
    /// Its lease and its client's command timeout leave room for the network's delay.
    pub(crate) roomy: bool,
    /// So does its wait, in which other requests of its client may have to be answered first.
    pub(crate) patient: bool,
}

impl Asked {
    fn is_one(&self) -> bool {
        self.keys.len() == 1
    }
}

impl World {
    /// The delay one way, in milliseconds.
    fn way(&self) -> u32 {
        u32::try_from(self.faults.delay.1).unwrap()
    }

    /// Whether leases and commands of these lengths stand the network's delays.
    pub(crate) fn is_roomy(&self, lease: Duration, command_timeout: Duration) -> bool {
        let way = self.way() * TICK;
        lease >= 20 * way + 2 * SPARE && command_timeout >= 6 * way + SPARE
    }

    /// Whether a wait leaves time for commands. A request without a wait has a whole command
    /// timeout.
    pub(crate) fn is_patient(&self, wait: Option<Duration>) -> bool {
        let way = self.way() * TICK;
        wait.is_none_or(|wait| wait.is_zero() || wait >= 6 * way + 4 * TICK)
    }

    fn is_undisturbed(&self, client: usize, keys: &[&str], since: Instant) -> bool {
        let servers = keys.iter().map(|key| self.server_of(key));
        let mut well = servers.map(|server| self.witness.is_undisturbed(client, server, since));
        well.all(|well| well)
    }

    fn is_usable(&self, client: usize, keys: &[&str], since: Instant) -> bool {
        let mut keys = keys.iter();
        keys.all(|key| self.witness.is_usable(client, key, since))
    }

    fn is_polled(&self, client: usize, keys: &[&str], since: Instant) -> bool {
        let mut keys = keys.iter();
        keys.all(|key| self.witness.is_polled(client, key, since))
    }
}

/// Judges the error of a failed request.
pub(crate) fn check_error(service: &Service, who: &str, asked: &Asked, error: &LockError) {
    let (world, client) = (&service.world, service.number);
    let polled = world.is_polled(client, &asked.keys, asked.at);
    match error {
        LockError::Busy { key, .. } if polled && asked.patient => {
            // A request behind one that asked a moment ago shares its answer.
            let lately = asked.at - FALLBACK_POLL - 4 * TICK * world.way();
            if !world.witness.was_held(key, lately) {
                let what = format!("{who} is told that {key} is busy, but it was not held");
                world.violated(Check::Lies, what);
            }
        }
        // Of several keys, the first may have left no time to ask for the others.
        LockError::Unavailable { source, .. }
            if polled
                && asked.roomy
                && asked.is_one()
                && world.is_usable(client, &asked.keys, asked.at)
                && world.is_undisturbed(client, &asked.keys, asked.at) =>
        {
            let (keys, detail) = (&asked.keys, source.detail());
            let what = format!("{who} is told that {keys:?} can't be had: {detail}");
            world.violated(Check::Lies, what);
        }
        LockError::Unavailable { source, .. } => {
            let kind = source.kind();
            let refused = match kind {
                StoreErrorKind::Timeout | StoreErrorKind::Disconnected => false,
                _ => world.is_undisturbed(client, &asked.keys, asked.at),
            };
            if refused {
                let what = format!("{who} is told of a refusal that there was not: {source}");
                world.violated(Check::Lies, what);
            }
        }
        _ => {}
    }
}

/// A renewed hold is not lost as long as its servers answer.
pub(crate) fn check_held(service: &Service, who: &str, asked: &Asked, probe: &Probe) {
    let world = &service.world;
    if asked.roomy
        && !probe.is_trusted()
        && world.is_undisturbed(service.number, &asked.keys, asked.at)
        && !world.oracle.is_outside(asked.at)
    {
        let what = format!(
            "{who} has lost {:?} although it could be renewed",
            asked.keys
        );
        world.violated(Check::Loss, what);
    }
}

/// A wait without end for one key gives up once its server has been silent for so long.
pub(crate) fn check_patience(service: &Service, who: &str, asked: &Asked, stopped: Duration) {
    let (world, client) = (&service.world, service.number);
    let [key] = &*asked.keys else { return };
    if !world.is_polled(client, &asked.keys, asked.at) || !stopped.is_zero() {
        return;
    }
    let silent = world
        .witness
        .longest_silence(world.server_of(key), asked.at);
    let most = service.wait.max(service.command_timeout) + service.command_timeout + IMPATIENCE;
    if silent > most {
        let waited = now() - asked.at;
        let what = format!("{who} waited {waited:?} for {key}, silent for {silent:?} of them");
        world.violated(Check::Waiting, what);
    }
}
