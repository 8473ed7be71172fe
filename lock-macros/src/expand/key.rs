//! Writes out one key, of an attribute or of `lock_key!`: all of its text goes into one buffer.

use crate::key::{KeyArgument, Segment};
use crate::template::placeholder::Placeholder;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

pub(crate) fn write_key(key: &KeyArgument, runtime: &TokenStream) -> TokenStream {
    match key {
        KeyArgument::Expression(expression) => quote_spanned! {expression.span()=>
            ::core::convert::Into::<#runtime::LockKey>::into(#expression)
        },
        KeyArgument::Template {
            literal,
            capacity,
            segments,
        } => {
            let template = literal.value();
            let writer = Ident::new("__lock_writer", Span::mixed_site());
            let writes = segments.iter().map(|segment| match segment {
                Segment::Literal(text) => quote_spanned! {Span::mixed_site()=>
                    #runtime::__private::KeyWriter::literal(&mut #writer, #text);
                },
                Segment::Value(value) => write_value(value, &writer, literal.span(), runtime),
            });
            quote_spanned! {Span::mixed_site()=> {
                let mut #writer = #runtime::__private::KeyWriter::new(#template, #capacity);
                #(#writes)*
                #runtime::__private::KeyWriter::finish(#writer)
            }}
        }
    }
}

fn write_value(
    value: &Placeholder,
    writer: &Ident,
    span: Span,
    runtime: &TokenStream,
) -> TokenStream {
    let Placeholder {
        shown,
        expression,
        root,
        borrowed_root,
        is_generic,
    } = value;
    let append = match is_generic {
        true => quote_spanned!(Span::mixed_site()=> display),
        false => quote_spanned!(Span::mixed_site()=> value),
    };
    // With the literal's span, a value that can't be displayed is one error there.
    let argument = quote_spanned!(span=> &#expression);
    // A key may name a parameter that nothing else uses.
    let allow = root
        .as_ref()
        .filter(|root| root.to_string().starts_with('_'))
        .map(|_| quote!(#[allow(clippy::used_underscore_binding)]));
    let write = quote_spanned! {Span::mixed_site()=>
        #runtime::__private::KeyWriter::#append(&mut #writer, #shown, #argument);
    };
    match (borrowed_root, root) {
        (Some(name), Some(root)) => quote_spanned! {Span::mixed_site()=> {
            #allow
            let #name = &#root;
            #write
        }},
        _ => quote!(#allow #write),
    }
}
