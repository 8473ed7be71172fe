//! The function under the attribute. Its body stays tokens, so that a half-typed one is still a
//! function to an editor.

pub(crate) mod body;
pub(crate) mod parameters;
pub(crate) mod return_type;

use crate::args::Vocabulary;
use crate::mistakes::Mistakes;
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Item, Signature, Token, Visibility};

pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    vis: Visibility,
    default: Option<Token![default]>,
    pub(crate) sig: Signature,
    /// `None`: a declaration in a trait, which ends with `;`.
    pub(crate) body: Option<Group>,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let default = input.parse()?;
        let sig = input.parse()?;
        let body = match ungrouped(input.parse()?) {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
            TokenTree::Punct(punct) if punct.as_char() == ';' => None,
            other => return Err(syn::Error::new(other.span(), "expected a body in braces")),
        };
        Ok(Self {
            attrs,
            vis,
            default,
            sig,
            body,
        })
    }
}

/// What came through a `macro_rules!` parameter stands in an invisible group.
fn ungrouped(token: TokenTree) -> TokenTree {
    if let TokenTree::Group(group) = &token
        && group.delimiter() == Delimiter::None
    {
        let mut inside = group.stream().into_iter();
        if let (Some(only), None) = (inside.next(), inside.next()) {
            return ungrouped(only);
        }
    }
    token
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.append_all(&self.attrs);
        self.vis.to_tokens(tokens);
        self.default.to_tokens(tokens);
        self.sig.to_tokens(tokens);
        match &self.body {
            Some(body) => body.to_tokens(tokens),
            None => <Token![;]>::default().to_tokens(tokens),
        }
    }
}

/// The function in `item`, or a report of what stands there instead.
pub(crate) fn read(
    item: &TokenStream,
    attribute: &Vocabulary,
    mistakes: &mut Mistakes,
) -> Option<Function> {
    match syn::parse2::<Function>(item.clone()) {
        Ok(function) => Some(function),
        Err(error) => {
            match describe(item) {
                Some(what) => mistakes.report_at(
                    Span::call_site(),
                    format!(
                        "`#[{}]` belongs on an `async fn`, this is {what}",
                        attribute.name
                    ),
                ),
                None => mistakes.report(error),
            }
            None
        }
    }
}

/// An item that is not a function, in words.
fn describe(item: &TokenStream) -> Option<&'static str> {
    Some(match syn::parse2::<Item>(item.clone()).ok()? {
        Item::Const(_) => "a constant",
        Item::Enum(_) => "an enum",
        Item::Impl(_) => "an `impl` block: put it on the functions inside",
        Item::Macro(_) => "a macro",
        Item::Mod(_) => "a module: put it on the functions inside",
        Item::Static(_) => "a static",
        Item::Struct(_) => "a struct",
        Item::Trait(_) => "a trait: put it on the functions of its implementations",
        Item::Type(_) => "a type alias",
        Item::Union(_) => "a union",
        Item::Use(_) => "a `use`",
        _ => return None,
    })
}
