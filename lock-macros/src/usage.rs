//! Which parameters the options' expressions use, by their tokens.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Usage {
    None,
    /// Only looked at: it can still move into the body.
    Borrowed,
    /// Perhaps moved away before the body: then nothing may touch it that the user did not write.
    Moved,
}

pub(crate) fn of(name: &Ident, tokens: TokenStream) -> Usage {
    scan(&name.unraw().to_string(), tokens, false)
}

fn scan(name: &str, tokens: TokenStream, formatted: bool) -> Usage {
    let mut usage = Usage::None;
    let mut before: [Option<TokenTree>; 2] = [None, None];
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

#[cfg(test)]
mod tests {
    use super::{Usage, of};
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
}
