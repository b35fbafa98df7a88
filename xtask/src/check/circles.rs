//! Checks that imports across folders form no circle, and that every Rust file belongs to a
//! package.
//!
//! A folder is a module with its submodules (`x.rs` and `x/*.rs`). Entries of the same folder are
//! compared. An entry imports another if one of its paths leads to it, even through re-exports. A
//! module and its own submodules may use each other.

use super::lines::{self, Source, folder_of_modules};
use super::links::from_root;
use super::sources::{self, Module, is_sign};
use lab::tools::failure::Failure;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of re-exports through which a path is followed.
const HOPS_MAX: usize = 8;

/// Fails if there is a circle.
pub fn check() -> Result<(), Failure> {
    let circles = circles(&sources::modules()?);
    for Circle { name, imports } in &circles {
        println!("a circle of imports: {name}\n  {}", imports.join("\n  "));
    }
    match circles.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("{count} circles of imports"))),
    }
}

/// Modules at the same level that all import each other, directly or through other modules.
struct Circle {
    /// The folder and the names of the modules: `wrote-cli: commands, output`.
    name: String,
    /// An example of each import between two of the modules: `file:line: from -> to`.
    imports: Vec<String>,
}

/// The imports between the modules of a folder, each with an example.
type Graph = BTreeMap<(String, String), String>;

/// Finds the circles in each crate.
fn circles(modules: &[Module]) -> Vec<Circle> {
    let names = Names::of(modules);
    let mut folders: BTreeMap<&[String], Graph> = BTreeMap::new();
    for module in modules {
        let from = &module.path;
        for Path { line, segments, .. } in paths(module.tokens.clone()) {
            let Some(to) = names.base(from, &segments).map(|path| names.module(path)) else {
                continue;
            };
            let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (from.get(common), to.get(common)) {
                let graph = folders.entry(&from[..common]).or_default();
                let example = format!("{}:{line}: {one} -> {other}", module.file);
                graph.entry((one.clone(), other.clone())).or_insert(example);
            }
        }
    }
    let circles = folders.iter().flat_map(|(folder, graph)| {
        let folder = folder.join("/");
        knots(graph).into_iter().map(move |knot| {
            let is_within =
                |(one, other): &(String, String)| knot.contains(one) && knot.contains(other);
            let within = graph.iter().filter(|(import, _)| is_within(import));
            let imports = within.map(|(_, example)| example.clone()).collect();
            let names: Vec<&str> = knot.iter().map(String::as_str).collect();
            Circle { name: format!("{folder}: {}", names.join(", ")), imports }
        })
    });
    circles.collect()
}

/// Returns the largest sets of names that all lead to each other in `graph`.
fn knots(graph: &Graph) -> BTreeSet<BTreeSet<String>> {
    let names: BTreeSet<&str> = graph.keys().map(|(from, _)| from.as_str()).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        names.iter().map(|name| (*name, reach(graph, name))).collect();
    let knot = |name: &&str| {
        let back = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(name));
        reached[name].iter().filter(back).map(|other| (*other).to_owned()).collect::<BTreeSet<_>>()
    };
    names.iter().map(knot).filter(|knot| !knot.is_empty()).collect()
}

/// Returns the names that can be reached from `begin` in `graph`.
fn reach<'a>(graph: &'a Graph, begin: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![begin];
    while let Some(name) = next.pop() {
        let after = graph.keys().filter(|(from, _)| from == name).map(|(_, to)| to.as_str());
        next.extend(after.filter(|to| reached.insert(*to)));
    }
    reached
}

/// The modules of a crate, and the names that they import.
struct Names<'a> {
    modules: BTreeSet<&'a [String]>,
    /// The path that a name in a module refers to.
    imported: BTreeMap<(&'a [String], String), Vec<String>>,
}

impl<'a> Names<'a> {
    fn of(modules: &'a [Module]) -> Names<'a> {
        let mut names = Names {
            modules: modules.iter().map(|module| &module.path[..]).collect(),
            imported: BTreeMap::new(),
        };
        for module in modules {
            for Path { segments, name, .. } in paths(module.tokens.clone()) {
                if let Some(name) = name
                    && let Some(path) = names.base(&module.path, &segments)
                {
                    names.imported.insert((&module.path, name), path);
                }
            }
        }
        names
    }

    /// Converts the `path`, as used in the module `here`, into a path from the crate's root;
    /// returns `None` if it leads to another crate.
    fn base(&self, here: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut base = here.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (base, rest) = (here[..1].to_vec(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while let [first, others @ ..] = rest
                    && first == "super"
                {
                    base.pop()?;
                    rest = others;
                }
            }
            first => {
                let own = [here, &[first.to_owned()]].concat();
                self.modules.contains(&own[..]).then_some(())?;
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// Returns the module to which `path`, starting at the crate's root, leads.
    fn module(&self, mut path: Vec<String>) -> Vec<String> {
        for _ in 0..HOPS_MAX {
            let depth = (0..=path.len()).rev().find(|end| self.modules.contains(&path[..*end]));
            let depth = depth.unwrap_or(0);
            let Some(name) = path.get(depth) else { return path };
            let Some(behind) = self.imported.get(&(&path[..depth], name.clone())) else {
                return path[..depth].to_vec();
            };
            path = [&behind[..], &path[depth + 1..]].concat();
        }
        path
    }
}

/// A path in a source file.
#[derive(Debug, PartialEq)]
struct Path {
    line: usize,
    segments: Vec<String>,
    /// The name under which a `use` imports the path.
    name: Option<String>,
}

/// Lists the paths of every `use`, and other paths that begin with `crate`, `super` or `self`.
fn paths(tokens: TokenStream) -> Vec<Path> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut paths = Vec::new();
    let mut rest = &tokens[..];
    while let [token, after @ ..] = rest {
        rest = after;
        match token {
            TokenTree::Group(group) => paths.extend(self::paths(group.stream())),
            TokenTree::Ident(word) if word == "use" => {
                let end = after.iter().position(|token| is_sign(token, ';')).unwrap_or(after.len());
                imports(&[], &after[..end], &mut paths);
                rest = &after[end..];
            }
            TokenTree::Ident(word) if word == "crate" || word == "super" || word == "self" => {
                let mut segments = vec![word.to_string()];
                while let [one, two, TokenTree::Ident(name), ..] = rest
                    && is_sign(one, ':')
                    && is_sign(two, ':')
                {
                    segments.push(name.to_string());
                    rest = &rest[3..];
                }
                let line = word.span().start().line;
                if segments.len() > 1 {
                    paths.push(Path { line, segments, name: None });
                }
            }
            _ => {}
        }
    }
    paths
}

/// Adds the paths of a tree of imports below `prefix`: `a::{b, c as d}`.
fn imports(prefix: &[String], tree: &[TokenTree], paths: &mut Vec<Path>) {
    for branch in tree.split(|token| is_sign(token, ',')) {
        let mut segments = prefix.to_vec();
        let mut name = None;
        let mut line = 0;
        let mut tokens = branch.iter();
        while let Some(token) = tokens.next() {
            line = token.span().start().line;
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    name = tokens.next().map(ToString::to_string);
                }
                // `a::{self}` means `a`.
                TokenTree::Ident(word) if word == "self" && !prefix.is_empty() => {}
                TokenTree::Ident(word) => segments.push(word.to_string()),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let tree: Vec<TokenTree> = group.stream().into_iter().collect();
                    imports(&segments, &tree, paths);
                    segments.clear();
                }
                _ => {}
            }
        }
        if let Some(last) = segments.last() {
            let name = name.or_else(|| Some(last.clone()));
            paths.push(Path { line, segments, name });
        }
    }
}

/// The programs that are built without cargo, and belong to no package.
const ALONE: [&str; 2] = ["langs/rust/main.rs", "langs/wrote/program.rs"];

/// Fails if a Rust file belongs to no package, because cargo does not find it and no `mod` declares
/// it.
pub fn check_reached() -> Result<(), Failure> {
    let begins = |file: &str| begins_a_target(file) || ALONE.contains(&file);
    let sources = lines::sources(&["*.rs"])?;
    let mut declared = BTreeSet::new();
    for Source { file, text, .. } in &sources {
        let folder = match begins(file) {
            true => file.rsplit_once('/').map_or("", |(folder, _)| folder),
            false => folder_of_modules(file),
        };
        let words = text.lines().filter_map(|line| line.strip_suffix(';')?.rsplit_once("mod "));
        declared.extend(words.map(|(_, name)| format!("{folder}/{name}")));
        let paths = text.split("path = \"").skip(1).filter_map(|rest| rest.split_once('"'));
        declared.extend(paths.map(|(path, _)| from_root(file, without_ending(path))));
    }
    let is_missed = |file: &&str| !begins(file) && !declared.contains(without_ending(file));
    let missed: Vec<&str> = sources.iter().map(|source| &*source.file).filter(is_missed).collect();
    missed.iter().for_each(|file| println!("{file}: no `mod` leads to it"));
    match missed.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("no package reaches {count} files"))),
    }
}

/// Returns the path of a module without the suffix of its file.
fn without_ending(file: &str) -> &str {
    file.trim_end_matches(".rs").trim_end_matches("/mod")
}

/// Returns whether cargo automatically finds a program, a library or a test in this file.
fn begins_a_target(file: &str) -> bool {
    let is_in_src = file.contains("/src/");
    match file.split('/').collect::<Vec<_>>()[..] {
        [.., "src", "lib.rs" | "main.rs"] | [.., "src", "bin", _] => true,
        [.., "build.rs" | "main.rs"] | [.., "tests" | "examples" | "benches", _] => !is_in_src,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, source: &str) -> Module {
        let rooms = path.split('/').filter(|name| !name.is_empty());
        let path = ["x"].into_iter().chain(rooms).map(str::to_owned).collect();
        let tokens = source.parse().expect("tokens");
        Module { file: "x.rs".to_owned(), path, tokens }
    }

    fn names(modules: &[(&str, &str)]) -> Vec<String> {
        let modules: Vec<Module> =
            modules.iter().map(|(path, source)| module(path, source)).collect();
        circles(&modules).into_iter().map(|circle| circle.name).collect()
    }

    #[test]
    fn two_folders_that_import_each_other_are_a_circle_and_their_files_are_named() {
        let modules = [
            module("", "mod a; mod b;"),
            module("a", "mod room;"),
            module("a/room", "use crate::b::{self, B};"),
            module("b", "fn f() {\n    super::a::f::<u8>()\n}"),
        ];
        let [circle] = &circles(&modules)[..] else { panic!("one circle") };
        assert_eq!(circle.name, "x: a, b");
        assert_eq!(circle.imports, ["x.rs:1: a -> b", "x.rs:2: b -> a"]);
    }

    #[test]
    fn a_circle_of_three_is_one_and_what_leads_to_it_is_not_in_it() {
        let found = names(&[
            ("a", "use crate::b;"),
            ("b", "use crate::c::C as D;"),
            ("c", "use crate::{a::A, other};"),
            ("before", "use crate::a;"),
            ("other", ""),
        ]);
        assert_eq!(found, ["x: a, b, c"]);
    }

    #[test]
    fn a_door_and_its_rooms_may_use_each_other_and_rooms_may_not() {
        let found = names(&[("a", "use one::One;"), ("a/one", "use super::A;"), ("b", "")]);
        assert_eq!(found, [""; 0]);
        let found =
            names(&[("a", ""), ("a/one", "use super::two::Two;"), ("a/two", "use crate::a::one;")]);
        assert_eq!(found, ["x/a: one, two"]);
    }

    #[test]
    fn a_name_that_the_door_brings_in_leads_to_its_room() {
        let found = names(&[
            ("a", "pub use self::one::{One, Other as Another};"),
            ("a/one", "use super::two::Two;"),
            ("a/two", "use super::Another;"),
        ]);
        assert_eq!(found, ["x/a: one, two"]);
    }

    #[test]
    fn other_crates_are_no_folders() {
        let found = names(&[("a", "use std::b; use b::B;"), ("b", "use a::A; use ::a::A;")]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_target_is_a_file_where_cargo_looks_for_one() {
        let begins = ["a/src/lib.rs", "a/src/bin/tool.rs", "a/tests/it/main.rs", "a/tests/one.rs"];
        assert!(begins.into_iter().all(begins_a_target));
        let rooms = ["a/src/room.rs", "a/tests/it/other.rs", "a/src/room/tests/one.rs"];
        assert!(!rooms.into_iter().any(begins_a_target));
    }
}
