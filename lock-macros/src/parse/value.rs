//! The value behind the `=` of an option.

use crate::args::{FOREVER, Spelling, ValueKind};
use crate::mistakes::Mistakes;
use crate::parse::duration;
use crate::parse::rate::RateText;
use crate::suggest;
use crate::template::Template;
use proc_macro2::Ident;
use quote::ToTokens;
use std::collections::HashSet;
use std::fmt::Display;
use syn::{Expr, ExprArray, ExprLit, ExprPath, ExprUnary, Lit, LitInt, LitStr, Path, UnOp};

/// The store takes all keys in one step, and every other request waits for that step.
const MOST_KEYS: usize = 64;
/// The runtime's limit: a read-write lock is one permit more.
const MOST_PERMITS: u64 = (1 << 31) - 2;
/// Paths of one word that name no variable.
const KEYWORDS: [&str; 4] = ["self", "Self", "crate", "super"];

pub(crate) enum Value {
    Template(LitStr, Template),
    /// Each a `Template`, an `Expression` or `Wrong`.
    Keys(Vec<Value>),
    Rate(RateText),
    Count(u32),
    Millis(u64),
    Forever,
    Bool(bool),
    Word(&'static str),
    Name(Ident),
    Expression(Expr),
    Path(Path),
    /// Given, but wrong. The mistake is reported already.
    Wrong,
}

/// A literal that came through a `macro_rules!` parameter stands in an invisible group.
pub(crate) fn ungrouped(mut expression: Expr) -> Expr {
    while let Expr::Group(group) = expression {
        expression = *group.expr;
    }
    expression
}

/// The value of the option that `spelling` describes. Mistakes are reported.
pub(crate) fn interpret(expression: Expr, spelling: &Spelling, mistakes: &mut Mistakes) -> Value {
    let mut option = GivenOption { spelling, mistakes };
    match spelling.kind {
        ValueKind::Key => option.interpret_key(expression),
        ValueKind::Keys => option.interpret_keys(&expression),
        ValueKind::Rate => option.interpret_rate(expression),
        ValueKind::Limit => option.interpret_limit(&expression),
        ValueKind::Count => option.interpret_count(expression),
        ValueKind::Permits => option.interpret_permits(expression),
        ValueKind::Duration => option.interpret_duration(expression),
        ValueKind::DurationOrForever => option.interpret_wait(expression),
        ValueKind::Bool => option.interpret_bool(&expression),
        ValueKind::OneOf(words) => option.interpret_word(&expression, words),
        ValueKind::Name => option.interpret_name(&expression),
        ValueKind::Expression(what) => option.interpret_expression(expression, what),
        ValueKind::Path => option.interpret_path(&expression),
    }
}

/// An option whose value is read: how it is written, and where its mistakes go.
struct GivenOption<'a> {
    spelling: &'a Spelling,
    mistakes: &'a mut Mistakes,
}

impl GivenOption<'_> {
    fn interpret_key(&mut self, expression: Expr) -> Value {
        let what = "a template or an expression that gives a `LockKey`";
        self.interpret_text(expression, what, |option, literal| {
            let template = template(&literal, option.mistakes);
            Value::Template(literal, template)
        })
    }

    /// Every key is read, also after a wrong one.
    fn interpret_keys(&mut self, expression: &Expr) -> Value {
        let Expr::Array(array) = expression else {
            let Spelling { name, example, .. } = self.spelling;
            return self.refuse(
                expression,
                format!(
                    "`{name}` is a list of templates or expressions in brackets: write, for \
                     example, `{example}`; if only the call knows how many there are, leave the \
                     attribute out and write `client.multi_lock(keys).run(async {{ … }}).await`"
                ),
            );
        };
        self.check_number_of_keys(array);
        let mut literals = HashSet::new();
        let elements = array.elems.iter().cloned().map(ungrouped);
        Value::Keys(
            elements
                .map(|element| self.interpret_one_of_keys(element, &mut literals))
                .collect(),
        )
    }

    fn check_number_of_keys(&mut self, array: &ExprArray) {
        let Spelling { name, example, .. } = self.spelling;
        let count = array.elems.len();
        if count == 0 {
            self.mistakes.report_on(
                array,
                format!(
                    "`{name}` is empty and would lock nothing: write, for example, `{example}`"
                ),
            );
        } else if count > MOST_KEYS {
            self.mistakes.report_on(
                array,
                format!(
                    "`{name}` lists {count} keys, and at most {MOST_KEYS} are locked at once: \
                     write fewer, or one key for all of them"
                ),
            );
        }
    }

    /// `literals` has the templates that came before.
    fn interpret_one_of_keys(&mut self, key: Expr, literals: &mut HashSet<String>) -> Value {
        let Spelling { name, example, .. } = self.spelling;
        match (text(&key), &key) {
            (Some(literal), _) if !literals.insert(literal.value()) => self.refuse(
                literal,
                format!("this key is twice in `{name}`: write another one, or leave it out"),
            ),
            (None, Expr::Lit(_)) => self.refuse(
                &key,
                format!(
                    "each of `{name}` is a template or an expression that gives a `LockKey`: \
                     write, for example, `{example}`"
                ),
            ),
            _ => self.interpret_key(key),
        }
    }

    fn interpret_rate(&mut self, expression: Expr) -> Value {
        let what = "how many in how long, in quotes, or an expression that gives a `Rate`";
        self.interpret_text(expression, what, |option, literal| {
            match RateText::parse(&literal.value()) {
                Ok(rate) => Value::Rate(rate),
                Err(message) => option.refuse(literal, message),
            }
        })
    }

    fn interpret_limit(&mut self, expression: &Expr) -> Value {
        let Some(literal) = text(expression) else {
            let what = "how many at most in how long, in quotes, or else `rate = \
                        Rate::at_most(…)`";
            return self.refuse_value(expression, what);
        };
        match RateText::parse(&literal.value()) {
            Ok(rate) => match rate.refuse_as_limit() {
                Some(message) => self.refuse(literal, message),
                None => Value::Rate(rate),
            },
            Err(message) => self.refuse(literal, message),
        }
    }

    fn interpret_count(&mut self, expression: Expr) -> Value {
        match &expression {
            Expr::Lit(ExprLit {
                lit: Lit::Int(number),
                ..
            }) => match number.base10_digits().parse() {
                Ok(number) => Value::Count(number),
                Err(_) => self.refuse_value(&expression, "a number up to 4294967295"),
            },
            Expr::Lit(_) | Expr::Unary(_) => {
                self.refuse_value(&expression, "a whole number of at least 1")
            }
            _ => Value::Expression(expression),
        }
    }

    /// Only a literal can be wrong here. What another expression gives is checked when it runs.
    fn interpret_permits(&mut self, expression: Expr) -> Value {
        let is_in_range = |number: &LitInt| {
            let number = number.base10_parse::<u64>();
            number.is_ok_and(|number| (1..=MOST_PERMITS).contains(&number))
        };
        match &expression {
            Expr::Lit(ExprLit {
                lit: Lit::Int(number),
                ..
            }) if is_in_range(number) => Value::Expression(expression),
            Expr::Lit(ExprLit {
                lit: Lit::Int(_), ..
            }) => self.refuse_permits(&expression),
            Expr::Lit(_) => {
                let what = "a whole number, or an expression that gives a `u32`";
                self.refuse_value(&expression, what)
            }
            Expr::Unary(ExprUnary {
                op: UnOp::Neg(_),
                expr: negated,
                ..
            }) if matches!(**negated, Expr::Lit(_)) => self.refuse_permits(&expression),
            _ => Value::Expression(expression),
        }
    }

    fn refuse_permits(&mut self, expression: &Expr) -> Value {
        let Spelling { name, example, .. } = self.spelling;
        self.refuse(
            expression,
            format!(
                "`{name}` is how many may hold it at once, 1 to {MOST_PERMITS}: write, for \
                 example, `{example}`"
            ),
        )
    }

    fn interpret_duration(&mut self, expression: Expr) -> Value {
        let what = "a duration in quotes or an expression that gives a `Duration`";
        self.interpret_text(expression, what, |option, literal| {
            let Spelling { name, example, .. } = option.spelling;
            match duration::parse(&literal.value()) {
                Ok(millis) => Value::Millis(millis),
                Err(_) if literal.value() == FOREVER => option.refuse(
                    literal,
                    format!("`{name}` can't be forever: write, for example, `{example}`"),
                ),
                Err(message) => option.refuse(literal, message),
            }
        })
    }

    fn interpret_wait(&mut self, expression: Expr) -> Value {
        let what = "a duration in quotes, \"forever\" or an expression that gives a `Duration`";
        self.interpret_text(expression, what, |option, literal| {
            match duration::parse(&literal.value()) {
                Ok(millis) => Value::Millis(millis),
                Err(_) if literal.value() == FOREVER => Value::Forever,
                Err(message) => option.refuse(literal, format!("{message}; or \"forever\"")),
            }
        })
    }

    fn interpret_bool(&mut self, expression: &Expr) -> Value {
        match expression {
            Expr::Lit(ExprLit {
                lit: Lit::Bool(value),
                ..
            }) => Value::Bool(value.value),
            _ => self.refuse_value(expression, "`true` or `false`"),
        }
    }

    fn interpret_word(&mut self, expression: &Expr, words: &[&'static str]) -> Value {
        let given = text(expression).map(|literal| literal.value());
        let known = words.iter().find(|word| given.as_deref() == Some(word));
        match known {
            Some(word) => Value::Word(word),
            None => self.refuse_value(expression, &list_words(words)),
        }
    }

    fn interpret_name(&mut self, expression: &Expr) -> Value {
        let is_keyword = |name: &Ident| KEYWORDS.iter().any(|keyword| name == keyword);
        match path(expression).and_then(Path::get_ident) {
            Some(name) if !is_keyword(name) => Value::Name(name.clone()),
            _ => self.refuse_value(expression, "the name of a variable for the body"),
        }
    }

    fn interpret_expression(&mut self, expression: Expr, what: &str) -> Value {
        match &expression {
            Expr::Lit(_) => self.refuse_value(&expression, what),
            _ => Value::Expression(expression),
        }
    }

    fn interpret_path(&mut self, expression: &Expr) -> Value {
        match path(expression) {
            Some(path) => Value::Path(path.clone()),
            None => self.refuse_value(expression, "a path without quotes"),
        }
    }

    /// Reads a text, refuses any other literal, and keeps any other expression for the call.
    fn interpret_text(
        &mut self,
        expression: Expr,
        what: &str,
        read: impl FnOnce(&mut Self, LitStr) -> Value,
    ) -> Value {
        match (text(&expression), &expression) {
            (Some(literal), _) => read(self, literal),
            (None, Expr::Lit(_)) => self.refuse_value(&expression, what),
            _ => Value::Expression(expression),
        }
    }

    /// Reports what the option is instead, with an example.
    fn refuse_value(&mut self, expression: &Expr, what: &str) -> Value {
        let Spelling { name, example, .. } = self.spelling;
        self.refuse(
            expression,
            format!("`{name}` is {what}: write, for example, `{example}`"),
        )
    }

    fn refuse(&mut self, tokens: impl ToTokens, message: impl Display) -> Value {
        self.mistakes.report_on(tokens, message);
        Value::Wrong
    }
}

fn list_words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    suggest::join(&quoted, "or")
}

/// The template in `literal`. Its mistakes are reported.
pub(crate) fn template(literal: &LitStr, mistakes: &mut Mistakes) -> Template {
    let is_expression = |text: &str| syn::parse_str::<Expr>(text).is_ok();
    let (template, messages) = Template::parse(&literal.value(), is_expression);
    for message in messages {
        mistakes.report_on(literal, message);
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
