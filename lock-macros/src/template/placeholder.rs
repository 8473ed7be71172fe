//! One placeholder of a key template: reads its expression, and finds the parameter it begins with.

use crate::faults::Faults;
use crate::function::parameters;
use crate::suggest;
use proc_macro2::Ident;
use syn::{Expr, LitStr};

pub(crate) struct Placeholder {
    /// As written, for the runtime's messages.
    pub(crate) shown: String,
    pub(crate) expression: Expr,
    /// The parameter that it begins with.
    pub(crate) root: Ident,
    pub(crate) calls_method: bool,
}

/// Reads `text`, a part of `literal`. With `names`, it has to begin with one of them.
pub(crate) fn read(
    text: &str,
    literal: &LitStr,
    names: Option<&[Ident]>,
    faults: &mut Faults,
) -> Option<Placeholder> {
    let shown = text.trim().to_owned();
    let Ok(mut expression) = LitStr::new(text, literal.span()).parse::<Expr>() else {
        faults.on(
            literal,
            format!("`<{shown}>` is not an expression: {FORMS}"),
        );
        return None;
    };
    let mut calls_method = false;
    let Some(root) = root_of(&mut expression, &mut calls_method) else {
        faults.on(
            literal,
            format!(
                "`<{shown}>` can't be a placeholder: {FORMS}; for anything else write an expression instead of \
                 the template, as `format!(…)`"
            ),
        );
        return None;
    };
    if let Some(names) = names {
        let Some(name) = names.iter().find(|name| **name == *root) else {
            faults.on(literal, unknown(&shown, &root.to_string(), names));
            return None;
        };
        // Inside a macro the parameter and the literal can have different hygiene. The parameter's
        // counts.
        root.set_span(literal.span().resolved_at(name.span()));
    }
    let root = root.clone();
    Some(Placeholder {
        shown,
        expression,
        root,
        calls_method,
    })
}

const FORMS: &str = "write a parameter `<id>`, a field `<self.shop.id>`, an index `<items[0].sku>` or a method call \
                     `<order.id()>`";

fn root_of<'a>(expression: &'a mut Expr, calls_method: &mut bool) -> Option<&'a mut Ident> {
    match expression {
        Expr::Path(path) if path.qself.is_none() && path.path.get_ident().is_some() => path
            .path
            .segments
            .first_mut()
            .map(|segment| &mut segment.ident),
        Expr::Field(field) => root_of(&mut field.base, calls_method),
        Expr::Index(index) => root_of(&mut index.expr, calls_method),
        Expr::Paren(paren) => root_of(&mut paren.expr, calls_method),
        Expr::MethodCall(call) => {
            *calls_method = true;
            root_of(&mut call.receiver, calls_method)
        }
        _ => None,
    }
}

fn unknown(shown: &str, root: &str, names: &[Ident]) -> String {
    let (taken_apart, words): (Vec<String>, Vec<String>) = names
        .iter()
        .map(Ident::to_string)
        .partition(|name| parameters::is_stand_in_of_async_trait(name));
    let count = words.len();
    let words = || words.iter().map(String::as_str);
    let what = format!("`<{shown}>`: there is no parameter `{root}`");
    let mut message = match (count, suggest::nearest(root, words())) {
        (0, _) => format!(
            "{what}, the function has none: write a key without placeholders, or an expression instead of the template"
        ),
        (1, Some(only)) => format!("{what}: write `{only}`"),
        (_, Some(meant)) => format!(
            "{what}, did you mean `{meant}`? The parameters are {}",
            suggest::list(words())
        ),
        (1, None) => format!("{what}; the only one is {}", suggest::list(words())),
        (_, None) => format!("{what}; the parameters are {}", suggest::list(words())),
    };
    if !taken_apart.is_empty() {
        message.push_str(
            "; under `#[async_trait]` the names of a pattern are not there yet: give the parameter a name, and take \
             it apart in the body",
        );
    }
    message
}
