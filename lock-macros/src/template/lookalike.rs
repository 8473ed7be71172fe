//! Placeholders as other frameworks write them: `{id}`, `${id}`, `#id`, `$id`, `%id%`. Here they
//! are plain text, and the key would be one for all values.

/// A name in the spelling of another framework.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lookalike {
    /// As it stands in the template.
    pub(crate) written: String,
    /// What was meant, without brackets.
    pub(crate) expression: String,
    /// `{…}` alone, which is also how a hash tag is written.
    pub(crate) is_tag: bool,
}

/// All of them in a template's plain text. `known` gives the names that count, as they have to be
/// written.
pub(crate) fn find_all(text: &str, known: impl Fn(&str) -> Option<String>) -> Vec<Lookalike> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let lookalike = find_at_the_front(rest, &known);
        let read = lookalike
            .as_ref()
            .map_or(first.len_utf8(), |found| found.written.len());
        found.extend(lookalike);
        rest = &rest[read..];
    }
    found
}

fn find_at_the_front(text: &str, known: &impl Fn(&str) -> Option<String>) -> Option<Lookalike> {
    let mark = text.chars().next()?;
    let after = &text[mark.len_utf8()..];
    let (expression, behind) = match mark {
        '{' => strip_braced(text, known)?,
        '$' | '#' if after.starts_with('{') => strip_braced(after, known)?,
        '$' | '#' => strip_path(after, known)?,
        '%' => {
            let (name, behind) = strip_path(after, known)?;
            (name, behind.strip_prefix('%')?)
        }
        _ => return None,
    };
    Some(Lookalike {
        written: text[..text.len() - behind.len()].to_owned(),
        expression,
        is_tag: mark == '{',
    })
}

/// `{name}`, `{name.field}` and `{name:format}`: the expression in it, and what stands behind.
fn strip_braced<'t>(
    text: &'t str,
    known: &impl Fn(&str) -> Option<String>,
) -> Option<(String, &'t str)> {
    let (inside, behind) = text.strip_prefix('{')?.split_once('}')?;
    let expression = match inside.split_once(':') {
        Some((expression, format)) if !format.starts_with(':') => expression,
        _ => inside,
    };
    let expression = expression.trim();
    let (name, access) = split_word(expression)?;
    if !access.is_empty() && !access.starts_with(['.', '[', '(']) {
        return None;
    }
    Some((known(name)? + access, behind))
}

/// `name.field.field`, as far as it goes.
fn strip_path<'t>(
    text: &'t str,
    known: &impl Fn(&str) -> Option<String>,
) -> Option<(String, &'t str)> {
    let (name, mut behind) = split_word(text)?;
    let mut expression = known(name)?;
    while let Some((field, further)) = behind.strip_prefix('.').and_then(split_word) {
        expression = format!("{expression}.{field}");
        behind = further;
    }
    Some((expression, behind))
}

/// The identifier at the front, and what stands behind it.
fn split_word(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (word, behind) = text.split_at(end.unwrap_or(text.len()));
    let is_name = word.starts_with(|c: char| !c.is_numeric());
    is_name.then_some((word, behind))
}

#[cfg(test)]
mod tests {
    use super::find_all;
    use proptest::prelude::*;

    fn meant(text: &str) -> Vec<(String, String)> {
        let known = |name: &str| match name {
            "id" | "self" => Some(name.to_owned()),
            "type" => Some("r#type".to_owned()),
            _ => None,
        };
        let found = find_all(text, known).into_iter();
        found.map(|one| (one.written, one.expression)).collect()
    }

    #[test]
    fn every_spelling_is_found_with_what_was_meant() {
        for (written, expression) in [
            ("{id}", "id"),
            ("{ id }", "id"),
            ("{self.shop.id}", "self.shop.id"),
            ("{id:?}", "id"),
            ("{id:>08}", "id"),
            ("{id[0].sku}", "id[0].sku"),
            ("{id.get::<u8>()}", "id.get::<u8>()"),
            ("${id}", "id"),
            ("#{id}", "id"),
            ("$id", "id"),
            ("#id", "id"),
            ("#self.shop.id", "self.shop.id"),
            ("%id%", "id"),
            ("{type}", "r#type"),
        ] {
            for text in [written.to_owned(), format!("ü:{written}:b")] {
                let expected = [(written.to_owned(), expression.to_owned())];
                assert_eq!(meant(&text), expected, "{text}");
            }
        }
        assert_eq!(meant("{id}:#id.").len(), 2);
    }

    #[test]
    fn plain_text_is_left_alone() {
        for text in [
            "id", "{ids}", "{tenant}", "{id", "{id:", "{1}", "#1", "#ids", "$", "%id", "%ids%",
            "50%", "{id-1}", "{}", "{my id}", ":id", "@id", "%25id", "{::id}",
        ] {
            assert_eq!(meant(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_an_answer(text in "[{}$#%:.a-bü1 ]{0,12}") {
            let found = find_all(&text, |name| Some(name.to_owned()));
            prop_assert!(found.iter().all(|one| text.contains(&one.written)));
        }
    }
}
