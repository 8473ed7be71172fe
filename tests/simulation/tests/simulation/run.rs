//! One run: a seed from beginning to end.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_store::SimulatedStop;
use lock_store::timing::QUEUE_TTL;
use tokio::runtime::{Builder, Handle};

use crate::faults::Faults;
use crate::network::Network;
use crate::rng::Rng;
use crate::users::{Service, User, start};
use crate::wires::{PLACE_OF_A_COPY, id};
use crate::world::{Check, World, now, sleep};
use crate::wrong::Mistake;

/// A request that still waits after this much time without faults waits for ever.
const FOR_EVER: Duration = Duration::from_secs(60 * 60);

/// The result of a run.
pub(crate) struct Report {
    pub(crate) hash: u64,
    pub(crate) violations: Vec<(Check, String)>,
    pub(crate) simulated: Duration,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) lines: Vec<String>,
}

/// Runs a seed, with a mistake in the server if one is given.
pub(crate) fn run(seed: u64, mistake: Option<Mistake>, traced: bool) -> Report {
    in_simulation(async {
        let mut rng = Rng::new(seed);
        let mut faults = Faults::draw(&mut rng);
        // By a number of its own: the other worlds stay as they were.
        faults.leaving = Rng::new(!seed).chance(300);
        let world = World::new(faults, mistake, traced);
        world.faults.count(&world.counts);
        world.note(format_args!("seed {seed}: {:?}", world.faults));
        play(&world, &mut rng).await;
        Report {
            hash: world.hash(),
            violations: world.violations(),
            simulated: world.elapsed(),
            counts: world.counts.all(),
            lines: world.lines(),
        }
    })
}

/// The first of these seeds with a violation that this check finds.
pub(crate) fn first_found(
    mut seeds: Range<u64>,
    mistake: Option<Mistake>,
    by: Check,
) -> Option<u64> {
    seeds.find(|seed| {
        let violations = run(*seed, mistake, false).violations;
        violations.iter().any(|(check, _)| *check == by)
    })
}

/// Runs a future in simulated time.
pub(crate) fn in_simulation<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

/// One more client of the world, with settings of its own.
async fn service(world: &Arc<World>, number: usize, rng: &mut Rng) -> Service {
    let timeouts: &[u64] = match world.faults.delay.1 {
        0..=80 => &[200, 500, 500, 1000],
        // Time for the way there and back, and for an earlier command.
        _ => &[700, 1000],
    };
    let command_timeout = Duration::from_millis(rng.pick(timeouts));
    let lease = Duration::from_millis(rng.pick(&[600, 1000, 3000, 10_000, 30_000]));
    connect(world, number, rng, command_timeout, lease).await
}

/// One more client of the world.
pub(crate) async fn connect(
    world: &Arc<World>,
    number: usize,
    rng: &mut Rng,
    command_timeout: Duration,
    lease: Duration,
) -> Service {
    let pause = SimulatedStop::default();
    let (network, wires) = (Arc::clone(world), rng.fork());
    let builder = LockClient::builder().simulated(Handle::current(), id(number).0, pause.clone());
    let wait = Duration::from_millis(wires.clone().pick(&[3000, 10_000]));
    let client = builder
        .store({
            let pause = pause.clone();
            move |context| {
                let listener = context.listener.upgrade().unwrap();
                let namespace = context.namespace.as_str();
                Ok(Network::connect(
                    &network, &wires, number, &pause, &listener, namespace,
                ))
            }
        })
        .wait(wait)
        .command_timeout(command_timeout)
        .lease(lease)
        .connect()
        .await
        .unwrap();
    Service {
        world: Arc::clone(world),
        number,
        client,
        pause,
        stopped: Arc::new(AtomicU64::new(0)),
        command_timeout,
        lease,
        wait,
    }
}

async fn play(world: &Arc<World>, rng: &mut Rng) {
    let mut services = Vec::new();
    let mut tasks = Vec::new();
    let clients = 2 + rng.below(4);
    let steps = usize::try_from(5 + rng.below(20)).unwrap();
    for number in 0..usize::try_from(clients).unwrap() {
        let service = service(world, number, rng).await;
        for task in 0..usize::try_from(1 + rng.below(4)).unwrap() {
            let user = User::new(&service, task, rng.fork());
            tasks.push(start(&service, user.run(steps)));
        }
        services.push(service);
    }
    let mut troubles = crate::troubles::start(world, &services, rng);
    troubles.extend(crate::groups::start(world, &services));
    let users = async {
        for task in tasks {
            if let Err(error) = task.await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    };
    tokio::pin!(users);
    let trouble = rng.ms(20_000..=300_000);
    if tokio::time::timeout(trouble, &mut users).await.is_err() {
        world.calm_down();
        if tokio::time::timeout(FOR_EVER, &mut users).await.is_err() {
            world.violated(Check::Waiting, "a request waits for ever".to_owned());
        }
    }
    world.calm_down();
    for trouble in troubles {
        let _ = trouble.await;
    }
    world.drop_parked();
    clean_up(world, services).await;
}

/// Nothing is left of the users' work in the clients and in the server, and nothing of the clients.
pub(crate) async fn clean_up(world: &Arc<World>, services: Vec<Service>) {
    settle(world).await;
    world.oracle.check_losers(world);
    for service in services {
        let health = match service.client.health().await {
            Err(LockError::Shutdown) => continue,
            Ok(health) => health,
            Err(error) => {
                let what = format!("c{}: {error}", service.number);
                world.violated(Check::Leftover, what);
                continue;
            }
        };
        if health.held + health.waiting > 0 {
            let what = format!("c{}: {health:?}", service.number);
            world.violated(Check::Leftover, what);
        }
    }
    let servers = world.servers.iter();
    let left = servers.map(|server| server.memory().leftovers(server.now()));
    let mut leftovers: usize = left.sum();
    if leftovers > 0 {
        // A queue that no command has touched for so long is forgotten. The embedded store need not
        // do that.
        let forgotten = world.witness.untouched(QUEUE_TTL);
        let places = world.servers.iter().map(|server| server.places(&forgotten));
        leftovers = leftovers.saturating_sub(places.sum());
    }
    if leftovers > 0 {
        for server in &world.servers {
            world.note(format_args!("{:?}", server.memory()));
        }
        let what = format!("{leftovers} in the store");
        world.violated(Check::Leftover, what);
    }
    // A client ends its tasks with its last handle.
    sleep(Duration::from_secs(1)).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let clients = world.all_wires().len();
    if tasks + clients > 0 {
        let what = format!("{tasks} tasks, {clients} clients");
        world.violated(Check::Tasks, what);
    }
}

/// Gives background work its time. An undo must not take until the lease ends, except where its
/// connection was replaced. A command that was sent before the calm may have its connection
/// replaced after it.
async fn settle(world: &World) {
    for server in &world.servers {
        server.refusals.end_all();
        sleep(server.unreachable_until() - now()).await;
    }
    sleep(Duration::from_secs(5)).await;
    let counts = world.counts.all();
    let strange = ["cuts", "clock set back", PLACE_OF_A_COPY].iter();
    if strange.clone().any(|what| counts.contains_key(what)) {
        sleep(Duration::from_secs(65)).await;
    }
    // A connection that was cut may hand its commands on one after the other, each late.
    while Arc::strong_count(&world.under_way) > 1 {
        sleep(Duration::from_secs(1)).await;
    }
}

/// Counts how long a client was stopped, for the sake of its users.
pub(crate) fn count_stop(service: &Service, time: Duration) {
    let time = u64::try_from(time.as_millis()).unwrap();
    service.stopped.fetch_add(time, Ordering::Relaxed);
}
