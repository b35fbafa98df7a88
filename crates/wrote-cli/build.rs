//! The build script. It passes the built commit to the program as `WROTE_COMMIT` (empty outside a
//! clone), the version with the commit as `WROTE_VERSION`, and the features and target of the
//! build. This is a separate file because cargo runs it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A release that was unpacked inside another repository must not use that repository's commit.
    let ours = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let commit = if ours { git(&["rev-parse", "--short", "HEAD"]) } else { None };
    let version = env!("CARGO_PKG_VERSION");
    let version = match &commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=WROTE_VERSION={version}");
    println!("cargo::rustc-env=WROTE_COMMIT={}", commit.unwrap_or_default());
    let has = |feature: &&str| {
        std::env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some()
    };
    let features: Vec<&str> = ["serve", "store", "mpi"].into_iter().filter(has).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    println!("cargo::rustc-env=WROTE_FEATURES={features}");
    println!("cargo::rustc-env=WROTE_TARGET={}", std::env::var("TARGET").unwrap_or_default());
    if ours {
        watch_head();
    }
}

/// Reruns this script when another commit is checked out or created.
fn watch_head() {
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = git(&["rev-parse", "--git-path", name]);
        // cargo assumes that a missing path has always changed.
        if let Some(path) = path.filter(|path| std::path::Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// Returns the output of `git`; `None` if `git` is not installed or fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
