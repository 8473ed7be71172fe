//! How each parameter moves into the body, so that it is dropped before the lock is released.

use crate::expand::pattern;
use crate::expand::usage::{self, Usage};
use crate::function::parameters;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, Pat, ReceiverKind, Signature, Stmt, Token, Type, parse_quote};

/// The statements that move the parameters.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// Before the lock: the names in patterns, by reference, for the options' expressions.
    pub(crate) outer: TokenStream,
    /// First in the body.
    pub(crate) inner: TokenStream,
}

/// Moves the parameters into the body. Of the signature only patterns change, never types.
pub(crate) fn move_into_body(
    sig: &mut Signature,
    private: &TokenStream,
    usage: impl Fn(&Ident) -> Usage,
) -> Moves {
    let mut outer = TokenStream::new();
    let mut wrapped = TokenStream::new();
    let mut rebound = TokenStream::new();
    let mut captured = Vec::new();
    let mut taken = HashSet::new();
    for (at, input) in sig.inputs.iter_mut().enumerate() {
        match input {
            FnArg::Receiver(receiver) => {
                let name = Ident::new("self", receiver.self_token.span);
                let owned = !matches!(receiver.kind, ReceiverKind::Reference(..));
                if owned && usage(&name) != Usage::Moved {
                    captured.push(capture(&[], &name));
                }
            }
            FnArg::Typed(typed) => {
                let attrs = take_attributes(&mut typed.attrs);
                let by_value = pattern::by_value_names(&typed.pat);
                let Some(names) = by_value else {
                    let name = parameter_name(&typed.pat, at, &mut taken);
                    let pat = std::mem::replace(&mut *typed.pat, parse_quote!(#name));
                    let used: Vec<Ident> = parameters::bindings(&pat)
                        .into_iter()
                        .filter(|name| usage(name) != Usage::None)
                        .collect();
                    if used.is_empty() && !matches!(pat, Pat::Wild(_)) {
                        wrapped.extend(wrap_argument(&attrs, &name, private));
                        rebound.extend(unwrap_argument(&attrs, None, &name, private));
                        rebound.extend(quote_spanned! {Span::mixed_site()=>
                            #(#attrs)* let #pat = #name;
                        });
                        continue;
                    }
                    if !used.is_empty() {
                        let borrowed = pattern::prune(&pat, &|name| used.contains(name));
                        outer.extend(quote_spanned! {Span::mixed_site()=>
                            #(#attrs)* let #borrowed = &#name;
                        });
                    }
                    captured.push(capture(&attrs, &name));
                    if !matches!(pat, Pat::Wild(_)) {
                        rebound.extend(quote_spanned! {Span::mixed_site()=>
                            #(#attrs)* let #pat = #name;
                        });
                        rebound.extend(used.iter().map(|name| capture(&attrs, name)));
                    }
                    continue;
                };
                for name in names {
                    match usage(&name) {
                        Usage::None if is_reference(&typed.ty) => {}
                        Usage::None => {
                            let mutability = match &mut *typed.pat {
                                Pat::Ident(pat) => pat.mutability.take(),
                                _ => None,
                            };
                            wrapped.extend(wrap_argument(&attrs, &name, private));
                            rebound.extend(unwrap_argument(&attrs, mutability, &name, private));
                        }
                        Usage::Borrowed => captured.push(capture(&attrs, &name)),
                        Usage::Moved => {}
                    }
                }
            }
        }
    }
    // Captured variables drop in the order of their capture; parameters drop from the last to the
    // first.
    captured.reverse();
    outer.extend(wrapped);
    Moves {
        outer,
        inner: quote!(#(#captured)* #rebound),
    }
}

/// There is nothing to drop. To move it would only make the compiler's errors about lifetimes
/// worse.
fn is_reference(ty: &Type) -> bool {
    match ty {
        Type::Reference(_) => true,
        Type::Group(ty) => is_reference(&ty.elem),
        Type::Paren(ty) => is_reference(&ty.elem),
        _ => false,
    }
}

/// Wraps an argument that only the body uses, until the body begins.
fn wrap_argument(attrs: &[Attribute], name: &Ident, private: &TokenStream) -> TokenStream {
    let private = located_at(name.span(), private);
    let attrs = attrs.iter().filter(|attr| !is_expectation(attr));
    quote_spanned! {Span::mixed_site().located_at(name.span())=>
        #(#attrs)*
        #[allow(clippy::shadow_reuse, clippy::used_underscore_binding)]
        let #name = #private::Argument::new(#name);
    }
}

fn unwrap_argument(
    attrs: &[Attribute],
    mutability: Option<Token![mut]>,
    name: &Ident,
    private: &TokenStream,
) -> TokenStream {
    let private = located_at(name.span(), private);
    let at = Span::mixed_site().located_at(name.span());
    let mut value = quote_spanned!(at=> #private::Argument::into_inner(#name));
    if name.to_string().starts_with('_') {
        // Only here: at the variable it would hold for the user's own uses of it.
        value = quote_spanned! {at=>
            { #[allow(clippy::used_underscore_binding)] #value }
        };
    }
    quote_spanned! {at=>
        #(#attrs)*
        #[allow(clippy::no_effect_underscore_binding, clippy::shadow_reuse)]
        let #mutability #name = #value;
    }
}

/// The same path, for errors that point to the parameter and not to the attribute.
fn located_at(span: Span, path: &TokenStream) -> TokenStream {
    let located = path.clone().into_iter().map(|mut token| {
        token.set_span(token.span().located_at(span));
        token
    });
    located.collect()
}

/// Mentions a variable, so that the `async move` block owns it.
fn capture(attrs: &[Attribute], name: &Ident) -> TokenStream {
    quote_spanned! {Span::mixed_site().located_at(name.span())=>
        #(#attrs)*
        #[allow(clippy::used_underscore_binding)]
        let _ = &#name;
    }
}

/// Moves the parameters into a future made by hand. Its own statements say what it owns. Only what
/// the options borrow has to move as well.
pub(crate) fn move_into_future(
    sig: &Signature,
    statements: &mut [Stmt],
    usage: impl Fn(&Ident) -> Usage,
) -> Moves {
    let mut moves = Moves::default();
    for input in sig.inputs.iter().rev() {
        if let FnArg::Typed(typed) = input
            && let Pat::Ident(pat) = &*typed.pat
            && usage(&pat.ident) == Usage::Borrowed
        {
            moves.inner.extend(capture(&[], &pat.ident));
        }
    }
    usage::allow_unused(sig, statements, |name| usage(name) != Usage::None);
    moves
}

/// The attributes that the statements need too: conditions, and the levels of lints, which now see
/// the statements.
fn take_attributes(attrs: &mut Vec<Attribute>) -> Vec<Attribute> {
    let copied = attrs.clone();
    // An `expect` is met where the body binds the variable, and could not be met here as well.
    attrs.retain(|attr| !is_expectation(attr));
    copied
}

fn is_expectation(attr: &Attribute) -> bool {
    attr.path().is_ident("expect")
}

/// A name for a parameter whose pattern moves into the body. It is made of the pattern's names,
/// since documentation shows it.
fn parameter_name(pat: &Pat, at: usize, taken: &mut HashSet<String>) -> Ident {
    let names: Vec<Ident> = parameters::bindings(pat);
    let plain = names.iter().all(|name| name.unraw() == *name);
    let joined: Vec<String> = names.iter().map(Ident::to_string).collect();
    let mut word = format!("{}_", joined.join("_"));
    if word == "_" || !plain || !taken.insert(word.clone()) {
        word = format!("_arg{at}");
    }
    format_ident!("{word}", span = Span::mixed_site().located_at(pat.span()))
}
