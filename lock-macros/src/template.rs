//! Key templates: takes `"stock:<product_id>"` apart, and finds what is wrong with the text alone.

pub(crate) mod lookalike;
pub(crate) mod placeholder;

use crate::template::lookalike::Lookalike;
use std::fmt::{self, Display, Formatter};

/// The runtime's limit for a rendered key, in bytes.
const LONGEST: usize = 512;
/// How many `>` may end a placeholder: a hostile template must not slow the compiler down.
const MOST_CANDIDATES: usize = 16;
/// The message for braces that are not one pair with something inside.
const ODD_BRACES: &str = "\
    `{` and `}` mark the Redis Cluster hash tag of a key, so they come as one pair with something \
    inside, for example \"{<tenant>}:stock:<id>\": write one pair or none";

/// Gives a name as it has to be written, if it stands for a value.
pub(crate) type KnownNames<'k> = &'k dyn Fn(&str) -> Option<String>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    /// Text that is in every key, with `<<` and `>>` already read as `<` and `>`.
    Literal(String),
    /// What stands between `<` and `>`, as written.
    Placeholder(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) parts: Vec<TemplatePart>,
    /// Its braces are not one pair with something inside. This is reported when the names are
    /// known, since the braces may have been meant as placeholders.
    odd_braces: bool,
}

/// Prints the template as one would write it.
impl Display for Template {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => {
                    f.write_str(&text.replace('<', "<<").replace('>', ">>"))?;
                }
                TemplatePart::Placeholder(text) => write!(f, "<{text}>")?,
            }
        }
        Ok(())
    }
}

impl Template {
    /// Takes a template apart, and says what is wrong with its text. The parts are usable anyway.
    /// `is_expression` finds the end of a placeholder that contains `>`.
    pub(crate) fn parse(text: &str, is_expression: impl Fn(&str) -> bool) -> (Self, Vec<String>) {
        let mut messages = Vec::new();
        let mut template = read(text, is_expression, &mut messages);
        if messages.is_empty() {
            template.check(&mut messages);
        }
        (template, messages)
    }

    /// Room for the literal text and a usual value in each placeholder.
    pub(crate) fn capacity(&self) -> usize {
        self.parts
            .iter()
            .map(|part| match part {
                TemplatePart::Literal(text) => text.len(),
                TemplatePart::Placeholder(_) => 20,
            })
            .sum()
    }

    /// What is wrong with names in the plain text. `known` gives those that stand for values, as
    /// they have to be written. `None`: nobody knows them.
    pub(crate) fn check_names(&self, known: Option<KnownNames<'_>>) -> Vec<String> {
        let is_plain = self.parts.iter().all(|part| part.literal().is_some());
        let counts = |name: &str| match known {
            Some(known) => known(name),
            // Who has written one placeholder knows how to write another.
            None => is_plain.then(|| name.to_owned()),
        };
        let text = self.parts.iter().filter_map(TemplatePart::literal);
        let found: Vec<Lookalike> = text
            .flat_map(|text| lookalike::find_all(text, counts))
            .collect();
        if found.is_empty() && self.odd_braces {
            return vec![ODD_BRACES.to_owned()];
        }
        let messages = found
            .iter()
            .map(|found| self.explain_lookalike(found, known.is_some()));
        messages.collect()
    }

    fn explain_lookalike(&self, found: &Lookalike, in_attribute: bool) -> String {
        let Lookalike {
            written,
            expression,
            is_tag,
        } = found;
        let tag = match is_tag {
            true => format!(", or `{{<{expression}>}}` for a hash tag"),
            false => String::new(),
        };
        let plain = match (in_attribute, is_tag) {
            (false, _) => format!("write `LockKey::from(\"{}\")`", self.plain_text()),
            (true, true) => "rename the tag".to_owned(),
            (true, false) => "write another word".to_owned(),
        };
        format!(
            "`{written}` is plain text, so the key is the same for every `{expression}`: write \
             `<{expression}>`{tag}; for plain text, {plain}"
        )
    }

    fn plain_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(TemplatePart::literal)
            .collect()
    }

    fn check(&mut self, messages: &mut Vec<String>) {
        let literal = self.plain_text();
        if self.parts.is_empty() {
            messages.push(
                "an empty key locks nothing: write what is locked, for example \
                 \"stock:<product_id>\""
                    .to_owned(),
            );
        }
        let kept = |text: &str| text.starts_with('%') && !begins_with_escape(text);
        let texts = self.parts.iter().filter_map(TemplatePart::literal);
        if let Some(TemplatePart::Literal(first)) = self.parts.first()
            && kept(first)
        {
            messages.push(
                "a key can't begin with `%`, these names are kept for the lock's own helper keys: \
                 begin with another character"
                    .to_owned(),
            );
        } else if texts
            .flat_map(|text| text.split(':').skip(1))
            // A helper's name is a word. `%id%` is a placeholder of others, told elsewhere.
            .any(|text| {
                let name = text.strip_prefix('%').unwrap_or_default();
                let is_word = name.starts_with(|first: char| first.is_ascii_lowercase());
                kept(text) && is_word && !name.contains('%')
            })
        {
            messages.push(
                "`:%` begins the names of the lock's own helper keys, as `lock:%queue:…`: write \
                 another character, or `%25` for a `%`"
                    .to_owned(),
            );
        }
        if literal.len() > LONGEST {
            messages.push(format!(
                "the text of this key alone has {} bytes, a key has at most {LONGEST}: write a \
                 shorter one",
                literal.len()
            ));
        }
        if !self.has_separated_placeholders() {
            messages.push(format!(
                "between two placeholders stands at least one of `:` `{{` `}}`, or different \
                 values give the same key: write \"{}\"",
                self.with_separators()
            ));
        }
        self.odd_braces = !self.braces_are_one_tag();
    }

    fn has_separated_placeholders(&self) -> bool {
        let mut open = false;
        for part in &self.parts {
            match part {
                TemplatePart::Placeholder(_) if open => return false,
                TemplatePart::Placeholder(_) => open = true,
                TemplatePart::Literal(text) => open = open && !is_separator(text),
            }
        }
        true
    }

    /// The same template with a `:` where one is missing.
    fn with_separators(&self) -> Template {
        let mut parts: Vec<TemplatePart> = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|i| self.parts.get(i));
            let after = self.parts.get(at + 1);
            match part {
                TemplatePart::Placeholder(_) => {
                    if matches!(before, Some(TemplatePart::Placeholder(_))) {
                        parts.push(TemplatePart::Literal(":".to_owned()));
                    }
                    parts.push(part.clone());
                }
                TemplatePart::Literal(text)
                    if before.is_some() && after.is_some() && !is_separator(text) =>
                {
                    let word = text.trim_matches(|c: char| !c.is_alphanumeric());
                    parts.push(TemplatePart::Literal(match word {
                        "" => ":".to_owned(),
                        word => format!(":{word}:"),
                    }));
                }
                TemplatePart::Literal(_) => parts.push(part.clone()),
            }
        }
        Template {
            parts,
            odd_braces: false,
        }
    }

    fn braces_are_one_tag(&self) -> bool {
        let mut opened = 0;
        let mut closed = 0;
        let mut inside = false;
        for part in &self.parts {
            match part {
                TemplatePart::Placeholder(_) => inside = inside || (opened == 1 && closed == 0),
                TemplatePart::Literal(text) => {
                    for c in text.chars() {
                        match c {
                            '{' if opened == 0 && closed == 0 => opened = 1,
                            '}' if opened == 1 && closed == 0 && inside => closed = 1,
                            '{' | '}' => return false,
                            _ => inside = inside || (opened == 1 && closed == 0),
                        }
                    }
                }
            }
        }
        opened == closed
    }
}

impl TemplatePart {
    fn literal(&self) -> Option<&str> {
        match self {
            TemplatePart::Literal(text) => Some(text),
            TemplatePart::Placeholder(_) => None,
        }
    }
}

/// `%XX`, as the runtime escapes a character of a value.
fn begins_with_escape(text: &str) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    match text.as_bytes() {
        [b'%', first, second, ..] => is_digit(first) && is_digit(second),
        _ => false,
    }
}

fn is_separator(text: &str) -> bool {
    text.contains([':', '{', '}'])
}

fn read(text: &str, is_expression: impl Fn(&str) -> bool, messages: &mut Vec<String>) -> Template {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let offset = text.len() - rest.len();
        match first {
            '<' | '>' if after.starts_with(first) => {
                literal.push(first);
                rest = &after[1..];
            }
            '>' => {
                messages.push(format!(
                    "a `>` without its `<` (byte {offset} of the key): write `<name>` for a \
                     placeholder, `>>` for the character"
                ));
                rest = after;
            }
            '<' => {
                let Some(end) = end_of_placeholder(after, &is_expression) else {
                    messages.push(format!(
                        "a `<` without its `>` (byte {offset} of the key): write `<name>` for a \
                         placeholder, `<<` for the character"
                    ));
                    break;
                };
                push_literal(&mut parts, &mut literal);
                push_placeholder(&mut parts, &after[..end], messages);
                rest = &after[end + 1..];
            }
            _ => {
                literal.push(first);
                rest = after;
            }
        }
    }
    push_literal(&mut parts, &mut literal);
    Template {
        parts,
        odd_braces: false,
    }
}

fn push_literal(parts: &mut Vec<TemplatePart>, literal: &mut String) {
    if !literal.is_empty() {
        parts.push(TemplatePart::Literal(std::mem::take(literal)));
    }
}

fn push_placeholder(parts: &mut Vec<TemplatePart>, inside: &str, messages: &mut Vec<String>) {
    if inside.trim().is_empty() {
        messages.push(
            "an empty placeholder: write a parameter in it, for example `<id>`; the characters \
             `<>` are written `<<>>`"
                .to_owned(),
        );
    } else {
        parts.push(TemplatePart::Placeholder(inside.to_owned()));
    }
}

/// The first `>` up to which there is an expression (`<a.get::<u8>()>` has two), else the first
/// `>`.
fn end_of_placeholder(text: &str, is_expression: impl Fn(&str) -> bool) -> Option<usize> {
    let first = text.find('>')?;
    let whole = text
        .match_indices('>')
        .map(|(at, _)| at)
        .take(MOST_CANDIDATES)
        .find(|at| is_expression(&text[..*at]));
    Some(whole.unwrap_or(first))
}

#[cfg(test)]
mod tests;
