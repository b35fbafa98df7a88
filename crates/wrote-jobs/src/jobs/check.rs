//! Checks of jobs, alone and together, before the run makes a file.

use super::place::{Identity, Kind, file_key, kind};
use super::reports::{Overlap, Permissions};
use crate::buffers;
use crate::spec::{BlockSizes, JobSpec};
use crate::worker::header::HEADER_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use wrote::{Ioengine, Options};
use wrote_machine::{host, space};
use wrote_result::{Error, units};

const BS_BYTES_MAX: u64 = 1 << 30;

/// Refuses jobs that make no sense or are not permitted. `note` receives what is permitted and may
/// surprise.
pub fn check(
    specs: &[JobSpec],
    permissions: Permissions,
    note: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    if specs.is_empty() {
        return Err(Error::Usage("there is no job to run".into()));
    }
    for spec in specs {
        check_job(spec).map_err(|what| Error::Usage(format!("{}: {what}", label(spec))))?;
    }
    for (number, spec) in specs.iter().enumerate() {
        let is_before = |name: &String| specs[..number].iter().any(|job| job.name == *name);
        let missing = spec.wait_for.as_ref().filter(|name| !is_before(name) || **name == spec.name);
        if let Some(name) = missing {
            let label = label(spec);
            let text = format!("{label}: waits for {name}, and there is no such job before it");
            return Err(Error::Usage(text));
        }
    }
    // A file that an earlier job makes belongs to the run, so later jobs may write to it.
    let mut coming: BTreeMap<PathBuf, u64> = BTreeMap::new();
    let mut unlinked: BTreeSet<PathBuf> = BTreeSet::new();
    for group in groups(specs) {
        let buffers =
            group.iter().map(|spec| buffers::buffers_bytes(most_bytes(spec), spec.iodepth));
        let buffers = buffers.fold(0, u64::saturating_add);
        buffers::check_buffers("bs x iodepth x numjobs", buffers, host::memory_bytes())?;
        check_overlap(&group, permissions, note)?;
        for spec in &group {
            check_files(spec, permissions, &mut coming, &unlinked)?;
        }
        for spec in &group {
            let keys = spec.files.iter().map(|path| file_key(path));
            if spec.unlink {
                unlinked.extend(keys);
            }
        }
    }
    if permissions.fill { Ok(()) } else { check_space(&coming) }
}

pub fn groups(specs: &[JobSpec]) -> Vec<Vec<&JobSpec>> {
    let mut groups: BTreeMap<u32, Vec<&JobSpec>> = BTreeMap::new();
    specs.iter().for_each(|spec| groups.entry(spec.group).or_default().push(spec));
    groups.into_values().collect()
}

/// Returns the largest block of the job's directions.
pub fn most_bytes(spec: &JobSpec) -> u64 {
    used_sizes(spec).map(BlockSizes::most_bytes).max().unwrap_or(0)
}

fn used_sizes(spec: &JobSpec) -> impl Iterator<Item = &BlockSizes> {
    let read = spec.rw.read.then_some(&spec.read_bs);
    read.into_iter().chain(spec.rw.write.then_some(&spec.write_bs))
}

fn check_job(spec: &JobSpec) -> Result<(), String> {
    let refuse = |what: String| Err(what);
    if !spec.rw.read && !spec.rw.write {
        return refuse("rw: it neither reads nor writes".into());
    }
    for sizes in used_sizes(spec) {
        if sizes.least_bytes() == 0 || sizes.most_bytes() > BS_BYTES_MAX {
            return refuse("bs: a block has 1 byte to 1 GiB".into());
        }
        if sizes.0.iter().map(|share| u64::from(share.percent)).sum::<u64>() != 100 {
            return refuse("bssplit: the percents do not add up to 100".into());
        }
    }
    if spec.rwmixread_percent > 100 {
        return refuse(format!("rwmixread: {} is more than 100", spec.rwmixread_percent));
    }
    let depth_max = Options::IODEPTH_MAX;
    if !(1..=depth_max).contains(&spec.iodepth) {
        return refuse(format!("iodepth: {} is not in 1 to {depth_max}", spec.iodepth));
    }
    if spec.loops == 0 {
        return refuse("loops: 0 loops do nothing".into());
    }
    if spec.time_based && spec.runtime.is_none() {
        return refuse("time_based: needs a runtime to end after".into());
    }
    let files_max = Options::FILES_MAX as usize;
    if !(1..=files_max).contains(&spec.files.len()) {
        return refuse(format!("it has {} files; 1 to {files_max} can be used", spec.files.len()));
    }
    if !spec.does_io() && spec.file_bytes.is_none() {
        return refuse("ioengine=null uses no file, so there must be a size".into());
    }
    if spec.unlink && spec.file_bytes.is_none() {
        return refuse(
            "unlink: removes only files that the run makes, and there is no size".into(),
        );
    }
    if spec.verify.is_some() {
        check_verify(spec)?;
    }
    Ok(())
}

fn check_verify(spec: &JobSpec) -> Result<(), String> {
    if !spec.does_io() {
        return Err("verify: ioengine=null keeps nothing that could be checked".into());
    }
    if spec.rw.read && spec.rw.write && is_paced(spec) {
        let why = "the rates decide as they go what is written, which can't be done over again";
        return Err(format!("verify: not of a mix under rates: {why}"));
    }
    let least = used_sizes(spec).map(BlockSizes::least_bytes).min().unwrap_or(0);
    if least < HEADER_BYTES as u64 {
        return Err(format!(
            "verify: a block of {least} bytes has no room for its header of {HEADER_BYTES}"
        ));
    }
    Ok(())
}

fn is_paced(spec: &JobSpec) -> bool {
    let bytes = [spec.read_rate_bytes_per_s, spec.write_rate_bytes_per_s];
    let operations = [spec.read_rate_iops, spec.write_rate_iops];
    bytes.iter().any(Option::is_some) || operations.iter().any(Option::is_some)
}

fn check_files(
    spec: &JobSpec,
    permissions: Permissions,
    coming: &mut BTreeMap<PathBuf, u64>,
    unlinked: &BTreeSet<PathBuf>,
) -> Result<(), Error> {
    if !spec.does_io() {
        return Ok(());
    }
    for path in &spec.files {
        let key = file_key(path);
        let shown = path.display();
        let usage = |what: &str| Err(Error::Usage(format!("{shown}: {what}")));
        let grows_to = if spec.file_bytes.is_some() { region(spec).end } else { 0 };
        let is_gone = unlinked.contains(&key) && spec.file_bytes.is_none();
        if let Some(end) = coming.get_mut(&key).filter(|_| !is_gone) {
            *end = grows_to.max(*end);
            continue;
        }
        let kind = kind(path)?;
        kind.check_write(path, spec, permissions.overwrite)?;
        if spec.unlink && kind != Kind::Missing {
            return usage("exists, and unlink removes only files that the run makes");
        }
        match kind {
            Kind::Missing if spec.file_bytes.is_none() => {
                return usage("does not exist, and there is no size to make it with");
            }
            Kind::Missing if spec.verify.is_some() && !spec.rw.write => {
                return usage("does not exist, so there is nothing in it to verify");
            }
            Kind::Missing => {
                coming.insert(key, grows_to);
            }
            Kind::File { .. } if spec.rw.write => {
                coming.insert(key, grows_to);
            }
            Kind::File { .. } | Kind::Device { .. } => {}
        }
    }
    Ok(())
}

/// Refuses files that would leave too little of a file system free.
fn check_space(coming: &BTreeMap<PathBuf, u64>) -> Result<(), Error> {
    let mut wanted: BTreeMap<PathBuf, (u64, wrote::device::Target)> = BTreeMap::new();
    for (path, end) in coming {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let Ok(target) = wrote::device::examine(folder) else { continue };
        let entry = wanted.entry(target.mount_point.clone()).or_insert((0, target));
        entry.0 = entry.0.saturating_add(end.saturating_sub(super::place::allocated_bytes(path)));
    }
    for (bytes, target) in wanted.values() {
        let budget = space::budget(target.capacity_bytes, target.free_bytes);
        if target.capacity_bytes > 0 && *bytes > budget {
            return Err(Error::Failed(format!(
                "{}: {} of files do not fit: {} may be used, so that enough stays free; give a \
                 smaller size",
                target.mount_point.display(),
                units::bytes(*bytes),
                units::bytes(budget)
            )));
        }
    }
    Ok(())
}

/// Tells whether the engine carries out one operation at a time at any depth.
pub fn is_synchronous(ioengine: Ioengine) -> bool {
    matches!(ioengine, Ioengine::Psync | Ioengine::Mmap)
}

/// Returns the name of a job in texts about several jobs.
pub fn label(spec: &JobSpec) -> String {
    if spec.clone == 0 { spec.name.clone() } else { format!("{} ({})", spec.name, spec.clone) }
}

/// Returns the bytes that the job uses of each file, as far as they are known before it is opened.
pub fn region(spec: &JobSpec) -> Range<u64> {
    let end = spec.file_bytes.map_or(u64::MAX, |bytes| spec.offset_bytes.saturating_add(bytes));
    spec.offset_bytes..end
}

/// Refuses jobs that write to bytes that other jobs use at the same time, unless that is permitted:
/// they would measure each other.
pub fn check_overlap(
    group: &[&JobSpec],
    permissions: Permissions,
    note: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    for (path, other, spec) in shared(group) {
        if std::ptr::eq(other, spec) {
            let (label, path) = (label(spec), path.display());
            return Err(Error::Usage(format!("{label}: names {path} twice")));
        }
        if !clash(group, other, spec) {
            continue;
        }
        let text = format!(
            "{}: {} and {} use the same bytes of it at once, and not only to read them",
            path.display(),
            label(other),
            label(spec)
        );
        if !permissions.overlap {
            let way_out = "give each its own file or offset; --allow-overlap allows it";
            return Err(Error::Usage(format!("{text}; {way_out}")));
        }
        if other.verify.is_some() || spec.verify.is_some() {
            return Err(Error::Usage(format!("{text}; verify can't be held against that")));
        }
        note(&text);
    }
    Ok(())
}

/// Returns the jobs of a group that use the same bytes at once, where one of them writes.
pub fn overlaps(group: &[&JobSpec]) -> Vec<Overlap> {
    let clashes = shared(group).into_iter().filter(|(_, other, spec)| clash(group, other, spec));
    let overlap = |(path, other, spec): (&Path, &JobSpec, &JobSpec)| Overlap {
        file: path.to_owned(),
        jobs: [label(other), label(spec)],
    };
    clashes.map(overlap).collect()
}

/// Returns each file that two jobs of the group use, or one job twice, in the order of the jobs.
fn shared<'a>(group: &[&'a JobSpec]) -> Vec<(&'a Path, &'a JobSpec, &'a JobSpec)> {
    let mut users: BTreeMap<Identity, Vec<&JobSpec>> = BTreeMap::new();
    let mut shared = Vec::new();
    for spec in group {
        for path in &spec.files {
            let others = users.entry(Identity::of(path)).or_default();
            shared.extend(others.iter().map(|other| (path.as_path(), *other, *spec)));
            others.push(spec);
        }
    }
    shared
}

/// Returns whether the later job of a group waits for the other one, or for one that does.
fn waits(group: &[&JobSpec], later: &JobSpec, other: &JobSpec) -> bool {
    let Some(name) = &later.wait_for else { return false };
    // A job waits for one before it, so this has an end.
    let before = || group.iter().take_while(|job| !std::ptr::eq(**job, later));
    *name == other.name || before().any(|job| job.name == *name && waits(group, job, other))
}

fn clash(group: &[&JobSpec], a: &JobSpec, b: &JobSpec) -> bool {
    let (first, second) = (region(a), region(b));
    let same_bytes = first.start < second.end && second.start < first.end;
    let waits = waits(group, b, a) && a.verify.is_none() && b.verify.is_none();
    same_bytes && (a.rw.write || b.rw.write) && a.does_io() && b.does_io() && !waits
}
