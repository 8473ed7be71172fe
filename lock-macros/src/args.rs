//! The options of the attribute: every word a user writes, and what may stand behind it.

use crate::duration;
use crate::fallback::Faults;
use crate::suggest;
use crate::template::Template;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, ExprPath, Lit, LitStr, Path, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opt {
    Key,
    Lease,
    Renew,
    MaxHold,
    Wait,
    Reentrant,
    Fair,
    OnLost,
    OnBusy,
    OnError,
    HoldAtLeast,
    Fence,
    Guard,
    Client,
    Crate,
}

/// What may stand behind the `=`.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Key,
    Duration,
    DurationOrForever,
    Bool,
    OneOf(&'static [&'static str]),
    Name,
    Expression,
    Path,
}

struct Spelling {
    opt: Opt,
    name: &'static str,
    kind: Kind,
    /// A right use, for messages.
    example: &'static str,
}

const fn spelling(opt: Opt, name: &'static str, kind: Kind, example: &'static str) -> Spelling {
    Spelling {
        opt,
        name,
        kind,
        example,
    }
}

/// The one table of options: doubled, unknown and wrong ones are found by it, for every option alike.
#[rustfmt::skip]
const OPTIONS: [Spelling; 15] = [
    spelling(Opt::Key, "key", Kind::Key, "key = \"stock:<product_id>\""),
    spelling(Opt::Lease, "lease", Kind::Duration, "lease = \"10s\""),
    spelling(Opt::Renew, "renew", Kind::Bool, "renew = true"),
    spelling(Opt::MaxHold, "max_hold", Kind::Duration, "max_hold = \"5m\""),
    spelling(Opt::Wait, "wait", Kind::DurationOrForever, "wait = \"3s\""),
    spelling(Opt::Reentrant, "reentrant", Kind::Bool, "reentrant = false"),
    spelling(Opt::Fair, "fair", Kind::Bool, "fair = true"),
    spelling(Opt::OnLost, "on_lost", Kind::OneOf(&["cancel", "continue"]), "on_lost = \"continue\""),
    spelling(Opt::OnBusy, "on_busy", Kind::OneOf(&["error", "skip"]), "on_busy = \"skip\""),
    spelling(Opt::OnError, "on_error", Kind::Expression, "on_error = |error| Reply::from(error)"),
    spelling(Opt::HoldAtLeast, "hold_at_least", Kind::Duration, "hold_at_least = \"5s\""),
    spelling(Opt::Fence, "fence", Kind::Name, "fence = token"),
    spelling(Opt::Guard, "guard", Kind::Name, "guard = lock"),
    spelling(Opt::Client, "client", Kind::Expression, "client = &self.locks"),
    spelling(Opt::Crate, "crate", Kind::Path, "crate = my_facade::lock_runtime"),
];

/// What other lock libraries call the same thing.
const ELSEWHERE: [(&str, &str); 14] = [
    ("ttl", "lease"),
    ("expire", "lease"),
    ("expires", "lease"),
    ("expiry", "lease"),
    ("leaseTime", "lease"),
    ("lease_time", "lease"),
    ("lock_at_most_for", "lease"),
    ("lock_at_least_for", "hold_at_least"),
    ("at_least", "hold_at_least"),
    ("timeout", "wait"),
    ("waitTime", "wait"),
    ("wait_time", "wait"),
    ("name", "key"),
    ("runtime", "crate"),
];

pub(crate) enum Value {
    Template(LitStr, Template),
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

pub(crate) struct Given {
    pub(crate) opt: Opt,
    pub(crate) value: Value,
    pub(crate) name_span: Span,
    pub(crate) span: Span,
}

#[derive(Default)]
pub(crate) struct Args {
    given: Vec<Given>,
    /// Something stood there without a name, or with one that is not known: then `key` may be among it.
    pub(crate) unclear: bool,
}

impl Args {
    pub(crate) fn parse(tokens: TokenStream, faults: &mut Faults) -> Self {
        let mut args = Self::default();
        let read = |input: ParseStream<'_>| {
            while !input.is_empty() {
                args.one(input, faults);
            }
            Ok(())
        };
        if let Err(error) = read.parse2(tokens) {
            faults.add(error);
        }
        args
    }

    pub(crate) fn get(&self, opt: Opt) -> Option<&Given> {
        self.given.iter().find(|given| given.opt == opt)
    }

    pub(crate) fn millis(&self, opt: Opt) -> Option<u64> {
        match self.get(opt)?.value {
            Value::Millis(millis) => Some(millis),
            _ => None,
        }
    }

    pub(crate) fn bool(&self, opt: Opt) -> Option<bool> {
        match self.get(opt)?.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn is_word(&self, opt: Opt, word: &str) -> bool {
        matches!(self.get(opt), Some(Given { value: Value::Word(given), .. }) if *given == word)
    }

    pub(crate) fn name(&self, opt: Opt) -> Option<&Ident> {
        match &self.get(opt)?.value {
            Value::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn expression(&self, opt: Opt) -> Option<&Expr> {
        match &self.get(opt)?.value {
            Value::Expression(expression) => Some(expression),
            _ => None,
        }
    }

    /// The crate that the expansion calls.
    pub(crate) fn runtime(&self) -> TokenStream {
        match self.get(Opt::Crate) {
            Some(Given {
                value: Value::Path(path),
                ..
            }) => quote!(#path),
            _ => quote!(::lock_runtime),
        }
    }

    /// Complains about every option that is not in `allowed`.
    pub(crate) fn only(&self, allowed: &[Opt], place: &str, faults: &mut Faults) {
        for given in &self.given {
            if !allowed.contains(&given.opt) {
                faults.at(
                    given.name_span,
                    format!("this option has no meaning in `{place}`"),
                );
            }
        }
    }

    fn one(&mut self, input: ParseStream<'_>, faults: &mut Faults) {
        if let Ok(lone) = input.parse::<LitStr>() {
            faults.on(
                &lone,
                format!(
                    "the option's name is missing: write `key = {}`",
                    quote!(#lone)
                ),
            );
            self.unclear = true;
            return skip(input);
        }
        let Ok(name) = input.call(Ident::parse_any) else {
            faults.at(
                input.span(),
                format!(
                    "an option is written `name = value`; the options are {}",
                    all_names()
                ),
            );
            self.unclear = true;
            return skip(input);
        };
        let word = name.unraw().to_string();
        let Some(spelling) = OPTIONS.iter().find(|option| option.name == word) else {
            faults.on(&name, unknown(&word));
            self.unclear = true;
            return skip(input);
        };
        let value = value(input, &name, spelling, faults);
        if self.get(spelling.opt).is_some() {
            faults.on(&name, format!("`{word}` is given twice: keep one"));
        } else {
            let (value, span) = value.unwrap_or((Value::Wrong, name.span()));
            self.given.push(Given {
                opt: spelling.opt,
                value,
                name_span: name.span(),
                span,
            });
        }
    }
}

fn unknown(word: &str) -> String {
    let elsewhere = ELSEWHERE
        .iter()
        .find_map(|(theirs, ours)| (*theirs == word).then_some(*ours));
    let meant = elsewhere
        .or_else(|| suggest::nearest(word, OPTIONS.iter().map(|option| option.name)))
        .and_then(|name| OPTIONS.iter().find(|option| option.name == name));
    let all = all_names();
    match meant {
        Some(option) => format!(
            "unknown option `{word}`: write `{}`, as in `{}`; the options are {all}",
            option.name, option.example
        ),
        None => format!("unknown option `{word}`; the options are {all}"),
    }
}

fn all_names() -> String {
    suggest::list(OPTIONS.iter().map(|option| option.name))
}

/// The value behind the name, up to the comma. `None`: it was not one, which is reported.
fn value(
    input: ParseStream<'_>,
    name: &Ident,
    spelling: &Spelling,
    faults: &mut Faults,
) -> Option<(Value, Span)> {
    let example = spelling.example;
    if input.parse::<Token![=]>().is_err() || input.is_empty() || input.peek(Token![,]) {
        faults.on(
            name,
            format!("`{}` needs a value: write `{example}`", spelling.name),
        );
        skip(input);
        return None;
    }
    let attempt = input.fork();
    let expression = match attempt.parse::<Expr>() {
        Ok(expression) => {
            input.advance_to(&attempt);
            expression
        }
        Err(error) => {
            let message = format!(
                "the value of `{}` is not complete ({error}): write, for example, `{example}`",
                spelling.name
            );
            faults.at(error.span(), message);
            skip(input);
            return None;
        }
    };
    if !input.is_empty() && input.parse::<Token![,]>().is_err() {
        faults.at(input.span(), "a comma is missing before this");
        if !input.peek(syn::Ident::peek_any) {
            skip(input);
        }
    }
    let span = expression.span();
    let value = interpret(ungrouped(expression), spelling, faults);
    Some((value, span))
}

/// To behind the next comma: the options after a wrong one are read all the same.
fn skip(input: ParseStream<'_>) {
    while !input.is_empty() {
        if input.parse::<Token![,]>().is_ok() || input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}

/// A literal that came through a `macro_rules!` parameter stands in an invisible group.
fn ungrouped(mut expression: Expr) -> Expr {
    while let Expr::Group(group) = expression {
        expression = *group.expr;
    }
    expression
}

fn interpret(expression: Expr, spelling: &Spelling, faults: &mut Faults) -> Value {
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
        Kind::Expression => match &expression {
            Expr::Lit(_) => wrong(&expression, "an expression of its own type", faults),
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
