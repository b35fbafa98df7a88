//! `cargo xtask lines`: counts the lines of code and of tests by crate, and compares them with the
//! maximum in `lines.txt`.

use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{files, root};
use std::collections::BTreeMap;

/// The list of numbers whose sum is the maximum number of lines of code in all crates. Each line
/// consists of a number and a reason.
const ALLOWED: &str = include_str!("lines.txt");
/// The folders of code. In the first one, each subfolder is a crate.
const FOLDERS: [&str; 6] = ["crates", "xtask", "lab", "fuzz", "peers", "bindings"];

/// The numbers of lines of code, of lines of tests, and of files with code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    code: u32,
    tests: u32,
    files: u32,
}

/// Prints the count of each crate. Fails if there are more lines of code than are allowed.
pub fn check() -> Result<(), Failure> {
    let allowed = allowed(ALLOWED)?;
    let mut crates = count()?;
    let mut sum = Count::default();
    crates.values().for_each(|count| sum.add(*count));
    crates.insert("sum".to_owned(), sum);
    println!("{:<14} {:>8} {:>8} {:>8}", "crate", "code", "tests", "files");
    // The sum is printed last.
    let rows = crates.iter().filter(|row| row.0 != "sum").chain(crates.get_key_value("sum"));
    for (name, Count { code, tests, files }) in rows {
        println!("{name:<14} {code:>8} {tests:>8} {files:>8}");
    }
    match sum.code <= allowed {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "{} lines of code, at most {allowed}: delete some, or say why in \
             xtask/src/check/lines.txt",
            sum.code
        ))),
    }
}

impl Count {
    fn add(&mut self, other: Count) {
        self.code += other.code;
        self.tests += other.tests;
        self.files += other.files;
    }
}

/// Returns the sum of a list with lines of the form "number reason".
fn allowed(list: &str) -> Result<u32, Failure> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let number = |line: &str| {
        let (number, reason) = line.split_once(' ')?;
        (!reason.trim().is_empty()).then(|| number.replace(',', "").parse::<u32>().ok())?
    };
    let numbers = lines.map(|line| {
        number(line)
            .ok_or_else(|| Failure::Failed(format!("lines.txt: no number and reason: {line}")))
    });
    numbers.sum()
}

/// A Rust file of the repository.
pub struct Source {
    /// The file's path, relative to the repository's root.
    pub file: String,
    pub text: String,
    /// Whether the file is built only for tests.
    pub is_test: bool,
}

/// Reads the Rust files below `folders`.
pub fn sources(folders: &[&str]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for file in files(folders)?.into_iter().filter(|file| file.ends_with(".rs")) {
        let text = std::fs::read_to_string(root().join(&file)).tried(&file)?;
        let is_test = file.contains("/tests/") || file.ends_with("tests.rs");
        sources.push(Source { file, text, is_test });
    }
    let tests: Vec<String> = sources.iter().flat_map(modules_of_tests).collect();
    for Source { file, is_test, .. } in &mut sources {
        let stem = file.trim_end_matches(".rs");
        *is_test |= tests.iter().any(|test| {
            stem.strip_prefix(&**test).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    }
    Ok(sources)
}

/// Counts the lines of each crate. Blank lines and comments are not counted.
fn count() -> Result<BTreeMap<String, Count>, Failure> {
    let mut crates = BTreeMap::<String, Count>::new();
    for Source { file, text, is_test } in sources(&FOLDERS)? {
        let (code, tests) = match count_of(&text) {
            (code, tests) if is_test => (0, code + tests),
            counts => counts,
        };
        let folders: Vec<&str> = file.split('/').collect();
        let name = if folders[0] == FOLDERS[0] { folders[1] } else { folders[0] };
        let count = Count { code, tests, files: u32::from(code > 0) };
        crates.entry(name.to_owned()).or_default().add(count);
    }
    Ok(crates)
}

/// Returns the folder, as a path without suffix, that contains the modules declared in `file`.
pub fn folder_of_modules(file: &str) -> &str {
    let stem = file.trim_end_matches(".rs");
    match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    }
}

/// Returns the paths, without suffixes, of the modules that a file declares only for tests.
fn modules_of_tests(Source { file, text, .. }: &Source) -> Vec<String> {
    let folder = folder_of_modules(file);
    let declared = text.split("#[cfg(test)]\n").skip(1);
    let names = declared.filter_map(|rest| {
        let line = rest.lines().find(|line| !line.trim_start().starts_with("#["))?;
        let name = line.split_once("mod ")?.1.strip_suffix(';')?;
        Some(format!("{folder}/{name}"))
    });
    names.collect()
}

/// Returns the numbers of lines of code and of tests in a formatted source.
fn count_of(text: &str) -> (u32, u32) {
    let count = |text: &str| {
        let lines = text.lines().map(str::trim_start);
        lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count() as u32
    };
    let code = count(&without_tests(text));
    (code, count(text) - code)
}

/// Returns a formatted source in which test-only items are replaced with blank lines. The item
/// after the attribute extends to its closing line, which is in the same column as the attribute.
pub fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut test = None;
    for line in text.lines() {
        let words = line.trim_start();
        let column = line.len() - words.len();
        if test.is_some() {
            let ends = words.starts_with('}') || words.ends_with([';', '}', ',']);
            test = test.filter(|begun| !(*begun == column && ends));
        } else if words.starts_with("#[cfg(test)]") || words.starts_with("#[cfg(all(test,") {
            test = Some(column);
        } else {
            code.push_str(line);
        }
        code.push('\n');
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_no_code() {
        let text = "//! A room.\n\nuse a;\n\n/// One.\nfn one() {\n    // Why.\n    two();\n}\n\n\
            impl A {\n    #[cfg(test)]\n    fn three() {\n        four();\n    }\n}\n\n\
            #[cfg(test)]\nuse b;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\nfn five() {}\n";
        assert_eq!(count_of(text), (7, 10));
    }

    #[test]
    fn a_module_that_is_declared_for_tests_is_no_code() {
        let text = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\n#[path = \"c\"]\n\
            pub(crate) mod c;\n#[cfg(test)]\nmod tests {}\n";
        let of = |file: &str| {
            let (file, text) = (file.to_owned(), text.to_owned());
            modules_of_tests(&Source { file, text, is_test: false })
        };
        assert_eq!(of("x/src/lib.rs"), ["x/src/b", "x/src/c"]);
        assert_eq!(of("x/src/d/e.rs"), ["x/src/d/e/b", "x/src/d/e/c"]);
    }

    #[test]
    fn a_sum_is_raised_by_a_line_with_a_reason_alone() {
        assert_eq!(allowed("# Lines.\n\n1,000 what stood\n20 bindings for C\n").ok(), Some(1020));
        assert!(allowed("1,000 what stood\n20\n").is_err());
        assert!(allowed("1,000 what stood\n20 \n").is_err());
    }
}
