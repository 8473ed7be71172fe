//! All mistakes of one attribute, and what is emitted when there are any.

use crate::args::{Args, Opt};
use crate::function::Function;
use crate::value::Value;
use crate::{params, shape};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::fmt::Display;

/// Collects mistakes, so that one build shows all of them.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    first: Option<syn::Error>,
}

impl Faults {
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.add(syn::Error::new(span, message));
    }

    pub(crate) fn on(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.first {
            Some(first) => first.combine(error),
            None => self.first = Some(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn into_tokens(self) -> TokenStream {
        self.first
            .map(syn::Error::into_compile_error)
            .unwrap_or_default()
    }
}

/// The mistakes and the function as it was written, so that nothing else breaks and editors keep working.
pub(crate) fn emit(faults: Faults, item: TokenStream, args: &Args) -> TokenStream {
    let errors = faults.into_tokens();
    let item = with_names_declared(&item, args).unwrap_or(item);
    quote!(#item #errors)
}

/// The body may use what `fence` and `guard` bind, and only the key may use a parameter: neither is one more mistake.
fn with_names_declared(item: &TokenStream, args: &Args) -> Option<TokenStream> {
    let mut function = syn::parse2::<Function>(item.clone()).ok()?;
    let body = function.body.take()?;
    let runtime = args.runtime();
    let tokens = match args.get(Opt::Keys).map(|given| &given.value) {
        Some(Value::Keys(keys)) => {
            let count = keys.len();
            quote!([#runtime::FencingToken; #count])
        }
        _ => quote!(#runtime::FencingToken),
    };
    let bound = [
        args.name(Opt::Fence).map(|name| (name, tokens)),
        args.name(Opt::Guard)
            .map(|name| (name, quote!(&#runtime::Guard))),
    ];
    let bound = bound.into_iter().flatten().map(|(name, ty)| {
        quote_spanned! {Span::mixed_site()=>
            #[allow(unused_variables)]
            let #name = (|| -> #ty { loop {} })();
        }
    });
    let used = params::unconditional_names(&function.sig);
    let used = used
        .iter()
        .map(|name| quote_spanned!(Span::mixed_site()=> let _ = &#name;));
    let names: TokenStream = used.chain(bound).collect();
    let (inner, statements) = shape::split_inner_attributes(body.stream());
    function.attrs.extend(inner);
    function.body = Some(shape::regroup(&body, quote!(#names #statements)));
    Some(function.into_token_stream())
}
