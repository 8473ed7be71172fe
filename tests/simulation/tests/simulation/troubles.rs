//! What happens to clients, connections and the server while users work.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::rng::Rng;
use crate::run::count_stop;
use crate::users::Service;
use crate::world::{World, sleep};

enum Trouble {
    Stop(Service),
    Cut,
    Restart,
    SetBack,
    SetForward,
}

/// Starts what the run's faults say; each ends when the world is calm.
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
        }
    }
}

/// As SIGSTOP and SIGCONT: shorter and longer than leases.
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

fn restart(world: &World, rng: &mut Rng) {
    world.counts.add("restarts with loss of data");
    world.oracle.outside_the_model();
    let down = rng.ms(0..=1500);
    world.note(format_args!("the server restarts, {down:?}"));
    for wires in world.all_wires() {
        wires.cut("restart");
    }
    world.server.restart(down);
}

fn set_back(world: &World, rng: &mut Rng) {
    world.counts.add("clock set back");
    let by = rng.ms(1..=2000);
    world.note(format_args!("the server's clock is set back by {by:?}"));
    world.server.jump(-i64::try_from(by.as_millis()).unwrap());
}

fn set_forward(world: &World, rng: &mut Rng) {
    world.counts.add("clock set forward");
    world.oracle.outside_the_model();
    let by = rng.ms(100..=40_000);
    world.note(format_args!("the server's clock is set forward by {by:?}"));
    world.server.jump(i64::try_from(by.as_millis()).unwrap());
}
