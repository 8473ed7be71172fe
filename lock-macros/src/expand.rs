//! Writes out the function under a lock. Everything is checked already.

pub(crate) mod client;
pub(crate) mod convert_error;
pub(crate) mod key;
mod moves;
mod pattern;
pub(crate) mod request;
pub(crate) mod usage;

use crate::args::{Opt, SKIP};
use crate::expand::moves::Parameters;
use crate::expand::request::Request;
use crate::function::body::{self, Body, Shape};
use crate::function::parameters::Names;
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
    let expansion = Expansion {
        args,
        keys,
        names: Names::of(&function.sig),
        private: args.private(),
        expressions: usage::expressions(args, keys),
        placeholders: usage::placeholders(keys),
        return_span: return_type::span(&function.sig),
        output: body.output,
    };
    let group = match body.shape {
        Shape::AsyncFn { inner, braces } => {
            function.attrs.extend(inner);
            let parameters = Parameters::take(&mut function.sig);
            let statements = expansion.statements(&parameters, &braces);
            // In the user's braces, or errors about the function would point to the attribute.
            body::regroup(&braces, statements)
        }
        Shape::Future { mut block } => {
            body::replace_future(&mut block, |future| {
                let statements = &mut future.block.stmts;
                usage::allow_unused(&function.sig, statements, |name| {
                    usage::mention(&expansion.expressions, name)
                        || usage::mention(&expansion.placeholders, name)
                });
                let parameters = Parameters::take_from(&expansion.names, statements);
                let braces = body::group(&future.block);
                let statements = expansion.statements(&parameters, &braces);
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
    names: Names,
    private: TokenStream,
    /// What the options are made of.
    expressions: TokenStream,
    placeholders: TokenStream,
    return_span: Span,
    output: Type,
}

impl Expansion<'_> {
    fn statements(&self, parameters: &Parameters, braces: &Group) -> TokenStream {
        match self.handler_mentions_a_parameter() {
            false => self.one_body(parameters, braces),
            true => self.body_in_a_body(parameters, braces),
        }
    }

    /// The options are evaluated in the body itself, like its first statements: what they take,
    /// borrow or leave is as in a plain function.
    fn one_body(&self, parameters: &Parameters, braces: &Group) -> TokenStream {
        let Request { prepare, acquire } = request::of(self.args, self.keys);
        let (convert, convert_name) = self.convert();
        let (slot, borrow) = self.slot();
        let moves = parameters.moves();
        let (early, late) = parameters.bind(
            |names, is_pattern| self.options_may_move(names, is_pattern),
            |name| usage::mention(&self.placeholders, name),
        );
        let body = self.body(&quote!(#early #prepare #moves), &acquire, &late, braces);
        let private = &self.private;
        quote_spanned! {Span::mixed_site()=>
            #convert
            #slot
            #[allow(clippy::large_futures)]
            #private::Locked {
                slot: #borrow,
                body: {
                    let __lock_slot = #borrow;
                    #body
                },
                convert: #convert_name,
            }
            .await
        }
    }

    /// A handler that mentions parameters may borrow them, and is called when the body is gone. So
    /// they live in a body around the body.
    fn body_in_a_body(&self, parameters: &Parameters, braces: &Group) -> TokenStream {
        let Request { prepare, acquire } = request::of(self.args, self.keys);
        let (convert, convert_name) = self.convert();
        let (slot, borrow) = self.slot();
        let statements = braces.stream();
        let (outer, inner) = parameters.bind_around(
            |names, is_pattern| self.options_may_move(names, is_pattern),
            |name| usage::mention(&statements, name),
        );
        let moves = parameters.moves();
        let begin = quote!(#inner #moves);
        let body = self.body(&begin, &acquire, &TokenStream::new(), braces);
        let private = &self.private;
        quote_spanned! {Span::mixed_site()=>
            #slot
            #[allow(clippy::large_futures)]
            #private::Released {
                slot: #borrow,
                body: {
                    let __lock_slot = #borrow;
                    async move {
                        #outer
                        #prepare
                        #convert
                        #[allow(clippy::large_futures)]
                        #private::Stopped {
                            slot: __lock_slot,
                            body: #body,
                            convert: #convert_name,
                        }
                        .await
                    }
                },
            }
            .await
        }
    }

    /// Or borrow it for longer than a moment, or need what a pattern binds.
    fn options_may_move(&self, names: &[Ident], is_pattern: bool) -> bool {
        names.iter().any(|name| {
            usage::mention(&self.expressions, name)
                || is_pattern && usage::mention(&self.placeholders, name)
        })
    }

    fn handler_mentions_a_parameter(&self) -> bool {
        let handler = self.args.expression(Opt::OnError);
        handler.is_some_and(|handler| {
            let handler = handler.to_token_stream();
            let mut names = self.names.parameters.iter();
            names.any(|name| usage::mention(&handler, name))
        })
    }

    /// Where the body finds its lock, and a reference to it. Under the user's name for the guard,
    /// where it is written: an error about its lifetime names it.
    fn slot(&self) -> (TokenStream, TokenStream) {
        let name = match self.args.name(Opt::Guard) {
            // Unless an option means something else by it.
            Some(name) if !usage::mention(&self.expressions, name) => name.clone(),
            _ => Ident::new("__lock_place", Span::mixed_site()),
        };
        let private = &self.private;
        let borrow = quote_spanned!(Span::mixed_site().located_at(name.span())=> &#name);
        let slot = quote_spanned! {Span::mixed_site()=>
            let #name = #private::Slot::new();
        };
        (slot, borrow)
    }

    fn body(
        &self,
        early: &TokenStream,
        acquire: &TokenStream,
        late: &TokenStream,
        braces: &Group,
    ) -> TokenStream {
        let return_edge = self.return_edge();
        let (guard, names) = self.bound_names();
        // In a block of their own, as they were written; what it borrows for its value is given
        // back before the parameters drop, in every edition.
        let body = body::regroup(
            braces,
            quote_spanned! {Span::mixed_site()=>
                #return_edge
                #early
                #guard #acquire.await;
                #late
                #names
                match () { () => #braces }
            },
        );
        // At the body and with its hygiene: errors about the body as a whole point there, and
        // clippy takes it for the user's.
        quote_spanned!(body.span()=> async move #body)
    }

    /// What `fence` and `guard` bind.
    fn bound_names(&self) -> (TokenStream, TokenStream) {
        let private = &self.private;
        let fence = self.args.name(Opt::Fence).map(|name| {
            let token = match self.keys {
                Keys::One(_) => quote_spanned!(Span::mixed_site()=> fencing_token),
                Keys::Several(keys) => {
                    let count = keys.len();
                    quote_spanned!(Span::mixed_site()=> fencing_tokens::<#count>)
                }
            };
            quote_spanned! {Span::mixed_site()=>
                let #name = #private::#token(__lock_slot, __lock_guard).await;
            }
        });
        let guard = self
            .args
            .name(Opt::Guard)
            .map(|name| quote_spanned!(Span::mixed_site()=> let #name = __lock_guard;));
        let is_needed = fence.is_some() || guard.is_some();
        let bind = is_needed.then(|| quote_spanned!(Span::mixed_site()=> let __lock_guard =));
        (quote!(#bind), quote!(#fence #guard))
    }

    /// What makes the function's value where there is no lock.
    fn convert(&self) -> (TokenStream, Ident) {
        let (convert, name) = convert_error::of(self.args, &self.output, self.return_span);
        if !self.args.is_word(Opt::OnBusy, SKIP) {
            return (convert, name);
        }
        let private = &self.private;
        let output = &self.output;
        let skipped = Ident::new("__lock_skipped", Span::mixed_site());
        let value = quote_spanned! {self.return_span=>
            let #skipped: fn() -> _ = <#output as #private::Skippable>::skipped;
        };
        let skip = quote_spanned! {Span::mixed_site()=>
            let #name = #private::Skip { skipped: #skipped, convert: #name };
        };
        (quote!(#convert #value #skip), name)
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
