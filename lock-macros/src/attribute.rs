//! The steps of both attributes: read, check, write out.

use crate::args::{DISTRIBUTED_LOCK, RATE_LIMITED, Vocabulary};
use crate::check;
use crate::expand;
use crate::fallback;
use crate::function::body::{self, Body};
use crate::function::parameters::ParameterNames;
use crate::function::{self, Function};
use crate::key::{self, KeyArguments};
use crate::mistakes::Mistakes;
use crate::parse::Args;
use proc_macro2::TokenStream;

/// The steps that differ.
pub(crate) struct Steps {
    vocabulary: &'static Vocabulary,
    check: fn(&Args, Option<&ParameterNames>, &mut Mistakes),
    write: fn(&Args, &KeyArguments, Function, Body) -> TokenStream,
}

pub(crate) const LOCK: Steps = Steps {
    vocabulary: &DISTRIBUTED_LOCK,
    check: check::check_lock,
    write: expand::write_function,
};

pub(crate) const RATE_LIMIT: Steps = Steps {
    vocabulary: &RATE_LIMITED,
    check: |args, _, mistakes| check::check_rate_limit(args, mistakes),
    write: expand::rate_limited::write_function,
};

impl Steps {
    /// The function that takes the place of `item`. All mistakes are reported in one build.
    pub(crate) fn apply(&self, options: TokenStream, item: TokenStream) -> TokenStream {
        let mut mistakes = Mistakes::default();
        let args = Args::parse(options, self.vocabulary, &mut mistakes);
        let function = function::read(&item, self.vocabulary, &mut mistakes);
        let sig = function.as_ref().map(|function| &function.sig);
        let names = sig.map(ParameterNames::of);
        (self.check)(&args, names.as_ref(), &mut mistakes);
        let keys = key::read(&args, sig, names.as_ref(), &mut mistakes);
        let body = function
            .as_ref()
            .and_then(|function| body::find(function, self.vocabulary, &mut mistakes));
        match (keys, function, body) {
            (Some(keys), Some(function), Some(body)) if mistakes.is_empty() => {
                (self.write)(&args, &keys, function, body)
            }
            _ => fallback::write_with_mistakes(mistakes, item, &args),
        }
    }
}
