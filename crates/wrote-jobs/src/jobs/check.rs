//! Checks of jobs, one by one and together, before the run creates any file.

use super::files::Files;
use super::foresight::Foresight;
use super::place::Identity;
use super::{Overlap, Permissions, Watcher};
use crate::data;
use crate::machine::host;
use crate::spec::{BlockSizes, JobSpec, NRFILES_MAX};
use crate::worker::header::HEADER_BYTES;
use crate::worker::sequence::{Outline, Sequence};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use wrote::Ioengine;
use wrote::engine::Options;
use wrote_result::Error;
use wrote_result::finding::NAMES_MAX;
use wrote_result::units::some_of;

const BS_BYTES_MAX: u64 = 1 << 30;

/// Refuses jobs that make no sense or are not permitted, as far as this is known before the first
/// group runs. `watcher` receives remarks on permitted jobs that may surprise the user. Writes no
/// data, but opens files, and flushes the files to be read.
///
/// # Errors
///
/// The errors of [`run`](super::run) that are known before the first group runs.
pub fn check(
    specs: &[JobSpec],
    permissions: Permissions,
    watcher: &mut dyn Watcher,
) -> Result<(), Error> {
    if specs.is_empty() {
        return Err(Error::Usage("there is no job to run".into()));
    }
    for spec in specs {
        check_job(spec).map_err(|what| Error::Usage(format!("{}: {what}", label(spec))))?;
    }
    let mut foresight = Foresight::default();
    for group in groups(specs) {
        let buffers =
            group.iter().map(|spec| data::buffers_bytes(spec.bs_bytes_max(), spec.io.iodepth));
        let buffers = buffers.fold(0, u64::saturating_add);
        data::check_buffers("bs x iodepth x numjobs", buffers, host::memory())?;
        check_overlap(&group, permissions, watcher)?;
        let files = Files::examine(&group, |path| foresight.find(path), permissions)?;
        for (spec, regions) in group.iter().zip(files.regions()) {
            sequence(spec, regions)?;
        }
        foresight.pass(&files);
    }
    if permissions.fill { Ok(()) } else { foresight.check_space() }
}

pub fn groups(specs: &[JobSpec]) -> Vec<Vec<&JobSpec>> {
    let mut groups: BTreeMap<u32, Vec<&JobSpec>> = BTreeMap::new();
    specs.iter().for_each(|spec| groups.entry(spec.group).or_default().push(spec));
    groups.into_values().collect()
}

/// Returns the smallest block size in the directions that the job uses. All offsets are multiples
/// of it.
pub fn least_bytes(spec: &JobSpec) -> u64 {
    spec.used_sizes().map(BlockSizes::least_bytes).min().unwrap_or(0)
}

fn check_job(spec: &JobSpec) -> Result<(), String> {
    let refuse = |what: String| Err(what);
    if !spec.order.rw.read && !spec.order.rw.write {
        return refuse("rw: the job neither reads nor writes".into());
    }
    for sizes in spec.used_sizes() {
        if sizes.least_bytes() == 0 || sizes.most_bytes() > BS_BYTES_MAX {
            return refuse("bs: a block has 1 byte to 1 GiB".into());
        }
        if let BlockSizes::Split(shares) = sizes
            && shares.iter().map(|share| u64::from(share.percent)).sum::<u64>() != 100
        {
            return refuse("bssplit: the percents do not add up to 100".into());
        }
    }
    let depth_max = Options::IODEPTH_MAX;
    if !(1..=depth_max).contains(&spec.io.iodepth) {
        return refuse(format!("iodepth: {} is not between 1 and {depth_max}", spec.io.iodepth));
    }
    if spec.pace.loops == 0 {
        return refuse("loops: must be 1 or more".into());
    }
    if spec.pace.time_based && spec.pace.runtime.is_none() {
        return refuse("time_based: needs a runtime".into());
    }
    let files = spec.files.paths.len();
    if !(1..=NRFILES_MAX as usize).contains(&files) {
        return refuse(format!("it has {files} files; 1 to {NRFILES_MAX} can be used"));
    }
    if let Some(folder) = &spec.files.makes_folders_in
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        return refuse(format!("directory={}: there is no such folder", folder.display()));
    }
    if spec.files.unlink && spec.files.file_bytes.is_none() {
        return refuse(
            "unlink: removes only files that the run creates, for which a size is needed".into(),
        );
    }
    if spec.writes.verify.is_some() {
        check_verify(spec)?;
    }
    Ok(())
}

fn check_verify(spec: &JobSpec) -> Result<(), String> {
    if spec.order.rw.read && spec.order.rw.write && is_paced(spec) {
        let why = "the rates decide during the run what is written, so it can't be repeated";
        return Err(format!("verify: not of a mix under rates: {why}"));
    }
    let least = least_bytes(spec);
    if least < HEADER_BYTES as u64 {
        return Err(format!(
            "verify: a block of {least} bytes has no room for its header of {HEADER_BYTES}"
        ));
    }
    Ok(())
}

fn is_paced(spec: &JobSpec) -> bool {
    let bytes = [spec.pace.read_rate_bytes_per_s, spec.pace.write_rate_bytes_per_s];
    let operations = [spec.pace.read_rate_iops, spec.pace.write_rate_iops];
    bytes.iter().any(Option::is_some) || operations.iter().any(Option::is_some)
}

/// Returns whether the engine performs one operation at a time, whatever its depth.
pub fn is_synchronous(ioengine: Ioengine) -> bool {
    matches!(ioengine, Ioengine::Psync | Ioengine::Mmap)
}

/// Returns the name of a job for messages about several jobs.
pub fn label(spec: &JobSpec) -> String {
    if spec.clone == 0 { spec.name.clone() } else { format!("{} ({})", spec.name, spec.clone) }
}

/// Returns the range of bytes that the job may touch in each file, as far as it is known before the
/// file is opened.
fn touched(spec: &JobSpec) -> Range<u64> {
    spec.touched(spec.files.offset_bytes..spec.files.end_bytes().unwrap_or(u64::MAX))
}

/// Refuses jobs that write to bytes which other jobs use at the same time, because they would
/// disturb each other. Does nothing if this is permitted.
pub fn check_overlap(
    group: &[&JobSpec],
    permissions: Permissions,
    watcher: &mut dyn Watcher,
) -> Result<(), Error> {
    let (mut files, mut jobs) = (BTreeSet::new(), BTreeSet::new());
    for (path, other, spec) in shared(group) {
        if std::ptr::eq(other, spec) {
            let (label, path) = (label(spec), path.display());
            return Err(Error::Usage(format!("{label}: names {path} twice")));
        }
        if !clash(other, spec) {
            continue;
        }
        let text = format!(
            "{}: {} and {} use the same bytes at once, and at least one writes them",
            path.display(),
            label(other),
            label(spec)
        );
        if !permissions.overlap {
            let way_out = "give each its own file or offset, or allow it with --allow-overlap";
            return Err(Error::Usage(format!("{text}; {way_out}")));
        }
        if other.writes.verify.is_some() || spec.writes.verify.is_some() {
            return Err(Error::Usage(format!("{text}; verify can't check that")));
        }
        files.insert(path.display().to_string());
        jobs.extend([label(other), label(spec)]);
    }
    if !files.is_empty() {
        let [files, jobs] = [files, jobs].map(|all| some_of(&Vec::from_iter(all), NAMES_MAX));
        let text = "use the same bytes at once, and at least one writes them";
        watcher.note(&format!("{jobs} {text}: {files}"));
    }
    Ok(())
}

/// Returns the pairs of jobs in a group that use the same bytes at the same time, if at least one
/// of the two writes.
pub fn overlaps(group: &[&JobSpec]) -> Vec<Overlap> {
    let clashes = shared(group).into_iter().filter(|(_, other, spec)| clash(other, spec));
    let overlap = |(path, other, spec): (&Path, &JobSpec, &JobSpec)| Overlap {
        file: path.to_owned(),
        jobs: [label(other), label(spec)],
    };
    clashes.map(overlap).collect()
}

/// Returns each file that two jobs of the group use, or that one job uses twice, with these two
/// jobs, in the order of the jobs.
fn shared<'a>(group: &[&'a JobSpec]) -> Vec<(&'a Path, &'a JobSpec, &'a JobSpec)> {
    let mut users: BTreeMap<Identity, Vec<&JobSpec>> = BTreeMap::new();
    let mut shared = Vec::new();
    for spec in group {
        for path in &spec.files.paths {
            let others = users.entry(Identity::of(path)).or_default();
            shared.extend(others.iter().map(|other| (path.as_path(), *other, *spec)));
            others.push(spec);
        }
    }
    shared
}

fn clash(a: &JobSpec, b: &JobSpec) -> bool {
    let (first, second) = (touched(a), touched(b));
    let same_bytes = first.start < second.end && second.start < first.end;
    same_bytes && (a.order.rw.write || b.order.rw.write)
}

/// Returns the sequence of a job's operations; an error if its files have no room for a single
/// block.
pub fn sequence(spec: &JobSpec, regions: Vec<Range<u64>>) -> Result<Sequence, Error> {
    let outline = Outline { spec: spec.clone(), regions };
    Sequence::new(outline).ok_or_else(|| {
        let label = label(spec);
        Error::Usage(format!("{label}: its files have no room for one block; give a larger size"))
    })
}
