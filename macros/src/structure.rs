//! The parts of a struct: its representation, its parameters and its fields.

use crate::tokens::{
    Angles, Fault, Tokens, is_sign, is_word, split_at_sign, split_by_commas, take_attributes,
    take_group, take_visibility, template,
};
use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// A struct, as a derive sees it.
#[derive(Debug)]
pub struct Structure {
    pub name: Ident,
    /// The words of its `#[repr(..)]`, and the arguments of its `#[plain(..)]`.
    pub repr: Vec<String>,
    pub arguments: TokenStream,
    pub parameters: Vec<Parameter>,
    /// The conditions of its `where`.
    pub conditions: TokenStream,
    pub fields: Vec<Field>,
}

/// A generic parameter.
#[derive(Debug)]
pub struct Parameter {
    pub name: Ident,
    /// As it is declared, without a default.
    pub declared: TokenStream,
}

/// A field: its name or number, and its type.
#[derive(Debug)]
pub struct Field {
    pub name: TokenStream,
    pub of: TokenStream,
}

impl Structure {
    /// Reads the struct after `derive`.
    pub fn read(item: TokenStream) -> Result<Self, Fault> {
        let mut tokens = item.into_iter().peekable();
        let (mut repr, mut arguments) = (Vec::new(), TokenStream::new());
        for (_, content) in take_attributes(&mut tokens) {
            let mut content = content.into_iter().peekable();
            let Some(TokenTree::Ident(word)) = content.next() else { continue };
            let Some(inside) = take_group(&mut content, Delimiter::Parenthesis) else { continue };
            match word.to_string().as_str() {
                "repr" => {
                    let words = split_by_commas(inside.stream());
                    repr.extend(words.iter().map(|word| word.to_string().replace(' ', "")));
                }
                "plain" => arguments = inside.stream(),
                _ => {}
            }
        }
        take_visibility(&mut tokens);
        let kind = tokens.next();
        let Some(TokenTree::Ident(name)) = tokens.next() else { return Err(no_struct()) };
        match kind.map(|kind| kind.to_string()).as_deref() {
            Some("struct") => {}
            Some("enum") => {
                let what = "an enum has bit patterns that are no value of it, so another rank could \
                            make an invalid one: send its number, and convert it where it arrives";
                return Err(Fault::new(name.span(), what));
            }
            Some("union") => {
                let what = "a union may have bytes that are not initialized: send a struct";
                return Err(Fault::new(name.span(), what));
            }
            _ => return Err(no_struct()),
        }
        let parameters = read_parameters(&mut tokens)?;
        let mut conditions = read_conditions(&mut tokens);
        let fields = match tokens.next() {
            Some(TokenTree::Group(group)) => read_fields(&group),
            _ => Vec::new(),
        };
        if conditions.is_empty() {
            conditions = read_conditions(&mut tokens);
        }
        Ok(Self { name, repr, arguments, parameters, conditions, fields })
    }
}

fn no_struct() -> Fault {
    Fault::new(Span::call_site(), "`Plain` is derived for a struct")
}

/// Reads `<..>`, if it comes next.
fn read_parameters(tokens: &mut Tokens) -> Result<Vec<Parameter>, Fault> {
    let (mut angles, mut inside) = (Angles::default(), Vec::new());
    if is_sign(tokens, '<') {
        for token in tokens.by_ref() {
            angles.pass(&token);
            if angles.depth == 0 {
                break;
            }
            inside.push(token);
        }
    }
    // The first token is the bracket itself.
    let inside = inside.into_iter().skip(1).collect();
    split_by_commas(inside).into_iter().map(read_parameter).collect()
}

fn read_parameter(whole: TokenStream) -> Result<Parameter, Fault> {
    let (declared, _) = split_at_sign(whole, '=');
    let mut tokens = declared.clone().into_iter().peekable();
    take_attributes(&mut tokens);
    let is_const = is_word(&mut tokens, "const");
    match if is_const { tokens.nth(1) } else { tokens.next() } {
        Some(TokenTree::Ident(name)) => Ok(Parameter { name, declared }),
        other => {
            let at = other.map_or(Span::call_site(), |token| token.span());
            let what = "a struct with a lifetime holds a reference, which means nothing to another \
                        rank";
            Err(Fault::new(at, what))
        }
    }
}

/// Reads the conditions of `where`, if it comes next; each ends with a comma.
fn read_conditions(tokens: &mut Tokens) -> TokenStream {
    let mut conditions = TokenStream::new();
    if is_word(tokens, "where") {
        tokens.next();
        let is_end = |token: &TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(punct) => punct.as_char() == ';',
            _ => false,
        };
        while let Some(token) = tokens.next_if(|token| !is_end(token)) {
            conditions.extend([token]);
        }
    }
    let ended = |one| template("__one,", Span::call_site(), &[("__one", one)]);
    split_by_commas(conditions).into_iter().map(ended).collect()
}

fn read_fields(group: &Group) -> Vec<Field> {
    let is_named = group.delimiter() == Delimiter::Brace;
    let read = |(number, whole): (usize, TokenStream)| {
        let mut tokens = whole.into_iter().peekable();
        take_attributes(&mut tokens);
        take_visibility(&mut tokens);
        let rest: TokenStream = tokens.collect();
        if is_named {
            let (name, of) = split_at_sign(rest, ':');
            return Field { name, of };
        }
        let mut number = proc_macro::Literal::usize_unsuffixed(number);
        number.set_span(crate::tokens::place_of(&rest, Span::call_site()));
        Field { name: TokenTree::from(number).into(), of: rest }
    };
    split_by_commas(group.stream()).into_iter().enumerate().map(read).collect()
}
