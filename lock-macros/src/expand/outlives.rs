//! The warning that a transaction of the caller's outlives the lock.

use crate::args::Opt;
use crate::parse::Args;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::{FnArg, Signature};

const NOTE: &str = "this transaction may be committed after the lock is released: until then, the \
                    next holder does not see what this body has written; begin and commit inside \
                    the body, or, if that is meant, write `outlives = true`";

/// A use of something that is deprecated, for each parameter whose type is written so: there is no
/// other way to warn. `#[allow(deprecated)]` on the function silences it.
pub(crate) fn warn(args: &Args, sig: &Signature) -> TokenStream {
    if args.bool(Opt::Outlives) == Some(true) {
        return TokenStream::new();
    }
    let typed = sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(&typed.ty),
        FnArg::Receiver(_) => None,
    });
    let borrowed = typed.filter_map(|ty| borrowed_transaction(ty.to_token_stream()));
    borrowed.map(|name| write_warning(name.span())).collect()
}

/// Items are not hygienic: a block hides them from the body.
fn write_warning(span: Span) -> TokenStream {
    quote_spanned! {Span::mixed_site().located_at(span)=>
        const _: () = {
            #[deprecated(note = #NOTE)]
            const A_TRANSACTION_OUTLIVES_THE_LOCK: () = ();
            A_TRANSACTION_OUTLIVES_THE_LOCK
        };
    }
}

/// The name with `Transaction` in it that stands behind `&mut`.
fn borrowed_transaction(ty: TokenStream) -> Option<Ident> {
    let (mut is_behind_mut, mut before) = (false, None);
    for token in flat(ty) {
        if let TokenTree::Ident(name) = &token {
            // `&mut`, or `&'a mut`; not `*mut`.
            let is_reference = matches!(&before, Some(TokenTree::Ident(_)))
                || matches!(&before, Some(TokenTree::Punct(punct)) if punct.as_char() == '&');
            is_behind_mut |= *name == "mut" && is_reference;
            if is_behind_mut && name.to_string().contains("Transaction") {
                return Some(name.clone());
            }
        }
        before = Some(token);
    }
    None
}

fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let of_one = |token| match token {
        TokenTree::Group(group) => flat(group.stream()),
        token => vec![token],
    };
    tokens.into_iter().flat_map(of_one).collect()
}
