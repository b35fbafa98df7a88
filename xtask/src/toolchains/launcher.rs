//! The short scripts by which a toolchain that was fetched is called.

use super::Places;
use crate::failure::{Failure, Tried};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// By this line a script is known as ours: a program without it is never written over.
const MARK: &str = "# Made by cargo xtask toolchains.";

/// A program, and the command that it stands for.
#[derive(Debug)]
pub struct Launcher {
    /// What it is called.
    pub program: &'static str,
    /// A command of the shell, with `{folder}` where its toolchain is; the arguments come after.
    pub command: &'static str,
}

impl Launcher {
    /// Whether there is such a program that is not of our making.
    pub fn is_the_users(&self, places: &Places) -> bool {
        places.programs(self.program).any(|file| !is_ours(&file))
    }

    /// Whether it is made, for the toolchain in `folder`.
    pub fn is_made(&self, folder: &Path, places: &Places) -> bool {
        let file = places.launchers.join(self.program);
        std::fs::read_to_string(file).is_ok_and(|text| text == self.script(folder))
    }

    /// Makes it; in place of an older one of ours, where there is one.
    pub fn make(&self, folder: &Path, places: &Places) -> Result<(), Failure> {
        let file = places.launchers.join(self.program);
        if file.is_file() && !is_ours(&file) {
            return Err(Failure::Failed(format!("{}: not made by us", file.display())));
        }
        self.write(&file, &self.script(folder)).tried(file.display())
    }

    /// Whole or not at all: someone may be about to call it.
    fn write(&self, file: &Path, script: &str) -> std::io::Result<()> {
        let parent = file.parent().unwrap_or_else(|| Path::new("."));
        std::fs::create_dir_all(parent)?;
        let mut text = tempfile::Builder::new().prefix(self.program).tempfile_in(parent)?;
        text.write_all(script.as_bytes())?;
        text.as_file().set_permissions(Permissions::from_mode(0o755))?;
        text.persist(file)?;
        Ok(())
    }

    fn script(&self, folder: &Path) -> String {
        // Within the quotes of the command one of its own would end them.
        let folder = folder.display().to_string().replace('\'', r"'\''");
        let command = self.command.replace("{folder}", &folder);
        format!("#!/bin/sh\n{MARK}\nexec {command} \"$@\"\n")
    }
}

fn is_ours(file: &Path) -> bool {
    // A program that is no text is not ours either.
    std::fs::read_to_string(file).is_ok_and(|text| text.lines().nth(1) == Some(MARK))
}
