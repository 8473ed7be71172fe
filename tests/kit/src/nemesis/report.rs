//! The results of one run, or of many.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::{Fault, Settings};
use crate::history::{Disturbance, Effect, Violation};

/// A fault that was injected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Injected {
    pub(super) fault: Fault,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) effect: Effect,
}

impl Injected {
    pub(super) fn disturbance(&self) -> Disturbance {
        Disturbance {
            from: self.from,
            to: self.to,
            effect: self.effect,
        }
    }
}

/// How long a key was not granted after the end of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The time since the end of the fault.
    pub lasted: Duration,
    /// The key.
    pub key: String,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Requests, one for each key.
    pub attempts: u64,
    /// Requests that got the lock.
    pub granted: u64,
    /// Requests that found the lock held for their whole wait.
    pub busy: u64,
    /// Requests that the store refused or did not answer.
    pub failed: u64,
    /// Requests that were dropped, or ended with their process.
    pub unknown: u64,
    /// Reads and writes that the guarded resource accepted.
    pub accesses: u64,
    /// Accesses that it refused because of an older token.
    pub refused: u64,
    /// How often each fault was injected.
    pub faults: BTreeMap<Fault, u64>,
    /// What must not happen. Violations under faults that a lock must survive come first.
    pub violations: Vec<Violation>,
    /// The longest stall after each fault.
    pub stalls: BTreeMap<Fault, Stall>,
    /// How long two holders were excused, since the next master may lack what was granted.
    pub excused: Duration,
}

impl Report {
    /// Violations under faults that a lock must survive.
    pub fn in_model(&self) -> impl Iterator<Item = &Violation> {
        self.violations.iter().filter(|found| found.in_model)
    }

    /// How many of its runs say nothing about locks, since the store's servers came to differ.
    #[must_use]
    pub fn runs_in_vain(&self) -> u64 {
        self.faults.get(&Fault::Differ).copied().unwrap_or(0)
    }

    /// Asserts what a test of a whole run expects.
    ///
    /// # Panics
    /// If there are violations that a lock must prevent, or if too little happened to find any.
    pub fn must_be_clean_and_hard_enough(&self, settings: &Settings) {
        let found: Vec<_> = self.in_model().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{found:#?}");
        assert_eq!(self.runs_in_vain(), 0, "its members differ");
        assert!(self.granted >= 100, "{} grants", self.granted);
        let is_hard = self.refused > 0 || !settings.engine.frees_soon();
        assert!(is_hard, "no stale access was even tried");
        let all: BTreeSet<Fault> = settings.faults.iter().copied().collect();
        let missing: Vec<_> = all
            .iter()
            .filter(|fault| !self.faults.contains_key(fault))
            .filter(|fault| fault.is_in_model() || Fault::DATA_LOST.contains(fault))
            .collect();
        assert!(missing.is_empty(), "never injected: {missing:?}");
    }

    /// Adds the results of another run.
    pub fn add(&mut self, other: Self) {
        self.attempts += other.attempts;
        self.granted += other.granted;
        self.busy += other.busy;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.accesses += other.accesses;
        self.refused += other.refused;
        self.excused += other.excused;
        for (fault, number) in other.faults {
            *self.faults.entry(fault).or_default() += number;
        }
        self.violations.extend(other.violations);
        self.violations
            .sort_by_key(|violation| (!violation.in_model, violation.check));
        for (fault, stall) in other.stalls {
            let longest = self.stalls.entry(fault).or_insert_with(|| stall.clone());
            if stall.lasted > longest.lasted {
                *longest = stall;
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "operations: {} attempts, {} granted, {} busy, {} failed, {} unknown",
            self.attempts, self.granted, self.busy, self.failed, self.unknown
        )?;
        writeln!(
            f,
            "guarded resource: {} accesses, {} refused as stale",
            self.accesses, self.refused
        )?;
        let faults: u64 = self.faults.values().sum();
        writeln!(
            f,
            "faults: {faults}, with the longest stall after each kind"
        )?;
        for (fault, number) in &self.faults {
            let stall = self
                .stalls
                .get(fault)
                .map_or("undisturbed: none".to_owned(), |stall| {
                    format!(
                        "{} ms until {:?} was granted",
                        stall.lasted.as_millis(),
                        stall.key
                    )
                });
            let outside = if fault.is_in_model() || *fault == Fault::Failover {
                ""
            } else {
                " (outside the model)"
            };
            writeln!(f, "  {fault:<34} {number:>5}  {stall}{outside}")?;
        }
        let in_model = self.in_model().count();
        writeln!(
            f,
            "violations: {in_model} in the model, {} outside",
            self.violations.len() - in_model
        )?;
        if !self.excused.is_zero() {
            writeln!(
                f,
                "not checked for two holders, after failovers: {:.0?}",
                self.excused
            )?;
        }
        // Violations outside of the model come in large numbers.
        let outside = self.violations.iter().filter(|found| !found.in_model);
        for violation in self.in_model().take(20).chain(outside.take(3)) {
            writeln!(f, "  {violation}")?;
        }
        Ok(())
    }
}
