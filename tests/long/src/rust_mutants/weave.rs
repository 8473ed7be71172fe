//! A source file in which each place that can be wrong asks whether it is to be.

use std::cmp::Reverse;
use std::ops::Range;

/// One place of a file, and how it is written when it can be wrong.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) number: usize,
    /// The bytes that are written anew. If empty, something is put in here.
    pub(super) range: Range<usize>,
    pub(super) parts: Vec<Part>,
}

/// A part of what is written instead.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Text(String),
    /// Is this place to be wrong? An expression.
    Asked,
    /// These bytes as they are.
    Same(Range<usize>),
    /// These bytes, in which other places can be wrong.
    Woven(Range<usize>),
}

/// The text with all places woven in.
pub(super) fn woven(text: &str, places: &[Place]) -> String {
    let mut sorted: Vec<&Place> = places.iter().collect();
    // The outermost first; of two with the same bytes, the one that was found first.
    sorted.sort_by_key(|place| (place.range.start, Reverse(place.range.end), place.number));
    let mut out = String::with_capacity(2 * text.len());
    weave(text, &sorted, 0..text.len(), &mut out);
    out
}

fn weave(text: &str, places: &[&Place], range: Range<usize>, out: &mut String) {
    let mut at = range.start;
    let mut left = places;
    while let Some((place, rest)) = left.split_first() {
        let inside = place.range.start >= at && place.range.end <= range.end;
        if !inside {
            left = rest;
            continue;
        }
        out.push_str(&text[at..place.range.start]);
        let within = |one: &&&Place| one.range.end <= place.range.end;
        let inner = rest.iter().take_while(within).count();
        // What is put in covers no bytes, and nothing else is inside of it.
        let inner = if place.range.is_empty() { 0 } else { inner };
        for part in &place.parts {
            match part {
                Part::Text(other) => out.push_str(other),
                Part::Asked => {
                    out.push_str(&format!("crate::mutant::on({})", place.number));
                }
                Part::Same(same) => out.push_str(&text[same.clone()]),
                Part::Woven(same) => weave(text, &rest[..inner], same.clone(), out),
            }
        }
        at = place.range.end;
        left = &rest[inner..];
    }
    out.push_str(&text[at..range.end]);
}

/// The module that answers, at the root of the crate.
pub(super) fn write_answers(mutants: usize) -> String {
    format!(
        r#"//! Written by `bash tests/long/run`: which place is wrong in this process.
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{{AtomicBool, Ordering::Relaxed}};

struct Settings {{
    chosen: Option<usize>,
    all: bool,
    reached: Option<File>,
}}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
static REACHED: [AtomicBool; {mutants}] = [const {{ AtomicBool::new(false) }}; {mutants}];

pub(crate) fn on(number: usize) -> bool {{
    let settings = SETTINGS.get_or_init(|| {{
        let chosen = std::env::var("{CHOSEN}").unwrap_or_default();
        let reached = std::env::var_os("{REACHED}");
        Settings {{
            chosen: chosen.parse().ok(),
            all: chosen == "all",
            reached: reached.map(|folder| {{
                let test = std::env::var("{TEST}").unwrap_or("all".to_owned());
                let path = std::path::Path::new(&folder).join(test);
                File::options().create(true).append(true).open(path).expect("a file for numbers")
            }}),
        }}
    }});
    if let Some(mut file) = settings.reached.as_ref() {{
        if !REACHED[number].swap(true, Relaxed) {{
            file.write_all(format!("{{number}}\n").as_bytes()).expect("a file for numbers");
        }}
    }}
    assert!(!settings.all, "all is broken");
    settings.chosen == Some(number)
}}
"#,
        CHOSEN = super::CHOSEN,
        REACHED = super::REACHED,
        TEST = crate::mutants::TEST,
    )
}
