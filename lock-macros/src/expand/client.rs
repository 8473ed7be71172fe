//! The client of a call.

use crate::args::Opt;
use crate::parse::Args;
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

/// What the option `client` gives, as an `Option`.
pub(crate) fn of(args: &Args) -> TokenStream {
    let runtime = args.runtime();
    match args.expression(Opt::Client) {
        Some(client) => quote_spanned! {Span::mixed_site()=>
            ::core::option::Option::Some(
                <#runtime::LockClient as ::core::clone::Clone>::clone(#client)
            )
        },
        None => quote_spanned!(Span::mixed_site()=> ::core::option::Option::None),
    }
}
