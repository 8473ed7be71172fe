//! How the parameters move into the body, so that they are dropped before the lock is released, and
//! in the order in which the plain function drops them: the last one first, each pattern's names
//! before what the pattern left behind.

use crate::expand::pattern;
use crate::function::parameters::{self, Names};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, FnArg, Local, Pat, PatType, ReceiverKind, Signature, Stmt, Token, Type,
    parse_quote,
};

/// What a body owns of its function's parameters.
#[derive(Default)]
pub(crate) struct Parameters {
    /// `self`, if it is not a reference. It can't be bound again, and drops last anyway.
    receiver: Option<Ident>,
    others: Vec<Parameter>,
    /// What a future made by hand begins with to own them: `let id = id;`, as `#[async_trait]`
    /// writes it for each parameter. The options use what stands on the right.
    moves: Vec<Stmt>,
}

/// A parameter that is not a reference. References drop nothing, and to bind them again would only
/// make the compiler's errors about lifetimes worse.
struct Parameter {
    attrs: Vec<Attribute>,
    mutability: Option<Token![mut]>,
    /// What the signature binds.
    names: Vec<Ident>,
    /// What the only name is taken apart by, if that leaves something behind.
    pat: Option<Pat>,
}

impl Parameters {
    /// Of the signature only patterns change, never types.
    pub(crate) fn take(sig: &mut Signature) -> Self {
        let mut taken = HashSet::new();
        let mut parameters = Self::default();
        for (at, input) in sig.inputs.iter_mut().enumerate() {
            match input {
                FnArg::Receiver(receiver) => {
                    let is_owned = !matches!(receiver.kind, ReceiverKind::Reference(..));
                    let name = Ident::new("self", receiver.self_token.span);
                    parameters.receiver = is_owned.then_some(name);
                }
                FnArg::Typed(typed) => {
                    let parameter = Parameter::take(typed, at, &mut taken);
                    parameters.others.extend(parameter);
                }
            }
        }
        parameters
    }

    pub(crate) fn take_from(names: &Names, statements: &mut Vec<Stmt>) -> Self {
        let count = statements
            .iter()
            .take_while(|statement| moves(statement, names))
            .count();
        Self {
            moves: statements.drain(..count).collect(),
            ..Self::default()
        }
    }

    /// The statements, before the lock and behind the options, by which a future made by hand owns
    /// them.
    pub(crate) fn moves(&self) -> TokenStream {
        let moves = &self.moves;
        quote!(#(#moves)*)
    }

    /// The statements in front of the options by which the body owns them all, and those behind
    /// the lock. `may_move` tells of a parameter's names, and whether it is taken apart, if the
    /// options could have moved it.
    ///
    /// If they could not, each is bound as late as its use: a future has room for all of its
    /// variables, and what asks for the lock then uses the same.
    pub(crate) fn bind(
        &self,
        may_move: impl Fn(&[Ident], bool) -> bool,
        is_mentioned: impl Fn(&Ident) -> bool,
    ) -> (TokenStream, TokenStream) {
        let may_move = |parameter: &Parameter| {
            let is_pattern = parameter.pat.is_some();
            may_move(&parameter.bindings(), is_pattern)
        };
        let receiver = self.receiver();
        if self.others.iter().any(may_move) {
            let all = self.others.iter().map(Parameter::bind);
            return (quote!(#receiver #(#all)*), TokenStream::new());
        }
        // What is captured first is dropped first, if the body never begins.
        let captured = self.others.iter().rev().map(Parameter::capture);
        let late = self.others.iter();
        let late = late.map(|parameter| parameter.bind_used(&is_mentioned));
        (quote!(#(#captured)* #receiver), quote!(#(#late)*))
    }

    /// The statements for a body inside of another one, which evaluates the options first. What
    /// those may have taken, or borrow for as long as the body lives, stays in the outer one. The
    /// inner one owns what it mentions, and what has to be dropped before all that stays.
    pub(crate) fn bind_around(
        &self,
        stays: impl Fn(&[Ident], bool) -> bool,
        is_mentioned: impl Fn(&Ident) -> bool,
    ) -> (TokenStream, TokenStream) {
        let stays: Vec<bool> = self
            .others
            .iter()
            .map(|parameter| stays(&parameter.bindings(), parameter.pat.is_some()))
            .collect();
        let behind = stays.iter().rposition(|stays| *stays);
        let mut outer = self.receiver();
        let mut inner = TokenStream::new();
        for (at, parameter) in self.others.iter().enumerate() {
            let is_mentioned = parameter.bindings().iter().any(&is_mentioned);
            if stays[at] || !is_mentioned && behind.is_some_and(|behind| at < behind) {
                outer.extend(parameter.bind());
            } else {
                outer.extend(parameter.pass());
                inner.extend(parameter.bind());
            }
        }
        (outer, inner)
    }

    fn receiver(&self) -> TokenStream {
        let capture = self.receiver.as_ref().map(
            |name| quote_spanned!(Span::mixed_site().located_at(name.span())=> let _ = &#name;),
        );
        quote!(#capture)
    }
}

/// `let id = id;`, or what `#[async_trait]` writes before them for the type of the block.
fn moves(statement: &Stmt, names: &Names) -> bool {
    match statement {
        Stmt::Local(Local {
            init: Some(init), ..
        }) => init.diverge.is_none() && is_parameter(&init.expr, names),
        Stmt::Expr(Expr::If(branch), None) => match &*branch.cond {
            Expr::Let(matched) => {
                matches!(&*matched.expr, Expr::Path(path)
                    if path.path.segments.last().is_some_and(|last| last.ident == "None"))
            }
            _ => false,
        },
        _ => false,
    }
}

/// `id`, or `{ let id = id; id }`, which `#[async_trait]` writes behind a pattern.
fn is_parameter(value: &Expr, names: &Names) -> bool {
    match value {
        Expr::Path(path) => {
            let name = path.path.get_ident();
            name.is_some_and(|name| names.parameters.contains(name))
        }
        Expr::Block(value) => match value.block.stmts.as_slice() {
            [before, Stmt::Expr(last, None)] => moves(before, names) && is_parameter(last, names),
            _ => false,
        },
        _ => false,
    }
}

impl Parameter {
    fn take(typed: &mut PatType, at: usize, taken: &mut HashSet<String>) -> Option<Self> {
        let whole = pattern::by_value_names(&typed.pat);
        if whole.is_some() && is_reference(&typed.ty) {
            return None;
        }
        let attrs = typed.attrs.clone();
        // An `expect` is met where the body binds the variable, and could not be met here as well.
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

    /// What the user can name.
    fn bindings(&self) -> Vec<Ident> {
        match &self.pat {
            Some(pat) => parameters::bindings(pat),
            None => self.names.clone(),
        }
    }

    fn bind(&self) -> TokenStream {
        self.bind_used(|_| false)
    }

    /// What is used already is not unused, whatever the body does.
    fn bind_used(&self, is_used: impl Fn(&Ident) -> bool) -> TokenStream {
        let attrs = &self.attrs;
        let own = self.names.iter().map(|name| {
            let allow = is_used(name).then(|| quote!(#[allow(unused_variables)]));
            let bound = bind(attrs.iter(), self.mutability, name);
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
    fn capture(&self) -> TokenStream {
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

    /// To the body inside, which binds it.
    fn pass(&self) -> TokenStream {
        self.names
            .iter()
            .map(|name| bind(self.other_than_expectations(), None, name))
            .collect()
    }
}

/// Binds a variable again. The whole variable: a pattern or a field access on the right would move
/// that part only, and leave the rest outside.
fn bind<'a>(
    attrs: impl Iterator<Item = &'a Attribute>,
    mutability: Option<Token![mut]>,
    name: &Ident,
) -> TokenStream {
    let at = Span::mixed_site().located_at(name.span());
    let value = match name.to_string().starts_with('_') {
        // Only here: at the variable it would hold for the user's own uses of it.
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

fn is_expectation(attr: &Attribute) -> bool {
    attr.path().is_ident("expect")
}

/// A name for a parameter whose pattern moves into the body. It is made of the pattern's names,
/// since documentation shows it.
fn name_of(pat: &Pat, at: usize, taken: &mut HashSet<String>) -> Ident {
    let names: Vec<Ident> = parameters::bindings(pat);
    let plain = names.iter().all(|name| name.unraw() == *name);
    let joined: Vec<String> = names.iter().map(Ident::to_string).collect();
    let mut word = joined.join("_");
    if word.is_empty() || !plain || !taken.insert(word.clone()) {
        word = format!("arg{at}");
    }
    format_ident!(
        "__lock_{word}",
        span = Span::mixed_site().located_at(pat.span())
    )
}
