//! Checks of the path itself: attributes of the file, and its written share.

use super::file_facts::FileRoom;
use super::shell::quoted;
use super::world::World;
use rustix::fs::IFlags;
use wrote_result::doctor::{Check, Evidence};
use wrote_result::units;

/// `FS_ENCRYPT_FL` of `linux/fs.h`, without a name in rustix.
const ENCRYPTED: u32 = 0x800;
/// The least unwritten space of a file that is reported.
const UNWRITTEN_BYTES_MIN: u64 = 1 << 20;

pub(super) fn attributes_check(world: &World) -> Option<Check> {
    let flags = match world.file.attributes.as_ref()? {
        Ok(flags) => *flags,
        Err(because) => {
            return Some(world.say("file-attributes.unknown", &[("because", because)]));
        }
    };
    let has = |flag: IFlags| flags.contains(flag);
    let key = if has(IFlags::IMMUTABLE) {
        "file-attributes.immutable"
    } else if has(IFlags::SYNC) {
        "file-attributes.sync"
    } else if has(IFlags::JOURNALING) {
        "file-attributes.journal"
    } else if has(IFlags::COMPRESSED) {
        "file-attributes.compressed"
    } else if flags.bits() & ENCRYPTED != 0 {
        "file-attributes.encrypted"
    } else if has(IFlags::NOCOW) && world.target.filesystem == "btrfs" {
        "file-attributes.nocow"
    } else if has(IFlags::APPEND) {
        "file-attributes.append"
    } else {
        "file-attributes.fine"
    };
    let path = quoted(&world.target.path.to_string_lossy());
    let shown = format!("{:#x}", flags.bits());
    let found = [Evidence::new("ioctl_iflags(2), FS_IOC_GETFLAGS", shown)];
    Some(world.say(key, &[("path", &path)]).found(found))
}

pub(super) fn extents_check(world: &World) -> Option<Check> {
    let room = match world.file.room.as_ref()? {
        Ok(room) => *room,
        Err(because) => return Some(world.say("file-extents.unknown", &[("because", because)])),
    };
    let FileRoom { allocated_bytes, written_bytes } = room;
    let unwritten_bytes = allocated_bytes.saturating_sub(written_bytes);
    let found = [
        Evidence::new("stat(2), st_blocks", units::bytes(allocated_bytes)),
        Evidence::new("lseek(2), SEEK_DATA", units::bytes(written_bytes)),
    ];
    // A file's last block, and its map of blocks, are allocated too.
    let is_fine = unwritten_bytes <= UNWRITTEN_BYTES_MIN.max(allocated_bytes / 100);
    let key = if is_fine { "file-extents.fine" } else { "file-extents.unwritten" };
    Some(world.say(key, &[("unwritten", &units::bytes(unwritten_bytes))]).found(found))
}

#[cfg(test)]
mod tests {
    use super::super::checks;
    use super::super::fake::{checks_of, command, mounted, only, state};
    use super::super::file_facts::FileFacts;
    use super::*;
    use rustix::fs::Mode;
    use std::io::Write;
    use wrote_result::doctor::State;

    fn judged(filesystem: &str, flags: IFlags) -> Check {
        let (_fake, mut world) = mounted(filesystem, &["relatime"]);
        world.file.attributes = Some(Ok(flags));
        only(&checks(&world), "file-attributes").clone()
    }

    #[test]
    fn each_attribute_that_matters_is_named_and_others_are_not() {
        for (flags, wanted, undo) in [
            (IFlags::IMMUTABLE, State::Risk, "-i"),
            (IFlags::SYNC, State::Advice, "-S"),
            (IFlags::JOURNALING, State::Advice, "-j"),
            (IFlags::COMPRESSED, State::Advice, "-c"),
            (IFlags::APPEND, State::Advice, "-a"),
        ] {
            let check = judged("ext4", flags);
            assert_eq!(check.state, wanted, "{flags:?}");
            assert_eq!(command(&check), format!("chattr {undo} /mnt/data"));
        }
        let encrypted = IFlags::from_bits_retain(ENCRYPTED);
        assert_eq!(judged("ext4", encrypted).state, State::Advice);
        assert_eq!(judged("btrfs", IFlags::NOCOW).state, State::Risk);
        assert_eq!(judged("ext4", IFlags::NODUMP).state, State::Fine);
        assert_eq!(judged("ext4", IFlags::empty()).state, State::Fine);
    }

    #[test]
    fn space_that_was_set_aside_and_never_written_is_named() {
        let (_fake, mut world) = mounted("ext4", &["relatime"]);
        for (allocated_bytes, written_bytes, wanted) in [
            (64 << 20, 16 << 20, State::Advice),
            (64 << 20, 64 << 20, State::Fine),
            (512 << 10, 0, State::Fine),
            (4 << 10, 64 << 20, State::Fine),
        ] {
            world.file.room = Some(Ok(FileRoom { allocated_bytes, written_bytes }));
            let found = state(&checks(&world), "file-extents");
            assert_eq!(found, Some(wanted), "{allocated_bytes} {written_bytes}");
        }
    }

    #[test]
    fn what_can_not_be_looked_at_is_unknown_with_the_reason() {
        let (_fake, mut world) = mounted("ext4", &["relatime"]);
        world.file.attributes = Some(Err("no".into()));
        world.file.room = Some(Err("no".into()));
        let checks = checks_of(&world, &["file-attributes", "file-extents"]);
        assert!(checks.iter().all(|check| check.state == State::Unknown), "{checks:?}");
        assert_eq!(checks.len(), 2);
    }

    #[test]
    fn a_file_is_looked_at_and_a_fifo_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&[1; 8192]).unwrap();
        file.sync_all().unwrap();
        let room = FileFacts::of(&path).room.unwrap().unwrap();
        assert_eq!(room.written_bytes, 8192);
        assert!(FileFacts::of(folder.path()).is_folder);
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        let facts = FileFacts::of(&fifo);
        assert!(!facts.is_file && facts.attributes.is_none() && facts.room.is_none());
    }
}
