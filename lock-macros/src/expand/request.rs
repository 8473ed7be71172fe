//! Writes out the request for a lock: the keys, the permits, the client and the options.

use crate::args::{
    ALWAYS, CANCEL, CONTINUE, DURATIONS, EXCLUSIVE, Opt, READ, SKIP, SUCCESS, WRITE,
};
use crate::expand::{key, options};
use crate::key::{KeyArgument, KeyArguments};
use crate::parse::Args;
use crate::parse::value::Value;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

pub(crate) struct RequestCode {
    /// The statements that read the function's parameters, before anything waits.
    pub(crate) prepare: TokenStream,
    /// The future that asks for the lock.
    pub(crate) acquire: TokenStream,
}

pub(crate) fn write_request(args: &Args, keys: &KeyArguments) -> RequestCode {
    let private = args.private();
    let RequestParts { bind, verb, names } = match (keys, args.expression(Opt::Permits)) {
        (KeyArguments::Several(keys), _) => write_keys(keys, &args.runtime()),
        (KeyArguments::One(key), Some(permits)) => write_permits(key, permits, &args.runtime()),
        (KeyArguments::One(key), None) => write_one_key(key, &args.runtime()),
    };
    let client = options::write_client(args);
    let durations = write_durations(args);
    let spec = write_spec(args);
    RequestCode {
        prepare: quote_spanned! {Span::mixed_site()=>
            #bind
            #durations
            let __lock_client = #client;
        },
        acquire: quote_spanned! {Span::mixed_site()=>
            #private::#verb(__lock_slot, __lock_client, #names, #spec)
        },
    }
}

/// What a request takes: the statements that bind it, the runtime's function, and its arguments.
struct RequestParts {
    bind: TokenStream,
    verb: TokenStream,
    names: TokenStream,
}

fn write_keys(keys: &[KeyArgument], runtime: &TokenStream) -> RequestParts {
    let keys = keys.iter().map(|key| key::write_key(key, runtime));
    RequestParts {
        bind: quote_spanned!(Span::mixed_site()=> let __lock_keys = [#(#keys),*];),
        verb: quote!(acquire_all),
        names: quote_spanned!(Span::mixed_site()=> __lock_keys),
    }
}

fn write_one_key(key: &KeyArgument, runtime: &TokenStream) -> RequestParts {
    let key = key::write_key(key, runtime);
    RequestParts {
        bind: quote_spanned!(Span::mixed_site()=> let __lock_key = #key;),
        verb: quote!(acquire),
        names: quote_spanned!(Span::mixed_site()=> __lock_key),
    }
}

fn write_permits(key: &KeyArgument, permits: &Expr, runtime: &TokenStream) -> RequestParts {
    let RequestParts { bind, names, .. } = write_one_key(key, runtime);
    // A wrong type is one error, at the expression.
    let at = Span::mixed_site().located_at(permits.span());
    let number = quote_spanned!(at=> ::core::primitive::u32);
    RequestParts {
        bind: quote_spanned! {Span::mixed_site()=>
            #bind
            let __lock_permits: #number = #permits;
        },
        verb: quote!(acquire_permits),
        names: quote_spanned!(Span::mixed_site()=> #names, __lock_permits),
    }
}

/// The variables with the durations that are known only when the function is called.
fn write_durations(args: &Args) -> TokenStream {
    let given = DURATIONS.into_iter().filter_map(|opt| {
        let value = args.expression(opt)?;
        Some(options::write_duration(&name_duration(opt), value))
    });
    given.collect()
}

fn name_duration(opt: Opt) -> Ident {
    let name = match opt {
        Opt::Lease => "__lock_lease",
        Opt::MaxHold => "__lock_max_hold",
        Opt::HoldAtLeast => "__lock_hold_at_least",
        _ => "__lock_wait",
    };
    Ident::new(name, Span::mixed_site())
}

/// A constant, if all options are known at compile time.
fn write_spec(args: &Args) -> TokenStream {
    let private = args.private();
    let times = write_times(args);
    let flags = write_flags(args);
    let wait = write_wait(args);
    let words = write_words(args);
    let fenced = args.name(Opt::Fence).map(|_| quote!(fenced: true,));
    let spec = quote_spanned! {Span::mixed_site()=>
        &#private::Spec { #times #flags #wait #words #fenced ..#private::Spec::DEFAULT }
    };
    let is_known = DURATIONS
        .into_iter()
        .all(|opt| args.expression(opt).is_none());
    match is_known {
        true => quote_spanned!(Span::mixed_site()=> const { #spec }),
        false => spec,
    }
}

fn write_times(args: &Args) -> TokenStream {
    let times = [
        (Opt::Lease, quote!(lease)),
        (Opt::MaxHold, quote!(max_hold)),
        (Opt::HoldAtLeast, quote!(hold_at_least)),
    ];
    let given = times.into_iter().filter_map(|(opt, field)| {
        let duration = write_duration(args, opt)?;
        Some(quote!(#field: ::core::option::Option::Some(#duration),))
    });
    given.collect()
}

fn write_duration(args: &Args, opt: Opt) -> Option<TokenStream> {
    match args.get(opt)?.value {
        Value::Millis(millis) => Some(quote!(::core::time::Duration::from_millis(#millis))),
        Value::Expression(_) => Some(name_duration(opt).into_token_stream()),
        _ => None,
    }
}

fn write_wait(args: &Args) -> Option<TokenStream> {
    let private = args.private();
    let wait = match write_duration(args, Opt::Wait) {
        Some(duration) => quote!(For(#duration)),
        None if args.get(Opt::Wait).is_some() => quote!(Forever),
        // A call that skips a busy lock does not wait for it.
        None if args.is_word(Opt::OnBusy, SKIP) => quote!(For(::core::time::Duration::ZERO)),
        None => return None,
    };
    Some(quote!(wait: ::core::option::Option::Some(#private::Wait::#wait),))
}

fn write_flags(args: &Args) -> TokenStream {
    let renew = args
        .bool(Opt::Renew)
        .map(|renew| quote!(renew: ::core::option::Option::Some(#renew),));
    let fair = args.bool(Opt::Fair).map(|fair| quote!(fair: #fair,));
    let reentrant = args
        .bool(Opt::Reentrant)
        .map(|reentrant| quote!(reentrant: #reentrant,));
    quote!(#renew #fair #reentrant)
}

fn write_words(args: &Args) -> TokenStream {
    let (runtime, private) = (args.runtime(), args.private());
    let words = [
        (
            Opt::Mode,
            EXCLUSIVE,
            quote!(mode: #private::Mode::Exclusive,),
        ),
        (Opt::Mode, READ, quote!(mode: #private::Mode::Read,)),
        (Opt::Mode, WRITE, quote!(mode: #private::Mode::Write,)),
        (
            Opt::OnLost,
            CONTINUE,
            quote!(on_lost: #runtime::OnLost::Continue,),
        ),
        (
            Opt::OnLost,
            CANCEL,
            quote!(on_lost: #runtime::OnLost::Cancel,),
        ),
        (
            Opt::HoldAfter,
            ALWAYS,
            quote!(hold_after: #runtime::HoldAfter::Always,),
        ),
        (
            Opt::HoldAfter,
            SUCCESS,
            quote!(hold_after: #runtime::HoldAfter::Success,),
        ),
    ];
    let given = words
        .into_iter()
        .filter(|(opt, word, _)| args.is_word(*opt, word));
    given.map(|(_, _, field)| field).collect()
}
