//! All steps together, on tokens: what functions expand to, and what an editor gets while somebody
//! is typing.

use crate::attribute::{LOCK, RATE_LIMIT};
use crate::lock_key::expand as lock_key;
use proc_macro2::TokenStream;
use proptest::prelude::*;
use quote::ToTokens;
use std::collections::BTreeSet;
use std::path::PathBuf;
use syn::visit::Visit;
use syn::{Attribute, Item, ItemFn, Meta, PatIdent};

const EXPANSIONS: [&str; 8] = [
    "async_trait",
    "function",
    "keys",
    "method",
    "options",
    "patterns",
    "permits",
    "rate_limited",
];

/// Expands `expansions/<name>.rs` and compares with `expansions/<name>.expanded.rs`. With the
/// environment variable `UPDATE_EXPANSIONS` set it writes that file.
fn assert_expansion(name: &str) {
    let (_, expanded) = read_and_expand(name);
    let expanded = prettyplease::unparse(&expanded);
    let path = folder().join(format!("{name}.expanded.rs"));
    if std::env::var_os("UPDATE_EXPANSIONS").is_some() {
        std::fs::write(&path, &expanded).expect("written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        expanded, expected,
        "{name}: if this is meant, set UPDATE_EXPANSIONS and review the difference"
    );
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("expansions")
}

fn read_and_expand(name: &str) -> (String, syn::File) {
    let text = std::fs::read_to_string(folder().join(format!("{name}.rs"))).expect(name);
    let mut file = syn::parse_file(&text).expect(name);
    let expanded: TokenStream = file.items.drain(..).map(expand_item).collect();
    file.items = syn::parse2::<syn::File>(expanded).expect("items").items;
    (text, file)
}

fn expand_item(item: Item) -> TokenStream {
    match item {
        Item::Fn(mut function) => match take_attribute(&mut function.attrs) {
            Some((attribute, args)) => attribute(args, function.into_token_stream()),
            None => function.into_token_stream(),
        },
        Item::Impl(mut block) => {
            for item in &mut block.items {
                if let syn::ImplItem::Fn(function) = item
                    && let Some((attribute, args)) = take_attribute(&mut function.attrs)
                {
                    let expanded = attribute(args, function.to_token_stream());
                    *item = syn::parse2(expanded).expect("a function");
                }
            }
            block.into_token_stream()
        }
        other => other.into_token_stream(),
    }
}

/// The first of ours, as the compiler does it.
fn take_attribute(attrs: &mut Vec<Attribute>) -> Option<(Macro, TokenStream)> {
    let known: [(&str, Macro); 2] = [
        ("distributed_lock", distributed_lock),
        ("rate_limited", rate_limited),
    ];
    let found = |attr: &Attribute| known.iter().find(|(name, _)| attr.path().is_ident(name));
    let at = attrs.iter().position(|attr| found(attr).is_some())?;
    let attr = attrs.remove(at);
    let (_, attribute) = found(&attr)?;
    match attr.meta {
        Meta::List(list) => Some((*attribute, list.tokens)),
        _ => None,
    }
}

type Macro = fn(TokenStream, TokenStream) -> TokenStream;

fn distributed_lock(options: TokenStream, item: TokenStream) -> TokenStream {
    LOCK.apply(options, item)
}

fn rate_limited(options: TokenStream, item: TokenStream) -> TokenStream {
    RATE_LIMIT.apply(options, item)
}

#[test]
fn functions_expand_as_they_were_reviewed() {
    for name in EXPANSIONS {
        assert_expansion(name);
    }
}

/// The names that patterns bind: `error` would not be bound where a unit struct or a constant of
/// that name is in scope.
#[test]
fn no_expansion_binds_a_name_that_a_user_could_have() {
    for name in EXPANSIONS {
        let (text, expanded) = read_and_expand(name);
        let written = bindings(&syn::parse_file(&text).expect(name));
        for bound in bindings(&expanded) {
            let by_user = written.contains(&bound)
                || text.contains(&format!("= {bound}"))
                || text.contains(&format!("|{bound}|"));
            assert!(by_user || bound.starts_with("__lock_"), "{name}: {bound}");
        }
    }
}

fn bindings(file: &syn::File) -> BTreeSet<String> {
    struct Collect(BTreeSet<String>);
    impl<'ast> Visit<'ast> for Collect {
        fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
            self.0.insert(pat.ident.to_string());
        }
    }
    let mut all = Collect(BTreeSet::new());
    all.visit_file(file);
    all.0
}

fn expand(args: &str, item: &str) -> TokenStream {
    distributed_lock(args.parse().expect(args), item.parse().expect(item))
}

/// The names of the functions in it, and the messages of its errors.
fn functions_and_errors(tokens: TokenStream) -> (Vec<ItemFn>, Vec<String>) {
    let file = syn::parse2::<syn::File>(tokens).expect("items");
    let mut functions = Vec::new();
    let mut errors = Vec::new();
    for item in file.items {
        match item {
            Item::Fn(function) => functions.push(function),
            Item::Macro(call) => {
                assert!(
                    call.mac
                        .path
                        .segments
                        .last()
                        .is_some_and(|last| last.ident == "compile_error")
                );
                errors.push(call.mac.tokens.to_string());
            }
            other => errors.push(format!("not expected: {}", other.to_token_stream())),
        }
    }
    (functions, errors)
}

#[test]
fn a_half_typed_option_leaves_the_function() {
    for (args, errors) in [
        ("", 1),
        ("k", 1),
        ("key", 1),
        ("key =", 1),
        ("key = \"a\", l", 1),
        ("key = \"a\", lea", 1),
        ("key = \"a\", lease", 1),
        ("key = \"a\", lease =", 1),
        ("key = \"a\", lease = \"", 0),
        ("key = \"a\", lease = , wait = \"x\"", 2),
        ("key = \"a\", lease = \"1\"", 1),
        ("key = \"a:<\"", 1),
        ("key = \"a:<i\"", 1),
        ("key = \"a:<i>\"", 1),
        ("key = \"a\", on_error = |e", 1),
        ("key = \"a\", on_error = |e| Reply {", 0),
        ("key = \"a\", client = &self.", 1),
        ("key = \"a\", .", 1),
        (", , =", 3),
        ("key = \"a\", fence = , guard = g", 1),
        ("keys", 1),
        ("keys =", 1),
        ("keys = [", 0),
        ("keys = []", 1),
        ("keys = [,]", 1),
        ("keys = [\"a:<\"]", 1),
        ("keys = [\"a:<i\", \"b:<i\"]", 2),
        ("keys = [\"a:<i>\", \"b:<i>\", \"\", 1]", 4),
        ("keys = [\"a\" \"b\"]", 1),
        ("keys = [\"a\"], key", 2),
        ("keys = [\"a\"], perm", 1),
        ("keys = [\"a\"], permits", 2),
        ("keys = [\"a\"], mode = \"re", 0),
        ("keys = [\"a\"], mode = \"re\"", 1),
        ("key = \"a\", mode = \"read\", permits =", 2),
        ("key = \"a\", permits = self.", 1),
        ("key = \"a\", permits = -", 1),
    ] {
        let Ok(tokens) = args.parse::<TokenStream>() else {
            // No tokens: an editor closes the quote or the brace before it asks.
            assert_eq!(errors, 0, "{args}");
            continue;
        };
        let item = "pub async fn sell(id: u64) -> Result<u8, E> { Ok(1) }";
        let expanded = distributed_lock(tokens, item.parse().expect(item));
        let (functions, found) = functions_and_errors(expanded);
        assert_eq!(functions.len(), 1, "{args}");
        assert_eq!(functions[0].sig.ident, "sell", "{args}");
        assert_eq!(found.len(), errors, "{args}: {found:?}");
    }
}

/// Each mistake of a list is one error, in the order of the list, and a wrong one does not hide
/// another.
#[test]
fn every_mistake_in_keys_is_reported_in_one_build() {
    let expanded = expand(
        "keys = [\"a:<form>\", \"\", 5, \"<from>-<to>\", \"b:<\", \"c\", \"c\", \"d:<x>\"], \
         fence = tokens",
        "async fn transfer(from: u64, to: u64) -> Result<[FencingToken; 8], E> { Ok(tokens) }",
    );
    assert!(
        expanded.to_string().contains("FencingToken ; 8usize"),
        "{expanded}"
    );
    let (functions, errors) = functions_and_errors(expanded);
    assert_eq!(functions.len(), 1);
    for about in [
        "there is no parameter `form`",
        "an empty key locks nothing",
        "each of `keys` is a template or an expression",
        "between two placeholders",
        "a `<` without its `>`",
        "this key is twice in `keys`",
        "there is no parameter `x`",
    ] {
        let found = errors.iter().filter(|error| error.contains(about)).count();
        assert_eq!(found, 1, "{about}: {errors:#?}");
    }
    assert_eq!(errors.len(), 7, "{errors:#?}");
}

#[test]
fn literal_permits_have_limits() {
    let item = "async fn call(limit: u32) -> Result<(), E> { Ok(()) }";
    for (permits, errors) in [
        ("1", 0),
        ("0x7fff_fffe", 0),
        ("2_147_483_646u32", 0),
        ("limit", 0),
        ("{ 0 }", 0),
        ("0", 1),
        ("0u32", 1),
        ("-1", 1),
        ("2_147_483_647", 1),
        ("340282366920938463463374607431768211456", 1),
        ("1.0", 1),
        ("\"5\"", 1),
        ("'5'", 1),
        ("true", 1),
    ] {
        let expanded = expand(&format!("key = \"a\", permits = {permits}"), item);
        let (_, found) = functions_and_errors(expanded);
        assert_eq!(found.len(), errors, "{permits}: {found:?}");
    }
}

#[test]
fn no_future_is_returned_beside_the_one_under_the_lock() {
    let future = "Box::pin(async move { Ok(()) })";
    for (statements, errors) in [
        ("if small { return Box::pin(small_one()); }", 1),
        (
            "let size = match size { Some(size) => size, None => return other() };",
            1,
        ),
        ("loop { if last() { return Box::pin(small_one()) } }", 1),
        (
            "cfg_if! { if #[cfg(x)] { return Box::pin(small_one()) } }",
            1,
        ),
        ("info!(\"returns\");", 0),
        ("let other = async { return 1 };", 0),
        ("let first = |size: u8| { return size };", 0),
        ("fn inner() -> u8 { return 1 }", 0),
        ("let doubled = id * 2;", 0),
    ] {
        let item = format!(
            "fn ship(id: u64) -> BoxFuture<'static, Result<(), E>> {{ {statements} {future} }}"
        );
        for (attribute, args) in [
            (distributed_lock as Macro, "key = \"a:<id>\""),
            (rate_limited, "key = \"a:<id>\", rate = \"1/s\""),
        ] {
            let expanded = attribute(args.parse().expect(args), item.parse().expect("an item"));
            let (functions, found) = functions_and_errors(expanded);
            assert_eq!(functions.len(), 1, "{statements}");
            assert_eq!(found.len(), errors, "{statements}: {found:?}");
        }
    }
}

#[test]
fn what_other_attributes_read_at_a_parameter_stays_in_the_signature() {
    let item = "async fn buy(#[description = \"what\"] #[allow(unused)] item: u8) -> R { Ok(()) }";
    let expanded = expand("key = \"a:<item>\"", item).to_string();
    assert_eq!(expanded.matches("description").count(), 1, "{expanded}");
    assert!(expanded.matches("allow (unused)").count() > 1, "{expanded}");
}

#[test]
fn the_rate_limiter_stands_behind_the_lock_and_before_what_is_below_it() {
    let item = "#[rate_limited(b)] #[instrument] #[distributed_lock(key = \"a\")] #[tokio::main] \
                async fn main() -> R { Ok(()) }";
    let args = "key = \"a\", rate = \"1/s\"";
    let expanded = rate_limited(args.parse().expect(args), item.parse().expect(item));
    let (functions, errors) = functions_and_errors(expanded);
    assert_eq!(errors, [""; 0]);
    let last = |attr: &Attribute| {
        attr.path()
            .segments
            .last()
            .map(|last| last.ident.to_string())
    };
    let order: Vec<_> = functions[0].attrs.iter().filter_map(last).collect();
    assert_eq!(
        order,
        [
            "instrument",
            "distributed_lock",
            "rate_limited",
            "rate_limited",
            "main"
        ]
    );
    let own = functions[0].attrs[2].to_token_stream().to_string();
    assert!(own.contains("1/s"), "what stood above asks last: {own}");
}

#[test]
fn a_half_typed_body_is_still_a_body_under_the_lock() {
    for body in [
        "let x = ; Ok(1)",
        "self.",
        "let x = order.; x",
        "if",
        "match x { Some( => }",
        "foo(",
        "let",
        "Ok(1) Ok(2)",
    ] {
        let item = format!("async fn sell(id: u64) -> Result<u8, E> {{ {body} }}");
        let Ok(item) = item.parse::<TokenStream>() else {
            continue;
        };
        let body = body.parse::<TokenStream>().expect(body).to_string();
        for args in ["key = \"a:<id>\"", "key = \"a:<id>\", lea", ""] {
            let expanded = distributed_lock(args.parse().expect(args), item.clone()).to_string();
            assert!(expanded.contains("async fn sell (id : u64)"), "{expanded}");
            assert!(expanded.contains(&body), "{body}: {expanded}");
        }
        let locked = distributed_lock("key = \"a:<id>\"".parse().expect("args"), item).to_string();
        assert!(
            locked.contains("acquire") && !locked.contains("compile_error"),
            "{locked}"
        );
    }
}

#[test]
fn what_is_not_a_function_is_left_alone() {
    for item in ["struct A { b : u8 }", "mod a { }", "trait A { fn b () ; }"] {
        let expanded = expand("key = \"a\"", item).to_string();
        assert!(expanded.starts_with(item), "{expanded}");
        assert!(expanded.contains("compile_error"), "{expanded}");
    }
}

#[test]
fn a_wrong_key_is_still_a_key_to_the_code_around_it() {
    for input in ["", "1", "\"\"", "\"a:<id\"", "\"a\", lease = \"1s\""] {
        let expanded = lock_key(input.parse().expect(input));
        assert!(
            syn::parse2::<syn::Expr>(expanded.clone()).is_ok(),
            "{expanded}"
        );
        assert!(expanded.to_string().contains("compile_error"), "{expanded}");
    }
}

/// Pieces of attributes, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z_]{1,6}",
        Just("key = \"a:<id>\"".to_owned()),
        Just("keys = [\"a:<id>\", \"b:<id>\"]".to_owned()),
        Just("keys = [\"<id\", 1, \"a\", \"a\", id.x]".to_owned()),
        Just("keys = [\"a\" 1]".to_owned()),
        Just("mode = \"read\"".to_owned()),
        Just("permits = 0".to_owned()),
        Just("permits = id.most".to_owned()),
        Just("lease = \"1s\"".to_owned()),
        Just("fence = id".to_owned()),
        Just("guard = g".to_owned()),
        Just("crate = a::b".to_owned()),
        Just("on_error = |e| e".to_owned()),
        Just("rate = \"1/s\"".to_owned()),
        Just("burst = 1".to_owned()),
        Just("wait".to_owned()),
        Just(",".to_owned()),
        Just("=".to_owned()),
        Just("\"<id\"".to_owned()),
        Just("(<)".to_owned()),
        Just("&self.".to_owned()),
        Just("1.5".to_owned()),
        Just("'a".to_owned()),
        Just("#".to_owned()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #[test]
    fn any_attribute_on_anything_keeps_the_function(args in pieces(), item in pieces()) {
        let function = "async fn sell (id : u8) -> Result < () , E > { Ok (()) }";
        let tokens: TokenStream = args.parse().expect("pieces are tokens");
        let expanded = distributed_lock(tokens.clone(), function.parse().expect("a function"));
        prop_assert!(expanded.to_string().contains("async fn sell (id : u8)"));
        let item: TokenStream = item.parse().expect("pieces are tokens");
        let limited = rate_limited(tokens.clone(), function.parse().expect("a function"));
        prop_assert!(limited.to_string().contains("async fn sell (id : u8)"));
        let _ = rate_limited(tokens.clone(), item.clone());
        let _ = distributed_lock(tokens.clone(), item);
        let _ = lock_key(tokens);
    }
}
