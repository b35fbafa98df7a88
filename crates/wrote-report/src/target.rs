//! The path, its device and the machine, in a few compact lines.

use wrote_result::document::{Device, Document, Host, RankFiles, Ranks, Target};
use wrote_result::units;

/// The mount options, or their beginnings, that change how fast or how safe a write is. Other
/// options are only in the JSON document.
const OPTIONS_THAT_MATTER: &str = "\
    ro sync dirsync wsync noatime data= barrier nobarrier commit= journal_checksum \
    journal_async_commit nodelalloc discard dax compress nodatacow nodatasum autodefrag \
    stripe= sunit= logbsize= logdev= vers= size=";

/// Returns the facts about the path and the machine, in groups that have a label each.
pub fn facts(target: &Target, host: &Host) -> Vec<(&'static str, Vec<String>)> {
    let mut facts = vec![("Path", path_facts(target))];
    match &target.device {
        Some(device) => {
            facts.push(("Device", device_facts(device)));
            facts.push(("Queue", queue_facts(device)));
        }
        None => facts.push(("Device", vec![no_device(target)])),
    }
    facts.push(("Machine", machine_facts(host)));
    facts
}

/// Returns the facts about a measurement: the path, the machine, and the ranks if there were
/// several.
pub fn facts_of(document: &Document) -> Vec<(&'static str, Vec<String>)> {
    let mut facts = facts(&document.target, &document.host);
    facts.extend(document.ranks.as_ref().map(|ranks| ("Ranks", rank_facts(ranks))));
    facts
}

fn path_facts(target: &Target) -> Vec<String> {
    // A device itself has no file system that could be full.
    if target.filesystem == "none" {
        return vec![format!("{}, a block device", target.path)];
    }
    let mut facts = vec![format!("{} on {}", target.path, target.filesystem)];
    let matters = |option: &&String| {
        OPTIONS_THAT_MATTER.split(' ').any(|known| match known.strip_suffix('=') {
            Some(_) => option.starts_with(known),
            None => option.split('=').next() == Some(known),
        })
    };
    let options: Vec<&str> =
        target.mount_options.iter().filter(matters).map(String::as_str).collect();
    if !options.is_empty() {
        facts[0] += &format!(" ({})", options.join(","));
    }
    facts.push(format!(
        "{} of {} free",
        units::bytes(target.free_bytes),
        units::bytes(target.capacity_bytes)
    ));
    if target.capacity_bytes > 0 {
        let used = 1.0 - target.free_bytes as f64 / target.capacity_bytes as f64;
        facts.push(format!("{:.0} % full", used * 100.0));
    }
    if let Some(align_bytes) = target.dio_offset_align_bytes {
        let mut alignment =
            format!("direct I/O aligned to {}", units::block_size(align_bytes.into()));
        if let Some(memory_bytes) = target.dio_memory_align_bytes {
            alignment += &format!(" (memory {})", units::block_size(memory_bytes.into()));
        }
        facts.push(alignment);
    }
    if let (Some(min), Some(max)) = (target.atomic_write_bytes_min, target.atomic_write_bytes_max) {
        let size = |bytes: u32| units::block_size(bytes.into());
        let by = match target.atomic_write_device_bytes_max.unwrap_or(0) {
            0 => "by the file system".into(),
            device if device < max => format!("by the device up to {}", size(device)),
            _ => "by the device".into(),
        };
        facts.push(format!("untorn writes (RWF_ATOMIC) of {} to {}, {by}", size(min), size(max)));
    }
    facts
}

fn device_facts(device: &Device) -> Vec<String> {
    let mut facts = vec![device.name.clone()];
    if !device.disks.is_empty() {
        facts[0] += &format!(" on {}", device.disks.join(" + "));
    }
    facts.extend(device.model.clone());
    facts.push(units::bytes(device.capacity_bytes));
    facts.push(if device.rotational { "rotational" } else { "not rotational" }.into());
    facts.push(format!(
        "blocks of {} (physical {})",
        units::block_size(device.logical_block_bytes.into()),
        units::block_size(device.physical_block_bytes.into())
    ));
    facts
}

fn queue_facts(device: &Device) -> Vec<String> {
    vec![
        format!("write cache: {}", device.write_cache),
        if device.fua { "FUA" } else { "no FUA" }.into(),
        if device.io_poll { "poll queues" } else { "no poll queues" }.into(),
        format!("scheduler {}", device.scheduler),
        format!("{} requests", device.nr_requests),
    ]
}

fn no_device(target: &Target) -> String {
    match &target.no_device_because {
        Some(because) => format!("no block device: {because}"),
        None => "no block device".into(),
    }
}

fn machine_facts(host: &Host) -> Vec<String> {
    let cpus = units::counted(host.cpus.into(), "CPU");
    vec![
        format!("Linux {}", host.kernel),
        format!("{cpus} ({})", host.cpu_model),
        format!("{} memory", units::bytes(host.memory_bytes)),
        match host.virtualization.as_str() {
            "none" | "" => "no virtualization seen".into(),
            seen => format!("virtualization {seen}"),
        },
        format!("io_uring: {}", host.io_uring),
    ]
}

/// Returns the facts about the ranks, such as `4 ranks on 2 nodes (up to 2 a node)`.
fn rank_facts(ranks: &Ranks) -> Vec<String> {
    let [count, nodes] = [(ranks.ranks.into(), "rank"), (ranks.nodes.len() as u64, "node")]
        .map(|(count, word)| units::counted(count, word));
    let offset_s = ranks.nodes.iter().map(|node| node.clock_offset_s.abs()).fold(0.0, f64::max);
    vec![
        format!("{count} on {nodes} (up to {} a node)", ranks.ranks_per_node),
        match ranks.files {
            RankFiles::PerRank => "a file each".into(),
            RankFiles::Segments => "one file, a segment each".into(),
        },
        format!("clocks within {}", units::seconds(offset_s)),
    ]
}
