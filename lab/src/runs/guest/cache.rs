//! The guest's Debian packages, which are downloaded once and kept outside the repository.

use crate::tools::failure::{Failure, Tried};
use crate::tools::packages;
use crate::tools::run::output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package that depends on the release's newest kernel package, whose name contains the version.
const META_PACKAGE: &str = "linux-image-amd64";
const KERNEL: &str = "linux-image-";
const BUSYBOX: &str = "busybox-static";

/// The package files.
#[derive(Debug, PartialEq, Eq)]
pub struct Cached {
    /// The package of a kernel with its modules.
    pub kernel: PathBuf,
    /// The package of a static program with a shell and its tools.
    pub busybox: PathBuf,
}

/// Returns the packages if the cache contains them.
pub fn find() -> Result<Option<Cached>, Failure> {
    cached(&own_folder()?)
}

/// Returns the packages from the cache, or downloads them.
pub fn fetch() -> Result<Cached, Failure> {
    let folder = own_folder()?;
    if let Some(cached) = cached(&folder)? {
        return Ok(cached);
    }
    let name = folder.display();
    let words = |why| format!("nothing in {name}, and the packages cannot be downloaded: {why}");
    download(&folder).map_err(|failure| failure.in_words(words))?;
    let missing = || Failure::Failed(format!("{name}: not what was downloaded"));
    cached(&folder)?.ok_or_else(missing)
}

/// Returns the cache's folder, creating it if needed.
fn own_folder() -> Result<PathBuf, Failure> {
    let folder = folder(|name| std::env::var_os(name))?;
    std::fs::create_dir_all(&folder).tried(folder.display())?;
    Ok(folder)
}

/// Returns `WROTE_LAB_CACHE`, or else the folder `wrote-lab` in the user's cache folder (XDG Base
/// Directory Specification), according to the variables of `environment`.
fn folder(environment: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Failure> {
    if let Some(own) = environment("WROTE_LAB_CACHE") {
        return std::path::absolute(own).tried("WROTE_LAB_CACHE");
    }
    // According to the specification, relative paths are ignored.
    let path = |name| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")));
    let unknown = "no folder for the guest's packages: set WROTE_LAB_CACHE to one";
    caches.map(|caches| caches.join("wrote-lab")).ok_or_else(|| Failure::Failed(unknown.into()))
}

/// Returns both packages in `folder`; `None` if one of them is missing.
fn cached(folder: &Path) -> Result<Option<Cached>, Failure> {
    let find = |prefix| -> Result<Option<PathBuf>, Failure> {
        let is_whole = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "deb");
        // Of several names, the last is the newest.
        Ok(entries(folder, prefix)?.into_iter().rfind(is_whole))
    };
    let both = find(KERNEL)?.zip(find(BUSYBOX)?);
    Ok(both.map(|(kernel, busybox)| Cached { kernel, busybox }))
}

/// Returns the entries of `folder` whose names begin with `prefix`, sorted.
pub fn entries(folder: &Path, prefix: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).tried(folder.display())? {
        let entry = entry.tried(folder.display())?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            entries.push(entry.path());
        }
    }
    entries.sort();
    Ok(entries)
}

/// Downloads both packages into `folder`, where each appears only once it is complete.
fn download(folder: &Path) -> Result<(), Failure> {
    let unfinished = tempfile::tempdir_in(folder).tried(folder.display())?;
    packages::download(|| Ok(vec![kernel_package()?, BUSYBOX.to_owned()]), unfinished.path())?;
    for package in entries(unfinished.path(), "")? {
        let whole = folder.join(package.file_name().unwrap_or_default());
        std::fs::rename(package, &whole).tried(whole.display())?;
    }
    Ok(())
}

fn kernel_package() -> Result<String, Failure> {
    let what = format!("apt-cache depends {META_PACKAGE}");
    let mut command = Command::new("apt-cache");
    depends_on(&output(command.args(["depends", META_PACKAGE]), &what)?)
        .ok_or_else(|| Failure::Failed(format!("{what}: names no kernel")))
}

/// Returns the kernel package named in the output of `apt-cache depends`; `None` if there is none.
fn depends_on(said: &str) -> Option<String> {
    let mut dependencies = said.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    dependencies.find(|name| name.starts_with(KERNEL)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(set: &[(&str, &str)]) -> Option<PathBuf> {
        let get = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        folder(get).ok()
    }

    #[test]
    fn the_cache_is_where_the_user_says_or_where_caches_are() {
        let (home, caches) = (("HOME", "/home/a"), ("XDG_CACHE_HOME", "/caches"));
        let own = ("WROTE_LAB_CACHE", "/lab");
        assert_eq!(folder_of(&[home]), Some("/home/a/.cache/wrote-lab".into()));
        assert_eq!(folder_of(&[home, caches]), Some("/caches/wrote-lab".into()));
        assert_eq!(folder_of(&[home, caches, own]), Some("/lab".into()));
        assert_eq!(folder_of(&[("XDG_CACHE_HOME", "not/absolute")]), None);
    }

    #[test]
    fn packages_count_only_when_both_are_there_as_a_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let add = |name: &str| std::fs::write(folder.path().join(name), "").expect("written");
        add("linux-image-6.1.0-9-amd64_6.1.27-1_amd64.deb");
        add("busybox-static_1%3a1.35.0-4_amd64.deb.partial");
        assert_eq!(cached(folder.path()).expect("readable"), None);
        add("busybox-static_1%3a1.35.0-4_amd64.deb");
        let both = cached(folder.path()).expect("readable").expect("both");
        assert!(both.kernel.ends_with("linux-image-6.1.0-9-amd64_6.1.27-1_amd64.deb"));
        assert!(both.busybox.ends_with("busybox-static_1%3a1.35.0-4_amd64.deb"));
    }

    #[test]
    fn the_kernels_package_is_what_the_meta_package_depends_on() {
        let said = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n";
        assert_eq!(depends_on(said).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(depends_on("linux-image-amd64\n"), None);
    }
}
