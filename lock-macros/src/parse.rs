//! Reads the options of an attribute. Mistakes are reported, and the next option is read.

pub(crate) mod duration;
pub(crate) mod rate;
pub(crate) mod value;

use crate::args::{ATTRIBUTES, Opt, Spelling, ValueKind, Vocabulary};
use crate::faults::Faults;
use crate::parse::rate::Rate;
use crate::parse::value::Value;
use crate::suggest;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Token};

/// One option as it was given.
pub(crate) struct Arg {
    pub(crate) opt: Opt,
    pub(crate) value: Value,
    pub(crate) name_span: Span,
    pub(crate) span: Span,
}

/// The options of one attribute.
pub(crate) struct Args {
    pub(crate) attribute: &'static Vocabulary,
    given: Vec<Arg>,
    /// Something had no name or an unknown one. It may have been meant as an option that seems to
    /// be missing.
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

    pub(crate) fn get(&self, opt: Opt) -> Option<&Arg> {
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
        matches!(self.get(opt), Some(Arg { value: Value::Word(given), .. }) if *given == word)
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

    /// The path of the crate that the expansion calls.
    pub(crate) fn runtime(&self) -> TokenStream {
        match self.get(Opt::Crate) {
            Some(Arg {
                value: Value::Path(path),
                ..
            }) => quote!(#path),
            _ => quote!(::lock_runtime),
        }
    }

    /// The runtime's module for expansions.
    pub(crate) fn private(&self) -> TokenStream {
        let runtime = self.runtime();
        quote!(#runtime::__private)
    }

    /// Reports every option that is not in `allowed`.
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
            self.given.push(Arg {
                opt: spelling.opt,
                value,
                name_span: name.span(),
                span,
            });
        }
    }
}

/// The option that a value without a name was meant for.
fn meant_by(literal: &LitStr, attribute: &Vocabulary) -> &'static str {
    let takes = |option: &&Spelling| match option.kind {
        ValueKind::Rate => Rate::parse(&literal.value()).is_ok(),
        _ => false,
    };
    let option = attribute.options.iter().find(takes);
    option.map_or("key", |option| option.name)
}

fn unknown(word: &str, attribute: &Vocabulary) -> String {
    let options = attribute.options;
    let theirs = ATTRIBUTES
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
    let synonym = attribute
        .synonyms
        .iter()
        .find_map(|(theirs, ours)| (*theirs == word).then_some(*ours));
    let meant = synonym
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

/// The value behind the name, up to the comma. `None`: there was none, which is reported.
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
            // An error at the end has no place of its own, except inside of brackets.
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

/// Moves behind the next comma, so that the options after a wrong one are still read.
fn skip(input: ParseStream<'_>) {
    while !input.is_empty() {
        if input.parse::<Token![,]>().is_ok() || input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}
