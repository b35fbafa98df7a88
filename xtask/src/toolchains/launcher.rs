//! Launchers of fetched toolchains: a short script each, and the link that leads to it.

use super::Places;
use crate::failure::{Failure, Tried};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A program that runs a command of a fetched toolchain.
///
/// The script stands in the toolchain's folder, in `bin` beside `lib`, as in the toolchain's own
/// distribution: a program that follows the link finds the library. The link's target shows that it
/// is ours; any other program is never overwritten.
#[derive(Debug)]
pub struct Launcher {
    /// The program's name.
    pub program: &'static str,
    /// A shell command; `{folder}` is the toolchain's folder, and the arguments come after.
    pub command: &'static str,
}

impl Launcher {
    /// Whether the user has such a program.
    pub fn is_the_users(&self, places: &Places) -> bool {
        places.programs(self.program).any(|file| !is_ours(&file, places))
    }

    /// Whether the script and the link exist, for the toolchain in `folder`.
    pub fn is_made(&self, folder: &Path, places: &Places) -> bool {
        let script = self.script(folder);
        fs::read_link(self.link(places)).is_ok_and(|target| target == script)
            && fs::read_to_string(script).is_ok_and(|text| text == self.text(folder))
    }

    /// Makes the script and the link; they replace older ones of ours.
    pub fn make(&self, folder: &Path, places: &Places) -> Result<(), Failure> {
        let link = self.link(places);
        if link.symlink_metadata().is_ok() && !is_ours(&link, places) {
            return Err(Failure::Failed(format!("{}: not made by us", link.display())));
        }
        let script = self.script(folder);
        fs::create_dir_all(folder.join("bin"))
            .and_then(|()| fs::write(&script, self.text(folder)))
            .and_then(|()| fs::set_permissions(&script, Permissions::from_mode(0o755)))
            .tried(script.display())?;
        self.lead(&script, places).tried(link.display())
    }

    /// Replaces the old link in one step: another process may be calling it.
    fn lead(&self, script: &Path, places: &Places) -> std::io::Result<()> {
        fs::create_dir_all(&places.launchers)?;
        let work = tempfile::Builder::new().prefix(".linking-").tempdir_in(&places.launchers)?;
        let new = work.path().join(self.program);
        symlink(script, &new)?;
        fs::rename(new, self.link(places))
    }

    fn link(&self, places: &Places) -> PathBuf {
        places.launchers.join(self.program)
    }

    fn script(&self, folder: &Path) -> PathBuf {
        folder.join("bin").join(self.program)
    }

    fn text(&self, folder: &Path) -> String {
        // A quote in the folder's name would end the command's quotes.
        let folder = folder.display().to_string().replace('\'', r"'\''");
        format!("#!/bin/sh\nexec {} \"$@\"\n", self.command.replace("{folder}", &folder))
    }
}

fn is_ours(file: &Path, places: &Places) -> bool {
    fs::read_link(file).is_ok_and(|target| target.starts_with(&places.toolchains))
}
