//! No link of a page is dead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{definition, pages, root};

#[test]
fn no_link_is_dead() {
    let (mut links, mut dead) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links_of(&text) {
            links += 1;
            if let Err(why) = follow(&page, &link) {
                dead.push(format!("{}: {link}: {why}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(links > 100, "{links}");
}

/// A test that can't fail shows nothing.
#[test]
fn a_dead_link_is_found() {
    let page = root().join("README.md");
    let text = "\
        # Title, and `code`\n\
        [file](none.md) [anchor](#none) [label][none] ![picture](none.svg)\n\
        [far](https://example.org/) [heading](#guarantees) `[code](none)`\n\
        ```text\n[fence](none)\n```\n\
        [defined][here]\n\n[here]: CHANGELOG.md#none\n";
    let found: Vec<String> = links_of(text)
        .into_iter()
        .filter(|link| follow(&page, link).is_err())
        .collect();
    assert_eq!(
        found,
        [
            "none.md",
            "#none",
            "none.svg",
            "CHANGELOG.md#none",
            "[none]"
        ]
    );
    assert!(headings(text).contains("title-and-code"));
    assert_eq!(headings("# A\n# A"), ["a", "a-1"].map(str::to_owned).into());
}

/// The targets of the text's links. A label without a definition is a link to `[label]`.
fn links_of(text: &str) -> Vec<String> {
    let (mut links, mut labels, mut defined) = (Vec::new(), Vec::new(), BTreeSet::new());
    for line in prose(text) {
        if let Some((label, target)) = definition(&line) {
            defined.insert(label.to_owned());
            links.push(target.to_owned());
            continue;
        }
        for behind in line.split("](").skip(1) {
            links.extend(behind.split_once(')').map(|(target, _)| target.to_owned()));
        }
        for behind in line.split("][").skip(1) {
            labels.extend(behind.split_once(']').map(|(label, _)| label.to_owned()));
        }
    }
    let undefined = labels.into_iter().filter(|label| !defined.contains(label));
    links.extend(undefined.map(|label| format!("[{label}]")));
    links
}

/// The lines outside of fences, without the code in them.
fn prose(text: &str) -> Vec<String> {
    let (mut is_code, mut lines) = (false, Vec::new());
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line.split('`').step_by(2).collect());
        }
    }
    lines
}

/// Whether the link of this page leads anywhere.
fn follow(page: &Path, link: &str) -> Result<(), String> {
    if link.starts_with("https://") {
        return Ok(());
    }
    if link.starts_with('[') {
        return Err("it has no definition".to_owned());
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => page.parent().unwrap().join(file),
    };
    if !target.exists() {
        return Err(format!("there is no {}", target.display()));
    }
    if !anchor.is_empty() {
        let text = fs::read_to_string(&target).map_err(|error| error.to_string())?;
        if !headings(&text).contains(anchor) {
            return Err(format!("no heading of {} is {anchor}", target.display()));
        }
    }
    Ok(())
}

/// The anchors of its headings, as code hosts make them.
fn headings(text: &str) -> BTreeSet<String> {
    let (mut is_code, mut anchors) = (false, BTreeSet::new());
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || !line.starts_with('#') {
            continue;
        }
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
        let anchor: String = heading.chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        let same = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(same);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}

/// The pages of the docs are modules of the rustdoc, too. What leads to another page there must be
/// a definition that `guide.rs` has.
#[test]
fn each_link_between_pages_leads_there_in_the_rustdoc() {
    let guide = fs::read_to_string(root().join("lock-runtime/src/guide.rs")).unwrap();
    let (mut links, mut dead) = (0, Vec::new());
    let in_docs = |page: &PathBuf| page.parent().unwrap().ends_with("docs");
    for page in pages().into_iter().filter(in_docs) {
        let text = fs::read_to_string(&page).unwrap();
        links += dead_in_rustdoc(&text, &guide, &mut dead);
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(links > 50, "{links}");
    // The first one wins there.
    let labels = guide.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix("/// ")?;
        Some(definition(line)?.0)
    });
    let mut labels: Vec<_> = labels.collect();
    let all = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), all, "a label is there twice");
}

#[test]
fn a_link_that_is_dead_in_the_rustdoc_is_found() {
    let guide = "/// [there]: crate::guide::cost#memory\n/// [other]: crate::guide::cost\n";
    let text = "\
        [in the text](cost.md) and [its heading](#memory), [far](https://example.org/a.md)\n\
        [there]: cost.md#memory\n[other]: cost.md#memory\n[none]: cost.md\n";
    let mut dead = Vec::new();
    assert_eq!(dead_in_rustdoc(text, guide, &mut dead), 4);
    let expected = ["cost.md", "[other]: cost.md#memory", "[none]: cost.md"];
    assert_eq!(dead, expected);
}

/// Counts the links to other pages, and adds those that are dead there.
fn dead_in_rustdoc(text: &str, guide: &str, dead: &mut Vec<String>) -> usize {
    let mut links = 0;
    for line in prose(text) {
        if let Some((label, target)) = definition(&line) {
            let Some((page, anchor)) = page_of(target) else {
                continue;
            };
            links += 1;
            if !guide.contains(&format!("/// [{label}]: crate::guide::{page}{anchor}\n")) {
                dead.push(format!("[{label}]: {target}"));
            }
            continue;
        }
        let targets = line.split("](").skip(1);
        let targets = targets.filter_map(|behind| Some(behind.split_once(')')?.0));
        for target in targets.filter(|target| page_of(target).is_some()) {
            links += 1;
            dead.push(target.to_owned());
        }
    }
    links
}

/// The page beside this one that a link leads to, and where in it. The attributes' pages are those
/// of the macros in the rustdoc.
fn page_of(target: &str) -> Option<(&str, &str)> {
    let is_beside = !target.contains("..") && !target.contains("://");
    target.split_once(".md").filter(|_| is_beside)
}
