//! The faults that the processes of a history met.

/// A period with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// A time before it began, in nanoseconds of the machine's monotonic clock.
    pub from: u64,
    /// A time after it ended.
    pub to: u64,
    /// The kind of fault.
    pub effect: Effect,
}

/// The meaning of a disturbance for the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A process stood still.
    Stopped {
        /// The process.
        process: u32,
    },
    /// A process was killed.
    Killed {
        /// The process.
        process: u32,
    },
    /// The store lost acknowledged writes. A lock can't survive that, but tokens still rise.
    DataLost,
    /// The store's clock jumped. A lock can't survive that, but tokens still rise.
    ClockMoved,
    /// Another fault, which a lock must survive.
    Other,
}

/// True if an overlap that began at `from` and was seen at `to` has a cause outside of the model.
pub(super) fn excuses_overlap(disturbances: &[Disturbance], from: u64, to: u64) -> bool {
    disturbances.iter().any(|disturbance| {
        matches!(disturbance.effect, Effect::DataLost | Effect::ClockMoved)
            && disturbance.from <= to
            && from <= disturbance.to
    })
}

/// True if a token given at `to` may repeat one requested at `from`, or be lower: only if data was
/// lost **and** the clock moved in between. A counter that still exists rises on any clock. Without
/// the counter, tokens rise on a clock that was not moved.
pub(super) fn excuses_tokens(disturbances: &[Disturbance], from: u64, to: u64) -> bool {
    let between = |effect| {
        disturbances
            .iter()
            .any(|one| one.effect == effect && one.from <= to && from <= one.to)
    };
    between(Effect::DataLost) && between(Effect::ClockMoved)
}

/// How long a process stood still within a period.
pub(super) fn stopped_for(disturbances: &[Disturbance], process: u32, from: u64, to: u64) -> u64 {
    disturbances
        .iter()
        .filter(|disturbance| disturbance.effect == Effect::Stopped { process })
        .map(|stop| stop.to.min(to).saturating_sub(stop.from.max(from)))
        .sum()
}
