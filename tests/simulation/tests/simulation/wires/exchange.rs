//! One command over a connection: what may happen to it on its way, and its answer.

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_runtime::{StoreError, StoreErrorKind};
use lock_store::{Answer, Failure, Instant, LatchFound, Link, Queue, Store};
use lock_testkit_core::store_decorator::{Reply, Request};
use tokio::sync::oneshot;

use super::{AFTERMATH, Wire, Wires};
use crate::couriers::{Command, Deliver};
use crate::world::{now, sleep_until};

/// An acquire that has not arrived by the end of its lease counts as lost in the engine.
fn expiry(request: &Request) -> Option<Instant> {
    let after = match request {
        Request::Acquire(_) | Request::AcquireAll(_) => request.lease(),
        // The place of a vanished process is forgotten after a minute.
        Request::LatchLook(_) => Some(Duration::from_secs(1)),
        other => other.latch_call().map(|_| Duration::from_secs(1)),
    };
    after.map(|after| now() + after)
}

/// A command is repeated on its way because the first reply is missing. For most commands the
/// engine copes with either reply. But a try that was told "busy" is over, and its copy is not
/// undone.
fn is_try(request: &Request) -> bool {
    match request {
        Request::Acquire(request) => request.queue != Queue::Join,
        Request::AcquireAll(_) => true,
        _ => false,
    }
}

/// The keys of a request, each with the number of its owner's request if it has one.
struct Keys<'r>(&'r Request);

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut owners = self.0.claims().map(|claim| claim.owner.request);
        for (at, key) in self.0.keys().iter().enumerate() {
            f.write_str(if at > 0 { " " } else { "" })?;
            f.write_str(key.as_str())?;
            if let Some(request) = owners.next() {
                write!(f, "-{request:x}")?;
            }
        }
        Ok(())
    }
}

/// A wait for a latch was told "open", and then its copy has made a place, because the latch was
/// set anew. The store forgets it after a minute.
pub(crate) const PLACE_OF_A_COPY: &str = "places of copies of waits that were over";

/// A slot that has half moved is no excuse for a lost hold: renewals can go key by key.
fn is_half_moved(request: &Request, error: &StoreError) -> bool {
    matches!(request, Request::Renew(_)) && error.kind() == StoreErrorKind::Loading
}

impl Wires {
    /// Sends the command over the connection that is up, or that will be up in time.
    pub(crate) fn exchange(
        self: &Arc<Self>,
        request: Request,
        by: Instant,
    ) -> impl Future<Output = Result<Answer<Reply>, Failure>> + Send + use<> {
        let (name, expires, is_try) = (request.verb(), expiry(&request), is_try(&request));
        let sent = now();
        let wires = Arc::clone(self);
        async move {
            let wire = wires.wire(by).await.inspect_err(|_| wires.learn_soon())?;
            let link = Link(wires.state().link);
            let (reply, replied) = oneshot::channel::<Result<Reply, Failure>>();
            let reply = Arc::new(Mutex::new(Some(reply)));
            let (world, client, number) = (Arc::clone(&wires.world), wires.client, wires.number);
            let was_carried_out = Arc::new(AtomicBool::new(false));
            let mut was_open = false;
            let loses_list = wires.loses_list(&request);
            let sender = Arc::clone(&wires);
            let ends = Arc::clone(&wire.ends);
            wires.send(&wire, expires, is_try, move |served| {
                let value = world.servers[number].carry_out(&request, served, loses_list);
                if let (Request::LatchWait(_), Ok(Reply::LatchWait(found))) = (&request, &value) {
                    let is_open = matches!(found, LatchFound::Is(latch) if latch.count == 0);
                    // If the first reply counts, nobody gives this place up.
                    if was_open && !is_open {
                        world.counts.add(PLACE_OF_A_COPY);
                    }
                    was_open = is_open;
                }
                let keys = Keys(&request);
                world.note(format_args!(
                    "c{client} {name} {keys} at s{number} -> {value:?}"
                ));
                if let Err(error) = &value
                    && !is_half_moved(&request, error)
                {
                    let until = now() + AFTERMATH;
                    world.witness.disturbed(client, number, until);
                }
                world.witness.saw(&request, served);
                if ends.is_cut() && expires.is_some() {
                    let until = now() + AFTERMATH;
                    let keys = request.claims().map(|claim| &claim.key);
                    keys.for_each(|key| world.witness.came_late(key, until));
                }
                if loses_list && world.servers[number].untold() > 0 {
                    world.counts.add("lost replies with a list");
                    sender.disturbed(AFTERMATH);
                    return Box::new(|| {});
                }
                was_carried_out.fetch_or(value.is_ok(), Ordering::Relaxed);
                let (reply, was_carried_out) = (Arc::clone(&reply), Arc::clone(&was_carried_out));
                Box::new(move || {
                    let reply = reply.lock().unwrap().take();
                    let value = value.map_err(|error| {
                        // Of a command and its copy, one was perhaps carried out all the same.
                        match was_carried_out.load(Ordering::Relaxed) {
                            true => Failure::unknown(error, link),
                            false => Failure::without_effect(error),
                        }
                    });
                    reply.map(|reply| reply.send(value));
                })
            });
            let answer = async {
                match replied.await {
                    Ok(value) => value,
                    // Lost: the client never hears of it.
                    Err(_) => pending().await,
                }
            };
            let cut = wire.ends.until_cut();
            let unknown =
                |kind, detail: &'static str| Failure::unknown(StoreError::new(kind, detail), link);
            tokio::select! {
                biased;
                answer = answer => {
                    wires.state().silent = 0;
                    answer.map(|value| Answer::new(value, link))
                }
                () = cut => {
                    wires.learn_soon();
                    Err(unknown(StoreErrorKind::Disconnected, "the connection was cut"))
                }
                () = sleep_until(by) => {
                    let (client, server) = (wires.client, wires.number);
                    wires.world.note(format_args!("c{client} {name} at s{server} timed out"));
                    wires.note_silence(link, by - sent);
                    wires.learn_soon();
                    Err(unknown(StoreErrorKind::Timeout, "the command was not answered"))
                }
            }
        }
    }

    /// The connection that is up, as soon as there is one.
    async fn wire(&self, by: Instant) -> Result<Wire, Failure> {
        let failure =
            |kind, detail: &'static str| Failure::without_effect(StoreError::new(kind, detail));
        loop {
            let up = self.up.notified();
            {
                let state = self.state();
                if state.closed {
                    return Err(failure(StoreErrorKind::Refused, "the client was shut down"));
                }
                if let Some(wire) = &state.wire {
                    return Ok(wire.clone());
                }
            }
            tokio::select! {
                biased;
                () = up => {}
                () = sleep_until(by) => {
                    return Err(failure(StoreErrorKind::Timeout, "connecting takes too long"));
                }
            }
        }
    }

    /// Whether the reply to an end of a hold is lost if it lists those whose turn has come.
    fn loses_list(&self, request: &Request) -> bool {
        let per_mille = self.world.faults.lost_list;
        let ends = matches!(request, Request::Release(_) | Request::Abandon(_));
        ends && per_mille > 0 && self.state().rng.chance(per_mille) && !self.world.is_calm()
    }

    fn send(
        &self,
        wire: &Wire,
        expires: Option<Instant>,
        last_counts: bool,
        carry_out: impl FnMut(&dyn Store) -> Deliver + Send + 'static,
    ) {
        let calm = self.world.is_calm();
        let faults = &self.world.faults;
        let counts = &self.world.counts;
        let mut state = self.state();
        let mut chance = |per_mille: u64, what: &'static str| {
            let happens = state.rng.chance(per_mille) && !calm;
            if happens {
                counts.add(what);
            }
            happens
        };
        let lost = chance(faults.lost_request, "lost requests");
        let lost_reply = chance(faults.lost_reply, "lost replies");
        let repeated = chance(faults.twice, "requests carried out twice");
        let slow = chance(faults.slow, "slow messages");
        let mut way = || {
            let (from, to) = faults.delay;
            let delay = state.rng.ms(from..=to);
            delay
                + if slow {
                    state.rng.ms(0..=800)
                } else {
                    Duration::ZERO
                }
        };
        let (there, back) = (way(), way());
        if lost || lost_reply || repeated || slow {
            self.disturbed(there + back + AFTERMATH);
        }
        let command = Command {
            at: now() + there,
            lost,
            lost_reply,
            twice: repeated.then(|| state.rng.ms(0..=20)),
            last_counts,
            back,
            expires,
            carry_out: Box::new(carry_out),
            _under_way: Arc::clone(&self.world.under_way),
        };
        // A wire that was cut just now accepts nothing.
        let _ = wire.to_server.send(command);
    }
}
