//! The places of a source file that can be wrong in a small way.

use std::ops::Range;

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ImplItemFn, ItemFn, Lit, Pat, ReturnType, Stmt, Type};

use super::weave::{Part, Place};

/// A place, and what is wrong there.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) place: Place,
    /// From 1.
    pub(super) line: usize,
    pub(super) what: String,
}

/// All places of a file. They are numbered from `first` on.
pub(super) fn places(text: &str, first: usize) -> Result<Vec<Found>, String> {
    let file = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut finder = Finder {
        text,
        first,
        found: Vec::new(),
    };
    finder.visit_file(&file);
    Ok(finder.found)
}

struct Finder<'t> {
    text: &'t str,
    first: usize,
    found: Vec<Found>,
}

fn bytes(part: &impl Spanned) -> Range<usize> {
    part.span().byte_range()
}

/// What is not part of the shipped build.
fn is_left_out(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|one| {
        let last = one.path().segments.last();
        one.path().is_ident("cfg") || last.is_some_and(|last| last.ident == "test")
    })
}

/// What a function of this type can return instead of what it should.
fn instead(output: &ReturnType) -> Vec<&'static str> {
    let ReturnType::Type(_, output) = output else {
        return Vec::new();
    };
    let text = output.to_token_stream().to_string().replace(' ', "");
    let Type::Path(path) = &**output else {
        return Vec::new();
    };
    let Some(last) = path.path.segments.last() else {
        return Vec::new();
    };
    match last.ident.to_string().as_str() {
        "bool" => vec!["true", "false"],
        "Option" => vec!["None"],
        "Duration" => vec!["std::time::Duration::ZERO"],
        "Vec" => vec!["Vec::new()"],
        "u32" | "u64" | "usize" => vec!["0"],
        "Result" if text.starts_with("Result<()") => vec!["Ok(())"],
        _ => Vec::new(),
    }
}

/// Names that are used as `true` and `false` are.
const OPPOSITES: [[&str; 2]; 2] = [
    ["LaterRequests::Wait", "LaterRequests::GoOn"],
    ["GoneHold::IsFailure", "GoneHold::IsExpected"],
];

/// Whether swapping the method is the same as negating what it says.
fn opposite(method: &syn::Ident) -> bool {
    ["is_some", "is_none", "is_ok", "is_err"]
        .iter()
        .any(|name| method == name)
}

impl Finder<'_> {
    fn add(&mut self, at: usize, range: Range<usize>, what: String, parts: Vec<Part>) {
        let number = self.first + self.found.len();
        self.found.push(Found {
            place: Place {
                number,
                range,
                parts,
            },
            line: self.text[..at].matches('\n').count() + 1,
            what,
        });
    }

    /// A value of type `bool` that is the other one.
    fn negated(&mut self, range: Range<usize>, what: &str) {
        let parts = vec![
            Part::Text("(".to_owned()),
            Part::Asked,
            Part::Text(" ^ (".to_owned()),
            Part::Woven(range.clone()),
            Part::Text("))".to_owned()),
        ];
        self.add(range.start, range, what.to_owned(), parts);
    }

    /// An expression in which one word or sign is another one.
    fn swapped(&mut self, whole: Range<usize>, word: Range<usize>, other: &str) {
        let text = |text: &str| Part::Text(text.to_owned());
        let what = format!("{} → {other}", &self.text[word.clone()]);
        let parts = vec![
            text("(if "),
            Part::Asked,
            text(" { "),
            Part::Same(whole.start..word.start),
            text(other),
            Part::Same(word.end..whole.end),
            text(" } else { "),
            Part::Woven(whole.clone()),
            text(" })"),
        ];
        self.add(word.start, whole, what, parts);
    }

    /// The parts of a condition that are joined by `&&`. What a comparison can be instead is found
    /// elsewhere.
    fn condition(&mut self, condition: &Expr) {
        match condition {
            Expr::Let(_) => {}
            Expr::Paren(inner) => self.condition(&inner.expr),
            Expr::Binary(both) if matches!(both.op, BinOp::And(_)) => {
                self.condition(&both.left);
                self.condition(&both.right);
            }
            Expr::Binary(both) if matches!(both.op, BinOp::Eq(_) | BinOp::Ne(_)) => {}
            Expr::MethodCall(call) if opposite(&call.method) => {}
            Expr::Lit(_) => {}
            _ => self.negated(bytes(condition), "negated"),
        }
    }

    fn function(&mut self, output: &ReturnType, block: &Block) {
        let start = block.brace_token.span.open().byte_range().end;
        for value in instead(output) {
            let body = block
                .stmts
                .first()
                .map(|first| self.text[bytes(first)].to_owned());
            if block.stmts.len() == 1 && body.is_some_and(|body| body == value) {
                continue;
            }
            let parts = vec![
                Part::Text(" if ".to_owned()),
                Part::Asked,
                Part::Text(format!(" {{ return {value}; }}")),
            ];
            let what = format!("returns {value}");
            self.add(start, start..start, what, parts);
        }
        if matches!(output, ReturnType::Default)
            && let Some(Stmt::Expr(last, None)) = block.stmts.last()
        {
            self.deleted(last, bytes(last));
        }
    }

    /// A statement that is not carried out.
    fn deleted(&mut self, statement: &Expr, range: Range<usize>) {
        use Expr::{Assign, Await, Binary, Call, MethodCall, Try};
        if matches!(
            statement,
            Assign(_) | Await(_) | Binary(_) | Call(_) | MethodCall(_) | Try(_)
        ) {
            let parts = vec![
                Part::Text("if !".to_owned()),
                Part::Asked,
                Part::Text(" { ".to_owned()),
                Part::Woven(range.clone()),
                Part::Text(" }".to_owned()),
            ];
            self.add(range.start, range, "deleted".to_owned(), parts);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    // What is here can't ask, or is no code.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let range = bytes(path);
        let text = &self.text[range.clone()];
        for [one, other] in OPPOSITES
            .iter()
            .chain(&OPPOSITES.map(|[one, other]| [other, one]))
        {
            if text == *one {
                self.swapped(range.clone(), range.clone(), other);
            }
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_left_out(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().map(|(path, _)| path);
        let of = of.and_then(|path| path.segments.last());
        // Text for people.
        let is_text = of.is_some_and(|name| name.ident == "Debug" || name.ident == "Display");
        if !is_text && !is_left_out(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if item.sig.constness.is_none() && !is_left_out(&item.attrs) {
            self.function(&item.sig.output, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if item.sig.constness.is_none() && !is_left_out(&item.attrs) {
            self.function(&item.sig.output, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::Expr(expression, Some(_)) => self.deleted(expression, bytes(statement)),
            Stmt::Local(local) if matches!(local.pat, Pat::Wild(_)) => {
                if let Some(value) = &local.init {
                    self.deleted(&value.expr, bytes(statement));
                }
            }
            _ => {}
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_if(&mut self, expression: &'ast syn::ExprIf) {
        self.condition(&expression.cond);
        visit::visit_expr_if(self, expression);
    }

    fn visit_expr_while(&mut self, expression: &'ast syn::ExprWhile) {
        self.condition(&expression.cond);
        visit::visit_expr_while(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Pat::Guard(guarded) = &arm.pat {
            self.condition(&guarded.guard);
            self.visit_expr(&guarded.guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        let has_let = |side: &Expr| side.to_token_stream().to_string().contains("let ");
        let other = match &both.op {
            BinOp::Lt(_) => "<=",
            BinOp::Le(_) => "<",
            BinOp::Gt(_) => ">=",
            BinOp::Ge(_) => ">",
            BinOp::Eq(_) => "!=",
            BinOp::Ne(_) => "==",
            BinOp::And(_) if !has_let(&both.left) && !has_let(&both.right) => "||",
            BinOp::Or(_) => "&&",
            BinOp::Add(_) => "-",
            BinOp::Sub(_) => "+",
            BinOp::Mul(_) => "/",
            BinOp::Div(_) => "*",
            BinOp::AddAssign(_) => "-=",
            BinOp::SubAssign(_) => "+=",
            _ => "",
        };
        let whole = bytes(both);
        if !other.is_empty() {
            self.swapped(whole, bytes(&both.op), other);
        }
        visit::visit_expr_binary(self, both);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let other = match call.method.to_string().as_str() {
            "min" => "max",
            "max" => "min",
            "any" => "all",
            "all" => "any",
            "saturating_add" => "saturating_sub",
            "saturating_sub" => "saturating_add",
            "is_some" => "is_none",
            "is_none" => "is_some",
            "is_some_and" => "is_none_or",
            "is_none_or" => "is_some_and",
            "is_ok" => "is_err",
            "is_err" => "is_ok",
            _ => "",
        };
        if !other.is_empty() {
            self.swapped(bytes(call), bytes(&call.method), other);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        if let Lit::Bool(value) = &literal.lit {
            self.negated(bytes(literal), if value.value { "false" } else { "true" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::weave::woven;
    use super::*;

    const TEXT: &str = "
fn is_over(&self, now: u64, sent: u64) -> bool {
    if let Some(end) = self.end && self.is_open() {
        self.note(now + sent);
        return end <= now;
    }
    false
}
";

    #[test]
    fn each_place_can_be_wrong_and_the_text_is_rust_still() {
        let text = format!("impl A {{ {TEXT} }}");
        let found = places(&text, 7).unwrap_or_default();
        let what: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        let wanted = [
            "returns true",
            "returns false",
            "negated",
            "deleted",
            "+ → -",
            "<= → <",
            "true",
        ];
        assert_eq!(what, wanted);
        assert_eq!(found[3].line, 4);
        let places: Vec<Place> = found.into_iter().map(|one| one.place).collect();
        let woven = woven(&text, &places);
        assert!(syn::parse_file(&woven).is_ok(), "{woven}");
        for number in 7..14 {
            assert_eq!(
                woven.matches(&format!("on({number})")).count(),
                1,
                "{woven}"
            );
        }
    }
}
