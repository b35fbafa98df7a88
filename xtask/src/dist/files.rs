//! The files beside the program that the program itself prints: manual page and completions.

use super::program;
use lab::tools::failure::{Failure, Tried};
use lab::tools::run::output;
use std::path::Path;
use std::process::Command;

/// The arguments that print each file, and its path below `/usr` or `/usr/local`. The Debian
/// package lists the same paths, in `crates/wrote-cli/Cargo.toml`.
pub const FILES: [(&[&str], &str); 4] = [
    (&["man"], "share/man/man1/wrote.1"),
    (&["completions", "bash"], "share/bash-completion/completions/wrote"),
    (&["completions", "zsh"], "share/zsh/site-functions/_wrote"),
    (&["completions", "fish"], "share/fish/vendor_completions.d/wrote.fish"),
];

/// Makes the files beside `program`. Debian wants the manual page compressed too.
pub fn make(program: &Path) -> Result<(), Failure> {
    let folder = program::folder()?;
    for (words, path) in FILES {
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).tried(parent.display())?;
        let text =
            output(Command::new(program).args(words), &format!("wrote {}", words.join(" ")))?;
        std::fs::write(&file, text).tried(file.display())?;
    }
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name", "--keep", "--force"]).arg(folder.join(FILES[0].1));
    output(&mut gzip, "gzip").map(drop)
}
