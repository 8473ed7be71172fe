//! Many requests of one client that wait for shares behind one holder of another: they enter
//! together, whatever became of the messages of their grants.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{Guard, Lock, LockClient, LockError};
use lock_store::Instant;
use lock_store::timing::FALLBACK_POLL;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::rng::Rng;
use crate::users::{Service, start as start_task};
use crate::world::{Check, World, now, sleep};

/// Rounding of timers, and the local hops.
const SPARE: Duration = Duration::from_millis(50);

/// What a group waits for. Nobody else uses these keys.
#[derive(Clone, Copy)]
enum Kind {
    Readers,
    Permits,
}

impl Kind {
    fn key(self) -> &'static str {
        match self {
            Self::Readers => "readers",
            Self::Permits => "permits",
        }
    }

    fn all(self, client: &LockClient, many: u32) -> Lock {
        match self {
            Self::Readers => client.rw_lock(self.key()).write(),
            Self::Permits => client.semaphore(self.key(), many).permits(many),
        }
    }

    fn one(self, client: &LockClient, many: u32) -> Lock {
        match self {
            Self::Readers => client.rw_lock(self.key()).read(),
            Self::Permits => client.semaphore(self.key(), many).permit(),
        }
    }
}

struct Group {
    world: Arc<World>,
    holds: Service,
    waits: Service,
    rng: Rng,
}

/// One of a group, when it got its turn.
type Entered = (Instant, Result<Guard, LockError>);

/// Starts group after group, in the worlds that have them. It ends when the world is calm.
pub(crate) fn start(world: &Arc<World>, services: &[Service]) -> Option<JoinHandle<()>> {
    let [holds, .., waits] = services else {
        return None;
    };
    let many = world.faults.group_of?;
    let mut group = Group {
        world: Arc::clone(world),
        holds: holds.clone(),
        waits: waits.clone(),
        rng: Rng::new(world.faults.placement).fork(),
    };
    Some(tokio::spawn(async move {
        loop {
            sleep(group.rng.ms(0..=2000)).await;
            if group.world.is_calm() {
                return;
            }
            group.enter(many).await;
        }
    }))
}

impl Group {
    async fn enter(&mut self, many: u32) {
        let kind = self.rng.pick(&[Kind::Readers, Kind::Permits]);
        let since = now();
        let lease = self.rng.ms(3500..=6000);
        let all = kind.all(&self.holds.client, many).lease(lease);
        let Ok(holder) = self.holds.pause.gate(all.acquire()).await else {
            return;
        };
        let wait = Duration::from_secs(60);
        let requests = (0..many).map(|_| {
            let request = kind.one(&self.waits.client, many).wait(wait);
            self.request(kind, request.lease(Duration::from_secs(30)))
        });
        let requests: Vec<_> = requests.collect();
        // Most of them have a place in the queue by then.
        sleep(self.rng.ms(700..=1500)).await;
        let ends_by_itself = self.rng.chance(500);
        let rest = if ends_by_itself {
            // It goes on to believe that it holds, or not: nobody asks.
            Some(holder)
        } else {
            let _ = self.holds.pause.gate(holder.release()).await;
            None
        };
        let mut entered = Vec::new();
        for request in requests {
            entered.extend(request.await);
        }
        self.judge(kind, many, since, &entered);
        drop((entered, rest));
    }

    /// A task of the client that waits.
    fn request(&self, kind: Kind, request: Lock) -> oneshot::Receiver<Entered> {
        let (tell, told) = oneshot::channel();
        let (world, name) = (
            Arc::clone(&self.world),
            format!("group of c{}", self.waits.number),
        );
        start_task(&self.waits, async move {
            let invoked = world.oracle.invoke(&[kind.key()]);
            let result = request.acquire().await;
            if let Ok(guard) = &result {
                world.oracle.granted(&world, &name, &invoked, guard);
            }
            let _ = tell.send((now(), result));
        });
        told
    }

    fn judge(&self, kind: Kind, many: u32, since: Instant, entered: &[Entered]) {
        let (world, witness) = (&self.world, &self.world.witness);
        let server = world.server_of(kind.key());
        let times = entered.iter().map(|(at, _)| *at);
        let (Some(first), Some(last)) = (times.clone().min(), times.max()) else {
            return;
        };
        let apart = last - first;
        world.note(format_args!("{many} {}, {apart:?} apart", kind.key()));
        // Whoever is refused, or was held up, says nothing. Nobody can foresee what a connection
        // that was cut still hands on, one command after the other.
        if entered.iter().any(|(_, result)| result.is_err())
            || !witness.is_undisturbed(self.waits.number, server, since)
            || !witness.is_in_time(kind.key(), since)
            || world.oracle.is_outside(since)
        {
            return;
        }
        world.counts.add("groups");
        let (least, longest) = world.faults.delay;
        let there_and_back = 2 * Duration::from_millis(longest);
        // Without messages, the first finds out by its poll, and then each by its own look. The
        // messages of one step are under way together. Whoever asks as its message comes awaits
        // the answer first.
        let most = match world.faults.loses_grants() {
            true => FALLBACK_POLL + many * there_and_back,
            false => Duration::from_millis(longest - least) + there_and_back,
        };
        if apart > most + SPARE {
            let what = format!(
                "{many} of c{} get their {} {apart:?} apart, and {most:?} was allowed",
                self.waits.number,
                kind.key()
            );
            world.violated(Check::Waiting, what);
        }
    }
}
