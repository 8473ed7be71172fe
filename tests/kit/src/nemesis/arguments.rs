//! A worker's command line.

use super::mistake::Mistake;

/// The arguments with which a worker is started, also one of an earlier commit
/// (`tests/long/run beside`).
#[derive(Clone, Debug)]
pub(super) struct Arguments {
    pub(super) url: String,
    pub(super) resource: String,
    pub(super) history: String,
    pub(super) process: u32,
    pub(super) tasks: usize,
    pub(super) seed: u64,
    pub(super) mistake: Option<Mistake>,
}

impl Arguments {
    pub(super) fn words(&self) -> Vec<String> {
        let mistake = self.mistake.map_or("-".to_owned(), |m| format!("{m:?}"));
        let (process, tasks, seed) = (self.process, self.tasks, self.seed);
        vec![
            "worker".to_owned(),
            self.url.clone(),
            self.resource.clone(),
            self.history.clone(),
            process.to_string(),
            tasks.to_string(),
            seed.to_string(),
            mistake,
        ]
    }

    pub(super) fn parse(words: &[String]) -> Option<Self> {
        let [url, resource, history, process, tasks, seed, mistake] = words else {
            return None;
        };
        Some(Self {
            url: url.clone(),
            resource: resource.clone(),
            history: history.clone(),
            process: process.parse().ok()?,
            tasks: tasks.parse().ok()?,
            seed: seed.parse().ok()?,
            mistake: Mistake::named(mistake),
        })
    }
}
