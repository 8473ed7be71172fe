//! How a `LockError` becomes what the function returns.

use crate::args::{Args, Opt};
use crate::function::Function;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ReturnType, Type};

/// How a `LockError` becomes what the function returns: what is prepared, and what is done with `error`. As a function
/// pointer a wrong return type is one error, at the return type; as a bound of the call it would be several, at the
/// attribute. So would a wrong handler whose type says what it is called with.
pub(crate) fn convert(args: &Args, output: &Type, return_span: Span) -> (TokenStream, TokenStream) {
    let runtime = args.runtime();
    let name = Ident::new("__lock_convert", Span::mixed_site());
    match args.expression(Opt::OnError) {
        Some(handler) => (
            quote_spanned! {Span::mixed_site()=>
                let #name = #runtime::__private::on_error(
                    ::core::marker::PhantomData::<#output>,
                    #handler,
                );
            },
            quote_spanned!(Span::mixed_site()=> #name.call(error)),
        ),
        None => (
            quote_spanned! {return_span=>
                let #name: fn(#runtime::LockError) -> _ =
                    <#output as #runtime::__private::FromLockError>::from_lock;
            },
            quote_spanned!(Span::mixed_site()=> #name(error)),
        ),
    }
}

/// The client that `client` gives, as an `Option`.
pub(crate) fn client(args: &Args) -> TokenStream {
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

/// Where what is wrong with the return type is said.
pub(crate) fn return_span(function: &Function) -> Span {
    match &function.sig.output {
        ReturnType::Default => function.sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
}

/// The helper module of the runtime.
pub(crate) fn private(args: &Args) -> TokenStream {
    let runtime = args.runtime();
    quote!(#runtime::__private)
}
