//! Reading tokens, templates of code, and errors with a place.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use std::iter::Peekable;

/// Tokens that are read one after the other.
pub type Tokens = Peekable<proc_macro::token_stream::IntoIter>;

/// An error in the code of the user: where it is, and what it is.
#[derive(Debug)]
pub struct Fault {
    at: Span,
    what: String,
}

impl Fault {
    pub fn new(at: Span, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }

    /// The code that makes the compiler report the error at its place.
    pub fn into_tokens(self) -> TokenStream {
        let mut what = Literal::string(&self.what);
        what.set_span(self.at);
        let code = "::core::compile_error! { __what }";
        template(code, self.at, &[("__what", TokenTree::from(what).into())])
    }
}

/// The tokens of `code`, placed at `at`; each identifier in `holes` is replaced.
pub fn template(code: &str, at: Span, holes: &[(&str, TokenStream)]) -> TokenStream {
    fill(code.parse().expect("the templates of this crate are Rust"), at, holes)
}

fn fill(code: TokenStream, at: Span, holes: &[(&str, TokenStream)]) -> TokenStream {
    let mut filled = TokenStream::new();
    for mut token in code {
        if let TokenTree::Ident(name) = &token {
            let name = name.to_string();
            if let Some((_, stream)) = holes.iter().find(|(hole, _)| *hole == name) {
                filled.extend(stream.clone());
                continue;
            }
        }
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), fill(group.stream(), at, holes)).into();
        }
        token.set_span(at);
        filled.extend([token]);
    }
    filled
}

/// Whether the next token is this word.
pub fn is_word(tokens: &mut Tokens, word: &str) -> bool {
    matches!(tokens.peek(), Some(TokenTree::Ident(name)) if name.to_string() == word)
}

/// Whether the next token is this character.
pub fn is_sign(tokens: &mut Tokens, sign: char) -> bool {
    matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// Takes the next token, if it is this word.
pub fn take_word(tokens: &mut Tokens, word: &str) -> Option<Ident> {
    match is_word(tokens, word).then(|| tokens.next()).flatten() {
        Some(TokenTree::Ident(name)) => Some(name),
        _ => None,
    }
}

/// Takes the next token, if it is a group in these delimiters.
pub fn take_group(tokens: &mut Tokens, delimiter: Delimiter) -> Option<Group> {
    let is_one = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter);
    match tokens.next_if(is_one) {
        Some(TokenTree::Group(group)) => Some(group),
        _ => None,
    }
}

/// Takes the attributes that come next; returns each with its `#`, and its content.
pub fn take_attributes(tokens: &mut Tokens) -> Vec<(TokenStream, TokenStream)> {
    let mut attributes = Vec::new();
    while is_sign(tokens, '#') {
        let sign = tokens.next();
        let Some(content) = take_group(tokens, Delimiter::Bracket) else { break };
        let inner = content.stream();
        attributes.push((TokenStream::from_iter(sign.into_iter().chain([content.into()])), inner));
    }
    attributes
}

/// Takes `pub`, `pub(crate)` and the like, if they come next.
pub fn take_visibility(tokens: &mut Tokens) -> TokenStream {
    let mut visibility = TokenStream::new();
    if let Some(word) = take_word(tokens, "pub") {
        visibility.extend([TokenTree::from(word)]);
        // In a tuple struct a type in parentheses may follow.
        let scope =
            tokens.next_if(|token| matches!(token, TokenTree::Group(group) if is_scope(group)));
        visibility.extend(scope);
    }
    visibility
}

fn is_scope(group: &Group) -> bool {
    let words: Vec<String> = group.stream().into_iter().map(|token| token.to_string()).collect();
    let first = words.first().map_or("", String::as_str);
    group.delimiter() == Delimiter::Parenthesis
        && (first == "in" || (words.len() == 1 && ["crate", "self", "super"].contains(&first)))
}

/// The parts of `stream` between commas outside of `<` and `>`; an empty last part is
/// left out.
pub fn split_by_commas(stream: TokenStream) -> Vec<TokenStream> {
    let (mut parts, mut part, mut angles) = (Vec::new(), Vec::new(), Angles::default());
    for token in stream {
        angles.pass(&token);
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' && angles.depth == 0 => {
                parts.push(TokenStream::from_iter(part.drain(..)));
            }
            _ => part.push(token),
        }
    }
    if !part.is_empty() {
        parts.push(part.into_iter().collect());
    }
    parts
}

/// How many angle brackets are open; the arrow `->` closes none.
#[derive(Debug, Default)]
pub struct Angles {
    pub depth: usize,
    after_dash: bool,
}

impl Angles {
    pub fn pass(&mut self, token: &TokenTree) {
        let sign = match token {
            TokenTree::Punct(punct) => Some((punct.as_char(), punct.spacing())),
            _ => None,
        };
        match sign {
            Some(('<', _)) => self.depth += 1,
            Some(('>', _)) if !self.after_dash => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.after_dash = sign == Some(('-', Spacing::Joint));
    }
}

/// The tokens before the first `sign` outside of `<` and `>`, and those behind it.
pub fn split_at_sign(stream: TokenStream, sign: char) -> (TokenStream, TokenStream) {
    let mut angles = Angles::default();
    let mut tokens = stream.into_iter();
    let mut before = TokenStream::new();
    for token in tokens.by_ref() {
        angles.pass(&token);
        if matches!(&token, TokenTree::Punct(punct) if is_alone(punct, sign)) && angles.depth == 0 {
            break;
        }
        before.extend([token]);
    }
    (before, tokens.collect())
}

/// Whether this is `sign`, and not the first character of a longer sign, such as `::`.
fn is_alone(punct: &Punct, sign: char) -> bool {
    punct.as_char() == sign && punct.spacing() == Spacing::Alone
}

/// The place of the first token, or else `other`.
pub fn place_of(stream: &TokenStream, other: Span) -> Span {
    stream.clone().into_iter().next().map_or(other, |token| token.span())
}
