//! The names that a function's parameters bind.

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{FnArg, Pat, PatIdent, Signature};

/// Every name that the body gets from the parameters, `self` included.
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

/// The names without `self`, and without those that a `#[cfg]` may remove.
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

/// The names that a pattern binds.
pub(crate) fn bindings(pat: &Pat) -> Vec<Ident> {
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
