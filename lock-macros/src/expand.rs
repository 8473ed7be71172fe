//! Writes out the function under a lock. Everything is checked already.

pub(crate) mod client;
pub(crate) mod convert_error;
pub(crate) mod key;
mod moves;
mod pattern;
pub(crate) mod request;
pub(crate) mod usage;

use crate::args::{Opt, SKIP};
use crate::expand::moves::Moves;
use crate::expand::request::Request;
use crate::function::body::{self, Body, Shape};
use crate::function::{Function, return_type};
use crate::key::Keys;
use crate::parse::Args;
use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

pub(crate) fn function(
    args: &Args,
    keys: &Keys,
    mut function: Function,
    body: Body,
) -> TokenStream {
    let usage = |name: &Ident| usage::by_options(name, args, keys);
    let expansion = Expansion {
        args,
        keys,
        runtime: args.runtime(),
        return_span: return_type::span(&function.sig),
        output: body.output,
    };
    let group = match body.shape {
        Shape::AsyncFn { inner, braces } => {
            function.attrs.extend(inner);
            let moves = moves::move_into_body(&mut function.sig, &args.private(), usage);
            let statements = expansion.statements(&moves, &braces);
            // In the user's braces, or errors about the function would point to the attribute.
            body::regroup(&braces, statements)
        }
        Shape::Future { mut block } => {
            body::replace_future(&mut block, |future| {
                let statements = &mut future.block.stmts;
                let moves = moves::move_into_future(&function.sig, statements, usage);
                let braces = body::group(&future.block);
                let statements = expansion.statements(&moves, &braces);
                quote_spanned!(Span::mixed_site()=> async move { #statements })
            });
            body::group(&block)
        }
    };
    function.body = Some(group);
    function.into_token_stream()
}

struct Expansion<'a> {
    args: &'a Args,
    keys: &'a Keys,
    runtime: TokenStream,
    return_span: Span,
    output: Type,
}

impl Expansion<'_> {
    fn statements(&self, moves: &Moves, braces: &Group) -> TokenStream {
        let private = self.args.private();
        let Request { prepare, acquire } = request::of(self.args, self.keys);
        let (convert, convert_name, convert_error) =
            convert_error::of(self.args, &self.output, self.return_span);
        let outer = &moves.outer;
        let (skip_value, skip_arm) = self.skip();
        let tokens = match self.keys {
            Keys::One(_) => quote!(fencing_token),
            Keys::Several(keys) => {
                let count = keys.len();
                quote!(fencing_tokens::<#count>)
            }
        };
        let (guard, guard_value, guard_name) = match self.args.name(Opt::Guard) {
            // Under the user's name, where it is written: an error about its lifetime names it.
            Some(name) => {
                let borrow = quote_spanned!(Span::mixed_site().located_at(name.span())=> &#name);
                (
                    name.clone(),
                    quote_spanned!(Span::mixed_site()=> let __lock_guard_ref = #borrow;),
                    quote_spanned!(Span::mixed_site()=> let #name = __lock_guard_ref;),
                )
            }
            None => (
                Ident::new("__lock_guard", Span::mixed_site()),
                TokenStream::new(),
                TokenStream::new(),
            ),
        };
        let (token_value, token_name) = match self.args.name(Opt::Fence) {
            Some(name) => (
                quote_spanned! {Span::mixed_site()=>
                    let __lock_token = match #private::#tokens(&#guard) {
                        ::core::result::Result::Ok(token) => token,
                        ::core::result::Result::Err(error) => return #convert_error,
                    };
                },
                quote_spanned!(Span::mixed_site()=> let #name = __lock_token;),
            ),
            None => Default::default(),
        };
        let inner = &moves.inner;
        let return_edge = self.return_edge();
        let mut statements = braces.stream();
        if body::begins_with_item(&statements) {
            // In a block of their own, as they were written: behind our statements clippy objects.
            statements = body::regroup(braces, statements).into_token_stream();
        }
        let body = body::regroup(
            braces,
            quote!(#return_edge #inner #token_name #guard_name #statements),
        );
        // At the body and with its hygiene: errors about the body as a whole point there, and
        // clippy takes it for the user's.
        let future = quote_spanned!(body.span()=> async move #body);
        quote_spanned! {Span::mixed_site()=>
            #outer
            #prepare
            #convert
            #skip_value
            let #guard = match #acquire.await {
                ::core::result::Result::Ok(guard) => guard,
                #skip_arm
                ::core::result::Result::Err(error) => return #convert_error,
            };
            #token_value
            #guard_value
            #[allow(clippy::large_futures)]
            #private::Locked {
                guard: &#guard,
                body: #future,
                convert: #convert_name,
            }
            .await
        }
    }

    fn skip(&self) -> (TokenStream, TokenStream) {
        if !self.args.is_word(Opt::OnBusy, SKIP) {
            return Default::default();
        }
        let runtime = &self.runtime;
        let output = &self.output;
        let name = Ident::new("__lock_skipped", Span::mixed_site());
        let value = quote_spanned! {self.return_span=>
            let #name: fn() -> _ = <#output as #runtime::__private::Skippable>::skipped;
        };
        let arm = quote_spanned! {Span::mixed_site()=>
            ::core::result::Result::Err(error) if #runtime::__private::is_busy(&error) =>
                return #name(),
        };
        (value, arm)
    }

    /// Never runs. It tells the compiler the block's type, so that a wrong type is an error on its
    /// own line.
    fn return_edge(&self) -> TokenStream {
        let output = &self.output;
        quote_spanned! {Span::mixed_site().located_at(self.return_span)=>
            #[allow(
                unknown_lints,
                unreachable_code,
                clippy::diverging_sub_expression,
                clippy::empty_loop,
                clippy::let_unit_value,
                clippy::let_with_type_underscore,
                clippy::needless_return,
                clippy::unreachable
            )]
            if false {
                let __lock_return: #output = loop {};
                return __lock_return;
            }
        }
    }
}
