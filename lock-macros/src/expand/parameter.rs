//! One parameter that moves into the body, and what its pattern leaves behind.

use crate::function::parameters;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Pat, PatType, Token, Type, parse_quote};

/// A parameter that is not a reference. A reference drops nothing, and binding it again would make
/// the compiler's errors about lifetimes worse.
pub(crate) struct Parameter {
    attrs: Vec<Attribute>,
    mutability: Option<Token![mut]>,
    /// What the signature binds.
    names: Vec<Ident>,
    /// The pattern that takes the only name apart, if it leaves something behind.
    pat: Option<Pat>,
}

impl Parameter {
    /// `None` for a reference. `taken` has the names made for the parameters before it.
    pub(crate) fn take(
        typed: &mut PatType,
        at: usize,
        taken: &mut HashSet<String>,
    ) -> Option<Self> {
        let whole = by_value_names(&typed.pat);
        if whole.is_some() && is_reference(&typed.ty) {
            return None;
        }
        // What another attribute below reads there, as a command's description, means nothing at
        // a variable.
        let attrs = typed.attrs.iter().filter(|attr| is_for_variables(attr));
        let attrs = attrs.cloned().collect();
        // The body binds the variable and meets an `expect` there. It could not be met here, too.
        typed.attrs.retain(|attr| !is_expectation(attr));
        let (names, pat) = match whole {
            Some(names) => (names, None),
            None => {
                let name = name_of(&typed.pat, at, taken);
                let pat = std::mem::replace(&mut *typed.pat, parse_quote!(#name));
                (vec![name], Some(pat))
            }
        };
        let mutability = match &mut *typed.pat {
            Pat::Ident(pat) => pat.mutability.take(),
            _ => None,
        };
        Some(Self {
            attrs,
            mutability,
            names,
            pat,
        })
    }

    pub(crate) fn is_pattern(&self) -> bool {
        self.pat.is_some()
    }

    /// What the user can name.
    pub(crate) fn bindings(&self) -> Vec<Ident> {
        match &self.pat {
            Some(pat) => parameters::bindings(pat),
            None => self.names.clone(),
        }
    }

    /// The statements that bind it, and take its pattern apart.
    pub(crate) fn bind(&self) -> TokenStream {
        self.bind_used(|_| false)
    }

    /// As [`Self::bind`]. A name that the options have used is not unused, whatever the body does.
    pub(crate) fn bind_used(&self, is_used: impl Fn(&Ident) -> bool) -> TokenStream {
        let attrs = &self.attrs;
        let own = self.names.iter().map(|name| {
            let allow = is_used(name).then(|| quote!(#[allow(unused_variables)]));
            let bound = bind_again(attrs.iter(), self.mutability, name);
            quote!(#allow #bound)
        });
        let name = self.names.first();
        let apart = self
            .pat
            .iter()
            .filter(|pat| !matches!(pat, Pat::Wild(_)))
            .map(|pat| quote_spanned!(Span::mixed_site()=> #(#attrs)* let #pat = #name;));
        quote!(#(#own)* #(#apart)*)
    }

    /// Mentions it, so that the body owns it.
    pub(crate) fn capture(&self) -> TokenStream {
        let attrs: Vec<_> = self.other_than_expectations().collect();
        let all = self.names.iter().rev().map(|name| {
            quote_spanned! {Span::mixed_site().located_at(name.span())=>
                #(#attrs)*
                #[allow(clippy::used_underscore_binding)]
                let _ = &#name;
            }
        });
        all.collect()
    }

    fn other_than_expectations(&self) -> impl Iterator<Item = &Attribute> {
        self.attrs.iter().filter(|attr| !is_expectation(attr))
    }

    /// The statements that bind it undivided, for an inner body that binds it once more.
    pub(crate) fn bind_whole(&self) -> TokenStream {
        self.names
            .iter()
            .map(|name| bind_again(self.other_than_expectations(), None, name))
            .collect()
    }
}

/// `let name = name;`. A pattern or a field on the right would move only that part of the variable.
fn bind_again<'a>(
    attrs: impl Iterator<Item = &'a Attribute>,
    mutability: Option<Token![mut]>,
    name: &Ident,
) -> TokenStream {
    let at = Span::mixed_site().located_at(name.span());
    let value = match name.to_string().starts_with('_') {
        // Not at the variable, where it would hold for the user's own uses of it.
        true => quote_spanned!(at=> { #[allow(clippy::used_underscore_binding)] #name }),
        false => quote!(#name),
    };
    quote_spanned! {at=>
        #(#attrs)*
        #[allow(clippy::no_effect_underscore_binding, clippy::shadow_same, clippy::shadow_reuse)]
        let #mutability #name = #value;
    }
}

fn is_reference(ty: &Type) -> bool {
    match ty {
        Type::Reference(_) => true,
        Type::Group(ty) => is_reference(&ty.elem),
        Type::Paren(ty) => is_reference(&ty.elem),
        _ => false,
    }
}

fn is_for_variables(attr: &Attribute) -> bool {
    let names = [
        "cfg", "cfg_attr", "allow", "expect", "warn", "deny", "forbid",
    ];
    names.iter().any(|name| attr.path().is_ident(name))
}

fn is_expectation(attr: &Attribute) -> bool {
    attr.path().is_ident("expect")
}

/// A name for a parameter whose pattern moves into the body. Documentation shows it, so it is made
/// of the pattern's names.
fn name_of(pat: &Pat, at: usize, taken: &mut HashSet<String>) -> Ident {
    let names: Vec<Ident> = parameters::bindings(pat);
    let plain = names.iter().all(|name| name.unraw() == *name);
    let joined: Vec<String> = names.iter().map(Ident::to_string).collect();
    let mut word = joined.join("_");
    if word.is_empty() || !plain || taken.contains(&word) {
        word = format!("arg{at}");
    }
    while !taken.insert(word.clone()) {
        word.push('_');
    }
    // Apart from the expansion's own variables, none of which begins like this.
    format_ident!(
        "__lock_of_{word}",
        span = Span::mixed_site().located_at(pat.span())
    )
}

/// The names of a pattern that leaves nothing behind in the parameter; `None` for all other
/// patterns.
fn by_value_names(pat: &Pat) -> Option<Vec<Ident>> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
            Some(vec![pat.ident.clone()])
        }
        _ => leaf_names(pat),
    }
}

fn leaf_names(pat: &Pat) -> Option<Vec<Ident>> {
    let all = |pats: &mut dyn Iterator<Item = &Pat>| {
        let parts: Option<Vec<Vec<Ident>>> = pats.map(leaf_names).collect();
        parts.map(|parts| parts.concat())
    };
    match pat {
        Pat::Ident(pat)
            if pat.by_ref.is_none() && pat.mutability.is_none() && pat.subpat.is_none() =>
        {
            Some(vec![pat.ident.clone()])
        }
        Pat::Paren(pat) => leaf_names(&pat.pat),
        Pat::Tuple(pat) => all(&mut pat.elems.iter()),
        Pat::TupleStruct(pat) => all(&mut pat.elems.iter()),
        Pat::Slice(pat) => all(&mut pat.elems.iter()),
        Pat::Struct(pat) if pat.rest.is_none() => {
            all(&mut pat.fields.iter().map(|field| &*field.pat))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::by_value_names;
    use syn::Pat;
    use syn::parse::Parser;

    fn pat(text: &str) -> Pat {
        Pat::parse_multi.parse_str(text).expect(text)
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
