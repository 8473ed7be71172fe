//! [`Backlogs`]: a backlog for each server, so that one that does not answer delays no other.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_store::{Instant, Link};

use super::backlog::{Backlog, JobAttempt};

/// At least this many first tries at each server may be under way, however many servers there are.
const LEAST: usize = 16;

/// Jobs that are not done, by the links that they go over.
#[derive(Debug)]
pub(super) struct Backlogs<T> {
    links: BTreeMap<Link, Backlog<T>>,
    /// How many may be tried for the first time at once. The links share them.
    first_tries: usize,
}

impl<T> Backlogs<T> {
    pub(super) fn new(first_tries: usize) -> Self {
        Self {
            links: BTreeMap::new(),
            first_tries,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.values().all(Backlog::is_empty)
    }

    pub(super) fn push(&mut self, now: Instant, link: Link, job: T) {
        self.of(link).push(now, job);
    }

    /// The next try that may start now.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Link, JobAttempt<T>)> {
        let share = self.first_tries / self.links.len().max(1);
        let share = share.max(LEAST.min(self.first_tries));
        let mut links = self.links.iter_mut();
        links.find_map(|(link, backlog)| Some((*link, backlog.next(now, share)?)))
    }

    /// A try has ended. Either it was in vain and is repeated, then and over that link, or nothing
    /// is left to do.
    pub(super) fn finish(&mut self, link: Link, tries: u32, again: Option<(Instant, Link, T)>) {
        let is_done = again.is_none();
        if let Some(backlog) = self.links.get_mut(&link) {
            backlog.finish(tries, is_done);
        }
        if let Some((at, link, job)) = again {
            self.of(link).repeat(tries, at, job);
        }
        if self.links.get(&link).is_some_and(Backlog::is_idle) {
            self.links.remove(&link);
        }
    }

    /// Jobs that came before `since` and were not tried yet; each once.
    pub(super) fn overdue(&mut self, since: Instant) -> impl Iterator<Item = &mut T> {
        let all = self.links.values_mut();
        all.flat_map(move |backlog| backlog.overdue(since))
    }

    /// When something changes by time alone. A job that was not tried within `patience` is overdue.
    pub(super) fn wake_at(&self, patience: Duration) -> Option<Instant> {
        let all = self.links.values();
        all.filter_map(|backlog| backlog.wake_at(patience)).min()
    }

    fn of(&mut self, link: Link) -> &mut Backlog<T> {
        self.links.entry(link).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(backlogs: &mut Backlogs<u64>, now: Instant) -> Vec<u64> {
        let all = std::iter::from_fn(|| backlogs.next(now));
        all.map(|(_, attempt)| attempt.job).collect()
    }

    #[test]
    fn jobs_over_one_link_do_not_wait_for_those_over_another() {
        let now = Instant::now();
        let mut backlogs = Backlogs::new(256);
        (0..1000).for_each(|job| backlogs.push(now, Link(1), job));
        assert_eq!(start(&mut backlogs, now).len(), 256);
        (1000..2000).for_each(|job| backlogs.push(now, Link(2), job));
        assert!(start(&mut backlogs, now).into_iter().eq(1000..1128));
        // Each has its half from now on.
        (0..129).for_each(|_| backlogs.finish(Link(1), 0, None));
        assert_eq!(start(&mut backlogs, now), [256]);
    }

    #[test]
    fn many_links_share_what_may_be_under_way() {
        let now = Instant::now();
        let mut backlogs = Backlogs::new(256);
        for link in 0..100 {
            (0..50).for_each(|job| backlogs.push(now, Link(link), job));
        }
        assert_eq!(start(&mut backlogs, now).len(), 100 * LEAST);
    }

    #[test]
    fn a_link_over_which_nothing_is_left_is_forgotten() {
        let now = Instant::now();
        let mut backlogs = Backlogs::new(256);
        backlogs.push(now, Link(1), 1);
        assert_eq!(start(&mut backlogs, now), [1]);
        assert!(backlogs.is_empty());
        // Its repeat goes over another connection.
        backlogs.finish(Link(1), 0, Some((now, Link(2), 1)));
        assert!(backlogs.links.keys().eq([&Link(2)]));
        assert_eq!(start(&mut backlogs, now), [1]);
        backlogs.finish(Link(2), 1, None);
        assert!(backlogs.links.is_empty());
    }
}
