//! What the pages claim, and the commands that show it.
//!
//! A number that a command recounts has it beside the sentence, where readers of the page don't see
//! it: `<!-- holds: 44 = COMMAND -->`. What takes longer stands on the page as a command in code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::mutants::repository;

/// A part of the claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Numbers that a command recounts.
    Counts,
    /// The tests that pages name.
    Tests,
    /// The long forms that pages name.
    Long,
    /// The benchmarks that write tables of pages.
    Figures,
}

impl Part {
    /// All, by the names that the command line has for them.
    pub const NAMED: [(&str, Self); 4] = [
        ("counts", Self::Counts),
        ("tests", Self::Tests),
        ("long", Self::Long),
        ("figures", Self::Figures),
    ];

    /// Runs it, and returns what no longer holds.
    ///
    /// # Errors
    ///
    /// If the pages can't be read, or have nothing of this part.
    pub fn run(self) -> Result<Vec<String>, String> {
        let pages = pages()?;
        match self {
            Self::Counts => recounted(&pages),
            // Without a red one among them, those that are named are green.
            Self::Tests => Ok(carried_out("bash tests/run")?.into_iter().collect()),
            Self::Long => {
                let named = commands(&pages, "bash tests/long/run ");
                each(named.iter().filter(|command| !has_placeholder(command)))
            }
            Self::Figures => {
                let before = aims()?;
                let named = commands(&pages, "cargo bench ");
                let mut lost = each(named.iter().filter(|command| command.contains("--page ")))?;
                let after = aims()?;
                for (aim, reached) in &before {
                    let now = after.get(aim).map_or("gone", String::as_str);
                    if now != reached {
                        lost.push(format!(
                            "the aim `{aim}`: reached was {reached}, and is {now}"
                        ));
                    }
                }
                Ok(lost)
            }
        }
    }
}

/// A page and its text.
type Page = (String, String);

fn pages() -> Result<Vec<Page>, String> {
    let listed = output("git ls-files '*.md'")?;
    let read = |name: &str| {
        let text = fs::read_to_string(repository().join(name));
        let text = text.map_err(|error| format!("{name}: {error}"))?;
        Ok((name.to_owned(), text))
    };
    listed.lines().map(read).collect()
}

/// What a command prints, whether it succeeds or not.
fn output(command: &str) -> Result<String, String> {
    let output = Command::new("bash")
        .args(["-c", command])
        .current_dir(repository())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("bash: {error}"))?;
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// Runs a command before the eyes of whoever waits. What no longer holds, if it fails.
fn carried_out(command: &str) -> Result<Option<String>, String> {
    let began = Instant::now();
    println!("==> {command}");
    let status = Command::new("bash")
        .args(["-c", command])
        .current_dir(repository())
        .status()
        .map_err(|error| format!("bash: {error}"))?;
    println!("==> {command}: {status} after {:.0?}", began.elapsed());
    Ok((!status.success()).then(|| format!("`{command}` fails")))
}

fn each<'c>(commands: impl Iterator<Item = &'c String>) -> Result<Vec<String>, String> {
    let (mut lost, mut all) = (Vec::new(), 0);
    for command in commands {
        all += 1;
        lost.extend(carried_out(command)?);
    }
    match all {
        0 => Err("no page names such a command".to_owned()),
        _ => Ok(lost),
    }
}

fn recounted(pages: &[Page]) -> Result<Vec<String>, String> {
    let (mut lost, mut all) = (Vec::new(), 0);
    for (page, text) in pages {
        for comment in text.split("<!-- holds: ").skip(1) {
            let claim = comment
                .split_once("-->")
                .map(|(claim, _)| in_one_line(claim));
            let claim = claim.ok_or_else(|| format!("{page}: a comment without an end"))?;
            let Some((expected, command)) = claim.split_once(" = ") else {
                return Err(format!("{page}: this has no command: {claim}"));
            };
            all += 1;
            if !says(text, expected) {
                lost.push(format!(
                    "{page} does not say {expected}, which a comment there has"
                ));
            }
            let found = in_one_line(&output(command)?);
            match found == expected {
                true => println!("holds: {page}: {claim}"),
                false => lost.push(format!(
                    "{page} says {expected}, and it is {found}: {command}"
                )),
            }
        }
    }
    match all {
        0 => Err("no page has a number with its command".to_owned()),
        _ => Ok(lost),
    }
}

/// Whether readers of a page see this number.
fn says(page: &str, number: &str) -> bool {
    let mut seen = page
        .split("<!--")
        .map(|part| part.split_once("-->").map_or(part, |(_, b)| b));
    seen.any(|part| {
        part.split(|c: char| !c.is_alphanumeric())
            .any(|word| word == number)
    })
}

/// Every command on the pages that begins so, in code or in a block of code.
fn commands(pages: &[Page], start: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, text) in pages {
        let text = text.replace("\\\n", " ");
        let mut before = '\n';
        for (at, _) in text.match_indices(start) {
            before = text[..at].chars().next_back().unwrap_or(before);
            let end = match before {
                '`' => '`',
                '\n' => '\n',
                _ => continue,
            };
            let command = text[at..].split(end).next().unwrap_or_default();
            // What follows in a block is a remark.
            let command = command.split(" #").next().unwrap_or_default();
            found.insert(in_one_line(command));
        }
    }
    found
}

/// `NAME` stands for any.
fn has_placeholder(command: &str) -> bool {
    let is_capital = |word: &str| word.chars().all(|c| c.is_ascii_uppercase());
    command
        .split([' ', '.', '[', ']'])
        .any(|word| word.len() > 1 && is_capital(word))
}

/// Whether each aim of the benchmarks' page is reached: `yes` or `no`.
fn aims() -> Result<BTreeMap<String, String>, String> {
    let page = repository().join("tests/benches/README.md");
    let text = fs::read_to_string(&page).map_err(|error| error.to_string())?;
    let mut aims = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, aim, .., reached @ ("yes" | "no"), _] = cells[..] {
            aims.insert(aim.to_owned(), reached.to_owned());
        }
    }
    match aims.is_empty() {
        true => Err("the benchmarks' page has no aims".to_owned()),
        false => Ok(aims),
    }
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_code_and_in_blocks() {
        let text = "Run `bash tests/long/run\nmodels`, not bash tests/long/run drift.\n\
            ```sh\nbash tests/long/run soak \\\n    --minutes 60 # an hour\n```\n";
        let pages = [("a page".to_owned(), text.to_owned())];
        let found = commands(&pages, "bash tests/long/run");
        let wanted = [
            "bash tests/long/run models",
            "bash tests/long/run soak --minutes 60",
        ];
        assert_eq!(found, wanted.map(str::to_owned).into());
    }

    #[test]
    fn a_number_that_is_another_one_is_told() {
        let page = |claim: &str| {
            [(
                "a page".to_owned(),
                format!("4 of\n<!-- holds: {claim} -->"),
            )]
        };
        assert_eq!(recounted(&page("4 = echo 4")), Ok(Vec::new()));
        let lost = vec!["a page says 4, and it is 5: echo 5".to_owned()];
        assert_eq!(recounted(&page("4 =\necho 5")), Ok(lost));
        let other = [(
            "a page".to_owned(),
            "5 of <!-- holds: 4 = echo 4 --> them".to_owned(),
        )];
        assert_eq!(recounted(&other).map(|lost| lost.len()), Ok(1));
        assert!(recounted(&page("4")).is_err());
        assert!(recounted(&[]).is_err());
    }

    #[test]
    fn a_word_in_capitals_stands_for_any() {
        assert!(has_placeholder("bash tests/long/run NAME [ARGUMENT]..."));
        assert!(!has_placeholder(
            "bash tests/long/run soak --minutes 60 --seed 1"
        ));
    }
}
