//! How the parameters move into the body.
//!
//! They are dropped before the lock is released, and in the order of the plain function: the last
//! parameter first, and the names of a pattern before what the pattern left behind.

use crate::expand::parameter::Parameter;
use crate::function::parameters::ParameterNames;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::{Expr, FnArg, Local, Pat, ReceiverKind, Signature, Stmt};

/// What a body owns of its function's parameters.
#[derive(Default)]
pub(crate) struct Parameters {
    /// `self`, if it is not a reference. It can't be bound again, and drops last anyway.
    receiver: Option<Ident>,
    others: Vec<Parameter>,
    /// `let id = id;` for each parameter, as `#[async_trait]` begins its future. The options use
    /// the names on the right.
    moves: Vec<Stmt>,
}

impl Parameters {
    /// Takes the parameters of an `async fn`. In the signature only patterns change, never types.
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

    /// Takes the statements at the front of a future by which it owns the parameters.
    pub(crate) fn take_from(names: &ParameterNames, statements: &mut Vec<Stmt>) -> Self {
        let count = statements
            .iter()
            .take_while(|statement| is_move(statement, names))
            .count();
        Self {
            moves: statements.drain(..count).collect(),
            ..Self::default()
        }
    }

    /// The statements that [`Self::take_from`] took. They belong behind the options.
    pub(crate) fn moves(&self) -> TokenStream {
        let moves = &self.moves;
        quote!(#(#moves)*)
    }

    /// The same for two bodies, as [`Self::bind_around`] divides them.
    pub(crate) fn moves_around(
        &self,
        stays: impl Fn(&Ident) -> bool,
        is_mentioned: impl Fn(&Ident) -> bool,
    ) -> (TokenStream, TokenStream) {
        let same: Vec<Option<&Ident>> = self.moves.iter().map(moved_to_itself).collect();
        let behind = same.iter().rposition(|name| name.is_some_and(&stays));
        let is_outer = |at: usize, name: &Ident| {
            stays(name) || !is_mentioned(name) && behind.is_some_and(|behind| at < behind)
        };
        let (mut outer, mut inner) = (TokenStream::new(), TokenStream::new());
        for (at, statement) in self.moves.iter().enumerate() {
            let is_outer = same[at].is_some_and(|name| is_outer(at, name));
            let side = if is_outer { &mut outer } else { &mut inner };
            statement.to_tokens(side);
        }
        (outer, inner)
    }

    /// The statements by which the body owns its parameters: those before the options, and those
    /// behind the lock.
    ///
    /// `may_move` gets a parameter's names and whether it is a pattern, and says whether the
    /// options may have moved it. If they moved none, each is bound behind the lock: until then the
    /// request uses that room in the future.
    pub(crate) fn bind(
        &self,
        may_move: impl Fn(&[Ident], bool) -> bool,
        is_mentioned: impl Fn(&Ident) -> bool,
    ) -> (TokenStream, TokenStream) {
        let may_move =
            |parameter: &Parameter| may_move(&parameter.bindings(), parameter.is_pattern());
        let receiver = self.capture_receiver();
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

    /// The statements of two bodies, of which the outer one evaluates the options.
    ///
    /// What `stays` names, the options may have taken, or borrow for as long as the body lives. It
    /// stays in the outer body, and so does what drops after it and is not mentioned. The inner
    /// body owns the rest.
    pub(crate) fn bind_around(
        &self,
        stays: impl Fn(&[Ident], bool) -> bool,
        is_mentioned: impl Fn(&Ident) -> bool,
    ) -> (TokenStream, TokenStream) {
        let stays: Vec<bool> = self
            .others
            .iter()
            .map(|parameter| stays(&parameter.bindings(), parameter.is_pattern()))
            .collect();
        let behind = stays.iter().rposition(|stays| *stays);
        let mut outer = self.capture_receiver();
        let mut inner = TokenStream::new();
        for (at, parameter) in self.others.iter().enumerate() {
            let is_mentioned = parameter.bindings().iter().any(&is_mentioned);
            if stays[at] || !is_mentioned && behind.is_some_and(|behind| at < behind) {
                outer.extend(parameter.bind());
            } else {
                outer.extend(parameter.bind_whole());
                inner.extend(parameter.bind());
            }
        }
        (outer, inner)
    }

    fn capture_receiver(&self) -> TokenStream {
        let capture = self.receiver.as_ref().map(
            |name| quote_spanned!(Span::mixed_site().located_at(name.span())=> let _ = &#name;),
        );
        quote!(#capture)
    }
}

/// `let id = id;`, or the `if let None` that `#[async_trait]` writes before them for the block's
/// type.
fn is_move(statement: &Stmt, names: &ParameterNames) -> bool {
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

/// The name in `let id = id;`: a move that changes nothing for the options.
fn moved_to_itself(statement: &Stmt) -> Option<&Ident> {
    let Stmt::Local(Local {
        pat: Pat::Ident(pat),
        init: Some(init),
        ..
    }) = statement
    else {
        return None;
    };
    match &*init.expr {
        Expr::Path(path) => path.path.get_ident().filter(|name| **name == pat.ident),
        _ => None,
    }
}

/// `id`, or `{ let id = id; id }`, which `#[async_trait]` writes behind a pattern.
fn is_parameter(value: &Expr, names: &ParameterNames) -> bool {
    match value {
        Expr::Path(path) => {
            let name = path.path.get_ident();
            name.is_some_and(|name| names.parameters.contains(name))
        }
        Expr::Block(value) => match value.block.stmts.as_slice() {
            [before, Stmt::Expr(last, None)] => is_move(before, names) && is_parameter(last, names),
            _ => false,
        },
        _ => false,
    }
}
