//! One placeholder of a key template: reads its expression, and finds the parameter it begins with.

use crate::function::parameters::{self, ParameterNames};
use crate::mistakes::Mistakes;
use crate::suggest;
use proc_macro2::{Ident, Span};
use syn::{Expr, LitStr};

/// The end of some messages: what may stand in a placeholder.
const FORMS: &str = "\
    write a parameter `<id>`, a field `<self.shop.id>`, an index `<items[0].sku>`, a method call \
    `<order.id()>` or a constant `<Self::KIND>`";

pub(crate) struct Placeholder {
    /// As written, for the runtime's messages.
    pub(crate) shown: String,
    pub(crate) expression: Expr,
    /// The parameter that it begins with; a constant has none.
    pub(crate) root: Option<Ident>,
    /// Stands for a reference to it in an expression with a method call: a method that takes `self`
    /// would take the parameter from the body.
    pub(crate) borrowed_root: Option<Ident>,
    /// Its type is a type parameter.
    pub(crate) is_generic: bool,
}

/// Reads `text`, a part of `literal`. With `names`, it has to begin with one of them, or with a
/// constant.
pub(crate) fn read(
    text: &str,
    literal: &LitStr,
    names: Option<&ParameterNames>,
    mistakes: &mut Mistakes,
) -> Option<Placeholder> {
    let read = parse(text, literal, names);
    read.map_err(|message| mistakes.report_on(literal, message))
        .ok()
}

fn parse(
    text: &str,
    literal: &LitStr,
    names: Option<&ParameterNames>,
) -> Result<Placeholder, String> {
    let shown = text.trim().to_owned();
    let mut expression: Expr = LitStr::new(text, literal.span())
        .parse()
        .map_err(|_| format!("`<{shown}>` is not an expression: {FORMS}"))?;
    let mut calls_method = false;
    let root = match root_of(&mut expression, &mut calls_method) {
        Some(Root::Name(root)) => find_variable(root, &shown, literal, names)?,
        Some(Root::Path) => None,
        None => {
            return Err(format!(
                "`<{shown}>` can't be a placeholder: {FORMS}; for anything else write an \
                 expression instead of the template, as `format!(…)`"
            ));
        }
    };
    let is = |test: fn(&ParameterNames, &Ident) -> bool| {
        let mut both = root.iter().zip(names);
        both.any(|(root, names)| test(names, root))
    };
    if let Some(root) = &root
        && !calls_method
        && is(ParameterNames::is_optional)
    {
        return Err(explain_optional(&shown, root, literal));
    }
    let is_generic = matches!(expression, Expr::Path(_)) && is(ParameterNames::is_generic);
    let borrows = calls_method && root.as_ref().is_some_and(|root| root != "self");
    let borrowed_root = borrows.then(|| borrow_root(&mut expression)).flatten();
    Ok(Placeholder {
        shown,
        expression,
        root,
        borrowed_root,
        is_generic,
    })
}

/// The variable that `root` names, if it does not name a constant.
fn find_variable(
    root: &mut Ident,
    shown: &str,
    literal: &LitStr,
    names: Option<&ParameterNames>,
) -> Result<Option<Ident>, String> {
    let parameters = names.map_or(&[][..], |names| &names.parameters);
    let parameter = parameters.iter().find(|name| *name == root);
    if let Some(parameter) = parameter {
        // Inside a macro the parameter and the literal can have different hygiene. The parameter's
        // counts.
        root.set_span(literal.span().resolved_at(parameter.span()));
    } else if is_constant(root) || names.is_some_and(|names| names.constants.contains(root)) {
        return Ok(None);
    } else if names.is_some() {
        return Err(explain_unknown(shown, &root.to_string(), parameters));
    }
    Ok(Some(root.clone()))
}

/// Replaces what the expression begins with by a name of ours, for a reference to it.
fn borrow_root(expression: &mut Expr) -> Option<Ident> {
    let Root::Name(root) = root_of(expression, &mut false)? else {
        return None;
    };
    let name = Ident::new("__lock_root", Span::mixed_site().located_at(root.span()));
    root.clone_from(&name);
    Some(name)
}

fn explain_optional(shown: &str, root: &Ident, literal: &LitStr) -> String {
    let template = literal.value();
    format!(
        "`<{shown}>`: `{root}` is an `Option`, and `None` names nothing to lock: let the caller \
         decide about `None` and take the value itself, or say what `None` locks, with this \
         instead of the template: `if let Some({root}) = &{root} {{ lock_key!(\"{template}\") }} \
         else {{ lock_key!(\"…\") }}`"
    )
}

/// By its spelling: `N`, `MAX_SIZE`. The attribute does not see the generics of an `impl`, so the
/// compiler finds out whether there is one.
fn is_constant(name: &Ident) -> bool {
    let name = name.to_string();
    name.starts_with(char::is_uppercase) && !name.contains(char::is_lowercase)
}

/// What a placeholder begins with.
enum Root<'e> {
    Name(&'e mut Ident),
    /// `Self::KIND`.
    Path,
}

fn root_of<'a>(expression: &'a mut Expr, calls_method: &mut bool) -> Option<Root<'a>> {
    match expression {
        Expr::Path(path) if path.qself.is_none() && path.path.get_ident().is_some() => {
            let first = path.path.segments.first_mut()?;
            Some(Root::Name(&mut first.ident))
        }
        Expr::Path(_) => Some(Root::Path),
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

fn explain_unknown(shown: &str, root: &str, names: &[Ident]) -> String {
    let (taken_apart, words): (Vec<String>, Vec<String>) = names
        .iter()
        .map(Ident::to_string)
        .partition(|name| parameters::is_stand_in_of_async_trait(name));
    let count = words.len();
    let words = || words.iter().map(String::as_str);
    let what = format!("`<{shown}>`: there is no parameter `{root}`");
    let mut message = match (count, suggest::nearest(root, words())) {
        (0, _) => format!(
            "{what}, the function has none: write a key without placeholders, or an expression \
             instead of the template"
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
            "; under `#[async_trait]` the names of a pattern are not there yet: give the \
             parameter a name, and take it apart in the body",
        );
    }
    message
}
