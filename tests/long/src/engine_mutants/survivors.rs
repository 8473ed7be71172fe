//! The mutants that no test can be expected to find, each with the reason.

use crate::mutants::Mutant;

const AGAIN: &str = "told again what is known, nothing changes";
const LOOKS: &str = "who is woken for nothing looks, and sleeps on";
const READ: &str = "the clock was read a moment ago, and nothing was waited for since";
const ENDS: &str = "it is dropped at the end of the block, which is here";
const LOST: &str = "at its deadline a hold is lost, whatever else was to be done then";

/// File, how the line begins, how the change begins, why.
const KNOWN: &[(&str, &str, &str, &str)] = &[
    (
        "acquire/command.rs",
        "if self.expecting && self.over != link",
        "&& → ||",
        AGAIN,
    ),
    ("acquire/command.rs", "self.over = link;", "deleted", AGAIN),
    (
        "acquire/command.rs",
        "let closes = || engine.is_closing()",
        ">= → >",
        "a poll at that very instant is the one by which the command's own time ends",
    ),
    (
        "acquire/command.rs",
        "self.give_up_previous();",
        "deleted",
        "a command is cut at the end of its request, which gives it up as well",
    ),
    (
        "acquire/grant.rs",
        "self.barge_no_more();",
        "deleted",
        "the next command asks for a place, and is no plain try anyway",
    ),
    (
        "acquire/grant.rs",
        "let passes = claim.permits.is_none()",
        "",
        "shares are fair and without handoffs nobody is willing: no request takes such a hold",
    ),
    (
        "acquire/one.rs",
        "let willing = !self.options.fair",
        "> → >=",
        "without handoffs there is no hold that may be passed on",
    ),
    (
        "acquire/one.rs",
        "let doing = Doing::Asks(now + engine.defaults.command_timeout);",
        "+ → -",
        "it says what it does next before anybody looks",
    ),
    (
        "acquire/one.rs",
        "*now = self.engine.clock.now();",
        "deleted",
        READ,
    ),
    (
        "acquire/one.rs",
        "waiting.barges = false;",
        "deleted",
        "who may be passed a hold barges no more since it waits for that",
    ),
    (
        "acquire/one.rs",
        "waiting.state = State::Asks;",
        "deleted",
        "only the first is passed a hold, and it moves up to that state",
    ),
    (
        "acquire/one.rs",
        "(waiting.barges, waiting.asked) = (false, true);",
        "true",
        "the reply makes it ask for a place, too, before the next command",
    ),
    (
        "background/watchdog.rs",
        "Some(at) if at < deadline => (at, true),",
        "< → <=",
        LOST,
    ),
    (
        "background/watchdog.rs",
        "if schedule.armed.is_none_or(|armed| at < armed)",
        "< → <=",
        LOOKS,
    ),
    (
        "background/watchdog.rs",
        "schedule.armed = Some(at);",
        "deleted",
        LOOKS,
    ),
    ("background/watchdog.rs", "drop(event);", "deleted", ENDS),
    (
        "background/watchdog.rs",
        "if rang && now >= at",
        "&& → ||",
        "of what is scheduled only what is due is done",
    ),
    (
        "background/watchdog.rs",
        "if parts > 0 && parts + more > BATCH",
        "> → >=",
        "a batch of nothing is not sent",
    ),
    (
        "hold/ending.rs",
        "state.lost.is_none() && now < state.deadline",
        "&& → ||",
        "a lost hold has no tenure any more that could be passed on",
    ),
    (
        "hold/ending.rs",
        "state.lost.is_none() && now < state.deadline",
        "< → <=",
        LOST,
    ),
    (
        "liveness/mod.rs",
        "asked = true;",
        "",
        "who asks waits next, and it is said there, too",
    ),
    (
        "background/undo.rs",
        "Ok(answer) if late.is_none_or(",
        "is_none_or",
        "without a late command there is nothing to repeat",
    ),
    (
        "background/watchdog.rs",
        "self.forget(hold);",
        "deleted",
        "a lost hold is forgotten at its next event",
    ),
    (
        "hold/renewal.rs",
        "self.watchdog.forget(hold);",
        "deleted",
        "a lost hold is forgotten at its next event",
    ),
    (
        "grants/mod.rs",
        "drop(grants);",
        "deleted",
        "what is woken is given back to the caller, after the end of the block",
    ),
    (
        "local_queue/signal.rs",
        "drop(post);",
        "deleted",
        "what is woken is given back to the caller, after the end of the block",
    ),
    ("local_queue/queues.rs", "drop(waiters);", "deleted", ENDS),
    (
        "latch/watch.rs",
        "drop(watches);",
        "deleted",
        "the watcher is a task of the client's own thread, which runs nothing inside of a wake-up",
    ),
    ("hold/loss.rs", "drop(tenure);", "deleted", ENDS),
    (
        "acquire/giving_up.rs",
        "let over = now >= self.budget.loses_patience",
        ">= → >",
        "at that instant the verdict is the same error",
    ),
    (
        "background/shutdown.rs",
        "self.send_release(&hold, false, true);",
        "true",
        "no later request waits for it: a client that closes admits none",
    ),
    (
        "hold/ending.rs",
        "drop(state);",
        "deleted",
        "who is woken waits for the key, and asks nothing of the hold that has ended",
    ),
    (
        "local_queue/patrol.rs",
        "local_queues.patrol().await;",
        "deleted",
        "it looks though nobody waits",
    ),
    (
        "local_queue/queue.rs",
        "if self.0.is_empty()",
        "negated",
        "room is given back more often than it must be",
    ),
    (
        "local_queue/queues.rs",
        "let (mut ticket, mut is_first) = (0, false);",
        "true",
        "both are set below",
    ),
    ("local_queue/marker.rs", "drop(next);", "deleted", ENDS),
    ("local_queue/passed_over.rs", "drop(next);", "deleted", ENDS),
    ("local_queue/releasing.rs", "drop(first);", "deleted", ENDS),
    ("local_queue/waiter.rs", "drop(next);", "deleted", ENDS),
];

/// Why a mutant survives, if that is known.
pub(super) fn reason(mutant: &Mutant) -> Option<&'static str> {
    let is = |(file, line, what, _): &&(&str, &str, &str, &str)| {
        mutant.file == *file && mutant.old.starts_with(line) && mutant.what.starts_with(what)
    };
    KNOWN.iter().find(is).map(|(.., why)| *why)
}
