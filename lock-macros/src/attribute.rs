//! The way from what is written to what is compiled.

use crate::args::{Args, Opt};
use crate::check::{self, Key};
use crate::expand;
use crate::fallback::{self, Faults};
use crate::function::{self, Function};
use crate::params;
use crate::shape;
use crate::value;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{LitStr, Token};

pub(crate) fn distributed_lock(tokens: TokenStream, item: TokenStream) -> TokenStream {
    let mut faults = Faults::default();
    let args = Args::parse(tokens, &mut faults);
    let function = read_function(&item, &mut faults);
    let sig = function.as_ref().map(|function| &function.sig);
    let names = sig.map(params::names);
    check::options(&args, names.as_deref(), &mut faults);
    let keys = check::keys(&args, sig, names.as_deref(), &mut faults);
    let shaped = function
        .as_ref()
        .and_then(|function| shape::of(function, &mut faults));
    match (keys, function, shaped) {
        (Some(keys), Some(function), Some(shaped)) if faults.is_empty() => {
            expand::function(&args, &keys, function, shaped)
        }
        _ => fallback::emit(faults, item, &args),
    }
}

fn read_function(item: &TokenStream, faults: &mut Faults) -> Option<Function> {
    match syn::parse2::<Function>(item.clone()) {
        Ok(function) => Some(function),
        Err(error) => {
            match function::describe(item) {
                Some(what) => faults.at(
                    Span::call_site(),
                    format!("`#[distributed_lock]` belongs on an `async fn`, this is {what}"),
                ),
                None => faults.add(error),
            }
            None
        }
    }
}

pub(crate) fn lock_key(input: TokenStream) -> TokenStream {
    let mut faults = Faults::default();
    let mut runtime = quote!(::lock_runtime);
    match read_key(input, &mut runtime, &mut faults) {
        Ok(key) if faults.is_empty() => return expand::key(&key, &runtime),
        Ok(_) => {}
        Err(error) => faults.add(error),
    }
    let errors = faults.into_tokens();
    // A value of the right type: what is done with the key causes no more errors.
    quote!({ #errors (|| -> #runtime::LockKey { loop {} })() })
}

fn read_key(
    input: TokenStream,
    runtime: &mut TokenStream,
    faults: &mut Faults,
) -> syn::Result<Key> {
    let read = |input: ParseStream<'_>| {
        let literal: LitStr = input.parse().map_err(|error| {
            syn::Error::new(
                error.span(),
                "a template in quotes belongs here: write `lock_key!(\"stock:<product_id>\")`",
            )
        })?;
        let _: Option<Token![,]> = input.parse()?;
        Ok((literal, input.parse::<TokenStream>()?))
    };
    let (literal, rest) = read.parse2(input)?;
    let args = Args::parse(rest, faults);
    *runtime = args.runtime();
    args.only(&[Opt::Crate], "lock_key!", faults);
    let template = value::template(&literal, faults);
    Ok(Key::from_template(&literal, &template, None, faults))
}

#[cfg(test)]
mod tests;
