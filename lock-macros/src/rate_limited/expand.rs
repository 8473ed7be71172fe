//! Puts the question to the rate limiter in front of the body, which stays as and where it is.

use crate::args::{Args, Opt};
use crate::check::{Key, Keys};
use crate::convert;
use crate::expand;
use crate::function::Function;
use crate::params;
use crate::shape::{self, Shape, Shaped};
use crate::usage::{self, Usage};
use crate::value::Value;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, Stmt, Type, parse_quote};

pub(super) fn function(
    args: &Args,
    keys: &Keys,
    mut function: Function,
    shaped: Shaped,
) -> TokenStream {
    let question = question(args, keys, convert::return_span(&function), &shaped.output);
    let group = match shaped.shape {
        Shape::AsyncFn { inner, body } => {
            function.attrs.extend(inner);
            let statements = body.stream();
            shape::regroup(&body, quote!(#question #statements))
        }
        Shape::Future { mut block } => {
            let is_used = |name: &Ident| {
                let options = [Opt::Rate, Opt::Burst, Opt::OnError];
                let expressions = options.into_iter().filter_map(|opt| args.expression(opt));
                expand::usage_of(name, args, keys) != Usage::None
                    || expressions
                        .map(ToTokens::to_token_stream)
                        .any(|tokens| usage::of(name, tokens) != Usage::None)
            };
            shape::replace_future(&mut block, |future| {
                let statements = &mut future.block.stmts;
                params::allow_unused(&function.sig, statements, is_used);
                statements.insert(0, Stmt::Expr(Expr::Verbatim(question), None));
                future.to_token_stream()
            });
            shape::group(&block)
        }
    };
    function.body = Some(group);
    function.into_token_stream()
}

fn question(args: &Args, keys: &Keys, return_span: Span, output: &Type) -> TokenStream {
    let private = convert::private(args);
    let key: TokenStream = keys
        .all()
        .iter()
        .map(|key: &Key| expand::key(key, &args.runtime()))
        .collect();
    let client = convert::client(args);
    let rate = rate(args);
    let wait = args.millis(Opt::Wait).unwrap_or(0);
    // Made only when it is needed: so it may take what the body would have taken.
    let (convert, convert_error) = convert::convert(args, output, return_span);
    quote_spanned! {Span::mixed_site()=>
        {
            let __lock_key = #key;
            let __lock_client = #client;
            let __lock_rate = #rate;
            let __lock_wait = ::core::time::Duration::from_millis(#wait);
            let __lock_passed =
                #private::pass(__lock_client, __lock_key, __lock_rate, __lock_wait).await;
            if let ::core::result::Result::Err(error) = __lock_passed {
                #convert
                return #convert_error;
            }
        }
    }
}

/// A constant, or values with their types, so that a wrong one is one error where it is written.
fn rate(args: &Args) -> TokenStream {
    let runtime = args.runtime();
    let value = |opt| args.get(opt).map(|given| &given.value);
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
            args.expression(Opt::Rate)
                .map(|given| quote_spanned!(Span::mixed_site()=> let __lock_given_rate: #runtime::Rate = #given;)),
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

/// Whether the lock's attribute stands below this one, and so has not been expanded.
pub(super) fn is_locked(function: &Function) -> bool {
    let is_lock = |path: &syn::Path| {
        let last = path.segments.last();
        last.is_some_and(|segment| segment.ident == "distributed_lock")
    };
    function.attrs.iter().any(|attr| is_lock(attr.path()))
}

/// Whoever is expanded last is asked first, and nobody should wait for a lock, or hold it, only to be refused then. So
/// this attribute goes behind the lock's.
pub(super) fn behind_the_lock(
    args: &Args,
    tokens: TokenStream,
    mut function: Function,
) -> TokenStream {
    let runtime = args.runtime();
    function
        .attrs
        .push(parse_quote!(#[#runtime::rate_limited(#tokens)]));
    function.into_token_stream()
}
