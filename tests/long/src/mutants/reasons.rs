//! Why no test can be expected to find some of the mutants.

use std::collections::BTreeMap;

use super::Mutant;

/// A mutant of which that is known: its file, how its line begins, how the change begins, which of
/// the mutants it is of which all that is true and how many there are, and why it survives.
pub(crate) type Known = (
    &'static str,
    &'static str,
    &'static str,
    [usize; 2],
    &'static str,
);

/// The reasons, by the numbers of the mutants.
#[derive(Debug)]
pub(crate) struct Reasons(BTreeMap<usize, &'static str>);

impl Reasons {
    /// Looks for the mutants that are known among all mutants.
    ///
    /// # Errors
    ///
    /// If there are not as many of a description as it says: the code has changed.
    pub(crate) fn of(known: &[Known], all: &[Mutant]) -> Result<Self, String> {
        let (mut reasons, mut wrong) = (BTreeMap::new(), Vec::new());
        for (file, line, change, [which, of], why) in known {
            let is = |mutant: &&Mutant| {
                mutant.file == *file
                    && mutant.old.starts_with(line)
                    && mutant.what.starts_with(change)
            };
            let alike: Vec<&Mutant> = all.iter().filter(is).collect();
            let meant = which.checked_sub(1).and_then(|at| alike.get(at));
            match meant.filter(|_| alike.len() == *of) {
                None => wrong.push(format!(
                    "{file}: of `{change}` at `{line}` there are {}, and number {which} of {of} is \
                     said to survive",
                    alike.len()
                )),
                Some(meant) => {
                    if reasons.insert(meant.number, *why).is_some() {
                        wrong.push(format!("{meant}: its survival is explained twice"));
                    }
                }
            }
        }
        match wrong.is_empty() {
            true => Ok(Self(reasons)),
            false => Err(wrong.join("\n")),
        }
    }

    pub(crate) fn why(&self, mutant: &Mutant) -> Option<&'static str> {
        self.0.get(&mutant.number).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(number: usize, what: &str) -> Mutant {
        Mutant {
            number,
            file: "one.rs".to_owned(),
            line: 1,
            old: "if a < b || b < c {".to_owned(),
            what: what.to_owned(),
        }
    }

    #[test]
    fn a_reason_is_for_one_mutant_and_no_other_that_looks_alike() {
        let all = [
            mutant(4, "< → <="),
            mutant(5, "|| → &&"),
            mutant(6, "< → <="),
        ];
        let second = ("one.rs", "if a < b", "< → <=", [2, 2], "why");
        let whys =
            Reasons::of(&[second], &all).map(|reasons| all.each_ref().map(|one| reasons.why(one)));
        assert_eq!(whys, Ok([None, None, Some("why")]));
    }

    #[test]
    fn a_reason_that_no_longer_fits_the_code_is_refused() {
        let all = [mutant(4, "< → <="), mutant(6, "< → <=")];
        for (which, of) in [(1, 1), (0, 2), (3, 2), (1, 3)] {
            let known = ("one.rs", "if a < b", "< → <=", [which, of], "why");
            assert!(Reasons::of(&[known], &all).is_err(), "{which} of {of}");
        }
        let known = ("one.rs", "if a < b", "< → <=", [1, 2], "why");
        assert!(Reasons::of(&[known, known], &all).is_err());
    }
}
