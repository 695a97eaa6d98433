//! Arrows between the files of a crate: a path that names an item of another file.

use crate::modules::{Crate, attributes, is_of_tests, leaves};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Arrows from file to file (indices of [`Crate::files`]), each with the line and the path
/// of its first occurrence.
pub type Arrows = BTreeMap<(usize, usize), (usize, String)>;

/// The arrows of a crate.
pub fn arrows(of: &Crate) -> Arrows {
    let mut arrows = Arrows::new();
    for (index, file) in of.files.iter().enumerate() {
        let mut walk = Walk { of, from: index, module: file.module.clone(), arrows: &mut arrows };
        file.syntax.items.iter().for_each(|item| walk.visit_item(item));
    }
    arrows
}

struct Walk<'a> {
    of: &'a Crate,
    from: usize,
    module: Vec<String>,
    arrows: &'a mut Arrows,
}

impl Walk<'_> {
    fn note(&mut self, path: &[String], line: usize) {
        if let Some(to) = self.of.file_of(&self.module, path)
            && to != self.from
        {
            self.arrows.entry((self.from, to)).or_insert_with(|| (line, path.join("::")));
        }
    }

    /// Notes the paths in the arguments of a macro, which are tokens and not yet syntax.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut line) = (0, 0);
        let end = |this: &mut Self, path: &mut Vec<String>, line| {
            if path.len() > 1 {
                this.note(path, line);
            }
            path.clear();
        };
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        end(self, &mut path, line);
                    }
                    line = ident.span().start().line;
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    end(self, &mut path, line);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    end(self, &mut path, line);
                    colons = 0;
                }
            }
        }
        end(self, &mut path, line);
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_of_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // `mod child;` is not an arrow.
        if let Some((_, items)) = &item.content {
            self.module.push(item.ident.to_string());
            items.iter().for_each(|item| self.visit_item(item));
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let line = item.span().start().line;
        leaves(&item.tree, &mut Vec::new(), &mut |path, _| self.note(path, line));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if names.len() > 1 {
            self.note(&names, path.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}

/// The files that are in cycles of arrows: groups of files that reach each other.
pub fn cycles(of: &Crate, arrows: &Arrows) -> Vec<Vec<usize>> {
    let count = of.files.len();
    let mut reaches = vec![vec![false; count]; count];
    arrows.keys().for_each(|(from, to)| reaches[*from][*to] = true);
    for by in 0..count {
        let behind = reaches[by].clone();
        for from in reaches.iter_mut().filter(|from| from[by]) {
            from.iter_mut().zip(&behind).for_each(|(to, also)| *to |= also);
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for file in (0..count).filter(|file| reaches[*file][*file]) {
        let same = |group: &&mut Vec<usize>| reaches[file][group[0]] && reaches[group[0]][file];
        match groups.iter_mut().find(same) {
            Some(group) => group.push(file),
            None => groups.push(vec![file]),
        }
    }
    groups
}
