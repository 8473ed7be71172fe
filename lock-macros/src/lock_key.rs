//! `lock_key!`, step by step.

use crate::args::{DISTRIBUTED_LOCK, Opt};
use crate::expand;
use crate::faults::Faults;
use crate::key::Key;
use crate::parse::Args;
use crate::parse::value;
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{LitStr, Token};

pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let mut faults = Faults::default();
    let mut runtime = quote!(::lock_runtime);
    match read_key(input, &mut runtime, &mut faults) {
        Ok(key) if faults.is_empty() => return expand::key::of(&key, &runtime),
        Ok(_) => {}
        Err(error) => faults.add(error),
    }
    let errors = faults.into_tokens();
    // A value of the right type, so that its use causes no more errors.
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
    let args = Args::parse(rest, &DISTRIBUTED_LOCK, faults);
    *runtime = args.runtime();
    args.only(&[Opt::Crate], "lock_key!", faults);
    let template = value::template(&literal, faults);
    for message in template.check_names(None) {
        faults.on(&literal, message);
    }
    Ok(Key::from_template(&literal, &template, None, faults))
}
