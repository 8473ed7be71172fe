//! [`Guard`]: a hold in the hands of the caller.

mod change;
mod finish;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lock_store::{FencingToken, Instant, LockKey, Mutex};

use crate::config::OnLost;
use crate::engine::Engine;
use crate::engine::hold::Hold;
use crate::engine::hold::part::Part;
use crate::engine::reentrancy::call_chain::{self, Frame};
use crate::engine::reentrancy::{Got, NestedGate, NestedPermit, OwnOrNested, Polling};
use crate::error::{LockError, LostReason};
use crate::one_or_more::OneOrMore;

/// A lock that is held, until the guard is released or dropped, or the hold is lost.
///
/// While [`is_held`](Self::is_held) is true for a holder of an exclusive or write lock, it is true
/// for nobody outside its call chain, as long as the store keeps what it has confirmed, clocks do
/// not jump, and no virtual machine is paused. This process's monotonic clock alone decides it.
/// Where that fails, the [`fencing_token`](Self::fencing_token) lets the resource refuse a late
/// write.
///
/// Dropping a guard releases in the background: from any thread, with or without a runtime, also
/// while panicking. Later requests of the same client for the key come after that release.
/// [`release`](Self::release) waits for it.
///
/// Give it a name. `let _guard = ….acquire().await?` holds the lock to the end of the block. `let _
/// = …` releases at once: the next line runs without the lock, and the compiler does not warn
/// unless the crate has `#![warn(let_underscore_drop)]`. [`Lock::run`](crate::Lock::run) has no
/// guard to forget.
///
/// The guard of a nested request shares the hold of its call chain. Releasing it gives back the
/// share. It is lost when the outer body or guard ends
/// ([`LostReason::OuterEnded`](crate::LostReason::OuterEnded)).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let client = lock_runtime::LockClient::in_memory();
/// let guard = client.lock("stock:42").acquire().await?;
/// assert!(guard.is_held());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping the guard at once releases the lock, and so does `let _ = …`, which rustc's \
              lint `let_underscore_drop` finds: give it a name, `let _guard = …`"]
pub struct Guard {
    engine: Arc<Engine>,
    hold: Arc<Hold>,
    /// Which part of the hold each key is, as the keys were listed; at least one.
    listed: OneOrMore<usize>,
    on_lost: OnLost,
    /// When it was granted, and how long that took.
    since: Instant,
    waited: Duration,
    /// How long the key stays taken from then on if the body has a success.
    kept_after_success: Duration,
    /// What nested requests borrow.
    nested_gate: OnceLock<Arc<NestedGate>>,
    /// What this guard has borrowed; `None` for a hold of its own.
    borrowed: Option<Borrowed>,
}

/// What a nested guard has of the outer hold.
struct Borrowed {
    from: Arc<NestedGate>,
    is_shared: bool,
    permit: Mutex<Option<NestedPermit>>,
}

impl Guard {
    pub(crate) fn new(
        engine: Arc<Engine>,
        keys: &[LockKey],
        got: Got,
        on_lost: OnLost,
        kept_after_success: Duration,
    ) -> Self {
        let (hold, borrowed) = match got.held {
            OwnOrNested::Own(hold) => (hold, None),
            OwnOrNested::Nested(permit) => {
                let borrowed = Borrowed::new(permit);
                (Arc::clone(borrowed.from.hold()), Some(borrowed))
            }
        };
        let listed = keys.iter().filter_map(|key| hold.find(engine.id(), key));
        Self {
            listed: OneOrMore::of(listed),
            engine,
            hold,
            on_lost,
            since: got.since,
            waited: got.waited,
            kept_after_success,
            nested_gate: OnceLock::new(),
            borrowed,
        }
    }

    /// How long the request waited for this guard.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").acquire().await?;
    /// assert!(guard.waited() < Duration::from_secs(1));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How long ago this guard was granted, whether the hold is lost by now or not.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        let now = self.engine.clock().now();
        now.saturating_duration_since(self.since)
    }

    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    /// What happens to a body under this guard when the hold is lost.
    pub(crate) fn on_lost(&self) -> OnLost {
        self.on_lost
    }

    /// A look at its hold from outside.
    #[cfg(feature = "__internals")]
    #[must_use]
    pub fn probe(&self) -> crate::probe::Probe {
        crate::probe::Probe::new(&self.hold)
    }

    fn nested_gate(&self) -> &Arc<NestedGate> {
        self.nested_gate.get_or_init(|| {
            let from = self.borrowed.as_ref();
            let from = from.map(|one| (Arc::clone(&one.from), one.is_shared));
            NestedGate::new(Arc::clone(&self.hold), from)
        })
    }

    /// A frame for a body under this guard.
    pub(crate) fn frame(&self) -> Arc<Frame> {
        Frame::new(Arc::clone(self.nested_gate()))
    }

    /// Why it can't be trusted any more: for the loss of the hold, or of the outer guard.
    pub(crate) fn loss(&self) -> Option<LostReason> {
        match &self.borrowed {
            None => self.hold.loss(),
            Some(borrowed) => borrowed.from.loss(),
        }
    }

    /// Whether it shares the hold of its call chain.
    pub(crate) fn is_nested(&self) -> bool {
        self.borrowed.is_some()
    }

    /// As long as this is there, a body under this guard is polled, and the outer guards of a
    /// nested one do not end. `None` if there is none, or one has ended.
    pub(crate) fn enter_polling(&self) -> Option<Polling<'_>> {
        Polling::enter(&self.borrowed.as_ref()?.from)
    }

    /// What is locked; of several keys the first as listed.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.parts()
            .next()
            .map_or(self.hold.key(), |part| &part.key)
    }

    pub(crate) fn lost_error(&self, reason: LostReason) -> LockError {
        LockError::lost(self.key().clone(), reason)
    }

    /// The engine names the first of several keys in their order, and the caller knows the order in
    /// which they are listed.
    fn named(&self, mut error: LockError) -> LockError {
        if let LockError::Lost { key, .. } | LockError::Unavailable { key: Some(key), .. } =
            &mut error
        {
            *key = self.key().clone();
        }
        error
    }

    /// All keys that are locked, as listed.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.multi_lock(["account:7", "account:3"]).acquire().await?;
    /// let keys: Vec<&str> = guard.keys().map(|key| key.as_str()).collect();
    /// assert_eq!(keys, ["account:7", "account:3"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = &LockKey> {
        self.parts().map(|part| &part.key)
    }

    /// Namespace, `:`, key; in the empty namespace the key alone. So the lock is called in Redis
    /// (but in ShedLock's layout), and PostgreSQL's `lock_check` takes it. Of several keys, the
    /// name of the first as listed.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let shop = client.namespaced("shop");
    /// let guard = shop.lock("stock:42").acquire().await?;
    /// assert_eq!(guard.full_name(), "shop:stock:42");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn full_name(&self) -> String {
        self.key().full_name(self.engine.namespace())
    }

    /// The same for all keys, as listed.
    pub fn full_names(&self) -> impl Iterator<Item = String> {
        let namespace = self.engine.namespace();
        self.keys().map(move |key| key.full_name(namespace))
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.listed
            .as_slice()
            .iter()
            .filter_map(|&at| self.hold.parts().get(at))
    }

    /// The fencing token of this hold, if this request or a nested one was
    /// [`fenced`](crate::Lock::fenced). Of several keys, the token of the first as listed.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.parts().next()?.token()
    }

    /// The fencing tokens of all keys, as listed. `None` if the request was not
    /// [`fenced`](crate::Lock::fenced).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.multi_lock(["account:7", "account:3"]).fenced().acquire().await?;
    /// assert_eq!(guard.fencing_tokens().map(|tokens| tokens.len()), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fencing_tokens(&self) -> Option<Vec<FencingToken>> {
        self.parts().map(Part::token).collect()
    }

    /// How long the hold can still be trusted if it is not renewed. Zero when it was lost. A lock
    /// that was just handed over has at most two seconds, until its client has asked for the rest
    /// of the lease. ZooKeeper's session is trusted for less than a long lease; the client asks for
    /// the rest in time, also of a fixed lease. No I/O.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match &self.borrowed {
            Some(borrowed) if borrowed.from.loss().is_some() => Duration::ZERO,
            _ => self.hold.remaining(),
        }
    }

    /// Whether the hold can be trusted now. No I/O: this machine's monotonic clock is compared with
    /// the time before the request was sent, plus the lease, less 1 % and 2 ms. Once false, it
    /// stays false.
    ///
    /// The clock counts the time for which the machine was suspended, so the answer is right at
    /// once when it wakes. A virtual machine can't count how long its host has paused it, or how
    /// old its snapshot is. There the answer may be wrong until the next renewal, and only a
    /// [fencing token](crate::FencingToken) helps. In a child process after `fork()` the answer is
    /// about the parent's hold.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.remaining() > Duration::ZERO
    }

    /// Resolves when the hold can no longer be trusted: its deadline has passed, or the store says
    /// that it is gone, or this guard shares the hold and the outer body or guard has ended. Never
    /// resolves for a hold that is released first. After a sleep of the machine it resolves within
    /// a second.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").lease(Duration::from_millis(20)).acquire().await?;
    /// guard.lost().await;
    /// assert!(!guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) {
        self.hold.until_lost(|| self.loss()).await;
    }

    /// Resolves when the client's [`shutdown`](crate::LockClient::shutdown) has begun, as
    /// [`LockClient::closing`](crate::LockClient::closing) does. The hold stays until the
    /// shutdown's timeout.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub async fn closing(&self) {
        self.engine.closing().await;
    }

    /// Runs a future inside this hold. Requests of this client for the same key in there share it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the inner one; the guard stays held.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("a").acquire().await?;
    /// guard.scope(async { client.lock("a").acquire().await?.release().await }).await?;
    /// assert!(guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        let frame = self.frame();
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            let _polls = self.enter_polling();
            call_chain::within(&frame, || future.as_mut().poll(cx))
        })
        .await
    }
}

impl Borrowed {
    fn new(permit: NestedPermit) -> Self {
        Self {
            from: Arc::clone(permit.gate()),
            is_shared: permit.is_shared(),
            permit: Mutex::new(Some(permit)),
        }
    }

    fn take(&self) -> Option<NestedPermit> {
        self.permit.lock().take()
    }
}

lock_store::show! {
    Guard as it: key = it.key(), fencing_token = it.fencing_token(),
    remaining = it.remaining()
}
