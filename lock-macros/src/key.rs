//! The key or keys of a call: templates whose placeholders are parameters, or expressions.

use crate::args::Opt;
use crate::function::parameters::ParameterNames;
use crate::mistakes::Mistakes;
use crate::parse::Args;
use crate::parse::value::Value;
use crate::template::placeholder::{self, Placeholder};
use crate::template::{Template, TemplatePart};
use proc_macro2::Span;
use quote::format_ident;
use std::slice;
use syn::{Expr, LitStr, Signature};

/// What is locked or limited.
pub(crate) enum KeyArgument {
    Template {
        literal: LitStr,
        capacity: usize,
        segments: Vec<Segment>,
    },
    Expression(Expr),
}

/// What one call takes.
pub(crate) enum KeyArguments {
    One(KeyArgument),
    /// All or none, in the order written.
    Several(Vec<KeyArgument>),
}

impl KeyArguments {
    pub(crate) fn all(&self) -> &[KeyArgument] {
        match self {
            Self::One(key) => slice::from_ref(key),
            Self::Several(keys) => keys,
        }
    }
}

pub(crate) enum Segment {
    Literal(String),
    Value(Box<Placeholder>),
}

impl KeyArgument {
    /// Without `names`, a placeholder may begin with any variable.
    pub(crate) fn from_template(
        literal: &LitStr,
        template: &Template,
        names: Option<&ParameterNames>,
        mistakes: &mut Mistakes,
    ) -> Self {
        let segments = template.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(text) => Some(Segment::Literal(text.clone())),
            TemplatePart::Placeholder(text) => placeholder::read(text, literal, names, mistakes)
                .map(|value| Segment::Value(Box::new(value))),
        });
        KeyArgument::Template {
            literal: literal.clone(),
            capacity: template.capacity(),
            segments: segments.collect(),
        }
    }
}

/// The key or the keys, or a report why there is none. With both options given, both are read.
pub(crate) fn read(
    args: &Args,
    sig: Option<&Signature>,
    names: Option<&ParameterNames>,
    mistakes: &mut Mistakes,
) -> Option<KeyArguments> {
    let several = args.get(Opt::Keys).map(|given| match &given.value {
        Value::Keys(values) => {
            let keys: Vec<Option<KeyArgument>> = values
                .iter()
                .map(|value| from_value(value, names, mistakes))
                .collect();
            keys.into_iter()
                .collect::<Option<_>>()
                .map(KeyArguments::Several)
        }
        _ => None,
    });
    match (args.get(Opt::Key), several) {
        (Some(given), _) => from_value(&given.value, names, mistakes).map(KeyArguments::One),
        (None, Some(several)) => several,
        (None, None) => {
            if !args.unclear {
                mistakes.report_at(Span::call_site(), explain_missing_key(args, sig, names));
            }
            None
        }
    }
}

fn from_value(
    value: &Value,
    names: Option<&ParameterNames>,
    mistakes: &mut Mistakes,
) -> Option<KeyArgument> {
    match value {
        Value::Template(literal, template) => {
            let known = |text: &str| names.and_then(|names| names.known(text));
            for message in template.check_names(Some(&known)) {
                mistakes.report_on(literal, message);
            }
            Some(KeyArgument::from_template(
                literal, template, names, mistakes,
            ))
        }
        Value::Expression(expression) => Some(KeyArgument::Expression(expression.clone())),
        _ => None,
    }
}

fn explain_missing_key(
    args: &Args,
    sig: Option<&Signature>,
    names: Option<&ParameterNames>,
) -> String {
    let function = sig.map_or_else(|| format_ident!("stock"), |sig| sig.ident.clone());
    let example = names
        .into_iter()
        .flat_map(|names| &names.parameters)
        .find(|name| *name != "self" && !name.to_string().starts_with('_'));
    let template = match example {
        Some(parameter) => format!("{function}:<{parameter}>"),
        None => function.to_string(),
    };
    let attribute = args.attribute;
    format!(
        "`key` is missing: write {}, for example `#[{}(key = \"{template}\"{})]`{}",
        attribute.key_is, attribute.name, attribute.with_key, attribute.or_keys
    )
}
