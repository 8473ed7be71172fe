//! A schedule: what one client asked of its store, when, for how long, and what came of it. A
//! snapshot shows its text.

use std::fmt;

use lock_runtime::StoreErrorKind;
use lock_runtime::observe::Stats;
use lock_store::{
    Acquired, AcquiredAll, Busy, Fenced, Granted, LatchCounted, LatchFound, LatchSet, Link, Rated,
    Released, Renewed,
};
use lock_testkit_core::store_decorator::{Reply, Request};

/// All instants are in milliseconds since the client was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
    /// When the test was over.
    pub(crate) ends: u64,
    /// The client's numbers then.
    pub(crate) stats: Option<Stats>,
}

#[derive(Clone, Debug)]
pub(crate) enum Line {
    /// The client sent something.
    Command(Box<Command>),
    /// The test began a request.
    Ask(Ask),
    /// What the test did or found.
    Note { at: u64, text: String },
}

#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) at: u64,
    /// `None` waits for ever.
    pub(crate) wait: Option<u64>,
    pub(crate) ended: Option<u64>,
    pub(crate) has_it: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) at: u64,
    /// The time limit for its answer.
    pub(crate) within: u64,
    pub(crate) request: Request,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    UnderWay,
    Answered {
        at: u64,
        reply: Reply,
        link: Link,
    },
    Failed {
        at: u64,
        kind: StoreErrorKind,
        unknown: bool,
    },
    /// Its reply was no longer awaited.
    Dropped {
        at: u64,
    },
}

impl Line {
    pub(crate) fn command(&self) -> Option<&Command> {
        match self {
            Self::Command(command) => Some(command),
            _ => None,
        }
    }

    pub(crate) fn ask(&self) -> Option<&Ask> {
        match self {
            Self::Ask(ask) => Some(ask),
            _ => None,
        }
    }

    /// A note that begins with these words.
    pub(crate) fn noted(&self, words: &str) -> Option<(u64, String)> {
        match self {
            Self::Note { at, text } if text.starts_with(words) => Some((*at, text.clone())),
            _ => None,
        }
    }
}

impl Command {
    pub(crate) fn verb(&self) -> &'static str {
        self.request.verb()
    }

    /// When it ended, if it did.
    pub(crate) fn ended(&self) -> Option<u64> {
        match self.outcome {
            Outcome::UnderWay => None,
            Outcome::Answered { at, .. } | Outcome::Failed { at, .. } | Outcome::Dropped { at } => {
                Some(at)
            }
        }
    }

    /// The names of its keys. Of many, the first and the last.
    fn keys(&self) -> String {
        let keys = self.request.keys();
        let names: Vec<_> = keys.iter().map(ToString::to_string).collect();
        match &names[..] {
            [first, .., last] if names.len() > 5 => format!("{first}…{last} ({})", names.len()),
            names => names.join(","),
        }
    }

    /// The other parts of the command.
    fn options(&self) -> String {
        let lease = self.request.lease().unwrap_or_default().as_millis();
        match &self.request {
            Request::Acquire(request) => {
                let mut text = format!("{:?}, lease {lease}", request.queue);
                let mut add = |what: &str, number: u128| text += &format!(", {what} {number}");
                if request.first_lease != request.lease {
                    add("first", request.first_lease.as_millis());
                }
                if request.tokens > 0 {
                    add("tokens", request.tokens.into());
                }
                if let Some(wait) = request.wait {
                    add("wait", wait.as_millis());
                }
                if request.instead_of.is_some() {
                    text += ", instead";
                }
                text
            }
            Request::AcquireAll(_) | Request::Renew(_) => format!("lease {lease}"),
            Request::Release(requests) if !requests[0].keep.is_zero() => {
                format!("keep {}", requests[0].keep.as_millis())
            }
            Request::Rate(request) => format!("wait {}", request.wait.as_millis()),
            Request::Abandon(request) => format!("{:?}", request.queue),
            _ => String::new(),
        }
    }
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Acquire(Acquired::Granted(Granted { token: None, .. })) => "granted".to_owned(),
        Reply::Acquire(Acquired::Granted(Granted { token: Some(_), .. })) => {
            "granted, token".to_owned()
        }
        Reply::Acquire(Acquired::Busy(Busy { queued: true, .. })) => "queued".to_owned(),
        Reply::Acquire(Acquired::Busy(Busy { queued: false, .. })) => "busy".to_owned(),
        Reply::AcquireAll(AcquiredAll::Granted { tokens, .. }) => {
            let known = tokens.iter().flatten().count();
            format!("granted, tokens {known}")
        }
        Reply::AcquireAll(AcquiredAll::Busy(at)) => format!("busy at number {at}"),
        Reply::AcquireAll(other) => format!("{other:?}").to_lowercase(),
        Reply::Renew(all) if all.iter().all(|one| *one == Renewed::Renewed) => "renewed".to_owned(),
        Reply::Renew(all) if all.iter().all(|one| *one == Renewed::Gone) => "gone".to_owned(),
        Reply::Renew(all) if all.iter().all(|one| matches!(one, Renewed::Until(_))) => {
            "renewed, with a limit".to_owned()
        }
        Reply::Renew(all) => {
            let one = |one: &Renewed| match one {
                Renewed::Until(_) => "with a limit".to_owned(),
                other => format!("{other:?}").to_lowercase(),
            };
            format!("[{}]", all.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Reply::Release(all) if all.iter().all(|one| *one == Released::Released) => {
            "released".to_owned()
        }
        Reply::Release(all) if all.iter().all(|one| *one == Released::NotHeld) => {
            "not held".to_owned()
        }
        Reply::Abandon(Released::Released) => "undone".to_owned(),
        Reply::Abandon(Released::NotHeld) => "nothing to undo".to_owned(),
        Reply::Fence(Fenced::Token(_)) => "token".to_owned(),
        Reply::Rate(Rated::Passed { delay, .. }) if delay.is_zero() => "passes".to_owned(),
        Reply::Rate(Rated::Passed { delay, .. }) => format!("passes after {delay:?}"),
        Reply::Rate(Rated::Limited { .. }) => "limited".to_owned(),
        Reply::LatchWait(found) | Reply::LatchLook(found) => match found {
            LatchFound::Is(latch) => format!("{} left to count", latch.count),
            LatchFound::NotSet => "not set".to_owned(),
            LatchFound::Conflict => "conflict".to_owned(),
        },
        Reply::LatchCountDown(LatchCounted::Left(left)) => format!("{left} left to count"),
        Reply::LatchCountDown(LatchCounted::NotSet) => "not set".to_owned(),
        Reply::LatchSet(LatchSet::Set) => "set".to_owned(),
        Reply::LatchSet(LatchSet::Untimely { .. })
        | Reply::LatchCountDown(LatchCounted::Untimely { .. }) => "untimely".to_owned(),
        Reply::LatchSet(LatchSet::SetBefore) => "was set before".to_owned(),
        Reply::Inspect(Some(found)) if found.holder.is_none() => "free".to_owned(),
        Reply::Inspect(Some(_)) => "held".to_owned(),
        Reply::LatchLeave(()) => "left".to_owned(),
        Reply::Ping(()) => "alive".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = |at: u64| {
            if at == self.at {
                String::new()
            } else {
                format!(", at {at}")
            }
        };
        let outcome = match &self.outcome {
            Outcome::UnderWay => "(under way)".to_owned(),
            Outcome::Answered {
                at,
                reply: value,
                link,
            } => {
                let other = if *link == Link(0) {
                    String::new()
                } else {
                    format!(", over link {}", link.0)
                };
                format!("{}{other}{}", reply(value), late(*at))
            }
            Outcome::Failed { at, kind, unknown } => {
                let known = if *unknown { ", may be carried out" } else { "" };
                format!("{kind:?}{known}{}", late(*at))
            }
            Outcome::Dropped { at } => format!("dropped{}", late(*at)),
        };
        let (keys, options) = (self.keys(), self.options());
        write!(
            f,
            "{:>7}  {:<12} {keys:<6} {options:<60} {:>5}  {outcome}",
            self.at,
            self.verb(),
            self.within,
        )
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.title.is_empty() {
            writeln!(f, "== {}", self.title)?;
        }
        let heads = ["at", "command", "key", "options", "limit", "outcome"];
        let [at, command, key, options, limit, outcome] = heads;
        writeln!(
            f,
            "{at:>7}  {command:<12} {key:<6} {options:<60} {limit:>5}  {outcome}"
        )?;
        for line in &self.lines {
            match line {
                Line::Command(command) => writeln!(f, "{command}")?,
                Line::Ask(Ask {
                    at,
                    wait: Some(wait),
                    ..
                }) => {
                    writeln!(f, "{at:>7}  > a request, wait {wait}")?;
                }
                Line::Ask(Ask { at, .. }) => writeln!(f, "{at:>7}  > a request, wait for ever")?,
                Line::Note { at, text } => writeln!(f, "{at:>7}  - {text}")?,
            }
        }
        if let Some(stats) = &self.stats {
            writeln!(f, "{:>7}  = {}", self.ends, numbers(stats))?;
        }
        Ok(())
    }
}

/// What is not as in a new client.
fn numbers(stats: &Stats) -> String {
    let (now, new) = (format!("{stats:?}"), format!("{:?}", Stats::default()));
    let fields = |text: &str| -> Vec<String> {
        let fields = text.trim_start_matches("Stats { ").trim_end_matches(" }");
        fields.split(", ").map(str::to_owned).collect()
    };
    let pairs = fields(&now).into_iter().zip(fields(&new));
    let changed = pairs.filter_map(|(now, new)| (now != new).then_some(now));
    changed.collect::<Vec<_>>().join(", ")
}

/// Compares with `snapshots/<module>__<test>.snap`. `INSTA_UPDATE=always cargo test -p
/// lock-timetable --test timetable` writes these files anew. Where the variable `CI` is set
/// nothing is ever written, and a snapshot that is missing or differs is a failure.
pub(crate) fn is_as_in_its_snapshot(schedules: &[Schedule]) {
    let thread = std::thread::current();
    // The test harness names the thread after the test.
    let test = thread.name().filter(|name| name.contains("::")).unwrap();
    let texts: Vec<_> = schedules.iter().map(ToString::to_string).collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!(test.replace("::", "__"), texts.join("\n"));
    });
}

#[test]
fn every_snapshot_belongs_to_a_test() {
    // The workspace's folder, wherever this package is in it.
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut here = package.ancestors().map(|folder| folder.join(file!()));
    let here = here.find(|path| path.exists()).unwrap();
    let here = here.parent().unwrap();
    let mut count = 0;
    for file in here.join("snapshots").read_dir().unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let Some((module, test)) = name
            .strip_suffix(".snap")
            .and_then(|name| name.split_once("__"))
        else {
            panic!("{name} is no snapshot");
        };
        let source = std::fs::read_to_string(here.join(module).with_extension("rs")).unwrap();
        assert!(
            source.contains(&format!("fn {test}()")),
            "{name} has no test"
        );
        count += 1;
    }
    assert!(count > 0, "no snapshot is in {}", here.display());
}
