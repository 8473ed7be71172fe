//! Couriers carry messages over one connection, each direction in order.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_store::Instant;
use lock_store::SimulatedStop;
use lock_store::Store;
use tokio::sync::{Notify, mpsc};

use crate::server::Arrival;
use crate::world::{World, now, sleep, sleep_until};

/// Whether a connection was cut, and whether what is under way to the server arrives.
#[derive(Default)]
pub(crate) struct Ends {
    was_cut: AtomicBool,
    cut: Notify,
    pub(crate) late: Mutex<Option<Duration>>,
}

/// What to do at the client when a message arrives there.
pub(crate) type Deliver = Box<dyn FnOnce() + Send>;

/// Carries a command out at the server. The result is run at the client.
pub(crate) type CarryOut = Box<dyn FnMut(&dyn Store) -> Deliver + Send>;

/// A message on its way to the client.
pub(crate) struct Parcel {
    pub(crate) at: Instant,
    pub(crate) deliver: Deliver,
}

/// A command on its way to the server.
pub(crate) struct Command {
    pub(crate) at: Instant,
    pub(crate) lost: bool,
    pub(crate) lost_reply: bool,
    pub(crate) twice: Option<Duration>,
    /// If it is carried out twice, the second reply counts.
    pub(crate) last_counts: bool,
    pub(crate) back: Duration,
    /// Once the connection is cut, the command arrives before this instant or never.
    pub(crate) expires: Option<Instant>,
    pub(crate) carry_out: CarryOut,
    /// One of [`World::under_way`].
    pub(crate) _under_way: Arc<()>,
}

impl Ends {
    pub(crate) fn cut(&self) {
        self.was_cut.store(true, Ordering::Relaxed);
        self.cut.notify_waiters();
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.was_cut.load(Ordering::Relaxed)
    }

    pub(crate) async fn until_cut(&self) {
        let cut = self.cut.notified();
        if !self.is_cut() {
            cut.await;
        }
    }
}

/// Carries commands to the server, in their order.
pub(crate) async fn there(
    mut commands: mpsc::UnboundedReceiver<Command>,
    back: mpsc::UnboundedSender<Parcel>,
    (world, server): (Arc<World>, usize),
    served: Arc<dyn Store>,
    ends: Arc<Ends>,
) {
    while let Some(mut command) = commands.recv().await {
        tokio::select! {
            biased;
            () = ends.until_cut() => {}
            () = sleep_until(command.at) => {}
        }
        if ends.is_cut() {
            let Some(late) = *ends.late.lock().unwrap() else {
                continue;
            };
            sleep_until(command.at.max(now()) + late).await;
            // The engine relies on no command after this.
            if command.expires.is_some_and(|expires| now() >= expires) {
                continue;
            }
        }
        if command.lost {
            continue;
        }
        let server = &world.servers[server];
        let mut arrival = server.arrival();
        if let Arrival::Kept(until) = arrival {
            sleep_until(until).await;
            if ends.is_cut() && command.expires.is_some_and(|expires| now() >= expires) {
                continue;
            }
            arrival = Arrival::Answered;
        }
        if arrival == Arrival::Lost {
            continue;
        }
        let mut deliver = (command.carry_out)(&*served);
        if let Some(pause) = command.twice {
            sleep(pause).await;
            let again = (command.carry_out)(&*served);
            // Either of the two replies may be the one that counts.
            if command.last_counts || pause.as_millis() % 2 == 0 {
                deliver = again;
            }
        }
        if !command.lost_reply && arrival == Arrival::Answered {
            let at = now() + command.back;
            let _ = back.send(Parcel { at, deliver });
        }
    }
}

/// Carries replies and messages to the client, in their order. While the client is stopped, they
/// wait in its socket.
pub(crate) async fn back_again(
    mut parcels: mpsc::UnboundedReceiver<Parcel>,
    pause: SimulatedStop,
    ends: Arc<Ends>,
) {
    while let Some(parcel) = parcels.recv().await {
        sleep_until(parcel.at).await;
        pause.gate(ready(())).await;
        if !ends.is_cut() {
            (parcel.deliver)();
        }
    }
}
