//! One client, as in `engine/acquire`, `engine/local_queue`, `engine/hold` and the watchdog, and
//! its end of a connection.

use super::reaper::Job;
use super::store::{Reply, Verb};
use super::{Mistake, Mode, Queue};

/// A process with one request at a time, numbered by `attempt`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Client {
    pub(super) alive: bool,
    /// Whether it has a connection, and that connection's number.
    pub(super) linked: bool,
    pub(super) link: u8,
    /// Whether a `PUBLISH` to it counts a listener.
    pub(super) listening: bool,
    /// Requests that it may still make.
    pub(super) to_come: u8,
    pub(super) attempt: u8,
    pub(super) phase: Phase,
    /// `AcquireTask::confirmed`, as the rest of a first lease that counts from then. 0 also means
    /// "never".
    pub(super) confirmed: u8,
    /// `AcquireTask::may_be_stored`.
    pub(super) may_be_stored: bool,
    /// `AcquireTask::late`, later the hold's.
    pub(super) unknown: Option<Unknown>,
    /// On their way to the store, in order.
    pub(super) out: Vec<Command>,
    /// Sent over connections that broke. They may arrive at any time, or never.
    pub(super) stray: Vec<Stray>,
    /// On their way from the store, in order.
    pub(super) inbound: Vec<Message>,
    /// Releases and undos in the background.
    pub(super) jobs: Vec<Job>,
}

/// Where its request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Phase {
    Idle,
    /// An acquire is under way. `left` is the rest of its lease, counted from before the sending.
    /// `heard`: a grant came meanwhile.
    Asking {
        mode: Mode,
        left: u8,
        heard: bool,
    },
    /// Looks again in this many ticks.
    Waiting {
        look_in: u8,
    },
    /// It believes that it holds the lock for `left` more ticks. `renewing` is the new `left` if
    /// the renewal under way succeeds.
    Holding {
        left: u8,
        renewing: Option<u8>,
    },
}

/// `LateAcquire`: acquires with an unknown outcome, the link of the earliest, and how long they may
/// still be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Unknown {
    pub(super) link: u8,
    pub(super) left: u8,
}

/// A command, and whether the client still awaits its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Command {
    pub(super) attempt: u8,
    pub(super) verb: Verb,
    pub(super) wanted: bool,
}

/// A command of a broken connection. After `left` it counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Stray {
    pub(super) attempt: u8,
    pub(super) verb: Verb,
    pub(super) left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Message {
    Reply {
        attempt: u8,
        verb: Verb,
        reply: Reply,
    },
    /// `PUBLISH`: a hand-over to this attempt, announced over this connection.
    Grant { attempt: u8, link: u8 },
}

impl Client {
    pub(super) fn new(requests: u8) -> Self {
        Self {
            alive: true,
            linked: true,
            link: 0,
            listening: true,
            to_come: requests,
            attempt: 0,
            phase: Phase::Idle,
            confirmed: 0,
            may_be_stored: false,
            unknown: None,
            out: Vec::new(),
            stray: Vec::new(),
            inbound: Vec::new(),
            jobs: Vec::new(),
        }
    }

    pub(super) fn waits(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. } | Phase::Waiting { .. })
    }

    pub(super) fn waits_as(&self, attempt: u8) -> bool {
        self.alive && self.attempt == attempt && self.waits()
    }

    pub(super) fn believes(&self) -> bool {
        matches!(self.phase, Phase::Holding { left, .. } if left > 0)
    }

    /// Nothing of it is under way.
    pub(super) fn rests(&self) -> bool {
        self.phase == Phase::Idle
            && self.jobs.is_empty()
            && self.out.is_empty()
            && self.stray.is_empty()
            && self.inbound.is_empty()
    }

    /// The store publishes a grant.
    pub(super) fn publish_grant(&mut self, attempt: u8) {
        if self.alive && self.linked {
            let link = self.link;
            self.inbound.push(Message::Grant { attempt, link });
        }
    }

    pub(super) fn send(&mut self, attempt: u8, verb: Verb) {
        self.out.push(Command {
            attempt,
            verb,
            wanted: true,
        });
    }

    /// The client no longer awaits the reply. The command may still be carried out.
    pub(super) fn stop_waiting_for(&mut self, attempt: u8, is: fn(Verb) -> bool) {
        for command in &mut self.out {
            if command.attempt == attempt && is(command.verb) {
                command.wanted = false;
            }
        }
        self.inbound.retain(|message| {
            let Message::Reply {
                attempt: of, verb, ..
            } = message
            else {
                return true;
            };
            *of != attempt || !is(*verb)
        });
    }
}

fn is_acquire(verb: Verb) -> bool {
    matches!(verb, Verb::Acquire(_))
}

impl Queue {
    /// `AcquireTask::new` and its first command.
    pub(super) fn start(&self, client: &mut Client) {
        client.to_come -= 1;
        client.attempt += 1;
        (client.confirmed, client.may_be_stored, client.unknown) = (0, false, None);
        self.ask(client, if self.fair { Mode::Join } else { Mode::Barge });
    }

    /// `AcquireTask::send`.
    pub(super) fn ask(&self, client: &mut Client, mode: Mode) {
        client.phase = Phase::Asking {
            mode,
            left: self.lease,
            heard: false,
        };
        client.send(client.attempt, Verb::Acquire(mode));
    }

    /// The next message that came from the store.
    pub(super) fn hear(&self, client: &mut Client, message: Message) {
        match message {
            Message::Grant { attempt, .. } if client.waits_as(attempt) => self.hear_grant(client),
            Message::Grant { .. } => {}
            Message::Reply {
                verb: Verb::Acquire(mode),
                reply,
                ..
            } => self.hear_acquired(client, mode, reply),
            Message::Reply {
                verb: Verb::Renew,
                reply,
                ..
            } => self.hear_renewed(client, reply),
            Message::Reply {
                attempt,
                verb,
                reply,
            } => self.hear_ended(client, attempt, verb, reply),
        }
    }

    /// `Grants::granted`, then `AcquireTask::handed_over`.
    fn hear_grant(&self, client: &mut Client) {
        if let Phase::Asking { heard, .. } = &mut client.phase {
            *heard = true;
            return;
        }
        let left = if self.makes(Mistake::GrantCountedFromItsMessage) {
            self.first_lease
        } else {
            client.confirmed
        };
        if left > 0 {
            self.hold(client, left);
        } else if client.linked {
            self.ask(client, Mode::Join);
        } else {
            client.phase = Phase::Waiting { look_in: 0 };
        }
    }

    fn hear_acquired(&self, client: &mut Client, mode: Mode, reply: Reply) {
        let Phase::Asking { left, heard, .. } = client.phase else {
            return;
        };
        match reply {
            Reply::Granted => {
                client.may_be_stored = true;
                let left = if self.makes(Mistake::ValidityFromTheReply) {
                    self.lease
                } else if self.makes(Mistake::ReplyTrustedAfterItsDeadline) {
                    left.max(1)
                } else {
                    left
                };
                if left > 0 {
                    self.hold(client, left);
                } else {
                    client.phase = Phase::Waiting { look_in: 0 };
                }
            }
            Reply::Busy { queued } => {
                client.may_be_stored = queued;
                let since = self.lease - left;
                client.confirmed = if queued {
                    self.first_lease.saturating_sub(since)
                } else {
                    0
                };
                if mode != Mode::Join {
                    self.ask(client, Mode::Join);
                    return;
                }
                client.phase = Phase::Waiting {
                    look_in: self.poll.saturating_sub(since),
                };
                if heard && self.makes(Mistake::StaleGrantKept) {
                    self.hear_grant(client);
                } else if heard {
                    // The grant was gone when the store wrote the reply. Only the store can explain
                    // it.
                    self.ask(client, Mode::Join);
                }
            }
            Reply::Renewed | Reply::Gone | Reply::Done { .. } => {}
        }
    }

    fn hold(&self, client: &mut Client, left: u8) {
        (client.may_be_stored, client.confirmed) = (false, 0);
        client.phase = Phase::Holding {
            left,
            renewing: None,
        };
    }

    /// The watchdog.
    pub(super) fn renew(&self, client: &mut Client) {
        if let Phase::Holding { renewing, .. } = &mut client.phase {
            *renewing = Some(self.lease);
            client.send(client.attempt, Verb::Renew);
        }
    }

    fn hear_renewed(&self, client: &mut Client, reply: Reply) {
        let Phase::Holding { left, renewing } = client.phase else {
            return;
        };
        if reply == Reply::Gone {
            client.phase = Phase::Idle;
            if client.unknown.is_some() {
                self.end(client, Verb::Release, true);
            }
            return;
        }
        client.phase = Phase::Holding {
            left: left.max(renewing.unwrap_or(0)),
            renewing: None,
        };
    }

    /// `Drop for AcquireTask`.
    pub(super) fn give_up(&self, client: &mut Client) {
        self.note_unknown(client);
        let undo = client.may_be_stored || client.unknown.is_some();
        let forgets = self.makes(Mistake::NoUndoOfUnknown) && !client.may_be_stored;
        if undo && !forgets {
            self.end(client, Verb::Abandon, true);
        } else {
            (client.phase, client.confirmed, client.unknown) = (Phase::Idle, 0, None);
        }
    }

    /// The acquire under way has failed without a reply.
    pub(super) fn forget_acquire(&self, client: &mut Client) {
        let heard = matches!(client.phase, Phase::Asking { heard: true, .. });
        self.note_unknown(client);
        if heard {
            self.hear_grant(client);
        }
    }

    /// `AcquireTask::note_unknown`.
    fn note_unknown(&self, client: &mut Client) {
        let Phase::Asking { left, .. } = client.phase else {
            return;
        };
        client.stop_waiting_for(client.attempt, is_acquire);
        let (mut link, mut possible) = (client.link, left);
        if let Some(before) = client.unknown {
            (link, possible) = (link.min(before.link), left.max(before.left));
        }
        client.unknown = Some(Unknown {
            link,
            left: possible,
        });
        client.phase = Phase::Waiting { look_in: 0 };
    }

    pub(super) fn forget_renewal(&self, client: &mut Client) {
        client.stop_waiting_for(client.attempt, |verb| verb == Verb::Renew);
        if let Phase::Holding { renewing, .. } = &mut client.phase {
            *renewing = None;
        }
    }
}

impl Client {
    /// The connection is gone. What was sent over it may still arrive. What came over it is no
    /// longer heard.
    pub(super) fn cut(&mut self, keeps_grants: bool) {
        for command in std::mem::take(&mut self.out) {
            let unknown = if command.attempt == self.attempt && self.unknown.is_some() {
                self.unknown
            } else {
                let mut jobs = self.jobs.iter();
                jobs.find(|job| job.attempt == command.attempt)
                    .and_then(|job| job.unknown)
            };
            self.stray.push(Stray {
                attempt: command.attempt,
                verb: command.verb,
                left: match unknown {
                    Some(unknown) if is_acquire(command.verb) => unknown.left,
                    _ => 0,
                },
            });
        }
        self.inbound
            .retain(|message| keeps_grants && matches!(message, Message::Grant { .. }));
    }

    /// One tick of its clock. True if its hold has expired.
    pub(super) fn tick(&mut self) -> bool {
        let tick = |left: &mut u8| *left = left.saturating_sub(1);
        tick(&mut self.confirmed);
        self.stray
            .iter_mut()
            .for_each(|stray| tick(&mut stray.left));
        let jobs = self.jobs.iter_mut().filter_map(|job| job.unknown.as_mut());
        jobs.chain(&mut self.unknown)
            .for_each(|unknown| tick(&mut unknown.left));
        match &mut self.phase {
            Phase::Idle => false,
            Phase::Asking { left, .. } | Phase::Waiting { look_in: left } => {
                tick(left);
                false
            }
            Phase::Holding { left, renewing } => {
                tick(left);
                renewing.iter_mut().for_each(tick);
                *left == 0
            }
        }
    }
}
