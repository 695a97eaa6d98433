//! `#[tsumugi::main]`.

use crate::argument;
use crate::tokens::{
    Fault, Tokens, is_sign, split_by_commas, take_attributes, take_group, take_visibility,
    take_word, template,
};
use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

/// A `main` that calls the function `item` as a rank.
pub fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Fault> {
    let module = argument::module(arguments, "::tsumugi")?;
    let mut tokens = item.into_iter().peekable();
    let attributes = take_attributes(&mut tokens).into_iter().map(|(whole, _)| whole);
    let attributes: TokenStream = attributes.collect();
    let visibility = take_visibility(&mut tokens);
    let place = refuse_qualifiers(&mut tokens)?;
    let Some(name) = tokens.next() else { return Err(no_function(place)) };
    if name.to_string() != "main" {
        let what = "`#[tsumugi::main]` belongs to the function `main`; other functions call \
                    `tsumugi::run`";
        return Err(Fault::new(name.span(), what));
    }
    if is_sign(&mut tokens, '<') {
        return Err(Fault::new(name.span(), "`main` has no generic parameters"));
    }
    let Some(parameters) = take_group(&mut tokens, Delimiter::Parenthesis) else {
        return Err(no_function(name.span()));
    };
    match split_by_commas(parameters.stream()).len() {
        1 => {}
        count => {
            let what = format!(
                "`main` has one argument, its rank: `fn main(rt: &tsumugi::Runtime)`; this one has \
                 {count}"
            );
            return Err(Fault::new(parameters.span(), what));
        }
    }
    let (mut returned, mut body) = (TokenStream::new(), None);
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => body = Some(group),
            TokenTree::Ident(word) if word.to_string() == "where" => {
                return Err(Fault::new(word.span(), "`main` has no generic parameters"));
            }
            token => returned.extend([token]),
        }
    }
    let Some(body) = body else { return Err(no_function(name.span())) };
    // Errors about the type that is returned are reported where it is written.
    let at = returned.clone().into_iter().nth(2).map_or(name.span(), |token| token.span());
    let module = module.into_iter().map(|mut token| {
        token.set_span(at);
        token
    });
    let mut inner = name.clone();
    inner.set_span(at);
    let call = [("__module", module.collect()), ("__main", inner.into())];
    let holes = [
        ("__attributes", attributes),
        ("__visibility", visibility),
        ("__main", TokenStream::from(name)),
        ("__parameters", TokenTree::from(parameters).into()),
        ("__returned", returned),
        ("__body", TokenTree::from(body).into()),
        ("__call", template("__module::entry::main(__main)", at, &call)),
    ];
    let code = "__attributes __visibility fn __main() -> ::std::process::ExitCode {
        fn __main __parameters __returned __body
        __call
    }";
    Ok(template(code, Span::call_site(), &holes))
}

/// Takes `fn` and what stands before it; returns the place of `fn`.
fn refuse_qualifiers(tokens: &mut Tokens) -> Result<Span, Fault> {
    if let Some(word) = take_word(tokens, "async") {
        let what = "`main` is not async: it runs on a user-level thread, and calls that block put \
                    only this thread to sleep";
        return Err(Fault::new(word.span(), what));
    }
    for qualifier in ["const", "unsafe", "extern"] {
        if let Some(word) = take_word(tokens, qualifier) {
            return Err(Fault::new(word.span(), format!("`main` cannot be `{qualifier}`")));
        }
    }
    let place = tokens.peek().map_or(Span::call_site(), TokenTree::span);
    take_word(tokens, "fn").map(|word| word.span()).ok_or_else(|| no_function(place))
}

fn no_function(at: Span) -> Fault {
    Fault::new(at, "`#[tsumugi::main]` stands before `fn main(rt: &tsumugi::Runtime)`")
}
