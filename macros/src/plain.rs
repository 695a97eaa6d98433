//! `#[derive(Plain)]`.
//!
//! The code that it makes proves, by the compiler, what the unsafe trait asks for:
//!
//! - Each field is `Plain`: it has no pointer, no padding and no invalid value.
//! - The fields lie one behind the other (`repr`), and their sizes add up to the size of
//!   the struct: so there is no padding between them.
//!
//! The sum is a constant, which cannot depend on generic parameters. The fields of a
//! generic struct must therefore have one type, or be arrays of it: such fields have one
//! alignment, and the size of each is a multiple of it. A packed or transparent struct
//! never has padding.
//!
//! The code has the mark of a derive, so it compiles in a crate with
//! `#![forbid(unsafe_code)]`.

use crate::argument;
use crate::structure::{Field, Structure};
use crate::tokens::{Fault, place_of, split_at_sign, template};
use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

/// The implementation of `Plain` for a struct, and its proof.
pub fn expand(item: TokenStream) -> Result<TokenStream, Fault> {
    let item = Structure::read(item)?;
    let module = argument::module(item.arguments.clone(), "::tsumugi")?;
    let has = |word: &str| item.repr.iter().any(|found| found == word);
    if !has("C") && !has("transparent") {
        let what = "the compiler may order the fields of this struct as it likes, and differently in \
                    another program: add `#[repr(C)]` or `#[repr(transparent)]`";
        return Err(Fault::new(item.name.span(), what));
    }
    let has_padding = !has("transparent") && !has("packed") && !has("packed(1)");
    let proof = if item.parameters.is_empty() {
        sum(&item, &module)
    } else if has_padding {
        if let Some(word) = item.repr.iter().find(|word| *word != "C") {
            let what = format!("a generic struct with `repr({word})` may have padding");
            return Err(Fault::new(item.name.span(), what));
        }
        one_type(&item)?
    } else {
        TokenStream::new()
    };
    let holes = [
        ("__proof", proof),
        ("__declared", declared(&item)),
        ("__struct", named(&item)),
        ("__conditions", conditions(&item, &module)),
        ("__module", module),
    ];
    // SAFETY of the code: see above.
    let code = "#[automatically_derived]
        unsafe impl __declared __module::Plain for __struct where __conditions {}
        __proof";
    Ok(template(code, Span::call_site(), &holes))
}

/// `<T: Bound, const N: usize>`
fn declared(item: &Structure) -> TokenStream {
    angles(item.parameters.iter().map(|parameter| parameter.declared.clone()))
}

/// `Name<T, N>`
fn named(item: &Structure) -> TokenStream {
    let name = TokenTree::from(item.name.clone());
    let names = item.parameters.iter().map(|parameter| TokenTree::from(parameter.name.clone()));
    TokenStream::from_iter([name.into(), angles(names.map(TokenStream::from))])
}

fn angles(parts: impl Iterator<Item = TokenStream>) -> TokenStream {
    let listed: Vec<TokenStream> =
        parts.map(|part| template("__part,", Span::call_site(), &[("__part", part)])).collect();
    let inside = ("__listed", listed.iter().cloned().collect());
    let code = if listed.is_empty() { "" } else { "<__listed>" };
    template(code, Span::call_site(), &[inside])
}

/// The conditions of the struct and of the trait, and that all fields are `Plain`.
fn conditions(item: &Structure, module: &TokenStream) -> TokenStream {
    let mut all = item.conditions.clone();
    if item.parameters.is_empty() {
        // `sum` asks for it: a condition without a parameter is reported as trivial.
        return all;
    }
    // Not the parameters: `Id<T>(u64, PhantomData<T>)` is plain without a plain `T`.
    let code =
        "Self: ::core::marker::Copy + ::core::marker::Send + ::core::marker::Sync + 'static,";
    all.extend(template(code, Span::call_site(), &[]));
    for field in &item.fields {
        let at = place_of(&field.of, Span::call_site());
        let holes = [("__of", field.of.clone()), ("__module", module.clone())];
        all.extend(template("__of: __module::Plain,", at, &holes));
    }
    all
}

/// A constant that compares the size of the struct with the sum of its fields' sizes.
fn sum(item: &Structure, module: &TokenStream) -> TokenStream {
    let mut sizes = TokenStream::new();
    for field in &item.fields {
        let plus = if sizes.is_empty() { "bytes::<__of>()" } else { "+ bytes::<__of>()" };
        let at = made_at(place_of(&field.of, Span::call_site()));
        sizes.extend(template(plus, at, &[("__of", field.of.clone())]));
    }
    if sizes.is_empty() {
        sizes = template("0", Span::call_site(), &[]);
    }
    let what = format!(
        "`{}` has padding, whose bytes are not initialized: order its fields by falling size, or \
         add fields that fill the gaps",
        item.name
    );
    let what = TokenTree::from(proc_macro::Literal::string(&what));
    let holes = [
        ("__struct", named(item)),
        ("__sizes", sizes),
        ("__what", what.into()),
        ("__module", module.clone()),
    ];
    let code = "const _: () = {
        const fn bytes<T: __module::Plain>() -> usize { ::core::mem::size_of::<T>() }
        ::core::assert!(::core::mem::size_of::<__struct>() == __sizes, __what);
    };";
    template(code, made_at(item.name.span()), &holes)
}

/// This place, with the mark of code that a derive has made: such code gets no lints.
fn made_at(place: Span) -> Span {
    Span::call_site().located_at(place)
}

/// A function that compiles only if all fields have the type of the first one, or are
/// arrays of it.
fn one_type(item: &Structure) -> Result<TokenStream, Fault> {
    let Some(first) = item.fields.first() else { return Ok(TokenStream::new()) };
    let of = element(&first.of);
    let mut pointers = TokenStream::new();
    for field in &item.fields {
        let found = element(&field.of);
        if found.to_string() != of.to_string() {
            let what = format!(
                "the size of a generic struct is not known here, so whether it has padding is not \
                 known either: all fields must have one type (`{of}`) or be arrays of it, or the \
                 struct must be `#[repr(transparent)]` or `#[repr(C, packed)]`"
            );
            return Err(Fault::new(place_of(&field.of, item.name.span()), what));
        }
        let holes = [("__name", field.name.clone()), ("__of", with_element(field, &of))];
        // A raw pointer is converted to a pointer to another type only by a cast.
        let code = "let _: *const __of = &raw const value.__name;";
        pointers.extend(template(code, Span::mixed_site(), &holes));
    }
    let holes = [
        ("__declared", declared(item)),
        ("__struct", named(item)),
        ("__conditions", item.conditions.clone()),
        ("__pointers", pointers),
    ];
    let code = "const _: () = {
        #[allow(dead_code)]
        fn one_type __declared (value: &__struct) where __conditions { __pointers }
    };";
    Ok(template(code, Span::mixed_site(), &holes))
}

/// The type of the elements of an array of arrays, or the type itself.
fn element(of: &TokenStream) -> TokenStream {
    match array(of) {
        Some((inner, _)) => element(&inner),
        None => of.clone(),
    }
}

/// The type of `field` with `of` in the place of its own element type.
fn with_element(field: &Field, of: &TokenStream) -> TokenStream {
    fn rebuilt(whole: &TokenStream, of: &TokenStream) -> TokenStream {
        let Some((inner, len)) = array(whole) else { return of.clone() };
        let holes = [("__inner", rebuilt(&inner, of)), ("__len", len)];
        template("[__inner; __len]", place_of(whole, Span::call_site()), &holes)
    }
    rebuilt(&field.of, of)
}

/// The element type and the length of an array type.
fn array(of: &TokenStream) -> Option<(TokenStream, TokenStream)> {
    let mut tokens = of.clone().into_iter();
    let (Some(TokenTree::Group(group)), None) = (tokens.next(), tokens.next()) else { return None };
    match group.delimiter() {
        Delimiter::Bracket => {
            let (inner, len) = split_at_sign(group.stream(), ';');
            (!len.is_empty()).then_some((inner, len))
        }
        // A type that another macro has passed on.
        Delimiter::None => array(&Group::stream(&group)),
        _ => None,
    }
}
