//! The page of the client's settings has them all.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{every_file, root};

#[test]
fn each_setting_of_the_builder_stands_on_its_page() {
    let page = fs::read_to_string(root().join("lock-runtime/docs/settings.md")).unwrap();
    let client = root().join("lock-runtime/src/client");
    let mut files = every_file(&client.join("builder"));
    files.push(client.join("builder.rs"));
    let settings: Vec<String> = files.iter().flat_map(|file| settings_in(file)).collect();
    let rows = page
        .lines()
        .filter_map(|row| row.strip_prefix("| `")?.split_once(" | "));
    let named: BTreeSet<&str> = rows
        .flat_map(|(names, _)| names.split([',', ' ', '`']))
        .collect();
    let missing: Vec<_> = settings
        .iter()
        .filter(|setting| !named.contains(setting.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(settings.len() > 15, "{settings:?}");
}

/// The public functions of the builder that give it back, without those for simulations.
fn settings_in(file: &Path) -> Vec<String> {
    let file = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
    let blocks = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Impl(block) if block.trait_.is_none() => Some(block.items),
        _ => None,
    });
    let functions = blocks.flatten().filter_map(|item| match item {
        syn::ImplItem::Fn(function) => Some(function),
        _ => None,
    });
    let is_setting = |function: &syn::ImplItemFn| {
        let is_internal = |attribute: &syn::Attribute| match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string().contains("__internals"),
            _ => false,
        };
        let gives_self = matches!(
            &function.sig.output,
            syn::ReturnType::Type(_, ty)
                if matches!(&**ty, syn::Type::Path(ty) if ty.path.is_ident("Self"))
        );
        matches!(function.vis, syn::Visibility::Public(_))
            && function.sig.receiver().is_some()
            && gives_self
            && !function.attrs.iter().any(is_internal)
    };
    functions
        .filter(is_setting)
        .map(|function| function.sig.ident.to_string())
        .collect()
}
