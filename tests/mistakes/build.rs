//! Copies lock-runtime's sources and weaves mistakes into the copy, each behind a question that
//! `src/mistake.rs` answers. The sources themselves know nothing of it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// An expression of a file, which stands there once, and what it is by mistakes.
struct Place {
    file: &'static str,
    right: &'static str,
    wrong: &'static [(&'static str, &'static str)],
}

const PLACES: [Place; 10] = [
    Place {
        file: "engine/local_queue/queues.rs",
        right: "std::mem::replace(&mut queue.state.lock().patrolled, true)",
        wrong: &[("SkipsNobody", "true")],
    },
    Place {
        file: "engine/reentrancy/nested.rs",
        right: "queues.put_on_patrol(queue)",
        wrong: &[("SkipsNobodyInside", "()")],
    },
    Place {
        file: "engine/acquire/lock_facts.rs",
        right: "key.answered()",
        wrong: &[(
            "IsPatientWithAllKeysAsOne",
            "self.engine.liveness.answered()",
        )],
    },
    Place {
        file: "engine/acquire/lock_facts.rs",
        right: "key.failing(started, now)",
        wrong: &[("IsPatientWithAllKeysAsOne", "None")],
    },
    Place {
        file: "engine/acquire/lock_facts.rs",
        right: "self.evidence(waiter, since, by).await",
        wrong: &[
            (
                "IsPatientWithAllKeysAsOne",
                "match self.budget.end() {
                     None => match self.engine.store.ping(by).await {
                         Ok(_) => Said::Alive { refused_before: None },
                         Err(failure) => Said::Failing(failure.error),
                     },
                     Some(_) => self.evidence(waiter, since, by).await,
                 }",
            ),
            (
                "JudgesAllKeysAsOne",
                "match self.budget.end() {
                     Some(_) => match self.engine.store.ping(by).await {
                         Ok(_) => Said::Alive { refused_before: None },
                         Err(failure) => Said::Failing(failure.error),
                     },
                     None => self.evidence(waiter, since, by).await,
                 }",
            ),
        ],
    },
    Place {
        file: "engine/acquire/lock_facts.rs",
        right: "heard == HeardSoFar::Busy || waiter.liveness().was_taken(lately)",
        wrong: &[("JudgesAllKeysAsOne", "true")],
    },
    Place {
        file: "engine/hold/release.rs",
        right: "hold.stored_until()",
        wrong: &[("ForgetsExtensionsUnheardOf", "hold.deadline()")],
    },
    Place {
        file: "api/guard/finish.rs",
        right: "gate.close()",
        wrong: &[("LendsForEver", "()")],
    },
    Place {
        file: "engine/reentrancy/call_chain.rs",
        right: "self.task == try_id()",
        wrong: &[("SharesWithEveryTask", "true")],
    },
    Place {
        file: "engine/acquire/waiting.rs",
        right: "self.request.claim.permits.is_some() && waiter.liveness().granted_at() > asked",
        wrong: &[("PollsOneAfterTheOther", "false")],
    },
];

/// The features of lock-runtime that the simulation needs.
const FEATURES: [&str; 2] = ["__internals", "test-util"];

fn main() -> Result<(), String> {
    let sources = folder("CARGO_MANIFEST_DIR")?.join("../../lock-runtime/src");
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed=build.rs");
    for feature in FEATURES {
        println!("cargo::rustc-cfg=feature=\"{feature}\"");
    }
    let copy = folder("OUT_DIR")?.join("lock-runtime");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|error| error.to_string())?;
    }
    let copied = copy_folder(&sources, Path::new(""), &copy);
    let woven = copied.map_err(|error| format!("the copy of lock-runtime: {error}"))?;
    match PLACES.len() == woven {
        true => Ok(()),
        false => Err("a place is in a file that is not there".to_owned()),
    }
}

fn folder(variable: &str) -> Result<PathBuf, String> {
    let folder = env::var_os(variable).ok_or(format!("{variable} is not set"))?;
    Ok(folder.into())
}

/// In how many places of the copy there can be a mistake.
fn copy_folder(sources: &Path, name: &Path, copy: &Path) -> Result<usize, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", name.display());
    fs::create_dir_all(copy.join(name)).map_err(wrong)?;
    let mut woven = 0;
    for entry in fs::read_dir(sources.join(name)).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let inner = name.join(entry.file_name());
        if entry.file_type().map_err(wrong)?.is_dir() {
            woven += copy_folder(sources, &inner, copy)?;
        } else if inner.extension().is_some_and(|extension| extension == "rs") {
            let mut text = fs::read_to_string(entry.path()).map_err(wrong)?;
            for place in PLACES.iter().filter(|place| inner == Path::new(place.file)) {
                text = weave(&text, place)?;
                woven += 1;
            }
            fs::write(copy.join(&inner), without_inner(&text)).map_err(wrong)?;
        }
    }
    Ok(woven)
}

/// The text with one more place that can be wrong.
fn weave(text: &str, place: &Place) -> Result<String, String> {
    let Place { file, right, wrong } = place;
    let times = text.matches(right).count();
    if times != 1 {
        return Err(format!(
            "lock-runtime/src/{file} has `{right}` {times} times, and mistakes are woven in where \
             it stands once: change it in tests/mistakes/build.rs as well"
        ));
    }
    let asked = wrong.iter().map(|(mistake, wrong)| {
        format!(
            "if crate::mistake::is_made(crate::mistake::Mistake::{mistake}) {{ {wrong} }} else "
        )
    });
    let woven = format!("({}{{ {right} }})", asked.collect::<String>());
    Ok(text.replace(right, &woven))
}

/// What is included has no comments or attributes of the crate or of its module.
fn without_inner(text: &str) -> String {
    let is_inner = |line: &&str| line.starts_with("//!") || line.starts_with("#![");
    let lines = text.lines().filter(|line| !is_inner(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}
