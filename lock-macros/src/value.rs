//! What stands behind the `=` of an option.

use crate::args::{Kind, Spelling};
use crate::duration;
use crate::fallback::Faults;
use crate::rate::Rate;
use crate::template::Template;
use proc_macro2::Ident;
use syn::{Expr, ExprLit, ExprPath, Lit, LitStr, Path};

pub(crate) enum Value {
    Template(LitStr, Template),
    Rate(Rate),
    Count(u32),
    Millis(u64),
    Forever,
    Bool(bool),
    Word(&'static str),
    Name(Ident),
    Expression(Expr),
    Path(Path),
    /// Given, but wrong; the mistake is already reported.
    Wrong,
}

/// A literal that came through a `macro_rules!` parameter stands in an invisible group.
pub(crate) fn ungrouped(mut expression: Expr) -> Expr {
    while let Expr::Group(group) = expression {
        expression = *group.expr;
    }
    expression
}

pub(crate) fn interpret(expression: Expr, spelling: &Spelling, faults: &mut Faults) -> Value {
    let name = spelling.name;
    let example = spelling.example;
    let wrong = |expression: &Expr, what: &str, faults: &mut Faults| {
        faults.on(
            expression,
            format!("`{name}` is {what}: write, for example, `{example}`"),
        );
        Value::Wrong
    };
    match spelling.kind {
        Kind::Key => match (text(&expression), &expression) {
            (Some(literal), _) => match template(&literal, faults) {
                Some(template) => Value::Template(literal, template),
                None => Value::Wrong,
            },
            (None, Expr::Lit(_)) => wrong(
                &expression,
                "a template or an expression that gives a `LockKey`",
                faults,
            ),
            _ => Value::Expression(expression),
        },
        Kind::Expression(what) => match &expression {
            Expr::Lit(_) => wrong(&expression, what, faults),
            _ => Value::Expression(expression),
        },
        Kind::Rate => match (text(&expression), &expression) {
            (Some(literal), _) => match Rate::parse(&literal.value()) {
                Ok(rate) => Value::Rate(rate),
                Err(message) => {
                    faults.on(&literal, message);
                    Value::Wrong
                }
            },
            (None, Expr::Lit(_)) => wrong(
                &expression,
                "how many in how long, in quotes, or an expression that gives a `Rate`",
                faults,
            ),
            _ => Value::Expression(expression),
        },
        Kind::Count => match &expression {
            Expr::Lit(ExprLit {
                lit: Lit::Int(number),
                ..
            }) => match number.base10_digits().parse() {
                Ok(number) => Value::Count(number),
                Err(_) => wrong(&expression, "a number up to 4294967295", faults),
            },
            Expr::Lit(_) | Expr::Unary(_) => {
                wrong(&expression, "a whole number of at least 1", faults)
            }
            _ => Value::Expression(expression),
        },
        Kind::Duration | Kind::DurationOrForever => {
            let Some(literal) = text(&expression) else {
                return wrong(&expression, "a duration in quotes", faults);
            };
            let forever = matches!(spelling.kind, Kind::DurationOrForever);
            match duration::parse(&literal.value()) {
                _ if forever && literal.value() == "forever" => Value::Forever,
                Ok(millis) => Value::Millis(millis),
                Err(message) => {
                    let or = if forever { "; or \"forever\"" } else { "" };
                    faults.on(&literal, format!("{message}{or}"));
                    Value::Wrong
                }
            }
        }
        Kind::Bool => match &expression {
            Expr::Lit(ExprLit {
                lit: Lit::Bool(value),
                ..
            }) => Value::Bool(value.value),
            _ => wrong(&expression, "`true` or `false`", faults),
        },
        Kind::OneOf(words) => {
            let given = text(&expression).map(|literal| literal.value());
            let known = words.iter().find(|word| given.as_deref() == Some(word));
            match known {
                Some(word) => Value::Word(word),
                None => {
                    let quoted: Vec<String> =
                        words.iter().map(|word| format!("\"{word}\"")).collect();
                    wrong(&expression, &quoted.join(" or "), faults)
                }
            }
        }
        Kind::Name => match path(&expression).and_then(Path::get_ident) {
            Some(name)
                if name != "self" && name != "Self" && name != "crate" && name != "super" =>
            {
                Value::Name(name.clone())
            }
            _ => wrong(&expression, "the name of a variable for the body", faults),
        },
        Kind::Path => match path(&expression) {
            Some(path) => Value::Path(path.clone()),
            None => wrong(&expression, "a path without quotes", faults),
        },
    }
}

/// The template in `literal`; `None`: its mistakes are reported.
pub(crate) fn template(literal: &LitStr, faults: &mut Faults) -> Option<Template> {
    let is_expression = |text: &str| syn::parse_str::<Expr>(text).is_ok();
    match Template::parse(&literal.value(), is_expression) {
        Ok(template) => Some(template),
        Err(messages) => {
            for message in messages {
                faults.on(literal, message);
            }
            None
        }
    }
}

fn text(expression: &Expr) -> Option<LitStr> {
    match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Str(literal),
            ..
        }) => Some(literal.clone()),
        _ => None,
    }
}

fn path(expression: &Expr) -> Option<&Path> {
    match expression {
        Expr::Path(ExprPath {
            qself: None, path, ..
        }) => Some(path),
        _ => None,
    }
}
