//! What is emitted when there are mistakes.

use crate::args::Opt;
use crate::function::{Function, body, parameters};
use crate::mistakes::Mistakes;
use crate::parse::Args;
use crate::parse::value::Value;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

/// The mistakes, and the function as it was written, so that editors keep working.
pub(crate) fn write_with_mistakes(
    mistakes: Mistakes,
    item: TokenStream,
    args: &Args,
) -> TokenStream {
    let errors = mistakes.into_tokens();
    let item = declare_names(&item, args).unwrap_or(item);
    quote!(#item #errors)
}

/// Declares what `fence` and `guard` bind, and uses every parameter. Without that, the body would
/// cause more errors.
fn declare_names(item: &TokenStream, args: &Args) -> Option<TokenStream> {
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
    let used = parameters::unconditional_names(&function.sig);
    let used = used
        .iter()
        .map(|name| quote_spanned!(Span::mixed_site()=> let _ = &#name;));
    let names: TokenStream = used.chain(bound).collect();
    let (inner, statements) = body::split_inner_attributes(body.stream());
    function.attrs.extend(inner);
    function.body = Some(body::regroup(&body, quote!(#names #statements)));
    Some(function.into_token_stream())
}
