//! The results of all mutants.

use std::collections::BTreeMap;
use std::fmt;

use super::{Mutant, Reasons, Verdict};

/// This many of a hundred mutants must be found.
const ENOUGH: usize = 97;

/// The result of each mutant.
#[derive(Debug)]
pub struct Report {
    /// With the reason why no test can be expected to find it, if there is one.
    tried: Vec<(Mutant, Verdict, Option<&'static str>)>,
}

fn is_found(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Found(_))
}

impl Report {
    pub(super) fn new(tried: Vec<(Mutant, Verdict)>, reasons: &Reasons) -> Self {
        let with_reason = |(mutant, verdict): (Mutant, Verdict)| {
            let why = reasons.why(&mutant);
            (mutant, verdict, why)
        };
        Self {
            tried: tried.into_iter().map(with_reason).collect(),
        }
    }

    fn survivors(&self) -> impl Iterator<Item = &(Mutant, Verdict, Option<&'static str>)> {
        self.tried
            .iter()
            .filter(|(_, verdict, _)| !is_found(verdict))
    }

    /// Those of which a reason says that no test finds them, and one did.
    fn found_after_all(&self) -> impl Iterator<Item = &Mutant> {
        self.tried
            .iter()
            .filter(|(_, verdict, why)| is_found(verdict) && why.is_some())
            .map(|(mutant, ..)| mutant)
    }

    /// Whether at least 97 % were found, and none of them though a reason says that it can't be.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        let found = self.tried.len() - self.survivors().count();
        found * 100 >= self.tried.len() * ENOUGH && self.found_after_all().next().is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut files: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (mutant, verdict, _) in &self.tried {
            let (all, found) = files.entry(&mutant.file).or_default();
            *all += 1;
            *found += usize::from(is_found(verdict));
        }
        writeln!(f, "| file | mutants | found |\n|---|---:|---:|")?;
        for (file, (all, found)) in &files {
            writeln!(f, "| {file} | {all} | {found} |")?;
        }
        let (all, survived) = (self.tried.len(), self.survivors().count());
        let found = all - survived;
        let share = 100.0 * found as f64 / all.max(1) as f64;
        writeln!(f, "| all | {all} | {found} ({share:.1} %) |\n")?;
        writeln!(f, "| survivor | line | change | why |\n|---|---|---|---|")?;
        for (mutant, verdict, why) in self.survivors() {
            let Mutant {
                file,
                line,
                old,
                what,
                ..
            } = mutant;
            let why = match (why, verdict) {
                (Some(why), _) => why,
                (None, Verdict::Unmet) => "no test runs it",
                (None, _) => "unknown: a test is missing",
            };
            writeln!(f, "| {file}:{line} | `{old}` | {what} | {why} |")?;
        }
        for mutant in self.found_after_all() {
            writeln!(
                f,
                "\n{mutant}: found, so the reason given for its survival is wrong"
            )?;
        }
        Ok(())
    }
}
