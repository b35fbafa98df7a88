//! Lines of Rust that write in the way of a row.

use wrote_result::document::{Blocks, Flush, Ioengine, Settings, Target};
use wrote_result::units::block_size;

/// Returns the lines for `settings`, given `path`, `folder` and `chunk` (the bytes of one write).
/// They use the standard library, and the constants of the crate `libc` for the flags of an open.
/// Where many writes are in flight, a comment stands for the queue.
pub(super) fn of(settings: &Settings, durable: bool, target: &Target) -> String {
    let mut lines = vec![open(settings)];
    if settings.blocks == Blocks::Allocated {
        lines.push("// first allocate the whole file: fallocate(2), in the crate rustix".into());
    }
    if settings.direct {
        lines.push(format!(
            "// memory, offset and length of each write: multiples of {} bytes",
            alignment_bytes(target)
        ));
    }
    let size = block_size(settings.bs_bytes);
    match settings.ioengine {
        Ioengine::IoUring => lines.push(format!(
            "// keep {} writes of {size} in flight with the crate io-uring, from registered buffers",
            settings.iodepth
        )),
        Ioengine::Threads => lines.push(format!(
            "// keep {} writes of {size} in flight: write_all_at on a pool of threads",
            settings.iodepth
        )),
        _ => lines.push(format!("std::io::Write::write_all(&mut file, chunk)?; // each {size}")),
    }
    match settings.sync {
        Flush::FdatasyncAtEnd => {
            lines.push("file.sync_data()?; // fdatasync, once, at the end".into())
        }
        Flush::FdatasyncEach => {
            lines.push("file.sync_data()?; // fdatasync, after each write".into())
        }
        _ => {}
    }
    // A new file survives only if its folder's entry does (fsync(2)).
    if durable && settings.blocks != Blocks::Written {
        lines.push("std::fs::File::open(folder)?.sync_all()?; // once: the new file's name".into());
    }
    lines.join("\n")
}

fn open(settings: &Settings) -> String {
    let mut flags = Vec::new();
    if settings.direct {
        flags.push("libc::O_DIRECT");
    }
    if settings.sync == Flush::ODsyncEach {
        flags.push("libc::O_DSYNC");
    }
    let overwritten = settings.blocks == Blocks::Written;
    if flags.is_empty() && !overwritten {
        return "let mut file = std::fs::File::create(path)?;".into();
    }
    let mut lines = Vec::new();
    if !flags.is_empty() {
        lines.push("use std::os::unix::fs::OpenOptionsExt;".to_owned());
    }
    lines.push("let mut file = std::fs::OpenOptions::new()".into());
    lines.push(match overwritten {
        true => "    .write(true) // the file's blocks were written before".into(),
        false => "    .write(true).create(true).truncate(true)".into(),
    });
    if !flags.is_empty() {
        lines.push(format!("    .custom_flags({})", flags.join(" | ")));
    }
    lines.push("    .open(path)?;".into());
    lines.join("\n")
}

/// Returns the alignment of a direct write: the file system's, the device's block, or 4096.
fn alignment_bytes(target: &Target) -> u32 {
    let told = target.dio_offset_align_bytes.max(target.dio_memory_align_bytes);
    let block = target.device.as_ref().map(|device| device.logical_block_bytes);
    told.or(block).filter(|bytes| *bytes > 0).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{row, target};
    use std::path::Path;
    use std::process::Command;
    use wrote_result::document::Device;

    const WAYS: [&str; 8] = [
        "cached",
        "cached-fdatasync-at-end",
        "direct-psync",
        "direct-io_uring",
        "direct-io_uring-fdatasync-at-end",
        "o_dsync-each",
        "fdatasync-each",
        "direct-o_dsync-each-overwrite",
    ];

    fn code(way: &str, durable: bool) -> String {
        of(
            &row(&format!("stream/{way}"), "power-loss", &[1.0]).settings.effective,
            durable,
            &target(),
        )
    }

    #[test]
    fn every_piece_of_code_compiles() {
        let mut program = String::from(
            "#![allow(warnings)]\nmod libc { pub const O_DIRECT: i32 = 1; pub const O_DSYNC: i32 = 2; }\n",
        );
        for (number, way) in WAYS.iter().enumerate() {
            program += &format!(
                "pub fn f{number}(path: &std::path::Path, folder: &std::path::Path, chunk: &[u8]) \
                 -> std::io::Result<()> {{\n{}\nOk(()) }}\n",
                code(way, true)
            );
        }
        let folder = tempfile::TempDir::new().unwrap();
        let source = folder.path().join("advice.rs");
        std::fs::write(&source, &program).unwrap();
        compile(&source, folder.path(), &program);
    }

    fn compile(source: &Path, folder: &Path, program: &str) {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc)
            .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"])
            .args([folder, source])
            .output()
            .expect("rustc runs where cargo test does");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}\n{program}");
    }

    #[test]
    fn a_durable_new_file_has_its_folder_flushed_and_an_old_one_needs_not() {
        assert!(code("fdatasync-each", true).contains("File::open(folder)?.sync_all()?"));
        assert!(!code("cached", false).contains("folder"));
        assert!(!code("direct-o_dsync-each-overwrite", true).contains("folder"));
    }

    #[test]
    fn the_flags_are_those_that_were_in_effect() {
        assert!(code("direct-o_dsync-each-overwrite", true).contains("O_DIRECT | libc::O_DSYNC"));
        assert!(code("o_dsync-each", true).contains("custom_flags(libc::O_DSYNC)"));
        assert!(code("direct-psync", false).contains("multiples of 512 bytes"));
        assert!(!code("cached", false).contains("flags"));
        assert!(!code("direct-o_dsync-each-overwrite", true).contains("truncate"));
    }

    #[test]
    fn the_alignment_is_the_strictest_that_is_known() {
        let mut target = Target::default();
        assert_eq!(alignment_bytes(&target), 4096);
        target.device = Some(Device { logical_block_bytes: 512, ..Device::default() });
        assert_eq!(alignment_bytes(&target), 512);
        target.dio_offset_align_bytes = Some(4096);
        target.dio_memory_align_bytes = Some(4);
        assert_eq!(alignment_bytes(&target), 4096);
    }
}
