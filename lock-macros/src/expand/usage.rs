//! Which variables the options mention, by their tokens.

use crate::args::{DURATIONS, Opt};
use crate::key::{KeyArgument, KeyArguments, Segment};
use crate::parse::Args;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::{FnArg, Pat, Signature, Stmt, parse_quote};

/// The expressions of the options, which may take what they mention.
pub(crate) fn expressions(args: &Args, keys: &KeyArguments) -> TokenStream {
    let options = [
        Opt::Permits,
        Opt::Client,
        Opt::OnError,
        Opt::Rate,
        Opt::Burst,
    ];
    let mut tokens: TokenStream = DURATIONS
        .into_iter()
        .chain(options)
        .filter_map(|opt| args.expression(opt))
        .map(|expression| quote!(#expression;))
        .collect();
    for key in keys.all() {
        if let KeyArgument::Expression(expression) = key {
            tokens.extend(quote!(#expression;));
        }
    }
    tokens
}

/// The placeholders of the templates, which borrow what they mention for a moment.
pub(crate) fn placeholders(keys: &KeyArguments) -> TokenStream {
    let segments = keys.all().iter().flat_map(|key| match key {
        KeyArgument::Template { segments, .. } => segments.as_slice(),
        KeyArgument::Expression(_) => &[],
    });
    let values = segments.filter_map(|segment| match segment {
        Segment::Value(value) => Some((&value.root, &value.expression)),
        Segment::Literal(_) => None,
    });
    values
        .map(|(root, expression)| quote!(#root; #expression;))
        .collect()
}

/// Whether the tokens may mention a variable of that name. A text that has the name as a word
/// counts, since it may be a format string.
pub(crate) fn mentions(tokens: &TokenStream, name: &Ident) -> bool {
    scan([None, None], &name.unraw().to_string(), tokens.clone())
}

fn scan(mut before: [Option<TokenTree>; 2], name: &str, tokens: TokenStream) -> bool {
    for token in tokens {
        let found = match &token {
            TokenTree::Ident(ident) => ident.unraw() == name && !is_field(&before),
            TokenTree::Literal(literal) => has_word(name, &literal.to_string()),
            // What came through a `macro_rules!` parameter.
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                scan(before.clone(), name, group.stream())
            }
            TokenTree::Group(group) => scan([None, None], name, group.stream()),
            TokenTree::Punct(_) => false,
        };
        if found {
            return true;
        }
        before = [Some(token), before[0].take()];
    }
    false
}

/// Behind one dot, and not behind those of a range.
fn is_field(before: &[Option<TokenTree>; 2]) -> bool {
    let is_dot = |token: &Option<TokenTree>| match token {
        Some(TokenTree::Punct(mark)) => mark.as_char() == '.',
        _ => false,
    };
    is_dot(&before[0]) && !is_dot(&before[1])
}

/// `"{id}"` and `"{:id$}"` in a format string, `"<id>"` in a template.
fn has_word(name: &str, literal: &str) -> bool {
    literal
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == name)
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
    use super::mentions;
    use proc_macro2::Span;

    #[test]
    fn a_variable_is_told_from_a_field_and_found_in_a_format_string() {
        for (tokens, expected) in [
            ("other", false),
            ("x.id", false),
            ("x.id.y", false),
            ("0..id", true),
            ("&id", true),
            ("id.into()", true),
            ("make(&id.locks)", true),
            ("format!(\"a:{id:?}\")", true),
            ("format!(\"a:{idea}\")", false),
            ("format!(\"{x:>id$}\")", true),
            ("format!(\"{x:.id$}\")", true),
            ("lock_key!(\"a:<id>\")", true),
        ] {
            let name = proc_macro2::Ident::new("id", Span::call_site());
            let parsed = tokens.parse().expect(tokens);
            assert_eq!(mentions(&parsed, &name), expected, "{tokens}");
        }
    }
}
