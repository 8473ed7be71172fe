//! The command line, as every test program has it.

use libtest_mimic::{Arguments, Trial};

/// Options that have a value in the next word.
const WITH_VALUE: [&str; 6] = [
    "--test-threads",
    "--skip",
    "--logfile",
    "--format",
    "--color",
    "-Z",
];

/// The options of this run.
pub(super) struct Chosen {
    pub(super) arguments: Arguments,
    /// libtest accepts any number of filters, and the harness one.
    filters: Vec<String>,
}

pub(super) fn read() -> Chosen {
    let mut words = std::env::args();
    let (mut options, mut filters) = (Vec::from_iter(words.next()), Vec::new());
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            filters.push(word);
            continue;
        }
        let has_value = WITH_VALUE.contains(&word.as_str());
        options.push(word);
        if has_value {
            options.extend(words.next());
        }
    }
    let arguments = Arguments::from_iter(options);
    Chosen { arguments, filters }
}

impl Chosen {
    /// Whether all trials are to run.
    pub(super) fn is_everything(&self) -> bool {
        self.filters.is_empty() && !self.arguments.list
    }

    /// Whether the filters, if there are any, include this trial.
    pub(super) fn has(&self, trial: &Trial) -> bool {
        let lets_through = |filter: &String| {
            if self.arguments.exact {
                trial.name() == filter
            } else {
                trial.name().contains(filter)
            }
        };
        self.filters.is_empty() || self.filters.iter().any(lets_through)
    }
}
