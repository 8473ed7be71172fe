//! The options of the attribute: every word a user writes, and what may stand behind it.

use crate::fallback::Faults;
use crate::rate::Rate;
use crate::rate_limited::RATE_LIMITED;
use crate::suggest;
use crate::value::{self, Value};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opt {
    Key,
    Keys,
    Rate,
    Burst,
    Lease,
    Renew,
    MaxHold,
    Wait,
    Mode,
    Permits,
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
pub(crate) enum Kind {
    Key,
    /// A list of what `Key` is.
    Keys,
    /// So many in so long.
    Rate,
    /// A number of at least one, or an expression that gives a `u32`.
    Count,
    Duration,
    DurationOrForever,
    Bool,
    OneOf(&'static [&'static str]),
    Permits,
    Name,
    /// What it has to give.
    Expression(&'static str),
    Path,
}

/// One attribute: what it is called, the words a user may write in it, and what its messages call what it does.
pub(crate) struct Vocabulary {
    pub(crate) name: &'static str,
    /// The one table of options: doubled, unknown and wrong ones are found by it, for every option alike.
    pub(crate) options: &'static [Spelling],
    /// What others call them.
    pub(crate) elsewhere: &'static [(&'static str, &'static str)],
    /// What the key names.
    pub(crate) key_is: &'static str,
    /// What may be written in its place.
    pub(crate) or_keys: &'static str,
    /// What stands beside the key in an example.
    pub(crate) with_key: &'static str,
    pub(crate) has_to_wait: &'static str,
    pub(crate) cannot_wait: &'static str,
    pub(crate) runs: &'static str,
}

pub(crate) const DISTRIBUTED_LOCK: Vocabulary = Vocabulary {
    name: "distributed_lock",
    options: &OPTIONS,
    elsewhere: &ELSEWHERE,
    key_is: "what is locked",
    or_keys: ", or several in `keys = […]`",
    with_key: "",
    has_to_wait: "the lock is waited for",
    cannot_wait: "wait for a lock",
    runs: "run under a lock",
};

pub(crate) struct Spelling {
    pub(crate) opt: Opt,
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// A right use, for messages.
    pub(crate) example: &'static str,
}

pub(crate) const fn spelling(
    opt: Opt,
    name: &'static str,
    kind: Kind,
    example: &'static str,
) -> Spelling {
    Spelling {
        opt,
        name,
        kind,
        example,
    }
}

#[rustfmt::skip]
const OPTIONS: [Spelling; 18] = [
    spelling(Opt::Key, "key", Kind::Key, "key = \"stock:<product_id>\""),
    spelling(Opt::Keys, "keys", Kind::Keys, "keys = [\"account:<from>\", \"account:<to>\"]"),
    spelling(Opt::Lease, "lease", Kind::Duration, "lease = \"10s\""),
    spelling(Opt::Renew, "renew", Kind::Bool, "renew = true"),
    spelling(Opt::MaxHold, "max_hold", Kind::Duration, "max_hold = \"5m\""),
    spelling(Opt::Wait, "wait", Kind::DurationOrForever, "wait = \"3s\""),
    spelling(Opt::Mode, "mode", Kind::OneOf(&["exclusive", "read", "write"]), "mode = \"read\""),
    spelling(Opt::Permits, "permits", Kind::Permits, "permits = 5"),
    spelling(Opt::Reentrant, "reentrant", Kind::Bool, "reentrant = false"),
    spelling(Opt::Fair, "fair", Kind::Bool, "fair = true"),
    spelling(Opt::OnLost, "on_lost", Kind::OneOf(&["cancel", "continue"]), "on_lost = \"continue\""),
    spelling(Opt::OnBusy, "on_busy", Kind::OneOf(&["error", "skip"]), "on_busy = \"skip\""),
    spelling(Opt::OnError, "on_error", Kind::Expression("called with a `LockError`"), "on_error = |error| Reply::from(error)"),
    spelling(Opt::HoldAtLeast, "hold_at_least", Kind::Duration, "hold_at_least = \"5s\""),
    spelling(Opt::Fence, "fence", Kind::Name, "fence = token"),
    spelling(Opt::Guard, "guard", Kind::Name, "guard = lock"),
    spelling(Opt::Client, "client", Kind::Expression("a `&LockClient`"), "client = &self.locks"),
    spelling(Opt::Crate, "crate", Kind::Path, "crate = my_facade::lock_runtime"),
];

/// What other lock libraries call the same thing.
const ELSEWHERE: [(&str, &str); 20] = [
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
    ("names", "keys"),
    ("read", "mode"),
    ("write", "mode"),
    ("shared", "mode"),
    ("limit", "permits"),
    ("concurrency", "permits"),
    ("runtime", "crate"),
];

pub(crate) struct Given {
    pub(crate) opt: Opt,
    pub(crate) value: Value,
    pub(crate) name_span: Span,
    pub(crate) span: Span,
}

pub(crate) struct Args {
    pub(crate) attribute: &'static Vocabulary,
    given: Vec<Given>,
    /// Something stood there without a name, or with one that is not known: then `key` may be among it.
    pub(crate) unclear: bool,
}

impl Args {
    pub(crate) fn parse(
        tokens: TokenStream,
        attribute: &'static Vocabulary,
        faults: &mut Faults,
    ) -> Self {
        let mut args = Self {
            attribute,
            given: Vec::new(),
            unclear: false,
        };
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
                    format!("this option has no meaning in `{place}`: leave it out"),
                );
            }
        }
    }

    fn one(&mut self, input: ParseStream<'_>, faults: &mut Faults) {
        if let Ok(lone) = input.parse::<LitStr>() {
            faults.on(
                &lone,
                format!(
                    "the option's name is missing: write `{} = {}`",
                    meant_by(&lone, self.attribute),
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
                    all_names(self.attribute)
                ),
            );
            self.unclear = true;
            return skip(input);
        };
        let word = name.unraw().to_string();
        let options = self.attribute.options;
        let Some(spelling) = options.iter().find(|option| option.name == word) else {
            faults.on(&name, unknown(&word, self.attribute));
            self.unclear = true;
            return skip(input);
        };
        let value = read_value(input, &name, spelling, faults);
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

/// The option whose value this is, written without its name.
fn meant_by(literal: &LitStr, attribute: &Vocabulary) -> &'static str {
    let takes = |option: &&Spelling| match option.kind {
        Kind::Rate => Rate::parse(&literal.value()).is_ok(),
        _ => false,
    };
    let option = attribute.options.iter().find(takes);
    option.map_or("key", |option| option.name)
}

fn unknown(word: &str, attribute: &Vocabulary) -> String {
    let options = attribute.options;
    let attributes = [&DISTRIBUTED_LOCK, &RATE_LIMITED];
    let theirs = attributes
        .iter()
        .find(|other| other.options.iter().any(|option| option.name == word));
    if let Some(other) = theirs {
        return format!(
            "`{word}` is an option of `#[{}]`; the options of `#[{}]` are {}",
            other.name,
            attribute.name,
            all_names(attribute)
        );
    }
    let elsewhere = attribute
        .elsewhere
        .iter()
        .find_map(|(theirs, ours)| (*theirs == word).then_some(*ours));
    let meant = elsewhere
        .or_else(|| suggest::nearest(word, options.iter().map(|option| option.name)))
        .and_then(|name| options.iter().find(|option| option.name == name));
    let all = all_names(attribute);
    match meant {
        Some(option) => format!(
            "unknown option `{word}`: write `{}`, as in `{}`; the options are {all}",
            option.name, option.example
        ),
        None => format!("unknown option `{word}`; the options are {all}"),
    }
}

fn all_names(attribute: &Vocabulary) -> String {
    suggest::list(attribute.options.iter().map(|option| option.name))
}

/// The value behind the name, up to the comma. `None`: it was not one, which is reported.
fn read_value(
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
            // An error at the end has no place of its own; one inside of brackets at the end has.
            let at_the_end = error.to_string().starts_with("unexpected end of input");
            let span = if attempt.is_empty() && at_the_end {
                name.span()
            } else {
                error.span()
            };
            faults.at(span, message);
            skip(input);
            return None;
        }
    };
    if !input.is_empty() && input.parse::<Token![,]>().is_err() {
        faults.at(
            input.span(),
            "a comma is missing before this: write `,` between two options",
        );
        if !input.peek(syn::Ident::peek_any) {
            skip(input);
        }
    }
    let span = expression.span();
    let value = value::interpret(value::ungrouped(expression), spelling, faults);
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
