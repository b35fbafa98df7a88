//! Checks of the layers between file system and disks: loop devices, RAID, encryption.

use super::shell::quoted;
use super::stack::Disk;
use super::world::World;
use wrote_result::doctor::{Change, Check, Evidence};

pub(super) fn loop_device(world: &World, disk: &Disk) -> Option<Check> {
    let folder = format!("sys/block/{}/loop", disk.name);
    let file = world.root.see(&format!("{folder}/backing_file"))?;
    let direct = world.root.see(&format!("{folder}/dio"))?;
    let is_direct = direct.number() == Some(1);
    let shown = file.value.clone();
    let check = if is_direct {
        Check::fine(format!("the disk is the file {shown}, written past the page cache"))
    } else {
        let command = format!("losetup --direct-io=on {}", quoted(&format!("/dev/{}", disk.name)));
        Check::advice(format!("the disk is the file {shown}, written through the page cache"),
        )
        .costs(
            "What is written lies in memory twice, and a write that the program calls direct is \
             not.",
        )
        .measured(&world.measure("stream,small"))
        .change(
            Change::run(
                command,
                "refused where the block of the loop device is smaller than that of the disk \
                 below (losetup --sector-size); reads of what was in the cache are slower",
            )
            .lasting("losetup --direct-io=on where the device is set up"),
        )
    };
    let below = "The file's own file system keeps a journal too, and its disk has its own \
        settings: wrote doctor on the folder of the file examines them.";
    let costs = check.costs.iter().map(String::as_str).chain([below]);
    let costs = costs.collect::<Vec<_>>().join(" ");
    check
        .costs(costs)
        .found([file, direct])
        .source("losetup(8), --direct-io; kernel: drivers/block/loop.c")
        .into()
}

pub(super) fn raid(world: &World, layer: &str) -> Option<Check> {
    let folder = format!("sys/block/{layer}/md");
    let see = |file: &str| world.root.see(&format!("{folder}/{file}"));
    let level = see("level")?;
    let (degraded, action) = (see("degraded"), see("sync_action"));
    let missing = degraded.as_ref().and_then(Evidence::number).unwrap_or(0);
    let working =
        action.as_ref().map(|action| action.value.as_str()).filter(|doing| *doing != "idle");
    let name = level.value.clone();
    let check = if missing > 0 {
        Check::risk(format!("{name} with {missing} of its disks missing"))
            .costs(
                "The next disk that fails may take the data with it; of raid5 and raid6 each read \
                 of what is missing is computed from all other disks.",
            )
            .change(Change::run(
                format!("mdadm --manage /dev/{layer} --add /dev/NEW_DISK"),
                "what is on NEW_DISK is overwritten",
            ))
    } else if let Some(doing) = working {
        Check::advice(format!("{name} that is doing a {doing} now"))
            .costs(
                "It takes a part of every disk's time until it is done: what is measured now is \
                 not the array's speed.",
            )
            .change(Change::how(
                format!("wait until /sys/block/{layer}/md/sync_action says idle"),
                "none",
            ))
    } else if matches!(name.as_str(), "raid4" | "raid5" | "raid6") {
        let chunk = see("chunk_size").and_then(|chunk| chunk.number()).unwrap_or(0);
        Check::advice(format!(
            "{name}: a write of less than a stripe reads the old data or parity first"
        ))
        .found(see("chunk_size"))
        .found(see("stripe_cache_size"))
        .costs(
            "Small writes cost up to four operations on raid5 (two reads, two writes) and six on \
             raid6; long writes that begin at a stripe cost none of them.",
        )
        .measured(&world.measure("stream,small"))
        .change(Change::how(
            format!(
                "write whole stripes (its chunk is {} KiB), or keep small durable writes on raid1 \
                 or raid10",
                chunk / 1024
            ),
            "none",
        ))
    } else {
        Check::fine(format!("{name}, complete and idle"))
    };
    check
        .found([level])
        .found(degraded)
        .found(action)
        .source("md(4); kernel: Documentation/admin-guide/md.rst")
        .into()
}

pub(super) fn encryption(world: &World, layer: &str) -> Option<Check> {
    let uuid = world.root.see(&format!("sys/block/{layer}/dm/uuid"))?;
    if !uuid.value.starts_with("CRYPT-") {
        return None;
    }
    let name =
        world.root.text(&format!("sys/block/{layer}/dm/name")).unwrap_or_else(|| layer.to_owned());
    let text = format!("{name} encrypts every block (dm-crypt)");
    let command = format!(
        "cryptsetup refresh --perf-no_read_workqueue --perf-no_write_workqueue {}",
        quoted(&name)
    );
    Check::advice(text)
        .found([uuid])
        .costs(format!(
            "CPU time for each byte (cryptsetup benchmark says how many bytes a second one core \
             can do), and work queues that each request passes: without them Cloudflare doubled \
             the throughput of its NVMe disks (2020). Whether they are off already is not in /sys: \
             cryptsetup status {} shows it.",
            quoted(&name)
        ))
        .measured(&world.measure("stream,rand"))
        .change(
            Change::run(
                command,
                "it needs Linux 5.9; on disks that turn, or with a slow cipher, requests then \
                 wait for each other",
            )
            .lasting(
                "the options no-read-workqueue,no-write-workqueue in /etc/crypttab, or \
                 --persistent for LUKS2",
            ),
        )
        .source("cryptsetup-refresh(8), --perf-no_write_workqueue")
        .source("Korchagin: Speeding up Linux disk encryption, Cloudflare, 2020")
        .into()
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
