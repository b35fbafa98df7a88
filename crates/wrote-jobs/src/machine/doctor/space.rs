//! Checks of the room for bytes and for files.

use super::world::World;
use crate::machine::space::USED_SHARE_MAX;
use wrote_result::doctor::{Check, Evidence};
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
    let key = match target.free_bytes {
        _ if used_share <= USED_SHARE_MAX => "space.fine",
        0 => "space.full",
        _ => "space.nearly",
    };
    let used = format!("{:.0}", used_share * 100.0);
    let found = [Evidence::new("statvfs(3), f_bavail and f_blocks", format!("{free} of {all}"))];
    Some(world.say(key, &[("free", &free), ("all", &all), ("used", &used)]).found(found))
}

pub(super) fn inodes(world: &World) -> Option<Check> {
    let (all, free) = world.inodes;
    // Btrfs and others make inodes on demand, and report 0.
    if all == 0 || world.target.filesystem == "none" {
        return None;
    }
    let is_fine = 1.0 - free as f64 / all as f64 <= INODES_USED_SHARE_MAX;
    let key = if is_fine { "inodes.fine" } else { "inodes.few" };
    let found = [Evidence::new("statvfs(3), f_favail and f_files", format!("{free} of {all}"))];
    Some(world.say(key, &[("free", &free), ("all", &all)]).found(found))
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
