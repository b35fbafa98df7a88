//! Checks of the alignment of partitions.

use super::stack::Partition;
use super::world::World;
use wrote_result::doctor::{Check, Evidence};
use wrote_result::units;

/// `start` counts sectors of 512 bytes on every disk.
const SECTOR_BYTES: u64 = 512;
/// The block of nearly every file system, the page of flash, and the sector of turning disks that
/// report 512 for old programs.
const BLOCK_BYTES: u64 = 4096;

pub(super) fn check(world: &World, partition: &Partition) -> Check {
    let Partition { name, disk } = partition;
    let start = world.root.see(&format!("sys/block/{disk}/{name}/start"));
    let Some(start_bytes) = start.as_ref().and_then(Evidence::unsigned) else {
        return world.say("alignment.unknown", &[("disk", disk), ("name", name)]);
    };
    let start_bytes = start_bytes * SECTOR_BYTES;
    let queue = |file: &str| world.root.see(&format!("sys/block/{disk}/queue/{file}"));
    let bytes = |seen: &Option<Evidence>| seen.as_ref().and_then(Evidence::unsigned).unwrap_or(0);
    let (physical, optimal) = (queue("physical_block_size"), queue("optimal_io_size"));
    let offset = world.root.see(&format!("sys/block/{disk}/{name}/alignment_offset"));
    let block_bytes = bytes(&physical).max(BLOCK_BYTES);
    let optimal_bytes = bytes(&optimal);
    let key = if !start_bytes.is_multiple_of(block_bytes) || bytes(&offset) != 0 {
        "alignment.block"
    // Some USB bridges report 65535 sectors, which is not an alignment.
    } else if optimal_bytes > 0
        && optimal_bytes.is_multiple_of(block_bytes)
        && !start_bytes.is_multiple_of(optimal_bytes)
    {
        "alignment.stripe"
    } else {
        "alignment.fine"
    };
    let (block, best) = (units::block_size(block_bytes), units::block_size(optimal_bytes));
    let check = world.say(key, &[("start", &start_bytes), ("block", &block), ("optimal", &best)]);
    check.found(start).found(physical).found(optimal).found(offset)
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, checks_of, only};
    use super::*;
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(world, &["alignment"])
    }

    fn checked(start: u64, queue: &[(&str, &str)], offset: &str) -> Check {
        let fake = Fake::new();
        fake.disk("sda", queue);
        fake.partition("sda", "sda1", start);
        fake.file("sys/block/sda/sda1/alignment_offset", offset);
        only(&checks(&fake.world("sda1")), "alignment").clone()
    }

    #[test]
    fn a_partition_that_begins_inside_a_block_is_named() {
        let dos = checked(63, &[("physical_block_size", "512")], "0");
        assert_eq!((dos.state, dos.device.as_deref()), (State::Advice, Some("sda1")));
        assert!(dos.text.contains("byte 32256"), "{dos:?}");
        assert!(dos.change.unwrap().commands.is_empty(), "no command here can be pasted safely");
        let large = checked(2048 + 8, &[("physical_block_size", "16384")], "0");
        assert_eq!(large.state, State::Advice);
        assert_eq!(checked(2048, &[("physical_block_size", "4096")], "3584").state, State::Advice);
    }

    #[test]
    fn a_partition_that_begins_inside_a_stripe_is_named() {
        assert_eq!(checked(2048, &[("optimal_io_size", "1572864")], "0").state, State::Advice);
        assert_eq!(checked(2048, &[("optimal_io_size", "524288")], "0").state, State::Fine);
        let bridge = checked(2048, &[("optimal_io_size", "33553920")], "0");
        assert_eq!(bridge.state, State::Fine, "65535 sectors are no stripe");
    }

    #[test]
    fn a_partition_that_begins_where_a_block_does_is_fine() {
        assert_eq!(checked(2048, &[("physical_block_size", "4096")], "0").state, State::Fine);
        assert_eq!(checked(8, &[], "0").state, State::Fine);
    }

    #[test]
    fn a_whole_disk_has_no_partition_to_look_at() {
        let fake = Fake::new();
        fake.disk("sda", &[]);
        assert!(checks(&fake.world("sda")).is_empty());
    }
}
