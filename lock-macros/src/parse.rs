//! Reads the options of an attribute. Mistakes are reported, and the next option is read.

pub(crate) mod duration;
pub(crate) mod rate;
pub(crate) mod value;

use crate::args::{ATTRIBUTES, Opt, Spelling, ValueKind, Vocabulary};
use crate::mistakes::Mistakes;
use crate::parse::rate::RateText;
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
    /// As they were written.
    pub(crate) tokens: TokenStream,
    given: Vec<Arg>,
    /// Something has no name or an unknown one, and may be the option that seems to be missing.
    pub(crate) unclear: bool,
}

impl Args {
    pub(crate) fn parse(
        tokens: TokenStream,
        attribute: &'static Vocabulary,
        mistakes: &mut Mistakes,
    ) -> Self {
        let mut args = Self {
            attribute,
            tokens: tokens.clone(),
            given: Vec::new(),
            unclear: false,
        };
        let read = |input: ParseStream<'_>| {
            while !input.is_empty() {
                args.parse_option(input, mistakes);
            }
            Ok(())
        };
        if let Err(error) = read.parse2(tokens) {
            mistakes.report(error);
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
    pub(crate) fn refuse_others(&self, allowed: &[Opt], place: &str, mistakes: &mut Mistakes) {
        for given in &self.given {
            if !allowed.contains(&given.opt) {
                mistakes.report_at(
                    given.name_span,
                    format!("this option has no meaning in `{place}`: leave it out"),
                );
            }
        }
    }

    fn parse_option(&mut self, input: ParseStream<'_>, mistakes: &mut Mistakes) {
        if let Ok(lone) = input.parse::<LitStr>() {
            mistakes.report_on(
                &lone,
                format!(
                    "the option's name is missing: write `{} = {}`",
                    meant_by(&lone, self.attribute),
                    quote!(#lone)
                ),
            );
            self.unclear = true;
            return skip_option(input);
        }
        let Ok(name) = input.call(Ident::parse_any) else {
            mistakes.report_at(
                input.span(),
                format!(
                    "an option is written `name = value`; the options are {}",
                    list_options(self.attribute)
                ),
            );
            self.unclear = true;
            return skip_option(input);
        };
        let word = name.unraw().to_string();
        let options = self.attribute.options;
        let Some(spelling) = options.iter().find(|option| option.name == word) else {
            mistakes.report_on(&name, explain_unknown(&word, self.attribute));
            self.unclear = true;
            return skip_option(input);
        };
        let value = parse_value(input, &name, spelling, mistakes);
        if self.get(spelling.opt).is_some() {
            mistakes.report_on(&name, format!("`{word}` is given twice: keep one"));
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
        ValueKind::Rate => RateText::parse(&literal.value()).is_ok(),
        _ => false,
    };
    let option = attribute.options.iter().find(takes);
    option.map_or("key", |option| option.name)
}

fn explain_unknown(word: &str, attribute: &Vocabulary) -> String {
    let options = attribute.options;
    let synonym = attribute
        .synonyms
        .iter()
        .find_map(|(ours, theirs)| theirs.contains(&word).then_some(*ours));
    let theirs = ATTRIBUTES
        .iter()
        .find(|other| other.options.iter().any(|option| option.name == word));
    if let Some(other) = theirs
        && synonym.is_none()
    {
        return format!(
            "`{word}` is an option of `#[{}]`; the options of `#[{}]` are {}",
            other.name,
            attribute.name,
            list_options(attribute)
        );
    }
    let meant = synonym
        .or_else(|| suggest::nearest(word, options.iter().map(|option| option.name)))
        .and_then(|name| options.iter().find(|option| option.name == name));
    let all = list_options(attribute);
    match meant {
        Some(option) => format!(
            "unknown option `{word}`: write `{}`, as in `{}`; the options are {all}",
            option.name, option.example
        ),
        None => format!("unknown option `{word}`; the options are {all}"),
    }
}

fn list_options(attribute: &Vocabulary) -> String {
    suggest::list(attribute.options.iter().map(|option| option.name))
}

/// The value behind the name, up to the comma. `None`: there was none, which is reported.
fn parse_value(
    input: ParseStream<'_>,
    name: &Ident,
    spelling: &Spelling,
    mistakes: &mut Mistakes,
) -> Option<(Value, Span)> {
    let example = spelling.example;
    if input.parse::<Token![=]>().is_err() || input.is_empty() || input.peek(Token![,]) {
        mistakes.report_on(
            name,
            format!("`{}` needs a value: write `{example}`", spelling.name),
        );
        skip_option(input);
        return None;
    }
    let expression = parse_expression(input, name, spelling, mistakes)?;
    if !input.is_empty() && input.parse::<Token![,]>().is_err() {
        mistakes.report_at(
            input.span(),
            "a comma is missing before this: write `,` between two options",
        );
        if !input.peek(syn::Ident::peek_any) {
            skip_option(input);
        }
    }
    let span = expression.span();
    let value = value::interpret(value::ungrouped(expression), spelling, mistakes);
    Some((value, span))
}

/// The expression at the front. `None`: it is not complete, which is reported.
fn parse_expression(
    input: ParseStream<'_>,
    name: &Ident,
    spelling: &Spelling,
    mistakes: &mut Mistakes,
) -> Option<Expr> {
    let attempt = input.fork();
    match attempt.parse::<Expr>() {
        Ok(expression) => {
            input.advance_to(&attempt);
            Some(expression)
        }
        Err(error) => {
            // An error at the end has no place of its own, except inside of brackets.
            let at_the_end = error.to_string().starts_with("unexpected end of input");
            let span = match attempt.is_empty() && at_the_end {
                true => name.span(),
                false => error.span(),
            };
            mistakes.report_at(
                span,
                format!(
                    "the value of `{}` is not complete ({error}): write, for example, `{}`",
                    spelling.name, spelling.example
                ),
            );
            skip_option(input);
            None
        }
    }
}

/// Moves behind the next comma, so that the options after a wrong one are still read.
fn skip_option(input: ParseStream<'_>) {
    while !input.is_empty() {
        if input.parse::<Token![,]>().is_ok() || input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}
