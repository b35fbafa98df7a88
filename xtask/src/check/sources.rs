//! Rust sources as tokens: the modules of a crate, and string literals.

use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::root;
use proc_macro2::{Delimiter, Group, Ident, Literal, TokenStream, TokenTree};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// A file of a crate, or the body of an inline module.
pub struct Module {
    /// The file, from the repository's root.
    pub file: String,
    /// Names from the crate's root, which has none: `["commands", "log"]`.
    pub path: Vec<String>,
    /// Whether only tests are built with it.
    pub is_test: bool,
    /// The items, without test-only ones and inline modules.
    pub tokens: TokenStream,
}

/// A string literal.
pub struct Text {
    /// The line of its start.
    pub line: usize,
    pub value: String,
}

thread_local! {
    /// Crates that were read, since the next check needs most of them again.
    static READ: RefCell<BTreeMap<String, Rc<[Module]>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Reads the crate whose first file is `file`, with every module that a `mod` declares. A `mod` in
/// a macro does not count, since rustfmt does not see it either.
pub fn modules(file: &str) -> Result<Rc<[Module]>, Failure> {
    if let Some(modules) = READ.with_borrow(|read| read.get(file).cloned()) {
        return Ok(modules);
    }
    let mut modules = Vec::new();
    let path = PathBuf::from(file);
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    read(Place { file: path, folder, path: Vec::new(), is_test: false }, &mut modules)?;
    let modules: Rc<[Module]> = modules.into();
    READ.with_borrow_mut(|read| read.insert(file.to_owned(), modules.clone()));
    Ok(modules)
}

/// A module to be read: its file, and the folder of its modules.
struct Place {
    file: PathBuf,
    folder: PathBuf,
    path: Vec<String>,
    is_test: bool,
}

fn read(place: Place, modules: &mut Vec<Module>) -> Result<(), Failure> {
    let file = place.file.display().to_string();
    let text = std::fs::read_to_string(root().join(&place.file)).tried(&file)?;
    enter(place, tokens(&text).tried(&file)?, modules)
}

/// Adds the module with `items`, and its modules.
fn enter(place: Place, items: TokenStream, modules: &mut Vec<Module>) -> Result<(), Failure> {
    let Items { mods, rest, is_test } = Items::of(items);
    let Place { file, folder, path, .. } = place;
    let is_test = place.is_test || is_test;
    let name = file.display().to_string();
    modules.push(Module { file: name, path: path.clone(), is_test, tokens: rest });
    for Mod { name, files, is_test: is_test_mod, body } in mods {
        let path = [&path[..], std::slice::from_ref(&name)].concat();
        let is_test = is_test || is_test_mod;
        let own_folder = folder.join(&name);
        if let Some(body) = body {
            let place = Place { file: file.clone(), folder: own_folder, path, is_test };
            enter(place, body, modules)?;
            continue;
        }
        let named = files.iter().map(|named| {
            let file = plain_path(&folder_of(&file).join(named));
            (folder_of(&file).to_owned(), file)
        });
        let own = [own_folder.with_extension("rs"), own_folder.join("mod.rs")];
        let own = own.map(|file| (own_folder.clone(), file));
        for (folder, file) in own.into_iter().chain(named) {
            if root().join(&file).is_file() {
                read(Place { file, folder, path: path.clone(), is_test }, modules)?;
            }
        }
    }
    Ok(())
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// Returns `path` without `x/..`.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

/// Reads the tokens of a file.
fn tokens(text: &str) -> Result<TokenStream, String> {
    text.parse().map_err(|error: proc_macro2::LexError| error.to_string())
}

#[derive(Default)]
struct Items {
    mods: Vec<Mod>,
    /// The items that are neither modules nor only for tests.
    rest: TokenStream,
    /// Whether `#![cfg(test)]` stands at the top.
    is_test: bool,
}

/// A `mod`: its `body`, or the files that a `path` names, beside the file of its name.
struct Mod {
    name: String,
    files: Vec<String>,
    is_test: bool,
    body: Option<TokenStream>,
}

impl Items {
    fn of(stream: TokenStream) -> Items {
        let mut items = Items::default();
        let mut tokens = stream.into_iter().peekable();
        // The attributes of the item that follows.
        let mut attributes: Vec<Group> = Vec::new();
        while let Some(token) = tokens.next() {
            if is_sign(&token, '#') {
                let is_inner = tokens.next_if(|token| is_sign(token, '!')).is_some();
                if let Some(TokenTree::Group(group)) = tokens.next() {
                    items.is_test |= is_inner && is_for_tests(&group);
                    attributes.push(group);
                }
                continue;
            }
            let is_test = attributes.iter().any(is_for_tests);
            if is_word(&token, "mod")
                && let Some(TokenTree::Ident(name)) = tokens.next_if(is_ident)
            {
                let files = files_of(&attributes);
                let body = match tokens.next() {
                    Some(TokenTree::Group(group)) => Some(group.stream()),
                    _ => None,
                };
                items.mods.push(Mod { name: plain(&name), files, is_test, body });
                attributes.clear();
                continue;
            }
            // Words such as `pub` precede the `mod` that the attributes belong to.
            if is_word(&token, "pub") {
                tokens.next_if(|token| is_group(token, Delimiter::Parenthesis));
                continue;
            }
            let mut item = vec![token];
            while !item.last().is_some_and(ends_item) {
                let Some(token) = tokens.next() else { break };
                item.push(token);
            }
            if !is_test {
                items.rest.extend(attributes.iter().flat_map(attribute));
                items.rest.extend(item.into_iter().map(without_tests));
            }
            attributes.clear();
        }
        items
    }
}

fn attribute(group: &Group) -> [TokenTree; 2] {
    let sign = proc_macro2::Punct::new('#', proc_macro2::Spacing::Alone);
    [sign.into(), group.clone().into()]
}

/// Removes the parts that only tests are built with from the groups within an item.
fn without_tests(token: TokenTree) -> TokenTree {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            Group::new(Delimiter::Brace, Items::of(group.stream()).rest).into()
        }
        other => other,
    }
}

fn ends_item(token: &TokenTree) -> bool {
    is_sign(token, ';') || is_sign(token, ',') || is_group(token, Delimiter::Brace)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_ident(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(_))
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

/// Returns a name without `r#`.
fn plain(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

/// Returns whether an attribute is `cfg(test)` or `cfg(all(test, ..))`.
fn is_for_tests(attribute: &Group) -> bool {
    let is_test = |stream: TokenStream| {
        let words: Vec<TokenTree> = stream.into_iter().collect();
        match &words[..] {
            [only] => is_word(only, "test"),
            [all, TokenTree::Group(group)] if is_word(all, "all") => {
                group.stream().into_iter().any(|token| is_word(&token, "test"))
            }
            _ => false,
        }
    };
    match &attribute.stream().into_iter().collect::<Vec<_>>()[..] {
        [cfg, TokenTree::Group(group)] => is_word(cfg, "cfg") && is_test(group.stream()),
        _ => false,
    }
}

/// Returns the files that the attributes name by `path = ".."`, or by a `cfg_attr` with one.
fn files_of(attributes: &[Group]) -> Vec<String> {
    fn named(tokens: TokenStream) -> Option<String> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        match &tokens[..] {
            [.., path, sign, TokenTree::Literal(file)]
                if is_word(path, "path") && is_sign(sign, '=') =>
            {
                value(file)
            }
            [cfg_attr, TokenTree::Group(group)] if is_word(cfg_attr, "cfg_attr") => {
                named(group.stream())
            }
            _ => None,
        }
    }
    attributes.iter().filter_map(|attribute| named(attribute.stream())).collect()
}

/// Lists the string literals in `tokens`, and the doc comments that clap turns into help texts.
pub fn texts(tokens: TokenStream) -> Vec<Text> {
    let mut texts = Vec::new();
    add_texts(tokens, false, &mut texts);
    texts
}

/// Adds the texts in `tokens`; doc comments only where they are help texts.
fn add_texts(tokens: TokenStream, is_help: bool, texts: &mut Vec<Text>) {
    let mut tokens = tokens.into_iter().peekable();
    // The attributes of the item that follows.
    let mut attributes: Vec<Group> = Vec::new();
    let mut is_help_item = is_help;
    while let Some(token) = tokens.next() {
        if is_sign(&token, '#') {
            tokens.next_if(|token| is_sign(token, '!'));
            if let Some(TokenTree::Group(group)) =
                tokens.next_if(|token| is_group(token, Delimiter::Bracket))
            {
                attributes.push(group);
            }
            continue;
        }
        if !attributes.is_empty() {
            is_help_item = is_help || attributes.iter().any(derives_clap);
            add_attributes(&attributes, is_help_item, texts);
            attributes.clear();
        }
        match &token {
            TokenTree::Group(group) => add_texts(group.stream(), is_help_item, texts),
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                texts.extend(value(literal).map(|value| Text { line, value }));
            }
            _ => {}
        }
        if ends_item(&token) {
            is_help_item = is_help;
        }
    }
}

/// Adds the texts of the attributes of an item; its doc comment is one text.
fn add_attributes(attributes: &[Group], is_help: bool, texts: &mut Vec<Text>) {
    let mut doc: Option<Text> = None;
    for attribute in attributes {
        let is_doc =
            attribute.stream().into_iter().next().is_some_and(|token| is_word(&token, "doc"));
        let mut found = Vec::new();
        add_texts(attribute.stream(), false, &mut found);
        match (is_doc, &mut doc) {
            (false, _) => texts.append(&mut found),
            (true, Some(doc)) => found.iter().for_each(|line| doc.value += &line.value),
            (true, None) => doc = found.pop(),
        }
    }
    texts.extend(doc.filter(|_| is_help));
}

/// Returns whether clap reads the doc comments of an item with this attribute.
fn derives_clap(attribute: &Group) -> bool {
    const TRAITS: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];
    fn names(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Group(group) => names(group.stream()),
            TokenTree::Ident(ident) => TRAITS.iter().any(|name| ident == name),
            _ => false,
        })
    }
    let first = attribute.stream().into_iter().next();
    let is_derive = |token: TokenTree| is_word(&token, "derive") || is_word(&token, "cfg_attr");
    first.is_some_and(is_derive) && names(attribute.stream())
}

/// Returns the value of a string literal; `None` for other literals, including byte strings.
fn value(literal: &Literal) -> Option<String> {
    let source = literal.to_string();
    if let Some(raw) = source.strip_prefix('r') {
        let text = raw.trim_matches('#');
        return text.strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
    }
    Some(unescaped(source.strip_prefix('"')?.strip_suffix('"')?))
}

/// Returns a literal's text with its escapes replaced.
fn unescaped(source: &str) -> String {
    let mut value = String::new();
    let mut rest = source.chars();
    while let Some(letter) = rest.next() {
        if letter != '\\' {
            value.push(letter);
            continue;
        }
        match rest.next() {
            // A continued line.
            Some('\n') => rest = rest.as_str().trim_start().chars(),
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some('0') => value.push('\0'),
            Some('x') => value.extend(coded(&rest.by_ref().take(2).collect::<String>())),
            Some('u') => {
                let code: String = rest.by_ref().take_while(|letter| *letter != '}').collect();
                value.extend(coded(code.trim_start_matches('{')));
            }
            Some(other) => value.push(other),
            None => {}
        }
    }
    value
}

fn coded(hexadecimal: &str) -> Option<char> {
    u32::from_str_radix(&hexadecimal.replace('_', ""), 16).ok().and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(usize, String)> {
        let Items { rest, .. } = Items::of(tokens(source).expect("tokens"));
        texts(rest).into_iter().map(|Text { line, value }| (line, value)).collect()
    }

    fn values(source: &str) -> Vec<String> {
        found(source).into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn a_text_has_the_line_in_which_it_begins_and_no_escapes() {
        let source = "fn f() {\n    g(\"a\\tb \\\n       c\\n\\x20d\\u{e9}\\\\\", \"\\\"\");\n}\n";
        let expected = [(2, "a\tb c\n d\u{e9}\\".to_owned()), (3, "\"".to_owned())];
        assert_eq!(found(source), expected);
    }

    #[test]
    fn a_raw_string_is_a_text_and_bytes_are_none() {
        let source =
            r###"const A: &str = r#"a "b" \n"#; const B: &[u8] = b"c"; const C: &CStr = c"d";"###;
        assert_eq!(values(source), [r#"a "b" \n"#]);
    }

    #[test]
    fn letters_lifetimes_and_comments_hold_no_texts() {
        let source = r#"
            fn f<'a>(x: &'a str) -> char {
                // "no"
                /* "no" /* "no" */ "no" */
                let y = ('"', '\'', b'"', 'a: loop {});
                "yes"
            }
            /// "no"
            fn g() {}
        "#;
        assert_eq!(values(source), ["yes"]);
    }

    #[test]
    fn items_that_only_tests_are_built_with_are_left_out() {
        let source = "#[cfg(test)]\nconst A: &str = \"no\";\n\
                      #[cfg(all(test, not(loom)))]\nmod tests { fn f() { g(\"no\") } }\n\
                      #[cfg(not(test))]\nfn f() { g(\"yes\") }\n\
                      struct S { #[cfg(test)] a: A<\"no\">, b: B }\n\
                      impl S { #[cfg(test)] fn f() { g(\"no\") } fn h() { g(\"and\") } }\n";
        assert_eq!(values(source), ["yes", "and"]);
    }

    #[test]
    fn a_doc_comment_is_a_text_where_clap_reads_it() {
        let source = "/// No.\nstruct A;\n/// One,\n/// two.\n#[derive(Debug, clap::Args)]\n\
                      struct B {\n    /// Three.\n    #[arg(help = \"four\")]\n    b: u8,\n}\n\
                      /// No.\nfn f() {}\n";
        let expected = [(3, " One, two."), (8, "four"), (7, " Three.")];
        assert_eq!(found(source), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn an_error_in_an_attribute_is_a_text() {
        let source = "enum E { #[error(\"{0}: gone\")] A(u8) }";
        assert_eq!(values(source), ["{0}: gone"]);
    }

    #[test]
    fn modules_are_found_by_name_and_path_and_those_of_a_macro_are_not() {
        let source = r#"
            mod a;
            #[cfg(test)]
            mod b;
            pub(crate) mod c { mod d; }
            #[path = "f.rs"]
            pub mod e;
            #[cfg_attr(miri, path = "miri.rs")]
            mod f;
            m! { mod g; }
        "#;
        let Items { mods, .. } = Items::of(tokens(source).expect("tokens"));
        let found: Vec<_> = mods.iter().map(|found| (&found.name[..], found.is_test)).collect();
        assert_eq!(found, [("a", false), ("b", true), ("c", false), ("e", false), ("f", false)]);
        assert!(mods[0].files.is_empty());
        assert_eq!(mods[3].files, ["f.rs"]);
        assert_eq!(mods[4].files, ["miri.rs"]);
        assert!(mods[2].body.is_some());
    }

    #[test]
    fn a_path_of_an_attribute_may_lead_upwards() {
        let path = plain_path(Path::new("tests/it/../support/mod.rs"));
        assert_eq!(path, Path::new("tests/support/mod.rs"));
    }
}
