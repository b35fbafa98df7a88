//! The long helps: `help/VERB.txt`, where a paragraph has several lines.

use clap::Command;
use include_dir::{Dir, include_dir};

static HELP: Dir = include_dir!("$CARGO_MANIFEST_DIR/src/args/help");

/// Gives a command the texts of `help/{file}.txt`, if there is such a file. The lists follow the
/// options: the first in the short help, the last in the long one.
pub(super) fn with_texts(command: Command, file: &str) -> Command {
    let Some(text) = HELP.get_file(format!("{file}.txt")) else { return command };
    let text = text.contents_utf8().expect("a help is UTF-8").trim_end();
    let is_list = |block: &&str| block.contains(":\n  ");
    let (lists, paragraphs): (Vec<&str>, Vec<&str>) = text.split("\n\n").partition(is_list);
    let about: Vec<String> = paragraphs.iter().map(|lines| lines.replace('\n', " ")).collect();
    let command = match about[..] {
        [] => command,
        _ => command.long_about(about.join("\n\n")),
    };
    match lists[..] {
        [] => command,
        [one] => command.after_help(one),
        [short, .., long] => command.after_help(short).after_long_help(long),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_help_is_of_a_command_and_every_command_but_one_has_a_help() {
        let command = super::super::definition();
        let mut names = BTreeSet::from(["wrote".to_owned(), "serve-absent".to_owned()]);
        for verb in command.get_subcommands() {
            names.insert(verb.get_name().to_owned());
            let inner = verb.get_subcommands().map(|inner| inner.get_name());
            names.extend(inner.map(|inner| format!("{}-{inner}", verb.get_name())));
        }
        assert!(names.remove("man"));
        let stem = |file: &include_dir::File| file.path().file_stem()?.to_str().map(str::to_owned);
        assert_eq!(HELP.files().filter_map(stem).collect::<BTreeSet<_>>(), names);
    }
}
