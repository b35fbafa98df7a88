//! Checks of the layers between file system and disks: loop devices, RAID, encryption.

use super::shell::quoted;
use super::stack::Disk;
use super::texts::Values;
use super::world::World;
use wrote_result::doctor::{Check, Evidence};

pub(super) fn loop_device(world: &World, disk: &Disk) -> Option<Check> {
    let folder = format!("sys/block/{}/loop", disk.name);
    let file = world.root.see(&format!("{folder}/backing_file"))?;
    let direct = world.root.see(&format!("{folder}/dio"))?;
    let is_direct = direct.number() == Some(1);
    let key = if is_direct { "loop-device.direct" } else { "loop-device.cached" };
    let device = quoted(&format!("/dev/{}", disk.name));
    let check = world.say(key, &[("file", &file.value), ("device", &device)]);
    Some(check.found([file, direct]))
}

pub(super) fn raid(world: &World, layer: &str) -> Option<Check> {
    let see = |file: &str| world.root.see(&format!("sys/block/{layer}/md/{file}"));
    let level = see("level")?;
    let (degraded, action) = (see("degraded"), see("sync_action"));
    let missing = degraded.as_ref().and_then(Evidence::number).unwrap_or(0);
    let doing = action.as_ref().map_or("idle", |action| action.value.as_str());
    let name = &level.value;
    let check = if missing > 0 {
        let values: &Values = &[("name", name), ("missing", &missing), ("layer", &layer)];
        world.say("raid.degraded", values)
    } else if doing != "idle" {
        world.say("raid.working", &[("name", name), ("doing", &doing), ("layer", &layer)])
    } else if matches!(name.as_str(), "raid4" | "raid5" | "raid6") {
        let chunk = see("chunk_size").and_then(|chunk| chunk.number()).unwrap_or(0) / 1024;
        let check = world.say("raid.parity", &[("name", name), ("chunk", &chunk)]);
        check.found(see("chunk_size")).found(see("stripe_cache_size"))
    } else {
        world.say("raid.fine", &[("name", name)])
    };
    Some(check.found([level]).found(degraded).found(action))
}

pub(super) fn encryption(world: &World, layer: &str) -> Option<Check> {
    let uuid = world.root.see(&format!("sys/block/{layer}/dm/uuid"))?;
    if !uuid.value.starts_with("CRYPT-") {
        return None;
    }
    let name = world.root.text(&format!("sys/block/{layer}/dm/name"));
    let name = name.unwrap_or_else(|| layer.to_owned());
    let quoted = quoted(&name);
    Some(world.say("encryption.on", &[("name", &name), ("quoted", &quoted)]).found([uuid]))
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, checks_of, command, only};
    use super::*;
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(world, &["loop-device", "raid", "encryption"])
    }

    fn looped(direct: &str) -> Check {
        let fake = Fake::new();
        fake.disk("loop3", &[]);
        fake.file("sys/block/loop3/loop/backing_file", "/images/a b");
        fake.file("sys/block/loop3/loop/dio", direct);
        only(&checks(&fake.world("loop3")), "loop-device").clone()
    }

    fn array(files: &[(&str, &str)]) -> Check {
        let fake = Fake::new();
        fake.disk("sda", &[]);
        fake.disk("md0", &[]);
        fake.slave("md0", "sda");
        for (file, content) in files {
            fake.file(&format!("sys/block/md0/md/{file}"), content);
        }
        only(&checks(&fake.world("md0")), "raid").clone()
    }

    #[test]
    fn a_loop_device_that_writes_through_the_page_cache_is_named() {
        let cached = looped("0");
        assert_eq!(cached.state, State::Advice);
        assert_eq!(command(&cached), "losetup --direct-io=on /dev/loop3");
        assert_eq!(looped("1").state, State::Fine);
    }

    #[test]
    fn an_array_without_one_of_its_disks_is_a_risk() {
        let whole = [("level", "raid1"), ("degraded", "0"), ("sync_action", "idle")];
        assert_eq!(array(&whole).state, State::Fine);
        assert_eq!(array(&[("level", "raid1"), ("degraded", "1")]).state, State::Risk);
    }

    #[test]
    fn an_array_at_work_and_one_with_parity_are_named() {
        let busy = array(&[("level", "raid1"), ("degraded", "0"), ("sync_action", "resync")]);
        assert_eq!(busy.state, State::Advice);
        assert!(busy.text.contains("resync"));
        let parity =
            array(&[("level", "raid5"), ("chunk_size", "524288"), ("sync_action", "idle")]);
        assert_eq!(parity.state, State::Advice);
        assert!(parity.change.unwrap().how.unwrap().contains("512 KiB"));
    }

    #[test]
    fn an_encrypted_device_is_named_and_a_plain_volume_is_not() {
        let of = |uuid: &str| {
            let fake = Fake::new();
            fake.disk("sda", &[]);
            fake.disk("dm-0", &[]);
            fake.slave("dm-0", "sda");
            fake.file("sys/block/dm-0/dm/uuid", uuid);
            fake.file("sys/block/dm-0/dm/name", "data");
            checks(&fake.world("dm-0"))
        };
        let found = of("CRYPT-LUKS2-00ff-data");
        let check = only(&found, "encryption");
        assert_eq!((check.state, check.device.as_deref()), (State::Advice, Some("dm-0")));
        assert!(command(check).ends_with("--perf-no_write_workqueue data"));
        assert!(of("LVM-abc").is_empty());
    }
}
