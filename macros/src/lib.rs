//! The procedural macros of `tsumugi`, which re-exports them: programs use
//! `#[tsumugi::main]` and `#[derive(tsumugi::Plain)]`.
//!
//! The crate reads tokens itself and depends on nothing: a parser of all of Rust would
//! take longer to compile than the rest of a small program's build scripts together, and
//! these macros need the head of one function and the fields of one struct.
//!
//! | module | what it is |
//! |---|---|
//! | `tokens` | reading tokens, templates, errors with a place |
//! | `argument` | the argument `crate = ..` of both macros |
//! | `entry` | `#[tsumugi::main]` |
//! | `structure` | the parts of a struct |
//! | `plain` | `#[derive(Plain)]` |

mod tokens;
mod argument;
mod entry;
mod structure;
mod plain;

use proc_macro::TokenStream;

/// Makes a function of a rank the `main` of the program; see `tsumugi::main`.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(arguments, item.clone()).unwrap_or_else(|fault| {
        // The item stays, so that the compiler reports its other errors, too.
        TokenStream::from_iter([fault.into_tokens(), item])
    })
}

/// Proves that a struct may cross between ranks byte by byte; see `tsumugi::Plain`.
///
/// The attribute `#[plain(crate = path)]` names the module that has the trait `Plain`; the
/// default is `::tsumugi`.
#[proc_macro_derive(Plain, attributes(plain))]
pub fn plain(item: TokenStream) -> TokenStream {
    plain::expand(item).unwrap_or_else(tokens::Fault::into_tokens)
}
