//! Which mistake the engine makes on this thread.

use std::cell::Cell;

/// What the engine does wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A task that is not polled keeps its place.
    SkipsNobody,
    /// A wait without end for a key is patient as long as any key's server answers.
    IsPatientWithAllKeysAsOne,
    /// Whether a key is busy is judged by replies about any key.
    JudgesAllKeysAsOne,
    /// A release does not cover an extension that was not answered.
    ForgetsExtensionsUnheardOf,
    /// What a guard has lent to nested requests outlives it.
    LendsForEver,
    /// Whatever is polled in a body shares its hold.
    SharesWithEveryTask,
    /// A nested request that is not polled keeps its place.
    SkipsNobodyInside,
    /// Who follows one that was granted a share waits for its own poll.
    PollsOneAfterTheOther,
}

thread_local! {
    static MADE: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// Runs a simulation, which stays on this thread, in which the engine makes a mistake.
pub fn make<T>(mistake: Mistake, simulation: impl FnOnce() -> T) -> T {
    MADE.set(Some(mistake));
    let result = simulation();
    MADE.set(None);
    result
}

pub(crate) fn is_made(mistake: Mistake) -> bool {
    MADE.get() == Some(mistake)
}
