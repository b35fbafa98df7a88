//! A new file system for each run, in an image of its own.

/// Makes the image. ext4 without a journal passes over inodes that were removed in the last minutes
/// (`recently_deleted` in fs/ext4/ialloc.c): each run would pay for those before.
pub const FRESH: &str = "rm -rf disk image && mkdir disk && truncate -s 4G image && \
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 image";

/// Unmounts the file system however the shell ends. A signal alone would skip the trap of `EXIT`.
const UNMOUNT: &str = "trap 'umount disk' EXIT && trap 'exit 1' HUP INT TERM";

/// Returns the line that mounts the image on `disk`, runs `prepare`, then `command` in it.
pub fn mounted(prepare: &str, command: &str) -> String {
    format!("{UNMOUNT} && mount -o loop image disk && {prepare}(cd disk && {command})")
}
