//! Several locks at once, all or none.
//!
//! First all of them in one command, if they are free. Otherwise one after the other in the order
//! of their keys, which is the same for everybody, so that no two requests can wait for each other
//! (ordered resource allocation; Havender, "Avoiding deadlock in multitasking systems", 1968).

use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Acquire, AcquiredAll, Failure, Instant, LockKey, Renewed, Replied, StoreError, StoreErrorKind,
    Wish,
};

use super::observed_request::ObservedRequest;
use super::task::{self, AcquireTask};
use crate::config::Resolved;
use crate::engine::Engine;
use crate::engine::background::active::Active;
use crate::engine::background::cleanup::{CleanupJob, GoneHold, PendingUndo};
use crate::engine::errors::{no_token, too_late, too_short, unanswered, unavailable};
use crate::engine::fencing::window;
use crate::engine::hold::part::Part;
use crate::engine::hold::release::LaterRequests;
use crate::engine::hold::{Grant, Hold};
use crate::engine::late_acquire::LateAcquire;
use crate::engine::timing::{self, Budget, Retry};
use crate::error::{KeyKind, LockError, LostReason};
use crate::observe::GrantedBy;
use crate::one_or_more::OneOrMore;

/// So many of several keys are named in an error.
const NAMED_AT_MOST: usize = 4;

impl Engine {
    pub(super) async fn acquire_several(
        &self,
        keys: &[LockKey],
        options: &Resolved,
        budget: Budget,
        observed: &ObservedRequest<'_>,
    ) -> Result<Arc<Hold>, LockError> {
        let mut keys = keys.to_vec();
        keys.sort();
        keys.dedup();
        self.check_wish(Wish::Keys(keys.len()))?;
        let _active = Active::enter(&*self.active);
        if !budget.may_wait() {
            for released in keys
                .iter()
                .filter_map(|key| self.local_queues.until_released(key))
            {
                let _ = self.clock.by(budget.latest_end(None), released).await;
            }
        }
        if !budget.may_wait() || keys.iter().all(|key| self.local_queues.is_idle(key)) {
            match self.at_once(&keys, options, &budget).await? {
                AtOnce::Held(hold) => return Ok(hold),
                AtOnce::Busy(key) if !budget.may_wait() => {
                    return Err(self.busy(&key, &budget, None));
                }
                AtOnce::Failed(error) if !budget.may_wait() => return Err(error),
                AtOnce::Busy(_) | AtOnce::Failed(_) | AtOnce::Apart => {}
            }
        }
        let mut retry = Retry::default();
        loop {
            if let Some(hold) = self.gather(&keys, options, budget, observed).await? {
                return Ok(hold);
            }
            if budget.end().is_none() && retry.failures() + 1 >= timing::LOST_GATHERINGS {
                return Err(unavailable(keys.first(), too_short(options.lease)));
            }
            // Whatever took one of them away may do so again.
            let again = retry.again_at(self.clock.now());
            let again = budget.end().map_or(again, |ends| again.min(ends));
            let closed = self.closed.notified();
            if !self.is_closing() {
                let _ = self.clock.by(again, closed).await;
            }
        }
    }

    /// One command for all, which takes them if all are free.
    async fn at_once(
        &self,
        keys: &[LockKey],
        options: &Resolved,
        budget: &Budget,
    ) -> Result<AtOnce, LockError> {
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        let sent = self.clock.now();
        let by = budget
            .command_by(sent, budget.latest_end(self.liveness.answered()))
            .max(sent);
        let link = self.store.link_of(&keys[0]);
        let request = |key: &LockKey| task::request(self, key.clone(), None, options);
        let requests: Vec<Acquire> = keys.iter().map(request).collect();
        let until = self.late_until(sent, options.lease);
        let mut under_way = UnansweredCommand {
            engine: self,
            requests,
            pending_outcome: LateAcquire { link, until },
        };
        let result = self.store.acquire_all(under_way.requests.clone(), by).await;
        // Keys of different servers: no store was asked.
        if !matches!(&result, Ok(answer) if answer.value == AcquiredAll::Apart) {
            self.liveness.note_by(sent, by, &result);
        }
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        under_way.note(&result);
        let key = |at: usize| keys.get(at).unwrap_or(&keys[0]).clone();
        match result.map(|answer| answer.value) {
            Ok(AcquiredAll::Granted { tokens, until }) => {
                Ok(self.use_all(under_way, options, sent, tokens, until))
            }
            Ok(AcquiredAll::Busy(at)) => Ok(AtOnce::Busy(key(at))),
            Ok(AcquiredAll::Conflict(at)) => {
                Err(LockError::key_conflict(key(at), KeyKind::Unknown))
            }
            Ok(AcquiredAll::Apart) => Ok(AtOnce::Apart),
            Err(failure) => {
                let transient = failure.error.kind().is_transient();
                let error = unavailable(keys.first(), of_any(keys, failure.error));
                if transient {
                    Ok(AtOnce::Failed(error))
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Makes a hold of a grant for all keys, if it can be used.
    fn use_all(
        &self,
        mut under_way: UnansweredCommand<'_>,
        options: &Resolved,
        sent: Instant,
        tokens: Vec<Option<u64>>,
        until: Option<Instant>,
    ) -> AtOnce {
        let requests = &under_way.requests;
        let failed = |key, error| AtOnce::Failed(unavailable(key, error));
        let first = requests.first().map(|request| &request.claim.key);
        let deadline = timing::trusted_until(sent, options.lease, until);
        let mut tokens_of_parts = tokens.iter();
        let unfenced = tokens_of_parts.any(|token| window::is_missing(options, *token));
        if tokens.len() != requests.len() || unfenced {
            return failed(first, no_token());
        }
        if self.clock.now() >= deadline {
            return failed(first, too_late(options.lease));
        }
        for (request, token) in requests.iter().zip(&tokens) {
            let key = &request.claim.key;
            if let Err(error) = self.check_rises(key, *token, 1) {
                return failed(Some(key), error);
            }
        }
        let part = |(request, token): (&Acquire, _)| {
            Part::new(request.claim.key.clone(), request.claim.owner, token)
        };
        let parts = OneOrMore::Several(requests.iter().zip(tokens).map(part).collect());
        let grant = Grant {
            id: requests[0].claim.owner.request,
            deadline,
            ends: timing::hold_ends(sent, options),
            pending_outcomes: Vec::new(),
            tenure: None,
            how: GrantedBy::Store,
        };
        let renew_at = timing::first_renewal(sent, options, until);
        let hold = self.start_hold(parts, self.clock.now(), options, grant, renew_at);
        under_way.disarm();
        AtOnce::Held(hold)
    }

    /// One after the other, each held and renewed while the next is waited for.
    async fn take_each(
        &self,
        keys: &[LockKey],
        options: &Resolved,
        budget: Budget,
        observed: &ObservedRequest<'_>,
    ) -> Result<Gathered<'_>, LockError> {
        let alone = Resolved {
            renew: true,
            max_hold: None,
            hold_at_least: Duration::ZERO,
            is_part: true,
            ..*options
        };
        let mut gathered = Gathered {
            engine: self,
            holds: Vec::with_capacity(keys.len()),
        };
        for key in keys {
            let mut task = AcquireTask::new(self, key.clone(), &alone, budget, observed);
            gathered.holds.push(task.wait(self.clock.now()).await?);
        }
        Ok(gathered)
    }

    /// Takes all, and makes one hold of them. `None` if one was lost on the way.
    async fn gather(
        &self,
        keys: &[LockKey],
        options: &Resolved,
        budget: Budget,
        observed: &ObservedRequest<'_>,
    ) -> Result<Option<Arc<Hold>>, LockError> {
        let gathered = self.take_each(keys, options, budget, observed).await?;
        let sent = self.clock.now();
        let confirmed = self.confirm(&gathered.holds, options, &budget).await;
        let failed = confirmed.as_ref().err();
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        let (since, deadline, renew_at) = match &confirmed {
            Ok(until) => (
                sent,
                timing::trusted_until(sent, options.lease, *until),
                timing::first_renewal(sent, options, *until),
            ),
            // Until the watchdog has renewed, the earliest deadline counts.
            Err(error) if error.kind().is_transient() => {
                let deadlines = gathered.holds.iter().map(|hold| hold.deadline());
                let now = self.clock.now();
                (now, deadlines.min().unwrap_or(sent), Some(sent))
            }
            Err(error) => return Err(unavailable(keys.first(), of_any(keys, error.clone()))),
        };
        let now = self.clock.now();
        let mut holds = gathered.holds.iter();
        let lost = holds.find_map(|hold| Some((hold.key(), hold.loss()?)));
        if lost.is_none() && now < deadline {
            return Ok(self.merge(gathered, since, deadline, renew_at, options));
        }
        if budget.end().is_none_or(|ends| now < ends) {
            return Ok(None);
        }
        Err(match (lost, failed) {
            (Some((key, LostReason::Gone)), None) => self.busy(key, &budget, None),
            (lost, failed) => {
                let key = lost.map_or(&keys[0], |(key, _)| key);
                unavailable(
                    Some(key),
                    failed.cloned().unwrap_or_else(|| too_short(options.lease)),
                )
            }
        })
    }

    /// The first of them have used up some of their lease: all get the whole of it, in one command.
    /// A hold that is gone is lost then. Until when all can be trusted, if the store has said so.
    async fn confirm(
        &self,
        holds: &[Arc<Hold>],
        options: &Resolved,
        budget: &Budget,
    ) -> Result<Option<Instant>, StoreError> {
        let sent = self.clock.now();
        let by = budget
            .command_by(sent, budget.latest_end(self.liveness.answered()))
            .max(sent);
        let renewals = holds.iter().flat_map(|hold| hold.renewals(options.lease));
        let result = self.store.renew(renewals.collect(), by).await;
        self.liveness.note_by(sent, by, &result);
        let replies = result.map_err(|failure| failure.error)?.value;
        let mut earliest = None;
        for (at, hold) in holds.iter().enumerate() {
            match replies.get(at) {
                Some(Renewed::Renewed | Renewed::Unanswered) => {}
                Some(Renewed::Until(until)) => {
                    // If another is not answered, the deadlines of the holds count.
                    hold.trust_at_most(*until);
                    earliest = Some(earliest.map_or(*until, |one: Instant| one.min(*until)));
                }
                _ => hold.lose(LostReason::Gone),
            }
        }
        if replies.contains(&Renewed::Unanswered) {
            return Err(unanswered());
        }
        Ok(earliest)
    }

    /// Makes one hold of several. `None` if one of them is lost after all.
    fn merge(
        &self,
        mut gathered: Gathered<'_>,
        since: Instant,
        deadline: Instant,
        renew_at: Option<Instant>,
        options: &Resolved,
    ) -> Option<Arc<Hold>> {
        let holds = std::mem::take(&mut gathered.holds);
        let parts = holds.iter().flat_map(|hold| hold.parts());
        let parts = OneOrMore::Several(parts.map(Part::again).collect());
        let grant = Grant {
            id: self.next_owner().request,
            deadline,
            ends: timing::hold_ends(since, options),
            pending_outcomes: holds
                .iter()
                .flat_map(|hold| hold.pending_outcomes.clone())
                .collect(),
            tenure: None,
            how: GrantedBy::Store,
        };
        let hold = self.start_hold(parts, self.clock.now(), options, grant, renew_at);
        let mut whole = true;
        for part in holds {
            whole &= part.become_part();
            self.watchdog.forget(&part);
        }
        if whole {
            return Some(hold);
        }
        drop(self.end(&hold, self.clock.now()));
        self.send_release(&hold, LaterRequests::Wait, GoneHold::IsExpected);
        None
    }
}

/// What a store has refused for several keys together may be about any of them. The text of a
/// foreign name is nothing else.
fn of_any(keys: &[LockKey], error: StoreError) -> StoreError {
    if error.kind().is_transient() || error.kind() == StoreErrorKind::Foreign {
        return error;
    }
    let named = keys.iter().take(NAMED_AT_MOST);
    let mut named: Vec<_> = named.map(|key| key.shortened().to_string()).collect();
    if keys.len() > NAMED_AT_MOST {
        named.push(format!("{} more", keys.len() - NAMED_AT_MOST));
    }
    error.of(&format!("{} together", named.join(", ")))
}

enum AtOnce {
    Held(Arc<Hold>),
    /// Somebody else has this one.
    Busy(LockKey),
    Failed(LockError),
    /// No one command can take them.
    Apart,
}

/// A command for several locks whose outcome is not known: undone in the background when this is
/// dropped.
struct UnansweredCommand<'e> {
    engine: &'e Engine,
    requests: Vec<Acquire>,
    pending_outcome: LateAcquire,
}

impl UnansweredCommand<'_> {
    /// What an answer leaves to be undone. A grant is a hold's, or all of it is to be undone.
    fn note(&mut self, result: &Replied<AcquiredAll>) {
        match result {
            Ok(answer) if matches!(answer.value, AcquiredAll::Granted { .. }) => {}
            Err(Failure {
                unknown: Some(link),
                until,
                ..
            }) => {
                let late = &mut self.pending_outcome;
                late.link = *link;
                late.until = until.unwrap_or(late.until);
            }
            _ => self.disarm(),
        }
    }

    /// It left nothing that has to be undone.
    fn disarm(&mut self) {
        self.requests.clear();
    }
}

impl Drop for UnansweredCommand<'_> {
    fn drop(&mut self) {
        for request in self.requests.drain(..) {
            let expires = self.engine.clock.now() + request.lease;
            let expires = expires.max(self.pending_outcome.until);
            let holds_back = Some(self.engine.local_queues.releasing(&request.claim.key));
            self.engine.cleanup.send(CleanupJob::Undo(PendingUndo {
                request,
                pending_outcome: Some(self.pending_outcome),
                expires,
                holds_back,
            }));
        }
    }
}

/// The locks that a request for several has so far: released in the background when this is
/// dropped.
struct Gathered<'e> {
    engine: &'e Engine,
    holds: Vec<Arc<Hold>>,
}

impl Drop for Gathered<'_> {
    fn drop(&mut self) {
        for hold in &self.holds {
            self.engine.give_back(hold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_names_the_keys_and_nothing_else_does() {
        let keys = ["a", "b"].map(LockKey::from);
        let said = |kind| {
            of_any(&keys, StoreError::new(kind, "x"))
                .detail()
                .to_owned()
        };
        assert_eq!(said(StoreErrorKind::Denied), "\"a\", \"b\" together: x");
        for kind in [StoreErrorKind::Foreign, StoreErrorKind::Disconnected] {
            assert_eq!(said(kind), "x");
        }
    }
}
