//! The page cache's bytes of the files of direct jobs, before a group runs and after.

use super::Held;
use crate::spec::JobSpec;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;

/// Returns each file of a direct job with its cached bytes now and the job's region.
pub(super) fn before(specs: &[&JobSpec], regions: &[Vec<Range<u64>>]) -> Vec<(Held, Range<u64>)> {
    let mut all: Vec<(Held, Range<u64>)> = Vec::new();
    for (spec, regions) in specs.iter().zip(regions).filter(|(spec, _)| spec.direct) {
        for (file, region) in spec.files.iter().zip(regions) {
            let is_known = |(held, _): &(Held, Range<u64>)| {
                held.file == *file && held.offset_bytes == region.start
            };
            let held_bytes = cached_bytes(file, region);
            let (Some(before_bytes), false) = (held_bytes, all.iter().any(is_known)) else {
                continue;
            };
            let (file, offset_bytes) = (file.clone(), region.start);
            let held = Held { file, offset_bytes, before_bytes, after_bytes: before_bytes };
            all.push((held, region.clone()));
        }
    }
    all
}

pub(super) fn after(all: &mut [(Held, Range<u64>)]) {
    for (held, region) in all {
        held.after_bytes = cached_bytes(&held.file, region).unwrap_or(held.before_bytes);
    }
}

/// Returns the bytes of a region that are in the page cache; `None` where the kernel does not tell,
/// and where the path leads to no file.
fn cached_bytes(path: &Path, region: &Range<u64>) -> Option<u64> {
    // The open of a pipe would wait for its other end.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let to = |end| wrote::cached_bytes(file.as_fd(), end);
    Some(to(region.end)?.saturating_sub(to(region.start)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::spec;
    use crate::spec::Rw;

    #[test]
    fn what_is_written_through_the_page_cache_is_found_there_and_a_hole_is_not() {
        let file = fixtures::file();
        file.as_file().set_len(3 << 20).unwrap();
        let rw = Rw { read: false, write: true, random: false };
        let files = vec![file.path().to_owned()];
        let direct = JobSpec { files, direct: true, ..spec("a", rw) };
        let region = 1 << 20..3 << 20;
        let mut all = before(&[&direct, &direct], &[vec![region.clone()], vec![region]]);
        if all.is_empty() {
            return fixtures::skip("page_cache", "the kernel does not say what is cached");
        }
        assert_eq!((all.len(), all[0].0.before_bytes), (1, 0), "the same bytes once");
        std::fs::write(file.path(), vec![1; 2 << 20]).unwrap();
        after(&mut all);
        assert_eq!(all[0].0.after_bytes, 1 << 20, "what lies before the region is not counted");
        let cached = JobSpec { direct: false, ..direct };
        assert!(before(&[&cached], &[std::iter::once(0..1).collect()]).is_empty());
    }
}
