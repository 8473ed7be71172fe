//! The fate of each command, by its name.

use std::collections::{HashMap, VecDeque};

use lock_runtime::StoreErrorKind;
use lock_testkit_core::store_decorator::{Reply, Request};

/// What happens to a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// It is carried out.
    Passes,
    /// It is carried out. Its reply comes after this many milliseconds, over the link with this
    /// number.
    Replies(u64, u64),
    /// It is not carried out, and the client hears so at once.
    Fails(StoreErrorKind),
    /// It is not carried out. The client hears at once that this is not known, and that it can't be
    /// any more after this many milliseconds. Of a message it hears after them.
    FailsLate(StoreErrorKind, u64),
    /// The store loses all its data. Then the command is carried out.
    LosesAll,
    /// It is carried out, and its reply is lost.
    Lost,
    /// It is not carried out, and no reply comes before its time is over.
    Silence,
}

/// The store cannot be reached.
pub(crate) const DOWN: Fate = Fate::Fails(StoreErrorKind::Disconnected);

/// What a test has planned for the commands of one client.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    next: HashMap<&'static str, VecDeque<Fate>>,
    /// For commands without a fate of their own.
    usual: HashMap<&'static str, Fate>,
    /// Replies that the store would not give, by the name of their method.
    replies: HashMap<&'static str, VecDeque<Reply>>,
}

impl Fates {
    pub(crate) fn next(&mut self, verb: &'static str, fates: &[Fate]) {
        self.next.entry(verb).or_default().extend(fates);
    }

    pub(crate) fn set_usual(&mut self, verb: &'static str, fate: Fate) {
        self.usual.insert(verb, fate);
    }

    pub(crate) fn answer(&mut self, reply: Reply) {
        let replies = self.replies.entry(reply.method());
        replies.or_default().push_back(reply);
    }

    /// The fate of a message to another client.
    pub(crate) fn of_message(&mut self) -> Fate {
        let next = self.next.get_mut("tell").and_then(VecDeque::pop_front);
        next.unwrap_or(Fate::Passes)
    }

    /// The fate of this command, and the reply that it gets instead of being carried out.
    pub(crate) fn of(&mut self, request: &Request) -> (Fate, Option<Reply>) {
        let next = self.next.get_mut(request.verb());
        let next = next.and_then(VecDeque::pop_front);
        let usual = self.usual.get(request.verb()).copied();
        let replies = self.replies.get_mut(request.method());
        (
            next.or(usual).unwrap_or(Fate::Passes),
            replies.and_then(VecDeque::pop_front),
        )
    }
}
