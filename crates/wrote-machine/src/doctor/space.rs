//! Checks of the room for bytes and for files.

use super::world::World;
use crate::space::USED_SHARE_MAX;
use wrote_result::doctor::{Change, Check, Evidence};
use wrote_result::units;

/// A lack of inodes slows no write until the last one is used.
const INODES_USED_SHARE_MAX: f64 = 0.95;

pub(super) fn space(world: &World) -> Option<Check> {
    let target = &world.target;
    if target.capacity_bytes == 0 || target.filesystem == "none" {
        return None;
    }
    let used_share = 1.0 - target.free_bytes as f64 / target.capacity_bytes as f64;
    let (free, all) = (units::bytes(target.free_bytes), units::bytes(target.capacity_bytes));
    let text = format!("{free} of {all} are free ({:.0} % used)", used_share * 100.0);
    let found = [Evidence::new("statvfs(3), f_bavail and f_blocks", format!("{free} of {all}"))];
    if used_share <= USED_SHARE_MAX {
        return Some(Check::fine(text).found(found));
    }
    let check = if target.free_bytes == 0 {
        Check::risk(format!("{text}: the next write fails"))
    } else {
        Check::advice(format!("{text}: nearly full"))
    };
    let how = "remove what is not needed, then tell the disk with fstrim where it takes TRIM";
    check
        .found(found)
        .costs(
            "Free space lies in pieces (e2freefrag DEVICE shows them on ext4), and a disk of \
             flash has fewer erased blocks in reserve.",
        )
        .measured(&world.measure("stream"))
        .change(Change::how(how, "what is removed is gone"))
        .source("statvfs(3); e2freefrag(8)")
        .into()
}

pub(super) fn inodes(world: &World) -> Option<Check> {
    let (all, free) = world.inodes;
    // Btrfs and others make inodes on demand, and report 0.
    if all == 0 || world.target.filesystem == "none" {
        return None;
    }
    let used_share = 1.0 - free as f64 / all as f64;
    let text = format!("{free} of {all} inodes are free");
    let found = [Evidence::new("statvfs(3), f_favail and f_files", format!("{free} of {all}"))];
    if used_share <= INODES_USED_SHARE_MAX {
        return Some(Check::fine(text).found(found));
    }
    Check::advice(format!("{text}: soon no file can be made, whatever space there is"))
        .found(found)
        .costs("No speed; then every new file fails with ENOSPC.")
        .change(Change::how(
            "remove files, or put many small ones into few large ones; ext4 gets its inodes when \
             it is made (mkfs.ext4 -N)",
            "making a file system anew destroys what is on it",
        ))
        .source("statvfs(3); mke2fs(8), -N")
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::fake::{checks_of, mounted, state};
    use super::*;
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(world, &["space", "inodes"])
    }

    #[test]
    fn a_file_system_is_nearly_full_above_the_share_and_not_at_it() {
        let (_fake, mut world) = mounted("ext4", &["relatime"]);
        world.target.capacity_bytes = 1000;
        for (free_bytes, wanted) in
            [(150, State::Fine), (149, State::Advice), (1, State::Advice), (0, State::Risk)]
        {
            world.target.free_bytes = free_bytes;
            assert_eq!(state(&checks(&world), "space"), Some(wanted), "{free_bytes}");
        }
    }

    #[test]
    fn inodes_are_told_of_when_few_are_left_and_the_file_system_has_a_number_of_them() {
        let (_fake, mut world) = mounted("ext4", &["relatime"]);
        for (inodes, wanted) in [
            ((1000, 50), Some(State::Fine)),
            ((1000, 49), Some(State::Advice)),
            ((1000, 0), Some(State::Advice)),
            ((0, 0), None),
        ] {
            world.inodes = inodes;
            assert_eq!(state(&checks(&world), "inodes"), wanted, "{inodes:?}");
        }
    }

    #[test]
    fn a_block_device_itself_is_never_full() {
        let (_fake, mut world) = mounted("none", &[]);
        world.target.free_bytes = 0;
        assert!(checks(&world).is_empty());
    }
}
