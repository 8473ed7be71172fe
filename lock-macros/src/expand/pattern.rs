//! Patterns of parameters: what they leave behind.

use proc_macro2::Ident;
use syn::Pat;

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
