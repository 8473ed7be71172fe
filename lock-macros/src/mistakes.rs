//! The mistakes found in one attribute: one build shows all of them.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use std::fmt::Display;

#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    first: Option<syn::Error>,
}

impl Mistakes {
    pub(crate) fn report_at(&mut self, span: Span, message: impl Display) {
        self.report(syn::Error::new(span, message));
    }

    pub(crate) fn report_on(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.report(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn report(&mut self, error: syn::Error) {
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
