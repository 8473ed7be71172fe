//! `#[distributed_lock]`, step by step.

use crate::args::DISTRIBUTED_LOCK;
use crate::check;
use crate::expand;
use crate::fallback;
use crate::faults::Faults;
use crate::function::parameters::Names;
use crate::function::{self, body};
use crate::key;
use crate::parse::Args;
use proc_macro2::TokenStream;

pub(crate) fn apply(tokens: TokenStream, item: TokenStream) -> TokenStream {
    let mut faults = Faults::default();
    let args = Args::parse(tokens, &DISTRIBUTED_LOCK, &mut faults);
    let function = function::read(&item, args.attribute, &mut faults);
    let sig = function.as_ref().map(|function| &function.sig);
    let names = sig.map(Names::of);
    check::options(&args, names.as_ref(), &mut faults);
    let keys = key::read(&args, sig, names.as_ref(), &mut faults);
    let body = function
        .as_ref()
        .and_then(|function| body::of(function, args.attribute, &mut faults));
    match (keys, function, body) {
        (Some(keys), Some(function), Some(body)) if faults.is_empty() => {
            expand::function(&args, &keys, function, body)
        }
        _ => fallback::emit(faults, item, &args),
    }
}
