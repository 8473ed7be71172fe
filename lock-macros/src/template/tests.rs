//! Templates: by example, and by random text.

use super::{Template, TemplatePart};
use proptest::prelude::*;

fn is_expression(text: &str) -> bool {
    syn::parse_str::<syn::Expr>(text).is_ok()
}

fn parse(text: &str) -> Result<Template, Vec<String>> {
    let (template, mut mistakes) = Template::parse(text, is_expression);
    mistakes.extend(template.check_names(Some(&|_| None)));
    if mistakes.is_empty() {
        Ok(template)
    } else {
        Err(mistakes)
    }
}

fn literal(text: &str) -> TemplatePart {
    TemplatePart::Literal(text.to_owned())
}

fn placeholder(text: &str) -> TemplatePart {
    TemplatePart::Placeholder(text.to_owned())
}

#[test]
fn takes_templates_apart() {
    let table = [
        ("a", vec![literal("a")]),
        ("<id>", vec![placeholder("id")]),
        (
            "stock:<product_id>",
            vec![literal("stock:"), placeholder("product_id")],
        ),
        ("a<<b>>c", vec![literal("a<b>c")]),
        (
            "<<<id>>>",
            vec![literal("<"), placeholder("id"), literal(">")],
        ),
        (
            "{<t>}:<id>",
            vec![
                literal("{"),
                placeholder("t"),
                literal("}:"),
                placeholder("id"),
            ],
        ),
        (
            "<a.get::<u8>()>:x",
            vec![placeholder("a.get::<u8>()"), literal(":x")],
        ),
        ("<items[0].sku>", vec![placeholder("items[0].sku")]),
    ];
    for (text, parts) in table {
        let template = parse(text).expect(text);
        assert_eq!(template.parts, parts, "{text}");
    }
}

#[test]
fn says_what_to_write() {
    let table = [
        ("", "an empty key"),
        ("%x", "can't begin with `%`"),
        ("%3a:x", "can't begin with `%`"),
        ("%<a>", "can't begin with `%`"),
        ("<>", "an empty placeholder"),
        ("< >", "an empty placeholder"),
        ("a<id", "`<` without its `>` (byte 1"),
        ("a:id>", "`>` without its `<` (byte 4"),
        ("<a><b>", "write \"<a>:<b>\""),
        ("<a>-<b>", "write \"<a>:<b>\""),
        ("<a>-item-<b>", "write \"<a>:item:<b>\""),
        ("x:<a>:<b> <c>", "write \"x:<a>:<b>:<c>\""),
        ("{}", "one pair"),
        ("{a", "one pair"),
        ("a}", "one pair"),
        ("}a{", "one pair"),
        ("{{a}}", "one pair"),
        ("{<a>}:{<b>}", "one pair"),
    ];
    for (text, part) in table {
        let mistakes = parse(text).expect_err(text);
        assert!(mistakes[0].contains(part), "{text}: {mistakes:?}");
    }
    assert!(parse(&"x".repeat(513)).is_err());
    assert!(parse(&"x".repeat(512)).is_ok());
}

#[test]
fn every_fault_of_one_template_is_reported() {
    let mistakes = parse("%<a>-<b>{}").expect_err("three mistakes");
    assert_eq!(mistakes.len(), 3, "{mistakes:?}");
}

#[test]
fn accepts_an_escape_in_front() {
    for text in ["%3A:<a>", "%25", "%20x"] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

#[test]
fn accepts_one_hash_tag() {
    for text in ["{a}", "{<a>}", "{<a>}:b:<c>", "x{y}z", "{<a>}<b>"] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

/// Text that is mostly template syntax, so that random cases reach every branch.
fn crooked() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just("<".to_owned()),
            Just(">".to_owned()),
            Just("{".to_owned()),
            Just("}".to_owned()),
            Just(":".to_owned()),
            Just("%".to_owned()),
            Just("a.b".to_owned()),
            Just("é".to_owned()),
            Just("x()".to_owned()),
            "\\PC{0,3}",
        ],
        0..24,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_text_gives_an_answer(text in prop_oneof![crooked(), "\\PC*", any::<String>()]) {
        if let Err(mistakes) = parse(&text) {
            prop_assert!(!mistakes.is_empty());
            prop_assert!(mistakes.iter().all(|fault| !fault.is_empty()));
        }
    }

    #[test]
    fn what_was_read_prints_as_it_was_written(text in crooked()) {
        if let Ok(template) = parse(&text) {
            prop_assert_eq!(template.to_string(), text);
        }
    }

    #[test]
    fn the_template_to_write_is_one_that_is_accepted(
        between in proptest::collection::vec("[a-z./ -]{0,4}", 1..4),
    ) {
        let mut text = "<a>".to_owned();
        for literal in &between {
            text.push_str(literal);
            text.push_str("<b>");
        }
        let mistakes = parse(&text).expect_err("no separator");
        let advised = mistakes[0].split('"').nth(1).expect("a template in quotes");
        prop_assert!(parse(advised).is_ok(), "{}", advised);
    }
}

#[test]
fn the_names_of_helper_keys_are_kept_in_each_part_of_a_key() {
    for text in ["%queue:x", "lock:%queue:x", "a:<b>:%rate:c"] {
        let (_, messages) = Template::parse(text, |_| true);
        assert_eq!(messages.len(), 1, "{text}: {messages:?}");
        assert!(messages[0].contains("helper keys"), "{messages:?}");
    }
    for text in ["a:%25", "100%:b", "a:b%c", "a:%:b"] {
        let (_, messages) = Template::parse(text, |_| true);
        assert!(messages.is_empty(), "{text}: {messages:?}");
    }
}
