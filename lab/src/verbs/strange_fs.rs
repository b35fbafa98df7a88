//! `lab strange-fs`: mounts a file system in memory that misbehaves on demand, until it is
//! unmounted or receives SIGINT or SIGTERM.

#![forbid(unsafe_code)]

mod faults;
mod pace;
mod recording;
mod serve;
mod tree;

use super::Trouble;
use faults::Faults;
use fuser::{Config, MountOption, Session};
use pace::Pace;
use recording::Recording;
use serve::StrangeFs;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::PathBuf;
use tree::{Maker, Tree};

/// A file system in memory that misbehaves on demand.
#[derive(clap::Args)]
pub struct Arguments {
    /// An empty folder to mount it on.
    mount_point: PathBuf,
    /// Room for file bytes, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    capacity_mib: u64,
    /// Keep the length of each file without its bytes; they are read as zeros.
    #[arg(long)]
    forget: bool,
    /// Keep a name for a file removed while it is open, as NFS does.
    #[arg(long)]
    keep_names: bool,
    /// Record the writes and flushes of a loop device's file here, in a new log.
    #[arg(long, value_name = "LOG")]
    record: Option<PathBuf>,
    #[command(flatten)]
    faults: faults::FaultArguments,
    #[command(flatten)]
    pace: pace::PaceArguments,
}

/// Serves the file system until it is unmounted.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    let point = arguments.mount_point.display();
    serve(arguments).map_err(|error| format!("{point}: {error}").into())
}

fn serve(arguments: &Arguments) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    // The owner of the mount point also owns the root folder.
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&arguments.mount_point)?);
    let root = Maker { mode: 0o755, uid: owner, gid: owner };
    let mut tree = Tree::new(arguments.capacity_mib << 20, arguments.forget, root);
    tree.keeps_names = arguments.keep_names;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("strange-fs".into()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::DefaultPermissions,
    ];
    let (faults, pace) = (Faults::new(arguments.faults), Pace::new(arguments.pace));
    let recording = arguments.record.as_deref().map(Recording::new).transpose()?;
    let strange = StrangeFs::new(tree, faults, pace, recording);
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
