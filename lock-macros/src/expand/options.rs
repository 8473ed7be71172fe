//! Writes out what both attributes have: the client, a duration, the error's conversion.

use crate::args::{Opt, SKIP};
use crate::parse::Args;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Expr, Type};

/// What the option `client` gives, as an `Option`.
pub(crate) fn write_client(args: &Args) -> TokenStream {
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

/// The variable `name` with its type: a value of another type is one error, at the expression.
pub(crate) fn write_duration(name: &Ident, value: &Expr) -> TokenStream {
    let at = Span::mixed_site().located_at(value.span());
    let duration = quote_spanned!(at=> ::core::time::Duration);
    quote_spanned!(Span::mixed_site()=> let #name: #duration = #value;)
}

/// The variable that makes a `LockError` what the function returns. Evaluated before the body.
///
/// It is a function pointer, so that a wrong return type is one error, at the return type. A bound
/// of the call would give several, at the attribute. For the same reason a handler's type does not
/// say what it is called with.
pub(crate) fn write_conversion(
    args: &Args,
    output: &Type,
    return_span: Span,
) -> (TokenStream, Ident) {
    let runtime = args.runtime();
    let name = Ident::new("__lock_convert", Span::mixed_site());
    let can_carry = match args.is_word(Opt::OnBusy, SKIP) {
        true => "FromOtherError",
        false => "FromLockError",
    };
    let can_carry = Ident::new(can_carry, return_span);
    let convert = match args.expression(Opt::OnError) {
        Some(handler) => quote_spanned! {Span::mixed_site()=>
            let #name = #runtime::__private::on_error(
                ::core::marker::PhantomData::<#output>,
                #handler,
            );
        },
        None => quote_spanned! {return_span=>
            let #name: fn(#runtime::LockError) -> _ =
                <#output as #runtime::__private::#can_carry>::from_lock;
        },
    };
    (convert, name)
}
