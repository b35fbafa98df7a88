//! The Rust sources of the crates as tokens: their paths, and their string literals.

use super::lines::{self, folder_of_modules};
use lab::tools::failure::{Failure, Tried};
use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};

/// A file of a crate that is not for tests alone.
pub struct Module {
    /// The file, from the repository's root.
    pub file: String,
    /// The crate's name, and names from its root on: `["wrote-cli", "commands", "log"]`.
    pub path: Vec<String>,
    /// The items, without test-only ones.
    pub tokens: TokenStream,
}

/// A string literal.
pub struct Text {
    /// The line of its start.
    pub line: usize,
    pub value: String,
}

/// Reads every module of the crates.
pub fn modules() -> Result<Vec<Module>, Failure> {
    let mut modules = Vec::new();
    for source in lines::sources(&["crates"])?.into_iter().filter(|source| !source.is_test) {
        let place = source.file.split_once('/').and_then(|(_, place)| place.split_once("/src"));
        if let Some((name, _)) = place {
            let tokens: TokenStream = source
                .text
                .parse()
                .map_err(|error: proc_macro2::LexError| error.to_string())
                .tried(&source.file)?;
            let rooms = folder_of_modules(&source.file).split('/').skip(3).map(str::to_owned);
            let path = [name.to_owned()].into_iter().chain(rooms).collect();
            modules.push(Module { file: source.file, path, tokens: without_tests(tokens) });
        }
    }
    Ok(modules)
}

/// Removes the items that only tests are built with, also from the groups of other items.
fn without_tests(stream: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut item = Vec::new();
    let mut is_test = false;
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_attribute = is_sign(&token, '#');
        let is_end = ends_item(&token);
        item.push(match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                Group::new(Delimiter::Brace, without_tests(group.stream())).into()
            }
            other => other,
        });
        if is_attribute
            && let Some(token) = tokens.next_if(|token| is_group(token, Delimiter::Bracket))
        {
            is_test |= matches!(&token, TokenTree::Group(group) if is_for_tests(group));
            item.push(token);
        }
        if is_end || tokens.peek().is_none() {
            if !is_test {
                kept.append(&mut item);
            }
            item.clear();
            is_test = false;
        }
    }
    kept.into_iter().collect()
}

fn ends_item(token: &TokenTree) -> bool {
    is_sign(token, ';') || is_sign(token, ',') || is_group(token, Delimiter::Brace)
}

/// Returns whether a token is this sign.
pub fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
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
/// Escapes become blanks, which are enough to tell words apart.
fn value(literal: &Literal) -> Option<String> {
    let source = literal.to_string();
    let is_raw = source.starts_with('r');
    let text = source.trim_start_matches('r').trim_matches('#');
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    if is_raw {
        return Some(text.to_owned());
    }
    let escaped = ["\\n", "\\t", "\\r", "\\\n", "\\\"", "\\"];
    Some(escaped.iter().fold(text.to_owned(), |text, escape| text.replace(escape, " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(usize, String)> {
        let tokens = without_tests(source.parse().expect("tokens"));
        texts(tokens).into_iter().map(|Text { line, value }| (line, value)).collect()
    }

    fn values(source: &str) -> Vec<String> {
        found(source).into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn a_text_has_the_line_in_which_it_begins_and_blanks_for_escapes() {
        let source = "fn f() {\n    g(\"a\\tb \\\n       c\\n\", \"\\\"\");\n}\n";
        let expected = [(2, "a b         c ".to_owned()), (3, " ".to_owned())];
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
}
