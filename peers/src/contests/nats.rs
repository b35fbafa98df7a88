//! nats-server and the program that publishes to it, built from modules of Go. It is a separate
//! file, as each peer that must be built is.

use lab::tools::clients::go_build;
use lab::tools::failure::Failure;
use lab::tools::packages;
use lab::tools::repository::target;
use std::path::PathBuf;

/// The folder of the program that publishes to nats-server, and the server's package.
const LOAD: &str = "peers/nats";
const SERVER: &str = "github.com/nats-io/nats-server/v2";

/// Returns the folder of both programs.
pub fn folder() -> PathBuf {
    target().join("nats")
}

/// Builds both, because the server in Debian 12 can't sync each message.
pub fn build() -> Result<(), Failure> {
    packages::install(&["go"])?;
    let [load, server] = ["nats-load", "nats-server"].map(|program| folder().join(program));
    go_build(LOAD, &[(&load, "."), (&server, SERVER)])
}
