//! How a `LockError` becomes what the function returns.

use crate::args::Opt;
use crate::parse::Args;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::Type;

/// The variable that converts. Evaluated before the body.
///
/// A function pointer makes of a wrong return type one error, at the return type. A bound of the
/// call would make several, at the attribute. For the same reason a handler's type does not say
/// what it is called with.
pub(crate) fn of(args: &Args, output: &Type, return_span: Span) -> (TokenStream, Ident) {
    let runtime = args.runtime();
    let name = Ident::new("__lock_convert", Span::mixed_site());
    let convert = match args.expression(Opt::OnError) {
        Some(handler) => quote_spanned! {Span::mixed_site()=>
            let #name = #runtime::__private::on_error(
                ::core::marker::PhantomData::<#output>,
                #handler,
            );
        },
        None => quote_spanned! {return_span=>
            let #name: fn(#runtime::LockError) -> _ =
                <#output as #runtime::__private::FromLockError>::from_lock;
        },
    };
    (convert, name)
}
