//! [`RequestQueue`]: what is not written yet, and who awaits which reply.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use lock_store::Instant;
use redis::{RedisError, Value};

use super::command::{Command, CommandOrder};
use super::merging::{LARGEST_KEPT_BUFFER, OpenSegment};
use super::socket::Writer;
use super::time_limits::{Deadline, Limits, Look, Outlook};

/// At least this many looks at the requests in a command's time.
const LOOKS: u32 = 8;

pub(super) type ReplyResult = Result<Value, RedisError>;

/// A connection's state, under its mutex.
#[derive(Debug)]
pub(super) struct RequestQueue {
    /// What is not written yet.
    out: Vec<u8>,
    /// What comes behind that, in an order that is still free.
    segment: OpenSegment,
    /// The keys of several locks lie apart, behind a proxy: a merged call was refused.
    is_divided: bool,
    /// How many requests are not written yet.
    pub(super) unsent: usize,
    /// The next buffer.
    spare: Vec<u8>,
    /// Where callers write. Without one, the connection's task writes.
    pub(super) writer: Option<Arc<Writer>>,
    /// Somebody writes now, and will look for more.
    pub(super) is_writing: bool,
    /// The socket takes no more. The task waits until it does.
    pub(super) is_full: bool,
    /// The task was woken to write.
    pub(super) is_task_woken: bool,
    /// The thread whose ready tasks add their requests before one of them writes.
    pub(super) gathers: Option<usize>,
    /// Bytes over the whole life of the connection.
    queued: u64,
    written: u64,
    /// How often something was read.
    pub(super) reads: u64,
    /// In the order of their commands.
    awaited: VecDeque<Awaited>,
    requests: Vec<UnderWay>,
    /// The numbers of requests that are not in use.
    free: Vec<usize>,
    /// Why it ended.
    ended: Option<RedisError>,
    /// When the requests are looked at next; never if there are none.
    pub(super) next_look: Option<Instant>,
    /// There were requests since the last look.
    was_used: bool,
    /// Another connection is there in its place.
    is_replaced: bool,
    command_timeout: Duration,
}

/// What the server is going to say.
#[derive(Debug)]
struct Awaited {
    by: Awaiting,
    /// That a subscription was made or ended is told in a message: this word, with this channel.
    message: Option<Box<(&'static str, String)>>,
    /// It is the `PING` behind a `SUNSUBSCRIBE`.
    is_behind_end: bool,
}

impl Awaited {
    fn new(by: Awaiting) -> Self {
        Self {
            by,
            message: None,
            is_behind_end: false,
        }
    }
}

/// Who awaits a reply.
#[derive(Debug)]
enum Awaiting {
    Nobody,
    One(usize),
    /// Each awaits one element of a list.
    Several(Vec<usize>),
}

/// A request that was sent.
#[derive(Debug, Default)]
struct UnderWay {
    outcome: Option<ReplyResult>,
    waker: Option<Waker>,
    deadline: Option<Deadline>,
    /// Where its bytes end.
    end: u64,
    /// Its sender has still to take the outcome.
    has_sender: bool,
    /// Its reply is still to come.
    is_awaited: bool,
}

/// What a look at the requests has found.
#[derive(Debug, Default)]
pub(super) struct Overdue {
    pub(super) doubts: bool,
    pub(super) wakers: Vec<Waker>,
}

impl RequestQueue {
    pub(super) fn new(writer: Option<Writer>, command_timeout: Duration) -> Self {
        Self {
            out: Vec::new(),
            segment: OpenSegment::default(),
            is_divided: false,
            unsent: 0,
            spare: Vec::new(),
            writer: writer.map(Arc::new),
            is_writing: false,
            is_full: false,
            is_task_woken: false,
            gathers: None,
            queued: 0,
            written: 0,
            reads: 0,
            awaited: VecDeque::new(),
            requests: Vec::new(),
            free: Vec::new(),
            ended: None,
            next_look: None,
            was_used: false,
            is_replaced: false,
            command_timeout,
        }
    }

    /// The number of commands whose replies are still to come.
    pub(super) fn under_way(&self) -> usize {
        self.awaited.len() + self.segment.len()
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.out.is_empty() || self.segment.len() > 0
    }

    pub(super) fn ended(&self) -> Option<&RedisError> {
        self.ended.as_ref()
    }

    /// Adds a command. Returns its request's number.
    pub(super) fn add(
        &mut self,
        command: &Command,
        message: Option<(&'static str, String)>,
        limits: Option<&Limits>,
    ) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.requests.push(UnderWay::default());
            self.requests.len() - 1
        });
        self.unsent += 1;
        match &command.order {
            CommandOrder::Kept => self.add_awaited(command, Awaiting::One(number), message),
            CommandOrder::Free(owner, role) => {
                if self.is_divided || !self.segment.fits(command, *owner, role) {
                    self.close_segment();
                }
                self.segment.add(command, *owner, role, number);
            }
        }
        let request = &mut self.requests[number];
        request.deadline = limits.copied().map(Deadline::new);
        // In a segment, it is known when that is closed.
        request.end = match command.order {
            CommandOrder::Kept => self.queued,
            CommandOrder::Free(..) => u64::MAX,
        };
        (request.has_sender, request.is_awaited) = (true, true);
        if self.is_replaced && limits.is_some_and(|limits| limits.is_repeated) {
            request.outcome = Some(Err(not_answered()));
        }
        number
    }

    /// Settles the order of what is in the segment.
    fn close_segment(&mut self) {
        let before = self.out.len();
        for call in [&self.segment.releases, &self.segment.requests_by_script] {
            let by = match call.requests[..] {
                [] => continue,
                [one] => Awaiting::One(one),
                _ => Awaiting::Several(call.requests.clone()),
            };
            call.write(&mut self.out);
            self.awaited.push_back(Awaited::new(by));
        }
        self.out.extend_from_slice(&self.segment.singles);
        let singles = self.segment.single_requests.iter();
        let singles = singles.map(|number| Awaited::new(Awaiting::One(*number)));
        self.awaited.extend(singles);
        self.queued += (self.out.len() - before) as u64;
        for number in self.segment.requests() {
            self.requests[number].end = self.queued;
        }
        self.segment.clear();
    }

    /// Adds a command whose reply nobody awaits.
    pub(super) fn add_unawaited(&mut self, command: &Command) {
        self.add_awaited(command, Awaiting::Nobody, None);
    }

    /// Adds a `PING` behind a `SUNSUBSCRIBE`. A node that loses a slot first ends the subscription
    /// itself, with the message that also answers a `SUNSUBSCRIBE`, and then refuses the
    /// `SUNSUBSCRIBE` as `MOVED`, or as `CLUSTERDOWN` if no node has the slot. No `PING` is refused
    /// so: where the `PING` is to be answered, these words are about the `SUNSUBSCRIBE`.
    pub(super) fn add_ping_behind_end(&mut self) {
        self.add_unawaited(&Command::new("PING"));
        if let Some(last) = self.awaited.back_mut() {
            last.is_behind_end = true;
        }
    }

    fn add_awaited(
        &mut self,
        command: &Command,
        by: Awaiting,
        message: Option<(&'static str, String)>,
    ) {
        self.close_segment();
        let before = self.out.len();
        command.write(&mut self.out);
        self.queued += (self.out.len() - before) as u64;
        self.awaited.push_back(Awaited {
            message: message.map(Box::new),
            ..Awaited::new(by)
        });
    }

    /// Whether the task has to be woken, so that it looks in time at a request that was added.
    pub(super) fn hurry_look(&mut self, limits: &Limits) -> bool {
        self.was_used = true;
        let first = limits.first();
        let is_soon = self.next_look.is_some_and(|next| next <= first);
        if !is_soon {
            self.next_look = Some(first);
        }
        !is_soon
    }

    /// The outcome of a request, or who is woken when it is there.
    pub(super) fn poll(&mut self, number: usize, waker: &Waker) -> Option<ReplyResult> {
        let request = &mut self.requests[number];
        if let Some(outcome) = request.outcome.take() {
            self.forget(number);
            return Some(outcome);
        }
        if let Some(error) = &self.ended {
            let error = error.clone();
            self.forget(number);
            return Some(Err(error));
        }
        match &mut request.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        None
    }

    /// Its sender does not wait any more. A reply that is still to come is taken all the same.
    pub(super) fn forget(&mut self, number: usize) {
        let request = &mut self.requests[number];
        request.has_sender = false;
        // Its number may be another request's next.
        (request.waker, request.deadline, request.outcome) = (None, None, None);
        if !request.is_awaited {
            self.free.push(number);
        }
    }

    /// Gives a reply to the first who awaits one. It comes back if nobody does, or if it may be
    /// another's.
    pub(super) fn deliver(&mut self, reply: Value, wakers: &mut Vec<Waker>) -> Result<(), Value> {
        let Some(first) = self.awaited.front() else {
            return Err(reply);
        };
        if let (true, Value::ServerError(error)) = (first.is_behind_end, &reply) {
            // Of the `SUNSUBSCRIBE`.
            return match error.code() {
                "MOVED" | "CLUSTERDOWN" => Ok(()),
                _ => Err(reply),
            };
        }
        let is_subscription = first.message.is_some();
        if is_subscription && !matches!(reply, Value::ServerError(_)) {
            return Err(reply);
        }
        let Some(Awaited { by, .. }) = self.awaited.pop_front() else {
            return Err(reply);
        };
        if let (true, Some(next)) = (is_subscription, self.awaited.front_mut()) {
            // It was refused: no other refusal is of it.
            next.is_behind_end = false;
        }
        match (by, reply) {
            (Awaiting::Nobody, _) => {}
            (Awaiting::One(number), reply) => self.deliver_to(number, Ok(reply), wakers),
            (Awaiting::Several(numbers), Value::Array(replies))
                if replies.len() == numbers.len() =>
            {
                for (number, reply) in numbers.into_iter().zip(replies) {
                    self.deliver_to(number, Ok(reply), wakers);
                }
            }
            (Awaiting::Several(numbers), Value::ServerError(error)) => {
                if error.code() == "CROSSSLOT" && !self.is_divided {
                    tracing::debug!("a proxy divides keys: releases and requests go one by one");
                    self.is_divided = true;
                }
                let reply = Value::ServerError(error);
                for number in numbers {
                    self.deliver_to(number, Ok(reply.clone()), wakers);
                }
            }
            // Whose part is whose is not known.
            (Awaiting::Several(_), reply) => return Err(reply),
        }
        Ok(())
    }

    /// Takes a message for the reply to a command about a subscription. False if it is none.
    pub(super) fn deliver_message(
        &mut self,
        word: &[u8],
        channel: &[u8],
        wakers: &mut Vec<Waker>,
    ) -> bool {
        let is_it = |message: &(&str, String)| {
            message.0.as_bytes() == word && message.1.as_bytes() == channel
        };
        let first = self.awaited.front();
        let message = first.and_then(|first| first.message.as_deref());
        if !message.is_some_and(is_it) {
            return false;
        }
        if let Some(Awaiting::One(number)) = self.awaited.pop_front().map(|first| first.by) {
            self.deliver_to(number, Ok(Value::Nil), wakers);
        }
        true
    }

    fn deliver_to(&mut self, number: usize, outcome: ReplyResult, wakers: &mut Vec<Waker>) {
        let request = &mut self.requests[number];
        request.is_awaited = false;
        if !request.has_sender {
            self.free.push(number);
        } else if request.outcome.is_none() {
            request.outcome = Some(outcome);
            request.deadline = None;
            wakers.extend(request.waker.take());
        }
    }

    /// What is to be written now, if this caller writes.
    pub(super) fn take_unsent(&mut self) -> Option<Vec<u8>> {
        self.gathers = None;
        if self.is_writing || self.is_full || self.ended.is_some() {
            return None;
        }
        self.close_segment();
        if self.out.is_empty() {
            return None;
        }
        self.is_writing = true;
        self.unsent = 0;
        let spare = std::mem::take(&mut self.spare);
        Some(std::mem::replace(&mut self.out, spare))
    }

    /// `written` of these bytes were written. True if all were.
    pub(super) fn put_back(&mut self, mut taken: Vec<u8>, written: usize) -> bool {
        self.is_writing = false;
        self.written += written as u64;
        let is_all = written == taken.len();
        if is_all {
            taken.clear();
            if taken.capacity() <= LARGEST_KEPT_BUFFER {
                self.spare = taken;
            }
        } else {
            taken.drain(..written);
            taken.append(&mut self.out);
            self.out = taken;
        }
        is_all
    }

    /// Ends the requests whose time is over.
    pub(super) fn check_deadlines(&mut self, now: Instant, is_slow: bool) -> Overdue {
        let mut overdue = Overdue::default();
        let look = Look {
            now,
            reads: self.reads,
            is_slow,
            command_timeout: self.command_timeout,
        };
        let pause = self.command_timeout / LOOKS;
        // A connection that is in use is looked at again, so that nobody has to wake the task.
        let mut next = std::mem::take(&mut self.was_used).then_some(now + pause);
        for request in &mut self.requests {
            let Some(deadline) = &mut request.deadline else {
                continue;
            };
            match deadline.look(look, request.end <= self.written) {
                Outlook::Waits { until, doubts } => {
                    overdue.doubts |= doubts;
                    next = Some(next.map_or(until, |next| next.min(until)));
                }
                Outlook::TimedOut => {
                    request.deadline = None;
                    request.outcome = Some(Err(not_answered()));
                    overdue.wakers.extend(request.waker.take());
                }
            }
        }
        self.next_look = next;
        overdue
    }

    /// Ends the requests that are sent again: over the connection in its place.
    pub(super) fn replace(&mut self) -> Vec<Waker> {
        self.is_replaced = true;
        let mut wakers = Vec::new();
        for request in &mut self.requests {
            if request.deadline.take_if(|one| one.is_repeated()).is_some() {
                request.outcome = Some(Err(not_answered()));
                wakers.extend(request.waker.take());
            }
        }
        wakers
    }

    /// Ends all requests.
    pub(super) fn end(&mut self, error: RedisError) -> Vec<Waker> {
        self.ended.get_or_insert(error);
        self.writer = None;
        let wakers = self.requests.iter_mut();
        wakers.filter_map(|one| one.waker.take()).collect()
    }
}

/// The reply did not come in time.
fn not_answered() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[test]
    fn a_number_is_used_again_without_the_outcome_of_the_request_before() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        let (ping, now) = (Command::new("PING"), Instant::from_nanos(0));
        let limits = Limits {
            by: now,
            late: now,
            patience: now,
            is_repeated: true,
        };
        let number = queue.add(&ping, None, Some(&limits));
        // Its time is over. Then its sender goes, and the reply comes.
        queue.check_deadlines(now, false);
        queue.forget(number);
        assert!(queue.deliver(Value::Okay, &mut Vec::new()).is_ok());
        assert_eq!(queue.add(&ping, None, None), number);
        assert!(queue.poll(number, Waker::noop()).is_none());
    }

    /// A release of the lock of this name, by the request of this number.
    fn release(name: &str, owner: u64) -> Command {
        let mut command = Command::new("EVALSHA");
        command.arg("hash").arg(2).arg(name).arg("queue");
        command.arg("channel").arg(owner);
        command.mark_mergeable_release(owner, 2, 1);
        command
    }

    /// A request for a lock, by the request of this number.
    fn set(owner: u64) -> Command {
        let mut command = Command::new("SET");
        command.arg(owner).mark_request(owner);
        command
    }

    fn text(queue: &mut RequestQueue) -> String {
        let unsent = queue.take_unsent().unwrap_or_default();
        let mut words = Vec::new();
        let text = String::from_utf8_lossy(&unsent).into_owned();
        for line in text.lines() {
            match line.strip_prefix('*') {
                Some(_) => words.push("|"),
                None if line.starts_with('$') => {}
                None => words.push(line),
            }
        }
        let text = words.join(" ");
        queue.put_back(unsent, 0);
        text
    }

    #[test]
    fn releases_are_one_call_ahead_of_requests_of_others_only() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        queue.add(&release("a", 1), None, None);
        queue.add(&set(2), None, None);
        queue.add(&release("b", 3), None, None);
        assert_eq!(
            text(&mut queue),
            "| EVALSHA hash 4 a queue b queue channel 1 3 | SET 2"
        );
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        for command in [
            release("a", 1),
            set(2),
            // Its own request.
            release("b", 2),
            Command::new("PING"),
            // No request.
            release("c", 4),
        ] {
            queue.add(&command, None, None);
        }
        assert_eq!(
            text(&mut queue),
            "| EVALSHA hash 2 a queue channel 1 | SET 2 | EVALSHA hash 2 b queue channel 2 \
             | PING | EVALSHA hash 2 c queue channel 4"
        );
    }

    #[test]
    fn calls_stay_apart_at_a_server_that_has_refused_to_merge_them() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        let error = redis::parse_redis_value(b"-CROSSSLOT x\r\n").unwrap_or(Value::Nil);
        for calls in [1, 2] {
            queue.add(&release("a", 1), None, None);
            queue.add(&release("b", 2), None, None);
            assert_eq!(text(&mut queue).matches('|').count(), calls);
            queue.out.clear();
            assert!(queue.deliver(error.clone(), &mut Vec::new()).is_ok());
        }
    }

    /// What was sent is not sent again with the next ones.
    #[test]
    fn requests_by_script_are_one_call_and_each_is_sent_once() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        let mut numbers = Vec::new();
        for owners in [[1, 2], [3, 4]] {
            for owner in owners {
                let mut command = Command::new("EVALSHA");
                command.arg("hash").arg(1).arg("key").arg("all").arg(owner);
                command.mark_mergeable_request(owner, 1, 1);
                numbers.push(queue.add(&command, None, None));
            }
            let [one, other] = owners;
            let sent = format!("| EVALSHA hash 2 key key all {one} {other}");
            assert_eq!(text(&mut queue), sent);
            queue.out.clear();
        }
        assert_eq!(queue.under_way(), 2);
        for part in [1, 2] {
            let replies = Value::Array(vec![Value::Int(part), Value::Int(10 * part)]);
            assert!(queue.deliver(replies, &mut Vec::new()).is_ok());
        }
        let told: Vec<_> = numbers
            .iter()
            .map(|one| outcome(&mut queue, *one))
            .collect();
        let parts = [1, 10, 2, 20].map(|part| Some(Ok(Value::Int(part))));
        assert_eq!(told, parts);
    }

    #[test]
    fn calls_that_say_something_else_of_all_stay_apart_and_so_does_one_too_many() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        let mut other = Command::new("EVALSHA");
        other.arg("hash").arg(2).arg("b").arg("queue");
        other
            .arg("another channel")
            .arg(2)
            .mark_mergeable_release(2, 2, 1);
        queue.add(&release("a", 1), None, None);
        queue.add(&other, None, None);
        assert_eq!(text(&mut queue).matches('|').count(), 2);
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        for owner in 0..33 {
            queue.add(&release("a", owner), None, None);
        }
        assert_eq!(text(&mut queue).matches('|').count(), 2);
    }

    #[test]
    fn a_segment_that_is_full_is_closed_and_so_is_one_that_a_long_call_would_join() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        for owner in 0..130 {
            queue.add(&set(owner), None, None);
        }
        assert_eq!(queue.segment.len(), 2);
        assert_eq!(queue.under_way(), 130);
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        queue.add(&release("a", 1), None, None);
        let long = "b".repeat(LARGEST_KEPT_BUFFER + 1);
        queue.add(&release(&long, 2), None, None);
        queue.add(&release("c", 3), None, None);
        let text = text(&mut queue);
        assert_eq!(text.matches('|').count(), 3);
        assert!(text.contains(&format!("| EVALSHA hash 2 {long} queue channel 2 |")));
    }

    #[test]
    fn each_call_gets_its_part_of_the_reply_or_the_error() {
        let merged = || {
            let mut queue = RequestQueue::new(None, Duration::from_millis(500));
            let one = queue.add(&release("a", 1), None, None);
            let ping = queue.add(&set(2), None, None);
            let two = queue.add(&release("b", 3), None, None);
            text(&mut queue);
            (queue, [one, two], ping)
        };
        let mut wakers = Vec::new();
        let outcome = |queue: &mut RequestQueue, number| {
            let outcome = queue.poll(number, Waker::noop())?;
            Some(outcome.and_then(Value::extract_error).ok())
        };
        let (mut queue, [one, two], ping) = merged();
        // Its sender is gone.
        queue.forget(two);
        let replies = Value::Array(vec![Value::Int(1), Value::Int(0)]);
        assert!(queue.deliver(replies, &mut wakers).is_ok());
        assert_eq!(outcome(&mut queue, one), Some(Some(Value::Int(1))));
        assert_eq!(outcome(&mut queue, ping), None);
        assert!(queue.deliver(Value::Okay, &mut wakers).is_ok());
        assert_eq!(outcome(&mut queue, ping), Some(Some(Value::Okay)));
        assert_eq!(queue.under_way(), 0);

        // A list of another length, or one value for all, ends the connection.
        for reply in [Value::Array(vec![Value::Int(1)]), Value::Int(1)] {
            let (mut queue, _, _) = merged();
            assert!(queue.deliver(reply, &mut wakers).is_err());
        }

        let (mut queue, calls, _) = merged();
        let error = redis::parse_redis_value(b"-NOSCRIPT x\r\n").unwrap_or(Value::Nil);
        assert!(queue.deliver(error, &mut wakers).is_ok());
        for call in calls {
            assert_eq!(outcome(&mut queue, call), Some(None));
        }
        // The next ones are merged all the same.
        queue.add(&release("a", 4), None, None);
        queue.add(&release("b", 5), None, None);
        assert_eq!(queue.under_way(), 3);
        queue.close_segment();
        assert_eq!(queue.under_way(), 2);
    }

    #[test]
    fn what_is_not_written_yet_is_known() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        let now = Instant::from_nanos(0);
        let limits = Limits {
            by: now,
            late: now,
            patience: now,
            is_repeated: false,
        };
        let one = queue.add(&release("a", 1), None, Some(&limits));
        let two = queue.add(&set(2), None, Some(&limits));
        assert!(queue.has_unsent() && queue.under_way() == 2);
        let unsent = queue.take_unsent().unwrap_or_default();
        let bytes = unsent.len();
        assert!(queue.requests[one].end <= bytes as u64 && queue.requests[two].end <= bytes as u64);
        // A part is written. What is merged meanwhile stands behind the rest.
        queue.add(&release("b", 3), None, None);
        queue.add(&release("c", 4), None, None);
        assert!(!queue.put_back(unsent, bytes - 3));
        let rest = queue.take_unsent().unwrap_or_default();
        assert!(rest.starts_with(b"2\r\n*10\r\n"));
    }

    #[test]
    fn what_is_added_while_a_part_is_written_stands_behind_the_rest() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        queue.add(&Command::new("ONE"), None, None);
        let unsent = queue.take_unsent().unwrap_or_default();
        queue.add(&Command::new("TWO"), None, None);
        assert!(!queue.put_back(unsent, 8));
        let rest = queue.take_unsent().unwrap_or_default();
        assert_eq!(rest, b"ONE\r\n*1\r\n$3\r\nTWO\r\n");
    }

    #[test]
    fn a_reply_that_came_in_time_is_not_over_later() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        let number = queue.add(&Command::new("PING"), None, Some(&limits(100, false)));
        written(&mut queue);
        assert!(queue.deliver(Value::Int(1), &mut Vec::new()).is_ok());
        assert_eq!(queue.check_deadlines(at(900), false).wakers.len(), 0);
        assert_eq!(outcome(&mut queue, number), Some(Ok(Value::Int(1))));
    }

    #[test]
    fn a_message_is_a_reply_to_its_own_command_only() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        let (mut wakers, subscribed) = (Vec::new(), ("subscribe", "c".to_owned()));
        let ping = queue.add(&Command::new("PING"), None, None);
        let number = queue.add(&Command::new("X"), Some(subscribed), None);
        let mut hears = |queue: &mut RequestQueue, word: &str, channel: &str| {
            queue.deliver_message(word.as_bytes(), channel.as_bytes(), &mut wakers)
        };
        assert!(!hears(&mut queue, "subscribe", "c"));
        assert!(queue.deliver(Value::Int(1), &mut Vec::new()).is_ok());
        assert!(!hears(&mut queue, "subscribe", "d"));
        assert!(!hears(&mut queue, "unsubscribe", "c"));
        assert!(outcome(&mut queue, number).is_none());
        assert!(hears(&mut queue, "subscribe", "c"));
        assert!(outcome(&mut queue, number).is_some() && outcome(&mut queue, ping).is_some());
        assert!(!hears(&mut queue, "subscribe", "c"));
    }

    /// What the server says of a `SUNSUBSCRIBE`, and who gets the reply behind it.
    #[test]
    fn the_end_of_a_slots_subscription_is_told_from_that_by_the_server() {
        let error = |text: &[u8]| redis::parse_redis_value(text).unwrap_or(Value::Nil);
        let (moved, busy) = (error(b"-MOVED 1 h:1\r\n"), error(b"-BUSY script\r\n"));
        let down = error(b"-CLUSTERDOWN Hash slot not served\r\n");
        let told = |replies: &[Option<&Value>]| {
            let mut queue = RequestQueue::new(None, Duration::from_millis(500));
            let (command, mut wakers) = (Command::new("X"), Vec::new());
            queue.add(&command, Some(("sunsubscribe", "c".to_owned())), None);
            queue.add_ping_behind_end();
            let next = queue.add(&command, None, None);
            for reply in replies {
                let is_taken = match reply {
                    None => queue.deliver_message(b"sunsubscribe", b"c", &mut wakers),
                    Some(reply) => queue.deliver((*reply).clone(), &mut wakers).is_ok(),
                };
                if !is_taken {
                    return None;
                }
            }
            Some(queue.poll(next, Waker::noop()).is_some())
        };
        let (pong, reply) = (Value::Okay, Value::Int(1));
        assert_eq!(told(&[None, Some(&pong), Some(&reply)]), Some(true));
        // By the server before, and refused then.
        let twice = [None, Some(&moved), Some(&pong), Some(&reply)];
        assert_eq!(told(&twice[..3]), Some(false));
        assert_eq!(told(&twice), Some(true));
        let lost = [None, Some(&down), Some(&pong), Some(&reply)];
        assert_eq!(told(&lost), Some(true));
        assert_eq!(told(&[Some(&moved), Some(&busy), Some(&reply)]), Some(true));
        // Either may be refused so.
        assert_eq!(told(&[None, Some(&busy)]), None);
    }

    /// How often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn at(millis: i64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn limits(late: i64, is_repeated: bool) -> Limits {
        let (late, by, patience) = (at(late), at(500), at(500));
        Limits {
            by,
            late,
            patience,
            is_repeated,
        }
    }

    fn outcome(queue: &mut RequestQueue, number: usize) -> Option<Result<Value, String>> {
        let outcome = queue.poll(number, Waker::noop())?;
        Some(outcome.map_err(|error| error.to_string()))
    }

    fn is_over(queue: &mut RequestQueue, number: usize) -> bool {
        outcome(queue, number).is_some_and(|outcome| outcome.is_err())
    }

    fn written(queue: &mut RequestQueue) {
        let unsent = queue.take_unsent().unwrap_or_default();
        let bytes = unsent.len();
        assert!(queue.put_back(unsent, bytes));
    }

    #[test]
    fn requests_are_looked_at_while_there_are_some_and_each_in_its_time() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(400));
        let ping = Command::new("PING");
        assert_eq!(queue.check_deadlines(at(0), false).wakers.len(), 0);
        assert_eq!(queue.next_look, None);
        // The task is woken for what it would look at too late.
        assert!(queue.hurry_look(&limits(125, false)));
        assert!(!queue.hurry_look(&limits(125, false)));
        assert!(!queue.hurry_look(&limits(200, false)));
        assert!(queue.hurry_look(&limits(100, false)));
        assert_eq!(queue.next_look, Some(at(100)));
        // A connection that is in use is looked at after an eighth of a command's time, once.
        queue.check_deadlines(at(0), false);
        assert_eq!(queue.next_look, Some(at(50)));
        queue.check_deadlines(at(50), false);
        assert_eq!(queue.next_look, None);

        let one = queue.add(&ping, None, Some(&limits(200, false)));
        let other = queue.add(&ping, None, Some(&limits(100, false)));
        let patient = queue.add(&ping, None, None);
        written(&mut queue);
        let woken = Arc::new(Woken::default());
        for number in [one, other, patient] {
            let waker = Waker::from(Arc::clone(&woken));
            assert!(queue.poll(number, &waker).is_none());
        }
        assert!(!queue.check_deadlines(at(60), false).doubts);
        assert_eq!(queue.next_look, Some(at(100)));
        assert!(queue.check_deadlines(at(100), false).doubts);
        assert_eq!(queue.next_look, Some(at(200)));
        assert!(queue.check_deadlines(at(200), false).doubts);
        assert_eq!(queue.next_look, Some(at(500)));
        let overdue = queue.check_deadlines(at(500), false);
        assert!(!overdue.doubts);
        assert_eq!(overdue.wakers.len(), 2);
        assert_eq!(queue.next_look, None);
        // It is over once.
        assert!(queue.requests[one].deadline.is_none());
        assert_eq!(queue.check_deadlines(at(501), false).wakers.len(), 0);
        assert!(is_over(&mut queue, one) && is_over(&mut queue, other));
        assert!(queue.poll(patient, Waker::noop()).is_none());
    }

    /// In a segment as well: where its bytes end is known when it is closed.
    #[test]
    fn a_request_is_written_when_its_last_byte_is() {
        for command in [Command::new("PING"), release("a", 1), set(1)] {
            let mut queue = RequestQueue::new(None, Duration::from_millis(400));
            // What was written before does not count.
            queue.add(&Command::new("PING"), None, None);
            written(&mut queue);
            queue.add(&command, None, Some(&limits(100, false)));
            let unsent = queue.take_unsent().unwrap_or_default();
            let bytes = unsent.len();
            assert!(!queue.put_back(unsent, bytes - 1));
            assert!(!queue.check_deadlines(at(100), false).doubts);
            written(&mut queue);
            assert!(queue.check_deadlines(at(101), false).doubts);
        }
    }

    #[test]
    fn who_sends_again_does_not_wait_for_a_connection_that_was_replaced() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(400));
        let (ping, woken) = (Command::new("PING"), Arc::new(Woken::default()));
        let again = queue.add(&ping, None, Some(&limits(100, true)));
        let once = queue.add(&ping, None, Some(&limits(100, false)));
        let endless = queue.add(&ping, None, None);
        for number in [again, once, endless] {
            let waker = Waker::from(Arc::clone(&woken));
            assert!(queue.poll(number, &waker).is_none());
        }
        assert_eq!(queue.replace().len(), 1);
        assert!(is_over(&mut queue, again));
        assert!(!is_over(&mut queue, once) && !is_over(&mut queue, endless));
        for (limits, ends) in [
            (Some(limits(100, true)), true),
            (Some(limits(100, false)), false),
            (None, false),
        ] {
            let number = queue.add(&ping, None, limits.as_ref());
            assert_eq!(is_over(&mut queue, number), ends);
        }
    }

    #[test]
    fn whoever_waits_is_woken_by_the_reply_and_by_the_end_of_the_connection() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(400));
        let (ping, woken) = (Command::new("PING"), Arc::new(Woken::default()));
        let numbers = [(); 3].map(|()| queue.add(&ping, None, None));
        for number in numbers {
            let waker = Waker::from(Arc::clone(&woken));
            assert!(queue.poll(number, &waker).is_none());
        }
        let mut wakers = Vec::new();
        assert!(queue.deliver(Value::Int(1), &mut wakers).is_ok());
        assert_eq!(wakers.len(), 1);
        assert_eq!(outcome(&mut queue, numbers[0]), Some(Ok(Value::Int(1))));
        // The number is free again, and only that one.
        assert_eq!(queue.add(&ping, None, None), numbers[0]);
        assert_eq!(queue.add(&ping, None, None), 3);
        let error = |text| RedisError::from(std::io::Error::other(text));
        wakers.extend(queue.end(error("the first")));
        assert_eq!(wakers.len(), 3);
        wakers.into_iter().for_each(Waker::wake);
        assert_eq!(woken.0.load(Ordering::Relaxed), 3);
        assert_eq!(queue.end(error("the second")).len(), 0);
        for number in [numbers[1], numbers[2], 3] {
            let outcome = outcome(&mut queue, number);
            assert!(outcome.is_some_and(|outcome| outcome.is_err_and(|it| it.contains("first"))));
        }
        assert!(
            queue
                .ended()
                .is_some_and(|it| it.to_string().contains("first"))
        );
        // Who was told of it is not looked at any more.
        let told = queue.add(&ping, None, Some(&limits(100, false)));
        assert!(is_over(&mut queue, told));
        queue.check_deadlines(at(0), false);
        assert_eq!(queue.next_look, None);
    }

    #[test]
    fn one_writes_at_a_time_and_none_to_a_full_or_ended_connection() {
        let begin = || {
            let mut queue = RequestQueue::new(None, Duration::from_millis(400));
            assert!(!queue.has_unsent() && queue.take_unsent().is_none());
            queue.add(&Command::new("PING"), None, None);
            assert!(queue.has_unsent() && queue.unsent == 1);
            queue
        };
        let mut queue = begin();
        let unsent = queue.take_unsent().unwrap_or_default();
        assert!(!unsent.is_empty() && !queue.has_unsent() && queue.unsent == 0);
        queue.add(&Command::new("PING"), None, None);
        assert!(queue.take_unsent().is_none());
        let bytes = unsent.len();
        assert!(queue.put_back(unsent, bytes));
        assert!(queue.take_unsent().is_some());

        let mut full = begin();
        full.is_full = true;
        assert!(full.take_unsent().is_none());
        full.is_full = false;
        assert!(full.take_unsent().is_some());

        let mut ended = begin();
        ended.end(std::io::Error::other("it ended").into());
        assert!(ended.take_unsent().is_none());
    }

    #[test]
    fn a_buffer_is_used_again_unless_it_has_grown() {
        for (long, is_kept) in [(1, true), (LARGEST_KEPT_BUFFER + 1, false)] {
            let mut queue = RequestQueue::new(None, Duration::from_millis(400));
            let mut command = Command::new("SET");
            command.arg("x".repeat(long)).mark_request(1);
            queue.add(&command, None, None);
            written(&mut queue);
            assert_eq!(queue.spare.capacity() > 0, is_kept);
            assert!(queue.spare.is_empty());
            assert_eq!(queue.segment.singles.capacity() > 0, is_kept);
            assert_eq!((queue.segment.len(), queue.under_way()), (0, 1));
            queue.add(&set(2), None, None);
            written(&mut queue);
            assert_eq!((queue.segment.len(), queue.under_way()), (0, 2));
        }
        let mut queue = RequestQueue::new(None, Duration::from_millis(400));
        assert!(queue.put_back(Vec::with_capacity(LARGEST_KEPT_BUFFER), 0));
        assert_eq!(queue.spare.capacity(), LARGEST_KEPT_BUFFER);
    }

    /// It would be the next request's.
    #[test]
    fn no_plain_reply_is_taken_for_that_of_a_subscription() {
        let mut queue = RequestQueue::new(None, Duration::from_millis(500));
        let message = Some(("subscribe", "c".to_owned()));
        let number = queue.add(&Command::new("SUBSCRIBE"), message, None);
        let mut wakers = Vec::new();
        for reply in [Value::Int(1), Value::Okay, Value::Nil] {
            let given_back = queue.deliver(reply.clone(), &mut wakers);
            assert_eq!(given_back, Err(reply));
        }
        assert!(queue.poll(number, Waker::noop()).is_none());
        assert!(queue.deliver_message(b"subscribe", b"c", &mut wakers));
        let outcome = queue.poll(number, Waker::noop());
        assert!(outcome.is_some_and(|outcome| outcome.is_ok()));
    }
}
