//! Mounts a file system that lives in memory and misbehaves on demand, until it is unmounted or
//! gets SIGINT or SIGTERM.

mod faults;
mod serve;
mod tree;

use clap::Parser;
use faults::{Asked, Faults};
use fuser::{Config, MountOption, Session};
use serve::StrangeFs;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use tree::{Maker, Tree};

/// A file system in memory that misbehaves on demand.
#[derive(Parser)]
#[command(name = "strange-fs")]
struct Arguments {
    /// An empty folder to mount it on.
    mount_point: PathBuf,
    /// Room for file bytes, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    capacity_mib: u64,
    #[command(flatten)]
    asked: Asked,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("strange-fs: {}: {error}", arguments.mount_point.display());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    // The maker of the mount owns its root.
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&arguments.mount_point)?);
    let root = Maker { mode: 0o755, uid: owner, gid: owner };
    let tree = Tree::new(arguments.capacity_mib << 20, root);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("strange-fs".into()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::DefaultPermissions,
    ];
    let strange = StrangeFs::new(tree, Faults::new(arguments.asked));
    let mut session = Session::new(strange, &arguments.mount_point, &config)?;
    let mut unmounter = session.unmount_callable();
    std::thread::spawn(move || {
        if signals.forever().next().is_some()
            && let Err(error) = unmounter.unmount()
        {
            eprintln!("strange-fs: unmount: {error}");
        }
    });
    session.run()
}
