//! The modules of a crate, as its files declare them, and the names in each.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Item, ItemMod, UseTree};

/// A crate's code, without its tests.
#[derive(Debug)]
pub struct Crate {
    /// The files; a file comes after the files of its child modules.
    pub files: Vec<File>,
    /// The modules by their paths; the path of the root is empty.
    pub modules: HashMap<Vec<String>, Module>,
}

/// A source file.
pub struct File {
    /// The path of the file.
    pub path: PathBuf,
    /// The path of the module that the file is.
    pub module: Vec<String>,
    /// The parsed content.
    pub syntax: syn::File,
}

/// A module: a file, or a part of one.
#[derive(Debug, Default)]
pub struct Module {
    /// The index of its file in [`Crate::files`].
    pub file: usize,
    /// The names that it defines.
    pub items: Vec<String>,
    /// Its child modules, in the order of their declarations.
    pub children: Vec<String>,
    /// The names that it imports, and their paths.
    pub imports: HashMap<String, Vec<String>>,
    /// The paths from which it imports all names.
    pub globs: Vec<Vec<String>>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({})", self.path.display())
    }
}

impl Crate {
    /// Reads a crate from its root file.
    pub fn read(root: &Path) -> Self {
        let mut this = Self { files: Vec::new(), modules: HashMap::new() };
        this.add(root, Vec::new(), root.parent().unwrap());
        let places: HashMap<Vec<String>, usize> =
            this.files.iter().enumerate().map(|(at, file)| (file.module.clone(), at)).collect();
        for (path, module) in &mut this.modules {
            // An inline module belongs to the file of the nearest module above it.
            let mut of = path.as_slice();
            while !places.contains_key(of) {
                of = &of[..of.len() - 1];
            }
            module.file = places[of];
        }
        this
    }

    fn add(&mut self, path: &Path, module: Vec<String>, folder: &Path) {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.add_items(&syntax.items, &module, folder);
        self.files.push(File { path: path.to_owned(), module, syntax });
    }

    /// Adds a module with these items. `folder` has the files of its child modules.
    fn add_items(&mut self, items: &[Item], module: &[String], folder: &Path) {
        let mut names = Module::default();
        for item in items {
            if is_of_tests(attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    names.children.push(name.clone());
                    let mut below = module.to_vec();
                    below.push(name);
                    self.add_child(child, below, folder);
                }
                Item::Use(item) => {
                    leaves(&item.tree, &mut Vec::new(), &mut |path, alias| match alias {
                        Some(alias) => _ = names.imports.insert(alias, path.to_vec()),
                        None => names.globs.push(path.to_vec()),
                    })
                }
                _ => names.items.extend(name_of(item)),
            }
        }
        self.modules.insert(module.to_vec(), names);
    }

    fn add_child(&mut self, child: &ItemMod, module: Vec<String>, folder: &Path) {
        let name = child.ident.to_string();
        if let Some((_, items)) = &child.content {
            return self.add_items(items, &module, &folder.join(&name));
        }
        let given = child.attrs.iter().find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
        let file = match given {
            Some(given) => folder.join(given),
            None if folder.join(format!("{name}.rs")).exists() => folder.join(format!("{name}.rs")),
            None => folder.join(&name).join("mod.rs"),
        };
        if file.exists() {
            self.add(&file, module, &folder.join(&name));
        }
    }

    /// The index of the file with the item that `path` names in module `from`; `None` for
    /// an item of another crate.
    pub fn file_of(&self, from: &[String], path: &[String]) -> Option<usize> {
        self.find(from, path, 0)
    }

    fn find(&self, from: &[String], path: &[String], depth: usize) -> Option<usize> {
        if depth > 16 {
            return None;
        }
        let mut at = from.to_vec();
        let mut rest = path;
        let mut is_first = true;
        loop {
            let module = self.modules.get(&at)?;
            let Some((name, behind)) = rest.split_first() else { return Some(module.file) };
            match name.as_str() {
                "crate" | "$crate" if is_first => at.clear(),
                "self" => {}
                "super" => _ = at.pop(),
                _ if module.children.contains(name) => at.push(name.clone()),
                _ if module.items.contains(name) => return Some(module.file),
                _ => {
                    if let Some(import) = module.imports.get(name) {
                        let whole: Vec<String> = import.iter().chain(behind).cloned().collect();
                        // An import of a name by itself is that of another crate.
                        return if is_first && import.first() == Some(name) {
                            None
                        } else {
                            self.find(&at, &whole, depth + 1)
                        };
                    }
                    return module.globs.iter().find_map(|glob| {
                        let whole: Vec<String> = glob.iter().chain(rest).cloned().collect();
                        self.find(&at, &whole, depth + 1)
                    });
                }
            }
            rest = behind;
            is_first = false;
        }
    }
}

/// Calls `found` for each name that a `use` imports, with its path; for a glob, without a
/// name.
pub fn leaves(
    tree: &UseTree,
    path: &mut Vec<String>,
    found: &mut impl FnMut(&[String], Option<String>),
) {
    match tree {
        UseTree::Path(part) => {
            path.push(part.ident.to_string());
            leaves(&part.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, path, found)),
        UseTree::Glob(_) => found(path, None),
        UseTree::Name(name) if name.ident == "self" => found(path, path.last().cloned()),
        UseTree::Name(name) => {
            path.push(name.ident.to_string());
            found(path, path.last().cloned());
            path.pop();
        }
        UseTree::Rename(name) => {
            let of_self = name.ident == "self";
            if !of_self {
                path.push(name.ident.to_string());
            }
            found(path, Some(name.rename.to_string()));
            if !of_self {
                path.pop();
            }
        }
    }
}

/// Whether an item with these attributes is compiled for tests only.
pub fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let text = list.tokens.to_string();
        list.path.is_ident("cfg") && text.contains("test") && !text.contains("not (test)")
    })
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Union(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Macro(it) => it.ident.as_ref()?,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        Item::Union(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
