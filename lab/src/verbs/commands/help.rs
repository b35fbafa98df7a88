//! The verbs and options of the command, read from its own help.

use crate::verbs::commands::Trouble;
use std::path::Path;
use std::process::Command;

/// A verb and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verb {
    /// `log`, `cat`.
    pub words: Vec<String>,
    /// The long names, and whether a value follows.
    pub options: Vec<(String, bool)>,
}

/// Returns every verb of `program`.
pub fn verbs(program: &Path) -> Result<Vec<Verb>, Trouble> {
    let mut verbs = Vec::new();
    for verb in names(&help(program, &[])?) {
        let said = help(program, &[&verb])?;
        let inner = names(&said);
        if inner.is_empty() {
            verbs.push(Verb { words: vec![verb], options: options(&said) });
            continue;
        }
        for name in inner {
            let options = options(&help(program, &[&verb, &name])?);
            verbs.push(Verb { words: vec![verb.clone(), name], options });
        }
    }
    Ok(verbs)
}

fn help(program: &Path, words: &[&str]) -> Result<String, Trouble> {
    let output = Command::new(program).args(words).arg("--help").output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the names below `Commands:`.
fn names(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // A line that continues a description is indented further.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns the options: lines such as `  -o, --output <FILE>`.
fn options(help: &str) -> Vec<(String, bool)> {
    let declared = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let option = |line: &str| {
        let name = line.split_whitespace().find(|word| word.starts_with("--"))?;
        Some((name.trim_end_matches(',').to_owned(), line.contains('<')))
    };
    declared.filter_map(option).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_are_read_from_a_help() {
        let help = "Usage: wrote <COMMAND>\n\nCommands:\n  doctor       Say what \
                    holds\n               \
                    write nothing\n  log          Read\n\nOptions:\n  -o, --output \
                    <FILE>\n          \
                    Write\n      --force\n";
        assert_eq!(names(help), ["doctor", "log"]);
        let expected = [("--output".to_owned(), true), ("--force".to_owned(), false)];
        assert_eq!(options(help), expected);
    }
}
