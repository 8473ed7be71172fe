//! [`Lock::lead`]: a body that runs whenever this process has the lock.

use super::Lock;
use crate::api::guard::Guard;
use crate::api::run::{self, Slot};
use crate::config::{OnLost, Wait};
use crate::engine::term::Candidate;
use crate::error::LockError;
use crate::observe::TermEnd;

impl Lock {
    /// Leads: runs the body whenever this process has the lock. Of all processes that call it with
    /// one key, one runs the body and the others stand by.
    ///
    /// It waits for the lock without end, through outages of the store too. One hold is a *term*.
    /// When the lock is lost, the body is stopped, and this stands for the lock again: after 50 ms
    /// at first, and up to 2 s if terms end sooner than half a lease or the store fails. After a
    /// [`revoke`](crate::LockClient::revoke) it leaves the lock to others for one lease.
    ///
    /// So the body runs once for each term. Make it take up what the last term may have left half
    /// done. Who leads next may begin while a request of the last leader is still on its way: see
    /// [`fenced`](Self::fenced).
    ///
    /// It ends when the body returns, with its output. A term is renewed, also with a
    /// [`lease`](Self::lease), unless [`renew(false)`](Self::renew) was said.
    /// [`max_hold`](Self::max_hold) ends each term, so that others have their turn. A
    /// [`wait`](Self::wait) is not looked at.
    ///
    /// # Errors
    /// None of these passes by itself. What may pass, such as a store that does not answer, is
    /// logged once and tried again.
    /// - [`LockError::Shutdown`]: the client was shut down, in a term or before.
    /// - [`LockError::InvalidKey`], [`LockError::KeyConflict`], [`LockError::Config`]: a key or an
    ///   option that can't work. [`OnLost::Continue`] is one.
    /// - [`LockError::Unavailable`] of a [kind](crate::StoreErrorKind) that is not tried again,
    ///   such as `Denied` or `Misconfigured`: a wrong password, a missing right, a server that
    ///   can't do what locks need.
    /// - [`LockError::WouldDeadlock`], [`LockError::Lost`]: it was called inside a hold of the same
    ///   key, which it can't share, or which has ended. Also `Lost` if the body returned after its
    ///   lock was lost ([`LockError::body_ended`]).
    ///
    /// # Cancel safety
    /// Dropping the future drops the body and releases in the background. The next one leads at
    /// once.
    ///
    /// # Examples
    /// ```
    /// # use lock_runtime::{Guard, LockClient, LockError};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), LockError> {
    /// # let client = LockClient::in_memory();
    /// let sent = client
    ///     .lock("leader:mailer")
    ///     .lead(async |term: &Guard| {
    ///         // Runs on one replica only: take a mail, send it, until the shutdown.
    ///         term.held_for()
    ///     })
    ///     .await?;
    /// # let _ = sent;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lead<T>(mut self, mut body: impl AsyncFnMut(&Guard) -> T) -> Result<T, LockError> {
        if self.spec.on_lost == OnLost::Continue {
            return Err(LockError::config(
                "`lead` stops its body when the lock is lost, so that there is one leader: leave \
                 out `on_lost`, or call `run_with`",
            ));
        }
        self.spec.wait = Some(Wait::Forever);
        self.spec.leads = true;
        self.spec.renew.get_or_insert(true);
        let options = self.spec.resolve(self.engine.defaults())?;
        let mut candidate = Candidate::new(&self.engine, &options, self.keys.as_slice());
        loop {
            let began = candidate.now();
            match self.clone().acquire().await {
                Ok(guard) => {
                    let slot = Slot::new();
                    let guard = slot.put(guard);
                    let term = candidate.begin_term(self.keys.as_slice());
                    let result = run::run(&slot, body(guard)).await;
                    let how = match &result {
                        Ok(_) => TermEnd::Returned,
                        Err(_) => TermEnd::Lost,
                    };
                    let lasted = term.end(how);
                    match result {
                        Err(lost) if lost.is_lost() && !lost.body_ended() => {
                            candidate.note_lost(&lost, lasted);
                        }
                        result => return result,
                    }
                }
                Err(error) if candidate.note_refused(&error, began) => {}
                Err(error) => return Err(error),
            }
            candidate.rest().await;
        }
    }
}
