//! Patterns of parameters: what they leave behind, and what is left of them.

use proc_macro2::Ident;
use syn::{Pat, PatIdent, parse_quote};

/// The names of a pattern that leaves nothing behind in the parameter; `None` for all other
/// patterns.
pub(crate) fn by_value_names(pat: &Pat) -> Option<Vec<Ident>> {
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

/// The pattern with only the wanted names, to be matched against a reference to the parameter.
pub(crate) fn prune(pat: &Pat, wanted: &impl Fn(&Ident) -> bool) -> Pat {
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
        // Matching looks through a reference to a reference by itself.
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
