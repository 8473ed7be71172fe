//! The acquire task: what one request has asked the store for, and what is to be undone of it.

use lock_store::timing::QUEUE_TTL;
use lock_store::{Acquire, Claim, Failure, Instant, Link, LockKey, Permits, Queue};

use super::observed_request::ObservedRequest;
use crate::config::Resolved;
use crate::engine::Engine;
use crate::engine::background::active::{Active, Entered};
use crate::engine::background::cleanup::{CleanupJob, PendingUndo};
use crate::engine::fencing::window;
use crate::engine::late_acquire::LateAcquire;
use crate::engine::local_queue::Handoff;
use crate::engine::timing::{self, Budget};

/// One request to the store. Made before the first byte is sent; dropping it undoes whatever it may
/// have left there.
pub(super) struct AcquireTask<'e> {
    pub(super) engine: &'e Engine,
    pub(super) options: &'e Resolved,
    pub(super) budget: Budget,
    pub(super) request: Acquire,
    /// Send time and link of the command that is under way.
    pub(super) in_flight: Option<(Instant, Link)>,
    /// The store may have the owner in its queue or as holder.
    pub(super) may_be_stored: bool,
    /// A command that may have been carried out, or may yet be.
    pub(super) pending_outcome: Option<LateAcquire>,
    /// Send time and link of the last command answered `queued`. A grant heard on that link is
    /// newer.
    pub(super) confirmed: Option<(Instant, Link)>,
    /// Grants are heard.
    pub(super) registered: bool,
    /// The only link that tells a grant.
    pub(super) grant_link: Option<Link>,
    /// The handoff to this request that the store must be asked about: it ends with the next
    /// command.
    pub(super) previous: Option<Handoff>,
    /// The whole request.
    pub(super) observed: &'e ObservedRequest<'e>,
    _active: Entered<&'e Active>,
}

/// A request under an owner token of its own.
pub(super) fn request(
    engine: &Engine,
    key: LockKey,
    permits: Option<Permits>,
    options: &Resolved,
) -> Acquire {
    let claim = Claim::new(key, engine.next_owner(), permits);
    let mut request = Acquire::new(claim, options.lease);
    request.first_lease = timing::first_lease(options.lease);
    request.tokens = window::for_one(options);
    request.fair = options.fair;
    request.queue = match options.fair {
        true => Queue::Respect,
        false => Queue::Barge,
    };
    request
}

impl<'e> AcquireTask<'e> {
    pub(super) fn new(
        engine: &'e Engine,
        key: LockKey,
        options: &'e Resolved,
        budget: Budget,
        observed: &'e ObservedRequest<'e>,
    ) -> Self {
        Self {
            engine,
            options,
            budget,
            request: request(engine, key, options.permits, options),
            in_flight: None,
            may_be_stored: false,
            pending_outcome: None,
            confirmed: None,
            registered: false,
            grant_link: None,
            previous: None,
            observed,
            _active: Active::enter(&*engine.active),
        }
    }

    /// From now on not by the plain `SET NX`: it does not recognise its own earlier grant, and
    /// can't end a handoff.
    pub(super) fn barge_no_more(&mut self) {
        if self.request.queue == Queue::Barge {
            self.request.queue = Queue::Respect;
        }
    }

    /// When a command that was sent then can't be carried out any more, as far as is known.
    fn late_until(&self, sent: Instant) -> Instant {
        self.engine.late_until(sent, self.request.lease)
    }

    /// Notes a command that may have been carried out, or may yet be.
    pub(super) fn note_unknown(&mut self, failure: &Failure, sent: Instant) {
        if let Some(link) = failure.unknown {
            let until = failure.until.unwrap_or_else(|| self.late_until(sent));
            self.pending_outcome = Some(LateAcquire::merge(self.pending_outcome, link, until));
            self.barge_no_more();
        }
    }

    /// Ends the handoff that is not used, whatever becomes of this request: others wait for it.
    pub(super) fn give_up_previous(&mut self) {
        self.request.instead_of = None;
        if let Some(handoff) = self.previous.take() {
            self.engine.end_tenure(&handoff);
        }
    }
}

impl AcquireTask<'_> {
    /// Undoes in the background whatever it may have left in the store.
    fn clean_up(&mut self) {
        let (engine, owner) = (self.engine, self.request.claim.owner);
        if self.registered {
            engine.grants.forget(owner);
        }
        if let Some((sent, link)) = self.in_flight {
            let until = self.late_until(sent);
            self.pending_outcome = Some(LateAcquire::merge(self.pending_outcome, link, until));
        }
        self.give_up_previous();
        if self.may_be_stored || self.pending_outcome.is_some() {
            let key = &self.request.claim.key;
            let expires = engine.clock.now() + self.request.lease.max(QUEUE_TTL);
            engine.cleanup.send(CleanupJob::Undo(PendingUndo {
                request: self.request.clone(),
                pending_outcome: self.pending_outcome,
                expires: self
                    .pending_outcome
                    .map_or(expires, |late| late.until.max(expires)),
                holds_back: Some(engine.local_queues.releasing(key)),
            }));
        }
    }

    /// Gives up what it may have in the store, and goes on as another request.
    pub(super) fn restart(&mut self) {
        self.clean_up();
        let claim = &self.request.claim;
        let (key, permits) = (claim.key.clone(), claim.permits);
        self.request = request(self.engine, key, permits, self.options);
        self.barge_no_more();
        (
            self.in_flight,
            self.pending_outcome,
            self.confirmed,
            self.grant_link,
        ) = (None, None, None, None);
        (self.may_be_stored, self.registered) = (false, false);
    }
}

impl Drop for AcquireTask<'_> {
    fn drop(&mut self) {
        self.clean_up();
    }
}
