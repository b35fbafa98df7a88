//! The file system of `lab strange-fs` beside the command.

use std::fs::File;
use std::path::Path;

/// Mounts it with these arguments, a word each; the error is a reason to skip the test.
pub fn mount(arguments: &str) -> Result<fixtures::Strange, String> {
    // A container may have the file but forbid its use, so the test opens it as the daemon does.
    let opened = File::options().read(true).write(true).open("/dev/fuse");
    opened.map_err(|error| format!("/dev/fuse: {error}"))?;
    // `cargo xtask test` builds it.
    let lab = Path::new(env!("CARGO_BIN_EXE_wrote")).with_file_name("lab");
    if !lab.exists() {
        return Err(format!("no {}: cargo build -p lab --features lab/verbs", lab.display()));
    }
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let mounted = fixtures::Strange::mount(&lab, fixtures::folder(), &arguments);
    mounted.inspect_err(|said| assert!(said.contains("Operation not permitted"), "{said}"))
}
