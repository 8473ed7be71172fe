//! Which parameters the options' expressions use, by their tokens.

use crate::args::{DURATIONS, Opt};
use crate::key::{Key, Keys, Segment};
use crate::parse::Args;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, FnArg, Pat, Signature, Stmt, UnOp, parse_quote};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Usage {
    None,
    /// It can still move into the body.
    Borrowed,
    /// It may be gone before the body: only what the user wrote may touch it.
    Moved,
}

/// By all options of the lock and by its keys.
pub(crate) fn by_options(name: &Ident, args: &Args, keys: &Keys) -> Usage {
    let mut usage = Usage::None;
    for key in keys.all() {
        usage = usage.max(by_key(key, name));
    }
    for opt in DURATIONS.into_iter().chain([Opt::Permits]) {
        if let Some(number) = args.expression(opt) {
            usage = usage.max(of_number(name, number));
        }
    }
    if let Some(client) = args.expression(Opt::Client) {
        usage = usage.max(of(name, client.to_token_stream()));
    }
    if let Some(handler) = args.expression(Opt::OnError)
        && of(name, handler.to_token_stream()) != Usage::None
    {
        // The handler lives as long as the body, and so does what it borrows.
        usage = Usage::Moved;
    }
    usage
}

fn by_key(key: &Key, name: &Ident) -> Usage {
    let segments = match key {
        Key::Expression(expression) => return of(name, expression.to_token_stream()),
        Key::Template { segments, .. } => segments,
    };
    let mut usage = Usage::None;
    for segment in segments {
        if let Segment::Value(value) = segment {
            let arguments = value.expression.to_token_stream();
            let arguments = arguments.into_iter().skip(1).collect();
            usage = usage.max(of(name, arguments));
            if value.root.as_ref() == Some(name) {
                usage = usage.max(Usage::Borrowed);
            }
        }
    }
    usage
}

pub(crate) fn of(name: &Ident, tokens: TokenStream) -> Usage {
    scan(&name.unraw().to_string(), tokens, false)
}

/// By an expression that gives a number or a duration. Either is copied out of a field or from
/// behind a reference, which stay whole.
pub(crate) fn of_number(name: &Ident, expression: &Expr) -> Usage {
    match expression {
        Expr::Field(_) | Expr::Index(_) => of_place(name, expression),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => of_place(name, &unary.expr),
        Expr::Unary(unary) => of_number(name, &unary.expr),
        Expr::Paren(paren) => of_number(name, &paren.expr),
        Expr::Group(group) => of_number(name, &group.expr),
        Expr::Cast(cast) => of_number(name, &cast.expr),
        Expr::Binary(binary) => of_number(name, &binary.left).max(of_number(name, &binary.right)),
        _ => of(name, expression.to_token_stream()),
    }
}

fn of_place(name: &Ident, expression: &Expr) -> Usage {
    match expression {
        Expr::Path(_) => of(name, expression.to_token_stream()).min(Usage::Borrowed),
        Expr::Field(field) => of_place(name, &field.base),
        Expr::Index(index) => of_place(name, &index.expr).max(of_number(name, &index.index)),
        Expr::Paren(paren) => of_place(name, &paren.expr),
        Expr::Group(group) => of_place(name, &group.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => of_place(name, &unary.expr),
        _ => of_number(name, expression),
    }
}

fn scan(name: &str, tokens: TokenStream, formatted: bool) -> Usage {
    scan_behind([None, None], name, tokens, formatted)
}

fn scan_behind(
    mut before: [Option<TokenTree>; 2],
    name: &str,
    tokens: TokenStream,
    formatted: bool,
) -> Usage {
    let mut usage = Usage::None;
    for token in tokens {
        let found = match &token {
            TokenTree::Ident(ident) if ident.unraw() == name => match &before[0] {
                Some(TokenTree::Punct(punct)) if punct.as_char() == '.' => Usage::None,
                Some(TokenTree::Punct(punct)) if punct.as_char() == '&' => Usage::Borrowed,
                _ if formatted => Usage::Borrowed,
                _ => Usage::Moved,
            },
            TokenTree::Literal(literal) if is_captured(name, &literal.to_string()) => {
                Usage::Borrowed
            }
            // What came through a `macro_rules!` parameter.
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                scan_behind(before.clone(), name, group.stream(), formatted)
            }
            TokenTree::Group(group) => scan(name, group.stream(), formatted || formats(&before)),
            _ => Usage::None,
        };
        usage = usage.max(found);
        before = [Some(token), before[0].take()];
    }
    usage
}

/// `format!` and its like take their arguments by reference.
fn formats(before: &[Option<TokenTree>; 2]) -> bool {
    match before {
        [Some(TokenTree::Punct(mark)), Some(TokenTree::Ident(name))] => {
            mark.as_char() == '!'
                && (name == "format" || name == "format_args" || name == "lock_key")
        }
        _ => false,
    }
}

/// `"{id}"` in a format string, `"<id>"` in a template.
fn is_captured(name: &str, literal: &str) -> bool {
    ["{", "<"].iter().any(|open| {
        literal
            .split(&format!("{open}{name}"))
            .skip(1)
            .any(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// Silences a false warning: `#[async_trait]` writes `let id = id;`, which looks unused when only
/// the options mention `id`.
pub(crate) fn allow_unused(
    sig: &Signature,
    statements: &mut [Stmt],
    is_used: impl Fn(&Ident) -> bool,
) {
    let is_parameter = |name: &Ident| {
        sig.inputs.iter().any(|input| {
            matches!(
                input,
                FnArg::Typed(typed)
                    if matches!(&*typed.pat, Pat::Ident(pat) if pat.ident == *name)
            )
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

#[cfg(test)]
mod tests {
    use super::{Usage, of, of_number};
    use proc_macro2::Span;

    #[test]
    fn tells_borrowed_from_moved() {
        for (tokens, usage) in [
            ("other", Usage::None),
            ("x.id", Usage::None),
            ("&id", Usage::Borrowed),
            ("&id.locks", Usage::Borrowed),
            ("id", Usage::Moved),
            ("make(id)", Usage::Moved),
            ("make(&id)", Usage::Borrowed),
            ("id.into()", Usage::Moved),
            ("format!(\"a:{id}\")", Usage::Borrowed),
            ("format!(\"a:{id:?}\")", Usage::Borrowed),
            ("format!(\"a:{idea}\")", Usage::None),
            ("format!(\"a:{}\", id)", Usage::Borrowed),
            ("lock_key!(\"a:<id>\")", Usage::Borrowed),
            ("f(&id, id)", Usage::Moved),
        ] {
            let name = proc_macro2::Ident::new("id", Span::call_site());
            assert_eq!(of(&name, tokens.parse().expect(tokens)), usage, "{tokens}");
        }
    }

    #[test]
    fn a_number_is_copied_out_of_what_it_lies_in() {
        for (expression, usage) in [
            ("5", Usage::None),
            ("other.id", Usage::None),
            ("id.limit", Usage::Borrowed),
            ("id.shop.limit", Usage::Borrowed),
            ("id[0].limit", Usage::Borrowed),
            ("other[id.at]", Usage::Borrowed),
            ("*id", Usage::Borrowed),
            ("(*id).limit + 1", Usage::Borrowed),
            ("id.limit as u32", Usage::Borrowed),
            ("2 * id.limit", Usage::Borrowed),
            ("limit_of(&id)", Usage::Borrowed),
            ("id", Usage::Moved),
            ("id as u32", Usage::Moved),
            ("id.limit()", Usage::Moved),
            ("id.into_limits().most", Usage::Moved),
            ("limit_of(id.shop)", Usage::Moved),
            ("id.limit + limit_of(id)", Usage::Moved),
        ] {
            let name = proc_macro2::Ident::new("id", Span::call_site());
            let parsed = syn::parse_str(expression).expect(expression);
            assert_eq!(of_number(&name, &parsed), usage, "{expression}");
        }
    }
}
