//! A backlog: the jobs that end something in the background, and when each may be tried.
//!
//! However many there are, few commands are under way. A store that does not answer is asked ever
//! less. One client's backlog must not keep the store from its other clients.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lock_store::Instant;

/// The limit of a backlog's repeats under way at once. All servers share as many first tries of
/// undos.
pub(super) const AT_ONCE: usize = 32;

/// If more than these wait for a repeat, repeats keep a distance.
const FEW: usize = AT_ONCE;

/// The distance between two repeats. One more follows each job that is done. So a store that
/// answers again soon gets them all.
const DISTANCE: Duration = Duration::from_millis(5);

/// Jobs that are not done.
#[derive(Debug)]
pub(super) struct Backlog<T> {
    /// Not tried yet, in the order in which they came.
    untried: VecDeque<(Instant, T)>,
    /// How many at the front of them are overdue.
    overdue: usize,
    /// To be tried again at these times, each with the number of its tries.
    again: BTreeMap<(Instant, u64), (u32, T)>,
    /// Tells jobs of the same time apart.
    number: u64,
    untried_under_way: usize,
    again_under_way: usize,
    /// If more than a few wait, no repeat starts before.
    distance_until: Option<Instant>,
}

/// One try of a job.
#[derive(Debug)]
pub(super) struct JobAttempt<T> {
    /// How often it was tried before.
    pub(super) tries: u32,
    pub(super) job: T,
}

impl<T> Default for Backlog<T> {
    fn default() -> Self {
        Self {
            untried: VecDeque::new(),
            overdue: 0,
            again: BTreeMap::new(),
            number: 0,
            untried_under_way: 0,
            again_under_way: 0,
            distance_until: None,
        }
    }
}

impl<T> Backlog<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.untried.is_empty() && self.again.is_empty()
    }

    /// Nothing is left to do, or under way.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.untried_under_way == 0 && self.again_under_way == 0
    }

    pub(super) fn push(&mut self, now: Instant, job: T) {
        self.untried.push_back((now, job));
    }

    /// The next try that may start now. At most `first_tries` first tries are under way at once.
    pub(super) fn next(&mut self, now: Instant, first_tries: usize) -> Option<JobAttempt<T>> {
        if self.untried_under_way < first_tries
            && let Some((_, job)) = self.untried.pop_front()
        {
            self.overdue = self.overdue.saturating_sub(1);
            self.untried_under_way += 1;
            return Some(JobAttempt { tries: 0, job });
        }
        if self.next_repeat_at()? > now {
            return None;
        }
        let many = self.again.len() > FEW;
        let (_, (tries, job)) = self.again.pop_first()?;
        self.distance_until = many.then_some(now + DISTANCE);
        self.again_under_way += 1;
        Some(JobAttempt { tries, job })
    }

    /// A try has ended: nothing is left to do, or it was in vain.
    pub(super) fn finish(&mut self, tries: u32, is_done: bool) {
        let under_way = match tries {
            0 => &mut self.untried_under_way,
            _ => &mut self.again_under_way,
        };
        *under_way = under_way.saturating_sub(1);
        if is_done {
            self.distance_until = None;
        }
    }

    /// A try was in vain, as were `tries` before it: repeats it at `at`.
    pub(super) fn repeat(&mut self, tries: u32, at: Instant, job: T) {
        self.number += 1;
        self.again
            .insert((at, self.number), (tries.saturating_add(1), job));
    }

    /// Jobs that came before `since` and were not tried yet; each once.
    pub(super) fn overdue(&mut self, since: Instant) -> impl Iterator<Item = &mut T> {
        let from = self.overdue;
        let waiting = self.untried.iter().skip(from);
        let late = waiting.take_while(|(came, _)| *came <= since).count();
        self.overdue += late;
        let late = self.untried.iter_mut().skip(from).take(late);
        late.map(|(_, job)| job)
    }

    /// When something changes by time alone. A job that was not tried within `patience` is overdue.
    pub(super) fn wake_at(&self, patience: Duration) -> Option<Instant> {
        let overdue = self.untried.get(self.overdue);
        let overdue = overdue.map(|(came, _)| *came + patience);
        self.next_repeat_at().into_iter().chain(overdue).min()
    }

    /// When the next repeat may start, if it need not wait for the end of another.
    fn next_repeat_at(&self) -> Option<Instant> {
        let ((at, _), _) = self.again.first_key_value()?;
        let distance = self.distance_until.filter(|_| self.again.len() > FEW);
        (self.again_under_way < AT_ONCE).then(|| distance.map_or(*at, |until| until.max(*at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const ALL: usize = usize::MAX;

    fn start<T>(backlog: &mut Backlog<T>, now: Instant, first: usize) -> Vec<JobAttempt<T>> {
        std::iter::from_fn(|| backlog.next(now, first)).collect()
    }

    fn fail<T>(backlog: &mut Backlog<T>, tries: u32, at: Instant, job: T) {
        backlog.finish(tries, false);
        backlog.repeat(tries, at, job);
    }

    #[test]
    fn first_tries_are_bounded_and_go_in_the_order_of_arrival() {
        let now = Instant::now();
        let (mut bounded, mut unbounded) = (Backlog::default(), Backlog::default());
        for job in 0..100 {
            bounded.push(now, job);
            unbounded.push(now, job);
        }
        let under_way = start(&mut bounded, now, AT_ONCE);
        assert!(under_way.iter().map(|one| one.job).eq(0..32));
        assert_eq!(start(&mut unbounded, now, ALL).len(), 100);
        bounded.finish(0, true);
        assert!(
            start(&mut bounded, now, AT_ONCE)
                .iter()
                .map(|one| one.job)
                .eq([32])
        );
        assert!(unbounded.is_empty() && !bounded.is_empty());
    }

    #[test]
    fn few_repeats_go_when_they_are_due_and_many_keep_a_distance() {
        let now = Instant::now();
        for (jobs, at_once) in [(20, 20), (33, 32), (1000, 1)] {
            let mut backlog = Backlog::default();
            (0..jobs).for_each(|job| backlog.push(now, job));
            for attempt in start(&mut backlog, now, ALL) {
                fail(&mut backlog, 0, now + MS, attempt.job);
            }
            assert!(backlog.next(now, ALL).is_none());
            assert_eq!(backlog.wake_at(MS), Some(now + MS));
            let under_way = start(&mut backlog, now + MS, ALL);
            assert_eq!(under_way.len(), at_once, "of {jobs}");
        }
    }

    #[test]
    fn one_more_repeat_goes_behind_each_job_that_is_done() {
        let now = Instant::now();
        let mut backlog = Backlog::default();
        (0..1000).for_each(|job| backlog.push(now, job));
        for attempt in start(&mut backlog, now, ALL) {
            fail(&mut backlog, 0, now, attempt.job);
        }
        assert_eq!(start(&mut backlog, now, ALL).len(), 1);
        backlog.finish(1, true);
        assert_eq!(start(&mut backlog, now, ALL).len(), 1);
        fail(&mut backlog, 1, now, 7);
        assert!(start(&mut backlog, now, ALL).is_empty(), "it failed");
        assert_eq!(backlog.wake_at(MS), Some(now + DISTANCE));
        assert_eq!(start(&mut backlog, now + DISTANCE, ALL).len(), 1);
    }

    #[test]
    fn a_job_is_overdue_once_and_only_while_it_was_not_tried() {
        let now = Instant::now();
        let mut backlog = Backlog::default();
        (0..3).for_each(|job| backlog.push(now + job * MS, job));
        assert_eq!(start(&mut backlog, now, 1).len(), 1);
        assert_eq!(backlog.wake_at(10 * MS), Some(now + 11 * MS));
        let overdue: Vec<u32> = backlog.overdue(now + MS).map(|job| *job).collect();
        assert_eq!(overdue, [1]);
        assert_eq!(backlog.overdue(now + MS).count(), 0);
        assert_eq!(backlog.wake_at(10 * MS), Some(now + 12 * MS));
        backlog.finish(0, true);
        assert_eq!(start(&mut backlog, now, 1).len(), 1);
        assert_eq!(backlog.overdue(now + 2 * MS).count(), 1);
    }

    #[test]
    fn it_wakes_for_whatever_comes_first() {
        let now = Instant::now();
        for (repeat, patience, wakes) in [(5, 9, 5), (9, 5, 5)] {
            let mut backlog = Backlog::default();
            backlog.push(now, 0);
            assert_eq!(start(&mut backlog, now, 1).len(), 1);
            fail(&mut backlog, 0, now + repeat * MS, 0);
            backlog.push(now, 1);
            assert_eq!(start(&mut backlog, now, 1).len(), 1);
            backlog.push(now, 2);
            assert_eq!(backlog.wake_at(patience * MS), Some(now + wakes * MS));
        }
    }

    #[test]
    fn no_repeat_keeps_a_distance_from_one_of_a_few() {
        let now = Instant::now();
        for (jobs, goes) in [(32, true), (33, false)] {
            let mut backlog = Backlog::default();
            (0..jobs + 2).for_each(|job| backlog.push(now, job));
            let mut tried = start(&mut backlog, now, ALL);
            let late = tried.split_off(jobs);
            for attempt in tried {
                fail(&mut backlog, 0, now, attempt.job);
            }
            assert!(backlog.next(now, ALL).is_some());
            // With these, many wait.
            for attempt in late {
                fail(&mut backlog, 0, now, attempt.job);
            }
            assert_eq!(backlog.next(now, ALL).is_some(), goes, "of {jobs}");
        }
    }
}
