//! The parameters: their names, and how each of them moves into the body, so that it is dropped before the release.

use crate::usage::Usage;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, Pat, PatIdent, ReceiverKind, Signature, Stmt, Token, parse_quote};

/// Every name that the parameters give to the body, `self` included.
pub(crate) fn names(sig: &Signature) -> Vec<Ident> {
    let mut names = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(receiver) => names.push(Ident::new("self", receiver.self_token.span)),
            FnArg::Typed(typed) => names.extend(bindings(&typed.pat)),
        }
    }
    names
}

/// `#[async_trait]` calls a parameter with a pattern `__arg1`: not a name that anybody wrote.
pub(crate) fn is_stand_in_of_async_trait(name: &str) -> bool {
    name.starts_with("__arg")
}

/// The names that are there however the crate is configured, without `self`.
pub(crate) fn unconditional_names(sig: &Signature) -> Vec<Ident> {
    sig.inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(typed) if typed.attrs.is_empty() => Some(bindings(&typed.pat)),
            _ => None,
        })
        .flatten()
        .collect()
}

fn bindings(pat: &Pat) -> Vec<Ident> {
    struct Collect(Vec<Ident>);
    impl<'ast> Visit<'ast> for Collect {
        fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
            self.0.push(pat.ident.clone());
            visit::visit_pat_ident(self, pat);
        }
    }
    let mut collect = Collect(Vec::new());
    collect.visit_pat(pat);
    collect.0
}

/// The statements that take the parameters along.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// Before the lock: names of taken-apart parameters, by reference, for the options' expressions.
    pub(crate) outer: TokenStream,
    /// First in the body.
    pub(crate) inner: TokenStream,
}

/// Makes the parameters move into the body. The signature changes only in patterns, never in types.
pub(crate) fn move_into_body(
    sig: &mut Signature,
    private: &TokenStream,
    usage: impl Fn(&Ident) -> Usage,
) -> Moves {
    let mut outer = TokenStream::new();
    let mut kept = TokenStream::new();
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
                let by_value = by_value_names(&typed.pat);
                let Some(names) = by_value else {
                    let name = stand_in(&typed.pat, at, &mut taken);
                    let pat = std::mem::replace(&mut *typed.pat, parse_quote!(#name));
                    let used: Vec<Ident> = bindings(&pat)
                        .into_iter()
                        .filter(|name| usage(name) != Usage::None)
                        .collect();
                    if used.is_empty() && !matches!(pat, Pat::Wild(_)) {
                        kept.extend(keep(&attrs, &name, private));
                        rebound.extend(unkeep(&attrs, None, &name, private));
                        rebound.extend(quote_spanned! {Span::mixed_site()=>
                            #(#attrs)* let #pat = #name;
                        });
                        continue;
                    }
                    if !used.is_empty() {
                        let borrowed = prune(&pat, &|name| used.contains(name));
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
                        Usage::None => {
                            let mutability = match &mut *typed.pat {
                                Pat::Ident(pat) => pat.mutability.take(),
                                _ => None,
                            };
                            kept.extend(keep(&attrs, &name, private));
                            rebound.extend(unkeep(&attrs, mutability, &name, private));
                        }
                        Usage::Borrowed => captured.push(capture(&attrs, &name)),
                        Usage::Moved => {}
                    }
                }
            }
        }
    }
    // Captured variables drop in the order of their capture; parameters drop from the last to the first.
    captured.reverse();
    outer.extend(kept);
    Moves {
        outer,
        inner: quote!(#(#captured)* #rebound),
    }
}

/// Holds an argument that only the body uses until the body begins.
fn keep(attrs: &[Attribute], name: &Ident, private: &TokenStream) -> TokenStream {
    let attrs = attrs.iter().filter(|attr| !is_expectation(attr));
    quote_spanned! {Span::mixed_site()=>
        #(#attrs)*
        #[allow(clippy::shadow_reuse, clippy::used_underscore_binding)]
        let #name = #private::Argument::new(#name);
    }
}

fn unkeep(
    attrs: &[Attribute],
    mutability: Option<Token![mut]>,
    name: &Ident,
    private: &TokenStream,
) -> TokenStream {
    quote_spanned! {Span::mixed_site()=>
        #(#attrs)*
        #[allow(
            clippy::no_effect_underscore_binding,
            clippy::shadow_reuse,
            clippy::used_underscore_binding
        )]
        let #mutability #name = #private::Argument::into_inner(#name);
    }
}

/// Mentions a variable, so that the `async move` block owns it.
fn capture(attrs: &[Attribute], name: &Ident) -> TokenStream {
    quote_spanned! {Span::mixed_site()=>
        #(#attrs)*
        #[allow(clippy::used_underscore_binding)]
        let _ = &#name;
    }
}

/// Before the body of a future made by hand: its own statements say what it owns, only what the options look at has to
/// move in too.
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
    allow_unused(sig, statements, |name| usage(name) != Usage::None);
    moves
}

/// `#[async_trait]` writes `let id = id;`, which looks unused when only the options mention `id`.
pub(crate) fn allow_unused(
    sig: &Signature,
    statements: &mut [Stmt],
    is_used: impl Fn(&Ident) -> bool,
) {
    let is_parameter = |name: &Ident| {
        sig.inputs.iter().any(|input| {
            matches!(input, FnArg::Typed(typed) if matches!(&*typed.pat, Pat::Ident(pat) if pat.ident == *name))
        })
    };
    for statement in statements {
        if let Stmt::Local(local) = statement
            && let Pat::Ident(bound) = &local.pat
            && is_parameter(&bound.ident)
            && is_used(&bound.ident)
        {
            local.attrs.push(parse_quote!(#[allow(unused_variables)]));
        }
    }
}

/// What has to stand on the statements too: conditions, and lint levels, whose lints now look at the statements.
fn take_attributes(attrs: &mut Vec<Attribute>) -> Vec<Attribute> {
    let copied = attrs.clone();
    // The expectation is met where the variable is bound in the body, and could not be met here as well.
    attrs.retain(|attr| !is_expectation(attr));
    copied
}

fn is_expectation(attr: &Attribute) -> bool {
    attr.path().is_ident("expect")
}

/// The names of a pattern that leaves nothing behind in the parameter; `None` for all other patterns.
fn by_value_names(pat: &Pat) -> Option<Vec<Ident>> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
            Some(vec![pat.ident.clone()])
        }
        _ => leaves(pat),
    }
}

fn leaves(pat: &Pat) -> Option<Vec<Ident>> {
    let all = |pats: &mut dyn Iterator<Item = &Pat>| {
        let parts: Option<Vec<Vec<Ident>>> = pats.map(leaves).collect();
        parts.map(|parts| parts.concat())
    };
    match pat {
        Pat::Ident(pat)
            if pat.by_ref.is_none() && pat.mutability.is_none() && pat.subpat.is_none() =>
        {
            Some(vec![pat.ident.clone()])
        }
        Pat::Paren(pat) => leaves(&pat.pat),
        Pat::Tuple(pat) => all(&mut pat.elems.iter()),
        Pat::TupleStruct(pat) => all(&mut pat.elems.iter()),
        Pat::Slice(pat) => all(&mut pat.elems.iter()),
        Pat::Struct(pat) if pat.rest.is_none() => {
            all(&mut pat.fields.iter().map(|field| &*field.pat))
        }
        _ => None,
    }
}

/// A name for a parameter whose pattern moves into the body. Documentation shows it, so it says what it can.
fn stand_in(pat: &Pat, at: usize, taken: &mut HashSet<String>) -> Ident {
    let names: Vec<Ident> = bindings(pat);
    let plain = names.iter().all(|name| name.unraw() == *name);
    let joined: Vec<String> = names.iter().map(Ident::to_string).collect();
    let mut word = format!("{}_", joined.join("_"));
    if word == "_" || !plain || !taken.insert(word.clone()) {
        word = format!("_arg{at}");
    }
    format_ident!("{word}", span = Span::mixed_site())
}

/// The pattern with only the wanted names, to be matched against a reference to the parameter.
fn prune(pat: &Pat, wanted: &impl Fn(&Ident) -> bool) -> Pat {
    match pat {
        Pat::Ident(pat) => {
            let inside = pat.subpat.as_ref().map(|(_, inside)| prune(inside, wanted));
            let name = &pat.ident;
            match (wanted(name), inside) {
                (true, Some(Pat::Wild(_)) | None) => parse_quote!(#name),
                (true, Some(inside)) => Pat::Ident(PatIdent {
                    by_ref: None,
                    mutability: None,
                    subpat: Some((Default::default(), Box::new(inside))),
                    ..pat.clone()
                }),
                (false, Some(inside)) => inside,
                (false, None) => parse_quote!(_),
            }
        }
        Pat::Paren(pat) => prune(&pat.pat, wanted),
        // A reference to a reference is looked through by itself.
        Pat::Reference(pat) => prune(&pat.pat, wanted),
        Pat::Tuple(pat) => {
            let mut pat = pat.clone();
            pat.elems
                .iter_mut()
                .for_each(|elem| *elem = prune(elem, wanted));
            Pat::Tuple(pat)
        }
        Pat::TupleStruct(pat) => {
            let mut pat = pat.clone();
            pat.elems
                .iter_mut()
                .for_each(|elem| *elem = prune(elem, wanted));
            Pat::TupleStruct(pat)
        }
        Pat::Slice(pat) => {
            let mut pat = pat.clone();
            pat.elems
                .iter_mut()
                .for_each(|elem| *elem = prune(elem, wanted));
            Pat::Slice(pat)
        }
        Pat::Or(pat) => {
            let mut pat = pat.clone();
            pat.cases
                .iter_mut()
                .for_each(|case| *case = prune(case, wanted));
            Pat::Or(pat)
        }
        Pat::Struct(pat) => {
            let mut pat = pat.clone();
            for field in &mut pat.fields {
                let pruned = prune(&field.pat, wanted);
                // `Order { id, .. }` without `id` has to become `Order { id: _, .. }`.
                if !matches!(pruned, Pat::Ident(_)) {
                    field.colon_token = Some(Default::default());
                }
                *field.pat = pruned;
            }
            Pat::Struct(pat)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{by_value_names, prune};
    use quote::ToTokens;
    use syn::Pat;
    use syn::parse::Parser;

    fn pat(text: &str) -> Pat {
        Pat::parse_multi.parse_str(text).expect(text)
    }

    #[test]
    fn only_wanted_names_stay_and_all_by_reference() {
        for (whole, pruned) in [
            ("(a, b)", "(_, b)"),
            ("(mut b, _)", "(b, _)"),
            ("Order { b, .. }", "Order { b, .. }"),
            ("Order { id: b, other }", "Order { id: b, other: _ }"),
            ("&Order { ref b, .. }", "Order { b, .. }"),
            ("b @ Order { id, .. }", "b @ Order { id: _, .. }"),
            ("a @ (b, c)", "(b, _)"),
            ("[first, rest @ .., b]", "[_, .., b]"),
            ("[first, b @ ..]", "[_, b @ ..]"),
            ("(A(b) | B(b))", "A(b) | B(b)"),
        ] {
            let expected = pat(pruned).to_token_stream().to_string();
            let got = prune(&pat(whole), &|name| name == "b");
            assert_eq!(got.to_token_stream().to_string(), expected, "{whole}");
        }
    }

    #[test]
    fn patterns_that_leave_something_behind_are_told_apart() {
        for whole in [
            "a",
            "mut a",
            "(a, b)",
            "Path(id)",
            "Order { id, sku: s }",
            "[a, b]",
            "()",
        ] {
            assert!(by_value_names(&pat(whole)).is_some(), "{whole}");
        }
        for partial in [
            "_",
            "(a, _)",
            "Order { id, .. }",
            "ref a",
            "a @ _",
            "&a",
            "[a, ..]",
            "(mut a, b)",
        ] {
            assert!(by_value_names(&pat(partial)).is_none(), "{partial}");
        }
    }
}
