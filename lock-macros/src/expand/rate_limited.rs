//! Writes the question to the rate limiter in front of the body, which stays as and where it is.

use crate::args::Opt;
use crate::expand::{key, options, usage};
use crate::function::body::{self, Body, Shape};
use crate::function::{Function, return_type};
use crate::key::{KeyArgument, KeyArguments};
use crate::parse::Args;
use crate::parse::value::Value;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Expr, Stmt, Type, parse_quote};

pub(crate) fn write_function(
    args: &Args,
    keys: &KeyArguments,
    mut function: Function,
    body: Body,
) -> TokenStream {
    if let Some(lock) = lock_below(&function) {
        return move_behind_the_lock(args, function, lock);
    }
    let question = write_question(args, keys, return_type::span(&function.sig), &body.output);
    let group = match body.shape {
        Shape::AsyncFn { inner, braces } => {
            function.attrs.extend(inner);
            let statements = braces.stream();
            body::regroup(&braces, quote!(#question #statements))
        }
        Shape::Future { mut block } => {
            let mut used = usage::expressions(args, keys);
            used.extend(usage::placeholders(keys));
            body::replace_future(&mut block, |future| {
                let statements = &mut future.block.stmts;
                usage::allow_unused(&function.sig, statements, |name| {
                    usage::mentions(&used, name)
                });
                statements.insert(0, Stmt::Expr(Expr::Verbatim(question), None));
                future.to_token_stream()
            });
            body::group(&block)
        }
    };
    function.body = Some(group);
    function.into_token_stream()
}

fn write_question(
    args: &Args,
    keys: &KeyArguments,
    return_span: Span,
    output: &Type,
) -> TokenStream {
    let private = args.private();
    let key: TokenStream = keys
        .all()
        .iter()
        .map(|key: &KeyArgument| key::write_key(key, &args.runtime()))
        .collect();
    let client = options::write_client(args);
    let rate = write_rate(args);
    let name = Ident::new("__lock_wait", Span::mixed_site());
    let wait = match args.expression(Opt::Wait) {
        Some(wait) => options::write_duration(&name, wait),
        None => {
            let wait = args.millis(Opt::Wait).unwrap_or(0);
            quote_spanned! {Span::mixed_site()=>
                let #name = ::core::time::Duration::from_millis(#wait);
            }
        }
    };
    // Only a refusal evaluates it, so it may take what the body would have taken.
    let (convert, convert_name) = options::write_conversion(args, output, return_span);
    quote_spanned! {Span::mixed_site()=>
        {
            let __lock_key = #key;
            let __lock_client = #client;
            let __lock_rate = #rate;
            #wait
            let __lock_passed =
                #private::pass(__lock_client, __lock_key, __lock_rate, #name).await;
            if let ::core::result::Result::Err(__lock_error) = __lock_passed {
                #convert
                return #private::Convert::convert(#convert_name, __lock_error);
            }
        }
    }
}

/// A constant, or values with their types: a wrong value is one error, where it is written.
fn write_rate(args: &Args) -> TokenStream {
    let runtime = args.runtime();
    let value = |opt| args.get(opt).map(|given| &given.value);
    if let Some(Value::Rate(limit)) = value(Opt::Limit) {
        let (tokens, millis) = (limit.tokens, limit.millis);
        return quote_spanned! {Span::mixed_site()=>
            const {
                #runtime::Rate::at_most(#tokens, ::core::time::Duration::from_millis(#millis))
            }
        };
    }
    let (rate, given_rate) = match value(Opt::Rate) {
        Some(Value::Rate(rate)) => {
            let (tokens, millis) = (rate.tokens, rate.millis);
            let rate = quote_spanned! {Span::mixed_site()=>
                #runtime::Rate::per(#tokens, ::core::time::Duration::from_millis(#millis))
            };
            (rate, None)
        }
        _ => (
            quote_spanned!(Span::mixed_site()=> __lock_given_rate),
            args.expression(Opt::Rate).map(|given| {
                quote_spanned!(Span::mixed_site()=>
                    let __lock_given_rate: #runtime::Rate = #given;
                )
            }),
        ),
    };
    let (rate, given_burst) = match value(Opt::Burst) {
        Some(Value::Count(burst)) => {
            let rate = quote_spanned!(Span::mixed_site()=> #runtime::Rate::burst(#rate, #burst));
            (rate, None)
        }
        Some(Value::Expression(given)) => (
            quote_spanned!(Span::mixed_site()=> #runtime::Rate::burst(#rate, __lock_given_burst)),
            Some(quote_spanned!(Span::mixed_site()=> let __lock_given_burst: u32 = #given;)),
        ),
        _ => (rate, None),
    };
    if given_rate.is_none() && given_burst.is_none() {
        quote_spanned!(Span::mixed_site()=> const { #rate })
    } else {
        quote_spanned!(Span::mixed_site()=> { #given_rate #given_burst #rate })
    }
}

/// Where the lock's attribute stands below this one, which is not expanded yet.
fn lock_below(function: &Function) -> Option<usize> {
    let mut attrs = function.attrs.iter();
    attrs.rposition(|attr| is_named(attr, "distributed_lock"))
}

fn is_named(attr: &Attribute, name: &str) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|segment| segment.ident == name)
}

/// Puts this attribute behind the lock's, before what stands below that. What expands last asks
/// first, and no call should be refused when it has waited for its lock.
fn move_behind_the_lock(args: &Args, mut function: Function, lock: usize) -> TokenStream {
    let (runtime, tokens) = (args.runtime(), &args.tokens);
    let below = function.attrs.len() - lock - 1;
    let mut moved = vec![parse_quote!(#[#runtime::rate_limited(#tokens)])];
    // Others of its kind stay in their order.
    let above = function
        .attrs
        .extract_if(..lock, |attr| is_named(attr, "rate_limited"));
    moved.extend(above);
    let behind = function.attrs.len() - below;
    function.attrs.splice(behind..behind, moved);
    function.into_token_stream()
}
