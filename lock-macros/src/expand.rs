//! Writes the function out. Nothing is checked here any more.

use crate::args::{Args, Opt};
use crate::check::{Key, Keys, Segment};
use crate::function::Function;
use crate::params::{self, Moves};
use crate::placeholder::Placeholder;
use crate::request::{self, Request};
use crate::shape::{self, Shape, Shaped};
use crate::usage::{self, Usage};
use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ReturnType, Type};

pub(crate) fn function(
    args: &Args,
    keys: &Keys,
    mut function: Function,
    shaped: Shaped,
) -> TokenStream {
    let usage = |name: &Ident| usage_of(name, args, keys);
    let expansion = Expansion {
        args,
        keys,
        runtime: args.runtime(),
        return_span: return_span(&function),
        output: shaped.output,
    };
    let group = match shaped.shape {
        Shape::AsyncFn { inner, body } => {
            function.attrs.extend(inner);
            let moves = params::move_into_body(&mut function.sig, &expansion.private(), usage);
            let statements = expansion.statements(&moves, &body);
            // In the user's braces: else what is said about the function is said at the attribute.
            shape::regroup(&body, statements)
        }
        Shape::Future { mut block } => {
            shape::replace_future(&mut block, |future| {
                let statements = &mut future.block.stmts;
                let moves = params::move_into_future(&function.sig, statements, usage);
                let body = shape::group(&future.block);
                let statements = expansion.statements(&moves, &body);
                quote_spanned!(Span::mixed_site()=> async move { #statements })
            });
            shape::group(&block)
        }
    };
    function.body = Some(group);
    function.into_token_stream()
}

/// `lock_key!`, and the key of the attribute: the text goes into one buffer.
pub(crate) fn key(key: &Key, runtime: &TokenStream) -> TokenStream {
    match key {
        Key::Expression(expression) => quote_spanned! {expression.span()=>
            ::core::convert::Into::<#runtime::LockKey>::into(#expression)
        },
        Key::Template {
            literal,
            capacity,
            segments,
        } => {
            let writer = Ident::new("__lock_writer", Span::mixed_site());
            let writes = segments.iter().map(|segment| match segment {
                Segment::Literal(text) => quote_spanned! {Span::mixed_site()=>
                    #runtime::__private::KeyWriter::literal(&mut #writer, #text);
                },
                Segment::Value(value) => write_value(value, &writer, literal.span(), runtime),
            });
            quote_spanned! {Span::mixed_site()=> {
                let mut #writer = #runtime::__private::KeyWriter::with_capacity(#capacity);
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
        calls_method,
    } = value;
    // The argument alone carries the place of the literal: a value that can't be displayed is one error there.
    let argument = quote_spanned!(span=> &#expression);
    let write = quote_spanned! {Span::mixed_site()=>
        #runtime::__private::KeyWriter::value(&mut #writer, #shown, #argument);
    };
    if *calls_method && root != "self" {
        // A method that takes the parameter itself would take it from the body.
        quote_spanned!(Span::mixed_site()=> { let #root = &#root; #write })
    } else {
        write
    }
}

struct Expansion<'a> {
    args: &'a Args,
    keys: &'a Keys,
    runtime: TokenStream,
    return_span: Span,
    output: Type,
}

impl Expansion<'_> {
    fn private(&self) -> TokenStream {
        let runtime = &self.runtime;
        quote!(#runtime::__private)
    }

    fn statements(&self, moves: &Moves, body: &Group) -> TokenStream {
        let private = self.private();
        let Request { prepare, acquire } = request::of(self.args, self.keys);
        let (convert, convert_error) = self.convert();
        let outer = &moves.outer;
        let (skip_value, skip_arm) = self.skip();
        let tokens = match self.keys {
            Keys::One(_) => quote!(fencing_token),
            Keys::Several(keys) => {
                let count = keys.len();
                quote!(fencing_tokens::<#count>)
            }
        };
        let (token_value, token_name) = match self.args.name(Opt::Fence) {
            Some(name) => (
                quote_spanned! {Span::mixed_site()=>
                    let __lock_token = match #private::#tokens(&__lock_guard) {
                        ::core::result::Result::Ok(token) => token,
                        ::core::result::Result::Err(error) => return #convert_error,
                    };
                },
                quote_spanned!(Span::mixed_site()=> let #name = __lock_token;),
            ),
            None => Default::default(),
        };
        let (guard_value, guard_name) = match self.args.name(Opt::Guard) {
            Some(name) => (
                quote_spanned!(Span::mixed_site()=> let __lock_guard_ref = &__lock_guard;),
                quote_spanned!(Span::mixed_site()=> let #name = __lock_guard_ref;),
            ),
            None => Default::default(),
        };
        let inner = &moves.inner;
        let return_edge = self.return_edge();
        let statements = body.stream();
        let body = shape::regroup(
            body,
            quote!(#return_edge #inner #token_name #guard_name #statements),
        );
        // What the compiler says about the body as a whole is said there, not at the attribute.
        let future = quote_spanned!(Span::mixed_site().located_at(body.span())=> async move #body);
        quote_spanned! {Span::mixed_site()=>
            #outer
            #prepare
            #convert
            #skip_value
            let __lock_guard = match #acquire.await {
                ::core::result::Result::Ok(guard) => guard,
                #skip_arm
                ::core::result::Result::Err(error) => return #convert_error,
            };
            #token_value
            #guard_value
            #[allow(clippy::large_futures)]
            let __lock_outcome = #private::run(&__lock_guard, #future).await;
            match __lock_outcome {
                ::core::result::Result::Ok(value) => value,
                ::core::result::Result::Err(error) => #convert_error,
            }
        }
    }

    /// How a `LockError` becomes what the function returns: what is prepared, and what is done with `error`. As a
    /// function pointer a wrong return type is one error, at the return type; as a bound of the call it would be several,
    /// at the attribute. So would a wrong handler whose type says what it is called with.
    fn convert(&self) -> (TokenStream, TokenStream) {
        let runtime = &self.runtime;
        let output = &self.output;
        let name = Ident::new("__lock_convert", Span::mixed_site());
        match self.args.expression(Opt::OnError) {
            Some(handler) => (
                quote_spanned! {Span::mixed_site()=>
                    let #name = #runtime::__private::on_error(
                        ::core::marker::PhantomData::<#output>,
                        #handler,
                    );
                },
                quote_spanned!(Span::mixed_site()=> #name.call(error)),
            ),
            None => (
                quote_spanned! {self.return_span=>
                    let #name: fn(#runtime::LockError) -> _ =
                        <#output as #runtime::__private::FromLockError>::from_lock;
                },
                quote_spanned!(Span::mixed_site()=> #name(error)),
            ),
        }
    }

    fn skip(&self) -> (TokenStream, TokenStream) {
        if !self.args.is_word(Opt::OnBusy, "skip") {
            return Default::default();
        }
        let runtime = &self.runtime;
        let output = &self.output;
        let name = Ident::new("__lock_skipped", Span::mixed_site());
        let value = quote_spanned! {self.return_span=>
            let #name: fn() -> _ = <#output as #runtime::__private::Skippable>::skipped;
        };
        let arm = quote_spanned! {Span::mixed_site()=>
            ::core::result::Result::Err(error) if #runtime::__private::is_busy(&error) => return #name(),
        };
        (value, arm)
    }

    /// Never runs. It tells the compiler what the block gives, so that a wrong type is an error on its own line.
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

fn return_span(function: &Function) -> Span {
    match &function.sig.output {
        ReturnType::Default => function.sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
}

fn usage_of(name: &Ident, args: &Args, keys: &Keys) -> Usage {
    let mut usage = Usage::None;
    for key in keys.all() {
        usage = usage.max(usage_in(key, name));
    }
    if let Some(permits) = args.expression(Opt::Permits) {
        usage = usage.max(usage::of_number(name, permits));
    }
    if let Some(client) = args.expression(Opt::Client) {
        usage = usage.max(usage::of(name, client.to_token_stream()));
    }
    if let Some(handler) = args.expression(Opt::OnError)
        && usage::of(name, handler.to_token_stream()) != Usage::None
    {
        // It lives as long as the body, and so does what it borrows.
        usage = Usage::Moved;
    }
    usage
}

fn usage_in(key: &Key, name: &Ident) -> Usage {
    let segments = match key {
        Key::Expression(expression) => return usage::of(name, expression.to_token_stream()),
        Key::Template { segments, .. } => segments,
    };
    let mut usage = Usage::None;
    for segment in segments {
        if let Segment::Value(value) = segment {
            let arguments = value.expression.to_token_stream();
            let arguments = arguments.into_iter().skip(1).collect();
            usage = usage.max(usage::of(name, arguments));
            if value.root == *name {
                usage = usage.max(Usage::Borrowed);
            }
        }
    }
    usage
}
