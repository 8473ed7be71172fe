//! The value behind the `=` of an option.

use crate::args::{FOREVER, Spelling, ValueKind};
use crate::faults::Faults;
use crate::parse::duration;
use crate::parse::rate::Rate;
use crate::template::Template;
use proc_macro2::Ident;
use std::collections::HashSet;
use syn::{Expr, ExprArray, ExprLit, ExprPath, ExprUnary, Lit, LitStr, Path, UnOp};

/// One step of the store takes all of them, and everybody else waits for that step.
const MOST_KEYS: usize = 64;
/// As in the runtime: one more is the whole of a read-write lock.
const MOST_PERMITS: u64 = (1 << 31) - 2;

pub(crate) enum Value {
    Template(LitStr, Template),
    /// Each a `Template`, an `Expression` or `Wrong`.
    Keys(Vec<Value>),
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
        ValueKind::Key => match (text(&expression), &expression) {
            (Some(literal), _) => {
                let template = template(&literal, faults);
                Value::Template(literal, template)
            }
            (None, Expr::Lit(_)) => wrong(
                &expression,
                "a template or an expression that gives a `LockKey`",
                faults,
            ),
            _ => Value::Expression(expression),
        },
        ValueKind::Keys => match &expression {
            Expr::Array(array) => keys(array, spelling, faults),
            _ => wrong(
                &expression,
                "a list of templates or expressions in brackets",
                faults,
            ),
        },
        ValueKind::Permits => match permits(&expression) {
            Ok(()) => Value::Expression(expression),
            Err(WrongPermits::OutOfRange) => {
                faults.on(
                    &expression,
                    format!(
                        "`{name}` is how many may hold it at once, 1 to {MOST_PERMITS}: write, \
                         for example, `{example}`"
                    ),
                );
                Value::Wrong
            }
            Err(WrongPermits::NotANumber) => wrong(
                &expression,
                "a whole number, or an expression that gives a `u32`",
                faults,
            ),
        },
        ValueKind::Expression(what) => match &expression {
            Expr::Lit(_) => wrong(&expression, what, faults),
            _ => Value::Expression(expression),
        },
        ValueKind::Rate => match (text(&expression), &expression) {
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
        ValueKind::Count => match &expression {
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
        ValueKind::Duration | ValueKind::DurationOrForever => {
            let forever = matches!(spelling.kind, ValueKind::DurationOrForever);
            let literal = match (text(&expression), &expression) {
                (Some(literal), _) => literal,
                (None, Expr::Lit(_)) => {
                    let or = if forever { ", \"forever\"" } else { "" };
                    let what = format!(
                        "a duration in quotes{or} or an expression that gives a `Duration`"
                    );
                    return wrong(&expression, &what, faults);
                }
                _ => return Value::Expression(expression),
            };
            match duration::parse(&literal.value()) {
                _ if forever && literal.value() == FOREVER => Value::Forever,
                Ok(millis) => Value::Millis(millis),
                Err(_) if literal.value() == FOREVER => {
                    faults.on(
                        &literal,
                        format!("`{name}` can't be forever: write, for example, `{example}`"),
                    );
                    Value::Wrong
                }
                Err(message) => {
                    let or = if forever { "; or \"forever\"" } else { "" };
                    faults.on(&literal, format!("{message}{or}"));
                    Value::Wrong
                }
            }
        }
        ValueKind::Bool => match &expression {
            Expr::Lit(ExprLit {
                lit: Lit::Bool(value),
                ..
            }) => Value::Bool(value.value),
            _ => wrong(&expression, "`true` or `false`", faults),
        },
        ValueKind::OneOf(words) => {
            let given = text(&expression).map(|literal| literal.value());
            let known = words.iter().find(|word| given.as_deref() == Some(word));
            match known {
                Some(word) => Value::Word(word),
                None => wrong(&expression, &one_of(words), faults),
            }
        }
        ValueKind::Name => match path(&expression).and_then(Path::get_ident) {
            Some(name)
                if name != "self" && name != "Self" && name != "crate" && name != "super" =>
            {
                Value::Name(name.clone())
            }
            _ => wrong(&expression, "the name of a variable for the body", faults),
        },
        ValueKind::Path => match path(&expression) {
            Some(path) => Value::Path(path.clone()),
            None => wrong(&expression, "a path without quotes", faults),
        },
    }
}

/// Every key is read, also after a wrong one.
fn keys(array: &ExprArray, spelling: &Spelling, faults: &mut Faults) -> Value {
    let name = spelling.name;
    let example = spelling.example;
    let count = array.elems.len();
    if count == 0 {
        faults.on(
            array,
            format!("`{name}` is empty and would lock nothing: write, for example, `{example}`"),
        );
    } else if count > MOST_KEYS {
        faults.on(
            array,
            format!(
                "`{name}` lists {count} keys, and at most {MOST_KEYS} are locked at once: write \
                 fewer, or one key for all of them"
            ),
        );
    }
    let mut literals = HashSet::new();
    let each = Spelling {
        kind: ValueKind::Key,
        ..*spelling
    };
    let values = array.elems.iter().cloned().map(|element| {
        let element = ungrouped(element);
        match (text(&element), &element) {
            (Some(literal), _) if !literals.insert(literal.value()) => {
                faults.on(
                    &literal,
                    format!("this key is twice in `{name}`: write another one, or leave it out"),
                );
                Value::Wrong
            }
            (None, Expr::Lit(_)) => {
                faults.on(
                    &element,
                    format!(
                        "each of `{name}` is a template or an expression that gives a `LockKey`: \
                         write, for example, `{example}`"
                    ),
                );
                Value::Wrong
            }
            _ => interpret(element, &each, faults),
        }
    });
    Value::Keys(values.collect())
}

enum WrongPermits {
    OutOfRange,
    NotANumber,
}

/// Only a literal can be wrong here. What another expression gives is seen when it runs.
fn permits(expression: &Expr) -> Result<(), WrongPermits> {
    match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Int(literal),
            ..
        }) => match literal.base10_parse::<u64>() {
            Ok(1..=MOST_PERMITS) => Ok(()),
            _ => Err(WrongPermits::OutOfRange),
        },
        Expr::Lit(_) => Err(WrongPermits::NotANumber),
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr: negated,
            ..
        }) if matches!(**negated, Expr::Lit(_)) => Err(WrongPermits::OutOfRange),
        _ => Ok(()),
    }
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The template in `literal`. Its mistakes are reported.
pub(crate) fn template(literal: &LitStr, faults: &mut Faults) -> Template {
    let is_expression = |text: &str| syn::parse_str::<Expr>(text).is_ok();
    let (template, messages) = Template::parse(&literal.value(), is_expression);
    for message in messages {
        faults.on(literal, message);
    }
    template
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
