//! Jobs of a group that use the same bytes of a file at once.

use super::place::Identity;
use super::reports::{Overlap, Permissions};
use crate::spec::JobSpec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use wrote_result::Error;

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
        if !clash(other, spec) {
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
    let clashes = shared(group).into_iter().filter(|(_, other, spec)| clash(other, spec));
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

fn clash(a: &JobSpec, b: &JobSpec) -> bool {
    let (first, second) = (region(a), region(b));
    (a.rw.write || b.rw.write) && first.start < second.end && second.start < first.end
}
