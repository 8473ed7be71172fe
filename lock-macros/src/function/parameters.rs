//! The names that a function's parameters bind.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{FnArg, Pat, PatIdent, Signature, Type};

/// What a key template may name.
#[derive(Debug)]
pub(crate) struct ParameterNames {
    /// Every name that the body gets from the parameters, `self` included.
    pub(crate) parameters: Vec<Ident>,
    /// The function's own const generics.
    pub(crate) constants: Vec<Ident>,
    /// The parameters whose type is one of the function's type parameters, or `impl Trait`.
    generic: Vec<Ident>,
    /// The parameters that are an `Option`.
    optional: Vec<Ident>,
}

impl ParameterNames {
    pub(crate) fn of(sig: &Signature) -> Self {
        let mut names = Self {
            parameters: Vec::new(),
            constants: Vec::new(),
            generic: Vec::new(),
            optional: Vec::new(),
        };
        for constant in sig.generics.const_params() {
            names.constants.push(constant.ident.clone());
        }
        for input in &sig.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    let name = Ident::new("self", receiver.self_token.span);
                    names.parameters.push(name);
                }
                FnArg::Typed(typed) => {
                    names.parameters.extend(bindings(&typed.pat));
                    if let Pat::Ident(pat) = &*typed.pat {
                        names.add_type(&pat.ident, &typed.ty, sig);
                    }
                }
            }
        }
        names
    }

    fn add_type(&mut self, name: &Ident, ty: &Type, sig: &Signature) {
        let mut type_params = sig.generics.type_params();
        match behind_references(ty) {
            Type::ImplTrait(_) => self.generic.push(name.clone()),
            Type::Path(ty) => {
                let Some(last) = ty.path.segments.last() else {
                    return;
                };
                if last.ident == "Option" {
                    self.optional.push(name.clone());
                } else if type_params.any(|param| ty.path.is_ident(&param.ident)) {
                    self.generic.push(name.clone());
                }
            }
            _ => {}
        }
    }

    pub(crate) fn is_generic(&self, name: &Ident) -> bool {
        self.generic.contains(name)
    }

    pub(crate) fn is_optional(&self, name: &Ident) -> bool {
        self.optional.contains(name)
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

fn behind_references(ty: &Type) -> &Type {
    match ty {
        Type::Reference(ty) => behind_references(&ty.elem),
        Type::Group(ty) => behind_references(&ty.elem),
        Type::Paren(ty) => behind_references(&ty.elem),
        ty => ty,
    }
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
