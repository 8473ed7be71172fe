//! Writes out the request for a lock: the keys, the permits, the client and the options.

use crate::args::{CANCEL, CONTINUE, DURATIONS, EXCLUSIVE, Opt, READ, SKIP, WRITE};
use crate::expand::{client, key};
use crate::key::Keys;
use crate::parse::Args;
use crate::parse::value::Value;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Expr;
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
    let durations = given_durations(args);
    let spec = spec(args, &runtime);
    Request {
        prepare: quote_spanned! {Span::mixed_site()=>
            #taken
            #durations
            let __lock_client = #client;
        },
        acquire: quote_spanned! {Span::mixed_site()=>
            #private::#verb(__lock_slot, __lock_client, #takes, #spec)
        },
    }
}

/// The variables with the durations that are known only when the function is called.
fn given_durations(args: &Args) -> TokenStream {
    let given = DURATIONS.into_iter().filter_map(|opt| {
        let name = given_duration(opt);
        let value = args.expression(opt)?;
        Some(typed_duration(&name, value))
    });
    given.collect()
}

/// A wrong type is one error, at the expression.
pub(crate) fn typed_duration(name: &Ident, value: &Expr) -> TokenStream {
    let at = Span::mixed_site().located_at(value.span());
    let duration = quote_spanned!(at=> ::core::time::Duration);
    quote_spanned!(Span::mixed_site()=> let #name: #duration = #value;)
}

fn given_duration(opt: Opt) -> Ident {
    let name = match opt {
        Opt::Lease => "__lock_lease",
        Opt::MaxHold => "__lock_max_hold",
        Opt::HoldAtLeast => "__lock_hold_at_least",
        _ => "__lock_wait",
    };
    Ident::new(name, Span::mixed_site())
}

/// A constant, if all options are known at compile time.
fn spec(args: &Args, runtime: &TokenStream) -> TokenStream {
    let private = quote!(#runtime::__private);
    let duration = |opt| match args.get(opt)?.value {
        Value::Millis(millis) => Some(quote!(::core::time::Duration::from_millis(#millis))),
        Value::Expression(_) => {
            let name = given_duration(opt);
            Some(quote!(#name))
        }
        _ => None,
    };
    let mut fields = TokenStream::new();
    for (opt, field) in [
        (Opt::Lease, quote!(lease)),
        (Opt::MaxHold, quote!(max_hold)),
        (Opt::HoldAtLeast, quote!(hold_at_least)),
    ] {
        if let Some(duration) = duration(opt) {
            fields.extend(quote!(#field: ::core::option::Option::Some(#duration),));
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
    let wait = match duration(Opt::Wait) {
        Some(duration) => Some(quote!(#private::Wait::For(#duration))),
        None if args.get(Opt::Wait).is_some() => Some(quote!(#private::Wait::Forever)),
        // What is skipped when it is busy is not waited for.
        None if args.is_word(Opt::OnBusy, SKIP) => {
            Some(quote!(#private::Wait::For(::core::time::Duration::ZERO)))
        }
        None => None,
    };
    if let Some(wait) = wait {
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
    let spec = quote_spanned! {Span::mixed_site()=>
        &#private::Spec { #fields ..#private::Spec::DEFAULT }
    };
    let is_known = DURATIONS
        .into_iter()
        .all(|opt| args.expression(opt).is_none());
    match is_known {
        true => quote_spanned!(Span::mixed_site()=> const { #spec }),
        false => spec,
    }
}
