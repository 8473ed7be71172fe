//! Releases and undos in the background: `engine/background/cleanup/mod.rs`.

use super::client::{Client, Phase, Unknown};
use super::store::{Reply, Verb};
use super::{Mistake, Queue};

/// A release or an undo in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Job {
    pub(super) attempt: u8,
    pub(super) verb: Verb,
    pub(super) unknown: Option<Unknown>,
    /// Later requests of this process wait for the first answer to this job.
    pub(super) first: bool,
    /// `Some` while a command is under way: whether the unknown acquires counted as lost when it
    /// was sent.
    pub(super) sent: Option<bool>,
}

impl Queue {
    /// Ends a hold or an attempt in the background, by a release or an undo.
    pub(super) fn end(&self, client: &mut Client, verb: Verb, first: bool) {
        client.stop_waiting_for(client.attempt, |verb| verb == Verb::Renew);
        (client.phase, client.may_be_stored, client.confirmed) = (Phase::Idle, false, 0);
        client.jobs.push(Job {
            attempt: client.attempt,
            verb,
            unknown: client.unknown.take(),
            first,
            sent: None,
        });
        if client.linked {
            self.work(client, client.jobs.len() - 1);
        }
    }

    /// Sends the command of a job.
    pub(super) fn work(&self, client: &mut Client, job: usize) {
        let job = &mut client.jobs[job];
        job.sent = Some(job.unknown.is_none_or(|unknown| unknown.left == 0));
        let (attempt, verb) = (job.attempt, job.verb);
        client.send(attempt, verb);
    }

    pub(super) fn forget_job(&self, client: &mut Client, job: usize) {
        let job = &mut client.jobs[job];
        job.sent = None;
        let attempt = job.attempt;
        client.stop_waiting_for(attempt, |verb| {
            matches!(verb, Verb::Release | Verb::Abandon)
        });
    }

    /// The answer to a job. The job is done once everything unknown is surely undone
    /// (`LateAcquire::is_undone`).
    pub(super) fn hear_ended(&self, client: &mut Client, attempt: u8, verb: Verb, reply: Reply) {
        let link = client.link;
        let Some(at) = client
            .jobs
            .iter()
            .position(|job| job.attempt == attempt && job.verb == verb)
        else {
            return;
        };
        let job = &mut client.jobs[at];
        let sure =
            job.sent == Some(true) || job.unknown.is_some_and(|unknown| unknown.link == link);
        // A release that finds no hold leaves a place in the queue as it is.
        let tells = verb == Verb::Abandon
            || reply == Reply::Done { held: true }
            || self.makes(Mistake::ReleaseCountsAsUndo);
        if job.unknown.is_none() || sure && tells || self.makes(Mistake::UndoneOnlyOnce) {
            client.jobs.remove(at);
        } else {
            (job.verb, job.sent, job.first) = (Verb::Abandon, None, false);
        }
    }
}
