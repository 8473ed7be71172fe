//! What the pages claim, run again: `bash tests/long/claims [counts] [tests] [long] [figures]`.
//!
//! Without a part: counts and tests. The exit status is 1 if something no longer holds.

use std::process::ExitCode;

use lock_long::claims::Part;

fn main() -> Result<ExitCode, String> {
    let named = |word: String| {
        let found = Part::NAMED.iter().find(|(name, _)| *name == word);
        found.map(|(_, part)| *part).ok_or(USAGE)
    };
    let mut parts: Vec<Part> = std::env::args()
        .skip(1)
        .map(named)
        .collect::<Result<_, _>>()?;
    if parts.is_empty() {
        parts = vec![Part::Counts, Part::Tests];
    }
    let mut lost = Vec::new();
    for part in parts {
        lost.extend(part.run()?);
    }
    for claim in &lost {
        println!("NO LONGER HOLDS: {claim}");
    }
    Ok(match lost.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

const USAGE: &str = "usage: claims [counts] [tests] [long] [figures]";
