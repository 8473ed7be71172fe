//! Writes out the function under a lock. Everything is checked already.

pub(crate) mod key;
mod moves;
mod options;
mod outlives;
mod parameter;
pub(crate) mod rate_limited;
mod request;
mod usage;

use crate::args::{Opt, SKIP};
use crate::expand::moves::Parameters;
use crate::expand::request::RequestCode;
use crate::function::body::{self, Body, Shape};
use crate::function::parameters::ParameterNames;
use crate::function::{Function, return_type};
use crate::key::KeyArguments;
use crate::parse::Args;
use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

pub(crate) fn write_function(
    args: &Args,
    keys: &KeyArguments,
    mut function: Function,
    body: Body,
) -> TokenStream {
    let warnings = outlives::warn(args, &function.sig);
    let expansion = Expansion {
        args,
        keys,
        names: ParameterNames::of(&function.sig),
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
            let statements = expansion.write_statements(&parameters, &braces);
            let statements = quote!(#warnings #statements);
            // In the user's braces, or errors about the function would point to the attribute.
            body::regroup(&braces, statements)
        }
        Shape::Future { mut block } => {
            body::replace_future(&mut block, |future| {
                let statements = &mut future.block.stmts;
                usage::allow_unused(&function.sig, statements, |name| {
                    usage::mentions(&expansion.expressions, name)
                        || usage::mentions(&expansion.placeholders, name)
                });
                let parameters = Parameters::take_from(&expansion.names, statements);
                let braces = body::group(&future.block);
                let statements = expansion.write_statements(&parameters, &braces);
                quote_spanned!(Span::mixed_site()=> async move { #warnings #statements })
            });
            body::group(&block)
        }
    };
    function.body = Some(group);
    function.into_token_stream()
}

struct Expansion<'a> {
    args: &'a Args,
    keys: &'a KeyArguments,
    names: ParameterNames,
    private: TokenStream,
    /// What the options are made of.
    expressions: TokenStream,
    placeholders: TokenStream,
    return_span: Span,
    output: Type,
}

impl Expansion<'_> {
    fn write_statements(&self, parameters: &Parameters, braces: &Group) -> TokenStream {
        match self.handler_mentions_a_parameter() {
            false => self.write_one_body(parameters, braces),
            true => self.write_body_in_a_body(parameters, braces),
        }
    }

    /// The options are evaluated in the body, as its first statements. So they take, borrow and
    /// leave what statements of a plain function would.
    fn write_one_body(&self, parameters: &Parameters, braces: &Group) -> TokenStream {
        let RequestCode { prepare, acquire } = request::write_request(self.args, self.keys);
        let (convert, convert_name) = self.write_conversion();
        let (slot, borrow) = self.write_slot();
        let moves = parameters.moves();
        let (early, late) = parameters.bind(
            |names, is_pattern| self.options_may_move(names, is_pattern),
            |name| usage::mentions(&self.placeholders, name),
        );
        let body = self.write_body(&quote!(#early #prepare #moves), &acquire, &late, braces);
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

    /// A handler that mentions parameters may borrow them, and is called after the body. So the
    /// parameters live in an outer body.
    fn write_body_in_a_body(&self, parameters: &Parameters, braces: &Group) -> TokenStream {
        let RequestCode { prepare, acquire } = request::write_request(self.args, self.keys);
        let (convert, convert_name) = self.write_conversion();
        let (slot, borrow) = self.write_slot();
        let statements = braces.stream();
        let (outer, inner) = parameters.bind_around(
            |names, is_pattern| self.options_may_move(names, is_pattern),
            |name| usage::mentions(&statements, name),
        );
        let (outer_moves, inner_moves) = parameters.moves_around(
            |name| usage::mentions(&self.expressions, name),
            |name| usage::mentions(&statements, name),
        );
        let begin = quote!(#inner #inner_moves);
        let body = self.write_body(&begin, &acquire, &TokenStream::new(), braces);
        let private = &self.private;
        quote_spanned! {Span::mixed_site()=>
            #slot
            #[allow(clippy::large_futures)]
            #private::ReleaseAfter {
                slot: #borrow,
                body: {
                    let __lock_slot = #borrow;
                    async move {
                        #outer
                        #outer_moves
                        #prepare
                        #convert
                        #[allow(clippy::large_futures)]
                        #private::StopWhenLost {
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

    /// Whether the options may move one of the names, borrow it for longer than a moment, or need
    /// what its pattern binds.
    fn options_may_move(&self, names: &[Ident], is_pattern: bool) -> bool {
        names.iter().any(|name| {
            usage::mentions(&self.expressions, name)
                || is_pattern && usage::mentions(&self.placeholders, name)
        })
    }

    fn handler_mentions_a_parameter(&self) -> bool {
        let handler = self.args.expression(Opt::OnError);
        handler.is_some_and(|handler| {
            let handler = handler.to_token_stream();
            let mut names = self.names.parameters.iter();
            names.any(|name| usage::mentions(&handler, name))
        })
    }

    /// The variable where the body finds its lock, and a reference to it. It has the user's name
    /// for the guard, because an error about the guard's lifetime names it.
    fn write_slot(&self) -> (TokenStream, TokenStream) {
        let name = match self.args.name(Opt::Guard) {
            // An option may mean something else by it.
            Some(name) if !usage::mentions(&self.expressions, name) => name.clone(),
            _ => Ident::new("__lock_place", Span::mixed_site()),
        };
        let private = &self.private;
        let borrow = quote_spanned!(Span::mixed_site().located_at(name.span())=> &#name);
        let slot = quote_spanned! {Span::mixed_site()=>
            let #name = #private::Slot::new();
        };
        (slot, borrow)
    }

    fn write_body(
        &self,
        early: &TokenStream,
        acquire: &TokenStream,
        late: &TokenStream,
        braces: &Group,
    ) -> TokenStream {
        let return_edge = self.write_return_edge();
        let (guard, names) = self.bind_names();
        // The user's statements stay a block: in every edition, what it borrows for its value ends
        // before the parameters drop.
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
        // With the span and hygiene of the body: errors about it point there, and clippy takes it
        // for the user's.
        quote_spanned!(body.span()=> async move #body)
    }

    /// What `fence` and `guard` bind.
    fn bind_names(&self) -> (TokenStream, TokenStream) {
        let private = &self.private;
        let fence = self.args.name(Opt::Fence).map(|name| {
            let token = match self.keys {
                KeyArguments::One(_) => quote_spanned!(Span::mixed_site()=> fencing_token),
                KeyArguments::Several(keys) => {
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

    /// The variable that makes the function's value where there is no lock.
    fn write_conversion(&self) -> (TokenStream, Ident) {
        let (convert, name) = options::write_conversion(self.args, &self.output, self.return_span);
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

    /// A return that never runs. It gives the block its type, so that a wrong type is an error on
    /// the user's line.
    fn write_return_edge(&self) -> TokenStream {
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
