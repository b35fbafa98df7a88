//! Builds the program, statically linked, stripped and without the build machine's paths, and packs
//! it, with the files that it prints itself, as an archive, as a Debian package and as an OCI
//! image.

use super::{VERSION, hashed};
use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{self, cargo, root, target};
use lab::tools::run::{HANG, Show, output, run};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The name of the profile in `Cargo.toml`.
pub const PROFILE: &str = "dist";
/// The time limit for the build. All code is optimized together, and the last part by a single
/// thread.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Returns the build target. Because the target is named, cargo builds macros and build scripts
/// without the program's flags, which do not suit them.
fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Returns the folder of the built program.
fn folder() -> PathBuf {
    target().join(triple()).join(PROFILE)
}

/// Builds the program and returns its path.
pub fn build() -> Result<PathBuf, Failure> {
    let triple = triple();
    let words = ["build", "--locked", "-p", "wrote-cli", "--features", "serve"];
    let mut command = cargo(&words);
    command.args(["--profile", PROFILE, "--target", &triple]);
    let folders = folders()?;
    let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"));
    command.env(variable, format!("-Ctarget-feature=+crt-static {}", renamed(&folders, RUST)));
    // The paths in the C code of aws-lc. That code is not in this repository.
    let foreign = folders.into_iter().filter(|(_, name)| *name != ROOT).collect::<Vec<_>>();
    let own = std::env::var("CFLAGS").unwrap_or_default();
    command.env("CFLAGS", format!("{own} {}", renamed(&foreign, C)).trim());
    run(&mut command, LIMIT, Show::Live)?.success("the build of the program")?;
    Ok(folder().join("wrote"))
}

/// Returns the flags of rustc that keep the build machine's paths out of a library.
pub fn renamed_rust() -> Result<String, Failure> {
    Ok(renamed(&folders()?, RUST))
}

/// The compiler flags that replace paths in the program.
const RUST: &str = "--remap-path-prefix";
const C: &str = "-ffile-prefix-map";
/// The name that replaces the repository's root.
const ROOT: &str = "/wrote";

/// Returns the folders whose paths would appear in the program's messages, with a replacement for
/// each. If several folders match a path, the last one wins, so each folder follows its parent.
fn folders() -> Result<Vec<(PathBuf, &'static str)>, Failure> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.ok_or_else(|| Failure::Failed("neither CARGO_HOME nor HOME is set".into()))?;
    let folders = [(home, "/cargo"), (target(), "/target"), (root(), ROOT)];
    let absolute = |(path, name): (PathBuf, _)| Ok((std::path::absolute(path)?, name));
    let folders = folders.into_iter().map(absolute).collect::<std::io::Result<Vec<_>>>();
    let mut folders = folders.tried("a folder of the build")?;
    folders.sort_by_key(|(path, _)| path.components().count());
    Ok(folders)
}

fn renamed(folders: &[(PathBuf, &str)], flag: &str) -> String {
    let flags = folders.iter().map(|(path, name)| format!("{flag}={}={name}", path.display()));
    flags.collect::<Vec<_>>().join(" ")
}

/// The files that the program can print, each with the arguments that print it and its path below
/// `/usr` or `/usr/local`. `crates/wrote-cli/Cargo.toml` lists the same paths for the Debian
/// package.
pub const FILES: [(&[&str], &str); 4] = [
    (&["man"], "share/man/man1/wrote.1"),
    (&["completions", "bash"], "share/bash-completion/completions/wrote"),
    (&["completions", "zsh"], "share/zsh/site-functions/_wrote"),
    (&["completions", "fish"], "share/fish/vendor_completions.d/wrote.fish"),
];

/// Creates the files that go with `program`. The manual page is also compressed, as Debian
/// requires.
pub fn make_files(program: &Path) -> Result<(), Failure> {
    let folder = folder();
    for (words, path) in FILES {
        let file = folder.join(path);
        repository::make_parent(&file)?;
        let text =
            output(Command::new(program).args(words), &format!("wrote {}", words.join(" ")))?;
        std::fs::write(&file, text).tried(file.display())?;
    }
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name", "--keep", "--force"]).arg(folder.join(FILES[0].1));
    output(&mut gzip, "gzip").map(drop)
}

/// The unit for systemd that the Debian package installs, relative to the repository's root.
const UNIT: &str = "crates/wrote-cli/debian/wrote.service";
/// The files of the repository that are installed in `share/doc/wrote`.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds the archive of `program` in `folder`. The modification time of its files is `date_s`.
pub fn make_archive(program: &Path, folder: &Path, date_s: &str) -> Result<PathBuf, Failure> {
    let stem = format!("wrote-{VERSION}-{}-linux", std::env::consts::ARCH);
    let tree = tempfile::tempdir_in(folder).tried(folder.display())?;
    let whole = tree.path().join(&stem);
    copy(program, &whole.join("bin/wrote"), 0o755)?;
    for (_, path) in FILES {
        copy(&self::folder().join(path), &whole.join(path), 0o644)?;
    }
    for document in DOCUMENTS {
        copy(&root().join(document), &whole.join("share/doc/wrote").join(document), 0o644)?;
    }
    let unit = whole.join("lib/systemd/system/wrote.service");
    copy(&root().join(UNIT), &unit, 0o644)?;
    let text = std::fs::read_to_string(&unit).tried(unit.display())?;
    let text = text.replace("=/usr/bin/wrote ", "=/usr/local/bin/wrote ");
    std::fs::write(&unit, text).tried(unit.display())?;
    let archive = folder.join(format!("{stem}.tar.gz"));
    tar(tree.path(), &[&stem], &archive, date_s)?;
    Ok(archive)
}

/// Packs `names` of `folder` into `archive`, compressed if its name ends in `.gz`. The archive
/// reveals nothing about the build machine, such as users, times or the order of folders. It is not
/// compressed as xz, which not every machine can unpack.
fn tar(folder: &Path, names: &[&str], archive: &Path, date_s: &str) -> Result<(), Failure> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{date_s}")).arg("--mode=u+rwX,go=rX");
    if archive.extension().is_some_and(|extension| extension == "gz") {
        tar.args(["--use-compress-program", "gzip -9 --no-name"]);
    }
    output(tar.arg("-cf").arg(archive).arg("-C").arg(folder).args(names), "tar").map(drop)
}

/// Sets the modification time of every file in a tree to `date_s`.
pub fn give_times(tree: &Path, date_s: &str) -> Result<(), Failure> {
    let mut touch = Command::new("find");
    touch.arg(tree).args(["-exec", "touch", "--no-dereference", "--date"]);
    output(touch.arg(format!("@{date_s}")).args(["{}", "+"]), "touch").map(drop)
}

/// Copies a file, and creates its folder if necessary.
pub fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    repository::copy(from, to)?;
    std::fs::set_permissions(to, Permissions::from_mode(mode)).tried(to.display())
}

/// Moves the only file in the folder `from` into `folder`, and returns its path.
pub fn take_out(from: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    let made = std::fs::read_dir(from).tried(from.display())?.next();
    let made = made.ok_or("nothing was made").tried(from.display())?.tried(from.display())?;
    let file = folder.join(made.file_name());
    std::fs::rename(made.path(), &file).tried(file.display())?;
    Ok(file)
}

/// Builds the Debian package of the program, which must already be built, in `folder`. The
/// modification time of its files is `date_s`.
pub fn make_debian(cargo_deb: &Path, folder: &Path, date_s: &str) -> Result<PathBuf, Failure> {
    let into = tempfile::tempdir_in(folder).tried(folder.display())?;
    // cargo looks up the subcommand in `PATH`.
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let tools = cargo_deb.parent().unwrap_or(cargo_deb).to_owned();
    let paths = [tools].into_iter().chain(std::env::split_paths(&paths));
    let mut command = cargo(&["deb", "-p", "wrote-cli", "--profile", PROFILE, "--locked"]);
    command.args(["--no-build", "--no-strip", "--target", &triple(), "--output"]).arg(into.path());
    command.env("PATH", std::env::join_paths(paths).tried("PATH")?);
    command.env("SOURCE_DATE_EPOCH", date_s);
    run(&mut command, HANG, Show::Live)?.success("cargo deb")?;
    take_out(into.path(), folder)
}

/// The folder in which the program runs, and on which a volume is mounted.
const DATA: &str = "data";

/// Builds the image of `program` in `folder`. The modification time of its files is `date_s`.
pub fn make_image(program: &Path, folder: &Path, date_s: &str) -> Result<PathBuf, Failure> {
    let tree = tempfile::tempdir_in(folder).tried(folder.display())?;
    let (tree_root, layout) = (tree.path().join("root"), Layout(tree.path().join("layout")));
    copy(program, &tree_root.join("usr/bin/wrote"), 0o755)?;
    std::fs::create_dir(tree_root.join(DATA)).tried(DATA)?;
    let layer = tree.path().join("layer.tar");
    tar(&tree_root, &[DATA, "usr"], &layer, date_s)?;
    let layer = layout.blob("layer.v1.tar", &layer)?;
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": { "Entrypoint": ["/usr/bin/wrote"], "WorkingDir": format!("/{DATA}") },
        // The layer is not compressed, so its content has the same digest.
        "rootfs": { "type": "layers", "diff_ids": [layer["digest"]] },
    });
    let config = layout.json("config.v1+json", &config)?;
    let manifest = json!({ "schemaVersion": 2, "config": config, "layers": [layer] });
    let mut manifest = layout.json("manifest.v1+json", &manifest)?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": VERSION });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    layout.write("index.json", &index)?;
    layout.write("oci-layout", &json!({ "imageLayoutVersion": "1.0.0" }))?;
    let image = folder.join(format!("wrote-{VERSION}-{}-oci.tar.gz", std::env::consts::ARCH));
    tar(&layout.0, &["blobs", "index.json", "oci-layout"], &image, date_s)?;
    Ok(image)
}

/// Returns Go's name of the build machine's architecture, as the specification prescribes.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The folder of an image layout.
struct Layout(PathBuf);

impl Layout {
    /// Copies a file to the path that its digest determines, and returns its descriptor.
    fn blob(&self, kind: &str, file: &Path) -> Result<Value, Failure> {
        let digest = hashed(file)?;
        copy(file, &self.0.join("blobs/sha256").join(&digest), 0o644)?;
        let bytes = file.metadata().tried(file.display())?.len();
        Ok(json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{digest}"),
            "size": bytes,
        }))
    }

    /// Writes a document as a blob.
    fn json(&self, kind: &str, value: &Value) -> Result<Value, Failure> {
        let draft = tempfile::NamedTempFile::new().tried("a temporary file")?;
        std::fs::write(draft.path(), value.to_string()).tried(kind)?;
        self.blob(kind, draft.path())
    }

    fn write(&self, name: &str, value: &Value) -> Result<(), Failure> {
        let path = self.0.join(name);
        std::fs::write(&path, value.to_string()).tried(path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_gets_its_name() {
        let folders = [(PathBuf::from("/home/me/wrote"), "/wrote"), ("/t".into(), "/target")];
        assert_eq!(
            renamed(&folders, RUST),
            "--remap-path-prefix=/home/me/wrote=/wrote --remap-path-prefix=/t=/target"
        );
    }

    #[test]
    fn the_package_lists_every_file_of_the_archive() {
        let manifest = root().join("crates/wrote-cli/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).expect("a manifest");
        for (_, path) in FILES {
            assert!(manifest.contains(&format!("\"target/release/{path}")), "{path}");
        }
    }

    #[test]
    fn every_blob_is_at_its_digest_and_the_image_holds_the_program() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = folder.path().join("program");
        std::fs::write(&program, "a program").expect("room");
        let image = make_image(&program, folder.path(), "0").expect("tar and sha256sum");
        let unpacked = folder.path().join("unpacked");
        std::fs::create_dir(&unpacked).expect("room");
        let unpack = |archive: &Path| {
            let mut tar = std::process::Command::new("tar");
            tar.arg("-xf").arg(archive).arg("-C").arg(&unpacked);
            assert!(tar.status().expect("tar").success());
        };
        unpack(&image);
        let read = |path: &Path| -> Value {
            serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
        };
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().and_then(|of| of.strip_prefix("sha256:"));
            let path = unpacked.join("blobs/sha256").join(digest.expect("a digest"));
            assert_eq!(hashed(&path).expect("a blob"), digest.expect("a digest"));
            assert_eq!(descriptor["size"], path.metadata().expect("a blob").len());
            path
        };
        let manifest = read(&blob(&read(&unpacked.join("index.json"))["manifests"][0]));
        let (config, layer) = (read(&blob(&manifest["config"])), &manifest["layers"][0]);
        assert_eq!(config["rootfs"]["diff_ids"][0], layer["digest"]);
        unpack(&blob(layer));
        assert_eq!(std::fs::read(unpacked.join("usr/bin/wrote")).expect("it"), b"a program");
    }
}
