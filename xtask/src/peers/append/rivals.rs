//! Builds and runs `rivals`, whose crates are of other generations than wrote's.

use super::super::trial::outcome_of;
use super::super::ways::contest::Contender;
use crate::failure::{Failure, Tried};
use crate::repository::{CARGO_LIMIT, cargo, root};
use crate::run::{Show, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const MANIFEST: &str = "xtask/rivals/Cargo.toml";

/// The program.
#[derive(Debug)]
pub struct Rivals {
    /// Where it is, whatever the current folder.
    pub program: PathBuf,
}

impl Rivals {
    /// Builds it in release.
    pub fn build() -> Result<Rivals, Failure> {
        let arguments = ["build", "--release", "--locked", "--manifest-path", MANIFEST];
        // Its own target folder, also where ours is elsewhere.
        let target = root().join("xtask/rivals/target");
        let mut command = cargo(&arguments);
        command.env("CARGO_TARGET_DIR", &target);
        run(&mut command, CARGO_LIMIT, Show::Live)?.success("cargo build of rivals")?;
        let program = target.join("release/rivals");
        Ok(Rivals { program: std::path::absolute(&program).tried(program.display())? })
    }

    /// A piece of work with the current folder `folder`.
    pub fn contender<'a>(
        &'a self,
        name: &str,
        words: Vec<String>,
        folder: &'a Path,
    ) -> Contender<'a> {
        let command = format!("rivals {}", words.join(" "));
        let run = move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            outcome_of(Command::new(&self.program).args(&words).current_dir(folder), &words)
        };
        Contender { name: name.to_owned(), command, run: Box::new(run) }
    }
}
