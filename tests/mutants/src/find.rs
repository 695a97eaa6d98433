//! The mutation operators: which places of the code can change, and how.
//!
//! Only expressions and statements that run change: no constants, patterns, types, tests,
//! implementations of `Debug` and `Display`, code for the model checker, or arguments of
//! macros, except for the right side of a `mutate!`.

use proc_macro2::Span;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, ReturnType, Stmt, Type};

/// A file and its candidates.
#[derive(Debug)]
pub struct Source {
    /// The path, relative to the tree.
    pub file: String,
    pub text: String,
    pub candidates: Vec<Candidate>,
}

/// A place, and a change of it.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The bytes that are replaced; empty if text is inserted.
    pub range: Range<usize>,
    pub line: usize,
    pub change: Change,
    /// The change in words, for the table.
    pub what: String,
    /// Whether it is in the code beside which a test plants a defect.
    pub is_beside: bool,
}

/// How a place changes.
#[derive(Debug, Clone)]
pub enum Change {
    /// Another expression of the same type.
    Expression(String),
    /// Another statement, or no statement.
    Statement(String),
    /// The function returns this value at its beginning.
    Entry(String),
}

impl Candidate {
    /// Whether the change is that of a memory ordering or a fence, which only a model of weak
    /// memory can find.
    pub fn is_ordering(&self) -> bool {
        self.what.ends_with("-> Relaxed") || self.what.starts_with("deleted: fence(")
    }
}

impl Source {
    pub fn read(file: &str, text: String) -> Result<Self, String> {
        let parsed = syn::parse_file(&text).map_err(|error| format!("{file}: {error}"))?;
        let mut finder = Finder { text: &text, is_beside: false, found: Vec::new() };
        finder.visit_file(&parsed);
        let candidates = finder.found;
        Ok(Self { file: file.to_owned(), text, candidates })
    }
}

struct Finder<'a> {
    text: &'a str,
    is_beside: bool,
    found: Vec<Candidate>,
}

impl Finder<'_> {
    fn add(&mut self, span: Span, change: Change, what: String) {
        self.found.push(Candidate {
            range: span.byte_range(),
            line: span.start().line,
            change,
            what,
            is_beside: self.is_beside,
        });
    }

    fn expression(&mut self, at: &Expr, other: String) {
        let what = format!("{} -> {}", self.short(at.span()), short(&other));
        self.add(at.span(), Change::Expression(other), what);
    }

    fn of(&self, span: Span) -> &str {
        &self.text[span.byte_range()]
    }

    fn short(&self, span: Span) -> String {
        short(self.of(span))
    }

    fn binary(&mut self, at: &Expr, binary: &syn::ExprBinary) {
        let others: &[&str] = match binary.op {
            BinOp::Lt(_) => &["<=", ">="],
            BinOp::Le(_) => &["<", ">"],
            BinOp::Gt(_) => &[">=", "<="],
            BinOp::Ge(_) => &[">", "<"],
            BinOp::Eq(_) => &["!="],
            BinOp::Ne(_) => &["=="],
            BinOp::Add(_) => &["-"],
            BinOp::Sub(_) => &["+"],
            BinOp::And(_) if !has_let(at) => &["||"],
            BinOp::Or(_) => &["&&"],
            BinOp::BitAnd(_) => &["|"],
            BinOp::BitOr(_) => &["&"],
            BinOp::Shl(_) => &[">>"],
            BinOp::Shr(_) => &["<<"],
            _ => &[],
        };
        let (left, right) = (self.of(binary.left.span()), self.of(binary.right.span()));
        let changed: Vec<String> =
            others.iter().map(|other| format!("({left}) {other} ({right})")).collect();
        for (other, text) in others.iter().zip(changed) {
            let what = format!("{} -> {other}", self.short(at.span()));
            self.add(at.span(), Change::Expression(text), what);
        }
    }

    fn literal(&mut self, at: &Expr, literal: &syn::ExprLit) {
        match &literal.lit {
            Lit::Bool(it) => self.expression(at, (!it.value).to_string()),
            Lit::Int(it) => {
                let Ok(value) = it.base10_parse::<u128>() else { return };
                let other = if value == 1 { 0 } else { value + 1 };
                self.expression(at, format!("{other}{}", it.suffix()));
            }
            _ => (),
        }
    }

    /// Negates the condition of an `if`, a `while` or the guard of an arm.
    fn condition(&mut self, condition: &Expr) {
        let is_comparison = matches!(condition, Expr::Binary(binary) if !matches!(binary.op, BinOp::And(_) | BinOp::Or(_)));
        if !has_let(condition) && !is_comparison {
            let other = format!("!({})", self.of(condition.span()));
            self.expression(condition, other);
        }
    }

    fn entries(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() || block.stmts.is_empty() {
            return;
        }
        let begin = block.brace_token.span.open().byte_range().end;
        let line = signature.ident.span().start().line;
        for value in values_of(&signature.output) {
            let what = format!("fn {}: return {value}", signature.ident).trim_end().to_owned();
            let change = Change::Entry((*value).to_owned());
            let is_beside = false;
            self.found.push(Candidate { range: begin..begin, line, change, what, is_beside });
        }
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_none() {
            self.entries(signature, block);
            self.visit_block(block);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_of_tests(&item.attrs) {
            self.body(&item.sig, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_of_tests(&item.attrs) {
            self.body(&item.sig, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(&item.sig, block);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of_words = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let of_words =
            of_words.is_some_and(|last| last.ident == "Debug" || last.ident == "Display");
        if !of_words && !is_of_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    // These parts are no code that runs.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_angle_bracketed_generic_arguments(
        &mut self,
        _: &'ast syn::AngleBracketedGenericArguments,
    ) {
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) => self.binary(expr, binary),
            Expr::Lit(literal) => self.literal(expr, literal),
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => {
                let other = self.of(unary.expr.span()).to_owned();
                self.expression(expr, other);
            }
            Expr::If(it) => {
                self.condition(&it.cond);
                if it.else_branch.is_none() && leaves(&it.then_branch) && !has_let(&it.cond) {
                    self.expression(&it.cond, "false".to_owned());
                }
            }
            Expr::While(it) => self.condition(&it.cond),
            Expr::Path(path) => {
                let last = path.path.segments.last().map(|last| last.ident.to_string());
                if let Some("Acquire" | "Release" | "AcqRel" | "SeqCst") = last.as_deref() {
                    let other = "::core::sync::atomic::Ordering::Relaxed".to_owned();
                    let what = format!("{} -> Relaxed", self.short(expr.span()));
                    self.add(expr.span(), Change::Expression(other), what);
                }
            }
            Expr::Match(it) => {
                for (arm, next) in it.arms.iter().zip(it.arms.iter().skip(1)) {
                    let (own, other) = (self.of(arm.body.span()), self.of(next.body.span()));
                    if is_plain(&arm.body) && is_plain(&next.body) && own != other {
                        let other = other.to_owned();
                        self.expression(&arm.body, other);
                    }
                }
            }
            // The ordering of a fence stays: a relaxed fence panics.
            Expr::Call(call) if self.of(call.func.span()).ends_with("fence") => return,
            _ => (),
        }
        visit::visit_expr(self, expr);
    }

    fn visit_macro(&mut self, it: &'ast syn::Macro) {
        if !it.path.is_ident("mutate") {
            return;
        }
        let Ok(right) = it.parse_body_with(right_of) else { return };
        let mut inner = Finder { text: self.text, is_beside: true, found: Vec::new() };
        inner.visit_expr(&right);
        self.found.append(&mut inner.found);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        let text: String = self.of(stmt.span()).split_whitespace().collect();
        if LEFT_OUT.iter().any(|cfg| text.starts_with(&format!("#[cfg({cfg})]"))) {
            return;
        }
        if let Stmt::Expr(expr, Some(_)) = stmt {
            let leaves = matches!(expr, Expr::Return(_) | Expr::Break(_) | Expr::Continue(_));
            let acts = matches!(
                expr,
                Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) | Expr::Try(_)
            );
            if acts || leaves || is_update(expr).is_some() {
                let what = format!("deleted: {}", self.short(stmt.span()));
                self.add(stmt.span(), Change::Statement(String::new()), what);
            }
            if let Expr::Try(it) = expr {
                let other = format!("let _ = {};", self.of(it.expr.span()));
                let what = format!("its error ignored: {}", self.short(stmt.span()));
                self.add(stmt.span(), Change::Statement(other), what);
            }
            if let Some((update, other)) = is_update(expr) {
                let (left, right) = (self.of(update.left.span()), self.of(update.right.span()));
                let text = format!("{left} {other} {right};");
                let what = format!("{} -> {other}", self.short(stmt.span()));
                self.add(stmt.span(), Change::Statement(text), what);
            }
        }
        visit::visit_stmt(self, stmt);
    }
}

fn is_update(expr: &Expr) -> Option<(&syn::ExprBinary, &'static str)> {
    let Expr::Binary(binary) = expr else { return None };
    let other = match binary.op {
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        BinOp::BitOrAssign(_) => "&=",
        BinOp::BitAndAssign(_) => "|=",
        BinOp::ShlAssign(_) => ">>=",
        BinOp::ShrAssign(_) => "<<=",
        _ => return None,
    };
    Some((binary, other))
}

/// The values that a function with this return type may return at once.
fn values_of(output: &ReturnType) -> &'static [&'static str] {
    let ReturnType::Type(_, it) = output else { return &[""] };
    match &**it {
        Type::Tuple(tuple) if tuple.elems.is_empty() => &[""],
        Type::Path(path) => {
            let last = path.path.segments.last().expect("a path has an end");
            match last.ident.to_string().as_str() {
                "bool" => &["true", "false"],
                "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => &["0"],
                "Option" => &["None"],
                "Result" if is_of_nothing(&last.arguments) => &["Ok(())"],
                _ => &[],
            }
        }
        _ => &[],
    }
}

/// Whether the arguments are those of `Result<(), _>`.
fn is_of_nothing(arguments: &syn::PathArguments) -> bool {
    let syn::PathArguments::AngleBracketed(arguments) = arguments else { return false };
    matches!(
        arguments.args.first(),
        Some(syn::GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty()
    )
}

/// Whether an item is built only for tests or for the model checker.
fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => {
            let tokens = list.tokens.to_string().replace(' ', "");
            list.path.is_ident("cfg") && LEFT_OUT.contains(&tokens.as_str())
        }
        syn::Meta::NameValue(_) => false,
    })
}

/// What is built only with these `cfg`s does not change: tests, models, and what other systems
/// than this one need.
const LEFT_OUT: [&str; 5] = [
    "test",
    "tsumugi_loom",
    "all(test,not(tsumugi_loom))",
    "not(feature=\"std\")",
    "not(all(target_arch=\"x86_64\",target_os=\"linux\",not(any(tsumugi_loom,miri))))",
];

/// The right code in `mutate!("name": right => wrong)`.
fn right_of(input: syn::parse::ParseStream<'_>) -> syn::Result<Expr> {
    input.parse::<syn::LitStr>()?;
    input.parse::<syn::Token![:]>()?;
    let right = input.parse()?;
    input.parse::<syn::Token![=>]>()?;
    input.parse::<Expr>()?;
    Ok(right)
}

/// Whether an expression binds names, which the code after it uses.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn leaves(block: &syn::Block) -> bool {
    let last = block.stmts.last();
    matches!(last, Some(Stmt::Expr(Expr::Return(_) | Expr::Break(_) | Expr::Continue(_), _)))
}

fn is_plain(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(_) | Expr::Path(_))
}

/// The text on one line, shortened to a maximum length.
fn short(text: &str) -> String {
    const MOST: usize = 70;
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    if line.chars().count() <= MOST {
        return line;
    }
    let begin: String = line.chars().take(MOST).collect();
    format!("{begin}…")
}
