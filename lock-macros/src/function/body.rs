//! The future in a function's body: the body of an `async fn`, or the last expression of a function
//! that returns a future (by hand, or by `#[async_trait]`): `async move { … }` or
//! `Box::pin(async move { … })`.

use crate::args::Vocabulary;
use crate::function::Function;
use crate::function::return_type;
use crate::mistakes::Mistakes;
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::visit::Visit;
use syn::{Attribute, Block, Expr, ExprAsync, ExprClosure, ExprReturn, Item, Macro, Stmt, Type};

pub(crate) enum Shape {
    /// The attributes inside the body, and its statements in their braces.
    AsyncFn {
        inner: Vec<Attribute>,
        braces: Group,
    },
    /// A block whose last expression makes the future.
    Future { block: Block },
}

pub(crate) struct Body {
    pub(crate) shape: Shape,
    /// What the body gives.
    pub(crate) output: Type,
}

/// The body of the function, or a report why it has none that could wait.
pub(crate) fn find(
    function: &Function,
    attribute: &Vocabulary,
    mistakes: &mut Mistakes,
) -> Option<Body> {
    let body = statements_of(function, attribute).and_then(|body| match function.sig.asyncness {
        Some(_) => Ok(find_in_async_fn(function, body)),
        None => find_future(function, body, attribute),
    });
    body.map_err(|mistake| mistakes.report(mistake)).ok()
}

fn statements_of<'f>(function: &'f Function, attribute: &Vocabulary) -> syn::Result<&'f Group> {
    let name = &function.sig.ident;
    if let (Some(_), Some(constness)) = (&function.body, &function.sig.constness) {
        let message = format!(
            "a `const fn` can't {}: write `async fn {name}`",
            attribute.cannot_wait
        );
        return Err(syn::Error::new_spanned(constness, message));
    }
    function.body.as_ref().ok_or_else(|| {
        let message = format!(
            "`{name}` has no body that could {}: put the attribute on `{name}` in the \
             implementations of the trait, or give it a body here",
            attribute.runs
        );
        syn::Error::new_spanned(&function.sig, message)
    })
}

fn find_in_async_fn(function: &Function, body: &Group) -> Body {
    let (inner, statements) = split_inner_attributes(body.stream());
    let braces = regroup(body, statements);
    Body {
        shape: Shape::AsyncFn { inner, braces },
        output: return_type::nameable(&function.sig),
    }
}

fn find_future(function: &Function, body: &Group, attribute: &Vocabulary) -> syn::Result<Body> {
    let sig = &function.sig;
    let mut block = syn::parse2::<Block>(body.to_token_stream()).ok();
    let Some(block) = block.take_if(|block| future_of(block).is_some()) else {
        let message = match runtime_above(function, body) {
            Some(above) => format!(
                "`#[{above}]` stands above and has made this function synchronous: put it below \
                 `#[{}]`",
                attribute.name
            ),
            None => format!(
                "{}, so this has to be asynchronous: write `async fn {}`, or let the last \
                 expression be `async move {{ … }}` or `Box::pin(async move {{ … }})`{}",
                attribute.has_to_wait,
                sig.ident,
                // As `#[actix_web::main]` leaves it, or somebody has written it.
                match body.to_string().contains("block_on") {
                    true => "; an attribute above that calls `block_on` has to stand below",
                    false => "",
                }
            ),
        };
        return Err(syn::Error::new_spanned(sig.fn_token, message));
    };
    if let Some(other) = other_exit(&block) {
        let message = format!(
            "a future that is returned here would not {}: return it in the `async` block below, \
             with `.await`, or write another function around this one that decides",
            attribute.runs
        );
        return Err(syn::Error::new_spanned(other, message));
    }
    let output = return_type::output_of_future(&sig.output).ok_or_else(|| {
        let message = "what the future gives has to stand here: write `impl Future<Output = …>`, \
             `Pin<Box<dyn Future<Output = …>>>` or `BoxFuture<'_, …>`";
        syn::Error::new_spanned(&sig.output, message)
    })?;
    Ok(Body {
        shape: Shape::Future { block },
        output: return_type::nameable_type(&output),
    })
}

/// The attribute of tokio that has put the body of an `async fn` into a runtime of its own. `None`
/// if nothing looks like that.
fn runtime_above(function: &Function, body: &Group) -> Option<&'static str> {
    let is_test = |attr: &Attribute| {
        let last = attr.path().segments.last();
        last.is_some_and(|segment| segment.ident == "test")
    };
    let text = body.to_string();
    // What no hand writes: the builder of a runtime, with tokio's message, around the body.
    let is_tokios = text.contains("block_on") && text.contains("\"Failed building the Runtime\"");
    is_tokios.then(|| match function.attrs.iter().any(is_test) {
        true => "tokio::test",
        false => "tokio::main",
    })
}

/// Replaces the `async` block that the last expression is or wraps.
pub(crate) fn replace_future(block: &mut Block, with: impl FnOnce(&mut ExprAsync) -> TokenStream) {
    if let Some(slot) = future_of(block)
        && let Expr::Async(future) = slot
    {
        let tokens = with(future);
        *slot = Expr::Verbatim(tokens);
    }
}

/// A `return` beside the future: its caller gets another one. One that a macro hides is not seen.
fn other_exit(block: &Block) -> Option<TokenStream> {
    struct Find(Option<TokenStream>);
    impl<'ast> Visit<'ast> for Find {
        fn visit_expr_return(&mut self, exit: &'ast ExprReturn) {
            self.0.get_or_insert_with(|| exit.to_token_stream());
        }

        fn visit_macro(&mut self, call: &'ast Macro) {
            if let Some(exit) = find_return(call.tokens.clone()) {
                self.0.get_or_insert_with(|| exit.into_token_stream());
            }
        }

        // Another body's.
        fn visit_expr_async(&mut self, _: &'ast ExprAsync) {}
        fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}
        fn visit_item(&mut self, _: &'ast Item) {}
    }
    let mut find = Find(None);
    find.visit_block(block);
    find.0
}

fn find_return(tokens: TokenStream) -> Option<Ident> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(word) => (word == "return").then_some(word),
        TokenTree::Group(group) => find_return(group.stream()),
        _ => None,
    })
}

fn future_of(block: &mut Block) -> Option<&mut Expr> {
    match block.stmts.last_mut()? {
        Stmt::Expr(last, None) => future_in(last),
        _ => None,
    }
}

fn future_in(expression: &mut Expr) -> Option<&mut Expr> {
    match expression {
        Expr::Async(_) => Some(expression),
        Expr::Group(group) => future_in(&mut group.expr),
        Expr::Call(call) => {
            let Expr::Path(callee) = &*call.func else {
                return None;
            };
            match call.args.first_mut() {
                Some(inside) if callee.path.segments.last()?.ident == "pin" => future_in(inside),
                _ => None,
            }
        }
        Expr::MethodCall(call) if call.method == "boxed" || call.method == "boxed_local" => {
            future_in(&mut call.receiver)
        }
        _ => None,
    }
}

/// `#![allow(…)]` at the top of a body belongs to the function, also when its statements move into
/// a block.
pub(crate) fn split_inner_attributes(statements: TokenStream) -> (Vec<Attribute>, TokenStream) {
    let split = |input: syn::parse::ParseStream<'_>| {
        let inner = input.call(Attribute::parse_inner)?;
        Ok((inner, input.parse::<TokenStream>()?))
    };
    match split.parse2(statements.clone()) {
        Ok((mut inner, rest)) => {
            for attribute in &mut inner {
                attribute.style = syn::AttrStyle::Outer;
            }
            (inner, rest)
        }
        Err(_) => (Vec::new(), statements),
    }
}

/// Other contents in the same braces, where errors about "the body" point.
pub(crate) fn regroup(group: &Group, contents: TokenStream) -> Group {
    let mut other = Group::new(group.delimiter(), contents);
    other.set_span(group.span());
    other
}

/// The statements of a block in its braces.
pub(crate) fn group(block: &Block) -> Group {
    let statements = block.stmts.iter().map(ToTokens::to_token_stream).collect();
    let mut group = Group::new(Delimiter::Brace, statements);
    group.set_span(block.brace_token.span.join());
    group
}
