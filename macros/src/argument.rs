//! The argument `crate = path`, for crates that re-export or rename `tsumugi`.

use crate::tokens::{Fault, is_sign, place_of, take_word};
use proc_macro::{Span, TokenStream};

/// The module in which the code of a macro finds what it uses: `default`, or the path of
/// `crate = path`, in the arguments.
pub fn module(arguments: TokenStream, default: &str) -> Result<TokenStream, Fault> {
    let at = place_of(&arguments, Span::call_site());
    let mut tokens = arguments.into_iter().peekable();
    if tokens.peek().is_none() {
        return Ok(default.parse().expect("a path"));
    }
    let is_it = take_word(&mut tokens, "crate").is_some() && is_sign(&mut tokens, '=');
    let path: TokenStream = tokens.skip(1).collect();
    if !is_it || path.is_empty() {
        return Err(Fault::new(at, "the only argument is `crate = path`, the path of `tsumugi`"));
    }
    Ok(path)
}
