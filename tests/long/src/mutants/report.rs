//! The results of all mutants.

use std::collections::BTreeMap;
use std::fmt;

use super::mutant::Mutant;
use super::survivors;
use super::trial::Verdict;

/// So many of a hundred mutants must be found.
const ENOUGH: usize = 90;

/// The result of each mutant.
#[derive(Debug)]
pub struct Report {
    pub(super) tried: Vec<(Mutant, Verdict)>,
}

impl Report {
    fn survivors(&self) -> impl Iterator<Item = &Mutant> {
        let survived = |(_, verdict): &&(_, Verdict)| matches!(verdict, Verdict::Survived);
        self.tried.iter().filter(survived).map(|(mutant, _)| mutant)
    }

    /// Whether at least 90 % were found.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        let caught = self.tried.len() - self.survivors().count();
        caught * 100 >= self.tried.len() * ENOUGH
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut files: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (mutant, verdict) in &self.tried {
            let (all, caught) = files.entry(&mutant.file).or_default();
            *all += 1;
            *caught += usize::from(!matches!(verdict, Verdict::Survived));
        }
        writeln!(f, "| script | mutants | caught |\n|---|---:|---:|")?;
        for (file, (all, caught)) in &files {
            writeln!(f, "| {file} | {all} | {caught} |")?;
        }
        let (all, survived) = (self.tried.len(), self.survivors().count());
        let caught = all - survived;
        let share = 100.0 * caught as f64 / all as f64;
        writeln!(f, "| all | {all} | {caught} ({share:.1} %) |\n")?;
        writeln!(f, "| survivor | line | change | why |\n|---|---|---|---|")?;
        for mutant in self.survivors() {
            let Mutant {
                file,
                line,
                old,
                what,
                ..
            } = mutant;
            let why = survivors::reason(mutant).unwrap_or("unknown: a test is missing");
            writeln!(f, "| {file}:{line} | `{old}` | {what} | {why} |")?;
        }
        Ok(())
    }
}
