//! The start of an engine: its parts, and the tasks that run as long as it does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lock_store::{Clock, Namespace, Store};
use tokio::sync::Notify;

use super::cleanup::{Cleanup, CleanupTask};
use super::thread::ThreadEnd;
use super::views::forget_unused_views;
use super::watchdog::Watchdog;
use crate::config::Defaults;
use crate::engine::Engine;
use crate::engine::acquire::foreign::ForeignTurns;
use crate::engine::fencing::rising::LastTokens;
use crate::engine::holder_names::Questions;
use crate::engine::latch::store_time::StoreTime;
use crate::engine::latch::watch::LatchWatches;
use crate::engine::liveness::Liveness;
use crate::engine::local_queue::patrol::patrol;
use crate::engine::messages::Messages;
use crate::engine::other_limits::OtherLimits;
use crate::engine::revocation_inbox::Demands;
use crate::engine::revoke::run_demands;
use crate::engine::short_lease::ShortLease;
use crate::engine::who_holds::answer_questions;

impl Engine {
    /// An engine, and the task that its runtime must run until it ends.
    #[expect(clippy::too_many_arguments, reason = "what the builder has made, once")]
    pub(crate) fn new(
        clock: Clock,
        store: Arc<dyn Store>,
        messages: Arc<Messages>,
        (questions, demands): (Questions, Demands),
        namespace: Namespace,
        defaults: Defaults,
        end: Option<ThreadEnd>,
        refusal: Option<Box<str>>,
    ) -> (Arc<Self>, CleanupTask) {
        let timeout = defaults.command_timeout;
        let observed = Arc::clone(&messages.observed);
        let liveness = Arc::new(Liveness::new(clock.clone(), timeout));
        let watchdog = Arc::new(Watchdog::new(
            clock.clone(),
            Arc::clone(&store),
            Arc::clone(&liveness),
            Arc::clone(&observed),
            &defaults,
        ));
        clock.spawn(Arc::clone(&watchdog).run());
        let (cleanup, task) = Cleanup::new(
            Arc::clone(&store),
            clock.clone(),
            Arc::clone(&liveness),
            Arc::clone(&observed),
            timeout,
        );
        let engine = Arc::new(Self {
            fork: forkguard::Guard::try_new().ok(),
            refusal,
            clock,
            capabilities: store.capabilities(),
            store,
            namespace,
            defaults,
            local_queues: Arc::clone(&messages.local_queues),
            grants: Arc::clone(&messages.grants),
            numbers: Arc::clone(&messages.numbers),
            names: Arc::clone(&messages.names),
            revocations: Arc::clone(&messages.revocations),
            messages,
            latches: Arc::new(LatchWatches::new(&liveness)),
            store_time: StoreTime::default(),
            liveness,
            watchdog,
            cleanup,
            observed,
            last_tokens: LastTokens::default(),
            other_limits: OtherLimits::default(),
            short_lease: ShortLease::default(),
            foreign_turns: ForeignTurns::default(),
            closing: AtomicBool::new(false),
            closed: Notify::new(),
            active: Arc::default(),
            views_used: Arc::default(),
            _end: end,
        });
        engine.start_tasks(questions, demands);
        (engine, task)
    }

    /// Starts the tasks that end with the engine.
    fn start_tasks(self: &Arc<Self>, questions: Questions, demands: Demands) {
        let engine = || Arc::downgrade(self);
        let (local_queues, views_used) = (&self.local_queues, &self.views_used);
        self.clock.spawn(patrol(engine(), Arc::clone(local_queues)));
        self.clock
            .spawn(forget_unused_views(engine(), Arc::clone(views_used)));
        self.clock.spawn(answer_questions(engine(), questions));
        self.clock.spawn(run_demands(engine(), demands));
    }
}
