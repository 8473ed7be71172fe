//! What was done to the processes of a history.

/// A time in which something was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// Before it began, in nanoseconds of the machine's monotonic clock.
    pub from: u64,
    /// After it had ended.
    pub to: u64,
    /// What was wrong.
    pub effect: Effect,
}

/// What a disturbance means to the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A process stood still.
    Stopped {
        /// Which.
        process: u32,
    },
    /// A process was killed.
    Killed {
        /// Which.
        process: u32,
    },
    /// The store lost writes that it had acknowledged, which a lock can't bear; tokens rise
    /// nevertheless.
    DataLost,
    /// The store's clock jumped, which a lock can't bear; tokens rise nevertheless.
    ClockMoved,
    /// Something else that a lock must bear.
    Other,
}

/// Whether an overlap of periods that began at `from` and was seen at `to` has a cause outside of
/// the model.
pub(super) fn excuses_overlap(disturbances: &[Disturbance], from: u64, to: u64) -> bool {
    disturbances.iter().any(|disturbance| {
        matches!(disturbance.effect, Effect::DataLost | Effect::ClockMoved)
            && disturbance.from <= to
            && from <= disturbance.to
    })
}

/// Whether a token that was asked for at `from` may be repeated, or undercut, by one that was given
/// at `to`: only where data was lost **and** the clock moved in between. A counter that is still
/// there rises on any clock, and one that is gone on a clock that goes on.
pub(super) fn excuses_tokens(disturbances: &[Disturbance], from: u64, to: u64) -> bool {
    let between = |effect| {
        disturbances
            .iter()
            .any(|one| one.effect == effect && one.from <= to && from <= one.to)
    };
    between(Effect::DataLost) && between(Effect::ClockMoved)
}

/// For how long of a time a process stood still.
pub(super) fn stopped_for(disturbances: &[Disturbance], process: u32, from: u64, to: u64) -> u64 {
    disturbances
        .iter()
        .filter(|disturbance| disturbance.effect == Effect::Stopped { process })
        .map(|stop| stop.to.min(to).saturating_sub(stop.from.max(from)))
        .sum()
}
