//! `lock_key!`, step by step.

use crate::args::{DISTRIBUTED_LOCK, Opt};
use crate::expand;
use crate::key::KeyArgument;
use crate::mistakes::Mistakes;
use crate::parse::Args;
use crate::parse::value;
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{LitStr, Token};

pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let mut runtime = quote!(::lock_runtime);
    match read_key(input, &mut runtime, &mut mistakes) {
        Ok(key) if mistakes.is_empty() => return expand::key::write_key(&key, &runtime),
        Ok(_) => {}
        Err(error) => mistakes.report(error),
    }
    let errors = mistakes.into_tokens();
    // A value of the right type, so that its use causes no more errors.
    quote!({ #errors (|| -> #runtime::LockKey { loop {} })() })
}

fn read_key(
    input: TokenStream,
    runtime: &mut TokenStream,
    mistakes: &mut Mistakes,
) -> syn::Result<KeyArgument> {
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
    let args = Args::parse(rest, &DISTRIBUTED_LOCK, mistakes);
    *runtime = args.runtime();
    args.refuse_others(&[Opt::Crate], "lock_key!", mistakes);
    let template = value::template(&literal, mistakes);
    for message in template.check_names(None) {
        mistakes.report_on(&literal, message);
    }
    Ok(KeyArgument::from_template(
        &literal, &template, None, mistakes,
    ))
}
