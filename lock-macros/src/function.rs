//! The function under the attribute. Its body stays tokens: a half-typed one is still a function to an editor.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Item, ReturnType, Signature, Token, Type, Visibility, parse_quote_spanned};

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
        let body = match input.parse()? {
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

/// What stands there instead of a function, in words.
pub(crate) fn describe(item: &TokenStream) -> Option<&'static str> {
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

/// The return type as it can stand in a body, where `impl Trait` can't be written.
pub(crate) fn nameable(sig: &Signature) -> Type {
    match &sig.output {
        ReturnType::Default => parse_quote_spanned!(sig.ident.span()=> ()),
        ReturnType::Type(_, ty) => nameable_type(ty),
    }
}

pub(crate) fn nameable_type(ty: &Type) -> Type {
    let mut ty = ty.clone();
    EraseImplTrait.visit_type_mut(&mut ty);
    ty
}

struct EraseImplTrait;

impl VisitMut for EraseImplTrait {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        match ty {
            // Where it stood: there is said what is wrong with it.
            Type::ImplTrait(_) | Type::Never(_) => *ty = parse_quote_spanned!(ty.span()=> _),
            _ => visit_mut::visit_type_mut(self, ty),
        }
    }
}
