//! What the function returns: as a type that can stand in its body, and where errors about it
//! point.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    GenericArgument, PathArguments, ReturnType, Signature, Type, TypeParamBound,
    parse_quote_spanned,
};

/// Where errors about the return type point.
pub(crate) fn span(sig: &Signature) -> Span {
    match &sig.output {
        ReturnType::Default => sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
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
            // With its span: errors about the type point there.
            Type::ImplTrait(_) | Type::Never(_) => *ty = parse_quote_spanned!(ty.span()=> _),
            _ => visit_mut::visit_type_mut(self, ty),
        }
    }
}

/// What the future gives that a function returns.
pub(crate) fn output_of_future(output: &ReturnType) -> Option<Type> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => future_output(ty),
    }
}

fn future_output(ty: &Type) -> Option<Type> {
    match ty {
        Type::ImplTrait(ty) => ty.bounds.iter().find_map(bound_output),
        Type::TraitObject(ty) => ty.bounds.iter().find_map(bound_output),
        Type::Paren(ty) => future_output(&ty.elem),
        Type::Group(ty) => future_output(&ty.elem),
        Type::Path(ty) => {
            let last = ty.path.segments.last()?;
            let PathArguments::AngleBracketed(arguments) = &last.arguments else {
                return None;
            };
            let first = arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })?;
            if last.ident == "BoxFuture" || last.ident == "LocalBoxFuture" {
                Some(first.clone())
            } else {
                future_output(first)
            }
        }
        _ => None,
    }
}

fn bound_output(bound: &TypeParamBound) -> Option<Type> {
    let TypeParamBound::Trait(bound) = bound else {
        return None;
    };
    let last = bound.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(assoc) if last.ident == "Future" && assoc.ident == "Output" => {
            Some(assoc.ty.clone())
        }
        _ => None,
    })
}
