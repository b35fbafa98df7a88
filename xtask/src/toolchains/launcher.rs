//! The short scripts by which a toolchain that was fetched is called, and the links that lead to them.

use super::Places;
use crate::failure::{Failure, Tried};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A program, and the command that it stands for.
///
/// Its script is in the toolchain's folder, in `bin` beside `lib`, as the toolchain's own distribution has it:
/// who follows the link finds the library there. By the place that the link leads to it is known as ours, and
/// a program that is no such link is never written over.
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
        places.programs(self.program).any(|file| !is_ours(&file, places))
    }

    /// Whether it is made, for the toolchain in `folder`.
    pub fn is_made(&self, folder: &Path, places: &Places) -> bool {
        let script = self.script(folder);
        fs::read_link(self.link(places)).is_ok_and(|target| target == script)
            && fs::read_to_string(script).is_ok_and(|text| text == self.text(folder))
    }

    /// Makes it; in place of an older one of ours, where there is one.
    pub fn make(&self, folder: &Path, places: &Places) -> Result<(), Failure> {
        let link = self.link(places);
        if link.symlink_metadata().is_ok() && !is_ours(&link, places) {
            return Err(Failure::Failed(format!("{}: not made by us", link.display())));
        }
        let script = self.script(folder);
        self.write(&script, &self.text(folder)).tried(script.display())?;
        self.lead(&link, &script).tried(link.display())
    }

    fn write(&self, script: &Path, text: &str) -> std::io::Result<()> {
        fs::create_dir_all(script.parent().unwrap_or_else(|| Path::new(".")))?;
        fs::write(script, text)?;
        fs::set_permissions(script, Permissions::from_mode(0o755))
    }

    /// The new link takes the old one's place in one step: someone may be about to call it.
    fn lead(&self, link: &Path, script: &Path) -> std::io::Result<()> {
        let parent = link.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(parent)?;
        let work = tempfile::Builder::new().prefix(".linking-").tempdir_in(parent)?;
        let new = work.path().join(self.program);
        symlink(script, &new)?;
        fs::rename(new, link)
    }

    fn link(&self, places: &Places) -> PathBuf {
        places.launchers.join(self.program)
    }

    fn script(&self, folder: &Path) -> PathBuf {
        folder.join("bin").join(self.program)
    }

    fn text(&self, folder: &Path) -> String {
        // Within the quotes of the command one of its own would end them.
        let folder = folder.display().to_string().replace('\'', r"'\''");
        format!("#!/bin/sh\nexec {} \"$@\"\n", self.command.replace("{folder}", &folder))
    }
}

fn is_ours(file: &Path, places: &Places) -> bool {
    fs::read_link(file).is_ok_and(|target| target.starts_with(&places.toolchains))
}
