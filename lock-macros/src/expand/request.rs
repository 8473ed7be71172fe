//! Writes out the request for a lock: the keys, the permits, the client and the options.

use crate::args::{CANCEL, CONTINUE, EXCLUSIVE, Opt, READ, WRITE};
use crate::expand::{client, key};
use crate::key::Keys;
use crate::parse::Args;
use crate::parse::value::Value;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

pub(crate) struct Request {
    /// The statements that read the function's parameters, before anything waits.
    pub(crate) prepare: TokenStream,
    /// The future that asks for the lock.
    pub(crate) acquire: TokenStream,
}

pub(crate) fn of(args: &Args, keys: &Keys) -> Request {
    let runtime = args.runtime();
    let private = args.private();
    let (taken, verb, takes) = match keys {
        Keys::Several(keys) => {
            let keys = keys.iter().map(|key| key::of(key, &runtime));
            (
                quote_spanned!(Span::mixed_site()=> let __lock_keys = [#(#keys),*];),
                quote!(acquire_all),
                quote_spanned!(Span::mixed_site()=> __lock_keys),
            )
        }
        Keys::One(key) => {
            let key = key::of(key, &runtime);
            let key = quote_spanned!(Span::mixed_site()=> let __lock_key = #key;);
            match args.expression(Opt::Permits) {
                Some(permits) => {
                    // A wrong type is one error, at the expression.
                    let at = Span::mixed_site().located_at(permits.span());
                    let number = quote_spanned!(at=> ::core::primitive::u32);
                    (
                        quote_spanned! {Span::mixed_site()=>
                            #key
                            let __lock_permits: #number = #permits;
                        },
                        quote!(acquire_permits),
                        quote_spanned!(Span::mixed_site()=> __lock_key, __lock_permits),
                    )
                }
                None => (
                    key,
                    quote!(acquire),
                    quote_spanned!(Span::mixed_site()=> __lock_key),
                ),
            }
        }
    };
    let client = client::of(args);
    let spec = spec(args, &runtime);
    Request {
        prepare: quote_spanned! {Span::mixed_site()=>
            #taken
            let __lock_client = #client;
        },
        acquire: quote_spanned! {Span::mixed_site()=>
            #private::#verb(__lock_client, #takes, #spec)
        },
    }
}

/// The options known at compile time, as one constant.
fn spec(args: &Args, runtime: &TokenStream) -> TokenStream {
    let private = quote!(#runtime::__private);
    let duration = |millis: u64| {
        quote! {
            ::core::option::Option::Some(::core::time::Duration::from_millis(#millis))
        }
    };
    let mut fields = TokenStream::new();
    for (opt, field) in [
        (Opt::Lease, quote!(lease)),
        (Opt::MaxHold, quote!(max_hold)),
        (Opt::HoldAtLeast, quote!(hold_at_least)),
    ] {
        if let Some(millis) = args.millis(opt) {
            let duration = duration(millis);
            fields.extend(quote!(#field: #duration,));
        }
    }
    if let Some(renew) = args.bool(Opt::Renew) {
        fields.extend(quote!(renew: ::core::option::Option::Some(#renew),));
    }
    for (opt, field) in [
        (Opt::Fair, quote!(fair)),
        (Opt::Reentrant, quote!(reentrant)),
    ] {
        if let Some(value) = args.bool(opt) {
            fields.extend(quote!(#field: #value,));
        }
    }
    if let Some(given) = args.get(Opt::Wait) {
        let wait = match given.value {
            Value::Millis(millis) => {
                quote!(#private::Wait::For(::core::time::Duration::from_millis(#millis)))
            }
            _ => quote!(#private::Wait::Forever),
        };
        fields.extend(quote!(wait: ::core::option::Option::Some(#wait),));
    }
    for (word, mode) in [
        (EXCLUSIVE, quote!(Exclusive)),
        (READ, quote!(Read)),
        (WRITE, quote!(Write)),
    ] {
        if args.is_word(Opt::Mode, word) {
            fields.extend(quote!(mode: #private::Mode::#mode,));
        }
    }
    if args.is_word(Opt::OnLost, CONTINUE) {
        fields.extend(quote!(on_lost: #runtime::OnLost::Continue,));
    } else if args.is_word(Opt::OnLost, CANCEL) {
        fields.extend(quote!(on_lost: #runtime::OnLost::Cancel,));
    }
    if args.name(Opt::Fence).is_some() {
        fields.extend(quote!(fenced: true,));
    }
    quote_spanned! {Span::mixed_site()=>
        const { &#private::Spec { #fields ..#private::Spec::DEFAULT } }
    }
}
