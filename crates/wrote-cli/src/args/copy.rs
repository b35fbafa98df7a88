//! The arguments of `wrote copy`.

use super::values::words;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use wrote::CopyOptions;
use wrote::engine::Options;
use wrote_result::units;

/// Whether blocks must be shared, or must not be shared; `None` for either. The type has a name
/// because `clap` interprets an `Option` as an optional argument.
type Reflink = Option<bool>;

/// The arguments of `wrote copy`.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// The file to copy; - is standard input
    #[arg(value_name = "SRC", required = true, value_hint = ValueHint::AnyPath)]
    pub from: Vec<PathBuf>,

    /// The destination: a name, or an existing folder; - is standard output
    #[arg(value_name = "DST", required = true, value_hint = ValueHint::AnyPath)]
    pub to: PathBuf,

    /// Kept to name the commands that copy a folder
    #[arg(short, long, hide = true)]
    pub recursive: bool,

    /// Replace files that exist
    #[arg(short, long)]
    pub force: bool,

    /// Give copies the owner of their source, and replaced files its permissions and attributes
    #[arg(short, long)]
    pub preserve: bool,

    /// Stop at the first file that cannot be copied
    #[arg(long)]
    pub strict: bool,

    /// Return only when the copy survives a power loss (the default)
    #[arg(long, overrides_with = "no_sync")]
    pub sync: bool,

    /// Do not flush: the copy survives only a crash of the process
    #[arg(long, overrides_with = "sync")]
    pub no_sync: bool,

    /// Read the copy back from the disk, and compare its checksum with the source's
    #[arg(long)]
    pub verify: bool,

    /// Share the source's blocks until either file is changed, if the file system can
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = words([
        ("auto", "Where the file system can", None),
        ("always", "Or fail", Some(true)),
        ("never", "Copy every byte", Some(false))
    ]))]
    pub reflink: Reflink,

    /// Bytes of one read or write (1M): a multiple of 4K, at most 1G
    #[arg(long, value_name = "SIZE", value_parser = bs, allow_hyphen_values = true)]
    pub bs: Option<usize>,

    /// Reads and writes in flight at once; memory is this times --bs, at most 4 GiB
    #[arg(long, value_name = "N", value_parser = units::parse_count::<{ Options::IODEPTH_MAX }>,
        allow_hyphen_values = true)]
    pub iodepth: Option<u32>,
}

const BS_UNIT_BYTES: u64 = 4 << 10;
const BS_BYTES_MAX: u64 = 1 << 30;
const MEMORY_BYTES_MAX: u64 = 4 << 30;

fn bs(text: &str) -> Result<usize, String> {
    let bytes = units::parse_block_size(text)?;
    if !bytes.is_multiple_of(BS_UNIT_BYTES) || bytes > BS_BYTES_MAX {
        return Err(format!("{text:?}: must be a multiple of 4K, and at most 1G"));
    }
    usize::try_from(bytes).map_err(|_| format!("{text:?}: is more than this machine can address"))
}

impl CopyArgs {
    /// Fails, with one line, if the buffers would take too much memory.
    pub fn check_memory(&self) -> Result<(), String> {
        let memory_bytes = self.bs_bytes() as u64 * u64::from(self.iodepth());
        if memory_bytes > MEMORY_BYTES_MAX {
            let (bs, most) = (units::block_size(self.bs_bytes() as u64), "4 GiB");
            let depth = self.iodepth();
            return Err(format!("--iodepth {depth}: times --bs of {bs} is more than {most}"));
        }
        Ok(())
    }

    /// Returns the options for each copy.
    pub fn options<'w>(&self) -> CopyOptions<'w> {
        CopyOptions::new()
            .reflink(self.reflink)
            .replace(self.force)
            .preserve(self.preserve)
            .durable(!self.no_sync)
            .verify(self.verify)
            .bs_bytes(self.bs_bytes())
            .iodepth(self.iodepth())
    }

    fn bs_bytes(&self) -> usize {
        self.bs.unwrap_or(CopyOptions::BS_BYTES)
    }

    fn iodepth(&self) -> u32 {
        self.iodepth.unwrap_or(CopyOptions::IODEPTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn arguments(line: &str) -> CopyArgs {
        let cli = Cli::try_parse_from(line.split(' ')).expect("a good command line");
        let Command::Copy(arguments) = cli.command else { panic!("not a copy: {line}") };
        arguments
    }

    fn told(line: &str) -> String {
        format!("{:?}", arguments(line).options())
    }

    #[test]
    fn by_default_a_copy_is_durable_and_replaces_nothing() {
        // W7
        let options = CopyOptions::new().durable(true).replace(false).verify(false);
        let options = options.reflink(None);
        assert_eq!(told("wrote copy a b"), format!("{options:?}"));
    }

    #[test]
    fn of_sync_and_no_sync_the_last_counts() {
        let durable = |line: &str| told(line).contains("durable: true");
        assert!(!durable("wrote copy --no-sync a b"));
        assert!(durable("wrote copy --no-sync --sync a b"));
        assert!(!durable("wrote copy --sync --no-sync a b"));
    }

    #[test]
    fn every_option_reaches_the_copy() {
        let line = "wrote copy -fp --strict --verify --reflink never --bs 64k --iodepth 3 a b";
        let options =
            CopyOptions::new().replace(true).preserve(true).verify(true).reflink(Some(false));
        assert_eq!(told(line), format!("{:?}", options.bs_bytes(64 << 10).iodepth(3)));
    }

    #[test]
    fn memory_has_a_limit() {
        // W8
        let refused = arguments("wrote copy --bs 1G --iodepth 5 a b").check_memory().unwrap_err();
        assert_eq!(refused, "--iodepth 5: times --bs of 1 GiB is more than 4 GiB");
        assert!(arguments("wrote copy --bs 1G --iodepth 4 a b").check_memory().is_ok());
        assert!(bs("6k").is_err() && bs("2G").is_err() && bs("4k").is_ok());
    }
}
