//! The mutants that no test can be expected to find, each with the reason.

use crate::mutants::Known;

const AGAIN: &str = "told again what is known, nothing changes";
const LOOKS: &str = "who is woken for nothing looks, and sleeps on";
const ENDS: &str = "it is dropped at the end of the block, which is here";
const WAKES: &str = "only the order of wake-ups changes, and nobody relies on it";
const RACE: &str =
    "a part is lost there only if the client's own thread takes it at this very moment";
const LOST: &str = "at its deadline a hold is lost, whatever else was to be done then";

pub(super) const OF_ENGINE: &[Known] = &[
    (
        "acquire/command.rs",
        "if self.registered && self.grant_link != link",
        "&& → ||",
        [1, 1],
        AGAIN,
    ),
    (
        "acquire/command.rs",
        "let closes = || engine.is_closing()",
        ">= → >",
        [1, 1],
        "a poll at that very instant is the one by which the command's own time ends",
    ),
    (
        "acquire/grant.rs",
        "self.barge_no_more();",
        "deleted",
        [1, 1],
        "the next command asks for a place, and is no plain try anyway",
    ),
    (
        "acquire/waiting.rs",
        "let willing = !self.options.fair",
        "> → >=",
        [1, 1],
        "without handoffs there is no hold that may be handed off",
    ),
    (
        "acquire/waiting.rs",
        "let doing = Doing::Asks(now + engine.defaults.command_timeout);",
        "+ → -",
        [1, 1],
        "it says what it does next before the patrol has looked five times",
    ),
    (
        "background/watchdog.rs",
        "Some(at) if at < deadline => (at, true),",
        "< → <=",
        [1, 1],
        LOST,
    ),
    (
        "background/watchdog.rs",
        "if schedule.armed.is_none_or(|armed| at < armed)",
        "< → <=",
        [1, 1],
        LOOKS,
    ),
    (
        "background/watchdog.rs",
        "schedule.armed = Some(at);",
        "deleted",
        [1, 1],
        LOOKS,
    ),
    (
        "background/watchdog.rs",
        "drop(event);",
        "deleted",
        [1, 1],
        WAKES,
    ),
    (
        "background/watchdog.rs",
        "if parts > 0 && parts + more > BATCH",
        "> → >=",
        [1, 2],
        "a batch of nothing is not sent",
    ),
    (
        "liveness/mod.rs",
        "asked = true;",
        "",
        [1, 4],
        "who asks waits next, and it is said there, too",
    ),
    (
        "liveness/mod.rs",
        "asked = true;",
        "",
        [2, 4],
        "who asks waits next, and it is said there, too",
    ),
    (
        "background/cleanup/mod.rs",
        "Ok(answer) if late.is_none_or(",
        "is_none_or",
        [1, 1],
        "without a late command there is nothing to repeat",
    ),
    (
        "grants.rs",
        "drop(grants);",
        "deleted",
        [2, 2],
        "what is woken is given back to the caller, after the end of the block",
    ),
    (
        "local_queue/signal.rs",
        "drop(post);",
        "deleted",
        [1, 1],
        "what is woken is given back to the caller, after the end of the block",
    ),
    (
        "local_queue/queues.rs",
        "drop(waiters);",
        "deleted",
        [1, 1],
        WAKES,
    ),
    (
        "latch/watch.rs",
        "drop(watches);",
        "deleted",
        [1, 2],
        "the watcher is a task of the client's own thread, which runs nothing inside of a wake-up",
    ),
    (
        "latch/watch.rs",
        "drop(watches);",
        "deleted",
        [2, 2],
        "the watcher is a task of the client's own thread, which runs nothing inside of a wake-up",
    ),
    (
        "hold/release.rs",
        "drop(state);",
        "deleted",
        [1, 1],
        "a deadlock of two threads, which only a race of theirs shows",
    ),
    (
        "local_queue/queue.rs",
        "if self.0.is_empty()",
        "negated",
        [1, 1],
        "room is given back more often than it must be",
    ),
    (
        "local_queue/queues.rs",
        "let (mut ticket, mut is_first) = (0, false);",
        "true",
        [1, 1],
        "both are set below",
    ),
    (
        "local_queue/tenure.rs",
        "drop(next);",
        "deleted",
        [1, 1],
        ENDS,
    ),
    (
        "local_queue/skipped.rs",
        "drop(next);",
        "deleted",
        [1, 1],
        WAKES,
    ),
    (
        "local_queue/queue.rs",
        "drop(first);",
        "deleted",
        [2, 2],
        ENDS,
    ),
    (
        "local_queue/waiter.rs",
        "drop(next);",
        "deleted",
        [1, 1],
        ENDS,
    ),
    (
        "reentrancy/gate.rs",
        "pub(crate) fn enter_now(self: &Arc<Self>, shared: bool)",
        "returns None",
        [1, 1],
        "who waits for an open gate passes it at once, too",
    ),
    (
        "local_queue/signal.rs",
        "None => false,",
        "true",
        [1, 1],
        "a waiter always does something",
    ),
    (
        "acquire/several.rs",
        "drop(self.end(&hold, self.clock.now()));",
        "deleted",
        [1, 1],
        RACE,
    ),
    (
        "acquire/several.rs",
        "self.send_release(&hold, LaterRequests::Wait, GoneHold::IsExpected);",
        "deleted",
        [1, 1],
        RACE,
    ),
    (
        "acquire/task.rs",
        "self.barge_no_more();",
        "deleted",
        [2, 2],
        "the next command asks for a place whichever it was before",
    ),
    (
        "background/thread.rs",
        "runtime.shutdown_background();",
        "deleted",
        [1, 2],
        "the thread ends either way, and nobody waits for it",
    ),
    (
        "background/watchdog.rs",
        "drop(schedule);",
        "deleted",
        [1, 2],
        "it wakes a task of the client's own thread, which runs nothing inside of a wake-up",
    ),
    (
        "latch/watcher.rs",
        "self.seen = Seen::Open;",
        "deleted",
        [1, 1],
        "all who wait are told, and what was seen before counts for nobody who comes later",
    ),
    (
        "reentrancy/nested.rs",
        "self.check_nested(hold, keys, options)?;",
        "deleted",
        [2, 2],
        "a writer that waits keeps the downgrade off; only another thread could come between",
    ),
];

pub(super) const OF_CONNECTION: &[Known] = &[];
