//! The names that a function's parameters bind.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{FnArg, Pat, PatIdent, Signature};

/// What a key template may name.
#[derive(Debug)]
pub(crate) struct Names {
    /// Every name that the body gets from the parameters, `self` included.
    pub(crate) parameters: Vec<Ident>,
    /// The function's own const generics.
    pub(crate) constants: Vec<Ident>,
}

impl Names {
    pub(crate) fn of(sig: &Signature) -> Self {
        let mut parameters = Vec::new();
        for input in &sig.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    parameters.push(Ident::new("self", receiver.self_token.span));
                }
                FnArg::Typed(typed) => parameters.extend(bindings(&typed.pat)),
            }
        }
        Self {
            parameters,
            constants: sig
                .generics
                .const_params()
                .map(|constant| constant.ident.clone())
                .collect(),
        }
    }

    /// The name that is written so in plain text, as it has to be written in Rust.
    pub(crate) fn known(&self, text: &str) -> Option<String> {
        let mut all = self.parameters.iter().chain(&self.constants);
        all.find(|name| name.unraw() == text).map(Ident::to_string)
    }
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
