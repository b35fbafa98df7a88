//! Resolution of the parts of a job file that depend on existing files: the targets of links, and
//! shares of file lengths.

use super::check::{label, least_bytes};
use super::place::{Kind, file_key, kind, where_link_leads};
use crate::spec::{JobSpec, share};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use wrote_result::Error;
use wrote_result::units;

/// Replaces links to files that do not exist yet by their targets, and percentages by bytes. A
/// percentage refers to the length of the file, whether it exists or an earlier job creates it.
pub fn resolve(specs: &mut [JobSpec]) -> Result<(), Error> {
    let mut coming: HashMap<PathBuf, u64> = HashMap::new();
    for spec in specs {
        for file in &mut spec.files.paths {
            if let Some(target) = where_link_leads(file) {
                *file = target;
            }
        }
        if spec.files.offset_percent > 0 || spec.files.size_percent.is_some() {
            let len_bytes = common_length(spec, &coming)?;
            take_shares(spec, len_bytes)?;
        }
        let end = spec.files.end_bytes().unwrap_or(0);
        for file in &spec.files.paths {
            let len_bytes = coming.entry(file_key(file)).or_default();
            *len_bytes = end.max(*len_bytes);
        }
    }
    Ok(())
}

fn wrong(spec: &JobSpec, what: &str) -> Error {
    Error::Usage(format!("{}: {what}", label(spec)))
}

/// Returns the length that the job's files have in common.
fn common_length(spec: &JobSpec, coming: &HashMap<PathBuf, u64>) -> Result<u64, Error> {
    let length = |path: &Path| {
        let coming = coming.get(&file_key(path)).copied().unwrap_or(0);
        match kind(path)? {
            Kind::File { len_bytes } | Kind::Device { len_bytes } => Ok(len_bytes.max(coming)),
            Kind::Missing if coming > 0 => Ok(coming),
            Kind::Missing => {
                let path = path.display();
                let what = format!("{path} does not exist, so it has no length to take a share of");
                Err(wrong(spec, &what))
            }
        }
    };
    let lengths = spec.files.paths.iter().map(|path| length(path));
    let lengths: Vec<u64> = lengths.collect::<Result<_, _>>()?;
    let first = lengths.first().copied().unwrap_or(0);
    match lengths.iter().all(|length| *length == first) {
        true => Ok(first),
        false => Err(wrong(spec, "its files differ in length; write bytes in place of percents")),
    }
}

fn take_shares(spec: &mut JobSpec, len_bytes: u64) -> Result<(), Error> {
    let least = least_bytes(spec).max(1);
    let whole = |bytes: u64| bytes - bytes % least;
    let offset = share(len_bytes, spec.files.offset_percent);
    let offset = whole(spec.files.offset_bytes.saturating_add(offset));
    let rest = len_bytes.saturating_sub(offset);
    let bytes = match (spec.files.size_percent, spec.files.file_bytes) {
        (Some(percent), _) => share(len_bytes, percent).min(rest),
        (None, Some(bytes)) => bytes,
        (None, None) => rest,
    };
    if whole(bytes) == 0 {
        let len = units::bytes(len_bytes);
        return Err(wrong(spec, &format!("its share of {len} has no block of {least} bytes")));
    }
    (spec.files.offset_bytes, spec.files.file_bytes) = (offset, Some(whole(bytes)));
    (spec.files.offset_percent, spec.files.size_percent) = (0, None);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::READ;

    fn job(path: &Path, offset_percent: u32, size_percent: Option<u32>) -> JobSpec {
        let mut job = JobSpec::new("job", READ, 4096);
        job.files.paths = vec![path.to_owned()];
        (job.files.offset_percent, job.files.size_percent) = (offset_percent, size_percent);
        job
    }

    fn region(spec: &JobSpec) -> (u64, Option<u64>) {
        (spec.files.offset_bytes, spec.files.file_bytes)
    }

    #[test]
    fn shares_are_of_the_file_that_is_there_in_whole_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![0; 100_000]).unwrap();
        for (offset, size, expected) in [
            (0, Some(25), (0, Some(24_576))),
            (50, None, (49_152, Some(49_152))),
            (90, Some(50), (86_016, Some(12_288))),
            (0, None, (0, None)),
        ] {
            let mut specs = [job(&path, offset, size)];
            resolve(&mut specs).unwrap();
            assert_eq!(region(&specs[0]), expected, "{offset} {size:?}");
        }
        let mut specs = [job(&path, 10, None)];
        (specs[0].files.offset_bytes, specs[0].files.file_bytes) = (4096, Some(8192));
        resolve(&mut specs).unwrap();
        assert_eq!(region(&specs[0]), (12_288, Some(8192)));
        let none = resolve(&mut [job(&path, 100, None)]).unwrap_err().to_string();
        assert_eq!(none, "job: its share of 100 kB has no block of 4096 bytes");
    }

    #[test]
    fn a_file_that_an_earlier_job_makes_has_its_length_and_another_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let made = job(&path, 0, None).with(|job| job.files.file_bytes = Some(1 << 20));
        let mut specs = [made.clone(), job(&path, 50, None)];
        resolve(&mut specs).unwrap();
        assert_eq!(region(&specs[1]), (1 << 19, Some(1 << 19)));
        let error = resolve(&mut [job(&path, 50, None)]).unwrap_err().to_string();
        assert!(error.ends_with("file does not exist, so it has no length to take a share of"));
        std::fs::write(&path, "12345").unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "1234").unwrap();
        let both = job(&path, 50, None).with(|job| job.files.paths = vec![path.clone(), other]);
        let error = resolve(&mut [both]).unwrap_err().to_string();
        assert!(error.contains("its files differ in length"), "{error}");
    }

    #[test]
    fn a_link_that_leads_nowhere_names_the_file_to_make() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("second", place("first")).unwrap();
        std::os::unix::fs::symlink(place("file"), place("second")).unwrap();
        std::os::unix::fs::symlink("round", place("round")).unwrap();
        let mut specs = [job(&place("first"), 0, None), job(&place("file"), 0, None)];
        resolve(&mut specs).unwrap();
        assert!(specs.iter().all(|spec| spec.files.paths[0] == place("file")));
        let mut round = [job(&place("round"), 0, None)];
        resolve(&mut round).unwrap();
        assert_eq!(round[0].files.paths[0], place("round"));
    }
}
