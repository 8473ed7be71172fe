//! A worker's next action.

use std::time::Duration;

use lock_runtime::{Lock, LockClient};

use crate::history::Kind;
use crate::seeded::Seeded;

/// The semaphore's capacity.
const PERMITS: u32 = 3;

/// The keys: three exclusive locks that are also taken together, one in strict order of arrival,
/// and one of each other kind.
pub(super) const KEYS: [&str; 6] = ["a", "b", "c", "fair", "rw", "sem"];

/// Those of them that a quorum can have.
pub(super) const EXCLUSIVE: [&str; 3] = ["a", "b", "c"];

/// The way in which a lock is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A guard that is released.
    Release,
    /// A guard that is dropped.
    Drop,
    /// A body that the library runs and stops.
    Body,
}

/// One use of a lock.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) keys: Vec<(&'static str, Kind)>,
    pub(super) fair: bool,
    pub(super) lease: Duration,
    pub(super) renew: bool,
    pub(super) fenced: bool,
    pub(super) wait: Duration,
    /// Drops the request after this time.
    pub(super) gives_up: Option<Duration>,
    pub(super) hold: Duration,
    pub(super) style: Style,
    /// The writer continues as a reader.
    pub(super) downgrade: bool,
}

impl Plan {
    /// A random plan. `long` percent of the plans last until the lease expires, or far beyond it
    /// with renewals.
    pub(super) fn random(random: &mut Seeded, long: u64, keys: &[&str]) -> Self {
        let every = [
            "a", "b", "c", "a", "b", "c", "all", "all", "fair", "rw", "sem",
        ];
        let mut choice = every.to_vec();
        choice.retain(|key| *key == "all" || keys.contains(key));
        let key = *random.pick(&choice);
        let keys = match key {
            "all" => {
                let mut several = random.shuffled(&["a", "b", "c"]);
                several.truncate(2 + random.below(2));
                let several = several.into_iter();
                several.map(|key| (key, Kind::Exclusive)).collect()
            }
            "rw" if random.chance(70) => vec![(key, Kind::Read)],
            "rw" => vec![(key, Kind::Write)],
            "sem" => vec![(key, permits(1 + u32::from(random.chance(30))))],
            _ => vec![(key, Kind::Exclusive)],
        };
        let lease = random.millis(200, 1200);
        let renew = random.chance(60);
        Self {
            keys,
            fair: key == "fair",
            lease,
            renew,
            fenced: random.chance(70),
            wait: if random.chance(15) {
                Duration::ZERO
            } else {
                random.millis(50, 3000)
            },
            gives_up: random.chance(15).then(|| random.millis(0, 200)),
            hold: if !random.chance(long) {
                random.millis(0, 40)
            } else if renew {
                random.millis(100, 2000)
            } else {
                lease + lease / 5
            },
            style: *random.pick(&[Style::Release, Style::Release, Style::Drop, Style::Body]),
            downgrade: random.chance(50),
        }
    }

    /// A plan that shows that a key can be acquired again.
    pub(super) fn proof(key: &'static str, wait: Duration) -> Self {
        let kind = match key {
            "rw" => Kind::Write,
            "sem" => permits(PERMITS),
            _ => Kind::Exclusive,
        };
        Self {
            keys: vec![(key, kind)],
            fair: key == "fair",
            lease: Duration::from_secs(1),
            renew: true,
            fenced: true,
            wait,
            gives_up: None,
            hold: Duration::ZERO,
            style: Style::Release,
            downgrade: false,
        }
    }

    /// The plan after a downgrade, if there is one.
    pub(super) fn as_reader(&self) -> Option<Self> {
        let (key, kind) = self.keys[0];
        (self.downgrade && kind == Kind::Write).then(|| Self {
            keys: vec![(key, Kind::Read)],
            fenced: false,
            ..self.clone()
        })
    }

    /// The plan as a request.
    pub(super) fn request(&self, client: &LockClient) -> Lock {
        let (key, kind) = self.keys[0];
        let lock = match kind {
            Kind::Exclusive if self.keys.len() > 1 => {
                client.multi_lock(self.keys.iter().map(|(key, _)| *key))
            }
            Kind::Exclusive => client.lock(key),
            Kind::Read => client.rw_lock(key).read(),
            Kind::Write => client.rw_lock(key).write(),
            Kind::Permits { take, of } => client.semaphore(key, of).permits(take),
        };
        let lock = lock.lease(self.lease).renew(self.renew).wait(self.wait);
        let lock = if self.fair { lock.fair() } else { lock };
        if self.fenced { lock.fenced() } else { lock }
    }

    /// True if the holder may change what the lock guards.
    pub(super) fn writes(&self) -> bool {
        self.fenced && matches!(self.keys[0].1, Kind::Exclusive | Kind::Write)
    }
}

fn permits(take: u32) -> Kind {
    Kind::Permits { take, of: PERMITS }
}
