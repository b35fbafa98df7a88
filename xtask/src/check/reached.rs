//! Checks that rustfmt reaches every Rust file: `cargo fmt` follows the `mod` lines of each
//! package's programs, but not the lines that a macro writes.

use super::sources;
use lab::tools::failure::Failure;
use lab::tools::repository::files;
use std::collections::BTreeSet;

/// Programs that need nothing but a compiler, and belong to no package.
const ALONE: [&str; 2] = ["langs/rust/main.rs", "langs/wrote/program.rs"];

/// Fails on a Rust file that no package reaches.
pub fn check() -> Result<(), Failure> {
    let files = files(&["*.rs", "*Cargo.toml"])?;
    let mut missed: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    missed.retain(|file| file.ends_with(".rs") && !ALONE.contains(file));
    for begin in begins(&files) {
        for module in sources::modules(begin)?.iter() {
            missed.remove(module.file.as_str());
        }
    }
    missed.iter().for_each(|file| println!("{file}: no `mod` outside of a macro leads to it"));
    match missed.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("rustfmt does not reach {count} files"))),
    }
}

/// Returns the files from which cargo builds a program or a library.
fn begins(files: &[String]) -> impl Iterator<Item = &str> {
    files.iter().map(String::as_str).filter(|file| {
        let packages = files.iter().filter_map(|file| file.strip_suffix("Cargo.toml"));
        packages.filter_map(|folder| file.strip_prefix(folder)).any(begins_a_target)
    })
}

/// Returns whether cargo finds a target in this file by itself, from the package's folder.
fn begins_a_target(file: &str) -> bool {
    match file.split('/').collect::<Vec<_>>()[..] {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", program] | ["src", "bin", program, "main.rs"] => !program.is_empty(),
        ["tests" | "examples" | "benches", program] => program.ends_with(".rs"),
        ["tests" | "examples" | "benches", _, "main.rs"] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_file_where_cargo_looks_for_one() {
        let files = [
            "a/Cargo.toml",
            "a/src/lib.rs",
            "a/src/room.rs",
            "a/src/bin/tool.rs",
            "a/tests/it/main.rs",
            "a/tests/it/other.rs",
            "a/tests/one.rs",
            "b/src/lib.rs",
        ];
        let files = files.map(str::to_owned);
        let found: Vec<&str> = begins(&files).collect();
        let expected =
            ["a/src/lib.rs", "a/src/bin/tool.rs", "a/tests/it/main.rs", "a/tests/one.rs"];
        assert_eq!(found, expected);
    }
}
