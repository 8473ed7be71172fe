//! What happens to clients, connections and servers while users work.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::LockKey;
use tokio::task::JoinHandle;

use crate::refusals::Refusal;
use crate::rng::Rng;
use crate::run::count_stop;
use crate::server::Silence;
use crate::users::Service;
use crate::world::{World, now, sleep};

enum Trouble {
    Stop(Service),
    Cut,
    Restart,
    SetBack,
    SetForward,
    Silence,
    Refuse,
    HalfMove,
    Suspend(Vec<Service>),
}

/// The consequences of a disturbance are over after this time.
const AFTERMATH: Duration = Duration::from_secs(4);

/// Starts the troubles that the run's faults ask for. Each ends when the world is calm.
pub(crate) fn start(
    world: &Arc<World>,
    services: &[Service],
    rng: &mut Rng,
) -> Vec<JoinHandle<()>> {
    let faults = &world.faults;
    let stops = services.iter().cloned();
    stops
        .map(|service| (faults.pause_every, Trouble::Stop(service)))
        .chain([
            (faults.cut_every, Trouble::Cut),
            (faults.restart_every, Trouble::Restart),
            (faults.back_every, Trouble::SetBack),
            (faults.forward_every, Trouble::SetForward),
            (faults.silence_every, Trouble::Silence),
            (faults.refusal_every, Trouble::Refuse),
            (faults.half_moved_every, Trouble::HalfMove),
            (faults.suspend_every, Trouble::Suspend(services.to_vec())),
        ])
        .filter_map(|(every, trouble)| {
            let task = again_and_again(Arc::clone(world), every?, rng.fork(), trouble);
            Some(tokio::spawn(task))
        })
        .collect()
}

async fn again_and_again(world: Arc<World>, every: Duration, mut rng: Rng, trouble: Trouble) {
    let every = u64::try_from(every.as_millis()).unwrap();
    loop {
        sleep(rng.ms(0..=2 * every)).await;
        if world.is_calm() {
            return;
        }
        match &trouble {
            Trouble::Stop(service) => stop(service, &mut rng).await,
            Trouble::Cut => cut(&world, &mut rng),
            Trouble::Restart => restart(&world, &mut rng),
            Trouble::SetBack => set_back(&world, &mut rng),
            Trouble::SetForward => set_forward(&world, &mut rng),
            Trouble::Silence => silence(&world, &mut rng).await,
            Trouble::Refuse => refuse(&world, &mut rng),
            Trouble::HalfMove => half_move(&world, &mut rng),
            Trouble::Suspend(services) => suspend(&world, services, &mut rng),
        }
    }
}

/// Like SIGSTOP and SIGCONT, for shorter and longer than a lease.
async fn stop(service: &Service, rng: &mut Rng) {
    let time = if rng.chance(600) {
        rng.ms(10..=1000)
    } else {
        rng.ms(1000..=35_000)
    };
    let world = &service.world;
    world.counts.add("client stopped");
    world.note(format_args!("c{} stopped for {time:?}", service.number));
    count_stop(service, time);
    disturb(world, Some(service.number), None, time);
    service.pause.stop();
    sleep(time).await;
    service.pause.go_on();
    world.note(format_args!("c{} goes on", service.number));
}

fn cut(world: &World, rng: &mut Rng) {
    let wires = world.all_wires();
    if !wires.is_empty() {
        let which = rng.below(u64::try_from(wires.len()).unwrap());
        wires[usize::try_from(which).unwrap()].cut("cut");
    }
}

/// Records a disturbance between this client, or every one, and this server, or every one.
fn disturb(world: &World, client: Option<usize>, server: Option<usize>, time: Duration) {
    for wires in world.all_wires() {
        let of_client = client.is_none_or(|client| client == wires.client);
        if of_client && server.is_none_or(|server| server == wires.number) {
            let until = now() + time + AFTERMATH;
            world.witness.disturbed(wires.client, wires.number, until);
        }
    }
}

fn any_server(world: &World, rng: &mut Rng) -> usize {
    let servers = u64::try_from(world.servers.len()).unwrap();
    usize::try_from(rng.below(servers)).unwrap()
}

fn restart(world: &World, rng: &mut Rng) {
    world.counts.add("restarts with loss of data");
    world.oracle.outside_the_model();
    let (server, down) = (any_server(world, rng), rng.ms(0..=1500));
    world.note(format_args!("server {server} restarts, {down:?}"));
    let wires = world.all_wires().into_iter();
    for wires in wires.filter(|wires| wires.number == server) {
        wires.cut("restart");
    }
    world.servers[server].restart(down);
    let of_server = |key: &LockKey| world.server_of(key.as_str()) == server;
    world.witness.ended(of_server);
}

fn set_back(world: &World, rng: &mut Rng) {
    world.counts.add("clock set back");
    let (server, by) = (any_server(world, rng), rng.ms(1..=2000));
    world.note(format_args!(
        "the clock of server {server} is set back by {by:?}"
    ));
    world.servers[server].jump(-i64::try_from(by.as_millis()).unwrap());
    let of_server = |key: &LockKey| world.server_of(key.as_str()) == server;
    world.witness.set_back(of_server, by);
}

fn set_forward(world: &World, rng: &mut Rng) {
    world.counts.add("clock set forward");
    world.oracle.outside_the_model();
    let (server, by) = (any_server(world, rng), rng.ms(100..=40_000));
    world.note(format_args!(
        "the clock of server {server} is set forward by {by:?}"
    ));
    world.servers[server].jump(i64::try_from(by.as_millis()).unwrap());
}

/// Like SIGSTOP for a server, or a network that is cut off: mostly one way at first.
async fn silence(world: &World, rng: &mut Rng) {
    world.counts.add("silences of a server");
    let server = any_server(world, rng);
    let time = if rng.chance(500) {
        rng.ms(500..=8000)
    } else {
        rng.ms(8000..=45_000)
    };
    let keeps = rng.chance(400);
    let hears = if keeps {
        Duration::ZERO
    } else {
        rng.ms(0..=3000).min(time)
    };
    let silence = Silence {
        hears_until: now() + hears,
        until: now() + time,
        keeps,
    };
    world.note(format_args!(
        "server {server} is silent for {time:?}, keeps: {keeps}"
    ));
    world.servers[server].be_silent(silence);
    world.witness.is_silent(server, silence);
    disturb(world, None, Some(server), time);
    sleep(time).await;
}

fn refuse(world: &World, rng: &mut Rng) {
    let refusal = Refusal::draw(rng);
    let (server, time) = (any_server(world, rng), rng.ms(300..=12_000));
    begin(world, server, refusal, time);
}

fn half_move(world: &World, rng: &mut Rng) {
    let (server, time) = (any_server(world, rng), rng.ms(1000..=60_000));
    begin(world, server, Refusal::HalfMoved, time);
}

fn begin(world: &World, server: usize, refusal: Refusal, time: Duration) {
    world.counts.add(refusal.name());
    world.note(format_args!(
        "server {server} refuses for {time:?}: {refusal:?}"
    ));
    world.servers[server].refusals.begin(refusal, time);
}

/// For shorter and longer than leases. Meanwhile nothing runs, as if one machine had all clients.
fn suspend(world: &World, services: &[Service], rng: &mut Rng) {
    world.counts.add("suspends");
    let time = if rng.chance(500) {
        rng.ms(100..=3000)
    } else {
        rng.ms(3000..=120_000)
    };
    world.note(format_args!("the machines sleep for {time:?}"));
    for service in services {
        count_stop(service, time);
        service
            .pause
            .sleep(u64::try_from(time.as_millis()).unwrap());
    }
    world.suspend(u64::try_from(time.as_millis()).unwrap());
    world.witness.slept(time);
    disturb(world, None, None, Duration::ZERO);
}
