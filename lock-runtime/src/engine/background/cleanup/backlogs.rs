//! [`Backlogs`]: a backlog for each server, so that one that does not answer delays no other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_store::{Instant, Link};

use super::backlog::{Backlog, JobAttempt};

/// At least this many first tries at each server may be under way, however many servers there are.
const LEAST: usize = 16;

/// The links that a job goes over: one, unless it concerns several servers.
pub(super) type Way = Arc<[Link]>;

/// Jobs that are not done, by the links that they go over.
#[derive(Debug)]
pub(super) struct Backlogs<T> {
    ways: BTreeMap<Way, Backlog<T>>,
    /// How many may be tried for the first time at once. The ways share them.
    first_tries: usize,
}

impl<T> Backlogs<T> {
    pub(super) fn new(first_tries: usize) -> Self {
        Self {
            ways: BTreeMap::new(),
            first_tries,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ways.values().all(Backlog::is_empty)
    }

    pub(super) fn push(&mut self, now: Instant, way: Way, job: T) {
        self.of(way).push(now, job);
    }

    /// The next try that may start now.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Way, JobAttempt<T>)> {
        let share = self.first_tries / self.ways.len().max(1);
        let share = share.max(LEAST.min(self.first_tries));
        let mut ways = self.ways.iter_mut();
        ways.find_map(|(way, backlog)| {
            let attempt = backlog.next(now, share)?;
            Some((Arc::clone(way), attempt))
        })
    }

    /// A try has ended. Either it was in vain and is repeated, then and over that way, or nothing
    /// is left to do.
    pub(super) fn finish(&mut self, way: &Way, tries: u32, again: Option<(Instant, Way, T)>) {
        let is_done = again.is_none();
        if let Some(backlog) = self.ways.get_mut(way) {
            backlog.finish(tries, is_done);
        }
        if let Some((at, way, job)) = again {
            self.of(way).repeat(tries, at, job);
        }
        if self.ways.get(way).is_some_and(Backlog::is_idle) {
            self.ways.remove(way);
        }
    }

    /// Jobs that came before `since` and were not tried yet; each once.
    pub(super) fn overdue(&mut self, since: Instant) -> impl Iterator<Item = &mut T> {
        let all = self.ways.values_mut();
        all.flat_map(move |backlog| backlog.overdue(since))
    }

    /// When something changes by time alone. A job that was not tried within `patience` is overdue.
    pub(super) fn wake_at(&self, patience: Duration) -> Option<Instant> {
        let all = self.ways.values();
        all.filter_map(|backlog| backlog.wake_at(patience)).min()
    }

    fn of(&mut self, way: Way) -> &mut Backlog<T> {
        self.ways.entry(way).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(link: u64) -> Way {
        [Link(link)].into()
    }

    fn start(backlogs: &mut Backlogs<u64>, now: Instant) -> Vec<u64> {
        let all = std::iter::from_fn(|| backlogs.next(now));
        all.map(|(_, attempt)| attempt.job).collect()
    }

    #[test]
    fn jobs_over_one_link_do_not_wait_for_those_over_another() {
        let now = Instant::now();
        let mut backlogs = Backlogs::new(256);
        (0..1000).for_each(|job| backlogs.push(now, way(1), job));
        assert_eq!(start(&mut backlogs, now).len(), 256);
        (1000..2000).for_each(|job| backlogs.push(now, way(2), job));
        assert!(start(&mut backlogs, now).into_iter().eq(1000..1128));
        // Each has its half from now on.
        (0..129).for_each(|_| backlogs.finish(&way(1), 0, None));
        assert_eq!(start(&mut backlogs, now), [256]);
    }

    #[test]
    fn many_links_share_what_may_be_under_way() {
        let now = Instant::now();
        let mut backlogs = Backlogs::new(256);
        for link in 0..100 {
            (0..50).for_each(|job| backlogs.push(now, way(link), job));
        }
        assert_eq!(start(&mut backlogs, now).len(), 100 * LEAST);
    }

    #[test]
    fn a_link_over_which_nothing_is_left_is_forgotten() {
        let now = Instant::now();
        let mut backlogs = Backlogs::new(256);
        backlogs.push(now, way(1), 1);
        assert_eq!(start(&mut backlogs, now), [1]);
        assert!(backlogs.is_empty());
        // Its repeat goes over another connection.
        backlogs.finish(&way(1), 0, Some((now, way(2), 1)));
        assert!(backlogs.ways.keys().eq([&way(2)]));
        assert_eq!(start(&mut backlogs, now), [1]);
        backlogs.finish(&way(2), 1, None);
        assert!(backlogs.ways.is_empty());
    }
}
