//! `cargo xtask lines`: lines of code by crate, beside the figures in `docs/architecture.md`.

use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{files, root};
use std::collections::BTreeMap;

const DOCUMENT: &str = "docs/architecture.md";
const MARKS: [&str; 2] = ["<!-- lines:begin -->", "<!-- lines:end -->"];
/// Folders whose subfolders are crates.
const OF_CRATES: &str = "crates";

/// Prints the lines of each crate beside the recorded ones. Fails if a crate is more than a tenth
/// larger than its row of the table allows: its own lines, or its grown size with a reason in the
/// row.
pub fn check() -> Result<(), Failure> {
    let text = std::fs::read_to_string(root().join(DOCUMENT)).tried(DOCUMENT)?;
    let table = text.split_once(MARKS[0]).and_then(|(_, rest)| rest.split_once(MARKS[1]));
    let (table, _) = table.ok_or_else(|| Failure::Failed(format!("{DOCUMENT}: no {MARKS:?}")))?;
    let (counted, rows) = (count()?, rows(table));
    println!("{:<14} {:>8} {:>8}", "crate", "recorded", "now");
    for (name, now) in &counted {
        let recorded = rows.get(&name[..]).map_or_else(String::new, |row| row.to_string());
        println!("{name:<14} {recorded:>8} {now:>8}");
    }
    println!(
        "{:<14} {:>8} {:>8}",
        "sum",
        rows.values().sum::<u32>(),
        counted.values().sum::<u32>()
    );
    match too_large(&counted, &rows).as_slice() {
        [] => Ok(()),
        faults => Err(Failure::Failed(format!("{}; say why in {DOCUMENT}", faults.join("; ")))),
    }
}

/// Returns the lines that the rows `crate | lines | grown to | because` allow: the third cell where
/// the fourth has a reason.
fn rows(table: &str) -> BTreeMap<&str, u32> {
    table.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<(&str, u32)> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [name, lines, grown, because] = cells[..] else { return None };
    let number = |cell: &str| cell.replace(',', "").parse().ok();
    let grown = number(grown).filter(|_| !because.is_empty());
    Some((name.trim_matches('`'), grown.or_else(|| number(lines))?))
}

fn too_large(counted: &BTreeMap<String, u32>, rows: &BTreeMap<&str, u32>) -> Vec<String> {
    let fault = |(name, now): (&String, &u32)| {
        let allowed = rows.get(&name[..]).copied().unwrap_or(0);
        let is_larger = u64::from(*now) * 10 > u64::from(allowed) * 11;
        is_larger.then(|| format!("{name} has {now} lines of code, and {allowed} are recorded"))
    };
    counted.iter().filter_map(fault).collect()
}

/// Counts the lines of code of each crate: no blank lines, no comments, no tests.
fn count() -> Result<BTreeMap<String, u32>, Failure> {
    let mut texts = BTreeMap::new();
    for file in files(&["crates", "xtask", "lab", "fuzz", "peers", "bindings", "examples"])? {
        if file.ends_with(".rs") {
            let text = std::fs::read_to_string(root().join(&file)).tried(&file)?;
            texts.insert(file, text);
        }
    }
    let tests: Vec<String> =
        texts.iter().flat_map(|(file, text)| modules_of_tests(file, text)).collect();
    let mut crates = BTreeMap::new();
    for (file, text) in &texts {
        let stem = file.trim_end_matches(".rs");
        let is_below = |test: &String| {
            stem.strip_prefix(&**test).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_test = file.contains("/tests/") || file.ends_with("tests.rs");
        if is_test || tests.iter().any(is_below) {
            continue;
        }
        let folders: Vec<&str> = file.split('/').collect();
        let name = if folders[0] == OF_CRATES { folders[1] } else { folders[0] };
        *crates.entry(name.to_owned()).or_default() += code(text);
    }
    Ok(crates)
}

/// Returns the paths, without endings, of the modules that `file` declares for tests alone.
fn modules_of_tests(file: &str, text: &str) -> Vec<String> {
    let stem = file.trim_end_matches(".rs");
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    };
    let declared = text.split("#[cfg(test)]\n").skip(1);
    let names = declared.filter_map(|rest| {
        let line = rest.lines().find(|line| !line.trim_start().starts_with("#["))?;
        let name = line.split_once("mod ")?.1.strip_suffix(';')?;
        Some(format!("{folder}/{name}"))
    });
    names.collect()
}

/// Counts the lines of code in a formatted source. An item after `#[cfg(test)]` ends with its
/// closing line in the column of the attribute.
fn code(text: &str) -> u32 {
    let (mut lines, mut test) = (0, None);
    for line in text.lines() {
        let words = line.trim_start();
        let column = line.len() - words.len();
        if test.is_some() {
            let ends = words.starts_with('}') || words.ends_with([';', '}']);
            test = test.filter(|begun| !(*begun == column && ends));
        } else if words.starts_with("#[cfg(test)]") {
            test = Some(column);
        } else if !words.is_empty() && !words.starts_with("//") {
            lines += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_no_code() {
        let text = "//! A room.\n\nuse a;\n\n/// One.\nfn one() {\n    // Why.\n    two();\n}\n\n\
            impl A {\n    #[cfg(test)]\n    fn three() {\n        four();\n    }\n}\n\n\
            #[cfg(test)]\nuse b;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\nfn five() {}\n";
        assert_eq!(code(text), 7);
    }

    #[test]
    fn a_module_that_is_declared_for_tests_is_no_code() {
        let text = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\n#[path = \"c\"]\n\
            pub(crate) mod c;\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(modules_of_tests("x/src/lib.rs", text), ["x/src/b", "x/src/c"]);
        assert_eq!(modules_of_tests("x/src/d/e.rs", text), ["x/src/d/e/b", "x/src/d/e/c"]);
    }

    #[test]
    fn a_crate_that_grew_by_more_than_a_tenth_needs_a_reason() {
        let table = "| crate | lines | grown to | because |\n|---|---|---|---|\n\
            | `a` | 1,000 | | |\n| `b` | 100 | 150 | bindings for C |\n| `c` | 100 | 150 | |\n";
        let counted = [("a", 1100), ("b", 160), ("c", 111), ("d", 1)];
        let counted = counted.map(|(name, lines)| (name.to_owned(), lines)).into();
        let faults = [
            "c has 111 lines of code, and 100 are recorded",
            "d has 1 lines of code, and 0 are recorded",
        ];
        assert_eq!(too_large(&counted, &rows(table)), faults);
    }
}
