//! The Rust sources of the crates as tokens, with their paths and string literals. It is a separate
//! file because the checks of prose and of circles both use it.

use super::lines::{self, folder_of_modules, without_tests};
use lab::tools::failure::{Failure, Tried};
use proc_macro2::{Literal, TokenStream, TokenTree};

/// A file of a crate that is not built only for tests.
pub struct Module {
    /// The file's path, relative to the repository's root.
    pub file: String,
    /// The crate's name, followed by the module names from the crate's root on: `["wrote-cli",
    /// "commands", "log"]`.
    pub path: Vec<String>,
    /// The items, without test-only ones.
    pub tokens: TokenStream,
}

/// A string literal.
pub struct Text {
    /// The line in which the literal begins.
    pub line: usize,
    pub value: String,
}

/// Reads every module of the crates.
pub fn modules() -> Result<Vec<Module>, Failure> {
    let mut modules = Vec::new();
    for source in lines::sources(&["crates"])?.into_iter().filter(|source| !source.is_test) {
        let place = source.file.split_once('/').and_then(|(_, place)| place.split_once("/src"));
        if let Some((name, _)) = place {
            let tokens = without_tests(&source.text)
                .parse()
                .map_err(|error: proc_macro2::LexError| error.to_string())
                .tried(&source.file)?;
            let rooms = folder_of_modules(&source.file).split('/').skip(3).map(str::to_owned);
            let path = [name.to_owned()].into_iter().chain(rooms).collect();
            modules.push(Module { file: source.file, path, tokens });
        }
    }
    Ok(modules)
}

/// Returns whether the token is this punctuation sign.
pub fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Lists the string literals in `tokens`, except doc comments, which are checked as comments.
pub fn texts(tokens: TokenStream) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut is_doc = false;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => texts.extend(self::texts(group.stream())),
            TokenTree::Literal(literal) if !is_doc => {
                let line = literal.span().start().line;
                texts.extend(value(literal).map(|value| Text { line, value }));
            }
            _ => {}
        }
        // `#[doc = "a comment"]`
        is_doc = matches!(&token, TokenTree::Ident(word) if word == "doc")
            || is_doc && is_sign(&token, '=');
    }
    texts
}

/// Returns the value of a string literal; `None` for other literals, including byte strings.
/// Escapes become blanks, which suffices to keep words apart.
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
        let tokens = without_tests(source).parse().expect("tokens");
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
                      #[cfg(all(test, not(loom)))]\nmod tests {\n    fn f() {\n\
                      \x20       g(\"no\")\n    }\n}\n\
                      #[cfg(not(test))]\nfn f() {\n    g(\"yes\")\n}\n\
                      struct S {\n    #[cfg(test)]\n    a: A<\"no\">,\n    b: B,\n}\n\
                      impl S {\n    #[cfg(test)]\n    fn f() {\n        g(\"no\")\n    }\n\
                      \x20   fn h() {\n        g(\"and\")\n    }\n}\n";
        assert_eq!(values(source), ["yes", "and"]);
    }

    #[test]
    fn a_doc_comment_is_no_text_and_a_help_text_is_one() {
        let source = "/// No.\n#[derive(Debug, clap::Args)]\nstruct B {\n    /// No.\n\
                      \x20   #[arg(help = \"four\")]\n    b: u8,\n}\n";
        assert_eq!(found(source), [(5, "four".to_owned())]);
    }

    #[test]
    fn an_error_in_an_attribute_is_a_text() {
        let source = "enum E { #[error(\"{0}: gone\")] A(u8) }";
        assert_eq!(values(source), ["{0}: gone"]);
    }
}
