//! Checks that an enum in the interface of programs can grow without breaking them: each one
//! that the facade or the crate of threads exports is `#[non_exhaustive]`, or its comment (or
//! that of its file) says that it is exhaustive, and why.

use std::path::{Path, PathBuf};
use syn::{Attribute, Item, Visibility};
use tsumugi_layers::modules::{Crate, attributes, leaves};

/// The folders of the crates whose exports are checked.
const INTERFACES: [&str; 2] = [".", "ult"];
/// Those from which they export single enums, by the first word of the path.
const BELOW: [(&str, &str); 4] = [
    ("tsumugi_core", "core"),
    ("tsumugi_ult", "ult"),
    ("tsumugi_gas", "gas"),
    ("tsumugi_runtime", "runtime"),
];

#[test]
fn exported_enums_can_grow_or_say_why_not() {
    let below = BELOW.map(|(name, folder)| (name, read(folder)));
    let (mut open, mut closed, mut bad) = (0, 0, Vec::new());
    for folder in INTERFACES {
        let own = read(folder);
        for (module, path) in exports(&own) {
            let other = below.iter().find(|(name, _)| path[0] == *name);
            let (of, from, path) = match other {
                Some((_, of)) => (of, &[][..], &path[1..]),
                None => (&own, &module[..], &path[..]),
            };
            let (Some(file), Some(name)) = (of.file_of(from, path), path.last()) else { continue };
            let file = &of.files[file];
            match kind(&file.syntax, name) {
                None => {}
                Some(true) => open += 1,
                Some(false) if says_exhaustive(&file.syntax.attrs) => closed += 1,
                Some(false) if says_exhaustive(of_enum(&file.syntax, name)) => closed += 1,
                Some(false) => bad.push(format!("{}: {name}", file.path.display())),
            }
        }
    }
    assert!(bad.is_empty(), "neither `#[non_exhaustive]` nor with a reason:\n{}", bad.join("\n"));
    println!("{open} enums can grow, {closed} are exhaustive");
    assert!(open > 30 && closed > 3, "{open} and {closed} enums were found");
}

/// The paths that a crate exports under their names, and the modules that do it.
fn exports(of: &Crate) -> Vec<(Vec<String>, Vec<String>)> {
    let mut all = Vec::new();
    for file in &of.files {
        for item in &file.syntax.items {
            let Item::Use(item) = item else { continue };
            if matches!(item.vis, Visibility::Public(_)) && !is_hidden(&item.attrs) {
                leaves(&item.tree, &mut Vec::new(), &mut |path, _| {
                    all.push((file.module.clone(), path.to_vec()));
                });
            }
        }
    }
    all
}

/// Whether the public enum of this name is `#[non_exhaustive]`, if there is one.
fn kind(file: &syn::File, name: &str) -> Option<bool> {
    let attributes = of_enum(file, name);
    let is_open = attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"));
    is_enum(file, name).then_some(is_open)
}

fn is_enum(file: &syn::File, name: &str) -> bool {
    file.items.iter().any(|item| matches!(item, Item::Enum(item) if item.ident == name))
}

fn of_enum<'f>(file: &'f syn::File, name: &str) -> &'f [Attribute] {
    let is_it = |item: &&Item| matches!(item, Item::Enum(item) if item.ident == name);
    file.items.iter().find(is_it).map_or(&[], attributes)
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            list.path.is_ident("doc") && list.tokens.to_string().contains("hidden")
        }
        _ => false,
    })
}

fn says_exhaustive(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                text.value().contains("exhaustive")
            }
            _ => false,
        },
        _ => false,
    })
}

fn read(folder: &str) -> Crate {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    Crate::read(&root.join(Path::new(folder)).join("src/lib.rs"))
}
